//! Writes: what they change, what they refuse, and what they leave alone.

use bytes::Bytes;
use http::Method;
use serde_json::{Value, json};
use watchkeeper_apiserver::{ApiServer, Controllers, Namespaces};

use crate::support::*;

const MERGE: &str = "application/merge-patch+json";
const JSON_PATCH: &str = "application/json-patch+json";
const MODIFIED: &str = "the object has been modified; please apply your changes to the latest version and try again";

fn deployment(replicas: u32, ready: u32) -> Value {
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": {"app": "web"}},
            "template": {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}},
        },
        "status": {"replicas": ready, "readyReplicas": ready},
    })
}

#[tokio::test(start_paused = true)]
async fn c32_what_exists_is_not_created_again() {
    let server = server();
    let created = server.post(MAPS, config_map("a")).await;
    assert_eq!(created.status, 201);
    let created = created.ok();
    assert_eq!(created["metadata"]["creationTimestamp"], "2026-11-15T12:00:00Z");
    assert_eq!(text(&created["metadata"]["uid"]).len(), 36);
    let again = server.post(MAPS, config_map("a")).await;
    assert_eq!(again.failure(), (409, "AlreadyExists".to_owned(), "configmaps \"a\" already exists".to_owned()));
    assert_eq!(again.json()["details"], json!({"name": "a", "kind": "configmaps"}));
    server.post(DEPLOYMENTS, deployment(1, 0)).await.ok();
    let again = server.post(DEPLOYMENTS, deployment(1, 0)).await;
    assert_eq!(again.failure().2, "deployments.apps \"web\" already exists");
    assert_eq!(again.json()["details"], json!({"name": "web", "group": "apps", "kind": "deployments"}));
}

#[tokio::test(start_paused = true)]
async fn c33_an_update_of_an_old_version_is_a_conflict() {
    let server = server();
    let mut first = server.map("a").await;
    server.merge(&format!("{MAPS}/a"), json!({"data": {"k": "1"}})).await.ok();
    first["data"] = json!({"k": "2"});
    let stale = server.replace(&format!("{MAPS}/a"), first.clone()).await;
    let message = format!("Operation cannot be fulfilled on configmaps \"a\": {MODIFIED}");
    assert_eq!(stale.failure(), (409, "Conflict".to_owned(), message.clone()));
    assert_eq!(stale.json()["details"], json!({"name": "a", "kind": "configmaps"}));
    let stale = server.merge(&format!("{MAPS}/a"), json!({"metadata": {"resourceVersion": "3"}})).await;
    assert_eq!(stale.failure().2, message);
    // Without a version whatever is there is overwritten.
    first["metadata"].as_object_mut().expect("metadata").remove("resourceVersion");
    let written = server.replace(&format!("{MAPS}/a"), first.clone()).await.ok();
    assert_eq!(written["data"]["k"], "2");
    // The object must be the one that is meant.
    first["metadata"]["uid"] = json!("abc");
    let other = server.replace(&format!("{MAPS}/a"), first).await.failure();
    assert_eq!((other.0, other.1.as_str()), (409, "Conflict"));
    assert!(other.2.contains("Precondition failed: UID in precondition: abc, UID in object meta: "), "{}", other.2);
}

#[tokio::test(start_paused = true)]
async fn c34_an_update_that_changes_nothing_is_none() {
    let server = server();
    let created = server.map("a").await;
    let mut watch = server.watch(&format!("{MAPS}?watch=true&resourceVersion={}", revision(&created))).await;
    assert_eq!(server.replace(&format!("{MAPS}/a"), config_map("a")).await.ok(), created);
    assert_eq!(server.replace(&format!("{MAPS}/a"), created.clone()).await.ok(), created);
    assert_eq!(server.merge(&format!("{MAPS}/a"), json!({})).await.ok(), created);
    let patch = json!([{"op": "test", "path": "/metadata/name", "value": "a"}]);
    assert_eq!(server.patch(&format!("{MAPS}/a"), JSON_PATCH, patch).await.ok(), created);
    assert_eq!(server.storage().revision(), revision(&created));
    assert_eq!(watch.events_for(seconds(1)).await, Vec::<String>::new());
}

