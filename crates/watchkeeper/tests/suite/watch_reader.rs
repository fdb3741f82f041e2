//! How events are read out of the bytes of a watch, whatever comes.

use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};

use k8s_openapi::api::core::v1::Pod;
use watchkeeper::{ErrorKind, ListOptions, ListWatch, ListerWatcher as _, WatchEvent};

use crate::support::*;

fn bookmark(version: &str, annotations: &str) -> String {
    let object = format!(
        r#"{{"kind":"Pod","apiVersion":"v1","metadata":{{"resourceVersion":"{version}","creationTimestamp":null{annotations}}},"spec":{{"containers":null}}}}"#
    );
    event_json("BOOKMARK", &object)
}

/// Three events and a bookmark, as every API server writes them.
fn usual_stream() -> String {
    [
        event_json("ADDED", &pod_json("a", "1")),
        event_json("MODIFIED", &pod_json("a", "2").replace("node-1", "é\\\"}\\u00fc 1.5 -2")),
        event_json("DELETED", &pod_json("a", "3").replace("{\"nodeName\":\"node-1\"}", "{\"n\":[-1,1.5e+3,{}]}")),
        bookmark("4", ""),
    ]
    .concat()
}

const USUAL: [&str; 4] = ["added shop/a@1", "modified shop/a@2", "deleted shop/a@3", "bookmark 4"];

async fn read(text: impl AsRef<[u8]>) -> Outcome {
    read_watch(&pods_in([text.as_ref().to_vec()])).await
}

/// `text` whole, cut in two at every byte, and byte by byte: the events are the same each time.
async fn events_however_cut(text: &[u8]) -> Vec<String> {
    let whole = read(text).await.complete();
    for at in 0..=text.len() {
        assert_eq!(read_watch(&pods_in(cut_at(text, at))).await.complete(), whole, "cut at {at}");
    }
    assert_eq!(read_watch(&pods_in(bytewise(text))).await.complete(), whole, "byte by byte");
    whole
}

/// Prints an event over several lines.
fn pretty(event: &str, indent: usize) -> String {
    let spaces = " ".repeat(indent);
    let value: serde_json::Value = serde_json::from_str(event).expect("an event");
    let formatter = serde_json::ser::PrettyFormatter::with_indent(spaces.as_bytes());
    let mut object = Vec::new();
    let mut serializer = serde_json::Serializer::with_formatter(&mut object, formatter);
    serde::Serialize::serialize(&value["object"], &mut serializer).expect("text");
    let object = String::from_utf8(object).expect("text").replace('\n', &format!("\n{spaces}"));
    format!("{{\n{spaces}\"type\": {},\n{spaces}\"object\": {object}\n}}\n", value["type"])
}

#[tokio::test]
async fn events_come_one_to_a_line_however_the_bytes_are_cut() {
    assert_eq!(events_however_cut(usual_stream().as_bytes()).await, USUAL);
}

#[tokio::test]
async fn an_object_of_an_event_is_kept_as_it_was_sent() {
    let sent =
        r#"{ "kind":"Pod","apiVersion":"v1","metadata":{"name":"a","resourceVersion":"1"},"x":1.0e+2,"x":"\u0041é" }"#;
    let mut stream = pods_in([event_json("ADDED", sent)]).watch(ListOptions::default()).await.unwrap();
    let Ok(Some(WatchEvent::Added(object))) = stream.next().await else { panic!("no object") };
    assert_eq!(object.json().expect("a body"), sent.as_bytes());
}

#[tokio::test]
async fn the_last_event_needs_no_newline() {
    let text = usual_stream();
    assert_eq!(events_however_cut(text.trim_end().as_bytes()).await, USUAL);
}

#[tokio::test]
async fn events_that_span_lines_are_put_together() {
    for indent in [0, 2, 4] {
        let text: String = usual_stream().lines().map(|line| pretty(line, indent)).collect();
        assert_eq!(events_however_cut(text.as_bytes()).await, USUAL, "indented by {indent}");
        assert_eq!(events_however_cut(text.trim_end().as_bytes()).await, USUAL, "indented by {indent}");
    }
}

