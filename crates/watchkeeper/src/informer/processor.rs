//! Applies changes to the store, and tells handlers.
//!
//! Why can no handler hold up the watch? The reflector writes into a queue and never waits. The processor takes batches out
//! of it, applies each to the store in one step, and puts one pointer to it into each handler's buffer; that needs a lock of
//! the buffer which is never held while a handler runs. From there each handler's own task goes on, at its own pace.
//!
//! One lock is held from before a batch is applied until it is in all buffers. Whoever joins takes it too: what the store
//! shows then is what the new handler is told first, and whatever comes later comes to its buffer. Nothing is missing and
//! nothing comes twice. The lock also joins partitions, each of which has a queue of its own: their batches are applied one
//! after the other.
//!
//! A list is applied as a whole, and then told as what it changed: deletions first.

use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use hashbrown::HashSet;
use tokio::time::Instant;

use super::changes::{Change, Changes};
use super::flag::Flag;
use super::listener::Listener;
use crate::defaults::SHARED_DECODES;
use crate::object::Places;
use crate::queue::{Batch, Delta, Deltas, Entry, ReplacedAll};
use crate::store::PartitionVersions;
use crate::{Cause, Indexer, Object, ObjectKey, Operation, ResourceVersion, Snapshot};

pub(super) struct Processor {
    pub(super) store: Arc<Indexer<Object>>,
    /// The namespace of each partition; one without, if there are no partitions.
    namespaces: Vec<Option<Arc<str>>>,
    /// Where there are several.
    pub(super) versions: Option<Arc<PartitionVersions>>,
    hub: Mutex<Hub>,
    /// How many objects there are in the store.
    pub(super) objects: AtomicUsize,
    /// The first list of each partition has been applied.
    pub(super) synced: Flag,
}

struct Hub {
    listeners: Vec<Arc<Listener>>,
    synced: Vec<bool>,
    places: Places,
    stopped: bool,
}

/// What is dropped when the lock is released.
type Garbage = (Vec<Option<Object>>, Option<Snapshot<Object>>);

impl Processor {
    pub(super) fn new(
        store: Arc<Indexer<Object>>,
        namespaces: Vec<Option<Arc<str>>>,
        versions: Option<Arc<PartitionVersions>>,
    ) -> Self {
        let synced = vec![false; namespaces.len()];
        let hub = Hub { listeners: Vec::new(), synced, places: Places::new(2 * SHARED_DECODES), stopped: false };
        Self {
            store,
            namespaces,
            versions,
            hub: Mutex::new(hub),
            objects: AtomicUsize::new(0),
            synced: Flag::default(),
        }
    }

    /// What came out of a partition's `AtomicFifo`. `initial` if that had not had its first list before.
    pub(super) fn process_batch(&self, partition: usize, batch: Batch<Object>, initial: bool) {
        let mut deltas = Vec::with_capacity(batch.len());
        for entry in batch {
            match entry {
                Entry::Object { key, delta } => deltas.push((key, delta)),
                // These come alone.
                Entry::ReplacedAll(list) => return self.process_list(partition, list, initial),
                Entry::Bookmark(version) => {
                    let _hub = self.hub();
                    self.move_to(partition, version);
                }
                // Handlers are told when they are due, and not by the queue.
                Entry::SyncAll => {}
            }
        }
        self.process_changes(partition, deltas, initial);
    }

    /// What came out of a partition's `DeltaFifo`.
    pub(super) fn process_deltas(&self, partition: usize, deltas: &Deltas<Object>, initial: bool) {
        // One by one: they are of one object.
        for delta in deltas {
            self.process_changes(partition, vec![(deltas.key().clone(), delta.clone())], initial);
        }
    }

    /// Changes of different objects.
    fn process_changes(&self, partition: usize, mut deltas: Vec<(ObjectKey, Delta<Object>)>, initial: bool) {
        deltas.retain(|(key, _)| self.is_of(partition, key));
        if deltas.is_empty() {
            return;
        }
        let version = self.versions.as_ref().and_then(|_| last_version(&deltas));
        let operations = deltas.iter().map(|(key, delta)| match delta {
            Delta::Deleted { object: Some(last), .. } => Operation::Delete(last.clone()),
            Delta::Deleted { object: None, .. } => Operation::DeleteKey(key.clone()),
            Delta::Added(object) | Delta::Updated(object) | Delta::Replaced(object) | Delta::Sync(object) => {
                Operation::Update(object.clone())
            }
        });
        let mut hub = self.hub();
        let before = self.store.apply(operations);
        self.objects.store(self.store.len(), Relaxed);
        if let Some(version) = version {
            self.move_to(partition, version);
        }
        // An object's key is part of it, so none can have failed.
        let mut changes = Vec::with_capacity(deltas.len());
        for ((_, delta), before) in deltas.into_iter().zip(before.previous) {
            let cause = cause_of(&delta, initial);
            match (delta, before) {
                (Delta::Deleted { object, final_state_known }, Some(before)) => {
                    changes.push(Change::deleted(before, object.filter(|_| final_state_known), cause));
                }
                // Nobody was told of it, so nobody is told of its end.
                (Delta::Deleted { .. }, None) => {}
                (
                    Delta::Added(object) | Delta::Updated(object) | Delta::Replaced(object) | Delta::Sync(object),
                    before,
                ) => push_change(&mut changes, before, object, cause),
            }
        }
        hub.tell(changes);
    }

