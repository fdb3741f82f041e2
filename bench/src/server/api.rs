//! Lists and watches of pods.

use std::io;

use crate::frames::{Event, TOO_OLD, bookmark, expired, pod_event, pod_in, status};
use crate::http::{Connection, Request};
use crate::protobuf::{UNKNOWN_TAIL, field, message, unknown_head};
use crate::ready::{Batch, Ready};
use crate::state::{Next, Snapshot, State, Watch};
use crate::templates::Format;
use std::time::{Duration, Instant};

/// How often a live watch gets a bookmark.
const BOOKMARKS: Duration = Duration::from_secs(60);

pub(crate) fn pods(state: &State, request: &Request, connection: &mut Connection) -> io::Result<()> {
    let accepted = request.header("accept").unwrap_or_default();
    let preferred = if accepted.trim_start().starts_with("application/vnd.kubernetes.protobuf") {
        Format::Protobuf
    } else {
        Format::Json
    };
    let format = if state.serves(preferred) { preferred } else { Format::Json };
    if request.flag("watch") {
        watch(state, request, format, connection)
    } else {
        list(state, request, format, connection)
    }
}

/// One page of a list.
struct Page<'a> {
    state: &'a State,
    format: Format,
    snapshot: Snapshot,
    /// Places in the order of the list.
    start: usize,
    end: usize,
    /// The version of the first page.
    version: u64,
}

fn list(state: &State, request: &Request, format: Format, connection: &mut Connection) -> io::Result<()> {
    let bad = |connection: &mut Connection, message: &str| {
        connection.answer(400, "application/json", status(400, "BadRequest", message).as_bytes())
    };
    let snapshot = state.snapshot();
    let (mut start, mut version) = (0, snapshot.version);
    if let Some(token) = request.query("continue").filter(|token| !token.is_empty()) {
        let parts = token.split_once('.').and_then(|(v, s)| Some((v.parse().ok()?, s.parse().ok()?)));
        let Some(parts) = parts else { return bad(connection, "the continue token is not of this server") };
        (version, start) = parts;
        if !state.knows(version) || start > state.pods.len() {
            return connection.answer(410, "application/json", status(410, "Expired", TOO_OLD).as_bytes());
        }
    }
    let limit = match request.number("limit", 0) {
        // A kube-apiserver gives all from its cache at version 0.
        Ok(0) => usize::MAX,
        Ok(_) if request.query("resourceVersion") == Some("0") => usize::MAX,
        Ok(limit) => limit as usize,
        Err(message) => return bad(connection, &message),
    };
    let end = state.pods.len().min(start.saturating_add(limit));
    Page { state, format, snapshot, start, end, version }.send(connection)
}

impl Page<'_> {
    fn send(&self, connection: &mut Connection) -> io::Result<()> {
        let numbers = &self.state.pods.order()[self.start..self.end];
        let lengths = numbers.iter().map(|number| self.state.pods.body(*number, self.format).len());
        let (head, tail, content_type) = match self.format {
            Format::Json => (self.json_head(), &b"]}"[..], "application/json"),
            Format::Protobuf => {
                let metadata = self.protobuf_metadata();
                let items: usize = lengths.clone().map(|length| message(2, length).len() + length).sum();
                let head = unknown_head("PodList", metadata.len() + items);
                ([head, metadata].concat(), UNKNOWN_TAIL, "application/vnd.kubernetes.protobuf")
            }
        };
        let items: usize = match self.format {
            // A brace and a comma, which the first lacks.
            Format::Json => lengths.map(|length| length + 2).sum::<usize>().saturating_sub(1),
            Format::Protobuf => lengths.map(|length| message(2, length).len() + length).sum(),
        };
        connection.head(200, content_type, Some(head.len() + items + tail.len()))?;

        let mut batch = Batch::default();
        batch.push(&head);
        let ready = self.state.initial(self.format);
        for (place, number) in (self.start..).zip(numbers) {
            self.item(ready, place, *number, &mut batch);
            if batch.is_full() {
                batch.send(&mut connection.stream)?;
            }
        }
        batch.push(tail);
        batch.send(&mut connection.stream)
    }

    fn item<'a>(&self, ready: Option<&'a Ready>, place: usize, number: u32, batch: &mut Batch<'a>) {
        let body = self.state.pods.body(number, self.format);
        match self.format {
            Format::Json if place == self.start => batch.push(b"{"),
            Format::Json => batch.push(b",{"),
            Format::Protobuf => batch.render(|to| to.extend_from_slice(&message(2, body.len()))),
        }
        match (ready, self.snapshot.revisions[number as usize]) {
            (Some(ready), 0) => batch.push(pod_in(&self.state.pods, self.format, number, ready.chunk(place))),
            (_, revision) => batch.render(|to| body.fill(number, revision, to)),
        }
    }

    /// The token for the next page, and how many pods are left for it.
    fn more(&self) -> Option<(String, usize)> {
        let left = self.state.pods.len() - self.end;
        (left > 0).then(|| (format!("{}.{}", self.version, self.end), left))
    }

    fn json_head(&self) -> Vec<u8> {
        let more = self.more().map_or_else(String::new, |(token, left)| {
            format!(",\"continue\":\"{token}\",\"remainingItemCount\":{left}")
        });
        let version = self.version;
        format!(
            "{{\"kind\":\"PodList\",\"apiVersion\":\"v1\",\
             \"metadata\":{{\"resourceVersion\":\"{version}\"{more}}},\"items\":["
        )
        .into_bytes()
    }

    fn protobuf_metadata(&self) -> Vec<u8> {
        let mut metadata = [field(1, b""), field(2, self.version.to_string().as_bytes())].concat();
        let (token, left) = self.more().unwrap_or_default();
        metadata.extend(field(3, token.as_bytes()));
        if left > 0 {
            // Field 4, a number, is written as a length is.
            let mut left = message(4, left);
            left[0] = 4 << 3;
            metadata.extend(left);
        }
        field(1, &metadata)
    }
}

