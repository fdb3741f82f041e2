//! What all writes have in common.

use std::sync::Arc;

use serde_json::{Value, json};

use super::validate::{immutable, validate};
use super::{Call, addresses, admit, initial, owner_references};
use crate::crds;
use crate::failure::{Cause, Failure};
use crate::fields;
use crate::http::body::Sent;
use crate::kinds::Kind;
use crate::server::Namespaces;
use crate::storage::{Document, Expect, Stored};

/// Puts an object where its path says, unless it says something else itself.
pub(crate) fn place(call: &Call, document: &mut Document) -> Result<(), Failure> {
    let Some(namespace) = call.namespace.as_deref() else {
        // What is in no namespace loses one that it names.
        document.metadata_mut().remove("namespace");
        return Ok(());
    };
    if !matches!(document.meta("namespace"), "") && document.meta("namespace") != namespace {
        return Err(Failure::bad_request(
            "the namespace of the provided object does not match the namespace sent on the request",
        ));
    }
    document.set_meta("namespace", namespace);
    Ok(())
}

/// New objects need a namespace that is there, and stays.
pub(super) fn check_namespace(call: &Call, name: &str, dry_run: bool) -> Result<(), Failure> {
    let Some(namespace) = &call.namespace else { return Ok(()) };
    let server = &call.server;
    let Some(kind) = server.registry.find("", "namespaces") else { return Ok(()) };
    match server.storage.get(&kind, namespace) {
        Some(found) if found.is_deleting() => Err(Failure::terminating(&call.kind, name, namespace)),
        Some(_) => Ok(()),
        None if server.settings.namespaces == Namespaces::Strict => Err(Failure::not_found(&kind, namespace)),
        None if dry_run => Ok(()),
        None => {
            match server.create(json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}})) {
                // Somebody else was faster: just as good.
                Err(failure) if failure.reason() != "AlreadyExists" => Err(failure),
                _ => Ok(()),
            }
        }
    }
}

/// Removes what clients may not decide, and what is as good as absent.
pub(super) fn strip(document: &mut Document) {
    document.metadata_mut().remove("selfLink");
    document.metadata_mut().retain(|_, value| match value {
        Value::Null => false,
        Value::String(text) => !text.is_empty(),
        Value::Array(entries) => !entries.is_empty(),
        Value::Object(entries) => !entries.is_empty(),
        _ => true,
    });
    document.map_mut().retain(|_, value| !value.is_null());
}

/// Changes an object into what `sent` makes of it, and tries again when somebody else was faster.
pub(super) fn update(
    call: &Call,
    dry_run: bool,
    sent: impl Fn(&Stored) -> Result<Sent, Failure>,
) -> Result<Arc<Stored>, Failure> {
    let (server, kind, key) = (&call.server, &call.kind, call.key());
    let _held = addresses::hold(call);
    loop {
        let current = server.storage.get(kind, &key).ok_or_else(|| Failure::not_found(kind, call.name()))?;
        let sent = sent(&current)?;
        check_identity(call, &current, &sent)?;
        let old = current.document_as(kind);
        let next = changed(call, &old, sent.document)?;
        // Nothing has changed: nothing is written, and nobody is told.
        if next.as_value() == old.as_value()
            && fields::is_same_but_for_times(next.managed(), old.managed())
            && current.is_up_to_date(kind)
        {
            return Ok(current);
        }
        let preview = |document| Arc::new(Stored::preview(kind, &key, document, Some(current.revision())));
        if dry_run {
            return Ok(preview(&next));
        }
        let expect = Expect::Revision(current.revision());
        // The last finalizer is gone: the object goes too, and was never written without it.
        if is_finished(kind, &next) {
            match server.storage.delete(kind, &key, expect) {
                Ok(_) => return Ok(preview(&next)),
                Err(_) => continue,
            }
        }
        if let Ok(written) = server.storage.put(kind, &key, &next, expect) {
            return Ok(written);
        }
    }
}

/// Whether nothing holds a deleted object any longer.
pub(crate) fn is_finished(kind: &Kind, document: &Document) -> bool {
    let held_by_spec = kind.group.is_empty()
        && kind.plural == "namespaces"
        && document.as_value().pointer("/spec/finalizers").and_then(Value::as_array).is_some_and(|f| !f.is_empty());
    document.is_deleting()
        && document.finalizers().is_empty()
        && document.grace_period().unwrap_or_default() == 0
        && !held_by_spec
}

/// An update must mean the object that is there, in the version that is there.
fn check_identity(call: &Call, current: &Stored, sent: &Sent) -> Result<(), Failure> {
    let (kind, name) = (&call.kind, call.name());
    check_uid(call, current.key(), current.uid(), sent)?;
    match sent.revision()? {
        Some(revision) if revision != current.revision() => Err(Failure::modified(kind, name)),
        None if !kind.rules.unconditional_update => {
            let cause = Cause::invalid("metadata.resourceVersion", "0", "must be specified for an update");
            Err(Failure::invalid(&kind.plural, &kind.group, name, vec![cause]))
        }
        _ => Ok(()),
    }
}

