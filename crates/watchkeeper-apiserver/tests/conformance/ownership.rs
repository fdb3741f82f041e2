//! Managed fields and server-side apply, as far as no recording shows them.

use std::time::{Duration, Instant};

use bytes::Bytes;
use http::Method;
use serde_json::{Value, json};
use watchkeeper_apiserver::{ApiServer, CustomResource};

use crate::support::*;

const APPLY: &str = "application/apply-patch+yaml";

fn data(name: &str, data: Value) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data})
}

fn managers(object: &Value) -> Vec<String> {
    let entries = object["metadata"]["managedFields"].as_array();
    entries.into_iter().flatten().map(|entry| text(&entry["manager"])).collect()
}

async fn apply(server: &ApiServer, path: &str, manager: &str, config: Value) -> Reply {
    server.patch(&format!("{path}?fieldManager={manager}"), APPLY, config).await
}

#[tokio::test(start_paused = true)]
async fn a_dry_run_of_any_verb_leaves_no_trace() {
    let server = server();
    apply(&server, &format!("{MAPS}/a"), "one", data("a", json!({"k": "1"}))).await.ok();
    let (before, journal) = (server.get(&format!("{MAPS}/a")).await.text().to_owned(), server.journal().len());
    let dry = |path: &str| format!("{path}?dryRun=All&fieldManager=two");
    let (one, new) = (format!("{MAPS}/a"), format!("{MAPS}/b"));

    let created = server.patch(&dry(&new), APPLY, data("b", json!({"k": "1"}))).await;
    assert_eq!((created.status, managers(&created.json())), (201, vec!["two".to_owned()]));
    assert!(created.json()["metadata"].get("resourceVersion").is_none());
    let applied = server.patch(&dry(&one), APPLY, data("a", json!({"l": "1"}))).await.ok();
    assert_eq!(
        (managers(&applied), &applied["data"]),
        (vec!["one".into(), "two".into()], &json!({"k": "1", "l": "1"}))
    );
    let forced = server.patch(&format!("{}&force=true", dry(&one)), APPLY, data("a", json!({"k": "2"}))).await.ok();
    assert_eq!(managers(&forced), ["two"]);
    assert_eq!(server.patch(&dry(&one), APPLY, data("a", json!({"k": "2"}))).await.status, 409);
    server.post(&dry(MAPS), data("b", json!({}))).await.ok();
    server.replace(&dry(&one), data("a", json!({"k": "3"}))).await.ok();
    server.merge(&dry(&one), json!({"data": {"k": "4"}})).await.ok();
    server.patch(&dry(&one), "application/json-patch+json", json!([{"op": "remove", "path": "/data"}])).await.ok();
    server.patch(&dry(&one), "application/strategic-merge-patch+json", json!({"data": null})).await.ok();
    server.delete(&dry(&one)).await.ok();
    server.delete(&dry(MAPS)).await.ok();
    let pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "image": "i"}]}});
    assert_eq!(server.patch(&dry(&format!("{PODS}/p")), APPLY, pod).await.status, 201);

    assert_eq!(server.get(&one).await.text(), before);
    assert_eq!(server.get(&new).await.status, 404);
    assert_eq!(server.journal().len(), journal);
}

#[tokio::test(start_paused = true)]
async fn what_changes_nothing_is_not_written() {
    let server = server();
    let path = format!("{MAPS}/a");
    let first = apply(&server, &path, "one", data("a", json!({"k": "1"}))).await.ok();
    server.merge(&format!("{path}?fieldManager=two"), json!({"data": {"l": "1"}})).await.ok();
    let written = server.get(&path).await.text().to_owned();
    tokio::time::advance(Duration::from_secs(10)).await;
    // Not even times change.
    apply(&server, &path, "one", data("a", json!({"k": "1"}))).await.ok();
    server.merge(&format!("{path}?fieldManager=two"), json!({"data": {"l": "1"}})).await.ok();
    server.merge(&format!("{path}?fieldManager=three"), json!({"data": {"l": "1"}})).await.ok();
    server.replace(&path, serde_json::from_str(&written).expect("an object")).await.ok();
    assert_eq!(server.get(&path).await.text(), written);
    // Who applies what is there owns it from now on, and that is written.
    let shared = apply(&server, &path, "three", data("a", json!({"k": "1"}))).await.ok();
    assert!(revision(&shared) > revision(&first));
    assert_eq!(managers(&shared), ["three", "one", "two"]);
    tokio::time::advance(Duration::from_secs(10)).await;
    let changed = server.merge(&format!("{path}?fieldManager=two"), json!({"data": {"l": "2"}})).await.ok();
    let times: Vec<String> = changed["metadata"]["managedFields"]
        .as_array()
        .expect("entries")
        .iter()
        .map(|entry| text(&entry["time"]))
        .collect();
    assert_eq!(times, ["", "2026-11-15T12:00:00Z", "2026-11-15T12:00:20Z"]);
}

