//! kube-rs, unchanged, as a client.

use std::collections::BTreeMap;
use std::time::Duration;

use futures::{StreamExt, TryStreamExt};
use k8s_openapi::api::core::v1::{ConfigMap, Pod};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{
    DeleteParams, DynamicObject, ListParams, ObjectMeta, PartialObjectMeta, Patch, PatchParams, PostParams,
};
use kube::core::{ApiResource, GroupVersionKind};
use kube::runtime::reflector::{self, ObjectRef};
use kube::runtime::wait::{await_condition, conditions};
use kube::runtime::watcher::{self, Event};
use kube::runtime::{WatchStreamExt, watcher as watch};
use kube::{Api, ResourceExt};
use serde_json::json;
use watchkeeper_apiserver::{ApiServer, CustomResource};

fn config_map(name: &str) -> ConfigMap {
    ConfigMap { metadata: ObjectMeta { name: Some(name.to_owned()), ..ObjectMeta::default() }, ..ConfigMap::default() }
}

#[tokio::test(start_paused = true)]
async fn api_creates_reads_changes_and_deletes() {
    let server = ApiServer::new();
    let maps: Api<ConfigMap> = Api::default_namespaced(server.client());

    let created = maps.create(&PostParams::default(), &config_map("a")).await.expect("created");
    assert!(created.uid().is_some());
    let exists = maps.create(&PostParams::default(), &config_map("a")).await.expect_err("it exists");
    assert!(matches!(exists, kube::Error::Api(status) if status.is_already_exists()));

    let mut changed = maps.get("a").await.expect("there");
    changed.data = Some(BTreeMap::from([("k".to_owned(), "v".to_owned())]));
    let replaced = maps.replace("a", &PostParams::default(), &changed).await.expect("replaced");
    assert_ne!(replaced.resource_version(), created.resource_version());
    let stale = maps.replace("a", &PostParams::default(), &changed).await.expect_err("stale");
    assert!(matches!(stale, kube::Error::Api(status) if status.is_conflict()));

    let patch = Patch::Merge(json!({"metadata": {"labels": {"app": "web"}}}));
    maps.patch("a", &PatchParams::default(), &patch).await.expect("patched");
    maps.create(&PostParams::default(), &config_map("b")).await.expect("created");
    let web = maps.list(&ListParams::default().labels("app=web")).await.expect("a list");
    assert_eq!(web.items.iter().map(ResourceExt::name_any).collect::<Vec<_>>(), ["a"]);
    let metadata = maps.list_metadata(&ListParams::default()).await.expect("a list");
    assert_eq!(metadata.items.len(), 2);

    maps.delete("a", &DeleteParams::default()).await.expect("deleted").map_right(|status| assert!(status.is_success()));
    assert!(maps.get_opt("a").await.expect("an answer").is_none());
    maps.delete_collection(&DeleteParams::default(), &ListParams::default()).await.expect("deleted");
    assert!(maps.list(&ListParams::default()).await.expect("a list").items.is_empty());
}

#[tokio::test(start_paused = true)]
async fn api_works_with_custom_resources_and_status() {
    let server = ApiServer::new();
    server
        .register(CustomResource::namespaced("shop.example.com", "v1", "Order", "orders").with_status())
        .expect("a kind");
    let resource = ApiResource::from_gvk(&GroupVersionKind::gvk("shop.example.com", "v1", "Order"));
    let orders: Api<DynamicObject> = Api::default_namespaced_with(server.client(), &resource);
    let order = DynamicObject::new("a", &resource).data(json!({"spec": {"pieces": 1}}));
    orders.create(&PostParams::default(), &order).await.expect("created");
    let patch = Patch::Merge(json!({"status": {"sent": true}}));
    let sent = orders.patch_status("a", &PatchParams::default(), &patch).await.expect("patched");
    assert_eq!(sent.data, json!({"spec": {"pieces": 1}, "status": {"sent": true}}));
}

