//! What kube-rs users do with objects from their beginning to their end: controllers, finalizers, owners, events, leases,
//! evictions, scales and reviews; all unchanged.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use futures::StreamExt;
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::authorization::v1::{
    ResourceAttributes, SelfSubjectAccessReview, SelfSubjectAccessReviewSpec, SubjectAccessReview,
};
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::{ConfigMap, Event as CoreEvent, Namespace, Pod, Secret};
use k8s_openapi::api::events::v1::Event as NewEvent;
use kube::api::{DeleteParams, EvictParams, ListParams, ObjectMeta, Patch, PatchParams, PostParams};
use kube::runtime::controller::{Action, Controller};
use kube::runtime::events::{Event, EventType, Recorder, Reporter};
use kube::runtime::finalizer::{Event as Stage, finalizer};
use kube::runtime::watcher;
use kube::{Api, Client, Resource, ResourceExt};
use serde_json::json;
use watchkeeper_apiserver::{AccessRules, ApiServer};

const FINALIZER: &str = "shop.example.com/cleanup";

struct Context {
    client: Client,
    applied: AtomicUsize,
    cleaned: AtomicUsize,
}

#[derive(Debug, thiserror::Error)]
#[error("{0}")]
struct Failed(String);

/// Every config map gets a secret of the same name.
async fn reconcile(map: Arc<ConfigMap>, context: Arc<Context>) -> Result<Action, Failed> {
    let maps: Api<ConfigMap> = Api::default_namespaced(context.client.clone());
    let secrets: Api<Secret> = Api::default_namespaced(context.client.clone());
    let staged = finalizer(&maps, FINALIZER, map, |stage| async {
        match stage {
            Stage::Apply(map) => {
                let metadata = ObjectMeta {
                    name: Some(map.name_any()),
                    owner_references: map.controller_owner_ref(&()).map(|owner| vec![owner]),
                    ..ObjectMeta::default()
                };
                let secret = Secret { metadata, ..Secret::default() };
                if secrets.get_opt(&map.name_any()).await?.is_none() {
                    secrets.create(&PostParams::default(), &secret).await?;
                }
                context.applied.fetch_add(1, Ordering::Relaxed);
            }
            Stage::Cleanup(_) => drop(context.cleaned.fetch_add(1, Ordering::Relaxed)),
        }
        Ok::<_, kube::Error>(Action::requeue(Duration::from_secs(3600)))
    });
    staged.await.map_err(|error| Failed(error.to_string()))
}

