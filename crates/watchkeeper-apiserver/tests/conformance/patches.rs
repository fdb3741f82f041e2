//! Patches of all four types, and fields that there are not. What is expected is what a kube-apiserver v1.36.4 answered.

use http::Method;
use serde_json::{Value, json};
use watchkeeper_apiserver::ApiServer;

use crate::support::*;

const MERGE: &str = "application/merge-patch+json";
const STRATEGIC: &str = "application/strategic-merge-patch+json";
const JSON_PATCH: &str = "application/json-patch+json";
const APPLY: &str = "application/apply-patch+yaml";

/// A deployment with a map, a list of texts, and lists of objects with one key, with two and with none.
async fn deployment(server: &ApiServer) -> Value {
    let ports = json!([{"containerPort": 80}, {"containerPort": 81}]);
    let env = json!([{"name": "A", "value": "1"}, {"name": "B", "value": "2"}]);
    let containers =
        json!([{"name": "one", "image": "one:1", "ports": ports, "env": env}, {"name": "two", "image": "two:1"}]);
    let pod = json!({"containers": containers, "tolerations": [{"key": "k", "operator": "Exists"}]});
    let deployment = json!({
        "metadata": {
            "name": "web", "labels": {"app": "web", "tier": "front"}, "finalizers": ["x.io/a", "x.io/b"],
        },
        "spec": {
            "replicas": 2, "selector": {"matchLabels": {"app": "web"}},
            "template": {"metadata": {"labels": {"app": "web"}}, "spec": pod},
        },
    });
    server.post(&format!("{DEPLOYMENTS}?fieldManager=maker"), deployment).await.ok()
}

/// Of a deployment what the patches here are about.
fn shown(deployment: &Value) -> Value {
    let pod = &deployment["spec"]["template"]["spec"];
    let mut containers = pod["containers"].clone();
    for container in containers.as_array_mut().into_iter().flatten().filter_map(Value::as_object_mut) {
        container.retain(|field, _| matches!(field.as_str(), "name" | "image" | "ports" | "env"));
    }
    let metadata = &deployment["metadata"];
    json!([metadata["labels"], metadata["finalizers"], containers, pod["tolerations"]])
}

/// The first container as it is in the beginning.
fn one() -> Value {
    json!({
        "name": "one", "image": "one:1",
        "ports": [{"containerPort": 80, "protocol": "TCP"}, {"containerPort": 81, "protocol": "TCP"}],
        "env": [{"name": "A", "value": "1"}, {"name": "B", "value": "2"}],
    })
}

/// What a patch of this type makes of the deployment.
async fn patched(media_type: &str, patch: Value) -> Value {
    let server = server();
    deployment(&server).await;
    let answer = server.patch(&format!("{DEPLOYMENTS}/web"), media_type, patch).await.ok();
    assert_eq!(server.get(&format!("{DEPLOYMENTS}/web")).await.ok(), answer);
    shown(&answer)
}

/// One patch of which the two types make different objects.
fn overlay() -> Value {
    json!({
        "metadata": {"labels": {"tier": null, "new": "x"}, "finalizers": ["x.io/c"]},
        "spec": {"template": {"spec": {
            "containers": [{"name": "two", "image": "two:2"}, {"name": "three", "image": "three:1"}],
            "tolerations": [{"key": "l", "operator": "Exists"}],
        }}},
    })
}

#[tokio::test(start_paused = true)]
async fn c42_a_merge_patch_replaces_lists() {
    let expected = json!([
        {"app": "web", "new": "x"}, ["x.io/c"],
        [{"name": "two", "image": "two:2"}, {"name": "three", "image": "three:1"}],
        [{"key": "l", "operator": "Exists"}],
    ]);
    assert_eq!(patched(MERGE, overlay()).await, expected);
}

#[tokio::test(start_paused = true)]
async fn c42_a_strategic_merge_patch_merges_lists_by_their_keys() {
    let expected = json!([
        {"app": "web", "new": "x"}, ["x.io/c", "x.io/a", "x.io/b"],
        [one(), {"name": "two", "image": "two:2"}, {"name": "three", "image": "three:1"}],
        [{"key": "l", "operator": "Exists"}],
    ]);
    assert_eq!(patched(STRATEGIC, overlay()).await, expected);
    let directives = json!({
        "metadata": {"labels": {"$patch": "replace", "only": "x"}, "$deleteFromPrimitiveList/finalizers": ["x.io/a"]},
        "spec": {"template": {"spec": {
            "$setElementOrder/containers": [{"name": "two"}, {"name": "one"}],
            "containers": [{
                "name": "one", "env": [{"name": "A", "$patch": "delete"}], "ports": [{"containerPort": 80, "name": "http"}],
            }],
            "tolerations": null,
        }}},
    });
    let expected = json!([
        {"only": "x"}, ["x.io/b"],
        [
            {"name": "two", "image": "two:1"},
            {
                "name": "one", "image": "one:1", "env": [{"name": "B", "value": "2"}],
                "ports": [
                    {"name": "http", "containerPort": 80, "protocol": "TCP"}, {"containerPort": 81, "protocol": "TCP"},
                ],
            },
        ],
        null,
    ]);
    assert_eq!(patched(STRATEGIC, directives).await, expected);
}

