//! A queue of work that is tried again, less and less often.

use std::fmt;
use std::hash::Hash;
use std::ops::Deref;
use std::sync::Arc;

use super::limiter::RateLimiter;
use super::{AddOptions, DelayingQueue, WorkQueue};

/// A [`DelayingQueue`] whose limiter says when a failed item is tried again: client-go's `RateLimitingInterface`. All that a
/// `DelayingQueue` can do, this can too.
///
/// ```
/// use watchkeeper::workqueue::{RateLimitingQueue, limiter};
///
/// # #[tokio::main(flavor = "current_thread")] async fn main() {
/// let queue = RateLimitingQueue::new(limiter::default_controller());
/// queue.add("shop/web");
/// let item = queue.get().await.expect("an item");
/// let worked = false;
/// if worked {
///     queue.forget(&item); // the next failure is the first again
/// } else {
///     queue.add_rate_limited(*item); // in 5 ms, then in 10, 20, 40
/// }
/// assert_eq!(queue.num_requeues(&item), 1);
/// # }
/// ```
pub struct RateLimitingQueue<T: Eq + Hash + Clone> {
    queue: DelayingQueue<T>,
    limiter: Arc<dyn RateLimiter<T>>,
}

impl<T: Eq + Hash + Clone + Send + 'static> RateLimitingQueue<T> {
    /// An empty queue.
    pub fn new(limiter: impl RateLimiter<T> + 'static) -> Self {
        Self::over(WorkQueue::new(), limiter)
    }

    /// The same queue, which can now do this as well.
    pub fn over(queue: WorkQueue<T>, limiter: impl RateLimiter<T> + 'static) -> Self {
        Self { queue: DelayingQueue::over(queue), limiter: Arc::new(limiter) }
    }

    /// Adds an item when the limiter says that it may be tried again.
    pub fn add_rate_limited(&self, item: T) {
        self.add_with(item, AddOptions { rate_limited: true, ..AddOptions::default() });
    }

    /// Adds an item with a priority, at a later time, or when the limiter says: the later of both, if both are given.
    pub fn add_with(&self, item: T, options: AddOptions) {
        let after = match options.rate_limited {
            true => Some(self.limiter.when(&item).max(options.after.unwrap_or_default())),
            false => options.after,
        };
        self.queue.add_with(item, AddOptions { after, ..options });
    }

    /// The item is done with, for good or ill: its next failure is the first again. It stays in the queue if it is there.
    pub fn forget(&self, item: &T) {
        self.limiter.forget(item);
    }

    /// How often the item was added with [`add_rate_limited`](Self::add_rate_limited) since it was forgotten.
    pub fn num_requeues(&self, item: &T) -> u32 {
        self.limiter.num_requeues(item)
    }
}

impl<T: Eq + Hash + Clone> Deref for RateLimitingQueue<T> {
    type Target = DelayingQueue<T>;

    fn deref(&self) -> &DelayingQueue<T> {
        &self.queue
    }
}

impl<T: Eq + Hash + Clone> Clone for RateLimitingQueue<T> {
    fn clone(&self) -> Self {
        Self { queue: self.queue.clone(), limiter: self.limiter.clone() }
    }
}

impl<T: Eq + Hash + Clone + Send + 'static> fmt::Debug for RateLimitingQueue<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RateLimitingQueue").field("queue", &self.queue).finish_non_exhaustive()
    }
}
