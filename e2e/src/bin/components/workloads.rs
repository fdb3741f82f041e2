//! What controllers and the scheduler make of deployments, sets and jobs.

use std::collections::BTreeMap;

use anyhow::{Context as _, ensure};
use k8s_openapi::api::apps::v1::{DaemonSet, Deployment, ReplicaSet, StatefulSet};
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::{Namespace, Pod};
use kube::api::{ListParams, Patch, PatchParams, PostParams};
use kube::{Api, Client, ResourceExt as _};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use watchkeeper_e2e::Failure;

use crate::kubelet::{FINISHES, NODES};
use crate::stage::Stage;
use crate::wait::{differs, until};

/// Creates a namespace whose name begins so.
pub(super) async fn namespace(client: &Client, prefix: &str) -> Result<String, Failure> {
    let namespaces: Api<Namespace> = Api::all(client.clone());
    let wanted = json!({"metadata": {"generateName": format!("{prefix}-")}});
    Ok(namespaces.create(&PostParams::default(), &serde_json::from_value(wanted)?).await?.name_any())
}

/// Creates an object out of JSON.
pub(super) async fn create<K>(api: &Api<K>, object: Value) -> Result<K, Failure>
where
    K: Clone + std::fmt::Debug + Serialize + DeserializeOwned,
{
    let object: K = serde_json::from_value(object)?;
    Ok(api.create(&PostParams::default(), &object).await?)
}

/// A deployment of so many pods.
pub(super) fn deployment_of(name: &str, replicas: i32) -> Value {
    json!({
        "metadata": {"name": name},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": {"app": name}},
            "template": template(name, "example/web:1", false),
        },
    })
}

fn template(app: &str, image: &str, finishes: bool) -> Value {
    let annotations = if finishes { json!({FINISHES: "true"}) } else { json!({}) };
    let container =
        json!({"name": "main", "image": image, "resources": {"requests": {"cpu": "100m", "memory": "64Mi"}}});
    let restarts = if finishes { "Never" } else { "Always" };
    json!({
        "metadata": {"labels": {"app": app}, "annotations": annotations},
        "spec": {"containers": [container], "restartPolicy": restarts},
    })
}

/// Waits until a deployment says that all is as it should be, and looks whether it is.
pub(super) async fn settled(client: &Client, namespace: &str, name: &str) -> Result<(), Failure> {
    let deployments: Api<Deployment> = Api::namespaced(client.clone(), namespace);
    let pods: Api<Pod> = Api::namespaced(client.clone(), namespace);
    until(&format!("deployment {name}"), async || {
        let deployment = deployments.get(name).await?;
        let wanted = deployment.spec.replicas.unwrap_or_default();
        let status = deployment.status.clone().unwrap_or_default();
        let counted = [status.replicas, status.updated_replicas, status.ready_replicas, status.available_replicas];
        let (counted, generation) = (counted.map(Option::unwrap_or_default), status.observed_generation);
        Ok(differs("generation", generation, deployment.metadata.generation)
            .or_else(|| differs("pods, updated, ready, available", counted, [wanted; 4])))
    })
    .await?;
    let deployment = deployments.get(name).await?;
    let wanted = deployment.spec.replicas.unwrap_or_default();
    let image = |containers: &[k8s_openapi::api::core::v1::Container]| containers.first().and_then(|c| c.image.clone());
    let should = deployment.spec.template.spec.and_then(|spec| image(&spec.containers));
    // Pods that go are still there for a moment.
    until(&format!("pods of {name}"), async || {
        let found = pods.list(&ListParams::default().labels(&format!("app={name}"))).await?.items;
        if let Some(wrong) = differs("pods", found.len(), usize::try_from(wanted)?) {
            return Ok(Some(wrong));
        }
        for pod in found {
            let spec = pod.spec.context("a pod without a spec")?;
            ensure!(spec.node_name.is_some(), "{} is available and on no node", pod.metadata.name.unwrap_or_default());
            ensure!(image(&spec.containers) == should, "a pod has another image");
        }
        Ok(None)
    })
    .await
}

