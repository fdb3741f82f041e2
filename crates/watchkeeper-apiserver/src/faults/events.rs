//! The lines of a watch, as they should not be.
//!
//! Each line that the watch makes passes through here, and comes out as none, one or more lines. Old states are taken from
//! the journal, so they are what the server really had.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures::stream::{self, BoxStream, StreamExt};
use serde_json::Value;
use tokio::time::{Instant, sleep_until};

use super::serve::Asked;
use super::{Fault, objects};
use crate::clock::later;
use crate::server::Inner;
use crate::storage::{EventType, Shape, Stored, event_line};
use crate::truth::Truth;

/// A watch under faults.
struct Events {
    lines: BoxStream<'static, Bytes>,
    faults: Vec<Fault>,
    server: Arc<Inner>,
    asked: Arc<Asked>,
    /// Events that brought an object so far.
    objects: usize,
    /// What is to be sent next.
    ready: VecDeque<Bytes>,
    /// Bookmarks that are held back, and until when.
    late: VecDeque<(Instant, Bytes)>,
    ended: bool,
}

/// The lines of a watch with its faults.
pub(super) fn inject(
    lines: BoxStream<'static, Bytes>,
    faults: Vec<Fault>,
    server: Arc<Inner>,
    asked: Arc<Asked>,
) -> BoxStream<'static, Bytes> {
    let (ready, late) = Default::default();
    let mut events = Events { lines, faults, server, asked, objects: 0, ready, late, ended: false };
    events.fail_after(0);
    stream::unfold(events, |mut events| async move { events.next().await.map(|line| (line, events)) }).boxed()
}

/// Whether a fault is about the lines of a watch.
pub(super) fn is_meant(fault: &Fault) -> bool {
    use Fault::{BookmarksLate, BookmarksLie, BookmarksMissing, ErrorEvent, Garbage, OldState, Rewind, Truncate};
    super::items::is_meant(fault)
        || matches!(fault, OldState { .. } | Rewind { .. } | ErrorEvent { .. } | Garbage { .. } | Truncate)
        || matches!(fault, BookmarksLate { .. } | BookmarksLie { .. } | BookmarksMissing)
}

impl Events {
    async fn next(&mut self) -> Option<Bytes> {
        loop {
            if let Some(line) = self.ready.pop_front() {
                return Some(line);
            }
            if self.ended {
                return None;
            }
            let late = self.late.front().map(|(due, _)| *due);
            tokio::select! {
                biased;
                () = sleep_until(late.unwrap_or_else(Instant::now)), if late.is_some() => {
                    self.ready.extend(self.late.pop_front().map(|(_, bookmark)| bookmark));
                }
                line = self.lines.next() => self.take(line?),
            }
        }
    }

    /// Makes of a line what is sent in its place.
    fn take(&mut self, line: Bytes) {
        match objects::split(&line) {
            Some(("BOOKMARK", _)) => self.bookmark(line),
            Some(("ADDED" | "MODIFIED" | "DELETED", _)) => self.object(line),
            _ => self.ready.push_back(line),
        }
    }

    fn bookmark(&mut self, mut line: Bytes) {
        let mut late_by: Option<Duration> = None;
        for fault in &self.faults {
            match fault {
                Fault::BookmarksMissing => return,
                Fault::BookmarksLate { by } => late_by = Some(*by),
                Fault::BookmarksLie { ahead } => line = objects::moved_bookmark(&line, *ahead).unwrap_or(line),
                _ => {}
            }
        }
        match late_by {
            Some(by) => self.late.push_back((later(Instant::now(), by), line)),
            None => self.ready.push_back(line),
        }
    }

    fn object(&mut self, line: Bytes) {
        self.objects += 1;
        let mut faults = std::mem::take(&mut self.faults);
        let mut lines = vec![line.clone()];
        for fault in &mut faults {
            self.change(fault, &line, &mut lines);
        }
        self.faults = faults;
        self.ready.extend(lines);
        self.fail_after(self.objects);
    }

