//! What is known of each item.
//!
//! Each item is kept once, in a place that has a number; a table of those numbers finds it by its hash. Queues and heaps hold
//! numbers. A million items that wait take a million places, and nothing of an item twice.

use std::num::NonZeroU32;

use hashbrown::HashTable;

use super::ready::{Holder, Ticket};

/// An item that is added, with what was found out of it before a lock was taken.
pub(super) struct Added<T> {
    pub(super) item: T,
    pub(super) hash: u64,
    /// Whose it is, where tenants take turns.
    pub(super) tenant: u64,
}

/// One item.
pub(super) struct Node<T> {
    pub(super) item: T,
    /// Kept, because an item is mostly a pointer, and what it points to is far away when it is forgotten.
    hash: u64,
    /// Whose it is, where tenants take turns.
    pub(super) tenant: u64,
    /// The numbers of its tickets, for its place and its age, while it can be taken; zero if it cannot.
    pub(super) ready: u64,
    pub(super) age: u64,
    /// When it was added: since then it has been ready, or is to come again.
    pub(super) since: u64,
    /// When it becomes ready, and the number of its entry in the heap; zero if it does not wait.
    pub(super) due: u64,
    pub(super) due_number: u64,
    /// Its priority while it is ready.
    pub(super) priority: i32,
    pub(super) due_priority: i32,
    /// It waits because a limiter says so, and for nothing else.
    pub(super) due_is_retry: bool,
    /// Somebody works on it: it is this one, from one on, of all that are worked on.
    pub(super) processing: Option<NonZeroU32>,
    /// It was added while somebody worked on it, with this priority: it comes again.
    pub(super) again: Option<i32>,
}

impl<T> Node<T> {
    /// Nothing is to be remembered of it.
    fn is_over(&self) -> bool {
        self.ready == 0 && self.due_number == 0 && self.processing.is_none()
    }
}

/// How many places are allocated together. One allocation for all would have room for twice as many, now and then.
const CHUNK: usize = 64;

pub(super) struct Table<T> {
    chunks: Vec<Vec<Option<Node<T>>>>,
    free: Vec<u32>,
    places: HashTable<u32>,
}

impl<T: Eq> Table<T> {
    pub(super) fn new() -> Self {
        Self { chunks: Vec::new(), free: Vec::new(), places: HashTable::new() }
    }

    /// The place of an item, which is given one if it has none; none if there is no room for another. An item that is not kept
    /// is given back, to be dropped without a lock.
    pub(super) fn place_of(&mut self, added: Added<T>) -> (Option<u32>, Option<T>) {
        let Added { item, hash, tenant } = added;
        let chunks = &self.chunks;
        let is_it = |at: &u32| node(chunks, *at).is_some_and(|node| node.hash == hash && node.item == item);
        if let Some(at) = self.places.find(hash, is_it) {
            return (Some(*at), Some(item));
        }
        let at = match self.free.pop() {
            Some(at) => at,
            None => {
                let Some(at) = self.new_place() else { return (None, Some(item)) };
                at
            }
        };
        self.chunks[at as usize / CHUNK][at as usize % CHUNK] = Some(Node {
            item,
            hash,
            tenant,
            ready: 0,
            age: 0,
            since: 0,
            due: 0,
            due_number: 0,
            priority: 0,
            due_priority: 0,
            due_is_retry: false,
            processing: None,
            again: None,
        });
        let chunks = &self.chunks;
        let rehash = |at: &u32| node(chunks, *at).map_or(0, |node| node.hash);
        self.places.insert_unique(hash, at, rehash);
        (Some(at), None)
    }

    pub(super) fn get(&self, at: u32) -> Option<&Node<T>> {
        node(&self.chunks, at)
    }

    pub(super) fn get_mut(&mut self, at: u32) -> Option<&mut Node<T>> {
        self.place_mut(at)?.as_mut()
    }

    fn place_mut(&mut self, at: u32) -> Option<&mut Option<Node<T>>> {
        self.chunks.get_mut(at as usize / CHUNK)?.get_mut(at as usize % CHUNK)
    }

    /// A place behind all others.
    fn new_place(&mut self) -> Option<u32> {
        if self.chunks.last().is_none_or(|last| last.len() == CHUNK) {
            self.chunks.push(Vec::new());
        }
        let before = CHUNK * (self.chunks.len() - 1);
        let last = self.chunks.last_mut()?;
        let at = u32::try_from(before + last.len()).ok()?;
        last.push(None);
        Some(at)
    }

    /// Forgets an item of which nothing is to be remembered. It is given back, to be dropped without a lock.
    pub(super) fn forget_if_over(&mut self, at: u32) -> Option<T> {
        let over = self.place_mut(at)?.take_if(|node| node.is_over())?;
        if let Ok(entry) = self.places.find_entry(over.hash, |place| *place == at) {
            entry.remove();
        }
        self.free.push(at);
        self.shrink();
        Some(over.item)
    }

    /// An empty table gives back what a flood has left.
    fn shrink(&mut self) {
        if self.places.is_empty() && self.free.len() > crate::defaults::QUEUE_KEPT_CAPACITY {
            self.chunks = Vec::new();
            self.free = Vec::new();
            self.places = HashTable::new();
        }
    }

    /// The items that wait for their time.
    pub(super) fn waiting(&self) -> impl Iterator<Item = u32> + '_ {
        let nodes = self.chunks.iter().flatten().zip(0_u32..);
        nodes.filter_map(|(node, at)| node.as_ref().filter(|node| node.due_number != 0).map(|_| at))
    }
}

fn node<T>(chunks: &[Vec<Option<Node<T>>>], at: u32) -> Option<&Node<T>> {
    chunks.get(at as usize / CHUNK)?.get(at as usize % CHUNK)?.as_ref()
}

impl<T: Eq> Holder for Table<T> {
    fn holds_place(&self, ticket: Ticket) -> bool {
        self.get(ticket.at).is_some_and(|node| node.ready == ticket.number)
    }

    fn holds_age(&self, ticket: Ticket) -> bool {
        self.get(ticket.at).is_some_and(|node| node.age == ticket.number)
    }
}
