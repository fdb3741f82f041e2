//! An item that is being worked on.

use std::fmt;
use std::hash::Hash;
use std::ops::Deref;
use std::sync::Arc;

use super::core::Core;
use super::state::Nanos;

/// An item that was taken out of a queue. Until it is dropped nobody else gets it.
///
/// Dropping it says that the work is done, however that ended: by a return, an error, a panic or the end of the task. If the
/// item was added meanwhile, it comes again then.
#[must_use = "dropping the item says that the work on it is done"]
pub struct Item<T: Eq + Hash + Clone> {
    core: Arc<Core<T>>,
    at: u32,
    /// When the work began.
    began: Nanos,
    item: T,
    priority: i32,
}

impl<T: Eq + Hash + Clone> Item<T> {
    pub(super) fn new(core: Arc<Core<T>>, at: u32, began: Nanos, item: T, priority: i32) -> Self {
        Self { core, at, began, item, priority }
    }

    /// The priority that it had in the queue.
    pub fn priority(&self) -> i32 {
        self.priority
    }

    /// Whatever a limiter said, it is not to be tried again: it went well, or is given up. A time that was asked for stays.
    pub(crate) fn cancel_retry(&self) {
        self.core.cancel_retry(self.at);
    }

    /// The work is done: client-go's `Done`. The same as dropping it.
    pub fn done(self) {}
}

impl<T: Eq + Hash + Clone> Deref for Item<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.item
    }
}

impl<T: Eq + Hash + Clone> Drop for Item<T> {
    fn drop(&mut self) {
        self.core.done(self.at, self.began);
    }
}

impl<T: Eq + Hash + Clone + fmt::Debug> fmt::Debug for Item<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Item").field(&self.item).finish()
    }
}
