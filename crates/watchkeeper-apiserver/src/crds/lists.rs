//! Lists whose entries are told apart by value or by key have each of them once. Counterpart:
//! `k8s.io/apiextensions-apiserver/pkg/apiserver/schema/listtype`.

use std::collections::{BTreeMap, HashSet};

use serde_json::{Map, Value};

use super::check::{are_enough, clipped};
use super::path::Path;
use super::props::{ListType, Props};
use crate::failure::Cause;
use crate::validation::quoted;

/// Entries that are there twice. What was so before, and still is, is let be.
pub(super) fn duplicates(value: &Value, old: Option<&Value>, props: &Props, path: &Path<'_>, causes: &mut Vec<Cause>) {
    match value {
        _ if old == Some(value) => {}
        Value::Object(map) => {
            for (name, value) in map {
                let old = old.and_then(|old| old.get(name));
                match (props.properties.get(name.as_str()), props.field(name)) {
                    (Some(property), _) => duplicates(value, old, property, &path.field(name), causes),
                    (None, Some(values)) => duplicates(value, old, values, &path.key(name), causes),
                    (None, None) => {}
                }
            }
        }
        Value::Array(values) => {
            let mut seen = HashSet::new();
            for (i, value) in values.iter().enumerate() {
                let path = path.index(i);
                let identity = match &props.list {
                    ListType::Atomic => None,
                    ListType::Set => Some(value.clone()),
                    ListType::Map(keys) => Some(key_of(value, keys)),
                };
                if let Some(identity) = identity
                    && !seen.insert(canonical(&identity))
                {
                    if are_enough(causes) {
                        return;
                    }
                    causes.push(Cause::duplicate(&path.to_string(), clipped(&identity.to_string())));
                }
                if let Some(items) = &props.items {
                    duplicates(value, None, items, &path, causes);
                }
            }
        }
        _ => {}
    }
}

/// A text that equal values share, in whatever order their fields are.
fn canonical(value: &Value) -> String {
    let mut text = String::new();
    write_canonical(value, &mut text);
    text
}

/// Each value is written once, however deep it stands: texts are not quoted again by what is around them.
fn write_canonical(value: &Value, text: &mut String) {
    match value {
        Value::Object(map) => {
            text.push('{');
            for (name, value) in map.iter().collect::<BTreeMap<_, _>>() {
                text.push_str(&quoted(name));
                text.push(':');
                write_canonical(value, text);
                text.push(',');
            }
            text.push('}');
        }
        Value::Array(values) => {
            text.push('[');
            for value in values {
                write_canonical(value, text);
                text.push(',');
            }
            text.push(']');
        }
        scalar => text.push_str(&scalar.to_string()),
    }
}

/// The fields of an entry that tell it apart.
fn key_of(value: &Value, keys: &[Box<str>]) -> Value {
    let mut key = Map::new();
    for name in keys {
        if let Some(part) = value.get(&**name) {
            key.insert(name.to_string(), part.clone());
        }
    }
    Value::Object(key)
}
