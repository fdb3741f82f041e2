//! Who owns which field of an object?
//!
//! Every write leaves a trace in `metadata.managedFields`: who it was, and which fields are his since. An update owns what it
//! changes. Applying a configuration ([`apply()`]) owns what the configuration mentions, fails if that means to change what
//! somebody else owns, and removes what it mentioned last time and does not now.
//!
//! Counterparts: `sigs.k8s.io/structured-merge-diff/v6` and `k8s.io/apimachinery/pkg/util/managedfields`, each step in a file
//! of its own:
//!
//! - `element`, `set`, `json`: paths, sets of them, and how they are written.
//! - `typed`, `value`: what a schema says of a value's parts, and when two values are the same.
//! - `compare`, `collect`, `merge`, `remove`, `check`: what is done to objects with a schema in hand.
//! - `entry`: the entries of managed fields.
//! - `owners`, `reset`, `reconcile`: what a write does to those who own fields, what nobody can own, and what becomes of
//!   them when a schema changes.
//! - `apply`, `track`: the two ways to write.

mod apply;
mod check;
mod collect;
mod compare;
mod element;
mod entry;
mod json;
mod last_applied;
mod merge;
mod owners;
mod reconcile;
mod remove;
mod reset;
mod set;
#[cfg(test)]
mod tests;
mod track;
mod typed;
mod value;

use std::collections::BTreeMap;
use std::sync::LazyLock;

use bytes::Bytes;
use serde_json::Value;

pub(crate) use apply::{apply, described, object_of, shown_type, tree_of};
use entry::Entry;
use json::Order;
pub(crate) use track::{checked_update, created, is_same_but_for_times, updated};

use crate::defaults::{CAUSES, MANAGED_BYTES, MANAGED_DEPTH, MANAGED_SUBRESOURCE, MANAGER_NAME};
use crate::failure::{Cause, Failure};
use crate::kinds::Kind;
use crate::schema::{Schema, SchemaRef, from_openapi, of};

/// The managed fields of a document.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) enum Managed {
    #[default]
    Nothing,
    /// As somebody sent them.
    Sent(Vec<Value>),
    /// As they are kept.
    Written(Bytes),
    /// As a write has decided that they are to be.
    Decided(Option<Bytes>),
}

impl From<Option<Bytes>> for Managed {
    fn from(bytes: Option<Bytes>) -> Self {
        bytes.map_or(Self::Nothing, Self::Written)
    }
}

impl Managed {
    /// Of a field of the metadata.
    pub(crate) fn sent(value: Option<Value>) -> Self {
        match value {
            Some(Value::Array(entries)) => Self::Sent(entries),
            _ => Self::Nothing,
        }
    }

    /// The bytes of the field; none, if it is left out.
    pub(crate) fn bytes(&self, kind: &Kind) -> Option<Bytes> {
        match self {
            Self::Nothing => None,
            Self::Written(bytes) => Some(bytes.clone()),
            Self::Decided(bytes) => bytes.clone(),
            Self::Sent(entries) => match entry::read_sent(entries) {
                Ok(mut entries) => entry::write(&mut entries, order_of(kind)),
                Err(_) => Some(in_order(entries).into()),
            },
        }
    }
}

/// Entries in the order of Go's struct, whatever order they had.
pub(crate) fn in_order(entries: &[Value]) -> Vec<u8> {
    const FIELDS: [&str; 7] = ["manager", "operation", "apiVersion", "time", "fieldsType", "fieldsV1", "subresource"];
    let entry = |entry: &Value| match entry {
        Value::Object(map) => {
            let known = FIELDS.iter().filter_map(|field| map.get_key_value(*field));
            let unknown = map.iter().filter(|(key, _)| !FIELDS.contains(&key.as_str()));
            let members = known.chain(unknown).map(|(key, value)| format!("{}:{value}", Value::from(key.as_str())));
            format!("{{{}}}", members.collect::<Vec<_>>().join(","))
        }
        other => other.to_string(),
    };
    format!("[{}]", entries.iter().map(entry).collect::<Vec<_>>().join(",")).into_bytes()
}

