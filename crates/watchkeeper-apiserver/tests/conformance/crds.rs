//! CustomResourceDefinitions as objects: what they make, change and take with them.

use serde_json::{Value, json};
use watchkeeper_apiserver::{ApiServer, History};

use crate::support::{Http, builder, event, revision, seconds, server, text};

const CRDS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const APPLY: &str = "application/apply-patch+yaml";
const ORDERS: &str = "/apis/shop.example.com/v1/namespaces/default/orders";

fn schema() -> Value {
    let spec = json!({"type": "object", "properties": {
        "size": {"type": "integer", "minimum": 1, "default": 3}, "customer": {"type": "string"}}});
    json!({"type": "object", "properties": {"spec": spec}})
}

fn definition(schema: Value) -> Value {
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "orders.shop.example.com"},
        "spec": {
            "group": "shop.example.com", "scope": "Namespaced", "names": {"kind": "Order", "plural": "orders"},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": schema}}],
        },
    })
}

fn order(name: &str, spec: Value) -> Value {
    json!({"apiVersion": "shop.example.com/v1", "kind": "Order", "metadata": {"name": name}, "spec": spec})
}

fn condition(definition: &Value, kind: &str) -> String {
    let conditions = definition["status"]["conditions"].as_array().cloned().unwrap_or_default();
    let found = conditions.iter().find(|condition| condition["type"] == kind).cloned().unwrap_or_default();
    format!("{} {}", text(&found["status"]), text(&found["reason"]))
}

async fn with_orders() -> ApiServer {
    let server = server();
    server.post(CRDS, definition(schema())).await.ok();
    server
}

#[tokio::test(start_paused = true)]
async fn a_definition_is_served_as_soon_as_it_is_created() {
    let server = server();
    assert_eq!(server.get(ORDERS).await.text(), "404 page not found\n");
    let mut watch = server.watch(&format!("{CRDS}?watch=1")).await;
    let created = server.post(CRDS, definition(schema())).await.ok();
    assert_eq!(created["status"]["conditions"], Value::Null, "the answer is that of the creation");
    assert_eq!(created["spec"]["names"]["listKind"], "OrderList");
    assert_eq!(watch.next().await.expect("an event")["type"], "ADDED");
    let established = watch.next().await.expect("an event");
    assert_eq!(condition(&established["object"], "NamesAccepted"), "True NoConflicts");
    assert_eq!(condition(&established["object"], "Established"), "True InitialNamesAccepted");
    assert_eq!(established["object"]["status"]["storedVersions"], json!(["v1"]));
    assert_eq!(server.get(ORDERS).await.ok()["kind"], "OrderList");
    let resources = server.get("/apis/shop.example.com/v1").await.ok();
    assert_eq!(resources["resources"][0]["name"], "orders");
    let order = server.post(ORDERS, order("o", json!({"bogus": 1}))).await;
    assert_eq!(order.ok()["spec"], json!({"size": 3}));
}

