//! Adds an index to a store that is in use.
//!
//! From the moment an index is registered, every writer keeps it up to date for the slots that it writes, in the ledger,
//! where no reader sees it. The builder goes through the slots as they were at that moment, a slice at a time: it computes
//! the values of the slice with no lock held, and puts in those of the slots that are still *unknown*, which is what every
//! slot was at the beginning and none is once it has been written. So it does not matter what happens to a slot
//! meanwhile: changed, freed, given to another key, or replaced with all others, it is known, and the builder leaves it
//! alone. At the end the postings are put where readers see them.
//!
//! A builder that is dropped takes the index with it.

use std::sync::Arc;

use compact_str::CompactString;

use super::backs::Backs;
use super::chunks::{Spine, element};
use super::postings::Postings;
use super::slots::{SLOTS, Slot};
use super::tables::{Definition, Sheet, Values};
use super::{Index, IndexError, ThreadSafeStore};
use crate::Key;

/// How many values are computed between two looks at the ledger.
const SLICE: usize = 64;

impl<T: Clone + Send + Sync + 'static, K: Key> ThreadSafeStore<T, K> {
    /// Adds an index. To add the same one again is fine; another one under a name that is taken is an error.
    ///
    /// What the store holds already is indexed before this returns, and nobody has to wait meanwhile: writers go on, and
    /// look-ups in the index say that it is being built. If this is dropped before it returns, there is no such index.
    pub async fn add_index(&self, name: impl Into<Arc<str>>, index: Index<T>) -> Result<(), IndexError> {
        let name = name.into();
        self.check(&name, &index)?;
        let _one_at_a_time = self.builds.lock().await;
        if let Some(mut build) = Build::begin(self, name, index)? {
            while build.step() {
                tokio::task::yield_now().await;
            }
            build.finish();
        }
        Ok(())
    }

    /// Adds an index to a store that is being made: see [`add_index`](Self::add_index).
    pub fn with_index(self, name: impl Into<Arc<str>>, index: Index<T>) -> Result<Self, IndexError> {
        self.index_now(name.into(), index)?;
        Ok(self)
    }

    /// Adds an index while nobody else knows the store.
    pub(super) fn index_now(&self, name: Arc<str>, index: Index<T>) -> Result<(), IndexError> {
        if let Some(mut build) = Build::begin(self, name, index)? {
            while build.step() {}
            build.finish();
        }
        Ok(())
    }

    /// Whether there is this index already. Another one of its name is an error.
    fn check(&self, name: &Arc<str>, index: &Index<T>) -> Result<bool, IndexError> {
        match self.definitions().iter().find(|known| known.name == *name) {
            Some(known) if !known.index.is_same(index) => Err(IndexError::Conflict { name: name.clone() }),
            known => Ok(known.is_some()),
        }
    }
}

/// An index that is being built.
struct Build<'a, T: Clone + Send + Sync + 'static, K: Key> {
    store: &'a ThreadSafeStore<T, K>,
    definition: Definition<T>,
    slots: Spine<Slot<T, K>>,
    next: usize,
    values: Vec<(u32, Vec<CompactString>)>,
    finished: bool,
}

impl<'a, T: Clone + Send + Sync + 'static, K: Key> Build<'a, T, K> {
    /// Registers the index, unless it is there.
    fn begin(store: &'a ThreadSafeStore<T, K>, name: Arc<str>, index: Index<T>) -> Result<Option<Self>, IndexError> {
        let mut ledger = store.ledger();
        if store.check(&name, &index)? {
            return Ok(None);
        }
        let definition = Definition { name, index };
        let backs = Backs::unknown(store.shared().tables.slots.capacity());
        ledger.sheets.push(Sheet { backs, building: Some(Postings::new()) });

        let mut shared = store.shared_mut();
        shared.definitions = Arc::new(shared.definitions.iter().chain([&definition]).cloned().collect());
        shared.tables.indexes.push(None);
        let slots = shared.tables.slots.view();
        Ok(Some(Self { store, definition, slots, next: 0, values: Vec::new(), finished: false }))
    }

    /// Indexes the next slice. False if there is none.
    fn step(&mut self) -> bool {
        let slots = self.slots.len() * SLOTS;
        while self.values.len() < SLICE && self.next < slots {
            let slot = self.next as u32;
            self.next += 1;
            if let Some(Some((key, value))) = element::<_, SLOTS>(&self.slots, slot) {
                let mut values = Vec::new();
                self.definition.values(Some(key), value, &mut values);
                self.values.push((slot, values));
            }
        }
        let hasher = &self.store.hasher;
        let mut row = Values::default();
        let mut ledger = self.store.ledger();
        let at = self.at();
        if let Some(Sheet { backs, building: Some(postings) }) = at.and_then(|at| ledger.sheets.get_mut(at)) {
            for (slot, values) in self.values.drain(..).filter(|(slot, _)| backs.is_unknown(*slot)).collect::<Vec<_>>()
            {
                row.clear();
                row.row(hasher, |out| *out = values);
                backs.update(postings, slot, row.get(0), hasher);
            }
        }
        self.next < slots
    }

    /// Shows the index to readers.
    fn finish(mut self) {
        self.finished = true;
        let mut ledger = self.store.ledger();
        if let Some(at) = self.at() {
            let postings = ledger.sheets[at].building.take();
            self.store.shared_mut().tables.indexes[at] = postings;
        }
    }

    /// The place of the index among the others. It can change when no ledger is held.
    fn at(&self) -> Option<usize> {
        self.store.definitions().iter().position(|known| known.name == self.definition.name)
    }
}

impl<T: Clone + Send + Sync + 'static, K: Key> Drop for Build<'_, T, K> {
    fn drop(&mut self) {
        if self.finished {
            return;
        }
        let mut ledger = self.store.ledger();
        let Some(at) = self.at() else { return };
        let sheet = ledger.sheets.remove(at);
        let mut shared = self.store.shared_mut();
        let mut definitions = shared.definitions.to_vec();
        definitions.remove(at);
        shared.definitions = Arc::new(definitions);
        shared.tables.indexes.remove(at);
        drop((shared, ledger));
        drop(sheet);
    }
}
