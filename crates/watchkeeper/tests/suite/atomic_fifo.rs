//! A queue of changes in their order: what comes out, in which batches, and when it is synced.

use std::panic::AssertUnwindSafe;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use futures::FutureExt as _;
use tracing::Level;
use watchkeeper::queue::{AtomicFifo, Closed, Entry};
use watchkeeper::{KeyError, ReflectorStore, Replacement};

use crate::queue_support::*;
use crate::support::{Logs, key, pod, without_deadlock};

#[tokio::test]
async fn each_producers_changes_come_out_in_its_order() {
    let (queue, mut consumer) = atomic().build();
    let producers = ["a", "b"].map(|producer| {
        let queue = queue.clone();
        std::thread::spawn(move || {
            for value in 1..=500 {
                queue.add(item(producer, value)).expect("a key");
            }
        })
    });
    let mut last = [0, 0];
    for _ in 0..1000 {
        let mut batch = consumer.pop().await.expect("open");
        let Some(Entry::Object { key, delta }) = batch.take().into_iter().next() else { panic!("an object") };
        let place = usize::from(key == "b");
        let value = delta.into_object().expect("an object").value;
        assert_eq!(value, last[place] + 1);
        last[place] = value;
    }
    producers.into_iter().for_each(|producer| producer.join().expect("no panic"));
}

#[test]
fn a_list_comes_behind_a_waiting_deletion() {
    let (queue, mut consumer) = atomic().build();
    queue.delete(item("foo", 1)).expect("a key");
    queue.replace(vec![item("foo", 2)], version("1")).expect("keys");
    assert_eq!(drain_entries(&mut consumer), ["Deleted foo=1", "ReplacedAll@1 foo=2"]);
}

#[test]
fn additions_updates_and_deletions_come_out_each() {
    let (queue, mut consumer) = atomic().build();
    queue.add(item("foo", 10)).expect("a key");
    queue.update(item("foo", 12)).expect("a key");
    queue.delete(item("foo", 15)).expect("a key");
    queue.delete_key("foo".into(), None);
    assert_eq!(queue.list(), []);
    assert_eq!(queue.list_keys(), ["foo"]);
    assert_eq!(drain_entries(&mut consumer), ["Added foo=10", "Updated foo=12", "Deleted foo=15", "Deleted? foo"]);
}

#[test]
fn the_transformer_sees_each_object_once_and_no_tombstone() {
    let calls = Arc::new(AtomicUsize::new(0));
    let counted = calls.clone();
    let (queue, mut consumer) = atomic()
        .transformer(move |item: Item| {
            counted.fetch_add(1, Ordering::Relaxed);
            Item { value: item.value + 1000, ..item }
        })
        .build();
    queue.add(item("a", 1)).expect("a key");
    queue.update(item("a", 2)).expect("a key");
    queue.delete(item("a", 3)).expect("a key");
    queue.delete_key("a".into(), Some(item("a", 4)));
    queue.replace(vec![item("b", 5), item("c", 6)], version("7")).expect("keys");
    queue.resync();
    assert_eq!(
        drain_entries(&mut consumer),
        ["Added a=1001", "Updated a=1002", "Deleted a=1003", "Deleted? a=4", "ReplacedAll@7 b=1005,c=1006", "SyncAll"]
    );
    assert_eq!(calls.load(Ordering::Relaxed), 5);
}

#[test]
fn deletions_of_what_nobody_knows_are_queued() {
    let (queue, mut consumer) = atomic().build();
    queue.add(item("foo", 10)).expect("a key");
    queue.delete(item("baz", 20)).expect("a key");
    assert_eq!(drain_entries(&mut consumer), ["Added foo=10", "Deleted baz=20"]);
}

#[test]
fn an_addition_and_a_list_come_out_both() {
    let (queue, mut consumer) = atomic().build();
    queue.add(item("foo", 10)).expect("a key");
    queue.replace(vec![item("foo", 15)], version("1")).expect("keys");
    assert_eq!(queue.get(&item("foo", 0)), Ok(Some(item("foo", 15))));
    assert_eq!(drain_entries(&mut consumer), ["Added foo=10", "ReplacedAll@1 foo=15"]);
}

