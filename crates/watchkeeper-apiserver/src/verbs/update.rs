//! `PUT` of an object.

use http::StatusCode;

use super::{Call, admit, write};
use crate::failure::Failure;
use crate::fields;
use crate::http::answer::Answer;
use crate::http::body;

pub(crate) fn run(call: Call) -> Result<Answer, Failure> {
    fields::check_manager(&call.options.field_manager, "UpdateOptions")?;
    let dry_run = call.options.is_dry_run("UpdateOptions")?;
    let sent = body::object(&call.server.registry, &call.kind, call.version(), &call.media_type, &call.body)?;
    let sent = admit::decoded(&call, sent)?;
    check_name(sent.document.meta("name"), call.name())?;
    let object = write::update(&call, dry_run, |_| Ok(sent.clone()))?;
    call.shown(StatusCode::OK, &object)
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
