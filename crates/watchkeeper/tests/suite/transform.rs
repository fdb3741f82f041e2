//! What transforms may do to objects, and what they may not.

use k8s_openapi::api::core::v1::Pod;
use serde_json::Value;
use watchkeeper::{Keep, ListWatch, Object, Transform};

use crate::corpus;
use crate::support::*;

fn list(items: &[String]) -> String {
    let items = items.join(",");
    format!(r#"{{"kind":"PodList","apiVersion":"v1","metadata":{{"resourceVersion":"9"}},"items":[{items}]}}"#)
}

fn replacing(from: &'static str, to: &'static str) -> Transform {
    Transform::json(move |json: &[u8]| {
        Ok::<_, std::str::Utf8Error>(Some(std::str::from_utf8(json)?.replace(from, to).into_bytes()))
    })
}

async fn transformed(json: &str, transform: Transform) -> String {
    let source = pods_in([list(&[json.to_owned()])]).transform(transform);
    read_list(&source).await.complete().into_iter().find(|part| !part.starts_with("metadata")).expect("an item")
}

#[tokio::test]
async fn a_transform_changes_what_is_kept() {
    let item = transformed(&pod_json("a", "1"), replacing("node-1", "node-2")).await;
    assert_eq!(item, format!("item {}", pod_json("a", "1").replace("node-1", "node-2")));
    let typed = Transform::typed::<Pod>(|pod| pod.spec = None);
    let item = transformed(&pod_json("a", "1"), typed).await;
    assert!(item.starts_with("item {") && !item.contains("node"), "{item}");
    let untouched = Transform::json(|_: &[u8]| Ok::<_, ()>(None));
    assert_eq!(transformed(&pod_json("a", "1"), untouched).await, format!("item {}", pod_json("a", "1")));
}

#[tokio::test]
async fn labels_are_those_that_the_transform_left() {
    let source = pods_in([event_json("ADDED", &pod_json("a", "1"))]).transform(replacing("\"app\"", "\"tier\""));
    let mut stream = watchkeeper::ListerWatcher::watch(&source, Default::default()).await.expect("an answer");
    let object: Object = loop {
        match stream.next().await.expect("an event").expect("not the end") {
            watchkeeper::WatchEvent::Added(object) => break object,
            _ => continue,
        }
    };
    assert_eq!((object.labels().get("app"), object.labels().get("tier")), (None, Some("a")));
}

#[tokio::test]
async fn an_object_whose_identity_a_transform_changes_cannot_be_used() {
    let changes = [
        ("\"name\":\"a\"", "\"name\":\"b\""),
        ("\"namespace\":\"shop\"", "\"namespace\":\"b\""),
        ("\"namespace\":\"shop\",", ""),
        ("uid-a", "uid-b"),
        ("\"uid\":\"uid-a\",", ""),
        ("\"resourceVersion\":\"1\"", "\"resourceVersion\":\"2\""),
        ("\"metadata\"", "\"meta\""),
    ];
    for (from, to) in changes {
        let item = transformed(&pod_json("a", "1"), replacing(from, to)).await;
        assert_eq!(item, "bad shop/a@1: the transform changed its name, namespace, uid or version", "{from}");
    }
}

#[tokio::test]
async fn an_object_on_which_a_transform_fails_cannot_be_used() {
    let failing = Transform::json(|_: &[u8]| Err("no"));
    let panicking = Transform::json(|_: &[u8]| -> Result<_, ()> { panic!("no") });
    let cases = [
        (failing, "the transform failed on it"),
        (panicking, "the transform panicked on it"),
        (replacing("{", "["), "the transform made something else than JSON of it"),
        (replacing("}", "} x"), "the transform made something else than JSON of it"),
        (
            Transform::json(|_: &[u8]| Ok::<_, ()>(Some(b"{\"\xff\":1}".to_vec()))),
            "the transform made something else than text of it",
        ),
        (Transform::typed::<Vec<u8>>(|_| {}), "the transform failed on it"),
    ];
    for (transform, problem) in cases {
        assert_eq!(transformed(&pod_json("a", "1"), transform).await, format!("bad shop/a@1: {problem}"));
    }
}

/// Of several objects only the one is harmed, and the source works on.
#[tokio::test]
async fn a_transform_that_fails_on_one_object_harms_no_other() {
    let picky = Transform::json(|json: &[u8]| {
        assert!(!json.windows(5).any(|window| window == b"uid-b"), "not this one");
        Ok::<_, ()>(None)
    });
    let lines: String = ["a", "b", "c"].iter().map(|name| event_json("ADDED", &pod_json(name, "1"))).collect();
    let source = pods_in([lines]).transform(picky);
    for _ in 0..2 {
        let events = read_watch(&source).await.complete();
        assert_eq!(events, ["added shop/a@1", "bad shop/b@1: the transform panicked on it", "added shop/c@1"]);
    }
}

#[tokio::test]
async fn deletions_are_transformed_too() {
    let source = pods_in([event_json("DELETED", &pod_json("a", "1"))]);
    let failing = source.clone().transform(Transform::json(|_: &[u8]| Err(())));
    assert_eq!(read_watch(&failing).await.complete(), ["deleted bad shop/a@1: the transform failed on it"]);
    let source = source.transform(replacing("node-1", "node-2"));
    let mut stream = watchkeeper::ListerWatcher::watch(&source, Default::default()).await.expect("an answer");
    while let Some(event) = stream.next().await.expect("an event") {
        if let watchkeeper::WatchEvent::Deleted(object) = event {
            assert_eq!(object.json().expect("a body"), pod_json("a", "1").replace("node-1", "node-2"));
            return;
        }
    }
    panic!("no deletion");
}

/// An object is transformed when it arrives, and never again.
#[tokio::test]
async fn a_transform_runs_once_per_object() {
    let runs = std::sync::Arc::new(std::sync::atomic::AtomicUsize::new(0));
    let counting = Transform::json({
        let runs = runs.clone();
        move |_: &[u8]| {
            runs.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
            Ok::<_, ()>(None)
        }
    });
    let items: Vec<String> = ["a", "b"].iter().map(|name| pod_json(name, "1")).collect();
    // In pieces of a byte, so that each object is looked at many times before it is whole.
    let source = pods_in(bytewise(list(&items).as_bytes())).transform(counting).keep(Keep::decoded::<Pod>());
    read_list(&source).await.complete();
    assert_eq!(runs.load(std::sync::atomic::Ordering::Relaxed), 2);
}

#[tokio::test]
async fn managed_fields_are_stripped_of_every_object_of_a_real_cluster_and_nothing_else_is() {
    for (name, _) in corpus::LISTS {
        let items = corpus::items(name);
        let answer = format!(
            r#"{{"kind":"ThingList","apiVersion":"v1","metadata":{{"resourceVersion":"9"}},"items":[{}]}}"#,
            items.join(",")
        );
        let source = ListWatch::by_name(client(move |_| ok(answer.clone())), "", "v1", "things");
        let source = source.transform(Transform::strip_managed_fields());
        let parts = read_list(&source).await;
        assert_eq!(parts.error, None, "{name}");
        let parts = parts.parts;
        let stripped: Vec<&str> = parts.iter().filter_map(|part| part.strip_prefix("item ")).collect();
        assert_eq!(stripped.len(), items.len());
        for (stripped, item) in stripped.into_iter().zip(&items) {
            let mut expected: Value = serde_json::from_str(item).expect("JSON");
            let had = expected["metadata"].as_object_mut().expect("metadata").remove("managedFields").is_some();
            (expected["kind"], expected["apiVersion"]) = ("Thing".into(), "v1".into());
            assert!(serde_json::from_str::<Value>(stripped).expect("JSON") == expected, "{name}");
            assert!(!had || stripped.len() < item.len());
        }
    }
}
