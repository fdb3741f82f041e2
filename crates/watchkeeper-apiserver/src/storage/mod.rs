//! Where are the objects, and what has happened to them?
//!
//! [`Storage`] is what etcd and the watch cache are to a kube-apiserver: one revision counter for everything, an ordered
//! table of objects for each kind, a window of the latest changes for each kind, and the watchers of each kind. All of it
//! is behind one lock, which is never held while anything is awaited, and only for as long as one object is encoded or one
//! list of pointers is copied.
//!
//! - An object is kept encoded, with a small header beside it ([`Stored`]): a list is its objects' bytes put together.
//! - A change is encoded for watches once, however many watch.
//! - The past is read by undoing the changes of the window.
//!
//! ```
//! use watchkeeper_apiserver::ApiServer;
//! use serde_json::json;
//!
//! let server = ApiServer::new();
//! let before = server.storage().revision();
//! server.create(json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n1"}}))?;
//! assert_eq!(server.storage().revision(), before + 1);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod change;
mod document;
mod encode;
mod file;
mod journal;
mod object;
mod owners;
mod restart;
mod table;
#[cfg(test)]
mod tests;
mod watcher;
mod window;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::Instant;

pub(crate) use change::{Change, EventType, Shape, line as event_line};
pub(crate) use document::Document;
pub use file::FileError;
pub(crate) use file::Saved;
pub use journal::JournalEntry;
pub use object::Stored;
pub(crate) use owners::{Place, Work};
pub(crate) use watcher::{Delivery, Filter, Subscription};

use crate::kinds::Kind;
use journal::Journal;
use owners::Owners;
use table::Table;

/// How much of the past is kept.
#[derive(Debug, Clone, Copy)]
pub struct History {
    /// Changes of each kind.
    pub changes: usize,
    /// How long a change is kept.
    pub age: Duration,
}

/// The revision that was asked for is no longer kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TooOld {
    /// The oldest one that could be asked for.
    pub(crate) oldest: u64,
}

/// What must be there for a write to happen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Expect {
    Revision(u64),
    Anything,
}

/// Why nothing new could be written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Refused {
    /// Something is there already.
    Taken,
    /// The namespace is gone, or goes.
    NoNamespace,
    /// The kind is gone.
    NoKind,
}

/// Something else was there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Mismatch;

/// The objects of a kind, or of one namespace, at one revision.
#[derive(Debug)]
pub(crate) struct Snapshot {
    pub(crate) revision: u64,
    pub(crate) objects: Vec<Arc<Stored>>,
}

/// All objects, and the latest changes.
pub struct Storage {
    state: Mutex<State>,
    revision: watch::Sender<u64>,
    history: History,
}

struct State {
    revision: u64,
    /// By the kind's id.
    tables: Vec<Table>,
    /// Everything up to here was compacted on command, or came from a file.
    compacted: u64,
    journal: Journal,
    /// Who belongs to whom; none, if nothing follows from that here.
    owners: Option<Owners>,
}

impl Storage {
    pub(crate) fn new(history: History, journal: usize, controllers: bool) -> Self {
        let owners = controllers.then(Owners::default);
        // An empty etcd is at revision 1.
        let state = State { revision: 1, tables: Vec::new(), compacted: 0, journal: Journal::new(journal), owners };
        Self { state: Mutex::new(state), revision: watch::Sender::new(1), history }
    }

    /// The revision of the latest write.
    pub fn revision(&self) -> u64 {
        *self.revision.borrow()
    }

    /// Forgets all changes up to a revision: lists and watches that need them are told that they are too old.
    pub fn compact(&self, revision: u64) {
        let mut state = self.lock();
        let revision = revision.min(state.revision);
        state.compacted = state.compacted.max(revision);
        for table in &mut state.tables {
            table.window.compact(revision);
        }
    }

    /// The writes after a revision, oldest first, as far as the journal reaches back. A loaded file is no write, and
    /// begins it anew.
    pub fn journal_since(&self, revision: u64) -> Vec<JournalEntry> {
        self.lock().journal.since(revision)
    }

    /// How many objects of a kind there are.
    pub fn count(&self, kind: &Kind) -> usize {
        self.lock().table(kind.id).objects.len()
    }

    /// The objects of a kind, by namespace and name.
    pub fn objects(&self, kind: &Kind) -> Vec<Arc<Stored>> {
        self.lock().table(kind.id).objects.values().cloned().collect()
    }

    /// The object of a kind under `namespace/name`, or `name`.
    pub fn get(&self, kind: &Kind, key: &str) -> Option<Arc<Stored>> {
        self.lock().table(kind.id).objects.get(key).cloned()
    }

    /// The revision at which a kind's objects last changed.
    pub(crate) fn changed(&self, kind: &Kind) -> u64 {
        self.lock().table(kind.id).changed
    }

