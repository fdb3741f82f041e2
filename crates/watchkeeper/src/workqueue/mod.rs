//! What is there to do, once, and not before its time?
//!
//! Three queues, each of which can do all that the one before can:
//!
//! | queue | for |
//! |---|---|
//! | [`WorkQueue`] | items that are worked on by several workers, each by one at a time |
//! | [`DelayingQueue`] | items that are to be looked at later: [`add_after`](DelayingQueue::add_after) |
//! | [`RateLimitingQueue`] | items that may fail, and are tried again less and less often: [`add_rate_limited`](RateLimitingQueue::add_rate_limited) |
//!
//! They know nothing of Kubernetes. With an informer, the items are keys of objects; the state of an object is read when its
//! key is worked on, so that a hundred changes of it are one piece of work.
//!
//! ```
//! use watchkeeper::workqueue::{RateLimitingQueue, limiter};
//!
//! # async fn work(_: &str) -> Result<(), ()> { Ok(()) }
//! # #[tokio::main(flavor = "current_thread")] async fn main() {
//! let queue = RateLimitingQueue::new(limiter::default_controller());
//! queue.add("shop/web");
//! # queue.shut_down();
//! while let Ok(item) = queue.get().await {
//!     match work(&item).await {
//!         Ok(()) => queue.forget(&item),
//!         Err(_) => queue.add_rate_limited(*item),
//!     }
//! } // the item is dropped: done
//! # }
//! ```

mod band;
mod core;
mod delaying;
mod inbox;
mod item;
pub mod limiter;
mod options;
mod queue;
mod rate_limiting;
mod ready;
mod state;
mod table;

pub use delaying::DelayingQueue;
pub use item::Item;
pub use options::AddOptions;
pub use queue::{WorkQueue, WorkQueueBuilder};
pub use rate_limiting::RateLimitingQueue;

/// The queue was shut down, and nothing is left in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the queue was shut down, and nothing is left in it")]
pub struct ShutDown;
