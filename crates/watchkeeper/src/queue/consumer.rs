//! The consumer's side of a queue, whichever it is.

use std::ops::Deref;

use super::{AtomicFifoConsumer, Batch, BatchGuard, Closed, DeltaFifoConsumer, Deltas, DeltasGuard};
use crate::Key;

/// Takes changes out of a queue.
pub trait Consumer: Send {
    /// What comes out at once.
    type Changes;

    /// What it comes in. Dropping it says that the changes have been processed.
    type Guard<'a>: Guard<Target = Self::Changes> + Send
    where
        Self: 'a;

    /// Takes out what is next, and waits if there is nothing. An error means that the queue is closed and empty. Dropping
    /// the future loses nothing.
    fn next(&mut self) -> impl Future<Output = Result<Self::Guard<'_>, Closed>> + Send;

    /// How many others come out before what was just [put back](Guard::requeue) comes again.
    fn before_requeued(&self) -> usize;
}

/// Changes that are being processed.
pub trait Guard: Deref {
    /// Puts them back.
    fn requeue(self);
}

impl<T: Clone + Send + Sync, K: Key> Consumer for DeltaFifoConsumer<T, K> {
    type Changes = Deltas<T, K>;
    type Guard<'a>
        = DeltasGuard<'a, T, K>
    where
        Self: 'a;

    async fn next(&mut self) -> Result<DeltasGuard<'_, T, K>, Closed> {
        self.pop().await
    }

    /// All others: what is put back goes to the end.
    fn before_requeued(&self) -> usize {
        self.waiting().saturating_sub(1)
    }
}

impl<T: Clone, K: Key> Guard for DeltasGuard<'_, T, K> {
    fn requeue(self) {
        self.requeue();
    }
}

impl<T: Send + Sync, K: Key> Consumer for AtomicFifoConsumer<T, K> {
    type Changes = Batch<T, K>;
    type Guard<'a>
        = BatchGuard<'a, T, K>
    where
        Self: 'a;

    async fn next(&mut self) -> Result<BatchGuard<'_, T, K>, Closed> {
        self.pop_batch().await
    }

    /// None: what is put back goes to the front.
    fn before_requeued(&self) -> usize {
        0
    }
}

impl<T, K: Key> Guard for BatchGuard<'_, T, K> {
    fn requeue(self) {
        self.requeue();
    }
}
