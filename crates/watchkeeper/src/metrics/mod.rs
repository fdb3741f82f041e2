//! How does one see from outside how informers and work queues are doing?
//!
//! A [`MetricsProvider`] is told when an informer begins. Most of what there is to know it asks for when somebody looks:
//! [`InformerState::sample`] reads counters that are there in any case, so that metrics cost nothing while nobody does.
//! Only what cannot be asked for later, how long a thing took, is told as it happens, to [`InformerMetrics`]. The same holds for
//! work queues: [`QueueState`] and [`QueueMetrics`].
//!
//! With the feature `prometheus`, `PrometheusMetrics` is such a provider, with the names and labels that client-go's
//! dashboards know. A provider of one's own is a few lines:
//!
//! ```
//! use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
//! use std::sync::{Arc, Weak};
//! use std::time::Duration;
//! use watchkeeper::metrics::*;
//!
//! /// Counts the lists of all informers.
//! #[derive(Default)]
//! struct Lists(Arc<Count>);
//!
//! #[derive(Default)]
//! struct Count(AtomicU64);
//!
//! impl InformerMetrics for Count {
//!     fn listed(&self, _: Duration, _: u64, _: ListOutcome) {
//!         self.0.fetch_add(1, Relaxed);
//!     }
//! }
//!
//! impl MetricsProvider for Lists {
//!     fn informer(&self, _: &InformerIdentity, _: Weak<dyn InformerState>) -> Arc<dyn InformerMetrics> {
//!         self.0.clone()
//!     }
//! }
//! ```
//!
//! There is no provider for all of a process: who wants metrics gives a provider to the informers that it is for.

mod identity;
mod outcome;
#[cfg(feature = "prometheus")]
mod prometheus;
mod sample;

use std::sync::{Arc, Weak};
use std::time::Duration;

pub use identity::{InformerIdentity, InformerName, InformerNames, NameError};
pub use outcome::ListOutcome;
#[cfg(feature = "prometheus")]
pub use prometheus::PrometheusMetrics;
pub use sample::{HandlerSample, InformerSample, QueueSample};

/// Where metrics go: of a process, a factory or one informer.
pub trait MetricsProvider: Send + Sync + 'static {
    /// An informer begins.
    ///
    /// `state` can be asked at any time, for as long as the informer lives. What is returned is told of what cannot be
    /// asked for later, and is dropped when the informer is gone.
    ///
    /// Two informers can have the same labels. Only those of an identity that [is reserved](InformerIdentity::is_reserved)
    /// are to be published, and only for as long as it is. Of several that were given clones of one identity, as while a
    /// factory puts one in the place of another, one at a time is to be.
    fn informer(&self, identity: &InformerIdentity, state: Weak<dyn InformerState>) -> Arc<dyn InformerMetrics>;

    /// A work queue begins, in the same way. Passed over unless this is implemented.
    fn queue(&self, _name: &str, _state: Weak<dyn QueueState>) -> Arc<dyn QueueMetrics> {
        Arc::new(NoMetrics)
    }
}

impl<P: MetricsProvider + ?Sized> MetricsProvider for Arc<P> {
    fn queue(&self, name: &str, state: Weak<dyn QueueState>) -> Arc<dyn QueueMetrics> {
        (**self).queue(name, state)
    }

    fn informer(&self, identity: &InformerIdentity, state: Weak<dyn InformerState>) -> Arc<dyn InformerMetrics> {
        (**self).informer(identity, state)
    }
}

/// What is told as it happens. The calls come from the middle of the work: they must neither block nor panic.
pub trait InformerMetrics: Send + Sync {
    /// A change, or a batch of changes that came out of the queue together, was applied and passed on to the handlers,
    /// which took this long.
    fn processed(&self, _latency: Duration) {}

    /// A list ended: with its last page, its last initial event, or an error. `items` came of it, also if it failed.
    fn listed(&self, _took: Duration, _items: u64, _outcome: ListOutcome) {}

    /// A watch ended, after so many events. `short` is one that ended of itself within a second and without any, which
    /// is a sign that something is wrong.
    fn watched(&self, _took: Duration, _events: u64, _short: bool) {}
}

/// What an informer can be asked at any time.
pub trait InformerState: Send + Sync {
    /// Its state at this moment.
    fn sample(&self) -> InformerSample;
}

/// What a work queue tells as it happens.
pub trait QueueMetrics: Send + Sync {
    /// An item was taken out that had been ready for this long.
    fn queued(&self, _waited: Duration) {}

    /// Work on an item has ended that took this long.
    fn worked(&self, _took: Duration) {}

    /// The queue is gone, with this as its last state. Nothing is told after that.
    fn ended(&self, _last: &QueueSample) {}
}

/// What a work queue can be asked at any time.
pub trait QueueState: Send + Sync {
    /// Its state at this moment.
    fn sample(&self) -> QueueSample;
}

/// A provider that passes everything over.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoMetrics;

impl MetricsProvider for NoMetrics {
    fn informer(&self, _: &InformerIdentity, _: Weak<dyn InformerState>) -> Arc<dyn InformerMetrics> {
        Arc::new(Self)
    }
}

impl InformerMetrics for NoMetrics {}

impl QueueMetrics for NoMetrics {}
