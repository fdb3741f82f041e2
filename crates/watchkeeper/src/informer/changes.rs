//! What has happened in the cache, as it waits to be told.
//!
//! What the processor applies at once is one [`Changes`], shared by all handlers: each reads through it at its own pace. So
//! telling a handler costs one pointer for a batch, and a list of a hundred thousand objects enters a buffer as one.
//!
//! Handlers of one event also share the event, and what one of them decodes of its objects, for a while: see [`Shared`].

use std::any::Any;
use std::borrow::Cow;
use std::sync::{Arc, OnceLock};

use crate::defaults::SHARED_EVENTS;
use crate::object::{Places, Shared};
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

    /// There was an object, or there is one: else nothing has happened.
    fn is_any(&self) -> bool {
        self.old.is_some() || self.new.is_some()
    }

    /// As somebody is told who shares with nobody.
    pub(super) fn event<K>(&self) -> Option<Event<K>> {
        self.told(|object, _| Cached::new(object.clone()))
    }

    /// As a handler is told. There is nothing to tell only of what never was.
    fn told<K>(&self, cached: impl Fn(&Object, End) -> Cached<K>) -> Option<Event<K>> {
        let (cause, final_state_known) = (self.cause, self.last.is_some());
        let old = self.last.as_ref().or(self.old.as_ref()).map(|old| cached(old, End::Old));
        let new = self.new.as_ref().map(|new| cached(new, End::New));
        Some(match (old, new) {
            (None, Some(object)) => Event::Added { object, cause },
            (Some(old), Some(new)) => Event::Updated { old, new, cause },
            (Some(last), None) => Event::Deleted { last, final_state_known, cause },
            (None, None) => return None,
        })
    }
}

/// The two objects that a change can have.
#[derive(Clone, Copy)]
enum End {
    /// The old state, or of a deletion the last.
    Old,
    New,
}

impl End {
    /// The place of one of them among the objects of all changes.
    fn of(self, change: usize) -> usize {
        2 * change + self as usize
    }
}

/// Changes that were applied at once, in the order in which they are told.
pub(super) struct Changes {
    items: Vec<Change>,
    unchanged: usize,
    /// If several are told: where they find what others have decoded.
    shared: Option<Arc<Shared>>,
    /// Then the events as well are made once, by the first who asks, for all who see the objects as the same type.
    events: OnceLock<Box<dyn Any + Send + Sync>>,
}

impl Changes {
    pub(super) fn new(items: Vec<Change>, places: &mut Places, handlers: usize) -> Self {
        let unchanged = items.iter().filter(|change| change.unchanged).count();
        // A single handler has nobody to share with.
        let shared = (handlers > 1).then(|| places.take(2 * items.len()));
        Self { items, unchanged, shared, events: OnceLock::new() }
    }

    pub(super) fn items(&self) -> &[Change] {
        &self.items
    }

    /// How many there are for somebody who does or does not want to hear of what has not changed.
    pub(super) fn count(&self, with_unchanged: bool) -> usize {
        if with_unchanged { self.items.len() } else { self.items.len() - self.unchanged }
    }

    /// What there is at a place for such a one: something or nothing to tell; none at the end.
    pub(super) fn look(&self, at: usize, with_unchanged: bool) -> Option<bool> {
        self.items.get(at).map(|change| change.is_any() && (with_unchanged || !change.unchanged))
    }

    /// The event at a place.
    pub(super) fn event<K: 'static>(&self, at: usize) -> Option<Cow<'_, Event<K>>> {
        let Some(shared) = &self.shared else { return self.items.get(at)?.event().map(Cow::Owned) };
        let told = |(at, change): (usize, &Change)| -> Option<Event<K>> {
            change.told(|object, end| Cached::told(object.clone(), shared.clone(), end.of(at)))
        };
        // A list is told once, and its events would take more memory than its objects.
        if self.items.len() <= SHARED_EVENTS {
            let make = || -> Box<Vec<Option<Event<K>>>> { Box::new(self.items.iter().enumerate().map(told).collect()) };
            let events = self.events.get_or_init(|| make()).downcast_ref::<Vec<Option<Event<K>>>>();
            if let Some(events) = events {
                return events.get(at)?.as_ref().map(Cow::Borrowed);
            }
        }
        told((at, self.items.get(at)?)).map(Cow::Owned)
    }
}
