//! `PATCH` with a configuration: server-side apply. What is not there is created.

use http::StatusCode;
use serde_json::Value;

use super::validate::immutable;
use super::{Call, admit, create, update, write};
use crate::failure::{Cause, Failure};
use crate::fields;
use crate::http::answer::Answer;
use crate::http::body::Sent;
use crate::storage::{Document, Stored};

/// The media type of a configuration.
pub(super) const MEDIA_TYPE: &str = "application/apply-patch+yaml";

pub(super) fn run(call: Call) -> Result<Answer, Failure> {
    let dry_run = call.options.is_dry_run("PatchOptions")?;
    let config = fields::object_of(&call.body)?;
    let is_there = call.server.storage.get(&call.kind, &call.key()).is_some();
    // A status belongs to something that is there.
    if !is_there && call.subresource.is_none() {
        match created(&call, &config, dry_run) {
            // Somebody else was faster: what is there now is applied to.
            Err(failure) if failure.reason() == "AlreadyExists" => {}
            created => return call.shown(StatusCode::CREATED, &*created?),
        }
    }
    let object = write::update(&call, dry_run, |current| applied(&call, &config, current))?;
    call.shown(StatusCode::OK, &object)
}

/// What may not be asked for with a patch of this type.
pub(super) fn check_options(call: &Call, is_apply: bool) -> Result<(), Failure> {
    let mut causes = Vec::new();
    if is_apply && call.options.field_manager.is_empty() {
        causes.push(Cause::required("fieldManager", "is required for apply patch"));
    }
    if !is_apply && call.options.force.is_some() {
        causes.push(Cause::forbidden("force", "may not be specified for non-apply patch"));
    }
    if causes.is_empty() { Ok(()) } else { Err(Failure::invalid_options("PatchOptions", causes)) }
}

fn created(call: &Call, config: &Value, dry_run: bool) -> Result<std::sync::Arc<Stored>, Failure> {
    let document = fields::apply(call, None, config)?;
    let uid = document.meta("uid");
    if !uid.is_empty() {
        let text = format!("uid mismatch: the provided object specified uid {uid}, and no existing object was found");
        return Err(Failure::conflict(&call.kind.plural, &call.kind.group, call.name(), text));
    }
    update::check_name(document.meta("name"), call.name())?;
    let document = read(call, document)?;
    // A version of something that is not there counts for nothing.
    create::create(call, Sent { document, resource_version: String::new() }, dry_run)
}

/// The object that a configuration makes of the current one.
pub(super) fn applied(call: &Call, config: &Value, current: &Stored) -> Result<Sent, Failure> {
    let stored = current.document_as(&call.kind);
    let live = call.shown_version(&stored);
    let document = fields::apply(call, Some(&live), config)?;
    update::check_name(document.meta("name"), call.name())?;
    let uid = document.meta("uid");
    if uid != current.uid() {
        return Err(immutable(&call.kind, call.name(), "uid", &uid.into()));
    }
    let document = read(call, document)?;
    // Who names no version means the one that is there.
    let named = resource_version(config);
    let resource_version = if named.is_empty() { current.revision().to_string() } else { named };
    Ok(Sent { document, resource_version })
}

/// An object as Go reads it: what is null is not there.
fn read(call: &Call, mut document: Document) -> Result<Document, Failure> {
    let managed = document.take_managed();
    let tree = admit::patched(call, &[], document.into_value())?;
    let mut document = Document::new(tree).ok_or_else(|| Failure::bad_request("the object has no usable metadata"))?;
    document.set_managed(managed);
    Ok(document)
}

fn resource_version(config: &Value) -> String {
    config.pointer("/metadata/resourceVersion").and_then(Value::as_str).unwrap_or_default().to_owned()
}
