//! Knows how much is still to be done.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::{AcqRel, Acquire};

use super::upstream::Upstream;

/// Has synced when its upstream has, and there were as many [`finished`](Self::finished) as [`start`](Self::start):
/// client-go's `SingleFileTracker`. It is for work that is done one piece after the other. Where a piece may be dropped,
/// or several become one, as in a queue of keys, [`AsyncTracker`](super::AsyncTracker) is right.
#[derive(Default)]
pub struct SingleFileTracker {
    upstream: Upstream,
    pending: AtomicUsize,
}

impl SingleFileTracker {
    /// A tracker that has no upstream yet, and so has not synced.
    pub fn new() -> Self {
        Self::default()
    }

    /// What this follows: see [`AsyncTracker::set_upstream`](super::AsyncTracker::set_upstream).
    pub fn set_upstream(&self, has_synced: impl Fn() -> bool + Send + Sync + 'static) {
        self.upstream.set(Arc::new(has_synced));
    }

    /// There is work to be done for an initial object. Told before the work can begin.
    pub fn start(&self) {
        self.pending.fetch_add(1, AcqRel);
    }

    /// A piece of work is done.
    ///
    /// # Panics
    ///
    /// If nothing is pending. That is a bug of the caller, as it is in client-go: an earlier answer of
    /// [`has_synced`](Self::has_synced) may have been wrong. The tracker stays as it was.
    #[track_caller]
    pub fn finished(&self) {
        let before = self.pending.fetch_update(AcqRel, Acquire, |pending| pending.checked_sub(1));
        assert!(before.is_ok(), "finished without a start: has_synced() may have told so too early");
        if before == Ok(1) {
            self.upstream.idle();
        }
    }

    /// Upstream has synced, and nothing is left to be done. Upstream is asked first: what it starts until it has synced is
    /// not overlooked.
    pub fn has_synced(&self) -> bool {
        self.upstream.has_synced() == Some(true) && self.is_idle()
    }

    /// Returns when [`has_synced`](Self::has_synced): see [`AsyncTracker::synced`](super::AsyncTracker::synced).
    pub async fn synced(&self) {
        self.upstream.synced(|| self.is_idle()).await;
    }

    fn is_idle(&self) -> bool {
        self.pending.load(Acquire) == 0
    }
}

impl fmt::Debug for SingleFileTracker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SingleFileTracker({} pending)", self.pending.load(Acquire))
    }
}
