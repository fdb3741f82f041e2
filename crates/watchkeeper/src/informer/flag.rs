//! Something that happens once and stays so.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio_util::sync::CancellationToken;

/// A flag that is raised once, and that one can wait for.
#[derive(Clone, Default)]
pub(crate) struct Flag {
    /// The token knows too, behind a lock; and handlers look for each event.
    is_raised: Arc<AtomicBool>,
    token: CancellationToken,
}

impl Flag {
    pub(crate) fn raise(&self) {
        self.is_raised.store(true, Ordering::SeqCst);
        self.token.cancel();
    }

    pub(crate) fn is_raised(&self) -> bool {
        self.is_raised.load(Ordering::SeqCst)
    }

    pub(crate) async fn raised(&self) {
        self.token.cancelled().await;
    }
}
