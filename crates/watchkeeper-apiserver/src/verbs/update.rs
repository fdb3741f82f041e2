//! `PUT` of an object. Of some kinds, what is not there is created.

use std::sync::Arc;

use http::StatusCode;

use super::{Call, admit, create, write};
use crate::failure::Failure;
use crate::fields;
use crate::http::answer::Answer;
use crate::http::body::{self, Sent};
use crate::storage::Stored;

pub(crate) fn run(call: Call) -> Result<Answer, Failure> {
    fields::check_manager(&call.options.field_manager, "UpdateOptions")?;
    let dry_run = call.options.is_dry_run("UpdateOptions")?;
    let sent = body::object(&call.server.registry, &call.kind, call.version(), &call.media_type, &call.body)?;
    let sent = admit::decoded(&call, sent)?;
    check_name(sent.document.meta("name"), call.name())?;
    loop {
        match write::update(&call, dry_run, |_| Ok(sent.clone())) {
            Err(failure) if creates(&call, &failure) => match created(&call, sent.clone(), dry_run) {
                // Somebody else was faster: what is there now is updated.
                Err(failure) if failure.reason() == "AlreadyExists" => {}
                created => return call.shown(StatusCode::CREATED, &*created?),
            },
            updated => return call.shown(StatusCode::OK, &*updated?),
        }
    }
}

/// Whether there was nothing to update, and the kind is one that is created then.
fn creates(call: &Call, failure: &Failure) -> bool {
    failure.reason() == "NotFound" && call.kind.rules.creates_on_update && call.subresource.is_none()
}

fn created(call: &Call, sent: Sent, dry_run: bool) -> Result<Arc<Stored>, Failure> {
    // Whoever knows the object that was there does not mean another.
    write::check_uid(call, &call.key(), "", &sent)?;
    // A version of something that is not there counts for nothing, if it is one.
    sent.revision()?;
    create::create(call, Sent { resource_version: String::new(), ..sent }, dry_run)
}

/// An update does not rename.
pub(super) fn check_name(name: &str, path: &str) -> Result<(), Failure> {
    if name == path {
        return Ok(());
    }
    if name.is_empty() {
        return Err(Failure::bad_request(format!(
            "the name of the object ({path} based on URL) was undeterminable: name must be provided"
        )));
    }
    Err(Failure::bad_request(format!("the name of the object ({name}) does not match the name on the URL ({path})")))
}
