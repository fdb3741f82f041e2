//! What waits in an [`AtomicFifo`](super::AtomicFifo)?
//!
//! The rules of `atomic_fifo.rs`, without locks and waiting.

use std::collections::VecDeque;
use std::mem;

use hashbrown::HashSet;
use smallvec::SmallVec;

use super::batch::{Batch, Entry};
use super::shared::Contents;
use super::sync_count::SyncCount;
use crate::Key;
use crate::defaults::QUEUE_KEPT_CAPACITY;

pub(super) struct Entries<T, K> {
    entries: VecDeque<Entry<T, K>>,
    /// The first so many entries must be processed before the queue is synced.
    initial: usize,
    /// So many of those are in the consumer's hand.
    initial_in_hand: usize,
    sync: SyncCount,
}

/// What the consumer gets.
pub(super) struct Taken<T, K> {
    pub(super) batch: Batch<T, K>,
    pub(super) in_initial_list: bool,
    /// How many entries are left.
    pub(super) depth: usize,
}

impl<T, K> Default for Entries<T, K> {
    fn default() -> Self {
        Self { entries: VecDeque::new(), initial: 0, initial_in_hand: 0, sync: SyncCount::default() }
    }
}

impl<T, K: Key> Entries<T, K> {
    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Entry<T, K>> {
        self.entries.iter()
    }

    pub(super) fn push(&mut self, entry: Entry<T, K>) {
        let is_first_list = matches!(entry, Entry::ReplacedAll(_)) && !self.sync.is_populated();
        if matches!(entry, Entry::ReplacedAll(_) | Entry::Object { .. }) {
            self.sync.populate();
        }
        self.entries.push_back(entry);
        if is_first_list {
            self.initial = self.entries.len();
            self.sync.expect(self.initial);
        }
    }

    /// A change was not queued, and yet there was one.
    pub(super) fn populate(&mut self) {
        self.sync.populate();
    }

    /// The first entries, `limit` at most, go into the consumer's hand.
    pub(super) fn take(&mut self, limit: usize) -> Option<Taken<T, K>> {
        // If there was a guard, it was leaked, and what it held with it.
        self.done();
        let count = self.batch_len(limit);
        let batch: SmallVec<[Entry<T, K>; 1]> = self.entries.drain(..count).collect();
        if batch.is_empty() {
            return None;
        }
        if self.entries.is_empty() && self.entries.capacity() > QUEUE_KEPT_CAPACITY {
            self.entries.shrink_to(QUEUE_KEPT_CAPACITY);
        }
        let in_initial_list = !self.sync.is_synced();
        self.initial_in_hand = count.min(self.initial);
        self.initial -= self.initial_in_hand;
        Some(Taken { batch: Batch { entries: batch }, in_initial_list, depth: self.entries.len() })
    }

    /// How many entries from the front can be processed together.
    fn batch_len(&self, limit: usize) -> usize {
        let limit = if self.initial == 0 { limit } else { limit.min(self.initial) };
        if limit <= 1 {
            return self.entries.len().min(limit);
        }
        let mut keys = HashSet::new();
        let together =
            self.entries.iter().take(limit).map_while(Entry::key).take_while(|key| keys.insert(*key)).count();
        together.max(1).min(self.entries.len())
    }

    /// What is in hand has been processed.
    pub(super) fn done(&mut self) {
        self.sync.processed(mem::take(&mut self.initial_in_hand));
    }

    /// What is in hand was not processed after all: it is the first again.
    pub(super) fn requeue(&mut self, batch: Batch<T, K>) {
        if self.initial + self.initial_in_hand > 0 {
            // What comes before entries of the first list is processed before the queue is synced.
            self.initial += batch.entries.len();
            self.sync.expect(batch.entries.len());
        }
        self.done();
        for entry in batch.entries.into_iter().rev() {
            self.entries.push_front(entry);
        }
    }
}

impl<T, K: Key> Contents for Entries<T, K> {
    type Waiting = VecDeque<Entry<T, K>>;

    fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    fn is_synced(&self) -> bool {
        self.sync.is_synced()
    }

    fn clear(&mut self) -> Self::Waiting {
        mem::take(&mut self.entries)
    }

    type Discarded = ();

    fn discarded(&mut self) {}
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::queue::Delta;

    #[test]
    fn an_empty_queue_gives_its_room_back() {
        let mut queue = Entries::default();
        for key in 0..100_000 {
            queue.push(Entry::Object { key, delta: Delta::Added(()) });
        }
        while queue.take(1000).is_some() {
            queue.done();
        }
        assert!(queue.entries.capacity() < 2 * QUEUE_KEPT_CAPACITY);
    }
}
