//! Namespaces, and what each has from the beginning.

use serde_json::{Value, json};

/// A namespace in use.
pub(in crate::living) fn active(name: &str) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "Namespace",
        "metadata": {"name": name, "labels": {"kubernetes.io/metadata.name": name}},
        "spec": {"finalizers": ["kubernetes"]},
        "status": {"phase": "Active"},
    })
}

/// The account that its pods have.
pub(in crate::living) fn account(namespace: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "default", "namespace": namespace}})
}
