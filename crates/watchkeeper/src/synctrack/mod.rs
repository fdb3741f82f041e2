//! How does one know that all the initial objects have been worked on?
//!
//! A handler has synced when it has been told of every object of the first list. If all it does is to hand them on, to a
//! queue whose workers do the work, that is too early to say "ready": nothing may have been worked on yet. A tracker stands
//! between: the handler tells it what it hands on ([`start`](AsyncTracker::start), if the event's cause is that the object
//! is an initial one), the workers tell it what they are done with ([`finished`](AsyncTracker::finished)), and it has
//! synced when its *upstream*, the handler, has, and nothing is left. These are client-go's `tools/cache/synctrack`:
//!
//! - [`AsyncTracker`] knows which keys are left. It is for workers that work at the same time, and for queues of keys, in
//!   which what is added twice is worked on once.
//! - [`SingleFileTracker`] knows how many are left. It is for work that is done one after the other, each piece once.
//! - [`Lazy`] is for what is made from all objects, and is made when somebody asks, once for all changes until then.
//!
//! ```
//! use std::sync::Arc;
//! use watchkeeper::synctrack::AsyncTracker;
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() {
//! let tracker = Arc::new(AsyncTracker::new());
//! let (queue, mut work) = tokio::sync::mpsc::unbounded_channel();
//!
//! // The handler. The tracker is told first: the worker may be quick.
//! let handler = {
//!     let tracker = tracker.clone();
//!     move |name, is_initial| {
//!         if is_initial {
//!             tracker.start(name);
//!         }
//!         queue.send(name).expect("there is a worker");
//!     }
//! };
//! // Where the handler is registered, one learns whether it has been told of all initial objects.
//! tracker.set_upstream(|| true);
//! handler("web-0", true);
//! handler("web-1", true);
//! assert!(!tracker.has_synced());
//!
//! // The worker.
//! let worker = tracker.clone();
//! tokio::spawn(async move {
//!     while let Some(name) = work.recv().await {
//!         println!("working on {name}");
//!         worker.finished(&name);
//!     }
//! });
//! tracker.synced().await;
//! # }
//! ```

mod async_tracker;
mod lazy;
mod single_file;
mod upstream;

pub use async_tracker::AsyncTracker;
pub use lazy::Lazy;
pub use single_file::SingleFileTracker;
