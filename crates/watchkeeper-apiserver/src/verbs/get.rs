//! `GET` of one object.

use http::StatusCode;

use super::{Call, reach};
use crate::failure::Failure;
use crate::http::answer::Answer;
use crate::http::options::revision;
use crate::validation::quoted;

pub(crate) async fn run(call: Call) -> Result<Answer, Failure> {
    let version = call.options.resource_version.as_str();
    if !matches!(version, "" | "0") {
        let revision = revision(version).map_err(|error| {
            Failure::internal(format!("resourceVersion: Invalid value: {}: {error}", quoted(version)))
        })?;
        reach(&call.server, revision).await?;
    }
    let object = call.server.storage.get(&call.kind, &call.key());
    let object = object.ok_or_else(|| Failure::not_found(&call.kind, call.name()))?;
    call.shown(StatusCode::OK, &object)
}
