//! From the bytes of a watch to its events.
//!
//! Events come one to a line, so the reader looks for newlines and reads each line where it lies. Lines hold no event by
//! themselves in two cases. Some servers print over several lines for some clients (kube-apiserver does for curl): a line
//! that is cut off by its newline is joined with those behind it, until the brackets are balanced. And a line may be
//! damaged: when a line behind it is an event by itself, the damaged part is given up.
//!
//! Of an event with a Table each row is a change. There is one, as a rule.
//!
//! An event above the limit is not kept. Its key is read from what there is of it, its end is looked for without
//! keeping anything, and if that does not come soon the connection is given up.

use std::collections::VecDeque;
use std::sync::Arc;

use bytes::{Buf as _, Bytes, BytesMut};

use super::boundary::Boundary;
use super::decode::{Decoded, ExpectedKind, TOO_LARGE, bad, bad_from_lossy, not_json};
use super::intake::Intake;
use super::{BadObject, Bookmark, WatchEvent, table};
use crate::defaults::MAX_SKIPPED_FRAME;
use crate::error::Status;
use crate::object::header::{self, RawHeader, Unread};
use crate::{Error, ErrorKind, ResourceVersion};

/// Longer types have no usual form: looking for the end of one that has none would take long, at each piece.
const LONGEST_TYPE: usize = 32;

/// Takes pieces of a stream, and gives out events.
pub(super) struct WatchReader {
    expected: ExpectedKind,
    intake: Arc<Intake>,
    max_frame: usize,
    /// What was received and not read yet. While lines are joined, or one is incomplete, it begins with them.
    input: Bytes,
    /// What follows an event on its line. It is read before the input, and then nothing else is under way.
    rest: Bytes,
    /// What else the last event has told. It is given out before anything is read.
    more: VecDeque<WatchEvent>,
    ended: bool,
    state: State,
}

enum State {
    /// At the beginning of a line.
    Line,
    /// Within a line: what there is of it, in which there is no newline.
    Partial(BytesMut),
    /// Within an event of several lines: those that are complete, which `boundary` has seen, and what there is of the next.
    Joined { event: BytesMut, boundary: Boundary, line: BytesMut },
    /// Within an event that is too large. `skipped` counts its bytes.
    Oversized { event: WatchEvent, boundary: Boundary, skipped: usize },
}

/// What one line turned out to be.
enum Line {
    /// An event, and how many bytes it took.
    Event(Events, usize),
    /// The beginning of an event.
    CutOff,
    /// Nothing that can be used.
    Broken,
}

/// What an event tells: one thing, and what further rows of its Table add.
type Events = (WatchEvent, VecDeque<WatchEvent>);

impl WatchReader {
    pub(super) fn new(expected: ExpectedKind, intake: Arc<Intake>, max_frame: usize) -> Self {
        Self {
            expected,
            intake,
            max_frame,
            input: Bytes::new(),
            rest: Bytes::new(),
            more: VecDeque::new(),
            ended: false,
            state: State::Line,
        }
    }

    /// Takes the next piece. All events of the piece before have been given out.
    pub(super) fn push(&mut self, piece: Bytes) {
        debug_assert!(self.input.is_empty() && self.rest.is_empty() && self.more.is_empty());
        self.input = piece;
    }

    /// The stream has ended: what is there is all.
    pub(super) fn end(&mut self) {
        self.ended = true;
    }

    pub(super) fn has_ended(&self) -> bool {
        self.ended
    }

    /// The next event of what was pushed, or `None` if it holds no further one. After [`end`](Self::end) `None` is the end.
    pub(super) fn next_event(&mut self) -> Result<Option<WatchEvent>, Error> {
        if let Some(event) = self.more.pop_front() {
            return Ok(Some(event));
        }
        while !self.rest.is_empty() || !self.input.is_empty() {
            if let Some(event) = self.step()? {
                return Ok(Some(event));
            }
        }
        if self.ended { self.last_line() } else { Ok(None) }
    }

