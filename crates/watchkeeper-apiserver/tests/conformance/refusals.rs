//! What is refused, and in which words: compared with a kube-apiserver 1.36.

use bytes::Bytes;
use http::Method;
use serde_json::{Value, json};
use watchkeeper_apiserver::{AccessRules, ApiServer};

use crate::support::*;

const LEASES: &str = "/apis/coordination.k8s.io/v1/namespaces/default/leases";
const SERVICES: &str = "/api/v1/namespaces/default/services";
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

#[tokio::test(start_paused = true)]
async fn json_patches_do_what_the_library_of_a_kube_apiserver_does() {
    let server = server();
    let path = format!("{MAPS}/a");
    let mut map = config_map("a");
    map["data"] = json!({"k": "v"});
    server.post(MAPS, map).await.ok();
    let listed = json!({"op": "add", "path": "/metadata/finalizers", "value": ["e.x/a", "e.x/b"]});
    let unlisted = json!({"op": "remove", "path": "/metadata/finalizers"});
    let rejected = "the server rejected our request due to an error in our request";
    let within = |operation: Value| json!([listed, operation]);
    for patch in [
        json!([{"op": "add", "path": "", "value": config_map("a")}]),
        json!([{"op": "remove", "path": ""}]),
        json!([{"op": "test", "path": "", "value": {"a": 1}}]),
        json!([{"op": "move", "from": "", "path": "/data/x"}]),
        json!([{"op": "copy", "from": "", "path": "/data/x"}]),
        json!([{"op": "copy", "from": "/data/k", "path": ""}]),
        json!([{"op": "copy", "from": "/nope/nope", "path": "/data/x"}]),
        json!([{"op": "move", "from": "/data/nope", "path": "/data/x"}]),
        json!([{"op": "move", "from": "/data", "path": "/data/x"}]),
        json!([{"op": "copy", "path": "/data/x"}]),
        json!([{"op": "add", "value": "3"}]),
        json!([{"op": "add", "path": "data", "value": "3"}]),
        json!([{"op": "remove", "path": "/data/nope"}]),
        json!([{"op": "test", "path": "/nope/nope"}]),
        json!([{"op": "test", "path": "/data/k/x", "value": null}]),
        json!([{"op": "nope", "path": "/data/k"}]),
        json!([{"op": "replace", "path": "", "value": 1}]),
        json!([null]),
        within(json!({"op": "add", "path": "/metadata/finalizers/-4", "value": "e.x/c"})),
        within(json!({"op": "add", "path": "/metadata/finalizers/3", "value": "e.x/c"})),
        within(json!({"op": "remove", "path": "/metadata/finalizers/-3"})),
        within(json!({"op": "remove", "path": "/metadata/finalizers/-"})),
        within(json!({"op": "replace", "path": "/metadata/finalizers/2", "value": "e.x/c"})),
        within(json!({"op": "copy", "from": "/metadata/finalizers/5", "path": "/data/x"})),
    ] {
        let reply = server.patch(&path, "application/json-patch+json", patch.clone()).await;
        assert_eq!(reply.failure(), (422, "Invalid".to_owned(), rejected.to_owned()), "{patch}");
    }
    let unmarshal = |what: &str| format!("error decoding patch: json: cannot unmarshal {what}");
    for (patch, text) in [
        (json!([{"op": 1, "path": "/data/k"}]), "number into Go struct field jsonPatchOp.op of type string"),
        (json!([{"op": "add", "path": []}]), "array into Go struct field jsonPatchOp.path of type string"),
        (json!([1]), "number into Go value of type handlers.jsonPatchOp"),
        (json!({}), "object into Go value of type []handlers.jsonPatchOp"),
    ] {
        let reply = server.patch(&path, "application/json-patch+json", patch).await;
        assert_eq!(reply.failure(), (400, "BadRequest".to_owned(), unmarshal(text)));
    }
    let missing = format!("{MAPS}/nope");
    let reply = server.patch(&missing, "application/json-patch+json", json!([{"op": "nope"}])).await;
    assert_eq!(reply.status, 404);

    let tested = |operation: Value, at: &str, value: Value| json!([listed, operation, {"op": "test", "path": at, "value": value}, unlisted]);
    for (patch, data) in [
        (json!(null), json!({"k": "v"})),
        (json!([{"op": "copy", "from": "/data/nope", "path": "/data/x"}]), json!({"k": "v", "x": ""})),
        (json!([{"op": "replace", "path": "/data/y", "value": "1"}]), json!({"k": "v", "x": "", "y": "1"})),
        (json!([{"op": "move", "from": "/data/y", "path": "/data/x"}]), json!({"k": "v", "x": "1"})),
        (json!([{"op": "add", "path": "any/data/z", "value": "3"}]), json!({"k": "v", "x": "1", "z": "3"})),
        (
            json!([{"op": "test", "path": "/data/nope"}, {"op": "remove", "path": "/data/z"}]),
            json!({"k": "v", "x": "1"}),
        ),
        (
            tested(
                json!({"op": "add", "path": "/metadata/finalizers/-1", "value": "e.x/c"}),
                "/metadata/finalizers",
                json!(["e.x/a", "e.x/b", "e.x/c"]),
            ),
            json!({"k": "v", "x": "1"}),
        ),
        (
            tested(
                json!({"op": "replace", "path": "/metadata/finalizers/-1", "value": "e.x/c"}),
                "/metadata/finalizers",
                json!(["e.x/a", "e.x/c"]),
            ),
            json!({"k": "v", "x": "1"}),
        ),
        (
            tested(
                json!({"op": "remove", "path": "/metadata/finalizers/-2"}),
                "/metadata/finalizers/-1",
                json!("e.x/b"),
            ),
            json!({"k": "v", "x": "1"}),
        ),
        (
            json!([{"op": "replace", "path": "", "value": {"apiVersion": "v1", "kind": "ConfigMap",
                    "metadata": {"name": "a"}, "data": {"q": "v"}}}]),
            json!({"q": "v"}),
        ),
    ] {
        let reply = server.patch(&path, "application/json-patch+json", patch.clone()).await;
        assert_eq!(reply.ok()["data"], data, "{patch}");
    }
}

