//! What belongs to something goes with it.

use serde_json::{Value, json};
use watchkeeper_apiserver::{ApiServer, Controllers, CustomResource};

use crate::support::*;

/// A reference to an object.
fn owned_by(owner: &Value) -> Value {
    json!({
        "apiVersion": owner["apiVersion"], "kind": owner["kind"],
        "name": owner["metadata"]["name"], "uid": owner["metadata"]["uid"],
    })
}

fn blocking(owner: &Value) -> Value {
    let mut reference = owned_by(owner);
    reference["blockOwnerDeletion"] = true.into();
    reference
}

/// A config map with owners.
async fn map(server: &ApiServer, name: &str, owners: &[Value]) -> Value {
    server.post(MAPS, json!({"metadata": {"name": name, "ownerReferences": owners}})).await.ok()
}

async fn delete(server: &ApiServer, name: &str, policy: &str) -> Value {
    server.delete_with(&format!("{MAPS}/{name}"), json!({"propagationPolicy": policy})).await.ok()
}

async fn names(server: &ApiServer) -> Vec<String> {
    server.get(MAPS).await.names()
}

/// All events of config maps since a revision, without versions.
async fn events(server: &ApiServer, since: u64) -> Vec<String> {
    let mut watch = server.watch(&format!("{MAPS}?watch=true&resourceVersion={since}")).await;
    let events = watch.events_for(seconds(1)).await;
    events.iter().map(|event| event.split('@').next().unwrap_or_default().to_owned()).collect()
}

#[tokio::test(start_paused = true)]
async fn c39_in_the_background_dependents_go_after_their_owner() {
    let server = server();
    let a = map(&server, "a", &[]).await;
    let b = map(&server, "b", &[owned_by(&a)]).await;
    let c = map(&server, "c", &[owned_by(&b)]).await;
    map(&server, "other", &[]).await;
    // Without a word it is done in the background too.
    server.delete(&format!("{MAPS}/a")).await.ok();
    assert_eq!(events(&server, revision(&c) + 1).await, ["DELETED a", "DELETED b", "DELETED c"]);
    assert_eq!(names(&server).await, ["other"]);
}

#[tokio::test(start_paused = true)]
async fn in_the_foreground_an_owner_goes_after_its_blocking_dependents() {
    let server = server();
    let a = map(&server, "a", &[]).await;
    let b = map(&server, "b", &[blocking(&a)]).await;
    map(&server, "c", &[blocking(&b)]).await;
    let d = map(&server, "d", &[owned_by(&a)]).await;
    let deleting = delete(&server, "a", "Foreground").await;
    assert_eq!(deleting["metadata"]["finalizers"], json!(["foregroundDeletion"]));
    let expected =
        ["MODIFIED a", "MODIFIED b", "DELETED c", "DELETED b", "DELETED a", "DELETED d"].map(str::to_owned).to_vec();
    assert_eq!(events(&server, revision(&d)).await, expected);
}

#[tokio::test(start_paused = true)]
async fn orphans_forget_their_owner_and_stay() {
    let server = server();
    let (a, z) = (map(&server, "a", &[]).await, map(&server, "z", &[]).await);
    map(&server, "b", &[owned_by(&a)]).await;
    let c = map(&server, "c", &[owned_by(&z), owned_by(&a)]).await;
    let deleting = delete(&server, "a", "Orphan").await;
    assert_eq!(deleting["metadata"]["finalizers"], json!(["orphan"]));
    assert_eq!(events(&server, revision(&c)).await, ["MODIFIED a", "MODIFIED b", "MODIFIED c", "DELETED a"]);
    assert_eq!(server.get(&format!("{MAPS}/b")).await.ok()["metadata"]["ownerReferences"], Value::Null);
    assert_eq!(server.get(&format!("{MAPS}/c")).await.ok()["metadata"]["ownerReferences"], json!([owned_by(&z)]));
}

#[tokio::test(start_paused = true)]
async fn a_dependent_stays_as_long_as_one_owner_is_left() {
    let server = server();
    let (a, b) = (map(&server, "a", &[]).await, map(&server, "b", &[]).await);
    map(&server, "c", &[blocking(&a), blocking(&b)]).await;
    // One that is waited for by the first owner still has the second.
    delete(&server, "a", "Foreground").await;
    assert_eq!(names(&server).await, ["b", "c"]);
    assert_eq!(server.get(&format!("{MAPS}/c")).await.ok()["metadata"]["ownerReferences"], json!([blocking(&b)]));
    delete(&server, "b", "Background").await;
    assert_eq!(names(&server).await, [""; 0]);
}