    /// What there is behind the last newline: an event that came whole, or one that the end of the stream cut off.
    fn last_line(&mut self) -> Result<Option<WatchEvent>, Error> {
        let rest = match std::mem::replace(&mut self.state, State::Line) {
            State::Line => return Ok(None),
            State::Partial(line) => line.freeze(),
            State::Joined { mut event, line, .. } => {
                event.extend_from_slice(&line);
                event.freeze()
            }
            State::Oversized { .. } => return Err(cut_off()),
        };
        match self.read_line(&rest) {
            Line::Event(events, length) => {
                self.put_back(rest, length);
                Ok(Some(self.first_of(events)))
            }
            _ if rest.trim_ascii().is_empty() => Ok(None),
            _ if !looks_like_json(&rest) => Err(not_json()),
            _ => Err(cut_off()),
        }
    }

    /// Takes some bytes off the input.
    fn step(&mut self) -> Result<Option<WatchEvent>, Error> {
        if !self.rest.is_empty() {
            let line = std::mem::take(&mut self.rest);
            return self.whole_line(line);
        }
        match std::mem::replace(&mut self.state, State::Line) {
            State::Line => self.line(),
            State::Partial(line) => self.rest_of_line(line),
            State::Joined { event, boundary, line } => self.further_line(event, boundary, line),
            State::Oversized { event, boundary, skipped } => self.skip(event, boundary, skipped),
        }
    }

    fn line(&mut self) -> Result<Option<WatchEvent>, Error> {
        match memchr::memchr(b'\n', &self.input) {
            Some(newline) => {
                let line = self.input.split_to(newline + 1);
                self.whole_line(line)
            }
            None => {
                let line = BytesMut::from(&*std::mem::take(&mut self.input));
                self.keep_partial(line)
            }
        }
    }

    fn rest_of_line(&mut self, mut line: BytesMut) -> Result<Option<WatchEvent>, Error> {
        match memchr::memchr(b'\n', &self.input) {
            Some(newline) => {
                line.extend_from_slice(&self.input.split_to(newline + 1));
                self.whole_line(line.freeze())
            }
            None => {
                line.extend_from_slice(&std::mem::take(&mut self.input));
                self.keep_partial(line)
            }
        }
    }

    fn keep_partial(&mut self, mut line: BytesMut) -> Result<Option<WatchEvent>, Error> {
        // Else every piece would look at them again.
        let spaces = line.len() - line.trim_ascii_start().len();
        line.advance(spaces);
        if line.is_empty() {
            return Ok(None);
        }
        if line.len() > self.max_frame {
            return self.oversized(line.freeze());
        }
        if !looks_like_json(&line) {
            return Err(not_json());
        }
        self.state = State::Partial(line);
        Ok(None)
    }

    fn whole_line(&mut self, line: Bytes) -> Result<Option<WatchEvent>, Error> {
        if line.len() > self.max_frame {
            return self.oversized(line);
        }
        match self.read_line(&line) {
            Line::Event(events, length) => {
                self.put_back(line, length);
                Ok(Some(self.first_of(events)))
            }
            // The rest of a line whose newline has not come.
            _ if !line.ends_with(b"\n") => self.keep_partial(BytesMut::from(&*line)),
            Line::CutOff => {
                let mut boundary = Boundary::default();
                let _ = boundary.scan(&line);
                self.state = State::Joined { event: BytesMut::from(&*line), boundary, line: BytesMut::new() };
                Ok(None)
            }
            Line::Broken if line.trim_ascii().is_empty() => Ok(None),
            Line::Broken => self.broken(&line),
        }
    }

    fn further_line(
        &mut self,
        mut event: BytesMut,
        mut boundary: Boundary,
        mut line: BytesMut,
    ) -> Result<Option<WatchEvent>, Error> {
        let newline = memchr::memchr(b'\n', &self.input);
        line.extend_from_slice(&self.input.split_to(newline.map_or(self.input.len(), |newline| newline + 1)));
        let is_event =
            || line.starts_with(b"{") && matches!(self.read_line(&Bytes::copy_from_slice(&line)), Line::Event(..));
        if usual_form(&line).is_some() || (newline.is_some() && is_event()) {
            // No event of several lines has such a line: what came before was damaged.
            self.put_back(line.freeze(), 0);
            return self.broken(&event);
        }
        if newline.is_none() && event.len() + line.len() <= self.max_frame {
            self.state = State::Joined { event, boundary, line };
            return Ok(None);
        }
        let end = boundary.scan(&line);
        event.extend_from_slice(&line[..end.unwrap_or(line.len())]);
        match end {
            Some(end) => {
                self.put_back(line.freeze(), end);
                let event = event.freeze();
                match self.read_line(&event) {
                    _ if event.len() > self.max_frame => self.too_large(&event).map(Some),
                    Line::Event(events, _) => Ok(Some(self.first_of(events))),
                    Line::CutOff | Line::Broken => self.broken(&event),
                }
            }
            None if event.len() > self.max_frame => self.begin_to_skip(&event, boundary),
            None => {
                self.state = State::Joined { event, boundary, line: BytesMut::new() };
                Ok(None)
            }
        }
    }

