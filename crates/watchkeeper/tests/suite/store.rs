//! Stores that find out the keys: client-go's `store_test.go`, with structs of one's own and with objects.

use std::sync::Arc;

use watchkeeper::{
    Index, IndexError, Indexer, KeyError, KnownObjects, Object, ObjectKey, Operation, ReflectorStore, Replacement,
    ResourceVersion, Store, StoreOps,
};

use crate::support::{key, pod};

#[derive(Debug, Clone, PartialEq)]
struct Thing {
    id: &'static str,
    value: String,
}

fn thing(id: &'static str, value: &str) -> Thing {
    Thing { id, value: value.to_owned() }
}

fn thing_key(thing: &Thing) -> Result<String, KeyError> {
    if thing.id.is_empty() { Err(KeyError::new("the id is empty")) } else { Ok(thing.id.to_owned()) }
}

fn things() -> Store<Thing, String> {
    Store::new(thing_key)
}

/// What client-go's `doTestStore` asks of every store.
fn meets_the_contract<T: Clone, K: Ord + Clone + std::fmt::Debug>(
    store: &impl StoreOps<T, K>,
    key_of: impl Fn(&T) -> K,
    state_of: impl Fn(&T) -> String,
    [a1, a2, b, c, d]: [T; 5],
) {
    let state = |value: &T| store.get(value).expect("a key").as_ref().map(&state_of);
    let keys = |values: &[&T]| values.iter().map(|value| key_of(value)).collect::<Vec<_>>();

    store.add(a1.clone()).expect("a key");
    assert_eq!(state(&a2), Some(state_of(&a1)), "found by the key of another state");
    store.update(a2.clone()).expect("a key");
    assert_eq!(store.get_by_key(&key_of(&a1)).as_ref().map(&state_of), Some(state_of(&a2)));
    store.delete(a1.clone()).expect("a key");
    assert_eq!(state(&a2), None);
    store.delete(a1.clone()).expect("what is not there can be deleted");

    for value in [&a1, &b, &c] {
        store.add(value.clone()).expect("a key");
    }
    let mut listed: Vec<K> = store.list().iter().map(&key_of).collect();
    listed.sort();
    assert_eq!(listed, keys(&[&a1, &b, &c]));

    store.replace(vec![b.clone(), d.clone()], ResourceVersion::any()).expect("keys");
    let mut listed = store.list_keys();
    listed.sort();
    assert_eq!(listed, keys(&[&b, &d]));
    assert_eq!((state(&a1), state(&d)), (None, Some(state_of(&d))));
    store.resync().expect("nothing to do");
}

#[test]
fn a_store_of_structs_adds_updates_deletes_lists_and_replaces() {
    let values = [thing("a", "1"), thing("a", "2"), thing("b", "3"), thing("c", "4"), thing("d", "5")];
    meets_the_contract(&things(), |thing| thing.id.to_owned(), |thing| thing.value.clone(), values);
}

#[test]
fn a_store_of_objects_adds_updates_deletes_lists_and_replaces() {
    let values = [pod("a", "1"), pod("a", "2"), pod("b", "3"), pod("c", "4"), pod("d", "5")];
    let version = |pod: &Object| pod.resource_version().to_string();
    meets_the_contract(&Indexer::objects(), |pod| pod.key().clone(), version, values);
}

#[test]
fn what_is_listed_and_found_is_shared_with_the_store() {
    let store: Store<Arc<Thing>, String> = Store::new(|thing: &Arc<Thing>| thing_key(thing));
    let value = Arc::new(thing("a", "1"));
    store.add(value.clone()).expect("a key");
    assert!(Arc::ptr_eq(&store.list()[0], &value));
    assert!(Arc::ptr_eq(&store.get_by_key(&"a".to_owned()).expect("a"), &value));
    store.delete(&value).expect("a key");
    assert_eq!(Arc::strong_count(&value), 1, "and nothing is kept of what is deleted");
}

#[test]
fn a_transform_is_applied_on_add_update_replace_and_in_batches() {
    let store = things().transform(|mut thing| {
        thing.value.push('!');
        if thing.value == "bad!" { Err(KeyError::new("refused")) } else { Ok(thing) }
    });
    let value = |id: &str| store.get_by_key(&id.to_owned()).map(|thing| thing.value);
    store.add(thing("a", "1")).expect("a key");
    assert_eq!(value("a").as_deref(), Some("1!"));
    store.update(thing("a", "2")).expect("a key");
    assert_eq!(value("a").as_deref(), Some("2!"));
    store.apply([Operation::Update(thing("a", "3"))]).into_result().expect("a key");
    assert_eq!(value("a").as_deref(), Some("3!"));
    store.add(thing("a", "bad")).expect_err("refused");
    assert_eq!(value("a").as_deref(), Some("3!"));
    store.replace([thing("b", "4")], ResourceVersion::unset()).expect("a key");
    assert_eq!((value("a"), value("b").as_deref()), (None, Some("4!")));
}

