//! What waits in a [`DeltaFifo`](super::DeltaFifo), and what is in the consumer's hand?
//!
//! The rules of `delta_fifo.rs`, without locks and waiting. Whatever calls code of users here does so before it
//! changes anything, so that a panic in there leaves everything as it was.

use std::collections::VecDeque;
use std::mem;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use hashbrown::{HashMap, HashSet};

use super::delta::{Delta, Deltas};
use super::shared::Contents;
use super::sync_count::SyncCount;
use crate::defaults::QUEUE_KEPT_CAPACITY;
use crate::{Key, KnownObjects};

pub(super) type Known<T, K> = Option<Arc<dyn KnownObjects<T, K>>>;

pub(super) struct KeyedDeltas<T, K> {
    /// One entry for each key, in the order in which the keys came.
    entries: VecDeque<Waiting<T, K>>,
    /// Where a key's entry is: how many entries came before it, ever. The first of `entries` is at `taken`.
    places: HashMap<K, u64>,
    /// Entries that were taken from the front, ever.
    taken: u64,
    hand: Option<Hand<T, K>>,
    sync: SyncCount,
    /// Objects that are not needed any more, until the lock is released.
    discarded: Vec<T>,
}

pub(super) struct Waiting<T, K> {
    deltas: Deltas<T, K>,
    /// The first list made this entry or added to it.
    initial: bool,
}

/// What the consumer is processing.
pub(super) struct Hand<T, K> {
    deltas: Arc<Deltas<T, K>>,
    initial: bool,
    /// A deletion that came while the newest of `deltas` was a deletion already, and nothing of the key waited.
    /// Whether it says anything new shows when the consumer is done.
    deletion: Option<Deltas<T, K>>,
}

/// What the consumer gets.
pub(super) struct Taken<T, K> {
    pub(super) deltas: Arc<Deltas<T, K>>,
    pub(super) in_initial_list: bool,
    /// How many keys are left.
    pub(super) depth: usize,
}

/// What a list found, with its keys.
pub(super) struct Listed<T, K> {
    pub(super) items: Vec<(K, Delta<T>)>,
    /// Keys that are there, and of which nothing else is known.
    pub(super) unusable: Vec<K>,
    pub(super) complete: bool,
}

impl<T, K> Default for KeyedDeltas<T, K> {
    fn default() -> Self {
        Self {
            entries: VecDeque::new(),
            places: HashMap::new(),
            taken: 0,
            hand: None,
            sync: SyncCount::default(),
            discarded: Vec::new(),
        }
    }
}

/// Reading.
impl<T, K: Key> KeyedDeltas<T, K> {
    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }

    /// How many keys have something that has not been processed: what is in hand, too.
    pub(super) fn unprocessed(&self) -> usize {
        self.entries.len() + usize::from(self.hand.is_some())
    }

    /// What waits, without what is in hand.
    pub(super) fn iter(&self) -> impl Iterator<Item = &Deltas<T, K>> {
        self.entries.iter().map(|entry| &entry.deltas)
    }

    pub(super) fn get(&self, key: &K) -> Option<&Deltas<T, K>> {
        let place = self.places.get(key)?;
        self.entries.get(self.index(*place)).map(|entry| &entry.deltas)
    }

    fn index(&self, place: u64) -> usize {
        usize::try_from(place - self.taken).unwrap_or(usize::MAX)
    }

    /// Something of the key waits, or is in hand and may yet come back or change what is known.
    fn is_queued(&self, key: &K) -> bool {
        self.places.contains_key(key) || self.in_hand(key).is_some()
    }

    fn in_hand(&self, key: &K) -> Option<&Hand<T, K>> {
        self.hand.as_ref().filter(|hand| hand.deltas.key() == key)
    }
}

/// What producers do.
impl<T, K: Key> KeyedDeltas<T, K> {
    /// Something changed.
    pub(super) fn change(&mut self, key: K, delta: Delta<T>) {
        self.sync.populate();
        self.push(key, delta, false);
    }

    pub(super) fn add_if_not_present(&mut self, key: K, delta: Delta<T>) {
        self.sync.populate();
        if self.is_queued(&key) {
            self.discard(Some(delta));
        } else {
            self.push(key, delta, false);
        }
    }

