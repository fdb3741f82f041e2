//! Suites 3 and 4: Kubernetes' own components on our server, and our controller on Kubernetes' server.
//!
//! | file | answers |
//! |---|---|
//! | `stage` | our server with a controller manager, a scheduler and nodes |
//! | `process` | how programs are started and ended, and what their logs say |
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
mod operator;
mod process;
mod stage;
mod wait;
mod workloads;

use std::process::ExitCode;
use std::time::{Duration, Instant};

use watchkeeper_e2e::{Arguments, Failure, Programs, Report};

use self::stage::{Options, Stage};

#[tokio::main]
async fn main() -> ExitCode {
    let arguments = Arguments::read();
    let mut report = Report::new("components", &["what was seen", "seconds"]);
    let programs = match Programs::find() {
        Ok(programs) => programs,
        Err(not_here) => return report.skip(&not_here),
    };
    let churn = Duration::from_secs(if arguments.short { 20 } else { 300 });
    let mut suite = Suite { arguments, programs, report: &mut report };
    // The components' own choice, which is protobuf, and JSON both ways; with our own collectors off, and on.
    suite.on("", Options { content_type: None, own_controllers: false }, Some(churn)).await;
    suite.on("-json", Options { content_type: Some("application/json"), own_controllers: false }, None).await;
    suite.on("-both", Options { content_type: None, own_controllers: true }, None).await;
    let began = Instant::now();
    if suite.arguments.wants("example") {
        let seen = example::run(&suite.programs).await;
        suite.tell("example", began, seen);
    }
    report.finish()
}

struct Suite<'a> {
    arguments: Arguments,
    programs: Programs,
    report: &'a mut Report,
}

impl Suite<'_> {
    /// All cases on one server, one after the other. Their names end in `suffix`.
    async fn on(&mut self, suffix: &str, options: Options, churn: Option<Duration>) {
        let named = |case: &str| format!("{case}{suffix}");
        let mut cases = vec!["deployment", "scaling", "rolling-update", "sets", "job"];
        cases.extend(["background", "foreground", "orphan", "namespace", "leaders"]);
        cases.extend(churn.map(|_| "churn"));
        let wanted: Vec<&str> = cases.into_iter().filter(|case| self.arguments.wants(&named(case))).collect();
        if wanted.is_empty() {
            return;
        }
        let began = Instant::now();
        let mut stage = match Stage::start(&self.programs, options).await {
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
                _ => churn::run(&stage, churn.unwrap_or_default()).await,
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