/// What an operator does when it starts: it installs its definition, waits for it, and works with its objects.
#[tokio::test(start_paused = true)]
async fn a_definition_is_installed_waited_for_and_used() {
    let server = ApiServer::new();
    let definitions: Api<CustomResourceDefinition> = Api::all(server.client());
    let definition: CustomResourceDefinition = serde_json::from_value(json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "orders.shop.example.com"},
        "spec": {
            "group": "shop.example.com", "scope": "Namespaced", "names": {"kind": "Order", "plural": "orders"},
            "versions": [{
                "name": "v1", "served": true, "storage": true, "subresources": {"status": {}, "scale": {
                    "specReplicasPath": ".spec.pieces", "statusReplicasPath": ".status.pieces"}},
                "schema": {"openAPIV3Schema": {"type": "object", "properties": {
                    "spec": {"type": "object", "properties": {"pieces": {"type": "integer", "default": 1}}},
                    "status": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
                }}},
            }],
        },
    }))
    .expect("a definition");
    definitions.create(&PostParams::default(), &definition).await.expect("created");
    let established = await_condition(definitions.clone(), "orders.shop.example.com", conditions::is_crd_established());
    tokio::time::timeout(Duration::from_secs(1), established).await.expect("in time").expect("established");

    let resource = ApiResource::from_gvk(&GroupVersionKind::gvk("shop.example.com", "v1", "Order"));
    let orders: Api<DynamicObject> = Api::default_namespaced_with(server.client(), &resource);
    let order = DynamicObject::new("a", &resource).data(json!({"spec": {}}));
    let created = orders.create(&PostParams::default(), &order).await.expect("created");
    assert_eq!(created.data, json!({"spec": {"pieces": 1}}));
    assert_eq!(orders.list(&ListParams::default()).await.expect("a list").items.len(), 1);
    let mut events = std::pin::pin!(watch(orders.clone(), watcher::Config::default()).applied_objects());
    assert_eq!(events.try_next().await.expect("no error").expect("an order").name_any(), "a");

    let scale = orders.get_scale("a").await.expect("a scale");
    assert_eq!(scale.spec.and_then(|spec| spec.replicas), Some(1));
    let patch = Patch::Merge(json!({"spec": {"replicas": 5}}));
    orders.patch_scale("a", &PatchParams::default(), &patch).await.expect("scaled");
    let scaled = events.try_next().await.expect("no error").expect("an order");
    assert_eq!(scaled.data["spec"]["pieces"], 5);
    let order = DynamicObject::new("b", &resource).data(json!({"spec": {"pieces": "many"}}));
    let refused = orders.create(&PostParams::default(), &order).await.expect_err("no number");
    assert!(matches!(refused, kube::Error::Api(status) if status.code == 422));

    definitions.delete("orders.shop.example.com", &DeleteParams::default()).await.expect("deleted");
    assert!(orders.list(&ListParams::default()).await.is_err());
    assert!(definitions.get_opt("orders.shop.example.com").await.expect("an answer").is_none());
}

/// What both strategies of kube-rs's watcher must come to.
async fn watcher_follows(config: watcher::Config) {
    let server = ApiServer::new();
    let maps: Api<ConfigMap> = Api::default_namespaced(server.client());
    for i in 0..5 {
        maps.create(&PostParams::default(), &config_map(&format!("m{i}"))).await.expect("created");
    }
    let mut events = std::pin::pin!(watch(maps.clone(), config));
    let mut initial = Vec::new();
    loop {
        match events.try_next().await.expect("no error").expect("an event") {
            Event::Init => initial.clear(),
            Event::InitApply(map) => initial.push(map.name_any()),
            Event::InitDone => break,
            event => panic!("{event:?}"),
        }
    }
    assert_eq!(initial, ["m0", "m1", "m2", "m3", "m4"]);
    maps.create(&PostParams::default(), &config_map("new")).await.expect("created");
    maps.delete("m0", &DeleteParams::default()).await.expect("deleted");
    let applied = events.try_next().await.expect("no error").expect("an event");
    assert!(matches!(applied, Event::Apply(map) if map.name_any() == "new"));
    let deleted = events.try_next().await.expect("no error").expect("an event");
    assert!(matches!(deleted, Event::Delete(map) if map.name_any() == "m0"));
    // An hour later, after several watches have ended, it still follows; and a forgotten past makes it list anew.
    let hour = tokio::time::timeout(Duration::from_secs(3600), events.try_next()).await;
    assert!(hour.is_err(), "{hour:?}");
    server.compact(server.storage().revision());
    maps.create(&PostParams::default(), &config_map("late")).await.expect("created");
    let late = events.try_next().await.expect("no error").expect("an event");
    assert!(matches!(late, Event::Apply(map) if map.name_any() == "late"));
}

#[tokio::test(start_paused = true)]
async fn watcher_follows_with_lists_and_watches() {
    watcher_follows(watcher::Config::default().page_size(2)).await;
}

#[tokio::test(start_paused = true)]
async fn watcher_follows_with_streaming_lists() {
    watcher_follows(watcher::Config::default().streaming_lists()).await;
}

#[tokio::test(start_paused = true)]
async fn watcher_of_metadata_gets_metadata() {
    let server = ApiServer::new();
    server.create(json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}, "spec": {"containers": [{"name": "c", "image": "i"}]}})).expect("created");
    let pods: Api<PartialObjectMeta<Pod>> = Api::default_namespaced(server.client());
    let events = watch(pods, watcher::Config::default()).take(3);
    let events: Vec<Event<PartialObjectMeta<Pod>>> = events.try_collect().await.expect("no error");
    assert!(matches!(&events[1], Event::InitApply(pod) if pod.name_any() == "a"));
}

#[tokio::test(start_paused = true)]
async fn reflector_keeps_a_store() {
    let server = ApiServer::new();
    let pods: Api<Pod> = Api::default_namespaced(server.client());
    let (store, writer) = reflector::store();
    let stream = reflector::reflector(writer, watch(pods, watcher::Config::default()).default_backoff());
    let reflecting = tokio::spawn(stream.for_each(|_| async {}));
    store.wait_until_ready().await.expect("ready");
    for i in 0..10 {
        server
            .create(json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": format!("p{i}")}, "spec": {"containers": [{"name": "c", "image": "i"}]}}))
            .expect("created");
    }
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(store.len(), 10);
    let pods = server.kind("", "pods").expect("pods");
    server.remove(&pods, "default/p0").expect("removed");
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert!(store.get(&ObjectRef::new("p0").within("default")).is_none());
    // What the store shows is what the journal ends with.
    for object in server.storage().objects(&pods) {
        let cached = store.get(&ObjectRef::new(object.name()).within("default")).expect("cached");
        assert_eq!(cached.resource_version(), Some(object.revision().to_string()));
    }
    reflecting.abort();
}
