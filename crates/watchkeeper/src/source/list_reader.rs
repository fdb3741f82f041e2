//! From the bytes of a list to its items, as they arrive.
//!
//! A list is one JSON object that may be hundreds of megabytes long, so it is never there as a whole. The reader walks
//! over its top level by itself, and lets serde_json read what stands there, one value at a time: an item is read, and
//! thereby its end is found, as soon as all of it is there. When an item turns out to be cut off by the end of what has
//! arrived, it is tried again after as much again has come, so that nothing is read more than a few times.
//!
//! Built-in kinds send `kind`, `apiVersion`, `metadata` and then `items`; custom resources come with sorted keys, `items`
//! before `metadata`. Either will do. A Table is a list too, whose items are in `rows`.

use std::sync::Arc;

use bytes::{Buf, BytesMut};
use serde::Deserialize;
use serde::de::IgnoredAny;

use super::boundary::Boundary;
use super::decode::{Decoded, ExpectedKind, TOO_LARGE, bad, not_json};
use super::intake::Intake;
use super::table::{self, RawRow};
use super::{BadObject, ListMetadata, ListPart};
use crate::defaults::MAX_SKIPPED_FRAME;
use crate::error::{MAX_STATUS, Status};
use crate::object::header::{self, RawHeader, Unread};
use crate::{Error, ErrorKind};

/// Takes pieces of a list, and gives out its parts.
pub(super) struct ListReader {
    expected: ExpectedKind,
    intake: Arc<Intake>,
    max_frame: usize,
    input: BytesMut,
    /// A value was cut off: it is tried again when the input is as long as this.
    wait_for: usize,
    ended: bool,
    state: State,
    kind: Option<String>,
    api_version: Option<String>,
    /// There was an array of items.
    has_items: bool,
    /// There was an array of rows: what there is are rows.
    has_rows: bool,
    /// An item did not say its kind, so the list must say it.
    has_items_without_kind: bool,
    /// The top level but for its items, in case it is a `Status`.
    status: Option<Vec<u8>>,
}

enum State {
    Start,
    /// Before a key of the top level, or its end.
    Key(After),
    /// Before an item, or the end of the items.
    Item(After),
    /// Within an item that is too large.
    Oversized {
        item: BadObject,
        boundary: Boundary,
        skipped: usize,
    },
    End,
}

/// What stands before a key or an item.
enum After {
    /// The opening bracket.
    Bracket,
    /// Another one.
    Value,
    Comma,
}

/// A step was made.
enum Step {
    Part(ListPart),
    Further,
    /// More bytes are needed.
    Starved,
}

impl ListReader {
    pub(super) fn new(expected: ExpectedKind, intake: Arc<Intake>, max_frame: usize) -> Self {
        Self {
            expected,
            intake,
            max_frame,
            input: BytesMut::new(),
            wait_for: 0,
            ended: false,
            state: State::Start,
            kind: None,
            api_version: None,
            has_items: false,
            has_rows: false,
            has_items_without_kind: false,
            status: None,
        }
    }

    /// Takes the next piece.
    pub(super) fn push(&mut self, piece: &[u8]) {
        self.input.extend_from_slice(piece);
    }

    /// The list has ended: what is there is all.
    pub(super) fn end(&mut self) {
        self.ended = true;
        self.wait_for = 0;
    }

    pub(super) fn has_ended(&self) -> bool {
        self.ended
    }

    /// The next part of what was pushed, or `None` if it holds no further one. After [`end`](Self::end) `None` is the end.
    pub(super) fn next_part(&mut self) -> Result<Option<ListPart>, Error> {
        loop {
            if self.input.len() < self.wait_for {
                return Ok(None);
            }
            self.wait_for = 0;
            match self.step()? {
                Step::Part(part) => return Ok(Some(part)),
                Step::Further => {}
                Step::Starved if !self.ended => return Ok(None),
                Step::Starved if matches!(self.state, State::End) => return Ok(None),
                Step::Starved => return Err(self.cut_off()),
            }
        }
    }

    fn step(&mut self) -> Result<Step, Error> {
        if let State::Oversized { .. } = self.state {
            return self.skip();
        }
        let spaces = self.input.iter().take_while(|byte| byte.is_ascii_whitespace()).count();
        self.input.advance(spaces);
        let Some(&next) = self.input.first() else { return Ok(Step::Starved) };
        match (&self.state, next) {
            (State::Start, b'{') => self.take(1, State::Key(After::Bracket)),
            (State::Start, _) => Err(not_json()),
            (State::Key(After::Bracket | After::Value), b'}') => self.finish(),
            (State::Key(After::Value), b',') => self.take(1, State::Key(After::Comma)),
            (State::Key(After::Bracket | After::Comma), b'"') => self.key(),
            (State::Item(After::Bracket | After::Value), b']') => self.take(1, State::Key(After::Value)),
            (State::Item(After::Value), b',') => self.take(1, State::Item(After::Comma)),
            (State::Item(After::Bracket | After::Comma), _) => self.item(),
            (State::End, _) => Err(malformed("something follows the list")),
            _ => Err(malformed("the list is not valid JSON")),
        }
    }

