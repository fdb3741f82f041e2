//! What time is it? Tokio's clock, which tests can pause, on a wall clock that begins where the builder said.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use tokio::time::Instant;

/// Thirty years: nobody waits for more, and an `Instant` has room for it.
pub(crate) const FOR_EVER: Duration = Duration::from_secs(30 * 365 * 86_400);

/// A moment after another. Clients choose how much later, and any number will do.
pub(crate) fn later(moment: Instant, by: Duration) -> Instant {
    moment + by.min(FOR_EVER)
}

/// The server's time.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Clock {
    base: Timestamp,
    start: Instant,
}

impl Clock {
    pub(crate) fn starting_at(base: Timestamp) -> Self {
        Self { base, start: Instant::now() }
    }

    /// Now, as metadata has it: `2026-11-15T22:34:10Z`.
    pub(crate) fn now(&self) -> String {
        text(self.timestamp())
    }

    /// So many seconds from now.
    pub(crate) fn after(&self, seconds: i64) -> String {
        text(self.timestamp().saturating_add(SignedDuration::from_secs(seconds)).unwrap_or(Timestamp::MAX))
    }

    /// A time of the metadata, moved by seconds, but not into the past.
    pub(crate) fn moved(&self, time: &str, seconds: i64) -> String {
        let now = self.timestamp();
        let time: Timestamp = time.parse().unwrap_or(now);
        text(time.saturating_add(SignedDuration::from_secs(seconds)).unwrap_or(now).max(now))
    }

    pub(crate) fn timestamp(&self) -> Timestamp {
        let passed = SignedDuration::try_from(self.start.elapsed()).unwrap_or(SignedDuration::MAX);
        self.base.saturating_add(passed).unwrap_or(Timestamp::MAX)
    }
}

/// A time as metadata has it.
pub(crate) fn text(time: Timestamp) -> String {
    time.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}
