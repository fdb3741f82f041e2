//! What a review of writes found: bodies and patches that broke the server once, or that it took for something else than a
//! kube-apiserver 1.36 does.

use std::time::{Duration, Instant};

use bytes::Bytes;
use http::Method;
use serde_json::{Map, Value, json};
use watchkeeper_apiserver::{ApiServer, CustomResource};

use crate::support::*;

const JSON: [(&str, &str); 1] = [("content-type", "application/json")];
const LEASES: &str = "/apis/coordination.k8s.io/v1/namespaces/default/leases";
const ORDERS: &str = "/apis/shop.example.com/v1/namespaces/default/orders";
const SERVICES: &str = "/api/v1/namespaces/default/services";

/// One request may take its time, but not the server's.
const LONGEST: Duration = Duration::from_secs(20);

async fn within<T>(what: &str, work: impl Future<Output = T>) -> T {
    let began = Instant::now();
    let result = work.await;
    assert!(began.elapsed() < LONGEST, "{what}: {:?}", began.elapsed());
    result
}

fn with_orders() -> ApiServer {
    let server = server();
    server.register(CustomResource::namespaced("shop.example.com", "v1", "Order", "orders")).expect("a kind");
    server
}

/// As many fields as fit beneath a long key.
fn many_fields(count: usize, value: &str) -> Value {
    Value::Object((0..count).map(|i| (format!("f{i}"), value.into())).collect::<Map<_, _>>())
}

