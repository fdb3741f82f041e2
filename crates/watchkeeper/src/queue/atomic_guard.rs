//! How are changes taken out of an [`AtomicFifo`](super::AtomicFifo)?

use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

use smallvec::SmallVec;

use super::batch::Batch;
use super::entries::{Entries, Taken};
use super::shared::{Closed, Shared};
use super::slow::SlowPop;
use crate::defaults::BATCH_SIZE;
use crate::{Key, ObjectKey};

/// The consumer's side of an [`AtomicFifo`](super::AtomicFifo). There is one, and it takes out one batch at a time.
pub struct AtomicFifoConsumer<T, K: Key = ObjectKey> {
    shared: Arc<Shared<Entries<T, K>>>,
}

impl<T, K: Key> AtomicFifoConsumer<T, K> {
    pub(super) fn new(shared: Arc<Shared<Entries<T, K>>>) -> Self {
        Self { shared }
    }

    /// Takes out the first entry, and waits if there is none. An error means that the queue is closed and empty.
    ///
    /// Cancel-safe: dropping the future loses nothing.
    pub async fn pop(&mut self) -> Result<BatchGuard<'_, T, K>, Closed> {
        self.take(1).await
    }

    /// Takes out up to 1,000 entries that can be processed together: changes of different objects. A list, a resync
    /// and a bookmark come alone, and what belongs to the first list does not come with what came after it.
    ///
    /// Cancel-safe: dropping the future loses nothing.
    pub async fn pop_batch(&mut self) -> Result<BatchGuard<'_, T, K>, Closed> {
        self.take(BATCH_SIZE).await
    }

    /// Takes out the first entry, if there is one now.
    pub fn try_pop(&mut self) -> Result<Option<BatchGuard<'_, T, K>>, Closed> {
        self.try_take(1)
    }

    /// Takes out a [batch](Self::pop_batch), if there is one now.
    pub fn try_pop_batch(&mut self) -> Result<Option<BatchGuard<'_, T, K>>, Closed> {
        self.try_take(BATCH_SIZE)
    }

    async fn take(&mut self, limit: usize) -> Result<BatchGuard<'_, T, K>, Closed> {
        let taken = self.shared.take(|queue| queue.take(limit)).await?;
        Ok(BatchGuard::new(self, taken))
    }

    fn try_take(&mut self, limit: usize) -> Result<Option<BatchGuard<'_, T, K>>, Closed> {
        let taken = self.shared.try_take(|queue| queue.take(limit))?;
        Ok(taken.map(|taken| BatchGuard::new(self, taken)))
    }
}

impl<T, K: Key> Drop for AtomicFifoConsumer<T, K> {
    fn drop(&mut self) {
        self.shared.abandon();
    }
}

impl<T, K: Key> fmt::Debug for AtomicFifoConsumer<T, K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AtomicFifoConsumer").field("name", &self.shared.name()).finish_non_exhaustive()
    }
}

/// Entries, while they are processed. Dropping it says that they have been.
///
/// A guard that is dropped by a panic counts as processed, like an error of client-go's process function, and the log
/// says so. What is in a guard that is leaked with [`std::mem::forget`] is lost with it.
#[must_use = "dropping the guard says that the entries have been processed"]
pub struct BatchGuard<'a, T, K: Key = ObjectKey> {
    batch: Batch<T, K>,
    in_initial_list: bool,
    hand: Hand<'a, T, K>,
}

/// Says when processing has ended.
struct Hand<'a, T, K: Key> {
    consumer: &'a mut AtomicFifoConsumer<T, K>,
    slow: SlowPop,
    /// How many entries were taken out, and the key of the first, for the log.
    size: usize,
    first: Option<K>,
    /// The thread was panicking already when this was taken out.
    panicking: bool,
    requeued: bool,
}

impl<'a, T, K: Key> BatchGuard<'a, T, K> {
    fn new(consumer: &'a mut AtomicFifoConsumer<T, K>, taken: Taken<T, K>) -> Self {
        let Taken { batch, in_initial_list, depth } = taken;
        let (size, first) = (batch.len(), batch.first().and_then(|entry| entry.key().cloned()));
        let slow = SlowPop::start(size, depth);
        let hand = Hand { consumer, slow, size, first, panicking: std::thread::panicking(), requeued: false };
        Self { batch, in_initial_list, hand }
    }

    /// The queue was not synced when these were taken out: they are of the first list, or were in front of it.
    pub fn is_in_initial_list(&self) -> bool {
        self.in_initial_list
    }

    /// Takes the entries out of the guard, so that they need not be copied. The guard still stands for them: drop it
    /// when they have been processed. It cannot put back what was taken out of it.
    pub fn take(&mut self) -> Batch<T, K> {
        Batch { entries: std::mem::replace(&mut self.batch.entries, SmallVec::new()) }
    }

    /// Puts the entries back, at the front of the queue.
    pub fn requeue(self) {
        let Self { batch, mut hand, .. } = self;
        hand.requeued = true;
        hand.slow.end(hand.consumer.shared.name(), &hand.first);
        hand.consumer.shared.consume(|queue| queue.requeue(batch));
    }
}

impl<T, K: Key> Deref for BatchGuard<'_, T, K> {
    type Target = Batch<T, K>;

    fn deref(&self) -> &Batch<T, K> {
        &self.batch
    }
}

impl<T, K: Key> fmt::Debug for BatchGuard<'_, T, K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.batch.fmt(f)
    }
}

impl<T, K: Key> Drop for Hand<'_, T, K> {
    fn drop(&mut self) {
        if self.requeued {
            return;
        }
        let shared = &self.consumer.shared;
        shared.consume(Entries::done);
        self.slow.end(shared.name(), &self.first);
        if std::thread::panicking() && !self.panicking {
            tracing::error!(
                queue = shared.name(),
                key = ?self.first,
                entries = self.size,
                "processing panicked; the changes count as processed"
            );
        }
    }
}
