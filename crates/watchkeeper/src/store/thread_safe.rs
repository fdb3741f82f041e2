//! A store that is told the keys.
//!
//! Two locks. The mutex of the ledger is the writers': they take it one after the other. The lock of what readers see is
//! taken for writing only when everything is ready and a few pointers and numbers are left to be set. Functions of the
//! user (indexes, versions) are called before either is taken; so they may panic or ask the store, and nothing happens to
//! it. (A panic of an index is caught: it costs its value the values of that index, and nothing else.) Since indexes may be
//! added meanwhile, a writer that finds others than those it has computed for computes again.

use std::hash::BuildHasher as _;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use hashbrown::{DefaultHashBuilder, HashSet};

use super::chunks::element;
use super::postings::Postings;
use super::slots::SLOTS;
use super::tables::{Aside, Definition, Edit, Ledger, Tables, Values};
use super::waiting::{News, Waiting};
use super::{Change, IndexError, Selection, Snapshot, WaitError};
use crate::{Key, KnownObjects, ObjectKey, ResourceVersion};

/// A store of values under keys that it is told: client-go's `ThreadSafeStore`.
///
/// Values are handed out as clones, which should be cheap and share what they are made of.
pub struct ThreadSafeStore<T, K = ObjectKey> {
    shared: RwLock<Shared<T, K>>,
    ledger: Mutex<Ledger>,
    /// Indexes are built one after the other.
    pub(super) builds: tokio::sync::Mutex<()>,
    pub(super) hasher: DefaultHashBuilder,
    version_of: Option<VersionFunction<T>>,
    /// Whether two values are one and the same, if that is easily told. Such a value's index values are known.
    pub(super) is_same: Option<fn(&T, &T) -> bool>,
    pub(super) waiting: Waiting,
}

type VersionFunction<T> = Box<dyn Fn(&T) -> Option<ResourceVersion> + Send + Sync>;

/// What readers see.
pub(super) struct Shared<T, K> {
    pub(super) definitions: Arc<Vec<Definition<T>>>,
    pub(super) tables: Tables<T, K>,
    version: ResourceVersion,
}