    fn process_list(&self, partition: usize, list: ReplacedAll<Object>, initial: bool) {
        // Declared before the lock, so that it is dropped after it.
        let _garbage: Garbage;
        let mut hub = self.hub();
        let (changes, garbage) = self.replace(partition, list, initial, hub.anybody_hears_unchanged());
        _garbage = garbage;
        self.objects.store(self.store.len(), Relaxed);
        hub.tell(changes);
    }

    /// Puts a list in the place of a partition's objects. Returns what that changed, deletions first.
    fn replace(
        &self,
        partition: usize,
        list: ReplacedAll<Object>,
        initial: bool,
        with_unchanged: bool,
    ) -> (Vec<Change>, Garbage) {
        let ReplacedAll { mut items, resource_version, unusable, complete } = list;
        let cause = if initial { Cause::Initial } else { Cause::Relist };
        let unusable: HashSet<&ObjectKey> = unusable.iter().collect();
        let count = items.len();
        items.retain(|item| self.is_of(partition, item.key()));
        if items.len() < count {
            tracing::warn!(ignored = count - items.len(), "a list has objects of another namespace");
        }

        let before = self.store.snapshot();
        let known: Vec<Option<Object>> = match before.is_empty() {
            true => Vec::new(),
            false => items.iter().map(|item| self.store.get_by_key(item.key())).collect(),
        };
        let stays = |key: &ObjectKey| !complete || unusable.contains(key) || !self.is_of(partition, key);
        let version = self.versions.is_none().then(|| resource_version.clone());
        if let Err(error) = self.store.replace_some(items.clone(), version, &stays) {
            // Keys are part of objects, so this cannot be. If it were, the store would be as before.
            tracing::error!(%error, "a list cannot be stored");
            return (Vec::new(), (known, Some(before)));
        }
        if self.versions.is_some() {
            self.move_to(partition, resource_version);
        }

        let (mut changes, mut after) = (Vec::new(), Vec::new());
        if complete {
            let gone = before.iter().filter(|(key, _)| self.is_of(partition, key));
            let gone = gone.filter(|(key, _)| self.store.get_by_key(key).is_none());
            changes.extend(gone.map(|(_, object)| Change::deleted(object.clone(), None, cause)));
        }
        let known_of = |at: usize| known.get(at).cloned().flatten();
        // Pages that were read while objects came and went may have one twice. Of these the last is in the store. As many as
        // there are in the store are all different, if nothing else is in it.
        let others_stay = !complete || !unusable.is_empty() || self.versions.is_some();
        let mut told = (others_stay || items.len() != self.store.len()).then(HashSet::new);
        for (at, item) in items.into_iter().enumerate() {
            if !self.store.get_by_key(item.key()).is_some_and(|stored| stored.is_same_handle(&item)) {
                continue;
            }
            if told.as_mut().is_some_and(|told| !told.insert(item.key().clone())) {
                continue;
            }
            match known_of(at) {
                Some(old) if !with_unchanged && old.is_same_state(&item) => {}
                Some(old) if Change::is_successor(&old, &item) => {
                    changes.push(Change::deleted(old, None, cause));
                    after.push(Change::added(item, cause));
                }
                Some(old) => after.push(Change::updated(old, item, cause)),
                None => after.push(Change::added(item, cause)),
            }
        }
        changes.append(&mut after);
        (changes, (known, Some(before)))
    }

    /// A partition has come to a version.
    fn move_to(&self, partition: usize, version: ResourceVersion) {
        match &self.versions {
            None => self.store.bookmark(&version),
            Some(versions) => {
                if let Some(lowest) = versions.move_to(partition, version) {
                    self.store.bookmark(&lowest);
                }
            }
        }
    }

