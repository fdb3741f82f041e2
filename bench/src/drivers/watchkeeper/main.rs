//! watchkeeper at work: a shared informer with its defaults, and a work queue.

mod pods;
mod queue;
#[path = "../shared/mod.rs"]
mod shared;

use std::process::ExitCode;

use clap::Parser;

use self::shared::arguments::InformerArguments;
use self::shared::{finish, phases};

/// watchkeeper at work
#[derive(Debug, Parser)]
enum Command {
    /// Be an informer, and do what the phases say
    Informer(InformerArguments<pods::Mode>),
    /// Pass keys through a work queue
    Queue(queue::Arguments),
}

#[tokio::main]
async fn main() -> ExitCode {
    match Command::parse() {
        Command::Informer(arguments) => finish(phases::run::<pods::Watchkeeper>(arguments).await),
        Command::Queue(arguments) => finish(queue::run(&arguments).await),
    }
}
