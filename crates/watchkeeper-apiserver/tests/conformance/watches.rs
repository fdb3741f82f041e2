//! Watches: where they begin, what they tell, and how they end.

use serde_json::{Value, json};
use tokio::time::Instant;
use watchkeeper_apiserver::{ApiServer, ExpiredWatch, History};

use crate::support::*;

const INITIAL: &str = "watch=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true";

async fn change(server: &ApiServer, name: &str, value: &str) -> Value {
    server.merge(&format!("{MAPS}/{name}"), json!({"data": {"key": value}})).await.ok()
}

#[tokio::test(start_paused = true)]
async fn c13_a_watch_from_a_version_tells_what_comes_after_it() {
    let server = server();
    let a = server.map("a").await;
    let b = server.map("b").await;
    let mut watch = server.watch(&format!("{MAPS}?watch=true&resourceVersion={}", revision(&a))).await;
    assert_eq!(watch.event().await, event("ADDED", &b));
    let changed = change(&server, "a", "1").await;
    assert_eq!(watch.event().await, event("MODIFIED", &changed));
    server.delete(&format!("{MAPS}/b")).await.ok();
    let deleted = watch.next().await.expect("an event");
    // A deletion has a version of its own, and shows the last state.
    assert_eq!(shown(&deleted), format!("DELETED b@{}", revision(&changed) + 1));
    assert_eq!(deleted["object"]["metadata"]["uid"], b["metadata"]["uid"]);
    assert_eq!(deleted["object"]["kind"], "ConfigMap");
    // Another kind and another namespace are not meant.
    server.post("/api/v1/namespaces/kube-system/configmaps", config_map("other")).await.ok();
    server.post("/api/v1/nodes", json!({"metadata": {"name": "n1"}})).await.ok();
    assert_eq!(watch.events_for(seconds(10)).await, Vec::<String>::new());
    // A version of the future is waited for in silence.
    let future = server.storage().revision() + 1;
    let mut watch = server.watch(&format!("{MAPS}?watch=true&resourceVersion={future}")).await;
    server.map("c").await;
    let d = server.map("d").await;
    assert_eq!(watch.event().await, event("ADDED", &d));
}

#[tokio::test(start_paused = true)]
async fn c14_a_watch_without_a_version_begins_with_what_is_there() {
    let server = server();
    let a = server.map("a").await;
    let b = server.map("b").await;
    let mut watch = server.watch(&format!("{MAPS}?watch=true")).await;
    assert_eq!(watch.event().await, event("ADDED", &a));
    assert_eq!(watch.event().await, event("ADDED", &b));
    let c = server.map("c").await;
    assert_eq!(watch.event().await, event("ADDED", &c));
}

#[tokio::test(start_paused = true)]
async fn c15_a_watch_from_version_zero_begins_with_what_is_there() {
    let server = server();
    let a = server.map("a").await;
    let mut watch = server.watch(&format!("{MAPS}?watch=true&resourceVersion=0")).await;
    assert_eq!(watch.event().await, event("ADDED", &a));
    let changed = change(&server, "a", "1").await;
    assert_eq!(watch.event().await, event("MODIFIED", &changed));
}

#[tokio::test(start_paused = true)]
async fn c16_a_watch_from_a_forgotten_version_is_told_so() {
    let server = server();
    let a = server.map("a").await;
    let b = server.map("b").await;
    server.compact(revision(&b));
    let path = format!("{MAPS}?watch=true&resourceVersion={}", revision(&a));
    let mut watch = server.watch(&path).await;
    let error = watch.next().await.expect("an event");
    assert_eq!(error["type"], "ERROR");
    let status = json!({
        "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "reason": "Expired", "code": 410,
        "message": format!("too old resource version: {} ({})", revision(&a), revision(&b)),
    });
    assert_eq!(error["object"], status);
    assert_eq!(watch.next().await, None);

    // The other way in which a kube-apiserver may say it.
    let server = builder().expired_watch(ExpiredWatch::Status).build();
    let a = server.map("a").await;
    server.map("b").await;
    server.compact(server.storage().revision());
    let reply = server.get(&format!("{MAPS}?watch=true&resourceVersion={}", revision(&a))).await;
    assert_eq!(reply.failure().0, 410);
    assert_eq!(reply.failure().1, "Expired");
}

