//! A queue of changes by key: what comes out, in which order, and what the guard means.

use std::panic::AssertUnwindSafe;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use futures::FutureExt as _;
use tracing::Level;
use watchkeeper::queue::{Closed, Delta, DeltaFifo, DeltaType};
use watchkeeper::{KeyError, KnownObjects, Object, Queue, ReflectorStore};

use crate::queue_support::*;
use crate::support::{Logs, key, pod, without_deadlock};

#[tokio::test]
async fn each_producers_objects_come_out_in_its_order() {
    let (queue, mut consumer) = fifo().build();
    let producers = ["a", "b"].map(|producer| {
        let queue = queue.clone();
        std::thread::spawn(move || {
            for value in 1..=500 {
                queue.add(item(&format!("{producer}{value}"), value)).expect("a key");
            }
        })
    });
    let mut last = [0, 0];
    for _ in 0..1000 {
        let deltas = consumer.pop().await.expect("open");
        let place = usize::from(deltas.key().starts_with('b'));
        let value = deltas.newest().object().expect("an object").value;
        assert!(value > last[place], "{value} after {}", last[place]);
        last[place] = value;
    }
    producers.into_iter().for_each(|producer| producer.join().expect("no panic"));
    assert!(queue.is_empty());
}

#[test]
fn all_changes_of_a_key_come_out_at_once() {
    let (queue, mut consumer) = fifo().build();
    queue.add(item("foo", 10)).expect("a key");
    queue.update(item("foo", 12)).expect("a key");
    queue.delete(item("foo", 15)).expect("a key");
    assert_eq!(queue.list(), [item("foo", 15)]);
    assert_eq!(queue.list_keys(), ["foo"]);
    assert_eq!(queue.get(&item("foo", 0)), Ok(Some(item("foo", 15))));

    let deltas = consumer.try_pop().expect("open").expect("something");
    assert_eq!(texts(&deltas), ["Added foo=10", "Updated foo=12", "Deleted foo=15"]);
    assert_eq!(deltas.oldest(), &Delta::Added(item("foo", 10)));
    assert_eq!(deltas.newest().delta_type(), DeltaType::Deleted);
    assert_eq!(queue.get_by_key(&"foo".to_owned()), None);
    drop(deltas);
    assert!(consumer.try_pop().expect("open").is_none());
}

#[test]
fn the_transformer_sees_each_object_once_and_no_tombstone() {
    let calls = Arc::new(AtomicUsize::new(0));
    let counted = calls.clone();
    let store = TestStore::of([item("gone", 1), item("foo", 2)]);
    let (queue, mut consumer) = fifo()
        .known_objects(store)
        .transformer(move |item: Item| {
            counted.fetch_add(1, Ordering::Relaxed);
            Item { value: item.value + 1000, ..item }
        })
        .build();
    queue.add(item("foo", 10)).expect("a key");
    queue.update(item("foo", 11)).expect("a key");
    queue.delete(item("foo", 12)).expect("a key");
    queue.replace(vec![item("foo", 13), item("new", 14)], version("1")).expect("keys");
    assert_eq!(calls.load(Ordering::Relaxed), 5);
    assert_eq!(
        drain(&mut consumer),
        [
            vec!["Added foo=1010", "Updated foo=1011", "Deleted foo=1012", "Sync foo=1013"],
            vec!["Sync new=1014"],
            vec!["Deleted? gone=1"],
        ]
    );
    queue.resync();
    assert_eq!(drain(&mut consumer), [vec!["Sync foo=2"], vec!["Sync gone=1"]]);
    assert_eq!(calls.load(Ordering::Relaxed), 5, "a resync is not transformed");
}

#[test]
fn deletions_of_what_is_not_known_are_dropped() {
    let (queue, mut consumer) = fifo().build();
    queue.add(item("foo", 10)).expect("a key");
    queue.update(item("bar", 15)).expect("a key");
    queue.add(item("qux", 17)).expect("a key");
    queue.delete(item("qux", 18)).expect("a key");
    queue.delete(item("baz", 20)).expect("a key");
    queue.delete_key("baz".into(), None);
    assert_eq!(
        drain(&mut consumer),
        [vec!["Added foo=10"], vec!["Updated bar=15"], vec!["Added qux=17", "Deleted qux=18"]]
    );
}

#[test]
fn deletions_of_known_objects_are_queued() {
    let store = TestStore::of([item("foo", 5), item("bar", 6), item("baz", 7)]);
    let (queue, mut consumer) = fifo().known_objects(store).build();
    queue.add(item("foo", 10)).expect("a key");
    queue.update(item("bar", 15)).expect("a key");
    queue.delete(item("baz", 20)).expect("a key");
    assert_eq!(drain(&mut consumer), [["Added foo=10"], ["Updated bar=15"], ["Deleted baz=20"]]);
}

