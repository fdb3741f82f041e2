//! Snapshots and selections: what they show, and what they cost those who write meanwhile.

use watchkeeper::{Index, ResourceVersion, ThreadSafeStore};

type Rows = ThreadSafeStore<(u32, u32), u32>;

/// Ten thousand rows, a hundred in each group.
fn rows() -> Rows {
    let store = ThreadSafeStore::new().with_index("group", Index::of(|row: &(u32, u32)| [row.1.to_string()]));
    let store: Rows = store.expect("a name");
    store.replace((0..10_000).map(|key| (key, (key, key % 100))), ResourceVersion::from("1"));
    store
}

#[test]
fn a_snapshot_stays_what_it_was() {
    let store = rows();
    let (snapshot, group) = (store.snapshot(), store.by_index("group", "7").expect("an index"));
    for key in 0..5000 {
        store.delete(&key);
    }
    for key in 5000..12_000 {
        store.add(key, (key, 7));
    }
    store.replace([], ResourceVersion::from("2"));
    assert_eq!((snapshot.len(), snapshot.version().as_str()), (10_000, "1"));
    assert!(snapshot.iter().all(|(key, row)| *row == (*key, key % 100)));
    assert_eq!(snapshot.iter().count(), 10_000);
    assert_eq!((group.len(), group.iter().count()), (100, 100));
    assert!(group.iter().all(|(key, row)| *row == (*key, 7)));
    assert!(store.is_empty());
}

#[test]
fn a_snapshot_of_an_empty_store_is_empty() {
    let store: Rows = ThreadSafeStore::new();
    assert!(store.snapshot().is_empty() && store.snapshot().iter().next().is_none());
}

#[test]
fn writes_copy_nothing_while_nobody_looks() {
    let store = rows();
    drop((store.snapshot(), store.by_index("group", "7").expect("an index")));
    for key in 0..10_000 {
        store.update(key, (key, (key + 1) % 100));
    }
    assert_eq!(store.copies(), (0, 0));
}

#[test]
fn a_write_under_a_snapshot_copies_one_chunk_of_slots_and_no_posting() {
    let store = rows();
    let snapshot = store.snapshot();
    store.update(5, (5, 5));
    store.update(6, (6, 77));
    assert_eq!(store.copies(), (1, 0), "two writes into one chunk");
    store.update(9000, (9000, 1));
    assert_eq!(store.copies(), (2, 0));
    drop(snapshot);
    store.update(5000, (5000, 1));
    assert_eq!(store.copies(), (2, 0));
}

#[test]
fn a_write_under_selections_copies_one_posting_chunk_for_each_value_that_it_touches() {
    let store = rows();
    let from = store.by_index("group", "5").expect("an index");
    let to = store.by_index("group", "6").expect("an index");
    store.update(5, (5, 5));
    assert_eq!(store.copies(), (1, 0), "an update that moves nothing touches no posting");
    store.update(5, (5, 6));
    assert_eq!(store.copies(), (1, 2));
    store.update(105, (105, 6));
    assert_eq!(store.copies(), (1, 2), "they have been copied already");
    assert_eq!((from.iter().count(), to.iter().count()), (100, 100));
    assert_eq!(store.by_index("group", "6").expect("an index").len(), 102);
}

#[test]
fn a_move_between_large_values_copies_one_chunk_of_each() {
    let store: Rows =
        ThreadSafeStore::new().with_index("half", Index::of(|row: &(u32, u32)| [row.1.to_string()])).expect("a name");
    store.replace((0..10_000).map(|key| (key, (key, key % 2))), ResourceVersion::unset());
    store.update(1, (1, 0));
    let halves = [0, 1].map(|half| store.by_index("half", &half.to_string()).expect("an index"));
    let before = store.copies();
    store.update(4001, (4001, 0));
    let after = store.copies();
    assert_eq!((after.0 - before.0, after.1 - before.1), (1, 2));
    store.delete(&6001);
    assert_eq!(store.copies().1 - after.1, 1);
    assert_eq!(halves.map(|half| half.iter().count()), [5001, 4999]);
}

#[test]
fn the_value_that_is_replaced_lives_as_long_as_the_snapshot_that_shows_it() {
    let store = ThreadSafeStore::new();
    let value = std::sync::Arc::new(1);
    store.add("a", value.clone());
    let snapshot = store.snapshot();
    store.add("a", std::sync::Arc::new(2));
    assert_eq!(**snapshot.iter().next().expect("a").1, 1);
    drop(snapshot);
    assert_eq!(std::sync::Arc::strong_count(&value), 1);
}