#[test]
fn an_addition_and_its_deletion_come_out_both() {
    let (queue, mut consumer) = atomic().build();
    queue.add(item("foo", 5)).expect("a key");
    queue.delete(item("foo", 6)).expect("a key");
    assert_eq!(drain_entries(&mut consumer), ["Added foo=5", "Deleted foo=6"]);
}

#[test]
fn the_order_of_keys_is_strict() {
    let (queue, mut consumer) = atomic().build();
    for (name, value) in [("foo", 10), ("bar", 1), ("foo", 11), ("foo", 13), ("zab", 30)] {
        queue.add(item(name, value)).expect("a key");
    }
    drop(consumer.try_pop());
    queue.add(item("foo", 14)).expect("a key");
    assert_eq!(
        drain_entries(&mut consumer),
        ["Added bar=1", "Added foo=11", "Added foo=13", "Added zab=30", "Added foo=14"]
    );
}

#[test]
fn keys_are_those_of_objects_and_of_tombstones() {
    let (queue, mut consumer) = atomic().build();
    assert_eq!(queue.key_of(&item("foo", 1)), Ok("foo".to_owned()));
    queue.delete_key("gone".into(), None);
    queue.resync();
    assert_eq!(consumer.try_pop().expect("open").expect("something")[0].key(), Some(&"gone".to_owned()));
    assert_eq!(consumer.try_pop().expect("open").expect("something")[0].key(), None);
}

#[test]
fn synced_is_what_client_go_means_by_it() {
    let (queue, _consumer) = atomic().build();
    assert!(!queue.has_synced(), "nothing happened");
    queue.bookmark(version("1"));
    queue.resync();
    assert!(!queue.has_synced(), "nothing that concerns an object happened");

    let (queue, _consumer) = atomic().build();
    queue.add(item("a", 1)).expect("a key");
    assert!(queue.has_synced(), "a change before any list");

    for names in [vec![], vec!["a", "b"], vec!["a", "a"]] {
        let (queue, mut consumer) = atomic().build();
        queue.replace(names.iter().map(|name| item(name, 1)).collect(), version("1")).expect("keys");
        assert!(!queue.has_synced(), "a list of {names:?}");
        let list = consumer.try_pop().expect("open").expect("something");
        assert!(list.is_in_initial_list());
        assert!(!queue.has_synced(), "not before it is processed");
        drop(list);
        assert!(queue.has_synced(), "a list of {names:?}");
    }
}

#[test]
fn what_is_in_front_of_the_first_list_counts_for_synced() {
    let (queue, mut consumer) = atomic().build();
    queue.resync();
    queue.replace(Vec::new(), version("1")).expect("keys");
    queue.add(item("a", 1)).expect("a key");
    for initial in [true, true, false] {
        assert_eq!(!queue.has_synced(), initial);
        assert_eq!(consumer.try_pop().expect("open").expect("something").is_in_initial_list(), initial);
    }
}

#[test]
fn what_is_requeued_in_front_of_the_first_list_is_waited_for() {
    let (queue, mut consumer) = atomic().build();
    queue.resync();
    let in_hand = consumer.try_pop().expect("open").expect("something");
    queue.replace(Vec::new(), version("1")).expect("keys");
    in_hand.requeue();
    drop(consumer.try_pop());
    assert!(!queue.has_synced());
    consumer.try_pop().expect("open").expect("something").requeue();
    assert!(!queue.has_synced());
    drop(consumer.try_pop());
    assert!(queue.has_synced());
}

#[tokio::test]
async fn closing_wakes_a_waiting_pop_and_a_waiting_batch() {
    for batch in [false, true] {
        let (queue, mut consumer) = atomic().build();
        let waiting = tokio::spawn(async move {
            if batch { consumer.pop_batch().await.map(|_| ()) } else { consumer.pop().await.map(|_| ()) }
        });
        tokio::task::yield_now().await;
        queue.close();
        assert_eq!(waiting.await.expect("no panic"), Err(Closed));
    }
}

