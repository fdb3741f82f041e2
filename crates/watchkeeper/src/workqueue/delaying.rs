//! A queue of work that can wait for its time.

use std::fmt;
use std::hash::Hash;
use std::ops::Deref;
use std::time::Duration;

use super::{AddOptions, WorkQueue};

/// A [`WorkQueue`] whose items can be added at a later time: client-go's `DelayingInterface`. All that a `WorkQueue` can do, this
/// can too.
///
/// Nothing runs for that: whoever waits for an item keeps the time, or notices when they come.
///
/// ```
/// use std::time::Duration;
/// use watchkeeper::workqueue::DelayingQueue;
///
/// # #[tokio::main(flavor = "current_thread")] async fn main() {
/// let queue = DelayingQueue::new();
/// queue.add_after("later", Duration::from_millis(20));
/// queue.add("now");
/// assert_eq!(*queue.get().await.expect("one"), "now");
/// assert_eq!(*queue.get().await.expect("the other, when its time has come"), "later");
/// # }
/// ```
#[derive(Clone)]
pub struct DelayingQueue<T: Eq + Hash + Clone> {
    queue: WorkQueue<T>,
}

impl<T: Eq + Hash + Clone + Send + 'static> DelayingQueue<T> {
    /// An empty queue.
    pub fn new() -> Self {
        Self::over(WorkQueue::new())
    }

    /// The same queue, which can now do this as well.
    pub fn over(queue: WorkQueue<T>) -> Self {
        Self { queue }
    }

    /// Adds an item when so long has passed; at once if that is nothing. If it waits already, the earlier time counts.
    pub fn add_after(&self, item: T, delay: Duration) {
        self.queue.add_with(item, AddOptions { after: Some(delay), ..AddOptions::default() });
    }
}

impl<T: Eq + Hash + Clone + Send + 'static> Default for DelayingQueue<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T: Eq + Hash + Clone> Deref for DelayingQueue<T> {
    type Target = WorkQueue<T>;

    fn deref(&self) -> &WorkQueue<T> {
        &self.queue
    }
}

impl<T: Eq + Hash + Clone + Send + 'static> fmt::Debug for DelayingQueue<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DelayingQueue").field("queue", &self.queue).finish()
    }
}
