//! Who needs an informer?
//!
//! Informers, listers, streams and running handlers hold a [`Lease`]. With the last of them an informer is unused, and stops
//! after a while. Who comes in the meantime keeps it; who comes later gets a new one, from a factory.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures::future::BoxFuture;
use tokio::sync::Notify;

use super::core::Core;
use crate::lister::Keeper;

/// Keeps an informer running.
pub(crate) struct Lease(Arc<Core>);

#[derive(Default)]
pub(super) struct Leases {
    state: Mutex<State>,
    bell: Notify,
}

#[derive(Default)]
struct State {
    count: usize,
    /// There will be no others.
    closed: bool,
}

impl Leases {
    /// Returns when nobody has held one for so long. From then on nobody can get one.
    pub(super) async fn until_unused(&self, linger: Duration) {
        loop {
            while self.state().count > 0 {
                self.bell.notified().await;
            }
            tokio::select! {
                biased;
                // Somebody has come and gone: the time begins anew.
                () = self.bell.notified() => {}
                () = tokio::time::sleep(linger) => {
                    let mut state = self.state();
                    if state.count == 0 {
                        state.closed = true;
                        return;
                    }
                }
            }
        }
    }

    /// Nobody can get one any more.
    pub(super) fn close(&self) {
        self.state().closed = true;
    }

    pub(super) fn is_closed(&self) -> bool {
        self.state().closed
    }

    pub(super) fn are_any(&self) -> bool {
        self.state().count > 0
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Lease {
    /// None if the informer is stopping, or has stopped.
    pub(crate) fn of(core: &Arc<Core>) -> Option<Self> {
        let mut state = core.leases.state();
        if state.closed {
            return None;
        }
        state.count += 1;
        drop(state);
        Some(Self(core.clone()))
    }

    /// The first one of an informer that has just been made.
    pub(crate) fn first(core: Arc<Core>) -> Self {
        core.leases.state().count += 1;
        Self(core)
    }

    pub(crate) fn core(&self) -> &Arc<Core> {
        &self.0
    }
}

impl Keeper for Lease {
    fn has_synced(&self) -> bool {
        self.0.has_synced()
    }

    fn stopped(&self) -> BoxFuture<'_, ()> {
        Box::pin(self.0.until_stopped())
    }
}

impl Clone for Lease {
    fn clone(&self) -> Self {
        self.0.leases.state().count += 1;
        Self(self.0.clone())
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        let mut state = self.0.leases.state();
        state.count -= 1;
        if state.count == 0 {
            self.0.leases.bell.notify_one();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn who_comes_and_goes_while_it_lingers_makes_it_linger_anew() {
        let leases = Arc::new(Leases::default());
        let until = tokio::spawn({
            let leases = leases.clone();
            async move { leases.until_unused(Duration::from_secs(30)).await }
        });
        tokio::time::sleep(Duration::from_secs(20)).await;
        leases.state().count += 1;
        tokio::time::sleep(Duration::from_secs(5)).await;
        leases.state().count -= 1;
        leases.bell.notify_one();
        tokio::time::sleep(Duration::from_secs(29)).await;
        assert!(!until.is_finished() && !leases.state().closed);
        tokio::time::sleep(Duration::from_secs(2)).await;
        assert!(until.is_finished() && leases.state().closed);
    }
}