    /// What one fault does to the lines in an event's place.
    fn change(&mut self, fault: &mut Fault, line: &Bytes, lines: &mut Vec<Bytes>) {
        let number = self.objects;
        match fault {
            Fault::DropEvent { nth } if *nth == number => lines.clear(),
            Fault::DuplicateEvent { nth } if *nth == number => lines.push(line.clone()),
            Fault::OldState { nth } if *nth == number => match self.old_state(line) {
                Some(old) => lines.push(old),
                None => *nth += 1,
            },
            Fault::Rewind { nth, to } if *nth == number => lines.extend(self.state_at(*to)),
            Fault::Garbage { nth, bytes } if *nth == number => *lines = vec![[bytes, b"\n".as_slice()].concat().into()],
            Fault::WrongKind { nth } if *nth == number => replace(lines, objects::wrong_kind),
            Fault::Oversize { nth, bytes } if *nth == number => {
                replace(lines, |object| objects::oversize(object, *bytes));
            }
            Fault::Truncate => {
                *lines = vec![line.slice(..line.len() / 2)];
                self.ended = true;
            }
            _ => {}
        }
    }

    /// Ends the watch with an error behind so many objects, if a fault says so.
    fn fail_after(&mut self, objects: usize) {
        for fault in &self.faults {
            if let Fault::ErrorEvent { nth, code, reason } = fault
                && *nth == objects
            {
                self.ready.push_back(objects::error_line(*code, reason));
                self.ended = true;
            }
        }
    }

    /// The state of a line's object before the one that the line shows.
    fn old_state(&self, line: &Bytes) -> Option<Bytes> {
        let (_, object) = objects::split(line)?;
        let object: Value = serde_json::from_slice(object).ok()?;
        // Of a table it is the only row that shows an object.
        let object = if self.asked.table.is_some() { &object["rows"][0]["object"] } else { &object };
        let metadata = |field: &str| object["metadata"][field].as_str().unwrap_or_default();
        let revision: u64 = metadata("resourceVersion").parse().ok()?;
        let key = match metadata("namespace") {
            "" => metadata("name").to_owned(),
            namespace => format!("{namespace}/{}", metadata("name")),
        };
        let kind = &self.asked.kind;
        let journal = self.server.storage.journal_since(0);
        let mut older = journal.iter().rev().filter(|entry| entry.revision < revision && entry.kind.id == kind.id);
        let old = older.find(|entry| *entry.key == *key)?.state.as_ref()?;
        Some(self.line(EventType::Modified, old))
    }

    /// What leads from the present state back to the one at a revision.
    fn state_at(&self, revision: u64) -> Vec<Bytes> {
        let truth = Truth::new(&self.server);
        let kind = &self.asked.kind;
        let Ok(then) = truth.of_kind_at(kind, revision) else { return Vec::new() };
        let now = truth.of_kind(kind);
        let mut lines = Vec::new();
        let is_meant = |object: &Stored| self.asked.filter.as_ref().is_none_or(|filter| filter.matches(object));
        for object in now.objects().filter(|object| is_meant(object) && then.get(object.key()).is_none()) {
            lines.push((revision, self.line(EventType::Deleted, &object.stamped(revision))));
        }
        for object in then.objects().filter(|object| is_meant(object)) {
            let event = match now.get(object.key()) {
                Some(present) if present.revision() == object.revision() => continue,
                Some(_) => EventType::Modified,
                None => EventType::Added,
            };
            lines.push((object.revision(), self.line(event, object)));
        }
        lines.sort_by_key(|(revision, _)| *revision);
        lines.into_iter().map(|(_, line)| line).collect()
    }

    /// A line as the watch would have made it.
    fn line(&self, event: EventType, object: &Stored) -> Bytes {
        let kind = &self.asked.kind;
        match &self.asked.table {
            Some(table) => table.event(event, kind, object, self.server.clock.timestamp(), false),
            None => {
                let shape = Shape { version: self.asked.version.clone(), partial: self.asked.partial };
                event_line(event, kind, object, &shape)
            }
        }
    }
}

/// Changes the objects of lines.
fn replace(lines: &mut [Bytes], make: impl Fn(&[u8]) -> Bytes) {
    for line in lines {
        if let Some((event, object)) = objects::split(line) {
            *line = objects::joined(event, &make(object));
        }
    }
}
