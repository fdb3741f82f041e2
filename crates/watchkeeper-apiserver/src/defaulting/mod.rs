//! What does an object have that nobody sent?
//!
//! A kube-apiserver reads an object into Go's structs, fills in defaults, and writes the structs out again. So there are
//! three sources, and one walk over the object that looks at all of them, from the outside in:
//!
//! - `table`: the defaults of types that are plain values.
//! - `core_kinds`, `pods`, `services`, `workloads`, `policies`: those that depend on other fields.
//! - the types themselves: what Go writes out although it is empty (`resources: {}`, `replicas: 0` in a status), and what it
//!   leaves out because it is (`env: []`).
//!
//! Counterparts: `defaults.go` of each group in `k8s.io/kubernetes/pkg/apis`, and Go's `encoding/json`.

mod core_kinds;
mod pods;
mod policies;
mod services;
mod table;
mod workloads;

use serde_json::{Map, Value};

use crate::schema::{ListSchema, MapSchema, Scalar, Schema, SchemaRef};

pub(crate) use pods::{admit_pod, quality_of_service};
pub(crate) use services::{needs_address, needs_node_ports};

/// Fills in an object, or a part of one.
pub(crate) fn apply(value: &mut Value, schema: &SchemaRef) {
    match (&**schema, value) {
        (Schema::Map(map), Value::Object(fields)) => fill_map(fields, map, schema.type_name().unwrap_or_default()),
        (Schema::List(ListSchema { items, .. }), Value::Array(values)) => {
            values.iter_mut().for_each(|value| apply(value, items));
        }
        _ => {}
    }
}

/// Fills in an object of a kind with this schema.
pub(crate) fn apply_object(object: &mut Map<String, Value>, schema: &SchemaRef) {
    if let Schema::Map(map) = &**schema {
        fill_map(object, map, schema.type_name().unwrap_or_default());
    }
}

fn fill_map(fields: &mut Map<String, Value>, map: &MapSchema, type_name: &str) {
    table::apply(fields, type_name);
    match type_name.split('.').next() {
        Some("core") => {
            core_kinds::apply(fields, type_name);
            pods::apply(fields, type_name);
            services::apply(fields, type_name);
        }
        Some("apps" | "batch") => workloads::apply(fields, type_name),
        _ => policies::apply(fields, type_name),
    }
    as_go_writes(fields, map, type_name);
    for (key, value) in fields.iter_mut() {
        match map.fields.get(key.as_str()) {
            Some(field) => apply(value, &field.schema),
            None => map.others.iter().for_each(|others| apply(value, others)),
        }
    }
    workloads::apply_behind(fields, type_name);
}

/// What is empty and written, and what is empty and not.
fn as_go_writes(fields: &mut Map<String, Value>, map: &MapSchema, type_name: &str) {
    let left_out = table::left_out(type_name);
    fields.retain(|key, value| match map.fields.get(key.as_str()) {
        Some(field) if !field.required => match (&*field.schema, &*value) {
            (Schema::List(_), Value::Array(values)) => !values.is_empty(),
            (Schema::Map(MapSchema { others: Some(_), .. }), Value::Object(entries)) => !entries.is_empty(),
            (Schema::Scalar(_), value) => !(is_zero(value) && left_out.contains(&key.as_str())),
            _ => true,
        },
        _ => true,
    });
    for (name, field) in &map.fields {
        if fields.contains_key(&**name) {
            continue;
        }
        match (&field.default, &*field.schema) {
            (Some(_), _) if left_out.contains(&&**name) => {}
            (Some(Value::Object(_)), Schema::Map(_)) => {
                fields.insert(name.to_string(), Value::Object(Map::new()));
            }
            (Some(default), Schema::Scalar(_)) => drop(fields.insert(name.to_string(), default.clone())),
            (None, Schema::List(_) | Schema::Scalar(Scalar::Time | Scalar::MicroTime))
                if table::is_null(type_name, name) =>
            {
                fields.insert(name.to_string(), Value::Null);
            }
            _ => {}
        }
    }
}

fn is_zero(value: &Value) -> bool {
    match value {
        Value::String(text) => text.is_empty(),
        Value::Number(number) => number.as_i64() == Some(0),
        Value::Bool(value) => !value,
        _ => false,
    }
}

/// A field's text; empty, if it is not there.
fn text<'a>(fields: &'a Map<String, Value>, key: &str) -> &'a str {
    fields.get(key).and_then(Value::as_str).unwrap_or_default()
}

/// Sets a field that is not there.
fn set(fields: &mut Map<String, Value>, key: &str, value: impl Into<Value>) {
    fields.entry(key).or_insert_with(|| value.into());
}

/// The maps of a list.
fn entries_mut<'a>(fields: &'a mut Map<String, Value>, key: &str) -> impl Iterator<Item = &'a mut Map<String, Value>> {
    fields.get_mut(key).and_then(Value::as_array_mut).into_iter().flatten().filter_map(Value::as_object_mut)
}
