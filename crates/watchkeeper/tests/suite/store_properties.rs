//! Long random histories of a store, against a map with all indexes computed from scratch.

use std::collections::{BTreeMap, BTreeSet};
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use proptest::prelude::*;
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};
use watchkeeper::{
    Index, IndexError, Indexer, Object, ObjectKey, Operation, ReflectorStore, Replacement, ResourceVersion, Selection,
    Snapshot,
};

#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Row {
    key: u16,
    group: u8,
    tags: Vec<u8>,
    version: u32,
}

type Rows = Indexer<Arc<Row>, u16>;

fn groups(row: &Arc<Row>) -> Vec<String> {
    vec![format!("group-{}", row.group)]
}

fn tags(row: &Arc<Row>) -> Vec<String> {
    row.tags.iter().map(|tag| if *tag == 0 { String::new() } else { format!("tag-{tag}") }).collect()
}

/// Several values, one or none, by what the row is.
fn late(row: &Arc<Row>) -> Vec<String> {
    match row.group % 3 {
        0 => Vec::new(),
        1 => groups(row),
        _ => tags(row).into_iter().chain(groups(row)).collect(),
    }
}

type Function = fn(&Arc<Row>) -> Vec<String>;

#[derive(Debug, Clone)]
enum Op {
    Add(u16, u8, Vec<u8>),
    Delete(u16),
    DeleteKey(u16),
    Batch(Vec<Op>),
    Replace(Vec<(u16, u8, Vec<u8>)>),
    Bookmark,
    Snapshot,
    Select(u8),
    Release,
    BeginIndex,
    Poll(u8),
    DropIndex,
}

fn row() -> impl Strategy<Value = (u16, u8, Vec<u8>)> {
    (0..400_u16, 0..8_u8, prop::collection::vec(0..6_u8, 0..5))
}

fn change() -> impl Strategy<Value = Op> {
    prop_oneof![
        6 => row().prop_map(|(key, group, tags)| Op::Add(key, group, tags)),
        2 => (0..400_u16).prop_map(Op::Delete),
        2 => (0..400_u16).prop_map(Op::DeleteKey),
    ]
}

fn op() -> impl Strategy<Value = Op> {
    prop_oneof![
        8 => change(),
        5 => prop::collection::vec(change(), 0..40).prop_map(Op::Batch),
        2 => prop::collection::vec(row(), 0..500).prop_map(Op::Replace),
        1 => Just(Op::Bookmark),
        2 => Just(Op::Snapshot),
        3 => (0..8_u8).prop_map(Op::Select),
        2 => Just(Op::Release),
        2 => Just(Op::BeginIndex),
        5 => (1..4_u8).prop_map(Op::Poll),
        1 => Just(Op::DropIndex),
    ]
}

type Contents = BTreeMap<u16, Arc<Row>>;
type Building = Pin<Box<dyn Future<Output = Result<(), IndexError>>>>;

#[derive(Default)]
struct Model {
    rows: Contents,
    version: String,
    next: u32,
}

/// A view, and what it is to show for ever.
struct Held<V>(V, Contents);

type Versioned = (Snapshot<Arc<Row>, u16>, String);

struct World {
    store: Arc<Rows>,
    model: Model,
    late: bool,
    building: Option<Building>,
    snapshots: Vec<Held<Versioned>>,
    selections: Vec<Held<Selection<Arc<Row>, u16>>>,
}

impl World {
    fn new() -> Self {
        let store = Rows::new(|row: &Arc<Row>| Ok(row.key))
            .version_of(|row| Some(ResourceVersion::from(row.version.to_string().as_str())))
            .with_index("group", Index::of(groups))
            .and_then(|store| store.with_index("tag", Index::of(tags)))
            .expect("two names");
        let (snapshots, selections) = (Vec::new(), Vec::new());
        Self { store: Arc::new(store), model: Model::default(), late: false, building: None, snapshots, selections }
    }

    fn row(&mut self, (key, group, tags): (u16, u8, Vec<u8>)) -> Arc<Row> {
        self.model.next += 1;
        Arc::new(Row { key, group, tags, version: self.model.next })
    }

    /// What the store is to be told, after the model has been.
    fn change(&mut self, op: Op) -> Operation<Arc<Row>, u16> {
        match op {
            Op::Add(key, group, tags) => {
                let row = self.row((key, group, tags));
                self.model.version = row.version.to_string();
                self.model.rows.insert(key, row.clone());
                Operation::Add(row)
            }
            Op::Delete(key) => {
                let last = self.row((key, 0, Vec::new()));
                self.model.version = last.version.to_string();
                self.model.rows.remove(&key);
                Operation::Delete(last)
            }
            Op::DeleteKey(key) => {
                self.model.rows.remove(&key);
                Operation::DeleteKey(key)
            }
            other => panic!("{other:?} is no change"),
        }
    }