#[tokio::test(start_paused = true)]
async fn c35_a_generation_counts_changes_of_the_spec() {
    let server = server();
    let path = format!("{DEPLOYMENTS}/web");
    let generation = |object: Value| object["metadata"]["generation"].as_i64();
    assert_eq!(generation(server.post(DEPLOYMENTS, deployment(1, 0)).await.ok()), Some(1));
    let labels = json!({"metadata": {"labels": {"a": "b"}, "generation": 17}});
    assert_eq!(generation(server.merge(&path, labels).await.ok()), Some(1));
    let status =
        server.merge(&format!("{path}/status"), json!({"status": {"replicas": 1, "readyReplicas": 1}})).await.ok();
    assert_eq!(generation(status), Some(1));
    assert_eq!(generation(server.merge(&path, json!({"spec": {"replicas": 2}})).await.ok()), Some(2));
    assert_eq!(generation(server.replace(&path, deployment(3, 0)).await.ok()), Some(3));
    // Kinds that do not count have none.
    assert_eq!(generation(server.map("a").await), None);
}

#[tokio::test(start_paused = true)]
async fn c36_status_and_the_rest_are_written_apart() {
    let server = server();
    let path = format!("{DEPLOYMENTS}/web");
    let status = format!("{path}/status");
    assert_eq!(server.post(DEPLOYMENTS, deployment(1, 7)).await.ok()["status"], json!({}));
    let mut other = deployment(5, 9);
    other["metadata"]["labels"] = json!({"x": "y"});
    let written = server.replace(&status, other).await.ok();
    assert_eq!((&written["spec"]["replicas"], &written["status"]["readyReplicas"]), (&json!(1), &json!(9)));
    assert_eq!(written["metadata"]["labels"], Value::Null);
    let written = server.replace(&path, deployment(2, 0)).await.ok();
    assert_eq!((&written["spec"]["replicas"], &written["status"]["readyReplicas"]), (&json!(2), &json!(9)));
    assert_eq!(server.get(&status).await.ok(), written);
    // There is one only where there is one.
    let missing = server.get(&format!("{MAPS}/a/status")).await.failure();
    assert_eq!(missing.2, "the server could not find the requested resource");
    assert_eq!(server.post(&status, deployment(1, 1)).await.failure().0, 405);
}

#[tokio::test(start_paused = true)]
async fn c40_generated_names_have_their_pattern() {
    let server = server();
    let mut names = Vec::new();
    for _ in 0..20 {
        let created = server.post(MAPS, json!({"metadata": {"generateName": "web-"}})).await.ok();
        assert_eq!(created["metadata"]["generateName"], "web-");
        let name = text(&created["metadata"]["name"]);
        let suffix = name.strip_prefix("web-").expect("the prefix");
        assert_eq!(suffix.len(), 5);
        assert!(suffix.chars().all(|c| "bcdfghjklmnpqrstvwxz2456789".contains(c)), "{name}");
        names.push(name);
    }
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), 20);
    let long = server.post(MAPS, json!({"metadata": {"generateName": "x".repeat(80)}})).await.ok();
    assert_eq!(text(&long["metadata"]["name"]).len(), 63);
    let none = server.post(MAPS, json!({"metadata": {}})).await.failure();
    let message = "ConfigMap \"\" is invalid: metadata.name: Required value: name or generateName is required";
    assert_eq!(none, (422, "Invalid".to_owned(), message.to_owned()));
    // The seed decides.
    let again = crate::support::server().post(MAPS, json!({"metadata": {"generateName": "web-"}})).await.ok();
    let first = crate::support::server().post(MAPS, json!({"metadata": {"generateName": "web-"}})).await.ok();
    assert_eq!(again, first);
}

#[tokio::test(start_paused = true)]
async fn c43_a_dry_run_leaves_no_trace() {
    let server = server();
    let before = server.storage().revision();
    let created = server.post(&format!("{MAPS}?dryRun=All"), config_map("a")).await;
    assert_eq!((created.status, created.ok()["metadata"]["resourceVersion"].clone()), (201, Value::Null));
    assert_eq!(server.storage().revision(), before);
    let map = server.map("a").await;
    let changed = server.merge(&format!("{MAPS}/a?dryRun=All"), json!({"data": {"k": "v"}})).await.ok();
    assert_eq!((changed["data"]["k"].as_str(), revision(&changed)), (Some("v"), revision(&map)));
    assert_eq!(server.delete(&format!("{MAPS}/a?dryRun=All")).await.ok()["status"], "Success");
    assert_eq!(server.delete_with(MAPS, json!({"dryRun": ["All"]})).await.status, 200);
    assert_eq!(server.get(&format!("{MAPS}/a")).await.ok(), map);
    let wrong = server.post(&format!("{MAPS}?dryRun=Foo"), config_map("b")).await.failure();
    let message =
        "CreateOptions.meta.k8s.io \"\" is invalid: dryRun: Unsupported value: [\"Foo\"]: supported values: \"All\"";
    assert_eq!(wrong, (422, "Invalid".to_owned(), message.to_owned()));
}

