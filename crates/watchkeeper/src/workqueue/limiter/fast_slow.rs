//! A few quick tries, then slow ones.

use std::hash::Hash;
use std::time::Duration;

use super::RateLimiter;
use super::failures::Failures;

/// Each item waits `fast` for its first tries, and `slow` from then on: client-go's `ItemFastSlowRateLimiter`.
pub struct FastSlow<T> {
    fast: Duration,
    slow: Duration,
    fast_tries: u32,
    failures: Failures<T>,
}

impl<T: Eq + Hash + Clone> FastSlow<T> {
    /// Waits `fast` so many times, and `slow` after that. The failures of 100,000 items are remembered at most.
    pub fn new(fast: Duration, slow: Duration, fast_tries: u32) -> Self {
        Self { fast, slow, fast_tries, failures: Failures::new() }
    }

    /// Remembers the failures of so many items at most. Of those that failed last, half as many are known for certain.
    pub fn remember(mut self, items: usize) -> Self {
        self.failures = Failures::with_capacity(items);
        self
    }
}

impl<T: Eq + Hash + Clone + Send> RateLimiter<T> for FastSlow<T> {
    fn when(&self, item: &T) -> Duration {
        if self.failures.count(item) < self.fast_tries { self.fast } else { self.slow }
    }

    fn forget(&self, item: &T) {
        self.failures.forget(item);
    }

    fn num_requeues(&self, item: &T) -> u32 {
        self.failures.get(item)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_tries_of_each_item_are_fast_and_the_others_slow() {
        let (fast, slow) = (Duration::from_millis(5), Duration::from_secs(10));
        let limiter = FastSlow::new(fast, slow, 3);
        for wait in [fast, fast, fast, slow, slow] {
            assert_eq!(limiter.when(&"one"), wait);
        }
        assert_eq!(limiter.num_requeues(&"one"), 5);
        assert_eq!((limiter.when(&"two"), limiter.num_requeues(&"two")), (fast, 1));
        limiter.forget(&"one");
        assert_eq!((limiter.num_requeues(&"one"), limiter.when(&"one")), (0, fast));
    }
}
