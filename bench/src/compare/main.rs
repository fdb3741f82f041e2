//! Runs watchkeeper, kube-rs and client-go by turns, and compares what they did.

mod bounds;
mod configuration;
mod figures;
mod floor;
mod plan;
mod plot;
mod report;
mod results;
mod rows;
mod run;
mod server;
mod tables;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Parser, Subcommand};

use crate::configuration::{Driver, Task};
use crate::floor::Ratios;
use crate::plan::{Peer, QUICK_DECODE_PODS, QUICK_PODS};
use crate::run::Programs;

/// Compares watchkeeper with kube-rs and client-go. The programs that it runs must be built: see `cargo xtask help`.
#[derive(Parser)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Everything: writes RESULTS.md and plots. About forty minutes
    Full {
        /// How often each configuration runs; an odd number has a median that was measured
        #[arg(long, default_value_t = 3)]
        rounds: usize,
        /// Only configurations whose name contains this. Nothing is written then but to the screen
        #[arg(long)]
        only: Option<String>,
    },
    /// The main rows at 10,000 pods: prints ratios, and fails if one is below its floor
    Quick {
        /// How often each configuration runs
        #[arg(long, default_value_t = 3)]
        rounds: usize,
        /// Makes 0.8 of the ratios found the floor
        #[arg(long)]
        write_floor: bool,
    },
}

fn main() -> ExitCode {
    let done = match Arguments::parse().command {
        Command::Full { rounds, only } => full(rounds, only.as_deref()),
        Command::Quick { rounds, write_floor } => quick(rounds, write_floor),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("error: {message}");
            ExitCode::FAILURE
        }
    }
}

/// The folder of the comparison in the repository.
fn folder() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Leaves out what cannot run here.
fn possible(programs: &Programs, mut tasks: Vec<Task>) -> Vec<Task> {
    if !programs.has(Driver::ClientGo) {
        eprintln!("client-go is left out: there is no {}, which needs Go to be built", Driver::ClientGo.program());
    }
    tasks.retain(|task| programs.has(task.configuration.driver));
    tasks
}

fn full(rounds: usize, only: Option<&str>) -> Result<(), String> {
    let programs = Programs::beside_this()?;
    let mut tasks = possible(&programs, plan::full());
    tasks.retain(|task| only.is_none_or(|part| task.configuration.to_string().contains(part)));
    let results = run::rounds(&programs, &tasks, rounds)?;
    let path = folder().join("RESULTS.md");
    let before = std::fs::read_to_string(&path).unwrap_or_default();
    let report = report::report(&results, rounds, &before);
    if only.is_some() {
        println!("{report}");
        return Ok(());
    }
    write(&path, &report)?;
    let plots = folder().join("plots");
    std::fs::create_dir_all(&plots).map_err(|error| format!("{} cannot be made: {error}", plots.display()))?;
    write(&plots.join("memory.svg"), &plot::memory(&results))?;
    write(&plots.join("sync.svg"), &plot::sync(&results))
}

fn write(path: &PathBuf, text: &str) -> Result<(), String> {
    std::fs::write(path, text).map_err(|error| format!("{} cannot be written: {error}", path.display()))?;
    eprintln!("wrote {}", path.display());
    Ok(())
}

fn quick(rounds: usize, write_floor: bool) -> Result<(), String> {
    let programs = Programs::beside_this()?;
    let tasks = possible(&programs, plan::quick());
    let results = run::rounds(&programs, &tasks, rounds)?;
    let mut ratios = Ratios::new();
    for row in rows::main_rows(QUICK_PODS, QUICK_DECODE_PODS) {
        let Some((_, compared)) = row.compare(&results) else { continue };
        for one in compared {
            println!("ratio {} {} {:.2}", row.key, one.peer.key(), one.ratio);
            ratios.entry(row.key.to_owned()).or_default().insert(one.peer.key().to_owned(), one.ratio);
        }
    }
    let failed: Vec<String> = results
        .failures()
        .map(|(one, times, of, error)| format!("{one} failed {times} of {of} times: {error}"))
        .collect();
    let path = folder().join("floor.toml");
    if write_floor {
        if failed.is_empty() {
            return floor::write(&path, &ratios);
        }
        return Err(format!("no floor is written, for something failed\n{}", failed.join("\n")));
    }
    let ran = |key: &str| Peer::ALL.into_iter().any(|peer| peer.key() == key && programs.has(peer.driver()));
    let problems = floor::problems(&floor::read(&path)?, &ratios, ran);
    let all = [failed, problems].concat();
    if all.is_empty() { Ok(()) } else { Err(all.join("\n")) }
}
