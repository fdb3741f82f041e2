//! How do changes wait, object by object, without a deletion being lost?
//!
//! A [`DeltaFifo`] keeps for each key the changes that nobody has processed yet, oldest first, and hands all changes
//! of a key out at once. Keys come out in the order in which they came in; a key that waits already keeps its place,
//! and one that comes again after it was taken out goes to the end.
//!
//! # Nothing is lost, nothing comes back
//!
//! The queue does not see everything: between two lists objects can vanish unnoticed, and the list does not name
//! them. What is gone must be found out from what was there, and that is in two places: in the queue, and in the
//! *known objects*, the store that the consumer applies changes to. Three rules depend on both.
//!
//! - A **deletion** of a key that is in neither place is dropped: nobody has heard of that object.
//! - A **replacement** (a list) makes a tombstone for each key that is in either place and not in the list. Its
//!   object is the newest that waits, or else the known one. A key whose newest change is a deletion gets none.
//! - A **resync** says each known object again, except those with something waiting: what is known of them is older
//!   than what waits, and must not come behind it.
//!
//! # What counts as queued
//!
//! What is being processed is in neither place: it has left the queue and has not reached the store. client-go holds
//! the queue's lock while it processes, so nobody can look at that moment. Here no lock is held, and instead **what a
//! living guard holds counts as queued** for the three rules, and for `add_if_not_present`. Otherwise: an addition is
//! in hand, its deletion arrives, neither place has the key, the deletion is dropped, the consumer stores the object,
//! and it stays there for ever.
//!
//! There is one thing that waiting changes have and those in hand do not: they can be collapsed. Two deletions in a
//! row become one, the one that says more. If the newest change in hand is a deletion, and another arrives, that one
//! waits beside the hand. When the guard is dropped it is judged as if it had come then: if the object is still known
//! it is queued, else it is dropped. If the guard is requeued the two are collapsed. Either way it is as if the
//! deletion had come just after or just before the whole of the processing.
//!
//! # Synced
//!
//! Each key that the first list touched, with an object or a tombstone, is marked. The queue is synced when all
//! marked entries have been processed, which is when their guards are dropped; client-go counts when they are taken
//! out. A requeued entry keeps its mark.
//!
//! # Locks
//!
//! Key functions and transformers run before the queue's lock is taken. The known objects are asked under it: what is
//! in hand must not reach the store between the look at the one and the look at the other. So the order is queue,
//! then store, and a store that is the known objects of a queue must not call that queue while it holds a lock of its
//! own.

use std::sync::Arc;

use super::builder::DeltaFifoBuilder;
use super::delta::{Delta, Deltas};
use super::delta_guard::DeltaFifoConsumer;
use super::keyed_deltas::{KeyedDeltas, Known, Listed};
use super::shared::{Contents as _, Producers, Shared};
use super::transform::Transform;
use crate::{Key, KeyError, KeyFunction, KnownObjects, Object, ObjectKey, ResourceVersion, object_key};

/// The producer's side of a queue of changes by key: client-go's `DeltaFIFO`. All clones write into the same queue.
///
/// When the last clone is dropped the queue is closed. When the [consumer](DeltaFifoConsumer) is dropped, what waits
/// is dropped with it, and whatever is written from then on is discarded: nobody will ever take it.
pub struct DeltaFifo<T, K: Key = ObjectKey> {
    producers: Arc<Producers<KeyedDeltas<T, K>>>,
    config: Arc<Config<T, K>>,
}

pub(super) struct Config<T, K> {
    pub(super) key_function: KeyFunction<T, K>,
    pub(super) transform: Transform<T>,
    pub(super) known: Known<T, K>,
    pub(super) emit_replaced: bool,
}

impl DeltaFifo<Object> {
    /// Begins a queue of objects under their keys, which a [`Reflector`](crate::Reflector) can write into.
    pub fn objects() -> DeltaFifoBuilder<Object> {
        Self::builder(object_key)
    }
}

impl<T, K: Key> DeltaFifo<T, K> {
    /// Begins a queue of values under the keys that `key_function` finds out.
    pub fn builder(key_function: impl Fn(&T) -> Result<K, KeyError> + Send + Sync + 'static) -> DeltaFifoBuilder<T, K> {
        DeltaFifoBuilder::new(Arc::new(key_function))
    }

    pub(super) fn new(name: &str, config: Config<T, K>) -> (Self, DeltaFifoConsumer<T, K>) {
        let shared = Shared::new(name, KeyedDeltas::default());
        let consumer = DeltaFifoConsumer::new(shared.clone(), config.known.clone());
        (Self { producers: Arc::new(Producers(shared)), config: Arc::new(config) }, consumer)
    }