#[tokio::test(start_paused = true)]
async fn c42_a_json_patch_is_done_step_by_step() {
    let containers = "/spec/template/spec/containers";
    let steps = json!([
        {"op": "test", "path": "/metadata/labels/tier", "value": "front"},
        {"op": "remove", "path": "/metadata/labels/tier"},
        {"op": "copy", "from": "/metadata/labels/app", "path": "/metadata/labels/new"},
        {"op": "move", "from": format!("{containers}/1"), "path": format!("{containers}/0")},
        {"op": "replace", "path": format!("{containers}/0/image"), "value": "two:2"},
        {"op": "add", "path": "/metadata/finalizers/-", "value": "x.io/c"},
    ]);
    let expected = json!([
        {"app": "web", "new": "web"}, ["x.io/a", "x.io/b", "x.io/c"], [{"name": "two", "image": "two:2"}, one()],
        [{"key": "k", "operator": "Exists"}],
    ]);
    assert_eq!(patched(JSON_PATCH, steps).await, expected);
}

#[tokio::test(start_paused = true)]
async fn c42_a_configuration_owns_what_it_says_and_takes_it_back() {
    let server = server();
    deployment(&server).await;
    let apply = async |query: &str, metadata: Value, containers: Value| {
        let pod = json!({"template": {"spec": {"containers": containers}}});
        let spec = if containers.is_null() { Value::Null } else { pod };
        let mut config = json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata, "spec": spec});
        if spec.is_null() {
            config.as_object_mut().expect("an object").remove("spec");
        }
        server.patch(&format!("{DEPLOYMENTS}/web?fieldManager=one{query}"), APPLY, config).await
    };
    let tolerations = json!([{"key": "k", "operator": "Exists"}]);
    let two = json!({"name": "two", "image": "two:1"});
    let three = json!({"name": "three", "image": "three:1"});
    let metadata = json!({"labels": {"applied": "1"}, "finalizers": ["x.io/c"]});
    let applied = apply("", metadata, json!([three])).await.ok();
    let expected = json!([
        {"app": "web", "applied": "1", "tier": "front"}, ["x.io/a", "x.io/b", "x.io/c"], [one(), two, three], tolerations,
    ]);
    assert_eq!(shown(&applied), expected);
    let applied = apply("", json!({"labels": {"applied": "2"}}), Value::Null).await.ok();
    let expected =
        json!([{"app": "web", "applied": "2", "tier": "front"}, ["x.io/a", "x.io/b"], [one(), two], tolerations]);
    assert_eq!(shown(&applied), expected);

    let mine = json!([{"name": "one", "image": "one:9"}]);
    let conflict = apply("", json!({}), mine.clone()).await;
    let field = ".spec.template.spec.containers[name=\"one\"].image";
    let message = format!("Apply failed with 1 conflict: conflict with \"maker\" using apps/v1: {field}");
    assert_eq!(conflict.failure(), (409, "Conflict".to_owned(), message));
    let cause = json!({
        "reason": "FieldManagerConflict", "message": "conflict with \"maker\" using apps/v1", "field": field,
    });
    assert_eq!(conflict.json()["details"], json!({"causes": [cause]}));
    let mut changed = one();
    changed["image"] = "one:9".into();
    let expected = json!([{"app": "web", "tier": "front"}, ["x.io/a", "x.io/b"], [changed, two], tolerations]);
    assert_eq!(shown(&apply("&force=true", json!({}), mine).await.ok()), expected);
}