impl<T: Clone + Send + Sync + 'static, K: Key> ThreadSafeStore<T, K> {
    /// An empty store.
    pub fn new() -> Self {
        let Aside { tables, ledger, .. } = Aside::new(0, 0);
        let shared = Shared { definitions: Arc::default(), tables, version: ResourceVersion::unset() };
        Self {
            shared: RwLock::new(shared),
            ledger: Mutex::new(ledger),
            builds: tokio::sync::Mutex::new(()),
            hasher: DefaultHashBuilder::default(),
            version_of: None,
            is_same: None,
            waiting: Waiting::default(),
        }
    }

    /// How the versions are found that [`last_version`](Self::last_version) tells. Without it, it knows those of lists
    /// and bookmarks.
    pub fn version_of(mut self, version: impl Fn(&T) -> Option<ResourceVersion> + Send + Sync + 'static) -> Self {
        self.version_of = Some(Box::new(version));
        self
    }

    /// Puts a new value under a key.
    pub fn add(&self, key: K, value: T) {
        let write = self.put_of(key, value);
        if !self.has_same(&write) || !self.write_version(&write) {
            self.write(&mut [write]);
        }
    }

    /// Puts a value that changed under a key. The same as [`add`](Self::add).
    pub fn update(&self, key: K, value: T) {
        self.add(key, value);
    }

    /// Takes out what is under a key. [`last_version`](Self::last_version) stays.
    pub fn delete(&self, key: &K) {
        self.write(&mut [self.delete_of(key.clone(), None)]);
    }

    /// Takes out what is under a key. `last` is its last state, with the version of the deletion: client-go's
    /// `DeleteWithObject`.
    pub fn delete_with(&self, key: &K, last: &T) {
        self.write(&mut [self.delete_of(key.clone(), Some(last))]);
    }

    /// Applies many changes at once: a reader sees none of them or all. Returns what was there before each.
    pub fn apply(&self, batch: impl IntoIterator<Item = (K, Change<T>)>) -> Vec<Option<T>> {
        let one = |(key, change)| match change {
            Change::Add(value) | Change::Update(value) => self.put_of(key, value),
            Change::Delete(last) => self.delete_of(key, last.as_ref()),
        };
        let mut writes: Vec<_> = batch.into_iter().map(one).collect();
        self.write(&mut writes);
        writes.into_iter().map(|write| write.previous.map(|(_, value)| value)).collect()
    }

    /// Puts these in the place of everything, at this version. Of equal keys the last counts.
    pub fn replace(&self, values: impl IntoIterator<Item = (K, T)>, version: ResourceVersion) {
        self.replace_some(values.into_iter().collect(), Some(version), &|_| false);
    }

    /// All changes up to this version have been written.
    pub fn bookmark(&self, version: &ResourceVersion) {
        let ledger = self.ledger();
        let news = self.move_to(version.clone(), &mut self.shared_mut());
        drop(ledger);
        self.tell(news);
    }

    /// The value under a key.
    pub fn get(&self, key: &K) -> Option<T> {
        let hash = self.hasher.hash_one(key);
        let shared = self.shared();
        let slots = &shared.tables.slots;
        slots.get(slots.find(hash, key)?).map(|(_, value)| value.clone())
    }

    /// All values, in no particular order.
    pub fn list(&self) -> Vec<T> {
        self.snapshot().iter().map(|(_, value)| value.clone()).collect()
    }

    /// All keys, in no particular order.
    pub fn list_keys(&self) -> Vec<K> {
        self.snapshot().iter().map(|(key, _)| key.clone()).collect()
    }

    /// How many values there are.
    pub fn len(&self) -> usize {
        self.shared().tables.slots.len()
    }

    /// There is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// All that there is now.
    pub fn snapshot(&self) -> Snapshot<T, K> {
        let shared = self.shared();
        let slots = &shared.tables.slots;
        Snapshot::new(slots.view(), slots.len(), shared.version.clone())
    }

    /// The version of the last change that was applied: that of the value that was added, changed or deleted with its
    /// last state, that of the list of a replacement, or that of a bookmark. Changes without one leave it as it is. A
    /// change of that version, and all before, can be read: client-go's `LastStoreSyncResourceVersion`.
    pub fn last_version(&self) -> ResourceVersion {
        self.shared().version.clone()
    }

    /// Returns as soon as the store has come to this version or a later one: all changes up to it can be read then. So one
    /// reads what one wrote. It may take for ever, as when nobody writes any more: put a timeout around it.
    ///
    /// That is so if changes are written in their order, as a reflector writes them, or an
    /// [`AtomicFifo`](crate::queue::AtomicFifo) gives them out. A [`DeltaFifo`](crate::queue::DeltaFifo) gives them out key
    /// by key: what comes through it may bring a version before an earlier change of another key can be read.
    ///
    /// Versions are compared as decimal numbers. One that is none cannot be waited for, and a store whose versions are none
    /// cannot be waited with: both are errors, at once. Dropping this leaves nothing behind.
    pub async fn wait_for(&self, version: &ResourceVersion) -> Result<(), WaitError> {
        self.waiting.wait_for(version, || self.last_version()).await
    }

    /// The values that share a value of an index with `value`, which need not be in the store itself.
    pub fn index(&self, name: &str, value: &T) -> Result<Vec<T>, IndexError> {
        let definition = self.shared().index(name)?.0.clone();
        let mut values = Vec::new();
        definition.values(None::<&K>, value, &mut values);

        let (slots, postings) = {
            let shared = self.shared();
            let (_, postings) = shared.index(name)?;
            let found = values.iter().filter_map(|value| postings.find(value, &self.hasher));
            (shared.tables.slots.view(), found.map(|entry| entry.posting.clone()).collect::<Vec<_>>())
        };
        let mut seen = HashSet::new();
        let found = postings.iter().flat_map(|posting| posting.slots()).filter(|slot| seen.insert(*slot));
        let value_of = |slot| element::<_, SLOTS>(&slots, slot)?.as_ref().map(|(_, value): &(K, T)| value.clone());
        Ok(found.filter_map(value_of).collect())
    }

    /// The values that have this value in an index.
    pub fn by_index(&self, name: &str, value: &str) -> Result<Selection<T, K>, IndexError> {
        let shared = self.shared();
        let (_, postings) = shared.index(name)?;
        let found = postings.find(value, &self.hasher).map(|entry| (entry.posting.clone(), entry.len as usize));
        Ok(Selection::new(shared.tables.slots.view(), found))
    }

    /// The keys of the values that have this value in an index, in order.
    pub fn index_keys(&self, name: &str, value: &str) -> Result<Vec<K>, IndexError> {
        let mut keys: Vec<K> = self.by_index(name, value)?.iter().map(|(key, _)| key.clone()).collect();
        keys.sort_unstable();
        Ok(keys)
    }

    /// All values that an index has, in order: client-go's `ListIndexFuncValues`.
    pub fn index_values(&self, name: &str) -> Result<Vec<String>, IndexError> {
        let entries = self.shared().index(name)?.1.view();
        let in_use = entries.iter().flat_map(|chunk| chunk.iter()).filter(|entry| entry.len > 0);
        let mut values: Vec<String> = in_use.map(|entry| entry.value.to_string()).collect();
        values.sort_unstable();
        Ok(values)
    }

    /// The names of the indexes, also of those that are being built.
    pub fn indexers(&self) -> Vec<Arc<str>> {
        self.definitions().iter().map(|definition| definition.name.clone()).collect()
    }

    /// How many chunks of slots and of postings were copied because a view held them, since the last replacement.
    #[doc(hidden)]
    pub fn copies(&self) -> (u64, u64) {
        let shared = self.shared();
        (shared.tables.slots.copied(), shared.tables.indexes.iter().flatten().map(Postings::copied).sum())
    }

    /// Makes everything anew, if most of it is free or holes. The values that there are stay. Returns what was there
    /// before, to be dropped when no lock is held.
    fn compact(&self, ledger: &mut Ledger) -> Option<Aside<T, K>> {
        let mut aside = {
            let shared = self.shared();
            // What a builder has not computed yet would have to be computed here, while writers wait.
            if !shared.tables.is_sparse() || ledger.is_building() {
                return None;
            }
            let mut aside = Aside::new(shared.tables.slots.len(), shared.definitions.len());
            for (slot, _) in shared.tables.slots.keys() {
                aside.carry(&shared.tables, ledger, slot, &shared.definitions, &self.hasher);
            }
            aside
        };
        self.install(ledger, &mut aside, None);
        Some(aside)
    }

    /// Swaps what was made aside with what is there. This, and nothing else of a replacement, needs readers to wait.
    pub(super) fn install(
        &self,
        ledger: &mut Ledger,
        aside: &mut Aside<T, K>,
        version: Option<ResourceVersion>,
    ) -> Option<News> {
        let mut shared = self.shared_mut();
        aside.hide_those_being_built(&shared.tables);
        std::mem::swap(&mut shared.tables, &mut aside.tables);
        let news = version.and_then(|version| self.move_to(version, &mut shared));
        drop(shared);
        std::mem::swap(ledger, &mut aside.ledger);
        news
    }

    /// Sets the version, and returns it if somebody waits and has to be [told](Self::tell).
    fn move_to(&self, version: ResourceVersion, shared: &mut Shared<T, K>) -> Option<News> {
        let news = self.waiting.news(&version);
        shared.version = version;
        news
    }

    /// Tells those who wait, with no lock held: they may go on at once.
    pub(super) fn tell(&self, news: Option<News>) {
        news.iter().for_each(|news| self.waiting.let_go(news));
    }

    pub(super) fn put_of(&self, key: K, value: T) -> Write<T, K> {
        let version = self.version_of.as_ref().and_then(|version| version(&value));
        Write { hash: self.hasher.hash_one(&key), key: Some(key), value: Some(value), version, previous: None }
    }

    pub(super) fn delete_of(&self, key: K, last: Option<&T>) -> Write<T, K> {
        let version = last.and_then(|last| self.version_of.as_ref().and_then(|version| version(last)));
        Write { hash: self.hasher.hash_one(&key), key: Some(key), value: None, version, previous: None }
    }

    /// Applies changes, and leaves in each what was there before it.
    pub(super) fn write(&self, writes: &mut [Write<T, K>]) {
        let (values, ledger) = self.compute(writes);
        self.write_computed(writes, &values, ledger, None);
    }

    /// The index values of what is to be put, by the indexes that there are while the ledger is held.
    pub(super) fn compute(&self, writes: &[Write<T, K>]) -> (Values, MutexGuard<'_, Ledger>) {
        let mut values = Values::default();
        loop {
            let definitions = self.definitions();
            for (key, value) in writes.iter().filter_map(|write| write.key.as_ref().zip(write.value.as_ref())) {
                values.compute(&definitions, key, value, &self.hasher);
            }
            let ledger = self.ledger();
            if Arc::ptr_eq(&definitions, &self.shared().definitions) {
                return (values, ledger);
            }
            values.clear();
        }
    }

    /// Applies changes whose index values are known, at this version if there is one.
    pub(super) fn write_computed(
        &self,
        writes: &mut [Write<T, K>],
        values: &Values,
        mut ledger: MutexGuard<'_, Ledger>,
        version: Option<ResourceVersion>,
    ) {
        let keys = writes.iter().filter_map(Write::put_key);
        let mut room = self.shared().tables.room(keys, values, &self.hasher);
        let mut shared = self.shared_mut();
        shared.tables.install(&mut room);
        let mut edit = Edit { tables: &mut shared.tables, ledger: &mut ledger, hasher: &self.hasher };
        let (mut row, mut version) = (0, version);
        for write in writes {
            write.previous = match (write.value.take(), &write.key) {
                (Some(value), _) => {
                    row += 1;
                    write.key.take().and_then(|key| edit.put(write.hash, key, value, values, row - 1))
                }
                // The key of a deletion stays where it is: it is not dropped in here.
                (None, Some(key)) => edit.remove(write.hash, key),
                (None, None) => None,
            };
            version = write.version.take().or(version);
        }
        let news = version.and_then(|version| self.move_to(version, &mut shared));
        let sparse = shared.tables.is_sparse();
        drop(shared);
        let old = if sparse { self.compact(&mut ledger) } else { None };
        drop(ledger);
        drop(old);
        self.tell(news);
    }

    /// Writes the version of a change whose value is there already, which is all that may be new of it. False if the
    /// value is there no more.
    fn write_version(&self, write: &Write<T, K>) -> bool {
        let ledger = self.ledger();
        let has_same = self.has_same(write);
        let version = write.version.clone().filter(|_| has_same);
        let news = version.and_then(|version| self.move_to(version, &mut self.shared_mut()));
        drop(ledger);
        self.tell(news);
        has_same
    }

    /// The very value that is to be put is there already.
    fn has_same(&self, write: &Write<T, K>) -> bool {
        let (Some(is_same), Some(key), Some(value)) = (self.is_same, &write.key, &write.value) else { return false };
        let shared = self.shared();
        let slots = &shared.tables.slots;
        let here = slots.find(write.hash, key).and_then(|slot| slots.get(slot));
        here.is_some_and(|(_, here)| is_same(here, value))
    }

    pub(super) fn definitions(&self) -> Arc<Vec<Definition<T>>> {
        self.shared().definitions.clone()
    }

    pub(super) fn ledger(&self) -> MutexGuard<'_, Ledger> {
        self.ledger.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn shared(&self) -> RwLockReadGuard<'_, Shared<T, K>> {
        self.shared.read().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn shared_mut(&self) -> RwLockWriteGuard<'_, Shared<T, K>> {
        self.shared.write().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<T: Clone, K: Key> Shared<T, K> {
    fn index(&self, name: &str) -> Result<(&Definition<T>, &Postings), IndexError> {
        let Some(at) = self.definitions.iter().position(|definition| *definition.name == *name) else {
            return Err(IndexError::Unknown { name: name.into() });
        };
        match &self.tables.indexes[at] {
            Some(postings) => Ok((&self.definitions[at], postings)),
            None => Err(IndexError::Building { name: name.into() }),
        }
    }
}

/// A change that is ready to be applied.
pub(super) struct Write<T, K> {
    hash: u64,
    key: Option<K>,
    /// None for a deletion.
    value: Option<T>,
    pub(super) version: Option<ResourceVersion>,
    pub(super) previous: Option<(K, T)>,
}

impl<T, K> Write<T, K> {
    fn put_key(&self) -> Option<(u64, &K)> {
        Some((self.hash, self.key.as_ref().filter(|_| self.value.is_some())?))
    }
}

impl<T: Clone + Send + Sync + 'static, K: Key> Default for ThreadSafeStore<T, K> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T: Clone + Send + Sync + 'static, K: Key> KnownObjects<T, K> for ThreadSafeStore<T, K> {
    fn list_keys(&self) -> Vec<K> {
        self.list_keys()
    }

    fn get_by_key(&self, key: &K) -> Option<T> {
        self.get(key)
    }
}

impl<T, K> std::fmt::Debug for ThreadSafeStore<T, K> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ThreadSafeStore").finish_non_exhaustive()
    }
}
