//! How objects and lists are written.

use std::io::Read;

use bytes::Bytes;
use http::Method;
use serde_json::json;
use watchkeeper_apiserver::CustomResource;

use crate::support::*;

const PARTIAL: &str = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1";
const PARTIAL_LIST: &str = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1";
const ORDERS: &str = "/apis/shop.example.com/v1/namespaces/default/orders";

#[tokio::test(start_paused = true)]
async fn c31_metadata_alone_in_gets_lists_and_watches() {
    let server = server();
    server.post(MAPS, json!({"metadata": {"name": "a", "labels": {"x": "y"}}, "data": {"k": "secret"}})).await.ok();
    let whole = server.get(&format!("{MAPS}/a")).await.ok();
    let one = server.get_as(&format!("{MAPS}/a"), PARTIAL).await;
    let prefix = "{\"kind\":\"PartialObjectMetadata\",\"apiVersion\":\"meta.k8s.io/v1\",\"metadata\":{\"name\":\"a\",";
    assert!(one.text().starts_with(prefix), "{}", one.text());
    assert_eq!(one.ok()["metadata"], whole["metadata"]);
    assert!(!one.text().contains("secret"));

    let list = server.get_as(MAPS, PARTIAL_LIST).await;
    assert!(list.text().starts_with(
        "{\"kind\":\"PartialObjectMetadataList\",\"apiVersion\":\"meta.k8s.io/v1\",\"metadata\":{\"resourceVersion\":\"6\"},\
         \"items\":[{\"kind\":\"PartialObjectMetadata\","
    ));
    assert_eq!(list.ok()["items"][0], one.ok());
    let empty = server.get_as(PODS, PARTIAL_LIST).await;
    assert_eq!(empty.ok()["items"], json!(null));

    let query = "watch=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true";
    let mut watch = server.watch_as(&format!("{MAPS}?{query}"), PARTIAL).await;
    assert_eq!(watch.next().await, Some(json!({"type": "ADDED", "object": one.ok()})));
    let bookmark = watch.next().await.expect("a bookmark");
    assert_eq!(bookmark["object"]["kind"], "PartialObjectMetadata");
    server.delete(&format!("{MAPS}/a")).await.ok();
    let deleted = watch.next().await.expect("a deletion");
    assert_eq!((deleted["type"].as_str(), deleted["object"]["data"].as_str()), (Some("DELETED"), None));

    // What does not fit is not acceptable.
    let wrong = server.get_as(MAPS, PARTIAL).await.failure();
    assert_eq!((wrong.0, wrong.1.as_str()), (406, "NotAcceptable"));
    let wrong = server.get_as("/api/v1/namespaces/default", PARTIAL_LIST).await.failure();
    assert_eq!(wrong.0, 406);
    assert_eq!(server.get_as(MAPS, "text/html").await.failure().0, 406);
    assert_eq!(server.get_as(MAPS, "application/vnd.kubernetes.protobuf,application/json").await.status, 200);
}

#[tokio::test(start_paused = true)]
async fn c46_only_long_answers_are_compressed() {
    let server = server();
    let gzip = [("accept-encoding", "gzip")];
    server.post(MAPS, json!({"metadata": {"name": "small"}})).await.ok();
    let small = server.call(Method::GET, MAPS, &gzip, Bytes::new()).await;
    assert!(!small.headers.contains_key("content-encoding"));
    for i in 0..3 {
        let data = format!("{}{i}", "0123456789abcdef".repeat(5000));
        server.post(MAPS, json!({"metadata": {"name": format!("large{i}")}, "data": {"data": data}})).await.ok();
    }
    let plain = server.get(MAPS).await;
    assert!(plain.bytes.len() > 128 * 1024);
    assert!(!plain.headers.contains_key("content-encoding"));
    assert_eq!(plain.headers["content-length"], plain.bytes.len().to_string());
    let packed = server.call(Method::GET, MAPS, &gzip, Bytes::new()).await;
    assert_eq!(packed.headers["content-encoding"], "gzip");
    assert_eq!(packed.headers["vary"], "Accept-Encoding");
    assert!(packed.bytes.len() < plain.bytes.len() / 10);
    let mut unpacked = Vec::new();
    flate2::read::GzDecoder::new(packed.bytes.as_ref()).read_to_end(&mut unpacked).expect("gzip");
    assert_eq!(unpacked, plain.bytes);

    // The limit itself is not above the limit.
    let path = format!("{MAPS}/exact");
    let with = |length: usize| json!({"metadata": {"name": "exact"}, "data": {"d": "x".repeat(length)}});
    server.post(MAPS, with(100_000)).await.ok();
    let rest = server.get(&path).await.bytes.len() - 100_000;
    for (length, encoding) in [(128 * 1024, None), (128 * 1024 + 1, Some("gzip"))] {
        server.replace(&path, with(length - rest)).await.ok();
        assert_eq!(server.get(&path).await.bytes.len(), length);
        let packed = server.call(Method::GET, &path, &gzip, Bytes::new()).await;
        assert_eq!(packed.headers.get("content-encoding").and_then(|value| value.to_str().ok()), encoding, "{length}");
    }
}