/// How many pods are on each node.
async fn spread(pods: &Api<Pod>, app: &str) -> Result<BTreeMap<String, usize>, Failure> {
    let mut spread = BTreeMap::new();
    for pod in pods.list(&ListParams::default().labels(&format!("app={app}"))).await?.items {
        *spread.entry(pod.spec.and_then(|spec| spec.node_name).unwrap_or_default()).or_default() += 1;
    }
    Ok(spread)
}

/// A deployment becomes a replica set, and that becomes pods on nodes.
pub(super) async fn deployment(stage: &Stage) -> Result<String, Failure> {
    let client = stage.client();
    let namespace = namespace(&client, "deployment").await?;
    let deployments: Api<Deployment> = Api::namespaced(client.clone(), &namespace);
    let made = create(&deployments, deployment_of("web", 20)).await?;
    settled(&client, &namespace, "web").await?;
    let sets = Api::<ReplicaSet>::namespaced(client.clone(), &namespace).list(&ListParams::default()).await?.items;
    ensure!(sets.len() == 1, "{} replica sets", sets.len());
    let owners = sets[0].owner_references();
    ensure!(
        owners.len() == 1 && Some(&owners[0].uid) == made.uid().as_ref(),
        "the replica set is not the deployment's"
    );
    let spread = spread(&Api::namespaced(client, &namespace), "web").await?;
    ensure!(spread.len() == NODES, "pods are on {} nodes", spread.len());
    Ok(format!("1 Deployment, 1 ReplicaSet, 20 Pods on {} nodes, all ready", spread.len()))
}

/// Up, down, to nothing and up again, by the scale subresource and by a patch.
pub(super) async fn scaling(stage: &Stage) -> Result<String, Failure> {
    let client = stage.client();
    let namespace = namespace(&client, "scaling").await?;
    let deployments: Api<Deployment> = Api::namespaced(client.clone(), &namespace);
    create(&deployments, deployment_of("web", 5)).await?;
    settled(&client, &namespace, "web").await?;
    for replicas in [20, 3, 0, 12] {
        let patch = Patch::Merge(json!({"spec": {"replicas": replicas}}));
        if replicas % 2 == 0 {
            deployments.patch_scale("web", &PatchParams::default(), &patch).await?;
        } else {
            deployments.patch("web", &PatchParams::default(), &patch).await?;
        }
        settled(&client, &namespace, "web").await?;
    }
    Ok("5, 20, 3, 0 and 12 pods".to_owned())
}

/// Pods are replaced, never too many at once; and the old ones come back.
pub(super) async fn rolling_update(stage: &Stage) -> Result<String, Failure> {
    let client = stage.client();
    let namespace = namespace(&client, "rolling").await?;
    let deployments: Api<Deployment> = Api::namespaced(client.clone(), &namespace);
    let sets: Api<ReplicaSet> = Api::namespaced(client.clone(), &namespace);
    create(&deployments, deployment_of("web", 20)).await?;
    settled(&client, &namespace, "web").await?;
    // A quarter may be away, as it says itself.
    let (mut fewest, least) = (20, 15);
    for image in ["example/web:2", "example/web:1"] {
        let container = json!({"name": "main", "image": image});
        let patch = json!({"spec": {"template": {"spec": {"containers": [container]}}}});
        deployments.patch("web", &PatchParams::default(), &Patch::Strategic(patch)).await?;
        until("the update", async || {
            let deployment = deployments.get("web").await?;
            let status = deployment.status.unwrap_or_default();
            fewest = fewest.min(status.available_replicas.unwrap_or_default());
            let updated = status.updated_replicas.unwrap_or_default();
            Ok(differs("generation", status.observed_generation, deployment.metadata.generation)
                .or_else(|| differs("updated", updated, 20))
                .or_else(|| differs("pods", status.replicas.unwrap_or_default(), 20)))
        })
        .await?;
        settled(&client, &namespace, "web").await?;
    }
    ensure!(fewest >= least, "only {fewest} pods were available, and {least} must be");
    let found = sets.list(&ListParams::default()).await?.items;
    let mut replicas: Vec<i32> = found.iter().filter_map(|set| set.spec.replicas).collect();
    replicas.sort_unstable();
    ensure!(replicas == [0, 20], "the replica sets have {replicas:?}");
    Ok(format!("20 Pods replaced and back again by 2 ReplicaSets; at least {fewest} were available"))
}