    /// Removes all objects of a kind that is gone, and ends the watches on it, behind what is queued for them.
    pub(crate) fn close(&self, kind: &Arc<Kind>) {
        let mut state = self.lock();
        let objects: Vec<Arc<Stored>> = state.table(kind.id).objects.values().cloned().collect();
        for object in objects {
            let revision = state.revision + 1;
            self.commit(&mut state, kind, revision, Some(object), None);
        }
        let compacted = state.revision;
        let table = state.table(kind.id);
        *table = Table { closed: true, ..Table::new(compacted) };
    }

    /// A kind is defined anew: those who watch it are told to come back, and nothing is shown as it was encoded before.
    pub(crate) fn redefined(&self, kind: &Kind) {
        let mut state = self.lock();
        let table = state.table(kind.id);
        table.watchers.clear();
        table.window.since(0).for_each(|change| change.grow_old());
    }

    /// Begins the history of a kind now: there was none before, and nobody can ask for it.
    pub(crate) fn open(&self, kind: &Kind) {
        let mut state = self.lock();
        let revision = state.revision;
        let table = state.table(kind.id);
        if table.changed == 0 && table.objects.is_empty() {
            *table = Table::new(revision);
        }
    }

    /// How many watches are open.
    pub fn watches(&self) -> usize {
        let state = self.lock();
        state.tables.iter().map(|table| table.watchers.iter().filter(|watcher| watcher.is_alive()).count()).sum()
    }

    /// Waits until the storage is at a revision.
    pub(crate) async fn reached(&self, revision: u64) {
        // The sender lives in `self`: it cannot be gone.
        let _ = self.revision.subscribe().wait_for(|current| *current >= revision).await;
    }

    /// The objects whose keys begin with `prefix` and are not before `start`, now or at a revision.
    pub(crate) fn list(&self, kind: &Kind, prefix: &str, start: &str, at: Option<u64>) -> Result<Snapshot, TooOld> {
        let mut state = self.lock();
        let current = state.revision;
        let table = state.aged_table(kind.id, self.history);
        let objects = match at {
            None => table.range(prefix, start),
            Some(at) if at >= current => table.range(prefix, start),
            Some(at) => {
                table.window.reaches_back_to(at)?;
                table.range_at(prefix, start, at)
            }
        };
        Ok(Snapshot { revision: at.unwrap_or(current), objects })
    }

    /// Follows the changes of a kind after a revision; with none, shows what is there first.
    pub(crate) fn watch(
        &self,
        kind: &Arc<Kind>,
        after: Option<u64>,
        filter: Filter,
        buffer: usize,
    ) -> Result<Subscription, TooOld> {
        let mut state = self.lock();
        let revision = state.revision;
        let table = state.aged_table(kind.id, self.history);
        let (initial, backlog) = match after {
            Some(after) => {
                table.window.reaches_back_to(after)?;
                (Vec::new(), table.window.since(after).filter_map(|change| filter.delivery(change)).collect())
            }
            None => (table.matching(&filter), Default::default()),
        };
        let live = table.subscribe(filter, buffer);
        Ok(Subscription { initial: initial.into(), backlog, live, revision })
    }

    /// The revision up to which a subscription has been told everything, or `None` if something still waits for it.
    pub(crate) fn progress(&self, subscription: &Subscription) -> Option<u64> {
        // Changes enter the queue under this lock.
        let state = self.lock();
        subscription.is_drained().then_some(state.revision)
    }

    /// Writes an object.
    pub(crate) fn put(
        &self,
        kind: &Arc<Kind>,
        key: &str,
        document: &Document,
        expect: Expect,
    ) -> Result<Arc<Stored>, Mismatch> {
        let labels = document.labels();
        let fields = kind.fields.values(document.as_value());
        let mut state = self.lock();
        let before = state.table(kind.id).objects.get(key).cloned();
        expect.check(before.as_deref())?;
        if state.table(kind.id).closed {
            return Err(Mismatch);
        }
        let revision = state.revision + 1;
        let after = Arc::new(Stored::new(kind, key, document, labels, fields, revision));
        self.commit(&mut state, kind, revision, before, Some(after.clone()));
        Ok(after)
    }

