//! What is refused, and in which words: compared with a kube-apiserver 1.36.

use bytes::Bytes;
use http::Method;
use serde_json::{Value, json};
use watchkeeper_apiserver::{AccessRules, ApiServer};

use crate::support::*;

const LEASES: &str = "/apis/coordination.k8s.io/v1/namespaces/default/leases";
const APPLY: &str = "application/apply-patch+yaml";

/// Sends something as `alice`, who may change things.
async fn as_alice(server: &ApiServer, method: Method, path: &str, media_type: &str, body: &Value) -> Reply {
    let headers = [("authorization", "Bearer t"), ("content-type", media_type)];
    server.call(method, path, &headers, Bytes::from(body.to_string())).await
}

#[tokio::test(start_paused = true)]
async fn whoever_may_only_change_objects_creates_none() {
    let rules: AccessRules = serde_json::from_value(json!({
        "users": [{"name": "alice", "token": "t"}],
        "rules": [
            {"users": ["alice"], "verbs": ["patch", "update"], "apiGroups": ["*"],
             "resources": ["configmaps", "leases", "namespaces"]},
            {"users": ["alice"], "verbs": ["create"], "apiGroups": ["*"], "resources": ["*"], "resourceNames": ["mine"]},
        ],
    }))
    .expect("rules");
    let server = builder().rules(rules).build();
    let named = |kind: &str, name: &str| json!({"apiVersion": "v1", "kind": kind, "metadata": {"name": name}});
    let lease =
        |name: &str| json!({"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": name}});
    let refused = |reply: Reply, what: &str, place: &str| {
        let (resource, group) = what.split_once(' ').expect("two words");
        let full = format!("{resource}{}{group}", if group.is_empty() { "" } else { "." });
        let text = format!(
            "{full} \"a\" is forbidden: User \"alice\" cannot create resource \"{resource}\" in API group \"{group}\" {place}"
        );
        assert_eq!(reply.failure(), (403, "Forbidden".to_owned(), text));
    };
    let map = format!("{MAPS}/a?fieldManager=m");
    let here = "in the namespace \"default\"";
    let reply = as_alice(&server, Method::PATCH, &map, APPLY, &named("ConfigMap", "a")).await;
    refused(reply, "configmaps ", here);
    let dry = format!("{map}&dryRun=All");
    refused(as_alice(&server, Method::PATCH, &dry, APPLY, &named("ConfigMap", "a")).await, "configmaps ", here);
    let path = format!("{LEASES}/a");
    let reply = as_alice(&server, Method::PUT, &path, "application/json", &lease("a")).await;
    refused(reply, "leases coordination.k8s.io", here);
    let path = "/api/v1/namespaces/a?fieldManager=m";
    let reply = as_alice(&server, Method::PATCH, path, APPLY, &named("Namespace", "a")).await;
    refused(reply, "namespaces ", "in the namespace \"a\"");
    // What is wrong with the object comes first.
    let bad = format!("{LEASES}/bad_name");
    assert_eq!(as_alice(&server, Method::PUT, &bad, "application/json", &lease("bad_name")).await.status, 422);

    // What is there may be changed, and what may be created is.
    server.map("a").await;
    assert_eq!(as_alice(&server, Method::PATCH, &map, APPLY, &named("ConfigMap", "a")).await.status, 200);
    let mine = format!("{MAPS}/mine?fieldManager=m");
    assert_eq!(as_alice(&server, Method::PATCH, &mine, APPLY, &named("ConfigMap", "mine")).await.status, 201);
    let mine = format!("{LEASES}/mine");
    assert_eq!(as_alice(&server, Method::PUT, &mine, "application/json", &lease("mine")).await.status, 201);
}