    fn take(&mut self, bytes: usize, state: State) -> Result<Step, Error> {
        self.input.advance(bytes);
        self.state = state;
        Ok(Step::Further)
    }

    /// A key of the top level and its value; of `items`, or `rows`, only its bracket.
    fn key(&mut self) -> Result<Step, Error> {
        let mut keys = serde_json::Deserializer::from_slice(&self.input).into_iter::<String>();
        let key = match keys.next() {
            Some(Ok(key)) => key,
            Some(Err(error)) if error.is_eof() => return self.starve(),
            _ => return Err(malformed("the list is not valid JSON")),
        };
        let rest = &self.input[keys.byte_offset()..];
        let rest = rest.trim_ascii_start();
        let rest = match rest.first() {
            None => return self.starve(),
            Some(b':') => rest[1..].trim_ascii_start(),
            Some(_) => return Err(malformed("the list is not valid JSON")),
        };
        let start = self.input.len() - rest.len();
        if key == "items" && rest.first() == Some(&b'[') {
            self.has_items = true;
            return self.take(start + 1, State::Item(After::Bracket));
        }
        if key == "rows" && rest.first() == Some(&b'[') && self.expected.columns().is_some() {
            self.has_rows = true;
            return self.take(start + 1, State::Item(After::Bracket));
        }
        let mut values = serde_json::Deserializer::from_slice(rest).into_iter::<IgnoredAny>();
        let length = match values.next() {
            // A number at the very end of the input may go on behind it.
            Some(Ok(_)) if values.byte_offset() < rest.len() => values.byte_offset(),
            Some(Err(error)) if !self.is_cut_off(&error) => return Err(malformed("the list is not valid JSON")),
            _ => return self.starve(),
        };
        let part = self.value(&key, start, start + length)?;
        self.input.advance(start + length);
        self.state = State::Key(After::Value);
        Ok(part.map_or(Step::Further, Step::Part))
    }

    /// The value of a key of the top level.
    fn value(&mut self, key: &str, start: usize, end: usize) -> Result<Option<ListPart>, Error> {
        #[derive(Default, Deserialize)]
        #[serde(rename_all = "camelCase", default)]
        struct Metadata {
            resource_version: Option<String>,
            r#continue: Option<String>,
            remaining_item_count: Option<u64>,
        }
        let value = &self.input[start..end];
        match key {
            "kind" => {
                self.kind = serde_json::from_slice(value).map_err(|_| malformed("the list's kind is no string"))?;
                match self.kind.as_deref() {
                    Some("Table") if self.expected.columns().is_none() => {
                        return Err(malformed(
                            "the server sent a Table; ask it for objects, or check the Accept header",
                        ));
                    }
                    Some("Status") => self.status = Some(b"{\"kind\":\"Status\"".to_vec()),
                    kind => self.expected = self.expected.or_from_list(kind),
                }
            }
            "apiVersion" => {
                self.api_version =
                    serde_json::from_slice(value).map_err(|_| malformed("the list's apiVersion is no string"))?;
            }
            "items" if value != b"null" => return Err(malformed("the list's items are no array")),
            "rows" if value != b"null" && self.expected.columns().is_some() => {
                return Err(malformed("the Table's rows are no array"));
            }
            "columnDefinitions" => {
                if let Some(columns) = self.expected.columns() {
                    columns.learn(value);
                }
            }
            "metadata" if self.status.is_none() => {
                let metadata: Option<Metadata> =
                    serde_json::from_slice(value).map_err(|_| malformed("the list's metadata cannot be read"))?;
                let metadata = metadata.unwrap_or_default();
                return Ok(Some(ListPart::Metadata(ListMetadata {
                    resource_version: metadata.resource_version.as_deref().unwrap_or_default().into(),
                    continue_token: metadata.r#continue.filter(|token| !token.is_empty()),
                    remaining_item_count: metadata.remaining_item_count,
                })));
            }
            _ => {}
        }
        if let Some(status) = self.status.as_mut().filter(|_| key != "kind") {
            status.extend_from_slice(format!(",{}:", serde_json::Value::from(key)).as_bytes());
            status.extend_from_slice(value);
            if status.len() > MAX_STATUS {
                return Err(malformed("the server sent a Status that is too large"));
            }
        }
        Ok(None)
    }

