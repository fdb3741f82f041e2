//! What a review found: inputs and orders of events that broke the server once.

use std::time::{Duration, Instant};

use bytes::Bytes;
use http::Method;
use serde_json::{Value, json};
use watchkeeper_apiserver::{ApiServer, CustomResource, Fault, Match};

use crate::support::*;

#[tokio::test(start_paused = true)]
async fn a_watch_without_an_end_in_sight_is_served() {
    let server = server();
    for seconds in ["9223372036854775807", "9223372036", "18000000000000000"] {
        let mut watch = server.watch(&format!("{MAPS}?watch=true&resourceVersion=5&timeoutSeconds={seconds}")).await;
        let name = format!("m{seconds}");
        server.map(&name).await;
        assert_eq!(watch.next().await.expect("an event")["type"], "ADDED");
        server.delete(&format!("{MAPS}/{name}")).await.ok();
    }
}

#[tokio::test(start_paused = true)]
async fn whoever_watched_before_a_load_is_told_to_list_again() {
    let path = std::env::temp_dir().join(format!("watchkeeper-apiserver-load-{}.jsonl", std::process::id()));
    let server = server();
    server.map("a").await;
    server.save(&path).expect("saved");
    let b = revision(&server.map("b").await);
    server.load(&path).expect("loaded");
    std::fs::remove_file(&path).expect("removed");
    assert_eq!(server.get(MAPS).await.names(), ["a"]);
    // The cache has `b`: if its watch went on, nobody would ever take that away.
    let mut watch = server.watch(&format!("{MAPS}?watch=true&resourceVersion={b}&timeoutSeconds=3")).await;
    assert_eq!(watch.next().await.expect("an error")["object"]["code"], 410);
    assert_eq!(server.get(&format!("{MAPS}?resourceVersion={b}&resourceVersionMatch=Exact")).await.status, 410);
    assert!(revision(&server.map("c").await) > b);
}

#[tokio::test(start_paused = true)]
async fn objects_outlive_the_registration_that_they_were_written_under() {
    let server = server();
    let orders = |version: &str| CustomResource::namespaced("shop.example.com", version, "Order", "orders");
    let path = "/apis/shop.example.com/v1/namespaces/default/orders";
    server.register(orders("v1").selectable(".spec.colour")).expect("registered");
    let order = |name: &str| {
        json!({"apiVersion": "shop.example.com/v1", "kind": "Order", "metadata": {"name": name},
               "spec": {"colour": "red", "size": "xl"}})
    };
    server.post(path, order("a")).await.ok();
    let then = revision(&server.post(path, order("b")).await.ok());
    server.delete(&format!("{path}/b")).await.ok();
    server
        .register(orders("v1beta1").version("v1").selectable(".spec.size").selectable(".spec.colour"))
        .expect("again");
    let beta = path.replace("/v1/", "/v1beta1/");
    for (path, version) in [(path, "shop.example.com/v1"), (beta.as_str(), "shop.example.com/v1beta1")] {
        let one = server.get(&format!("{path}/a")).await.ok();
        assert_eq!((one["apiVersion"].as_str(), one["kind"].as_str()), (Some(version), Some("Order")));
        assert_eq!(one["metadata"]["name"], "a");
        for query in [String::new(), format!("&resourceVersion={then}&resourceVersionMatch=Exact")] {
            let list = server.get(&format!("{path}?fieldSelector=metadata.name%3Da{query}")).await.ok();
            assert_eq!(list["items"][0]["apiVersion"], version, "{list}");
        }
        let names = |field: &str| format!("{path}?fieldSelector={field}");
        assert_eq!(server.get(&names("spec.size%3Dxl")).await.names(), ["a"]);
        assert_eq!(server.get(&names("spec.colour%3Dred")).await.names(), ["a"]);
        assert!(server.get(&names("spec.size%3Dred")).await.names().is_empty());
        let mut watch = server.watch(&format!("{path}?watch=true&resourceVersion={}", then - 1)).await;
        assert_eq!(watch.next().await.expect("b came")["object"]["apiVersion"], version);
        assert_eq!(watch.next().await.expect("b went")["object"]["apiVersion"], version);
    }
    server.merge(&format!("{path}/a"), json!({"spec": {"size": "s"}})).await.ok();
    assert_eq!(server.get(&format!("{path}?fieldSelector=spec.size%3Ds")).await.names(), ["a"]);
}

