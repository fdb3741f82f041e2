//! The part of an informer that has no type: partitions, life and death.
//!
//! Tasks: for each partition one that lists and watches (the reflector) and one that applies what came (the processor's), for
//! each handler one, and one that supervises them: it waits for the end, resyncs in time, and at the end stops them in their
//! order, first those that write, then the handlers.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant as StdInstant};

use arc_swap::ArcSwapOption;
use tokio::runtime::Handle;
use tokio::sync::Notify;
use tokio::task::JoinSet;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tracing::Instrument as _;

use super::flag::Flag;
use super::lease::{Lease, Leases};
use super::listener::Listener;
use super::processor::Processor;
use super::run::Runner;
use super::sample::Measured;
use crate::defaults::SLOW_SHUTDOWN;
use crate::queue::{AtomicFifoConsumer, DeltaFifoConsumer};
use crate::{AtomicFifo, DeltaFifo, Error, ErrorKind, ListerWatcher, Object, Reflector, Relister, StatusReader};

pub(crate) type WatchErrorHook = dyn Fn(&Error) + Send + Sync;

/// One informer. Everything public is a view of it.
pub(crate) struct Core {
    /// What is listed and watched, for logs and errors.
    pub(crate) name: Arc<str>,
    /// What listers call the kind.
    pub(super) kind: Option<Box<str>>,
    pub(super) processor: Processor,
    pub(super) partitions: Vec<Partition>,
    pub(super) leases: Leases,
    pub(super) resync: Duration,
    pub(super) sync_timeout: Duration,
    linger: Duration,
    life: Mutex<Life>,
    started: Flag,
    stop: CancellationToken,
    /// Everything has ended.
    pub(super) stopped: Flag,
    /// Why, if nobody wanted it to.
    pub(super) failure: ArcSwapOption<Error>,
    pub(super) on_watch_error: ArcSwapOption<Box<WatchErrorHook>>,
    /// A handler has come that may want a resync before all others.
    handlers_changed: Notify,
    /// Who measures it, until it begins to stop.
    measured: Mutex<Option<Measured>>,
    /// The server has refused something, which those who wait for the first list want to know.
    pub(super) refused: Notify,
}

/// What is listed and watched by itself.
pub(super) struct Partition {
    pub(super) namespace: Option<Arc<str>>,
    /// What it lists and watches, for errors.
    pub(super) description: Box<str>,
    /// Where it comes from, until it has stopped: a source may have a task of its own, to pack objects, say.
    pub(super) source: Mutex<Option<Arc<dyn ListerWatcher>>>,
    pub(super) status: StatusReader,
    pub(super) queue: Gauge,
    /// Changes leave the queue in the order in which they came.
    pub(super) ordered: bool,
    pub(super) relister: Relister,
    /// How often in a row the server has said, while there was no list yet, that there is nothing to be had.
    pub(super) refusals: AtomicU32,
}

/// How long is a queue?
pub(super) type Gauge = Box<dyn Fn() -> usize + Send + Sync>;

/// What a partition needs to run.
pub(super) struct Engine {
    pub(super) reflector: Reflector,
    pub(super) line: Line,
}

/// The queue of a partition, with both of its ends.
pub(super) enum Line {
    Atomic(AtomicFifo<Object>, AtomicFifoConsumer<Object>),
    Delta(DeltaFifo<Object>, DeltaFifoConsumer<Object>),
}

enum Life {
    New(Vec<Engine>),
    Running(Handle),
    Stopped,
}

/// What an informer is made of.
pub(super) struct Parts {
    pub(super) name: Arc<str>,
    pub(super) kind: Option<Box<str>>,
    pub(super) processor: Processor,
    pub(super) partitions: Vec<Partition>,
    pub(super) engines: Vec<Engine>,
    pub(super) resync: Duration,
    pub(super) sync_timeout: Duration,
    pub(super) linger: Duration,
    pub(super) on_watch_error: Option<Box<WatchErrorHook>>,
    pub(super) measured: Option<Measured>,
}

impl Core {
    pub(super) fn new(parts: Parts) -> Self {
        let Parts {
            name,
            kind,
            processor,
            partitions,
            engines,
            resync,
            sync_timeout,
            linger,
            on_watch_error,
            measured,
        } = parts;
        Self {
            name,
            kind,
            processor,
            partitions,
            leases: Leases::default(),
            resync,
            sync_timeout,
            linger,
            life: Mutex::new(Life::New(engines)),
            started: Flag::default(),
            stop: CancellationToken::new(),
            stopped: Flag::default(),
            failure: ArcSwapOption::empty(),
            on_watch_error: ArcSwapOption::from_pointee(on_watch_error),
            handlers_changed: Notify::new(),
            measured: Mutex::new(measured),
            refused: Notify::new(),
        }
    }