#[tokio::test(start_paused = true)]
async fn c44_strict_refuses_unknown_fields_and_those_that_come_twice() {
    let server = server();
    server.map("v").await;
    let send = async |method: Method, path: &str, media_type: &str, body: &str| {
        server.call(method, path, &[("content-type", media_type)], body.to_owned().into()).await
    };
    let object = r#"{"metadata":{"name":"v"},"dta":{"a":"1"},"data":{"k":"1","k":"2"}}"#;
    let other = object.replace("\"v\"", "\"w\"");
    let json = "application/json";
    let before = server.storage().revision();
    let message = "ConfigMap in version \"v1\" cannot be handled as a ConfigMap: strict decoding error: unknown field \
                   \"dta\", duplicate field \"data.k\"";
    for (method, path, body) in
        [(Method::POST, MAPS.to_owned(), &other), (Method::PUT, format!("{MAPS}/v"), &object.to_owned())]
    {
        let reply = send(method, &format!("{path}?fieldValidation=Strict"), json, body).await;
        assert_eq!(reply.failure(), (400, "BadRequest".to_owned(), message.to_owned()));
        assert!(!reply.headers.contains_key("warning"));
    }
    // A patch is refused too; the patched object, which a kube-apiserver quotes, is not in our text.
    let path = format!("{MAPS}/v?fieldValidation=Strict&fieldManager=x");
    let patch = r#"{"dta":{"a":"1"},"data":{"k":"1","k":"2"}}"#;
    let twice = "strict decoding error: duplicate field \"data.k\", unknown field \"dta\"";
    let step = r#"[{"op":"add","path":"/dta","value":{},"foo":"x"}]"#;
    let foo = "strict decoding error: json patch unknown field \"[0].foo\", unknown field \"dta\"";
    for (media_type, body, text) in [(MERGE, patch, twice), (STRATEGIC, patch, twice), (JSON_PATCH, step, foo)] {
        let (code, reason, message) = send(Method::PATCH, &path, media_type, body).await.failure();
        assert_eq!((code, reason.as_str()), (422, "Invalid"), "{media_type}");
        assert!(message.ends_with(text), "{media_type}: {message}");
    }
    // A configuration is refused whatever was asked for: nobody could own such a field.
    let config = r#"{"apiVersion":"v1","kind":"ConfigMap","dta":{"a":"1"}}"#;
    for validation in ["Strict", "Ignore"] {
        let path = format!("{MAPS}/v?fieldValidation={validation}&fieldManager=x");
        let text = "failed to create typed patch object (/; /v1, Kind=ConfigMap): .dta: field not declared in schema";
        assert_eq!(send(Method::PATCH, &path, APPLY, config).await.failure(), (500, String::new(), text.to_owned()));
    }
    assert_eq!(server.storage().revision(), before);

    let warnings = ["299 - \"unknown field \\\"dta\\\"\"", "299 - \"duplicate field \\\"data.k\\\"\""].as_slice();
    for (validation, expected) in [("Warn", warnings), ("", warnings), ("Ignore", &[])] {
        let path = format!("{MAPS}?dryRun=All&fieldValidation={validation}");
        let reply = send(Method::POST, &path, json, &other).await;
        let told: Vec<&str> = reply.headers.get_all("warning").iter().filter_map(|text| text.to_str().ok()).collect();
        assert_eq!((reply.status, told.as_slice()), (201, expected), "{validation}");
        assert_eq!((&reply.json()["data"], &reply.json()["dta"]), (&json!({"k": "2"}), &Value::Null));
    }
    let unknown = send(Method::POST, &format!("{MAPS}?fieldValidation=Foo"), json, &other).await.failure();
    let message = "CreateOptions.meta.k8s.io \"\" is invalid: fieldValidation: Unsupported value: \"Foo\": supported values: \
                   \"\", \"Ignore\", \"Strict\", \"Warn\"";
    assert_eq!(unknown, (422, "Invalid".to_owned(), message.to_owned()));
}

#[tokio::test(start_paused = true)]
async fn c44_strict_holds_for_custom_kinds_too() {
    let server = server();
    let schema = json!({"type": "object", "properties": {
        "spec": {"type": "object", "properties": {"a": {"type": "string"}}},
    }});
    let version = json!({"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": schema}});
    let names = json!({"plural": "things", "singular": "thing", "kind": "Thing", "listKind": "ThingList"});
    let spec = json!({"group": "wkk.test", "scope": "Namespaced", "names": names, "versions": [version]});
    let definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    server.post(definitions, json!({"metadata": {"name": "things.wkk.test"}, "spec": spec})).await.ok();
    let things = "/apis/wkk.test/v1/namespaces/default/things";
    let body = r#"{"apiVersion":"wkk.test/v1","kind":"Thing","metadata":{"name":"u"},"spec":{"b":1,"a":"x","a":"y"}}"#;
    let post = async |validation: &str| {
        let path = format!("{things}?fieldValidation={validation}");
        server.call(Method::POST, &path, &[("content-type", "application/json")], body.into()).await
    };
    let message = "Thing in version \"v1\" cannot be handled as a Thing: strict decoding error: duplicate field \"spec.a\", \
                   unknown field \"spec.b\"";
    assert_eq!(post("Strict").await.failure(), (400, "BadRequest".to_owned(), message.to_owned()));
    let warned = post("Warn").await;
    let told: Vec<&str> = warned.headers.get_all("warning").iter().filter_map(|text| text.to_str().ok()).collect();
    assert_eq!(told, ["299 - \"duplicate field \\\"spec.a\\\"\"", "299 - \"unknown field \\\"spec.b\\\"\""]);
    assert_eq!(warned.ok()["spec"], json!({"a": "y"}));
    let strict = format!("{things}/u?fieldValidation=Strict&fieldManager=x");
    let (code, _, message) = server.merge(&strict, json!({"spec": {"b": 1}})).await.failure();
    assert!(code == 422 && message.ends_with("strict decoding error: unknown field \"spec.b\""), "{code} {message}");
    let config = json!({"apiVersion": "wkk.test/v1", "kind": "Thing", "spec": {"b": 1}});
    let text =
        "failed to create typed patch object (/; wkk.test/v1, Kind=Thing): .spec.b: field not declared in schema";
    assert_eq!(server.patch(&strict, APPLY, config).await.failure(), (500, String::new(), text.to_owned()));
}
