//! How do changes wait in the order in which they came, with a list as one of them?
//!
//! An [`AtomicFifo`] is a plain line. Nothing is merged, collapsed or dropped: each addition, update and deletion
//! comes out once, in the order of its arrival, deletions of keys that nobody knows included. A list is one
//! [`ReplacedAll`](Entry::ReplacedAll), a resync one [`SyncAll`](Entry::SyncAll), a bookmark one
//! [`Bookmark`](Entry::Bookmark).
//!
//! So the queue needs to know nothing of what is stored. What a list deleted is found when it is applied, by
//! comparing it with the store, and everything that was queued before the list is in the store by then. A resync
//! reads the store when it is applied, so it can say nothing old. The store can take over a list in one step, and
//! nobody sees half of it.
//!
//! The price is memory: an object that changes a hundred times while the consumer is busy waits a hundred times.
//!
//! The queue is synced when the first list has been processed, and all that was in front of it; at once, if a change
//! came before any list. What is requeued goes to the front, so it still comes before everything newer.

use std::sync::Arc;

use indexmap::IndexMap;

use super::atomic_guard::AtomicFifoConsumer;
use super::batch::{Entry, ReplacedAll};
use super::builder::AtomicFifoBuilder;
use super::delta::Delta;
use super::entries::Entries;
use super::shared::{Contents as _, Producers, Shared};
use super::transform::Transform;
use crate::{Key, KeyError, KeyFunction, KnownObjects, Object, ObjectKey, ResourceVersion, object_key};

/// The producer's side of a queue of changes in their order: client-go's `RealFIFO` with atomic events. All clones
/// write into the same queue.
///
/// When the last clone is dropped the queue is closed. When the [consumer](AtomicFifoConsumer) is dropped, what waits
/// is dropped with it, and whatever is written from then on is discarded: nobody will ever take it.
pub struct AtomicFifo<T, K: Key = ObjectKey> {
    producers: Arc<Producers<Entries<T, K>>>,
    config: Arc<Config<T, K>>,
}

pub(super) struct Config<T, K> {
    pub(super) key_function: KeyFunction<T, K>,
    pub(super) transform: Transform<T>,
}

impl AtomicFifo<Object> {
    /// Begins a queue of objects under their keys, which a [`Reflector`](crate::Reflector) can write into.
    pub fn objects() -> AtomicFifoBuilder<Object> {
        Self::builder(object_key)
    }
}

impl<T, K: Key> AtomicFifo<T, K> {
    /// Begins a queue of values under the keys that `key_function` finds out.
    pub fn builder(
        key_function: impl Fn(&T) -> Result<K, KeyError> + Send + Sync + 'static,
    ) -> AtomicFifoBuilder<T, K> {
        AtomicFifoBuilder::new(Arc::new(key_function))
    }

    pub(super) fn new(name: &str, config: Config<T, K>) -> (Self, AtomicFifoConsumer<T, K>) {
        let shared = Shared::new(name, Entries::default());
        let consumer = AtomicFifoConsumer::new(shared.clone());
        (Self { producers: Arc::new(Producers(shared)), config: Arc::new(config) }, consumer)
    }

    fn shared(&self) -> &Shared<Entries<T, K>> {
        &self.producers.0
    }

    /// The key of a value.
    pub fn key_of(&self, value: &T) -> Result<K, KeyError> {
        (self.config.key_function)(value)
    }

    /// There is a new value.
    pub fn add(&self, value: T) -> Result<(), KeyError> {
        self.change(value, Delta::Added)
    }

    /// A value changed.
    pub fn update(&self, value: T) -> Result<(), KeyError> {
        self.change(value, Delta::Updated)
    }

    /// A value is gone; this is its last state. Queued even if nobody knows its key.
    pub fn delete(&self, value: T) -> Result<(), KeyError> {
        self.change(value, Delta::deleted)
    }

    fn change(&self, value: T, delta: fn(T) -> Delta<T>) -> Result<(), KeyError> {
        let key = self.key_of(&value)?;
        let delta = delta(self.config.transform.apply(value));
        self.push(Entry::Object { key, delta });
        Ok(())
    }

    /// A value is gone, and nobody saw its last state: a tombstone.
    pub fn delete_key(&self, key: K, last_known: Option<T>) {
        self.push(Entry::Object { key, delta: Delta::tombstone(last_known) });
    }

    /// Adds a value unless something of its key waits. Looks at all that waits, and for that asks the key function
    /// about the items of lists that wait, under the lock of the queue.
    pub fn add_if_not_present(&self, value: T) -> Result<(), KeyError> {
        let key = self.key_of(&value)?;
        let delta = Delta::Added(self.config.transform.apply(value));
        // If it is not queued, it stays here, and is dropped when the lock is released.
        let mut entry = Some(Entry::Object { key: key.clone(), delta });
        self.shared().produce(|queue| {
            let is_present = queue.iter().any(|entry| match entry {
                Entry::ReplacedAll(all) => all.items.iter().any(|item| self.key_of(item).as_ref() == Ok(&key)),
                entry => entry.key() == Some(&key),
            });
            if is_present {
                queue.populate();
            } else if let Some(entry) = entry.take() {
                queue.push(entry);
            }
        });
        Ok(())
    }

