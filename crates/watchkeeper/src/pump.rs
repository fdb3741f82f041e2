//! How are a source, a queue and a function put together?
//!
//! A [`Pump`] runs a [`Reflector`] that fills a queue, and calls a function with what comes out of it: what an informer does,
//! for those who assemble their own.
//!
//! ```
//! use std::sync::Arc;
//!
//! use tokio_util::sync::CancellationToken;
//! use watchkeeper::queue::{Delta, DeltaFifo, Deltas};
//! use watchkeeper::{Error, Indexer, Object, Pump};
//! # use watchkeeper::{Scripted, ScriptedList, ScriptedWatch};
//!
//! # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Error> {
//! # let pod = |name: &str| Object::from_json(format!(r#"{{"metadata":{{"name":"{name}","resourceVersion":"1"}}}}"#));
//! # let source = Scripted::new().answer_list(ScriptedList::new("1", [pod("a")?]))
//! #     .answer_watch(ScriptedWatch::new().added(pod("b")?).hang());
//! let store = Arc::new(Indexer::objects());
//! let queue = DeltaFifo::objects().known_objects(store.clone()).emit_replaced(true).build();
//! let pump = Pump::new(source, queue, {
//!     let store = store.clone();
//!     move |changes: &Deltas<Object>| {
//!         for change in changes.iter() {
//!             match change {
//!                 Delta::Deleted { .. } => store.delete_by_key(changes.key()),
//!                 Delta::Added(pod) | Delta::Updated(pod) | Delta::Replaced(pod) | Delta::Sync(pod) => {
//!                     store.update(pod.clone())?;
//!                 }
//!             }
//!         }
//!         Ok::<_, Error>(())
//!     }
//! });
//! let state = pump.state();
//! let token = CancellationToken::new();
//! let running = tokio::spawn(pump.run(token.clone()));
//! # while store.len() < 2 { tokio::task::yield_now().await; }
//! # tokio::task::yield_now().await;
//! assert!(state.has_synced());
//! token.cancel();
//! # running.await.unwrap();
//! # Ok(()) }
//! ```

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;

use crate::defaults::{PROCESS_RETRY, PROCESS_RETRY_MAX};
use crate::queue::{Consumer, Guard as _};
use crate::{ListerWatcher, Object, Queue, Reflector, ReflectorStore, ResourceVersion, StatusReader};

/// A reflector, a queue, and a function for what comes out of it: client-go's `cache.Controller`.
pub struct Pump<C, F> {
    reflector: Reflector,
    queue: Arc<dyn Queue<Object>>,
    consumer: C,
    process: F,
    retry_on_error: bool,
}

impl<C, F, E> Pump<C, F>
where
    C: Consumer,
    F: FnMut(&C::Changes) -> Result<(), E> + Send,
    E: fmt::Display,
{
    /// A pump from `source`, through a queue (both of its sides, as its builder gives them), into `process`. It does nothing
    /// before it [runs](Self::run).
    ///
    /// Nothing waits for `process` but what waits in the queue. An error of it is logged, and the changes count as
    /// processed, unless [they are to be tried again](Self::retry_on_error). A panic, of it or of the reflector, comes out
    /// of [`run`](Self::run).
    pub fn new<Q>(source: impl ListerWatcher + 'static, (queue, consumer): (Q, C), process: F) -> Self
    where
        Q: ReflectorStore + Queue<Object> + Clone + 'static,
    {
        let reflector = Reflector::new(source, queue.clone());
        Self { reflector, queue: Arc::new(queue), consumer, process, retry_on_error: false }
    }

    /// Sets what is to be set of the reflector: its name, its resync period, its backoff.
    pub fn reflector(mut self, set: impl FnOnce(Reflector) -> Reflector) -> Self {
        self.reflector = set(self.reflector);
        self
    }

    /// How often all objects are said again while it watches; zero, the default, is never.
    pub fn resync_period(self, period: Duration) -> Self {
        self.reflector(|reflector| reflector.resync_period(period))
    }

    /// Asked at each resync whether to do it.
    pub fn should_resync(self, should: impl Fn() -> bool + Send + Sync + 'static) -> Self {
        self.reflector(|reflector| reflector.should_resync(should))
    }

    /// Whether changes on which `process` failed are put back into the queue, and tried again; false by default. What waits
    /// behind them in a `DeltaFifo` comes first. When all that waits has failed, all wait for 5 ms to 1 s, the longer the
    /// more often that has happened in a row. An `AtomicFifo` keeps its order: what fails there holds up all others.
    pub fn retry_on_error(mut self, retry: bool) -> Self {
        self.retry_on_error = retry;
        self
    }

    /// How it goes, now and later.
    pub fn state(&self) -> PumpState {
        PumpState { queue: self.queue.clone(), reflector: self.reflector.status() }
    }

    /// Runs until `token` is cancelled. What waits in the queue then is not processed any more, and nothing is left running.
    pub async fn run(self, token: CancellationToken) {
        let Self { reflector, queue, mut consumer, mut process, retry_on_error } = self;
        // A task of its own: the watch does not wait while `process` works.
        let mut reflector = AbortOnDropHandle::new(tokio::spawn(reflector.run(token.clone())));
        let (mut wait, mut failed) = (PROCESS_RETRY, 0);
        let work = async {
            // It may be long until this has to wait for something, and the token be cancelled meanwhile.
            while !token.is_cancelled() {
                let Ok(changes) = consumer.next().await else { break };
                match process(&changes) {
                    Ok(()) => (wait, failed) = (PROCESS_RETRY, 0),
                    Err(error) if retry_on_error => {
                        tracing::debug!(%error, "processing failed; it will be tried again");
                        changes.requeue();
                        failed += 1;
                        if failed > consumer.before_requeued() {
                            tokio::time::sleep(wait).await;
                            (wait, failed) = ((wait * 2).min(PROCESS_RETRY_MAX), 0);
                        }
                    }
                    Err(error) => tracing::warn!(%error, "processing failed; the changes count as processed"),
                }
                // There may be no end of changes, and others want to run too.
                tokio::task::consume_budget().await;
            }
        };
        let ended = tokio::select! {
            biased;
            // By the token, or by a panic.
            ended = &mut reflector => ended,
            _ = token.run_until_cancelled(work) => {
                if !token.is_cancelled() {
                    // Somebody else has closed the queue, and nobody needs it any more.
                    reflector.abort();
                }
                reflector.await
            }
        };
        queue.close();
        if let Some(panic) = ended.err().and_then(|error| error.try_into_panic().ok()) {
            std::panic::resume_unwind(panic);
        }
    }
}

/// How a [`Pump`] goes.
#[derive(Clone)]
pub struct PumpState {
    queue: Arc<dyn Queue<Object>>,
    reflector: StatusReader,
}

impl PumpState {
    /// The first list has been processed.
    pub fn has_synced(&self) -> bool {
        self.queue.has_synced()
    }

    /// The version of the last change, list or bookmark that the reflector has seen.
    pub fn last_sync_resource_version(&self) -> ResourceVersion {
        self.reflector.get().resource_version.clone()
    }

    /// The reflector's status.
    pub fn reflector(&self) -> &StatusReader {
        &self.reflector
    }
}

impl fmt::Debug for PumpState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PumpState").field("synced", &self.has_synced()).finish_non_exhaustive()
    }
}