    fn apply(&mut self, op: Op) {
        match op {
            Op::Add(..) | Op::Delete(_) | Op::DeleteKey(_) => match self.change(op) {
                Operation::Add(row) | Operation::Update(row) => self.store.add(row).expect("a key"),
                Operation::Delete(row) => self.store.delete(&row).expect("a key"),
                Operation::DeleteKey(key) => self.store.delete_by_key(&key),
            },
            Op::Batch(ops) => {
                let mut previous = Vec::new();
                let mut batch = Vec::new();
                for op in ops {
                    let key = match &op {
                        Op::Add(key, ..) | Op::Delete(key) | Op::DeleteKey(key) => *key,
                        other => panic!("{other:?} is no change"),
                    };
                    previous.push(self.model.rows.get(&key).cloned());
                    batch.push(self.change(op));
                }
                assert_eq!(self.store.apply(batch).into_result().expect("keys"), previous);
            }
            Op::Replace(rows) => {
                let rows: Vec<_> = rows.into_iter().map(|row| self.row(row)).collect();
                self.model.version = format!("list-{}", self.model.next);
                self.model.rows = rows.iter().map(|row| (row.key, row.clone())).collect();
                self.store.replace(rows, self.model.version.as_str().into()).expect("keys");
            }
            Op::Bookmark => {
                self.model.version = format!("bookmark-{}", self.model.next);
                self.store.bookmark(&self.model.version.as_str().into());
            }
            Op::Snapshot => {
                let (rows, version) = (self.model.rows.clone(), self.model.version.clone());
                self.snapshots.push(Held((self.store.snapshot(), version), rows));
            }
            Op::Select(group) => {
                let value = format!("group-{group}");
                let found = self.model.rows.iter().filter(|(_, row)| row.group == group);
                let expected = found.map(|(key, row)| (*key, row.clone())).collect();
                self.selections.push(Held(self.store.by_index("group", &value).expect("an index"), expected));
            }
            Op::Release => {
                self.snapshots.pop();
                self.selections.pop();
            }
            Op::BeginIndex => {
                if self.building.is_none() {
                    let store = self.store.clone();
                    self.building = Some(Box::pin(async move { store.add_index("late", Index::of(late)).await }));
                }
            }
            Op::Poll(times) => {
                for _ in 0..times {
                    let mut context = Context::from_waker(Waker::noop());
                    if let Some(building) = &mut self.building
                        && let Poll::Ready(result) = building.as_mut().poll(&mut context)
                    {
                        result.expect("the same index each time");
                        (self.late, self.building) = (true, None);
                    }
                }
            }
            Op::DropIndex => self.building = None,
        }
    }

    fn check(&self) {
        let rows = &self.model.rows;
        assert_eq!(self.store.len(), rows.len());
        let mut keys = self.store.list_keys();
        keys.sort_unstable();
        assert!(keys.iter().eq(rows.keys()));
        assert!(rows.iter().all(|(key, row)| self.store.get_by_key(key).as_ref() == Some(row)));
        assert_eq!(self.store.last_version().as_str(), self.model.version);
        let mut indexes: Vec<(&str, Function)> = vec![("group", groups), ("tag", tags)];
        if self.late {
            indexes.push(("late", late));
        }
        for (name, function) in indexes {
            let mut expected: BTreeMap<String, BTreeSet<u16>> = BTreeMap::new();
            for row in rows.values() {
                for value in function(row) {
                    expected.entry(value).or_default().insert(row.key);
                }
            }
            assert!(self.store.index_values(name).expect("an index").iter().eq(expected.keys()), "{name}");
            for (value, keys) in &expected {
                assert!(self.store.index_keys(name, value).expect("an index").iter().eq(keys), "{name} {value}");
                assert_eq!(self.store.by_index(name, value).expect("an index").len(), keys.len());
            }
            if let Some(row) = rows.values().next() {
                let mut found = self.store.index(name, row).expect("an index");
                found.sort_unstable();
                let shared = |other: &Arc<Row>| function(row).iter().any(|value| function(other).contains(value));
                let mut expected: Vec<_> = rows.values().filter(|other| shared(other)).cloned().collect();
                expected.sort_unstable();
                assert_eq!(found, expected);
            }
        }
        if !self.late {
            assert!(self.store.index_values("late").is_err());
        }
        for Held((snapshot, version), rows) in &self.snapshots {
            assert_eq!((snapshot.len(), snapshot.version().as_str()), (rows.len(), version.as_str()));
            assert_eq!(&snapshot.iter().map(|(key, row)| (*key, row.clone())).collect::<BTreeMap<_, _>>(), rows);
            assert_eq!(snapshot.iter().count(), rows.len());
        }
        for Held(selection, rows) in &self.selections {
            assert_eq!(selection.len(), rows.len());
            assert_eq!(&selection.iter().map(|(key, row)| (*key, row.clone())).collect::<BTreeMap<_, _>>(), rows);
        }
    }
}

