//! How an item is added.

use std::time::Duration;

/// How an item is added: see [`WorkQueue::add_with`](super::WorkQueue::add_with).
///
/// ```
/// use std::time::Duration;
/// use watchkeeper::workqueue::AddOptions;
///
/// let later = AddOptions { priority: -10, after: Some(Duration::from_secs(5)), ..AddOptions::default() };
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct AddOptions {
    /// Items of a higher priority come first; within one, who comes first. Zero by default.
    pub priority: i32,
    /// Not before so long.
    pub after: Option<Duration>,
    /// As the queue's limiter says, and not before `after`. Without a limiter there is nothing to wait for.
    pub rate_limited: bool,
}
