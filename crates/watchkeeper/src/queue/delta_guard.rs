//! How are changes taken out of a [`DeltaFifo`](super::DeltaFifo)?

use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

use super::delta::Deltas;
use super::keyed_deltas::{KeyedDeltas, Known, Taken};
use super::shared::{Closed, Shared};
use super::slow::SlowPop;
use crate::{Key, ObjectKey};

/// The consumer's side of a [`DeltaFifo`](super::DeltaFifo). There is one, and it takes out one key at a time.
pub struct DeltaFifoConsumer<T, K: Key = ObjectKey> {
    shared: Arc<Shared<KeyedDeltas<T, K>>>,
    known: Known<T, K>,
}

impl<T, K: Key> DeltaFifoConsumer<T, K> {
    pub(super) fn new(shared: Arc<Shared<KeyedDeltas<T, K>>>, known: Known<T, K>) -> Self {
        Self { shared, known }
    }

    /// How many keys have something waiting.
    pub(super) fn waiting(&self) -> usize {
        self.shared.read(KeyedDeltas::len)
    }
}

impl<T: Clone, K: Key> DeltaFifoConsumer<T, K> {
    /// Takes out all changes of the first key, and waits if there is none. An error means that the queue is closed
    /// and empty.
    ///
    /// Cancel-safe: dropping the future loses nothing.
    pub async fn pop(&mut self) -> Result<DeltasGuard<'_, T, K>, Closed> {
        let taken = self.shared.take(KeyedDeltas::take).await?;
        Ok(DeltasGuard::new(self, taken))
    }

    /// Takes out all changes of the first key, if there is one now.
    pub fn try_pop(&mut self) -> Result<Option<DeltasGuard<'_, T, K>>, Closed> {
        let taken = self.shared.try_take(KeyedDeltas::take)?;
        Ok(taken.map(|taken| DeltasGuard::new(self, taken)))
    }
}

impl<T, K: Key> Drop for DeltaFifoConsumer<T, K> {
    fn drop(&mut self) {
        self.shared.abandon();
    }
}

impl<T, K: Key> fmt::Debug for DeltaFifoConsumer<T, K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DeltaFifoConsumer").field("name", &self.shared.name()).finish_non_exhaustive()
    }
}

/// The changes of one key, while they are processed. Dropping it says that they have been.
///
/// Apply the changes to the store first, drop the guard then: until that they count as queued. If they could not be
/// processed, [`requeue`](Self::requeue) them.
///
/// A guard that is dropped by a panic counts as processed, like an error of client-go's process function, and the log
/// says so. One that is leaked with [`std::mem::forget`] comes back with the next pop.
#[must_use = "dropping the guard says that the changes have been processed"]
pub struct DeltasGuard<'a, T, K: Key = ObjectKey> {
    deltas: Arc<Deltas<T, K>>,
    in_initial_list: bool,
    hand: Hand<'a, T, K>,
}

/// Says when processing has ended.
struct Hand<'a, T, K: Key> {
    consumer: &'a mut DeltaFifoConsumer<T, K>,
    slow: SlowPop,
    /// The thread was panicking already when this was taken out.
    panicking: bool,
    requeued: bool,
}

impl<'a, T, K: Key> DeltasGuard<'a, T, K> {
    fn new(consumer: &'a mut DeltaFifoConsumer<T, K>, taken: Taken<T, K>) -> Self {
        let Taken { deltas, in_initial_list, depth } = taken;
        let slow = SlowPop::start(1, depth);
        let hand = Hand { consumer, slow, panicking: std::thread::panicking(), requeued: false };
        Self { deltas, in_initial_list, hand }
    }

    /// The queue was not synced when these were taken out: they are of the first list, or came with it.
    pub fn is_in_initial_list(&self) -> bool {
        self.in_initial_list
    }
}

impl<T: Clone, K: Key> DeltasGuard<'_, T, K> {
    /// Puts the changes back, before newer ones of their key. If there are none, they go to the end of the queue, so
    /// that what cannot be processed does not hold up the rest.
    pub fn requeue(self) {
        let Self { deltas, mut hand, .. } = self;
        hand.requeued = true;
        hand.slow.end(hand.consumer.shared.name(), deltas.key());
        hand.consumer.shared.consume(|queue| queue.requeue(deltas));
    }
}

impl<T, K: Key> Deref for DeltasGuard<'_, T, K> {
    type Target = Deltas<T, K>;

    fn deref(&self) -> &Deltas<T, K> {
        &self.deltas
    }
}

impl<T, K: Key> fmt::Debug for DeltasGuard<'_, T, K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.deltas.fmt(f)
    }
}

impl<T, K: Key> Drop for Hand<'_, T, K> {
    fn drop(&mut self) {
        if self.requeued {
            return;
        }
        let DeltaFifoConsumer { shared, known } = &*self.consumer;
        let Some(done) = shared.consume(|queue| queue.done(known)) else { return };
        self.slow.end(shared.name(), done.key());
        if std::thread::panicking() && !self.panicking {
            tracing::error!(
                queue = shared.name(),
                key = ?done.key(),
                "processing panicked; the changes count as processed"
            );
        }
    }
}
