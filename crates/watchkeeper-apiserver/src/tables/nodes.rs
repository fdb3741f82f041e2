//! Nodes. Counterpart: `printNode`.

use std::collections::BTreeSet;

use serde_json::Value;

use super::NONE;
use super::age::UNKNOWN;
use super::subject::Subject;

/// `Ready`, `NotReady,SchedulingDisabled`, ...
pub(super) fn status(node: Subject<'_>) -> Value {
    // Of conditions of the same type the last counts.
    let ready = node.list("/status/conditions").rev().find(|condition| condition.text("/type") == "Ready");
    let status = match ready.map(|condition| condition.text("/status")) {
        Some("True") => "Ready",
        Some(_) => "NotReady",
        None => "Unknown",
    };
    let cordoned = if node.is_true("/spec/unschedulable") { ",SchedulingDisabled" } else { "" };
    format!("{status}{cordoned}").into()
}

/// What a node is there for, as its labels say.
pub(super) fn roles(node: Subject<'_>) -> Value {
    let mut roles: BTreeSet<&str> = BTreeSet::new();
    for (key, value) in node.map("/metadata/labels").into_iter().flatten() {
        match key.strip_prefix("node-role.kubernetes.io/") {
            Some(role) => roles.insert(role),
            None if key == "kubernetes.io/role" => roles.insert(value.as_str().unwrap_or_default()),
            None => false,
        };
    }
    roles.remove("");
    if roles.is_empty() { NONE.into() } else { roles.into_iter().collect::<Vec<_>>().join(",").into() }
}

pub(super) fn internal_ip(node: Subject<'_>) -> Value {
    address(node, "InternalIP")
}

pub(super) fn external_ip(node: Subject<'_>) -> Value {
    address(node, "ExternalIP")
}

/// The kernel, and for which processor.
pub(super) fn kernel(node: Subject<'_>) -> Value {
    let version = match node.text("/status/nodeInfo/kernelVersion") {
        "" => UNKNOWN,
        version => version,
    };
    match node.text("/status/nodeInfo/architecture") {
        "" => version.into(),
        architecture => format!("{version} ({architecture})").into(),
    }
}

fn address(node: Subject<'_>, kind: &str) -> Value {
    let found = node.condition("/status/addresses", kind);
    found.map_or(NONE, |address| address.text("/address")).into()
}
