//! Random requests: whatever comes, the server answers, and says no with a `Status`.
//!
//! `PROPTEST_CASES` says how many requests each test sends: 100,000 for a thorough run.

use bytes::Bytes;
use http::{Method, Request};
use http_body_util::{BodyExt, Full};
use proptest::prelude::*;
use proptest::test_runner::TestRunner;
use serde_json::{Value, json};
use tokio::runtime::Runtime;
use tower::ServiceExt;
use watchkeeper_apiserver::{ApiServer, CustomResource, Namespaces};

/// As many cases as the environment says, or enough for every day.
fn config() -> ProptestConfig {
    let cases = std::env::var("PROPTEST_CASES").ok().and_then(|cases| cases.parse().ok()).unwrap_or(3000);
    ProptestConfig { cases, failure_persistence: None, ..ProptestConfig::default() }
}

fn server() -> ApiServer {
    let server = ApiServer::builder().seed(1).namespaces(Namespaces::OnDemand).build();
    server
        .register(CustomResource::namespaced("shop.example.com", "v1", "Order", "orders").with_status())
        .expect("a kind");
    for kind in ["ConfigMap", "Pod"] {
        server.put(json!({"apiVersion": "v1", "kind": kind, "metadata": {"name": "a"}})).expect("put there");
    }
    server
}

/// One of these, or anything.
fn one_of(known: &'static [&'static str]) -> impl Strategy<Value = String> + Clone {
    prop_oneof![
        8 => proptest::sample::select(known).prop_map(str::to_owned),
        1 => "[a-z0-9.%-]{0,12}",
        1 => "\\PC{0,8}",
    ]
}

fn path() -> impl Strategy<Value = String> {
    let root = one_of(&["api/v1", "apis/apps/v1", "apis/shop.example.com/v1", "apis", "api", "version", "livez"]);
    let plural =
        one_of(&["pods", "configmaps", "deployments", "orders", "nodes", "namespaces", "tokenreviews", "watch"]);
    let name = one_of(&["a", "b", "default", "..", ""]);
    let subresource = one_of(&["status", "scale", "log", "finalize", "exec"]);
    let namespace = proptest::option::weighted(0.6, one_of(&["default", "shop", "kube-system"]));
    let name = proptest::option::of((name, proptest::option::weighted(0.3, subresource)));
    (root, namespace, plural, name).prop_map(|(root, namespace, plural, name)| {
        let mut path = format!("/{}", escaped(&root, true));
        if let Some(namespace) = namespace {
            path.push_str(&format!("/namespaces/{}", escaped(&namespace, false)));
        }
        path.push_str(&format!("/{}", escaped(&plural, false)));
        if let Some((name, subresource)) = name {
            path.push_str(&format!("/{}", escaped(&name, false)));
            if let Some(subresource) = subresource {
                path.push_str(&format!("/{}", escaped(&subresource, false)));
            }
        }
        path
    })
}

fn query() -> impl Strategy<Value = String> {
    let name = one_of(&[
        "watch",
        "limit",
        "continue",
        "resourceVersion",
        "resourceVersionMatch",
        "labelSelector",
        "fieldSelector",
        "timeoutSeconds",
        "sendInitialEvents",
        "allowWatchBookmarks",
        "dryRun",
        "gracePeriodSeconds",
        "propagationPolicy",
    ]);
    let value = one_of(&[
        "",
        "0",
        "1",
        "7",
        "-1",
        "true",
        "false",
        "Exact",
        "NotOlderThan",
        "All",
        "Foreground",
        "app in (a,b),!x",
        "metadata.name=a",
        "status.phase!=Running",
        "99999999999999999999",
        "eyJ2IjoibWV0YS5rOHMuaW8vdjEiLCJydiI6NiwiLzAwMCJ9",
    ]);
    proptest::collection::vec((name, value), 0..5).prop_map(|pairs| {
        let mut query = form_urlencoded::Serializer::new(String::new());
        query.extend_pairs(pairs);
        query.finish()
    })
}