#[tokio::test(start_paused = true)]
async fn list_items_of_built_in_kinds_have_no_kind() {
    let server = server();
    server.map("a").await;
    let list = server.get(MAPS).await;
    let prefix = "{\"kind\":\"ConfigMapList\",\"apiVersion\":\"v1\",\"metadata\":{\"resourceVersion\":\"6\"},\
                  \"items\":[{\"metadata\":{\"name\":\"a\",\"namespace\":\"default\",\"uid\":\"";
    assert!(list.text().starts_with(prefix), "{}", list.text());
    assert!(list.text().ends_with("}]}\n"));
}

#[tokio::test(start_paused = true)]
async fn custom_resources_have_sorted_keys_and_their_kind() {
    let server = server();
    let orders =
        CustomResource::namespaced("shop.example.com", "v1", "Order", "orders").version("v1beta1").with_status();
    server.register(orders).expect("a kind");
    let order = json!({
        "apiVersion": "shop.example.com/v1", "kind": "Order", "metadata": {"name": "a"}, "spec": {"z": 1, "b": 2},
        "status": {"q": 1}, "abacus": true,
    });
    let created = server.post(ORDERS, order).await;
    let uid = text(&created.ok()["metadata"]["uid"]);
    let object = format!(
        "\"abacus\":true,\"kind\":\"Order\",\"metadata\":{{\"creationTimestamp\":\"2026-11-15T12:00:00Z\",\"generation\":1,\
         \"managedFields\":[{{\"apiVersion\":\"shop.example.com/v1\",\"fieldsType\":\"FieldsV1\",\"fieldsV1\":{{\"f:abacus\":{{}},\
         \"f:spec\":{{\".\":{{}},\"f:b\":{{}},\"f:z\":{{}}}}}},\"manager\":\"unknown\",\"operation\":\"Update\",\
         \"time\":\"2026-11-15T12:00:00Z\"}}],\"name\":\"a\",\"namespace\":\"default\",\"resourceVersion\":\"6\",\"uid\":\"{uid}\"}},\"spec\":{{\"b\":2,\"z\":1}}}}"
    );
    let v1 = format!("{{\"apiVersion\":\"shop.example.com/v1\",{object}");
    assert_eq!(created.text(), format!("{v1}\n"));
    let list = format!(
        "{{\"apiVersion\":\"shop.example.com/v1\",\"items\":[{v1}],\"kind\":\"OrderList\",\"metadata\":{{\"continue\":\"\",\
         \"resourceVersion\":\"6\"}}}}\n"
    );
    assert_eq!(server.get(ORDERS).await.text(), list);
    // Other versions differ in nothing but their name.
    let beta = server.get("/apis/shop.example.com/v1beta1/namespaces/default/orders/a").await;
    assert_eq!(beta.text(), format!("{{\"apiVersion\":\"shop.example.com/v1beta1\",{object}\n"));
    let mut watch = server.watch("/apis/shop.example.com/v1beta1/orders?watch=true&resourceVersion=5").await;
    assert_eq!(watch.next().await.expect("an event")["object"], beta.ok());
    // Their metadata alone is written in the usual order.
    let partial = server.get_as(&format!("{ORDERS}/a"), PARTIAL).await;
    assert!(
        partial.text().contains("\"metadata\":{\"name\":\"a\",\"namespace\":\"default\",\"uid\":"),
        "{}",
        partial.text()
    );

    let failure = server.post(ORDERS, json!({"metadata": {"name": "c"}})).await.failure();
    assert_eq!(failure.0, 400);
    let failure = server
        .replace(
            &format!("{ORDERS}/a"),
            json!({
                "apiVersion": "shop.example.com/v1", "kind": "Order", "metadata": {"name": "a"},
            }),
        )
        .await
        .failure();
    let message = "orders.shop.example.com \"a\" is invalid: metadata.resourceVersion: Invalid value: 0: must be specified \
                   for an update";
    assert_eq!(failure, (422, "Invalid".to_owned(), message.to_owned()));
}
