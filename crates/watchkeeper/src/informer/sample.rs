//! What an informer tells those who measure it.

use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Weak};

use super::core::{Core, Partition};
use super::listener::Listener;
use crate::Object;
use crate::metrics::{
    HandlerSample, InformerIdentity, InformerMetrics, InformerSample, InformerState, MetricsProvider,
};

/// An informer that is measured, until it begins to stop: from then on another one may have its labels.
pub(super) struct Measured {
    pub(super) metrics: Arc<dyn InformerMetrics>,
    _state: Arc<dyn InformerState>,
    /// The labels are this one's for as long.
    _identity: InformerIdentity,
}

impl Measured {
    pub(super) fn new(provider: &dyn MetricsProvider, identity: &InformerIdentity, core: &Weak<Core>) -> Self {
        let state: Arc<dyn InformerState> = Arc::new(State(core.clone()));
        Self {
            metrics: provider.informer(identity, Arc::downgrade(&state)),
            _state: state,
            _identity: identity.clone(),
        }
    }
}

struct State(Weak<Core>);

impl InformerState for State {
    fn sample(&self) -> InformerSample {
        self.0.upgrade().map(|core| core.sample()).unwrap_or_default()
    }
}

impl Core {
    fn sample(&self) -> InformerSample {
        let store = &self.processor.store;
        let objects = store.snapshot();
        // What an object takes besides its body is much the same for all: handle, key, uid, version, a place in the store.
        let size = |object: &Object| object.size() + HEADER_BYTES;
        let reflector = |partition: &Partition| (partition.namespace.as_deref().map(Box::from), partition.status.get());
        InformerSample {
            synced: self.has_synced(),
            queued_items: self.partitions.iter().map(|partition| (partition.queue)()).sum(),
            store_objects: objects.len(),
            store_bytes: objects.iter().map(|(_, object)| size(object)).sum(),
            store_resource_version: store.last_version(),
            reflectors: self.partitions.iter().map(reflector).collect(),
            handlers: self.processor.listeners().iter().map(|listener| handler(listener)).collect(),
        }
    }
}

/// Measured with pods: docs/performance.md.
const HEADER_BYTES: usize = 250;

fn handler(listener: &Listener) -> HandlerSample {
    HandlerSample {
        name: listener.name.to_string(),
        pending: listener.backlog(),
        panics: listener.panics.load(Relaxed),
        delivered: listener.delivered.load(Relaxed),
    }
}