#[test]
fn index_by_a_value_finds_those_that_share_one_with_it() {
    let store = things().with_index("by_val", Index::of(|thing: &Thing| [thing.value.clone()])).expect("a name");
    for value in [thing("a", "b"), thing("b", "b"), thing("c", "c"), thing("e", "e"), thing("f", "f")] {
        store.add(value).expect("a key");
    }
    let found = |value: &str| {
        let mut ids: Vec<_> =
            store.index("by_val", &thing("?", value)).expect("an index").iter().map(|t| t.id).collect();
        ids.sort_unstable();
        ids
    };
    assert_eq!(found("b"), ["a", "b"]);
    assert_eq!(found("e"), ["e"]);
    assert_eq!(found("nothing"), [""; 0]);
    store.delete(&thing("a", "")).expect("a key");
    store.update(thing("c", "b")).expect("a key");
    assert_eq!(found("b"), ["b", "c"]);
}

#[test]
fn index_by_a_value_of_several_finds_each_once() {
    let words = Index::of(|thing: &Thing| thing.value.split(' ').map(str::to_owned).collect::<Vec<_>>());
    let store = things().with_index("word", words).expect("a name");
    for value in [thing("a", "x y"), thing("b", "y z"), thing("c", "z")] {
        store.add(value).expect("a key");
    }
    let mut found: Vec<_> = store.index("word", &thing("?", "x y x")).expect("an index").iter().map(|t| t.id).collect();
    found.sort_unstable();
    assert_eq!(found, ["a", "b"]);
}

