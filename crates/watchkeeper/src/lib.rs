//! watchkeeper keeps an exact, live copy of a Kubernetes cluster inside your process, and tells your code what changed.
//!
//! The modules stand in the order in which a change passes through them:
//!
//! - [`object`]: what is one object, before anybody has decoded it?
//! - [`source`]: where do objects come from? [`client`] makes a client that notices dead peers, [`ListWatch`] lists and
//!   watches a kind with it, [`Scripted`] stands in for a server in tests.
//! - [`pager`]: how does one read a list that is too long for one answer?
//! - [`reflector`]: how does a copy of a kind stay true? [`Reflector`] lists and watches for ever, and writes what it
//!   learns into a [`ReflectorStore`].
//! - [`keyed`]: what do stores and queues have in common?
//! - [`queue`]: how do changes wait until somebody processes them? [`AtomicFifo`] keeps them in their order,
//!   [`DeltaFifo`] by key.
//! - [`pump`]: how are a source, a queue and a function put together?
//! - [`store`]: where are the objects kept, and how are they found again? An [`Indexer`] finds them by key and by
//!   whatever it was given an [`Index`] for.
//! - [`lister`]: how does one read the objects of a kind? A [`Lister`] finds them by key, namespace, label and index.
//! - [`informer`]: how does one hear of what changes? A [`SharedInformer`] puts all of the above together, and tells any
//!   number of handlers.
//! - [`factory`]: how do the parts of a program share their informers? An [`InformerFactory`] gives the same one to all who
//!   ask for the same objects.
//! - [`synctrack`]: how does one know that all the initial objects have been worked on?
//! - [`workqueue`]: what is there to do, once, and not before its time? [`WorkQueue`], [`DelayingQueue`] and
//!   [`RateLimitingQueue`] know nothing of Kubernetes.
//! - [`controller`]: who does the work? A [`Controller`] takes keys out of a queue and has them reconciled.
//! - [`metrics`]: how does one see from outside how it goes? A [`MetricsProvider`] of one's own, or `PrometheusMetrics` with
//!   the feature `prometheus`.
//!
//! All that can fail while talking to a server fails with one [`Error`], which knows how it is to be treated. Every
//! number that decides something stands in [`defaults`].
//!
//! Everything runs on the ambient tokio runtime.

pub mod object;
pub mod source;

pub mod pager;
pub mod reflector;

pub mod keyed;
pub mod queue;

pub mod pump;

pub mod store;

pub mod lister;

pub mod informer;

pub mod factory;
pub mod workqueue;

pub mod controller;

pub mod metrics;
pub mod synctrack;

pub mod defaults;
mod error;
mod sync;

pub use controller::{Controller, ControllerStats, Outcome, Predicate, ReconcileError};
pub use error::{Error, ErrorKind};
pub use factory::{InformerFactory, InformerFactoryBuilder, InformerMaker, InformerOptions, Subject, SyncResult};
pub use informer::{
    Buffer, Cause, Difference, Event, EventHandler, EventStream, Found, HandlerGuard, HandlerHandle, HandlerOptions,
    InformerBuilder, InformerQueue, InformerStatus, SharedInformer, Verification,
};
pub use keyed::{Key, KeyError, KeyFunction, KnownObjects, Queue, StoreOps, object_key};
pub use lister::{InvalidSelector, Lister, NamespaceLister, NotFound, Objects, Selector};
pub use metrics::{InformerIdentity, InformerMetrics, InformerName, InformerSample, InformerState, MetricsProvider};
pub use object::{Cached, DecodeError, InvalidKey, Kind, Labels, Object, ObjectKey, ResourceVersion};
pub use pager::{PagedList, Pager};
pub use pump::{Pump, PumpState};
pub use queue::{AtomicFifo, AtomicFifoConsumer, Delta, DeltaFifo, DeltaFifoConsumer, DeltaType, Deltas, ReplacedAll};
pub use reflector::{
    Backoff, Gap, Phase, Reason, Reflector, ReflectorStatus, ReflectorStore, Relister, Replacement, StatusReader,
};
pub use source::{
    BadObject, Bookmark, ClientOptions, DecodeInto, Keep, ListMetadata, ListOptions, ListPart, ListWatch,
    ListerWatcher, Listing, Packing, PartitionSource, Scope, Scripted, ScriptedList, ScriptedRequest, ScriptedWatch,
    StreamingLists, TableColumn, TableColumns, TableRow, Transform, Verb, VersionMatch, WatchEvent, WatchStream,
    client, client_with,
};
pub use store::{
    Applied, Change, Index, IndexError, Indexer, Operation, Selection, Snapshot, Store, ThreadSafeStore, WaitError,
};
pub use workqueue::{AddOptions, DelayingQueue, RateLimitingQueue, WorkQueue, limiter};

/// The program of the README compiles.
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
struct Readme;

/// So does that of the page for those who come from kube-rs.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/from-kube-rs.md")]
struct FromKubeRs;

/// What the macros and the benchmarks need. Not for others: it changes without notice.
#[doc(hidden)]
pub mod __private {
    use std::sync::Arc;

    pub use kube_core::ApiResource;

    use crate::Object;
    use crate::object::header;
    use crate::object::packed::Packed;

    /// The header of an object, and the check of the rest.
    pub fn header_is_read(json: &[u8]) -> bool {
        header::check(json).is_ok() && header::read_prefix(json).is_ok_and(|(header, _)| header.problem().is_none())
    }

    /// What bodies are packed against.
    pub struct Dictionary(Arc<crate::object::packed::Dictionary>);

    impl Dictionary {
        /// A dictionary of whole objects.
        pub fn of(bodies: &[bytes::Bytes]) -> Option<Self> {
            crate::source::dictionary_of(bodies).map(|dictionary| Self(Arc::new(dictionary)))
        }

        /// Packs an object's body.
        pub fn pack(&self, object: &Object) {
            object.pack(Some(&self.0));
        }

        /// The packed size of a body.
        pub fn packed_size(&self, json: &[u8]) -> Option<usize> {
            Packed::pack(json, Some(&self.0)).map(|packed| packed.size())
        }
    }
}
