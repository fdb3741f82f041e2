//! What a tracker follows, and who waits for both.

use std::sync::{Arc, PoisonError, RwLock};

use tokio::sync::Notify;

use crate::defaults::SYNCED_POLL;

type HasSynced = Arc<dyn Fn() -> bool + Send + Sync>;

#[derive(Default)]
pub(super) struct Upstream {
    has_synced: RwLock<Option<HasSynced>>,
    /// Nothing is left to be done, or there is another upstream.
    changed: Notify,
}

impl Upstream {
    pub(super) fn set(&self, has_synced: HasSynced) {
        let mut here = self.has_synced.write().unwrap_or_else(PoisonError::into_inner);
        let old = here.replace(has_synced);
        drop(here);
        drop(old);
        self.changed.notify_waiters();
    }

    /// Nothing is left to be done for now. To be called with no lock held.
    pub(super) fn idle(&self) {
        self.changed.notify_waiters();
    }

    /// None before there is an upstream. Calls it with no lock held: it may take its time, and locks of its own.
    pub(super) fn has_synced(&self) -> Option<bool> {
        let has_synced = self.has_synced.read().unwrap_or_else(PoisonError::into_inner).clone();
        has_synced.map(|has_synced| has_synced())
    }

    /// Returns when upstream has synced and, after that, nothing is left. Nobody tells when upstream has: it is asked
    /// again and again until then.
    pub(super) async fn synced(&self, is_idle: impl Fn() -> bool) {
        loop {
            // What happens from here on is noticed, also before it is waited for.
            let changed = self.changed.notified();
            match self.has_synced() {
                Some(true) if is_idle() => return,
                Some(true) | None => changed.await,
                Some(false) => {
                    tokio::select! {
                        () = changed => {}
                        () = tokio::time::sleep(SYNCED_POLL) => {}
                    }
                }
            }
        }
    }
}
