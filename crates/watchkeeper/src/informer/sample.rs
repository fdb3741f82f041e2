//! What an informer tells those who measure it.

use std::sync::atomic::Ordering::Relaxed;

use super::core::{Core, Partition};
use super::listener::Listener;
use crate::Object;
use crate::metrics::{HandlerSample, InformerSample, InformerState};

impl InformerState for Core {
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
