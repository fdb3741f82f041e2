//! What a new object gets that nobody sent: only what selectors and deletions look at. A kube-apiserver fills in more.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use crate::kinds::Kind;
use crate::storage::Document;

/// Fills in a new object. Its status is the server's to begin.
pub(super) fn apply(kind: &Kind, document: &mut Document) {
    if kind.has_status() && !kind.rules.keeps_status {
        let map = document.map_mut();
        match kind.custom {
            true => map.remove("status"),
            false => map.insert("status".to_owned(), json!({})),
        };
    }
    match (kind.group.as_str(), kind.plural.as_str()) {
        ("", "pods") => {
            set(document, "spec", "restartPolicy", "Always");
            set(document, "spec", "terminationGracePeriodSeconds", 30);
            set(document, "spec", "dnsPolicy", "ClusterFirst");
            set(document, "spec", "schedulerName", "default-scheduler");
            set(document, "status", "phase", "Pending");
        }
        ("", "namespaces") => {
            document.map_mut().insert("spec".to_owned(), json!({"finalizers": ["kubernetes"]}));
            set(document, "status", "phase", "Active");
        }
        ("", "persistentvolumes" | "persistentvolumeclaims") => set(document, "status", "phase", "Pending"),
        ("", "secrets") => {
            document.map_mut().entry("type").or_insert_with(|| "Opaque".into());
        }
        ("", "services") => set(document, "spec", "type", "ClusterIP"),
        _ => {}
    }
}

/// What is written in another way than it is kept: the readable part of a secret.
pub(super) fn convert(kind: &Kind, document: &mut Document) {
    if (kind.group.as_str(), kind.plural.as_str()) != ("", "secrets") {
        return;
    }
    let Some(Value::Object(readable)) = document.map_mut().remove("stringData") else { return };
    if readable.is_empty() {
        return;
    }
    let data = document.map_mut().entry("data").or_insert_with(|| json!({}));
    if let Value::Object(data) = data {
        for (key, value) in readable {
            data.insert(key, STANDARD.encode(value.as_str().unwrap_or_default()).into());
        }
    }
}

/// What depends on the name, which may have been made up.
pub(super) fn apply_name(kind: &Kind, document: &mut Document) {
    if (kind.group.as_str(), kind.plural.as_str()) != ("", "namespaces") {
        return;
    }
    let name = document.meta("name").to_owned();
    let labels = document.metadata_mut().entry("labels").or_insert_with(|| json!({}));
    if let Value::Object(labels) = labels {
        labels.insert("kubernetes.io/metadata.name".to_owned(), name.into());
    }
}

/// Sets a field of a part of the object, unless it is there.
fn set(document: &mut Document, part: &str, field: &str, value: impl Into<Value>) {
    let part = document.map_mut().entry(part).or_insert_with(|| json!({}));
    if let Value::Object(part) = part {
        part.entry(field).or_insert_with(|| value.into());
    }
}
