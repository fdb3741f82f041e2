//! What can be said on the command line.

use std::ffi::OsString;
use std::io::IsTerminal as _;
use std::path::Path;
use std::process::ExitCode;

use clap::{ArgAction, CommandFactory, FromArgMatches, Parser, Subcommand};

use crate::commands::{bench, completion, demo, doctor, get, serve, top, watch};
use crate::failure::Exit;
use crate::terminal::Color;

const LONG_ABOUT: &str = "\
watchkeeper keeps an exact, live copy of a Kubernetes cluster, and tells what changes.

  watchkeeper demo             a living cluster in memory: nothing is needed
  watchkeeper watch pods -A    like kubectl get -w, but it does not stop, and says what happened";

const AFTER_HELP: &str = "\
Exit codes: 0 done, 1 error, 2 wrong usage, 3 not found, 4 not allowed, 5 not in time,
130 interrupted. Data goes to stdout, everything else to stderr. NO_COLOR is honoured.";

/// Keeps an exact, live copy of a Kubernetes cluster, and tells what changes
#[derive(Debug, Parser)]
#[command(name = "watchkeeper", version, long_about = LONG_ABOUT, after_help = AFTER_HELP)]
#[command(subcommand_required = true, arg_required_else_help = true, max_term_width = 110)]
pub(crate) struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,

    /// Say more on stderr: -v, -vv, -vvvv
    #[arg(short, long, global = true, action = ArgAction::Count, help_heading = "Everywhere")]
    pub verbose: u8,

    /// When to use colours: auto, always or never
    #[arg(long, global = true, value_enum, value_name = "WHEN", default_value_t, help_heading = "Everywhere")]
    #[arg(hide_possible_values = true, hide_default_value = true)]
    pub color: Color,
}

/// Everything that can be done.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Show a living cluster in memory: nothing is needed, nothing is touched
    Demo(demo::Options),
    /// Print every change of one or more kinds, for ever, through everything
    Watch(watch::Options),
    /// Print what there is, from a synced copy
    Get(get::Options),
    /// Show a cluster by kind: objects, bytes, changes, and how the copies are doing
    Top(top::Options),
    /// Serve a Kubernetes API from memory, on a port
    Serve(serve::Options),
    /// Find out what stands between this machine and a cluster's objects
    Doctor(doctor::Options),
    /// Measure what a copy of a kind costs
    Bench(bench::Options),
    /// Print a completion script for a shell
    Completion(completion::Options),
}

/// Reads the command line. The error is how to end: help is no error.
pub(crate) fn parse(arguments: impl IntoIterator<Item = OsString>) -> Result<Cli, ExitCode> {
    let arguments: Vec<OsString> = arguments.into_iter().collect();
    let command = command(arguments.first());
    let result = command.try_get_matches_from(arguments).and_then(|matches| Cli::from_arg_matches(&matches));
    result.map_err(|error| {
        // A closed pipe is no reason to complain.
        let _ = error.print();
        if error.use_stderr() { Exit::Usage.into() } else { Exit::Ok.into() }
    })
}

/// The program as clap sees it. As a plugin it is called `kubectl watchkeeper`.
pub(crate) fn command(program: Option<&OsString>) -> clap::Command {
    let file = program.and_then(|path| Path::new(path).file_name()).and_then(|name| name.to_str()).unwrap_or_default();
    let command = Cli::command();
    if file.starts_with("kubectl-") { command.bin_name("kubectl watchkeeper") } else { command }
}

/// What is logged goes to stderr, in the way that people set for Rust programs, or as often as -v was said.
pub(crate) fn log(verbose: u8) {
    use tracing_subscriber::EnvFilter;

    let level = match verbose {
        0 => "off",
        1 => "watchkeeper=info",
        2..=3 => "watchkeeper=debug",
        4..=6 => "watchkeeper=trace,kube_client=debug",
        _ => "trace",
    };
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new(level));
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .with_ansi(std::io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|set| set.is_empty()))
        .init();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }
}
