//! What a kube-apiserver does to a CustomResourceDefinition before it looks at it.
//!
//! Counterparts: `defaults.go` and `strategy.go` of CustomResourceDefinitions in `k8s.io/apiextensions-apiserver`.

use serde_json::{Map, Value, json};

use crate::storage::Document;

/// Fills in a definition that is written. Its status is the server's: a new one has none, any other keeps what it has.
pub(crate) fn prepare(old: Option<&Document>, is_status: bool, next: &mut Document) {
    fill(next);
    if old.is_none() {
        let status = json!({"conditions": null, "acceptedNames": {"plural": "", "kind": ""}, "storedVersions": null});
        next.map_mut().insert("status".to_owned(), status);
    }
    // Who migrates objects says in the status which versions are left.
    if !is_status || has_no_stored_versions(next) {
        remember_storage_version(next);
    }
}

/// Fills in a definition that is put there as it is, with the status that it has.
pub(crate) fn adopt(document: &mut Document) {
    fill(document);
    if has_no_stored_versions(document) {
        remember_storage_version(document);
    }
}

/// The names and the conversion that a definition leaves to the server.
pub(crate) fn fill(document: &mut Document) {
    let Some(Value::Object(spec)) = document.map_mut().get_mut("spec") else { return };
    if let Some(Value::Object(names)) = spec.get_mut("names") {
        let kind = text(names, "kind").to_owned();
        if !kind.is_empty() {
            for (field, name) in [("singular", kind.to_lowercase()), ("listKind", format!("{kind}List"))] {
                if text(names, field).is_empty() {
                    names.insert(field.to_owned(), name.into());
                }
            }
        }
    }
    for version in spec.get_mut("versions").and_then(Value::as_array_mut).into_iter().flatten() {
        if let Some(schema) = version.pointer_mut("/schema/openAPIV3Schema") {
            drop_null_defaults(schema);
        }
    }
    if spec.get("conversion").is_none_or(Value::is_null) {
        spec.insert("conversion".to_owned(), json!({"strategy": "None"}));
    }
}

/// A default that is null is none. Definitions have a bounded depth, and so has this.
fn drop_null_defaults(schema: &mut Value) {
    match schema {
        Value::Object(map) => {
            map.retain(|name, value| !(matches!(name.as_str(), "default" | "example") && value.is_null()));
            let parts = map.iter_mut().filter(|(name, _)| !matches!(name.as_str(), "default" | "example" | "enum"));
            parts.for_each(|(_, part)| drop_null_defaults(part));
        }
        Value::Array(parts) => parts.iter_mut().for_each(drop_null_defaults),
        _ => {}
    }
}

fn has_no_stored_versions(document: &Document) -> bool {
    let stored = document.as_value().pointer("/status/storedVersions").and_then(Value::as_array);
    stored.is_none_or(Vec::is_empty)
}

/// What objects are stored in from now on is among what they have been stored in.
fn remember_storage_version(document: &mut Document) {
    let versions = document.as_value().pointer("/spec/versions").and_then(Value::as_array);
    let is_storage = |version: &&Value| version.get("storage") == Some(&Value::Bool(true));
    let storage = versions.into_iter().flatten().find(is_storage).and_then(|version| version.get("name")).cloned();
    let Some(storage) = storage.filter(Value::is_string) else { return };
    let status = document.map_mut().entry("status").or_insert_with(|| json!({}));
    let Value::Object(status) = status else { return };
    let stored = status.entry("storedVersions").or_insert(Value::Null);
    match stored {
        Value::Array(stored) if !stored.contains(&storage) => stored.push(storage),
        Value::Array(_) => {}
        other => *other = json!([storage]),
    }
}

fn text<'a>(map: &'a Map<String, Value>, field: &str) -> &'a str {
    map.get(field).and_then(Value::as_str).unwrap_or_default()
}
