//! What has happened in the cache, as it waits to be told.
//!
//! What the processor applies at once is one [`Changes`], shared by all handlers: each reads through it at its own pace. So
//! telling a handler costs one pointer for a batch, and a list of a hundred thousand objects enters a buffer as one.
//!
//! Handlers of one event also share what one of them decodes: see [`Shared`].

use super::shared_decodes::{Both, Shared};
use crate::{Cached, Cause, Event, Object};

/// One thing that happened to one object.
#[derive(Clone)]
pub(super) struct Change {
    /// What the cache had before.
    pub(super) old: Option<Object>,
    /// After it. None of a deletion.
    pub(super) new: Option<Object>,
    /// The state in which it was deleted, if that is known.
    last: Option<Object>,
    pub(super) cause: Cause,
    /// Old and new are the same state of the same object, which not everybody wants to hear of.
    pub(super) unchanged: bool,
}

impl Change {
    pub(super) fn added(object: Object, cause: Cause) -> Self {
        Self { old: None, new: Some(object), last: None, cause, unchanged: false }
    }

    /// A deletion of what the cache had; `last` is the state in which it was deleted, if anybody saw that.
    pub(super) fn deleted(old: Object, last: Option<Object>, cause: Cause) -> Self {
        // The end of another object of that name is not the end of this one, which was missed.
        let last = last.filter(|last| !Self::is_successor(&old, last));
        Self { old: Some(old), new: None, last, cause, unchanged: false }
    }

    pub(super) fn updated(old: Object, new: Object, cause: Cause) -> Self {
        let unchanged = old.is_same_state(&new);
        Self { old: Some(old), new: Some(new), last: None, cause, unchanged }
    }

    /// The object is another one than before, under the same name.
    pub(super) fn is_successor(old: &Object, new: &Object) -> bool {
        // A server that sends no uids at all cannot be understood that way.
        matches!((old.uid(), new.uid()), (Some(old), Some(new)) if old != new)
    }

    /// Of a deletion, the state in which it was deleted.
    pub(super) fn last(&self) -> Option<&Object> {
        self.last.as_ref()
    }

    /// As a handler is told, with what is decoded of both ends, if others are told too: of an update those are the old state and
    /// the new, of a deletion the last. There are none only of what never was, and that is no change.
    pub(super) fn event<K>(&self, decodes: Option<Both>) -> Option<Event<K>> {
        let (cause, final_state_known) = (self.cause, self.last.is_some());
        let (old, new) = (self.last.as_ref().or(self.old.as_ref()).cloned(), self.new.clone());
        let (old, new) = match decodes {
            None => (old.map(Cached::new), new.map(Cached::new)),
            Some((of_old, of_new)) => {
                (old.map(|old| Cached::sharing(old, of_old)), new.map(|new| Cached::sharing(new, of_new)))
            }
        };
        Some(match (old, new) {
            (None, Some(object)) => Event::Added { object, cause },
            (Some(old), Some(new)) => Event::Updated { old, new, cause },
            (Some(last), None) => Event::Deleted { last, final_state_known, cause },
            (None, None) => return None,
        })
    }
}

/// Changes that were applied at once, in the order in which they are told.
pub(super) struct Changes {
    items: Vec<Change>,
    unchanged: usize,
    shared: Shared,
}

impl Changes {
    pub(super) fn new(items: Vec<Change>, shared: Shared) -> Self {
        let unchanged = items.iter().filter(|change| change.unchanged).count();
        Self { items, unchanged, shared }
    }

    pub(super) fn items(&self) -> &[Change] {
        &self.items
    }

    /// How many there are for somebody who does or does not want to hear of what has not changed.
    pub(super) fn count(&self, with_unchanged: bool) -> usize {
        if with_unchanged { self.items.len() } else { self.items.len() - self.unchanged }
    }

    /// The event at a place, which shares what is decoded with the others who are told of it.
    pub(super) fn event<K>(&self, at: usize) -> Option<Event<K>> {
        self.items[at].event(self.shared.decodes(at))
    }
}
