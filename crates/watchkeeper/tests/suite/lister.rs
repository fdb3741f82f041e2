//! Listers: client-go's `listers_test.go`, the suites of its dynamic and metadata listers, and what a list of ours is.

use std::collections::BTreeSet;
use std::sync::Arc;

use k8s_openapi::api::core::v1::Pod;
use kube_core::{DynamicObject, PartialObjectMeta};
use serde::Deserialize;
use tracing::Level;
use watchkeeper::{
    Error, Index, IndexError, Indexer, Lister, Object, ObjectKey, Objects, ResourceVersion, Selector, object_key,
};

use crate::support::Logs;

fn object(namespace: &str, name: &str, labels: &str) -> Object {
    let json = format!(
        r#"{{"apiVersion":"group/v1","kind":"TheKind","metadata":{{"namespace":"{namespace}","name":"{name}","resourceVersion":"1","labels":{{{labels}}}}}}}"#
    );
    Object::from_json(json).expect("an object")
}

fn store(objects: impl IntoIterator<Item = Object>) -> Arc<Indexer<Object>> {
    let store = Indexer::objects();
    store.replace(objects, ResourceVersion::from("1")).expect("keys");
    Arc::new(store)
}

/// Two objects in one namespace, one in another.
fn three() -> Arc<Indexer<Object>> {
    store(
        [("ns-foo", "foo"), ("ns-foo", "foo1"), ("ns-bar", "bar")].map(|(namespace, name)| object(namespace, name, "")),
    )
}

