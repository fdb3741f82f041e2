//! Reads an object's header out of its JSON, and checks the object to its end, in one pass.
//!
//! What the cache needs to know of an object (key, uid, version, labels, whether it is being deleted) stands in its
//! `metadata`. The reader takes the fields in any order, skips the rest without building anything, and does not fail
//! on a value of an unexpected type: it notes it, so that the caller can tell a *bad object* (its bounds are known,
//! others are unharmed) from *broken JSON* (nothing behind it can be trusted). As in Go and in `k8s-openapi`, the last
//! of two equal keys wins.
//!
//! Nearly all objects are read by [`quick`], which gives up at whatever is unusual. Then serde_json's reader does it, and
//! what is skipped is skipped by its [`IgnoredAny`]: it checks the syntax, does not recurse, follows any depth and accepts
//! invalid UTF-8, so [`check`] looks at those two apart.

mod quick;

use std::borrow::Cow;
use std::fmt;
use std::ops::Range;

use bytes::Bytes;
use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;

use super::ObjectKey;
use super::skim::Odd;

/// How deeply an object may nest: as in Go's JSON decoder, so that no API server can hold a deeper one. (Decoding into
/// Rust types stops at 127 levels, with an error of its own; the bytes are kept all the same.)
const MAX_NESTING: usize = 10_000;

/// The annotation that marks the bookmark at the end of a streaming list. Only the value `"true"` counts.
const INITIAL_EVENTS_END: &str = "k8s.io/initial-events-end";

/// What stands in an object's header, borrowed from its JSON where nothing is escaped.
#[derive(Debug, Default)]
pub(crate) struct RawHeader<'a> {
    pub(crate) kind: Option<Cow<'a, str>>,
    pub(crate) api_version: Option<Cow<'a, str>>,
    pub(crate) name: Option<Cow<'a, str>>,
    pub(crate) namespace: Option<Cow<'a, str>>,
    pub(crate) uid: Option<Cow<'a, str>>,
    pub(crate) resource_version: Option<Cow<'a, str>>,
    pub(crate) labels: Vec<(Cow<'a, str>, Cow<'a, str>)>,
    pub(crate) deleting: bool,
    pub(crate) initial_events_end: bool,
    /// `metadata` was read to its end.
    metadata_ended: bool,
    /// There is nothing that [`check`] could find.
    is_plain: bool,
    pub(crate) managed_fields: ManagedFields,
    pub(crate) notes: Notes,
}

/// Where `metadata.managedFields` stand in an object: half of its bytes, which many do without.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(crate) enum ManagedFields {
    /// Nobody has looked, or there are several.
    #[default]
    Unknown,
    Absent,
    /// From the quote of the key to the end of the value, counted from the end of the object.
    FromEnd(Range<usize>),
}

impl ManagedFields {
    /// An object without them, if it is known where they are. It may have been given more at its beginning meanwhile.
    pub(crate) fn cut_from(&self, json: &[u8]) -> Option<Bytes> {
        let Self::FromEnd(Range { start, end }) = *self else { return None };
        let (mut start, mut end) = (json.len().checked_sub(start)?, json.len().checked_sub(end)?);
        // With one of its commas.
        if json.get(start.checked_sub(1)?) == Some(&b',') {
            start -= 1;
        } else if json.get(end) == Some(&b',') {
            end += 1;
        }
        Some([json.get(..start)?, json.get(end..)?].concat().into())
    }
}

/// What was wrong with the header of an object that is JSON all the same.
#[derive(Debug, Default)]
pub(crate) struct Notes {
    /// The first field that had a value of the wrong type.
    wrong_type: Option<&'static str>,
}

impl RawHeader<'_> {
    /// Of two `metadata` the last one wins as a whole.
    fn forget_metadata(&mut self) {
        (self.name, self.namespace, self.uid, self.resource_version) = (None, None, None, None);
        (self.deleting, self.initial_events_end, self.metadata_ended) = (false, false, false);
        self.managed_fields = ManagedFields::Unknown;
        self.labels.clear();
    }

    /// Of an object that is cut off, a name alone is no key: a namespace may have stood behind the cut.
    fn forget_half_key(&mut self) {
        if !self.metadata_ended && self.namespace.is_none() {
            self.name = None;
        }
    }

    /// The key, if the object has a name.
    pub(crate) fn key(&self) -> Option<ObjectKey> {
        let name = self.name.as_deref().filter(|name| !name.is_empty())?;
        Some(ObjectKey::namespaced(self.namespace.as_deref().unwrap_or_default(), name))
    }

    /// Why this header does not make a usable object, if it does not.
    pub(crate) fn problem(&self) -> Option<&'static str> {
        if self.notes.wrong_type.is_some() {
            self.notes.wrong_type
        } else if self.name.as_deref().unwrap_or_default().is_empty() {
            Some("it has no metadata.name")
        } else if self.resource_version.as_deref().unwrap_or_default().is_empty() {
            Some("it has no metadata.resourceVersion")
        } else {
            None
        }
    }
}