    /// Something is gone. If nobody knows it, nobody needs to hear of it.
    pub(super) fn delete(&mut self, key: K, deletion: Delta<T>, known: &Known<T, K>) {
        let is_known = self.is_queued(&key) || self.is_stored(&key, known);
        self.sync.populate();
        if is_known {
            self.push_deletion(key, deletion, false);
        } else {
            self.discard(Some(deletion));
        }
    }

    /// All that there is. First come the items, then what is gone.
    pub(super) fn replace(&mut self, list: Listed<T, K>, known: &Known<T, K>)
    where
        T: Clone,
    {
        let gone = if list.complete { self.gone(&list, known) } else { Vec::new() };
        let initial = !self.sync.is_populated();
        self.sync.populate();
        for (key, delta) in list.items {
            self.push(key, delta, initial);
        }
        for (key, last_known) in gone {
            self.push_deletion(key, Delta::tombstone(last_known), initial);
        }
    }

    /// What was there and is not in the list, with its last known state: the newest that is queued, or else the known
    /// one.
    fn gone(&self, list: &Listed<T, K>, known: &Known<T, K>) -> Vec<(K, Option<T>)>
    where
        T: Clone,
    {
        let present: HashSet<&K> = list.items.iter().map(|(key, _)| key).chain(&list.unusable).collect();
        let mut gone = Vec::new();
        if let Some(hand) = &self.hand
            && !self.places.contains_key(hand.deltas.key())
            && !present.contains(hand.deltas.key())
        {
            gone.push((hand.deltas.key().clone(), hand.deltas.newest().object().cloned()));
        }
        for deltas in self.iter() {
            if !present.contains(deltas.key()) && !deltas.newest().is_deletion() {
                gone.push((deltas.key().clone(), deltas.newest().object().cloned()));
            }
        }
        if let Some(known) = known {
            for key in known.list_keys() {
                if !present.contains(&key) && !self.is_queued(&key) {
                    let last_known = known.get_by_key(&key);
                    gone.push((key, last_known));
                }
            }
        }
        gone
    }

    /// Says all that is known again, but for what has news waiting: behind those it would be old.
    pub(super) fn resync(&mut self, known: &Known<T, K>) {
        let Some(known) = known else { return };
        let again: Vec<(K, T)> = known
            .list_keys()
            .into_iter()
            .filter(|key| !self.is_queued(key))
            .filter_map(|key| known.get_by_key(&key).map(|object| (key, object)))
            .collect();
        for (key, object) in again {
            self.push(key, Delta::Sync(object), false);
        }
    }

    fn push_deletion(&mut self, key: K, deletion: Delta<T>, initial: bool) {
        let waits = self.places.contains_key(&key);
        match &mut self.hand {
            Some(hand) if !waits && *hand.deltas.key() == key && hand.deltas.newest().is_deletion() => {
                let discarded = match &mut hand.deletion {
                    Some(earlier) => earlier.push(deletion),
                    none => {
                        *none = Some(Deltas::new(key, deletion));
                        None
                    }
                };
                self.discard(discarded);
            }
            _ => self.push(key, deletion, initial),
        }
    }

    fn push(&mut self, key: K, delta: Delta<T>, initial: bool) {
        if let Some(place) = self.places.get(&key) {
            let index = self.index(*place);
            if let Some(entry) = self.entries.get_mut(index) {
                let discarded = entry.deltas.push(delta);
                if initial && !mem::replace(&mut entry.initial, true) {
                    self.sync.expect(1);
                }
                self.discard(discarded);
            }
        } else {
            self.push_entry(Waiting { deltas: Deltas::new(key, delta), initial });
            self.sync.expect(usize::from(initial));
        }
    }

    fn push_entry(&mut self, entry: Waiting<T, K>) {
        let place = self.taken + self.entries.len() as u64;
        self.places.insert(entry.deltas.key().clone(), place);
        self.entries.push_back(entry);
    }

    /// The known objects have the key.
    fn is_stored(&mut self, key: &K, known: &Known<T, K>) -> bool {
        let stored = known.as_ref().and_then(|known| known.get_by_key(key));
        let is_stored = stored.is_some();
        self.discarded.extend(stored);
        is_stored
    }

    fn discard(&mut self, delta: Option<Delta<T>>) {
        self.discarded.extend(delta.and_then(Delta::into_object));
    }
}