#[tokio::test(start_paused = true)]
async fn c45_a_body_above_three_mebibytes_is_too_large() {
    let server = server();
    let body = |length: usize| Bytes::from(vec![b'a'; length]);
    let large = server.call(Method::POST, MAPS, &[], body(3 * 1024 * 1024 + 1)).await;
    let message = "Request entity too large: limit is 3145728";
    assert_eq!(large.failure(), (413, "RequestEntityTooLarge".to_owned(), message.to_owned()));
    // One that just fits is only wrong.
    assert_eq!(server.call(Method::POST, MAPS, &[], body(3 * 1024 * 1024)).await.failure().0, 400);
    let operations: Vec<Value> = (0..10_001).map(|_| json!({"op": "test", "path": "", "value": 1})).collect();
    server.map("a").await;
    let many = server.patch(&format!("{MAPS}/a"), JSON_PATCH, json!(operations)).await;
    assert_eq!(many.failure().0, 413);
    // Copies of copies do not blow the object up.
    let doubled: Vec<Value> =
        (0..40).map(|i| json!({"op": "copy", "from": "/data", "path": format!("/data/{i}")})).collect();
    server.merge(&format!("{MAPS}/a"), json!({"data": {"k": "v"}})).await.ok();
    assert_eq!(server.patch(&format!("{MAPS}/a"), JSON_PATCH, json!(doubled)).await.failure().0, 422);
}

#[tokio::test(start_paused = true)]
async fn objects_do_not_grow_too_deep() {
    let server = server();
    server.map("a").await;
    let path = format!("{MAPS}/a");
    let nested = |levels: usize| (0..levels).fold(json!("x"), |inner, _| json!({"x": inner}));
    // What is in a revision is anything.
    let revisions = "/apis/apps/v1/namespaces/default/controllerrevisions";
    let revision = |levels| json!({"metadata": {"name": "b"}, "revision": 1, "data": nested(levels)});
    let deep = server.post(revisions, revision(119)).await;
    assert_eq!(deep.failure(), (400, "BadRequest".to_owned(), "json: exceeded max depth".to_owned()));
    let fits = server.post(revisions, revision(118)).await;
    assert_eq!(fits.status, 201);
    // Chains that are moved beneath chains, and copied into themselves.
    let mut moves: Vec<Value> =
        (0..200).map(|i| json!({"op": "add", "path": format!("/d{i}"), "value": nested(50)})).collect();
    let below = "/x".repeat(49);
    moves.extend(
        (1..200).map(|i| json!({"op": "move", "from": format!("/d{}", i - 1), "path": format!("/d{i}{below}/y")})),
    );
    assert_eq!(server.patch(&path, JSON_PATCH, json!(moves)).await.failure().0, 422);
    let mut copies = vec![json!({"op": "add", "path": "/data", "value": {}})];
    copies.extend((0..2000).map(|_| json!({"op": "copy", "from": "/data", "path": "/data/x"})));
    assert_eq!(server.patch(&path, JSON_PATCH, json!(copies)).await.failure().0, 422);
}

#[tokio::test(start_paused = true)]
async fn namespaces_must_be_there_or_are_made() {
    let strict = builder().controllers(Controllers::Elsewhere).build();
    let path = "/api/v1/namespaces/shop/configmaps";
    let missing = strict.post(path, config_map("a")).await;
    assert_eq!(missing.failure(), (404, "NotFound".to_owned(), "namespaces \"shop\" not found".to_owned()));
    assert_eq!(missing.json()["details"], json!({"name": "shop", "kind": "namespaces"}));
    let namespace = strict.post("/api/v1/namespaces", json!({"metadata": {"name": "shop"}})).await.ok();
    assert_eq!(namespace["metadata"]["labels"]["kubernetes.io/metadata.name"], "shop");
    assert_eq!(namespace["status"]["phase"], "Active");
    strict.post(path, config_map("a")).await.ok();
    let deleting = strict.delete("/api/v1/namespaces/shop").await.ok();
    assert_eq!(deleting["status"]["phase"], "Terminating");
    let refused = strict.post(path, config_map("b")).await;
    let message = "configmaps \"b\" is forbidden: unable to create new content in namespace shop because it is being \
                   terminated";
    assert_eq!(refused.failure(), (403, "Forbidden".to_owned(), message.to_owned()));
    // Whoever has cleared it out says so, and it goes.
    let finalized = json!({"metadata": {"name": "shop"}, "spec": {"finalizers": []}});
    strict.replace("/api/v1/namespaces/shop/finalize", finalized).await.ok();
    assert_eq!(strict.get("/api/v1/namespaces/shop").await.status, 404);

    let on_demand = builder().namespaces(Namespaces::OnDemand).build();
    on_demand.post(path, config_map("a")).await.ok();
    assert_eq!(on_demand.get("/api/v1/namespaces/shop").await.status, 200);
}