/// Who writes: the manager of the query, or else what the program calls itself, up to the first slash.
pub(crate) fn manager_name<'a>(field_manager: &'a str, user_agent: &'a str) -> String {
    if !field_manager.is_empty() {
        return field_manager.to_owned();
    }
    let name = user_agent.split('/').next().unwrap_or_default();
    let mut manager = String::new();
    for c in name.chars().filter(|c| is_printable(*c)) {
        if manager.len() + c.len_utf8() > MANAGER_NAME {
            break;
        }
        manager.push(c);
    }
    manager
}

/// Whether a manager of a query may be called so.
pub(crate) fn check_manager(name: &str, options: &str) -> Result<(), Failure> {
    let causes = manager_faults(name, "fieldManager");
    if causes.is_empty() { Ok(()) } else { Err(Failure::invalid_options(options, causes)) }
}

/// What is wrong with the owners that somebody has written into managed fields himself.
///
/// Counterpart: `ValidateManagedFields` in `k8s.io/apimachinery/pkg/apis/meta/v1/validation`.
fn owner_faults(managed: &Managed) -> Vec<Cause> {
    let mut causes = Vec::new();
    for (i, entry) in track::read(managed).iter().enumerate().take_while(|(i, _)| *i < CAUSES) {
        causes.extend(manager_faults(&entry.owner.manager, &format!("metadata.managedFields[{i}].manager")));
        if entry.owner.subresource.len() > MANAGED_SUBRESOURCE {
            causes.push(Cause::too_long(&format!("metadata.managedFields[{i}].subresource"), MANAGED_SUBRESOURCE));
        }
    }
    causes.truncate(CAUSES);
    causes
}

fn manager_faults(name: &str, field: &str) -> Vec<Cause> {
    let mut causes = Vec::new();
    if name.len() > MANAGER_NAME {
        causes.push(Cause::too_long(field, MANAGER_NAME));
    }
    // Each complaint shows the whole name.
    let most = if causes.is_empty() { CAUSES } else { 1 };
    for (i, c) in name.char_indices().filter(|(_, c)| !is_printable(*c)).take(most) {
        let text = format!("invalid character U+{:04X} (at position {i})", u32::from(c));
        causes.push(Cause::invalid(field, crate::validation::quoted(name), text));
    }
    causes
}

/// Go's `unicode.IsPrint`, nearly.
fn is_printable(c: char) -> bool {
    c == ' ' || !(c.is_control() || c.is_whitespace())
}

/// The schema of a kind in one of its versions.
fn schema_of(kind: &Kind, api_version: &str) -> Option<SchemaRef> {
    /// Nothing is known but what all objects have.
    static FREE: LazyLock<SchemaRef> = LazyLock::new(|| {
        from_openapi(&serde_json::json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true})).into()
    });
    let version = kind.versions.iter().find(|version| version.api_version == api_version)?;
    Some(match kind.custom {
        true => version.schema.clone().unwrap_or_else(|| FREE.clone()),
        false => of(kind, &version.name).unwrap_or_else(|| Schema::Any.into()),
    })
}

/// An object that nobody has filled in: what a new one is compared with. In Go, some of its fields are there already.
fn new_object(kind: &Kind, api_version: &str) -> &'static Value {
    static EMPTY: Value = Value::Null;
    static OBJECTS: LazyLock<BTreeMap<String, Value>> = LazyLock::new(|| {
        // The data is part of the program, and a test reads it: it cannot be bad at run time.
        serde_json::from_str(include_str!("../../data/new-objects.json")).expect("new objects")
    });
    if kind.custom {
        return &EMPTY;
    }
    OBJECTS.get(&format!("{api_version}/{}", kind.kind)).unwrap_or(&EMPTY)
}

fn order_of(kind: &Kind) -> Order {
    if kind.custom { Order::Texts } else { Order::Steps }
}

/// Managed fields as they are kept: nothing of nobody's. An error, if they are too large or too deep.
fn written(kind: &Kind, entries: &mut [Entry]) -> Result<Option<Bytes>, TooLarge> {
    if entries.iter().any(|entry| entry.depth() > MANAGED_DEPTH) {
        return Err(TooLarge);
    }
    match entry::write(entries, order_of(kind)) {
        Some(bytes) if bytes.len() > MANAGED_BYTES => Err(TooLarge),
        bytes => Ok(bytes),
    }
}

/// Managed fields that take too much room.
struct TooLarge;