#[tokio::test(start_paused = true)]
async fn direct_writes_have_a_manager_and_stored_ones_keep_theirs() {
    let server = server();
    let created = server.create(data("a", json!({"k": "1"}))).expect("created");
    let created: Value = serde_json::from_slice(created.json()).expect("JSON");
    assert_eq!(managers(&created), ["watchkeeper"]);

    let entries = json!([{"manager": "kubectl", "operation": "Apply", "apiVersion": "v1", "time": "2020-01-01T00:00:00Z",
        "fieldsType": "FieldsV1", "fieldsV1": {"f:data": {"f:k": {}}}}]);
    let mut object = data("b", json!({"k": "1"}));
    object["metadata"]["managedFields"] = entries.clone();
    object["metadata"]["namespace"] = "default".into();
    let put = server.put(object).expect("put");
    let put: Value = serde_json::from_slice(put.json()).expect("JSON");
    assert_eq!(put["metadata"]["managedFields"], entries);
    let plain = server.put(data("c", json!({}))).expect("put");
    assert!(!String::from_utf8_lossy(plain.json()).contains("managedFields"));
    assert_eq!(apply(&server, &format!("{MAPS}/b"), "other", data("b", json!({"k": "2"}))).await.status, 409);

    let path = std::env::temp_dir().join(format!("watchkeeper-apiserver-managed-{}.jsonl", std::process::id()));
    server.save(&path).expect("saved");
    let before = server.get(MAPS).await.ok()["items"].clone();
    let again = ApiServer::new();
    again.load(&path).expect("loaded");
    std::fs::remove_file(&path).expect("removed");
    assert_eq!(again.get(MAPS).await.ok()["items"], before);
}

#[tokio::test(start_paused = true)]
async fn managed_fields_can_be_turned_off() {
    let server = builder().managed_fields(false).build();
    let path = format!("{MAPS}/a");
    server.post(MAPS, data("a", json!({"k": "1"}))).await.ok();
    assert_eq!(managers(&server.merge(&path, json!({"data": {"k": "2"}})).await.ok()), [""; 0]);
    apply(&server, &path, "one", data("a", json!({"k": "3"}))).await.ok();
    let applied = apply(&server, &path, "two", data("a", json!({"l": "3"}))).await.ok();
    assert_eq!((managers(&applied), &applied["data"]), (vec![], &json!({"k": "3", "l": "3"})));
}

#[tokio::test(start_paused = true)]
async fn only_one_of_many_who_apply_a_new_object_creates_it() {
    let server = server();
    let path = format!("{MAPS}/a");
    let statuses = futures::future::join_all((0..20).map(|i| {
        let (server, path) = (server.clone(), path.clone());
        async move { apply(&server, &path, &format!("m{i}"), data("a", json!({format!("k{i}"): "1"}))).await.status }
    }))
    .await;
    assert_eq!(statuses.iter().filter(|status| **status == 201).count(), 1);
    let object = server.get(&path).await.ok();
    assert_eq!(object["data"].as_object().map(serde_json::Map::len), Some(20));
    assert_eq!(managers(&object).len(), 20);
}

#[tokio::test(start_paused = true)]
async fn managed_fields_of_all_sorts_break_nothing() {
    let server = server();
    let path = format!("{MAPS}/a");
    server.map("a").await;
    let entry = |fields: Value| json!({"manager": "m", "operation": "Update", "apiVersion": "v1", "fieldsType": "FieldsV1", "fieldsV1": fields});
    let deep = (0..100).fold(json!({}), |fields, _| json!({"f:a": fields}));
    let wide: serde_json::Map<String, Value> = (0..20_000).map(|i| (format!("f:{i}"), json!({}))).collect();
    for entries in [
        json!([1]),
        json!([[]]),
        json!([{"manager": 1}]),
        json!([entry(json!("x"))]),
        json!([entry(json!({"x": {}}))]),
        json!([entry(json!({"f:data": {"k:{": {}}}))]),
        json!([entry(json!({"f:data": null}))]),
        json!([entry(deep)]),
        json!([entry(Value::Object(wide))]),
        json!(
            (0..5000)
                .map(|i| {
                    let mut entry = entry(json!({"f:data": {format!("f:{i}"): {}}}));
                    entry["manager"] = format!("m{i}").into();
                    entry
                })
                .collect::<Vec<_>>()
        ),
    ] {
        let started = Instant::now();
        let reply = server.merge(&path, json!({"metadata": {"managedFields": entries}, "data": {"k": "1"}})).await;
        assert!([200, 400, 422].contains(&reply.status), "{}", reply.text());
        let reply = server.merge(&path, json!({"data": {"k": null}})).await;
        assert_eq!(reply.status, 200, "{}", reply.text());
        assert!(started.elapsed() < Duration::from_secs(10));
        assert!(managers(&reply.json()).len() <= 11);
    }
}

