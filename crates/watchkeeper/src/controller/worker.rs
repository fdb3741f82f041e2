//! What a worker does with a key.

use std::fmt;
use std::hash::Hash;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::Duration;

use futures::FutureExt as _;
use tokio_util::sync::CancellationToken;

use super::outcome::{Outcome, ReconcileError};
use super::stats::StatsReader;
use crate::workqueue::limiter::Failures;
use crate::workqueue::{AddOptions, Item, RateLimitingQueue};

/// Told of keys that are not tried again.
pub(super) type GiveUpHook<T> = dyn Fn(&T, &ReconcileError) + Send + Sync;

/// What all workers of a controller share.
pub(super) struct Worker<T: Eq + Hash + Clone> {
    pub(super) name: Box<str>,
    pub(super) queue: RateLimitingQueue<T>,
    pub(super) max_retries: Option<u32>,
    pub(super) timeout: Option<Duration>,
    pub(super) stats: StatsReader,
    /// Errors of each key since it last went well. The limiter's count is another: it has those who asked to be tried again,
    /// and some limiters count nothing.
    pub(super) failures: Failures<T>,
    /// Keys whose work did not come to its end.
    pub(super) put_back: AtomicUsize,
    pub(super) on_give_up: Option<Arc<GiveUpHook<T>>>,
}

impl<T: Eq + Hash + Clone + fmt::Debug + Send + 'static> Worker<T> {
    /// Works on one key after the other until `token` is cancelled or the queue shut down. What is begun is finished.
    pub(super) async fn run<F, R>(&self, token: &CancellationToken, reconcile: &F)
    where
        F: Fn(T) -> R,
        R: Future<Output = Result<Outcome, ReconcileError>>,
    {
        loop {
            let item = tokio::select! {
                biased;
                () = token.cancelled() => return,
                item = self.queue.get() => item,
            };
            let Ok(item) = item else { return };
            self.work(item, reconcile).await;
        }
    }

    async fn work<F, R>(&self, item: Item<T>, reconcile: &F)
    where
        F: Fn(T) -> R,
        R: Future<Output = Result<Outcome, ReconcileError>>,
    {
        let _active = self.stats.active();
        let mut unfinished = Unfinished { worker: self, item, finished: false };
        let item = &unfinished.item;
        // Wherever it is: in the closure, in its future or the drop of that, in an error that is shown.
        if AssertUnwindSafe(self.attempt(item, reconcile)).catch_unwind().await.is_err() {
            self.stats.panicked();
            self.failed(item, &"it panicked".into());
        }
        unfinished.finished = true;
    }

    async fn attempt<F, R>(&self, item: &Item<T>, reconcile: &F)
    where
        F: Fn(T) -> R,
        R: Future<Output = Result<Outcome, ReconcileError>>,
    {
        let work = async { reconcile((**item).clone()).await };
        let result = match self.timeout {
            None => work.await,
            Some(limit) => tokio::time::timeout(limit, work).await.unwrap_or_else(|_| {
                self.stats.timed_out();
                Err(format!("it took longer than {limit:?}, and was given up").into())
            }),
        };
        match result {
            Ok(outcome) => {
                self.stats.succeeded();
                self.failures.forget(item);
                self.follow_up(item, outcome);
            }
            Err(error) => self.failed(item, &error),
        }
    }

    fn follow_up(&self, item: &Item<T>, outcome: Outcome) {
        let key = &**item;
        match outcome {
            Outcome::Done => self.settle(item),
            Outcome::Requeue => self.try_again(item),
            Outcome::RequeueAfter(delay) => {
                self.settle(item);
                self.queue.add_after(key.clone(), delay);
            }
        }
    }

    fn failed(&self, item: &Item<T>, error: &ReconcileError) {
        let key = &**item;
        let (controller, retries) = (&*self.name, self.failures.get(key));
        let is_last = self.max_retries.is_some_and(|max| retries >= max);
        if !error.is_terminal() && !is_last {
            tracing::warn!(controller, ?key, retries, %error, "reconciling failed, and is tried again");
            self.stats.failed();
            self.failures.count(key);
            return self.try_again(item);
        }
        tracing::error!(controller, ?key, retries, %error, "reconciling failed, and is not tried again until something changes");
        self.stats.failed();
        self.stats.gave_up();
        self.failures.forget(key);
        self.settle(item);
        if let Some(hook) = &self.on_give_up
            && std::panic::catch_unwind(AssertUnwindSafe(|| hook(key, error))).is_err()
        {
            tracing::error!(controller, "the hook for keys that are given up panicked");
        }
    }

    /// It went well, or is given up: the next failure is the first again, and a retry that was to come, because an event was
    /// faster, need not.
    fn settle(&self, item: &Item<T>) {
        self.queue.forget(item);
        item.cancel_retry();
    }

    /// With backoff, and no more urgent than it was.
    fn try_again(&self, item: &Item<T>) {
        let options = AddOptions { priority: item.priority(), rate_limited: true, ..AddOptions::default() };
        self.queue.add_with((**item).clone(), options);
    }
}

/// A key whose work has not come to its end. If it never does, because the grace period is over, the key goes back: nothing
/// is lost.
struct Unfinished<'a, T: Eq + Hash + Clone + Send + 'static> {
    worker: &'a Worker<T>,
    item: Item<T>,
    finished: bool,
}

impl<T: Eq + Hash + Clone + Send + 'static> Drop for Unfinished<'_, T> {
    fn drop(&mut self) {
        if !self.finished {
            // While the item is held: it comes again when that is dropped.
            let options = AddOptions { priority: self.item.priority(), ..AddOptions::default() };
            self.worker.queue.add_with((*self.item).clone(), options);
            self.worker.put_back.fetch_add(1, Relaxed);
        }
    }
}
