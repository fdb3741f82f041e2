//! Retrying for a limited time.

use std::time::Duration;

use tokio::time::Instant;

/// Allows retries for a time after the first failure of a kind: client-go's `RetryWithDeadline`.
///
/// Other outcomes do not move the window; a time without such a failure does.
#[derive(Debug)]
pub(super) struct RetryWithDeadline {
    allowed_for: Duration,
    reset_after: Duration,
    first: Option<Instant>,
    last: Option<Instant>,
}

impl RetryWithDeadline {
    /// With `allowed_for` zero nothing is retried.
    pub(super) fn new(allowed_for: Duration, reset_after: Duration) -> Self {
        Self { allowed_for, reset_after, first: None, last: None }
    }

    /// Such a failure happened. May it be retried?
    pub(super) fn after_failure(&mut self) -> bool {
        let now = Instant::now();
        if self.allowed_for.is_zero() {
            return false;
        }
        if self.last.is_none_or(|last| now.duration_since(last) >= self.reset_after) {
            self.first = Some(now);
        }
        self.last = Some(now);
        self.first.is_some_and(|first| now.duration_since(first) < self.allowed_for)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn seconds(seconds: u64) {
        tokio::time::advance(Duration::from_secs(seconds)).await;
    }

    #[tokio::test(start_paused = true)]
    async fn retries_only_within_the_time_after_the_first_failure() {
        let mut retry = RetryWithDeadline::new(Duration::from_secs(30), Duration::from_secs(60));
        assert!(retry.after_failure());
        seconds(29).await;
        assert!(retry.after_failure());
        seconds(1).await;
        assert!(!retry.after_failure(), "30 s after the first");
        seconds(59).await;
        assert!(!retry.after_failure(), "less than a minute after the last");
        seconds(60).await;
        assert!(retry.after_failure(), "a minute without a failure begins anew");
    }

    #[tokio::test(start_paused = true)]
    async fn no_time_is_no_retry() {
        assert!(!RetryWithDeadline::new(Duration::ZERO, Duration::from_secs(60)).after_failure());
    }
}