#[test]
fn a_deletion_of_what_waits_is_kept_even_if_the_store_does_not_know_it() {
    let (queue, _consumer) = fifo().known_objects(TestStore::of([])).build();
    queue.add(item("foo", 5)).expect("a key");
    queue.delete(item("foo", 6)).expect("a key");
    let deltas = queue.deltas(&"foo".into()).expect("waiting");
    assert_eq!(texts(&deltas), ["Added foo=5", "Deleted foo=6"]);
}

#[test]
fn two_deletions_become_the_one_that_says_more() {
    let store = TestStore::of([item("foo", 1)]);
    for (deletions, left) in [
        (vec![Some(2), Some(3)], "Deleted foo=3"),
        (vec![Some(2), None], "Deleted foo=2"),
        (vec![None, Some(2)], "Deleted foo=2"),
        (vec![None, None], "Deleted? foo"),
        (vec![None, Some(2), None, None], "Deleted foo=2"),
    ] {
        let (queue, mut consumer) = fifo().known_objects(store.clone()).build();
        for deletion in deletions {
            match deletion {
                Some(value) => queue.delete(item("foo", value)).expect("a key"),
                None => queue.delete_key("foo".into(), None),
            }
        }
        assert_eq!(drain(&mut consumer), [[left]]);
    }
    let (queue, mut consumer) = fifo().known_objects(store).build();
    queue.delete_key("foo".into(), None);
    queue.delete_key("foo".into(), Some(item("foo", 1)));
    queue.delete_key("foo".into(), Some(item("foo", 2)));
    assert_eq!(drain(&mut consumer), [["Deleted? foo=1"]], "the first tombstone with an object stays");
}

#[test]
fn a_key_that_waits_keeps_its_place_and_one_that_was_taken_goes_to_the_end() {
    let (queue, mut consumer) = fifo().build();
    for (name, value) in [("foo", 10), ("bar", 1), ("foo", 11), ("foo", 13), ("zab", 30)] {
        queue.add(item(name, value)).expect("a key");
    }
    let first = consumer.try_pop().expect("open").expect("something");
    assert_eq!((first.key().as_str(), first.len()), ("foo", 3));
    drop(first);
    queue.add(item("foo", 14)).expect("a key");
    assert_eq!(drain(&mut consumer), [["Added bar=1"], ["Added zab=30"], ["Added foo=14"]]);
}

#[test]
fn keys_are_those_of_objects_of_tombstones_and_of_deltas() {
    let (queue, mut consumer) = fifo().known_objects(TestStore::of([item("known", 1)])).build();
    assert_eq!(queue.key_of(&item("foo", 1)), Ok("foo".to_owned()));
    queue.add(item("foo", 1)).expect("a key");
    queue.delete_key("known".into(), None);
    assert_eq!(consumer.try_pop().expect("open").expect("something").key(), "foo");
    let tombstone = consumer.try_pop().expect("open").expect("something");
    assert_eq!((tombstone.key().as_str(), tombstone.newest().object()), ("known", None));
    assert!(tombstone.newest().is_tombstone());
}

#[test]
fn a_value_without_a_key_is_an_error_and_changes_nothing() {
    let (queue, mut consumer) = fifo().build();
    assert_eq!(queue.add(item("", 1)), Err(KeyError::new("no name")));
    assert_eq!(queue.update(item("", 1)), Err(KeyError::new("no name")));
    assert_eq!(queue.delete(item("", 1)), Err(KeyError::new("no name")));
    assert_eq!(queue.add_if_not_present(item("", 1)), Err(KeyError::new("no name")));
    assert_eq!(queue.replace(vec![item("a", 1), item("", 2)], version("1")), Err(KeyError::new("no name")));
    assert!(queue.get(&item("", 1)).is_err());
    assert!(consumer.try_pop().expect("open").is_none());
    assert!(!queue.has_synced());
}

#[test]
fn a_key_function_that_panics_leaves_the_queue_as_it_was() {
    let (queue, mut consumer) = DeltaFifo::builder(|item: &Item| {
        assert!(item.value >= 0, "negative");
        Ok(item.name.clone())
    })
    .build();
    queue.add(item("a", 1)).expect("a key");
    let replaced = AssertUnwindSafe(|| queue.replace(vec![item("b", 1), item("c", -1)], version("1")));
    assert!(std::panic::catch_unwind(replaced).is_err());
    assert_eq!(drain(&mut consumer), [["Added a=1"]]);
}

