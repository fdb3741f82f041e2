//! The rules of a work queue, without locks and waiting.
//!
//! An item can be in three conditions, in any combination but the first two together:
//!
//! - *ready*: it can be taken. Adding it again changes nothing but its priority, which is raised.
//! - *processing*: somebody works on it, so nobody else may have it. Adding it makes a mark, and when the work is done the item
//!   becomes ready again: what the worker saw may be older than what was added.
//! - *waiting*: at a given time it will be added. Of two times the earlier counts. It does not matter what else it is meanwhile,
//!   so no timer is lost.

use std::cmp::Reverse;
use std::collections::{BTreeSet, BinaryHeap};
use std::hash::Hash;

use super::ready::{Ready, Ticket};
use super::table::Table;

/// A point in time: nanoseconds since the queue was made.
pub(super) type Nanos = u64;

pub(super) struct State<T> {
    table: Table<T>,
    ready: Ready,
    /// When items become ready: time, number of the entry, place. One whose number is not the item's any more is a leftover.
    waiting: BinaryHeap<Reverse<(Nanos, u64, u32)>>,
    waiting_len: usize,
    /// What is being worked on, by when that began.
    processing: BTreeSet<(Nanos, u32)>,
    numbers: u64,
    shutting_down: bool,
    /// How many items were added, and how many with a delay.
    pub(super) adds: u64,
    pub(super) retries: u64,
}

/// An item that was taken out.
pub(super) struct Taken<T> {
    pub(super) at: u32,
    pub(super) item: T,
    pub(super) priority: i32,
    /// How long it had been ready.
    pub(super) waited: Nanos,
}

impl<T: Eq + Hash + Clone> State<T> {
    pub(super) fn new(max_age: Nanos) -> Self {
        Self {
            table: Table::new(),
            ready: Ready::new(max_age),
            waiting: BinaryHeap::new(),
            waiting_len: 0,
            processing: BTreeSet::new(),
            numbers: 0,
            shutting_down: false,
            adds: 0,
            retries: 0,
        }
    }

    /// Adds an item now. True if there is one more that can be taken.
    pub(super) fn add(&mut self, item: T, priority: i32, tenant: u64, now: Nanos) -> bool {
        if self.shutting_down {
            return false;
        }
        let Some(at) = self.table.place_of(item, tenant) else { return false };
        self.adds += 1;
        self.mark(at, priority, now)
    }

    /// Adds an item at a given time. True if that is before all others.
    pub(super) fn add_at(&mut self, item: T, priority: i32, tenant: u64, due: Nanos) -> bool {
        if self.shutting_down {
            return false;
        }
        self.retries += 1;
        let Some(at) = self.table.place_of(item, tenant) else { return false };
        let number = self.number();
        let Some(node) = self.table.get_mut(at) else { return false };
        let is_new = node.due_number == 0;
        node.due_priority = if is_new { priority } else { node.due_priority.max(priority) };
        if !is_new && node.due <= due {
            return false;
        }
        (node.due, node.due_number) = (due, number);
        self.waiting_len += usize::from(is_new);
        let earliest = self.next_due();
        self.waiting.push(Reverse((due, number, at)));
        self.sweep();
        earliest.is_none_or(|earliest| due < earliest)
    }

    /// An item is to be worked on. True if it can be taken now and could not before.
    fn mark(&mut self, at: u32, priority: i32, now: Nanos) -> bool {
        let number = self.number();
        let Some(node) = self.table.get_mut(at) else { return false };
        if node.processing {
            node.again = Some(node.again.map_or(priority, |again| again.max(priority)));
            return false;
        }
        let is_new = node.ready == 0;
        if !is_new && node.priority >= priority {
            return false;
        }
        (node.ready, node.priority) = (number, priority);
        let tenant = node.tenant;
        if is_new {
            (node.age, node.since) = (number, now);
            self.ready.push(Ticket { at, number }, priority, tenant, now, &self.table);
        } else {
            self.ready.raise(Ticket { at, number }, priority, tenant, &self.table);
        }
        is_new
    }