/// Why a header cannot be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unread {
    /// There are not all bytes of the object.
    CutOff,
    /// It is no JSON.
    Broken,
}

impl From<&serde_json::Error> for Unread {
    fn from(error: &serde_json::Error) -> Self {
        if error.is_eof() { Self::CutOff } else { Self::Broken }
    }
}

impl From<serde_json::Error> for Unread {
    fn from(error: serde_json::Error) -> Self {
        Self::from(&error)
    }
}

/// Reads the header of the object that `json` begins with, and says where that object ends. What follows is not looked
/// at.
pub(crate) fn read_prefix(json: &[u8]) -> Result<(RawHeader<'_>, usize), Unread> {
    match quick::read(json) {
        Ok(read) => Ok(read),
        Err(Odd::CutOff) => Err(Unread::CutOff),
        Err(Odd::Unusual) => read_carefully(json),
    }
}

fn read_carefully(json: &[u8]) -> Result<(RawHeader<'_>, usize), Unread> {
    let mut stream = serde_json::Deserializer::from_slice(json).into_iter::<RawHeader<'_>>();
    let header = stream.next().transpose()?.unwrap_or_default();
    Ok((header, stream.byte_offset()))
}

impl<'de> serde::Deserialize<'de> for RawHeader<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let mut header = RawHeader::default();
        Look(Object { header: &mut header }).deserialize(deserializer)?;
        Ok(header)
    }
}

/// What can be read of the header of an object that is cut off or broken: all up to the place where it breaks.
pub(crate) fn read_start(json: &[u8]) -> RawHeader<'_> {
    let mut header = RawHeader::default();
    let mut deserializer = serde_json::Deserializer::from_slice(json);
    let _ = Look(Object { header: &mut header }).deserialize(&mut deserializer);
    header.forget_half_key();
    header
}

impl RawHeader<'_> {
    /// Checks what the header's reader did not see in the object that it has read: see [`check`].
    pub(crate) fn check(&self, json: &[u8]) -> Result<(), &'static str> {
        if self.is_plain { Ok(()) } else { check(json) }
    }
}

/// What the header's reader does not see: text that is not UTF-8, and nesting without end.
pub(crate) fn check(json: &[u8]) -> Result<(), &'static str> {
    if std::str::from_utf8(json).is_err() {
        return Err("it is not UTF-8");
    }
    // An object cannot be deeper than it has brackets, and few have this many.
    let brackets = memchr::memchr_iter(b'{', json).count() + memchr::memchr_iter(b'[', json).count();
    if brackets > MAX_NESTING && nesting(json) > MAX_NESTING {
        return Err("it is nested too deeply");
    }
    Ok(())
}

/// The greatest depth of valid JSON.
fn nesting(json: &[u8]) -> usize {
    let (mut depth, mut deepest) = (0_usize, 0);
    let mut bytes = json.iter();
    while let Some(byte) = bytes.next() {
        match byte {
            b'"' => {
                while let Some(inside) = bytes.next() {
                    match inside {
                        b'"' => break,
                        b'\\' => drop(bytes.next()),
                        _ => {}
                    }
                }
            }
            b'{' | b'[' => {
                depth += 1;
                deepest = deepest.max(depth);
            }
            b'}' | b']' => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    deepest
}

/// A watch event in an unusual form: keys in another order, spaces in between, or no event at all.
#[derive(Debug, Default)]
pub(crate) struct RawEvent<'a> {
    pub(crate) event_type: Option<Cow<'a, str>>,
    pub(crate) object: Option<&'a RawValue>,
    /// A frame that is no event but a bare `Status` has a kind of its own.
    pub(crate) kind: Option<Cow<'a, str>>,
}

/// Reads the event that `json` begins with, and says where it ends.
pub(crate) fn read_event_prefix(json: &[u8]) -> Result<(RawEvent<'_>, usize), serde_json::Error> {
    let mut stream = serde_json::Deserializer::from_slice(json).into_iter::<RawEvent<'_>>();
    let event = stream.next().transpose()?.unwrap_or_default();
    Ok((event, stream.byte_offset()))
}

/// What can be read of an event that is cut off or broken: its type, and its object's header.
pub(crate) fn read_event_start(json: &[u8]) -> (Option<Cow<'_, str>>, RawHeader<'_>) {
    struct Start<'a, 'de>(&'a mut Option<Cow<'de, str>>, &'a mut RawHeader<'de>);
    impl<'de> Fields<'de> for Start<'_, 'de> {
        fn read<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
            while let Some(key) = map.next_key_seed(Key)? {
                match key.as_ref() {
                    "type" => *self.0 = map.next_value_seed(Text { notes: &mut self.1.notes, wrong: "type" })?,
                    "object" => map.next_value_seed(Look(Object { header: &mut *self.1 }))?,
                    _ => drop(map.next_value::<IgnoredAny>()?),
                }
            }
            Ok(())
        }

        fn absent(self, _: bool) {}
    }
    let (mut event_type, mut header) = (None, RawHeader::default());
    let mut deserializer = serde_json::Deserializer::from_slice(json);
    let _ = Look(Start(&mut event_type, &mut header)).deserialize(&mut deserializer);
    header.forget_half_key();
    (event_type, header)
}

