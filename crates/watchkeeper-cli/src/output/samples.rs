//! Objects and kinds for tests.

use std::sync::Arc;

use jiff::Timestamp;
use serde_json::Value;
use watchkeeper::ObjectKey;

use super::{Body, Change, ChangeType, Column, Resource};

fn resource(plural: &str, group: &str, kind: &str, namespaced: bool) -> Resource {
    let (plural, group, kind) = (plural.to_owned(), group.to_owned(), kind.to_owned());
    Resource { plural, group, version: "v1".to_owned(), kind, namespaced }
}

/// Pods.
pub(super) fn pods() -> Resource {
    resource("pods", "", "Pod", true)
}

/// Deployments.
pub(super) fn deployments() -> Resource {
    resource("deployments", "apps", "Deployment", true)
}

/// Leases.
pub(super) fn leases() -> Resource {
    resource("leases", "coordination.k8s.io", "Lease", true)
}

/// Secrets.
pub(super) fn secrets() -> Resource {
    resource("secrets", "", "Secret", true)
}

/// A column that is always shown, or only in wide tables.
pub(super) fn column(name: &str, priority: i32) -> Column {
    let format = if name == "Name" { "name" } else { "" };
    Column {
        name: name.to_owned(),
        kind: "string".to_owned(),
        format: format.to_owned(),
        priority,
        ..Column::default()
    }
}

/// 2026-11-16 11:13:04.123 UTC, and so many milliseconds.
pub(super) fn time(millis: i64) -> Timestamp {
    Timestamp::from_millisecond(1_794_827_584_123 + millis).unwrap_or_default()
}

/// A change of an object, whose name, namespace and version are in it.
pub(super) fn change(change: ChangeType, resource: Resource, object: Value) -> Change {
    let text = |name: &str| object["metadata"][name].as_str().unwrap_or_default().to_owned();
    Change {
        change,
        time: time(0),
        resource: Arc::new(resource),
        key: ObjectKey::namespaced(text("namespace"), text("name")),
        version: text("resourceVersion"),
        object: Body::from(object),
        old: None,
        cells: Vec::new(),
    }
}

/// A change from one state to another.
pub(super) fn modified(resource: Resource, old: Value, new: Value) -> Change {
    Change { old: Some(Body::from(old)), ..change(ChangeType::Modified, resource, new) }
}
