//! What is known of an object without decoding it, and what its decoding gives.

use std::collections::BTreeMap;
use std::hash::{Hash as _, Hasher as _};

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{ConfigMap, Node, Pod, Secret};
use k8s_openapi::api::rbac::v1::ClusterRole;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube_core::Resource;
use proptest::prelude::*;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use watchkeeper::{
    DecodeError, ErrorKind, ListOptions, ListPart, ListWatch, ListerWatcher as _, Object, ObjectKey, WatchEvent,
};

use crate::support::*;

const PODS: &str = include_str!("../data/pods.json");
const WATCH: &str = include_str!("../data/watchlist-pods.jsonl");

/// The objects of a list that a real server sent.
async fn objects_of<K: Resource<DynamicType = ()>>(text: &'static str) -> Vec<Object> {
    let source = ListWatch::of::<K>(client(move |_| ok(text)));
    let mut listing = source.list(ListOptions::default()).await.expect("an answer");
    let mut objects = Vec::new();
    while let Some(part) = listing.next().await.expect("a part") {
        match part {
            ListPart::Item(object) => objects.push(object),
            ListPart::Bad(object) => panic!("{object}"),
            ListPart::Metadata(_) | ListPart::Progress => {}
        }
    }
    objects
}

fn labels(object: &Object) -> BTreeMap<String, String> {
    object.labels().iter().map(|(key, value)| (key.to_owned(), value.to_owned())).collect()
}

#[track_caller]
fn assert_header_is(object: &Object, metadata: &ObjectMeta) {
    assert_eq!(object.key().namespace(), metadata.namespace.as_deref());
    assert_eq!(Some(object.key().name()), metadata.name.as_deref());
    assert_eq!(object.uid(), metadata.uid.as_deref());
    assert_eq!(Some(object.resource_version().as_str()), metadata.resource_version.as_deref());
    assert_eq!(object.is_deleting(), metadata.deletion_timestamp.is_some());
    assert_eq!(labels(object), metadata.labels.clone().unwrap_or_default());
    assert_eq!(object.labels().len(), metadata.labels.as_ref().map_or(0, BTreeMap::len));
    assert_eq!(object.labels().is_empty(), metadata.labels.as_ref().is_none_or(BTreeMap::is_empty));
    for (key, value) in metadata.labels.iter().flatten() {
        assert_eq!(object.labels().get(key), Some(value.as_str()));
    }
}

