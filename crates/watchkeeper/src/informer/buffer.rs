//! What waits for one handler.
//!
//! Three things can wait: changes, a replay of a snapshot (what was in the cache when the handler came, or all of it at a
//! resync), and the mark behind which a handler knows all that there was at first. They wait in the order in which they
//! came; changes and snapshots wait as one pointer each and are read when their turn comes.
//!
//! A coalescing buffer keeps one entry for each key instead of its changes: what the handler was told last, and what the
//! object is now. An entry keeps its place while it changes. Replays and first lists stand between entries like walls: what
//! comes after one does not change entries in front of it, else the handler would hear of something newer first. There are
//! few (the first state, the first list of each namespace, and a resync, which is not repeated while one waits), so few
//! entries for a key too.

use std::collections::VecDeque;
use std::sync::Arc;

use hashbrown::HashMap;

use super::changes::{Change, Changes};
use crate::defaults::QUEUE_KEPT_CAPACITY;
use crate::{Cause, Object, ObjectKey, Snapshot};

/// What becomes of changes while a handler is busy.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Buffer {
    /// All of them wait, however many there are, as in client-go. From 1,024 on the log says so; the backlog can be asked
    /// for and is a metric.
    #[default]
    EveryEvent,
    /// For each object one waits: `old` is what the handler was told last, `new` the newest. What is added and deleted
    /// while the handler is busy, it never hears of.
    Coalesce,
}

/// What comes out of a buffer.
pub(super) enum Notice {
    Changes(Arc<Changes>),
    Change(Change),
    Replay { objects: Snapshot<Object>, cause: Cause },
    Synced,
}

/// The contents of a buffer.
pub(super) struct Waiting {
    sections: VecDeque<Section>,
    policy: Buffer,
    /// Whether the handler wants to hear of what has not changed.
    with_unchanged: bool,
    /// How many events there are in it.
    len: usize,
    /// How many of them came all at once: as a list, or as a replay.
    at_once: usize,
}

enum Section {
    Notice(Notice),
    Keys(Keys),
}

impl Waiting {
    pub(super) fn new(policy: Buffer, with_unchanged: bool) -> Self {
        Self { sections: VecDeque::new(), policy, with_unchanged, len: 0, at_once: 0 }
    }

    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// How many have come one by one, and tell whether the handler keeps up.
    pub(super) fn lag(&self) -> usize {
        self.len - self.at_once
    }

    /// Nothing waits, not even a mark.
    pub(super) fn is_empty(&self) -> bool {
        self.sections.is_empty()
    }

    pub(super) fn push_changes(&mut self, changes: &Arc<Changes>) {
        let count = changes.count(self.with_unchanged);
        if count == 0 {
            return;
        }
        // The first list cannot be joined with anything in front of it.
        let is_first_list = changes.items().len() > 1 && changes.items()[0].cause == Cause::Initial;
        if self.policy == Buffer::EveryEvent || is_first_list {
            return self.push(Notice::Changes(changes.clone()));
        }
        if !matches!(self.sections.back(), Some(Section::Keys(_))) {
            self.sections.push_back(Section::Keys(Keys::default()));
        }
        let Some(Section::Keys(keys)) = self.sections.back_mut() else { return };
        let before = keys.pending.len();
        for change in changes.items().iter().filter(|change| self.with_unchanged || !change.unchanged) {
            keys.push(change, self.with_unchanged);
        }
        self.len = self.len + keys.pending.len() - before;
        if keys.pending.is_empty() {
            self.sections.pop_back();
        }
    }

    pub(super) fn push(&mut self, notice: Notice) {
        self.len += self.size(&notice);
        self.at_once += self.size_at_once(&notice);
        self.sections.push_back(Section::Notice(notice));
    }

    pub(super) fn pop(&mut self) -> Option<Notice> {
        let notice = match self.sections.front_mut()? {
            Section::Keys(keys) => {
                let before = keys.pending.len();
                let change = keys.pop();
                self.len = self.len + keys.pending.len() - before;
                if keys.pending.is_empty() {
                    self.sections.pop_front();
                }
                Notice::Change(change?)
            }
            Section::Notice(_) => {
                let Some(Section::Notice(notice)) = self.sections.pop_front() else { return None };
                self.len -= self.size(&notice);
                self.at_once -= self.size_at_once(&notice);
                notice
            }
        };
        if self.sections.is_empty() && self.sections.capacity() > QUEUE_KEPT_CAPACITY {
            self.sections = VecDeque::new();
        }
        Some(notice)
    }