    /// Starts everything, on the runtime that this is called in. It ends when `token` is cancelled, at [`stop`](Self::stop),
    /// or when nobody has needed it for a while. A second start does nothing.
    pub(crate) fn start(self: &Arc<Self>, token: CancellationToken) -> Result<(), Error> {
        let mut life = self.life();
        let engines = match &mut *life {
            Life::Running(_) => return Ok(()),
            Life::Stopped => return Err(self.is_over("it cannot be started again")),
            Life::New(_) if self.partitions.is_empty() => {
                return Err(Error::new(
                    ErrorKind::Config,
                    format_args!("the informer of {} was given no namespace to watch", self.name),
                ));
            }
            Life::New(engines) => engines,
        };
        let Ok(runtime) = Handle::try_current() else {
            return Err(Error::new(
                ErrorKind::Config,
                format_args!(
                    "the informer of {} must be started from within a tokio runtime: in #[tokio::main], or in \
                     Runtime::enter",
                    self.name
                ),
            ));
        };
        let engines = std::mem::take(engines);
        *life = Life::Running(runtime.clone());
        drop(life);
        self.started.raise();
        let span = tracing::info_span!("informer", name = &*self.name);
        // Without the lock: a runtime that is shutting down drops the task at once, and with it what says that all is over.
        runtime.spawn(supervise(Over(self.clone()), engines, token).instrument(span));
        for listener in self.processor.listeners() {
            if let Some(runner) = listener.take_runner() {
                self.start_handler(runner, &runtime);
            }
        }
        Ok(())
    }

    /// Adds a handler. Its runner is started when the informer is.
    pub(super) fn join(self: &Arc<Self>, listener: &Arc<Listener>, runner: Option<Runner>) -> Result<(), Error> {
        let life = self.life();
        if matches!(&*life, Life::Stopped) || !self.processor.join(listener) {
            drop(life);
            return Err(self.is_over("it takes no handlers any more"));
        }
        let runtime = match &*life {
            Life::Running(runtime) => Some(runtime.clone()),
            Life::New(_) | Life::Stopped => None,
        };
        match (&runtime, runner) {
            (Some(runtime), Some(runner)) => {
                drop(life);
                self.start_handler(runner, runtime);
            }
            // With the lock, so that it is there for who starts the informer.
            (None, Some(runner)) => {
                listener.put_runner(runner);
                drop(life);
                listener.drop_runner_if_removed();
            }
            (_, None) => {}
        }
        self.handlers_changed.notify_one();
        Ok(())
    }

    fn start_handler(self: &Arc<Self>, runner: Runner, runtime: &Handle) {
        // If there is none to be had, the informer stops at this moment, and the handler with it.
        if let Some(lease) = Lease::of(self) {
            runner.start(runtime, lease);
        }
    }

    pub(crate) fn is_started(&self) -> bool {
        self.started.is_raised()
    }

    /// It stops, or has stopped: nobody can have it any more.
    pub(crate) fn is_ending(&self) -> bool {
        self.leases.is_closed()
    }

    /// Begins to stop everything, and says why.
    pub(crate) fn stop_because(&self, failure: Error) {
        self.failure.store(Some(Arc::new(failure)));
        self.stop();
    }

    /// Begins to stop everything.
    pub(crate) fn stop(&self) {
        // In this order: with the leases closed, another one may take its place.
        self.end_measuring();
        self.leases.close();
        self.stop.cancel();
        let mut life = self.life();
        if let Life::New(engines) = &mut *life {
            let engines = std::mem::take(engines);
            *life = Life::Stopped;
            drop(life);
            drop(engines);
            self.processor.stop();
            self.has_stopped();
        }
    }

    /// What packs objects for a source ends with the last who holds the source.
    fn let_sources_go(&self) {
        for partition in &self.partitions {
            let source = partition.source.lock().unwrap_or_else(PoisonError::into_inner).take();
            drop(source);
        }
    }

    fn has_stopped(&self) {
        self.let_sources_go();
        self.end_measuring();
        self.stopped.raise();
    }

    fn end_measuring(&self) {
        let measured = self.measured().take();
        drop(measured);
    }

    pub(crate) async fn until_stopped(&self) {
        self.stopped.raised().await;
    }

    pub(crate) fn is_stopped(&self) -> bool {
        self.stopped.is_raised()
    }

    pub(crate) fn has_synced(&self) -> bool {
        self.processor.synced.is_raised()
    }

    /// Somebody holds it, or has a handler in it.
    pub(crate) fn is_needed(&self) -> bool {
        self.leases.are_any() || !self.processor.listeners().is_empty()
    }

    pub(super) fn is_over(&self, therefore: &str) -> Error {
        let why = match self.failure.load_full() {
            Some(failure) => format!(" ({failure})"),
            None => String::new(),
        };
        let name = &self.name;
        Error::new(ErrorKind::Stopped, format_args!("the informer of {name} has been stopped{why}: {therefore}"))
    }

    /// A cycle of list and watch has ended with an error.
    pub(super) fn watch_failed(&self, partition: usize, error: &Error) {
        let refusals = &self.partitions[partition].refusals;
        // To an older server a streaming list is no valid request, but then pages are tried before this is called: what is
        // wrong is the list itself, a selector most often.
        let is_refusal =
            error.is_unauthorized() || error.is_forbidden() || error.is_not_found() || error.is_invalid_request();
        if is_refusal {
            refusals.fetch_add(1, Relaxed);
        } else {
            refusals.store(0, Relaxed);
        }
        self.refused.notify_waiters();
        if let Some(hook) = self.on_watch_error.load_full()
            && let Err(panic) = catch_unwind(AssertUnwindSafe(|| hook(error)))
        {
            super::run::forget(panic);
            tracing::error!(name = &*self.name, "the hook for errors panicked");
        }
    }