#[tokio::test]
async fn events_on_one_line_and_events_on_several_may_be_mixed() {
    let text: String = usual_stream()
        .lines()
        .enumerate()
        .map(|(at, line)| if at % 2 == 0 { pretty(line, 2) } else { format!("{line}\n") })
        .collect();
    assert_eq!(read(text).await.complete(), USUAL);
}

#[tokio::test]
async fn the_object_may_come_before_the_type_and_spaces_anywhere() {
    let text = format!(
        "{{\"object\":{},\"type\":\"ADDED\"}}\n {{ \"type\" : \"DELETED\" , \"object\" : {} }} \r\n",
        pod_json("a", "1"),
        pod_json("b", "2")
    );
    assert_eq!(events_however_cut(text.as_bytes()).await, ["added shop/a@1", "deleted shop/b@2"]);
}

#[tokio::test]
async fn several_events_may_stand_on_one_line() {
    let text = usual_stream().replace('\n', "");
    assert_eq!(events_however_cut(text.as_bytes()).await, USUAL);
    assert_eq!(events_however_cut(format!("{}\n", usual_stream().replace('\n', " ")).as_bytes()).await, USUAL);
}

#[tokio::test]
async fn blank_lines_are_nothing() {
    let text = format!("\n \r\n{}\n\n", usual_stream().replace('\n', "\n\n"));
    assert_eq!(events_however_cut(text.as_bytes()).await, USUAL);
}

#[tokio::test]
async fn a_stream_that_ends_within_an_event_is_a_disconnect() {
    let text = usual_stream();
    let ends: Vec<usize> = text.match_indices('\n').map(|(at, _)| at).collect();
    for length in 0..text.len() {
        let outcome = read(&text.as_bytes()[..length]).await;
        let whole = ends.iter().filter(|end| **end <= length).count();
        let clean = length == 0 || ends.contains(&length) || ends.contains(&(length - 1));
        assert_eq!(outcome.parts, &USUAL[..whole], "cut at {length}");
        assert_eq!(outcome.kind, (!clean).then_some(ErrorKind::Disconnected), "cut at {length}: {outcome:?}");
    }
}

#[tokio::test]
async fn a_damaged_line_is_a_bad_event_and_the_others_arrive() {
    let good = event_json("MODIFIED", &pod_json("b", "9"));
    let damaged = event_json("ADDED", &pod_json("a", "1"));
    for length in 1..damaged.len() - 1 {
        let text = format!("{}\n{good}{good}", &damaged[..length]);
        let events = read(&text).await.complete();
        assert_eq!(events.len(), 3, "{length}: {events:?}");
        let known = events[0].starts_with("bad shop/a@") || events[0].starts_with("bad ?@");
        assert!(known, "half a key is none: {events:?}");
        assert_eq!(events[1..], ["modified shop/b@9", "modified shop/b@9"], "{length}");
    }
}

#[tokio::test]
async fn each_of_several_damaged_lines_is_told() {
    let line = |name: &str| event_json("ADDED", &pod_json(name, "1")).replace("}}}\n", "\n");
    let text = [line("a"), line("b"), line("c"), event_json("ADDED", &pod_json("d", "1"))].concat();
    assert_eq!(
        events_however_cut(text.as_bytes()).await,
        [
            "bad shop/a@1: it is not valid JSON",
            "bad shop/b@1: it is not valid JSON",
            "bad shop/c@1: it is not valid JSON",
            "added shop/d@1"
        ]
    );
}

#[tokio::test]
async fn a_damaged_deletion_is_still_a_deletion() {
    let damaged = event_json("DELETED", &pod_json("a", "7")).replace("}}}\n", "\n");
    let text = damaged + &event_json("ADDED", &pod_json("b", "8"));
    assert_eq!(read(&text).await.complete(), ["deleted bad shop/a@7: it is not valid JSON", "added shop/b@8"]);
}

