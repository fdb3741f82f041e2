//! `GET` of a collection with `watch`: where the stream begins, and what can go wrong before it does.

use bytes::Bytes;
use futures::stream::{self, StreamExt};
use tokio::time::Instant;

use super::watch_stream::{Bookmarks, TableEvents, WatchStream};
use super::{Call, reach};
use crate::clock::later;
use crate::defaults::{LAST_BOOKMARK, WATCH_TIMEOUT};
use crate::failure::Failure;
use crate::http::answer::Answer;
use crate::http::options::revision;
use crate::server::ExpiredWatch;
use crate::validation::quoted;

pub(crate) async fn run(mut call: Call) -> Result<Answer, Failure> {
    call.options.watch = true;
    call.options = std::mem::take(&mut call.options).validated()?;
    let options = &call.options;
    let server = &call.server;
    let started = Instant::now();
    let filter = call.filter()?;
    let asked = match options.resource_version.as_str() {
        "" | "0" => None,
        text => Some(revision(text).map_err(|error| {
            Failure::internal(format!("resourceVersion: Invalid value: {}: {error}", quoted(text)))
        })?),
    };
    let initial = options.send_initial_events == Some(true);
    if initial
        && let Some(revision) = asked
        && let Err(failure) = reach(server, revision).await
    {
        return Ok(error_event(&failure));
    }
    let after = match (initial, asked) {
        (true, _) => None,
        (false, Some(revision)) => Some(revision),
        (false, None) => Some(server.storage.revision()),
    };
    let buffer = server.settings.watch_buffer;
    let subscription = match server.storage.watch(&call.kind, after, filter, buffer) {
        Ok(subscription) => subscription,
        Err(too_old) => {
            let asked = after.unwrap_or_default();
            let text = format!("too old resource version: {asked} ({})", too_old.oldest);
            let failure = Failure::expired(text);
            return match server.settings.expired_watch {
                ExpiredWatch::Event => Ok(error_event(&failure)),
                ExpiredWatch::Status => Err(failure),
            };
        }
    };
    let table = call.table()?.map(TableEvents::new);
    let timeout = options.timeout.unwrap_or_else(|| server.random.jittered(WATCH_TIMEOUT, 2.0));
    let deadline = later(started, timeout);
    let bookmarks = options.allow_watch_bookmarks.then(|| Bookmarks {
        initial_end: initial,
        last: deadline.checked_sub(LAST_BOOKMARK).filter(|last| *last > started),
        next: later(started, server.bookmark_pause()),
    });
    let stream = WatchStream {
        server: server.clone(),
        kind: call.kind.clone(),
        shape: call.shape(),
        table,
        subscription,
        after: after.unwrap_or_default(),
        bookmarks,
        deadline,
    };
    Ok(Answer::stream(stream.lines()))
}

/// A stream of one event that says why there are no others.
fn error_event(failure: &Failure) -> Answer {
    let line: Bytes = [br#"{"type":"ERROR","object":"#.as_slice(), &failure.json(), b"}\n"].concat().into();
    Answer::stream(stream::once(async move { line }).boxed())
}