    fn shared(&self) -> &Shared<KeyedDeltas<T, K>> {
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

    fn change(&self, value: T, delta: fn(T) -> Delta<T>) -> Result<(), KeyError> {
        let key = self.key_of(&value)?;
        let delta = delta(self.config.transform.apply(value));
        self.shared().produce(|queue| queue.change(key, delta));
        Ok(())
    }

    /// Adds a value unless something of its key waits or is being processed.
    pub fn add_if_not_present(&self, value: T) -> Result<(), KeyError> {
        let key = self.key_of(&value)?;
        let delta = Delta::Added(self.config.transform.apply(value));
        self.shared().produce(|queue| queue.add_if_not_present(key, delta));
        Ok(())
    }

    /// A value is gone; this is its last state. Dropped if neither the queue nor the known objects have its key.
    pub fn delete(&self, value: T) -> Result<(), KeyError> {
        let key = self.key_of(&value)?;
        let deletion = Delta::deleted(self.config.transform.apply(value));
        self.shared().produce(|queue| queue.delete(key, deletion, &self.config.known));
        Ok(())
    }

    /// A value is gone, and nobody saw its last state: a tombstone. Dropped like a deletion.
    pub fn delete_key(&self, key: K, last_known: Option<T>) {
        let deletion = Delta::tombstone(last_known);
        self.shared().produce(|queue| queue.delete(key, deletion, &self.config.known));
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
        self.shared().read(KeyedDeltas::is_synced)
    }

    /// Waits until [`has_synced`](Self::has_synced). For ever, if the consumer goes away before.
    pub async fn synced(&self) {
        self.shared().until_synced().await;
    }

    /// How many keys have something waiting.
    pub fn len(&self) -> usize {
        self.shared().read(KeyedDeltas::len)
    }

    /// The same, with what the consumer has in its hand.
    pub(crate) fn unprocessed(&self) -> usize {
        self.shared().read(KeyedDeltas::unprocessed)
    }

    /// Nothing waits.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The keys that have something waiting, in the order in which they will come out.
    pub fn list_keys(&self) -> Vec<K> {
        self.shared().read(|queue| queue.iter().map(|deltas| deltas.key().clone()).collect())
    }
}

impl<T: Clone, K: Key> DeltaFifo<T, K> {
    /// These are all the values that there are. If one has no key nothing is changed.
    pub fn replace(&self, values: Vec<T>, _version: ResourceVersion) -> Result<(), KeyError> {
        self.replace_with(values, Vec::new(), true)
    }

    /// The keys in `unusable` are there, too, and nothing is known of their values. If the list is not complete,
    /// nothing is gone.
    pub(super) fn replace_with(&self, values: Vec<T>, unusable: Vec<K>, complete: bool) -> Result<(), KeyError> {
        let keys = values.iter().map(|value| self.key_of(value)).collect::<Result<Vec<K>, _>>()?;
        let delta = if self.config.emit_replaced { Delta::Replaced } else { Delta::Sync };
        let deltas = values.into_iter().map(|value| delta(self.config.transform.apply(value)));
        let list = Listed { items: keys.into_iter().zip(deltas).collect(), unusable, complete };
        self.shared().produce(|queue| queue.replace(list, &self.config.known));
        Ok(())
    }

    /// Says every known object again that has nothing waiting. Without known objects, nothing.
    pub fn resync(&self) {
        self.shared().produce(|queue| queue.resync(&self.config.known));
    }

    /// What waits under a key: client-go's `GetByKey`.
    pub fn deltas(&self, key: &K) -> Option<Deltas<T, K>> {
        self.shared().read(|queue| queue.get(key).cloned())
    }

    /// The newest waiting state of each value, deleted ones included, in the order in which they will come out.
    pub fn list(&self) -> Vec<T> {
        self.shared().read(|queue| queue.iter().filter_map(|deltas| deltas.newest().object().cloned()).collect())
    }

    /// The newest waiting state under a key.
    pub fn get_by_key(&self, key: &K) -> Option<T> {
        self.shared().read(|queue| queue.get(key)?.newest().object().cloned())
    }

    /// The newest waiting state under the key of `value`.
    pub fn get(&self, value: &T) -> Result<Option<T>, KeyError> {
        Ok(self.get_by_key(&self.key_of(value)?))
    }
}

impl<T, K: Key> Clone for DeltaFifo<T, K> {
    fn clone(&self) -> Self {
        Self { producers: self.producers.clone(), config: self.config.clone() }
    }
}

impl<T, K: Key> std::fmt::Debug for DeltaFifo<T, K> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("DeltaFifo").field("name", &self.shared().name()).field("len", &self.len()).finish()
    }
}

/// One queue can be the known objects of another.
impl<T: Clone + Send + Sync, K: Key> KnownObjects<T, K> for DeltaFifo<T, K> {
    fn list_keys(&self) -> Vec<K> {
        self.list_keys()
    }

    fn get_by_key(&self, key: &K) -> Option<T> {
        self.get_by_key(key)
    }
}
