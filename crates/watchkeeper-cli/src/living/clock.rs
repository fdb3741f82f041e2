//! What time is it in the cluster? Tokio's clock, which tests can pause, on a wall clock.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use tokio::time::Instant;

/// The cluster's time. Cheap to copy.
#[derive(Debug, Clone, Copy)]
pub(super) struct Clock {
    base: Timestamp,
    start: Instant,
}

impl Clock {
    pub(super) fn starting_at(base: Timestamp) -> Self {
        Self { base, start: Instant::now() }
    }

    /// Now, to the nanosecond.
    pub(super) fn exact(&self) -> Timestamp {
        let passed = SignedDuration::try_from(self.start.elapsed()).unwrap_or(SignedDuration::MAX);
        self.base.saturating_add(passed).unwrap_or(Timestamp::MAX)
    }

    /// Now, as objects have it: in whole seconds.
    pub(super) fn now(&self) -> Timestamp {
        seconds(self.exact())
    }
}

/// A time without what is below a second.
pub(super) fn seconds(time: Timestamp) -> Timestamp {
    Timestamp::from_second(time.as_second()).unwrap_or(time)
}

/// So long before a time.
pub(super) fn before(time: Timestamp, by: Duration) -> Timestamp {
    let by = SignedDuration::try_from(by).unwrap_or(SignedDuration::MAX);
    time.saturating_sub(by).unwrap_or(Timestamp::MIN)
}

/// How long it is until something that takes `length` from `start` on; `None` when it is over.
pub(super) fn remaining(start: Timestamp, length: Duration, now: Timestamp) -> Option<Duration> {
    let passed = Duration::try_from(now.duration_since(start)).unwrap_or_default();
    length.checked_sub(passed).filter(|left| !left.is_zero())
}

/// `2026-11-15T22:34:10.000000Z`, as leases have it.
pub(super) fn micro(time: Timestamp) -> String {
    time.strftime("%Y-%m-%dT%H:%M:%S%.6fZ").to_string()
}