/// Bytes that look more or less like an object, a patch or options.
fn body() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        2 => Just(Vec::new()),
        6 => tree().prop_map(|tree| tree.to_string().into_bytes()),
        2 => object().prop_map(|object| object.to_string().into_bytes()),
        2 => operations().prop_map(|operations| operations.to_string().into_bytes()),
        1 => proptest::collection::vec(any::<u8>(), 0..64),
        1 => (tree(), 0..40usize).prop_map(|(tree, cut)| {
            let mut text = tree.to_string().into_bytes();
            text.truncate(text.len().saturating_sub(cut));
            text
        }),
        1 => (1..300usize).prop_map(|depth| "[".repeat(depth).into_bytes()),
    ]
}

fn object() -> impl Strategy<Value = Value> {
    let kind = one_of(&["ConfigMap", "Pod", "Deployment", "Order", "Namespace", "DeleteOptions"]);
    let api_version = one_of(&["v1", "apps/v1", "shop.example.com/v1"]);
    let name = one_of(&["a", "b", "c", "default"]);
    (kind, api_version, name, tree(), tree()).prop_map(|(kind, api_version, name, metadata, spec)| {
        let mut object = json!({"kind": kind, "apiVersion": api_version, "metadata": {"name": name}, "spec": spec});
        if let (Value::Object(extra), Some(own)) = (metadata, object["metadata"].as_object_mut()) {
            own.extend(extra);
        }
        object
    })
}

fn operations() -> impl Strategy<Value = Value> {
    let operation = one_of(&["add", "remove", "replace", "move", "copy", "test"]);
    let pointer = one_of(&["", "/metadata", "/metadata/name", "/data", "/metadata/labels/a", "/spec/0", "/kind"]);
    let one = (operation, pointer.clone(), pointer, tree())
        .prop_map(|(op, path, from, value)| json!({"op": op, "path": path, "from": from, "value": value}));
    proptest::collection::vec(one, 0..4).prop_map(Value::Array)
}

fn tree() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        one_of(&["a", "0", "7", "x.io/y"]).prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 16, 4, |inner| {
        let key = one_of(&[
            "metadata",
            "name",
            "namespace",
            "labels",
            "finalizers",
            "resourceVersion",
            "uid",
            "generation",
            "generateName",
            "spec",
            "status",
            "preconditions",
            "gracePeriodSeconds",
            "dryRun",
            "deletionTimestamp",
        ]);
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..3).prop_map(Value::Array),
            proptest::collection::vec((key, inner), 0..4)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

fn headers() -> impl Strategy<Value = Vec<(&'static str, String)>> {
    let accept = one_of(&[
        "application/json",
        "*/*",
        "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1",
        "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json",
        "application/json;as=Table;v=v1;g=meta.k8s.io",
    ]);
    let content = one_of(&[
        "application/json",
        "application/merge-patch+json",
        "application/json-patch+json",
        "application/strategic-merge-patch+json",
    ]);
    (proptest::option::of(accept), proptest::option::of(content)).prop_map(|(accept, content)| {
        let accept = accept.map(|accept| ("accept", accept));
        accept.into_iter().chain(content.map(|content| ("content-type", content))).collect()
    })
}

/// A path that a URI can have: everything that cannot stand in one is escaped.
fn escaped(text: &str, keep_slashes: bool) -> String {
    text.bytes()
        .map(|byte| match byte {
            b'/' if keep_slashes => "/".to_owned(),
            b'.' | b'-' | b'_' | b'%' => char::from(byte).to_string(),
            byte if byte.is_ascii_alphanumeric() => char::from(byte).to_string(),
            byte => format!("%{byte:02X}"),
        })
        .collect()
}