    fn size_at_once(&self, notice: &Notice) -> usize {
        match notice {
            Notice::Changes(changes) if changes.items().first().is_none_or(|first| first.cause == Cause::Watch) => 0,
            notice => self.size(notice),
        }
    }

    /// How many events come of it.
    pub(super) fn size(&self, notice: &Notice) -> usize {
        match notice {
            Notice::Changes(changes) => changes.count(self.with_unchanged),
            Notice::Change(_) => 1,
            Notice::Replay { objects, .. } => objects.len(),
            Notice::Synced => 0,
        }
    }
}

/// One entry for each key. There is always one at least, except in the middle of a change.
#[derive(Default)]
struct Keys {
    pending: HashMap<ObjectKey, Pending>,
    /// Keys in the order in which they came, each with the number of its entry. One whose entry has another number, or
    /// which has none, has vanished, and perhaps come again.
    order: VecDeque<(u64, ObjectKey)>,
    next: u64,
}

struct Pending {
    number: u64,
    /// What the handler was told last, if it knows the object.
    told: Option<Object>,
    now: Now,
    cause: Cause,
}

enum Now {
    There(Object),
    Gone { last: Option<Object> },
}

impl Keys {
    /// Joins a change with what waits of its key.
    fn push(&mut self, change: &Change, with_unchanged: bool) {
        let (now, key) = match (&change.new, &change.old) {
            (Some(new), _) => (Now::There(new.clone()), new.key()),
            (None, Some(old)) => (Now::Gone { last: change.last().cloned() }, old.key()),
            (None, None) => return,
        };
        match self.pending.get_mut(key) {
            // Added and deleted: as if it had never been.
            Some(Pending { told: None, .. }) if matches!(now, Now::Gone { .. }) => {
                self.pending.remove(key);
                self.forget_vanished();
            }
            // It is again what the handler was told last: there is nothing to tell.
            Some(Pending { told: Some(told), .. })
                if !with_unchanged && matches!(&now, Now::There(new) if told.is_same_state(new)) =>
            {
                self.pending.remove(key);
                self.forget_vanished();
            }
            Some(pending) => {
                pending.now = now;
                // An addition that changes before it is told is an addition still, by what added it.
                if !change.unchanged && pending.told.is_some() {
                    pending.cause = change.cause;
                }
            }
            None => {
                let number = self.next;
                self.next += 1;
                self.order.push_back((number, key.clone()));
                let pending = Pending { number, told: change.old.clone(), now, cause: change.cause };
                self.pending.insert(key.clone(), pending);
            }
        }
    }

    fn pop(&mut self) -> Option<Change> {
        loop {
            let (number, key) = self.order.pop_front()?;
            let is_it = |pending: &Pending| pending.number == number;
            if !self.pending.get(&key).is_some_and(is_it) {
                continue;
            }
            let Pending { told, now, cause, .. } = self.pending.remove(&key)?;
            return Some(match (told, now) {
                (Some(told), Now::There(new)) if Change::is_successor(&told, &new) => {
                    // Two events: the second comes next.
                    self.order.push_front((number, key.clone()));
                    self.pending.insert(key, Pending { number, told: None, now: Now::There(new), cause });
                    Change::deleted(told, None, cause)
                }
                (Some(told), Now::There(new)) => Change::updated(told, new, cause),
                (None, Now::There(new)) => Change::added(new, cause),
                (Some(told), Now::Gone { last }) => Change::deleted(told, last, cause),
                // An addition that is gone was forgotten at once.
                (None, Now::Gone { .. }) => continue,
            });
        }
    }

    /// An object that is added and deleted again and again shall not fill `order`.
    fn forget_vanished(&mut self) {
        if self.order.len() > 2 * self.pending.len() + 64 {
            let pending = &self.pending;
            self.order.retain(|(number, key)| pending.get(key).is_some_and(|pending| pending.number == *number));
        }
    }
}
