//! `watchkeeper bench`: what does a copy of a kind cost?
//!
//! The copy is made in a process of its own, a fresh one for each run, so that its memory and its CPU time are its own:
//! this process only starts it, serves the objects if they come from memory, and adds up.
//!
//! | file | answers |
//! |---|---|
//! | `child` | what the measured process does |
//! | `usage` | what a process has used |
//! | `pods` | which objects a server in memory has |
//! | `result` | what was measured, in words and as JSON |

mod child;
mod pods;
mod result;
mod usage;

use std::io::{self, BufRead as _, BufReader, Write as _};
use std::pin::Pin;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use clap::{Args, ValueEnum};
use tokio::sync::mpsc;
use watchkeeper_apiserver::{ApiServer, ListenOptions, Listening, Namespaces};

use self::child::Line;
use self::result::{Measured, Setting};
use crate::cluster::{AccessOptions, ScopeOptions, kinds};
use crate::failure::{Exit, Failure, Outcome};
use crate::interrupt;
use crate::terminal::{Progress, is_reader_gone};

const EXAMPLES: &str = "\
Examples:
  watchkeeper bench --demo                              10,000 pods of a server in memory
  watchkeeper bench --demo --objects 100000 --keep raw
  watchkeeper bench pods -A                             pods of your cluster, watched for 10 s
  watchkeeper bench deployments -A --for 1m -o json

With --demo the objects are pods, and changes are made to measure how long they take to a handler.
On a real cluster nothing is changed: what happens by itself is observed.";

/// Options of `watchkeeper bench`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Options {
    /// The kind
    #[arg(value_name = "KIND", default_value = "pods")]
    kind: String,

    /// How many objects the server in memory has
    #[arg(long, value_name = "N", default_value_t = 10_000, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    objects: u32,

    /// How many changes are made on the server in memory
    #[arg(long, value_name = "N", default_value_t = 2_000, value_parser = clap::value_parser!(u32).range(0..=10_000_000))]
    events: u32,

    /// How many of them in a second
    #[arg(long, value_name = "N", default_value_t = 1_000, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    rate: u32,

    /// How long a real cluster is observed
    #[arg(long = "for", value_name = "TIME", default_value = "10s", value_parser = crate::time::duration)]
    observe: Duration,

    /// How objects are kept
    #[arg(long, value_enum, value_name = "HOW", default_value_t = KeepOption::Packed)]
    keep: KeepOption,

    /// How many handlers hear of changes
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u16).range(0..=1000))]
    handlers: u16,

    /// How often everything is measured
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u16).range(1..=1000))]
    repeat: u16,

    /// For people, or for machines
    #[arg(short, long, value_enum, value_name = "FORMAT", default_value_t = Format::Text)]
    output: Format,

    #[command(flatten)]
    scope: ScopeOptions,

    #[command(flatten)]
    access: AccessOptions,

    /// Be the process that is measured
    #[arg(long, hide = true)]
    measured_child: bool,
}

/// How objects are kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum KeepOption {
    Packed,
    Raw,
    Decoded,
}

/// How the result is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Format {
    Text,
    Json,
}

/// Measures.
pub(crate) async fn run(options: Options) -> Outcome {
    let token = interrupt::token();
    let work = async { if options.measured_child { child::run(&options).await } else { measure(&options).await } };
    token.run_until_cancelled(work).await.unwrap_or(Ok(Exit::Interrupted))
}

async fn measure(options: &Options) -> Outcome {
    let place = Place::new(options).await?;
    let progress = Progress::stderr();
    let mut runs = Vec::new();
    for number in 1..=options.repeat {
        let name = format!("run {number} of {}: {}", options.repeat, options.kind);
        let mut line = progress.kind(&name);
        runs.push(one_run(options, &place, &mut |objects| line.objects(objects)).await?);
    }
    let setting = Setting {
        kind: place.kind.clone(),
        place: place.name.clone(),
        keep: options.keep.to_possible_value().map(|value| value.get_name().to_owned()).unwrap_or_default(),
        handlers: options.handlers,
        made: place.server.as_ref().map(|_| options.events),
        rate: options.rate,
        observed: options.observe,
    };
    let text = match options.output {
        Format::Text => result::text(&setting, &runs),
        Format::Json => result::json(&setting, &runs),
    };
    let mut stdout = crate::terminal::Output::stdout();
    match stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()) {
        Err(error) if !is_reader_gone(&error) => Err(error.into()),
        _ => Ok(Exit::Ok),
    }
}

