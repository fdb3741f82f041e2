//! Indexes: client-go's `index_test.go`, what an index of objects finds, and indexes that are added to a store in use.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use futures::FutureExt as _;
use serde::Deserialize;
use watchkeeper::{Index, IndexError, Indexer, KeyError, Object, ResourceVersion, ThreadSafeStore};

use crate::support::{key, pod};

#[derive(Debug, Clone)]
struct Pod {
    name: &'static str,
    app: &'static str,
    users: &'static str,
}

fn pods(index: &'static str, function: impl Fn(&Pod) -> Vec<String> + Send + Sync + 'static) -> Indexer<Pod, String> {
    Indexer::new(|pod: &Pod| Ok::<_, KeyError>(pod.name.to_owned()))
        .with_index(index, Index::of(function))
        .expect("a name")
}

fn object(name: &str, rest: &str) -> Object {
    let json = format!(r#"{{"metadata":{{"name":"{name}","namespace":"shop","resourceVersion":"1"}},{rest}}}"#);
    Object::from_json(json).expect("an object")
}

fn keys(store: &Indexer<Object>, index: &str, value: &str) -> Vec<String> {
    let keys = store.index_keys(index, value).expect("an index");
    keys.iter().map(|key| key.name().to_owned()).collect()
}

#[test]
fn the_values_of_an_index_are_listed_once_each() {
    let store = pods("app", |pod| vec![pod.app.to_owned()]);
    for (name, app) in [("one", "foo"), ("two", "foo"), ("tre", "bar")] {
        store.add(Pod { name, app, users: "" }).expect("a key");
    }
    assert_eq!(store.index_values("app").expect("an index"), ["bar", "foo"]);
}

#[test]
fn several_values_per_object_follow_adds_deletions_and_updates() {
    let store = pods("user", |pod| pod.users.split(',').map(str::to_owned).collect());
    let [one, two, tre] = [("one", "ernie,bert"), ("two", "bert,oscar"), ("tre", "ernie,elmo")]
        .map(|(name, users)| Pod { name, app: "", users });
    for pod in [&one, &two, &tre] {
        store.add(pod.clone()).expect("a key");
    }
    let is =
        |user: &str, names: &[&str]| assert_eq!(store.index_keys("user", user).expect("an index"), names, "{user}");
    is("ernie", &["one", "tre"]);
    is("bert", &["one", "two"]);
    is("oscar", &["two"]);
    is("elmo", &["tre"]);
    is("elmo1", &[]);
    store.delete(&tre).expect("a key");
    is("ernie", &["one"]);
    is("elmo", &[]);
    store.update(Pod { users: "bert,elmo,bert", ..two }).expect("a key");
    is("oscar", &[]);
    is("elmo", &["two"]);
    is("bert", &["one", "two"]);
}

#[test]
fn objects_are_found_by_namespace_label_field_and_owner() {
    let store = Indexer::objects()
        .with_index("app", Index::label("app"))
        .and_then(|store| store.with_index("node", Index::field("/spec/nodeName")))
        .and_then(|store| store.with_index("owner", Index::owner_uid()))
        .expect("three names");
    store.add(pod("a", "1")).expect("a key");
    store.add(object("b", r#""spec":{"nodeName":"node-1"}"#)).expect("a key");
    let node = r#"{"metadata":{"name":"n","resourceVersion":"1","ownerReferences":[{"uid":"u1"},{"uid":"u2"}]}}"#;
    store.add(Object::from_json(node).expect("an object")).expect("a key");
    assert_eq!(keys(&store, "namespace", "shop"), ["a", "b"]);
    assert_eq!(keys(&store, "namespace", ""), ["n"], "cluster-scoped");
    assert_eq!(keys(&store, "app", "a"), ["a"]);
    assert_eq!(store.index_values("app").expect("an index"), ["a"], "no label, no value");
    assert_eq!(keys(&store, "node", "node-1"), ["a", "b"]);
    assert_eq!(
        (keys(&store, "owner", "u1"), keys(&store, "owner", "u2")),
        (vec!["n".to_owned()], vec!["n".to_owned()])
    );
    store.update(object("b", r#""spec":{"nodeName":"node-2"}"#)).expect("a key");
    assert_eq!(
        (keys(&store, "node", "node-1"), keys(&store, "node", "node-2")),
        (vec!["a".to_owned()], vec!["b".to_owned()])
    );
}

#[derive(Deserialize)]
struct Ports {
    ports: Vec<u16>,
}

#[test]
fn objects_that_do_not_decode_into_the_view_have_no_values() {
    let ports = Index::by(|view: &Ports| view.ports.iter().map(u16::to_string).collect::<Vec<_>>());
    let store = Indexer::objects().with_index("port", ports).expect("a name");
    store.add(object("a", r#""ports":[80,443,80]"#)).expect("a key");
    store.add(object("b", r#""ports":"none""#)).expect("a key");
    assert_eq!((keys(&store, "port", "80"), store.len()), (vec!["a".to_owned()], 2));
    store.update(object("a", r#""ports":[-1]"#)).expect("a key");
    assert_eq!(store.index_values("port").expect("an index"), [""; 0]);
}

#[test]
fn empty_values_are_values() {
    let store = Indexer::objects().with_index("node", Index::field("/spec/nodeName")).expect("a name");
    store.add(object("a", r#""spec":{"nodeName":""}"#)).expect("a key");
    store.add(object("b", r#""spec":{}"#)).expect("a key");
    assert_eq!(
        (keys(&store, "node", ""), store.index_values("node").expect("an index")),
        (vec!["a".to_owned()], vec![String::new()])
    );
}

fn node_of(object: &Object) -> Option<String> {
    object.uid().map(str::to_owned)
}

#[tokio::test]
async fn the_same_index_twice_is_fine_and_another_under_its_name_is_an_error() {
    let store = Indexer::objects();
    let conflict = Err(IndexError::Conflict { name: "i".into() });
    let captured = |by: &'static str| Index::of(move |object: &Object| [format!("{by}{}", object.key())]);
    let one = captured("x");
    type Same = (Index<Object>, Index<Object>, Index<Object>);
    let cases: [Same; 5] = [
        (Index::label("a"), Index::label("a"), Index::label("b")),
        (Index::field("/a/b"), Index::field("/a/b"), Index::field("/a")),
        (Index::owner_uid(), Index::owner_uid(), Index::namespace()),
        (Index::of(node_of), Index::of(node_of), Index::of(|object: &Object| object.uid().map(str::to_owned))),
        (one.clone(), one, captured("x")),
    ];
    for (at, (index, same, other)) in cases.into_iter().enumerate() {
        let store = Indexer::objects();
        store.add_index("i", index.clone()).await.expect("a name");
        store.add_index("i", same).await.unwrap_or_else(|error| panic!("case {at}: {error}"));
        assert_eq!(store.add_index("i", other.clone()).await, conflict, "case {at}");
        assert!(store.with_index("i", other).is_err());
    }
    store.add_index("namespace", Index::namespace()).await.expect("the same as the one by default");
    let error = store.add_index("namespace", Index::owner_uid()).await.expect_err("another one");
    assert_eq!(
        error.to_string(),
        r#"there is an index "namespace" already, with another function: add this one under another name"#
    );
}

#[tokio::test]
async fn one_index_may_have_two_names() {
    let (store, index) = (Indexer::objects(), Index::of(|object: &Object| [object.key().to_string()]));
    store.add(pod("a", "1")).expect("a key");
    store.add_index("one", index.clone()).await.expect("a name");
    store.add_index("two", index).await.expect("a name");
    store.delete(&pod("a", "1")).expect("a key");
    assert!(
        store.index_values("one").expect("an index").is_empty()
            && store.index_values("two").expect("an index").is_empty()
    );
}

type Numbers = ThreadSafeStore<u32, u32>;

/// A store of numbers, of which each is its own key.
fn numbers(count: u32) -> Numbers {
    let store = ThreadSafeStore::new();
    store.replace((0..count).map(|number| (number, number)), ResourceVersion::unset());
    store
}

fn tens(number: &u32) -> [String; 1] {
    [(number / 10).to_string()]
}

fn of_ten(store: &Numbers, ten: u32) -> Vec<u32> {
    store.index_keys("ten", &ten.to_string()).expect("an index")
}

#[test]
fn an_index_that_is_being_built_says_so_and_is_caught_up_with_what_happens_meanwhile() {
    let store = numbers(1000);
    let mut building = Box::pin(store.add_index("ten", Index::of(tens)));
    assert!((&mut building).now_or_never().is_none(), "one slice of many");
    let error = store.by_index("ten", "1").expect_err("not yet");
    assert_eq!(error, IndexError::Building { name: "ten".into() });
    assert_eq!(error.to_string(), r#"index "ten" is still being built: ask again when its `add_index` has returned"#);
    store.index("ten", &1).expect_err("not yet");
    store.index_values("ten").expect_err("not yet");

    // Before and behind the builder: changed, deleted, deleted and another key in its slot, and new ones.
    for key in [3, 903] {
        store.update(key, 555);
    }
    for key in [4, 904] {
        store.delete(&key);
    }
    store.add(5000, 41);
    store.add(5001, 901);
    while (&mut building).now_or_never().is_none() {}

    assert_eq!(of_ten(&store, 0), [0, 1, 2, 5, 6, 7, 8, 9]);
    assert_eq!(of_ten(&store, 90), [900, 901, 902, 905, 906, 907, 908, 909, 5001]);
    assert_eq!(of_ten(&store, 55), [3, 550, 551, 552, 553, 554, 555, 556, 557, 558, 559, 903]);
    assert_eq!(of_ten(&store, 4).len(), 11);
}

#[test]
fn a_slot_that_is_given_to_another_key_before_the_builder_comes_is_not_indexed_by_the_old_one() {
    let store = numbers(1000);
    let mut building = Box::pin(store.add_index("ten", Index::of(tens)));
    assert!((&mut building).now_or_never().is_none());
    // The slot of 999 is given away twice, and is free again for a moment in between.
    store.delete(&999);
    store.add(5000, 70);
    store.delete(&5000);
    store.add(6000, 80);
    // The slot of 998 stays free.
    store.delete(&998);
    while (&mut building).now_or_never().is_none() {}
    assert_eq!(of_ten(&store, 99), [990, 991, 992, 993, 994, 995, 996, 997]);
    assert_eq!((of_ten(&store, 7).len(), of_ten(&store, 8).len()), (10, 11));
}

#[test]
fn a_replacement_while_an_index_is_being_built_is_what_the_index_shows() {
    let store = numbers(1000);
    let mut building = Box::pin(store.add_index("ten", Index::of(tens)));
    assert!((&mut building).now_or_never().is_none());
    store.replace((2000..2015).map(|number| (number, number)), ResourceVersion::unset());
    store.index_values("ten").expect_err("still being built");
    while (&mut building).now_or_never().is_none() {}
    assert_eq!(store.index_values("ten").expect("an index"), ["200", "201"]);
    assert_eq!(of_ten(&store, 201), [2010, 2011, 2012, 2013, 2014]);
}

#[test]
fn a_list_that_keeps_objects_whose_values_are_not_known_yet_indexes_them() {
    use watchkeeper::{ReflectorStore, Replacement};
    let store = Indexer::objects();
    for number in 0..300 {
        store.add(pod(&format!("p{number}"), "1")).expect("a key");
    }
    let mut building = Box::pin(store.add_index("app", Index::label("app")));
    assert!((&mut building).now_or_never().is_none());
    let unusable = vec![key("p0"), key("p299")];
    let list = Replacement { items: vec![pod("p7", "2")], unusable, complete: true, ..Replacement::default() };
    ReflectorStore::replace(&store, list).expect("replaced");
    while (&mut building).now_or_never().is_none() {}
    assert_eq!(store.index_values("app").expect("an index"), ["p0", "p299", "p7"]);
}

#[test]
fn a_store_that_shrinks_while_an_index_is_being_built_keeps_it_right() {
    let store = numbers(8000);
    let mut building = Box::pin(store.add_index("ten", Index::of(tens)));
    assert!((&mut building).now_or_never().is_none());
    for number in 10..7990 {
        store.delete(&number);
    }
    while (&mut building).now_or_never().is_none() {}
    assert_eq!(store.index_values("ten").expect("an index"), ["0", "799"]);
    store.delete(&0);
    assert_eq!(of_ten(&store, 0), (1..10).collect::<Vec<_>>());
    assert_eq!(of_ten(&store, 799), (7990..8000).collect::<Vec<_>>());
}

#[test]
fn an_index_whose_building_is_dropped_half_way_is_gone() {
    let store = numbers(1000);
    let mut building = Box::pin(store.add_index("ten", Index::of(tens)));
    assert!((&mut building).now_or_never().is_none());
    assert_eq!(store.indexers(), [Arc::<str>::from("ten")]);
    drop(building);
    assert!(store.indexers().is_empty());
    assert_eq!(store.by_index("ten", "1").expect_err("gone"), IndexError::Unknown { name: "ten".into() });
    store.add(1, 77);
    let other = Index::of(|number: &u32| [(number % 10).to_string()]);
    let mut building = Box::pin(store.add_index("ten", other));
    while (&mut building).now_or_never().is_none() {}
    assert_eq!((of_ten(&store, 1).len(), of_ten(&store, 7).len()), (99, 101));
}

#[test]
fn an_index_that_is_added_late_has_no_values_for_what_its_function_panics_on() {
    let store = numbers(1000);
    let bad = Index::of(|number: &u32| if *number == 500 { panic!("a bad number") } else { tens(number) });
    futures::executor::block_on(store.add_index("ten", bad)).expect("a name");
    assert_eq!(of_ten(&store, 50), (501..510).collect::<Vec<_>>());
    assert_eq!((of_ten(&store, 49).len(), of_ten(&store, 51).len()), (10, 10));
    store.add(500, 1);
    assert_eq!(of_ten(&store, 0).len(), 11, "it has another value now");
}

#[test]
fn two_that_add_one_index_at_once_get_one_and_both_wait_for_it() {
    let store = numbers(1000);
    let mut first = Box::pin(store.add_index("ten", Index::of(tens)));
    let mut second = Box::pin(store.add_index("ten", Index::of(tens)));
    assert!((&mut first).now_or_never().is_none() && (&mut second).now_or_never().is_none());
    let other = store.add_index("ten", Index::of(|_: &u32| ["x"])).now_or_never();
    assert_eq!(other, Some(Err(IndexError::Conflict { name: "ten".into() })));
    while (&mut first).now_or_never().is_none() {
        assert!((&mut second).now_or_never().is_none());
    }
    futures::executor::block_on(second).expect("the first has built it");
    assert_eq!((store.indexers().len(), of_ten(&store, 5).len()), (1, 10));
}

#[test]
fn one_that_waits_for_another_builds_the_index_itself_if_the_other_is_dropped() {
    let store = numbers(1000);
    let mut first = Box::pin(store.add_index("ten", Index::of(tens)));
    let mut second = Box::pin(store.add_index("ten", Index::of(tens)));
    assert!((&mut first).now_or_never().is_none() && (&mut second).now_or_never().is_none());
    drop(first);
    futures::executor::block_on(second).expect("built");
    assert_eq!(of_ten(&store, 5).len(), 10);
}

#[test]
fn a_writer_that_was_computing_when_an_index_came_computes_again() {
    let begun = Arc::new(AtomicBool::new(false));
    let store: Arc<Numbers> = Arc::new(numbers(0));
    let inner = (Arc::downgrade(&store), begun.clone());
    // The first function adds the second index, while a writer is busy with it.
    let first = Index::of(move |number: &u32| {
        if *number == 7
            && !inner.1.swap(true, Ordering::Relaxed)
            && let Some(store) = inner.0.upgrade()
        {
            futures::executor::block_on(store.add_index("ten", Index::of(tens))).expect("a name");
        }
        [number.to_string()]
    });
    futures::executor::block_on(store.add_index("first", first)).expect("a name");
    store.add(7, 7);
    assert_eq!(of_ten(&store, 0), [7]);
    begun.store(false, Ordering::Relaxed);
    store.replace([(7, 7), (8, 8), (7, 9)], ResourceVersion::unset());
    assert_eq!((of_ten(&store, 0), store.get(&7)), (vec![7, 8], Some(9)));
}