#[tokio::test(start_paused = true)]
async fn objects_that_are_too_deep_to_track_are_still_readable() {
    let server = server();
    server.register(CustomResource::namespaced("shop.example.com", "v1", "Order", "orders")).expect("a kind");
    let path = "/apis/shop.example.com/v1/namespaces/default/orders";
    for levels in [90, 108, 112, 116] {
        let spec = (0..levels).fold(json!(1), |inner, _| json!({"a": inner}));
        let order = json!({"apiVersion": "shop.example.com/v1", "kind": "Order",
            "metadata": {"name": format!("o{levels}")}, "spec": spec});
        server.post(path, order.clone()).await.ok();
        let applied = apply(&server, &format!("{path}/o{levels}"), "one", order).await;
        assert!([200, 413].contains(&applied.status), "{}", applied.text());
    }
    assert_eq!(server.get(path).await.names().len(), 4);
    let mut watch = server.watch(&format!("{path}?watch=true")).await;
    for _ in 0..4 {
        assert_eq!(watch.next().await.expect("an event")["type"], "ADDED");
    }
}

#[tokio::test(start_paused = true)]
async fn hostile_configurations_are_refused_in_time() {
    let server = server();
    // Of a pod itself the containers stay.
    let path = "/api/v1/namespaces/default/podtemplates/p?fieldManager=one&force=true".to_owned();
    let pod = |containers: Vec<Value>| json!({"apiVersion": "v1", "kind": "PodTemplate", "metadata": {"name": "p"}, "template": {"spec": {"containers": containers}}});
    let many =
        |from: usize| (from..from + 10_000).map(|i| json!({"name": format!("c{i}"), "image": "i"})).collect::<Vec<_>>();
    let started = Instant::now();
    assert_eq!(server.patch(&path, APPLY, pod(many(0))).await.status, 201);
    assert_eq!(server.patch(&path, APPLY, pod(many(5_000).into_iter().rev().collect())).await.status, 200);
    assert!(started.elapsed() < Duration::from_secs(60), "{:?}", started.elapsed());
    // A few lines of YAML that mean a lot.
    let mut bomb =
        String::from("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: b}\na0: &a0 [x, x, x, x, x, x, x, x, x]\n");
    for i in 1..12 {
        let aliases = vec![format!("*a{}", i - 1); 9].join(", ");
        bomb.push_str(&format!("a{i}: &a{i} [{aliases}]\n"));
    }
    let deep = format!("{}{}", "[".repeat(50_000), "]".repeat(50_000));
    for body in [bomb, deep, "a: &a [*a]".to_owned(), "\u{0}".to_owned(), "--- 1\n--- 2".to_owned()] {
        let path = format!("{MAPS}/b?fieldManager=one");
        let reply = server.call(Method::PATCH, &path, &[("content-type", APPLY)], Bytes::from(body)).await;
        assert_eq!(reply.status, 400, "{}", reply.text());
    }
}

#[tokio::test(start_paused = true)]
async fn who_scales_owns_the_replicas_and_nobody_knows_since_when() {
    let server = server();
    let template = json!({"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}});
    let deployments = "/apis/apps/v1/namespaces/default/deployments";
    let spec = json!({"selector": {"matchLabels": {"a": "b"}}, "template": template});
    let deployment = json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "d"}, "spec": spec});
    server.post(deployments, deployment).await.ok();
    let scale = format!("{deployments}/d/scale?fieldManager=scaler");
    server.merge(&scale, json!({"spec": {"replicas": 5}})).await.ok();
    let scaled = server.get(&format!("{deployments}/d")).await.ok();
    let expected = json!({"manager": "scaler", "operation": "Update", "apiVersion": "apps/v1", "fieldsType": "FieldsV1",
        "fieldsV1": {"f:spec": {"f:replicas": {}}}, "subresource": "scale"});
    assert_eq!(scaled["metadata"]["managedFields"][0], expected);
}

