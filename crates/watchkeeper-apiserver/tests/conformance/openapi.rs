//! Which types there are: the OpenAPI documents.

use bytes::Bytes;
use http::Method;
use serde_json::Value;
use watchkeeper_apiserver::{ApiServer, CustomResource};

use crate::support::*;

const PROTOBUF: &str = "application/com.github.proto-openapi.spec.v2@v1.0+protobuf";

/// The address of a document in the index.
async fn address(server: &ApiServer, path: &str) -> String {
    text(&server.get("/openapi/v3").await.ok()["paths"][path]["serverRelativeURL"])
}

#[tokio::test(start_paused = true)]
async fn c48_the_index_leads_to_documents_that_never_change() {
    let server = server();
    let index = server.get("/openapi/v3").await;
    assert_eq!(index.headers["content-type"], "text/plain; charset=utf-8");
    let address = address(&server, "apis/apps/v1").await;
    let (_, hash) = address.split_once("?hash=").expect("a hash");
    let document = server.get(&address).await;
    assert_eq!(document.headers["cache-control"], "public, immutable");
    assert_eq!(document.headers["expires"], "Mon, 15 Nov 2027 12:00:00 UTC");
    assert_eq!(document.headers["etag"], format!("\"{hash}\""));
    assert_eq!(document.headers["content-type"], "application/json");
    let kind = &document.ok()["components"]["schemas"]["io.k8s.api.apps.v1.Deployment"];
    assert_eq!(kind["x-kubernetes-group-version-kind"][0]["kind"], "Deployment");
    // Without a hash it may change.
    let current = server.get("/openapi/v3/apis/apps/v1").await;
    assert_eq!(current.headers["cache-control"], "no-cache, private");
    assert_eq!(current.bytes, document.bytes);
    // With a wrong one the client is sent on.
    let moved = server.get("/openapi/v3/apis/apps/v1?hash=abc").await;
    assert_eq!((moved.status, moved.text()), (301, ""));
    assert_eq!(moved.headers["location"], address);
    let known = [("if-none-match", format!("W/\"{hash}\""))].map(|(name, value)| (name, value));
    let known: Vec<(&str, &str)> = known.iter().map(|(name, value)| (*name, value.as_str())).collect();
    assert_eq!(server.call(Method::GET, &address, &known, Bytes::new()).await.status, 304);
    for nowhere in ["/openapi/v3/apis/nope/v1", "/openapi/v3/"] {
        let missing = server.get(nowhere).await;
        assert_eq!((missing.status, missing.text()), (404, ""));
    }
    assert_eq!(server.get("/openapi/v4").await.text(), "404 page not found\n");
    assert_eq!(server.get_as("/openapi/v3/api/v1", "text/html").await.status, 406);
    let any = "application/com.github.proto-openapi.spec.v3@v1.0+protobuf, application/json;q=0.5";
    assert_eq!(server.get_as("/openapi/v3/version", any).await.headers["content-type"], "application/json");
}

#[tokio::test(start_paused = true)]
async fn c48_the_index_has_every_group_and_every_address_its_document() {
    let server = server();
    let index = server.get("/openapi/v3").await.ok();
    let paths = index["paths"].as_object().expect("paths");
    let groups = server.get("/apis").await.ok();
    let versions = groups["groups"].as_array().expect("groups").iter().flat_map(|group| {
        let versions = group["versions"].as_array().into_iter().flatten();
        versions.map(|version| format!("apis/{}", text(&version["groupVersion"])))
    });
    for path in versions.chain(["api/v1".to_owned(), "version".to_owned()]) {
        assert!(paths.contains_key(&path), "{path}");
    }
    for (path, entry) in paths {
        let address = text(&entry["serverRelativeURL"]);
        let (place, hash) = address.split_once("?hash=").expect("a hash");
        assert_eq!((place, hash.len()), (format!("/openapi/v3/{path}").as_str(), 128));
        let document = server.get(&address).await;
        assert_eq!(document.headers["etag"], format!("\"{hash}\""), "{path}");
        assert_eq!(document.ok()["openapi"], "3.0.0", "{path}");
    }
}

#[tokio::test(start_paused = true)]
async fn c48_custom_kinds_have_a_document_as_long_as_they_are_served() {
    let server = server();
    assert_eq!(address(&server, "apis/shop.example.com/v1").await, "");
    let orders = CustomResource::namespaced("shop.example.com", "v1", "Order", "orders");
    server.register(orders.clone()).expect("a kind");
    let first = address(&server, "apis/shop.example.com/v1").await;
    let document = server.get(&first).await.ok();
    let order = &document["components"]["schemas"]["com.example.shop.v1.Order"];
    assert_eq!(order["x-kubernetes-preserve-unknown-fields"], true);
    let patch = &document["paths"]["/apis/shop.example.com/v1/namespaces/{namespace}/orders/{name}"]["patch"];
    assert_eq!(patch["operationId"], "patchShopExampleComV1NamespacedOrder");
    assert_eq!(patch["x-kubernetes-group-version-kind"]["kind"], "Order");
    server.register(orders.with_status()).expect("a kind");
    assert_ne!(address(&server, "apis/shop.example.com/v1").await, first);
    // The old address leads to the new one.
    assert_eq!(server.get(&first).await.status, 301);
    let older = server.get("/openapi/v2").await.ok();
    assert_eq!(older["definitions"]["com.example.shop.v1.Order"]["type"], "object");
    let path = "/apis/shop.example.com/v1/namespaces/{namespace}/orders/{name}/status";
    assert!(older["paths"][path]["get"].is_object());
}

#[tokio::test(start_paused = true)]
async fn the_older_document_comes_as_json_and_as_protobuf() {
    let server = server();
    let json = server.get("/openapi/v2").await;
    assert_eq!(json.headers["content-type"], "application/json");
    assert_eq!(json.ok()["swagger"], "2.0");
    let protobuf = server.get_as("/openapi/v2", PROTOBUF).await;
    let media_type = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf";
    assert_eq!((protobuf.status, protobuf.bytes.len()), (200, 1_918_069));
    assert_eq!(protobuf.headers["content-type"], media_type);
    assert_eq!(protobuf.headers["etag"], json.headers["etag"]);
    assert_eq!(server.get_as("/openapi/v2", "application/yaml").await.status, 406);
    let etag = json.headers["etag"].to_str().expect("a mark");
    let known = [("accept", PROTOBUF), ("if-none-match", etag)];
    assert_eq!(server.call(Method::GET, "/openapi/v2", &known, Bytes::new()).await.status, 304);
    let packed = server.call(Method::GET, "/openapi/v2", &[("accept-encoding", "gzip")], Bytes::new()).await;
    assert_eq!(packed.headers["content-encoding"], "gzip");
    assert!(packed.bytes.len() < json.bytes.len() / 4);
    let all: Vec<_> = packed.headers.get_all("vary").iter().collect();
    assert_eq!(all, ["Accept", "Accept-Encoding"]);
    let mut unpacked = Vec::new();
    std::io::Read::read_to_end(&mut flate2::read::GzDecoder::new(&*packed.bytes), &mut unpacked).expect("gzip");
    assert_eq!(serde_json::from_slice::<Value>(&unpacked).expect("JSON"), json.ok());
}
