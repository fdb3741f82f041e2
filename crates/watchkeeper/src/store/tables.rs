//! All that a store is made of, in two halves.
//!
//! [`Tables`] is the half that readers see: the slots, and the postings of each index. [`Ledger`] is the half that only
//! writers need: which slots are free, and the way back from slots to postings. An [`Edit`] has both, and is the only
//! place where they change; it is given the values of the indexes, which were computed before, and calls no function of
//! the user but those of the key.
//!
//! An index that is being built has its postings in the ledger, out of the readers' sight, and writers keep it up to date
//! like any other. So what is left to its builder is the slots that nobody has written since.

use std::fmt;
use std::hash::BuildHasher as _;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use compact_str::CompactString;
use hashbrown::{DefaultHashBuilder, HashTable};

use super::backs::Backs;
use super::index::Index;
use super::postings::Postings;
use super::slots::Slots;
use crate::Key;

/// An index of a store.
pub(super) struct Definition<T> {
    pub(super) name: Arc<str>,
    pub(super) index: Index<T>,
}

impl<T> Clone for Definition<T> {
    fn clone(&self) -> Self {
        Self { name: self.name.clone(), index: self.index.clone() }
    }
}

impl<T> Definition<T> {
    /// Adds the values of `value`, which is under this key.
    pub(super) fn values<K: fmt::Debug>(&self, key: Option<&K>, value: &T, out: &mut Vec<CompactString>) {
        self.caught(key, out, |out| self.index.values(value, out));
    }

    /// Calls a function of the user. If it panics, its value has none in this index, and everything else goes on: one bad
    /// object harms only itself.
    pub(super) fn caught<K: fmt::Debug>(
        &self,
        key: Option<&K>,
        out: &mut Vec<CompactString>,
        fill: impl FnOnce(&mut Vec<CompactString>),
    ) {
        let before = out.len();
        if catch_unwind(AssertUnwindSafe(|| fill(out))).is_err() {
            out.truncate(before);
            let key = key.map(tracing::field::debug);
            tracing::error!(index = %self.name, key, "the index panicked on a value, which has none in it");
        }
    }
}

/// The readers' half.
pub(super) struct Tables<T, K> {
    pub(super) slots: Slots<T, K>,
    /// One for each definition; none while it is being built.
    pub(super) indexes: Vec<Option<Postings>>,
}

/// The writers' half.
pub(super) struct Ledger {
    free: Vec<u32>,
    /// One for each definition.
    pub(super) sheets: Vec<Sheet>,
}

pub(super) struct Sheet {
    pub(super) backs: Backs,
    pub(super) building: Option<Postings>,
}

impl<T: Clone, K: Key> Tables<T, K> {
    /// Most of it is free: it is worth being made anew.
    pub(super) fn is_sparse(&self) -> bool {
        super::is_sparse(self.slots.len(), self.slots.capacity())
            || self.indexes.iter().flatten().any(Postings::is_sparse)
    }

    /// Larger tables in place of those that have no room for these keys and values. They are made aside, so that readers
    /// need not wait while a large table moves.
    pub(super) fn room<'a>(
        &self,
        keys: impl Iterator<Item = (u64, &'a K)> + Clone,
        values: &Values,
        hasher: &DefaultHashBuilder,
    ) -> Room {
        let is_new = |(hash, key): &(u64, &K)| self.slots.find(*hash, key).is_none();
        let more = if self.slots.has_room(keys.clone().count()) { 0 } else { keys.filter(is_new).count() };
        let larger = |(at, postings): (usize, &Option<Postings>)| {
            Some((at, postings.as_ref()?.larger_table(values.column(at, self.indexes.len()), hasher)?))
        };
        let indexes = self.indexes.iter().enumerate().filter_map(larger).collect();
        Room { slots: self.slots.larger_table(more, hasher), indexes }
    }

    /// Puts the larger tables in their places, and leaves the old ones in `room`, to be freed outside of the lock.
    pub(super) fn install(&mut self, room: &mut Room) {
        room.slots = room.slots.take().map(|table| self.slots.install(table));
        for (at, table) in &mut room.indexes {
            if let Some(postings) = &mut self.indexes[*at] {
                *table = postings.install(std::mem::take(table));
            }
        }
    }
}

/// Tables that have been made before they are needed.
pub(super) struct Room {
    slots: Option<HashTable<u32>>,
    indexes: Vec<(usize, HashTable<u32>)>,
}

impl Ledger {
    pub(super) fn is_building(&self) -> bool {
        self.sheets.iter().any(|sheet| sheet.building.is_some())
    }
}

/// A change in progress.
pub(super) struct Edit<'a, T, K> {
    pub(super) tables: &'a mut Tables<T, K>,
    pub(super) ledger: &'a mut Ledger,
    pub(super) hasher: &'a DefaultHashBuilder,
}

