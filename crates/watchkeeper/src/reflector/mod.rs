//! How does a copy of a kind stay true?
//!
//! A [`Reflector`] lists a kind, watches it from the list's version on, and writes all that it learns into a
//! [`ReflectorStore`], for ever. What can go wrong, and what is done then:
//!
//! | what happens | what the reflector does |
//! |---|---|
//! | the server ends a watch, the connection breaks, nothing comes within the time asked for | it watches on from the last version, at once |
//! | a watch ends within a second and without an event | it waits, and lists again |
//! | a watch ends of which no version is known | it waits, and lists again: another one would not show what has gone meanwhile |
//! | overloaded (429), no connection to be had | it waits, and watches on from the last version |
//! | the server hangs up, unanswered, on the watch after one that was good | once, it waits and watches on from the last version |
//! | the version is forgotten (410) | it waits, and lists again at the last version; if the list says so too, without a version |
//! | anything else | it waits, and lists again |
//! | nothing comes where bookmarks should | it opens a second watch, and keeps the one that delivers |
//! | somebody [asks](Relister::relist) for a list | it lists again, without a version |
//!
//! All waits come from one [`Backoff`]. How it goes, [`StatusReader`] tells at any time.
//!
//! ```
//! use std::sync::{Arc, Mutex};
//! use tokio_util::sync::CancellationToken;
//! use watchkeeper::*;
//!
//! #[derive(Default)]
//! struct Names(Mutex<Vec<String>>);
//!
//! impl ReflectorStore for Names {
//!     fn add(&self, object: Object) -> Result<(), Error> {
//!         Ok(self.0.lock().unwrap().push(object.key().to_string()))
//!     }
//!     fn update(&self, _: Object) -> Result<(), Error> {
//!         Ok(())
//!     }
//!     fn delete(&self, key: &ObjectKey, _: Option<Object>) -> Result<(), Error> {
//!         Ok(self.0.lock().unwrap().retain(|name| *name != key.to_string()))
//!     }
//!     fn replace(&self, list: Replacement) -> Result<(), Error> {
//!         Ok(*self.0.lock().unwrap() = list.items.iter().map(|object| object.key().to_string()).collect())
//!     }
//! }
//!
//! # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Error> {
//! # let pod = |name: &str| Object::from_json(format!(r#"{{"metadata":{{"name":"{name}","resourceVersion":"1"}}}}"#));
//! # let source = Scripted::new().answer_list(ScriptedList::new("1", [pod("a")?]))
//! #     .answer_watch(ScriptedWatch::new().added(pod("b")?).hang());
//! let names = Arc::new(Names::default());
//! let reflector = Reflector::new(source, names.clone());
//! let status = reflector.status();
//! let token = CancellationToken::new();
//! let running = tokio::spawn(reflector.run(token.clone()));
//! # while names.0.lock().unwrap().len() < 2 { tokio::task::yield_now().await; }
//! assert_eq!(*names.0.lock().unwrap(), ["a", "b"]);
//! assert!(status.get().synced);
//! token.cancel();
//! # running.await.unwrap();
//! # Ok(()) }
//! ```

mod backoff;
mod gap;
mod list;
mod relist;
mod retry;
mod status;
mod store;
mod streaming_list;
mod trace;
mod watch;
#[cfg(test)]
mod wire_tests;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tracing::Instrument as _;

pub use backoff::Backoff;
pub use gap::Gap;
pub use relist::Relister;
pub use status::{Phase, Reason, ReflectorStatus, StatusReader};
pub use store::{ReflectorStore, Replacement};

use crate::defaults;
use crate::metrics::{InformerMetrics, ListOutcome};
use crate::source::{ListerWatcher, later};
use crate::{BadObject, Error, ErrorKind, Object, ObjectKey, ResourceVersion};
use status::StatusWriter;

/// Keeps a store equal to what a source has: client-go's `Reflector`.
pub struct Reflector {
    name: Box<str>,
    source: Arc<dyn ListerWatcher>,
    store: Arc<dyn ReflectorStore>,
    settings: Settings,
    backoff: Backoff,
    random: fastrand::Rng,
    status: StatusWriter,
    /// The version of the last change, list or bookmark.
    version: ResourceVersion,
    /// A list said that the server has no such version, or somebody doubts what there is: the next one asks for none.
    version_unavailable: bool,
    relister: Relister,
    /// When a list was last asked for.
    last_list: Option<Instant>,
    /// When the last wait after a failure ends.
    paused_until: Option<Instant>,
    /// A list at version 0 came in pages, so the server has no watch cache: going without pages would spare it nothing.
    paginated_result: bool,
    /// Streaming lists in a row that ended without their bookmark.
    streams_without_end: u32,
    last_opening: Option<Instant>,
    metrics: Option<Arc<dyn InformerMetrics>>,
    /// The server has sent bookmarks: a watch without any is suspicious.
    sends_bookmarks: bool,
    stale_objects: BTreeMap<ObjectKey, &'static str>,
    /// There has been a watch.
    has_watched: bool,
    /// There has been a watch, and now there is none.
    blind: Option<gap::Blind>,
    /// What was last logged as a warning, so that it is not said again and again.
    last_warning: Option<String>,
}