#[tokio::test(start_paused = true)]
async fn a_pod_with_a_negative_grace_period_can_be_deleted() {
    let server = server();
    let pod = json!({"metadata": {"name": "p", "finalizers": ["example.com/hold"]},
                     "spec": {"nodeName": "n1", "terminationGracePeriodSeconds": -5, "containers": [{"name": "c", "image": "i"}]}});
    server.post(PODS, pod).await.ok();
    let deleted = server.delete(&format!("{PODS}/p")).await.ok();
    assert_eq!(deleted["metadata"]["deletionGracePeriodSeconds"], 1);
    server.merge(&format!("{PODS}/p"), json!({"metadata": {"finalizers": null}})).await.ok();
    server.delete_with(&format!("{PODS}/p"), json!({"gracePeriodSeconds": 0})).await.ok();
    assert_eq!(server.get(&format!("{PODS}/p")).await.status, 404);
}

#[tokio::test(start_paused = true)]
async fn the_truth_of_long_ago_is_found_in_time() {
    let server = builder().journal(100_000).build();
    let map = |i: usize, data: &str| {
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": format!("m{i}"), "namespace": "default"},
               "data": {"a": data}})
    };
    for i in 0..4000 {
        server.put(map(i, "1")).expect("put");
    }
    let then = server.storage().revision();
    for i in 0..4000 {
        server.put(map(i, "2")).expect("put");
    }
    let began = Instant::now();
    let state = server.truth().at("configmaps", then).expect("the truth");
    assert_eq!(state.len(), 4000);
    assert!(state.objects().all(|object| object.revision() <= then));
    assert!(began.elapsed() < Duration::from_secs(1), "{:?}", began.elapsed());
}

#[tokio::test(start_paused = true)]
async fn a_patch_cannot_shift_a_long_array_ten_thousand_times() {
    let server = server();
    let zeros: Vec<u8> = vec![0; 700_000];
    // What is in a revision is anything.
    let revisions = "/apis/apps/v1/namespaces/default/controllerrevisions";
    server.post(revisions, json!({"metadata": {"name": "d"}, "revision": 1, "data": {"a": zeros}})).await.ok();
    let path = format!("{revisions}/d");
    for operation in [
        json!({"op": "add", "path": "/data/a/0", "value": 1}),
        json!({"op": "remove", "path": "/data/a/0"}),
        json!({"op": "move", "from": "/data/a/0", "path": "/data/a/1"}),
        json!({"op": "copy", "from": "/data/a/0", "path": "/data/a/0"}),
    ] {
        let began = Instant::now();
        let patch = Value::from(vec![operation.clone(); 10_000]);
        let reply = server.patch(&path, "application/json-patch+json", patch).await;
        assert_eq!(reply.status, 422, "{operation}");
        assert!(began.elapsed() < Duration::from_secs(3), "{operation}: {:?}", began.elapsed());
    }
    // What is added behind the others shifts nothing.
    let end = vec![json!({"op": "add", "path": "/data/a/-", "value": 1}); 10_000];
    server.patch(&path, "application/json-patch+json", end.into()).await.ok();
}

#[tokio::test(start_paused = true)]
async fn a_query_of_many_names_is_read_in_time() {
    let server = server();
    let query: Vec<String> = (0..13_000).map(|i| format!("{i:x}")).collect();
    let path = format!("/healthz?{}", query.join("&"));
    let began = Instant::now();
    assert_eq!(server.call(Method::GET, &path, &[], Bytes::new()).await.status, 200);
    assert!(began.elapsed() < Duration::from_millis(500), "{:?}", began.elapsed());
}

