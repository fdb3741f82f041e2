//! `watchkeeper demo`: a living cluster in memory, and a copy of it that stays equal to it.
//!
//! `cluster` makes the server, what lives in it, and the informers that watch it through a real port; `faults` is what goes
//! wrong between them, `check` compares the two. `model` is what is shown, by `view` on a screen, or by `plain` in lines.

mod check;
mod cluster;
mod faults;
mod model;
mod plain;
mod view;

use std::time::Duration;

use clap::Args;

use self::check::Verdict;
use self::cluster::Cluster;
use crate::failure::{Exit, Failure, Outcome};
use crate::living::{FEWEST, MOST};
use crate::terminal::Color;
use crate::{interrupt, screen};

const EXAMPLES: &str = "\
Examples:
  watchkeeper demo                        until q, Esc or Ctrl-C
  watchkeeper demo --faults               cuts, stalls, refusals, 410s, 429s, 500s, restarts
  watchkeeper demo --faults --for 1m      exit code 0 says that the copies stayed equal
  watchkeeper demo --plain | tee log      a line a second, as when there is no terminal

Informers watch the cluster through a real port, and what they hold is compared with what the server
has, all the time and exactly: at the version that each copy is at. If they ever differ, it is shown,
and the exit code is 1. Meanwhile the cluster can be used with kubectl, or with this program: the demo
says how.

Keys: q quit, p pause, f faults on and off, arrows or 1-9 the changes of one kind, 0 of all.";

/// Options of `watchkeeper demo`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Options {
    /// End after this time, counted from when all copies are complete
    #[arg(long = "for", value_name = "TIME", value_parser = crate::time::duration)]
    duration: Option<Duration>,

    /// How many objects there are at first
    #[arg(long, value_name = "N", default_value_t = 3000, value_parser = objects)]
    objects: usize,

    /// The same seed makes the same cluster, and the same faults
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,

    /// Writes a second, roughly; there are quiet moments and bursts
    #[arg(long, value_name = "N", default_value_t = 30.0, value_parser = rate)]
    rate: f64,

    /// Let things go wrong between the server and those who watch it
    #[arg(long)]
    faults: bool,

    /// Print lines, also on a terminal
    #[arg(long)]
    plain: bool,

    /// The port of 127.0.0.1 to listen on [default: any that is free]
    #[arg(long, value_name = "PORT", default_value_t = 0, hide_default_value = true)]
    port: u16,

    /// Make one copy wrong in a way that no client can notice, to see the comparison fail
    #[arg(long, hide = true)]
    sabotage: bool,
}

/// Runs it.
pub(crate) async fn run(options: Options, color: Color) -> Outcome {
    let token = interrupt::token();
    let verdict = match !options.plain && screen::is_possible() {
        true => view::show(&options, color, token).await?,
        false => plain::print(&options, token).await?,
    };
    Ok(if verdict.has_differed() { Exit::Error } else { Exit::Ok })
}

/// Waits for the end of a demo that has one.
async fn over(options: &Options) {
    match options.duration {
        Some(duration) => tokio::time::sleep(duration).await,
        None => std::future::pending().await,
    }
}

/// The last words, which stay when the screen is gone.
fn last_words(verdict: &Verdict) -> String {
    match verdict.differences().collect::<Vec<_>>().as_slice() {
        [] => {
            let unknown = verdict.kinds.iter().filter(|kind| kind.equal_at.is_none()).count();
            let but = if unknown == 0 { String::new() } else { format!(", but {unknown} kinds were never compared") };
            format!("{} comparisons, no difference{but}", crate::terminal::count(verdict.compared))
        }
        differences => format!("the copies differed: {}", differences.join("; ")),
    }
}

fn objects(text: &str) -> Result<usize, String> {
    let number: usize = text.parse().map_err(|_| format!("{text:?} is no number"))?;
    match (FEWEST..=MOST).contains(&number) {
        true => Ok(number),
        false => Err(format!("from {FEWEST} to {MOST} objects can be made")),
    }
}

fn rate(text: &str) -> Result<f64, String> {
    let number: f64 = text.parse().map_err(|_| format!("{text:?} is no number"))?;
    match number.is_finite() && (0.0..=10_000.0).contains(&number) {
        true => Ok(number),
        false => Err("from 0 to 10000 writes a second can be made".to_owned()),
    }
}

/// The demo ends before it has begun to show anything.
fn interrupted() -> Failure {
    Failure::new(Exit::Interrupted, "interrupted before all copies were complete")
}