#[test]
fn known_objects_that_panic_leave_the_queue_as_it_was() {
    struct Broken;
    impl KnownObjects<Item, String> for Broken {
        fn list_keys(&self) -> Vec<String> {
            vec!["x".into()]
        }
        fn get_by_key(&self, _: &String) -> Option<Item> {
            panic!("broken")
        }
    }
    let (queue, mut consumer) = fifo().known_objects(Broken).build();
    queue.add(item("a", 1)).expect("a key");
    assert!(std::panic::catch_unwind(AssertUnwindSafe(|| queue.replace(vec![item("b", 1)], version("1")))).is_err());
    assert!(std::panic::catch_unwind(AssertUnwindSafe(|| queue.resync())).is_err());
    assert!(std::panic::catch_unwind(AssertUnwindSafe(|| queue.delete(item("x", 1)))).is_err());
    assert_eq!(drain(&mut consumer), [["Added a=1"]]);
}

#[test]
fn values_are_dropped_with_no_lock_held() {
    struct Known(Arc<OnceLock<Box<dyn Fn() + Send + Sync>>>);
    impl KnownObjects<Parting, u8> for Known {
        fn list_keys(&self) -> Vec<u8> {
            vec![1, 1, 2]
        }
        fn get_by_key(&self, key: &u8) -> Option<Parting> {
            (*key < 3).then(|| Parting(*key, self.0.clone()))
        }
    }
    without_deadlock(|| {
        let ask: Arc<OnceLock<Box<dyn Fn() + Send + Sync>>> = Arc::default();
        let (queue, mut consumer) =
            DeltaFifo::builder(Parting::key).known_objects(Known(ask.clone())).emit_replaced(true).build();
        let asked = queue.clone();
        assert!(ask.set(Box::new(move || assert!(asked.len() < 100))).is_ok());
        let value = |key| Parting(key, ask.clone());
        queue.delete(value(9)).expect("a key");
        queue.delete(value(1)).expect("a key");
        queue.delete(value(1)).expect("a key");
        queue.delete_key(1, Some(value(1)));
        queue.add_if_not_present(value(1)).expect("a key");
        let in_hand = consumer.try_pop().expect("open").expect("something");
        queue.delete(value(1)).expect("a key");
        queue.replace(Vec::new(), version("1")).expect("keys");
        queue.replace(vec![value(4), value(4)], version("2")).expect("keys");
        in_hand.requeue();
        let in_hand = consumer.try_pop().expect("open").expect("something");
        queue.delete(value(1)).expect("a key");
        drop(in_hand);
        queue.resync();
        while let Ok(Some(deltas)) = consumer.try_pop() {
            drop(deltas);
        }
        queue.add(value(5)).expect("a key");
        drop(consumer);
        queue.add(value(6)).expect("a key");
    });
}

#[test]
fn add_if_not_present_adds_only_what_neither_waits_nor_is_in_hand() {
    let (queue, mut consumer) = fifo().build();
    queue.add(item("a", 1)).expect("a key");
    queue.add_if_not_present(item("a", 2)).expect("a key");
    let in_hand = consumer.try_pop().expect("open").expect("something");
    queue.add_if_not_present(item("a", 3)).expect("a key");
    assert_eq!(texts(&in_hand), ["Added a=1"]);
    drop(in_hand);
    assert!(queue.is_empty());
    queue.add_if_not_present(item("a", 4)).expect("a key");
    assert_eq!(drain(&mut consumer), [["Added a=4"]]);
}

#[tokio::test]
async fn closing_wakes_a_waiting_pop() {
    let (queue, mut consumer) = fifo().build();
    let waiting = tokio::spawn(async move { consumer.pop().await.map(|_| ()) });
    tokio::task::yield_now().await;
    queue.close();
    assert_eq!(waiting.await.expect("no panic"), Err(Closed));
    assert!(queue.is_closed());
}

#[tokio::test]
async fn after_closing_what_waits_comes_out_and_what_is_added_too() {
    let (queue, mut consumer) = fifo().build();
    queue.add(item("a", 1)).expect("a key");
    queue.close();
    let in_hand = consumer.pop().await.expect("something");
    queue.add(item("b", 2)).expect("a key");
    in_hand.requeue();
    assert_eq!(consumer.pop().await.expect("something").key(), "b");
    assert_eq!(consumer.pop().await.expect("something").key(), "a");
    assert_eq!(consumer.pop().await.err(), Some(Closed));
    assert_eq!(consumer.try_pop().err(), Some(Closed));
}