/// Why a cycle ended.
struct Failure {
    reason: Reason,
    error: Error,
}

type ShouldResync = dyn Fn() -> bool + Send + Sync;
type WatchErrorHook = dyn Fn(&Error) + Send + Sync;
type GapHook = dyn Fn(&Gap) + Send + Sync;

struct Settings {
    resync_period: Option<Duration>,
    should_resync: Option<Arc<ShouldResync>>,
    on_watch_error: Option<Arc<WatchErrorHook>>,
    on_gap: Option<Arc<GapHook>>,
    page_size: Option<u32>,
    min_watch_timeout: Duration,
    max_internal_error_retry: Duration,
    list_idle_timeout: Duration,
    streaming_lists: bool,
}

impl Reflector {
    /// A reflector from `source` into `store`. It does nothing before it [runs](Self::run).
    pub fn new(source: impl ListerWatcher + 'static, store: impl ReflectorStore + 'static) -> Self {
        Self {
            name: source.description().into(),
            source: Arc::new(source),
            store: Arc::new(store),
            settings: Settings {
                resync_period: None,
                should_resync: None,
                on_watch_error: None,
                on_gap: None,
                page_size: None,
                min_watch_timeout: defaults::MIN_WATCH_TIMEOUT,
                max_internal_error_retry: Duration::ZERO,
                list_idle_timeout: defaults::LIST_IDLE_TIMEOUT,
                streaming_lists: true,
            },
            backoff: Backoff::default(),
            random: fastrand::Rng::new(),
            status: StatusWriter::new(),
            version: ResourceVersion::unset(),
            version_unavailable: false,
            relister: Relister::default(),
            last_list: None,
            paused_until: None,
            paginated_result: false,
            streams_without_end: 0,
            last_opening: None,
            metrics: None,
            sends_bookmarks: false,
            stale_objects: BTreeMap::new(),
            has_watched: false,
            blind: None,
            last_warning: None,
        }
    }

    /// What logs call it; by default what its source is called.
    pub fn name(mut self, name: impl Into<Box<str>>) -> Self {
        self.name = name.into();
        self
    }

    /// How often [`ReflectorStore::resync`] is called while it watches. Zero, the default, is never.
    pub fn resync_period(mut self, period: Duration) -> Self {
        self.settings.resync_period = (!period.is_zero()).then_some(period);
        self
    }

    /// Asked at each resync whether to do it.
    pub fn should_resync(mut self, should: impl Fn() -> bool + Send + Sync + 'static) -> Self {
        self.settings.should_resync = Some(Arc::new(should));
        self
    }

    /// Called with each error that ends a cycle of list and watch, once a cycle, whether it came from the list, from the
    /// opening of the watch or from within its stream. It must not block. The reflector tries again afterwards whatever
    /// it does.
    pub fn on_watch_error(mut self, hook: impl Fn(&Error) + Send + Sync + 'static) -> Self {
        self.settings.on_watch_error = Some(Arc::new(hook));
        self
    }

    /// Called each time that there is a watch again after there was none, with why that was and how long it took. It must
    /// not block.
    pub fn on_gap(mut self, hook: impl Fn(&Gap) + Send + Sync + 'static) -> Self {
        self.settings.on_gap = Some(Arc::new(hook));
        self
    }

    /// Objects in a page of each list. By default the first list and lists without a version come in pages of 500, and
    /// lists at a version in one piece, which the server then takes from its memory.
    pub fn page_size(mut self, objects: u32) -> Self {
        self.settings.page_size = Some(objects);
        self
    }

    /// Watches ask for a timeout between this and twice as much; at least five minutes.
    pub fn min_watch_timeout(mut self, timeout: Duration) -> Self {
        self.settings.min_watch_timeout = timeout.max(defaults::MIN_WATCH_TIMEOUT);
        self
    }

    /// How long watches that end with the server's internal error are opened again without a list; by default never.
    pub fn max_internal_error_retry(mut self, time: Duration) -> Self {
        self.settings.max_internal_error_retry = time;
        self
    }

    /// How long a list may be silent, in pages or as a stream; 30 s by default.
    pub fn list_idle_timeout(mut self, silence: Duration) -> Self {
        self.settings.list_idle_timeout = silence;
        self
    }

