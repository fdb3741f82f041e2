//! Where the values lie: each with its key in a slot, and a table that finds the slot of a key.
//!
//! A slot has a number, which is what indexes and the table hold. The table holds nothing else: a key's hash is computed
//! from the key in the slot when the table moves.

use std::hash::BuildHasher as _;

use hashbrown::{DefaultHashBuilder, HashTable};

use super::chunks::{Chunks, Spine};
use crate::Key;

/// How many slots are a chunk, which is what a change copies while a snapshot is held.
pub(super) const SLOTS: usize = 256;

/// A slot, with a value or free.
pub(super) type Slot<T, K> = Option<(K, T)>;

pub(super) struct Slots<T, K> {
    table: HashTable<u32>,
    slots: Chunks<Slot<T, K>, SLOTS>,
}

impl<T: Clone, K: Key> Slots<T, K> {
    pub(super) fn with_capacity(capacity: usize) -> Self {
        Self { table: HashTable::with_capacity(capacity), slots: Chunks::new() }
    }

    pub(super) fn len(&self) -> usize {
        self.table.len()
    }

    pub(super) fn capacity(&self) -> usize {
        self.slots.capacity()
    }

    pub(super) fn view(&self) -> Spine<Slot<T, K>> {
        self.slots.view()
    }

    pub(super) fn copied(&self) -> u64 {
        self.slots.copied()
    }

    pub(super) fn find(&self, hash: u64, key: &K) -> Option<u32> {
        self.table.find(hash, |slot| self.get(*slot).is_some_and(|(known, _)| known == key)).copied()
    }

    pub(super) fn get(&self, slot: u32) -> Option<&(K, T)> {
        self.slots.get(slot)?.as_ref()
    }

    /// The slots that have a value, each with its key.
    pub(super) fn keys(&self) -> impl Iterator<Item = (u32, &K)> {
        (0..self.capacity() as u32).filter_map(|slot| Some((slot, &self.get(slot)?.0)))
    }

    /// Puts another value into a slot, with its own key: the old key may keep the old value's memory alive.
    pub(super) fn set(&mut self, slot: u32, key: K, value: T) -> Option<(K, T)> {
        self.slots.get_mut(slot).replace((key, value))
    }

    /// Puts a value into a free slot.
    pub(super) fn insert(&mut self, hash: u64, slot: u32, key: K, value: T, hasher: &DefaultHashBuilder) {
        *self.slots.get_mut(slot) = Some((key, value));
        let slots = &self.slots;
        self.table.insert_unique(hash, slot, |slot| hash_in(slots, *slot, hasher));
    }

    pub(super) fn remove(&mut self, hash: u64, slot: u32) -> Option<(K, T)> {
        // First what may copy a chunk, and so call the user's clone(), which may panic.
        let old = self.slots.get_mut(slot).take();
        if let Ok(entry) = self.table.find_entry(hash, |known| *known == slot) {
            entry.remove();
        }
        old
    }

    /// Makes a chunk of free slots, and returns their numbers.
    pub(super) fn grow(&mut self) -> std::ops::Range<u32> {
        self.slots.grow(|| None)
    }

    /// The table has room for `more` keys.
    pub(super) fn has_room(&self, more: usize) -> bool {
        self.table.capacity() - self.table.len() >= more
    }

    /// A larger table, if this one has no room for `more` keys. It is made aside, while this one is being read.
    pub(super) fn larger_table(&self, more: usize, hasher: &DefaultHashBuilder) -> Option<HashTable<u32>> {
        larger(&self.table, more, |slot| hash_in(&self.slots, slot, hasher))
    }

    /// Puts a table of [`larger_table`](Self::larger_table) in the place of this one, and returns this one.
    pub(super) fn install(&mut self, table: HashTable<u32>) -> HashTable<u32> {
        std::mem::replace(&mut self.table, table)
    }
}

fn hash_in<T: Clone, K: Key>(slots: &Chunks<Slot<T, K>, SLOTS>, slot: u32, hasher: &DefaultHashBuilder) -> u64 {
    // The table has the numbers of filled slots only.
    slots.get(slot).and_then(Option::as_ref).map_or(0, |(key, _)| hasher.hash_one(key))
}

/// A copy of a table that has room for `more` entries, if it has none itself.
pub(super) fn larger(table: &HashTable<u32>, more: usize, hash: impl Fn(u32) -> u64) -> Option<HashTable<u32>> {
    let wanted = table.len() + more;
    if table.capacity() >= wanted {
        return None;
    }
    let mut larger = HashTable::with_capacity(wanted + wanted / 4);
    for number in table {
        larger.insert_unique(hash(*number), *number, |number| hash(*number));
    }
    Some(larger)
}
