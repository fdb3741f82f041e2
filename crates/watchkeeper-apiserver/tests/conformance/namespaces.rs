//! A namespace that is deleted takes everything in it along.

use serde_json::{Value, json};
use watchkeeper_apiserver::ApiServer;

use crate::support::*;

const SHOP: &str = "/api/v1/namespaces/shop";

async fn shop() -> ApiServer {
    let server = server();
    server.post("/api/v1/namespaces", json!({"metadata": {"name": "shop"}})).await.ok();
    server
}

/// Status, reason and text of a condition of the namespace.
async fn condition(server: &ApiServer, name: &str) -> [String; 3] {
    let namespace = server.get(SHOP).await.ok();
    let conditions = namespace["status"]["conditions"].as_array().expect("conditions");
    let condition = conditions.iter().find(|condition| condition["type"] == name).expect("a condition");
    ["status", "reason", "message"].map(|field| text(&condition[field]))
}

#[tokio::test(start_paused = true)]
async fn an_empty_namespace_goes_at_once() {
    let server = shop().await;
    let since = server.storage().revision();
    let deleting = server.delete(SHOP).await.ok();
    assert_eq!(deleting["status"]["phase"], "Terminating");
    assert_eq!(server.get(SHOP).await.status, 404);
    let mut watch = server.watch(&format!("/api/v1/namespaces?watch=true&resourceVersion={since}")).await;
    let mut seen = Vec::new();
    for _ in 0..3 {
        seen.push(watch.next().await.expect("an event"));
    }
    assert_eq!(seen.iter().map(|event| text(&event["type"])).collect::<Vec<_>>(), ["MODIFIED", "MODIFIED", "DELETED"]);
    assert_eq!(seen[1]["object"]["status"]["conditions"].as_array().map(Vec::len), Some(5));
    assert_eq!(seen[2]["object"]["spec"]["finalizers"], json!(["kubernetes"]));
}

#[tokio::test(start_paused = true)]
async fn everything_in_a_namespace_goes_and_pods_go_first() {
    let server = shop().await;
    for path in ["configmaps", "secrets", "pods", "events"] {
        let object = json!({
            "metadata": {"name": "a", "namespace": "shop"}, "involvedObject": {"namespace": "shop"},
            "spec": {"containers": [{"name": "c", "image": "i"}]},
        });
        server.post(&format!("{SHOP}/{path}"), object).await.ok();
    }
    server.map("elsewhere").await;
    let since = server.storage().revision();
    server.delete(SHOP).await.ok();
    assert_eq!(server.get(SHOP).await.status, 404);
    let lines: Vec<String> =
        server.storage().journal_since(since).iter().map(|entry| entry.kind.plural.clone()).collect();
    // Marked, the pod marked and removed, the rest removed, conditions, gone.
    let expected = ["namespaces", "pods", "pods", "configmaps", "events", "secrets", "namespaces", "namespaces"];
    assert_eq!(lines, expected);
    assert_eq!(server.get(&format!("{MAPS}/elsewhere")).await.status, 200);
}

#[tokio::test(start_paused = true)]
async fn a_namespace_waits_for_what_is_held_and_says_so() {
    let server = shop().await;
    let maps = format!("{SHOP}/configmaps");
    for name in ["a", "b"] {
        let held = json!({"metadata": {"name": name, "finalizers": ["x.io/y"]}});
        server.post(&maps, held).await.ok();
    }
    server.delete(SHOP).await.ok();
    let remaining = condition(&server, "NamespaceContentRemaining").await;
    let expected = "Some resources are remaining: configmaps. has 2 resource instances";
    assert_eq!(remaining, ["True", "SomeResourcesRemain", expected]);
    let finalizers = condition(&server, "NamespaceFinalizersRemaining").await;
    let expected = "Some finalizers are remaining: x.io/y in 2 resource instances";
    assert_eq!(finalizers, ["True", "SomeFinalizersRemain", expected]);
    // Nothing new comes in.
    let refused = server.post(&maps, json!({"metadata": {"name": "c"}})).await.failure();
    assert_eq!((refused.0, refused.1.as_str()), (403, "Forbidden"));
    let release = json!({"metadata": {"finalizers": null}});
    server.merge(&format!("{maps}/a"), release.clone()).await.ok();
    let remaining = condition(&server, "NamespaceContentRemaining").await;
    assert_eq!(remaining[2], "Some resources are remaining: configmaps. has 1 resource instances");
    server.merge(&format!("{maps}/b"), release).await.ok();
    assert_eq!(server.get(SHOP).await.status, 404);
}

#[tokio::test(start_paused = true)]
async fn the_rest_waits_for_pods_that_run() {
    let server = shop().await;
    let pods = format!("{SHOP}/pods");
    let running = json!({
        "metadata": {"name": "p"}, "spec": {"nodeName": "n1", "containers": [{"name": "c", "image": "i"}]},
    });
    server.post(&pods, running).await.ok();
    server.post(&format!("{SHOP}/configmaps"), json!({"metadata": {"name": "a"}})).await.ok();
    server.delete(SHOP).await.ok();
    let remaining = condition(&server, "NamespaceContentRemaining").await;
    assert_eq!(remaining[2], "Some resources are remaining: pods. has 1 resource instances");
    assert_eq!(server.get(&format!("{SHOP}/configmaps")).await.names(), ["a"]);
    // What a kubelet does in the end.
    server.delete(&format!("{pods}/p?gracePeriodSeconds=0")).await.ok();
    assert_eq!(server.get(SHOP).await.status, 404);
    assert_eq!(server.get(&format!("{SHOP}/configmaps")).await.names(), [""; 0]);
}

#[tokio::test(start_paused = true)]
async fn other_finalizers_of_a_namespace_hold_it_too() {
    let server = shop().await;
    let finalizers = json!({"metadata": {"finalizers": ["x.io/y"]}});
    server.merge(SHOP, finalizers).await.ok();
    server.delete(SHOP).await.ok();
    let held = server.get(SHOP).await.ok();
    assert_eq!(held["spec"]["finalizers"], Value::Null);
    assert_eq!(held["status"]["phase"], "Terminating");
    server.merge(SHOP, json!({"metadata": {"finalizers": null}})).await.ok();
    assert_eq!(server.get(SHOP).await.status, 404);
}

#[tokio::test(start_paused = true)]
async fn namespaces_that_every_cluster_needs_stay() {
    let server = server();
    for name in ["default", "kube-public", "kube-system"] {
        let refused = server.delete(&format!("/api/v1/namespaces/{name}")).await.failure();
        let message = format!("namespaces \"{name}\" is forbidden: this namespace may not be deleted");
        assert_eq!(refused, (403, "Forbidden".to_owned(), message));
    }
}