    /// Whether to list by a watch that sends the whole state first, where the source can; true by default.
    pub fn streaming_lists(mut self, allowed: bool) -> Self {
        self.settings.streaming_lists = allowed;
        self
    }

    /// Who is told of lists and watches that end. The rest, [`status`](Self::status) tells at any time.
    pub fn metrics(mut self, metrics: Arc<dyn InformerMetrics>) -> Self {
        self.metrics = Some(metrics);
        self
    }

    /// How long to wait after failures.
    pub fn backoff(mut self, backoff: Backoff) -> Self {
        self.backoff = backoff;
        self
    }

    /// Makes the timeouts of watches repeatable. [`Backoff::seed`] does so for the waits.
    pub fn seed(mut self, seed: u64) -> Self {
        self.random = fastrand::Rng::with_seed(seed);
        self
    }

    /// How it goes, now and later.
    pub fn status(&self) -> StatusReader {
        self.status.reader()
    }

    /// Asks it to list everything again, now or later.
    pub fn relister(&self) -> Relister {
        self.relister.clone()
    }

    /// The version of the last change, list or bookmark.
    pub fn last_sync_resource_version(&self) -> ResourceVersion {
        self.version.clone()
    }

    /// Lists and watches until `token` is cancelled. Nothing of it is left behind then.
    pub async fn run(mut self, token: CancellationToken) {
        let span = tracing::info_span!("reflector", name = &*self.name);
        let work = async {
            loop {
                let failure = self.cycle().await;
                self.cycle_failed(&failure);
                self.back_off(&failure.error).await;
            }
        };
        // Before the first poll, so that a token that is cancelled already means that nothing is asked for.
        if !token.is_cancelled() {
            let never: Option<std::convert::Infallible> = token.run_until_cancelled(work.instrument(span)).await;
            debug_assert!(never.is_none());
        }
    }

    /// One cycle: a list, and watches until one fails in a way that needs another list. `Ok` if `token` was cancelled.
    /// [`run`](Self::run) repeats it.
    pub async fn list_and_watch(&mut self, token: &CancellationToken) -> Result<(), Error> {
        if token.is_cancelled() {
            return Ok(());
        }
        let failure = token.run_until_cancelled(self.cycle()).await;
        self.goes_blind(Instant::now());
        if let Some(Failure { reason, error }) = &failure {
            self.is_blind_because(*reason, Some(error));
        }
        // Until it is called again nobody watches.
        self.status.phase(if failure.is_some() { Phase::BackingOff } else { Phase::Stopped });
        failure.map_or(Ok(()), |failure| Err(failure.error))
    }

    /// One cycle, which ends with a failure only: a list that somebody asks for is none.
    async fn cycle(&mut self) -> Failure {
        loop {
            self.status.phase(Phase::Listing);
            let stream = match self.list_or_stream().await {
                Ok(stream) => stream,
                Err(failure) => return failure,
            };
            let resyncs = resyncs(self.store.clone(), self.settings.resync_period, self.settings.should_resync.clone());
            let (relister, last_list) = (self.relister.clone(), self.last_list);
            tokio::select! {
                // First, so that a watch with an event ready at any time leaves it a turn.
                biased;
                () = relister.requested(last_list) => {}
                error = resyncs => {
                    self.goes_blind(Instant::now());
                    return error.into();
                }
                failure = self.watch(stream) => return failure,
            }
            self.goes_blind(Instant::now());
            self.is_blind_because(Reason::Requested, None);
            self.status.relisted(Reason::Requested);
            tracing::debug!("listing again, as asked");
            // The watch may have been waiting after a failure. A request is no reason to trouble the server sooner.
            if let Some(end) = self.paused_until.take() {
                self.status.phase(Phase::BackingOff);
                tokio::time::sleep_until(end).await;
            }
        }
    }

    /// Reads the whole state: as a stream where that can be had, which then goes on as the watch, else as a list.
    async fn list_or_stream(&mut self) -> Result<Option<watch::OpenWatch>, Failure> {
        let source = self.source.clone();
        match source.streaming_lists() {
            Some(streaming) if self.settings.streaming_lists && streaming.are_allowed() => {
                match self.streaming_list(streaming).await? {
                    Some(stream) => return Ok(Some(stream)),
                    None => tracing::debug!("listing in pages"),
                }
            }
            _ => {}
        }
        self.list().await.map(|()| None)
    }

    fn cycle_failed(&mut self, Failure { reason, error }: &Failure) {
        self.is_blind_because(*reason, Some(error));
        self.status.relisted(*reason);
        self.status.error(error);
        self.log(error);
        if let Some(hook) = &self.settings.on_watch_error {
            hook(error);
        }
    }

