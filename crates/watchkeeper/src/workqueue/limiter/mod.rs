//! How long has an item to wait before it is tried again?
//!
//! A [`RateLimiter`] is asked each time, and told when an item has succeeded. Five come with the library; each can be the part
//! of another:
//!
//! | limiter | an item waits |
//! |---|---|
//! | [`Exponential`] | twice as long with each failure |
//! | [`FastSlow`] | a short time for the first few failures, then a long one |
//! | [`Bucket`] | until there is a token, of which so many come in a second, for all items together |
//! | [`MaxOf`] | as long as the slowest of several limiters says |
//! | [`MaxWait`] | as another limiter says, but not longer than so |
//!
//! [`default_controller`] is what controllers use.
//!
//! ```
//! use std::time::Duration;
//! use watchkeeper::workqueue::limiter::{Exponential, RateLimiter as _};
//!
//! let limiter = Exponential::new(Duration::from_millis(5), Duration::from_secs(1000));
//! assert_eq!(limiter.when(&"shop/web"), Duration::from_millis(5));
//! assert_eq!(limiter.when(&"shop/web"), Duration::from_millis(10));
//! limiter.forget(&"shop/web"); // it went well
//! assert_eq!(limiter.when(&"shop/web"), Duration::from_millis(5));
//! ```

mod bucket;
mod exponential;
mod failures;
mod fast_slow;
mod max_of;
mod max_wait;

use std::hash::Hash;
use std::sync::Arc;
use std::time::Duration;

pub use bucket::Bucket;
pub use exponential::Exponential;
pub(crate) use failures::Failures;
pub use fast_slow::FastSlow;
pub use max_of::MaxOf;
pub use max_wait::MaxWait;

use crate::defaults::{
    CONTROLLER_BACKOFF_INITIAL, CONTROLLER_BACKOFF_MAX, CONTROLLER_BUCKET_BURST, CONTROLLER_BUCKET_PER_SECOND,
};

/// Decides how long items wait: client-go's `RateLimiter`.
pub trait RateLimiter<T>: Send + Sync {
    /// How long the item has to wait this time. Each call counts.
    fn when(&self, item: &T) -> Duration;

    /// The item is done with, for good or ill: nothing is remembered of it any more.
    fn forget(&self, item: &T);

    /// How often the item was asked about since it was forgotten.
    fn num_requeues(&self, item: &T) -> u32;
}

impl<T, L: RateLimiter<T> + ?Sized> RateLimiter<T> for Arc<L> {
    fn when(&self, item: &T) -> Duration {
        (**self).when(item)
    }

    fn forget(&self, item: &T) {
        (**self).forget(item);
    }

    fn num_requeues(&self, item: &T) -> u32 {
        (**self).num_requeues(item)
    }
}

impl<T, L: RateLimiter<T> + ?Sized> RateLimiter<T> for Box<L> {
    fn when(&self, item: &T) -> Duration {
        (**self).when(item)
    }

    fn forget(&self, item: &T) {
        (**self).forget(item);
    }

    fn num_requeues(&self, item: &T) -> u32 {
        (**self).num_requeues(item)
    }
}

/// What controllers use: from 5 ms to 1000 s for each item, and ten a second for all together, after the first hundred.
/// client-go's `DefaultTypedControllerRateLimiter`.
pub fn default_controller<T: Eq + Hash + Clone + Send + 'static>() -> MaxOf<T> {
    MaxOf::new()
        .and(Exponential::new(CONTROLLER_BACKOFF_INITIAL, CONTROLLER_BACKOFF_MAX))
        .and(Bucket::new(CONTROLLER_BUCKET_PER_SECOND, CONTROLLER_BUCKET_BURST))
}