#[tokio::test(start_paused = true)]
async fn owners_that_are_not_there_hold_nothing() {
    let server = server();
    let a = map(&server, "a", &[]).await;
    let mut unknown = owned_by(&a);
    unknown["uid"] = "another".into();
    // Whoever creates it still sees it.
    assert_eq!(map(&server, "never", std::slice::from_ref(&unknown)).await["metadata"]["name"], "never");
    map(&server, "both", &[unknown, owned_by(&a)]).await;
    assert_eq!(names(&server).await, ["a", "both"]);
    let both = server.get(&format!("{MAPS}/both")).await.ok();
    assert_eq!(both["metadata"]["ownerReferences"], json!([owned_by(&a)]));
    // An owner of a kind that nobody knows may be somewhere.
    let foreign = json!({"apiVersion": "x.example.com/v1", "kind": "X", "name": "x", "uid": "x"});
    map(&server, "foreign", &[foreign]).await;
    assert_eq!(names(&server).await, ["a", "both", "foreign"]);
}

#[tokio::test(start_paused = true)]
async fn owners_are_looked_for_in_the_own_namespace_or_outside_of_all() {
    let server = server();
    server.post("/api/v1/namespaces", json!({"metadata": {"name": "other"}})).await.ok();
    let node = server.post("/api/v1/nodes", json!({"metadata": {"name": "n"}})).await.ok();
    let a = map(&server, "a", &[]).await;
    let other = "/api/v1/namespaces/other/configmaps";
    let owned = |owner: &Value, name: &str| json!({"metadata": {"name": name, "ownerReferences": [owned_by(owner)]}});
    server.post(other, owned(&a, "across")).await.ok();
    server.post(other, owned(&node, "of-node")).await.ok();
    assert_eq!(server.get(other).await.names(), ["of-node"]);
    // What is outside of namespaces cannot belong to one inside, and is left alone.
    server.post("/api/v1/nodes", owned(&a, "of-map")).await.ok();
    delete(&server, "a", "Background").await;
    assert_eq!(server.get("/api/v1/nodes").await.names(), ["n", "of-map"]);
    server.delete("/api/v1/nodes/n").await.ok();
    assert_eq!(server.get(other).await.names(), [""; 0]);
}

#[tokio::test(start_paused = true)]
async fn circles_do_not_wait_for_each_other() {
    for policy in ["Background", "Foreground", "Orphan"] {
        let server = server();
        let a = map(&server, "a", &[]).await;
        let b = map(&server, "b", &[blocking(&a)]).await;
        let c = map(&server, "c", &[blocking(&b)]).await;
        let circle = json!({"metadata": {"ownerReferences": [blocking(&c)]}});
        server.merge(&format!("{MAPS}/a"), circle).await.ok();
        let own = map(&server, "own", &[]).await;
        let to_itself = json!({"metadata": {"ownerReferences": [blocking(&own)]}});
        server.merge(&format!("{MAPS}/own"), to_itself).await.ok();
        delete(&server, "a", policy).await;
        delete(&server, "own", policy).await;
        let left = if policy == "Orphan" { vec!["b", "c"] } else { Vec::new() };
        assert_eq!(names(&server).await, left, "{policy}");
    }
}

#[tokio::test(start_paused = true)]
async fn dependents_with_finalizers_are_waited_for() {
    let server = server();
    let a = map(&server, "a", &[]).await;
    let held = json!({"name": "b", "finalizers": ["x.io/y"], "ownerReferences": [blocking(&a)]});
    server.post(MAPS, json!({ "metadata": held })).await.ok();
    delete(&server, "a", "Foreground").await;
    assert_eq!(names(&server).await, ["a", "b"]);
    assert!(server.get(&format!("{MAPS}/b")).await.ok()["metadata"]["deletionTimestamp"].is_string());
    server.merge(&format!("{MAPS}/b"), json!({"metadata": {"finalizers": null}})).await.ok();
    assert_eq!(names(&server).await, [""; 0]);
    // One that blocks no more is waited for no more.
    let a = map(&server, "a", &[]).await;
    let held = json!({"name": "b", "finalizers": ["x.io/y"], "ownerReferences": [blocking(&a)]});
    server.post(MAPS, json!({ "metadata": held })).await.ok();
    delete(&server, "a", "Foreground").await;
    server.merge(&format!("{MAPS}/b"), json!({"metadata": {"ownerReferences": [owned_by(&a)]}})).await.ok();
    assert_eq!(names(&server).await, ["b"]);
}

