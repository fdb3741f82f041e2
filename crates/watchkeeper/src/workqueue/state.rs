//! The rules of a work queue, without locks and waiting.
//!
//! An item can be in three conditions, in any combination but the first two together:
//!
//! - *ready*: it can be taken. Adding it again changes nothing but its priority, which is raised.
//! - *processing*: somebody works on it, so nobody else may have it. Adding it makes a mark, and when the work is done the item
//!   becomes ready again: what the worker saw may be older than what was added.
//! - *waiting*: at a given time it will be added. Of two times the earlier counts. It does not matter what else it is meanwhile,
//!   so no timer is lost.
//!
//! Nobody may have looked when an item's time came. So whatever is done begins with [`State::promote`], and such an item counts as
//! added when its time came: before all that was added since.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::num::NonZeroU32;
use std::time::Duration;

use super::ready::{Ready, Ticket};
use super::table::{Added, Table};
use crate::metrics::QueueSample;

/// A point in time: nanoseconds since the queue was made.
pub(super) type Nanos = u64;

pub(super) struct State<T> {
    table: Table<T>,
    ready: Ready,
    /// When items become ready: time, number of the entry, place. One whose number is not the item's any more is a leftover.
    waiting: BinaryHeap<Reverse<(Nanos, u64, u32)>>,
    waiting_len: usize,
    /// What is being worked on, and since when, in no order; and how much of that comes again.
    processing: Vec<(u32, Nanos)>,
    again_len: usize,
    numbers: u64,
    shutting_down: bool,
    /// How many items were added that were not there already, and how often one was added with a delay.
    adds: u64,
    retries: u64,
}

/// When an item is to be added.
#[derive(Clone, Copy)]
pub(super) struct Due {
    pub(super) at: Nanos,
    /// Because a limiter says so, and not because somebody asked for that time.
    pub(super) is_retry: bool,
}

/// An item that was taken out.
pub(super) struct Taken<T> {
    pub(super) at: u32,
    pub(super) item: T,
    pub(super) priority: i32,
    /// How long it had been there.
    pub(super) waited: Nanos,
    pub(super) began: Nanos,
}

impl<T: Eq + Clone> State<T> {
    pub(super) fn new(max_age: Nanos, fair: bool) -> Self {
        Self {
            table: Table::new(),
            ready: Ready::new(max_age, fair),
            waiting: BinaryHeap::new(),
            waiting_len: 0,
            processing: Vec::new(),
            again_len: 0,
            numbers: 0,
            shutting_down: false,
            adds: 0,
            retries: 0,
        }
    }

    /// Adds an item now. Says whether there is one more that can be taken, and gives back what is to be dropped.
    pub(super) fn add(&mut self, added: Added<T>, priority: i32, now: Nanos) -> (bool, Option<T>) {
        if self.shutting_down {
            return (false, Some(added.item));
        }
        let (at, spare) = self.table.place_of(added);
        (at.is_some_and(|at| self.mark(at, priority, now)), spare)
    }

    /// Adds an item at a given time. Says whether that is before all others, and gives back what is to be dropped.
    pub(super) fn add_at(&mut self, added: Added<T>, priority: i32, due: Due) -> (bool, Option<T>) {
        if self.shutting_down {
            return (false, Some(added.item));
        }
        let (at, spare) = self.table.place_of(added);
        (at.is_some_and(|at| self.wait(at, priority, due)), spare)
    }

    /// An item that is being worked on is not to be tried again when its limiter said so. A time that was asked for stays.
    pub(super) fn cancel_retry(&mut self, at: u32) {
        let waiting = self.table.get_mut(at).filter(|node| node.due_number != 0 && node.due_is_retry);
        if let Some(node) = waiting {
            node.due_number = 0;
            self.waiting_len -= 1;
            self.sweep();
        }
    }

    /// An item was added with a delay.
    pub(super) fn count_retry(&mut self) {
        self.retries += u64::from(!self.shutting_down);
    }

