//! The garbage collector: what belongs to something that is gone goes too.
//!
//! Counterpart: `k8s.io/kubernetes/pkg/controller/garbagecollector`.

use std::collections::HashSet;
use std::sync::Arc;

use serde_json::{Value, json};

use super::{found, remove_entries, rewrite};
use crate::kinds::Kind;
use crate::server::Inner;
use crate::storage::{Document, Place, Stored, Work};
use crate::verbs::delete::{DeleteOptions, delete};

/// What is to be said of an owner.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Owner {
    /// It is there.
    Solid,
    /// It is being deleted, and waits for its dependents.
    Waiting,
    /// It is gone, was never there, or another one has its name.
    Gone,
}

/// The owners of an object, by what is to be said of them: their uids.
#[derive(Default)]
struct Owners {
    solid: Vec<String>,
    waiting: Vec<String>,
    gone: Vec<String>,
}

/// Deletes an object that no owner holds any more, or forgets those that do not.
pub(super) fn dependent(server: &Arc<Inner>, place: &Place) {
    let Some((kind, object)) = found(server, place) else { return };
    if object.waits_for_dependents() {
        return owner(server, place);
    }
    // What goes already needs no help.
    if object.is_deleting() {
        return;
    }
    let document = object.document();
    let Some(owners) = owners(server, &kind, &object, &document) else { return };
    if !owners.solid.is_empty() {
        let left: HashSet<String> = owners.gone.into_iter().chain(owners.waiting).collect();
        if !left.is_empty() {
            let is_left =
                |entry: &Value| entry.get("uid").and_then(Value::as_str).is_some_and(|uid| left.contains(uid));
            rewrite(server, &kind, &object, |document| remove_entries(document, "ownerReferences", is_left));
        }
        return;
    }
    if owners.gone.is_empty() && owners.waiting.is_empty() {
        return;
    }
    let policy = if !owners.waiting.is_empty() && server.storage.has_dependents(object.uid(), false) {
        unblock_circle(server, &kind, &object);
        "Foreground"
    } else if document.finalizers().contains(&"orphan") {
        "Orphan"
    } else if document.finalizers().contains(&"foregroundDeletion") {
        "Foreground"
    } else {
        "Background"
    };
    let options = DeleteOptions::of_controller(policy, object.uid());
    // If it is gone or another one by now, that was to be done.
    let _ = delete(server, &kind, object.key(), object.name(), &options);
}

/// Brings an object further that is being deleted and has dependents.
pub(super) fn owner(server: &Arc<Inner>, place: &Place) {
    let Some((kind, object)) = found(server, place) else { return };
    if object.orphans_dependents() {
        let dependents = server.storage.dependents(object.uid(), false).into_iter();
        let dependents: Vec<Place> = dependents.filter(|dependent| found(server, dependent).is_some()).collect();
        if dependents.is_empty() {
            return remove_finalizer(server, &kind, &object, "orphan");
        }
        let uid = object.uid();
        let forgetting = dependents.into_iter().map(|dependent| Work::Forget(dependent, uid.into()));
        server.storage.add_work(forgetting.chain([Work::Owner(place.clone())]));
    } else if object.waits_for_dependents() {
        if !server.storage.has_dependents(object.uid(), true) {
            return remove_finalizer(server, &kind, &object, "foregroundDeletion");
        }
        // It is looked at again when the last of them is gone.
        let blocking = server.storage.dependents(object.uid(), true).into_iter();
        let idle = blocking.filter(|dependent| {
            let found = found(server, dependent);
            !found.is_some_and(|(_, dependent)| dependent.waits_for_dependents())
        });
        server.storage.add_work(idle.map(Work::Dependent).collect::<Vec<_>>());
    }
}

/// Removes what an object says of an owner.
pub(super) fn forget(server: &Arc<Inner>, place: &Place, uid: &str) {
    if let Some((kind, object)) = found(server, place) {
        rewrite(server, &kind, &object, |document| {
            remove_entries(document, "ownerReferences", |entry| is_of(entry, uid));
        });
    }
}

fn remove_finalizer(server: &Inner, kind: &Arc<Kind>, object: &Stored, finalizer: &str) {
    rewrite(server, kind, object, |document| remove_entries(document, "finalizers", |entry| entry == finalizer));
}

fn is_of(reference: &Value, uid: &str) -> bool {
    reference.get("uid").and_then(Value::as_str) == Some(uid)
}

/// What is to be said of all owners. None, if one of them cannot be found out about: then the object is left alone.
fn owners(server: &Inner, kind: &Kind, object: &Stored, document: &Document) -> Option<Owners> {
    let mut owners = Owners::default();
    let references = document.metadata().get("ownerReferences").and_then(Value::as_array)?;
    for reference in references {
        let text = |field: &str| reference.get(field).and_then(Value::as_str).unwrap_or_default();
        let uid = text("uid").to_owned();
        let owner_kind = server.registry.of_object(text("apiVersion"), text("kind"))?;
        let key = match (owner_kind.namespaced, kind.namespaced) {
            (false, _) => text("name").to_owned(),
            // Owners are looked for in the object's own namespace only.
            (true, true) => format!("{}/{}", object.namespace().unwrap_or_default(), text("name")),
            // An object outside of namespaces cannot belong to one inside.
            (true, false) => return None,
        };
        match state(server, &owner_kind, &key, &uid) {
            Owner::Solid => owners.solid.push(uid),
            Owner::Waiting => owners.waiting.push(uid),
            Owner::Gone => owners.gone.push(uid),
        }
    }
    Some(owners)
}

fn state(server: &Inner, kind: &Kind, key: &str, uid: &str) -> Owner {
    match server.storage.get(kind, key).filter(|owner| owner.uid() == uid) {
        None => Owner::Gone,
        Some(owner) if owner.waits_for_dependents() => Owner::Waiting,
        Some(_) => Owner::Solid,
    }
}

/// If something that waits for its dependents belongs to this object, it may be one of its own owners: then both would wait
/// for ever. So this one blocks nobody any more.
fn unblock_circle(server: &Inner, kind: &Arc<Kind>, object: &Stored) {
    let mut dependents = server.storage.dependents(object.uid(), false).into_iter();
    let waits = |place: Place| found(server, &place).is_some_and(|(_, object)| object.waits_for_dependents());
    if !dependents.any(waits) {
        return;
    }
    rewrite(server, kind, object, |document| {
        let references = document.metadata_mut().get_mut("ownerReferences").and_then(Value::as_array_mut);
        for reference in references.into_iter().flatten() {
            if reference.get("blockOwnerDeletion").is_some()
                && let Value::Object(reference) = reference
            {
                reference.insert("blockOwnerDeletion".to_owned(), json!(false));
            }
        }
    });
}