impl<T: Clone, K: Key> Edit<'_, T, K> {
    /// Puts a value under a key, and returns what was there. `row` is the place of its index values in `values`.
    pub(super) fn put(&mut self, hash: u64, key: K, value: T, values: &Values, row: usize) -> Option<(K, T)> {
        let slots = &mut self.tables.slots;
        let (slot, old) = match slots.find(hash, &key) {
            Some(slot) => (slot, slots.set(slot, key, value)),
            None => {
                if self.ledger.free.is_empty() {
                    self.ledger.free.extend(slots.grow().rev());
                }
                let slot = self.ledger.free.pop().unwrap_or_default();
                slots.insert(hash, slot, key, value, self.hasher);
                (slot, None)
            }
        };
        self.index(slot, |at, indexes| values.get(row * indexes + at));
        old
    }

    /// Takes out what is under a key.
    pub(super) fn remove(&mut self, hash: u64, key: &K) -> Option<(K, T)> {
        let slot = self.tables.slots.find(hash, key)?;
        let old = self.tables.slots.remove(hash, slot);
        self.index(slot, |_, _| (&[], &[]));
        self.ledger.free.push(slot);
        old
    }

    fn index<'v>(&mut self, slot: u32, values: impl Fn(usize, usize) -> (&'v [CompactString], &'v [u64])) {
        let indexes = self.ledger.sheets.len();
        for (at, (sheet, ready)) in self.ledger.sheets.iter_mut().zip(&mut self.tables.indexes).enumerate() {
            if let Some(postings) = ready.as_mut().or(sheet.building.as_mut()) {
                sheet.backs.update(postings, slot, values(at, indexes), self.hasher);
            }
        }
    }
}

/// A whole store that is made aside, to take the place of another.
pub(super) struct Aside<T, K> {
    pub(super) tables: Tables<T, K>,
    pub(super) ledger: Ledger,
    values: Values,
}

impl<T: Clone, K: Key> Aside<T, K> {
    pub(super) fn new(capacity: usize, indexes: usize) -> Self {
        let tables = Tables {
            slots: Slots::with_capacity(capacity),
            indexes: (0..indexes).map(|_| Some(Postings::new())).collect(),
        };
        let sheets = (0..indexes).map(|_| Sheet { backs: Backs::new(), building: None }).collect();
        Self { tables, ledger: Ledger { free: Vec::new(), sheets }, values: Values::default() }
    }

    /// There is a value under this key.
    pub(super) fn has(&self, key: &K, hasher: &DefaultHashBuilder) -> bool {
        self.tables.slots.find(hasher.hash_one(key), key).is_some()
    }

    /// Puts a value in, and computes its index values.
    pub(super) fn put(&mut self, key: K, value: T, definitions: &[Definition<T>], hasher: &DefaultHashBuilder) {
        self.values.clear();
        self.values.compute(definitions, &key, &value, hasher);
        self.insert(key, value, hasher);
    }

    /// Takes a value over from another store, with its index values.
    pub(super) fn carry(
        &mut self,
        tables: &Tables<T, K>,
        ledger: &Ledger,
        slot: u32,
        definitions: &[Definition<T>],
        hasher: &DefaultHashBuilder,
    ) {
        let Some((key, value)) = tables.slots.get(slot) else { return };
        self.values.clear();
        for ((definition, sheet), ready) in definitions.iter().zip(&ledger.sheets).zip(&tables.indexes) {
            self.values.row(hasher, |out| match ready.as_ref().or(sheet.building.as_ref()) {
                Some(postings) if !sheet.backs.is_unknown(slot) => sheet.backs.values(postings, slot, out),
                _ => definition.values(Some(key), value, out),
            });
        }
        self.insert(key.clone(), value.clone(), hasher);
    }

    fn insert(&mut self, key: K, value: T, hasher: &DefaultHashBuilder) {
        let hash = hasher.hash_one(&key);
        let mut edit = Edit { tables: &mut self.tables, ledger: &mut self.ledger, hasher };
        edit.put(hash, key, value, &self.values, 0);
    }

    /// Indexes that `tables` is still building are being built here too: they go where readers do not see them.
    pub(super) fn hide_those_being_built(&mut self, tables: &Tables<T, K>) {
        for ((live, ready), sheet) in tables.indexes.iter().zip(&mut self.tables.indexes).zip(&mut self.ledger.sheets) {
            if live.is_none() {
                sheet.building = ready.take();
            }
        }
    }
}

/// The index values of some values: for each of them a row for each definition.
#[derive(Default)]
pub(super) struct Values {
    texts: Vec<CompactString>,
    hashes: Vec<u64>,
    ends: Vec<usize>,
}

impl Values {
    pub(super) fn clear(&mut self) {
        self.texts.clear();
        self.hashes.clear();
        self.ends.clear();
    }

    /// Adds the rows of one value.
    pub(super) fn compute<T, K: Key>(
        &mut self,
        definitions: &[Definition<T>],
        key: &K,
        value: &T,
        hasher: &DefaultHashBuilder,
    ) {
        for definition in definitions {
            self.row(hasher, |out| definition.values(Some(key), value, out));
        }
    }

    /// Adds a row.
    pub(super) fn row(&mut self, hasher: &DefaultHashBuilder, fill: impl FnOnce(&mut Vec<CompactString>)) {
        fill(&mut self.texts);
        let fresh = self.texts.get(self.hashes.len()..).unwrap_or_default();
        self.hashes.extend(fresh.iter().map(|text| hasher.hash_one(&**text)));
        self.ends.push(self.texts.len());
    }

    /// A row, with the hashes.
    pub(super) fn get(&self, row: usize) -> (&[CompactString], &[u64]) {
        let from = row.checked_sub(1).map_or(0, |before| self.ends[before]);
        (&self.texts[from..self.ends[row]], &self.hashes[from..self.ends[row]])
    }

    /// How many values there are in one of so many indexes.
    fn column(&self, at: usize, indexes: usize) -> usize {
        (at..self.ends.len()).step_by(indexes.max(1)).map(|row| self.get(row).0.len()).sum()
    }
}