    fn wait(&mut self, at: u32, priority: i32, Due { at: due, is_retry }: Due) -> bool {
        let number = self.number();
        let Some(node) = self.table.get_mut(at) else { return false };
        let is_new = node.due_number == 0;
        node.due_priority = if is_new { priority } else { node.due_priority.max(priority) };
        node.due_is_retry = is_retry && (is_new || node.due_is_retry);
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
    fn mark(&mut self, at: u32, priority: i32, since: Nanos) -> bool {
        let number = self.number();
        let Some(node) = self.table.get_mut(at) else { return false };
        if node.processing.is_some() {
            if node.again.is_none() {
                (self.again_len, self.adds, node.since) = (self.again_len + 1, self.adds + 1, since);
            }
            node.again = Some(node.again.map_or(priority, |again| again.max(priority)));
            return false;
        }
        let is_new = node.ready == 0;
        if !is_new && node.priority >= priority {
            return false;
        }
        (node.ready, node.priority) = (number, priority);
        let (ticket, tenant) = (Ticket { at, number }, node.tenant);
        if is_new {
            (node.age, node.since, self.adds) = (number, since, self.adds + 1);
            self.ready.push(ticket, priority, tenant, since, &self.table);
        } else {
            self.ready.raise(ticket, priority, tenant, &self.table);
        }
        is_new
    }

    /// Marks what is due, as of when it was. Returns how many can be taken that could not before.
    pub(super) fn promote(&mut self, now: Nanos) -> usize {
        let mut promoted = 0;
        while let Some(due) = self.next_due().filter(|due| *due <= now) {
            let Some(Reverse((_, _, at))) = self.waiting.pop() else { break };
            self.waiting_len -= 1;
            let Some(node) = self.table.get_mut(at) else { continue };
            node.due_number = 0;
            let priority = node.due_priority;
            promoted += usize::from(self.mark(at, priority, due));
        }
        if self.waiting.is_empty() {
            self.waiting.shrink_to(crate::defaults::QUEUE_KEPT_CAPACITY);
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

    /// Whether it matters what time it is when something is taken out.
    pub(super) fn is_timed(&self) -> bool {
        self.waiting_len > 0 || self.ready.is_timed()
    }

    /// Whether an item that is being worked on was added meanwhile.
    pub(super) fn comes_again(&self, at: u32) -> bool {
        self.table.get(at).is_some_and(|node| node.again.is_some())
    }

    /// Takes out the next one.
    pub(super) fn take(&mut self, now: Nanos) -> Option<Taken<T>> {
        let at = self.ready.pop(now, &self.table)?;
        let node = self.table.get_mut(at)?;
        (node.ready, node.age) = (0, 0);
        // A clone that panics is work that has panicked: the item is out of the queue, and can be added again.
        let item = node.item.clone();
        self.processing.push((at, now));
        // There are no more of them than places, which have numbers of 32 bits.
        node.processing = u32::try_from(self.processing.len()).ok().and_then(NonZeroU32::new);
        let (priority, waited) = (node.priority, now.saturating_sub(node.since));
        Some(Taken { at, item, priority, waited, began: now })
    }

    /// Work on an item has ended that began then. Says whether it can be taken again, and gives back what is to be dropped.
    pub(super) fn done(&mut self, at: u32, began: Nanos, now: Nanos) -> (bool, Option<T>) {
        if !self.end(at, began) {
            return (false, None);
        }
        let Some(node) = self.table.get_mut(at) else { return (false, None) };
        let Some(priority) = node.again.take() else { return (false, self.table.forget_if_over(at)) };
        let since = node.since;
        self.again_len -= 1;
        // It was counted when it was added, and has waited since then.
        self.adds -= 1;
        let is_ready = self.mark(at, priority, now);
        if let Some(node) = self.table.get_mut(at) {
            node.since = since;
        }
        (is_ready, None)
    }

    /// Nobody works on an item any more, if somebody has since then.
    fn end(&mut self, at: u32, began: Nanos) -> bool {
        let number = self.table.get(at).and_then(|node| node.processing);
        let Some(index) = number.map(|number| number.get() as usize - 1) else { return false };
        if self.processing.get(index) != Some(&(at, began)) {
            return false;
        }
        self.processing.swap_remove(index);
        // The last one has taken its place.
        if let Some(moved) = self.processing.get(index).and_then(|(moved, _)| self.table.get_mut(*moved)) {
            moved.processing = number;
        }
        if let Some(node) = self.table.get_mut(at) {
            node.processing = None;
        }
        true
    }

    /// Nothing more is added, and what waits for its time is dropped. Returns that.
    pub(super) fn shut_down(&mut self, now: Nanos) -> Vec<T> {
        self.promote(now);
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

impl<T> State<T> {
    /// What metrics say of it.
    pub(super) fn sample(&self, now: Nanos) -> QueueSample {
        let running = self.processing.iter().map(|(_, since)| Duration::from_nanos(now.saturating_sub(*since)));
        QueueSample {
            depth: self.ready.len() + self.again_len,
            waiting: self.waiting_len,
            adds: self.adds,
            retries: self.retries,
            unfinished: running.clone().sum(),
            longest_running: running.max().unwrap_or_default(),
        }
    }
}