    /// These are all the values that there are, at this version. If one has no key nothing is queued.
    pub fn replace(&self, values: Vec<T>, version: ResourceVersion) -> Result<(), KeyError> {
        self.replace_with(ReplacedAll {
            items: values,
            resource_version: version,
            unusable: Vec::new(),
            complete: true,
        })
    }

    /// Queues what a list found, as it is. If an item has no key nothing is queued.
    pub fn replace_with(&self, mut list: ReplacedAll<T, K>) -> Result<(), KeyError> {
        for item in &list.items {
            self.key_of(item)?;
        }
        if self.config.transform.is_some() {
            list.items = list.items.into_iter().map(|item| self.config.transform.apply(item)).collect();
        }
        self.push(Entry::ReplacedAll(list));
        Ok(())
    }

    /// Everything that is known is to be said again.
    pub fn resync(&self) {
        self.push(Entry::SyncAll);
    }

    /// Everything up to this version has been queued.
    pub fn bookmark(&self, version: ResourceVersion) {
        self.push(Entry::Bookmark(version));
    }

    fn push(&self, entry: Entry<T, K>) {
        self.shared().produce(|queue| queue.push(entry));
    }

    /// See [`ReflectorStore::more_to_come`](crate::ReflectorStore::more_to_come).
    pub(super) fn hold(&self, hold: bool) {
        self.shared().hold(hold);
    }

    /// Closes the queue: the consumer gets what waits, and then learns that this is the end. What is written after
    /// that is still taken in, as in client-go.
    pub fn close(&self) {
        self.shared().close();
    }

    /// The queue was closed.
    pub fn is_closed(&self) -> bool {
        self.shared().is_closed()
    }

    /// The first list has been processed; or there were changes before any list.
    pub fn has_synced(&self) -> bool {
        self.shared().read(Entries::is_synced)
    }

    /// Waits until [`has_synced`](Self::has_synced). For ever, if the consumer goes away before.
    pub async fn synced(&self) {
        self.shared().until_synced().await;
    }

    /// How many entries wait.
    pub fn len(&self) -> usize {
        self.shared().read(Entries::len)
    }

    /// Nothing waits.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// Looking into the queue. Each of these goes over all that waits, and copies it: for tests and for people.
impl<T: Clone, K: Key> AtomicFifo<T, K> {
    /// All that waits, in its order.
    pub fn entries(&self) -> Vec<Entry<T, K>> {
        self.shared().read(|queue| queue.iter().cloned().collect())
    }

    /// The newest waiting state of each value, deleted ones included. What a complete list in the queue does not have
    /// is not in it.
    pub fn list(&self) -> Vec<T> {
        self.newest().into_values().flatten().collect()
    }

    /// The keys of what waits.
    pub fn list_keys(&self) -> Vec<K> {
        self.newest().into_keys().collect()
    }

    /// The newest waiting state under a key.
    pub fn get_by_key(&self, key: &K) -> Option<T> {
        self.newest().swap_remove(key).flatten()
    }

    /// The newest waiting state under the key of `value`.
    pub fn get(&self, value: &T) -> Result<Option<T>, KeyError> {
        Ok(self.get_by_key(&self.key_of(value)?))
    }

    fn newest(&self) -> IndexMap<K, Option<T>> {
        let mut newest = IndexMap::new();
        for entry in self.entries() {
            match entry {
                Entry::Object { key, delta } => {
                    newest.insert(key, delta.into_object());
                }
                Entry::ReplacedAll(all) => {
                    if all.complete {
                        newest.retain(|key, _| all.unusable.contains(key));
                    }
                    newest
                        .extend(all.items.into_iter().filter_map(|item| Some((self.key_of(&item).ok()?, Some(item)))));
                }
                Entry::SyncAll | Entry::Bookmark(_) => {}
            }
        }
        newest
    }
}

impl<T, K: Key> Clone for AtomicFifo<T, K> {
    fn clone(&self) -> Self {
        Self { producers: self.producers.clone(), config: self.config.clone() }
    }
}

impl<T, K: Key> std::fmt::Debug for AtomicFifo<T, K> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("AtomicFifo").field("name", &self.shared().name()).field("len", &self.len()).finish()
    }
}

impl<T: Clone + Send + Sync, K: Key> KnownObjects<T, K> for AtomicFifo<T, K> {
    fn list_keys(&self) -> Vec<K> {
        self.list_keys()
    }

    fn get_by_key(&self, key: &K) -> Option<T> {
        self.get_by_key(key)
    }
}
