//! `POST` to a collection.

use std::sync::Arc;

use http::StatusCode;

use super::{Call, addresses, admit, initial, owner_references, validate, write};
use crate::access::Asked;
use crate::crds;
use crate::defaults::{GENERATED_PREFIX, NAME_ATTEMPTS};
use crate::failure::{Cause, Failure};
use crate::fields;
use crate::http::answer::Answer;
use crate::http::body::{self, Sent};
use crate::storage::{Document, Refused, Stored};

pub(crate) fn run(call: Call) -> Result<Answer, Failure> {
    fields::check_manager(&call.options.field_manager, "CreateOptions")?;
    let dry_run = call.options.is_dry_run("CreateOptions")?;
    let sent = body::object(&call.server.registry, &call.kind, call.version(), &call.media_type, &call.body)?;
    let sent = admit::decoded(&call, sent)?;
    let object = create(&call, sent, dry_run)?;
    call.shown(StatusCode::CREATED, &object)
}

/// Makes an object of what was sent.
pub(crate) fn create(call: &Call, sent: Sent, dry_run: bool) -> Result<Arc<Stored>, Failure> {
    let (server, kind) = (&call.server, &call.kind);
    if sent.revision()?.is_some() {
        return Err(Failure::internal("resourceVersion should not be set on objects to be created"));
    }
    let mut document = sent.document;
    if kind.terminating {
        let text = "create not allowed while custom resource definition is terminating";
        return Err(Failure::forbidden(kind, document.meta("name"), text));
    }
    let is_misplaced = call.namespace.is_none() && !document.meta("namespace").is_empty();
    write::place(call, &mut document)?;
    write::check_namespace(call, document.meta("name"), dry_run)?;
    let prefix = generated_prefix(&document);
    if prefix.is_none() && document.meta("name").is_empty() {
        let cause = Cause::required("metadata.name", "name or generateName is required");
        return Err(Failure::invalid(&kind.kind, &kind.group, "", vec![cause]));
    }
    write::strip(&mut document);
    owner_references::merge(call, &mut document);
    for field in ["deletionTimestamp", "deletionGracePeriodSeconds"] {
        document.metadata_mut().remove(field);
    }
    document.set_meta("uid", server.random.uid());
    document.set_meta("creationTimestamp", server.clock.now());
    if kind.rules.generation {
        document.set_meta("generation", 1);
    }
    initial::convert(kind, &mut document);
    // What was sent, and what its type fills in, is the client's; all else is the server's.
    admit::fill(call, &mut document);
    // Whose fields are whose cannot be told of an object that names a namespace and has none.
    match is_misplaced {
        false => fields::created(call, &mut document)?,
        true => drop(document.take_managed()),
    }
    initial::apply(kind, call.has_status(), &mut document);
    if crds::is_definition(kind) {
        crds::prepare(None, false, &mut document);
    }

    let _held = addresses::hold(call);
    let mut sent = document;
    let mut attempts = if prefix.is_some() { NAME_ATTEMPTS } else { 1 };
    loop {
        let mut document = if prefix.is_some() { sent.clone() } else { std::mem::take(&mut sent) };
        if let Some(prefix) = &prefix {
            document.set_meta("name", format!("{prefix}{}", server.random.suffix()));
        }
        initial::apply_name(kind, &mut document);
        let faults = admit::admit(call, None, &mut document)?;
        validate::validate(kind, Some(call.version()), &document, None, faults)?;
        check_access(call)?;
        let stored = call.to_storage(&document);
        let name = document.meta("name").to_owned();
        let key = call.key_of(&name);
        let created = match dry_run {
            true if server.storage.get(kind, &key).is_none() => {
                return Ok(Arc::new(Stored::preview(kind, &key, &stored, None)));
            }
            true => None,
            false => store(call, &key, &name, &stored)?,
        };
        attempts -= 1;
        match created {
            Some(created) => return Ok(created),
            None if attempts > 0 => {}
            None => {
                let failure = match prefix {
                    Some(_) => Failure::generated_name_exists(kind, &name),
                    None => Failure::already_exists(kind, &name),
                };
                let goes = server.storage.get(kind, &key).is_some_and(|known| known.is_deleting());
                return Err(if goes { failure.while_being_deleted() } else { failure });
            }
        }
    }
}

/// Who writes an object by its name, to change it, must be allowed to create it as well where it is not there.
fn check_access(call: &Call) -> Result<(), Failure> {
    match (call.server.settings.access.as_deref(), &call.name) {
        (Some(rules), Some(name)) => {
            rules.check(&call.user, &Asked::creation(&call.kind, call.namespace.as_deref(), name))
        }
        _ => Ok(()),
    }
}

/// Writes a new object; none, if its name is taken. Namespace and kind may have gone since they were looked at.
fn store(call: &Call, key: &str, name: &str, document: &Document) -> Result<Option<Arc<Stored>>, Failure> {
    let namespaces = call.server.registry.find("", "namespaces");
    loop {
        match call.server.storage.create(&call.kind, key, document, namespaces.as_deref()) {
            Ok(created) => return Ok(Some(created)),
            Err(Refused::Taken) => return Ok(None),
            Err(Refused::NoKind) => return Err(Failure::no_such_resource()),
            Err(Refused::NoNamespace) => write::check_namespace(call, name, false)?,
        }
    }
}

/// What a generated name begins with, if one is to be generated.
fn generated_prefix(document: &Document) -> Option<String> {
    let prefix = document.meta("generateName");
    if prefix.is_empty() || !document.meta("name").is_empty() {
        return None;
    }
    let end = prefix.char_indices().map(|(i, c)| i + c.len_utf8()).take_while(|end| *end <= GENERATED_PREFIX).last();
    Some(prefix[..end.unwrap_or(0)].to_owned())
}