#[tokio::test]
async fn after_closing_what_waits_comes_out() {
    let (queue, mut consumer) = atomic().build();
    queue.add(item("a", 1)).expect("a key");
    queue.close();
    queue.add(item("b", 1)).expect("a key");
    assert_eq!(consumer.pop_batch().await.expect("something").len(), 2);
    assert_eq!(consumer.pop().await.err(), Some(Closed));
    assert_eq!(consumer.try_pop().err(), Some(Closed));
}

#[test]
fn a_batch_ends_at_a_duplicate_key_and_at_another_type() {
    let (queue, mut consumer) = atomic().build();
    queue.add(item("a", 1)).expect("a key");
    queue.delete(item("b", 2)).expect("a key");
    queue.update(item("a", 3)).expect("a key");
    queue.bookmark(version("3"));
    queue.resync();
    queue.add(item("c", 4)).expect("a key");
    queue.add(item("d", 5)).expect("a key");
    queue.replace(vec![item("a", 6)], version("6")).expect("keys");
    assert_eq!(
        drain_batches(&mut consumer),
        [
            vec!["Added a=1", "Deleted b=2"],
            vec!["Updated a=3"],
            vec!["Bookmark@3"],
            vec!["SyncAll"],
            vec!["Added c=4", "Added d=5"],
            vec!["ReplacedAll@6 a=6"],
        ]
    );
}

#[test]
fn a_batch_has_a_thousand_entries_at_most() {
    let (queue, mut consumer) = atomic().build();
    for value in 0..2001 {
        queue.add(item(&format!("pod-{value}"), value)).expect("a key");
    }
    let sizes: Vec<usize> = drain_batches(&mut consumer).iter().map(Vec::len).collect();
    assert_eq!(sizes, [1000, 1000, 1]);
}

#[test]
fn a_batch_ends_with_the_first_list() {
    let (queue, mut consumer) = atomic().build();
    queue.replace(vec![item("a", 1)], version("1")).expect("keys");
    queue.add(item("b", 2)).expect("a key");
    queue.add(item("c", 3)).expect("a key");
    let first = consumer.try_pop_batch().expect("open").expect("something");
    assert!(first.is_in_initial_list());
    assert_eq!(first.len(), 1);
    drop(first);
    let second = consumer.try_pop_batch().expect("open").expect("something");
    assert!(!second.is_in_initial_list());
    assert_eq!(second.len(), 2);
}

#[test]
fn a_value_without_a_key_is_refused_and_changes_nothing() {
    let (queue, mut consumer) = atomic().build();
    for refused in [
        queue.add(item("", 1)),
        queue.update(item("", 1)),
        queue.delete(item("", 1)),
        queue.add_if_not_present(item("", 1)),
        queue.replace(vec![item("a", 1), item("", 2)], version("1")),
    ] {
        assert_eq!(refused, Err(KeyError::new("no name")));
    }
    assert!(consumer.try_pop().expect("open").is_none());
    assert!(!queue.has_synced());
}

#[test]
fn a_list_is_one_entry_and_all_before_it_stays() {
    let (queue, mut consumer) = atomic().build();
    queue.add(item("a", 1)).expect("a key");
    queue.bookmark(version("2"));
    queue.replace(vec![item("b", 3), item("c", 4)], version("4")).expect("keys");
    queue.replace(Vec::new(), version("5")).expect("keys");
    assert_eq!(drain_entries(&mut consumer), ["Added a=1", "Bookmark@2", "ReplacedAll@4 b=3,c=4", "ReplacedAll@5 "]);
}

#[tokio::test]
async fn pop_gives_an_addition_and_then_the_list() {
    let (queue, mut consumer) = atomic().build();
    queue.add(item("a", 1)).expect("a key");
    queue.replace(vec![item("b", 2)], version("2")).expect("keys");
    assert_eq!(entry_text(&consumer.pop().await.expect("open")[0]), "Added a=1");
    assert_eq!(entry_text(&consumer.pop().await.expect("open")[0]), "ReplacedAll@2 b=2");
}