    /// Writes a new object. One in a namespace needs that to be there and to stay; `namespaces` is their kind.
    pub(crate) fn create(
        &self,
        kind: &Arc<Kind>,
        key: &str,
        document: &Document,
        namespaces: Option<&Kind>,
    ) -> Result<Arc<Stored>, Refused> {
        let (labels, fields) = (document.labels(), kind.fields.values(document.as_value()));
        let mut state = self.lock();
        if state.table(kind.id).closed {
            return Err(Refused::NoKind);
        }
        if state.table(kind.id).objects.contains_key(key) {
            return Err(Refused::Taken);
        }
        let namespace = key.split_once('/').map(|(namespace, _)| namespace);
        if let (Some(namespaces), Some(namespace)) = (namespaces, namespace)
            && state.table(namespaces.id).objects.get(namespace).is_none_or(|namespace| namespace.is_deleting())
        {
            return Err(Refused::NoNamespace);
        }
        let revision = state.revision + 1;
        let after = Arc::new(Stored::new(kind, key, document, labels, fields, revision));
        self.commit(&mut state, kind, revision, None, Some(after.clone()));
        Ok(after)
    }

    /// Deletes an object; answers with the deletion's revision.
    pub(crate) fn delete(&self, kind: &Arc<Kind>, key: &str, expect: Expect) -> Result<u64, Mismatch> {
        let mut state = self.lock();
        let before = state.table(kind.id).objects.get(key).cloned();
        expect.check(before.as_deref())?;
        let revision = state.revision + 1;
        if before.is_some() {
            self.commit(&mut state, kind, revision, before, None);
        }
        Ok(revision)
    }

    /// Something that follows from what was written, and is still to be done.
    pub(crate) fn next_work(&self) -> Option<Work> {
        self.lock().owners.as_mut()?.next()
    }

    /// A piece of work is done.
    pub(crate) fn work_done(&self) {
        if let Some(owners) = &mut self.lock().owners {
            owners.done();
        }
    }

    /// Whether something that follows from a write is still to be done, or is being done.
    pub(crate) fn has_work(&self) -> bool {
        self.lock().owners.as_ref().is_some_and(Owners::has_work)
    }

    pub(crate) fn add_work(&self, work: impl IntoIterator<Item = Work>) {
        if let Some(owners) = &mut self.lock().owners {
            owners.add(work);
        }
    }

    /// What belongs to an owner; only what blocks its deletion, or all.
    pub(crate) fn dependents(&self, uid: &str, blocking: bool) -> Vec<Place> {
        self.lock().owners.as_ref().map(|owners| owners.dependents(uid, blocking)).unwrap_or_default()
    }

    /// Whether anything belongs to an owner.
    pub(crate) fn has_dependents(&self, uid: &str, blocking: bool) -> bool {
        self.lock().owners.as_ref().is_some_and(|owners| owners.has_dependents(uid, blocking))
    }

    /// Puts an object there as it is, whatever was there. Nothing follows from it.
    pub(crate) fn fill(&self, kind: &Arc<Kind>, key: &str, document: &Document) -> Arc<Stored> {
        let labels = document.labels();
        let fields = kind.fields.values(document.as_value());
        let mut state = self.lock();
        let revision = state.revision + 1;
        let after = Arc::new(Stored::new(kind, key, document, labels, fields, revision));
        let before = state.table(kind.id).objects.get(key).cloned();
        let owners = state.owners.take();
        self.commit(&mut state, kind, revision, before.clone(), Some(after.clone()));
        state.owners = owners;
        if let Some(owners) = &mut state.owners {
            owners.refill(kind, before.as_deref(), &after);
        }
        after
    }

    /// The one place where anything changes.
    fn commit(
        &self,
        state: &mut State,
        kind: &Arc<Kind>,
        revision: u64,
        before: Option<Arc<Stored>>,
        after: Option<Arc<Stored>>,
    ) {
        let Some(object) = after.as_ref().or(before.as_ref()) else { return };
        let key = object.shared_key();
        state.revision = revision;
        state.journal.record(kind, &key, revision, after.clone());
        let change = Arc::new(Change::new(revision, Instant::now(), before, after));
        state.aged_table(kind.id, self.history).apply(key, change.clone(), self.history.changes);
        if let State { owners: Some(owners), tables, .. } = state {
            let table = &tables[kind.id];
            let (before, after) = (change.before().map(Arc::as_ref), change.after().map(Arc::as_ref));
            owners.follow(kind, before, after, |namespace, limit| table.count_in(namespace, limit));
        }
        self.revision.send_replace(revision);
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn table(&mut self, id: usize) -> &mut Table {
        if self.tables.len() <= id {
            let compacted = self.compacted;
            self.tables.resize_with(id + 1, || Table::new(compacted));
        }
        &mut self.tables[id]
    }

    /// The table, without changes that are too old.
    fn aged_table(&mut self, id: usize, history: History) -> &mut Table {
        let table = self.table(id);
        table.window.expire(Instant::now(), history.age);
        table
    }
}

impl Expect {
    fn check(self, current: Option<&Stored>) -> Result<(), Mismatch> {
        let holds = match self {
            Self::Revision(revision) => current.is_some_and(|current| current.revision() == revision),
            Self::Anything => true,
        };
        if holds { Ok(()) } else { Err(Mismatch) }
    }
}