#[tokio::test(start_paused = true)]
async fn c16_history_is_forgotten_by_count_and_by_age() {
    let opens = async |server: &ApiServer, version: u64| {
        let mut watch = server.watch(&format!("{MAPS}?watch=true&resourceVersion={version}&timeoutSeconds=1")).await;
        watch.next().await.is_none_or(|event| event["type"] != "ERROR")
    };
    let by_count = builder().history(History { changes: 2, ..History::default() }).build();
    let first = revision(&by_count.map("a").await);
    by_count.map("b").await;
    by_count.map("c").await;
    assert!(opens(&by_count, first).await);
    assert!(!opens(&by_count, first - 1).await);
    // Other kinds have windows of their own.
    for i in 0..5 {
        by_count.post("/api/v1/nodes", json!({"metadata": {"name": format!("n{i}")}})).await.ok();
    }
    assert!(opens(&by_count, first).await);

    let by_age = builder().history(History { age: seconds(60), ..History::default() }).build();
    let first = revision(&by_age.map("a").await);
    tokio::time::sleep(seconds(50)).await;
    let second = revision(&by_age.map("b").await);
    assert!(opens(&by_age, first - 1).await);
    tokio::time::sleep(seconds(20)).await;
    assert!(!opens(&by_age, first - 1).await);
    assert!(opens(&by_age, first).await);
    tokio::time::sleep(seconds(600)).await;
    assert!(opens(&by_age, second).await);
}

#[tokio::test(start_paused = true)]
async fn c17_a_streaming_list_is_all_objects_then_the_marked_bookmark_then_changes() {
    let server = server();
    let a = server.map("a").await;
    let b = server.map("b").await;
    let mut watch = server.watch(&format!("{MAPS}?{INITIAL}")).await;
    let changed = change(&server, "a", "1").await;
    assert_eq!(watch.event().await, event("ADDED", &a));
    assert_eq!(watch.event().await, event("ADDED", &b));
    let bookmark = watch.next().await.expect("a bookmark");
    let expected = json!({"type": "BOOKMARK", "object": {
        "kind": "ConfigMap", "apiVersion": "v1",
        "metadata": {"resourceVersion": revision(&b).to_string(), "annotations": {"k8s.io/initial-events-end": "true"}},
    }});
    assert_eq!(bookmark, expected);
    assert_eq!(watch.event().await, event("MODIFIED", &changed));
}

#[tokio::test(start_paused = true)]
async fn c18_a_streaming_list_of_nothing_has_its_bookmark() {
    let server = server();
    let mut watch = server.watch(&format!("{MAPS}?{INITIAL}")).await;
    assert_eq!(watch.event().await, "BOOKMARK end@5");
    // So has the old way of asking for it.
    let mut watch = server.watch(&format!("{MAPS}?watch=true&allowWatchBookmarks=true")).await;
    assert_eq!(watch.event().await, "BOOKMARK end@5");
    // One that must not be older than the future fails within the stream.
    let start = Instant::now();
    let mut watch = server.watch(&format!("{MAPS}?{INITIAL}&resourceVersion=1000")).await;
    let error = watch.next().await.expect("an event");
    assert_eq!((error["type"].as_str(), error["object"]["code"].as_u64()), (Some("ERROR"), Some(504)));
    assert_eq!(start.elapsed().as_secs(), 3);
    assert_eq!(watch.next().await, None);
}

#[tokio::test(start_paused = true)]
async fn c19_initial_events_need_their_match() {
    let server = server();
    let not_older =
        "resourceVersionMatch: Forbidden: sendInitialEvents requires setting resourceVersionMatch to NotOlderThan";
    for (query, text) in [
        ("sendInitialEvents=true", not_older.to_owned()),
        ("sendInitialEvents=false", not_older.to_owned()),
        (
            "sendInitialEvents=true&resourceVersionMatch=Exact",
            format!(
                r#"[{not_older}, resourceVersionMatch: Unsupported value: "Exact": supported values: "NotOlderThan"]"#
            ),
        ),
        (
            "resourceVersionMatch=NotOlderThan",
            "resourceVersionMatch: Forbidden: resourceVersionMatch is forbidden for watch unless sendInitialEvents is \
             provided"
                .to_owned(),
        ),
        (
            "sendInitialEvents=true&resourceVersionMatch=NotOlderThan&continue=abc",
            "resourceVersionMatch: Forbidden: resourceVersionMatch is forbidden when continue is provided".to_owned(),
        ),
    ] {
        let failure = server.get(&format!("{MAPS}?watch=true&{query}")).await.failure();
        let message = format!("ListOptions.meta.k8s.io \"\" is invalid: {text}");
        assert_eq!(failure, (422, "Invalid".to_owned(), message), "{query}");
    }
    let failure = server.get(&format!("{MAPS}?watch=true&resourceVersion=abc")).await.failure();
    let message = r#"resourceVersion: Invalid value: "abc": strconv.ParseUint: parsing "abc": invalid syntax"#;
    assert_eq!(failure, (500, String::new(), message.to_owned()));
}

