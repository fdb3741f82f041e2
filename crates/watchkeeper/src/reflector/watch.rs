//! The watches of a cycle.
//!
//! A watch that ends is opened again from the last version, for as long as that works. Three clocks make sure that
//! silence is not mistaken for peace: the timeout that the request asked for, plus five seconds; the bookmarks, which
//! come about once a minute and whose absence opens a second watch; and, in the transport, the connection's own.

use std::convert::Infallible;
use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use tokio::time::{Instant, sleep_until, timeout_at};

use super::retry::RetryWithDeadline;
use super::status::Phase;
use super::{Failure, Reason, Reflector, ReflectorStore};
use crate::metrics::InformerMetrics;
use crate::source::{Bookmark, ListOptions, WatchEvent, WatchStream, later};
use crate::{BadObject, Error, ErrorKind, ResourceVersion, defaults};

/// A watch that is open.
pub(super) struct OpenWatch {
    stream: WatchStream,
    /// When it was asked for: some proxies hold back the answer's headers until the first event.
    opened: Instant,
    /// When it is given up, whatever the server does.
    pub(super) deadline: Instant,
    pub(super) last_arrival: Instant,
    events: u64,
    bookmarks: u32,
    last_bookmark: Option<Instant>,
    longest_gap: Duration,
    /// It began at no version or at 0. Then the first ADDED events are the state, in no order, and their versions say
    /// nothing of where to go on from.
    unordered: bool,
    /// The store has refused a change.
    refused: bool,
    /// Who is told when it is over, if it is the one that is followed.
    metrics: Option<Arc<dyn InformerMetrics>>,
}

/// However it is over: another one took its place, somebody wants a list, or all is cancelled.
impl Drop for OpenWatch {
    fn drop(&mut self) {
        self.report(false);
    }
}

/// How a watch came to its end.
enum End {
    /// The server ended it.
    Closed,
    /// The connection broke.
    Broken(Error),
    /// Neither did anything within the time.
    TimedOut,
    /// The server says that something is wrong.
    Error(Error),
    /// An object came that cannot even be told apart.
    Unreadable(BadObject),
}

impl End {
    /// Since when there was no watch. If nobody said that it is over, it may have been so since anything last came of it,
    /// or of the connection, if that was asked now and then whether it is there.
    fn since(&self, last_arrival: Instant) -> Instant {
        let now = Instant::now();
        match self {
            Self::TimedOut => last_arrival,
            Self::Broken(error) if error.kind() == ErrorKind::Timeout => {
                let heard = error.silence().and_then(|silence| now.checked_sub(silence));
                heard.map_or(last_arrival, |heard| heard.max(last_arrival))
            }
            Self::Broken(_) | Self::Closed | Self::Error(_) | Self::Unreadable(_) => now,
        }
    }
}

/// Which of two watches delivered first.
enum Race {
    First(Result<Option<WatchEvent>, Error>),
    Second(Box<OpenWatch>, WatchEvent),
    TimedOut,
    SecondFailed(Error),
}