#[tokio::test(start_paused = true)]
async fn what_comes_twice_beneath_a_long_key_is_told_in_time() {
    let server = with_orders();
    let long = "k".repeat(1 << 20);
    let twice = vec![r#""a":1"#; 200_000].join(",");
    let body = format!(
        r#"{{"apiVersion":"shop.example.com/v1","kind":"Order","metadata":{{"name":"a"}},"{long}":{{{twice}}}}}"#
    );
    let reply = within("a custom object", server.call(Method::POST, ORDERS, &JSON, body.into())).await;
    reply.ok();
    let unknown = vec![r#"{"a":1}"#; 200_000].join(",");
    let body = format!(r#"{{"metadata":{{"name":"a"}},"data":{{"{long}":[{unknown}]}}}}"#);
    within("a config map", server.call(Method::POST, MAPS, &JSON, body.into())).await;
}

#[tokio::test(start_paused = true)]
async fn faults_of_a_configuration_with_a_long_key_take_no_room() {
    let server = server();
    let container = json!({"name": "n".repeat(1 << 20), "x": 1});
    let mut container = container;
    let Value::Object(fields) = &mut container else { panic!("a map") };
    let Value::Object(more) = many_fields(100_000, "x") else { panic!("a map") };
    fields.extend(more);
    let config =
        json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": {"containers": [container]}});
    let path = format!("{PODS}/p?fieldManager=m");
    let reply = within("apply", server.patch(&path, "application/apply-patch+yaml", config)).await;
    assert_eq!(reply.status, 500);
    assert!(reply.bytes.len() < 20 << 20, "{}", reply.bytes.len());
}

#[tokio::test(start_paused = true)]
async fn conflicts_beneath_a_long_key_take_no_room() {
    let server = with_orders();
    let order = |value: &str| {
        json!({"apiVersion": "shop.example.com/v1", "kind": "Order", "metadata": {"name": "a"},
               "spec": {"k".repeat(300_000): many_fields(30_000, value)}})
    };
    server.post(&format!("{ORDERS}?fieldManager=one"), order("1")).await.ok();
    let path = format!("{ORDERS}/a?fieldManager=two");
    let reply = within("apply", server.patch(&path, "application/apply-patch+yaml", order("2"))).await;
    let (code, reason, message) = reply.failure();
    assert_eq!((code, reason.as_str()), (409, "Conflict"));
    assert!(message.starts_with("Apply failed with 30000 conflicts: conflicts with \"one\" using"));
    assert!(reply.bytes.len() < 20 << 20, "{}", reply.bytes.len());
    let forced = format!("{path}&force=true");
    server.patch(&forced, "application/apply-patch+yaml", order("2")).await.ok();
}

#[tokio::test(start_paused = true)]
async fn thousands_of_managers_and_fields_are_compared_in_time() {
    let server = server();
    let entry = |i: usize| {
        json!({"manager": format!("m{i}"), "operation": "Apply", "apiVersion": "v1", "fieldsType": "FieldsV1",
               "fieldsV1": {"f:data": {"f:zz": {}}}})
    };
    let managers: Vec<Value> = (0..8000).map(entry).collect();
    server.post(MAPS, json!({"metadata": {"name": "a"}, "data": {"zz": "1"}})).await.ok();
    let path = format!("{MAPS}/a");
    let map = json!({"metadata": {"name": "a", "managedFields": managers}, "data": {"zz": "1"}});
    server.replace(&path, map).await.ok();
    let mut data = many_fields(60_000, "1");
    data["zz"] = "1".into();
    let reply = within("an update", server.replace(&path, json!({"metadata": {"name": "a"}, "data": data}))).await;
    assert!(reply.ok()["metadata"]["managedFields"].as_array().is_none_or(|entries| entries.len() > 8000));
}

/// As recorded from a kube-apiserver 1.36: the first controller is named, whichever comes later.
#[tokio::test(start_paused = true)]
async fn owners_that_all_control_are_refused_in_time() {
    let server = server();
    let owner =
        |i: usize| json!({"apiVersion": "v1", "kind": "K", "name": format!("o{i}"), "uid": "u", "controller": true});
    let map =
        |count: usize| json!({"metadata": {"name": "a", "ownerReferences": (0..count).map(owner).collect::<Vec<_>>()}});
    let (_, _, message) = server.post(MAPS, map(3)).await.failure();
    assert!(message.contains("references for K/o0 and K/o1"), "{message}");
    assert!(message.contains("references for K/o0 and K/o2"), "{message}");
    let reply = within("a map", server.post(MAPS, map(30_000))).await;
    assert_eq!(reply.status, 422);
    assert!(reply.bytes.len() < 20 << 20, "{}", reply.bytes.len());
}

#[tokio::test(start_paused = true)]
async fn hundreds_of_thousands_of_finalizers_are_compared_in_time() {
    let server = server();
    let finalizers: Vec<String> = (0..200_000).map(|i| format!("a/{i:x}")).collect();
    server.post(MAPS, json!({"metadata": {"name": "a", "finalizers": finalizers}})).await.ok();
    server.delete(&format!("{MAPS}/a")).await.ok();
    within("a patch", server.merge(&format!("{MAPS}/a"), json!({"data": {"a": "b"}}))).await.ok();
}

#[tokio::test(start_paused = true)]
async fn a_manager_of_thousands_of_bad_characters_is_refused_briefly() {
    let server = server();
    let path = format!("{MAPS}?fieldManager={}", "%01".repeat(20_000));
    let reply = within("a query", server.post(&path, json!({"metadata": {"name": "a"}}))).await;
    assert_eq!(reply.status, 422);
    assert!(reply.bytes.len() < 1 << 20, "{}", reply.bytes.len());
}

#[tokio::test(start_paused = true)]
async fn a_service_of_thousands_of_ports_takes_no_time_to_speak_of() {
    let server = server();
    let ports: Vec<Value> = (0..50_000).map(|i| json!({"port": i % 60_000 + 1, "name": format!("p{i}")})).collect();
    let service = json!({"metadata": {"name": "s"}, "spec": {"type": "NodePort", "ports": ports}});
    within("a create", server.post(SERVICES, service.clone())).await;
    within("an update", server.replace(&format!("{SERVICES}/s"), service)).await;
}

#[tokio::test(start_paused = true)]
async fn what_comes_twice_is_no_deeper_than_the_rest_may_be() {
    let server = server();
    let deep = format!("{}1{}", r#"{"a":"#.repeat(122), "}".repeat(122));
    let body = format!(r#"{{"metadata":{{"name":"d"}},"revision":1,"data":{deep},"data":{{"b":1}}}}"#);
    let revisions = "/apis/apps/v1/namespaces/default/controllerrevisions";
    let reply = server.call(Method::POST, revisions, &JSON, body.into()).await;
    assert_eq!(reply.status, 400, "{}", reply.text());
}

/// As recorded from a kube-apiserver 1.36: the numbers of Go go round.
#[tokio::test(start_paused = true)]
async fn the_last_generation_is_no_panic() {
    let server = server();
    let map = json!({"metadata": {"name": "a", "generation": i64::MAX, "finalizers": ["a/b"]}});
    server.post(MAPS, map).await.ok();
    assert_eq!(server.delete(&format!("{MAPS}/a")).await.ok()["metadata"]["generation"], i64::MIN);
    let (code, _, message) =
        server.merge(&format!("{MAPS}/a"), json!({"metadata": {"finalizers": null}})).await.failure();
    assert_eq!(code, 422);
    assert!(
        message
            .ends_with("metadata.generation: Invalid value: -9223372036854775808: must be greater than or equal to 0")
    );
}

/// As recorded from a kube-apiserver 1.36. That is what `kubectl apply` of a large object runs into.
#[tokio::test(start_paused = true)]
async fn annotations_are_checked_and_have_a_limit() {
    let server = server();
    let map = |annotations: Value| json!({"metadata": {"name": "a", "annotations": annotations}});
    let (_, _, message) = server.post(MAPS, map(json!({"a": "x".repeat(256 << 10)}))).await.failure();
    assert_eq!(
        message,
        "ConfigMap \"a\" is invalid: metadata.annotations: Too long: may not be more than 262144 bytes"
    );
    let (_, _, message) = server.post(MAPS, map(json!({"bad key!": "x"}))).await.failure();
    assert!(
        message.starts_with("ConfigMap \"a\" is invalid: metadata.annotations: Invalid value: \"bad key!\": name part")
    );
    server.post(MAPS, map(json!({"EXAMPLE.com/Upper": "x".repeat(200_000)}))).await.ok();
}

/// As recorded from a kube-apiserver 1.36. Whoever holds a lease that somebody deletes gets it back so.
#[tokio::test(start_paused = true)]
async fn an_update_of_what_is_not_there_creates_objects_of_some_kinds() {
    let server = server();
    let lease = |meta: Value| json!({"metadata": meta, "spec": {"holderIdentity": "me"}});
    let path = format!("{LEASES}/l");
    assert_eq!(server.replace(&format!("{path}?dryRun=All"), lease(json!({"name": "l"}))).await.status, 201);
    assert_eq!(server.get(&path).await.status, 404);
    let (code, _, message) = server.replace(&path, lease(json!({"name": "l", "uid": "x"}))).await.failure();
    assert_eq!(code, 409);
    assert!(message.ends_with("Precondition failed: UID in precondition: x, UID in object meta: "), "{message}");
    let created = server.replace(&path, lease(json!({"name": "l", "resourceVersion": "5"}))).await;
    assert_eq!(created.status, 201);
    assert_eq!(created.ok()["metadata"]["managedFields"][0]["operation"], "Update");
    let version = created.revision();
    let updated = server.replace(&path, lease(json!({"name": "l", "resourceVersion": version.to_string()}))).await;
    assert_eq!(updated.status, 200);
    let service = json!({"metadata": {"name": "s"}, "spec": {"ports": [{"port": 80}]}});
    let created = server.replace(&format!("{SERVICES}/s"), service).await;
    assert_eq!(created.status, 201);
    assert_ne!(created.ok()["spec"]["clusterIP"], Value::Null);
    assert_eq!(server.replace(&format!("{MAPS}/m"), json!({"metadata": {"name": "m"}})).await.status, 404);
}

/// As recorded from a kube-apiserver 1.36.
#[tokio::test(start_paused = true)]
async fn another_time_of_deletion_changes_nothing() {
    let server = server();
    server.post(MAPS, json!({"metadata": {"name": "a", "finalizers": ["a/b"]}})).await.ok();
    let patch = json!({"metadata": {"deletionTimestamp": "2001-01-01T00:00:00Z"}});
    let path = format!("{MAPS}/a");
    assert_eq!(server.merge(&path, patch.clone()).await.status, 422);
    let deleted = server.delete(&path).await.ok();
    let patched = server.merge(&path, patch).await.ok();
    assert_eq!(patched["metadata"]["deletionTimestamp"], deleted["metadata"]["deletionTimestamp"]);
}

/// As recorded from a kube-apiserver 1.36: Go's writers leave an empty value out.
#[tokio::test(start_paused = true)]
async fn a_json_patch_may_leave_out_a_null_and_take_away_the_kind() {
    let server = server();
    server.post(MAPS, json!({"metadata": {"name": "a"}, "data": {"a": "1"}})).await.ok();
    let path = format!("{MAPS}/a");
    let patch = |operations: Value| server.patch(&path, "application/json-patch+json", operations);
    let patched = patch(json!([{"op": "add", "path": "/data/b"}, {"op": "remove", "path": "/kind"}])).await.ok();
    assert_eq!((&patched["data"]["b"], &patched["kind"]), (&json!(""), &json!("ConfigMap")));
    assert_eq!(patch(json!([{"op": "replace", "path": "/kind", "value": "Pod"}])).await.status, 422);
}

/// As recorded from a kube-apiserver 1.36.
#[tokio::test(start_paused = true)]
async fn bodies_may_be_yaml() {
    let server = with_orders();
    let yaml = [("content-type", "application/yaml")];
    let map = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: a\ndata:\n  a: b\n";
    let created = server.call(Method::POST, MAPS, &yaml, Bytes::from(map)).await;
    assert_eq!((created.status, &created.json()["data"]["a"]), (201, &json!("b")));
    let replaced =
        server.call(Method::PUT, &format!("{MAPS}/a"), &yaml, Bytes::from(map.replace("a: b", "a: c"))).await;
    assert_eq!(replaced.ok()["data"]["a"], "c");
    let order = "apiVersion: shop.example.com/v1\nkind: Order\nmetadata: {name: a}\nspec: {n: 3}\n";
    assert_eq!(server.call(Method::POST, ORDERS, &yaml, Bytes::from(order)).await.ok()["spec"]["n"], 3);
    for bad in ["a: [", "\u{0}", "&a [*a]", "- 1"] {
        assert_eq!(server.call(Method::POST, MAPS, &yaml, Bytes::from(bad)).await.status, 400, "{bad:?}");
    }
}

/// As recorded from a kube-apiserver 1.36.
#[tokio::test(start_paused = true)]
async fn an_address_or_a_port_belongs_to_one_service() {
    let server = server();
    let service = |name: &str, spec: Value| json!({"metadata": {"name": name}, "spec": spec});
    let first = server.post(SERVICES, service("a", json!({"ports": [{"port": 80}]}))).await.ok();
    let address = text(&first["spec"]["clusterIP"]);
    let taken = service("b", json!({"clusterIP": address, "ports": [{"port": 80}]}));
    let (_, _, message) = server.post(SERVICES, taken).await.failure();
    let expected = format!(
        "Service \"b\" is invalid: spec.clusterIPs: Invalid value: [\"{address}\"]: failed to allocate IP {address}: \
         provided IP is already allocated"
    );
    assert_eq!(message, expected);
    let on_nodes = |name: &str, port: i32| {
        service(
            name,
            json!({"type": "NodePort", "ports": [
            {"port": 53, "name": "t", "nodePort": port}, {"port": 53, "name": "u", "protocol": "UDP", "nodePort": port}]}),
        )
    };
    let first = server.post(SERVICES, on_nodes("c", 30_123)).await.ok();
    let (_, _, message) = server.post(SERVICES, on_nodes("d", 30_123)).await.failure();
    assert!(
        message.contains("spec.ports[0].nodePort: Invalid value: 30123: provided port is already allocated"),
        "{message}"
    );
    // What a service has it may keep, and what is free it may take.
    server.replace(&format!("{SERVICES}/c"), first.clone()).await.ok();
    server.replace(&format!("{SERVICES}/c"), on_nodes("c", 30_124)).await.ok();
    server.post(SERVICES, on_nodes("d", 30_123)).await.ok();
    let spec = json!({"ports": [{"port": 80, "name": "a"}, {"port": 81, "name": "a"}]});
    let (_, _, message) = server.post(SERVICES, service("e", spec)).await.failure();
    assert_eq!(message, "Service \"e\" is invalid: spec.ports[1].name: Duplicate value: \"a\"");
    assert_eq!(server.post(SERVICES, service("a.b", json!({"ports": [{"port": 80}]}))).await.status, 422);
}