/// A StatefulSet's pods come one after the other and have names; a DaemonSet has a pod on each node.
pub(super) async fn sets(stage: &Stage) -> Result<String, Failure> {
    let client = stage.client();
    let namespace = namespace(&client, "sets").await?;
    let (stateful, daemons): (Api<StatefulSet>, Api<DaemonSet>) =
        (Api::namespaced(client.clone(), &namespace), Api::namespaced(client.clone(), &namespace));
    let pods: Api<Pod> = Api::namespaced(client.clone(), &namespace);
    let spec = |app: &str| {
        json!({
            "selector": {"matchLabels": {"app": app}}, "template": template(app, "example/db:1", false),
        })
    };
    let mut of_state = spec("db");
    of_state["replicas"] = json!(3);
    of_state["serviceName"] = json!("db");
    create(&stateful, json!({"metadata": {"name": "db"}, "spec": of_state})).await?;
    create(&daemons, json!({"metadata": {"name": "agent"}, "spec": spec("agent")})).await?;
    until("the sets", async || {
        let ready = stateful.get("db").await?.status.unwrap_or_default().ready_replicas;
        let agents = daemons.get("agent").await?.status.unwrap_or_default().number_ready;
        Ok(differs("stateful pods", ready, Some(3)).or_else(|| differs("daemons", agents, NODES as i32)))
    })
    .await?;
    let mut names: Vec<String> =
        pods.list(&ListParams::default().labels("app=db")).await?.items.iter().map(|pod| pod.name_any()).collect();
    names.sort();
    ensure!(names == ["db-0", "db-1", "db-2"], "the pods are {names:?}");
    let spread = spread(&pods, "agent").await?;
    ensure!(spread.len() == NODES && spread.values().all(|&count| count == 1), "daemons are on {spread:?}");
    Ok(format!("a StatefulSet of 3, a DaemonSet on {NODES} nodes"))
}

/// A job's pods finish, and then the job has.
pub(super) async fn job(stage: &Stage) -> Result<String, Failure> {
    let client = stage.client();
    let namespace = namespace(&client, "job").await?;
    let jobs: Api<Job> = Api::namespaced(client.clone(), &namespace);
    let template = template("work", "example/work:1", true);
    let spec = json!({"completions": 8, "parallelism": 3, "completionMode": "Indexed", "template": template});
    create(&jobs, json!({"metadata": {"name": "work"}, "spec": spec})).await?;
    until("the job", async || {
        let status = jobs.get("work").await?.status.unwrap_or_default();
        let conditions = status.conditions.unwrap_or_default();
        let complete = conditions.iter().any(|condition| condition.type_ == "Complete" && condition.status == "True");
        let (succeeded, indexes) = (status.succeeded.unwrap_or_default(), status.completed_indexes.unwrap_or_default());
        Ok((!complete).then(|| format!("{succeeded} succeeded: {indexes:?}")))
    })
    .await?;
    let status = jobs.get("work").await?.status.unwrap_or_default();
    ensure!(status.succeeded == Some(8), "{:?} succeeded", status.succeeded);
    ensure!(status.completed_indexes.as_deref() == Some("0-7"), "completed: {:?}", status.completed_indexes);
    // The finalizers with which the job counts its pods are gone, so nothing holds these.
    let pods = Api::<Pod>::namespaced(client, &namespace).list(&ListParams::default()).await?.items;
    ensure!(pods.len() == 8 && pods.iter().all(|pod| pod.finalizers().is_empty()), "pods are held");
    Ok("8 Pods, 3 at a time, all succeeded".to_owned())
}
