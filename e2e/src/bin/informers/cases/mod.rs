//! What is done to the informers while others write.

mod expiry;
mod flags;
mod network;
mod rights;
mod sabotage;
mod scale;
mod servers;

use std::time::Duration;

use kube::Client;
use watchkeeper::source::ClientOptions;
use watchkeeper_e2e::{Arguments, Failure, Programs, Report, Settings, User};

use crate::case::Outcome;
use crate::stage::Stage;

/// How much is done.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Size {
    /// Objects of each kind.
    objects: u64,
    /// Changes between two disturbances.
    changes: u64,
    /// Disturbances of one case.
    times: u64,
    /// Informers on one HTTP/2 client.
    watches: usize,
    /// Objects of one kind, where they are many.
    many: u64,
}

impl Size {
    pub(crate) fn new(short: bool) -> Self {
        if short {
            Self { objects: 60, changes: 100, times: 2, watches: 250, many: 5_000 }
        } else {
            Self { objects: 300, changes: 400, times: 5, watches: 250, many: 50_000 }
        }
    }
}

/// Between two writes of one writer.
const PAUSE: Duration = Duration::from_millis(15);

/// A client through the stage's proxy.
fn client(stage: &Stage, user: User, http2: bool) -> Result<Client, Failure> {
    let mut options = ClientOptions::default();
    options.http2 = http2;
    let config = stage.cluster.config_through(user, stage.proxy.port());
    Ok(watchkeeper::source::client_with(config, options)?)
}

/// Cases on one cluster.
macro_rules! run {
    ($report:ident, $arguments:ident, $programs:ident, $size:ident, $settings:expr, $($name:literal => $case:path),* $(,)?) => {
        if [$($name),*].iter().any(|name| is_wanted($arguments, name)) {
            match Stage::start($programs, $settings, $size.objects).await {
                Ok(mut stage) => {
                    $(if is_wanted($arguments, $name) {
                        let started = tokio::time::Instant::now();
                        let mut failed_first = None;
                        let mut result = match stage.recover().await {
                            Ok(()) => $case(&mut stage, $size).await,
                            Err(failure) => Err(failure),
                        };
                        // The short form runs beside whatever else a machine does, and what it looks at are times.
                        if let Err(failure) = &result && $arguments.short {
                            eprintln!("{} failed, and is tried once more: {failure:#}", $name);
                            stage.keep_logs($name);
                            failed_first = Some(format!("{} passed at the second try only; at first: {failure:#}", $name));
                            result = match stage.recover().await {
                                Ok(()) => $case(&mut stage, $size).await,
                                Err(failure) => Err(failure),
                            };
                        }
                        if result.is_err() {
                            stage.keep_logs($name);
                        } else if let Some(note) = failed_first {
                            $report.note(note);
                        }
                        tell($report, $name, result, started.elapsed());
                    })*
                    if let Err(failure) = stage.cluster.stop().await {
                        $report.row("the end of the cluster", &[], Err(format!("{failure:#}")));
                    }
                }
                Err(failure) => $report.row("the start of the cluster", &[], Err(format!("{failure:#}"))),
            }
        }
    };
}

/// Runs those that are wanted.
pub(crate) async fn run(report: &mut Report, arguments: &Arguments, programs: &Programs, size: Size) {
    run!(report, arguments, programs, size, Settings::default(),
        "checks-can-fail" => sabotage::noticed,
        "plain" => network::plain,
        "cut" => network::cut,
        "reset" => network::reset,
        "frozen" => network::frozen,
        "half-open" => network::half_open,
        "http2-250-watches" => scale::http2,
        "restart" => servers::restart,
        "kill" => servers::kill,
        "compaction-restart" => expiry::restart,
        "no-right-to-list" => rights::lost,
        "definition-again" => servers::definition,
        "many-objects" => scale::many,
    );
    let apiserver = vec!["--watch-cache=false".to_owned()];
    let settings = Settings { apiserver, compaction_interval: Some(Duration::from_secs(1)) };
    run!(report, arguments, programs, size, settings,
        "no-watch-cache" => network::without_watch_cache,
        "compaction-watch" => expiry::watch,
        "compaction-continue" => expiry::continues,
    );
    let apiserver = ["--feature-gates=WatchList=false", "--goaway-chance=0.02", "--min-request-timeout=3"];
    let settings = Settings { apiserver: apiserver.map(str::to_owned).to_vec(), ..Settings::default() };
    run!(report, arguments, programs, size, settings,
        "no-streaming-lists" => flags::no_streaming,
        "goaway" => flags::goaway,
        "short-watches" => flags::short_watches,
    );
}

/// The short form has no long waits: it leaves out those who need one, unless they are named.
fn is_wanted(arguments: &Arguments, case: &str) -> bool {
    const LONG: [&str; 1] = ["half-open"];
    let is_left_out = arguments.short && arguments.cases.is_empty() && LONG.contains(&case);
    arguments.wants(case) && !is_left_out
}

fn tell(report: &mut Report, name: &str, result: Result<Outcome, Failure>, took: Duration) {
    let seconds = format!("{:.0} s", took.as_secs_f64());
    match result {
        Ok(outcome) => report.row(name, &[outcome.cells(), vec![seconds]].concat(), Ok(())),
        Err(failure) => {
            let mut cells = vec![String::new(); Outcome::COLUMNS.len()];
            cells.push(seconds);
            report.row(name, &cells, Err(format!("{failure:#}")));
        }
    }
}
