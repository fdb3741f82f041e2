//! Kinds that make pods: what depends on other fields.

use serde_json::{Map, Value, json};

use super::{entries_mut, set, text};

pub(super) fn apply(fields: &mut Map<String, Value>, type_name: &str) {
    match type_name {
        "apps.v1.DeploymentStrategy" | "apps.v1.DaemonSetUpdateStrategy" if text(fields, "type") == "RollingUpdate" => {
            set(fields, "rollingUpdate", json!({}));
        }
        "apps.v1.StatefulSetSpec" => {
            for claim in entries_mut(fields, "volumeClaimTemplates") {
                set(claim, "kind", "PersistentVolumeClaim");
                set(claim, "apiVersion", "v1");
            }
        }
        "apps.v1.StatefulSetUpdateStrategy" => {
            set(fields, "type", "RollingUpdate");
            if text(fields, "type") == "RollingUpdate"
                && let Value::Object(rolling) = fields.entry("rollingUpdate").or_insert_with(|| json!({}))
            {
                set(rolling, "partition", 0);
            }
        }
        "batch.v1.Job" => {
            if let Some(Value::Object(spec)) = fields.get_mut("spec") {
                job(spec);
            }
        }
        _ => {}
    }
}

/// What is filled in when all within is.
pub(super) fn apply_behind(fields: &mut Map<String, Value>, type_name: &str) {
    if type_name != "batch.v1.Job" {
        return;
    }
    // A job without labels has those of its pods.
    let labels = fields.get("spec").and_then(|spec| spec.pointer("/template/metadata/labels")).cloned();
    if let (Some(labels), Some(Value::Object(metadata))) = (labels, fields.get_mut("metadata"))
        && metadata.get("labels").and_then(Value::as_object).is_none_or(Map::is_empty)
    {
        metadata.insert("labels".to_owned(), labels);
    }
}

fn job(spec: &mut Map<String, Value>) {
    if !spec.contains_key("completions") && !spec.contains_key("parallelism") {
        set(spec, "completions", 1);
    }
    set(spec, "parallelism", 1);
    // Where failures are counted for each index, the sum of them does not matter.
    let failures = if spec.contains_key("backoffLimitPerIndex") { i64::from(i32::MAX) } else { 6 };
    set(spec, "backoffLimit", failures);
    set(spec, "completionMode", "NonIndexed");
    set(spec, "manualSelector", false);
    let replacement = if spec.contains_key("podFailurePolicy") { "Failed" } else { "TerminatingOrFailed" };
    set(spec, "podReplacementPolicy", replacement);
    set(spec, "suspend", false);
}
