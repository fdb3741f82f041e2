//! How is a queue set up?

use std::sync::Arc;

use super::atomic_fifo::{self, AtomicFifo};
use super::atomic_guard::AtomicFifoConsumer;
use super::delta_fifo::{self, DeltaFifo};
use super::delta_guard::DeltaFifoConsumer;
use super::keyed_deltas::Known;
use super::transform::Transform;
use crate::{Key, KeyFunction, KnownObjects, ObjectKey};

/// Options of a [`DeltaFifo`]: client-go's `DeltaFIFOOptions`.
#[must_use]
pub struct DeltaFifoBuilder<T, K: Key = ObjectKey> {
    key_function: KeyFunction<T, K>,
    transform: Transform<T>,
    known: Known<T, K>,
    emit_replaced: bool,
    name: Box<str>,
}

impl<T, K: Key> DeltaFifoBuilder<T, K> {
    pub(super) fn new(key_function: KeyFunction<T, K>) -> Self {
        Self { key_function, transform: Transform::none(), known: None, emit_replaced: false, name: "".into() }
    }

    /// What the consumer has stored: the store that it applies the changes to. It is asked while the queue is locked,
    /// so it must not call the queue. Without it a list finds deletions among what waits only, and a resync says
    /// nothing.
    pub fn known_objects(mut self, known: impl KnownObjects<T, K> + 'static) -> Self {
        self.known = Some(Arc::new(known));
        self
    }

    /// Whether the objects of a list come as `Replaced`, or as `Sync`. False unless set, as in client-go; informers
    /// set it.
    pub fn emit_replaced(mut self, emit: bool) -> Self {
        self.emit_replaced = emit;
        self
    }

    /// Changes each object before it is queued. It runs once for each object that is written into the queue, after
    /// its key is found out, and not for tombstones and resyncs. client-go's can fail, and then the change is lost;
    /// one that cannot do its work here gives the object back as it is.
    pub fn transformer(mut self, transform: impl Fn(T) -> T + Send + Sync + 'static) -> Self {
        self.transform = Transform::new(transform);
        self
    }

    /// What the queue is called in the log.
    pub fn name(mut self, name: impl Into<Box<str>>) -> Self {
        self.name = name.into();
        self
    }

    /// The two ends of the queue.
    pub fn build(self) -> (DeltaFifo<T, K>, DeltaFifoConsumer<T, K>) {
        let Self { key_function, transform, known, emit_replaced, name } = self;
        DeltaFifo::new(&name, delta_fifo::Config { key_function, transform, known, emit_replaced })
    }
}

/// Options of an [`AtomicFifo`]: client-go's `RealFIFOOptions`.
#[must_use]
pub struct AtomicFifoBuilder<T, K: Key = ObjectKey> {
    key_function: KeyFunction<T, K>,
    transform: Transform<T>,
    name: Box<str>,
}

impl<T, K: Key> AtomicFifoBuilder<T, K> {
    pub(super) fn new(key_function: KeyFunction<T, K>) -> Self {
        Self { key_function, transform: Transform::none(), name: "".into() }
    }

    /// Changes each object before it is queued: see [`DeltaFifoBuilder::transformer`].
    pub fn transformer(mut self, transform: impl Fn(T) -> T + Send + Sync + 'static) -> Self {
        self.transform = Transform::new(transform);
        self
    }

    /// What the queue is called in the log.
    pub fn name(mut self, name: impl Into<Box<str>>) -> Self {
        self.name = name.into();
        self
    }

    /// The two ends of the queue.
    pub fn build(self) -> (AtomicFifo<T, K>, AtomicFifoConsumer<T, K>) {
        let Self { key_function, transform, name } = self;
        AtomicFifo::new(&name, atomic_fifo::Config { key_function, transform })
    }
}