/// Where the objects come from.
struct Place {
    kind: String,
    name: String,
    server: Option<Served>,
}

/// A server in memory, and how the measured process finds it.
struct Served {
    server: ApiServer,
    _listening: Listening,
    folder: tempfile::TempDir,
}

impl Place {
    async fn new(options: &Options) -> Outcome<Self> {
        if options.access.demo {
            if !["pods", "pod", "po"].contains(&options.kind.as_str()) {
                return Err(Failure::usage(format!("the server in memory has no {}", options.kind))
                    .because("what is measured with --demo are pods")
                    .try_this("watchkeeper bench pods --demo"));
            }
            let name = "a server in memory, in another process on this machine, over TLS".to_owned();
            return Ok(Self { kind: "pods".to_owned(), name, server: Some(Served::new(options).await?) });
        }
        // What is wrong with the cluster is told here, once, and as everywhere.
        let access = options.access.connect().await?;
        let targets = kinds::targets(&access, std::slice::from_ref(&options.kind)).await?;
        let [target] = targets.as_slice() else {
            return Err(Failure::usage(format!("{:?} means several kinds", options.kind))
                .because("one is measured at a time")
                .try_this("for example: watchkeeper bench pods"));
        };
        let (kind, scope) = (target.resource.full_name(), options.scope.describe(&access));
        let scope = if target.resource.namespaced { scope } else { String::new() };
        Ok(Self { kind: format!("{kind}{scope}"), name: access.name.clone(), server: None })
    }
}

impl Served {
    async fn new(options: &Options) -> Outcome<Self> {
        let failed = |why: String| Failure::new(Exit::Error, "the server in memory cannot be made").because(why);
        let server = ApiServer::builder().namespaces(Namespaces::OnDemand).seed(1).build();
        for number in 0..options.objects {
            // A million takes its time, in which it can be interrupted.
            if number % 1000 == 0 {
                tokio::task::yield_now().await;
            }
            server.put(pods::pod(number, None)).map_err(|error| failed(error.to_string()))?;
        }
        let listening = server.listen(ListenOptions::with_tls()).await.map_err(|error| failed(error.to_string()))?;
        let folder = tempfile::tempdir().map_err(|error| failed(error.to_string()))?;
        let path = folder.path().join("kubeconfig");
        listening.write_kubeconfig(path).map_err(|error| failed(error.to_string()))?;
        Ok(Self { server, _listening: listening, folder })
    }

    /// Changes pods, one after the other, at a steady rate. Each says when it was changed. How long it took.
    async fn change(&self, events: u32, rate: u32, objects: u32) -> Duration {
        let started = tokio::time::Instant::now();
        for number in 0..events {
            let due = Duration::from_secs_f64(f64::from(number) / f64::from(rate));
            tokio::time::sleep_until(started + due).await;
            // A pod that was fine is fine with another label.
            let _ = self.server.put(pods::pod(number % objects, Some(child::now_nanos())));
        }
        started.elapsed()
    }
}

