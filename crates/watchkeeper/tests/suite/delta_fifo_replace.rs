//! Lists and resyncs in a queue of changes by key: what is gone, what is said again, when it is synced.

use watchkeeper::queue::DeltaFifo;
use watchkeeper::{ReflectorStore, Replacement};

use crate::queue_support::*;
use crate::support::{key, pod};

fn known() -> TestStore {
    TestStore::of([item("foo", 5), item("bar", 6), item("baz", 7)])
}

#[test]
fn a_listed_object_comes_behind_its_waiting_deletion() {
    let (queue, mut consumer) = fifo().known_objects(TestStore::of([item("foo", 1)])).build();
    queue.delete(item("foo", 1)).expect("a key");
    queue.replace(vec![item("foo", 2)], version("1")).expect("keys");
    assert_eq!(drain(&mut consumer), [["Deleted foo=1", "Sync foo=2"]]);
}

#[test]
fn what_only_the_queue_has_gets_one_tombstone() {
    type Queue = DeltaFifo<Item, String>;
    type Step = fn(&Queue);
    let delete: Step = |queue| queue.delete(item("foo", 2)).expect("a key");
    let add: Step = |queue| queue.add(item("foo", 1)).expect("a key");
    let empty: Step = |queue| queue.replace(Vec::new(), version("1")).expect("keys");
    let sequences: [(&[Step], &[&str]); 6] = [
        (&[add, empty], &["Added foo=1", "Deleted? foo=1"]),
        (&[add, delete, empty], &["Added foo=1", "Deleted foo=2"]),
        (&[add, empty, empty], &["Added foo=1", "Deleted? foo=1"]),
        (&[add, empty, delete], &["Added foo=1", "Deleted foo=2"]),
        (&[add, delete, add, empty], &["Added foo=1", "Deleted foo=2", "Added foo=1", "Deleted? foo=1"]),
        (&[add, empty, add, empty], &["Added foo=1", "Deleted? foo=1", "Added foo=1", "Deleted? foo=1"]),
    ];
    for (steps, expected) in sequences {
        for with_store in [false, true] {
            let builder = if with_store { fifo().known_objects(TestStore::of([])) } else { fifo() };
            let (queue, mut consumer) = builder.build();
            steps.iter().for_each(|step| step(&queue));
            assert_eq!(drain(&mut consumer), [expected], "with a store: {with_store}");
        }
    }
}

#[test]
fn an_added_and_then_listed_object_comes_out_once_with_its_newest_value() {
    let (queue, mut consumer) = fifo().build();
    queue.add(item("foo", 10)).expect("a key");
    queue.replace(vec![item("foo", 15)], version("1")).expect("keys");
    assert_eq!(queue.get_by_key(&"foo".into()), Some(item("foo", 15)));
    assert_eq!(drain(&mut consumer), [["Added foo=10", "Sync foo=15"]]);
    assert_eq!(queue.get_by_key(&"foo".into()), None);
}

#[test]
fn a_resync_says_nothing_behind_a_waiting_deletion() {
    let (queue, mut consumer) = fifo().known_objects(TestStore::of([item("foo", 5)])).build();
    queue.delete(item("foo", 10)).expect("a key");
    queue.resync();
    assert_eq!(drain(&mut consumer), [["Deleted foo=10"]]);
}

#[test]
fn a_resync_says_each_known_object_and_nothing_without_known_objects() {
    let (queue, mut consumer) = fifo().known_objects(known()).build();
    queue.resync();
    queue.resync();
    assert_eq!(drain(&mut consumer), [["Sync bar=6"], ["Sync baz=7"], ["Sync foo=5"]]);
    assert!(!queue.has_synced());
    let (queue, mut consumer) = fifo().build();
    queue.resync();
    assert!(drain(&mut consumer).is_empty());
}

#[test]
fn a_resync_says_nothing_behind_a_waiting_update() {
    let (queue, mut consumer) = fifo().known_objects(TestStore::of([item("foo", 5)])).build();
    queue.update(item("foo", 6)).expect("a key");
    queue.resync();
    assert_eq!(drain(&mut consumer), [["Updated foo=6"]]);
}