#[tokio::test]
async fn a_name_without_its_namespace_is_no_key() {
    let object = r#"{"kind":"Pod","metadata":{"name":"a","resourceVersion":"7"#;
    let text = event_json("DELETED", object).replace("7}", "7") + &event_json("ADDED", &pod_json("b", "8"));
    assert_eq!(read(&text).await.complete(), ["deleted bad ?@: it is not valid JSON", "added shop/b@8"]);
    // Only if the metadata came to its end is it known that there is no namespace.
    let object = r#"{"kind":"Pod","metadata":{"name":"a","resourceVersion":"7"},"spec":{"#;
    let text = event_json("DELETED", object).replace("{}", "{") + &event_json("ADDED", &pod_json("b", "8"));
    assert_eq!(read(&text).await.complete(), ["deleted bad a@7: it is not valid JSON", "added shop/b@8"]);
}

#[tokio::test]
async fn a_bookmark_ends_the_initial_events_only_if_its_annotation_says_true() {
    let annotated =
        |value: &str| bookmark("7", &format!(r#","annotations":{{"other":"x","k8s.io/initial-events-end":{value}}}"#));
    assert_eq!(read(bookmark("7", "")).await.complete(), ["bookmark 7"]);
    assert_eq!(read(annotated("\"true\"")).await.complete(), ["bookmark 7 end"]);
    for other in ["\"True\"", "\"false\"", "\"\"", "\"1\"", "true", "null"] {
        assert_eq!(read(annotated(other)).await.complete(), ["bookmark 7"], "{other}");
    }
    assert_eq!(read(bookmark("7", r#","annotations":null"#)).await.complete(), ["bookmark 7"]);
}

#[tokio::test]
async fn a_bookmark_without_a_version_or_of_another_kind_is_none() {
    let text = bookmark("", "") + &bookmark("7", "").replace("Pod", "Service");
    assert_eq!(
        read(text).await.complete(),
        [
            "wrong kind ?@: the bookmark has no version",
            "wrong kind ?@7: the bookmark is of another kind than was asked for"
        ]
    );
}

#[tokio::test]
async fn an_error_event_is_the_error_of_its_status() {
    let status = |code: u16, reason: &str, details: &str| {
        let object = format!(
            r#"{{"kind":"Status","apiVersion":"v1","metadata":{{}},"status":"Failure","message":"so it is","reason":"{reason}","code":{code}{details}}}"#
        );
        event_json("ERROR", &object)
    };
    let first = async |text: String| {
        let mut stream = pods_in([text]).watch(ListOptions::default()).await.unwrap();
        match stream.next().await {
            Ok(Some(WatchEvent::Error(error))) => error,
            other => panic!("{other:?}"),
        }
    };
    let expired = first(status(410, "Expired", "")).await;
    assert!(expired.is_expired());
    assert_eq!(expired.to_string(), "watch pods: 410 Expired: so it is");
    let busy = first(status(429, "TooManyRequests", r#","details":{"retryAfterSeconds":7}"#)).await;
    assert!(busy.is_too_many_requests());
    assert_eq!(busy.retry_after(), Some(seconds(7)));
    let internal = first(status(500, "InternalError", r#","details":{"causes":[{"message":"etcd"}]}"#)).await;
    assert!(internal.is_internal());
    let odd = first(status(410, "", r#","details":{"retryAfterSeconds":-1,"causes":5}"#)).await;
    assert!(odd.is_expired(), "what is there counts, whatever stands beside it");
}

#[tokio::test]
async fn an_error_event_without_a_status_is_an_error_all_the_same() {
    for object in [pod_json("a", "1"), "{}".into(), "null".into(), "\"text\"".into(), "[]".into()] {
        let events = read(event_json("ERROR", &object)).await.complete();
        assert_eq!(events, ["error watch pods: the server sent an ERROR event without a Status"], "{object}");
    }
}

#[tokio::test]
async fn a_status_in_place_of_an_event_is_the_error_that_it_tells() {
    let text =
        r#"{"kind":"Status","apiVersion":"v1","status":"Failure","message":"gone","reason":"Expired","code":410}"#;
    assert_eq!(events_however_cut(text.as_bytes()).await, ["error watch pods: 410 Expired: gone"]);
}

#[tokio::test]
async fn an_event_of_an_unknown_type_tells_its_version() {
    let text = event_json("RENAMED", &pod_json("a", "5")) + &event_json("", "{}");
    assert_eq!(read(text).await.complete(), ["unknown 5", "unknown "]);
}

#[tokio::test]
async fn objects_of_another_kind_or_version_are_told_apart() {
    let text = event_json("ADDED", &pod_json("a", "1").replace("\"Pod\"", "\"Service\""))
        + &event_json("DELETED", &pod_json("a", "1").replace("\"v1\"", "\"v2\""));
    let wrong = "wrong kind shop/a@1: it is of another kind than was asked for";
    assert_eq!(read(text).await.complete(), [wrong, wrong]);
}

#[tokio::test]
async fn objects_that_cannot_be_used_are_bad_events() {
    let meta = |metadata: &str| event_json("MODIFIED", &format!(r#"{{"kind":"Pod","metadata":{metadata}}}"#));
    for (metadata, expected) in [
        (r#"{"resourceVersion":"1"}"#, "?@1: it has no metadata.name"),
        (r#"{"name":"a"}"#, "a@: it has no metadata.resourceVersion"),
        (r#"{"name":["a"],"resourceVersion":"1"}"#, "?@1: metadata.name is no string"),
        (r#"{"name":"a","namespace":{},"resourceVersion":"1"}"#, "a@1: metadata.namespace is no string"),
        (r#"{"name":"a","uid":1.5,"resourceVersion":"1"}"#, "a@1: metadata.uid is no string"),
        (r#"{"name":"a","labels":{"x":1},"resourceVersion":"1"}"#, "a@1: a label is no string"),
        (r#"{"name":"a","annotations":7,"resourceVersion":"1"}"#, "a@1: metadata.annotations is no object"),
        (
            r#"{"name":"a","deletionTimestamp":true,"resourceVersion":"1"}"#,
            "a@1: metadata.deletionTimestamp is no string",
        ),
        (r#""text""#, "?@: metadata is no object"),
        ("null", "?@: it has no metadata.name"),
    ] {
        assert_eq!(read(meta(metadata)).await.complete(), [format!("bad {expected}")], "{metadata}");
    }
    for object in ["null", "5", "[]", "\"text\"", "true"] {
        let events = read(event_json("ADDED", object)).await.complete();
        assert_eq!(events, ["bad ?@: it is no JSON object"], "{object}");
    }
    for line in ["{}\n", "{\"type\":\"ADDED\"}\n", "{\"type\":5,\"object\":{}}\n"] {
        assert_eq!(read(line).await.complete(), ["bad ?@: it is not valid JSON"], "{line}");
    }
}

#[tokio::test]
async fn of_equal_keys_the_last_one_counts() {
    let object = r#"{"kind":"Service","kind":"Pod","metadata":{"name":"x","uid":"u","resourceVersion":"1","labels":{"a":"1"}},"metadata":{"name":"b","name":"a","labels":{"l":"1","l":"2"},"labels":{"l":"3","l":"4"},"resourceVersion":"2"}}"#;
    let mut stream = pods_in([event_json("ADDED", object)]).watch(ListOptions::default()).await.unwrap();
    let Ok(Some(WatchEvent::Added(object))) = stream.next().await else { panic!("no object") };
    assert_eq!((object.key().to_string().as_str(), object.resource_version().as_str()), ("a", "2"));
    assert_eq!((object.uid(), object.labels().iter().collect::<Vec<_>>()), (None, vec![("l", "4")]));
}

#[tokio::test]
async fn text_that_is_not_utf_8_spoils_its_event_only() {
    let good = event_json("ADDED", &pod_json("b", "2"));
    for (from, expected) in [("node-1", "shop/a@1"), ("\"app\":\"a\"", "shop/a@1"), ("\"name\":\"a\"", "?@1")] {
        let spoilt =
            event_json("ADDED", &pod_json("a", "1").replace(from, &from.replace("a\"", "a#\"").replace("-1", "#")));
        let spoilt: Vec<u8> = spoilt.bytes().map(|byte| if byte == b'#' { 0xff } else { byte }).collect();
        let events = read([&spoilt, good.as_bytes()].concat()).await.complete();
        assert_eq!(events, [format!("bad {expected}: it is not UTF-8"), "added shop/b@2".into()], "{from}");
    }
}

#[tokio::test]
async fn nesting_without_end_spoils_its_event_only() {
    let good = event_json("ADDED", &pod_json("b", "2"));
    let deep = |open: &str, close: &str| open.repeat(100_000) + "1" + &close.repeat(100_000);
    for nested in [deep("[", "]"), deep("{\"x\":", "}")] {
        for place in ["\"node-1\"", "\"uid-a\""] {
            let bad = event_json("ADDED", &pod_json("a", "1").replace(place, &nested));
            let events = read(bad + &good).await.complete();
            assert_eq!(events, ["bad shop/a@1: it is nested too deeply", "added shop/b@2"]);
        }
    }
    let allowed = "[".repeat(9_000) + &"]".repeat(9_000);
    let events = read(event_json("ADDED", &pod_json("a", "1").replace("\"node-1\"", &allowed))).await.complete();
    assert_eq!(events, ["added shop/a@1"]);
}

#[tokio::test]
async fn html_is_an_error_at_once() {
    for text in ["<html>\n<body>Log in</body></html>", "<html>", "[]\n", "null\n"] {
        let source = ListWatch::of::<Pod>(client(move |_| {
            http::Response::new(body(vec![Piece::Bytes(text.into()), Piece::Hang]))
        }));
        let outcome = read_watch(&source).await;
        assert_eq!(outcome.kind, Some(ErrorKind::Malformed));
        assert!(outcome.error.is_some_and(|error| error.contains("check for a proxy")), "{text}");
    }
}

#[tokio::test]
async fn an_event_above_the_limit_is_skipped_with_key_and_type_and_the_next_one_arrives() {
    let large =
        |event_type: &str| event_json(event_type, &pod_json("large", "5").replace("node-1", &"\\\"}]x".repeat(300)));
    let stream =
        [large("ADDED"), event_json("ADDED", &pod_json("b", "6")), large("DELETED"), bookmark("7", "")].concat();
    let expected = [
        "bad shop/large@5: it is larger than the limit",
        "added shop/b@6",
        "deleted bad shop/large@5: it is larger than the limit",
        "bookmark 7",
    ];
    let lines: String = stream.lines().map(|line| pretty(line, 2)).collect();
    for text in [stream.clone(), stream.replace('\n', ""), lines] {
        for pieces in [vec![text.clone().into()], cut_at(text.as_bytes(), 900), bytewise(text.as_bytes())] {
            let source = pods_in(pieces).max_object_size(600);
            assert_eq!(read_watch(&source).await.complete(), expected, "{text}");
        }
    }
}

#[tokio::test]
async fn a_stream_that_ends_within_a_skipped_event_is_a_disconnect() {
    let large = event_json("ADDED", &pod_json("large", "5").replace("node-1", &"x".repeat(900)));
    let outcome = read_watch(&pods_in([large[..1_000].to_owned()]).max_object_size(600)).await;
    assert_eq!((outcome.kind, outcome.parts), (Some(ErrorKind::Disconnected), vec![]));
}

#[tokio::test]
async fn an_event_without_end_is_given_up_at_four_times_the_limit() {
    const LIMIT: usize = 100_000;
    let usual = event_json("ADDED", &pod_json("a", "1"));
    let several_lines = pretty(&usual, 2);
    for start in [usual, several_lines] {
        let start = start.split_once("node-1").expect("a place to go on from").0.to_owned();
        let (body, taken) = endless_body(start.into(), "x".repeat(1_000).into());
        let body = Arc::new(Mutex::new(Some(body)));
        let source = ListWatch::of::<Pod>(client(move |_| http::Response::new(body.lock().unwrap().take().unwrap())));
        let outcome = read_watch(&source.max_object_size(LIMIT)).await;
        assert_eq!(outcome.error.as_deref(), Some("watch pods: an event of the watch has no end"));
        assert_eq!(outcome.kind, Some(ErrorKind::Malformed));
        let taken = taken.load(Ordering::Relaxed);
        assert!((4 * LIMIT..4 * LIMIT + 5_000).contains(&taken), "{taken}");
    }
}
