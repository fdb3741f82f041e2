//! Workers that reconcile keys.

use std::fmt;
use std::hash::Hash;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::Duration;

use futures::future::{BoxFuture, pending, select_all, try_join_all};
use kube_core::Resource;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use tracing::Instrument as _;

use super::outcome::{Outcome, ReconcileError};
use super::predicate::Predicate;
use super::sources::{Source, controller_of};
use super::stats::StatsReader;
use super::worker::{GiveUpHook, Worker};
use crate::defaults::CONTROLLER_GRACE;
use crate::workqueue::RateLimitingQueue;
use crate::workqueue::limiter::Failures;
use crate::{Cached, Error, ErrorKind, ObjectKey, SharedInformer};

/// Takes keys out of a queue and has them reconciled, by several workers, each key by one at a time.
///
/// See [the module](crate::controller) for an example.
#[must_use = "a controller does nothing until it runs"]
pub struct Controller<T: Eq + Hash + Clone = ObjectKey> {
    worker: Worker<T>,
    workers: usize,
    grace: Duration,
    sources: Vec<Source<T>>,
}

impl<T: Eq + Hash + Clone + fmt::Debug + Send + Sync + 'static> Controller<T> {
    /// A controller for what is in this queue. Whoever has a clone of the queue can add to it.
    pub fn new(name: impl Into<Box<str>>, queue: RateLimitingQueue<T>) -> Self {
        let worker = Worker {
            name: name.into(),
            queue,
            max_retries: None,
            timeout: None,
            stats: StatsReader::default(),
            failures: Failures::new(),
            put_back: AtomicUsize::new(0),
            on_give_up: None,
        };
        Self { worker, workers: 1, grace: CONTROLLER_GRACE, sources: Vec::new() }
    }

    /// How many keys are reconciled at the same time; one by default.
    pub fn workers(mut self, workers: usize) -> Self {
        self.workers = workers.max(1);
        self
    }

    /// How often a key that fails is tried again, after which it is reported and left alone until something changes. Without
    /// this, for ever. Failures count, not [requeues](Outcome::Requeue), and those of events that come before the backoff is
    /// over do too.
    pub fn max_retries(mut self, retries: u32) -> Self {
        self.worker.max_retries = Some(retries);
        self
    }

    /// How long one reconciliation may take. Longer ones are dropped at their next await, and tried again.
    pub fn timeout(mut self, limit: Duration) -> Self {
        self.worker.timeout = Some(limit);
        self
    }

    /// How long work that is running may take to finish when the controller is stopped; 30 s by default.
    pub fn grace(mut self, grace: Duration) -> Self {
        self.grace = grace;
        self
    }

    /// Called with each key that is not tried again, and why. It must not block.
    pub fn on_give_up(mut self, hook: impl Fn(&T, &ReconcileError) + Send + Sync + 'static) -> Self {
        self.worker.on_give_up = Some(Arc::new(hook) as Arc<GiveUpHook<T>>);
        self
    }

    /// Puts keys into the queue: what `map` makes of each object that this informer tells of. Of an object that changed, it is
    /// asked about both states, so that what no longer points to something is noticed too.
    ///
    /// What was there before the controller comes at a low priority.
    pub fn watches<K: 'static, I: IntoIterator<Item = T>>(
        self,
        informer: &SharedInformer<K>,
        map: impl Fn(&Cached<K>) -> I + Send + Sync + 'static,
    ) -> Self {
        self.with(Source::new(informer, None, map))
    }

    /// The same, of events that pass a predicate.
    pub fn watches_if<K: 'static, I: IntoIterator<Item = T>>(
        self,
        informer: &SharedInformer<K>,
        predicate: Predicate<K>,
        map: impl Fn(&Cached<K>) -> I + Send + Sync + 'static,
    ) -> Self {
        self.with(Source::new(informer, Some(predicate), map))
    }

    fn with(mut self, source: Source<T>) -> Self {
        self.sources.push(source);
        self
    }

    /// The controller's numbers, now and later.
    pub fn stats(&self) -> StatsReader {
        self.worker.stats.clone()
    }

    /// Runs until `token` is cancelled, or the queue is shut down and empty; or until an informer that it watches stops before
    /// that, which is an error: nothing would come any more.
    ///
    /// First the informers that it [watches](Self::watches) have to sync, which need to be started for that; an error of one
    /// comes out here. Then `reconcile` is called with one key after the other, by each worker. A key that fails, or whose
    /// work panics or takes too long, is tried again after a backoff.
    ///
    /// When it is stopped no other key is begun. What is running may finish, within the
    /// [grace period](Self::grace); what does not is dropped at its next await, and its key goes back into the queue: no key is
    /// lost to whoever takes over the queue. That is an error then, which says how many.
    pub async fn run<F, R>(self, token: CancellationToken, reconcile: F) -> Result<(), Error>
    where
        F: Fn(T) -> R + Send + Sync + 'static,
        R: Future<Output = Result<Outcome, ReconcileError>> + Send + 'static,
    {
        let Self { worker, workers, grace, sources } = self;
        let span = tracing::info_span!("controller", name = &*worker.name);
        let work = async {
            let begun: Vec<_> = sources
                .into_iter()
                .map(|source| source.begin(&worker.queue, &worker.name))
                .collect::<Result<_, Error>>()?;
            // Until this is dropped, events come.
            let mut handlers = Vec::new();
            let (synced, stopped): (Vec<_>, Vec<_>) = begun
                .into_iter()
                .map(|source| {
                    handlers.push(source.handler);
                    (source.synced, source.stopped)
                })
                .unzip();
            match token.run_until_cancelled(try_join_all(synced)).await {
                Some(synced) => synced?,
                None => return Ok(()),
            };
            tracing::debug!(workers, "reconciling");
            let (worker, reconcile) = (Arc::new(worker), Arc::new(reconcile));
            let (mut running, stop) = (JoinSet::new(), token.child_token());
            for _ in 0..workers {
                let (worker, reconcile, stop) = (worker.clone(), reconcile.clone(), stop.clone());
                running.spawn(async move { worker.run(&stop, &*reconcile).await }.in_current_span());
            }
            let mut over = None;
            let stopping = async {
                over = token.run_until_cancelled(first(stopped)).await;
                stop.cancel();
            };
            let in_time = finish(running, stopping, grace).await;
            let left = worker.put_back.load(Relaxed);
            if !in_time && left > 0 {
                return Err(Error::new(
                    ErrorKind::Timeout,
                    format_args!(
                        "controller {} did not finish its work within {grace:?}; keys that are back in the queue: {left}",
                        worker.name
                    ),
                ));
            }
            over.map_or(Ok(()), Err)
        };
        match work.instrument(span).await {
            // The informers were stopped with it.
            Err(error) if error.kind() == ErrorKind::Stopped && token.is_cancelled() => Ok(()),
            result => result,
        }
    }
}

