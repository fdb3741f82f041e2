//! The slowest of several.

use std::time::Duration;

use super::RateLimiter;

/// Each item waits as long as the slowest of several limiters says: client-go's `MaxOfRateLimiter`. All of them are asked, and
/// so all of them count.
pub struct MaxOf<T> {
    limiters: Vec<Box<dyn RateLimiter<T>>>,
}

impl<T> MaxOf<T> {
    /// None: nothing waits.
    pub fn new() -> Self {
        Self { limiters: Vec::new() }
    }

    /// Another one.
    #[must_use]
    pub fn and(mut self, limiter: impl RateLimiter<T> + 'static) -> Self {
        self.limiters.push(Box::new(limiter));
        self
    }
}

impl<T> Default for MaxOf<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T> RateLimiter<T> for MaxOf<T> {
    fn when(&self, item: &T) -> Duration {
        self.limiters.iter().map(|limiter| limiter.when(item)).max().unwrap_or_default()
    }

    fn forget(&self, item: &T) {
        for limiter in &self.limiters {
            limiter.forget(item);
        }
    }

    fn num_requeues(&self, item: &T) -> u32 {
        self.limiters.iter().map(|limiter| limiter.num_requeues(item)).max().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Exponential, FastSlow};
    use super::*;

    #[test]
    fn the_slowest_decides_and_all_count() {
        let (fast, slow) = (Duration::from_millis(5), Duration::from_secs(3));
        let limiter = MaxOf::new()
            .and(FastSlow::new(fast, slow, 3))
            .and(Exponential::new(Duration::from_millis(1), Duration::from_secs(1)));
        for millis in [5, 5, 5, 3000, 3000] {
            assert_eq!(limiter.when(&"one"), Duration::from_millis(millis));
        }
        assert_eq!(limiter.num_requeues(&"one"), 5);
        assert_eq!((limiter.when(&"two"), limiter.num_requeues(&"two")), (fast, 1));
        limiter.forget(&"one");
        assert_eq!((limiter.num_requeues(&"one"), limiter.when(&"one")), (0, fast));
        assert_eq!(MaxOf::new().when(&"none"), Duration::ZERO);
    }
}
