//! The list of a cycle, as a stream.
//!
//! A watch can send the whole state first, one event for each object, then a bookmark that says "this was all", and go on
//! with the changes. That costs the server a fraction of a list's memory, and us no second request. Its weak place is the
//! bookmark: servers and proxies that accept the request and never send it have kept informers waiting for ever. So the
//! stream is given up when it is silent for as long as a list may be, and after two without an end, or a server that does not know
//! the request, pages are used for an hour.

use std::time::Duration;

use indexmap::IndexMap;
use tokio::time::{Instant, sleep_until, timeout};

use super::watch::OpenWatch;
use super::{Failure, Phase, Reflector};
use crate::pager::PagedList;
use crate::reflector::trace::Trace;
use crate::source::{ListOptions, StreamingLists, VersionMatch, WRONG_KIND, WatchEvent, later};
use crate::{BadObject, Error, ErrorKind, Object, ObjectKey, ResourceVersion, defaults};

/// What the stream has shown so far. Only at its end is it known to be the whole state.
#[derive(Default)]
struct Initial {
    objects: IndexMap<ObjectKey, Object>,
    bad: IndexMap<ObjectKey, BadObject>,
    unreadable: Vec<BadObject>,
}

impl Reflector {
    /// The stream, after its initial events have replaced what the store holds, or `None` if pages are to be used.
    pub(super) async fn streaming_list(&mut self, streaming: &StreamingLists) -> Result<Option<OpenWatch>, Failure> {
        let mut trace = Trace::start("a streaming list");
        loop {
            self.status.phase(Phase::Listing);
            let error = match self.stream_initial(&mut trace).await {
                Ok((stream, list)) => {
                    self.streams_without_end = 0;
                    self.replace(list)?;
                    trace.step("store replaced");
                    trace.log_if_longer_than(defaults::SLOW_LIST);
                    return Ok(Some(stream));
                }
                Err(error) => error,
            };
            self.is_blind_because(super::reason(&error), Some(&error));
            self.status.error(&error);
            self.list_ended((&error).into());
            tracing::debug!(%error, "a streaming list failed");
            if error.is_too_many_requests() || error.is_unreachable() {
                self.back_off(&error).await;
            } else if (error.is_expired() || error.is_too_large_version()) && !self.streaming_version().is_unset() {
                // The one request that is repeated at once, now without a version.
                self.version_unavailable = true;
                self.last_opening = None;
            } else if error.is_invalid_request() {
                tracing::info!("the server does not know streaming lists; listing in pages for an hour");
                streaming.pause_for(defaults::STREAMING_PAUSE);
                return Ok(None);
            } else if error.is_disconnect() {
                self.streams_without_end += 1;
                if self.streams_without_end >= defaults::STREAMS_WITHOUT_END {
                    tracing::warn!("streaming lists do not come to their end; listing in pages for an hour");
                    self.streams_without_end = 0;
                    streaming.pause_for(defaults::STREAMING_PAUSE);
                    return Ok(None);
                }
                self.back_off(&error).await;
            } else {
                if error.retry_after().is_some() {
                    self.back_off(&error).await;
                    self.status.phase(Phase::Listing);
                }
                return Ok(None);
            }
        }
    }

    /// Opens a stream and reads it up to the end of its initial events.
    async fn stream_initial(&mut self, trace: &mut Trace) -> Result<(OpenWatch, PagedList), Error> {
        self.watch_interval().await;
        self.list_begins();
        let options = ListOptions {
            resource_version: self.streaming_version(),
            resource_version_match: Some(VersionMatch::NotOlderThan),
            send_initial_events: Some(true),
            ..ListOptions::default()
        };
        let silence = self.settings.list_idle_timeout;
        let mut stream = match timeout(silence, self.open_watch(options)).await {
            Ok(stream) => stream?,
            Err(_) => return Err(silent(silence)),
        };
        trace.step("stream opened");
        let mut initial = Initial::default();
        let mut warning = Instant::now() + defaults::INITIAL_EVENTS_WARNING;
        loop {
            let (arrived, deadline) = (stream.last_arrival, stream.deadline);
            let event = tokio::select! {
                biased;
                event = stream.next() => event?,
                () = sleep_until(warning) => {
                    warning += defaults::INITIAL_EVENTS_WARNING;
                    if arrived.elapsed() >= defaults::INITIAL_EVENTS_WARNING {
                        let objects = initial.objects.len();
                        tracing::warn!(objects, "a streaming list is waiting for the bookmark that ends it");
                    }
                    continue;
                }
                () = sleep_until(later(arrived, silence)) => return Err(silent(silence)),
                () = sleep_until(deadline) => return Err(without_end("took longer than its timeout")),
            };
            self.status.contact();
            match event {
                None => return Err(without_end("ended")),
                Some(WatchEvent::Error(error)) => return Err(error),
                Some(WatchEvent::Bookmark(bookmark)) if bookmark.initial_events_end => {
                    trace.step("initial events received");
                    stream.begins_after_initial_events();
                    return Ok((stream, initial.into_list(bookmark.resource_version)));
                }
                Some(event) => self.take_initial(&mut initial, event),
            }
        }
    }

    fn take_initial(&mut self, initial: &mut Initial, event: WatchEvent) {
        match event {
            WatchEvent::Added(object) | WatchEvent::Modified(object) => {
                self.status.listed_object();
                initial.bad.swap_remove(object.key());
                initial.objects.insert(object.key().clone(), object);
            }
            WatchEvent::Deleted(object) => {
                initial.bad.swap_remove(object.key());
                initial.objects.swap_remove(object.key());
            }
            WatchEvent::DeletedBad(BadObject { key: Some(key), .. }) => {
                initial.bad.swap_remove(&key);
                initial.objects.swap_remove(&key);
            }
            WatchEvent::Bad(object @ BadObject { key: Some(_), .. }) => {
                self.status.listed_object();
                if let Some(key) = &object.key {
                    initial.objects.swap_remove(key);
                    initial.bad.insert(key.clone(), object);
                }
            }
            WatchEvent::Bad(object) | WatchEvent::DeletedBad(object) => initial.unreadable.push(object),
            WatchEvent::WrongKind(object) => {
                self.wrong_kind(&object);
                // As in a list, it may stand where one of ours should. (A bookmark does not.)
                if object.key.is_some() || object.problem == WRONG_KIND {
                    initial.unreadable.push(BadObject { key: None, ..object });
                }
            }
            WatchEvent::Unknown(_) => {
                self.status.unknown_event();
            }
            WatchEvent::Bookmark(_) | WatchEvent::Error(_) | WatchEvent::Progress => {}
        }
    }

    /// The version that a streaming list asks for: not older than the last one seen, and at first the most recent.
    fn streaming_version(&self) -> ResourceVersion {
        if self.version_unavailable { ResourceVersion::unset() } else { self.version.clone() }
    }
}

impl Initial {
    fn into_list(self, resource_version: ResourceVersion) -> PagedList {
        PagedList {
            items: self.objects.into_values().collect(),
            bad: self.bad.into_values().chain(self.unreadable).collect(),
            resource_version,
            paginated: false,
        }
    }
}

fn silent(time: Duration) -> Error {
    without_end(&format!("was silent for {time:?}"))
}

fn without_end(what: &str) -> Error {
    Error::new(ErrorKind::Disconnected, format_args!("the streaming list {what} before the bookmark that ends it"))
}
