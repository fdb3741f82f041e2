//! Who is told to end takes what it has started along.

use std::process::ExitCode;

use tokio::signal::unix::{SignalKind, signal};

/// Runs a suite, and drops it, with the clusters that it has started, when somebody interrupts or terminates the
/// process, or closes its terminal.
pub async fn unless_interrupted(suite: impl Future<Output = ExitCode>) -> ExitCode {
    let told = async {
        let [interrupt, terminate, hangup] =
            [SignalKind::interrupt(), SignalKind::terminate(), SignalKind::hangup()].map(signal);
        match (interrupt, terminate, hangup) {
            (Ok(mut interrupt), Ok(mut terminate), Ok(mut hangup)) => {
                tokio::select! {
                    _ = interrupt.recv() => {}
                    _ = terminate.recv() => {}
                    _ = hangup.recv() => {}
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