impl<'de> serde::Deserialize<'de> for RawEvent<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let mut event = RawEvent::default();
        Look(Event(&mut event)).deserialize(deserializer)?;
        Ok(event)
    }
}

struct Event<'a, 'de>(&'a mut RawEvent<'de>);

impl<'de> Fields<'de> for Event<'_, 'de> {
    fn read<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let event = self.0;
        let notes = &mut Notes::default();
        while let Some(key) = map.next_key_seed(Key)? {
            match key.as_ref() {
                "type" => event.event_type = map.next_value_seed(Text { notes, wrong: "type" })?,
                "kind" => event.kind = map.next_value_seed(Text { notes, wrong: "kind" })?,
                "object" => event.object = Some(map.next_value()?),
                _ => drop(map.next_value::<IgnoredAny>()?),
            }
        }
        Ok(())
    }

    fn absent(self, _: bool) {}
}

struct Object<'a, 'de> {
    header: &'a mut RawHeader<'de>,
}

impl<'de> Fields<'de> for Object<'_, 'de> {
    fn read<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let Self { header } = self;
        while let Some(key) = map.next_key_seed(Key)? {
            let notes = &mut header.notes;
            match key.as_ref() {
                "kind" => header.kind = map.next_value_seed(Text { notes, wrong: "kind is no string" })?,
                "apiVersion" => {
                    header.api_version = map.next_value_seed(Text { notes, wrong: "apiVersion is no string" })?;
                }
                "metadata" => {
                    header.forget_metadata();
                    map.next_value_seed(Look(Metadata { header }))?;
                }
                _ => drop(map.next_value::<IgnoredAny>()?),
            }
        }
        Ok(())
    }

    fn absent(self, _: bool) {
        self.header.notes.wrong_type.get_or_insert("it is no JSON object");
    }
}

struct Metadata<'a, 'de> {
    header: &'a mut RawHeader<'de>,
}

impl<'de> Fields<'de> for Metadata<'_, 'de> {
    fn read<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let Self { header } = self;
        while let Some(key) = map.next_key_seed(Key)? {
            let notes = &mut header.notes;
            let text = |notes, wrong| Text { notes, wrong };
            match key.as_ref() {
                "name" => header.name = map.next_value_seed(text(notes, "metadata.name is no string"))?,
                "namespace" => {
                    header.namespace = map.next_value_seed(text(notes, "metadata.namespace is no string"))?;
                }
                "uid" => header.uid = map.next_value_seed(text(notes, "metadata.uid is no string"))?,
                "resourceVersion" => {
                    header.resource_version =
                        map.next_value_seed(text(notes, "metadata.resourceVersion is no string"))?;
                }
                "deletionTimestamp" => {
                    let at = map.next_value_seed(text(notes, "metadata.deletionTimestamp is no string"))?;
                    header.deleting = at.is_some();
                }
                "labels" => {
                    header.labels.clear();
                    map.next_value_seed(Look(Labels { labels: &mut header.labels, notes }))?;
                }
                "annotations" => {
                    let end = &mut header.initial_events_end;
                    *end = false;
                    map.next_value_seed(Look(Annotations { initial_events_end: end, notes }))?;
                }
                _ => drop(map.next_value::<IgnoredAny>()?),
            }
        }
        header.metadata_ended = true;
        Ok(())
    }

    fn absent(self, null: bool) {
        if !null {
            self.header.notes.wrong_type.get_or_insert("metadata is no object");
        }
    }
}

struct Labels<'a, 'de> {
    labels: &'a mut Vec<(Cow<'de, str>, Cow<'de, str>)>,
    notes: &'a mut Notes,
}

