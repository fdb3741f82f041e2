//! Objects as rows: what `kubectl get` asks for.

use bytes::Bytes;
use http::Method;
use serde_json::{Value, json};
use watchkeeper_apiserver::{ApiServer, CustomResource, Fault, Match};

use crate::support::*;

const TABLE: &str = "application/json;as=Table;v=v1;g=meta.k8s.io";
const BETA: &str = "application/json;as=Table;v=v1beta1;g=meta.k8s.io";
const STREAM: &str = "watch=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true";

/// A config map with two entries.
async fn map(server: &ApiServer, name: &str) -> Value {
    server.post(MAPS, json!({"metadata": {"name": name}, "data": {"x": "1", "y": "2"}})).await.ok()
}

fn column_names(table: &Value) -> Vec<String> {
    table["columnDefinitions"].as_array().into_iter().flatten().map(|column| text(&column["name"])).collect()
}

#[tokio::test(start_paused = true)]
async fn c30_a_list_is_a_table_with_a_row_for_each_object() {
    let server = server();
    let (first, second) = (map(&server, "a").await, map(&server, "b").await);
    tokio::time::advance(seconds(130)).await;
    let list = server.get_as(MAPS, TABLE).await;
    assert_eq!(list.headers["content-type"], "application/json");
    let head = "{\"kind\":\"Table\",\"apiVersion\":\"meta.k8s.io/v1\",\"metadata\":{\"resourceVersion\":\"7\"},\
                \"columnDefinitions\":[{\"name\":\"Name\",\"type\":\"string\",\"format\":\"name\",\"description\":\"Name must";
    assert!(list.text().starts_with(head), "{}", list.text());
    let table = list.ok();
    assert_eq!(column_names(&table), ["Name", "Data", "Age"]);
    let row = |cells: Value, object: &Value| {
        let meta =
            json!({"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": object["metadata"]});
        json!({"cells": cells, "object": meta})
    };
    assert_eq!(table["rows"], json!([row(json!(["a", 2, "2m10s"]), &first), row(json!(["b", 2, "2m10s"]), &second)]));

    // A page says how it goes on.
    let page = server.get_as(&format!("{MAPS}?limit=1"), TABLE).await.ok();
    assert_eq!(page["metadata"]["remainingItemCount"], 1);
    let token = text(&page["metadata"]["continue"]);
    let rest = server.get_as(&format!("{MAPS}?limit=1&continue={token}"), TABLE).await.ok();
    assert_eq!((page["rows"][0]["cells"][0].as_str(), rest["rows"][0]["cells"][0].as_str()), (Some("a"), Some("b")));
    assert_eq!(rest["metadata"], json!({"resourceVersion": "7"}));

    // Without objects there are columns, and Go's two kinds of nothing.
    let empty = server.get_as(PODS, TABLE).await.ok();
    assert_eq!((empty["rows"].clone(), column_names(&empty).len()), (json!([]), 9));
    let empty = server.get_as("/api/v1/limitranges", TABLE).await.ok();
    assert_eq!((empty["rows"].clone(), column_names(&empty)), (Value::Null, vec!["Name".into(), "Created At".into()]));
}

#[tokio::test(start_paused = true)]
async fn c30_one_object_is_a_table_with_one_row() {
    let server = server();
    let object = map(&server, "a").await;
    let one = server.get_as(&format!("{MAPS}/a"), TABLE).await.ok();
    assert_eq!(one["metadata"], json!({"resourceVersion": "6"}));
    assert_eq!(one["rows"][0]["cells"], json!(["a", 2, "0s"]));
    assert_eq!(one["rows"][0]["object"]["metadata"], object["metadata"]);
    // What is written is shown in the same way.
    let headers = [("accept", TABLE), ("content-type", "application/json")];
    let body = Bytes::from(config_map("b").to_string());
    let created = server.call(Method::POST, MAPS, &headers, body.clone()).await;
    assert_eq!((created.status, created.ok()["rows"][0]["cells"].clone()), (201, json!(["b", 0, "0s"])));
    let preview = config_map("c").to_string().into();
    let preview = server.call(Method::POST, &format!("{MAPS}?dryRun=All"), &headers, preview).await.ok();
    assert_eq!((preview["metadata"].clone(), preview["rows"][0]["cells"][0].clone()), (json!({}), json!("c")));
    // Failures, and what is left of a deletion, are a `Status`.
    assert_eq!(server.get_as(&format!("{MAPS}/c"), TABLE).await.failure().0, 404);
    let deleted = server.call(Method::DELETE, &format!("{MAPS}/b"), &headers[..1], Bytes::new()).await;
    assert_eq!(deleted.ok()["kind"], "Status");
    let all = server.call(Method::DELETE, MAPS, &headers[..1], Bytes::new()).await.ok();
    assert_eq!((all["kind"].clone(), all["rows"][0]["cells"][0].clone()), (json!("Table"), json!("a")));
}

