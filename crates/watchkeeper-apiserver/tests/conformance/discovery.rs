//! What there is, in one document: aggregated discovery.

use std::io::Read;

use bytes::Bytes;
use http::Method;
use serde_json::{Value, json};
use watchkeeper_apiserver::CustomResource;

use crate::support::*;

const V2: &str = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";

fn unpacked(packed: &[u8]) -> String {
    let mut text = String::new();
    flate2::read::GzDecoder::new(packed).read_to_string(&mut text).expect("packed text");
    text
}

#[tokio::test(start_paused = true)]
async fn c47_aggregated_discovery_is_byte_by_byte_that_of_a_kube_apiserver() {
    let server = server();
    for (path, golden) in [
        ("/api", include_bytes!("../../data/aggregated-api.json.gz").as_slice()),
        ("/apis", include_bytes!("../../data/aggregated-apis.json.gz").as_slice()),
    ] {
        // What client-go asks for, the old beta and the older form behind it.
        let accept = format!("{V2},{},application/json", V2.replace("v2", "v2beta1"));
        let reply = server.get_as(path, &accept).await;
        assert_eq!(reply.status, 200);
        assert_eq!(reply.headers["content-type"], V2);
        assert_eq!(reply.headers["vary"], "Accept");
        assert_eq!(reply.headers["cache-control"], "public");
        assert_eq!(reply.text(), unpacked(golden));
    }
}

#[tokio::test(start_paused = true)]
async fn c47_who_knows_the_document_is_not_sent_it_again() {
    let server = server();
    let first = server.get_as("/apis", V2).await;
    let etag = first.headers["etag"].to_str().expect("a mark").to_owned();
    let again = async || {
        let known = [("accept", V2), ("if-none-match", etag.as_str())];
        server.call(Method::GET, "/apis", &known, Bytes::new()).await
    };
    let unchanged = again().await;
    assert_eq!((unchanged.status, unchanged.text()), (304, ""));
    assert_eq!(unchanged.headers["etag"], etag);
    server.register(CustomResource::cluster("shop.example.com", "v1", "Order", "orders")).expect("a kind");
    let changed = again().await;
    assert_eq!(changed.status, 200);
    assert_ne!(changed.headers["etag"], etag);
    // The core group has not changed.
    assert_eq!(
        server.get_as("/api", V2).await.headers["etag"],
        self::server().get_as("/api", V2).await.headers["etag"]
    );
}

#[tokio::test(start_paused = true)]
async fn c47_the_older_documents_are_those_of_a_kube_apiserver() {
    let server = server();
    let recorded: Value =
        serde_json::from_str(&unpacked(include_bytes!("../../data/discovery.json.gz"))).expect("documents");
    assert_eq!(server.get("/apis").await.ok(), recorded["apis"]);
    assert_eq!(server.get("/api").await.ok()["versions"], recorded["api"]["versions"]);
    let lists = recorded["resources"].as_object().expect("lists");
    assert!(lists.len() > 20);
    for (path, list) in lists {
        assert_eq!(&server.get(path).await.ok(), list, "{path}");
    }
    for group in recorded["apis"]["groups"].as_array().expect("groups") {
        let mut expected = group.clone();
        expected["kind"] = "APIGroup".into();
        expected["apiVersion"] = "v1".into();
        assert_eq!(server.get(&format!("/apis/{}", text(&group["name"]))).await.ok(), expected);
    }
}

#[tokio::test(start_paused = true)]
async fn custom_kinds_stand_behind_the_others() {
    let server = server();
    let alphas = CustomResource::namespaced("zz.example.com", "v1beta1", "Alpha", "alphas").version("v1").version("v2");
    server.register(alphas.short_name("al").category("all").with_status()).expect("a kind");
    server.register(CustomResource::cluster("aa.example.com", "v1", "Beta", "betas")).expect("a kind");
    let document = server.get_as("/apis", V2).await.ok();
    let items = document["items"].as_array().expect("groups");
    let kind = |group: &str, version: &str, kind: &str| json!({"group": group, "version": version, "kind": kind});
    let verbs = ["delete", "deletecollection", "get", "list", "patch", "create", "update", "watch"];
    let version = |version: &str| {
        let alpha = kind("zz.example.com", version, "Alpha");
        json!({
            "version": version,
            "resources": [{
                "resource": "alphas", "responseKind": alpha, "scope": "Namespaced", "singularResource": "alpha",
                "verbs": verbs, "shortNames": ["al"], "categories": ["all"],
                "subresources": [
                    {"subresource": "status", "responseKind": alpha, "verbs": ["get", "patch", "update"]},
                ],
            }],
            "freshness": "Current",
        })
    };
    let expected = json!({
        "metadata": {"name": "zz.example.com"}, "versions": [version("v2"), version("v1"), version("v1beta1")],
    });
    assert_eq!(items.last(), Some(&expected));
    assert_eq!(items[items.len() - 2]["metadata"]["name"], "aa.example.com");
    // The older documents have the same order.
    let groups = server.get("/apis").await.ok();
    let names = |list: &Value, name: &str| -> Vec<String> {
        list.as_array().into_iter().flatten().map(|entry| text(entry.pointer(name).unwrap_or(&Value::Null))).collect()
    };
    assert_eq!(names(&groups["groups"], "/name"), names(&document["items"], "/metadata/name"));
    let alphas = server.get("/apis/zz.example.com").await.ok();
    assert_eq!(names(&alphas["versions"], "/version"), ["v2", "v1", "v1beta1"]);
    assert_eq!(alphas["preferredVersion"]["version"], "v2");
}

#[tokio::test(start_paused = true)]
async fn forms_of_discovery_that_there_are_not_are_refused() {
    let server = server();
    let beta = V2.replace("v2", "v2beta1");
    for (path, accept) in [
        ("/apis", beta.as_str()),
        ("/api", "text/html"),
        ("/apis/apps", V2),
        ("/apis/apps/v1", "application/vnd.kubernetes.protobuf"),
    ] {
        assert_eq!(server.get_as(path, accept).await.failure().0, 406, "{path} {accept}");
    }
    let older = server.get_as("/apis", &format!("{beta},application/json")).await;
    assert_eq!(older.ok()["kind"], "APIGroupList");
    assert_eq!(older.headers["content-type"], "application/json");
}