#[tokio::test(start_paused = true)]
async fn nobody_owns_fields_under_a_name_that_no_manager_may_have() {
    let server = server();
    let entry = |manager: &str, subresource: &str| {
        json!({"manager": manager, "operation": "Update", "apiVersion": "v1", "time": "2024-01-01T00:00:00Z",
               "fieldsType": "FieldsV1", "fieldsV1": {"f:data": {}}, "subresource": subresource})
    };
    let map = |entries: &[Value]| {
        let mut map = config_map("m");
        map["metadata"]["managedFields"] = entries.into();
        map
    };
    let (long, longer) = ("x".repeat(129), "x".repeat(257));
    let refused = |faults: &str| (422, "Invalid".to_owned(), format!("ConfigMap \"m\" is invalid: {faults}"));
    let path = format!("{MAPS}?dryRun=All");
    server.post(&path, map(&[entry(&long[1..], &longer[1..])])).await.ok();
    server.post(&path, map(&[entry("", "")])).await.ok();
    let too_long = "metadata.managedFields[0].manager: Too long: may not be more than 128 bytes";
    assert_eq!(server.post(&path, map(&[entry(&long, "")])).await.failure(), refused(too_long));
    let unprintable =
        "metadata.managedFields[0].manager: Invalid value: \"a\\ab\": invalid character U+0007 (at position 1)";
    assert_eq!(server.post(&path, map(&[entry("a\u{7}b", "")])).await.failure(), refused(unprintable));
    let beneath = "metadata.managedFields[0].subresource: Too long: may not be more than 256 bytes";
    assert_eq!(server.post(&path, map(&[entry("m", &longer)])).await.failure(), refused(beneath));
    let several = format!(
        "[{unprintable}, metadata.managedFields[1].manager: Too long: may not be more than 128 bytes, \
         metadata.managedFields[1].subresource: Too long: may not be more than 256 bytes]"
    );
    let reply = server.post(&path, map(&[entry(&long, &longer), entry("a\u{7}b", "")])).await;
    assert_eq!(reply.failure(), refused(&several));

    server.post(MAPS, config_map("m")).await.ok();
    server.merge(&format!("{MAPS}/m"), json!({"data": {"k": "v"}})).await.ok();
    let patch = json!({"metadata": {"managedFields": [entry(&long, "")]}});
    assert_eq!(server.merge(&format!("{MAPS}/m"), patch).await.failure(), refused(too_long));
}