#[tokio::test(start_paused = true)]
async fn c20_initial_events_may_be_declined() {
    let server = server();
    let a = server.map("a").await;
    let query = "watch=true&sendInitialEvents=false&resourceVersionMatch=NotOlderThan";
    let mut from_now = server.watch(&format!("{MAPS}?{query}")).await;
    let mut from_then = server.watch(&format!("{MAPS}?{query}&resourceVersion={}", revision(&a) - 1)).await;
    let b = server.map("b").await;
    assert_eq!(from_now.event().await, event("ADDED", &b));
    assert_eq!(from_then.event().await, event("ADDED", &a));
    assert_eq!(from_then.event().await, event("ADDED", &b));
}

#[tokio::test(start_paused = true)]
async fn c21_bookmarks_come_only_if_allowed() {
    let server = server();
    let path = format!("{MAPS}?watch=true&resourceVersion=5&timeoutSeconds=200");
    let mut without = server.watch(&path).await;
    let mut with = server.watch(&format!("{path}&allowWatchBookmarks=true")).await;
    let (nothing, events) = tokio::join!(without.rest_of_it(), with.rest_of_it());
    assert_eq!(nothing, Vec::<String>::new());
    // About one a minute, and one shortly before the end.
    assert!((3..=4).contains(&events.len()), "{events:?}");
    assert!(events.iter().all(|event| event == "BOOKMARK @5"), "{events:?}");

    let server = builder().bookmarks(seconds(10)).bookmark_jitter(0.0).build();
    let start = Instant::now();
    let path = format!("{MAPS}?watch=true&resourceVersion=5&timeoutSeconds=25&allowWatchBookmarks=true");
    let mut watch = server.watch(&path).await;
    let mut times = Vec::new();
    while watch.next().await.is_some() {
        times.push(start.elapsed().as_secs());
    }
    assert_eq!(times, [10, 20, 23]);
}

#[tokio::test(start_paused = true)]
async fn c22_a_bookmark_is_never_behind_what_was_told() {
    let server = builder().bookmarks(seconds(10)).bookmark_jitter(0.0).build();
    let path = format!("{MAPS}?watch=true&resourceVersion=5&timeoutSeconds=300&allowWatchBookmarks=true");
    let mut watch = server.watch(&path).await;
    let reader = tokio::spawn(async move {
        let mut events = Vec::new();
        while let Some(event) = watch.next().await {
            events.push((text(&event["type"]), revision(&event["object"])));
        }
        events
    });
    for i in 0..40 {
        tokio::time::sleep(seconds(7)).await;
        match i % 2 {
            0 => server.map(&format!("m{i}")).await,
            _ => server.post("/api/v1/nodes", json!({"metadata": {"name": format!("n{i}")}})).await.ok(),
        };
    }
    let events = reader.await.expect("events");
    assert_eq!(events.iter().filter(|(event, _)| event == "ADDED").count(), 20);
    assert!(events.iter().filter(|(event, _)| event == "BOOKMARK").count() >= 20);
    assert!(events.windows(2).all(|pair| pair[0].1 <= pair[1].1), "{events:?}");
    // Bookmarks show the progress of everything, not only of this kind.
    assert!(events.iter().any(|(event, version)| event == "BOOKMARK" && version % 2 == 1));
}

#[tokio::test(start_paused = true)]
async fn c23_a_timeout_ends_the_stream_cleanly() {
    let server = server();
    let start = Instant::now();
    let mut watch = server.watch(&format!("{MAPS}?watch=true&timeoutSeconds=2")).await;
    assert_eq!(watch.rest_of_it().await, Vec::<String>::new());
    assert_eq!(start.elapsed(), seconds(2));
    // Without one, it lasts between half an hour and an hour.
    let mut watch = server.watch(&format!("{MAPS}?watch=true")).await;
    assert_eq!(watch.rest_of_it().await, Vec::<String>::new());
    let lasted = start.elapsed() - seconds(2);
    assert!((seconds(1800)..=seconds(3600)).contains(&lasted), "{lasted:?}");
}

#[tokio::test(start_paused = true)]
async fn c24_all_watches_end_with_the_server() {
    let server = server();
    let mut first = server.watch(&format!("{MAPS}?watch=true")).await;
    let mut second = server.watch(&format!("{PODS}?watch=true")).await;
    let service = server.service();
    let start = Instant::now();
    drop(server);
    assert_eq!(first.next().await, None);
    assert_eq!(second.next().await, None);
    assert_eq!(start.elapsed().as_secs(), 0);
    // And nothing is answered any more.
    let request = http::Request::get("/api").body(http_body_util::Empty::<bytes::Bytes>::new()).expect("a request");
    assert!(tower::ServiceExt::oneshot(service, request).await.is_err());
}

