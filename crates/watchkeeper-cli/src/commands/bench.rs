//! `watchkeeper bench`

use clap::Args;

use crate::failure::{Exit, Outcome};

/// Options of `watchkeeper bench`.
#[derive(Debug, Args)]
pub struct Options {}

/// Runs it.
pub async fn run(_options: Options) -> Outcome {
    Ok(Exit::Ok)
}
