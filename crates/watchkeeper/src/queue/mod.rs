//! How do changes wait until somebody processes them?
//!
//! A queue has a producer, which can be cloned and is written into like a store, and one consumer. What the consumer
//! takes out comes in a guard: dropping the guard says that it has been processed, [`requeue`](DeltasGuard::requeue)
//! puts it back. No lock is held meanwhile, so the producers never wait for the processing.
//!
//! | | [`DeltaFifo`] | [`AtomicFifo`] |
//! |---|---|---|
//! | comes out | all changes of one key at once | one entry, or a batch of up to 1,000 |
//! | in the order of | keys | arrival |
//! | a list is | a change for each object, and a tombstone for each that is gone | one entry |
//! | a resync is | a change for each object | one entry |
//! | needs to know what is stored | yes, to find what is gone | no |
//! | client-go's | `DeltaFIFO` | `RealFIFO` with atomic events, what its informers use |
//!
//! With a `DeltaFifo` relists and resyncs are applied object by object: a reader of the store can see half of a list.
//! With an `AtomicFifo` they are applied as a whole, and bookmarks come through as well.
//!
//! ```
//! use watchkeeper::queue::{Closed, Delta, DeltaFifo};
//!
//! #[derive(Clone)]
//! struct Pod {
//!     name: &'static str,
//!     version: u64,
//! }
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let (queue, mut consumer) = DeltaFifo::builder(|pod: &Pod| Ok(pod.name)).name("pods").build();
//! queue.add(Pod { name: "web", version: 1 })?;
//! queue.add(Pod { name: "db", version: 2 })?;
//! queue.update(Pod { name: "web", version: 3 })?;
//!
//! let changes = consumer.pop().await?;
//! assert_eq!(*changes.key(), "web");
//! assert_eq!(changes.len(), 2);
//! assert!(matches!(changes.newest(), Delta::Updated(pod) if pod.version == 3));
//! drop(changes); // They have been processed.
//!
//! queue.close();
//! assert_eq!(*consumer.pop().await?.key(), "db");
//! assert_eq!(consumer.pop().await.err(), Some(Closed));
//! # Ok(())
//! # }
//! ```

mod atomic_fifo;
mod atomic_guard;
mod batch;
mod builder;
mod consumer;
mod delta;
mod delta_fifo;
mod delta_guard;
mod entries;
mod keyed_deltas;
mod shared;
mod slow;
mod sync_count;
mod traits;
mod transform;

pub use atomic_fifo::AtomicFifo;
pub use atomic_guard::{AtomicFifoConsumer, BatchGuard};
pub use batch::{Batch, BatchIntoIter, Entry, ReplacedAll};
pub use builder::{AtomicFifoBuilder, DeltaFifoBuilder};
pub use consumer::{Consumer, Guard};
pub use delta::{Delta, DeltaType, Deltas, DeltasIntoIter};
pub use delta_fifo::DeltaFifo;
pub use delta_guard::{DeltaFifoConsumer, DeltasGuard};
pub use shared::Closed;
