//! What an informer tells those who measure it.

use std::sync::atomic::Ordering::Relaxed;

use super::core::Core;
use super::listener::Listener;
use crate::Object;
use crate::metrics::{HandlerSample, InformerSample, InformerState};

impl InformerState for Core {
    fn sample(&self) -> InformerSample {
        let store = &self.processor.store;
        let objects = store.snapshot();
        // What an object takes besides its body is much the same for all: handle, key, uid, version, a place in the store.
        let size = |object: &Object| object.size() + HEADER_BYTES;
        let mut sample = InformerSample::default();
        sample.synced = self.has_synced();
        sample.queued_items = self.partitions.iter().map(|partition| (partition.queue)()).sum();
        sample.store_objects = objects.len();
        sample.store_bytes = objects.iter().map(|(_, object)| size(object)).sum();
        sample.store_resource_version = store.last_version();
        sample.reflectors = self
            .partitions
            .iter()
            .map(|partition| (partition.namespace.as_deref().map(Box::from), partition.status.get()))
            .collect();
        sample.handlers = self.processor.listeners().iter().map(|listener| handler(listener)).collect();
        sample
    }
}

/// Measured with pods: docs/performance.md.
const HEADER_BYTES: usize = 250;

fn handler(listener: &Listener) -> HandlerSample {
    let mut sample = HandlerSample::new(&*listener.name);
    sample.pending = listener.backlog();
    sample.panics = listener.panics.load(Relaxed);
    sample.delivered = listener.delivered.load(Relaxed);
    sample
}