#[test]
fn a_resync_says_nothing_behind_what_is_in_hand() {
    let (queue, mut consumer) = fifo().known_objects(TestStore::of([item("foo", 5)])).build();
    queue.update(item("foo", 6)).expect("a key");
    let in_hand = consumer.try_pop().expect("open").expect("something");
    queue.resync();
    drop(in_hand);
    assert!(queue.is_empty());
}

#[test]
fn the_object_of_a_tombstone_is_the_newest_that_waits_or_else_the_known_one() {
    let (queue, mut consumer) = fifo().known_objects(known()).build();
    queue.delete(item("baz", 10)).expect("a key");
    queue.replace(vec![item("foo", 5)], version("1")).expect("keys");
    assert_eq!(drain(&mut consumer), [["Deleted baz=10"], ["Sync foo=5"], ["Deleted? bar=6"]]);

    let (queue, mut consumer) = fifo().known_objects(known()).build();
    queue.add(item("baz", 10)).expect("a key");
    queue.replace(vec![item("foo", 5)], version("1")).expect("keys");
    assert_eq!(
        drain(&mut consumer),
        [vec!["Added baz=10", "Deleted? baz=10"], vec!["Sync foo=5"], vec!["Deleted? bar=6"]]
    );

    let (queue, mut consumer) = fifo().build();
    queue.add(item("baz", 10)).expect("a key");
    queue.replace(vec![item("foo", 5)], version("1")).expect("keys");
    assert_eq!(drain(&mut consumer), [vec!["Added baz=10", "Deleted? baz=10"], vec!["Sync foo=5"]]);

    let (queue, mut consumer) = fifo().known_objects(TestStore::of([])).build();
    queue.add(item("baz", 10)).expect("a key");
    queue.update(item("baz", 11)).expect("a key");
    queue.replace(Vec::new(), version("1")).expect("keys");
    assert_eq!(drain(&mut consumer), [["Added baz=10", "Updated baz=11", "Deleted? baz=11"]]);
}

#[test]
fn listed_objects_come_first_and_as_replaced_if_asked_for() {
    let (queue, mut consumer) = fifo().known_objects(known()).emit_replaced(true).build();
    queue.delete(item("baz", 10)).expect("a key");
    queue.replace(vec![item("foo", 6)], version("1")).expect("keys");
    assert_eq!(drain(&mut consumer), [["Deleted baz=10"], ["Replaced foo=6"], ["Deleted? bar=6"]]);
}

#[test]
fn the_option_decides_between_sync_and_replaced() {
    for (emit, expected) in [(true, "Replaced foo=5"), (false, "Sync foo=5")] {
        let (queue, mut consumer) = fifo().known_objects(TestStore::of([item("foo", 5)])).emit_replaced(emit).build();
        queue.replace(vec![item("foo", 5)], version("1")).expect("keys");
        assert_eq!(drain(&mut consumer), [[expected]]);
    }
}

#[test]
fn tombstones_of_the_first_list_count_for_synced() {
    let (queue, mut consumer) = fifo().known_objects(known()).emit_replaced(true).build();
    queue.replace(vec![item("foo", 5)], version("1")).expect("keys");
    for expected in ["Replaced foo=5", "Deleted? bar=6", "Deleted? baz=7"] {
        assert!(!queue.has_synced());
        let deltas = consumer.try_pop().expect("open").expect("something");
        assert_eq!(texts(&deltas), [expected]);
        assert!(deltas.is_in_initial_list());
        assert!(!queue.has_synced(), "not before it is processed");
    }
    assert!(queue.has_synced());
    queue.add(item("new", 1)).expect("a key");
    assert!(!consumer.try_pop().expect("open").expect("something").is_in_initial_list());
}

