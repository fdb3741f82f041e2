//! Selectors, in lists and in watches.

use serde_json::{Value, json};

use crate::support::*;

fn labelled(name: &str, app: &str) -> Value {
    json!({"metadata": {"name": name, "labels": {"app": app}}})
}

#[tokio::test(start_paused = true)]
async fn c26_objects_that_begin_or_cease_to_match_come_and_go() {
    let server = server();
    let mut watch = server.watch(&format!("{MAPS}?watch=true&labelSelector=app%3Dweb&resourceVersion=5")).await;
    let label =
        async |app: &str| server.merge(&format!("{MAPS}/a"), json!({"metadata": {"labels": {"app": app}}})).await.ok();
    server.post(MAPS, labelled("a", "api")).await.ok();
    let begins = label("web").await;
    assert_eq!(watch.event().await, event("ADDED", &begins));
    let stays = server.merge(&format!("{MAPS}/a"), json!({"data": {"k": "v"}})).await.ok();
    assert_eq!(watch.event().await, event("MODIFIED", &stays));
    let ceases = label("api").await;
    // Who watches is told the last state that matched, with the version of the change.
    let deleted = watch.next().await.expect("an event");
    assert_eq!(shown(&deleted), event("DELETED", &ceases));
    assert_eq!(deleted["object"]["metadata"]["labels"]["app"], "web");
    assert_eq!(deleted["object"]["data"]["k"], "v");
    // What never matched is not heard of.
    server.post(MAPS, labelled("b", "api")).await.ok();
    server.delete(&format!("{MAPS}/a")).await.ok();
    assert_eq!(watch.events_for(seconds(5)).await, Vec::<String>::new());
    // The same from the past.
    let mut past = server.watch(&format!("{MAPS}?watch=true&labelSelector=app%3Dweb&resourceVersion=5")).await;
    let expected = [event("ADDED", &begins), event("MODIFIED", &stays), event("DELETED", &ceases)];
    assert_eq!(past.events_for(seconds(1)).await, expected);
}

#[tokio::test(start_paused = true)]
async fn c27_one_object_is_watched_by_its_name() {
    let server = server();
    let a = server.map("a").await;
    server.map("b").await;
    let mut watch = server.watch(&format!("{MAPS}?watch=true&fieldSelector=metadata.name%3Da")).await;
    assert_eq!(watch.event().await, event("ADDED", &a));
    server.map("aa").await;
    server.delete(&format!("{MAPS}/b")).await.ok();
    server.delete(&format!("{MAPS}/a")).await.ok();
    assert!(watch.event().await.starts_with("DELETED a@"));
    assert_eq!(server.get(&format!("{MAPS}?fieldSelector=metadata.name%3Daa")).await.names(), ["aa"]);
}

#[tokio::test(start_paused = true)]
async fn c28_fields_that_cannot_be_selected_by_are_refused() {
    let server = server();
    for (path, message) in [
        (format!("{PODS}?fieldSelector=foo%3Dbar"), "field label not supported: foo"),
        (format!("{PODS}?watch=true&fieldSelector=foo%3Dbar"), "field label not supported: foo"),
        (
            format!("{MAPS}?fieldSelector=a%3Db"),
            r#""a" is not a known field selector: only "metadata.name", "metadata.namespace""#,
        ),
        (format!("{PODS}?fieldSelector=foo"), "invalid selector: 'foo'; can't understand 'foo'"),
        (
            format!("{PODS}?fieldSelector=spec.nodeName%3Da%3Db"),
            "invalid field selector: unescaped character in value: 61",
        ),
        (
            format!("{PODS}?labelSelector=a+b"),
            "unable to parse requirement: found 'b', expected: in, notin, =, ==, !=, gt, lt",
        ),
    ] {
        let failure = server.get(&path).await.failure();
        assert_eq!(failure, (400, "BadRequest".to_owned(), message.to_owned()), "{path}");
    }
    // Those that can be, can be.
    for (name, node) in [("a", "n1"), ("b", "n2")] {
        server.post(PODS, json!({"metadata": {"name": name}, "spec": {"nodeName": node, "containers": [{"name": "c", "image": "i"}]}})).await.ok();
    }
    assert_eq!(server.get(&format!("{PODS}?fieldSelector=spec.nodeName%3Dn2")).await.names(), ["b"]);
    assert_eq!(server.get(&format!("{PODS}?fieldSelector=spec.host%3Dn2")).await.names(), ["b"]);
    assert_eq!(server.get(&format!("{PODS}?fieldSelector=status.phase%21%3DPending")).await.names(), [""; 0]);
}

/// The grammar itself is tested with the vectors of Go, 162 of them, beside the parser. Here all of them go through the
/// server.
#[tokio::test(start_paused = true)]
async fn c29_label_selectors_are_those_of_go() {
    let mut lines = include_str!("../../data/label-selectors.jsonl").lines();
    let sets: Vec<Value> = serde_json::from_str(lines.next().expect("sets")).expect("sets");
    let server = server();
    for (i, labels) in sets.iter().enumerate() {
        server.post(MAPS, json!({"metadata": {"name": format!("m{i}"), "labels": labels}})).await;
    }
    // One of the sets cannot be an object's.
    let stored: Vec<String> = server.get(MAPS).await.names();
    let mut count = 0;
    for line in lines {
        let vector: Value = serde_json::from_str(line).expect("a vector");
        let query: String = form_urlencoded::byte_serialize(text(&vector["selector"]).as_bytes()).collect();
        let reply = server.get(&format!("{MAPS}?labelSelector={query}")).await;
        match vector["matches"].as_array() {
            None => assert_eq!(reply.failure(), (400, "BadRequest".to_owned(), text(&vector["error"]))),
            Some(matches) => {
                let matching = matches.iter().enumerate().filter(|(_, matches)| **matches == json!(true));
                let names: Vec<String> =
                    matching.map(|(i, _)| format!("m{i}")).filter(|m| stored.contains(m)).collect();
                assert_eq!(reply.names(), names, "{vector}");
            }
        }
        count += 1;
    }
    assert!(count >= 60);
}