#[tokio::test(start_paused = true)]
async fn ports_of_services_are_refused_where_they_cannot_be() {
    let server = server();
    let service = |name: &str, spec: &Value| json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": name}, "spec": spec});
    let twice = "spec.ports[1]: Duplicate value: \
                 {\"Name\":\"\",\"Protocol\":\"TCP\",\"AppProtocol\":null,\"Port\":80,\"TargetPort\":0,\"NodePort\":0}";
    let outside = "provided port is not in the valid range. The range of valid ports is 30000-32767";
    let no_node_port = "nodePort: Forbidden: may not be used when `type` is 'ClusterIP'";
    let taken = "provided port is already allocated";
    server
        .post(SERVICES, service("one", &json!({"type": "NodePort", "ports": [{"port": 80, "nodePort": 31999}]})))
        .await
        .ok();
    for (spec, faults) in [
        (json!({"ports": [{"name": "a", "port": 80}, {"name": "b", "port": 80}]}), twice.to_owned()),
        (
            json!({"ports": [{"name": "a", "port": 80, "nodePort": 30999}, {"name": "b", "port": 80, "nodePort": 30999}]}),
            format!(
                "[spec.ports[0].{no_node_port}, spec.ports[1].{no_node_port}, \
                 spec.ports[1].nodePort: Duplicate value: 30999, {twice}]"
            ),
        ),
        (json!({"ports": [{"port": 80, "nodePort": 31999}]}), format!("spec.ports[0].{no_node_port}")),
        (
            json!({"type": "NodePort", "ports": [{"port": 80, "nodePort": 80}]}),
            format!("spec.ports[0].nodePort: Invalid value: 80: {outside}"),
        ),
        (
            json!({"type": "LoadBalancer", "ports": [{"port": 80, "nodePort": 32768}]}),
            format!("spec.ports[0].nodePort: Invalid value: 32768: {outside}"),
        ),
        (
            json!({"type": "NodePort", "ports": [{"port": 80, "nodePort": 31999}]}),
            format!("spec.ports[0].nodePort: Invalid value: 31999: {taken}"),
        ),
        (
            json!({"type": "NodePort", "ports": [{"name": "a", "port": 80, "nodePort": 31000},
                                                 {"name": "b", "port": 81, "protocol": "UDP", "nodePort": 31000}]}),
            format!("spec.ports[1].nodePort: Invalid value: 31000: {taken}"),
        ),
        (
            json!({"clusterIP": "nope", "ports": [{"port": 80}]}),
            "spec.clusterIPs[0]: Invalid value: \"nope\": must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)"
                .to_owned(),
        ),
        (
            json!({"ports": [{"port": 80}], "sessionAffinity": "x"}),
            "spec.sessionAffinity: Unsupported value: \"x\": supported values: \"ClientIP\", \"None\"".to_owned(),
        ),
    ] {
        let text = format!("Service \"s\" is invalid: {faults}");
        let reply = server.post(SERVICES, service("s", &spec)).await;
        assert_eq!(reply.failure(), (422, "Invalid".to_owned(), text), "{spec}");
    }
    let both = json!([{"name": "a", "port": 80}, {"name": "b", "port": 80, "protocol": "UDP"}]);
    server.post(SERVICES, service("s", &json!({"ports": both}))).await.ok();
    let path = format!("{SERVICES}/s");
    let changed = server.merge(&path, json!({"spec": {"ports": [{"port": 80, "nodePort": 30009}]}})).await;
    assert_eq!(changed.status, 422);
    let changed = json!({"spec": {"type": "NodePort", "ports": [{"port": 80, "nodePort": 9}]}});
    assert_eq!(server.merge(&path, changed).await.status, 422);
    // What belongs to no node may say anything of its ports.
    let external = json!({"type": "ExternalName", "externalName": "a.b", "ports": [{"port": 80, "nodePort": 31999}]});
    server.post(SERVICES, service("external", &external)).await.ok();
}

#[tokio::test(start_paused = true)]
async fn one_port_of_two_protocols_is_at_one_port_of_the_nodes() {
    let server = server();
    let service = |name: &str, ports: Value| json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": name}, "spec": {"type": "NodePort", "ports": ports}});
    let ports =
        json!([{"name": "a", "port": 53}, {"name": "b", "port": 53, "protocol": "UDP"}, {"name": "c", "port": 54}]);
    let made = server.post(SERVICES, service("dns", ports)).await.ok();
    let number = |i: usize| &made["spec"]["ports"][i]["nodePort"];
    assert_eq!(number(0), number(1));
    assert_ne!(number(0), number(2));
    let ports = json!([{"name": "a", "port": 53}, {"name": "b", "port": 53, "protocol": "UDP", "nodePort": 31777}]);
    let made = server.post(SERVICES, service("named", ports)).await.ok();
    assert_eq!(made["spec"]["ports"][0]["nodePort"], 31777);
}
