//! What the tests of the queues share: a plain type with a key, a store, and short texts for what comes out.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, OnceLock};

use watchkeeper::queue::{
    AtomicFifo, AtomicFifoBuilder, AtomicFifoConsumer, Delta, DeltaFifo, DeltaFifoBuilder, DeltaFifoConsumer, Entry,
};
use watchkeeper::{KeyError, KnownObjects, ResourceVersion};

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Item {
    pub name: String,
    pub value: i64,
}

pub fn item(name: &str, value: i64) -> Item {
    Item { name: name.into(), value }
}

pub fn version(version: &str) -> ResourceVersion {
    version.into()
}

/// An item without a name has no key.
pub fn item_key(item: &Item) -> Result<String, KeyError> {
    if item.name.is_empty() { Err(KeyError::new("no name")) } else { Ok(item.name.clone()) }
}

pub fn fifo() -> DeltaFifoBuilder<Item, String> {
    DeltaFifo::builder(item_key)
}

pub fn atomic() -> AtomicFifoBuilder<Item, String> {
    AtomicFifo::builder(item_key)
}

/// `Added foo=1`; a tombstone is `Deleted? foo=1`, one without an object `Deleted? foo`.
pub fn text(key: &str, delta: &Delta<Item>) -> String {
    let mark = if delta.is_tombstone() { "?" } else { "" };
    let value = delta.object().map(|object| format!("={}", object.value)).unwrap_or_default();
    format!("{}{mark} {key}{value}", delta.delta_type())
}

pub fn texts(deltas: &watchkeeper::queue::Deltas<Item, String>) -> Vec<String> {
    deltas.iter().map(|delta| text(deltas.key(), delta)).collect()
}

/// Everything that comes out now, key by key.
pub fn drain(consumer: &mut DeltaFifoConsumer<Item, String>) -> Vec<Vec<String>> {
    let mut all = Vec::new();
    while let Ok(Some(deltas)) = consumer.try_pop() {
        all.push(texts(&deltas));
    }
    all
}

pub fn entry_text(entry: &Entry<Item, String>) -> String {
    match entry {
        Entry::Object { key, delta } => text(key, delta),
        Entry::ReplacedAll(all) => {
            let items: Vec<String> = all.items.iter().map(|item| format!("{}={}", item.name, item.value)).collect();
            format!("ReplacedAll@{} {}", all.resource_version.as_str(), items.join(","))
        }
        Entry::SyncAll => "SyncAll".into(),
        Entry::Bookmark(version) => format!("Bookmark@{}", version.as_str()),
    }
}

/// Everything that comes out now, batch by batch.
pub fn drain_batches(consumer: &mut AtomicFifoConsumer<Item, String>) -> Vec<Vec<String>> {
    let mut all = Vec::new();
    while let Ok(Some(batch)) = consumer.try_pop_batch() {
        all.push(batch.iter().map(entry_text).collect());
    }
    all
}

/// Everything that comes out now, one by one.
pub fn drain_entries(consumer: &mut AtomicFifoConsumer<Item, String>) -> Vec<String> {
    let mut all = Vec::new();
    while let Ok(Some(batch)) = consumer.try_pop() {
        all.extend(batch.iter().map(entry_text));
    }
    all
}

/// A store that changes are applied to.
#[derive(Clone, Default)]
pub struct TestStore(pub Arc<Mutex<BTreeMap<String, Item>>>);

impl TestStore {
    pub fn of(items: impl IntoIterator<Item = Item>) -> Self {
        Self(Arc::new(Mutex::new(items.into_iter().map(|item| (item.name.clone(), item)).collect())))
    }

    pub fn apply(&self, key: &str, delta: &Delta<Item>) {
        let mut items = self.0.lock().expect("not poisoned");
        match delta {
            Delta::Deleted { .. } => items.remove(key),
            Delta::Added(item) | Delta::Updated(item) | Delta::Replaced(item) | Delta::Sync(item) => {
                items.insert(key.to_owned(), item.clone())
            }
        };
    }

    pub fn contents(&self) -> BTreeMap<String, i64> {
        self.0.lock().expect("not poisoned").values().map(|item| (item.name.clone(), item.value)).collect()
    }
}

impl KnownObjects<Item, String> for TestStore {
    fn list_keys(&self) -> Vec<String> {
        self.0.lock().expect("not poisoned").keys().cloned().collect()
    }

    fn get_by_key(&self, key: &String) -> Option<Item> {
        self.0.lock().expect("not poisoned").get(key).cloned()
    }
}

/// Asks a queue something when it is dropped.
#[derive(Clone)]
pub struct Parting(pub u8, pub Arc<OnceLock<Box<dyn Fn() + Send + Sync>>>);

impl Parting {
    pub fn key(&self) -> Result<u8, KeyError> {
        Ok(self.0)
    }
}

impl Drop for Parting {
    fn drop(&mut self) {
        if let Some(ask) = self.1.get() {
            ask();
        }
    }
}