impl<'de> Fields<'de> for Labels<'_, 'de> {
    fn read<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let Self { labels, notes } = self;
        while let Some(key) = map.next_key_seed(Key)? {
            let value = map.next_value_seed(Text { notes, wrong: "a label is no string" })?;
            labels.push((key, value.unwrap_or_default()));
        }
        Ok(())
    }

    fn absent(self, null: bool) {
        if !null {
            self.notes.wrong_type.get_or_insert("metadata.labels is no object");
        }
    }
}

struct Annotations<'a> {
    initial_events_end: &'a mut bool,
    notes: &'a mut Notes,
}

impl<'de> Fields<'de> for Annotations<'_> {
    fn read<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let Self { initial_events_end, notes } = self;
        while let Some(key) = map.next_key_seed(Key)? {
            let value = map.next_value_seed(Text { notes, wrong: "an annotation is no string" })?;
            if key == INITIAL_EVENTS_END {
                *initial_events_end = value.as_deref() == Some("true");
            }
        }
        Ok(())
    }

    fn absent(self, null: bool) {
        if !null {
            self.notes.wrong_type.get_or_insert("metadata.annotations is no object");
        }
    }
}

/// A JSON object that the reader looks into.
trait Fields<'de>: Sized {
    /// Reads the fields.
    fn read<A: MapAccess<'de>>(self, map: A) -> Result<(), A::Error>;

    /// There is no object: `null` stands in its place, or a value of another type.
    fn absent(self, null: bool);
}

/// Reads [`Fields`] if there is an object, and goes on whatever there is.
struct Look<T>(T);

impl<'de, T: Fields<'de>> DeserializeSeed<'de> for Look<T> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de, T: Fields<'de>> Visitor<'de> for Look<T> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<(), A::Error> {
        self.0.read(map)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<(), A::Error> {
        while seq.next_element::<IgnoredAny>()?.is_some() {}
        self.0.absent(false);
        Ok(())
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        self.0.absent(true);
        Ok(())
    }

    fn visit_bool<E>(self, _: bool) -> Result<(), E> {
        self.0.absent(false);
        Ok(())
    }

    fn visit_i64<E>(self, _: i64) -> Result<(), E> {
        self.0.absent(false);
        Ok(())
    }

    fn visit_u64<E>(self, _: u64) -> Result<(), E> {
        self.0.absent(false);
        Ok(())
    }

    fn visit_f64<E>(self, _: f64) -> Result<(), E> {
        self.0.absent(false);
        Ok(())
    }

    fn visit_str<E>(self, _: &str) -> Result<(), E> {
        self.0.absent(false);
        Ok(())
    }
}

/// The key of a field.
pub(crate) struct Key;

impl<'de> DeserializeSeed<'de> for Key {
    type Value = Cow<'de, str>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl<'de> Visitor<'de> for Key {
    type Value = Cow<'de, str>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a key")
    }

    fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Self::Value, E> {
        Ok(Cow::Borrowed(text))
    }

    fn visit_str<E>(self, text: &str) -> Result<Self::Value, E> {
        Ok(Cow::Owned(text.to_owned()))
    }
}

/// A string or `null`; anything else is noted.
struct Text<'a> {
    notes: &'a mut Notes,
    wrong: &'static str,
}

impl<'a> Text<'a> {
    fn wrong<'de, E>(self) -> Result<Option<Cow<'de, str>>, E> {
        self.notes.wrong_type.get_or_insert(self.wrong);
        Ok(None)
    }
}

impl<'de> DeserializeSeed<'de> for Text<'_> {
    type Value = Option<Cow<'de, str>>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Text<'_> {
    type Value = Option<Cow<'de, str>>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a string")
    }

    fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Self::Value, E> {
        Ok(Some(Cow::Borrowed(text)))
    }

    fn visit_str<E>(self, text: &str) -> Result<Self::Value, E> {
        Ok(Some(Cow::Owned(text.to_owned())))
    }

    fn visit_unit<E>(self) -> Result<Self::Value, E> {
        Ok(None)
    }

    fn visit_bool<E>(self, _: bool) -> Result<Self::Value, E> {
        self.wrong()
    }

    fn visit_i64<E>(self, _: i64) -> Result<Self::Value, E> {
        self.wrong()
    }

    fn visit_u64<E>(self, _: u64) -> Result<Self::Value, E> {
        self.wrong()
    }

    fn visit_f64<E>(self, _: f64) -> Result<Self::Value, E> {
        self.wrong()
    }

    fn visit_seq<A: SeqAccess<'de>>(self, seq: A) -> Result<Self::Value, A::Error> {
        IgnoredAny.visit_seq(seq)?;
        self.wrong()
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Self::Value, A::Error> {
        IgnoredAny.visit_map(map)?;
        self.wrong()
    }
}
