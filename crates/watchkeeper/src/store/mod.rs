//! Where are the objects kept, and how are they found again?
//!
//! An [`Indexer`] keeps values under keys that a function finds out, and finds them by key, and by whatever else it was
//! given an [`Index`] for. A [`Store`] is one that nobody has given an index. A [`ThreadSafeStore`] is told the keys. They
//! hold any `T` that is cheap to clone, [`Object`](crate::Object)s as a rule.
//!
//! ```
//! use watchkeeper::{Index, Indexer, Object};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), watchkeeper::Error> {
//! let pods = Indexer::objects();
//! pods.add_index("node", Index::field("/spec/nodeName")).await?;
//! let pod = r#"{"metadata": {"name": "web-0", "namespace": "shop", "resourceVersion": "7"}, "spec": {"nodeName": "n1"}}"#;
//! pods.add(Object::from_json(pod)?)?;
//!
//! assert_eq!(pods.by_index("node", "n1")?.len(), 1);
//! assert_eq!(pods.by_index("namespace", "shop")?.list()[0].key().name(), "web-0");
//! for (key, pod) in pods.snapshot().iter() {
//!     println!("{key} is at version {}", pod.resource_version());
//! }
//! # Ok(())
//! # }
//! ```
//!
//! Readers and writers do not wait for each other: a [`Snapshot`] or a [`Selection`] is a few pointers to what the store is
//! made of, and a writer copies what it changes while somebody holds it. What takes time (index functions, the tables of
//! a [`replace`](Indexer::replace), a table that has become too small, a new index) is done before the lock is taken.
//!
//! How it is made, from the inside out: `chunks` is a vector that can be looked at while it changes, `slots` has the
//! values in one, `postings` has the slots of each value of an index, `backs` the way back from a slot to these; `tables`
//! puts them together, `thread_safe` adds the locks, `replace` puts a list in the place of what there is, `build` adds an
//! index to a store that is in use, `waiting` knows who waits for a version, and `partitions` has the versions of a store
//! that several watches fill.

mod backs;
mod batch;
mod build;
mod chunks;
mod error;
mod index;
mod indexer;
mod partitions;
mod pointer;
mod postings;
mod replace;
mod slots;
mod snapshot;
mod tables;
mod thread_safe;
mod waiting;

pub use batch::{Applied, Change, Operation};
pub use error::{IndexError, WaitError};
pub use index::Index;
pub use indexer::{Indexer, Store};
pub(crate) use partitions::PartitionVersions;
pub use snapshot::{Selection, Snapshot};
pub use thread_safe::ThreadSafeStore;

/// The most values that a store, or an index, can hold: numbers are 32 bits, of which one marks holes.
const MOST: usize = (1 << 31) - 1024;

/// Of that much room so little is used that it is worth being made anew.
fn is_sparse(used: usize, room: usize) -> bool {
    room >= 4096 && used < room / 4
}
