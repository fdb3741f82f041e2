//! Suites 3 and 4: Kubernetes' own components on our server, and our controller on Kubernetes' server.
//!
//! | file | answers |
//! |---|---|
//! | `stage` | our server with a controller manager, a scheduler and nodes |
//! | `process` | how programs are started and ended |
//! | `logs` | what they say, and what of it is usual |
//! | `kubelet` | what nodes do with pods |
//! | `workloads` | deployments, scaling, a rolling update, jobs |
//! | `deletions` | what goes with its owner, and with its namespace |
//! | `leaders` | two schedulers, one leader |
//! | `churn` | client-go and a controller of kube-rs while everything changes |
//! | `operator` | the controller of kube-rs |
//! | `example` | our own example on the real API server |

mod churn;
mod deletions;
mod example;
mod kubelet;
mod leaders;
mod logs;
mod operator;
mod process;
mod stage;
mod wait;
mod workloads;

use std::process::ExitCode;
use std::time::{Duration, Instant};

use watchkeeper_e2e::{Arguments, Failure, Programs, Report, unless_interrupted};

use self::stage::{Kind, Stage};

#[tokio::main]
async fn main() -> ExitCode {
    unless_interrupted(suite()).await
}

async fn suite() -> ExitCode {
    let arguments = Arguments::read();
    let mut report = Report::new("components", &["what was seen", "seconds"]);
    let programs = match Programs::find() {
        Ok(programs) => programs,
        Err(not_here) => return report.skip(&not_here),
    };
    let (churn, clients) = if arguments.short { (20, 20) } else { (60, 300) };
    let times = Times { churn: Duration::from_secs(churn), clients: Duration::from_secs(clients) };
    let mut suite = Suite { arguments, programs, times, report: &mut report };
    // The last case of each kills schedulers.
    let cases = ["deployment", "scaling", "rolling-update", "sets", "job", "background", "foreground", "orphan"];
    let cases = [&cases[..], &["namespace", "churn", "leaders"]].concat();
    let calm: Vec<&str> = cases.iter().copied().filter(|&case| case != "churn").collect();
    suite.on("", Kind::Ours, &cases).await;
    suite.on("-json", Kind::Json, &calm).await;
    suite.on("-both", Kind::Both, &calm).await;
    suite.on("-alone", Kind::Alone, &["clients"]).await;
    suite.on("-real", Kind::Real, &cases).await;
    let began = Instant::now();
    if suite.arguments.wants("example") {
        let seen = example::run(&suite.programs).await;
        suite.tell("example", began, seen);
    }
    report.finish()
}

/// How long everything changes.
struct Times {
    churn: Duration,
    clients: Duration,
}

struct Suite<'a> {
    arguments: Arguments,
    programs: Programs,
    times: Times,
    report: &'a mut Report,
}

impl Suite<'_> {
    /// All cases on one server, one after the other. Their names end in `suffix`.
    async fn on(&mut self, suffix: &str, kind: Kind, cases: &[&str]) {
        let named = |case: &str| format!("{case}{suffix}");
        let wanted: Vec<&str> = cases.iter().copied().filter(|case| self.arguments.wants(&named(case))).collect();
        if wanted.is_empty() {
            return;
        }
        let began = Instant::now();
        let mut stage = match Stage::start(&self.programs, kind).await {
            Ok(stage) => stage,
            Err(error) => return self.tell(&named("start"), began, Err(error)),
        };
        self.tell(&named("start"), began, Ok(stage.described().to_owned()));
        for case in wanted {
            let began = Instant::now();
            let seen = match case {
                "deployment" => workloads::deployment(&stage).await,
                "scaling" => workloads::scaling(&stage).await,
                "rolling-update" => workloads::rolling_update(&stage).await,
                "sets" => workloads::sets(&stage).await,
                "job" => workloads::job(&stage).await,
                "background" => deletions::background(&stage).await,
                "foreground" => deletions::foreground(&stage).await,
                "orphan" => deletions::orphan(&stage).await,
                "namespace" => deletions::namespace_goes(&stage).await,
                "leaders" => leaders::run(&self.programs, &mut stage).await,
                "churn" => churn::run(&stage, self.times.churn).await,
                _ => churn::clients(&stage, self.times.clients).await,
            };
            self.tell(&named(case), began, seen);
        }
        let began = Instant::now();
        let ended = stage.stop().await;
        self.tell(&named("logs"), began, ended);
    }

    fn tell(&mut self, case: &str, began: Instant, seen: Result<String, Failure>) {
        let (cell, result) = match seen {
            Ok(seen) => (seen, Ok(())),
            Err(error) => (String::new(), Err(format!("{error:#}"))),
        };
        self.report.row(case, &[cell, format!("{:.1}", began.elapsed().as_secs_f64())], result);
    }
}
