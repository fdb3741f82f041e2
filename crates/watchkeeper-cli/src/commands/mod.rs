//! Everything that can be done: a file each, with its `Options` and its `run`.

mod apart;
pub(crate) mod bench;
pub(crate) mod completion;
pub(crate) mod demo;
pub(crate) mod doctor;
mod feed;
pub(crate) mod get;
pub(crate) mod serve;
mod show;
pub(crate) mod top;
pub(crate) mod watch;

use crate::cli::{Cli, Command};
use crate::failure::Outcome;

/// Does what the command line says.
pub(crate) async fn run(cli: Cli) -> Outcome {
    match cli.command {
        Command::Demo(options) => demo::run(options, cli.color).await,
        Command::Watch(options) => watch::run(options, cli.color).await,
        Command::Get(options) => get::run(options, cli.color).await,
        Command::Top(options) => top::run(options, cli.color).await,
        Command::Serve(options) => serve::run(options).await,
        Command::Doctor(options) => doctor::run(options, cli.color).await,
        Command::Bench(options) => bench::run(options).await,
        Command::Completion(options) => completion::run(options),
    }
}
