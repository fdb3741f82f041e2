//! A living cluster to look at.

use std::time::Duration;

use jiff::Timestamp;
use serde_json::Value;
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;
use watchkeeper_apiserver::ApiServer;

use crate::living::api::{Api, Resource, Target};
use crate::living::{Living, LivingOptions};

/// A server and the cluster in it.
pub(super) struct Bench {
    pub(super) server: ApiServer,
    pub(super) living: Living,
    pub(super) api: Api,
}

/// A cluster of this size in which nothing happens by itself.
pub(super) fn quiet(objects: usize) -> LivingOptions {
    LivingOptions { objects, rate: 0.0, now: Some(now()), ..LivingOptions::default() }
}

/// When everything begins, for server and cluster alike.
fn now() -> Timestamp {
    Timestamp::from_second(1_790_000_000).expect("a time")
}

impl Bench {
    pub(super) async fn start(options: LivingOptions) -> Self {
        Self::start_on(ApiServer::builder().seed(5).wall_clock(now()).build(), options).await
    }

    pub(super) async fn start_on(server: ApiServer, options: LivingOptions) -> Self {
        let living = Living::start(&server, options, CancellationToken::new()).await.expect("a cluster");
        let api = Api::new(server.client());
        Self { server, living, api }
    }

    /// All objects of a kind, as they are now.
    pub(super) fn all(&self, group: &str, plural: &str) -> Vec<Value> {
        let kind = self.server.kind(group, plural).expect("a kind");
        let objects = self.server.storage().objects(&kind);
        objects.iter().map(|object| serde_json::from_slice(object.json()).expect("an object")).collect()
    }

    pub(super) fn get(&self, group: &str, plural: &str, key: &str) -> Option<Value> {
        let kind = self.server.kind(group, plural).expect("a kind");
        let object = self.server.storage().get(&kind, key)?;
        Some(serde_json::from_slice(object.json()).expect("an object"))
    }

    /// The pods of a Deployment, through its ReplicaSets, that are not about to go.
    pub(super) fn pods_of(&self, deployment: &Value) -> Vec<Value> {
        let sets = self.all("apps", "replicasets");
        let sets: Vec<&Value> = sets.iter().filter(|set| is_owned(set, deployment)).collect();
        let mut pods = self.all("", "pods");
        pods.retain(|pod| sets.iter().any(|set| is_owned(pod, set)));
        pods.retain(|pod| pod["metadata"]["deletionTimestamp"].is_null());
        pods
    }

    /// A Deployment with more than a few pods.
    pub(super) fn large_deployment(&self) -> Value {
        let replicas = |deployment: &Value| deployment["spec"]["replicas"].as_i64();
        self.all("apps", "deployments").into_iter().max_by_key(replicas).expect("a deployment")
    }

    pub(super) async fn patch_deployment(&self, deployment: &Value, spec: Value) {
        let patch = serde_json::json!({"spec": spec});
        // Under faults once may not be enough.
        for _ in 0..200 {
            if self.api.patch(of(Resource::Deployments, deployment), &patch).await.is_ok() {
                return;
            }
            sleep(Duration::from_secs(1)).await;
        }
        panic!("the deployment cannot be changed");
    }

    pub(super) async fn delete(&self, resource: Resource, object: &Value) {
        for _ in 0..200 {
            if self.api.delete(of(resource, object), "", None).await.is_ok() {
                return;
            }
            sleep(Duration::from_secs(1)).await;
        }
        panic!("the object cannot be deleted");
    }

    /// Waits until something holds.
    pub(super) async fn until(&self, what: &str, limit: Duration, holds: impl Fn(&Self) -> bool) {
        let start = Instant::now();
        while !holds(self) {
            assert!(start.elapsed() < limit, "not within {limit:?}: {what}; queues: {:?}", self.living.queues());
            // What takes long is not looked at so often.
            sleep((start.elapsed() / 20).clamp(Duration::from_millis(200), Duration::from_secs(5))).await;
        }
    }

    /// The pods of a Deployment are as many as it wants, all of its template, and ready; and its status says so.
    pub(super) fn has_converged(&self, key: &str) -> bool {
        let Some(deployment) = self.get("apps", "deployments", key) else { return false };
        let wanted = deployment["spec"]["replicas"].as_u64().expect("replicas");
        let pods = self.pods_of(&deployment);
        let image = |object: &Value, path: &str| object.pointer(path).cloned();
        let new = image(&deployment, "/spec/template/spec/containers/0/image");
        let status = &deployment["status"];
        pods.len() as u64 == wanted
            && pods.iter().all(|pod| is_ready(pod) && image(pod, "/spec/containers/0/image") == new)
            && ["replicas", "updatedReplicas", "readyReplicas", "availableReplicas"]
                .iter()
                .all(|field| status[field].as_u64() == Some(wanted))
            && status["observedGeneration"] == deployment["metadata"]["generation"]
    }

    pub(super) async fn stop(self) {
        self.living.stop().await;
        assert_eq!(self.server.storage().watches(), 0, "nothing is left");
    }
}

pub(super) fn key(object: &Value) -> String {
    let text = |field: &str| object["metadata"][field].as_str().unwrap_or_default().to_owned();
    format!("{}/{}", text("namespace"), text("name"))
}

pub(super) fn is_owned(object: &Value, owner: &Value) -> bool {
    object["metadata"]["ownerReferences"][0]["uid"] == owner["metadata"]["uid"]
}

pub(super) fn is_ready(pod: &Value) -> bool {
    let conditions = pod["status"]["conditions"].as_array().into_iter().flatten();
    conditions.into_iter().any(|condition| condition["type"] == "Ready" && condition["status"] == "True")
}

fn of(resource: Resource, object: &Value) -> Target<'_> {
    let text = |field: &str| object["metadata"][field].as_str().unwrap_or_default();
    Target { resource, namespace: text("namespace"), name: text("name") }
}