/// Pods of two apps in two namespaces.
fn apps() -> Lister<Pod> {
    let pod = |at: usize| {
        let (namespace, app) = (["shop", "bank"][at % 2], ["web", "api", "db"][at % 3]);
        object(namespace, &format!("p{at}"), &format!(r#""app":"{app}""#))
    };
    Lister::new(store((0..12).map(pod)))
}

fn names<K>(objects: &Objects<K>) -> BTreeSet<String> {
    let names: BTreeSet<String> = objects.iter().map(|object| object.key().to_string()).collect();
    assert_eq!((names.len(), names.is_empty()), (objects.len(), objects.is_empty()));
    assert_eq!(objects.untyped().count(), objects.clone().into_iter().count());
    names
}

fn set<const N: usize>(names: [&str; N]) -> BTreeSet<String> {
    names.map(str::to_owned).into()
}

fn parsed(text: &str) -> Selector {
    text.parse().expect(text)
}

#[test]
fn a_selector_lists_some_all_or_none() {
    let pods: Lister<Pod> = Lister::new(store([
        object("shop", "a", r#""color":"red""#),
        object("shop", "b", r#""color":"red","size":"m""#),
        object("shop", "c", r#""color":"blue""#),
        object("shop", "d", ""),
    ]));
    assert_eq!(names(&pods.matching(&parsed("color=red"))), set(["shop/a", "shop/b"]));
    assert_eq!(names(&pods.matching(&Selector::everything())), names(&pods.list()));
    assert_eq!(names(&pods.list()), set(["shop/a", "shop/b", "shop/c", "shop/d"]));
    assert_eq!(names(&pods.matching(&parsed("color=green"))), set([]));
    assert_eq!(names(&pods.matching(&Selector::nothing())), set([]));
}

#[test]
fn a_namespace_gives_its_objects_by_name_and_no_other() {
    fn check<K>() {
        let namespace = Lister::<K>::new(three()).namespace("ns-foo");
        assert_eq!(namespace.require("foo1").expect("it is there").key().to_string(), "ns-foo/foo1");
        for other in ["missing", "bar"] {
            assert!(namespace.get(other).is_none());
            assert_eq!(
                namespace.require(other).expect_err("no such object").key(),
                &ObjectKey::namespaced("ns-foo", other)
            );
        }
    }
    check::<DynamicObject>();
    check::<PartialObjectMeta<Pod>>();
}

#[test]
fn a_namespace_lists_its_objects_and_no_other() {
    let dynamic: Lister<DynamicObject> = Lister::new(three());
    assert_eq!(names(&dynamic.namespace("ns-foo").list()), set(["ns-foo/foo", "ns-foo/foo1"]));
    let metadata: Lister<PartialObjectMeta<Pod>> = Lister::new(three());
    assert_eq!(names(&metadata.namespace("ns-foo").list()), set(["ns-foo/foo", "ns-foo/foo1"]));
    assert_eq!(names(&metadata.namespace("ns-none").list()), set([]));
}

#[test]
fn a_lister_gives_cluster_scoped_objects_by_name_and_needs_the_namespace_for_others() {
    fn check<K>() {
        let store = three();
        store.add(object("", "cluster", "")).expect("a key");
        let lister = Lister::<K>::new(store);
        assert_eq!(lister.require(&ObjectKey::cluster("cluster")).expect("it is there").key().namespace(), None);
        assert!(lister.get(&ObjectKey::cluster("foo")).is_none(), "that one is in a namespace");
        assert!(lister.get(&ObjectKey::namespaced("ns-foo", "foo")).is_some());
    }
    check::<DynamicObject>();
    check::<PartialObjectMeta<Pod>>();
}

#[test]
fn a_lister_lists_the_objects_of_all_namespaces() {
    let all = set(["ns-foo/foo", "ns-foo/foo1", "ns-bar/bar"]);
    assert_eq!(names(&Lister::<DynamicObject>::new(three()).list()), all);
    assert_eq!(names(&Lister::<PartialObjectMeta<Pod>>::new(three()).list()), all);
}

#[test]
fn what_comes_out_of_a_list_decodes_into_the_listers_type() {
    let dynamic: Lister<DynamicObject> = Lister::new(three());
    let kinds: BTreeSet<_> = dynamic
        .list()
        .into_iter()
        .map(|object| object.decode().expect("it decodes").types.clone())
        .map(|types| types.expect("types").kind)
        .collect();
    assert_eq!(kinds, set(["TheKind"]));
}

#[test]
fn what_comes_out_of_a_metadata_list_has_the_metadata_and_needs_no_more() {
    let metadata: Lister<PartialObjectMeta<Pod>> = Lister::new(store([object("shop", "a", r#""app":"web""#)]));
    let listed = metadata.namespace("shop").list().into_iter().next().expect("it is there");
    let decoded = listed.decode().expect("it decodes");
    assert_eq!(decoded.metadata.labels.as_ref().and_then(|labels| labels.get("app")).map(String::as_str), Some("web"));
    assert_eq!(decoded.metadata.namespace.as_deref(), Some("shop"));
}

#[test]
fn the_empty_namespace_stands_for_all() {
    let pods = apps();
    assert_eq!(names(&pods.namespace("").list()), names(&pods.list()));
    assert_eq!(names(&pods.namespace("").matching(&parsed("app=db"))), names(&pods.matching(&parsed("app=db"))));
}

#[test]
fn a_selector_within_a_namespace_looks_at_that_namespace_only() {
    let pods = apps();
    assert_eq!(names(&pods.namespace("shop").matching(&parsed("app=web"))), set(["shop/p0", "shop/p6"]));
    assert_eq!(names(&pods.namespace("shop").matching(&parsed("app!=web,app!=api"))), set(["shop/p2", "shop/p8"]));
    assert_eq!(names(&pods.namespace("shop").matching(&Selector::nothing())), set([]));
    assert_eq!(names(&pods.namespace("shop").matching(&Selector::everything())), names(&pods.namespace("shop").list()));
}

#[test]
fn a_selector_of_everything_or_nothing_looks_at_no_label() {
    let pods = apps();
    // Where labels decide, the number of objects is not known beforehand.
    assert_eq!(format!("{:?}", pods.matching(&parsed("app"))), "Objects(at most 12)");
    assert_eq!(format!("{:?}", pods.matching(&Selector::everything())), "Objects(12)");
    assert_eq!(format!("{:?}", pods.namespace("shop").matching(&Selector::everything())), "Objects(6)");
    assert_eq!(format!("{:?}", pods.matching(&Selector::nothing())), "Objects(0)");
}

#[test]
fn what_was_found_can_be_narrowed_down() {
    let found = apps().list().matching(&parsed("app!=db")).matching(&parsed("app!=web"));
    assert_eq!(names(&found), set(["bank/p1", "shop/p4", "bank/p7", "shop/p10"]));
    assert_eq!(names(&found.clone().matching(&Selector::everything())), names(&found));
    assert_eq!(names(&found.matching(&Selector::nothing())), set([]));
}

#[tokio::test]
async fn a_list_by_index_is_what_the_index_has_and_can_be_narrowed_down() {
    let pods = apps();
    pods.store().add_index("app", Index::label("app")).await.expect("a name");
    let web = pods.by_index("app", "web").expect("an index");
    assert_eq!(names(&web), set(["shop/p0", "bank/p3", "shop/p6", "bank/p9"]));
    assert_eq!(names(&web.matching(&parsed("app=db"))), set([]));
    assert_eq!(names(&pods.by_index("app", "none").expect("an index")), set([]));
    assert!(matches!(pods.by_index("node", "n1"), Err(IndexError::Unknown { name }) if &*name == "node"));
}

#[test]
fn a_store_without_an_index_of_namespaces_is_gone_through_and_one_warning_says_so() {
    let logs = Logs::capture();
    let store = Arc::new(Indexer::new(object_key));
    three().list().into_iter().for_each(|object| store.add(object).expect("a key"));
    let lister: Lister<Pod> = Lister::new(store);
    for lister in [lister.clone(), lister.clone()] {
        assert_eq!(names(&lister.namespace("ns-foo").list()), set(["ns-foo/foo", "ns-foo/foo1"]));
        assert_eq!(names(&lister.namespace("ns-foo").matching(&parsed("a"))), set([]));
    }
    assert_eq!(logs.lines(Level::WARN, r#"there is no index "namespace""#).len(), 1);
    assert_eq!(names(&Lister::<Pod>::new(three()).namespace("ns-foo").list()).len(), 2);
    assert_eq!(logs.lines(Level::WARN, "").len(), 1);
}

#[test]
fn an_object_that_is_not_there_is_named_with_its_kind() {
    let key = ObjectKey::namespaced("shop", "web-0");
    let error = Lister::<Pod>::new(store([])).require(&key).expect_err("empty");
    assert_eq!(error.to_string(), "there is no Pod shop/web-0 in the cache");
    assert_eq!((error.kind(), error.key()), ("Pod", &key));
    let error = Lister::<PartialObjectMeta<Pod>>::new(store([])).require(&key).expect_err("empty");
    assert_eq!(error.kind(), "PartialObjectMeta<Pod>");
    let error = Lister::<DynamicObject>::of_kind(store([]), "Widget").namespace("").require("w").expect_err("empty");
    assert_eq!(error.to_string(), "there is no Widget w in the cache");
}

#[test]
fn an_object_that_is_not_there_is_a_404_among_errors() {
    let pods: Lister<Pod> = Lister::new(store([]));
    let error: Error = pods.namespace("shop").require("web-0").expect_err("empty").into();
    assert!(error.is_not_found() && !error.is_retryable());
    assert!(error.to_string().contains("there is no Pod shop/web-0 in the cache"), "{error}");
}

#[test]
fn a_list_stays_what_it_was_while_the_store_changes() {
    let pods = apps();
    let (all, shop, web) = (pods.list(), pods.namespace("shop").list(), pods.matching(&parsed("app=web")));
    let (mut half_way, was) = (all.iter(), [names(&all), names(&shop), names(&web)]);
    let first = half_way.next().expect("twelve");
    let store = pods.store();
    for at in 0..6 {
        store.delete_by_key(&ObjectKey::namespaced(["shop", "bank"][at % 2], format!("p{at}")));
    }
    for at in 6..600 {
        store.add(object("shop", &format!("p{at}"), r#""app":"web""#)).expect("a key");
    }
    store.replace([], ResourceVersion::from("2")).expect("keys");
    let mut seen: BTreeSet<String> = half_way.map(|object| object.key().to_string()).collect();
    assert!(seen.insert(first.key().to_string()), "no key comes twice");
    assert_eq!([seen, names(&shop), names(&web)], was);
    assert!(pods.list().is_empty());
}

#[test]
fn a_list_outlives_its_lister_and_its_store() {
    let found: Vec<_> = {
        let pods = apps();
        pods.matching(&parsed("app=db"))
    }
    .into_iter()
    .collect();
    assert_eq!(found.len(), 4);
    assert!(found.iter().all(|pod| pod.labels().get("app") == Some("db")));
}

#[test]
fn a_list_says_how_long_it_is_at_least_and_at_most() {
    let pods = apps();
    let mut all = pods.list().into_iter();
    assert_eq!(all.size_hint(), (12, Some(12)));
    all.next();
    assert_eq!(all.size_hint(), (11, Some(11)));
    assert_eq!(all.count(), 11);
    let found = pods.matching(&parsed("app=web"));
    let mut some = found.iter();
    assert_eq!((some.size_hint(), some.by_ref().count()), ((0, Some(12)), 4));
    assert!(some.next().is_none() && some.next().is_none());
}

#[test]
fn a_list_with_holes_in_it_gives_all_that_is_there() {
    let pods = apps();
    for at in 12..2000 {
        pods.store().add(object("shop", &format!("p{at}"), r#""app":"web""#)).expect("a key");
    }
    for at in (0..2000).filter(|at| at % 7 != 0) {
        let namespace = if at < 12 { ["shop", "bank"][at % 2] } else { "shop" };
        pods.store().delete_by_key(&ObjectKey::namespaced(namespace, format!("p{at}")));
    }
    assert_eq!(names(&pods.list()).len(), 286);
    assert_eq!(names(&pods.namespace("shop").list()).len(), 285);
    assert_eq!(names(&pods.namespace("bank").list()), set(["bank/p7"]));
}

#[test]
fn nothing_is_decoded_to_find_objects() {
    #[derive(Debug, Deserialize)]
    struct Picky {
        #[allow(dead_code, reason = "it is not there")]
        missing: String,
    }
    let picky: Lister<Picky> = Lister::new(apps().store().clone());
    let found: Vec<_> = picky.namespace("shop").matching(&parsed("app=web")).into_iter().collect();
    assert_eq!(found.len(), 2);
    assert!(found[0].decode().is_err());
}

#[test]
fn two_listers_of_one_store_see_one_store() {
    let pods = apps();
    let views: Lister<DynamicObject> = Lister::new(pods.store().clone());
    pods.store().add(object("shop", "new", "")).expect("a key");
    assert!(views.namespace("shop").get("new").is_some());
    assert_eq!(views.last_version(), pods.last_version());
}
