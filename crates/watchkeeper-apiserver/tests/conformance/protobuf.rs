//! Bodies in protobuf, as client-go writes them unless it is told otherwise.

use bytes::Bytes;
use http::Method;
use serde_json::json;
use watchkeeper_apiserver::{ApiServer, CustomResource};

use crate::support::*;

const PROTOBUF: &str = "application/vnd.kubernetes.protobuf";

/// A field that has a text or a message. All of them are short here.
fn field(number: u8, content: &[u8]) -> Vec<u8> {
    [&[number << 3 | 2, u8::try_from(content.len()).expect("a short field")], content].concat()
}

fn envelope(api_version: &str, kind: &str, object: &[u8]) -> Bytes {
    let kind = [field(1, api_version.as_bytes()), field(2, kind.as_bytes())].concat();
    [b"k8s\0".to_vec(), field(1, &kind), field(2, object)].concat().into()
}

/// A config map with one entry, as Go writes it: with every text that is empty.
fn config_map_in_protobuf(name: &str, value: &str) -> Bytes {
    let metadata = [field(1, name.as_bytes()), field(2, b""), field(3, b""), field(8, b"")].concat();
    let entry = [field(1, b"key"), field(2, value.as_bytes())].concat();
    envelope("v1", "ConfigMap", &[field(1, &metadata), field(2, &entry)].concat())
}

async fn send(server: &ApiServer, method: Method, path: &str, body: Bytes) -> Reply {
    server.call(method, path, &[("content-type", PROTOBUF)], body).await
}

#[tokio::test(start_paused = true)]
async fn objects_are_created_and_updated_from_protobuf() {
    let server = server();
    let created = send(&server, Method::POST, MAPS, config_map_in_protobuf("a", "1")).await;
    assert_eq!(created.status, 201);
    assert_eq!(created.headers["content-type"], "application/json");
    let created = created.ok();
    assert_eq!(created["data"], json!({"key": "1"}));
    assert!(created["metadata"].get("generateName").is_none());
    let path = format!("{MAPS}/a");
    let updated = send(&server, Method::PUT, &path, config_map_in_protobuf("a", "2")).await.ok();
    assert_eq!(updated["data"], json!({"key": "2"}));
}

#[tokio::test(start_paused = true)]
async fn the_options_of_a_deletion_are_read_from_protobuf() {
    let server = server();
    server.map("a").await;
    let path = format!("{MAPS}/a");
    // `preconditions.uid`
    let options = |uid: &str| envelope("v1", "DeleteOptions", &field(2, &field(1, uid.as_bytes())));
    assert_eq!(send(&server, Method::DELETE, &path, options("other")).await.failure().0, 409);
    let uid = text(&server.get(&path).await.ok()["metadata"]["uid"]);
    assert_eq!(send(&server, Method::DELETE, &path, options(&uid)).await.status, 200);
}

#[tokio::test(start_paused = true)]
async fn what_is_no_protobuf_is_refused() {
    let server = server();
    for body in [&b"{}"[..], b"k8s\0\xff", b"k8s", b"k8s\0\x12\x7f"] {
        let failure = send(&server, Method::POST, MAPS, Bytes::from_static(body)).await.failure();
        assert_eq!((failure.0, failure.1.as_str()), (400, "BadRequest"), "{body:?}");
    }
    // Another kind than the path says.
    let failure = send(&server, Method::POST, MAPS, envelope("v1", "Secret", b"")).await.failure();
    assert_eq!(failure.0, 400);
}

#[tokio::test(start_paused = true)]
async fn custom_kinds_have_no_protobuf() {
    let server = server();
    server.register(CustomResource::namespaced("shop.example.com", "v1", "Order", "orders")).expect("a kind");
    let path = "/apis/shop.example.com/v1/namespaces/default/orders";
    let failure = send(&server, Method::POST, path, envelope("shop.example.com/v1", "Order", b"")).await.failure();
    assert_eq!((failure.0, failure.1.as_str()), (415, "UnsupportedMediaType"));
}
