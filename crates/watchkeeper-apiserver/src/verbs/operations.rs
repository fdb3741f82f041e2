//! The operations of a JSON patch, as Go's library does them: it is laxer than the standard in some places.
//!
//! - An index below zero counts from the end.
//! - In a map, what is not there can be replaced, and copied as null. `kubectl rollout undo` relies on that.
//! - Of a path, what stands before the first slash counts for nothing.
//! - The whole document can be replaced and tested, but nothing can be added in its place.
//!
//! Counterpart: `patch.go` of `gopkg.in/evanphx/json-patch.v4`.

use serde_json::{Map, Value};

use crate::defaults::{BODY_LIMIT, DEPTH_LIMIT, PATCH_LOOKS};
use crate::failure::Failure;
use crate::http::body::{is_within_depth, json_type};

/// How many values of an array can be shifted in the time of looking at one.
const SHIFTS_PER_LOOK: usize = 8;

/// One step of a patch. What it lacks is only missed when it is done.
#[derive(Debug, Default)]
pub(super) struct Operation {
    op: String,
    path: Option<String>,
    from: Option<String>,
    /// In Go, a value that is left out is null.
    value: Value,
}

impl Operation {
    /// Says what Go says of fields that are no texts.
    pub(super) fn read(mut fields: Map<String, Value>) -> Result<Self, String> {
        let mut text = |name: &str| match fields.remove(name) {
            Some(Value::String(text)) => Ok(Some(text)),
            None | Some(Value::Null) => Ok(None),
            Some(other) => Err(format!(
                "json: cannot unmarshal {} into Go struct field jsonPatchOp.{name} of type string",
                json_type(&other)
            )),
        };
        let (op, path, from) = (text("op")?.unwrap_or_default(), text("path")?, text("from")?);
        Ok(Self { op, path, from, value: fields.remove("value").unwrap_or_default() })
    }

    /// The places that it looks at.
    pub(super) fn places(&self) -> impl Iterator<Item = &str> {
        [&self.path, &self.from]
            .into_iter()
            .flatten()
            .map(|path| path.find('/').map_or(path.as_str(), |at| &path[at..]))
    }
}

/// Does all operations, or as many as there are before one that cannot be done.
pub(super) fn apply(object: &mut Value, operations: &[Operation]) -> Result<(), Failure> {
    let mut work = Work { object, copied: 0, looks: PATCH_LOOKS };
    operations.iter().try_for_each(|operation| work.step(operation)).ok_or_else(Failure::rejected)
}

/// An object that is worked on, and what it may still cost. Copies of copies, and what is moved beneath what was moved,
/// would grow without bound.
struct Work<'a> {
    object: &'a mut Value,
    /// Bytes; they may be as many as a body has.
    copied: usize,
    /// Values that may still be looked at.
    looks: usize,
}

impl Work<'_> {
    /// None, if it cannot be done.
    fn step(&mut self, operation: &Operation) -> Option<()> {
        let (path, value) = (operation.path.as_deref()?, &operation.value);
        match operation.op.as_str() {
            "add" => self.add(path, value.clone()),
            "remove" => self.take(path).map(drop),
            "replace" => self.replace(path, value.clone()),
            "test" => {
                let found = if path.is_empty() { &*self.object } else { self.get(path)? };
                (found == value).then_some(())
            }
            "move" => {
                let taken = self.take(operation.from.as_deref()?)?;
                self.add(path, taken)
            }
            "copy" => {
                let found = self.get(operation.from.as_deref()?)?;
                let size = found.to_string().len();
                self.copied += size;
                if self.copied > BODY_LIMIT {
                    return None;
                }
                let copy = self.get(operation.from.as_deref()?)?.clone();
                self.add(path, copy)
            }
            _ => None,
        }
    }

    /// What is at a path: null, if it could be in a map and is not.
    fn get(&self, path: &str) -> Option<&Value> {
        let (parent, key) = path.rsplit_once('/')?;
        let parent = keys(parent).try_fold(&*self.object, |value, key| match value {
            Value::Object(map) => map.get(&key),
            Value::Array(items) => items.get(index(&key, items.len())?),
            _ => None,
        })?;
        match parent {
            Value::Object(map) => Some(map.get(&decoded(key)).unwrap_or(&Value::Null)),
            Value::Array(items) => items.get(index(key, items.len())?),
            _ => None,
        }
    }

    fn add(&mut self, path: &str, value: Value) -> Option<()> {
        self.look_at(path, &value)?;
        let (parent, key) = self.parent(path)?;
        match parent {
            Value::Object(map) => drop(map.insert(key, value)),
            Value::Array(items) if key == "-" => items.push(value),
            Value::Array(items) => {
                let index = index(&key, items.len() + 1)?;
                let behind = items.len() - index;
                items.insert(index, value);
                self.shift(behind)?;
            }
            _ => return None,
        }
        Some(())
    }

    fn take(&mut self, path: &str) -> Option<Value> {
        let (parent, key) = self.parent(path)?;
        match parent {
            Value::Object(map) => map.remove(&key),
            Value::Array(items) => {
                let index = index(&key, items.len())?;
                let behind = items.len() - index;
                let taken = items.remove(index);
                self.shift(behind)?;
                Some(taken)
            }
            _ => None,
        }
    }

    fn replace(&mut self, path: &str, value: Value) -> Option<()> {
        self.look_at(path, &value)?;
        if path.is_empty() {
            *self.object = value;
            return (self.object.is_object() || self.object.is_array()).then_some(());
        }
        let (parent, key) = self.parent(path)?;
        match parent {
            Value::Object(map) => drop(map.insert(key, value)),
            Value::Array(items) => {
                let index = index(&key, items.len())?;
                *items.get_mut(index)? = value;
            }
            _ => return None,
        }
        Some(())
    }

    /// What something is in, and its key there.
    fn parent(&mut self, path: &str) -> Option<(&mut Value, String)> {
        let (parent, key) = path.rsplit_once('/')?;
        let parent = keys(parent).try_fold(&mut *self.object, |value, key| match value {
            Value::Object(map) => map.get_mut(&key),
            Value::Array(items) => {
                let index = index(&key, items.len())?;
                items.get_mut(index)
            }
            _ => None,
        })?;
        Some((parent, decoded(key)))
    }

    /// None, if a value at a path would be too deep, or too much has been looked at.
    fn look_at(&mut self, path: &str, value: &Value) -> Option<()> {
        let levels = DEPTH_LIMIT.saturating_sub(path.matches('/').count());
        is_within_depth(value, levels, &mut self.looks).then_some(())
    }

    /// What is put into an array, or taken out of it, shifts all that stands behind. To shift a value is cheaper than to
    /// look at it.
    fn shift(&mut self, behind: usize) -> Option<()> {
        self.looks = self.looks.checked_sub(behind / SHIFTS_PER_LOOK)?;
        Some(())
    }
}

/// The keys of a path.
fn keys(path: &str) -> impl Iterator<Item = String> {
    path.split('/').skip(1).map(decoded)
}

fn decoded(key: &str) -> String {
    key.replace("~1", "/").replace("~0", "~")
}

/// A place in an array of this length.
fn index(key: &str, length: usize) -> Option<usize> {
    let index: isize = key.parse().ok()?;
    let index = if index < 0 { index.checked_add_unsigned(length)? } else { index };
    usize::try_from(index).ok().filter(|index| *index < length)
}
