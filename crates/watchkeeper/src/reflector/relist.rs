//! Listing again because somebody asks for it.
//!
//! Whoever compares the copy with the server, or restores a backup, may know that it is wrong before the watch does. Such
//! a list is no failure, and a request that comes while another one waits is the same request.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};

use tokio::sync::Notify;
use tokio::time::{Instant, sleep_until};

use crate::defaults;

/// Asks a reflector to list everything again. Cheap to clone.
///
/// ```
/// # use watchkeeper::*;
/// # fn with(reflector: Reflector) {
/// let relister = reflector.relister();
/// // Later, while the reflector runs, and something does not add up:
/// relister.relist();
/// # }
/// ```
#[derive(Clone, Default)]
pub struct Relister(Arc<Request>);

/// The reflector's side is this too: whether a list is asked for, and how to wait for that.
#[derive(Default)]
struct Request {
    pending: AtomicBool,
    made: Notify,
}

impl Relister {
    /// The reflector lists again soon, with a consistent read: what it knows may be wrong, and so may be what the server
    /// has in memory. At most one list a second comes of it. A request while a list is being read leads to another list
    /// after that one; a request during a backoff, or before the reflector runs, is served by the list that comes next
    /// in any case.
    ///
    /// It is no error, and nobody is told of one. [`Reason::Requested`](crate::Reason::Requested) counts those lists. A
    /// reflector that has stopped does nothing.
    pub fn relist(&self) {
        self.0.pending.store(true, SeqCst);
        self.0.made.notify_one();
    }

    /// A list begins: it serves all requests that were made before. Says whether there were any.
    pub(super) fn take(&self) -> bool {
        self.0.pending.swap(false, SeqCst)
    }

    /// Waits until a list is asked for, and until a second has passed since the last one began. The request stays. May
    /// be dropped and called again.
    pub(super) async fn requested(&self, last_list: Option<Instant>) {
        while !self.0.pending.load(SeqCst) {
            self.0.made.notified().await;
        }
        if let Some(last) = last_list {
            sleep_until(last + defaults::MIN_WATCH_INTERVAL).await;
        }
    }
}

impl std::fmt::Debug for Relister {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Relister").field("requested", &self.0.pending.load(SeqCst)).finish()
    }
}
