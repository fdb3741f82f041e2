//! What is known of each item.
//!
//! Each item is kept once, in a place that has a number; a table of those numbers finds it by its hash. Queues and heaps hold
//! numbers. A million items that wait take a million places, and nothing of an item twice.

use std::hash::{BuildHasher as _, Hash};

use hashbrown::{DefaultHashBuilder, HashTable};

use super::ready::{Holder, Ticket};

/// One item.
pub(super) struct Node<T> {
    pub(super) item: T,
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
    /// Somebody works on it.
    pub(super) processing: bool,
    /// It was added while somebody worked on it, with this priority: it comes again.
    pub(super) again: Option<i32>,
}

impl<T> Node<T> {
    /// Nothing is to be remembered of it.
    fn is_over(&self) -> bool {
        self.ready == 0 && self.due_number == 0 && !self.processing
    }
}

pub(super) struct Table<T> {
    nodes: Vec<Option<Node<T>>>,
    free: Vec<u32>,
    places: HashTable<u32>,
    hasher: DefaultHashBuilder,
}

impl<T: Eq + Hash> Table<T> {
    pub(super) fn new() -> Self {
        Self { nodes: Vec::new(), free: Vec::new(), places: HashTable::new(), hasher: DefaultHashBuilder::default() }
    }

    /// The place of an item, which is given one if it has none; none if there is no room for another. An item that is not kept
    /// is given back, to be dropped without a lock.
    pub(super) fn place_of(&mut self, item: T, tenant: u64) -> (Option<u32>, Option<T>) {
        let hash = self.hasher.hash_one(&item);
        let is_it = |at: &u32| self.nodes[*at as usize].as_ref().is_some_and(|node| node.item == item);
        if let Some(at) = self.places.find(hash, is_it) {
            return (Some(*at), Some(item));
        }
        let at = match self.free.pop() {
            Some(at) => at,
            None => {
                let Ok(at) = u32::try_from(self.nodes.len()) else { return (None, Some(item)) };
                self.nodes.push(None);
                at
            }
        };
        self.nodes[at as usize] = Some(Node {
            item,
            tenant,
            ready: 0,
            age: 0,
            since: 0,
            due: 0,
            due_number: 0,
            priority: 0,
            due_priority: 0,
            processing: false,
            again: None,
        });
        let (nodes, hasher) = (&self.nodes, &self.hasher);
        let rehash = |at: &u32| nodes[*at as usize].as_ref().map_or(0, |node| hasher.hash_one(&node.item));
        self.places.insert_unique(hash, at, rehash);
        (Some(at), None)
    }

    pub(super) fn get(&self, at: u32) -> Option<&Node<T>> {
        self.nodes.get(at as usize)?.as_ref()
    }

    pub(super) fn get_mut(&mut self, at: u32) -> Option<&mut Node<T>> {
        self.nodes.get_mut(at as usize)?.as_mut()
    }

    /// Forgets an item of which nothing is to be remembered. It is given back, to be dropped without a lock.
    pub(super) fn forget_if_over(&mut self, at: u32) -> Option<T> {
        let node = self.nodes.get_mut(at as usize)?;
        let over = node.take_if(|node| node.is_over())?;
        let hash = self.hasher.hash_one(&over.item);
        if let Ok(entry) = self.places.find_entry(hash, |place| *place == at) {
            entry.remove();
        }
        self.free.push(at);
        self.shrink();
        Some(over.item)
    }

    /// An empty table gives back what a flood has left.
    fn shrink(&mut self) {
        if self.places.is_empty() && self.nodes.len() > crate::defaults::QUEUE_KEPT_CAPACITY {
            self.nodes = Vec::new();
            self.free = Vec::new();
            self.places = HashTable::new();
        }
    }

    /// The items that wait for their time.
    pub(super) fn waiting(&self) -> impl Iterator<Item = u32> + '_ {
        let nodes = self.nodes.iter().zip(0_u32..);
        nodes.filter_map(|(node, at)| node.as_ref().filter(|node| node.due_number != 0).map(|_| at))
    }
}

impl<T: Eq + Hash> Holder for Table<T> {
    fn holds_place(&self, ticket: Ticket) -> bool {
        self.get(ticket.at).is_some_and(|node| node.ready == ticket.number)
    }

    fn holds_age(&self, ticket: Ticket) -> bool {
        self.get(ticket.at).is_some_and(|node| node.age == ticket.number)
    }
}