#[tokio::test(start_paused = true)]
async fn bad_requests_are_refused_in_the_words_of_a_kube_apiserver() {
    let server = server();
    server.map("a").await;
    let item = format!("{MAPS}/a");
    let send = async |method: Method, path: &str, media_type: &str, body: &str| {
        server.call(method, path, &[("content-type", media_type)], body.to_owned().into()).await.failure()
    };
    let json = "application/json";
    for (method, path, media_type, body, code, message) in [
        (
            Method::POST,
            MAPS,
            json,
            r#"{"kind":"Secret","apiVersion":"v1"}"#,
            400,
            "Secret in version \"v1\" cannot be handled as a ConfigMap: converting (v1.Secret) to (core.ConfigMap): unknown conversion",
        ),
        (
            Method::POST,
            MAPS,
            json,
            r#"{"kind":"ConfigMap","apiVersion":"v2"}"#,
            400,
            "ConfigMap in version \"v2\" cannot be handled as a ConfigMap: no kind \"ConfigMap\" is registered for version \"v2\" in scheme \"pkg/runtime/scheme.go:111\"",
        ),
        (
            Method::POST,
            MAPS,
            json,
            r#"{"kind":"#,
            400,
            "the object provided is unrecognized (must be of type ConfigMap): couldn't get version/kind; json parse error: unexpected end of JSON input",
        ),
        (
            Method::POST,
            MAPS,
            json,
            "hello",
            400,
            "the object provided is unrecognized (must be of type ConfigMap): couldn't get version/kind; json parse error: invalid character 'h' looking for beginning of value",
        ),
        (
            Method::POST,
            MAPS,
            "text/plain",
            "{}",
            415,
            "the body of the request was in an unknown format - accepted media types include: application/json, application/yaml, \
             application/vnd.kubernetes.protobuf",
        ),
        (
            Method::POST,
            MAPS,
            json,
            r#"{"metadata":{"name":"b","namespace":"other"}}"#,
            400,
            "the namespace of the provided object does not match the namespace sent on the request",
        ),
        (
            Method::POST,
            MAPS,
            json,
            r#"{"metadata":{"name":"b","resourceVersion":"5"}}"#,
            500,
            "resourceVersion should not be set on objects to be created",
        ),
        (
            Method::POST,
            MAPS,
            json,
            r#"{"metadata":{"name":5}}"#,
            400,
            "ConfigMap in version \"v1\" cannot be handled as a ConfigMap: json: cannot unmarshal number into Go struct field ObjectMeta.metadata.name of type string",
        ),
        (
            Method::POST,
            MAPS,
            json,
            r#"{"metadata":{"name":"a","labels":{"a":5}}}"#,
            400,
            "ConfigMap in version \"v1\" cannot be handled as a ConfigMap: json: cannot unmarshal number into Go struct field ObjectMeta.metadata.labels of type string",
        ),
        (Method::POST, &item, json, "{}", 405, "the server does not allow this method on the requested resource"),
        (Method::PUT, MAPS, json, "{}", 405, "the server does not allow this method on the requested resource"),
        (
            Method::PUT,
            &item,
            json,
            r#"{"metadata":{"name":"q"}}"#,
            400,
            "the name of the object (q) does not match the name on the URL (a)",
        ),
        (
            Method::PUT,
            &item,
            json,
            "{}",
            400,
            "the name of the object (a based on URL) was undeterminable: name must be provided",
        ),
        (
            Method::PUT,
            &item,
            json,
            r#"{"metadata":{"name":"a","resourceVersion":"abc"}}"#,
            500,
            "strconv.ParseUint: parsing \"abc\": invalid syntax",
        ),
        (
            Method::PATCH,
            &item,
            MERGE,
            "xx",
            400,
            "error decoding patch: invalid character 'x' looking for beginning of value",
        ),
        (
            Method::PATCH,
            &item,
            MERGE,
            "[]",
            400,
            "error decoding patch: json: cannot unmarshal array into Go value of type map[string]interface {}",
        ),
        (
            Method::PATCH,
            &item,
            MERGE,
            r#"{"metadata":{"name":"q"}}"#,
            400,
            "the name of the object (q) does not match the name on the URL (a)",
        ),
        (
            Method::PATCH,
            &item,
            JSON_PATCH,
            "{}",
            400,
            "error decoding patch: json: cannot unmarshal object into Go value of type []handlers.jsonPatchOp",
        ),
        (
            Method::PATCH,
            &item,
            JSON_PATCH,
            r#"[{"op":"remove","path":"/data/zzz"}]"#,
            422,
            "the server rejected our request due to an error in our request",
        ),
        (
            Method::PATCH,
            &item,
            JSON_PATCH,
            r#"[{"op":"frob","path":"/data/zzz"}]"#,
            422,
            "the server rejected our request due to an error in our request",
        ),
        (
            Method::DELETE,
            &item,
            json,
            "xx",
            400,
            "couldn't get version/kind; json parse error: invalid character 'x' looking for beginning of value",
        ),
        (
            Method::DELETE,
            &item,
            json,
            r#"{"kind":"Pod","apiVersion":"v1"}"#,
            400,
            "no kind \"Pod\" is registered for version \"v1\" in scheme \"pkg/runtime/scheme.go:111\"",
        ),
        (
            Method::DELETE,
            &item,
            json,
            r#"{"propagationPolicy":"Foo"}"#,
            422,
            "DeleteOptions.meta.k8s.io \"\" is invalid: propagationPolicy: Unsupported value: \"Foo\": supported values: \"Foreground\", \"Background\", \"Orphan\", \"nil\"",
        ),
        (Method::GET, "/api/v1/nope", json, "", 404, "the server could not find the requested resource"),
        (
            Method::GET,
            "/api/v1/namespaces/default/nodes",
            json,
            "",
            404,
            "the server could not find the requested resource",
        ),
        (Method::GET, "/api/v1/configmaps/foo", json, "", 404, "the server could not find the requested resource"),
        (
            Method::POST,
            "/api/v1/configmaps",
            json,
            "{}",
            405,
            "the server does not allow this method on the requested resource",
        ),
    ] {
        let failure = send(method.clone(), path, media_type, body).await;
        assert_eq!((failure.0, failure.2.as_str()), (code, message), "{method} {path} {body}");
    }
    let name = server.post(MAPS, config_map("B_")).await.failure();
    assert!(
        name.2.starts_with("ConfigMap \"B_\" is invalid: metadata.name: Invalid value: \"B_\": a lowercase RFC 1123")
    );
}