#[test]
fn an_unknown_index_is_an_error_that_names_it() {
    let error = things().by_index("node", "n1").expect_err("no such index");
    assert_eq!(error, IndexError::Unknown { name: "node".into() });
    assert_eq!(error.to_string(), r#"there is no index "node": add it with `add_index` before asking it"#);
    things().index("node", &thing("a", "")).expect_err("no such index");
    things().index_keys("node", "").expect_err("no such index");
    things().index_values("node").expect_err("no such index");
}

#[test]
fn a_value_without_a_key_is_an_error_and_changes_nothing() {
    let store = things();
    store.add(thing("a", "1")).expect("a key");
    store.add(thing("", "1")).expect_err("no key");
    store.update(thing("", "1")).expect_err("no key");
    store.delete(&thing("", "1")).expect_err("no key");
    store.get(&thing("", "1")).expect_err("no key");
    store.replace([thing("b", "1"), thing("", "1")], ResourceVersion::from("7")).expect_err("no key");
    assert_eq!((store.list_keys(), store.last_version()), (vec!["a".to_owned()], ResourceVersion::unset()));
}

#[test]
fn a_batch_reports_what_failed_by_place_and_applies_the_rest() {
    let store = things();
    store.add(thing("c", "old")).expect("a key");
    let applied = store.apply([
        Operation::Add(thing("a", "1")),
        Operation::Add(thing("", "2")),
        Operation::Update(thing("a", "3")),
        Operation::Delete(thing("", "4")),
        Operation::Delete(thing("c", "5")),
        Operation::DeleteKey("nothing".to_owned()),
    ]);
    assert_eq!(applied.failed.iter().map(|(place, _)| *place).collect::<Vec<_>>(), [1, 3]);
    assert_eq!(applied.successful().collect::<Vec<_>>(), [0, 2, 4, 5]);
    let previous: Vec<_> = applied.previous.iter().map(|thing| thing.as_ref().map(|thing| &*thing.value)).collect();
    assert_eq!(previous, [None, None, Some("1"), None, Some("old"), None]);
    assert_eq!(store.list(), [thing("a", "3")]);
    applied.into_result().expect_err("two failed");
}

#[test]
fn an_empty_batch_does_nothing() {
    let store = things();
    assert_eq!(store.apply([]).previous.len(), 0);
    assert!(store.is_empty());
}

#[test]
fn of_equal_keys_in_a_list_the_last_counts() {
    let store = things().with_index("by_val", Index::of(|thing: &Thing| [thing.value.clone()])).expect("a name");
    store.replace([thing("a", "1"), thing("b", "2"), thing("a", "3")], ResourceVersion::unset()).expect("keys");
    assert_eq!(store.len(), 2);
    assert_eq!(store.index_values("by_val").expect("an index"), ["2", "3"]);
}

#[test]
fn of_equal_keys_in_a_list_the_last_counts_even_if_it_is_there_already() {
    let (here, other) = (pod("a", "1"), pod("a", "2"));
    for (list, expected) in [
        (vec![here.clone(), other.clone()], "2"),
        (vec![other.clone(), here.clone()], "1"),
        (vec![here.clone(), other.clone(), here.clone()], "1"),
        (vec![here.clone(), other.clone(), here.clone(), other.clone()], "2"),
    ] {
        let store = Indexer::objects();
        store.add(here.clone()).expect("a key");
        store.replace(list, ResourceVersion::from("3")).expect("keys");
        assert_eq!(store.list().iter().map(|pod| pod.resource_version().to_string()).collect::<Vec<_>>(), [expected]);
    }
}

/// One puts an object again that is there, another deletes it: if it is gone in the end, the deletion was the last.
#[test]
fn the_last_version_is_not_that_of_an_object_that_was_gone_when_it_was_put_again() {
    let (store, object, last) = (Indexer::objects(), pod("a", "1"), pod("a", "2"));
    let (barrier, mut wrong) = (std::sync::Barrier::new(2), 0);
    std::thread::scope(|threads| {
        threads.spawn(|| {
            for _ in 0..5_000 {
                barrier.wait();
                store.add(object.clone()).expect("a key");
                barrier.wait();
            }
        });
        for _ in 0..5_000 {
            store.add(object.clone()).expect("a key");
            barrier.wait();
            store.delete(&last).expect("a key");
            barrier.wait();
            let expected = if store.is_empty() { "2" } else { "1" };
            wrong += usize::from(store.last_version().as_str() != expected);
        }
    });
    assert_eq!(wrong, 0);
}

#[test]
fn a_store_is_known_objects_to_a_queue() {
    let store: Arc<dyn KnownObjects<Object>> = {
        let store = Indexer::objects();
        store.add(pod("a", "1")).expect("a key");
        Arc::new(store)
    };
    assert_eq!(store.list_keys(), [key("a")]);
    assert!(store.get_by_key(&key("a")).is_some());
}

#[test]
fn typed_indexes_are_asked_for_values_keys_and_objects() {
    let store = Indexer::objects().with_index("app", Index::label("app")).expect("a name");
    for name in ["a", "b"] {
        store.add(pod(name, "1")).expect("a key");
    }
    assert_eq!(store.indexers(), ["namespace", "app"].map(Arc::<str>::from));
    assert_eq!(store.index_keys("namespace", "shop").expect("an index"), [key("a"), key("b")]);
    assert_eq!(store.index_values("app").expect("an index"), ["a", "b"]);
    assert_eq!(store.by_index("app", "b").expect("an index").list()[0].key(), &key("b"));
    assert_eq!(store.index("namespace", &pod("c", "1")).expect("an index").len(), 2);
    assert!(store.by_index("app", "c").expect("an index").is_empty());
}

fn list(items: Vec<Object>, unusable: Vec<ObjectKey>, complete: bool) -> Replacement {
    Replacement { items, resource_version: "9".into(), unusable, complete }
}

#[test]
fn a_reflectors_list_keeps_what_is_known_of_objects_that_cannot_be_used() {
    let store = Indexer::objects();
    for name in ["a", "b", "c"] {
        store.add(pod(name, "1")).expect("a key");
    }
    let unusable = vec![key("b"), key("never-seen"), key("b"), key("a")];
    ReflectorStore::replace(&store, list(vec![pod("a", "5")], unusable, true)).expect("replaced");
    assert_eq!(store.index_keys("namespace", "shop").expect("an index"), [key("a"), key("b")]);
    let version = |name: &str| store.get_by_key(&key(name)).map(|pod| pod.resource_version().to_string());
    assert_eq!((version("a").as_deref(), version("b").as_deref()), (Some("5"), Some("1")));
    assert_eq!(store.last_version().as_str(), "9");
}

#[test]
fn a_reflectors_list_that_is_not_complete_deletes_nothing() {
    let store = Indexer::objects();
    for name in ["a", "b"] {
        store.add(pod(name, "1")).expect("a key");
    }
    ReflectorStore::replace(&store, list(vec![pod("b", "5"), pod("c", "6")], Vec::new(), false)).expect("replaced");
    assert_eq!(store.index_keys("namespace", "shop").expect("an index"), [key("a"), key("b"), key("c")]);
    assert_eq!(store.get_by_key(&key("b")).expect("b").resource_version().as_str(), "5");
}

#[test]
fn a_reflectors_deletion_without_an_object_leaves_the_version() {
    let store = Indexer::objects();
    ReflectorStore::add(&store, pod("a", "1")).expect("added");
    ReflectorStore::add(&store, pod("b", "2")).expect("added");
    ReflectorStore::delete(&store, &key("a"), None).expect("deleted");
    assert_eq!((store.len(), store.last_version().as_str()), (1, "2"));
    ReflectorStore::delete(&store, &key("b"), Some(pod("b", "4"))).expect("deleted");
    assert_eq!((store.len(), store.last_version().as_str()), (0, "4"));
    ReflectorStore::bookmark(&store, &"7".into()).expect("noted");
    assert_eq!(store.last_version().as_str(), "7");
}
