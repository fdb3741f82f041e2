//! Other kinds of the core group: what depends on other fields.

use serde_json::{Map, Value, json};

use super::{set, text};

pub(super) fn apply(fields: &mut Map<String, Value>, type_name: &str) {
    match type_name {
        "core.v1.NodeSpec" => {
            if let Some(range) = fields.get("podCIDR").cloned().filter(|range| range.as_str() != Some("")) {
                set(fields, "podCIDRs", json!([range]));
            }
        }
        "core.v1.NodeStatus" => {
            if let Some(capacity) = fields.get("capacity").cloned() {
                set(fields, "allocatable", capacity);
            }
        }
        "core.v1.PersistentVolumeClaim" | "core.v1.PersistentVolume" => {
            if let Value::Object(status) = fields.entry("status").or_insert_with(|| json!({})) {
                set(status, "phase", "Pending");
            }
        }
        "core.v1.PersistentVolumeClaimSpec" => data_sources(fields),
        "core.v1.LimitRangeItem" => limits(fields),
        "core.v1.ReplicationController" => controller(fields),
        _ => {}
    }
}

/// The older field and the newer one are the same, if they can be.
fn data_sources(fields: &mut Map<String, Value>) {
    match (fields.get("dataSource").cloned(), fields.get("dataSourceRef").cloned()) {
        (Some(source), None) => drop(fields.insert("dataSourceRef".to_owned(), source)),
        (None, Some(source)) if source.get("namespace").is_none_or(|namespace| namespace.as_str() == Some("")) => {
            fields.insert("dataSource".to_owned(), source);
        }
        _ => {}
    }
}

/// What a container gets that asks for nothing: no more than the most, no less than the least.
fn limits(fields: &mut Map<String, Value>) {
    if text(fields, "type") != "Container" {
        return;
    }
    for (to, from) in [("default", "max"), ("defaultRequest", "default"), ("defaultRequest", "min")] {
        let known = fields.get(from).and_then(Value::as_object).cloned().unwrap_or_default();
        if let Value::Object(amounts) = fields.entry(to).or_insert_with(|| json!({})) {
            for (resource, amount) in known {
                amounts.entry(resource).or_insert(amount);
            }
        }
    }
}

/// A controller of the first generation takes labels and selector from its template.
fn controller(fields: &mut Map<String, Value>) {
    let labels = fields.get("spec").and_then(|spec| spec.pointer("/template/metadata/labels")).cloned();
    let Some(labels) = labels.filter(|labels| labels.as_object().is_some_and(|labels| !labels.is_empty())) else {
        return;
    };
    for (part, field) in [("spec", "selector"), ("metadata", "labels")] {
        if let Value::Object(part) = fields.entry(part).or_insert_with(|| json!({})) {
            let is_empty = part.get(field).and_then(Value::as_object).is_none_or(Map::is_empty);
            if is_empty {
                part.insert(field.to_owned(), labels.clone());
            }
        }
    }
}
