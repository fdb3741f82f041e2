//! Managed fields of creates and updates. Counterpart: `FieldManager.Update` and `skipnonapplied.go` in
//! `k8s.io/apimachinery/pkg/util/managedfields`.

use serde_json::Value;

use super::entry::{Entry, Owner, read_sent, read_written, same_but_for_times};
use super::owners::{Writing, update};
use super::{Managed, manager_name, new_object, owner_faults, written};
use crate::failure::Failure;
use crate::storage::Document;
use crate::verbs::{Call, scale};

/// The owner of what nobody gave a name for.
const UNKNOWN: &str = "unknown";

/// Gives the fields of a new object to whoever creates it. Refuses owners that nobody can be.
pub(crate) fn created(call: &Call, document: &mut Document) -> Result<(), Failure> {
    let mut sent = false;
    let entries = match document.take_managed() {
        _ if !call.server.settings.managed_fields => return Ok(()),
        Managed::Decided(bytes) => {
            document.set_managed(bytes.into());
            return Ok(());
        }
        Managed::Sent(entries) if !is_reset(&entries) => {
            sent = true;
            read_sent(&entries).unwrap_or_default()
        }
        _ => Vec::new(),
    };
    let new = new_object(&call.kind, &call.version().api_version);
    track(call, new, document, entries);
    if sent { check_owners(call, document) } else { Ok(()) }
}

/// As [`updated`]. Refuses owners that nobody can be, if the update names owners.
pub(crate) fn checked_update(call: &Call, old: &Document, next: &mut Document) -> Result<(), Failure> {
    let sent = matches!(next.managed(), Managed::Sent(_));
    updated(call, old, next);
    if sent { check_owners(call, next) } else { Ok(()) }
}

/// Gives the fields that an update changes to whoever makes it.
pub(crate) fn updated(call: &Call, old: &Document, next: &mut Document) {
    let sent = match next.take_managed() {
        _ if !call.server.settings.managed_fields => return next.set_managed(old.managed().clone()),
        Managed::Decided(bytes) => return next.set_managed(bytes.into()),
        // A subresource has no say in it. Of a custom object, Go does not tell no entries from none.
        Managed::Sent(entries) if call.subresource.is_none() && !(call.kind.custom && entries.is_empty()) => {
            Some(entries)
        }
        _ => None,
    };
    let entries = match sent {
        Some(entries) if is_reset(&entries) => Vec::new(),
        Some(entries) => read_sent(&entries).unwrap_or_else(|_| read(old.managed())),
        // Nothing has changed at all.
        None if next.as_value() == old.as_value() => return next.set_managed(old.managed().clone()),
        None => read(old.managed()),
    };
    // Of a number that nobody has ever said, who scales does not become the owner.
    if call.subresource.as_deref() == Some("scale") && !entries.iter().any(|entry| owns_replicas(call, entry)) {
        return next.set_managed(old.managed().clone());
    }
    // Of an object whose managed fields were taken away nothing is tracked, until somebody applies it.
    if !entries.is_empty() {
        track(call, old.as_value(), next, entries);
    }
}

/// Whether somebody owns the number that a scale is about.
fn owns_replicas(call: &Call, entry: &Entry) -> bool {
    let mut names = scale::place(call).trim_start_matches('.').split('.');
    let first = names.next().and_then(|name| entry.set.field(name));
    let node = names.fold(first, |node, name| node.and_then(|node| node.children.field(name)));
    node.is_some_and(|node| node.member)
}

fn check_owners(call: &Call, document: &Document) -> Result<(), Failure> {
    match owner_faults(document.managed()) {
        causes if causes.is_empty() => Ok(()),
        causes => Err(Failure::invalid(&call.kind.kind, &call.kind.group, document.meta("name"), causes)),
    }
}

/// Whether nothing differs but times.
pub(crate) fn is_same_but_for_times(one: &Managed, other: &Managed) -> bool {
    one == other || same_but_for_times(&read(one), &read(other))
}

/// The entries of managed fields; none, if they cannot be read.
pub(super) fn read(managed: &Managed) -> Vec<Entry> {
    match managed {
        Managed::Nothing | Managed::Decided(None) => Vec::new(),
        Managed::Written(bytes) | Managed::Decided(Some(bytes)) => read_written(bytes).unwrap_or_default(),
        Managed::Sent(entries) => read_sent(entries).unwrap_or_default(),
    }
}

pub(super) fn owner(call: &Call, manager: &str, applied: bool) -> Owner {
    Owner {
        manager: if manager.is_empty() { UNKNOWN } else { manager }.to_owned(),
        applied,
        api_version: call.version().api_version.clone(),
        subresource: call.subresource.clone().unwrap_or_default(),
    }
}

/// Whether somebody wants to get rid of all entries: with none, or with an empty one.
fn is_reset(entries: &[Value]) -> bool {
    let is_empty = |entry: &Value| {
        entry.as_object().is_some_and(|map| map.values().all(|value| value.is_null() || value.as_str() == Some("")))
    };
    match entries {
        [] => true,
        [one] => is_empty(one),
        _ => false,
    }
}

/// An object whose fields cannot be told apart, or would take too much room, is left without an owner.
fn track(call: &Call, old: &Value, next: &mut Document, entries: Vec<Entry>) {
    let manager = manager_name(&call.options.field_manager, &call.user_agent);
    let now = call.server.clock.now();
    let writing = Writing { kind: &call.kind, owner: owner(call, &manager, false), now: &now };
    let entries = update(&writing, old, next.as_value(), entries);
    let bytes = entries.ok().and_then(|mut entries| written(&call.kind, &mut entries).ok()).flatten();
    next.set_managed(bytes.into());
}