    /// The first of what an event tells. The rest is next.
    fn first_of(&mut self, (event, more): Events) -> WatchEvent {
        self.more = more;
        event
    }

    /// What was taken off the input beyond an event is read next. It is not copied back: a line may hold many events.
    fn put_back(&mut self, mut line: Bytes, taken: usize) {
        line.advance(taken);
        let spaces = line.len() - line.trim_ascii_start().len();
        line.advance(spaces);
        self.rest = line;
    }

    /// A line above the limit: an event that is too large, or several that are not.
    fn oversized(&mut self, line: Bytes) -> Result<Option<WatchEvent>, Error> {
        let mut boundary = Boundary::default();
        match boundary.scan(&line) {
            None => self.begin_to_skip(&line, boundary),
            Some(end) => {
                self.put_back(line.clone(), end);
                let event = line.slice(..end);
                match self.read_line(&event) {
                    _ if end > self.max_frame => self.too_large(&event).map(Some),
                    Line::Event(events, _) => Ok(Some(self.first_of(events))),
                    Line::CutOff | Line::Broken => self.broken(&event),
                }
            }
        }
    }

    /// An event is too large. `boundary` has seen its `start`.
    fn begin_to_skip(&mut self, start: &[u8], boundary: Boundary) -> Result<Option<WatchEvent>, Error> {
        self.state = State::Oversized { event: self.too_large(start)?, boundary, skipped: start.len() };
        Ok(None)
    }

    fn skip(&mut self, event: WatchEvent, mut boundary: Boundary, skipped: usize) -> Result<Option<WatchEvent>, Error> {
        if let Some(end) = boundary.scan(&self.input) {
            let _ = self.input.split_to(end);
            return Ok(Some(event));
        }
        let skipped = skipped + std::mem::take(&mut self.input).len();
        if skipped > self.max_frame.saturating_mul(MAX_SKIPPED_FRAME) {
            return Err(Error::new(ErrorKind::Malformed, "an event of the watch has no end"));
        }
        self.state = State::Oversized { event, boundary, skipped };
        Ok(None)
    }

    /// A line that is no event. If it is recognisably one, others are unharmed; if not, nothing is sure any more.
    fn broken(&mut self, line: &[u8]) -> Result<Option<WatchEvent>, Error> {
        if !looks_like_json(line) {
            return Err(not_json());
        }
        let text = String::from_utf8_lossy(line);
        let (event_type, header) = table::read_event_start(&self.expected, text.as_bytes());
        let problem = header::check(line).err().unwrap_or("it is not valid JSON");
        Ok(Some(bad_event(event_type.as_deref(), bad_from_lossy(&header, problem))))
    }

    /// Reads the event at the beginning of a line.
    fn read_line(&self, line: &Bytes) -> Line {
        self.read_usual(line).unwrap_or_else(|| self.read_unusual(line))
    }

    /// The form in which every API server writes events: `{"type":"ADDED","object":{..}}`. One pass.
    fn read_usual(&self, line: &Bytes) -> Option<Line> {
        let (event_type, json) = usual_form(line).filter(|(_, json)| json.starts_with(b"{"))?;
        let (header, length) = match header::read_prefix(json) {
            Ok(object) => object,
            Err(Unread::CutOff) => return Some(Line::CutOff),
            Err(Unread::Broken) => return None,
        };
        if json.get(length) != Some(&b'}') {
            return None;
        }
        let taken = line.len() - json.len() + length + 1;
        Some(Line::Event(self.events(std::str::from_utf8(event_type).ok()?, &header, line, &json[..length]), taken))
    }