#[tokio::test(start_paused = true)]
async fn c30_a_row_comes_with_the_object_its_metadata_or_nothing() {
    let server = server();
    let object = map(&server, "a").await;
    let row = async |include: &str| {
        server.get_as(&format!("{MAPS}/a?includeObject={include}"), TABLE).await.ok()["rows"][0].clone()
    };
    assert_eq!(row("None").await, json!({"cells": ["a", 2, "0s"], "object": null}));
    assert_eq!(row("Object").await["object"], object);
    assert_eq!(row("Metadata").await, row("").await);
    assert_eq!(row("Metadata").await["object"]["kind"], "PartialObjectMetadata");

    let message = "Unable to convert to Table as requested: includeObject: Invalid value: \"bogus\": must be 'Metadata', \
                   'Object', 'None', or empty";
    for path in [MAPS, &format!("{MAPS}/a")] {
        for query in ["includeObject=bogus", "includeObject=bogus&watch=true"] {
            let failure = server.get_as(&format!("{path}?{query}"), TABLE).await.failure();
            assert_eq!(failure, (400, "BadRequest".to_owned(), message.to_owned()));
        }
    }
    // Who asks for no table may ask for any object.
    assert_eq!(server.get(&format!("{MAPS}?includeObject=bogus")).await.status, 200);
}

#[tokio::test(start_paused = true)]
async fn c30_only_the_first_event_of_a_watch_has_columns() {
    let server = server();
    let first = map(&server, "a").await;
    let mut watch = server.watch_as(&format!("{MAPS}?watch=true&resourceVersion=5"), TABLE).await;
    let added = watch.next().await.expect("an event");
    assert_eq!((added["type"].clone(), added["object"]["kind"].clone()), (json!("ADDED"), json!("Table")));
    assert_eq!(column_names(&added["object"]), ["Name", "Data", "Age"]);
    assert_eq!(added["object"]["metadata"], json!({"resourceVersion": "6"}));
    assert_eq!(added["object"]["rows"][0]["object"]["metadata"], first["metadata"]);
    tokio::time::advance(seconds(5)).await;
    server.merge(&format!("{MAPS}/a"), json!({"data": {"z": "3"}})).await.ok();
    let modified = watch.next().await.expect("an event");
    let table = &modified["object"];
    assert_eq!((modified["type"].clone(), table["columnDefinitions"].clone()), (json!("MODIFIED"), Value::Null));
    assert_eq!(table["rows"][0]["cells"], json!(["a", 3, "5s"]));
    server.delete(&format!("{MAPS}/a")).await.ok();
    let deleted = watch.next().await.expect("an event");
    assert_eq!(deleted["type"], "DELETED");
    assert_eq!(deleted["object"]["metadata"], json!({"resourceVersion": "8"}));
    assert_eq!(deleted["object"]["rows"][0]["object"]["metadata"]["resourceVersion"], "8");

    // The aggregator's own kind always has them.
    let service = json!({"metadata": {"name": "v1.x.test"}, "spec": {}});
    server.post("/apis/apiregistration.k8s.io/v1/apiservices", service).await.ok();
    let mut watch = server.watch_as(&format!("/apis/apiregistration.k8s.io/v1/apiservices?{STREAM}"), TABLE).await;
    for _ in 0..2 {
        assert_eq!(column_names(&watch.next().await.expect("an event")["object"]).len(), 4);
    }
}

