//! What a handler is, and what can be said about it.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use super::buffer::Buffer;
use crate::{Cached, Cause, Event};

/// Code that is told of changes: client-go's `ResourceEventHandler`. What is not implemented does nothing.
///
/// Calls come one after the other. They should be short: put the key into a queue, and let others do the work. A handler
/// that has to wait for something is better off with [`HandlerOptions::blocking`], or with
/// [`events`](crate::SharedInformer::events), which is a stream.
pub trait EventHandler<K>: Send + 'static {
    /// There is a new object.
    fn on_add(&mut self, object: &Cached<K>, cause: Cause) {
        let _ = (object, cause);
    }

    /// An object changed, or is said again.
    fn on_update(&mut self, old: &Cached<K>, new: &Cached<K>, cause: Cause) {
        let _ = (old, new, cause);
    }

    /// An object is gone. `last` is its last state if `final_state_known`, else what was known before: see
    /// [`Event::Deleted`].
    fn on_delete(&mut self, last: &Cached<K>, final_state_known: bool, cause: Cause) {
        let _ = (last, final_state_known, cause);
    }

    /// Anything happened. Calls one of the others.
    fn on_event(&mut self, event: &Event<K>) {
        match event {
            Event::Added { object, cause } => self.on_add(object, *cause),
            Event::Updated { old, new, cause } => self.on_update(old, new, *cause),
            Event::Deleted { last, final_state_known, cause } => self.on_delete(last, *final_state_known, *cause),
        }
    }
}

/// What a handler is called by its type. A closure is called by the function that it stands in.
pub(super) fn name_of(type_name: &str) -> Box<str> {
    crate::lister::without_paths(&type_name.replace("::{{closure}}", ""))
}

/// A closure as a handler.
pub(super) struct Closure<F>(pub(super) F);

impl<K, F: FnMut(&Event<K>) + Send + 'static> EventHandler<K> for Closure<F> {
    fn on_event(&mut self, event: &Event<K>) {
        (self.0)(event);
    }
}

pub(super) type Filter<K> = Arc<dyn Fn(&Cached<K>) -> bool + Send + Sync>;

/// How a handler is to be told.
///
/// ```
/// use std::time::Duration;
/// use k8s_openapi::api::core::v1::Pod;
/// use watchkeeper::{Buffer, HandlerOptions};
///
/// let options = HandlerOptions::<Pod>::new()
///     .name("scheduler")
///     .resync_period(Duration::from_secs(600))
///     .filter(|pod| !pod.is_deleting())
///     .buffer(Buffer::Coalesce);
/// ```
#[must_use]
pub struct HandlerOptions<K> {
    pub(super) name: Option<Box<str>>,
    pub(super) resync: Option<Duration>,
    pub(super) buffer: Buffer,
    pub(super) filter: Option<Filter<K>>,
    pub(super) tell_unchanged: bool,
    pub(super) blocking: bool,
}

impl<K> HandlerOptions<K> {
    /// The defaults.
    pub fn new() -> Self {
        Self {
            name: None,
            resync: None,
            buffer: Buffer::default(),
            filter: None,
            tell_unchanged: false,
            blocking: false,
        }
    }

    /// What logs and metrics call it; by default the name of its type. A name that is taken gets a number.
    pub fn name(mut self, name: impl Into<Box<str>>) -> Self {
        self.name = Some(name.into());
        self
    }

    /// How often everything is said again; zero is never. By default as the informer says. Less than a second becomes a
    /// second.
    ///
    /// A handler with a period also hears of objects that a list found unchanged. It is not told everything again while it
    /// has not heard the last of the time before.
    pub fn resync_period(mut self, period: Duration) -> Self {
        self.resync = Some(period);
        self
    }

    /// What becomes of changes while the handler is busy.
    pub fn buffer(mut self, buffer: Buffer) -> Self {
        self.buffer = buffer;
        self
    }

    /// Which objects the handler hears of: client-go's `FilteringResourceEventHandler`. An object that begins to pass is
    /// added for the handler, one that no longer does is deleted, with the last state that did. It is asked once for each
    /// event that is no deletion, where the handler runs. One that decodes does so each time: labels and names are at hand
    /// without.
    pub fn filter(mut self, filter: impl Fn(&Cached<K>) -> bool + Send + Sync + 'static) -> Self {
        self.filter = Some(Arc::new(filter));
        self
    }

    /// Whether to be told of objects that a list found unchanged; false by default, unless there is a resync period.
    pub fn tell_unchanged(mut self, tell: bool) -> Self {
        self.tell_unchanged = tell;
        self
    }

    /// Gives the handler a thread of its own, so that it may block: on a lock, a file, a database.
    pub fn blocking(mut self) -> Self {
        self.blocking = true;
        self
    }
}

impl<K> Default for HandlerOptions<K> {
    fn default() -> Self {
        Self::new()
    }
}

impl<K> fmt::Debug for HandlerOptions<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HandlerOptions")
            .field("name", &self.name)
            .field("resync", &self.resync)
            .field("buffer", &self.buffer)
            .field("filter", &self.filter.is_some())
            .field("blocking", &self.blocking)
            .finish()
    }
}