#[tokio::test(start_paused = true)]
async fn a_rewind_shows_a_watch_only_what_it_asked_for() {
    let server = server();
    let other = "/api/v1/namespaces/kube-system/configmaps";
    let map = |name: &str| json!({"metadata": {"name": name, "labels": {"app": "web"}}});
    server.post(MAPS, map("a")).await.ok();
    server.post(other, map("x")).await.ok();
    let then = server.storage().revision();
    server.delete(&format!("{other}/x")).await.ok();
    server.map("unlabelled").await;
    let now = server.storage().revision();
    server.faults().on(Match::watch("configmaps")).then(Fault::Rewind { nth: 1, to: then });
    let query = format!("{MAPS}?watch=true&resourceVersion={now}&labelSelector=app%3Dweb&timeoutSeconds=3");
    let mut watch = server.watch(&query).await;
    server.merge(&format!("{MAPS}/a"), json!({"data": {"a": "b"}})).await.ok();
    let mut seen = Vec::new();
    while let Some(event) = watch.next().await {
        seen.push(text(&event["object"]["metadata"]["name"]));
    }
    assert_eq!(seen, ["a", "a"]);
}

#[tokio::test(start_paused = true)]
async fn a_fault_of_a_list_s_items_leaves_other_answers_alone() {
    let server = server();
    let items = json!([{"key": "a", "path": "a"}]);
    let volumes = json!([{"name": "v", "configMap": {"name": "m", "items": items}}]);
    server.post(PODS, json!({"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "image": "i"}], "volumes": volumes}})).await.ok();
    server.faults().on(Match::any()).then(Fault::DropEvent { nth: 1 });
    let pod = server.get(&format!("{PODS}/p")).await.ok();
    assert_eq!(pod["spec"]["volumes"][0]["configMap"]["items"], items);
    assert!(server.get(PODS).await.names().is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_time_that_never_comes_is_no_panic() {
    let server: ApiServer = builder().bookmarks(Duration::MAX).build();
    server.faults().on(Match::watch("configmaps")).then(Fault::BookmarksLate { by: Duration::MAX });
    let query = "watch=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true";
    let mut watch = server.watch(&format!("{MAPS}?{query}&timeoutSeconds=30")).await;
    server.map("a").await;
    assert_eq!(watch.next().await.expect("an event")["type"], "ADDED");
}

#[cfg(unix)]
#[tokio::test(start_paused = true)]
async fn a_saved_file_is_for_its_owner_and_replaced_as_a_whole() {
    use std::os::unix::fs::PermissionsExt;
    let server = server();
    let folder = std::env::temp_dir().join(format!("watchkeeper-apiserver-save-{}", std::process::id()));
    std::fs::create_dir(&folder).expect("a folder");
    let path = folder.join("data");
    server.save(&path).expect("saved");
    // There are secrets in it.
    assert_eq!(std::fs::metadata(&path).expect("a file").permissions().mode() & 0o777, 0o600);
    let mut before = std::fs::File::open(&path).expect("opened");
    server.map("a").await;
    server.save(&path).expect("saved");
    // Whoever reads the old one reads it to its end.
    let old = std::io::read_to_string(&mut before).expect("read");
    assert!(old.starts_with("{\"revision\":5}"), "{old}");
    assert_eq!(std::fs::read_dir(&folder).expect("the folder").count(), 1);
    std::fs::remove_dir_all(&folder).expect("removed");
}

/// As recorded from a kube-apiserver 1.36: the answer is the page that was deleted.
#[tokio::test(start_paused = true)]
async fn a_deletion_of_a_collection_goes_no_further_than_its_limit() {
    let server = server();
    for name in ["a", "b", "c", "d"] {
        server.map(name).await;
    }
    let deleted = server.delete(&format!("{MAPS}?limit=2")).await;
    assert_eq!(deleted.names(), ["a", "b"]);
    assert_eq!(deleted.ok()["metadata"]["remainingItemCount"], 2);
    assert_eq!(server.get(MAPS).await.names(), ["c", "d"]);
    let token = text(&deleted.ok()["metadata"]["continue"]);
    assert_eq!(server.delete(&format!("{MAPS}?limit=2&continue={token}")).await.names(), ["c", "d"]);
    assert!(server.get(MAPS).await.names().is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_file_that_leaves_no_revisions_is_refused() {
    let path = std::env::temp_dir().join(format!("watchkeeper-apiserver-full-{}.jsonl", std::process::id()));
    let server = server();
    std::fs::write(&path, format!("{{\"revision\":{}}}\n", u64::MAX)).expect("written");
    let loaded = server.load(&path);
    std::fs::remove_file(&path).expect("removed");
    server.post("/api/v1/nodes", json!({"metadata": {"name": "n1"}})).await.ok();
    assert!(loaded.is_err());
}