#[tokio::test(start_paused = true)]
async fn c30_bookmarks_of_a_table_watch_have_a_row_without_a_name() {
    let server = server();
    map(&server, "a").await;
    let mut watch = server.watch_as(&format!("{MAPS}?{STREAM}&includeObject=None"), TABLE).await;
    let added = watch.next().await.expect("an event");
    assert_eq!(added["object"]["rows"], json!([{"cells": ["a", 2, "0s"], "object": null}]));
    // Who wants no objects must see the end of the initial events all the same.
    let metadata = json!({"resourceVersion": "6", "annotations": {"k8s.io/initial-events-end": "true"}});
    let partial = json!({"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": metadata});
    let table = |columns: Value, object: Value| {
        let rows = json!([{"cells": ["", 0, "<unknown>"], "object": object}]);
        let (kind, version) = ("Table", "meta.k8s.io/v1");
        let metadata = json!({"resourceVersion": "6"});
        let table = json!({
            "kind": kind, "apiVersion": version, "metadata": metadata, "columnDefinitions": columns, "rows": rows,
        });
        json!({"type": "BOOKMARK", "object": table})
    };
    assert_eq!(watch.next().await, Some(table(Value::Null, partial)));
    // Later ones show nothing.
    assert_eq!(watch.next().await, Some(table(Value::Null, Value::Null)));

    // On an empty collection the bookmark is the first event, and has the columns.
    let mut watch = server.watch_as(&format!("{PODS}?{STREAM}&includeObject=Object"), TABLE).await;
    let bookmark = watch.next().await.expect("a bookmark");
    assert_eq!(column_names(&bookmark["object"]).len(), 9);
    let row = &bookmark["object"]["rows"][0];
    assert_eq!(row["cells"], json!(["", "0/0", "", "0", "<unknown>", "<none>", "<none>", "<none>", "<none>"]));
    assert_eq!((row["object"]["kind"].clone(), row["object"]["metadata"].clone()), (json!("Pod"), metadata));
}

#[tokio::test(start_paused = true)]
async fn c30_an_expired_table_watch_ends_with_a_status() {
    let server = server();
    map(&server, "a").await;
    map(&server, "b").await;
    server.storage().compact(7);
    let mut watch = server.watch_as(&format!("{MAPS}?watch=true&resourceVersion=5"), TABLE).await;
    let error = watch.next().await.expect("an event");
    assert_eq!((error["type"].clone(), error["object"]["kind"].clone()), (json!("ERROR"), json!("Status")));
    assert_eq!(error["object"]["code"], 410);
}

#[tokio::test(start_paused = true)]
async fn c30_tables_of_unknown_versions_are_not_acceptable() {
    let server = server();
    map(&server, "a").await;
    let beta = server.get_as(MAPS, BETA).await.ok();
    assert_eq!((beta["kind"].clone(), beta["apiVersion"].clone()), (json!("Table"), json!("meta.k8s.io/v1beta1")));
    assert_eq!(beta["rows"][0]["object"]["apiVersion"], "meta.k8s.io/v1beta1");
    let unknown = TABLE.replace("v=v1", "v=v2");
    assert_eq!(server.get_as(MAPS, &unknown).await.failure().0, 406);
    assert_eq!(server.get_as(MAPS, &format!("{unknown},application/json")).await.ok()["kind"], "ConfigMapList");
    // As kubectl asks.
    let accept = format!("{TABLE},{BETA},application/json");
    assert_eq!(server.get_as(MAPS, &accept).await.ok()["apiVersion"], "meta.k8s.io/v1");
}

#[tokio::test(start_paused = true)]
async fn custom_resources_have_a_name_and_an_age() {
    let server = server();
    let orders = CustomResource::namespaced("shop.example.com", "v1", "Order", "orders").version("v1beta1");
    server.register(orders).expect("a kind");
    let path = "/apis/shop.example.com/v1/namespaces/default/orders";
    assert_eq!(server.get_as(path, TABLE).await.ok()["rows"], json!([]));
    let order = json!({"apiVersion": "shop.example.com/v1", "kind": "Order", "metadata": {"name": "a"}});
    server.post(path, order).await.ok();
    let beta = server.get("/apis/shop.example.com/v1beta1/namespaces/default/orders/a").await.ok();
    let path = "/apis/shop.example.com/v1beta1/orders";
    let list = server.get_as(&format!("{path}?includeObject=Object"), TABLE).await.ok();
    let columns = list["columnDefinitions"].as_array().expect("columns");
    let shown: Vec<_> = columns.iter().map(|column| (text(&column["name"]), text(&column["type"]))).collect();
    assert_eq!(shown, [("Name".to_owned(), "string".to_owned()), ("Age".to_owned(), "date".to_owned())]);
    assert_eq!(list["rows"], json!([{"cells": ["a", "0s"], "object": beta}]));
    let mut watch = server.watch_as(&format!("{path}?{STREAM}"), TABLE).await;
    watch.next().await.expect("an event");
    let bookmark = watch.next().await.expect("a bookmark");
    assert_eq!(bookmark["object"]["rows"][0]["cells"], json!(["", null]));
}

