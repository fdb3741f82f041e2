//! `DELETE` of a collection: of each object that a list with the same options shows.

use super::Call;
use super::delete::{DeleteOptions, delete};
use super::list::{select, shown};
use crate::failure::Failure;
use crate::http::answer::Answer;

pub(crate) async fn run(mut call: Call) -> Result<Answer, Failure> {
    let options = DeleteOptions::of(&call)?;
    options.warn(&call);
    let (page, items) = select(&mut call).await?;
    for item in &items {
        match delete(&call.server, &call.kind, item.key(), item.name(), &options) {
            // Somebody else was faster.
            Err(failure) if failure.code() == 404 => {}
            Err(failure) => return Err(failure),
            Ok(_) => {}
        }
    }
    shown(&call, &page, &items)
}
