//! Twice as long with each failure.

use std::hash::Hash;
use std::time::Duration;

use super::RateLimiter;
use super::failures::Failures;

/// Each item waits `base`, then twice, four times, eight times as long, up to `max`: client-go's
/// `ItemExponentialFailureRateLimiter`.
pub struct Exponential<T> {
    base: Duration,
    max: Duration,
    failures: Failures<T>,
}

impl<T: Eq + Hash + Clone> Exponential<T> {
    /// Waits from `base` to `max`. The failures of 100,000 items are remembered at most.
    pub fn new(base: Duration, max: Duration) -> Self {
        Self { base, max, failures: Failures::new() }
    }

    /// Remembers the failures of so many items at most. Of those that failed last, half as many are known for certain.
    pub fn remember(mut self, items: usize) -> Self {
        self.failures = Failures::with_capacity(items);
        self
    }

    /// What an item waits that has failed so often before.
    fn wait(&self, failures: u32) -> Duration {
        let doubled = 1_u128.checked_shl(failures).and_then(|factor| self.base.as_nanos().checked_mul(factor));
        match doubled.map(u64::try_from) {
            Some(Ok(nanos)) => Duration::from_nanos(nanos).min(self.max),
            _ => self.max,
        }
    }
}

impl<T: Eq + Hash + Clone + Send> RateLimiter<T> for Exponential<T> {
    fn when(&self, item: &T) -> Duration {
        self.wait(self.failures.count(item))
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
    fn each_failure_doubles_the_wait_of_its_item_until_it_is_forgotten() {
        let limiter = Exponential::new(Duration::from_millis(1), Duration::from_secs(1));
        for millis in [1, 2, 4, 8, 16] {
            assert_eq!(limiter.when(&"one"), Duration::from_millis(millis));
        }
        assert_eq!(limiter.num_requeues(&"one"), 5);
        assert_eq!(limiter.when(&"two"), Duration::from_millis(1));
        limiter.forget(&"one");
        assert_eq!((limiter.num_requeues(&"one"), limiter.when(&"one")), (0, Duration::from_millis(1)));
    }

    #[test]
    fn however_often_it_failed_the_wait_is_the_longest_at_most() {
        for max in [Duration::from_secs(1000), Duration::from_secs(60 * 60 * 24 * 365 * 1000)] {
            let limiter = Exponential::<&str>::new(Duration::from_millis(5), max);
            let mut before = Duration::ZERO;
            for failures in 0..200 {
                let wait = limiter.wait(failures);
                assert!(wait >= before && wait <= max, "{wait:?} after {failures}");
                before = wait;
            }
            assert_eq!(limiter.wait(u32::MAX), max);
        }
        assert_eq!(Exponential::<&str>::new(Duration::ZERO, Duration::from_secs(1)).wait(40), Duration::ZERO);
    }
}