#[tokio::test(start_paused = true)]
async fn direct_calls_make_kinds_without_a_request() {
    let server = server();
    server.create(definition(schema())).expect("a definition");
    let made = server.create(order("o", json!({}))).expect("an order");
    assert!(std::str::from_utf8(made.json()).expect("text").contains(r#""spec":{"size":3}"#));
    let failure = server.create(order("p", json!({"size": 0}))).expect_err("a size of nothing");
    assert_eq!((failure.code(), failure.reason()), (422, "Invalid"));
    let kind = server.kind("apiextensions.k8s.io", "customresourcedefinitions").expect("a kind");
    server.remove(&kind, "orders.shop.example.com").expect("a definition");
    assert!(server.kind("shop.example.com", "orders").is_none());
    assert!(server.put(definition(schema())).is_ok());
    assert!(server.kind("shop.example.com", "orders").is_some_and(|kind| server.storage().count(&kind) == 0));
}

#[tokio::test(start_paused = true)]
async fn a_deleted_definition_takes_its_objects_and_watches_along() {
    let server = with_orders().await;
    let made = server.post(ORDERS, order("o", json!({}))).await.ok();
    let mut watch = server.watch(&format!("{ORDERS}?watch=1")).await;
    assert_eq!(watch.event().await, event("ADDED", &made));
    let deleted = server.delete(&format!("{CRDS}/orders.shop.example.com")).await.ok();
    assert_eq!(condition(&deleted, "Terminating"), "True InstanceDeletionPending");
    let gone = watch.event().await;
    assert!(gone.starts_with("DELETED o@"), "{gone}");
    assert!(watch.next().await.is_none(), "the watch has ended");
    assert_eq!(server.get(ORDERS).await.text(), "404 page not found\n");
    assert_eq!(server.get("/apis/shop.example.com").await.status, 404);
    assert_eq!(server.get(&format!("{CRDS}/orders.shop.example.com")).await.status, 404);

    server.post(CRDS, definition(schema())).await.ok();
    assert!(server.get(ORDERS).await.names().is_empty(), "nothing of before");
    let late = format!("{ORDERS}?watch=1&resourceVersion={}", revision(&made));
    let late = server.watch(&late).await.next().await.expect("an event");
    assert_eq!((&late["type"], &late["object"]["code"]), (&json!("ERROR"), &json!(410)));
}

#[tokio::test(start_paused = true)]
async fn a_definition_waits_for_objects_that_something_holds() {
    let server = with_orders().await;
    let mut held = order("held", json!({}));
    held["metadata"]["finalizers"] = json!(["example.com/hold"]);
    server.post(ORDERS, held).await.ok();
    let path = format!("{CRDS}/orders.shop.example.com");
    server.delete(&path).await.ok();
    let waiting = server.get(&path).await.ok();
    assert_eq!(condition(&waiting, "Terminating"), "True InstanceDeletionInProgress");
    assert_eq!(waiting["metadata"]["finalizers"], json!(["customresourcecleanup.apiextensions.k8s.io"]));
    let refused = server.post(ORDERS, order("new", json!({}))).await.failure();
    let text = r#"orders.shop.example.com "new" is forbidden: create not allowed while custom resource definition is terminating"#;
    assert_eq!(refused, (403, "Forbidden".into(), text.into()));
    server.merge(&format!("{ORDERS}/held"), json!({"metadata": {"finalizers": null}})).await.ok();
    assert_eq!(server.get(&path).await.status, 404);
    assert_eq!(server.get(ORDERS).await.status, 404);
}

#[tokio::test(start_paused = true)]
async fn names_that_are_taken_are_refused_until_they_are_free() {
    let server = with_orders().await;
    let mut other = definition(schema());
    other["metadata"]["name"] = json!("others.shop.example.com");
    other["spec"]["names"] = json!({"kind": "Order", "plural": "others"});
    server.post(CRDS, other).await.ok();
    let path = format!("{CRDS}/others.shop.example.com");
    let refused = server.get(&path).await.ok();
    assert_eq!(condition(&refused, "NamesAccepted"), "False ListKindConflict");
    assert_eq!(condition(&refused, "Established"), "False NotAccepted");
    assert_eq!(server.get("/apis/shop.example.com/v1/others").await.status, 404);
    assert_eq!(server.unserved_definitions(), ["others.shop.example.com"]);
    server.delete(&format!("{CRDS}/orders.shop.example.com")).await.ok();
    assert_eq!(condition(&server.get(&path).await.ok(), "Established"), "True InitialNamesAccepted");
    server.get("/apis/shop.example.com/v1/others").await.ok();
}

#[tokio::test(start_paused = true)]
async fn a_changed_schema_is_seen_in_what_was_stored_before_and_ends_watches() {
    let server = with_orders().await;
    let made = server.post(ORDERS, order("o", json!({"customer": "c"}))).await.ok();
    let mut watch = server.watch(&format!("{ORDERS}?watch=1&resourceVersion={}", revision(&made))).await;
    let mut changed = schema();
    let properties = &mut changed["properties"]["spec"]["properties"];
    properties["colour"] = json!({"type": "string", "default": "red"});
    properties.as_object_mut().expect("a map").remove("customer");
    let patch = json!([{"op": "replace", "path": "/spec/versions/0/schema/openAPIV3Schema", "value": changed}]);
    let path = format!("{CRDS}/orders.shop.example.com");
    server.patch(&path, "application/json-patch+json", patch).await.ok();
    assert!(watch.next().await.is_none(), "the watch has ended");
    let shown = server.get(&format!("{ORDERS}/o")).await.ok();
    assert_eq!(shown["spec"], json!({"colour": "red", "size": 3}));
    assert_eq!(revision(&shown), revision(&made), "nothing was written");
    let again = server.merge(&format!("{ORDERS}/o"), json!({})).await.ok();
    assert!(revision(&again) > revision(&made), "it is stored as it is shown");
    assert_eq!(revision(&server.merge(&format!("{ORDERS}/o"), json!({})).await.ok()), revision(&again));
}

#[tokio::test(start_paused = true)]
async fn definitions_and_their_objects_survive_a_file() {
    let path = std::env::temp_dir().join(format!("watchkeeper-crds-{}.jsonl", std::process::id()));
    let server = with_orders().await;
    server.post(ORDERS, order("o", json!({"size": 7}))).await.ok();
    server.save(&path).expect("a file");
    let again = builder().history(History { changes: 10, age: seconds(10) }).build();
    again.load(&path).expect("a state");
    assert_eq!(again.get(&format!("{ORDERS}/o")).await.ok()["spec"]["size"], 7);
    assert_eq!(again.post(ORDERS, order("p", json!({"size": 0}))).await.status, 422);
    // Into a server that has the same definition already, and more.
    server.post(ORDERS, order("q", json!({}))).await.ok();
    server.load(&path).expect("a state");
    assert_eq!(server.get(ORDERS).await.names(), ["o"]);
    server.delete(&format!("{CRDS}/orders.shop.example.com")).await.ok();
    assert_eq!(server.get(ORDERS).await.status, 404);
    std::fs::remove_file(&path).expect("the file");
}

#[tokio::test(start_paused = true)]
async fn a_restart_without_data_forgets_definitions() {
    let server = with_orders().await;
    server.faults().restart(false);
    assert_eq!(server.get(ORDERS).await.status, 404);
    server.post(CRDS, definition(schema())).await.ok();
    assert!(server.get(ORDERS).await.names().is_empty());
}

#[tokio::test(start_paused = true)]
async fn rules_that_nobody_evaluates_are_warned_of() {
    let server = server();
    let mut schema = schema();
    schema["properties"]["spec"]["x-kubernetes-validations"] = json!([{"rule": "self.size > 1"}]);
    let reply = server.post(CRDS, definition(schema)).await;
    reply.ok();
    let warning = reply.headers["warning"].to_str().expect("text");
    assert!(warning.contains("x-kubernetes-validations"), "{warning}");
}

#[tokio::test(start_paused = true)]
async fn hostile_definitions_and_objects_are_refused_in_time() {
    let server = server();
    let started = std::time::Instant::now();
    let properties = |schema: Value| json!({"type": "object", "properties": {"spec": schema}});
    // A pattern that other engines never finish with.
    let text = json!({"type": "string", "pattern": "^(a+)+$"});
    server.post(CRDS, definition(properties(json!({"type": "object", "properties": {"s": text}})))).await.ok();
    let long = format!("{}b", "a".repeat(1 << 20));
    assert_eq!(server.post(ORDERS, order("o", json!({"s": long}))).await.status, 422);
    // Every value is looked at by very many schemas.
    let many: Vec<Value> = (0..2000).map(|i| json!({"minimum": i})).collect();
    let list = json!({"type": "array", "items": {"type": "integer", "allOf": many}});
    let patch =
        json!([{"op": "replace", "path": "/spec/versions/0/schema/openAPIV3Schema", "value": properties(list)}]);
    let path = format!("{CRDS}/orders.shop.example.com");
    server.patch(&path, "application/json-patch+json", patch).await.ok();
    let reply = server.post(ORDERS, order("o", json!(vec![5000; 300_000]))).await;
    assert_eq!(reply.status, 422, "{}", reply.text());
    // Defaults that would fill the memory.
    let item = json!({"type": "object", "properties": {"s": {"type": "string", "default": "x".repeat(100_000)}}});
    let list = properties(json!({"type": "array", "items": item}));
    let patch = json!([{"op": "replace", "path": "/spec/versions/0/schema/openAPIV3Schema", "value": list}]);
    server.patch(&path, "application/json-patch+json", patch).await.ok();
    assert_eq!(server.post(ORDERS, order("o", json!(vec![json!({}); 500_000]))).await.status, 413);
    // Complaints without end.
    let patch = json!([{"op": "replace", "path": "/spec/versions/0/schema/openAPIV3Schema",
        "value": properties(json!({"type": "array", "items": {"type": "string"}}))}]);
    server.patch(&path, "application/json-patch+json", patch).await.ok();
    let reply = server.post(ORDERS, order("o", json!(vec![1; 1_000_000]))).await;
    assert!(reply.status == 422 && reply.bytes.len() < 1 << 20);
    assert!(started.elapsed() < std::time::Duration::from_secs(60), "{:?}", started.elapsed());
}

#[tokio::test(start_paused = true)]
async fn definitions_of_wrong_types_are_refused() {
    let server = server();
    for (pointer, value) in [
        ("/spec", json!(1)),
        ("/spec/versions", json!({"a": 1})),
        ("/spec/versions/0/name", json!(["v1"])),
        ("/spec/names", json!("orders")),
        ("/spec/versions/0/schema/openAPIV3Schema", json!([])),
        ("/spec/versions/0/schema/openAPIV3Schema/properties", json!(7)),
        ("/spec/group", json!(null)),
        ("/spec/names/kind", json!("Or\"der")),
    ] {
        let mut bad = definition(schema());
        *bad.pointer_mut(pointer).expect("a place") = value;
        let reply = server.post(CRDS, bad).await;
        assert!(matches!(reply.status, 400 | 422), "{pointer}: {} {}", reply.status, reply.text());
    }
    assert!(server.get(CRDS).await.names().is_empty());
}

#[tokio::test(start_paused = true)]
async fn clients_own_what_they_say_and_the_server_owns_the_status() {
    let server = with_orders().await;
    let path = format!("{CRDS}/orders.shop.example.com");
    let stored = server.get(&path).await.ok();
    let entries = stored["metadata"]["managedFields"].as_array().cloned().unwrap_or_default();
    let of = |subresource: Value| entries.iter().find(|entry| entry["subresource"] == subresource).cloned();
    let client = of(Value::Null).expect("an entry of the client");
    assert_eq!(client["fieldsV1"]["f:spec"]["f:names"]["f:listKind"], json!({}));
    assert_eq!(client["fieldsV1"]["f:status"], Value::Null);
    let own = of(json!("status")).expect("an entry of the server");
    assert_eq!(own["manager"], "kube-apiserver");
    assert_eq!(own["fieldsV1"]["f:status"]["f:acceptedNames"]["f:kind"], json!({}));
    assert_eq!(own["fieldsV1"]["f:spec"], Value::Null);
}

#[tokio::test(start_paused = true)]
async fn configurations_are_applied_by_the_schema_of_their_definition() {
    let parts = json!({"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"],
        "items": {"type": "object", "required": ["name"], "properties": {
            "name": {"type": "string"}, "count": {"type": "integer"}}}});
    let spec = json!({"type": "object", "properties": {"parts": parts}});
    let server = server();
    server.post(CRDS, definition(json!({"type": "object", "properties": {"spec": spec}}))).await.ok();
    for (manager, part) in [("one", "bolt"), ("two", "nut")] {
        let path = format!("{ORDERS}/o?fieldManager={manager}");
        let config = order("o", json!({"parts": [{"name": part, "count": 1}]}));
        server.patch(&path, APPLY, config).await.ok();
    }
    let parts = json!([{"name": "bolt", "count": 1}, {"name": "nut", "count": 1}]);
    assert_eq!(server.get(&format!("{ORDERS}/o")).await.ok()["spec"]["parts"], parts, "of two owners");
    let config = order("o", json!({"bogus": 1}));
    let path = format!("{ORDERS}/o?fieldManager=three");
    let refused = server.patch(&path, APPLY, config).await.failure();
    assert!(refused.0 == 500 && refused.2.ends_with(".spec.bogus: field not declared in schema"), "{refused:?}");
}

#[tokio::test(start_paused = true)]
async fn what_belongs_to_objects_of_a_deleted_definition_goes_with_them() {
    let server = with_orders().await;
    let made = server.post(ORDERS, order("o", json!({}))).await.ok();
    let owner =
        json!({"apiVersion": "shop.example.com/v1", "kind": "Order", "name": "o", "uid": made["metadata"]["uid"]});
    let maps = "/api/v1/namespaces/default/configmaps";
    let owned = json!({"apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": "owned", "ownerReferences": [owner]}});
    server.post(maps, owned).await.ok();
    server.delete(&format!("{CRDS}/orders.shop.example.com")).await.ok();
    assert_eq!(server.get(&format!("{maps}/owned")).await.status, 404);
}
