//! Not longer than so.

use std::time::Duration;

use super::RateLimiter;

/// Each item waits as another limiter says, but not longer than `max`: client-go's `WithMaxWaitRateLimiter`.
pub struct MaxWait<L> {
    limiter: L,
    max: Duration,
}

impl<L> MaxWait<L> {
    /// What `limiter` says, but `max` at most.
    pub fn new(limiter: L, max: Duration) -> Self {
        Self { limiter, max }
    }
}

impl<T, L: RateLimiter<T>> RateLimiter<T> for MaxWait<L> {
    fn when(&self, item: &T) -> Duration {
        self.limiter.when(item).min(self.max)
    }

    fn forget(&self, item: &T) {
        self.limiter.forget(item);
    }

    fn num_requeues(&self, item: &T) -> u32 {
        self.limiter.num_requeues(item)
    }
}

#[cfg(test)]
mod tests {
    use super::super::Exponential;
    use super::*;

    #[test]
    fn the_wait_is_cut_and_the_count_is_not() {
        let limiter = MaxWait::new(
            Exponential::new(Duration::from_millis(1), Duration::from_secs(1000)),
            Duration::from_millis(4),
        );
        for millis in [1, 2, 4, 4, 4] {
            assert_eq!(limiter.when(&"one"), Duration::from_millis(millis));
        }
        assert_eq!(limiter.num_requeues(&"one"), 5);
        limiter.forget(&"one");
        assert_eq!((limiter.num_requeues(&"one"), limiter.when(&"one")), (0, Duration::from_millis(1)));
    }
}
