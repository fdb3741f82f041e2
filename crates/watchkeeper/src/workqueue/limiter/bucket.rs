//! So many a second, for all items together.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use super::RateLimiter;

/// A bucket of tokens, of which each try takes one: client-go's `BucketRateLimiter`, Go's `rate.Limiter`.
///
/// So many tokens come in a second, up to the bucket's size. Who finds none takes one that is still to come, and waits for it;
/// the next one waits longer. Items are not told apart.
pub struct Bucket {
    per_second: f64,
    burst: f64,
    state: Mutex<State>,
}

struct State {
    /// Below zero if tokens that are still to come are taken already.
    tokens: f64,
    at: Instant,
}

/// What waits for tokens that never come.
const NEVER: Duration = Duration::from_secs(60 * 60 * 24 * 365 * 100);

impl Bucket {
    /// So many tokens a second, and so many at once. The bucket is full at first. Without any a second, who comes after the
    /// first ones waits for ever; so do all if there is no room for one.
    pub fn new(per_second: f64, burst: u32) -> Self {
        let (per_second, burst) = (if per_second > 0.0 { per_second } else { 0.0 }, f64::from(burst));
        Self { per_second, burst, state: Mutex::new(State { tokens: burst, at: Instant::now() }) }
    }

    fn take(&self, now: Instant) -> Duration {
        // As in Go: a bucket that holds no token never has one, unless they come without end.
        if self.burst < 1.0 && self.per_second.is_finite() {
            return NEVER;
        }
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        // A clock that goes back brings no tokens, and takes none.
        let passed = now.saturating_duration_since(state.at).as_secs_f64();
        state.tokens = (state.tokens + passed * self.per_second).min(self.burst) - 1.0;
        state.at = state.at.max(now);
        if state.tokens >= 0.0 {
            return Duration::ZERO;
        }
        Duration::try_from_secs_f64(-state.tokens / self.per_second).map_or(NEVER, |wait| wait.min(NEVER))
    }
}

impl<T> RateLimiter<T> for Bucket {
    fn when(&self, _: &T) -> Duration {
        self.take(Instant::now())
    }

    fn forget(&self, _: &T) {}

    fn num_requeues(&self, _: &T) -> u32 {
        0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn after_the_first_ones_each_waits_for_a_token_of_its_own() {
        let bucket = Bucket::new(10.0, 3);
        let take = || RateLimiter::when(&bucket, &"any").as_millis();
        assert_eq!([take(), take(), take(), take(), take()], [0, 0, 0, 100, 200]);
        tokio::time::advance(Duration::from_millis(300)).await;
        assert_eq!([take(), take()], [0, 100], "those that were taken in advance have come, and one more");
        tokio::time::advance(Duration::from_secs(3600)).await;
        assert_eq!([take(), take(), take(), take()], [0, 0, 0, 100], "no more than the bucket holds");
        assert_eq!(RateLimiter::num_requeues(&bucket, &"any"), 0);
    }

    #[tokio::test(start_paused = true)]
    async fn rates_that_make_no_sense_neither_panic_nor_let_all_through() {
        for per_second in [0.0, -1.0, f64::NAN, f64::MIN_POSITIVE] {
            let bucket = Bucket::new(per_second, 1);
            let waits = [RateLimiter::when(&bucket, &1), RateLimiter::when(&bucket, &1)];
            assert_eq!(waits, [Duration::ZERO, NEVER], "{per_second}");
        }
        let endless = Bucket::new(f64::INFINITY, 0);
        assert_eq!(RateLimiter::when(&endless, &1), Duration::ZERO);
        assert_eq!(RateLimiter::when(&Bucket::new(10.0, 0), &1), NEVER, "there is no room for a token");
    }
}
