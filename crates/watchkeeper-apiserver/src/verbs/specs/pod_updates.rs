//! What may change in the spec of a pod: hardly anything.
//!
//! Counterpart: `ValidatePodUpdate` in `k8s.io/kubernetes/pkg/apis/core/validation`. It shows both specs; this does not.

use serde_json::Value;

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
    deadline(old.get("activeDeadlineSeconds"), next.get("activeDeadlineSeconds"), causes);
    let gates = |spec: &Value| list(spec, "schedulingGates").to_vec();
    if let Some(new) = gates(next).iter().find(|gate| !gates(old).contains(gate)) {
        let text = format!("only deletion is allowed, but found new scheduling gate '{}'", text(new, "name"));
        causes.forbidden("spec.schedulingGates", &text);
    }
    if list(old, "tolerations").iter().any(|known| !list(next, "tolerations").iter().any(|new| is_kept(known, new))) {
        let text = "existing toleration can not be modified except its tolerationSeconds";
        causes.forbidden("spec.tolerations", text);
    }
    if free(old, next) != free(next, next) {
        causes.forbidden("spec", FIXED);
    }
}

/// A deadline may come, and may come closer.
fn deadline(old: Option<&Value>, next: Option<&Value>, causes: &mut Causes) {
    const FIELD: &str = "spec.activeDeadlineSeconds";
    let seconds = |value: Option<&Value>| value.and_then(Value::as_i64);
    match (seconds(old), seconds(next)) {
        (_, Some(next)) if !(0..=i64::from(i32::MAX)).contains(&next) => {
            causes.invalid(FIELD, next, "must be between 0 and 2147483647, inclusive");
        }
        (Some(old), Some(next)) if old < next => {
            causes.invalid(FIELD, next, "must be less than or equal to previous value");
        }
        (Some(_), None) => causes.invalid(FIELD, "null", "must not update from a positive integer to nil value"),
        _ => {}
    }
}

/// Whether a toleration is the same but for its time.
fn is_kept(known: &Value, new: &Value) -> bool {
    ["key", "operator", "value", "effect"].iter().all(|field| known.get(field) == new.get(field))
}

/// A spec without what may change. What may change only while a pod waits at its gates is that of `next`.
fn free(spec: &Value, next: &Value) -> Value {
    let mut spec = spec.clone();
    let is_gated = !list(next, "schedulingGates").is_empty();
    let Some(fields) = spec.as_object_mut() else { return spec };
    for field in ["activeDeadlineSeconds", "tolerations", "schedulingGates"] {
        fields.remove(field);
    }
    if is_gated {
        fields.remove("nodeSelector");
        fields.remove("affinity");
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
