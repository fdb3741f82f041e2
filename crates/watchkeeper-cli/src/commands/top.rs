//! `watchkeeper top`

use clap::Args;

use crate::failure::{Exit, Outcome};

/// Options of `watchkeeper top`.
#[derive(Debug, Args)]
pub(crate) struct Options {}

/// Runs it.
pub(crate) async fn run(_options: Options) -> Outcome {
    Ok(Exit::Ok)
}