impl Reflector {
    /// Watches until something happens that needs a list.
    pub(super) async fn watch(&mut self, mut stream: Option<OpenWatch>) -> Failure {
        let allowed = self.settings.max_internal_error_retry;
        let mut retry = RetryWithDeadline::new(allowed, defaults::INTERNAL_ERROR_RESET);
        // A watch has just come to a good end.
        let mut ended_well = false;
        loop {
            // Also while it is being opened: some proxies hold back the answer until the first event.
            self.status.phase(Phase::Watching);
            let mut watch = match stream.take() {
                Some(watch) => watch,
                None => match self.open_watch(self.watch_options()).await {
                    Ok(watch) => watch,
                    Err(error) if error.is_too_many_requests() || error.is_unreachable() => {
                        self.watch_again_after(&error).await;
                        continue;
                    }
                    // A server that stops ends its watches, and then hangs up on whoever asks it for another. Once: who is
                    // hung up on each time would never see anything again.
                    Err(error) if error.kind() == ErrorKind::Disconnected && std::mem::take(&mut ended_well) => {
                        self.watch_again_after(&error).await;
                        continue;
                    }
                    // The answer's headers did not come within the watch's whole time. (What is over at once is a failure.)
                    Err(error) if error.kind() == ErrorKind::Timeout && self.last_opening_was_long_ago() => {
                        self.watch_again(Reason::TimedOut, Some(&error));
                        continue;
                    }
                    Err(error) => return error.into(),
                },
            };
            watch.metrics.clone_from(&self.metrics);
            self.sees_again();
            let end = self.follow(&mut watch).await;
            self.goes_blind(end.since(watch.last_arrival));
            watch.report(!matches!(end, End::Error(_) | End::Unreadable(_)) && watch.is_very_short());
            if watch.events > 0 {
                self.last_warning = None;
            }
            let (reason, error) = match end {
                End::Closed => (Reason::Ended, None),
                End::Broken(error) => (Reason::Disconnected, Some(error)),
                End::TimedOut => (Reason::TimedOut, None),
                End::Error(error) if error.is_too_many_requests() && self.version.is_exact() => {
                    self.watch_again_after(&error).await;
                    continue;
                }
                End::Error(error) if error.is_internal() && self.version.is_exact() && retry.after_failure() => {
                    self.watch_again(Reason::InternalError, Some(&error));
                    continue;
                }
                End::Error(error) => return error.into(),
                End::Unreadable(object) => return Failure::unreadable(object),
            };
            if watch.is_very_short() {
                let text = "the watch ended within a second and without an event";
                return Error::new(ErrorKind::VeryShortWatch, text).into();
            }
            if !self.version.is_exact() {
                // Another one would show what there is, and not what has gone meanwhile.
                let no_version =
                    || Error::new(ErrorKind::Disconnected, "the watch ended without a version to go on from");
                return error.unwrap_or_else(no_version).into();
            }
            // A server that came back younger, from a backup, accepts a version that it has not reached, and is silent
            // until it has. A list is told that there is no such version.
            if watch.events == 0 && self.sends_bookmarks && watch.opened.elapsed() >= defaults::STALE_FLOOR {
                return Error::new(ErrorKind::Timeout, "the watch brought nothing, not even a bookmark").into();
            }
            ended_well = true;
            self.watch_again(reason, error.as_ref());
        }
    }

    /// Opens a watch; not within a second of the last one.
    pub(super) async fn open_watch(&mut self, options: ListOptions) -> Result<OpenWatch, Error> {
        self.watch_interval().await;
        let opened = Instant::now();
        self.last_opening = Some(opened);
        let timeout = self.watch_timeout();
        let deadline = later(opened, timeout.saturating_add(defaults::WATCH_TIMEOUT_GRACE));
        let unordered = !options.resource_version.is_exact();
        let options = ListOptions { timeout: Some(timeout), allow_watch_bookmarks: true, ..options };
        let stream = match timeout_at(deadline, self.source.watch(options)).await {
            Ok(stream) => stream?,
            Err(_) => return Err(Error::new(ErrorKind::Timeout, "the server did not answer within the watch's time")),
        };
        self.status.contact();
        Ok(OpenWatch {
            stream,
            opened,
            deadline,
            last_arrival: Instant::now(),
            events: 0,
            bookmarks: 0,
            last_bookmark: None,
            longest_gap: Duration::ZERO,
            unordered,
            refused: false,
            metrics: None,
        })
    }

    /// Waits until a watch may be opened.
    pub(super) async fn watch_interval(&self) {
        if let Some(last) = self.last_opening {
            sleep_until(last + defaults::MIN_WATCH_INTERVAL).await;
        }
    }

    fn last_opening_was_long_ago(&self) -> bool {
        self.last_opening.is_some_and(|opened| opened.elapsed() >= defaults::VERY_SHORT_WATCH)
    }

    fn watch_options(&self) -> ListOptions {
        ListOptions { resource_version: self.version.clone(), ..ListOptions::default() }
    }

    /// Different for each watch: those that were opened together shall not all end together.
    fn watch_timeout(&mut self) -> Duration {
        let least = self.settings.min_watch_timeout.as_secs_f64();
        Duration::try_from_secs_f64((least * (1.0 + self.random.f64())).floor())
            .unwrap_or(self.settings.min_watch_timeout)
    }

    fn watch_again(&mut self, reason: Reason, error: Option<&Error>) {
        self.is_blind_because(reason, error);
        self.status.watch_restarted(reason);
        if let Some(error) = error {
            self.status.error(error);
        }
        tracing::debug!(%reason, version = %self.version, "watching on");
    }

    async fn watch_again_after(&mut self, error: &Error) {
        self.watch_again(super::reason(error), Some(error));
        self.back_off(error).await;
    }

