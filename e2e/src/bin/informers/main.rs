//! Our informers on a real API server: is what they show what there is, whatever happens meanwhile?
//!
//! Each case starts informers of many views of seven kinds, lets several writers write, disturbs, writes markers and waits for
//! them, and then compares: the cache with lists of its own making, each handler's memory with the cache, what the informer
//! says of itself with what may happen, and how often it listed with the server's audit log.

mod audit;
mod case;
mod cases;
mod digest;
mod hearing;
mod kinds;
mod stage;
mod views;
mod watched;

use std::process::ExitCode;

use watchkeeper_e2e::{Arguments, Programs, Report, unless_interrupted};

use cases::Size;

#[tokio::main]
async fn main() -> ExitCode {
    unless_interrupted(run()).await
}

async fn run() -> ExitCode {
    let log = tracing_subscriber::EnvFilter::try_from_default_env().unwrap_or_else(|_| "off".into());
    tracing_subscriber::fmt().with_env_filter(log).with_writer(std::io::stderr).init();
    let arguments = Arguments::read();
    let columns = [&case::Outcome::COLUMNS[..], &["took"]].concat();
    let mut report = Report::new("informers", &columns);
    let programs = match Programs::find_servers() {
        Ok(programs) => programs,
        Err(not_here) => return report.skip(&not_here),
    };
    let size = Size::new(arguments.short);
    cases::run(&mut report, &arguments, &programs, size).await;
    report.note(format!(
        "Kubernetes {}, etcd {}{}",
        programs.version,
        programs.etcd_version,
        if arguments.short { "; the short form" } else { "" }
    ));
    report.finish()
}