/// Who names a uid means no other object.
pub(super) fn check_uid(call: &Call, key: &str, current: &str, sent: &Sent) -> Result<(), Failure> {
    let kind = &call.kind;
    let uid = sent.document.meta("uid");
    if uid.is_empty() || uid == current {
        return Ok(());
    }
    let text = format!(
        "StorageError: invalid object, Code: 4, Key: /registry/{}/{key}, ResourceVersion: 0, AdditionalErrorMsg: \
         Precondition failed: UID in precondition: {uid}, UID in object meta: {current}",
        registry_name(kind)
    );
    Err(Failure::conflict(&kind.plural, &kind.group, call.name(), text))
}

/// What the objects of a kind are kept under in etcd: some have old names.
fn registry_name(kind: &Kind) -> String {
    match (kind.group.as_str(), kind.plural.as_str()) {
        ("", "replicationcontrollers") => "controllers".to_owned(),
        ("", "nodes") => "minions".to_owned(),
        ("", "services") => "services/specs".to_owned(),
        ("", "endpoints") => "services/endpoints".to_owned(),
        ("networking.k8s.io", "ingresses") => "ingress".to_owned(),
        (group @ ("apiextensions.k8s.io" | "apiregistration.k8s.io"), plural) => format!("{group}/{plural}"),
        (group, plural) if kind.custom => format!("{group}/{plural}"),
        (_, plural) => plural.to_owned(),
    }
}

/// What an update makes of an object: the server's part of it stays, and of status and the rest only one may change.
fn changed(call: &Call, old: &Document, sent: Document) -> Result<Document, Failure> {
    let kind = &call.kind;
    let mut next = sent;
    place(call, &mut next)?;
    strip(&mut next);
    owner_references::merge(call, &mut next);
    initial::convert(kind, &mut next);
    admit::fill(call, &mut next);
    fields::checked_update(call, &call.shown_version(old), &mut next)?;
    carry_over(call, old, &mut next)?;
    if (kind.group.as_str(), kind.plural.as_str()) == ("", "namespaces") {
        hold_namespace(call, old, &mut next);
    }
    let status = if call.is_status() { next.map().get("status") } else { old.map().get("status") };
    let status = status.cloned();
    if call.is_status() {
        let (metadata, managed) = (next.metadata().clone(), next.take_managed());
        next = old.clone();
        next.set_managed(managed);
        // Kinds of the core group take changes of the metadata along.
        if kind.group.is_empty() {
            next.map_mut().insert("metadata".to_owned(), Value::Object(metadata));
        }
    }
    if call.has_status() {
        match status {
            Some(status) => next.map_mut().insert("status".to_owned(), status),
            None => next.map_mut().remove("status"),
        };
    }
    if crds::is_definition(kind) {
        crds::prepare(Some(old), call.is_status(), &mut next);
    }
    let faults = admit::admit(call, Some(old), &mut next)?;
    validate(kind, Some(call.version()), &next, Some(old), faults)?;
    let mut next = call.to_storage(&next).into_owned();
    if kind.rules.generation
        && !is_same_substance(call, &next, old)
        && !is_same_substance(call, &next, &admit::filled(call, old))
    {
        next.set_meta("generation", old.generation().wrapping_add(1));
    }
    Ok(next)
}

/// What holds a namespace changes by finalizing it, and in no other way.
fn hold_namespace(call: &Call, old: &Document, next: &mut Document) {
    if call.subresource.as_deref() != Some("finalize") {
        let spec = old.map().get("spec").cloned().unwrap_or_else(|| json!({}));
        next.map_mut().insert("spec".to_owned(), spec);
    } else if let Value::Object(spec) = next.map_mut().entry("spec").or_insert_with(|| json!({})) {
        spec.retain(|_, value| value.as_array().is_none_or(|values| !values.is_empty()));
    }
}

/// Keeps what only the server decides. That an object is being deleted cannot be taken back, nor brought about.
fn carry_over(call: &Call, old: &Document, next: &mut Document) -> Result<(), Failure> {
    for field in ["deletionTimestamp", "deletionGracePeriodSeconds"] {
        // Of an object that is being deleted, another time is not even looked at.
        let is_ignored = field == "deletionTimestamp" && old.is_deleting();
        if let Some(sent) = next.metadata().get(field)
            && old.metadata().get(field) != Some(sent)
            && !is_ignored
        {
            return Err(immutable(&call.kind, call.name(), field, sent));
        }
    }
    for field in ["uid", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds", "generation"] {
        match old.metadata().get(field) {
            Some(value) => next.set_meta(field, value.clone()),
            None => drop(next.metadata_mut().remove(field)),
        }
    }
    Ok(())
}

/// Whether nothing differs that a generation counts the changes of: all but metadata, and status where it is written apart.
fn is_same_substance(call: &Call, one: &Document, other: &Document) -> bool {
    let counts = |key: &str| key != "metadata" && !(key == "status" && call.has_status());
    let (parts, others) = (one.map(), other.map());
    let same_parts = parts.iter().filter(|(key, _)| counts(key)).all(|(key, value)| others.get(key) == Some(value))
        && others.keys().filter(|key| counts(key)).all(|key| parts.contains_key(key));
    // Deployments hand their annotations on, and so count their changes.
    let hands_on = (call.kind.group.as_str(), call.kind.plural.as_str()) == ("apps", "deployments");
    same_parts && (!hands_on || one.metadata().get("annotations") == other.metadata().get("annotations"))
}
