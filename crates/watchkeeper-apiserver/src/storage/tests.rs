//! The storage against a simple model of it, and what it promises beyond.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::kinds::Registry;
use crate::selectors::{FieldSelector, LabelSelector};

fn storage() -> (Storage, Registry, Arc<Kind>) {
    let registry = Registry::new();
    let kind = registry.find("", "configmaps").expect("config maps");
    (Storage::new(History::default(), 1000, true), registry, kind)
}

fn document(name: &str, app: &str) -> Document {
    let object = json!({"metadata": {"name": name, "namespace": "shop", "uid": "u", "labels": {"app": app}}});
    Document::new(object).expect("a document")
}

fn everything(kind: &Arc<Kind>, labels: &str) -> Filter {
    let labels: LabelSelector = labels.parse().expect("a selector");
    Filter { kind: kind.clone(), prefix: String::new(), labels, fields: FieldSelector::default() }
}

/// Keys with their versions.
fn shown(objects: &[Arc<Stored>]) -> Vec<(String, u64)> {
    objects.iter().map(|object| (object.key().to_owned(), object.revision())).collect()
}

#[derive(Debug, Clone)]
enum Step {
    Put(u8, bool),
    Delete(u8),
    OtherKind,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => (0..6u8, any::<bool>()).prop_map(|(key, web)| Step::Put(key, web)),
        2 => (0..6u8).prop_map(Step::Delete),
        1 => Just(Step::OtherKind),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    /// Every state that there was can be read again, and a watch from it adds up to the present.
    #[test]
    fn the_past_is_what_it_was(steps in proptest::collection::vec(step(), 1..40)) {
        let (storage, registry, kind) = storage();
        let nodes = registry.find("", "nodes").expect("nodes");
        let mut states: Vec<(u64, BTreeMap<String, u64>)> = vec![(storage.revision(), BTreeMap::new())];
        let mut web: BTreeMap<String, u64> = BTreeMap::new();
        for step in steps {
            let mut state = states.last().expect("a state").1.clone();
            match step {
                Step::Put(key, is_web) => {
                    let key = format!("shop/m{key}");
                    let app = if is_web { "web" } else { "api" };
                    let written = storage.put(&kind, &key, &document(&key[5..], app), Expect::Anything).expect("written");
                    state.insert(key.clone(), written.revision());
                    web.remove(&key);
                    if is_web {
                        web.insert(key, written.revision());
                    }
                }
                Step::Delete(key) => {
                    let key = format!("shop/m{key}");
                    storage.delete(&kind, &key, Expect::Anything).expect("deleted");
                    state.remove(&key);
                    web.remove(&key);
                }
                Step::OtherKind => drop(storage.put(&nodes, "n", &document("n", "x"), Expect::Anything)),
            }
            states.push((storage.revision(), state));
        }
        for (revision, state) in &states {
            let snapshot = storage.list(&kind, "", "", Some(*revision)).expect("kept");
            let expected: Vec<(String, u64)> = state.clone().into_iter().collect();
            prop_assert_eq!(shown(&snapshot.objects), expected);

            // What matched then, and what was told since, is what matches now.
            let mut cache: BTreeMap<String, u64> = snapshot
                .objects
                .iter()
                .filter(|object| object.label("app") == Some("web"))
                .map(|object| (object.key().to_owned(), object.revision()))
                .collect();
            let watch = storage.watch(&kind, Some(*revision), everything(&kind, "app=web"), 10).expect("kept");
            for delivery in watch.backlog {
                let object = delivery.change.after().or(delivery.change.before()).expect("an object");
                let known = match delivery.event {
                    EventType::Deleted => cache.remove(object.key()),
                    _ => cache.insert(object.key().to_owned(), object.revision()),
                };
                prop_assert_eq!(known.is_some(), delivery.event != EventType::Added);
            }
            prop_assert_eq!(&cache, &web);
        }
        // The journal has every write, once.
        let journal: Vec<u64> = storage.journal_since(0).iter().map(|entry| entry.revision).collect();
        prop_assert_eq!(journal, (2..=storage.revision()).collect::<Vec<_>>());
    }
}

#[tokio::test(start_paused = true)]
async fn writes_expect_what_they_say() {
    let (storage, _, kind) = storage();
    let first = storage.create(&kind, "shop/a", &document("a", "web"), None).expect("new");
    assert_eq!(storage.create(&kind, "shop/a", &document("a", "web"), None).err(), Some(Refused::Taken));
    let expect = Expect::Revision(first.revision());
    let second = storage.put(&kind, "shop/a", &document("a", "api"), expect).expect("as expected");
    assert_eq!(storage.put(&kind, "shop/a", &document("a", "api"), expect).err(), Some(Mismatch));
    assert_eq!(storage.delete(&kind, "shop/a", expect), Err(Mismatch));
    assert_eq!(storage.delete(&kind, "shop/a", Expect::Revision(second.revision())), Ok(second.revision() + 1));
    assert_eq!(storage.count(&kind), 0);
}

#[tokio::test(start_paused = true)]
async fn a_deletion_shows_the_last_state_with_its_own_version() {
    let (storage, _, kind) = storage();
    // One digit becomes two: everything behind the version moves.
    for _ in 0..7 {
        storage.put(&kind, "shop/a", &document("a", "web"), Expect::Anything).expect("written");
    }
    let last = storage.get(&kind, "shop/a").expect("there");
    assert_eq!(last.revision(), 8);
    let stamped = last.stamped(12_345);
    let tree: Value = serde_json::from_slice(stamped.json()).expect("JSON");
    assert_eq!(tree["metadata"]["resourceVersion"], "12345");
    let metadata: Value = serde_json::from_slice(&stamped.metadata(&kind)).expect("JSON");
    assert_eq!(tree["metadata"], metadata);
    let again: Value = serde_json::from_slice(stamped.stamped(8).json()).expect("JSON");
    assert_eq!(again, serde_json::from_slice::<Value>(last.json()).expect("JSON"));
}

