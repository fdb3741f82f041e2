//! Something that happens once and stays so.

use tokio_util::sync::CancellationToken;

/// A flag that is raised once, and that one can wait for.
#[derive(Clone, Default)]
pub(crate) struct Flag(CancellationToken);

impl Flag {
    pub(crate) fn raise(&self) {
        self.0.cancel();
    }

    pub(crate) fn is_raised(&self) -> bool {
        self.0.is_cancelled()
    }

    pub(crate) async fn raised(&self) {
        self.0.cancelled().await;
    }
}