    /// Writes the events of a watch into the store until it ends.
    async fn follow(&mut self, watch: &mut OpenWatch) -> End {
        let mut at_hand = AtHand { store: self.store.clone(), more: false };
        // Silence is measured from the last event, but the clock is not set anew for each: when it rings it is looked whether
        // it should have rung later.
        let mut alarm = pin!(sleep_until(watch.alarm_at()));
        loop {
            // Without a budget nothing below is polled, and this would go to sleep with its word out.
            if !tokio::task::coop::has_budget_remaining() {
                at_hand.say(false);
            }
            if watch.alarm_at() < alarm.deadline() {
                alarm.as_mut().reset(watch.alarm_at());
            }
            let event = tokio::select! {
                biased;
                event = watch.next() => event,
                // Polled when no event is at hand.
                never = poll_fn(|_| at_hand.nothing()) => match never {},
                () = &mut alarm => {
                    if watch.deadline <= Instant::now() {
                        return End::TimedOut;
                    }
                    if watch.alarm_at() > Instant::now() {
                        alarm.as_mut().reset(watch.alarm_at());
                        continue;
                    }
                    match self.race(watch).await {
                        Race::First(event) => event,
                        Race::Second(second, event) => {
                            self.goes_blind(watch.last_arrival);
                            *watch = *second;
                            watch.metrics.clone_from(&self.metrics);
                            self.watch_again(Reason::Stale, None);
                            self.sees_again();
                            Ok(Some(event))
                        }
                        Race::TimedOut => return End::TimedOut,
                        Race::SecondFailed(error) => {
                            self.goes_blind(watch.last_arrival);
                            return End::Error(error);
                        }
                    }
                }
            };
            if event.is_ok() {
                self.status.contact();
            }
            at_hand.say(true);
            let end = match event {
                Ok(Some(event)) => self.apply(watch, event),
                Ok(None) => Some(End::Closed),
                Err(error) if error.is_disconnect() => Some(End::Broken(error)),
                Err(error) => Some(End::Error(error)),
            };
            if let Some(end) = end {
                return end;
            }
        }
    }

    /// The watch is silent. Opens a second one at the same version, and waits for either to deliver. Nothing of the
    /// other is applied afterwards: it is dropped.
    async fn race(&mut self, first: &mut OpenWatch) -> Race {
        self.status.phase(Phase::Stale);
        let silence = first.last_arrival.elapsed();
        tracing::warn!(?silence, version = %self.version, "the watch is silent; trying a second one");
        let deadline = first.deadline;
        let second = async {
            loop {
                let error = match self.second_watch().await {
                    Ok(delivered) => return Ok(delivered),
                    Err(error) => error,
                };
                let later = error.is_too_many_requests() || error.is_disconnect() || error.kind() == ErrorKind::Connect;
                if !later {
                    return Err(error);
                }
                self.status.error(&error);
                self.pause(&error).await;
            }
        };
        let race = tokio::select! {
            biased;
            event = first.next() => Race::First(event),
            () = sleep_until(deadline) => Race::TimedOut,
            second = second => match second {
                Ok((second, event)) => Race::Second(second, event),
                Err(error) => Race::SecondFailed(error),
            },
        };
        self.status.phase(Phase::Watching);
        // A wait of the second one ends with the race, and nobody need sit it out.
        self.paused_until = None;
        race
    }

    /// Opens another watch at the same version, and waits until it delivers.
    async fn second_watch(&mut self) -> Result<(Box<OpenWatch>, WatchEvent), Error> {
        let mut watch = self.open_watch(self.watch_options()).await?;
        let event = watch.first_event().await?;
        Ok((Box::new(watch), event))
    }