#[test]
fn synced_is_what_client_go_means_by_it() {
    let list = |names: &[&str]| names.iter().map(|name| item(name, 1)).collect::<Vec<_>>();
    let (queue, _consumer) = fifo().build();
    assert!(!queue.has_synced(), "nothing happened");

    let (queue, _consumer) = fifo().build();
    queue.add(item("a", 1)).expect("a key");
    assert!(queue.has_synced(), "a change before any list");

    let (queue, _consumer) = fifo().build();
    queue.replace(Vec::new(), version("1")).expect("keys");
    assert!(queue.has_synced(), "an empty list");

    let (queue, mut consumer) = fifo().build();
    queue.replace(list(&["a", "b"]), version("1")).expect("keys");
    assert!(!queue.has_synced(), "a list");
    drop(consumer.try_pop().expect("open").expect("something"));
    assert!(!queue.has_synced(), "half of a list");
    drop(consumer.try_pop().expect("open").expect("something"));
    assert!(queue.has_synced(), "a whole list");

    let (queue, mut consumer) = fifo().build();
    queue.replace(list(&["a", "a"]), version("1")).expect("keys");
    drop(consumer.try_pop().expect("open").expect("something"));
    assert!(queue.has_synced(), "a key that came twice");
}

#[test]
fn a_requeued_object_of_the_first_list_is_still_waited_for() {
    let (queue, mut consumer) = fifo().build();
    queue.replace(vec![item("a", 1), item("b", 2)], version("1")).expect("keys");
    let in_hand = consumer.try_pop().expect("open").expect("something");
    queue.add(item("c", 3)).expect("a key");
    in_hand.requeue();
    for key in ["b", "c", "a"] {
        assert!(!queue.has_synced());
        assert_eq!(consumer.try_pop().expect("open").expect("something").key(), key);
    }
    assert!(queue.has_synced());
}

#[test]
fn a_requeued_object_that_changed_meanwhile_is_waited_for_once() {
    let (queue, mut consumer) = fifo().build();
    queue.replace(vec![item("a", 1), item("b", 2)], version("1")).expect("keys");
    let in_hand = consumer.try_pop().expect("open").expect("something");
    queue.delete(item("a", 3)).expect("a key");
    queue.delete(item("a", 4)).expect("a key");
    in_hand.requeue();
    assert_eq!(drain(&mut consumer), [vec!["Sync b=2"], vec!["Sync a=1", "Deleted a=4"]]);
    assert!(queue.has_synced());
}

#[test]
fn what_is_in_hand_since_before_the_first_list_does_not_count() {
    let (queue, mut consumer) = fifo().known_objects(TestStore::of([item("a", 1)])).build();
    queue.resync();
    let in_hand = consumer.try_pop().expect("open").expect("something");
    queue.replace(vec![item("a", 2)], version("1")).expect("keys");
    drop(in_hand);
    assert!(!queue.has_synced());
    drop(consumer.try_pop().expect("open").expect("something"));
    assert!(queue.has_synced());
}

#[tokio::test]
async fn synced_can_be_waited_for() {
    let (queue, mut consumer) = fifo().build();
    queue.replace(vec![item("a", 1)], version("1")).expect("keys");
    let waiting = tokio::spawn({
        let queue = queue.clone();
        async move { queue.synced().await }
    });
    tokio::task::yield_now().await;
    assert!(!waiting.is_finished());
    drop(consumer.pop().await);
    waiting.await.expect("no panic");
    queue.synced().await;
}

#[test]
fn a_deletion_of_what_is_in_hand_is_not_lost() {
    let (queue, mut consumer) = fifo().known_objects(TestStore::of([])).build();
    queue.add(item("foo", 1)).expect("a key");
    let in_hand = consumer.try_pop().expect("open").expect("something");
    queue.delete(item("foo", 2)).expect("a key");
    drop(in_hand);
    assert_eq!(drain(&mut consumer), [["Deleted foo=2"]]);
}

#[test]
fn a_list_without_what_is_in_hand_makes_its_tombstone() {
    let (queue, mut consumer) = fifo().known_objects(TestStore::of([])).build();
    queue.add(item("foo", 1)).expect("a key");
    let in_hand = consumer.try_pop().expect("open").expect("something");
    queue.replace(Vec::new(), version("1")).expect("keys");
    in_hand.requeue();
    assert_eq!(drain(&mut consumer), [["Added foo=1", "Deleted? foo=1"]]);
}

