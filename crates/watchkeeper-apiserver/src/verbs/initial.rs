//! What the server itself writes into objects: a new one's status, labels that say where it belongs, and the like.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value, json};

use super::{Call, priorities};
use crate::defaulting::{admit_pod, quality_of_service};
use crate::failure::Failure;
use crate::kinds::Kind;
use crate::storage::Document;

const TEMPLATE_GENERATION: &str = "deprecated.daemonset.template.generation";

/// Begins a new object: its status is the server's.
pub(super) fn apply(kind: &Kind, has_status: bool, document: &mut Document) {
    if has_status && !kind.rules.keeps_status {
        let map = document.map_mut();
        match kind.custom {
            true => map.remove("status"),
            false => map.insert("status".to_owned(), json!({})),
        };
    }
    match (kind.group.as_str(), kind.plural.as_str()) {
        ("", "pods") => set(document, "status", "phase", "Pending"),
        ("", "namespaces") => {
            document.map_mut().insert("spec".to_owned(), json!({"finalizers": ["kubernetes"]}));
            set(document, "status", "phase", "Active");
        }
        _ => {}
    }
}

/// Completes an object whose defaults are filled in.
pub(super) fn complete(call: &Call, old: Option<&Document>, document: &mut Document) -> Result<(), Failure> {
    match (call.kind.group.as_str(), call.kind.plural.as_str(), old) {
        ("", "pods", Some(old)) => {
            admit_pod(document.map_mut());
            priorities::keep(old, document);
        }
        ("", "pods", None) => {
            priorities::assign(call, document)?;
            admit_pod(document.map_mut());
            let class = quality_of_service(&document.as_value()["spec"]);
            set(document, "status", "qosClass", class);
        }
        ("", "persistentvolumes", None) => {
            set(document, "status", "lastPhaseTransitionTime", call.server.clock.now());
        }
        ("apps", "daemonsets", old) => count_templates(old, document),
        _ => {}
    }
    Ok(())
}

/// A daemon set counts the changes of its template, in an annotation.
fn count_templates(old: Option<&Document>, document: &mut Document) {
    let template = |document: &Document| document.as_value().pointer("/spec/template").cloned();
    let count = |document: &Document| {
        let annotation = document.metadata().get("annotations")?.get(TEMPLATE_GENERATION)?;
        annotation.as_str()?.parse::<i64>().ok()
    };
    let generation = match old {
        None => 1,
        Some(old) if template(old) == template(document) => count(old).unwrap_or(1),
        Some(old) => count(old).unwrap_or(1).saturating_add(1),
    };
    let annotations = document.metadata_mut().entry("annotations").or_insert_with(|| json!({}));
    if let Value::Object(annotations) = annotations {
        annotations.insert(TEMPLATE_GENERATION.to_owned(), generation.to_string().into());
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
    let name = document.meta("name").to_owned();
    match (kind.group.as_str(), kind.plural.as_str()) {
        ("", "namespaces") => {
            let labels = document.metadata_mut().entry("labels").or_insert_with(|| json!({}));
            if let Value::Object(labels) = labels {
                labels.insert("kubernetes.io/metadata.name".to_owned(), name.into());
            }
        }
        ("batch", "jobs") => select_pods(&name, document),
        _ => {}
    }
}

/// A job finds its pods by its own uid, unless it says how.
fn select_pods(name: &str, document: &mut Document) {
    let uid = document.meta("uid").to_owned();
    let Some(Value::Object(spec)) = document.map_mut().get_mut("spec") else { return };
    if spec.get("manualSelector").and_then(Value::as_bool) == Some(true) {
        return;
    }
    let labels = [
        ("batch.kubernetes.io/controller-uid", uid.as_str()),
        ("batch.kubernetes.io/job-name", name),
        ("controller-uid", uid.as_str()),
        ("job-name", name),
    ];
    let template = map_at(map_at(map_at(spec, "template"), "metadata"), "labels");
    for (key, value) in labels {
        template.insert(key.to_owned(), value.into());
    }
    let selector = map_at(map_at(spec, "selector"), "matchLabels");
    selector.insert(labels[0].0.to_owned(), labels[0].1.into());
}

/// A part that is a map, and becomes one if it is none.
fn map_at<'a>(map: &'a mut Map<String, Value>, key: &str) -> &'a mut Map<String, Value> {
    let part = map.entry(key).or_insert(Value::Null);
    if !part.is_object() {
        *part = json!({});
    }
    match part {
        Value::Object(part) => part,
        _ => unreachable!("made a map above"),
    }
}

/// Sets a field of a part of the object, unless it is there.
fn set(document: &mut Document, part: &str, field: &str, value: impl Into<Value>) {
    let part = document.map_mut().entry(part).or_insert_with(|| json!({}));
    if let Value::Object(part) = part {
        part.entry(field).or_insert_with(|| value.into());
    }
}