    /// Writes one event into the store, and moves the version.
    fn apply(&mut self, watch: &mut OpenWatch, event: WatchEvent) -> Option<End> {
        // Of a bad object it is not known whether it was added.
        let maybe_added = matches!(event, WatchEvent::Added(_) | WatchEvent::Bad(_));
        let (written, version) = match event {
            WatchEvent::Progress => return None,
            WatchEvent::Error(error) => return Some(End::Error(error)),
            WatchEvent::WrongKind(object) => {
                self.wrong_kind(&object);
                return None;
            }
            WatchEvent::Added(object) => {
                self.unmark_stale(object.key());
                let version = object.resource_version();
                (self.store.add(object), version)
            }
            WatchEvent::Modified(object) => {
                self.unmark_stale(object.key());
                let version = object.resource_version();
                (self.store.update(object), version)
            }
            WatchEvent::Deleted(object) => {
                self.unmark_stale(object.key());
                let (key, version) = (object.key().clone(), object.resource_version());
                (self.store.delete(&key, Some(object)), version)
            }
            WatchEvent::DeletedBad(BadObject { key: Some(key), resource_version, .. }) => {
                self.unmark_stale(&key);
                (self.store.delete(&key, None), resource_version)
            }
            WatchEvent::Bad(ref object @ BadObject { key: Some(ref key), ref resource_version, .. }) => {
                self.mark_stale(key, object);
                (Ok(()), resource_version.clone())
            }
            WatchEvent::Bad(object) | WatchEvent::DeletedBad(object) => {
                self.status.unreadable_object();
                return Some(End::Unreadable(object));
            }
            WatchEvent::Bookmark(Bookmark { resource_version, .. }) => {
                watch.bookmark();
                self.sends_bookmarks = true;
                (self.store.bookmark(&resource_version), resource_version)
            }
            WatchEvent::Unknown(version) => {
                if self.status.unknown_event() == 0 {
                    tracing::warn!("an event of an unknown type is passed over; further ones are only counted");
                }
                (Ok(()), version)
            }
        };
        watch.events += 1;
        self.status.event();
        if let Err(error) = written {
            if std::mem::replace(&mut watch.refused, true) {
                tracing::debug!(%error, "the store refused another change");
            } else {
                tracing::error!(%error, "the store refused a change; further ones of this watch are only counted");
            }
            self.status.store_error();
            self.status.error(&error);
        }
        watch.unordered &= maybe_added;
        if !watch.unordered {
            self.move_version(version);
        }
        None
    }

    /// The watch will go on from here.
    fn move_version(&mut self, version: ResourceVersion) {
        if version.is_unset() || version.as_str().len() > defaults::LONGEST_VERSION {
            return;
        }
        if version.compare(&self.version) == Some(std::cmp::Ordering::Less) {
            self.status.version_backwards();
        }
        self.status.version(&version);
        self.store.version_moved(&version);
        self.version = version;
    }

    pub(super) fn wrong_kind(&self, object: &BadObject) {
        if self.status.wrong_kind() == 0 {
            tracing::warn!(%object, "passed over; further ones are only counted");
        }
    }
}

/// Tells the store whether more is at hand. However it ends, its last word is no: a watch may be dropped at any time.
struct AtHand {
    store: Arc<dyn ReflectorStore>,
    more: bool,
}

impl AtHand {
    fn say(&mut self, more: bool) {
        if std::mem::replace(&mut self.more, more) != more {
            self.store.more_to_come(more);
        }
    }

    fn nothing(&mut self) -> Poll<Infallible> {
        self.say(false);
        Poll::Pending
    }
}

impl Drop for AtHand {
    fn drop(&mut self) {
        self.say(false);
    }
}

impl OpenWatch {
    /// The next event, and a note of when it came. May be dropped and called again.
    pub(super) async fn next(&mut self) -> Result<Option<WatchEvent>, Error> {
        // A stream that always has something ready would else keep everything else on this thread waiting.
        tokio::task::coop::consume_budget().await;
        let event = self.stream.next().await;
        // That nothing came in time is nothing that came.
        if !matches!(&event, Err(error) if error.kind() == ErrorKind::Timeout) {
            self.last_arrival = Instant::now();
        }
        event
    }

    /// The first whole event, for as long as the watch lasts.
    async fn first_event(&mut self) -> Result<WatchEvent, Error> {
        let deadline = self.deadline;
        loop {
            match timeout_at(deadline, self.next()).await {
                Ok(Ok(Some(WatchEvent::Progress))) => {}
                Ok(Ok(Some(WatchEvent::Error(error)))) => return Err(error),
                Ok(Ok(Some(event))) => return Ok(event),
                Ok(Err(error)) => return Err(error),
                Ok(Ok(None)) | Err(_) => {
                    return Err(Error::new(ErrorKind::Disconnected, "the second watch ended without an event"));
                }
            }
        }
    }

    /// From here on the stream is an ordinary watch, from the version of the bookmark that ended its initial events.
    pub(super) fn begins_after_initial_events(&mut self) {
        self.unordered = false;
        self.events = 1;
        self.bookmark();
    }

    /// Tells that it is over, once.
    fn report(&mut self, short: bool) {
        if let Some(metrics) = self.metrics.take() {
            metrics.watched(self.opened.elapsed(), self.events, short);
        }
    }

    fn is_very_short(&self) -> bool {
        self.events == 0 && self.opened.elapsed() < defaults::VERY_SHORT_WATCH
    }