/// Header and decoded type agree, as the server sent it and with sorted keys.
async fn check_list<K>(text: &'static str)
where
    K: Resource<DynamicType = ()> + DeserializeOwned,
{
    let objects = objects_of::<K>(text).await;
    let list: Value = serde_json::from_str(text).expect("a list");
    assert_eq!(objects.len(), list["items"].as_array().map_or(0, Vec::len));
    for object in objects {
        let decoded: K = object.decode().expect("the type");
        assert_header_is(&object, decoded.meta());
        // A map of serde_json's has its keys sorted, as those of custom resources are.
        let value: Value = object.decode().expect("JSON");
        assert_eq!(
            (value["kind"].as_str(), value["apiVersion"].as_str()),
            (Some(&*K::kind(&())), Some(&*K::api_version(&())))
        );
        let sorted = Object::from_json(value.to_string()).expect("an object");
        assert_header_is(&sorted, decoded.meta());
    }
}

#[tokio::test]
async fn the_header_says_what_the_decoded_object_says() {
    check_list::<Pod>(PODS).await;
    check_list::<Pod>(include_str!("../data/pods-large.json")).await;
    check_list::<Secret>(include_str!("../data/secrets.json")).await;
    check_list::<Node>(include_str!("../data/nodes.json")).await;
    check_list::<Deployment>(include_str!("../data/deployments.json")).await;
    check_list::<ConfigMap>(include_str!("../data/configmaps.json")).await;
    check_list::<ClusterRole>(include_str!("../data/clusterroles.json")).await;
}

#[tokio::test]
async fn a_streaming_list_of_a_real_server_is_read_to_its_end() {
    let mut stream = pods_in([WATCH]).watch(ListOptions::default()).await.expect("a stream");
    for line in WATCH.lines() {
        let sent = line.split_once("\"object\":").expect("an object").1.strip_suffix('}').expect("its end");
        match stream.next().await.expect("an event").expect("one for each line") {
            WatchEvent::Added(object) => {
                assert_eq!(object.json().expect("a body"), sent);
                assert_header_is(&object, &object.decode::<Pod>().expect("a pod").metadata);
            }
            WatchEvent::Bookmark(bookmark) => assert!(bookmark.initial_events_end),
            other => panic!("{other:?}"),
        }
    }
    assert!(stream.next().await.expect("the end").is_none());
}

#[tokio::test]
async fn the_json_of_a_listed_object_is_what_was_sent_with_its_kind_in_front() {
    for object in objects_of::<Pod>(PODS).await {
        let json = String::from_utf8(object.json().expect("a body").to_vec()).expect("text");
        let sent = json.strip_prefix(r#"{"kind":"Pod","apiVersion":"v1","#).expect("the kind in front");
        assert!(PODS.contains(&format!("{{{sent}")));
    }
}

#[test]
fn an_object_that_is_being_deleted_says_so() {
    let deleting = |field: &str| {
        let json = format!(r#"{{"metadata":{{"name":"a","resourceVersion":"1"{field}}}}}"#);
        Object::from_json(json).expect("an object").is_deleting()
    };
    assert!(deleting(r#","deletionTimestamp":"2026-11-15T19:31:23Z""#));
    assert!(!deleting(r#","deletionTimestamp":null"#));
    assert!(!deleting(""));
}

#[test]
fn an_object_is_made_of_its_json_and_nothing_is_changed() {
    let json = " {\"metadata\":{\"resourceVersion\":\"1\",\"name\":\"a\"},\"x\":1.0} \n";
    assert_eq!(Object::from_json(json).expect("an object").json().expect("a body"), json);
}

#[test]
fn what_is_no_usable_object_is_refused() {
    for (json, words) in [
        ("", "it is not JSON"),
        ("null", "it is no JSON object"),
        ("[]", "it is no JSON object"),
        (r#"{"metadata":{"name":"a","resourceVersion":"1"}"#, "it is not JSON"),
        (r#"{"metadata":{"name":"a","resourceVersion":"1"}} x"#, "it is not JSON"),
        (r#"{"metadata":{"name":"a","resourceVersion":"1"},}"#, "it is not JSON"),
        (r#"{"metadata":{"name":"a","resourceVersion":"1"},"x":01}"#, "it is not JSON"),
        (r#"{"metadata":{"name":"a"}}"#, "metadata.resourceVersion"),
        (r#"{"metadata":{"resourceVersion":"1"}}"#, "metadata.name"),
        (r#"{"metadata":{"name":"a","resourceVersion":"1"},"metadata":{}}"#, "metadata.name"),
        ("{}", "metadata.name"),
    ] {
        let error = Object::from_json(json).expect_err(json);
        assert_eq!(error.kind(), ErrorKind::Malformed);
        assert!(error.to_string().contains(words), "{json}: {error}");
    }
    assert!(
        Object::from_json(&b"{\"metadata\":{\"name\":\"a\",\"resourceVersion\":\"1\"},\"x\":\"\xff\"}"[..]).is_err()
    );
}

fn decode_error<K: DeserializeOwned + std::fmt::Debug>(json: &str) -> DecodeError {
    Object::from_json(json.to_owned()).expect("an object").decode::<K>().expect_err("another type")
}

#[test]
fn a_decode_error_tells_key_version_path_and_offset_and_no_value() {
    let json = r#"{"kind":"Pod","apiVersion":"v1","metadata":{"name":"a","namespace":"shop","resourceVersion":"7"},"spec":{"containers":[{"name":"c","image":"hidden","ports":"hidden-too"}]}}"#;
    let error = decode_error::<Pod>(json);
    assert_eq!((error.key(), error.resource_version().as_str()), (&key("a"), "7"));
    assert_eq!(error.path(), "spec.containers[0].ports");
    assert_eq!(error.offset(), json.find("hidden-too").expect("the value") + "hidden-too\"".len());
    let text = error.to_string();
    assert!(text.starts_with("Pod shop/a at version 7 does not decode into "), "{text}");
    assert!(!format!("{text} {error:?}").contains("hidden"));
}

#[test]
fn the_offset_of_a_decode_error_counts_all_lines() {
    #[derive(Debug, Deserialize)]
    struct Flag {
        #[allow(dead_code)]
        flag: bool,
    }
    for json in [
        "{\"flag\":5,\n\"metadata\":{\"name\":\"a\",\"resourceVersion\":\"1\"}}",
        "{\n\"metadata\":{\"name\":\"a\",\"resourceVersion\":\"1\"},\"flag\":5}",
        "{\n \"metadata\": {\n \"name\": \"a\",\n \"resourceVersion\": \"1\"},\n\n\"flag\":5\n}",
    ] {
        let error = decode_error::<Flag>(json);
        assert_eq!((error.path(), error.offset()), ("flag", json.find('5').expect("the value") + 1), "{json:?}");
    }
}

#[test]
fn decoding_more_levels_than_serde_json_allows_is_an_error_and_the_bytes_are_kept() {
    let json = format!(
        r#"{{"metadata":{{"name":"a","resourceVersion":"1"}},"x":{}{}}}"#,
        "[".repeat(5_000),
        "]".repeat(5_000)
    );
    let object = Object::from_json(json.clone()).expect("an object");
    assert!(object.decode::<Value>().is_err());
    assert_eq!(object.json().expect("a body"), json);
}

/// Any JSON, as text. Keys are often those that the header looks for, and may come twice.
fn any_json() -> impl Strategy<Value = String> {
    let text = prop_oneof![
        3 => Just("\"a\"".to_owned()),
        1 => Just("\"\"".to_owned()),
        1 => Just(r#""\u00e9\n\"}""#.to_owned()),
        1 => "\\PC{0,6}".prop_map(|text| Value::from(text).to_string()),
    ];
    let leaf = prop_oneof![
        6 => text,
        1 => Just("null".to_owned()),
        1 => any::<bool>().prop_map(|value| value.to_string()),
        1 => any::<i64>().prop_map(|value| value.to_string()),
        1 => prop_oneof![Just("-0"), Just("1.5e300"), Just("1e400"), Just("123456789012345678901234567890")]
            .prop_map(str::to_owned),
    ];
    leaf.prop_recursive(4, 48, 8, |inner| {
        prop_oneof![
            3 => prop::collection::vec((any_key(), inner.clone()), 0..8).prop_map(object_text),
            1 => prop::collection::vec(inner, 0..4).prop_map(|items| format!("[{}]", items.join(" , "))),
        ]
    })
}

fn any_key() -> impl Strategy<Value = String> {
    let known = prop::sample::select(vec![
        "\"kind\"",
        "\"apiVersion\"",
        "\"metadata\"",
        "\"name\"",
        "\"n\\u0061me\"",
        "\"namespace\"",
        "\"uid\"",
        "\"resourceVersion\"",
        "\"labels\"",
        "\"deletionTimestamp\"",
        "\"annotations\"",
        "\"spec\"",
    ]);
    prop_oneof![9 => known.prop_map(str::to_owned), 1 => "[a-c\"]{0,2}".prop_map(|key| Value::from(key).to_string())]
}

fn object_text(fields: Vec<(String, String)>) -> String {
    let fields: Vec<String> = fields.into_iter().map(|(key, value)| format!("{key}:{value}")).collect();
    format!("{{{}}}", fields.join(","))
}

/// Text that is JSON and looks like an object more often than chance would have it.
fn any_object() -> impl Strategy<Value = String> {
    let string = || prop_oneof![Just("\"a\"".to_owned()), Just("\"b\"".to_owned()), Just(r#""\u0063""#.to_owned())];
    let labels = prop::collection::vec((any_key(), string()), 0..4).prop_map(object_text);
    let field = prop_oneof![
        8 => (prop::sample::select(vec!["\"name\"", "\"namespace\"", "\"uid\"", "\"resourceVersion\""]), string()),
        2 => (Just("\"labels\""), labels),
        1 => (Just("\"deletionTimestamp\""), string()),
        1 => (Just("\"labels\""), Just("null".to_owned())),
    ];
    let field = field.prop_map(|(key, value)| (key.to_owned(), value));
    let metadata = prop::collection::vec(field, 0..12).prop_map(object_text);
    let top = prop_oneof![
        4 => metadata.prop_map(|metadata| ("\"metadata\"".to_owned(), metadata)),
        1 => string().prop_map(|kind| ("\"kind\"".to_owned(), kind)),
        1 => any_json().prop_map(|value| ("\"spec\"".to_owned(), value)),
    ];
    prop::collection::vec(top, 1..4).prop_map(object_text)
}

/// What serde_json's own tree says of the header.
fn assert_header_is_that_of_the_tree(json: &str) {
    let Ok(value) = serde_json::from_str::<Value>(json) else { return };
    let metadata = &value["metadata"];
    let text = |field: &str| metadata[field].as_str();
    match Object::from_json(json.to_owned()) {
        Ok(object) => {
            assert_eq!(Some(object.key().name()), text("name"), "{json}");
            assert_eq!(object.key().namespace(), text("namespace").filter(|text| !text.is_empty()), "{json}");
            assert_eq!(object.uid(), text("uid"), "{json}");
            assert_eq!(Some(object.resource_version().as_str()), text("resourceVersion"), "{json}");
            assert_eq!(object.is_deleting(), text("deletionTimestamp").is_some(), "{json}");
            let expected: BTreeMap<String, String> = match metadata["labels"].as_object() {
                Some(map) => {
                    map.iter().map(|(key, value)| (key.clone(), value.as_str().unwrap_or_default().into())).collect()
                }
                None => BTreeMap::new(),
            };
            assert_eq!(labels(&object), expected, "{json}");
        }
        Err(error) => {
            // A value of a wrong type spoils an object even where a later one of the same key would do.
            let whole = |field: &str| text(field).is_some_and(|text| !text.is_empty());
            let wrong_type = error.to_string().contains(" is no ");
            assert!(wrong_type || !whole("name") || !whole("resourceVersion"), "{json}: {error}");
        }
    }
}

/// Where to cut a text of unknown length.
fn cuts() -> impl Strategy<Value = Vec<prop::sample::Index>> {
    prop::collection::vec(any::<prop::sample::Index>(), 0..5)
}

fn pieces(text: &[u8], cuts: &[prop::sample::Index]) -> Vec<bytes::Bytes> {
    let mut ends: Vec<usize> = cuts.iter().map(|cut| cut.index(text.len() + 1)).chain([text.len()]).collect();
    ends.sort_unstable();
    let mut start = 0;
    let piece = |end: usize| bytes::Bytes::copy_from_slice(&text[std::mem::replace(&mut start, end)..end]);
    ends.into_iter().map(piece).collect()
}

/// Both readers, on the whole text and on pieces of it.
fn read_whole_and_in_pieces(list: &[u8], watch: &[u8], cuts: &[prop::sample::Index]) -> [[Outcome; 2]; 2] {
    let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
    runtime.block_on(async {
        [
            [
                read_list(&pods_in([list.to_vec()]).max_object_size(2_000)).await,
                read_list(&pods_in(pieces(list, cuts)).max_object_size(2_000)).await,
            ],
            [
                read_watch(&pods_in([watch.to_vec()]).max_object_size(2_000)).await,
                read_watch(&pods_in(pieces(watch, cuts)).max_object_size(2_000)).await,
            ],
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_header_of_any_json_is_that_of_serde_jsons_tree(json in any_json()) {
        assert_header_is_that_of_the_tree(&json);
    }

    #[test]
    fn the_header_of_any_object_is_that_of_serde_jsons_tree(json in any_object()) {
        assert_header_is_that_of_the_tree(&json);
    }

    #[test]
    fn any_objects_give_the_same_parts_however_they_are_cut(
        items in prop::collection::vec(prop_oneof![any_object(), any_json()], 0..4),
        cuts in cuts(),
    ) {
        let list = format!(r#"{{"kind":"PodList","metadata":{{"resourceVersion":"1"}},"items":[{}]}}"#, items.join(", "));
        let watch: String = items.iter().map(|item| event_json("MODIFIED", item)).collect();
        for [whole, in_pieces] in read_whole_and_in_pieces(list.as_bytes(), watch.as_bytes(), &cuts) {
            prop_assert_eq!(whole, in_pieces);
        }
    }

    #[test]
    fn any_bytes_are_read_without_a_panic(
        bytes in prop::collection::vec(any::<u8>(), 0..200),
        scraps in prop::collection::vec(prop::sample::select(SCRAPS.to_vec()), 0..30),
        cuts in cuts(),
    ) {
        let scraps = scraps.concat();
        let start = br#"{"kind":"PodList","items":["#;
        let in_list = [&start[..], scraps.as_bytes(), &bytes[..]].concat();
        let in_event = [&br#"{"type":"ADDED","object":"#[..], scraps.as_bytes(), &bytes[..]].concat();
        read_whole_and_in_pieces(&in_list, &in_event, &cuts);
        read_whole_and_in_pieces(&bytes, &bytes, &cuts);
        read_whole_and_in_pieces(scraps.as_bytes(), scraps.as_bytes(), &cuts);
        let _ = Object::from_json(bytes);
        let _ = Object::from_json(scraps);
    }
}

/// What JSON and events are made of.
const SCRAPS: [&str; 22] = [
    "{",
    "}",
    "[",
    "]",
    "\"",
    ":",
    ",",
    "\n",
    " ",
    "\\",
    "\\u",
    "1",
    "-",
    ".",
    "e",
    "null",
    "\"type\"",
    "\"object\"",
    "{\"type\":\"ADDED\",\"object\":",
    "{\"metadata\":{\"name\":\"a\",\"resourceVersion\":\"1\"}}",
    "\"items\":[",
    "\"kind\":\"Status\"",
];

/// Names that no server would allow, and that look like each other.
fn hostile_name() -> impl Strategy<Value = String> {
    prop_oneof!["[ab/]{0,4}", "\\PC{0,8}", Just("\0".to_owned()), Just("a\0b".to_owned()), Just(String::new())]
}

proptest! {
    #[test]
    fn keys_are_equal_hashed_and_ordered_as_namespace_and_name_are(
        one in (hostile_name(), hostile_name()),
        other in (hostile_name(), hostile_name()),
        texts in ("[a-z]{0,3}", "[a-z]{0,3}"),
    ) {
        // One with a header behind it, one without.
        let (namespace, name) = (json_text(&one.0), json_text(&one.1));
        let json = format!(
            r#"{{"metadata":{{"namespace":{namespace},"name":{name},"uid":"{}","resourceVersion":"1","labels":{{"a":"{}"}}}}}}"#,
            texts.0, texts.1,
        );
        let plain = ObjectKey::namespaced(&other.0, &other.1);
        let bare = ObjectKey::namespaced(&one.0, &one.1);
        let loaded = Object::from_json(json).map_or_else(|_| bare.clone(), |object| object.key().clone());
        let hash = |key: &ObjectKey| {
            let mut hasher = std::hash::DefaultHasher::new();
            key.hash(&mut hasher);
            hasher.finish()
        };
        prop_assert_eq!(&loaded, &bare);
        prop_assert_eq!(hash(&loaded), hash(&bare));
        prop_assert_eq!(loaded == plain, one == other);
        prop_assert_eq!(loaded.cmp(&plain), one.cmp(&other));
        prop_assert_eq!(plain.cmp(&loaded), other.cmp(&one));
        prop_assert_eq!(loaded.namespace().unwrap_or_default(), &one.0);
        prop_assert_eq!(loaded.name(), &one.1);
    }

    /// Whichever of them the source takes for shared.
    #[test]
    fn labels_are_a_map(
        objects in proptest::collection::vec(proptest::collection::vec((hostile_name(), hostile_name()), 0..30), 1..8)
    ) {
        let items: Vec<String> = objects.iter().enumerate().map(|(number, labels)| {
            let pairs: Vec<String> =
                labels.iter().map(|(key, value)| format!("{}:{}", json_text(key), json_text(value))).collect();
            let labels = pairs.join(",");
            format!(r#"{{"metadata":{{"name":"o-{number}","resourceVersion":"1","labels":{{{labels}}}}}}}"#)
        }).collect();
        let list = format!(
            r#"{{"kind":"PodList","apiVersion":"v1","metadata":{{"resourceVersion":"9"}},"items":[{}]}}"#,
            items.join(","),
        );
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        let _inside = runtime.enter();
        let source = pods_in([list]);
        // The second time, all of them have been seen.
        for _ in 0..2 {
            let found = runtime.block_on(async {
                let mut listing = source.list(ListOptions::default()).await.expect("an answer");
                let mut found = Vec::new();
                while let Some(part) = listing.next().await.expect("a part") {
                    if let ListPart::Item(object) = part {
                        found.push(object);
                    }
                }
                found
            });
            prop_assert_eq!(found.len(), objects.len());
            for (object, expected) in found.iter().zip(&objects) {
                let expected: BTreeMap<String, String> = expected.iter().cloned().collect();
                prop_assert_eq!(&labels(object), &expected);
                prop_assert_eq!(object.labels().len(), expected.len());
                prop_assert_eq!(object.labels().is_empty(), expected.is_empty());
                for (key, value) in &expected {
                    prop_assert_eq!(object.labels().get(key), Some(value.as_str()));
                }
                prop_assert_eq!(object.labels().get("no such label"), None);
            }
        }
    }
}

fn json_text(text: &str) -> String {
    Value::from(text).to_string()
}
