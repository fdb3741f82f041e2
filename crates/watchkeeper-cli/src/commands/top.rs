//! `watchkeeper top`: a cluster by kind.
//!
//! `cluster` finds the kinds and keeps a copy of each; `view` shows them on a screen, `plain` prints them once.

mod cluster;
mod plain;
mod view;

use std::time::Duration;

use clap::Args;
use tokio_util::sync::CancellationToken;

use self::cluster::Copies;
use crate::cluster::AccessOptions;
use crate::failure::{Exit, Failure, Outcome};
use crate::terminal::Color;
use crate::{interrupt, screen};

const EXAMPLES: &str = "\
Examples:
  watchkeeper top                         every kind that there is and that may be read
  watchkeeper top pods,events -n shop     two kinds of one namespace
  watchkeeper top --once                  print a table and end, as when there is no terminal
  watchkeeper top --once --for 1m         the same, with the changes of a minute
  watchkeeper top --demo                  with no cluster at all

All objects of the kinds are read once and watched from then on, which costs the server a list of
each kind. They are kept packed. Of Secrets only the metadata is read; with --metadata that holds for
all kinds. A kind that may not be read is shown with the reason, and does not stop the rest.

Keys: q quit, p pause, arrows or 1-9 the changes of one kind, 0 of all.";

/// Options of `watchkeeper top`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Options {
    /// The kinds, with commas between them [default: all that there are]
    #[arg(value_name = "KIND,...")]
    kinds: Option<String>,

    /// Only objects of this namespace, or of several: shop,bank
    #[arg(short, long, value_name = "NAME", value_delimiter = ',', conflicts_with = "all_namespaces")]
    namespace: Vec<String>,

    /// Objects of all namespaces, which is the default
    #[arg(short = 'A', long)]
    all_namespaces: bool,

    /// Only objects with these labels: app=web,tier!=data
    #[arg(short = 'l', long, value_name = "SELECTOR")]
    selector: Option<String>,

    /// Read only the metadata of the objects
    #[arg(long)]
    metadata: bool,

    /// Print a table once instead of showing a screen
    #[arg(long)]
    once: bool,

    /// End after this time, counted from when all copies are complete
    #[arg(long = "for", value_name = "TIME", value_parser = crate::time::duration)]
    duration: Option<Duration>,

    #[command(flatten)]
    access: AccessOptions,
}

/// Runs it.
pub(crate) async fn run(options: Options, color: Color) -> Outcome {
    cluster::validate(&options)?;
    let token = interrupt::token();
    let access = tokio::select! {
        access = options.access.connect() => access?,
        () = token.cancelled() => return Ok(Exit::Interrupted),
    };
    let copies = tokio::select! {
        copies = Copies::start(&access, &options) => copies,
        () = token.cancelled() => return Ok(Exit::Interrupted),
    };
    let outcome = match copies {
        Ok(copies) => show(&options, color, copies, token).await,
        Err(failure) => Err(failure),
    };
    // Whoever quits does not want to wait.
    let _ = tokio::time::timeout(Duration::from_millis(300), access.close()).await;
    outcome
}

async fn show(options: &Options, color: Color, copies: Copies, token: CancellationToken) -> Outcome {
    let outcome = match !options.once && screen::is_possible() {
        true => view::show(options, color, &copies, token).await,
        false => plain::print(options, &copies, token).await,
    };
    copies.stop().await;
    outcome
}

/// Waits for the end of a look that has one.
async fn over(duration: Option<Duration>, copies: &Copies) {
    match duration {
        Some(duration) => {
            copies.settled().await;
            tokio::time::sleep(duration).await;
        }
        None => std::future::pending().await,
    }
}

/// Of what was asked for, nothing can be read.
fn nothing_readable(copies: &Copies, why: Option<String>) -> Failure {
    let failure = Failure::new(Exit::Forbidden, format!("nothing can be read of {}", copies.name));
    let failure =
        failure.try_this("see which Role would allow it: watchkeeper doctor KIND; or name a namespace: -n NAME");
    match why {
        Some(why) => failure.because(why),
        None => failure,
    }
}