async fn until(what: &str, mut holds: impl AsyncFnMut() -> bool) {
    let waiting = async {
        while !holds().await {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(60), waiting).await.unwrap_or_else(|_| panic!("{what}"));
}

#[tokio::test(start_paused = true)]
async fn a_controller_with_a_finalizer_makes_its_objects_and_cleans_up() {
    let server = ApiServer::new();
    let client = server.client();
    let maps: Api<ConfigMap> = Api::default_namespaced(client.clone());
    let secrets: Api<Secret> = Api::default_namespaced(client.clone());
    let context =
        Arc::new(Context { client: client.clone(), applied: AtomicUsize::new(0), cleaned: AtomicUsize::new(0) });
    let controller = Controller::new(maps.clone(), watcher::Config::default())
        .owns(secrets.clone(), watcher::Config::default())
        .run(reconcile, |_, _, _| Action::requeue(Duration::from_secs(1)), context.clone());
    let running = tokio::spawn(controller.for_each(|result| async move { drop(result.expect("reconciled")) }));

    for name in ["a", "b"] {
        let metadata = ObjectMeta { name: Some(name.to_owned()), ..ObjectMeta::default() };
        let map = ConfigMap { metadata, ..ConfigMap::default() };
        maps.create(&PostParams::default(), &map).await.expect("created");
    }
    until("each has its secret", async || secrets.list(&ListParams::default()).await.expect("a list").items.len() == 2)
        .await;
    // One that is deleted is made again.
    secrets.delete("a", &DeleteParams::default()).await.expect("deleted");
    until("it is back", async || secrets.get_opt("a").await.expect("an answer").is_some()).await;
    // Its finalizer is heard, and then owner and secret are gone.
    maps.delete("a", &DeleteParams::foreground()).await.expect("deleted");
    until("it is gone", async || maps.get_opt("a").await.expect("an answer").is_none()).await;
    until("and its secret", async || secrets.get_opt("a").await.expect("an answer").is_none()).await;
    assert_eq!(context.cleaned.load(Ordering::Relaxed), 1);
    assert!(context.applied.load(Ordering::Relaxed) >= 3);
    assert_eq!(secrets.list(&ListParams::default()).await.expect("a list").items[0].name_any(), "b");
    running.abort();
}

#[tokio::test(start_paused = true)]
async fn events_are_the_same_in_both_groups_and_count_their_series() {
    let server = ApiServer::new();
    let client = server.client();
    let pods: Api<Pod> = Api::default_namespaced(client.clone());
    let pod = json!({"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "image": "i"}]}});
    let pod: Pod = serde_json::from_value(pod).expect("a pod");
    let pod = pods.create(&PostParams::default(), &pod).await.expect("created");

    let reporter = Reporter { controller: "shop/controller".to_owned(), instance: Some("one".to_owned()) };
    let recorder = Recorder::new(client.clone(), reporter);
    let event = Event {
        type_: EventType::Warning,
        reason: "Broken".to_owned(),
        note: Some("it is broken".to_owned()),
        action: "Looking".to_owned(),
        secondary: None,
    };
    let mut watch = Box::pin(watcher(Api::<CoreEvent>::default_namespaced(client.clone()), watcher::Config::default()));
    for _ in 0..3 {
        recorder.publish(&event, &pod.object_ref(&())).await.expect("an event");
    }
    let new: Api<NewEvent> = Api::default_namespaced(client.clone());
    let core: Api<CoreEvent> = Api::default_namespaced(client);
    let list = new.list(&ListParams::default().fields("regarding.name=p")).await.expect("a list").items;
    assert_eq!(list.len(), 1);
    assert_eq!(list[0].series.as_ref().map(|series| series.count), Some(3));
    // The same object in the older form.
    let old = core.get(&list[0].name_any()).await.expect("there");
    assert_eq!(old.uid(), list[0].uid());
    assert_eq!(old.message.as_deref(), Some("it is broken"));
    assert_eq!(
        (old.involved_object.name.as_deref(), old.reporting_component.as_deref()),
        (Some("p"), Some("shop/controller"))
    );
    let selected =
        core.list(&ListParams::default().fields("involvedObject.name=p,type=Warning")).await.expect("a list");
    assert_eq!(selected.items.len(), 1);
    while let Some(seen) = watch.next().await {
        if let watcher::Event::InitApply(seen) | watcher::Event::Apply(seen) = seen.expect("an event") {
            assert_eq!(seen.message.as_deref(), Some("it is broken"));
            break;
        }
    }
    // A change in one form is one in the other.
    let note = Patch::Merge(json!({"message": "it is whole"}));
    core.patch(&old.name_any(), &PatchParams::default(), &note).await.expect("patched");
    assert_eq!(new.get(&old.name_any()).await.expect("there").note.as_deref(), Some("it is whole"));
    new.delete(&old.name_any(), &DeleteParams::default()).await.expect("deleted");
    assert!(core.list(&ListParams::default()).await.expect("a list").items.is_empty());
}

#[tokio::test(start_paused = true)]
async fn one_of_two_takes_a_lease() {
    let server = ApiServer::new();
    let leases: Api<Lease> = Api::namespaced(server.client(), "kube-node-lease");
    let lease = json!({
        "metadata": {"name": "node"},
        "spec": {"holderIdentity": "a", "leaseDurationSeconds": 40, "renewTime": "2026-11-15T12:00:00.123456Z"},
    });
    let lease: Lease = serde_json::from_value(lease).expect("a lease");
    let mut mine = leases.create(&PostParams::default(), &lease).await.expect("created");
    let mut yours = leases.get("node").await.expect("there");
    let holder = |lease: &mut Lease, name: &str| {
        lease.spec.get_or_insert_default().holder_identity = Some(name.to_owned());
    };
    holder(&mut mine, "mine");
    holder(&mut yours, "yours");
    let taken = leases.replace("node", &PostParams::default(), &mine).await.expect("taken");
    let late = leases.replace("node", &PostParams::default(), &yours).await.expect_err("too late");
    assert!(matches!(late, kube::Error::Api(status) if status.is_conflict()));
    let renewed = taken.spec.as_ref().and_then(|spec| spec.renew_time.as_ref()).map(|time| time.0.subsec_nanosecond());
    assert_eq!(renewed, Some(123_456_000));
    // Who does not say what it means is refused: leases are never overwritten blindly.
    yours.metadata.resource_version = None;
    assert!(leases.replace("node", &PostParams::default(), &yours).await.is_err());
}

#[tokio::test(start_paused = true)]
async fn pods_are_evicted_and_deployments_scaled() {
    let server = ApiServer::new();
    let client = server.client();
    let pods: Api<Pod> = Api::default_namespaced(client.clone());
    let pod = json!({"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "image": "i"}]}});
    let pod: Pod = serde_json::from_value(pod).expect("a pod");
    pods.create(&PostParams::default(), &pod).await.expect("created");
    pods.evict("p", &EvictParams::default()).await.expect("evicted");
    assert!(pods.get_opt("p").await.expect("an answer").is_none());

    let deployments: Api<Deployment> = Api::default_namespaced(client);
    let deployment = json!({
        "metadata": {"name": "d"},
        "spec": {
            "replicas": 2, "selector": {"matchLabels": {"app": "web"}},
            "template": {
                "metadata": {"labels": {"app": "web"}}, "spec": {"containers": [{"name": "c", "image": "i"}]},
            },
        },
    });
    let deployment: Deployment = serde_json::from_value(deployment).expect("a deployment");
    deployments.create(&PostParams::default(), &deployment).await.expect("created");
    let scale = deployments.get_scale("d").await.expect("a scale");
    assert_eq!(scale.spec.and_then(|spec| spec.replicas), Some(2));
    assert_eq!(scale.status.and_then(|status| status.selector).as_deref(), Some("app=web"));
    let patch = Patch::Merge(json!({"spec": {"replicas": 5}}));
    deployments.patch_scale("d", &PatchParams::default(), &patch).await.expect("scaled");
    let scaled = deployments.get("d").await.expect("there");
    assert_eq!((scaled.spec.replicas, scaled.metadata.generation), (Some(5), Some(2)));
}

#[tokio::test(start_paused = true)]
async fn users_are_refused_what_reviews_say_they_may_not_do() {
    let rules = json!({
        "users": [{"name": "alice", "token": "alices-token", "groups": ["developers"]}],
        "rules": [
            {"groups": ["developers"], "namespaces": ["default"], "verbs": ["get", "list", "watch"], "apiGroups": [""],
             "resources": ["pods"]},
        ],
    });
    let rules: AccessRules = serde_json::from_value(rules).expect("rules");
    let server = ApiServer::builder().rules(rules).build();
    let alice = server.client_of("alice");
    let pods: Api<Pod> = Api::default_namespaced(alice.clone());
    assert!(pods.list(&ListParams::default()).await.is_ok());
    let refused = pods.delete("p", &DeleteParams::default()).await.expect_err("forbidden");
    let kube::Error::Api(status) = refused else { panic!("{refused}") };
    let text = "pods \"p\" is forbidden: User \"alice\" cannot delete resource \"pods\" in API group \"\" in the namespace \
                \"default\"";
    assert_eq!((status.code, status.message.as_str()), (403, text));
    let namespaces: Api<Namespace> = Api::all(alice.clone());
    assert!(namespaces.list(&ListParams::default()).await.is_err());

    let ask = async |verb: &str| {
        let resource_attributes = Some(ResourceAttributes {
            namespace: Some("default".to_owned()),
            resource: Some("pods".to_owned()),
            verb: Some(verb.to_owned()),
            ..ResourceAttributes::default()
        });
        let spec = SelfSubjectAccessReviewSpec { resource_attributes, ..SelfSubjectAccessReviewSpec::default() };
        let review = SelfSubjectAccessReview { spec, ..SelfSubjectAccessReview::default() };
        let reviews: Api<SelfSubjectAccessReview> = Api::all(alice.clone());
        let answer = reviews.create(&PostParams::default(), &review).await.expect("an answer");
        answer.status.expect("a status").allowed
    };
    assert!(ask("list").await && !ask("delete").await);
    // Others are asked about by those who may.
    let review = json!({"spec": {"user": "alice", "groups": ["developers"],
        "resourceAttributes": {"namespace": "default", "verb": "get", "resource": "pods"}}});
    let review: SubjectAccessReview = serde_json::from_value(review).expect("a review");
    let reviews: Api<SubjectAccessReview> = Api::all(server.client());
    let answer = reviews.create(&PostParams::default(), &review).await.expect("an answer");
    assert!(answer.status.expect("a status").allowed);
    assert!(Api::<SubjectAccessReview>::all(alice.clone()).create(&PostParams::default(), &review).await.is_err());
}
