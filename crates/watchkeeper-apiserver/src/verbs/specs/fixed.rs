//! What was decided when an object was created, and stays.

use serde_json::Value;

use super::{Causes, list, pod_updates, text};
use crate::kinds::Kind;
use crate::storage::Document;
use crate::validation::quoted;

const IMMUTABLE: &str = "field is immutable";
const IMMUTABLE_DATA: &str = "field is immutable when `immutable` is set";

const STATEFUL_SET: &str = "updates to statefulset spec for fields other than 'replicas', 'ordinals', 'template', \
     'updateStrategy', 'revisionHistoryLimit', 'persistentVolumeClaimRetentionPolicy' and 'minReadySeconds' are forbidden";
const STATEFUL_SET_FREE: [&str; 7] = [
    "replicas",
    "ordinals",
    "template",
    "updateStrategy",
    "revisionHistoryLimit",
    "persistentVolumeClaimRetentionPolicy",
    "minReadySeconds",
];

/// What an update changed that may not change.
pub(super) fn check(kind: &Kind, old: &Document, next: &Document, causes: &mut Causes) {
    let (old, next) = (old.as_value(), next.as_value());
    let at = |object: &Value, pointer: &str| object.pointer(pointer).cloned().unwrap_or(Value::Null);
    let mut fixed = |pointer: &str| {
        // What was put into the storage without it may get it.
        if at(old, pointer) != at(next, pointer) && !at(old, pointer).is_null() {
            let field = pointer.trim_start_matches('/').replace('/', ".");
            let value = at(next, pointer);
            causes.invalid(field, if value.is_object() { value.to_string() } else { shown(&value) }, IMMUTABLE);
        }
    };
    match (kind.group.as_str(), kind.plural.as_str()) {
        ("apps", "deployments" | "replicasets" | "daemonsets") => fixed("/spec/selector"),
        ("batch", "jobs") => fixed("/spec/selector"),
        ("storage.k8s.io", "storageclasses") => fixed("/provisioner"),
        ("rbac.authorization.k8s.io", "rolebindings" | "clusterrolebindings")
            if at(old, "/roleRef") != at(next, "/roleRef") =>
        {
            causes.invalid("roleRef", at(next, "/roleRef"), "cannot change roleRef");
        }
        ("apps", "statefulsets") => stateful_set(&at(old, "/spec"), &at(next, "/spec"), causes),
        ("", "configmaps") => immutable_data(old, next, &["data", "binaryData"], causes),
        ("", "secrets") => {
            let (was, is) = (text(old, "type"), text(next, "type"));
            if was != is && !was.is_empty() {
                causes.invalid("type", quoted(is), IMMUTABLE);
            }
            immutable_data(old, next, &["data"], causes);
        }
        ("", "pods") => pod_updates::check(&at(old, "/spec"), &at(next, "/spec"), causes),
        ("", "nodes") => node(&at(old, "/spec"), &at(next, "/spec"), causes),
        ("", "services") => address(&at(old, "/spec"), &at(next, "/spec"), causes),
        _ => {}
    }
}

fn stateful_set(old: &Value, next: &Value, causes: &mut Causes) {
    let (Some(old), Some(next)) = (old.as_object(), next.as_object()) else { return };
    let changed = next.iter().any(|(key, value)| {
        !STATEFUL_SET_FREE.contains(&key.as_str()) && old.get(key).is_some_and(|known| known != value)
    });
    let lost = old.keys().any(|key| !STATEFUL_SET_FREE.contains(&key.as_str()) && !next.contains_key(key));
    if changed || lost {
        causes.forbidden("spec", STATEFUL_SET);
    }
}

fn immutable_data(old: &Value, next: &Value, parts: &[&str], causes: &mut Causes) {
    let is_immutable = |object: &Value| object.get("immutable").and_then(Value::as_bool) == Some(true);
    if !is_immutable(old) {
        return;
    }
    if !is_immutable(next) {
        causes.forbidden("immutable", IMMUTABLE_DATA);
    }
    for part in parts {
        if old.get(part) != next.get(part) {
            causes.forbidden(part, IMMUTABLE_DATA);
        }
    }
}

/// A service keeps its address as long as it needs one.
fn address(old: &Value, next: &Value, causes: &mut Causes) {
    let (was, is) = (text(old, "clusterIP"), text(next, "clusterIP"));
    if !was.is_empty() && !is.is_empty() && was != is {
        causes.invalid("spec.clusterIPs[0]", format!("[{}]", quoted(is)), "may not change once set");
    }
}

/// A node keeps the addresses of its pods, and the name that a cloud has for it.
fn node(old: &Value, next: &Value, causes: &mut Causes) {
    // The first of the list is also a field of its own, which counts if both are not the same.
    let ranges = |spec: &Value| match (text(spec, "podCIDR"), list(spec, "podCIDRs")) {
        ("", ranges) => ranges.to_vec(),
        (one, ranges) if ranges.first().and_then(Value::as_str) == Some(one) => ranges.to_vec(),
        (one, _) => vec![one.into()],
    };
    if !ranges(old).is_empty() && ranges(old) != ranges(next) {
        causes.forbidden("spec.podCIDRs", "node updates may not change podCIDR except from \"\" to valid");
    }
    let (was, is) = (text(old, "providerID"), text(next, "providerID"));
    if !was.is_empty() && was != is {
        causes.forbidden("spec.providerID", "node updates may not change providerID except from \"\" to valid");
    }
}

fn shown(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), quoted)
}
