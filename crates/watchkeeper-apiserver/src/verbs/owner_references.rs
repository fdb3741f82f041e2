//! What an object may say of its owners.
//!
//! Counterpart: `ValidateOwnerReferences` in `k8s.io/apimachinery/pkg/api/validation`.

use std::collections::HashSet;

use serde_json::{Map, Value};

use super::Call;
use crate::defaults::CAUSES;
use crate::failure::Cause;
use crate::storage::Document;
use crate::validation::quoted;

const FIELD: &str = "metadata.ownerReferences";
/// The order of Go's struct.
const ORDER: [&str; 6] = ["apiVersion", "kind", "name", "uid", "controller", "blockOwnerDeletion"];

/// Leaves each owner once, and says so.
pub(super) fn merge(call: &Call, document: &mut Document) {
    let Some(Value::Array(references)) = document.metadata_mut().get_mut("ownerReferences") else { return };
    let mut kept: Vec<Value> = Vec::new();
    let (mut known, mut uids) = (HashSet::new(), Vec::new());
    for reference in std::mem::take(references) {
        // There may be very many: their texts are compared by hash.
        if known.insert(reference.to_string()) {
            kept.push(reference);
        } else {
            uids.push(reference.get("uid").and_then(Value::as_str).unwrap_or_default().to_owned());
        }
    }
    *references = kept;
    uids.sort_unstable();
    uids.dedup();
    if !uids.is_empty() {
        call.warnings.add(format!(
            ".metadata.ownerReferences contains duplicate entries; API server dedups owner references in 1.20+, and may \
             reject such requests as early as 1.24; please fix your requests; duplicate UID(s) observed: {}",
            uids.join(", ")
        ));
    }
}

pub(super) fn faults(document: &Document, causes: &mut Vec<Cause>) {
    let Some(Value::Array(references)) = document.metadata().get("ownerReferences") else { return };
    let empty = Map::new();
    let mut controller: Option<String> = None;
    for reference in references.iter().map(|reference| reference.as_object().unwrap_or(&empty)) {
        if causes.len() >= CAUSES {
            return;
        }
        let text = |field: &str| reference.get(field).and_then(Value::as_str).unwrap_or_default();
        let (api_version, kind, name) = (text("apiVersion"), text("kind"), text("name"));
        let version = match api_version.split_once('/') {
            Some((_, version)) if version.contains('/') => "",
            Some((_, version)) => version,
            None => api_version,
        };
        if version.is_empty() {
            causes.push(Cause::invalid(
                &format!("{FIELD}.apiVersion"),
                quoted(api_version),
                "version must not be empty",
            ));
        }
        for field in ["kind", "name", "uid"] {
            if text(field).is_empty() {
                causes.push(Cause::invalid(&format!("{FIELD}.{field}"), "\"\"", "must not be empty"));
            }
        }
        if (api_version, kind) == ("v1", "Event") {
            let text = "/v1, Kind=Event is disallowed from being an owner";
            causes.push(Cause::invalid(FIELD, shown(reference), text));
        }
        if reference.get("controller").and_then(Value::as_bool) == Some(true) {
            let this = format!("{kind}/{name}");
            let Some(first) = &controller else {
                controller = Some(this);
                continue;
            };
            let all: Vec<String> =
                references.iter().map(|reference| shown(reference.as_object().unwrap_or(&empty))).collect();
            let text = format!(
                "Only one reference can have Controller set to true. Found \"true\" in references for {first} and {this}"
            );
            causes.push(Cause::invalid(FIELD, format!("[{}]", all.join(",")), text));
            // Each complaint shows all of them.
            if references.len() > CAUSES {
                return;
            }
        }
    }
}

fn shown(reference: &Map<String, Value>) -> String {
    let known = ORDER.iter().filter_map(|field| Some(format!("\"{field}\":{}", reference.get(*field)?)));
    format!("{{{}}}", known.collect::<Vec<_>>().join(","))
}