#[tokio::test(start_paused = true)]
async fn a_scale_can_be_applied() {
    let server = server();
    let template = json!({"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}});
    let deployments = "/apis/apps/v1/namespaces/default/deployments";
    let spec = json!({"replicas": 1, "selector": {"matchLabels": {"a": "b"}}, "template": template});
    let deployment = json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "d"}, "spec": spec});
    server.post(&format!("{deployments}?fieldManager=maker"), deployment).await.ok();
    let path = format!("{deployments}/d/scale");
    let scale =
        |replicas: i32| json!({"apiVersion": "autoscaling/v1", "kind": "Scale", "spec": {"replicas": replicas}});

    let conflict = apply(&server, &path, "x", scale(3)).await.failure();
    let text = "Apply failed with 1 conflict: conflict with \"maker\" using autoscaling/v1: .spec.replicas";
    assert_eq!((conflict.0, conflict.2.as_str()), (409, text));
    let applied = server.patch(&format!("{path}?fieldManager=x&force=true"), APPLY, scale(3)).await.ok();
    assert_eq!((&applied["kind"], &applied["spec"]), (&json!("Scale"), &json!({"replicas": 3})));
    let managed = server.get(&format!("{deployments}/d")).await.ok()["metadata"]["managedFields"].take();
    let expected = json!({"manager": "x", "operation": "Apply", "apiVersion": "apps/v1", "fieldsType": "FieldsV1",
        "fieldsV1": {"f:spec": {"f:replicas": {}}}, "subresource": "scale"});
    assert_eq!(managed[0], expected);
    let conflict = apply(&server, &path, "y", scale(4)).await.failure();
    let text = "Apply failed with 1 conflict: conflict with \"x\" with subresource \"scale\": .spec.replicas";
    assert_eq!((conflict.0, conflict.2.as_str()), (409, text));

    // Who takes its number back leaves none, and not what a deployment has by default.
    let nothing = json!({"apiVersion": "autoscaling/v1", "kind": "Scale", "spec": {}});
    assert_eq!(apply(&server, &path, "y", nothing.clone()).await.ok()["spec"], json!({"replicas": 3}));
    assert_eq!(apply(&server, &path, "x", nothing).await.ok()["spec"], json!({}));
    assert_eq!(server.get(&format!("{deployments}/d")).await.ok()["spec"]["replicas"], 0);

    assert_eq!(apply(&server, &path, "x", scale(-3)).await.failure().0, 422);
    let mut other = scale(3);
    other["metadata"] = json!({"name": "other"});
    assert_eq!(apply(&server, &path, "x", other).await.failure().0, 400);
    let deployment = json!({"apiVersion": "apps/v1", "kind": "Deployment", "spec": {"replicas": 3}});
    let failure = apply(&server, &path, "x", deployment).await.failure();
    assert_eq!((failure.0, failure.2.as_str()), (400, "invalid object type: apps/v1, Kind=Deployment"));
    assert_eq!(apply(&server, &format!("{deployments}/absent/scale"), "x", scale(3)).await.failure().0, 404);
}

/// As a kube-apiserver 1.36 answers: it can own a custom kind's replicas by applying a scale, and cannot change them.
#[tokio::test(start_paused = true)]
async fn a_scale_of_a_custom_kind_cannot_be_changed_by_applying_it() {
    let server = server();
    let version = json!({
        "name": "v1", "served": true, "storage": true,
        "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}},
        "subresources": {"scale": {"specReplicasPath": ".spec.count", "statusReplicasPath": ".status.count"}},
    });
    let names = json!({"plural": "orders", "singular": "order", "kind": "Order", "listKind": "OrderList"});
    let spec = json!({"group": "shop.example.com", "scope": "Namespaced", "names": names, "versions": [version]});
    let definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    server.post(definitions, json!({"metadata": {"name": "orders.shop.example.com"}, "spec": spec})).await.ok();
    let orders = "/apis/shop.example.com/v1/namespaces/default/orders";
    let order =
        json!({"apiVersion": "shop.example.com/v1", "kind": "Order", "metadata": {"name": "o"}, "spec": {"count": 1}});
    server.post(&format!("{orders}?fieldManager=maker"), order).await.ok();
    let path = format!("{orders}/o/scale");
    let scale =
        |replicas: i32| json!({"apiVersion": "autoscaling/v1", "kind": "Scale", "spec": {"replicas": replicas}});
    let conflict = apply(&server, &path, "x", scale(3)).await.failure();
    let text = "Apply failed with 1 conflict: conflict with \"maker\" using autoscaling/v1: .spec.replicas";
    assert_eq!((conflict.0, conflict.2.as_str()), (409, text));
    let failure = server.patch(&format!("{path}?fieldManager=x&force=true"), APPLY, scale(3)).await.failure();
    let text = "failed to convert new object (/; autoscaling/v1, Kind=Scale) to proper version: request to convert CR to an \
                invalid group/version: autoscaling/v1";
    assert_eq!((failure.0, failure.2.as_str()), (500, text));
    assert_eq!(apply(&server, &path, "x", scale(1)).await.ok()["spec"], json!({"replicas": 1}));
    // Any other way is open.
    assert_eq!(server.merge(&path, json!({"spec": {"replicas": 3}})).await.ok()["spec"], json!({"replicas": 3}));
}
