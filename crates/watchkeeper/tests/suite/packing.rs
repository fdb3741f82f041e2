//! Bodies come out as they went in, however they are kept.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use futures::FutureExt as _;
use http::Response;
use k8s_openapi::api::core::v1::{Pod, Secret};
use kube_core::ApiResource;
use serde_json::Value;
use tokio::runtime::Handle;
use tokio::time::timeout;
use watchkeeper::{
    Keep, KnownObjects, ListOptions, ListPart, ListWatch, ListerWatcher as _, Listing, Object, ObjectKey, Scope,
    WatchEvent,
};

use crate::corpus::{self, Pods};
use crate::support::*;

/// What the lists of the corpus are lists of.
fn resource(list: &str) -> ApiResource {
    let (group, kind, plural) = match list {
        "clusterroles" => ("rbac.authorization.k8s.io", "ClusterRole", list),
        "configmaps" => ("", "ConfigMap", list),
        "deployments" => ("apps", "Deployment", list),
        "endpointslices" => ("discovery.k8s.io", "EndpointSlice", list),
        "nodes" => ("", "Node", list),
        "pods" | "pods-large" => ("", "Pod", "pods"),
        "replicasets" => ("apps", "ReplicaSet", list),
        "secrets" => ("", "Secret", list),
        "services" => ("", "Service", list),
        other => panic!("no kind for {other}"),
    };
    let api_version = if group.is_empty() { "v1".to_owned() } else { format!("{group}/v1") };
    ApiResource { group: group.into(), version: "v1".into(), api_version, kind: kind.into(), plural: plural.into() }
}

