//! Whether an object may be as it is. What may not be in its spec is said by `specs`.

use std::collections::HashSet;

use serde_json::Value;

use super::owner_references;
use crate::crds;
use crate::defaults::{ANNOTATION_BYTES, CAUSES};
use crate::failure::{Cause, Failure};
use crate::kinds::{Kind, NameRule, Version};
use crate::storage::Document;
use crate::validation::{dns_label, label_key, label_value, path_segment, quoted, subdomain};

/// Finalizers that need no domain.
const STANDARD_FINALIZERS: [&str; 3] = ["kubernetes", "foregroundDeletion", "orphan"];

/// Whether an object may be as it is, given what it was. With a version, a custom object is checked against its schema.
/// `faults` are those of its spec.
pub(crate) fn validate(
    kind: &Kind,
    version: Option<&Version>,
    document: &Document,
    old: Option<&Document>,
    faults: Vec<Cause>,
) -> Result<(), Failure> {
    let mut causes = Vec::new();
    match old {
        None => names(kind, document, &mut causes),
        Some(old) => new_finalizers(old, document, &mut causes),
    }
    if document.generation() < 0 {
        let text = "must be greater than or equal to 0";
        causes.push(Cause::invalid("metadata.generation", document.generation(), text));
    }
    labels(document, &mut causes);
    annotations(document, &mut causes);
    owner_references::faults(document, &mut causes);
    finalizers(kind, document, &mut causes);
    causes.extend(faults);
    if crds::is_definition(kind) {
        causes.extend(crds::definition_faults(document, old)?);
    }
    if let Some(version) = version {
        causes.extend(crds::objects::faults(kind, version, document, old));
    }
    if causes.is_empty() {
        Ok(())
    } else {
        Err(Failure::invalid(&kind.kind, &kind.group, document.meta("name"), causes))
    }
}

/// A field that has been decided once and for all.
pub(super) fn immutable(kind: &Kind, name: &str, field: &str, value: &Value) -> Failure {
    let cause = Cause::invalid(&format!("metadata.{field}"), value, "field is immutable");
    Failure::invalid(&kind.kind, &kind.group, name, vec![cause])
}

fn names(kind: &Kind, document: &Document, causes: &mut Vec<Cause>) {
    let faults = |name: &str| match kind.rules.name {
        NameRule::Subdomain => subdomain(name),
        NameRule::Label => dns_label(name),
        NameRule::PathSegment => path_segment(name),
    };
    for field in ["generateName", "name"] {
        let name = document.meta(field);
        // Something comes behind the dash of a prefix.
        let checked = match name.strip_suffix('-') {
            Some(rest) if field == "generateName" => format!("{rest}a"),
            _ => name.to_owned(),
        };
        if name.is_empty() && field == "generateName" {
            continue;
        }
        let field = format!("metadata.{field}");
        causes.extend(faults(&checked).into_iter().map(|fault| Cause::invalid(&field, quoted(name), fault)));
    }
}

fn labels(document: &Document, causes: &mut Vec<Cause>) {
    let Some(Value::Object(labels)) = document.metadata().get("labels") else { return };
    for (key, value) in labels {
        let value = value.as_str().unwrap_or_default();
        let invalid = |text: &str, fault| Cause::invalid("metadata.labels", quoted(text), fault);
        causes.extend(label_key(key).into_iter().map(|fault| invalid(key, fault)));
        causes.extend(label_value(value).into_iter().map(|fault| invalid(value, fault)));
        if causes.len() >= CAUSES {
            return;
        }
    }
}

fn annotations(document: &Document, causes: &mut Vec<Cause>) {
    let Some(Value::Object(annotations)) = document.metadata().get("annotations") else { return };
    // Keys are those of labels, in any case.
    let faults = annotations
        .keys()
        .flat_map(|key| label_key(&key.to_ascii_lowercase()).into_iter().map(move |fault| (key, fault)));
    causes.extend(faults.take(CAUSES).map(|(key, fault)| Cause::invalid("metadata.annotations", quoted(key), fault)));
    let size = |(key, value): (&String, &Value)| key.len() + value.as_str().map_or(0, str::len);
    if annotations.iter().map(size).sum::<usize>() > ANNOTATION_BYTES {
        causes.push(Cause::too_long("metadata.annotations", ANNOTATION_BYTES));
    }
}

fn finalizers(kind: &Kind, document: &Document, causes: &mut Vec<Cause>) {
    let finalizers = document.finalizers();
    for finalizer in &finalizers {
        let invalid = |fault| Cause::invalid("metadata.finalizers", quoted(finalizer), fault);
        causes.extend(label_key(finalizer).into_iter().map(invalid));
        if causes.len() >= CAUSES {
            return;
        }
    }
    if !kind.group.is_empty() {
        return;
    }
    for (i, finalizer) in finalizers.iter().enumerate() {
        if !finalizer.contains('/') && !STANDARD_FINALIZERS.contains(finalizer) {
            let text = "name is neither a standard finalizer name nor is it fully qualified";
            causes.push(Cause::invalid(&format!("metadata.finalizers[{i}]"), quoted(finalizer), text));
        }
        if causes.len() >= CAUSES {
            return;
        }
    }
}

/// Once an object is being deleted, nothing new may hold it.
fn new_finalizers(old: &Document, document: &Document, causes: &mut Vec<Cause>) {
    if !old.is_deleting() {
        return;
    }
    let known: HashSet<&str> = old.finalizers().into_iter().collect();
    let new: Vec<String> = document.finalizers().iter().filter(|f| !known.contains(*f)).map(|f| quoted(f)).collect();
    if !new.is_empty() {
        let text = format!(
            "no new finalizers can be added if the object is being deleted, found new finalizers []string{{{}}}",
            new.join(", ")
        );
        causes.push(Cause::forbidden("metadata.finalizers", text));
    }
}
