//! Where items arrive.
//!
//! Who adds and who takes would wait for each other at each item if they shared one lock. So what is added is left here, under
//! a lock that is held for a few instructions, and whoever holds the queue's own lock takes all of it in before it does
//! anything else: nobody can tell that it had not been there at once. It is left only while nobody waits for items, and there is
//! room for [`QUEUE_INBOX`] of them; else who adds takes them in.

use std::collections::VecDeque;

use super::state::Nanos;
use super::table::Added;
use crate::defaults::QUEUE_INBOX;
use crate::sync::atomic::{AtomicUsize, Ordering};
use crate::sync::{Mutex, lock};

/// An item that was added, when, and with which priority.
pub(super) struct Arrival<T> {
    pub(super) added: Added<T>,
    pub(super) priority: i32,
    pub(super) at: Nanos,
}

/// Aligned, because those who add write here while others work on what lies beside it.
#[repr(align(128))]
pub(super) struct Inbox<T> {
    arrivals: Mutex<Arrivals<T>>,
    /// How many there are.
    len: AtomicUsize,
    /// How many wait for items.
    waiting: AtomicUsize,
}

struct Arrivals<T> {
    items: VecDeque<Arrival<T>>,
    is_closed: bool,
}

/// What is to be done with what was left in an inbox.
pub(super) enum Left<T> {
    /// Whoever comes next takes it in.
    Stays,
    /// It has to be taken in now.
    TakeIn,
    /// It was refused.
    Refused(T),
}

/// Somebody waits for items, until this is dropped.
pub(super) struct Waiting<'a>(&'a AtomicUsize);

impl<T> Inbox<T> {
    pub(super) fn new() -> Self {
        let arrivals = Arrivals { items: VecDeque::new(), is_closed: false };
        Self { arrivals: Mutex::new(arrivals), len: AtomicUsize::new(0), waiting: AtomicUsize::new(0) }
    }

    pub(super) fn leave(&self, arrival: Arrival<T>) -> Left<T> {
        let mut arrivals = lock(&self.arrivals);
        if arrivals.is_closed {
            return Left::Refused(arrival.added.item);
        }
        arrivals.items.push_back(arrival);
        let len = arrivals.items.len();
        self.len.store(len, Ordering::SeqCst);
        drop(arrivals);
        // Written, then looked at, as by those who wait: one of the two sees the other.
        if len >= QUEUE_INBOX || self.is_waited_for() { Left::TakeIn } else { Left::Stays }
    }

    /// Exchanges what has arrived for an empty queue.
    pub(super) fn take(&self, empty: &mut VecDeque<Arrival<T>>) {
        if self.len.load(Ordering::SeqCst) > 0 {
            let mut arrivals = lock(&self.arrivals);
            std::mem::swap(&mut arrivals.items, empty);
            self.len.store(0, Ordering::SeqCst);
        }
    }

    /// From now on items are refused. Returns what had arrived.
    pub(super) fn close(&self) -> VecDeque<Arrival<T>> {
        let mut arrivals = lock(&self.arrivals);
        arrivals.is_closed = true;
        self.len.store(0, Ordering::SeqCst);
        std::mem::take(&mut arrivals.items)
    }

    /// Somebody will wait for items, who looks for them after this.
    pub(super) fn wait(&self) -> Waiting<'_> {
        self.waiting.fetch_add(1, Ordering::SeqCst);
        Waiting(&self.waiting)
    }

    pub(super) fn is_waited_for(&self) -> bool {
        self.waiting.load(Ordering::SeqCst) > 0
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}