#[test]
fn a_resync_is_one_entry_in_its_place() {
    let (queue, mut consumer) = atomic().build();
    queue.update(item("a", 1)).expect("a key");
    queue.resync();
    queue.delete(item("a", 2)).expect("a key");
    assert_eq!(drain_entries(&mut consumer), ["Updated a=1", "SyncAll", "Deleted a=2"]);
}

#[test]
fn requeued_entries_are_the_first_again() {
    let (queue, mut consumer) = atomic().build();
    queue.add(item("a", 1)).expect("a key");
    queue.add(item("b", 2)).expect("a key");
    queue.update(item("a", 3)).expect("a key");
    let in_hand = consumer.try_pop_batch().expect("open").expect("something");
    queue.replace(vec![item("c", 4)], version("4")).expect("keys");
    in_hand.requeue();
    assert_eq!(drain_entries(&mut consumer), ["Added a=1", "Added b=2", "Updated a=3", "ReplacedAll@4 c=4"]);
}

#[test]
fn what_was_taken_out_of_a_guard_is_not_requeued() {
    let (queue, mut consumer) = atomic().build();
    queue.replace(vec![item("a", 1)], version("1")).expect("keys");
    let mut guard = consumer.try_pop().expect("open").expect("something");
    let batch = guard.take();
    assert_eq!(format!("{batch:?}"), "[ReplacedAll at \"1\" with 1 items]");
    assert!(!queue.has_synced());
    guard.requeue();
    assert!(queue.is_empty() && queue.has_synced());
}

#[tokio::test]
async fn a_dropped_pop_loses_nothing() {
    let (queue, mut consumer) = atomic().build();
    assert!(consumer.pop_batch().now_or_never().is_none());
    let mut waiting = Box::pin(consumer.pop_batch());
    assert!(futures::poll!(&mut waiting).is_pending());
    queue.add(item("a", 1)).expect("a key");
    drop(waiting);
    assert_eq!(consumer.pop().await.expect("open").len(), 1);
}

#[test]
fn a_leaked_guard_counts_as_processed() {
    let (queue, mut consumer) = atomic().build();
    queue.replace(vec![item("a", 1)], version("1")).expect("keys");
    std::mem::forget(consumer.try_pop().expect("open").expect("something"));
    assert!(!queue.has_synced());
    assert!(consumer.try_pop().expect("open").is_none());
    assert!(queue.has_synced());
}

#[test]
fn a_guard_that_a_panic_drops_counts_as_processed_and_is_logged() {
    let logs = Logs::capture();
    let (queue, mut consumer) = atomic().name("pods").build();
    queue.replace(vec![item("a", 1)], version("1")).expect("keys");
    let processed = std::panic::catch_unwind(AssertUnwindSafe(|| {
        let _guard = consumer.try_pop_batch().expect("open").expect("something");
        panic!("in processing");
    }));
    assert!(processed.is_err());
    assert!(queue.has_synced());
    assert_eq!(logs.lines(Level::ERROR, "panicked").len(), 1);
}

#[test]
fn without_a_consumer_nothing_is_kept() {
    let (queue, consumer) = atomic().build();
    queue.add(item("a", 1)).expect("a key");
    drop(consumer);
    queue.add(item("b", 2)).expect("a key");
    queue.resync();
    assert!(queue.is_empty());
}

#[tokio::test(start_paused = true)]
async fn slow_processing_is_logged_by_the_size_of_the_batch() {
    let logs = Logs::capture();
    for (batch, time, lines) in [(2, 201, 1), (2, 200, 0), (20, 1001, 1), (20, 1000, 0)] {
        let (queue, mut consumer) = atomic().name("pods").build();
        for value in 0..batch {
            queue.add(item(&format!("pod-{value}"), value)).expect("a key");
        }
        for value in 0..11 {
            queue.update(item("pod-0", value)).expect("a key");
        }
        let before = logs.lines(Level::WARN, "holds up").len();
        let guard = consumer.pop_batch().await.expect("open");
        tokio::time::advance(Duration::from_millis(time)).await;
        drop(guard);
        assert_eq!(logs.lines(Level::WARN, "holds up").len() - before, lines, "{batch} entries, {time} ms");
    }
}

