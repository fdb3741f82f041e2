//! Who holds the queue up?

use std::fmt;
use std::time::Duration;

use tokio::time::Instant;

use crate::defaults::{SLOW_POP, SLOW_POP_DEPTH, SLOW_POP_MAX};

/// Times the processing of what was taken from a queue, if others wait for it.
pub(super) struct SlowPop {
    /// What waited behind it, and since when.
    waiting: Option<(usize, Instant)>,
    limit: Duration,
}

impl SlowPop {
    /// `taken` entries were taken, `depth` are left.
    pub(super) fn start(taken: usize, depth: usize) -> Self {
        let waiting = (depth > SLOW_POP_DEPTH).then(|| (depth, Instant::now()));
        let limit = SLOW_POP.saturating_mul(u32::try_from(taken).unwrap_or(u32::MAX)).min(SLOW_POP_MAX);
        Self { waiting, limit }
    }

    /// Processing has ended. Logs it if it took long.
    pub(super) fn end(&self, queue: &str, key: &dyn fmt::Debug) {
        if let Some((depth, since)) = self.waiting
            && since.elapsed() > self.limit
        {
            tracing::warn!(queue, ?key, depth, took = ?since.elapsed(), "slow processing holds up the queue");
        }
    }
}
