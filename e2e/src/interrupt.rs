//! Who is told to end takes what it has started along.

use std::process::ExitCode;

use tokio::signal::unix::{SignalKind, signal};

/// Runs a suite, and drops it, with the clusters that it has started, when somebody interrupts or terminates the process.
pub async fn unless_interrupted(suite: impl Future<Output = ExitCode>) -> ExitCode {
    let told = async {
        match (signal(SignalKind::interrupt()), signal(SignalKind::terminate())) {
            (Ok(mut interrupt), Ok(mut terminate)) => {
                tokio::select! {
                    _ = interrupt.recv() => {}
                    _ = terminate.recv() => {}
                }
            }
            _ => std::future::pending().await,
        }
    };
    tokio::select! {
        code = suite => code,
        () = told => {
            eprintln!("interrupted");
            ExitCode::FAILURE
        }
    }
}