    fn item(&mut self) -> Result<Step, Error> {
        let read = if self.has_rows { self.read_row() } else { self.read_item() };
        let (decoded, length) = match read {
            // A number at the very end of the input may go on behind it.
            Ok((_, length)) if length == self.input.len() && self.input[0] != b'{' => return self.starve_in_item(),
            Ok(item) => item,
            Err(error) if self.is_cut_off(error) => return self.starve_in_item(),
            Err(_) => {
                // Its text may be at fault, and not its structure: then others are unharmed.
                let mut values = serde_json::Deserializer::from_slice(&self.input).into_iter::<IgnoredAny>();
                match values.next() {
                    Some(Ok(_)) => {}
                    Some(Err(error)) if self.is_cut_off(&error) => return self.starve_in_item(),
                    _ => return Err(malformed("an item of the list is not valid JSON")),
                }
                let length = values.byte_offset();
                let json = &self.input[..length];
                let expected = &self.expected;
                (if self.has_rows { expected.decode_broken_row(json) } else { expected.decode_broken(json) }, length)
            }
        };
        self.input.advance(length);
        self.state = State::Item(After::Value);
        Ok(Step::Part(match decoded {
            Decoded::Object(object) => ListPart::Item(object),
            Decoded::Bad(object) => ListPart::Bad(object),
            // Its key says nothing of ours: it must not make a deleted object look present, nor hide one.
            Decoded::WrongKind(object) => ListPart::Bad(BadObject { key: None, ..object }),
        }))
    }

    fn read_item(&mut self) -> Result<(Decoded, usize), Unread> {
        let (header, length) = header::read_prefix(&self.input)?;
        if length > self.max_frame {
            return Ok((Decoded::Bad(bad(&header, TOO_LARGE)), length));
        }
        self.has_items_without_kind |= header.kind.is_none() || header.api_version.is_none();
        Ok((self.expected.decode(&header, &self.input[..length], &self.intake), length))
    }

    fn read_row(&self) -> Result<(Decoded, usize), Unread> {
        let (row, length) = RawRow::read_prefix(&self.input)?;
        if length > self.max_frame {
            return Ok((Decoded::Bad(bad(&self.start_of_item(), TOO_LARGE)), length));
        }
        Ok((self.expected.decode_row(&row, &self.intake), length))
    }

    /// What can be read of the header of an item of which there is only the beginning.
    fn start_of_item(&self) -> RawHeader<'_> {
        if self.has_rows { RawRow::read_start(&self.input) } else { header::read_start(&self.input) }
    }

    /// A value could not be read because there is not all of it yet. Of a number that ends with one of these serde_json
    /// says that it is invalid, and not that more is needed.
    fn is_cut_off(&self, error: impl Into<Unread>) -> bool {
        error.into() == Unread::CutOff || matches!(self.input.last(), Some(b'-' | b'+' | b'.' | b'e' | b'E'))
    }

    /// There is not all of a value yet.
    fn starve(&mut self) -> Result<Step, Error> {
        if self.input.len() > self.max_frame {
            return Err(malformed("the list has a value that is larger than the limit"));
        }
        self.wait_for = if self.ended { 0 } else { self.input.len() * 2 };
        Ok(Step::Starved)
    }

    /// There is not all of an item yet.
    fn starve_in_item(&mut self) -> Result<Step, Error> {
        if self.input.len() <= self.max_frame {
            self.wait_for = if self.ended { 0 } else { (self.input.len() * 2).min(self.max_frame.saturating_add(1)) };
            return Ok(Step::Starved);
        }
        let item = bad(&self.start_of_item(), TOO_LARGE);
        self.state = State::Oversized { item, boundary: Boundary::default(), skipped: 0 };
        Ok(Step::Further)
    }

    fn skip(&mut self) -> Result<Step, Error> {
        let State::Oversized { item, boundary, skipped } = &mut self.state else { return Ok(Step::Further) };
        if let Some(end) = boundary.scan(&self.input) {
            let item = item.clone();
            self.input.advance(end);
            self.state = State::Item(After::Value);
            return Ok(Step::Part(ListPart::Bad(item)));
        }
        *skipped += self.input.len();
        self.input.clear();
        if *skipped > self.max_frame.saturating_mul(MAX_SKIPPED_FRAME) {
            return Err(malformed("an item of the list has no end"));
        }
        Ok(Step::Starved)
    }

    /// The top level has ended.
    fn finish(&mut self) -> Result<Step, Error> {
        if let Some(mut status) = self.status.take() {
            status.push(b'}');
            return Err(Status::parse(&status)
                .map_or_else(|| malformed("the server sent a Status that cannot be read"), Error::from_status));
        }
        let Some(kind) = self.kind.as_deref() else {
            return Err(malformed("the answer is JSON, but no list: it has no kind"));
        };
        // An answer that is no list of this kind must not pass for an empty one.
        if self.expected.columns().is_some() && table::is_table_kind(Some(kind), self.api_version.as_deref()) {
            return match self.has_items {
                true => Err(malformed("the server sent a Table that has items")),
                false => self.take(1, State::End),
            };
        }
        if self.has_rows {
            return Err(malformed("the server sent something with rows that is no Table"));
        }
        let custom = self.expected.may_be_custom() && self.has_items && !self.has_items_without_kind;
        if !custom && !self.expected.is_listed_by(kind, self.api_version.as_deref()) {
            return Err(malformed("the server sent something else than a list of the kind that was asked for"));
        }
        self.take(1, State::End)
    }

    fn cut_off(&self) -> Error {
        match self.state {
            State::Start => malformed("the answer is empty"),
            _ => Error::new(ErrorKind::Disconnected, "the answer ended in the middle of the list"),
        }
    }
}

fn malformed(text: &str) -> Error {
    Error::new(ErrorKind::Malformed, text)
}
