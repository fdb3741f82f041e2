//! What `kubectl apply` remembers of its last configuration, in an annotation. Counterpart: `lastappliedmanager.go` and
//! `lastappliedupdater.go` in `k8s.io/apimachinery/pkg/util/managedfields`.

use serde_json::{Map, Value};

use super::check::check;
use super::collect::fields;
use super::compare::Comparison;
use super::element::json;
use super::set::Set;
use crate::defaults::ANNOTATION_BYTES;
use crate::schema::Schema;
use crate::storage::Document;

const ANNOTATION: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// The fields of the last configuration that are still as it said: kubectl may change them, whoever owns them.
pub(super) fn allowed_by_annotation(schema: &Schema, api_version: &str, live: &Value) -> Option<Set> {
    let text = live.get("metadata")?.get("annotations")?.get(ANNOTATION)?.as_str()?;
    let mut last: Value = serde_json::from_str(text).ok()?;
    if last.get("apiVersion").and_then(Value::as_str) != Some(api_version) {
        return None;
    }
    if let Value::Object(map) = &mut last {
        map.remove("apiVersion");
        map.remove("kind");
    }
    check(schema, &last).ok()?;
    let comparison = Comparison::of(schema, &last, live).ok()?;
    let set = fields(schema, &last).ok()?;
    Some(set.difference(&comparison.changed()).difference(&comparison.removed))
}

/// Keeps the annotation up to date, if there is one.
pub(super) fn renew_annotation(config: &Value, document: &mut Document) {
    let annotations = document.metadata().get("annotations").and_then(Value::as_object);
    let known = annotations.and_then(|annotations| annotations.get(ANNOTATION)).and_then(Value::as_str);
    if known.is_none_or(str::is_empty) {
        return;
    }
    let mut config = config.clone();
    if let Some(Value::Object(metadata)) = config.get_mut("metadata")
        && let Some(Value::Object(annotations)) = metadata.get_mut("annotations")
    {
        annotations.remove(ANNOTATION);
        if annotations.is_empty() {
            metadata.remove("annotations");
        }
    }
    let text = format!("{}\n", json(&config));
    if let Some(Value::Object(annotations)) = document.metadata_mut().get_mut("annotations") {
        annotations.insert(ANNOTATION.to_owned(), text.into());
        if size(annotations) > ANNOTATION_BYTES {
            annotations.remove(ANNOTATION);
        }
    }
}

fn size(annotations: &Map<String, Value>) -> usize {
    annotations.iter().map(|(key, value)| key.len() + value.as_str().map_or(0, str::len)).sum()
}