/// Sends a request and checks its answer.
async fn send(server: &ApiServer, request: Request<Full<Bytes>>) -> Result<(), TestCaseError> {
    let shown = format!("{} {}", request.method(), request.uri());
    let is_api = request.uri().path().starts_with("/api/v1/");
    let response = server.service().oneshot(request).await;
    let response = response.map_err(|error| TestCaseError::fail(format!("{shown}: {error}")))?;
    let status = response.status();
    let is_json = response.headers()["content-type"] == "application/json";
    // Watches end by themselves, once an hour has passed; the clock is paused.
    let body = response.into_body().collect().await;
    let body = body.map_err(|error| TestCaseError::fail(format!("{shown}: {error}")))?.to_bytes();
    prop_assert!(is_json || !is_api, "{}: no JSON", shown);
    if status.is_success() || !is_json {
        prop_assert!(is_json || status == 404 || status == 200, "{}: {}", shown, status);
        return Ok(());
    }
    let failure: Value = serde_json::from_slice(&body).map_err(|_| TestCaseError::fail(format!("{shown}: no JSON")))?;
    prop_assert_eq!(&failure["kind"], "Status", "{}", shown);
    prop_assert_eq!(&failure["code"], status.as_u16(), "{}", shown);
    prop_assert!(!failure["message"].as_str().unwrap_or_default().is_empty(), "{}: no message", shown);
    let has_reason = failure["reason"].as_str().is_some_and(|reason| !reason.is_empty());
    // The two that a kube-apiserver itself has no reason for, and what is not there yet.
    prop_assert!(has_reason || matches!(status.as_u16(), 500 | 501), "{}: no reason", shown);
    Ok(())
}

fn paused() -> Runtime {
    tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build().expect("a runtime")
}

fn request(
    method: Method,
    path: &str,
    query: &str,
    headers: &[(&'static str, String)],
    body: Vec<u8>,
) -> Option<Request<Full<Bytes>>> {
    let mut request = Request::builder().method(method).uri(format!("{path}?{query}"));
    for (name, value) in headers {
        request = request.header(*name, value.as_str());
    }
    // What is no request at all cannot be sent.
    request.body(Full::new(body.into())).ok()
}

#[test]
fn every_request_has_an_answer_and_every_refusal_is_a_status() {
    let runtime = paused();
    let server = runtime.block_on(async { server() });
    let methods =
        [Method::GET, Method::POST, Method::PUT, Method::PATCH, Method::DELETE, Method::HEAD, Method::OPTIONS];
    let requests = (proptest::sample::select(methods.to_vec()), path(), query(), headers(), body());
    TestRunner::new(config())
        .run(&requests, |(method, path, query, headers, body)| {
            let Some(request) = request(method, &path, &query, &headers, body) else { return Ok(()) };
            runtime.block_on(send(&server, request))
        })
        .unwrap_or_else(|error| panic!("{error}"));
}

#[test]
fn every_body_is_an_object_or_refused() {
    let runtime = paused();
    let server = runtime.block_on(async { server() });
    let places = [
        (Method::POST, "/api/v1/namespaces/default/configmaps", "application/json"),
        (Method::POST, "/apis/shop.example.com/v1/namespaces/default/orders", "application/json"),
        (Method::PUT, "/api/v1/namespaces/default/configmaps/a", "application/json"),
        (Method::PUT, "/api/v1/namespaces/default/pods/a/status", "application/json"),
        (Method::PATCH, "/api/v1/namespaces/default/configmaps/a", "application/merge-patch+json"),
        (Method::PATCH, "/api/v1/namespaces/default/pods/a", "application/json-patch+json"),
        (Method::DELETE, "/api/v1/namespaces/default/pods/a", "application/json"),
    ];
    let requests = (proptest::sample::select(places.to_vec()), body());
    TestRunner::new(config())
        .run(&requests, |((method, path, media_type), body)| {
            let headers = [("content-type", media_type.to_owned())];
            let Some(request) = request(method, path, "", &headers, body) else { return Ok(()) };
            runtime.block_on(send(&server, request))
        })
        .unwrap_or_else(|error| panic!("{error}"));
}