#[tokio::test(start_paused = true)]
async fn the_window_forgets_by_count_by_age_and_on_command() {
    let registry = Registry::new();
    let kind = registry.find("", "configmaps").expect("config maps");
    let storage = Storage::new(History { changes: 3, age: Duration::from_secs(60) }, 1000, true);
    for i in 0..5 {
        storage.put(&kind, &format!("shop/m{i}"), &document("m", "web"), Expect::Anything).expect("written");
    }
    let oldest =
        |at| storage.list(&kind, "", "", Some(at)).map(|snapshot| snapshot.objects.len()).map_err(|e| e.oldest);
    assert_eq!((oldest(2), oldest(3), oldest(5)), (Err(3), Ok(2), Ok(4)));
    storage.compact(4);
    assert_eq!((oldest(3), oldest(4)), (Err(4), Ok(3)));
    // No further than the present.
    storage.compact(1000);
    assert_eq!((oldest(5), oldest(6)), (Err(6), Ok(5)));
    storage.put(&kind, "shop/late", &document("late", "web"), Expect::Anything).expect("written");
    tokio::time::advance(Duration::from_secs(61)).await;
    assert_eq!((oldest(6), oldest(7)), (Err(7), Ok(6)));
}

#[tokio::test(start_paused = true)]
async fn a_watcher_that_is_too_slow_is_forgotten() {
    let (storage, _, kind) = storage();
    let mut watch = storage.watch(&kind, Some(1), everything(&kind, ""), 2).expect("kept");
    assert_eq!(storage.progress(&watch), Some(1));
    for i in 0..4 {
        storage.put(&kind, &format!("shop/m{i}"), &document("m", "web"), Expect::Anything).expect("written");
    }
    assert_eq!(storage.progress(&watch), None);
    let mut told = Vec::new();
    while let Some(delivery) = watch.live.recv().await {
        told.push(delivery.change.revision());
    }
    assert_eq!(told, [2, 3]);
}

fn load(storage: &Storage, registry: &Registry, file: &str) -> Result<(), FileError> {
    let saved = Saved::read(file.as_bytes())?;
    saved.check(|group, plural| registry.find(group, plural).is_some())?;
    storage.load(registry, saved);
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn bad_files_are_refused_and_change_nothing() {
    let (storage, registry, kind) = storage();
    storage.create(&kind, "shop/a", &document("a", "web"), None).expect("new");
    let object = r#"{"group":"","resource":"configmaps","object":{"metadata":{"name":"b","namespace":"shop","resourceVersion":"3"}}}"#;
    for (file, line) in [
        (String::new(), 1),
        ("{}".to_owned(), 1),
        ("{\"revision\":9}\nx".to_owned(), 2),
        ("{\"revision\":9}\n{\"group\":\"\",\"resource\":\"nope\",\"object\":{}}".to_owned(), 2),
        (format!("{{\"revision\":9}}\n{object}\n{}", object.replace("\"3\"", "\"10\"")), 3),
        (format!("{{\"revision\":9}}\n{}", object.replace("\"name\":\"b\",", "")), 2),
        (format!("{{\"revision\":9}}\n{}", object.replace("{\"name\":\"b\"", "[{\"name\":\"b\"")), 2),
    ] {
        match load(&storage, &registry, &file) {
            Err(FileError::Line { line: bad, .. }) => assert_eq!(bad, line, "{file}"),
            other => panic!("{other:?}: {file}"),
        }
        assert_eq!((storage.count(&kind), storage.revision()), (1, 2));
    }
    let mut watch = storage.watch(&kind, None, everything(&kind, ""), 10).expect("kept");
    load(&storage, &registry, &format!("{{\"revision\":9}}\n{object}")).expect("loaded");
    // Who watched what was there before is let go.
    assert!(watch.live.recv().await.is_none());
    assert!(storage.journal_since(0).is_empty());
    assert_eq!(shown(&storage.objects(&kind)), [("shop/b".to_owned(), 3)]);
    let next = storage.create(&kind, "shop/c", &document("c", "web"), None).expect("new");
    assert_eq!(next.revision(), 10);
    assert_eq!(storage.list(&kind, "", "", Some(8)).err(), Some(TooOld { oldest: 9 }));
}

/// A watch that was cut has not been told what came behind the cut: nothing may promise that.
#[tokio::test]
async fn a_subscription_that_was_cut_makes_no_progress() {
    let (storage, _, kind) = storage();
    let subscription = storage.watch(&kind, Some(1), everything(&kind, ""), 10).expect("a watch");
    assert_eq!(storage.progress(&subscription), Some(1));
    storage.disconnect();
    storage.create(&kind, "shop/a", &document("a", "web"), None).expect("written");
    assert_eq!(storage.progress(&subscription), None);
}

/// Another crate of the program may make maps keep the order of what was sent (`serde_json/preserve_order`).
#[test]
fn labels_are_found_whatever_order_they_were_sent_in() {
    let (storage, _, kind) = storage();
    let labels = r#"{"metadata": {"name": "a", "uid": "u", "labels": {"z": "1", "m": "2", "a": "3", "q": "4"}}}"#;
    let document = Document::new(serde_json::from_str(labels).expect("JSON")).expect("a document");
    let stored = storage.create(&kind, "shop/a", &document, None).expect("written");
    for (key, value) in [("z", "1"), ("m", "2"), ("a", "3"), ("q", "4")] {
        assert_eq!(stored.label(key), Some(value), "{key}");
    }
}
