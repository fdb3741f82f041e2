//! The `watchkeeper` program: a live look at a Kubernetes cluster, or at one in memory.
//!
//! `cli` is what can be said on the command line, `commands` has a file for each thing that can be done. They share
//! `cluster` (which cluster, and what does it have?), `output` (how is an object shown?), `terminal` (what may be written to
//! it?), `living` (the cluster of the demo) and `failure` (what went wrong, why, and what to try).

mod cli;
mod cluster;
mod commands;
mod failure;
mod interrupt;
mod living;
mod output;
mod screen;
mod terminal;
mod time;

use std::io::Write as _;
use std::process::ExitCode;

fn main() -> ExitCode {
    let cli = match cli::parse(std::env::args_os()) {
        Ok(cli) => cli,
        Err(exit) => return exit,
    };
    cli::log(cli.verbose);
    let runtime = match tokio::runtime::Builder::new_multi_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => {
            terminal::tell(format_args!("error: no thread can be started\n  why: {error}"));
            return failure::Exit::Error.into();
        }
    };
    let outcome = runtime.block_on(commands::run(cli));
    // A name that is being looked up, or a handler that hangs, must not hold up the end.
    runtime.shutdown_timeout(std::time::Duration::from_millis(200));
    match outcome {
        Ok(exit) => exit.into(),
        Err(failure) => {
            // Where the terminal is gone, there is nobody to tell.
            let _ = writeln!(anstream::stderr(), "{failure}");
            failure.exit().into()
        }
    }
}