    /// Whether an object belongs to a partition. A server that sends others is not believed: no list would ever show that
    /// they are gone.
    pub(super) fn is_of(&self, partition: usize, key: &ObjectKey) -> bool {
        self.namespaces[partition].as_deref().is_none_or(|namespace| key.namespace() == Some(namespace))
    }

    /// The first list of a partition has been applied.
    pub(super) fn partition_synced(&self, partition: usize) {
        let mut hub = self.hub();
        hub.synced[partition] = true;
        if hub.synced.iter().all(|synced| *synced) && !self.synced.is_raised() {
            for listener in &hub.listeners {
                listener.mark_synced();
                listener.restart_resync(Instant::now());
            }
            self.synced.raise();
        }
    }

    pub(super) fn is_partition_synced(&self, partition: usize) -> bool {
        self.hub().synced[partition]
    }

    /// Tells a new handler what there is, and all others and it whatever comes. False if nothing will come any more.
    pub(super) fn join(&self, listener: &Arc<Listener>) -> bool {
        let mut hub = self.hub();
        if hub.stopped {
            return false;
        }
        listener.replay(self.store.snapshot(), Cause::Initial);
        if self.synced.is_raised() {
            listener.mark_synced();
        }
        // Of a kind that never changes nobody else would let go of those who have left.
        hub.listeners.retain(|listener| !listener.removed.is_raised());
        hub.listeners.push(listener.clone());
        true
    }

    /// Tells everything again to the handlers that are due. Returns when the next one is.
    pub(super) fn resync(&self, now: Instant) -> Option<Instant> {
        let hub = self.hub();
        let mut objects = None;
        for listener in &hub.listeners {
            listener.resync_if_due(now, || objects.get_or_insert_with(|| self.store.snapshot()).clone());
        }
        hub.listeners.iter().filter_map(|listener| listener.next_resync()).min()
    }

    /// The handlers that there are.
    pub(super) fn listeners(&self) -> Vec<Arc<Listener>> {
        let hub = self.hub();
        hub.listeners.iter().filter(|listener| !listener.removed.is_raised()).cloned().collect()
    }

    /// Nothing more is told. Returns the handlers, each of which may be in the middle of its last call.
    pub(super) fn stop(&self) -> Vec<Arc<Listener>> {
        let mut hub = self.hub();
        hub.stopped = true;
        let listeners = std::mem::take(&mut hub.listeners);
        drop(hub);
        for listener in &listeners {
            listener.remove();
        }
        listeners
    }

    /// A look at the store and the versions of the partitions between two batches.
    pub(super) fn at_rest<R>(&self, look: impl FnOnce() -> R) -> R {
        let _hub = self.hub();
        look()
    }

    fn hub(&self) -> MutexGuard<'_, Hub> {
        self.hub.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Hub {
    fn anybody_hears_unchanged(&self) -> bool {
        self.listeners.iter().any(|listener| listener.hears_unchanged())
    }

    fn tell(&mut self, changes: Vec<Change>) {
        self.listeners.retain(|listener| !listener.removed.is_raised());
        if changes.is_empty() || self.listeners.is_empty() {
            return;
        }
        let changes = Arc::new(Changes::new(changes, &mut self.places, self.listeners.len()));
        for listener in &self.listeners {
            listener.tell(&changes);
        }
    }
}

fn push_change(changes: &mut Vec<Change>, before: Option<Object>, now: Object, cause: Cause) {
    // Only an addition can be of the first list. On a queue by key a second list may come before the first has been applied.
    let cause = if before.is_some() && cause == Cause::Initial { Cause::Relist } else { cause };
    match before {
        None => changes.push(Change::added(now, cause)),
        Some(before) if Change::is_successor(&before, &now) => {
            changes.push(Change::deleted(before, None, cause));
            changes.push(Change::added(now, cause));
        }
        Some(before) => changes.push(Change::updated(before, now, cause)),
    }
}

fn cause_of(delta: &Delta<Object>, initial: bool) -> Cause {
    match delta {
        Delta::Replaced(_) if initial => Cause::Initial,
        // A list knows the last state of what it finds gone. A watch can have a deletion whose object cannot be used.
        Delta::Replaced(_) | Delta::Deleted { final_state_known: false, object: Some(_) } => Cause::Relist,
        Delta::Sync(_) => Cause::Resync,
        Delta::Added(_) | Delta::Updated(_) | Delta::Deleted { .. } => Cause::Watch,
    }
}

/// The version of the last of these changes that has one.
fn last_version(deltas: &[(ObjectKey, Delta<Object>)]) -> Option<ResourceVersion> {
    let versions = deltas.iter().rev().filter_map(|(_, delta)| Some(delta.object()?.resource_version()));
    versions.into_iter().find(|version| !version.is_unset())
}