    fn measured(&self) -> MutexGuard<'_, Option<Measured>> {
        self.measured.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn life(&self) -> MutexGuard<'_, Life> {
        self.life.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Nobody has started it, and nobody can any more.
impl Drop for Core {
    fn drop(&mut self) {
        self.processor.stop();
        self.stopped.raise();
    }
}

async fn supervise(over: Over, engines: Vec<Engine>, token: CancellationToken) {
    let core = over.0.clone();
    let writers_stop = CancellationToken::new();
    let mut writers = JoinSet::new();
    for (partition, Engine { reflector, line }) in engines.into_iter().enumerate() {
        writers.spawn(reflector.run(writers_stop.clone()).in_current_span());
        let processing = process(core.clone(), partition, line);
        let stop = writers_stop.clone();
        writers.spawn(async move { stop.run_until_cancelled(processing).await.unwrap_or(()) }.in_current_span());
    }
    tracing::debug!("started");
    tokio::select! {
        biased;
        () = core.stop.cancelled() => {}
        () = token.cancelled() => {}
        ended = writers.join_next() => {
            let panicked = ended.is_some_and(|ended| ended.is_err());
            let how = if panicked { "panicked" } else { "ended" };
            let failure = Error::new(ErrorKind::Stopped, format_args!("what keeps {} up to date {how}", core.name));
            tracing::error!(error = %failure, "the informer stops");
            core.failure.store(Some(Arc::new(failure)));
        }
        () = core.leases.until_unused(core.linger) => tracing::debug!("nobody needs it any more"),
        () = resync(&core) => {}
    }
    core.end_measuring();
    core.leases.close();
    // First, so that they go with the reflectors, and what they leave is gone before this waits for those.
    core.let_sources_go();
    writers_stop.cancel();
    while writers.join_next().await.is_some() {}
    core.finish().await;
    tracing::debug!("stopped");
}

impl Core {
    /// Stops the handlers, and waits for each to return from its last call.
    async fn finish(&self) {
        *self.life() = Life::Stopped;
        let began = StdInstant::now();
        for listener in self.processor.stop() {
            loop {
                tokio::select! {
                    () = listener.done.raised() => break,
                    () = tokio::time::sleep(SLOW_SHUTDOWN) => tracing::warn!(
                        handler = &*listener.name,
                        waited = ?began.elapsed(),
                        "a handler has not returned from its last call, and the informer waits for it"
                    ),
                }
            }
        }
        self.has_stopped();
    }
}

impl Partition {
    /// None if the informer has stopped.
    pub(super) fn source(&self) -> Option<Arc<dyn ListerWatcher>> {
        self.source.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// However the supervisor ends, even before it began, nobody shall think that the informer runs.
struct Over(Arc<Core>);

impl Drop for Over {
    fn drop(&mut self) {
        self.0.leases.close();
        *self.0.life() = Life::Stopped;
        self.0.processor.stop();
        self.0.has_stopped();
    }
}

/// Tells everything again to handlers that are due.
async fn resync(core: &Core) {
    // Everything has to be said once before it is said again.
    core.processor.synced.raised().await;
    loop {
        let next = core.processor.resync(Instant::now());
        tokio::select! {
            () = core.handlers_changed.notified() => {}
            () = async { match next {
                Some(at) => tokio::time::sleep_until(at).await,
                None => std::future::pending().await,
            } } => {}
        }
    }
}

/// Applies what comes out of a partition's queue.
async fn process(core: Arc<Core>, partition: usize, line: Line) {
    let metrics = core.measured().as_ref().map(|measured| measured.metrics.clone());
    match line {
        Line::Atomic(queue, mut consumer) => {
            let mut synced = false;
            while let Ok(mut batch) = consumer.pop_batch().await {
                let initial = batch.is_in_initial_list();
                let measured = metrics.as_ref().map(|metrics| (metrics, StdInstant::now()));
                core.processor.process_batch(partition, batch.take(), initial);
                if let Some((metrics, began)) = measured {
                    metrics.processed(began.elapsed());
                }
                drop(batch);
                if !synced && queue.has_synced() {
                    synced = true;
                    core.processor.partition_synced(partition);
                }
            }
        }
        Line::Delta(queue, mut consumer) => {
            let mut synced = false;
            loop {
                tokio::select! {
                    biased;
                    () = queue.synced(), if !synced => {
                        synced = true;
                        core.processor.partition_synced(partition);
                    }
                    deltas = consumer.pop() => {
                        let Ok(deltas) = deltas else { return };
                        let measured = metrics.as_ref().map(|metrics| (metrics, StdInstant::now()));
                        core.processor.process_deltas(partition, &deltas, deltas.is_in_initial_list());
                        if let Some((metrics, began)) = measured {
                            metrics.processed(began.elapsed());
                        }
                    }
                }
            }
        }
    }
}