fn runner(cases: u32) -> TestRunner {
    let config = Config { cases, failure_persistence: None, max_shrink_iters: 500, ..Config::default() };
    TestRunner::new_with_rng(config, TestRng::from_seed(RngAlgorithm::ChaCha, &[7; 32]))
}

#[test]
fn a_store_is_what_a_map_with_indexes_from_scratch_would_be_at_every_step() {
    let histories = prop::collection::vec(op(), 1..60);
    let run = |history: Vec<Op>| {
        let mut world = World::new();
        for op in history {
            world.apply(op);
            world.check();
        }
        world.apply(Op::BeginIndex);
        while world.building.is_some() {
            world.apply(Op::Poll(1));
        }
        world.check();
        Ok(())
    };
    runner(60).run(&histories, run).expect("histories of seed 7");
}

fn object(name: u8, version: u32, node: u8) -> Object {
    let json = format!(
        r#"{{"metadata":{{"name":"o{name}","namespace":"ns{}","resourceVersion":"{version}"}},"spec":{{"nodeName":"node-{node}"}}}}"#,
        name % 3
    );
    Object::from_json(json).expect("an object")
}

fn object_key(name: u8) -> ObjectKey {
    object(name, 1, 0).key().clone()
}

/// A list (names and nodes, names that cannot be used, whether it is complete) and what follows it.
type Cycle = ((Vec<(u8, u8)>, Vec<u8>, bool), Vec<(u8, u8, bool)>);

#[test]
fn what_a_reflector_writes_is_what_the_store_shows() {
    let list =
        (prop::collection::vec((0..40_u8, 0..5_u8), 0..40), prop::collection::vec(0..40_u8, 0..6), any::<bool>());
    let changes = prop::collection::vec((0..40_u8, 0..5_u8, any::<bool>()), 0..20);
    let histories = prop::collection::vec((list, changes), 1..8);
    let run = |history: Vec<Cycle>| {
        let store = Indexer::objects().with_index("node", Index::field("/spec/nodeName")).expect("a name");
        let mut model: BTreeMap<ObjectKey, (u32, u8)> = BTreeMap::new();
        let mut version = 1;
        for ((items, unusable, complete), changes) in history {
            let listed: BTreeMap<u8, u8> = items.into_iter().collect();
            let unusable: Vec<u8> = unusable.into_iter().filter(|name| !listed.contains_key(name)).collect();
            version += 1;
            model.retain(|key, _| !complete || unusable.iter().any(|name| object_key(*name) == *key));
            model.extend(listed.iter().map(|(name, node)| (object_key(*name), (version, *node))));
            let list = Replacement {
                items: listed.iter().map(|(name, node)| object(*name, version, *node)).collect(),
                resource_version: version.to_string().as_str().into(),
                unusable: unusable.iter().map(|name| object_key(*name)).collect(),
                complete,
            };
            ReflectorStore::replace(&store, list).expect("replaced");
            assert_eq!(store.last_version().as_str(), version.to_string());
            for (name, node, put) in changes {
                version += 1;
                if put {
                    model.insert(object_key(name), (version, node));
                    ReflectorStore::update(&store, object(name, version, node)).expect("updated");
                } else {
                    model.remove(&object_key(name));
                    let last = object(name, version, node);
                    ReflectorStore::delete(&store, &object_key(name), Some(last)).expect("deleted");
                }
                assert_eq!(store.last_version().as_str(), version.to_string());
            }
            let held: BTreeMap<ObjectKey, String> = store
                .list()
                .iter()
                .map(|object| (object.key().clone(), object.resource_version().to_string()))
                .collect();
            assert!(held.iter().eq(
                &model.iter().map(|(key, (version, _))| (key.clone(), version.to_string())).collect::<BTreeMap<_, _>>()
            ));
            for node in 0..5 {
                let expected: Vec<_> =
                    model.iter().filter(|(_, (_, at))| *at == node).map(|(key, _)| key.clone()).collect();
                assert_eq!(store.index_keys("node", &format!("node-{node}")).expect("an index"), expected);
            }
            for namespace in ["ns0", "ns1", "ns2"] {
                let expected = model.keys().filter(|key| key.namespace() == Some(namespace)).count();
                assert_eq!(store.by_index("namespace", namespace).expect("an index").iter().count(), expected);
            }
        }
        Ok(())
    };
    runner(60).run(&histories, run).expect("histories of seed 7");
}