async fn one_run(options: &Options, place: &Place, progress: &mut impl FnMut(u64)) -> Outcome<Measured> {
    let mut process = Process::start(options, place)?;
    let (mut synced, mut changed) = (None, None);
    let mut changing: Pin<Box<dyn Future<Output = Duration> + Send>> = Box::pin(std::future::pending());
    loop {
        // The process may end while changes are made.
        let line = tokio::select! {
            took = &mut changing => {
                changed = Some(took);
                changing = Box::pin(std::future::pending());
                continue;
            }
            line = process.lines.recv() => line,
        };
        match line {
            Some(Line::Alive) => {}
            Some(Line::Listed(objects)) => progress(objects),
            Some(Line::Synced(sync)) => {
                synced = Some(sync);
                if let Some(server) = &place.server {
                    changing = Box::pin(server.change(options.events, options.rate, options.objects));
                }
            }
            Some(Line::Done(done)) => {
                process.end();
                if let Some(sync) = synced {
                    return Ok(Measured { sync, done, changed });
                }
            }
            None => return Err(process.failed()),
        }
    }
}

/// The measured process. It does not outlive this one.
struct Process {
    child: Child,
    lines: mpsc::UnboundedReceiver<Line>,
}

impl Process {
    fn start(options: &Options, place: &Place) -> Outcome<Self> {
        let failed = |error: io::Error| {
            Failure::new(Exit::Error, "the process that is to be measured cannot be started").because(error)
        };
        let mut command = Command::new(std::env::current_exe().map_err(failed)?);
        command.arg("bench").arg("--measured-child").args(options.child_arguments(place));
        let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().map_err(failed)?;
        let (sender, lines) = mpsc::unbounded_channel();
        if let Some(stdout) = child.stdout.take() {
            std::thread::spawn(move || {
                for line in BufReader::new(stdout).lines().map_while(Result::ok) {
                    // It is this program, so that it is understood.
                    if let Ok(line) = serde_json::from_str(&line) {
                        let _ = sender.send(line);
                    }
                }
            });
        }
        Ok(Self { child, lines })
    }

    fn end(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }

    /// It ended without a result, and has said why.
    fn failed(&mut self) -> Failure {
        let status = self.child.wait().ok().and_then(|status| status.code());
        let exit = match status {
            Some(3) => Exit::NotFound,
            Some(4) => Exit::Forbidden,
            Some(5) => Exit::Timeout,
            _ => Exit::Error,
        };
        Failure::new(exit, "nothing could be measured").because("the process that was to be measured has ended")
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.end();
    }
}

impl Options {
    /// What the measured process has to know.
    fn child_arguments(&self, place: &Place) -> Vec<std::ffi::OsString> {
        let mut arguments: Vec<std::ffi::OsString> = Vec::new();
        let mut add = |name: &str, value: &std::ffi::OsStr| {
            let mut argument = std::ffi::OsString::from(format!("--{name}="));
            argument.push(value);
            arguments.push(argument);
        };
        add("handlers", self.handlers.to_string().as_ref());
        let keep = self.keep.to_possible_value();
        add("keep", keep.as_ref().map(|value| value.get_name()).unwrap_or_default().as_ref());
        add("request-timeout", format!("{}ms", self.access.request_timeout.as_millis()).as_ref());
        if let Some(served) = &place.server {
            add("events", self.events.to_string().as_ref());
            add("kubeconfig", served.folder.path().join("kubeconfig").as_os_str());
            arguments.extend(["--all-namespaces".into(), "--".into(), "pods".into()]);
            return arguments;
        }
        add("events", "0".as_ref());
        add("for", format!("{}ms", self.observe.as_millis()).as_ref());
        let access = &self.access;
        for (name, value) in [("context", &access.context), ("cluster", &access.cluster), ("user", &access.user)] {
            if let Some(value) = value {
                add(name, value.as_ref());
            }
        }
        if let Some(path) = &access.kubeconfig {
            add("kubeconfig", path.as_os_str());
        }
        for (name, value) in [("selector", &self.scope.selector), ("field-selector", &self.scope.field_selector)] {
            if let Some(value) = value {
                add(name, value.as_ref());
            }
        }
        for namespace in &self.scope.namespace {
            add("namespace", namespace.as_ref());
        }
        if self.scope.all_namespaces {
            arguments.push("--all-namespaces".into());
        }
        arguments.extend(["--".into(), self.kind.clone().into()]);
        arguments
    }
}
