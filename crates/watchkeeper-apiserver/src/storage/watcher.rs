//! Those who follow the changes of a kind.
//!
//! Each has a queue of its own with a bound. A watcher whose queue is full has lost: it is forgotten, its stream ends after
//! what was queued, and it asks again from the last version that it saw. No write ever waits for a watcher.

use std::collections::VecDeque;
use std::sync::Arc;

use tokio::sync::mpsc;

use super::{Change, EventType, Stored};
use crate::kinds::Kind;
use crate::selectors::{FieldSelector, LabelSelector};

/// Which objects a list or a watch means.
#[derive(Debug, Clone)]
pub(crate) struct Filter {
    pub(crate) kind: Arc<Kind>,
    pub(crate) prefix: String,
    pub(crate) labels: LabelSelector,
    pub(crate) fields: FieldSelector,
}

/// A change, and what it is to one watcher.
#[derive(Debug, Clone)]
pub(crate) struct Delivery {
    pub(crate) event: EventType,
    pub(crate) change: Arc<Change>,
}

/// What a watcher holds: first what there was, then what came since, then what comes.
pub(crate) struct Subscription {
    pub(crate) initial: VecDeque<Arc<Stored>>,
    pub(crate) backlog: VecDeque<Delivery>,
    pub(crate) live: mpsc::Receiver<Delivery>,
    /// The revision at which it began.
    pub(crate) revision: u64,
}

/// The storage's end of a queue.
pub(super) struct Watcher {
    filter: Filter,
    queue: mpsc::Sender<Delivery>,
}

impl Filter {
    pub(crate) fn prefix(&self) -> &str {
        &self.prefix
    }

    /// Whether it lets everything in its range pass.
    pub(crate) fn is_empty(&self) -> bool {
        self.labels.is_empty() && self.fields.is_empty()
    }

    pub(crate) fn matches(&self, object: &Stored) -> bool {
        // What was written under another registration of the kind kept the values of other fields.
        if !self.fields.is_empty() && !object.is_of(&self.kind) {
            return self.matches(&object.anew(&self.kind));
        }
        object.key().starts_with(&self.prefix)
            && self.labels.matches(|key| object.label(key))
            && self.fields.matches(|name| object.field(&self.kind, name))
    }

    /// What a change is to somebody who sees only what matches: an object that begins to match is new to them, one
    /// that no longer does is gone.
    pub(super) fn delivery(&self, change: &Arc<Change>) -> Option<Delivery> {
        let before = change.before().is_some_and(|object| self.matches(object));
        let after = change.after().is_some_and(|object| self.matches(object));
        let event = match (before, after) {
            (false, false) => return None,
            (false, true) => EventType::Added,
            (true, true) => EventType::Modified,
            (true, false) => EventType::Deleted,
        };
        Some(Delivery { event, change: change.clone() })
    }
}

impl Subscription {
    /// Whether everything that happened has been queued, and taken. Who was cut off misses what came since.
    pub(crate) fn is_drained(&self) -> bool {
        self.initial.is_empty() && self.backlog.is_empty() && self.live.is_empty() && !self.live.is_closed()
    }
}

impl Watcher {
    pub(super) fn new(filter: Filter, buffer: usize) -> (Self, mpsc::Receiver<Delivery>) {
        let (queue, live) = mpsc::channel(buffer.max(1));
        (Self { filter, queue }, live)
    }

    pub(super) fn is_alive(&self) -> bool {
        !self.queue.is_closed()
    }

    /// Queues a change; false if the watcher is gone or too slow.
    pub(super) fn tell(&self, change: &Arc<Change>) -> bool {
        match self.filter.delivery(change) {
            Some(delivery) => self.queue.try_send(delivery).is_ok(),
            None => self.is_alive(),
        }
    }
}
