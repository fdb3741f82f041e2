//! Which names does a definition get, and what does its status say of that?
//!
//! Counterparts: the naming and the establishing controller of `k8s.io/apiextensions-apiserver`.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

use super::definition::{Condition, Definition, Names};
use crate::storage::Document;
use crate::validation::quoted;

pub(super) const ESTABLISHED: &str = "Established";
const NAMES_ACCEPTED: &str = "NamesAccepted";
const TERMINATING: &str = "Terminating";

/// The names that the other definitions of a group have.
#[derive(Debug, Default)]
pub(super) struct Taken {
    resources: BTreeSet<String>,
    kinds: BTreeSet<String>,
}

impl Taken {
    pub(super) fn add(&mut self, names: &Names) {
        self.resources.extend([&names.plural, &names.singular].into_iter().chain(&names.short_names).cloned());
        self.kinds.extend([&names.kind, &names.list_kind].into_iter().cloned());
    }
}

/// The names that a definition has from now on, and the conditions that say so.
pub(super) fn accept(definition: &Definition, taken: &Taken) -> (Names, Vec<Condition>) {
    let wanted = &definition.spec.names;
    let mut names = definition.status.accepted_names.clone();
    let mut conflict: Option<(&str, String)> = None;
    let mut take = |name: &str, accepted: &mut String, taken: &BTreeSet<String>, reason: &'static str| match *accepted
        == name
        || !taken.contains(name)
    {
        true => *accepted = name.to_owned(),
        false => conflict = Some((reason, in_use(name))),
    };
    take(&wanted.plural, &mut names.plural, &taken.resources, "PluralConflict");
    take(&wanted.singular, &mut names.singular, &taken.resources, "SingularConflict");
    let busy: Vec<String> = wanted
        .short_names
        .iter()
        .filter(|name| !names.short_names.contains(name) && taken.resources.contains(*name))
        .map(|name| in_use(name))
        .collect();
    let mut late: Option<(&str, String)> = None;
    match busy.as_slice() {
        [] => names.short_names = wanted.short_names.clone(),
        [one] => late = Some(("ShortNamesConflict", one.clone())),
        many => late = Some(("ShortNamesConflict", format!("[{}]", many.join(", ")))),
    }
    let mut take_kind = |name: &str, accepted: &mut String, reason: &'static str| match *accepted == name
        || !taken.kinds.contains(name)
    {
        true => *accepted = name.to_owned(),
        false => late = Some((reason, in_use(name))),
    };
    take_kind(&wanted.kind, &mut names.kind, "KindConflict");
    take_kind(&wanted.list_kind, &mut names.list_kind, "ListKindConflict");
    names.categories = wanted.categories.clone();
    // Of several conflicts the last one is told.
    let conflict = late.or(conflict);
    (names, conditions(definition, conflict))
}

fn in_use(name: &str) -> String {
    format!("{} is already in use", quoted(name))
}

fn conditions(definition: &Definition, conflict: Option<(&str, String)>) -> Vec<Condition> {
    let accepted = match &conflict {
        None => condition(NAMES_ACCEPTED, "True", "NoConflicts", "no conflicts found"),
        Some((reason, text)) => condition(NAMES_ACCEPTED, "False", reason, text),
    };
    let established = match conflict {
        // Once established, always established.
        _ if definition.is_true(ESTABLISHED) => None,
        None => Some(condition(ESTABLISHED, "True", "InitialNamesAccepted", "the initial names have been accepted")),
        Some(_) => Some(condition(ESTABLISHED, "False", "NotAccepted", "not all names are accepted")),
    };
    std::iter::once(accepted).chain(established).collect()
}

/// Where a deletion stands.
pub(super) enum Deletion {
    Pending,
    InProgress,
    Completed,
}

/// The condition of a definition that is being deleted.
pub(super) fn terminating(deletion: Deletion) -> Condition {
    let (status, reason, text) = match deletion {
        Deletion::Pending => (
            "True",
            "InstanceDeletionPending",
            "CustomResourceDefinition marked for deletion; CustomResource deletion will begin soon",
        ),
        Deletion::InProgress => ("True", "InstanceDeletionInProgress", "CustomResource deletion is in progress"),
        Deletion::Completed => ("False", "InstanceDeletionCompleted", "removed all instances"),
    };
    condition(TERMINATING, status, reason, text)
}

/// Sets names and conditions in a definition's status. Only a condition whose status changes has a new time.
pub(super) fn set_status(document: &mut Document, names: Option<&Names>, conditions: &[Condition], now: &str) {
    let status = document.map_mut().entry("status").or_insert_with(|| json!({}));
    if !status.is_object() {
        *status = json!({});
    }
    let Value::Object(status) = status else { return };
    if let Some(names) = names {
        status.insert("acceptedNames".to_owned(), encoded(names));
    }
    let known = status.entry("conditions").or_insert(Value::Null);
    if !known.is_array() {
        *known = json!([]);
    }
    let Value::Array(known) = known else { return };
    for condition in conditions {
        let entry = known.iter_mut().find(|entry| entry.get("type").and_then(Value::as_str) == Some(&condition.kind));
        let shown = |time: &Value| {
            json!({"type": condition.kind, "status": condition.status, "lastTransitionTime": time,
                   "reason": condition.reason, "message": condition.message})
        };
        match entry {
            Some(entry) if entry.get("status").and_then(Value::as_str) == Some(&condition.status) => {
                *entry = shown(&entry.get("lastTransitionTime").cloned().unwrap_or_else(|| now.into()));
            }
            Some(entry) => *entry = shown(&now.into()),
            None => known.push(shown(&now.into())),
        }
    }
}

fn encoded(names: &Names) -> Value {
    let mut map = Map::new();
    map.insert("plural".to_owned(), names.plural.clone().into());
    map.insert("kind".to_owned(), names.kind.clone().into());
    for (field, name) in [("singular", &names.singular), ("listKind", &names.list_kind)] {
        if !name.is_empty() {
            map.insert(field.to_owned(), name.clone().into());
        }
    }
    for (field, list) in [("shortNames", &names.short_names), ("categories", &names.categories)] {
        if !list.is_empty() {
            map.insert(field.to_owned(), list.clone().into());
        }
    }
    Value::Object(map)
}

fn condition(kind: &str, status: &str, reason: &str, message: &str) -> Condition {
    Condition {
        kind: kind.to_owned(),
        status: status.to_owned(),
        last_transition_time: None,
        reason: reason.to_owned(),
        message: message.to_owned(),
    }
}
