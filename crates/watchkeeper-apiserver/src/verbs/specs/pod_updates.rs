//! What may change in the spec of a pod: hardly anything.
//!
//! Counterpart: `ValidatePodUpdate` in `k8s.io/kubernetes/pkg/apis/core/validation`. It shows both specs; this does not.

use std::collections::HashSet;

use serde_json::{Map, Value};

use super::{Causes, list, text};

const FIXED: &str = "pod updates may not change fields other than `spec.containers[*].image`,\
     `spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing \
     tolerations),`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)";

/// What an update changed that may not change.
pub(super) fn check(old: &Value, next: &Value, causes: &mut Causes) {
    if old == next {
        return;
    }
    for (part, what) in [("containers", "containers"), ("initContainers", "init containers")] {
        if list(old, part).len() != list(next, part).len() {
            causes.forbidden(format!("spec.{part}"), &format!("pod updates may not add or remove {what}"));
            return;
        }
    }
    if !deadline(old.get("activeDeadlineSeconds"), next.get("activeDeadlineSeconds"), causes) {
        return;
    }
    // There may be very many of both.
    let kept: HashSet<[&str; 4]> = list(next, "tolerations").iter().map(toleration).collect();
    if !list(old, "tolerations").iter().all(|known| kept.contains(&toleration(known))) {
        let text = "existing toleration can not be modified except its tolerationSeconds";
        causes.forbidden("spec.tolerations", text);
    }
    let known: HashSet<&str> = list(old, "schedulingGates").iter().map(|gate| text(gate, "name")).collect();
    let mut gates = list(next, "schedulingGates").iter().map(|gate| text(gate, "name"));
    if let Some(new) = gates.find(|gate| !known.contains(gate)) {
        let text = format!("only deletion is allowed, but found new scheduling gate '{new}'");
        causes.forbidden("spec.schedulingGates", &text);
    }
    // A pod that waited at its gates may have been told more of where it may go.
    let is_gated = !list(old, "schedulingGates").is_empty();
    if is_gated && !keeps(&old["nodeSelector"], &next["nodeSelector"]) {
        let text = "only additions to spec.nodeSelector are allowed (no mutations or deletions)";
        causes.invalid("spec.nodeSelector", &next["nodeSelector"], text);
    }
    if free(old, is_gated) != free(next, is_gated) {
        causes.forbidden("spec", FIXED);
    }
}

/// A deadline may come, and may come closer. If it does not, nothing else is looked at.
fn deadline(old: Option<&Value>, next: Option<&Value>, causes: &mut Causes) -> bool {
    const FIELD: &str = "spec.activeDeadlineSeconds";
    let seconds = |value: Option<&Value>| value.and_then(Value::as_i64);
    match (seconds(old), seconds(next)) {
        (_, Some(next)) if !(0..=i64::from(i32::MAX)).contains(&next) => {
            causes.invalid(FIELD, next, "must be between 0 and 2147483647, inclusive");
            return false;
        }
        (Some(old), Some(next)) if old < next => {
            causes.invalid(FIELD, next, "must be less than or equal to previous value");
            return false;
        }
        (Some(_), None) => causes.invalid(FIELD, "null", "must not update from a positive integer to nil value"),
        _ => {}
    }
    true
}

/// What of a toleration stays: all but its time.
fn toleration(toleration: &Value) -> [&str; 4] {
    ["key", "operator", "value", "effect"].map(|field| text(toleration, field))
}

/// Whether labels are still there as they were.
fn keeps(old: &Value, next: &Value) -> bool {
    let empty = Map::new();
    let mut old = old.as_object().unwrap_or(&empty).iter();
    old.all(|(key, value)| next.get(key) == Some(value))
}

/// A spec without what may change. Where a pod may go may change only while it waits at its gates.
fn free(spec: &Value, is_gated: bool) -> Value {
    let mut spec = spec.clone();
    let Some(fields) = spec.as_object_mut() else { return spec };
    for field in ["activeDeadlineSeconds", "tolerations", "schedulingGates"] {
        fields.remove(field);
    }
    if is_gated {
        fields.remove("nodeSelector");
        if let Some(Value::Object(affinity)) = fields.get_mut("affinity") {
            affinity.remove("nodeAffinity");
            if affinity.is_empty() {
                fields.remove("affinity");
            }
        }
    }
    // A negative time may become one second.
    if fields.get("terminationGracePeriodSeconds").and_then(Value::as_i64).is_some_and(|seconds| seconds < 0) {
        fields.insert("terminationGracePeriodSeconds".to_owned(), 1.into());
    }
    for part in ["containers", "initContainers"] {
        for container in fields.get_mut(part).and_then(Value::as_array_mut).into_iter().flatten() {
            if let Some(container) = container.as_object_mut() {
                container.remove("image");
            }
        }
    }
    spec
}