/// An item of a list, as it is kept.
fn with_kind(resource: &ApiResource, item: &str) -> String {
    format!(r#"{{"kind":"{}","apiVersion":"{}",{}"#, resource.kind, resource.api_version, &item[1..])
}

fn list_of(resource: &ApiResource, items: &[String]) -> String {
    let ApiResource { kind, api_version, .. } = resource;
    let items = items.join(",");
    format!(
        r#"{{"kind":"{kind}List","apiVersion":"{api_version}","metadata":{{"resourceVersion":"9"}},"items":[{items}]}}"#
    )
}

/// A source that lists these items, and whose watch says that they were all added.
fn source_of(resource: &ApiResource, items: &[String]) -> ListWatch {
    let list = list_of(resource, items);
    let watch: String = items.iter().map(|item| event_json("ADDED", &with_kind(resource, item))).collect();
    let client = client(move |request| {
        let is_watch = request.uri().query().is_some_and(|query| query.contains("watch"));
        ok(if is_watch { watch.clone() } else { list.clone() })
    });
    ListWatch::new(client, resource.clone())
}

fn pods_source(count: usize) -> (ListWatch, Vec<String>) {
    let pods = Pods::new(1);
    let items: Vec<String> = (0..count).map(|number| pods.item(number)).collect();
    let expected = items.iter().map(|item| with_kind(&resource("pods"), item)).collect();
    (source_of(&resource("pods"), &items), expected)
}

async fn items_of(mut listing: Listing) -> Vec<Object> {
    let mut objects = Vec::new();
    while let Some(part) = listing.next().await.expect("a part") {
        match part {
            ListPart::Item(object) => objects.push(object),
            ListPart::Bad(object) => panic!("{object}"),
            ListPart::Metadata(_) | ListPart::Progress => {}
        }
    }
    objects
}

async fn listed_by(source: &ListWatch) -> Vec<Object> {
    items_of(source.list(ListOptions::default()).await.expect("an answer")).await
}

async fn watched_by(source: &ListWatch) -> Vec<Object> {
    let mut stream = source.watch(ListOptions::default()).await.expect("an answer");
    let mut objects = Vec::new();
    while let Some(event) = stream.next().await.expect("an event") {
        match event {
            WatchEvent::Added(object) => objects.push(object),
            WatchEvent::Progress => {}
            other => panic!("{other:?}"),
        }
    }
    objects
}

#[track_caller]
fn assert_exact(objects: &[Object], expected: &[String], what: &str) {
    assert_eq!(objects.len(), expected.len(), "{what}");
    for (object, json) in objects.iter().zip(expected) {
        assert_eq!(object.json().expect("a body"), *json, "{what}: {object:?}");
    }
}

#[derive(Default)]
struct Store(Mutex<HashMap<ObjectKey, Object>>);

impl Store {
    fn replace(&self, objects: &[Object]) {
        let objects = objects.iter().map(|object| (object.key().clone(), object.clone())).collect();
        *self.0.lock().expect("not poisoned") = objects;
    }
}

impl KnownObjects<Object> for Store {
    fn list_keys(&self) -> Vec<ObjectKey> {
        self.0.lock().expect("not poisoned").keys().cloned().collect()
    }

    fn get_by_key(&self, key: &ObjectKey) -> Option<Object> {
        self.0.lock().expect("not poisoned").get(key).cloned()
    }
}

/// The two are one handle: no other has its key at this address.
fn is_one(one: &Object, other: &Object) -> bool {
    std::ptr::eq(one.key().name(), other.key().name())
}

#[tokio::test(start_paused = true)]
async fn every_object_of_a_real_cluster_comes_out_as_it_went_in_however_it_is_kept() {
    for (list, _) in corpus::LISTS {
        let resource = resource(list);
        let items = corpus::items(list);
        let expected: Vec<String> = items.iter().map(|item| with_kind(&resource, item)).collect();
        let plain = source_of(&resource, &items);
        for keep in [Keep::Packed, Keep::Raw, Keep::decoded::<Value>()] {
            for max_raw_bytes in [1, 64 << 10, usize::MAX] {
                let what = format!("{list} {keep:?} {max_raw_bytes}");
                let source = plain.clone().keep(keep.clone()).max_raw_bytes(max_raw_bytes);
                let listed = listed_by(&source).await;
                let watched = watched_by(&source).await;
                for _ in 0..2 {
                    assert_exact(&listed, &expected, &what);
                    assert_exact(&watched, &expected, &what);
                    pass(seconds(60)).await;
                }
                let packed = source.packing().packed;
                match keep {
                    Keep::Raw => assert_eq!(packed, 0, "{what}"),
                    _ if max_raw_bytes == 1 => assert_eq!(packed, 2 * items.len() as u64, "{what}"),
                    _ => {}
                }
            }
        }
    }
}

#[tokio::test]
async fn secrets_stay_raw_unless_they_are_told_not_to() {
    let items = corpus::items("secrets");
    let source = source_of(&resource("secrets"), &items).max_raw_bytes(1);
    let _kept = listed_by(&source).await;
    assert_eq!(source.packing().packed, 0);
    let source = source.keep(Keep::Packed);
    let _kept = listed_by(&source).await;
    tokio::task::yield_now().await;
    assert!(source.packing().packed > 0);
    let by_type = ListWatch::of::<Secret>(client(|_| ok("")));
    assert_eq!(by_type.resource().plural, "secrets");
}

#[tokio::test(start_paused = true)]
async fn objects_that_are_listed_again_unchanged_travel_as_the_stored_handles() {
    for keep in [Keep::Packed, Keep::Raw, Keep::decoded::<Value>()] {
        let store = Arc::new(Store::default());
        let (source, expected) = pods_source(700);
        let source = source.keep(keep).known_objects(store.clone());
        let first = listed_by(&source).await;
        store.replace(&first);
        pass(seconds(300)).await;
        let before = source.packing();
        // By another list, and by the initial events of a stream.
        for again in [listed_by(&source).await, watched_by(&source).await] {
            assert!(first.iter().zip(&again).all(|(one, other)| is_one(one, other)));
            assert_exact(&again, &expected, "again");
        }
        pass(seconds(300)).await;
        assert_eq!(source.packing(), before);
    }
}

#[tokio::test]
async fn an_object_of_the_same_version_with_another_body_or_uid_is_another_object() {
    let store = Arc::new(Store::default());
    let kept = pod("a", "1");
    store.replace(std::slice::from_ref(&kept));
    let changes: [fn(&str) -> String; 3] = [
        |json| json.replace("uid-a", "uid-b"),
        |json| json.replace("node-1", "node-2"),
        |json| json.replace("\"1\"", "\"2\""),
    ];
    for change in changes {
        let json = change(&pod_json("a", "1"));
        let source = pods_in([event_json("ADDED", &json)]).known_objects(store.clone());
        let objects = watched_by(&source).await;
        assert!(!is_one(&objects[0], &kept));
        assert_eq!(objects[0].json().expect("a body"), json);
    }
    let source = pods_in([event_json("ADDED", &pod_json("a", "1"))]).known_objects(store.clone());
    assert!(is_one(&watched_by(&source).await[0], &kept));
}

/// Whatever it is asked for, it has something else.
struct Confused(Object);

impl KnownObjects<Object> for Confused {
    fn list_keys(&self) -> Vec<ObjectKey> {
        vec![key("nobody"); 100]
    }

    fn get_by_key(&self, _: &ObjectKey) -> Option<Object> {
        Some(self.0.clone())
    }
}

#[tokio::test(start_paused = true)]
async fn a_store_that_holds_something_else_under_a_key_changes_no_object() {
    let (source, expected) = pods_source(700);
    let source = source.known_objects(Confused(pod("a", "1")));
    let objects = listed_by(&source).await;
    pass(seconds(300)).await;
    assert_exact(&objects, &expected, "confused");
}

#[tokio::test(start_paused = true)]
async fn a_listing_that_is_dropped_while_it_waits_for_room_takes_none_with_it() {
    let (source, expected) = pods_source(100);
    let source = source.max_raw_bytes(50_000);
    for _ in 0..20 {
        let mut listing = source.list(ListOptions::default()).await.expect("an answer");
        let mut kept = Vec::new();
        // Nobody packs meanwhile: this is the only thread.
        while let Some(part) = listing.next().now_or_never() {
            kept.push(part.expect("a part").expect("not the end"));
        }
        assert!(kept.len() < 50);
    }
    let objects = timeout(seconds(60), listed_by(&source)).await.expect("there is room");
    assert_exact(&objects, &expected, "the last list");
}

#[tokio::test(start_paused = true)]
async fn sources_of_several_namespaces_share_the_room_and_all_come_to_their_end() {
    let (source, expected) = pods_source(100);
    let namespaces = (0..10).map(|number| format!("n{number}")).collect();
    let partitions = source.max_raw_bytes(20_000).scope(Scope::Namespaces(namespaces)).partitions();
    let lists = futures::future::join_all(partitions.iter().map(listed_by));
    for objects in timeout(seconds(60), lists).await.expect("no deadlock") {
        assert_exact(&objects, &expected, "a partition");
    }
    assert!(partitions.iter().all(|partition| partition.packing() == partitions[0].packing()));
}

#[tokio::test(start_paused = true)]
async fn one_object_larger_than_the_bound_is_let_through() {
    let large = |name: &str| {
        let payload = "x".repeat(3_000_000);
        format!(r#"{{"metadata":{{"name":"{name}","namespace":"shop","resourceVersion":"1"}},"spec":"{payload}"}}"#)
    };
    let items: Vec<String> = (0..5).map(|number| large(&format!("large-{number}"))).collect();
    let source = source_of(&resource("pods"), &items).max_raw_bytes(1 << 20);
    let objects = timeout(seconds(60), listed_by(&source)).await.expect("no deadlock");
    pass(seconds(1)).await;
    let expected: Vec<String> = items.iter().map(|item| with_kind(&resource("pods"), item)).collect();
    assert_exact(&objects, &expected, "large");
    assert_eq!(source.packing().packed, 5);
}

#[tokio::test(start_paused = true)]
async fn nothing_runs_on_when_sources_and_streams_are_gone() {
    let tasks = || Handle::current().metrics().num_alive_tasks();
    let before = tasks();
    let (source, _) = pods_source(50);
    let objects = listed_by(&source).await;
    let stream = source.watch(ListOptions::default()).await.expect("an answer");
    drop(source);
    pass(seconds(1)).await;
    assert_eq!(tasks(), before + 1, "the stream still needs its packer");
    drop(stream);
    pass(seconds(1)).await;
    assert_eq!(tasks(), before);
    drop(objects);
}

#[tokio::test]
async fn a_watch_event_that_is_half_read_is_not_lost_when_the_call_is_given_up() {
    let (_, expected) = pods_source(60);
    let lines: Vec<String> = expected.iter().map(|json| event_json("MODIFIED", json)).collect();
    let source = ListWatch::of::<Pod>(client(move |_| {
        Response::new(body(lines.iter().map(|line| Piece::Bytes(line.clone().into())).collect()))
    }))
    .max_raw_bytes(1);
    let mut stream = source.watch(ListOptions::default()).await.expect("an answer");
    let mut seen = Vec::new();
    while seen.len() < expected.len() {
        match stream.next().now_or_never() {
            None => tokio::task::yield_now().await,
            Some(event) => match event.expect("an event") {
                Some(WatchEvent::Modified(object)) => seen.push(object),
                Some(WatchEvent::Progress) => {}
                other => panic!("{other:?}"),
            },
        }
    }
    assert_exact(&seen, &expected, "given up");
}
