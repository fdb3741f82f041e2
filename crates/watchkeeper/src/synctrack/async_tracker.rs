//! Knows which keys are still being worked on.

use std::fmt;
use std::hash::Hash;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use hashbrown::HashSet;

use super::upstream::Upstream;

/// Has synced when its upstream has, and every key that was [started](Self::start) is [finished](Self::finished):
/// client-go's `AsyncTracker`. See [the module](super) for an example.
pub struct AsyncTracker<T> {
    upstream: Upstream,
    pending: Mutex<HashSet<T>>,
}

impl<T: Eq + Hash> AsyncTracker<T> {
    /// A tracker that has no upstream yet, and so has not synced.
    pub fn new() -> Self {
        Self { upstream: Upstream::default(), pending: Mutex::default() }
    }

    /// What this follows: tells whether everything that is initial has been started, as the handler's or the informer's
    /// `has_synced` does. It must not say so before the last [`start`](Self::start) has returned. Of several the last
    /// counts.
    pub fn set_upstream(&self, has_synced: impl Fn() -> bool + Send + Sync + 'static) {
        self.upstream.set(Arc::new(has_synced));
    }

    /// There is work to be done on an initial key. Told before the work can begin. A key that is started twice is
    /// finished once.
    pub fn start(&self, key: T) {
        self.pending().insert(key);
    }

    /// The work on a key is done. For one that was not started nothing happens, so that workers need not know which keys
    /// are initial ones.
    pub fn finished(&self, key: &T) {
        let mut pending = self.pending();
        let done = pending.take(key);
        let is_idle = done.is_some() && pending.is_empty();
        drop(pending);
        if is_idle {
            self.upstream.idle();
        }
    }

    /// Upstream has synced, and nothing is left to be done. Upstream is asked first: what it starts until it has synced is
    /// not overlooked.
    pub fn has_synced(&self) -> bool {
        self.upstream.has_synced() == Some(true) && self.pending().is_empty()
    }

    /// Returns when [`has_synced`](Self::has_synced). As long as upstream has not, it is asked every
    /// [`SYNCED_POLL`](crate::defaults::SYNCED_POLL). Dropping this leaves nothing behind.
    pub async fn synced(&self) {
        self.upstream.synced(|| self.pending().is_empty()).await;
    }

    fn pending(&self) -> MutexGuard<'_, HashSet<T>> {
        self.pending.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<T: Eq + Hash> Default for AsyncTracker<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T: Eq + Hash> fmt::Debug for AsyncTracker<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "AsyncTracker({} pending)", self.pending().len())
    }
}
