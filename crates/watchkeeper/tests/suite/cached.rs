//! Handles that remember what they were decoded into.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use k8s_openapi::api::core::v1::Pod;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer};
use serde_json::Value;
use watchkeeper::{Cached, Keep, ListOptions, ListWatch, ListerWatcher as _, Object, WatchEvent};

use crate::support::*;

async fn first_of(source: &ListWatch) -> Object {
    let mut stream = source.watch(ListOptions::default()).await.expect("an answer");
    loop {
        match stream.next().await.expect("an event").expect("not the end") {
            WatchEvent::Added(object) | WatchEvent::Modified(object) | WatchEvent::Deleted(object) => return object,
            WatchEvent::Progress => {}
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn clones_share_what_was_decoded_and_free_it_with_the_last() {
    let pod: Cached<Pod> = pod("a", "1").typed();
    let clone = pod.clone();
    let decoded = clone.decode().expect("a pod");
    assert!(Arc::ptr_eq(&decoded, &pod.decode().expect("a pod")));
    let other: Cached<Pod> = pod.object().clone().typed();
    assert!(!Arc::ptr_eq(&decoded, &other.decode().expect("a pod")), "another handle remembers for itself");
    let weak = Arc::downgrade(&decoded);
    drop((clone, decoded));
    assert!(weak.upgrade().is_some());
    let object = pod.into_object();
    assert!(weak.upgrade().is_none());
    assert_eq!(object.key(), &key("a"));
}

#[test]
fn many_threads_decode_once() {
    static DECODED: AtomicUsize = AtomicUsize::new(0);
    struct Counted;
    impl<'de> Deserialize<'de> for Counted {
        fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
            Value::deserialize(deserializer)?;
            DECODED.fetch_add(1, Ordering::Relaxed);
            Ok(Self)
        }
    }
    let pod: Cached<Counted> = pod("a", "1").typed();
    std::thread::scope(|scope| {
        for _ in 0..8 {
            let pod = pod.clone();
            scope.spawn(move || pod.decode().map(drop).expect("decoded"));
        }
    });
    assert_eq!(DECODED.load(Ordering::Relaxed), 1);
}

#[test]
fn an_error_is_shared_as_well() {
    static TRIED: AtomicUsize = AtomicUsize::new(0);
    #[derive(Debug)]
    struct Never;
    impl<'de> Deserialize<'de> for Never {
        fn deserialize<D: Deserializer<'de>>(_: D) -> Result<Self, D::Error> {
            TRIED.fetch_add(1, Ordering::Relaxed);
            Err(D::Error::custom("never"))
        }
    }
    let pod: Cached<Never> = pod("a", "1").typed();
    let first = pod.decode().expect_err("an error").to_string();
    let tried = TRIED.load(Ordering::Relaxed);
    assert_eq!(pod.clone().decode().expect_err("an error").to_string(), first);
    assert_eq!(TRIED.load(Ordering::Relaxed), tried);
}

#[tokio::test]
async fn what_is_kept_decoded_is_the_same_for_all_handles() {
    let source = pods_in([event_json("ADDED", &pod_json("a", "1"))]).keep(Keep::decoded::<Pod>());
    let object = first_of(&source).await;
    let [one, other] = [object.clone(), object.clone()].map(|object| object.typed::<Pod>().decode().expect("a pod"));
    assert!(Arc::ptr_eq(&one, &other));
    assert_eq!(object.clone().typed::<Value>().decode().expect("JSON")["spec"]["nodeName"], "node-1");
    let decoded = Arc::downgrade(&one);
    drop((one, other));
    assert!(decoded.upgrade().is_some());
    drop(object);
    assert!(decoded.upgrade().is_none());
}

#[tokio::test]
async fn an_object_that_cannot_be_decoded_is_kept_all_the_same() {
    struct Panicking;
    impl<'de> Deserialize<'de> for Panicking {
        fn deserialize<D: Deserializer<'de>>(_: D) -> Result<Self, D::Error> {
            panic!("a type that cannot be made")
        }
    }
    let json = pod_json("a", "1").replace("\"node-1\"", "[]");
    for keep in [Keep::decoded::<Pod>(), Keep::decoded::<Panicking>()] {
        let object = first_of(&pods_in([event_json("ADDED", &json)]).keep(keep)).await;
        assert_eq!(object.json().expect("a body"), json);
        let error = object.typed::<Pod>().decode().expect_err("an error").to_string();
        assert!(error.contains("spec.nodeName"), "{error}");
    }
}