#[tokio::test]
async fn the_last_producer_closes_the_queue() {
    let (queue, mut consumer) = fifo().build();
    let clone = queue.clone();
    drop(queue);
    clone.add(item("a", 1)).expect("a key");
    drop(clone);
    assert_eq!(consumer.pop().await.expect("something").key(), "a");
    assert_eq!(consumer.pop().await.err(), Some(Closed));
}

#[tokio::test]
async fn a_dropped_pop_loses_nothing() {
    let (queue, mut consumer) = fifo().build();
    assert!(consumer.pop().now_or_never().is_none());
    queue.add(item("a", 1)).expect("a key");
    {
        let mut woken = std::pin::pin!(consumer.pop());
        let first = futures::poll!(&mut woken);
        assert!(first.is_ready());
        // The guard within is dropped with the future: processed, since it had been handed out.
    }
    let mut waiting = Box::pin(consumer.pop());
    assert!(futures::poll!(&mut waiting).is_pending());
    queue.add(item("b", 2)).expect("a key");
    drop(waiting);
    assert_eq!(texts(&consumer.pop().await.expect("open")), ["Added b=2"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_wake_up_is_lost() {
    let (queue, mut consumer) = fifo().build();
    let producer = std::thread::spawn(move || {
        for value in 0..20_000 {
            queue.add(item("a", value)).expect("a key");
            if value % 3 == 0 {
                std::thread::yield_now();
            }
        }
    });
    let all = async {
        let mut seen = 0;
        while let Ok(deltas) = consumer.pop().await {
            seen += deltas.len();
        }
        seen
    };
    assert_eq!(tokio::time::timeout(Duration::from_secs(60), all).await, Ok(20_000));
    producer.join().expect("no panic");
}

#[tokio::test]
async fn a_consumer_that_always_finds_something_lets_others_run() {
    let (queue, mut consumer) = fifo().build();
    queue.add(item("a", 1)).expect("a key");
    let busy = async {
        loop {
            consumer.pop().await.expect("open").requeue();
        }
    };
    tokio::select! {
        biased;
        () = busy => {}
        () = tokio::task::yield_now() => {}
    }
}

#[test]
fn requeued_changes_come_before_newer_ones_and_the_key_has_one_entry() {
    let (queue, mut consumer) = fifo().build();
    queue.add(item("a", 1)).expect("a key");
    queue.add(item("b", 2)).expect("a key");
    let in_hand = consumer.try_pop().expect("open").expect("something");
    queue.update(item("a", 3)).expect("a key");
    queue.add(item("c", 4)).expect("a key");
    in_hand.requeue();
    assert_eq!(queue.len(), 3);
    assert_eq!(drain(&mut consumer), [vec!["Added b=2"], vec!["Added a=1", "Updated a=3"], vec!["Added c=4"]]);
}

#[test]
fn requeued_changes_without_newer_ones_go_to_the_end() {
    let (queue, mut consumer) = fifo().build();
    queue.add(item("a", 1)).expect("a key");
    queue.add(item("b", 2)).expect("a key");
    consumer.try_pop().expect("open").expect("something").requeue();
    assert_eq!(queue.get_by_key(&"a".into()), Some(item("a", 1)));
    assert_eq!(drain(&mut consumer), [["Added b=2"], ["Added a=1"]]);
}

#[test]
fn a_guard_that_is_leaked_comes_back() {
    let logs = Logs::capture();
    let (queue, mut consumer) = fifo().build();
    queue.add(item("a", 1)).expect("a key");
    std::mem::forget(consumer.try_pop().expect("open").expect("something"));
    queue.update(item("a", 2)).expect("a key");
    assert_eq!(drain(&mut consumer), [["Added a=1", "Updated a=2"]]);
    assert_eq!(logs.lines(Level::WARN, "leaked").len(), 1);
}

#[test]
fn a_guard_that_a_panic_drops_counts_as_processed_and_is_logged() {
    let logs = Logs::capture();
    let (queue, mut consumer) = fifo().name("pods").build();
    queue.replace(vec![item("a", 1)], version("1")).expect("keys");
    let processed = std::panic::catch_unwind(AssertUnwindSafe(|| {
        let _guard = consumer.try_pop().expect("open").expect("something");
        panic!("in processing");
    }));
    assert!(processed.is_err());
    assert!(queue.has_synced());
    assert!(queue.is_empty());
    let lines = logs.lines(Level::ERROR, "panicked");
    assert_eq!(lines.len(), 1);
    assert!(lines[0].contains("pods") && lines[0].contains("\"a\""), "{lines:?}");
    assert!(consumer.try_pop().expect("open").is_none());
}

#[test]
fn without_a_consumer_nothing_is_kept() {
    let kept = Arc::new(());
    let (queue, consumer) = DeltaFifo::builder(|_: &Arc<()>| Ok(1)).build();
    queue.add(kept.clone()).expect("a key");
    assert_eq!(Arc::strong_count(&kept), 2);
    drop(consumer);
    assert_eq!(Arc::strong_count(&kept), 1);
    queue.add(kept.clone()).expect("a key");
    queue.replace(vec![kept.clone()], version("1")).expect("keys");
    assert!(queue.is_empty());
    assert_eq!(Arc::strong_count(&kept), 1);
}

#[tokio::test(start_paused = true)]
async fn slow_processing_with_more_than_ten_waiting_is_logged_once() {
    let logs = Logs::capture();
    for (waiting, time, lines) in [(11, 101, 1), (11, 100, 0), (10, 5000, 0)] {
        let (queue, mut consumer) = fifo().name("pods").build();
        for value in 0..=waiting {
            queue.add(item(&format!("pod-{value}"), value)).expect("a key");
        }
        let before = logs.lines(Level::WARN, "holds up").len();
        let guard = consumer.pop().await.expect("open");
        tokio::time::advance(Duration::from_millis(time)).await;
        drop(guard);
        let after = logs.lines(Level::WARN, "holds up");
        assert_eq!(after.len() - before, lines, "{waiting} waiting, {time} ms");
        assert!(after.iter().all(|line| ["pods", "pod-0", "depth=11"].iter().all(|part| line.contains(part))));
    }
}

#[test]
fn a_queue_is_a_store_and_a_queue_like_others() {
    fn use_it(queue: &impl Queue<Item, String>) {
        queue.add(item("a", 1)).expect("a key");
        queue.update(item("a", 2)).expect("a key");
        queue.add_if_not_present(item("a", 3)).expect("a key");
        queue.replace(vec![item("a", 4)], version("1")).expect("keys");
        queue.resync().expect("keys");
        queue.delete(item("a", 5)).expect("a key");
        assert_eq!(queue.list(), [item("a", 5)]);
        assert_eq!(queue.list_keys(), ["a"]);
        assert_eq!(queue.get(&item("a", 0)), Ok(Some(item("a", 5))));
        assert!(queue.has_synced());
        queue.close();
    }
    let (queue, _consumer) = fifo().build();
    use_it(&queue);
    assert!(queue.is_closed());
    let (queue, _consumer) = atomic().build();
    use_it(&queue);
    assert!(queue.is_closed());
}

#[test]
fn a_reflector_can_write_into_it() {
    let (queue, mut consumer) = DeltaFifo::objects().emit_replaced(true).build();
    let store: &dyn ReflectorStore = &queue;
    store.add(pod("a", "1")).expect("a key");
    store.update(pod("a", "2")).expect("a key");
    store.delete(&key("a"), None).expect("a key");
    store.delete(&key("unknown"), None).expect("a key");
    store.bookmark(&version("9")).expect("ignored");
    store.resync().expect("nothing known");
    let deltas = consumer.try_pop().expect("open").expect("something");
    assert_eq!(deltas.key(), &key("a"));
    let types: Vec<String> = deltas.iter().map(|delta| delta.delta_type().to_string()).collect();
    assert_eq!(types, ["Added", "Updated", "Deleted"]);
    assert!(deltas.newest().is_tombstone());
    assert_eq!(format!("{deltas:?}"), "\"shop/a\" [Added, Updated, Deleted]");
    drop(deltas);
    assert!(consumer.try_pop().expect("open").is_none());
}

#[test]
fn the_same_key_is_the_same_object_whatever_its_uid() {
    let pod = |uid: &str, version: &str| {
        Object::from_json(format!(
            r#"{{"kind":"Pod","apiVersion":"v1","metadata":{{"name":"a","namespace":"shop","uid":"{uid}","resourceVersion":"{version}"}}}}"#
        ))
        .expect("a pod")
    };
    let (queue, mut consumer) = DeltaFifo::objects().build();
    queue.add(pod("first", "1")).expect("a key");
    queue.delete(pod("first", "2")).expect("a key");
    queue.add(pod("second", "3")).expect("a key");
    let deltas = consumer.try_pop().expect("open").expect("something");
    let uids: Vec<_> = deltas.iter().filter_map(|delta| delta.object()?.uid().map(str::to_owned)).collect();
    assert_eq!(uids, ["first", "first", "second"]);
}
