//! How a list is read out of the bytes of an answer, whatever the answer is.

use k8s_openapi::api::core::v1::Pod;
use watchkeeper::{ErrorKind, ListWatch};

use crate::support::*;

const META: &str = r#""metadata":{"resourceVersion":"10","continue":"t","remainingItemCount":3}"#;
const A: &str = r#"{"metadata":{"name":"a","namespace":"shop","resourceVersion":"1"},"n":[1.50,{}]}"#;
const B: &str = r#"{"metadata":{"name":"b","resourceVersion":"2","labels":{"é\"}]":"\u00fc"}}}"#;
/// What stands in front of pods that come without it.
const POD: &str = r#"{"kind":"Pod","apiVersion":"v1","#;

/// A list as built-in kinds send it.
fn pod_list(items: &[&str]) -> String {
    format!(r#"{{"kind":"PodList","apiVersion":"v1",{META},"items":[{}]}}"#, items.join(","))
}

fn metadata() -> String {
    "metadata 10 continue t remaining 3".to_owned()
}

/// The item that comes of JSON without kind and apiVersion.
fn item(json: &str) -> String {
    format!("item {POD}{}", &json[1..])
}

async fn read(text: impl AsRef<[u8]>) -> Outcome {
    read_list(&pods_in([text.as_ref().to_vec()])).await
}

/// A source of custom resources.
fn widgets(text: &str) -> ListWatch {
    let text = text.to_owned();
    ListWatch::by_name(client(move |_| ok(text.clone())), "example.com", "v1", "widgets")
}

#[track_caller]
fn assert_malformed(outcome: &Outcome, words: &str) {
    let error = outcome.error.as_deref().unwrap_or_default();
    assert_eq!(outcome.kind, Some(ErrorKind::Malformed), "{outcome:?}");
    assert!(error.contains(words) && error.starts_with("list pods: "), "{error}");
}

#[tokio::test]
async fn metadata_may_come_before_the_items() {
    assert_eq!(read(pod_list(&[A, B])).await.complete(), [metadata(), item(A), item(B)]);
}

#[tokio::test]
async fn metadata_may_come_after_the_items() {
    let text = format!(r#"{{"apiVersion":"v1","items":[{A},{B}],"kind":"PodList",{META}}}"#);
    assert_eq!(read(text).await.complete(), [item(A), item(B), metadata()]);
}

#[tokio::test]
async fn items_that_are_empty_null_or_missing_are_an_empty_list() {
    for items in [r#","items":[]"#, r#","items":[ ]"#, r#","items":null"#, ""] {
        let text = format!(r#"{{"kind":"PodList","apiVersion":"v1",{META}{items}}}"#);
        assert_eq!(read(&text).await.complete(), [metadata()], "{text}");
    }
}

#[tokio::test]
async fn items_that_are_no_array_are_no_list() {
    for items in ["{}", "5", r#""none""#, "false"] {
        let text = format!(r#"{{"kind":"PodList",{META},"items":{items}}}"#);
        assert_malformed(&read(&text).await, "the list's items are no array");
    }
}

#[tokio::test]
async fn every_split_into_two_pieces_gives_the_same_parts() {
    let last = format!(r#"{{"apiVersion":"v1","items":[{A},{B}],"kind":"PodList",{META}}}"#);
    for text in [pod_list(&[A, B]), last] {
        let whole = read(&text).await;
        assert_eq!(whole.parts.len(), 3);
        for at in 0..=text.len() {
            assert_eq!(read_list(&pods_in(cut_at(text.as_bytes(), at))).await, whole, "cut at {at}");
        }
    }
}

#[tokio::test]
async fn pieces_of_one_byte_give_the_same_parts() {
    let text = pod_list(&[A, B]);
    assert_eq!(read_list(&pods_in(bytewise(text.as_bytes()))).await, read(&text).await);
}

#[tokio::test]
async fn an_answer_cut_off_at_any_byte_is_never_a_whole_list() {
    let sorted = format!(r#"{{"apiVersion":"v1","items":[{A},{B}],"kind":"PodList",{META}}}"#);
    for text in [pod_list(&[A, B]), sorted] {
        for length in 0..text.len() {
            let outcome = read(&text.as_bytes()[..length]).await;
            assert!(outcome.error.is_some(), "cut at {length}: {outcome:?}");
            let expected = if length == 0 { ErrorKind::Malformed } else { ErrorKind::Disconnected };
            assert_eq!(outcome.kind, Some(expected), "cut at {length}: {outcome:?}");
        }
    }
}

#[tokio::test]
async fn a_connection_that_breaks_is_a_disconnect() {
    let source = ListWatch::of::<Pod>(client(|_| {
        let start = pod_list(&[A, B]);
        http::Response::new(body(vec![Piece::Bytes(start[..200].to_owned().into()), Piece::Break]))
    }));
    let outcome = read_list(&source).await;
    assert_eq!((outcome.kind, outcome.parts), (Some(ErrorKind::Disconnected), vec![metadata(), item(A)]));
}

#[tokio::test]
async fn a_pretty_printed_list_keeps_its_items_as_they_were_printed() {
    let a = "{\n      \"metadata\": {\n        \"name\": \"a\",\n        \"resourceVersion\": \"1\"\n      }\n    }";
    let text = format!(
        "\n{{\n  \"kind\" : \"PodList\",\r\n\t\"apiVersion\": \"v1\",\n  \"metadata\": {{ \"resourceVersion\": \"10\" }},\n  \"items\": [\n    {a} ,\n    {a}\n  ]\n}}\n"
    );
    assert_eq!(read(&text).await.complete(), ["metadata 10".to_owned(), item(a), item(a)]);
    assert_eq!(read_list(&pods_in(bytewise(text.as_bytes()))).await, read(&text).await);
}

#[tokio::test]
async fn items_without_kind_and_api_version_get_both_in_front_and_nothing_else_is_touched() {
    let odd = concat!(
        r#"{ "metadata" : {"name":"odd","resourceVersion":"3","annotations":{"k":"\u0041\/\ud83d\ude00é"}},"#,
        r#""unknown":{"b":1,"a":1.0e+2,"c":-0,"d":12345678901234567890123},"x":1,"x":2 }"#
    );
    let outcome = read(pod_list(&[odd])).await.complete();
    assert_eq!(outcome[1], format!("item {POD}{}", &odd[1..]));
}

#[tokio::test]
async fn items_that_say_their_kind_are_not_touched() {
    let whole = r#"{"metadata":{"name":"a","resourceVersion":"1"},"kind":"Pod","apiVersion":"v1"}"#;
    assert_eq!(read(pod_list(&[whole])).await.complete()[1], format!("item {whole}"));
    let half = r#"{"apiVersion":"v1","metadata":{"name":"a","resourceVersion":"1"}}"#;
    assert_eq!(read(pod_list(&[half])).await.complete()[1], format!(r#"item {{"kind":"Pod",{}"#, &half[1..]));
}

#[tokio::test]
async fn a_list_of_custom_resources_comes_with_sorted_keys_and_any_name() {
    let item = r#"{"apiVersion":"example.com/v1","kind":"Widget","metadata":{"annotations":{"k":"v"},"name":"a","resourceVersion":"1"}}"#;
    for kind in ["WidgetList", "WidgetCollection"] {
        let text = format!(
            r#"{{"apiVersion":"example.com/v1","items":[{item}],"kind":"{kind}","metadata":{{"continue":"","resourceVersion":"10"}}}}"#
        );
        let expected = [format!("item {item}"), "metadata 10".to_owned()];
        assert_eq!(read_list(&widgets(&text)).await.complete(), expected, "{kind}");
    }
}

#[tokio::test]
async fn an_empty_list_of_custom_resources_may_have_any_name() {
    let text = r#"{"apiVersion":"example.com/v1","items":[],"kind":"Widgets","metadata":{"resourceVersion":"10"}}"#;
    assert_eq!(read_list(&widgets(text)).await.complete(), ["metadata 10"]);
}

#[tokio::test]
async fn a_source_by_name_learns_the_kind_from_the_list() {
    let text = pod_list(&[A]);
    let source = ListWatch::by_name(client(move |_| ok(text.clone())), "", "v1", "pods");
    assert_eq!(read_list(&source).await.complete(), [metadata(), item(A)]);
}

#[tokio::test]
async fn metadata_alone_comes_as_a_list_of_partial_objects() {
    let partial = r#"{"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/v1","metadata":{"name":"a","resourceVersion":"1"}}"#;
    let bare = r#"{"metadata":{"name":"b","resourceVersion":"2"}}"#;
    let text = format!(
        r#"{{"kind":"PartialObjectMetadataList","apiVersion":"meta.k8s.io/v1","metadata":{{"resourceVersion":"10"}},"items":[{partial},{bare}]}}"#
    );
    let source = ListWatch::of::<Pod>(client(move |_| ok(text.clone()))).metadata_only();
    let front = r#"{"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/v1","#;
    let expected = ["metadata 10".to_owned(), format!("item {partial}"), format!("item {front}{}", &bare[1..])];
    assert_eq!(read_list(&source).await.complete(), expected);
}

#[tokio::test]
async fn a_table_is_refused() {
    let text = r#"{"kind":"Table","apiVersion":"meta.k8s.io/v1","metadata":{"resourceVersion":"1"},"columnDefinitions":[],"rows":[]}"#;
    assert_malformed(&read(text).await, "Accept header");
}

#[tokio::test]
async fn a_status_with_http_200_is_the_error_that_it_tells() {
    let text = r#"{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"too old","reason":"Expired","code":410}"#;
    for outcome in [read(text).await, read_list(&pods_in(bytewise(text.as_bytes()))).await] {
        assert_eq!(outcome.kind, Some(ErrorKind::Api));
        assert_eq!(outcome.error.as_deref(), Some("list pods: 410 Expired: too old"));
    }
}

#[tokio::test]
async fn something_else_than_a_list_of_the_kind_is_never_taken_for_an_empty_list() {
    let words = "something else than a list of the kind that was asked for";
    for (kind, version, items) in [
        ("ServiceList", "v1", "[]"),
        ("ServiceList", "v1", "null"),
        ("PodList", "v2", "[]"),
        ("Pod", "v1", "[]"),
        ("List", "v1", "[]"),
        ("APIResourceList", "v1", "null"),
    ] {
        let text = format!(r#"{{"kind":"{kind}","apiVersion":"{version}",{META},"items":{items}}}"#);
        assert_malformed(&read(&text).await, words);
    }
    assert_malformed(&read(pod_json("a", "1")).await, words);
    assert_malformed(&read(format!("{{{META}}}")).await, "it has no kind");
    assert_malformed(&read("{}").await, "it has no kind");

    let single = r#"{"kind":"Widget","apiVersion":"example.com/v1","metadata":{"name":"a","resourceVersion":"1"}}"#;
    assert!(read_list(&widgets(single)).await.error.is_some_and(|error| error.contains(words)));
    let pod = pod_json("a", "1");
    let by_name = ListWatch::by_name(client(move |_| ok(pod.clone())), "", "v1", "pods");
    assert!(read_list(&by_name).await.error.is_some_and(|error| error.contains(words)));
}

#[tokio::test]
async fn items_of_another_kind_are_bad_and_without_a_key() {
    let service = r#"{"kind":"Service","apiVersion":"v1","metadata":{"name":"a","resourceVersion":"1"}}"#;
    let parts = read(pod_list(&[service, B])).await.complete();
    assert_eq!(parts, [metadata(), "bad ?@1: it is of another kind than was asked for".into(), item(B)]);
}

#[tokio::test]
async fn html_is_recognised_by_its_type_and_by_its_body() {
    assert_malformed(&read("<html><body>Log in</body></html>").await, "check for a proxy");
    let source = ListWatch::of::<Pod>(client(|_| {
        let mut answer = ok(pod_list(&[]));
        answer.headers_mut().insert("content-type", http::HeaderValue::from_static("text/html; charset=utf-8"));
        answer
    }));
    assert_malformed(&read_list(&source).await, "check for a proxy");
}

#[tokio::test]
async fn an_empty_answer_is_no_list() {
    assert_malformed(&read("").await, "the answer is empty");
    assert_malformed(&read(" \n").await, "the answer is empty");
}

#[tokio::test]
async fn what_follows_the_list_is_an_error() {
    for garbage in ["x", "{}", "]", ",", "\0"] {
        assert_malformed(&read(pod_list(&[A]) + garbage).await, "something follows the list");
    }
    assert_eq!(read(pod_list(&[A]) + " \r\n\t").await.complete().len(), 2);
}

#[tokio::test]
async fn broken_json_is_an_error() {
    for text in [
        r#"{"kind":"PodList","items":[{"metadata":{"name":"a","resourceVersion":"1"},}]}"#.to_owned(),
        pod_list(&[A, ""]),
        pod_list(&["", A]),
        pod_list(&[A]).replace("\"items\"", "items"),
        pod_list(&[A]).replace("\"items\":", "\"items\" "),
        pod_list(&[A]).replace("]}", "],}"),
        pod_list(&[A]).replace("]}", "]]"),
        pod_list(&["{bad}"]),
        pod_list(&[A]).replace("\"kind\":", "\"kind\":x"),
        format!("{{,{}", &pod_list(&[A])[1..]),
    ] {
        assert_malformed(&read(&text).await, "not valid JSON");
    }
}

#[tokio::test]
async fn metadata_and_kind_of_the_wrong_type_are_errors() {
    assert_malformed(&read(r#"{"kind":5,"items":[]}"#).await, "the list's kind is no string");
    assert_malformed(&read(r#"{"kind":"PodList","apiVersion":[],"items":[]}"#).await, "apiVersion is no string");
    for metadata in ["5", r#"{"resourceVersion":7}"#, r#"{"continue":{}}"#] {
        let text = format!(r#"{{"kind":"PodList","metadata":{metadata},"items":[]}}"#);
        assert_malformed(&read(&text).await, "the list's metadata cannot be read");
    }
}

#[tokio::test]
async fn a_number_at_the_top_level_may_be_cut_anywhere() {
    let text = format!(r#"{{"kind":"PodList","number":-12.5e+3,{META},"items":[{A}],"last":1234}}"#);
    for at in 0..=text.len() {
        let parts = read_list(&pods_in(cut_at(text.as_bytes(), at))).await.complete();
        assert_eq!(parts, [metadata(), item(A)], "cut at {at}");
    }
}

#[tokio::test]
async fn an_item_may_be_cut_in_the_middle_of_any_number() {
    let numbers = r#"{"metadata":{"name":"n","resourceVersion":"1"},"n":[-1,1.5,-2e5,3E-7,4.0e+1],"last":-0.0}"#;
    let text = pod_list(&[numbers]);
    for at in 0..=text.len() {
        let parts = read_list(&pods_in(cut_at(text.as_bytes(), at))).await.complete();
        assert_eq!(parts, [metadata(), item(numbers)], "cut at {at}");
    }
}

#[tokio::test]
async fn items_that_are_no_objects_are_bad_however_they_are_cut() {
    let text = pod_list(&["123", A, "null", "[[1],2]", r#""text""#]);
    let nothing = "bad ?@: it is no JSON object".to_owned();
    let expected = [metadata(), nothing.clone(), item(A), nothing.clone(), nothing.clone(), nothing];
    for at in 0..=text.len() {
        assert_eq!(read_list(&pods_in(cut_at(text.as_bytes(), at))).await.complete(), expected, "cut at {at}");
    }
}

#[tokio::test]
async fn items_that_cannot_be_used_harm_no_others() {
    let nested = format!(
        r#"{{"metadata":{{"name":"deep","resourceVersion":"4"}},"x":{}{}}}"#,
        "[".repeat(100_000),
        "]".repeat(100_000)
    );
    for (bad, expected) in [
        (r#"{"metadata":{"namespace":"shop","resourceVersion":"4"}}"#, "?@4: it has no metadata.name"),
        (r#"{"metadata":{"name":"","resourceVersion":"4"}}"#, "?@4: it has no metadata.name"),
        (r#"{"metadata":{"name":"x"}}"#, "x@: it has no metadata.resourceVersion"),
        (r#"{"metadata":{"name":7,"resourceVersion":"4"}}"#, "?@4: metadata.name is no string"),
        (r#"{"metadata":[]}"#, "?@: metadata is no object"),
        (r#"{"metadata":{"name":"x","resourceVersion":4}}"#, "x@: metadata.resourceVersion is no string"),
        (r#"{"metadata":{"name":"x","resourceVersion":"4","labels":[]}}"#, "x@4: metadata.labels is no object"),
        (
            r#"{"metadata":{"labels":{"l":"\ud800"},"name":"x","resourceVersion":"4"}}"#,
            "?@: it holds text that cannot be read",
        ),
        (&nested, "deep@4: it is nested too deeply"),
        ("{}", "?@: it has no metadata.name"),
    ] {
        let parts = read(pod_list(&[A, bad, B])).await.complete();
        assert_eq!(parts, [metadata(), item(A), format!("bad {expected}"), item(B)]);
    }
}

#[tokio::test]
async fn text_that_is_not_utf_8_spoils_its_item_only() {
    for (bad, expected) in [
        (&b"{\"metadata\":{\"name\":\"x\",\"resourceVersion\":\"4\"},\"v\":\"\xff\"}"[..], "x@4"),
        (b"{\"metadata\":{\"labels\":{\"l\":\"\xff\"},\"name\":\"x\",\"resourceVersion\":\"4\"}}", "x@4"),
        // Whose key this is cannot be known.
        (b"{\"metadata\":{\"name\":\"x\xff\",\"resourceVersion\":\"4\"}}", "?@4"),
        (b"{\"metadata\":{\"name\":\"x\",\"namespace\":\"\xc3\",\"resourceVersion\":\"4\"}}", "?@4"),
    ] {
        let text = pod_list(&[A, "#", B]);
        let (before, behind) = text.split_once('#').expect("a place for it");
        let parts = read([before.as_bytes(), bad, behind.as_bytes()].concat()).await.complete();
        assert_eq!(parts, [metadata(), item(A), format!("bad {expected}: it is not UTF-8"), item(B)]);
    }
}

#[tokio::test]
async fn an_item_above_the_limit_is_skipped_with_its_key_and_the_others_are_whole() {
    let large = format!(
        r#"{{"metadata":{{"name":"large","namespace":"shop","resourceVersion":"4"}},"x":["{}","]}}\"{{"]}}"#,
        "x".repeat(1_000)
    );
    let text = pod_list(&[A, &large, B]);
    let expected = [metadata(), item(A), "bad shop/large@4: it is larger than the limit".into(), item(B)];
    for pieces in [vec![text.clone().into()], cut_at(text.as_bytes(), 300), bytewise(text.as_bytes())] {
        let source = pods_in(pieces).max_object_size(500);
        assert_eq!(read_list(&source).await.complete(), expected);
    }
}

#[tokio::test]
async fn an_item_above_the_limit_whose_namespace_was_not_seen_has_no_key() {
    let large = format!(
        r#"{{"metadata":{{"name":"large","annotations":{{"x":"{}"}},"namespace":"shop","resourceVersion":"4"}}}}"#,
        "x".repeat(1_000)
    );
    let source = pods_in(bytewise(pod_list(&[&large, B]).as_bytes())).max_object_size(500);
    let parts = read_list(&source).await.complete();
    assert_eq!(parts, [metadata(), "bad ?@: it is larger than the limit".into(), item(B)]);
}

#[tokio::test]
async fn an_item_of_exactly_the_limit_is_read() {
    let text = pod_list(&[A, B]);
    for pieces in [vec![text.clone().into()], bytewise(text.as_bytes())] {
        let parts = read_list(&pods_in(pieces.clone()).max_object_size(A.len().max(B.len()))).await.complete();
        assert_eq!(parts, [metadata(), item(A), item(B)]);
        let parts = read_list(&pods_in(pieces).max_object_size(A.len() - 1)).await.complete();
        assert_eq!(parts[1], "bad shop/a@1: it is larger than the limit");
    }
}

#[tokio::test]
async fn an_item_without_end_is_given_up_at_four_times_the_limit() {
    const LIMIT: usize = 100_000;
    let start =
        format!(r#"{{"kind":"PodList",{META},"items":[{{"metadata":{{"name":"a","resourceVersion":"1"}},"x":""#);
    let (body, taken) = endless_body(start.into(), "x".repeat(1_000).into());
    let body = std::sync::Arc::new(std::sync::Mutex::new(Some(body)));
    let source = ListWatch::of::<Pod>(client(move |_| http::Response::new(body.lock().unwrap().take().unwrap())));
    let outcome = read_list(&source.max_object_size(LIMIT)).await;
    assert_malformed(&outcome, "an item of the list has no end");
    let taken = taken.load(std::sync::atomic::Ordering::Relaxed);
    assert!((4 * LIMIT..4 * LIMIT + 5_000).contains(&taken), "{taken}");
}