/// What the consumer does.
impl<T, K: Key> KeyedDeltas<T, K> {
    /// The first entry goes into the consumer's hand.
    pub(super) fn take(&mut self) -> Option<Taken<T, K>>
    where
        T: Clone,
    {
        if let Some(forgotten) = self.hand.as_ref().map(|hand| hand.deltas.clone()) {
            tracing::warn!(key = ?forgotten.key(), "a guard was leaked; what it held is queued again");
            self.requeue(forgotten);
        }
        let Waiting { deltas, initial } = self.entries.pop_front()?;
        self.taken += 1;
        self.places.remove(deltas.key());
        if self.entries.is_empty() && self.entries.capacity() > QUEUE_KEPT_CAPACITY {
            self.entries.shrink_to(QUEUE_KEPT_CAPACITY);
            self.places.shrink_to(QUEUE_KEPT_CAPACITY);
        }
        let deltas = Arc::new(deltas);
        self.hand = Some(Hand { deltas: deltas.clone(), initial, deletion: None });
        Some(Taken { deltas, in_initial_list: !self.sync.is_synced(), depth: self.entries.len() })
    }

    /// What is in hand has been processed. A deletion that came meanwhile is judged now, as it would have been had it
    /// come a moment later. Gives back what was in hand.
    pub(super) fn done(&mut self, known: &Known<T, K>) -> Option<Arc<Deltas<T, K>>> {
        let Hand { deltas, initial, deletion } = self.hand.take()?;
        self.sync.processed(usize::from(initial));
        if let Some(deletion) = deletion {
            // This is the guard's drop, perhaps in a panic already: there must be no other. The deletion is rather told
            // once too often than lost.
            let is_stored = catch_unwind(AssertUnwindSafe(|| self.is_stored(deltas.key(), known)));
            if is_stored.unwrap_or(true) {
                self.put_back(deletion, false);
            } else {
                deletion.into_iter().for_each(|deletion| self.discard(Some(deletion)));
            }
        }
        Some(deltas)
    }

    /// What is in hand, `deltas`, was not processed after all. It comes before newer changes of its key, in their
    /// place if there are some, else at the end.
    pub(super) fn requeue(&mut self, deltas: Arc<Deltas<T, K>>)
    where
        T: Clone,
    {
        let Some(Hand { deltas: shared, initial, deletion }) = self.hand.take() else { return };
        drop(shared);
        let mut deltas = Arc::unwrap_or_clone(deltas);
        for deletion in deletion.into_iter().flatten() {
            let discarded = deltas.push(deletion);
            self.discard(discarded);
        }
        self.put_back(deltas, initial);
    }

    fn put_back(&mut self, mut older: Deltas<T, K>, initial: bool) {
        let place = self.places.get(older.key()).map(|place| self.index(*place));
        match place.and_then(|index| self.entries.get_mut(index)) {
            Some(entry) => {
                mem::swap(&mut entry.deltas, &mut older);
                let newer = older.into_iter();
                let discarded: Vec<_> = newer.filter_map(|delta| entry.deltas.push(delta)).collect();
                if initial && mem::replace(&mut entry.initial, true) {
                    self.sync.processed(1);
                }
                discarded.into_iter().for_each(|delta| self.discard(Some(delta)));
            }
            None => self.push_entry(Waiting { deltas: older, initial }),
        }
    }
}

impl<T, K: Key> Contents for KeyedDeltas<T, K> {
    type Waiting = (VecDeque<Waiting<T, K>>, Option<Hand<T, K>>);

    fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    fn is_synced(&self) -> bool {
        self.sync.is_synced()
    }

    fn clear(&mut self) -> Self::Waiting {
        self.places.clear();
        (mem::take(&mut self.entries), self.hand.take())
    }

    type Discarded = Vec<T>;

    fn discarded(&mut self) -> Vec<T> {
        mem::take(&mut self.discarded)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_empty_queue_gives_its_room_back() {
        let mut queue = KeyedDeltas::default();
        for key in 0..100_000 {
            queue.change(key, Delta::Added(()));
        }
        while queue.take().is_some() {
            queue.done(&None);
        }
        assert!(queue.entries.capacity() < 2 * QUEUE_KEPT_CAPACITY);
        assert!(queue.places.capacity() < 4 * QUEUE_KEPT_CAPACITY);
    }

    #[test]
    fn what_is_in_hand_has_not_been_processed() {
        let mut queue = KeyedDeltas::default();
        queue.change("a", Delta::Added(()));
        assert!(queue.take().is_some());
        assert_eq!((queue.len(), queue.unprocessed()), (0, 1));
        queue.done(&None);
        assert_eq!(queue.unprocessed(), 0);
    }
}