#[test]
fn a_list_makes_one_tombstone_for_what_is_in_hand_and_known() {
    let store = TestStore::of([item("foo", 1)]);
    let (queue, mut consumer) = fifo().known_objects(store).build();
    queue.update(item("foo", 2)).expect("a key");
    let in_hand = consumer.try_pop().expect("open").expect("something");
    queue.replace(Vec::new(), version("1")).expect("keys");
    drop(in_hand);
    assert_eq!(drain(&mut consumer), [["Deleted? foo=2"]]);
}

#[test]
fn a_second_deletion_while_the_first_is_in_hand_is_told_only_if_the_first_was_not_applied() {
    for (applied, expected) in [(true, Vec::new()), (false, vec![vec!["Deleted foo=3"]])] {
        let store = TestStore::of([item("foo", 1)]);
        let (queue, mut consumer) = fifo().known_objects(store.clone()).build();
        queue.delete(item("foo", 2)).expect("a key");
        let in_hand = consumer.try_pop().expect("open").expect("something");
        queue.delete(item("foo", 3)).expect("a key");
        queue.replace(Vec::new(), version("1")).expect("keys");
        if applied {
            store.apply("foo", in_hand.newest());
        }
        drop(in_hand);
        assert_eq!(drain(&mut consumer), expected, "applied: {applied}");
    }
}

#[test]
fn a_second_deletion_while_the_first_is_in_hand_collapses_if_that_is_requeued() {
    let store = TestStore::of([item("foo", 1)]);
    let (queue, mut consumer) = fifo().known_objects(store).build();
    queue.replace(Vec::new(), version("1")).expect("keys");
    let in_hand = consumer.try_pop().expect("open").expect("something");
    queue.delete(item("foo", 3)).expect("a key");
    queue.add(item("foo", 4)).expect("a key");
    in_hand.requeue();
    assert_eq!(drain(&mut consumer), [["Deleted foo=3", "Added foo=4"]]);
    assert!(queue.has_synced());
}

#[test]
fn a_second_deletion_is_not_lost_if_the_known_objects_panic_when_they_are_asked_about_it() {
    for processing_panics in [false, true] {
        let store = TestStore::of([item("foo", 1)]);
        let (queue, mut consumer) = fifo().known_objects(store.clone()).build();
        queue.delete(item("foo", 2)).expect("a key");
        let process = || {
            let in_hand = consumer.try_pop().expect("open").expect("something");
            queue.delete(item("foo", 3)).expect("a key");
            let poison = || {
                let _locked = store.0.lock();
                panic!("from now on the known objects panic")
            };
            if processing_panics {
                poison();
            }
            std::panic::catch_unwind(std::panic::AssertUnwindSafe(poison)).expect_err("poisoned");
            drop(in_hand);
        };
        let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(process)).is_err();
        assert_eq!(panicked, processing_panics);
        assert_eq!(drain(&mut consumer), [["Deleted foo=3"]]);
    }
}

#[test]
fn objects_that_could_not_be_used_count_as_present() {
    let (queue, mut consumer) = DeltaFifo::objects().emit_replaced(true).build();
    queue.add(pod("bad", "1")).expect("a key");
    queue.add(pod("gone", "1")).expect("a key");
    let list = Replacement {
        items: vec![pod("good", "2")],
        resource_version: version("2"),
        unusable: vec![key("bad"), key("new-and-bad")],
        complete: true,
    };
    ReflectorStore::replace(&queue, list).expect("keys");
    let mut all = Vec::new();
    while let Ok(Some(deltas)) = consumer.try_pop() {
        all.push(format!("{:?}", *deltas));
    }
    assert_eq!(all, ["\"shop/bad\" [Added]", "\"shop/gone\" [Added, Deleted]", "\"shop/good\" [Replaced]"]);
}

#[test]
fn an_incomplete_list_deletes_nothing() {
    let (queue, mut consumer) = DeltaFifo::objects().emit_replaced(true).build();
    queue.add(pod("a", "1")).expect("a key");
    let list = Replacement { items: vec![pod("b", "2")], complete: false, ..Replacement::default() };
    ReflectorStore::replace(&queue, list).expect("keys");
    let mut all = Vec::new();
    while let Ok(Some(deltas)) = consumer.try_pop() {
        all.push(format!("{:?}", *deltas));
    }
    assert_eq!(all, ["\"shop/a\" [Added]", "\"shop/b\" [Replaced]"]);
}
