//! Deletions: what holds an object, what must hold for it to go, and many at once.

use serde_json::{Value, json};

use crate::support::*;

#[tokio::test(start_paused = true)]
async fn c37_finalizers_hold_an_object_until_the_last_is_gone() {
    let server = server();
    let path = format!("{MAPS}/a");
    let mut watch = server.watch(&format!("{MAPS}?watch=true&resourceVersion=5")).await;
    server.post(MAPS, json!({"metadata": {"name": "a", "finalizers": ["x.io/y", "x.io/z"]}})).await.ok();
    let deleting = server.delete(&path).await.ok();
    assert_eq!(deleting["metadata"]["deletionTimestamp"], "2026-11-15T12:00:00Z");
    assert_eq!(deleting["metadata"]["deletionGracePeriodSeconds"], 0);
    // Again, and nothing new.
    assert_eq!(server.delete(&path).await.ok(), deleting);
    let added = server.merge(&path, json!({"metadata": {"finalizers": ["x.io/new", "x.io/y", "x.io/z"]}})).await;
    let text = "metadata.finalizers: Forbidden: no new finalizers can be added if the object is being deleted, found new \
                finalizers []string{\"x.io/new\"}";
    assert_eq!(added.failure(), (422, "Invalid".to_owned(), format!("ConfigMap \"a\" is invalid: {text}")));
    let one = server.merge(&path, json!({"metadata": {"finalizers": ["x.io/z"]}})).await.ok();
    let last = server.merge(&path, json!({"metadata": {"finalizers": []}})).await.ok();
    // The answer shows the update, which was never written.
    assert_eq!((revision(&last), &last["metadata"]["finalizers"]), (revision(&one), &Value::Null));
    assert_eq!(server.get(&path).await.status, 404);
    let events = watch.events_for(seconds(1)).await;
    assert_eq!(events, ["ADDED a@6", "MODIFIED a@7", "MODIFIED a@8", "DELETED a@9"]);
}

#[tokio::test(start_paused = true)]
async fn c37_pods_have_time_to_go() {
    let server = server();
    let pod = |name: &str, node: &str| json!({"metadata": {"name": name}, "spec": {"nodeName": node, "containers": [{"name": "c", "image": "i"}]}});
    let mut watch = server.watch(&format!("{PODS}?watch=true&resourceVersion=5")).await;
    server.post(PODS, pod("a", "n1")).await.ok();
    let deleting = server.delete(&format!("{PODS}/a")).await.ok();
    assert_eq!(deleting["metadata"]["deletionTimestamp"], "2026-11-15T12:00:30Z");
    assert_eq!(deleting["metadata"]["deletionGracePeriodSeconds"], 30);
    assert_eq!(deleting["metadata"]["generation"], 2);
    let sooner = server.delete(&format!("{PODS}/a?gracePeriodSeconds=5")).await.ok();
    assert_eq!(sooner["metadata"]["deletionTimestamp"], "2026-11-15T12:00:05Z");
    assert_eq!(server.delete(&format!("{PODS}/a?gracePeriodSeconds=60")).await.ok(), sooner);
    let gone = server.delete(&format!("{PODS}/a?gracePeriodSeconds=0")).await.ok();
    assert_eq!(gone["metadata"]["deletionGracePeriodSeconds"], 0);
    let expected = ["ADDED a@6", "MODIFIED a@7", "MODIFIED a@8", "MODIFIED a@9", "DELETED a@10"];
    assert_eq!(watch.events_for(seconds(1)).await, expected);
    // One that runs nowhere needs none.
    server.post(PODS, pod("b", "")).await.ok();
    server.delete(&format!("{PODS}/b")).await.ok();
    assert_eq!(watch.events_for(seconds(1)).await, ["ADDED b@11", "MODIFIED b@12", "DELETED b@13"]);
}

#[tokio::test(start_paused = true)]
async fn c38_preconditions_of_a_deletion_must_hold() {
    let server = server();
    let path = format!("{MAPS}/a");
    let created = server.map("a").await;
    let uid = text(&created["metadata"]["uid"]);
    let refused = server.delete_with(&path, json!({"preconditions": {"uid": "abc"}})).await;
    let message = format!(
        "Operation cannot be fulfilled on ConfigMap \"a\": the UID in the precondition (abc) does not match the UID in \
         record ({uid}). The object might have been deleted and then recreated"
    );
    assert_eq!(refused.failure(), (409, "Conflict".to_owned(), message));
    let refused = server.delete_with(&path, json!({"preconditions": {"resourceVersion": "3"}})).await.failure();
    assert!(refused.2.contains("the ResourceVersion in the precondition (3) does not match"), "{}", refused.2);
    let options = json!({"kind": null, "dryRun": null, "preconditions": {"uid": uid, "resourceVersion": null}});
    let deleted = server.delete_with(&path, options).await.ok();
    let status = json!({
        "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success",
        "details": {"name": "a", "kind": "configmaps", "uid": uid},
    });
    assert_eq!(deleted, status);
    let missing = server.delete(&path).await.failure();
    assert_eq!(missing, (404, "NotFound".to_owned(), "configmaps \"a\" not found".to_owned()));
}

#[tokio::test(start_paused = true)]
async fn c41_a_collection_is_deleted_as_far_as_it_matches() {
    let server = server();
    for (name, app) in [("a", "web"), ("b", "api"), ("c", "web")] {
        server.post(MAPS, json!({"metadata": {"name": name, "labels": {"app": app}}})).await.ok();
    }
    let deleted = server.delete(&format!("{MAPS}?labelSelector=app%3Dweb")).await;
    assert_eq!(deleted.names(), ["a", "c"]);
    assert_eq!(deleted.ok()["kind"], "ConfigMapList");
    assert_eq!(server.get(MAPS).await.names(), ["b"]);
    server.delete(MAPS).await.ok();
    assert_eq!(server.get(MAPS).await.names(), [""; 0]);
    // Not everything can be deleted that way.
    assert_eq!(server.delete("/api/v1/namespaces").await.failure().0, 405);
}