#[tokio::test(start_paused = true)]
async fn pods_that_are_done_are_marked_in_their_row() {
    let server = server();
    let pod = json!({"metadata": {"name": "a"}, "spec": {"containers": [{"name": "c", "image": "i"}]}});
    server.post(PODS, pod).await.ok();
    server.merge(&format!("{PODS}/a/status"), json!({"status": {"phase": "Succeeded"}})).await.ok();
    let row = server.get_as(&format!("{PODS}/a?includeObject=None"), TABLE).await.ok()["rows"][0].clone();
    assert_eq!(row["cells"], json!(["a", "0/1", "Succeeded", "0", "0s", "<none>", "<none>", "<none>", "<none>"]));
    let message = "The pod has completed successfully.";
    let condition = json!({"type": "Completed", "status": "True", "reason": "Succeeded", "message": message});
    assert_eq!(row["conditions"], json!([condition]));
}

#[tokio::test(start_paused = true)]
async fn faults_happen_to_rows_as_they_happen_to_objects() {
    let server = server();
    for name in ["a", "b"] {
        map(&server, name).await;
    }
    let names = |table: &Value| -> Vec<String> {
        table["rows"].as_array().into_iter().flatten().map(|row| text(&row["cells"][0])).collect()
    };
    let faults = server.faults();
    for (fault, rest) in [
        (Fault::DropEvent { nth: 1 }, vec!["b"]),
        (Fault::DuplicateEvent { nth: 2 }, vec!["a", "b", "b"]),
        (Fault::Oversize { nth: 1, bytes: 5000 }, vec!["a", "b"]),
    ] {
        faults.on(Match::list("configmaps").once()).then(fault);
        assert_eq!(names(&server.get_as(&format!("{MAPS}?includeObject=Object"), TABLE).await.ok()), rest);
    }
    faults.on(Match::list("configmaps").once()).then(Fault::Truncate);
    assert!(serde_json::from_slice::<Value>(&server.get_as(MAPS, TABLE).await.bytes).is_err());
    faults.on(Match::list("configmaps").once()).then(Fault::status(429, "TooManyRequests"));
    assert_eq!(server.get_as(MAPS, TABLE).await.failure().0, 429);

    server.merge(&format!("{MAPS}/a"), json!({"data": {"z": "3"}})).await.ok();
    let shown = |event: &Value| {
        let table = &event["object"];
        let row = &table["rows"][0];
        let inner = text(&row["object"]["metadata"]["resourceVersion"]);
        format!("{} {} {} {inner}", text(&event["type"]), row["cells"], text(&table["metadata"]["resourceVersion"]))
    };
    // The state before the newest comes once more, and the past after it.
    faults.on(Match::watch("configmaps").once()).then(Fault::OldState { nth: 1 });
    let mut watch = server.watch_as(&format!("{MAPS}?watch=true&resourceVersion=7"), TABLE).await;
    assert_eq!(shown(&watch.next().await.expect("an event")), r#"MODIFIED ["a",3,"0s"] 8 8"#);
    assert_eq!(shown(&watch.next().await.expect("an event")), r#"MODIFIED ["a",2,"0s"] 6 6"#);
    faults.on(Match::watch("configmaps").once()).then(Fault::Rewind { nth: 1, to: 6 });
    let mut watch = server.watch_as(&format!("{MAPS}?watch=true&resourceVersion=7"), TABLE).await;
    watch.next().await.expect("an event");
    let past =
        [watch.next().await.expect("an event"), watch.next().await.expect("an event")].map(|event| shown(&event));
    assert_eq!(past, [r#"DELETED ["b",2,"0s"] 6 6"#, r#"MODIFIED ["a",2,"0s"] 6 6"#]);
    faults.on(Match::watch("configmaps").once()).then(Fault::BookmarksLie { ahead: 5 });
    let mut watch = server.watch_as(&format!("{PODS}?{STREAM}"), TABLE).await;
    assert_eq!(shown(&watch.next().await.expect("a bookmark")).split(' ').next_back(), Some("8"));
    let mut watch = server.watch_as(&format!("{MAPS}?{STREAM}&fieldSelector=metadata.name=none"), TABLE).await;
    assert_eq!(shown(&watch.next().await.expect("a bookmark")), r#"BOOKMARK ["",0,"<unknown>"] 13 13"#);
}