#[tokio::test(start_paused = true)]
async fn a_json_patch_replaces_in_a_map_what_is_not_there() {
    let server = server();
    server.map("a").await;
    let path = format!("{MAPS}/a");
    let replace = |path: &str, value: Value| json!([{"op": "replace", "path": path, "value": value}]);
    let patched = server.patch(&path, JSON_PATCH, replace("/metadata/annotations", json!({"a": "1"}))).await.ok();
    assert_eq!(patched["metadata"]["annotations"], json!({"a": "1"}));
    let patched = server.patch(&path, JSON_PATCH, replace("/metadata/annotations/b~1c", json!("2"))).await.ok();
    assert_eq!(patched["metadata"]["annotations"], json!({"a": "1", "b/c": "2"}));
    // Not where there is no map, and not in a list.
    assert_eq!(server.patch(&path, JSON_PATCH, replace("/data/a", json!("1"))).await.failure().0, 422);
    server.patch(&path, JSON_PATCH, replace("/metadata/finalizers", json!(["example.com/a"]))).await.ok();
    let beyond = replace("/metadata/finalizers/1", json!("example.com/b"));
    assert_eq!(server.patch(&path, JSON_PATCH, beyond).await.failure().0, 422);
}

#[tokio::test(start_paused = true)]
async fn concurrent_patches_all_land() {
    let server: ApiServer = server();
    server.map("a").await;
    let patches = (0..50).map(|i| {
        let server = server.clone();
        tokio::spawn(async move {
            server.merge(&format!("{MAPS}/a"), json!({"data": {format!("k{i}"): "v"}})).await.ok();
        })
    });
    for patch in patches.collect::<Vec<_>>() {
        patch.await.expect("patched");
    }
    let object = server.get(&format!("{MAPS}/a")).await.ok();
    assert_eq!(object["data"].as_object().map(|data| data.len()), Some(50));
}
