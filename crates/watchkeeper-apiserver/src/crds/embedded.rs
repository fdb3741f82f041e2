//! Objects within custom objects: `x-kubernetes-embedded-resource`. They have a kind, an apiVersion and metadata of their own.
//!
//! Counterpart: `k8s.io/apiextensions-apiserver/pkg/apiserver/schema/objectmeta`.

use serde_json::Value;

use super::check::are_enough;
use super::path::Path;
use super::props::Props;
use super::prune::Dropped;
use crate::failure::Cause;
use crate::http::body::ObjectMeta;
use crate::validation::{dns_1035_label, label_key, label_value, quoted};

/// Drops what no metadata has; the paths of what went. An error says what is of a wrong type.
pub(super) fn coerce(value: &mut Value, props: &Props, path: &Path<'_>, dropped: &mut Dropped) -> Result<(), String> {
    walk_mut(value, props, path, &mut |object, path| {
        if let Some(metadata) = object.get_mut("metadata") {
            let path = path.field("metadata");
            if let Err(text) = ObjectMeta::check(metadata) {
                return Err(format!("{path}: Invalid value: {metadata}: json: {text}"));
            }
            if let Value::Object(metadata) = metadata {
                metadata.retain(|field, _| {
                    let is_known = ObjectMeta::FIELDS.contains(&field.as_str());
                    if !is_known {
                        dropped.add(&path.field(field));
                    }
                    is_known
                });
            }
        }
        Ok(())
    })
}

/// What is wrong with embedded objects.
pub(super) fn check(value: &Value, props: &Props, path: &Path<'_>, causes: &mut Vec<Cause>) {
    if are_enough(causes) {
        return;
    }
    if props.embedded && value.is_object() {
        check_object(value, path, causes);
    }
    match value {
        Value::Object(map) => {
            for (name, value) in map {
                match (props.properties.get(name.as_str()), props.field(name)) {
                    (Some(property), _) => check(value, property, &path.field(name), causes),
                    (None, Some(values)) => check(value, values, &path.key(name), causes),
                    (None, None) => {}
                }
            }
        }
        Value::Array(values) => {
            let Some(items) = &props.items else { return };
            for (i, value) in values.iter().enumerate() {
                check(value, items, &path.index(i), causes);
            }
        }
        _ => {}
    }
}

fn check_object(object: &Value, path: &Path<'_>, causes: &mut Vec<Cause>) {
    let text = |field: &str| object.get(field).and_then(Value::as_str).unwrap_or_default();
    let required = |field: &str| {
        let field = path.field(field).to_string();
        Cause::required(&field, "")
    };
    match text("apiVersion") {
        "" => causes.push(required("apiVersion")),
        version if version.matches('/').count() > 1 => {
            let text = format!("unexpected GroupVersion string: {version}");
            causes.push(Cause::invalid(&path.field("apiVersion").to_string(), quoted(version), text));
        }
        _ => {}
    }
    match text("kind") {
        "" => causes.push(required("kind")),
        kind => {
            let field = path.field("kind").to_string();
            causes.extend(dns_1035_label(&kind.to_lowercase()).into_iter().map(|fault| {
                let text = format!("may have mixed case, but should otherwise match: {fault}");
                Cause::invalid(&field, quoted(kind), text)
            }));
        }
    }
    let labels = object.pointer("/metadata/labels").and_then(Value::as_object);
    let metadata = path.field("metadata");
    let field = metadata.field("labels").to_string();
    for (key, value) in labels.into_iter().flatten() {
        if are_enough(causes) {
            return;
        }
        let value = value.as_str().unwrap_or_default();
        causes.extend(label_key(key).into_iter().map(|fault| Cause::invalid(&field, quoted(key), fault)));
        causes.extend(label_value(value).into_iter().map(|fault| Cause::invalid(&field, quoted(value), fault)));
    }
}

type Visit<'v> = dyn FnMut(&mut serde_json::Map<String, Value>, &Path<'_>) -> Result<(), String> + 'v;

/// Every embedded object. Values have a bounded depth, and so has this.
fn walk_mut(value: &mut Value, props: &Props, path: &Path<'_>, visit: &mut Visit<'_>) -> Result<(), String> {
    match value {
        Value::Object(map) => {
            if props.embedded {
                visit(map, path)?;
            }
            for (name, value) in map {
                match (props.properties.get(name.as_str()), props.field(name)) {
                    (Some(property), _) => walk_mut(value, property, &path.field(name), visit)?,
                    (None, Some(values)) => walk_mut(value, values, &path.key(name), visit)?,
                    (None, None) => {}
                }
            }
        }
        Value::Array(values) => {
            let Some(items) = &props.items else { return Ok(()) };
            for (i, value) in values.iter_mut().enumerate() {
                walk_mut(value, items, &path.index(i), visit)?;
            }
        }
        _ => {}
    }
    Ok(())
}