/// Waits for the workers: without `stopping` they end with the queue, after it they have so long. False if that was not enough.
async fn finish(mut running: JoinSet<()>, stopping: impl Future<Output = ()>, grace: Duration) -> bool {
    let all = async {
        while let Some(ended) = running.join_next().await {
            // What users gave us is caught where it is called. What is left must not go unnoticed.
            if let Some(panic) = ended.err().and_then(|error| error.try_into_panic().ok()) {
                std::panic::resume_unwind(panic);
            }
        }
    };
    let too_late = async {
        stopping.await;
        tokio::time::sleep(grace).await;
    };
    tokio::select! {
        biased;
        () = all => return true,
        () = too_late => {}
    }
    running.shutdown().await;
    false
}

/// Why the first of the informers stopped. Without any, never.
async fn first(stopped: Vec<BoxFuture<'static, Error>>) -> Error {
    if stopped.is_empty() { pending().await } else { select_all(stopped).await.0 }
}

impl Controller<ObjectKey> {
    /// Puts the key of each object that this informer tells of into the queue: these are what is reconciled.
    pub fn reconciles<K: 'static>(self, informer: &SharedInformer<K>) -> Self {
        self.watches(informer, |object| [object.key().clone()])
    }

    /// The same, of events that pass a predicate.
    pub fn reconciles_if<K: 'static>(self, informer: &SharedInformer<K>, predicate: Predicate<K>) -> Self {
        self.watches_if(informer, predicate, |object| [object.key().clone()])
    }

    /// Puts in the key of the `Parent` that controls each object that this informer tells of, as its owner references say.
    pub fn owns<Parent, Child>(self, children: &SharedInformer<Child>) -> Self
    where
        Parent: Resource<DynamicType = ()> + 'static,
        Parent::Scope: 'static,
        Child: 'static,
    {
        self.watches(children, |child| controller_of::<Parent>(child))
    }
}

impl<T: Eq + Hash + Clone> fmt::Debug for Controller<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Controller")
            .field("name", &self.worker.name)
            .field("workers", &self.workers)
            .finish_non_exhaustive()
    }
}
