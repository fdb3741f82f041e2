//! Where do objects come from?
//!
//! A [`ListerWatcher`] lists a kind and watches it. [`ListWatch`] does so over HTTP with a `kube::Client`, best one of
//! [`client`]'s; [`Scripted`] plays what a test wrote down. Both hand out [`Object`]s as they arrive: a [`Listing`] is a
//! list that is still being read, a [`WatchStream`] a watch.
//!
//! ```
//! use watchkeeper::{ListOptions, ListPart, ListerWatcher, Object, Scripted, ScriptedList};
//!
//! # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), watchkeeper::Error> {
//! let pod = Object::from_json(r#"{"metadata": {"name": "web-0", "namespace": "shop", "resourceVersion": "7"}}"#)?;
//! let source = Scripted::new().answer_list(ScriptedList::new("9", [pod]));
//!
//! let mut listing = source.list(ListOptions::default()).await?;
//! while let Some(part) = listing.next().await? {
//!     if let ListPart::Item(object) = part {
//!         println!("{}", object.key());
//!     }
//! }
//! # Ok(()) }
//! ```

mod body;
mod boundary;
mod calm;
mod client;
mod connect;
mod decode;
#[cfg(test)]
pub(crate) mod duplex;
mod events;
mod gzip;
mod http1;
mod http2;
mod intake;
mod keep;
mod list_reader;
mod list_watch;
mod options;
mod packer;
mod scripted;
mod table;
mod transform;
mod watch_reader;

use std::sync::Arc;

use futures::future::BoxFuture;
use futures::stream::{BoxStream, Stream, StreamExt};

pub use client::client_over;
pub use client::{ClientOptions, client, client_with};
#[doc(hidden)]
pub(crate) use decode::WRONG_KIND;
pub use events::{BadObject, Bookmark, ListMetadata, ListPart, WatchEvent};
pub use keep::{DecodeInto, Keep};
pub(crate) use list_watch::Tweak;
pub use list_watch::{ListWatch, Scope};
pub use options::{ListOptions, VersionMatch};
pub use packer::Packing;
pub use scripted::{Scripted, ScriptedList, ScriptedRequest, ScriptedWatch, Verb};
pub use table::{TableColumn, TableColumns, TableRow};
pub use transform::Transform;

use crate::{Error, Indexer, Object};

/// Something that lists and watches one kind: client-go's `ListerWatcher`.
pub trait ListerWatcher: Send + Sync {
    /// Asks for the objects that there are. The answer's items come out of the [`Listing`] as they arrive.
    fn list(&self, options: ListOptions) -> BoxFuture<'_, Result<Listing, Error>>;

    /// Asks for the changes from now on, or from the version in `options` on.
    fn watch(&self, options: ListOptions) -> BoxFuture<'_, Result<WatchStream, Error>>;

    /// What is listed and watched, for logs and errors: `pods in namespace web`.
    fn description(&self) -> String;

    /// Whether, and since when not, this source answers watches with `send_initial_events`. A source that never does
    /// has none.
    fn streaming_lists(&self) -> Option<&StreamingLists> {
        None
    }

    /// How the packing of bodies goes; of all partitions, if there are several. A source that packs none has nothing to tell.
    fn packing(&self) -> Packing {
        Packing::default()
    }

    /// The namespaces that have to be listed and watched each by itself, if there are several.
    fn namespaces(&self) -> Vec<Arc<str>> {
        Vec::new()
    }

    /// The sources of an informer whose objects end up in `store`: one for each of the [`namespaces`](Self::namespaces), else
    /// one for all.
    fn into_partitions(self, store: &Arc<Indexer<Object>>) -> Vec<PartitionSource>
    where
        Self: Sized + 'static,
    {
        let _ = store;
        vec![PartitionSource { namespace: None, source: Arc::new(self) }]
    }
}

/// A part of what an informer keeps, listed and watched by itself.
pub struct PartitionSource {
    /// The namespace that all of its objects are in. None for all that there is.
    pub namespace: Option<Arc<str>>,
    /// Where they come from.
    pub source: Arc<dyn ListerWatcher>,
}

impl<T: ListerWatcher + ?Sized> ListerWatcher for Arc<T> {
    fn list(&self, options: ListOptions) -> BoxFuture<'_, Result<Listing, Error>> {
        (**self).list(options)
    }

    fn watch(&self, options: ListOptions) -> BoxFuture<'_, Result<WatchStream, Error>> {
        (**self).watch(options)
    }

    fn description(&self) -> String {
        (**self).description()
    }

    fn streaming_lists(&self) -> Option<&StreamingLists> {
        (**self).streaming_lists()
    }

    fn packing(&self) -> Packing {
        (**self).packing()
    }
}

/// The answer to a list, as it arrives.
pub struct Listing(BoxStream<'static, Result<ListPart, Error>>);

impl Listing {
    /// A listing whose parts come from `parts`. The metadata may come before the items or after them; after an error
    /// nothing more is asked for.
    pub fn new(parts: impl Stream<Item = Result<ListPart, Error>> + Send + 'static) -> Self {
        Self(parts.boxed())
    }

    /// A listing that is complete.
    pub fn of(metadata: ListMetadata, items: impl IntoIterator<Item = Object>) -> Self {
        let items: Vec<_> = items.into_iter().map(ListPart::Item).collect();
        let metadata = std::iter::once(ListPart::Metadata(metadata));
        Self::new(futures::stream::iter(metadata.chain(items).map(Ok)))
    }

    /// The next part, or `None` at the end.
    pub async fn next(&mut self) -> Result<Option<ListPart>, Error> {
        self.0.next().await.transpose()
    }
}

/// The answer to a watch: events as they arrive, for as long as the connection lasts.
pub struct WatchStream(BoxStream<'static, Result<WatchEvent, Error>>);

impl WatchStream {
    /// A stream whose events come from `events`. It ends with them, or with the first error.
    pub fn new(events: impl Stream<Item = Result<WatchEvent, Error>> + Send + 'static) -> Self {
        Self(events.boxed())
    }

    /// The next event, or `None` when the server ended the stream. May be dropped and called again.
    pub async fn next(&mut self) -> Result<Option<WatchEvent>, Error> {
        self.0.next().await.transpose()
    }
}

/// For benchmarks.
pub(crate) fn dictionary_of(bodies: &[bytes::Bytes]) -> Option<crate::object::packed::Dictionary> {
    packer::dictionary::of_objects(bodies, crate::defaults::DICTIONARY_MAX)
}

/// `at + by`; in thirty years if that is too large: by the longest time that there is people mean "never".
pub(crate) fn later(at: tokio::time::Instant, by: std::time::Duration) -> tokio::time::Instant {
    const FAR: std::time::Duration = std::time::Duration::from_secs(60 * 60 * 24 * 365 * 30);
    at.checked_add(by).unwrap_or_else(|| at + FAR)
}

/// What is known of a source's streaming lists. Clones share it, so that a server's refusal is learnt once per server
/// and resource, not once per reflector.
#[derive(Debug, Clone, Default)]
pub struct StreamingLists(std::sync::Arc<std::sync::Mutex<Option<tokio::time::Instant>>>);

impl StreamingLists {
    /// Streaming lists may be asked for.
    pub fn are_allowed(&self) -> bool {
        self.lock().is_none_or(|until| tokio::time::Instant::now() >= until)
    }

    /// Use pages for this long.
    pub fn pause_for(&self, pause: std::time::Duration) {
        *self.lock() = Some(later(tokio::time::Instant::now(), pause));
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Option<tokio::time::Instant>> {
        self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}
