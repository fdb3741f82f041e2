//! An object, or a part of one, as cells look at it.
//!
//! Objects are what clients sent: anything may be missing, or be of another type than it should. What is not what it should
//! be counts as missing, and nothing here fails.

use jiff::Timestamp;
use serde_json::{Map, Value};

use super::age;

/// A part of an object at a moment.
#[derive(Debug, Clone, Copy)]
pub(super) struct Subject<'a> {
    part: &'a Value,
    now: Timestamp,
}

impl<'a> Subject<'a> {
    pub(super) fn new(object: &'a Value, now: Timestamp) -> Self {
        Self { part: object, now }
    }

    pub(super) fn now(&self) -> Timestamp {
        self.now
    }

    /// What is at a JSON pointer; null is nothing.
    pub(super) fn at(&self, pointer: &str) -> Option<&'a Value> {
        self.part.pointer(pointer).filter(|value| !value.is_null())
    }

    /// A part that is there, whatever it is.
    pub(super) fn part(&self, pointer: &str) -> Option<Self> {
        self.at(pointer).map(|part| Self { part, now: self.now })
    }

    /// A text that is there, and may be empty.
    pub(super) fn given(&self, pointer: &str) -> Option<&'a str> {
        self.at(pointer)?.as_str()
    }

    /// A text; empty, if it is not there.
    pub(super) fn text(&self, pointer: &str) -> &'a str {
        self.given(pointer).unwrap_or_default()
    }

    /// The first of some texts that is not empty.
    pub(super) fn first_text(&self, pointers: &[&str]) -> &'a str {
        pointers.iter().map(|pointer| self.text(pointer)).find(|text| !text.is_empty()).unwrap_or_default()
    }

    /// A whole number.
    pub(super) fn given_integer(&self, pointer: &str) -> Option<i64> {
        self.at(pointer)?.as_i64()
    }

    /// A whole number; 0, if it is not there.
    pub(super) fn integer(&self, pointer: &str) -> i64 {
        self.given_integer(pointer).unwrap_or_default()
    }

    pub(super) fn given_boolean(&self, pointer: &str) -> Option<bool> {
        self.at(pointer)?.as_bool()
    }

    pub(super) fn is_true(&self, pointer: &str) -> bool {
        self.given_boolean(pointer).unwrap_or_default()
    }

    /// The entries of a list; none, if it is not there.
    pub(super) fn list(&self, pointer: &str) -> impl DoubleEndedIterator<Item = Self> + ExactSizeIterator + use<'a> {
        let now = self.now;
        let entries = self.at(pointer).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
        entries.iter().map(move |part| Self { part, now })
    }

    /// The texts of a list.
    pub(super) fn texts(&self, pointer: &str) -> Vec<&'a str> {
        self.list(pointer).map(|entry| entry.text("")).collect()
    }

    pub(super) fn map(&self, pointer: &str) -> Option<&'a Map<String, Value>> {
        self.at(pointer)?.as_object()
    }

    /// How many entries a list or a map has.
    pub(super) fn count(&self, pointer: &str) -> usize {
        match self.at(pointer) {
            Some(Value::Array(entries)) => entries.len(),
            Some(Value::Object(entries)) => entries.len(),
            _ => 0,
        }
    }

    /// An annotation that is there.
    pub(super) fn annotation(&self, name: &str) -> Option<&'a str> {
        self.map("/metadata/annotations")?.get(name)?.as_str()
    }

    pub(super) fn is_deleting(&self) -> bool {
        self.at("/metadata/deletionTimestamp").is_some()
    }

    /// The first condition of a type, in the list at a pointer.
    pub(super) fn condition(&self, pointer: &str, kind: &str) -> Option<Self> {
        self.list(pointer).find(|condition| condition.text("/type") == kind)
    }

    /// How long ago the time at a pointer is.
    pub(super) fn since(&self, pointer: &str) -> String {
        age::since(self.given(pointer), self.now)
    }
}