fn watch(state: &State, request: &Request, format: Format, connection: &mut Connection) -> io::Result<()> {
    let from = match request.number("resourceVersion", 0) {
        Ok(version) => version,
        Err(message) => {
            return connection.answer(400, "application/json", status(400, "BadRequest", &message).as_bytes());
        }
    };
    let content_type = match format {
        Format::Json => "application/json",
        Format::Protobuf => "application/vnd.kubernetes.protobuf;stream=watch",
    };
    connection.head(200, content_type, None)?;
    let asked_for_list = request.flag("sendInitialEvents");
    let bookmarks = request.flag("allowWatchBookmarks");
    let mut batch = Batch::default();
    if asked_for_list || from == 0 {
        let (mut watch, snapshot) = state.watch(format);
        let sent = initial(state, format, &snapshot, asked_for_list && bookmarks, connection);
        let followed = sent.and_then(|()| follow(state, format, bookmarks, &mut watch, connection));
        state.leave(&watch);
        followed?;
    } else if let Some(mut watch) = state.resume(format, from) {
        let followed = follow(state, format, bookmarks, &mut watch, connection);
        state.leave(&watch);
        followed?;
    } else {
        batch.render(|to| to.extend(expired(format)));
    }
    batch.push(b"0\r\n\r\n");
    batch.send(&mut connection.stream)
}

/// Every pod as ADDED, and the bookmark behind them.
fn initial(
    state: &State,
    format: Format,
    snapshot: &Snapshot,
    bookmark_behind: bool,
    connection: &mut Connection,
) -> io::Result<()> {
    let ready = state.initial(format);
    let mut batch = Batch::default();
    for (place, number) in state.pods.order().iter().enumerate() {
        match (ready, snapshot.revisions[*number as usize]) {
            (Some(ready), 0) => batch.push(ready.chunk(place)),
            (_, revision) => batch.render(|to| {
                pod_event(&state.pods, format, Event::Added, *number, revision, to);
            }),
        }
        if batch.is_full() {
            batch.send(&mut connection.stream)?;
        }
    }
    if bookmark_behind {
        batch.render(|to| to.extend(bookmark(format, snapshot.version, true)));
    }
    batch.send(&mut connection.stream)
}

/// Sends events as they come, until the watch is closed.
fn follow(
    state: &State,
    format: Format,
    bookmarks: bool,
    watch: &mut Watch,
    connection: &mut Connection,
) -> io::Result<()> {
    state.is_live(watch);
    let mut last_bookmark = Instant::now();
    loop {
        match state.next(watch) {
            Next::Events { first, numbers, ready } => {
                let mut batch = Batch::default();
                for (version, number) in (first..).zip(numbers) {
                    match ready.as_ref().and_then(|ready| ready.chunk(version)) {
                        Some(chunk) => batch.push(chunk),
                        None => batch.render(|to| {
                            pod_event(&state.pods, format, Event::Modified, number, version, to);
                        }),
                    }
                }
                batch.send(&mut connection.stream)?;
            }
            Next::Nothing if connection.is_closed() => return Err(io::ErrorKind::ConnectionAborted.into()),
            Next::Nothing => {}
            Next::Expired => {
                let mut batch = Batch::default();
                batch.render(|to| to.extend(expired(format)));
                return batch.send(&mut connection.stream);
            }
            Next::Closed => return Ok(()),
        }
        if bookmarks && last_bookmark.elapsed() >= BOOKMARKS {
            last_bookmark = Instant::now();
            let mut batch = Batch::default();
            batch.render(|to| to.extend(bookmark(format, watch.version(), false)));
            batch.send(&mut connection.stream)?;
        }
    }
}