#[tokio::test(start_paused = true)]
async fn many_dependents_go_and_watchers_keep_up() {
    let server = server();
    let owner = server.create(config_map("owner")).expect("an owner");
    let reference = json!({"apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": owner.uid(), "blockOwnerDeletion": true});
    for i in 0..3000 {
        let metadata = json!({"name": format!("d{i:04}"), "ownerReferences": [reference]});
        server.create(json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata})).expect("a dependent");
    }
    // A watcher's queue has room for 1,000 events: it must get its turn in between.
    let since = server.storage().revision();
    let mut watch = server.watch(&format!("{MAPS}?watch=true&resourceVersion={since}")).await;
    let watching = tokio::spawn(async move {
        let mut events = Vec::new();
        while events.last().is_none_or(|last: &String| !last.starts_with("DELETED owner")) {
            events.push(watch.event().await);
        }
        events.len()
    });
    tokio::task::yield_now().await;
    delete(&server, "owner", "Foreground").await;
    assert_eq!(watching.await.expect("a watch"), 3002);
    assert_eq!(names(&server).await, [""; 0]);
}

#[tokio::test(start_paused = true)]
async fn custom_kinds_own_and_are_owned() {
    let server = server();
    server.register(CustomResource::namespaced("shop.example.com", "v1", "Order", "orders")).expect("a kind");
    let orders = "/apis/shop.example.com/v1/namespaces/default/orders";
    let order = json!({"apiVersion": "shop.example.com/v1", "kind": "Order", "metadata": {"name": "o"}});
    let order = server.post(orders, order).await.ok();
    let a = map(&server, "a", &[owned_by(&order)]).await;
    let item = json!({"name": "item", "ownerReferences": [owned_by(&a)]});
    server.post(orders, json!({"apiVersion": "shop.example.com/v1", "kind": "Order", "metadata": item})).await.ok();
    server.delete(&format!("{orders}/o")).await.ok();
    assert_eq!(names(&server).await, [""; 0]);
    assert_eq!(server.get(orders).await.names(), [""; 0]);
}

#[tokio::test(start_paused = true)]
async fn what_is_put_there_is_left_alone_until_its_owner_goes() {
    let server = server();
    let reference = json!({"apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": "u"});
    let put = |metadata: Value| server.put(json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata}));
    put(json!({"name": "owned", "ownerReferences": [reference]})).expect("an object");
    map(&server, "something", &[]).await;
    assert_eq!(names(&server).await, ["owned", "something"]);
    put(json!({"name": "owner", "uid": "u"})).expect("an object");
    let path = std::env::temp_dir().join(format!("watchkeeper-apiserver-garbage-{}.jsonl", std::process::id()));
    server.save(&path).expect("saved");
    // A saved state knows its owners again.
    let again = ApiServer::new();
    again.load(&path).expect("loaded");
    std::fs::remove_file(&path).expect("removed");
    for server in [server, again] {
        let kind = server.kind("", "configmaps").expect("a kind");
        server.remove(&kind, "default/owner");
        assert_eq!(names(&server).await, ["something"]);
    }
}

#[tokio::test(start_paused = true)]
async fn others_may_be_in_charge() {
    let server = builder().controllers(Controllers::Elsewhere).build();
    let a = map(&server, "a", &[]).await;
    map(&server, "b", &[owned_by(&a)]).await;
    delete(&server, "a", "Foreground").await;
    server.post("/api/v1/namespaces", json!({"metadata": {"name": "other"}})).await.ok();
    server.delete("/api/v1/namespaces/other").await.ok();
    assert_eq!(names(&server).await, ["a", "b"]);
    server.merge(&format!("{MAPS}/a"), json!({"metadata": {"finalizers": null}})).await.ok();
    assert_eq!(names(&server).await, ["b"]);
    assert_eq!(server.get("/api/v1/namespaces/other").await.ok()["status"], json!({"phase": "Terminating"}));
}
