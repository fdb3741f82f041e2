//! A source that knows the store that its objects end up in.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde::Deserialize;
use tokio_util::sync::CancellationToken;
use watchkeeper::{Index, Indexer, ListWatch, Object, Reflector};

use crate::support::{client, event_json, ok, pod_json};

#[derive(Deserialize)]
struct View {
    spec: Spec,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Spec {
    node_name: String,
}

/// A store with an index that counts how often it looks into a body.
fn counting() -> (Arc<Indexer<Object>>, Arc<AtomicUsize>) {
    let looks = Arc::new(AtomicUsize::new(0));
    let count = looks.clone();
    let index = Index::by(move |view: &View| {
        count.fetch_add(1, Ordering::Relaxed);
        [view.spec.node_name.clone()]
    });
    (Arc::new(Indexer::objects().with_index("node", index).expect("an index")), looks)
}

/// Pods from a server that lists ten, and whose watches are too old.
fn ten_pods() -> ListWatch {
    ListWatch::of::<k8s_openapi::api::core::v1::Pod>(client(|request| {
        if request.uri().query().unwrap_or_default().contains("watch=true") {
            let expired = r#"{"kind":"Status","status":"Failure","reason":"Expired","code":410}"#;
            return ok(event_json("ERROR", expired));
        }
        let items: Vec<String> = (0..10).map(|number| pod_json(&format!("p{number}"), "1")).collect();
        ok(format!(
            r#"{{"kind":"PodList","apiVersion":"v1","metadata":{{"resourceVersion":"1"}},"items":[{}]}}"#,
            items.join(",")
        ))
    }))
}

#[tokio::test(start_paused = true)]
async fn each_body_is_looked_into_once_on_the_way_in_and_never_for_what_is_listed_again() {
    let (store, looks) = counting();
    let source = ten_pods().for_store(&store);
    let mut reflector = Reflector::new(source, store.clone()).streaming_lists(false);
    for _ in 0..3 {
        reflector.list_and_watch(&CancellationToken::new()).await.expect_err("too old");
        assert_eq!(store.by_index("node", "node-1").expect("an index").len(), 10);
        assert_eq!(looks.load(Ordering::Relaxed), 10);
    }
}

#[tokio::test(start_paused = true)]
async fn the_very_same_handle_that_is_put_again_costs_its_indexes_nothing() {
    let (store, looks) = counting();
    let mut reflector = Reflector::new(ten_pods().for_store(&store), store.clone()).streaming_lists(false);
    reflector.list_and_watch(&CancellationToken::new()).await.expect_err("too old");
    for object in store.list() {
        store.update(object).expect("a key");
    }
    assert_eq!((store.len(), looks.load(Ordering::Relaxed)), (10, 10));
}

#[tokio::test(start_paused = true)]
async fn without_a_source_that_knows_it_a_store_looks_into_bodies_itself() {
    let (store, looks) = counting();
    let mut reflector = Reflector::new(ten_pods(), store.clone()).streaming_lists(false);
    reflector.list_and_watch(&CancellationToken::new()).await.expect_err("too old");
    assert_eq!(store.by_index("node", "node-1").expect("an index").len(), 10);
    assert_eq!(looks.load(Ordering::Relaxed), 10);
}

#[tokio::test(start_paused = true)]
async fn an_index_that_panics_on_an_object_harms_nothing_else() {
    let index = Index::by(|view: &View| -> [String; 1] {
        assert_ne!(view.spec.node_name, "node-1", "no");
        [view.spec.node_name.clone()]
    });
    let store = Arc::new(Indexer::objects().with_index("node", index).expect("an index"));
    let mut reflector = Reflector::new(ten_pods().for_store(&store), store.clone()).streaming_lists(false);
    reflector.list_and_watch(&CancellationToken::new()).await.expect_err("too old");
    assert_eq!(store.len(), 10);
    assert_eq!(store.by_index("node", "node-1").expect("an index").len(), 0);
}

#[tokio::test(start_paused = true)]
async fn an_index_that_panics_half_way_through_an_object_has_none_of_its_values() {
    let index = Index::by(|view: &View| {
        let node = view.spec.node_name.clone();
        ["before", "after"].into_iter().inspect(move |word| {
            assert!(*word == "before" || node != "node-1", "no");
        })
    });
    let store = Arc::new(Indexer::objects().with_index("word", index).expect("an index"));
    let mut reflector = Reflector::new(ten_pods().for_store(&store), store.clone()).streaming_lists(false);
    reflector.list_and_watch(&CancellationToken::new()).await.expect_err("too old");
    assert_eq!(store.len(), 10);
    assert_eq!(store.index_values("word").expect("an index"), [""; 0]);
}