    fn bookmark(&mut self) {
        let now = Instant::now();
        if let Some(last) = self.last_bookmark.replace(now) {
            self.longest_gap = self.longest_gap.max(now.duration_since(last));
        }
        self.bookmarks = self.bookmarks.saturating_add(1);
    }

    /// When something has to be done if nothing comes.
    fn alarm_at(&self) -> Instant {
        self.stale_at().map_or(self.deadline, |stale_at| stale_at.min(self.deadline))
    }

    /// When silence becomes suspicious: not before it is known that the server sends bookmarks.
    fn stale_at(&self) -> Option<Instant> {
        let silence = (self.longest_gap * defaults::STALE_FACTOR).max(defaults::STALE_FLOOR);
        (self.bookmarks >= 2).then(|| self.last_arrival + silence)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;
    use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};

    use tokio::time::timeout;
    use tokio_util::sync::CancellationToken;

    use super::*;
    use crate::{Object, ObjectKey, Relister, Replacement, Scripted, ScriptedList, ScriptedWatch};

    fn pod(version: usize) -> Object {
        Object::from_json(format!(r#"{{"metadata":{{"name":"a","resourceVersion":"{version}"}}}}"#)).expect("an object")
    }

    /// A watch with all of this at hand, when another list may be asked for.
    fn busy(changes: usize) -> Scripted {
        let begin = ScriptedWatch::new().wait(Duration::from_secs(2));
        let watch = (0..changes).fold(begin, |watch, number| watch.modified(pod(11 + number)));
        Scripted::new().answer_list(ScriptedList::new("10", [pod(10)])).answer_watch(watch.hang())
    }

    #[derive(Default)]
    struct Listener {
        more: AtomicBool,
        unheard: AtomicUsize,
        most_unheard: AtomicUsize,
        changes: AtomicUsize,
        /// Asks for a list in the middle of the watch, and hears what was said last when it comes.
        relister: Mutex<Option<Relister>>,
        more_at_list: AtomicBool,
    }

    impl ReflectorStore for Arc<Listener> {
        fn add(&self, object: Object) -> Result<(), Error> {
            self.update(object)
        }

        fn update(&self, _: Object) -> Result<(), Error> {
            let unheard = self.unheard.fetch_add(1, SeqCst) + 1;
            self.most_unheard.fetch_max(unheard, SeqCst);
            if self.changes.fetch_add(1, SeqCst) == 200
                && let Some(relister) = self.relister.lock().expect("not poisoned").as_ref()
            {
                relister.relist();
            }
            Ok(())
        }

        fn delete(&self, _: &ObjectKey, _: Option<Object>) -> Result<(), Error> {
            Ok(())
        }

        fn replace(&self, _: Replacement) -> Result<(), Error> {
            self.more_at_list.fetch_or(self.more.load(SeqCst), SeqCst);
            Ok(())
        }

        fn more_to_come(&self, more: bool) {
            self.more.store(more, SeqCst);
            if !more {
                self.unheard.store(0, SeqCst);
            }
        }
    }

    async fn run(mut reflector: Reflector) {
        let token = CancellationToken::new();
        let _ = timeout(Duration::from_secs(9), reflector.list_and_watch(&token)).await;
    }

    /// Who waits for changes would else sleep for as long as they do not stop.
    #[tokio::test(start_paused = true)]
    async fn a_watch_that_always_has_more_is_heard_all_the_same() {
        let listener = Arc::new(Listener::default());
        run(Reflector::new(busy(1_000), listener.clone())).await;
        assert_eq!(listener.changes.load(SeqCst), 1_000);
        let most = listener.most_unheard.load(SeqCst);
        assert!((2..=128).contains(&most), "{most}");
        assert!(!listener.more.load(SeqCst));
    }

    /// What follows is not held back: nothing may come behind it for long.
    #[tokio::test(start_paused = true)]
    async fn a_watch_that_is_dropped_for_a_list_leaves_nothing_to_come() {
        let listener = Arc::new(Listener::default());
        let source = busy(1_000).answer_list(ScriptedList::new("2000", [pod(2_000)]));
        let reflector = Reflector::new(source.clone(), listener.clone());
        *listener.relister.lock().expect("not poisoned") = Some(reflector.relister());
        run(reflector).await;
        assert_eq!(source.lists().len(), 2);
        assert!(listener.changes.load(SeqCst) < 1_000, "the watch was dropped while it had more");
        assert!(!listener.more_at_list.load(SeqCst));
    }
}