    /// What was said before is not said again until a watch has delivered: a kind whose CRD is gone would fill the log.
    fn log(&mut self, error: &Error) {
        let text = error.to_string();
        if error.is_expired() || self.last_warning.as_ref() == Some(&text) {
            tracing::debug!(error = %text, "will list again");
        } else {
            tracing::warn!(error = %text, "will list again");
            self.last_warning = Some(text);
        }
    }

    async fn back_off(&mut self, error: &Error) {
        self.status.phase(Phase::BackingOff);
        self.pause(error).await;
    }

    /// Waits as long as the backoff says, or the server.
    async fn pause(&mut self, error: &Error) {
        let wait = self.backoff.next_wait().max(error.retry_after().unwrap_or_default());
        tracing::debug!(?wait, "backing off");
        self.paused_until = Some(later(Instant::now(), wait));
        tokio::time::sleep(wait).await;
        self.paused_until = None;
    }

    /// A list begins, and serves all who asked for one.
    fn list_begins(&mut self) {
        self.version_unavailable |= self.relister.take();
        self.last_list = Some(Instant::now());
        self.status.list_begins();
    }

    /// The list that began last has ended.
    fn list_ended(&self, outcome: ListOutcome) {
        if let Some(metrics) = &self.metrics {
            let took = self.last_list.map(|begun| begun.elapsed()).unwrap_or_default();
            metrics.listed(took, self.status.listed_objects(), outcome);
        }
    }

    /// An object came in a form that cannot be used, and what was known of it stands.
    fn mark_stale(&mut self, key: &ObjectKey, object: &BadObject) {
        if self.stale_objects.insert(key.clone(), object.problem) != Some(object.problem) {
            self.warn_stale(object);
            self.status.stale_objects(&self.stale_objects);
        }
    }

    /// The same for all of a list. Those of the list before are forgotten, and not mentioned again.
    fn mark_all_stale(&mut self, good: &[Object], bad: &[BadObject]) {
        let before = std::mem::take(&mut self.stale_objects);
        if !before.is_empty() && bad.iter().any(|object| object.key.is_none()) {
            // Any of them may be the one that could not be told apart.
            self.stale_objects = before.clone();
            for object in good {
                self.stale_objects.remove(object.key());
            }
        }
        for object in bad {
            let Some(key) = &object.key else {
                self.status.unreadable_object();
                continue;
            };
            if before.get(key) != Some(&object.problem) {
                self.warn_stale(object);
            }
            self.stale_objects.insert(key.clone(), object.problem);
        }
        if before != self.stale_objects {
            self.status.stale_objects(&self.stale_objects);
        }
    }

    /// A server that sends nothing but bad objects shall not fill the log.
    fn warn_stale(&self, object: &BadObject) {
        if self.stale_objects.len() <= defaults::NAMED_STALE_OBJECTS {
            tracing::warn!(%object, "an object keeps its last good state");
        } else {
            tracing::debug!(%object, "an object keeps its last good state");
        }
    }

    /// An object came in a form that can be used.
    fn unmark_stale(&mut self, key: &ObjectKey) {
        if !self.stale_objects.is_empty() && self.stale_objects.remove(key).is_some() {
            self.status.stale_objects(&self.stale_objects);
        }
    }
}

/// Calls [`ReflectorStore::resync`] in time, and ends with its first error.
async fn resyncs(
    store: Arc<dyn ReflectorStore>,
    period: Option<Duration>,
    should_resync: Option<Arc<ShouldResync>>,
) -> Error {
    let Some(period) = period else { return std::future::pending().await };
    loop {
        tokio::time::sleep(period).await;
        if should_resync.as_ref().is_none_or(|should| should())
            && let Err(error) = store.resync()
        {
            return error;
        }
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self { reason: reason(&error), error }
    }
}

impl Failure {
    /// Something came without a readable key, so that nothing is known of what it was.
    fn unreadable(text: impl std::fmt::Display) -> Self {
        Self { reason: Reason::UnreadableObject, error: Error::new(ErrorKind::Malformed, text) }
    }
}

impl From<&Failure> for ListOutcome {
    fn from(failure: &Failure) -> Self {
        match failure.reason {
            Reason::UnreadableObject => Self::UnreadableObject,
            _ => Self::from(&failure.error),
        }
    }
}

fn reason(error: &Error) -> Reason {
    match error.kind() {
        _ if error.is_expired() || error.is_too_large_version() => Reason::Expired,
        _ if error.is_too_many_requests() => Reason::TooManyRequests,
        _ if error.is_unreachable() => Reason::Unreachable,
        _ if error.is_internal() => Reason::InternalError,
        ErrorKind::VeryShortWatch => Reason::VeryShortWatch,
        ErrorKind::Disconnected => Reason::Disconnected,
        ErrorKind::Timeout => Reason::TimedOut,
        ErrorKind::Store => Reason::Store,
        _ => Reason::Other,
    }
}