#[test]
fn add_if_not_present_looks_at_all_that_waits() {
    let (queue, mut consumer) = atomic().build();
    queue.replace(vec![item("a", 1)], version("1")).expect("keys");
    queue.delete(item("b", 2)).expect("a key");
    for name in ["a", "b", "c"] {
        queue.add_if_not_present(item(name, 3)).expect("a key");
    }
    assert_eq!(drain_entries(&mut consumer), ["ReplacedAll@1 a=1", "Deleted b=2", "Added c=3"]);
}

#[test]
fn values_are_dropped_with_no_lock_held() {
    without_deadlock(|| {
        let ask: Arc<OnceLock<Box<dyn Fn() + Send + Sync>>> = Arc::default();
        let (queue, mut consumer) = AtomicFifo::builder(Parting::key).build();
        let asked = queue.clone();
        assert!(ask.set(Box::new(move || assert!(asked.len() < 100))).is_ok());
        let value = |key| Parting(key, ask.clone());
        queue.add(value(1)).expect("a key");
        queue.add_if_not_present(value(1)).expect("a key");
        queue.replace(vec![value(1)], version("1")).expect("keys");
        consumer.try_pop().expect("open").expect("something").requeue();
        drop(consumer.try_pop_batch().expect("open").expect("something"));
        drop(consumer);
        queue.add(value(2)).expect("a key");
    });
}

#[test]
fn producers_do_not_wait_for_the_consumer_however_much_waits() {
    let (queue, mut consumer) = atomic().build();
    queue.add(item("first", 0)).expect("a key");
    let in_hand = consumer.try_pop_batch().expect("open").expect("something");
    for value in 0..5_000 {
        queue.update(item("again", value)).expect("a key");
    }
    assert_eq!((in_hand.len(), queue.len()), (1, 5_000));
}

#[test]
fn a_look_into_the_queue_shows_one_state_for_each_key() {
    let (queue, _consumer) = atomic().build();
    queue.add(item("a", 1)).expect("a key");
    queue.add(item("gone", 2)).expect("a key");
    queue.replace(vec![item("a", 3), item("b", 4)], version("4")).expect("keys");
    queue.update(item("b", 5)).expect("a key");
    queue.delete(item("a", 6)).expect("a key");
    assert_eq!(queue.list_keys(), ["a", "b"]);
    assert_eq!(queue.list(), [item("a", 6), item("b", 5)]);
    assert_eq!(queue.entries().len(), 5);
}

#[test]
fn a_reflectors_lists_and_bookmarks_come_through_whole() {
    let (queue, mut consumer) = AtomicFifo::objects().build();
    let store: &dyn ReflectorStore = &queue;
    store.add(pod("a", "1")).expect("a key");
    store.update(pod("a", "2")).expect("a key");
    store.delete(&key("a"), Some(pod("a", "3"))).expect("a key");
    store.delete(&key("b"), None).expect("a key");
    let list = Replacement {
        items: vec![pod("c", "4")],
        resource_version: version("5"),
        unusable: vec![key("bad")],
        complete: false,
    };
    store.replace(list).expect("keys");
    store.bookmark(&version("6")).expect("queued");
    store.resync().expect("queued");
    let mut all = Vec::new();
    while let Ok(Some(mut batch)) = consumer.try_pop() {
        for entry in batch.take() {
            if let Entry::ReplacedAll(list) = &entry {
                assert_eq!((list.unusable.as_slice(), list.complete), (&[key("bad")][..], false));
            }
            all.push(format!("{entry:?}"));
        }
    }
    assert_eq!(
        all,
        [
            "Added \"shop/a\"",
            "Updated \"shop/a\"",
            "Deleted \"shop/a\"",
            "Deleted \"shop/b\"",
            "ReplacedAll at \"5\" with 1 items, 1 more unusable, incomplete",
            "Bookmark at \"6\"",
            "SyncAll",
        ]
    );
}