    /// Any other form.
    fn read_unusual(&self, line: &Bytes) -> Line {
        let (event, length) = match header::read_event_prefix(line) {
            Ok((_, 0)) => return Line::Broken,
            Ok(event) => event,
            Err(error) if error.is_eof() && !line.trim_ascii().is_empty() => return Line::CutOff,
            Err(_) => return Line::Broken,
        };
        let events = match (event.event_type, event.object) {
            (Some(event_type), Some(object)) => {
                let json = object.get().as_bytes();
                match header::read_prefix(json) {
                    Ok((header, _)) => self.events(&event_type, &header, line, json),
                    Err(_) => return Line::Broken,
                }
            }
            _ if event.kind.as_deref() == Some("Status") => match Status::parse(&line[..length]) {
                Some(status) => (WatchEvent::Error(Error::from_status(status)), VecDeque::new()),
                None => return Line::Broken,
            },
            _ => return Line::Broken,
        };
        Line::Event(events, length)
    }

    /// What an event tells whose object is `json`, a part of `line`.
    fn events(&self, event_type: &str, header: &RawHeader<'_>, line: &Bytes, json: &[u8]) -> Events {
        let mut rows = table::events(&self.expected, &self.intake, event_type, header, json).unwrap_or_default();
        match rows.pop_front() {
            Some(first) => (first, rows),
            None => (self.event(event_type, header, line, json), rows),
        }
    }

    fn event(&self, event_type: &str, header: &RawHeader<'_>, line: &Bytes, json: &[u8]) -> WatchEvent {
        match event_type {
            "ADDED" | "MODIFIED" | "DELETED" => {
                change(event_type, self.expected.decode_part(header, line, json, &self.intake))
            }
            "BOOKMARK" => bookmark(&self.expected, header),
            "ERROR" => WatchEvent::Error(match Status::parse(json) {
                Some(status) => Error::from_status(status),
                None => Error::new(ErrorKind::Malformed, "the server sent an ERROR event without a Status"),
            }),
            _ => WatchEvent::Unknown(version(header)),
        }
    }

    /// An event above the limit that begins with `start`.
    fn too_large(&self, start: &[u8]) -> Result<WatchEvent, Error> {
        if !looks_like_json(start) {
            return Err(not_json());
        }
        let (event_type, header) = table::read_event_start(&self.expected, start);
        Ok(bad_event(event_type.as_deref(), bad(&header, TOO_LARGE)))
    }
}

fn version(header: &RawHeader<'_>) -> ResourceVersion {
    header.resource_version.as_deref().unwrap_or_default().into()
}

/// An object was added, changed or deleted.
pub(super) fn change(event_type: &str, decoded: Decoded) -> WatchEvent {
    match (event_type, decoded) {
        ("ADDED", Decoded::Object(object)) => WatchEvent::Added(object),
        ("MODIFIED", Decoded::Object(object)) => WatchEvent::Modified(object),
        (_, Decoded::Object(object)) => WatchEvent::Deleted(object),
        (_, Decoded::Bad(object)) => bad_event(Some(event_type), object),
        (_, Decoded::WrongKind(object)) => WatchEvent::WrongKind(object),
    }
}

pub(super) fn bookmark(expected: &ExpectedKind, header: &RawHeader<'_>) -> WatchEvent {
    match expected.decode_bookmark(header) {
        Ok(initial_events_end) => {
            WatchEvent::Bookmark(Bookmark { resource_version: version(header), initial_events_end })
        }
        Err(object) => WatchEvent::WrongKind(object),
    }
}

/// The type, and what begins with the object.
fn usual_form(line: &[u8]) -> Option<(&[u8], &[u8])> {
    let rest = line.strip_prefix(b"{\"type\":\"")?;
    let event_type = &rest[..memchr::memchr(b'"', &rest[..rest.len().min(LONGEST_TYPE)])?];
    Some((event_type, rest[event_type.len()..].strip_prefix(b"\",\"object\":")?))
}

pub(super) fn bad_event(event_type: Option<&str>, object: BadObject) -> WatchEvent {
    match event_type {
        Some("DELETED") => WatchEvent::DeletedBad(object),
        _ => WatchEvent::Bad(object),
    }
}

fn looks_like_json(bytes: &[u8]) -> bool {
    bytes.trim_ascii_start().starts_with(b"{")
}

fn cut_off() -> Error {
    Error::new(ErrorKind::Disconnected, "the stream ended in the middle of an event")
}
