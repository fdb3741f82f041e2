//! `DELETE` of a collection: of each object that the selectors match.

use std::sync::Arc;

use http::StatusCode;

use super::Call;
use super::delete::{DeleteOptions, delete};
use super::list::{Page, document};
use crate::failure::Failure;
use crate::http::answer::Answer;
use crate::storage::Stored;

pub(crate) fn run(call: Call) -> Result<Answer, Failure> {
    let options = DeleteOptions::of(&call)?;
    let filter = call.filter()?;
    let snapshot = call.server.storage.list(&call.kind, filter.prefix(), "", None);
    let snapshot = snapshot.map_err(|_| Failure::expired("The resourceVersion for the provided list is too old."))?;
    let items: Vec<Arc<Stored>> = snapshot.objects.into_iter().filter(|object| filter.matches(object)).collect();
    for item in &items {
        match delete(&call.server, &call.kind, item.key(), item.name(), &options) {
            // Somebody else was faster.
            Err(failure) if failure.code() == 404 => {}
            Err(failure) => return Err(failure),
            Ok(_) => {}
        }
    }
    let page = Page { revision: snapshot.revision, continue_token: String::new(), remaining: None };
    Ok(Answer::parts(StatusCode::OK, document(&call.kind, &call.shape(), &page, &items)))
}