    /// Marks what is due. Returns how many can be taken that could not before.
    pub(super) fn promote(&mut self, now: Nanos) -> usize {
        let mut promoted = 0;
        while let Some(Reverse((due, number, at))) = self.waiting.peek().copied() {
            if !self.is_waiting(at, number) {
                self.waiting.pop();
                continue;
            }
            if due > now {
                break;
            }
            self.waiting.pop();
            self.waiting_len -= 1;
            let Some(node) = self.table.get_mut(at) else { continue };
            node.due_number = 0;
            let priority = node.due_priority;
            self.adds += 1;
            promoted += usize::from(self.mark(at, priority, now));
        }
        promoted
    }

    /// When the next one is due.
    pub(super) fn next_due(&mut self) -> Option<Nanos> {
        while let Some(Reverse((due, number, at))) = self.waiting.peek().copied() {
            if self.is_waiting(at, number) {
                return Some(due);
            }
            self.waiting.pop();
        }
        None
    }

    fn is_waiting(&self, at: u32, number: u64) -> bool {
        self.table.get(at).is_some_and(|node| node.due_number == number)
    }

    /// Takes out the next one.
    pub(super) fn take(&mut self, now: Nanos) -> Option<Taken<T>> {
        let at = self.ready.pop(now, &self.table)?;
        let node = self.table.get_mut(at)?;
        let waited = now.saturating_sub(node.since);
        (node.ready, node.age, node.since, node.processing) = (0, 0, now, true);
        self.processing.insert((now, at));
        Some(Taken { at, item: node.item.clone(), priority: node.priority, waited })
    }

    /// Work on an item has ended. Returns how long it took, whether it can be taken again, and what is to be dropped.
    pub(super) fn done(&mut self, at: u32, now: Nanos) -> (Nanos, bool, Option<T>) {
        let Some(node) = self.table.get_mut(at).filter(|node| node.processing) else { return (0, false, None) };
        let began = node.since;
        node.processing = false;
        let again = node.again.take();
        self.processing.remove(&(began, at));
        let is_ready = again.is_some_and(|priority| self.mark(at, priority, now));
        (now.saturating_sub(began), is_ready, self.table.forget_if_over(at))
    }

    /// Nothing more is added, and what waits for its time is dropped. Returns that.
    pub(super) fn shut_down(&mut self) -> Vec<T> {
        self.shutting_down = true;
        self.waiting = BinaryHeap::new();
        self.waiting_len = 0;
        let waiting: Vec<u32> = self.table.waiting().collect();
        let mut dropped = Vec::new();
        for at in waiting {
            if let Some(node) = self.table.get_mut(at) {
                node.due_number = 0;
            }
            dropped.extend(self.table.forget_if_over(at));
        }
        dropped
    }

    pub(super) fn is_shutting_down(&self) -> bool {
        self.shutting_down
    }

    /// How many items can be taken.
    pub(super) fn len(&self) -> usize {
        self.ready.len()
    }

    /// How many wait for their time.
    pub(super) fn waiting_len(&self) -> usize {
        self.waiting_len
    }

    /// How many are being worked on.
    pub(super) fn processing_len(&self) -> usize {
        self.processing.len()
    }

    /// When work on each of them began, the longest ago first.
    pub(super) fn began(&self) -> impl Iterator<Item = Nanos> + '_ {
        self.processing.iter().map(|(began, _)| *began)
    }

    fn number(&mut self) -> u64 {
        self.numbers += 1;
        self.numbers
    }

    /// Leftovers of times that have become earlier are swept out, if most are.
    fn sweep(&mut self) {
        if self.waiting.len() > 2 * self.waiting_len + 64 {
            let table = &self.table;
            self.waiting
                .retain(|Reverse((_, number, at))| table.get(*at).is_some_and(|node| node.due_number == *number));
        }
    }
}