#[tokio::test(start_paused = true)]
async fn c25_a_slow_reader_is_cut_off_and_can_go_on() {
    let server = builder().watch_buffer(10).build();
    let mut slow = server.watch(&format!("{MAPS}?watch=true&resourceVersion=5")).await;
    let mut quick = server.watch(&format!("{MAPS}?watch=true&resourceVersion=5")).await;
    let mut told = Vec::new();
    for i in 0..30 {
        let map = server.map(&format!("m-{i:02}")).await;
        told.push(event("ADDED", &map));
        assert_eq!(&quick.event().await, told.last().expect("an event"));
    }
    let before = slow.rest_of_it().await;
    assert_eq!(before, told[..10]);
    let last = before.last().and_then(|event| event.split('@').nth(1)).expect("a version").to_owned();
    let mut again = server.watch(&format!("{MAPS}?watch=true&resourceVersion={last}")).await;
    assert_eq!(again.events_for(seconds(1)).await, told[10..]);
}

#[tokio::test(start_paused = true)]
async fn a_change_is_encoded_once_for_all_watchers() {
    use http_body_util::BodyExt;
    let server = server();
    let mut bodies = Vec::new();
    for _ in 0..3 {
        let path = format!("{MAPS}?watch=true&resourceVersion=5");
        bodies.push(server.send(http::Method::GET, &path, &[], bytes::Bytes::new()).await.into_body());
    }
    server.map("a").await;
    let mut places = Vec::new();
    for body in &mut bodies {
        let data = body.frame().await.expect("a frame").expect("data").into_data().expect("data");
        places.push(data.as_ptr());
    }
    assert!(places.iter().all(|place| *place == places[0]));
}

#[tokio::test(start_paused = true)]
async fn the_old_paths_of_watches_work() {
    let server = server();
    let a = server.map("a").await;
    server.map("b").await;
    let mut watch = server.watch("/api/v1/watch/namespaces/default/configmaps?timeoutSeconds=1").await;
    assert_eq!(watch.rest_of_it().await.len(), 2);
    let mut watch = server.watch("/api/v1/watch/namespaces/default/configmaps/a?timeoutSeconds=1").await;
    assert_eq!(watch.rest_of_it().await, [event("ADDED", &a)]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_change_is_lost_between_list_and_watch_while_many_write() {
    let server = server();
    let writers: Vec<_> = (0..4)
        .map(|writer| {
            let server = server.clone();
            tokio::spawn(async move {
                for i in 0..100 {
                    let name = format!("w{writer}-{}", i % 7);
                    match i % 3 {
                        2 => drop(server.delete(&format!("{MAPS}/{name}")).await),
                        _ => {
                            server.post(MAPS, config_map(&name)).await;
                            server.merge(&format!("{MAPS}/{name}"), json!({"data": {"i": i.to_string()}})).await;
                        }
                    }
                    tokio::task::yield_now().await;
                }
            })
        })
        .collect();
    let readers: Vec<_> = (0..4)
        .map(|_| {
            let server = server.clone();
            tokio::spawn(async move {
                let list = server.get(MAPS).await;
                let at = list.revision();
                let mut cache: std::collections::BTreeMap<String, u64> = list.ok()["items"]
                    .as_array()
                    .expect("items")
                    .iter()
                    .map(|item| (text(&item["metadata"]["name"]), revision(item)))
                    .collect();
                let mut watch = server.watch(&format!("{MAPS}?watch=true&resourceVersion={at}&timeoutSeconds=2")).await;
                while let Some(event) = watch.next().await {
                    let object = &event["object"];
                    let name = text(&object["metadata"]["name"]);
                    match event["type"].as_str() {
                        Some("ADDED") => assert_eq!(cache.insert(name, revision(object)), None),
                        Some("MODIFIED") => assert!(cache.insert(name, revision(object)).is_some()),
                        Some("DELETED") => assert!(cache.remove(&name).is_some()),
                        other => panic!("{other:?}"),
                    }
                }
                cache
            })
        })
        .collect();
    for writer in writers {
        writer.await.expect("written");
    }
    let maps = server.kind("", "configmaps").expect("a kind");
    for reader in readers {
        let cache = reader.await.expect("read");
        let objects = server.storage().objects(&maps);
        let truth: std::collections::BTreeMap<String, u64> =
            objects.iter().map(|object| (object.name().to_owned(), object.revision())).collect();
        assert_eq!(cache, truth);
    }
}
