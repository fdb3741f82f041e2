//! `watchkeeper watch`: every change, for ever, through everything.

mod report;
mod until;

use std::time::Duration;

use clap::Args;
use tokio::sync::mpsc;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use self::report::Report;
use self::until::{Until, Waiting};
use super::feed::{Feed, FeedOptions, Message, SyncProgress};
use super::show::ShowOptions;
use crate::cluster::{AccessOptions, ScopeOptions, kinds};
use crate::failure::{Exit, Failure, Outcome};
use crate::interrupt;
use crate::output::{Change, ChangeType, PrintError, Printer, Shown};
use crate::terminal::{Color, Output, count};

/// How often it is looked whether the watches are there.
const LOOK: Duration = Duration::from_secs(1);

const EXAMPLES: &str = "\
Examples:
  watchkeeper watch pods -A                              every change of every pod
  watchkeeper watch deploy,rs,po -n shop -o wide         several kinds at once
  watchkeeper watch deploy/web -o diff                   which fields change
  watchkeeper watch pods -A -o jsonl | jq .key           a line of JSON for each change
  watchkeeper watch pod web-0 --until condition=Ready --timeout 2m
  watchkeeper watch pods -A --demo                       with no cluster at all

It goes on until Ctrl-C. When the server ends the watch, the connection breaks or the server is away,
it says so on stderr, once, with how long nothing could be seen, and shows what changed meanwhile.";

/// Options of `watchkeeper watch`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Options {
    /// KIND[,KIND...] [NAME...], or KIND/NAME...; kinds as in kubectl: pods, po, deployments.apps, all
    #[arg(required = true, value_name = "KIND")]
    words: Vec<String>,

    #[command(flatten)]
    scope: ScopeOptions,

    #[command(flatten)]
    show: ShowOptions,

    /// JSON and YAML as {"type": ..., "object": ...}
    #[arg(long, help_heading = "How they are shown")]
    output_watch_events: bool,

    /// Changes of nothing but versions, managed fields and heartbeats too
    #[arg(long, help_heading = "How they are shown")]
    all_changes: bool,

    /// End when all objects meet this: delete, create, condition=Ready, jsonpath='{.status.phase}'=Running
    #[arg(long, value_name = "WHAT", help_heading = "When to end")]
    until: Option<Until>,

    /// End after this time; with --until it is an error (exit code 5) if that has not happened by then
    #[arg(long, value_name = "TIME", value_parser = crate::time::duration, help_heading = "When to end")]
    timeout: Option<Duration>,

    /// End when everything that is there has been shown
    #[arg(long, help_heading = "When to end")]
    exit_after_sync: bool,

    /// List in pages of so many objects, and not as a stream
    #[arg(long, value_name = "N", help_heading = "Which cluster")]
    chunk_size: Option<u32>,

    #[command(flatten)]
    access: AccessOptions,
}

impl Options {
    /// What `watchkeeper get --watch` means.
    pub(crate) fn of_get(words: Vec<String>, scope: ScopeOptions, show: ShowOptions, access: AccessOptions) -> Self {
        Self {
            words,
            scope,
            show,
            output_watch_events: false,
            all_changes: false,
            until: None,
            timeout: None,
            exit_after_sync: false,
            chunk_size: None,
            access,
        }
    }
}

/// Watches until it is told to end.
pub(crate) async fn run(options: Options, color: Color) -> Outcome {
    let interrupted = interrupt::token();
    let deadline = options.timeout.map(|timeout| Instant::now() + timeout.min(Duration::from_secs(86_400 * 365)));
    let connecting = async {
        let access = options.access.connect().await?;
        let targets = kinds::targets(&access, &options.words).await?;
        Ok::<_, Failure>((access, targets))
    };
    let (access, targets) = tokio::select! {
        connected = connecting => connected?,
        () = interrupted.cancelled() => return Ok(Exit::Interrupted),
        () = until(deadline) => return timed_out(&options),
    };

    let several_kinds = targets.iter().any(|target| target.resource != targets[0].resource);
    let several_namespaces = options.scope.names(&access).is_none_or(|names| names.len() > 1);
    let mut print = options.show.print_options(color, several_kinds, several_namespaces)?;
    print.output_watch_events = options.output_watch_events;
    print.all_changes = options.all_changes;
    let feed_options = FeedOptions {
        scope: &options.scope,
        format: &options.show.output,
        looks_into_bodies: options.until.is_some(),
        page_size: options.chunk_size,
    };
    let (feed, messages, sender) = Feed::new(&access, &feed_options, targets)?;
    let token = CancellationToken::new();
    feed.start(&sender, &token)?;
    drop(sender);

    let named = feed.sources.iter().map(|source| source.target.name.is_some()).collect();
    let mut watching = Watching {
        printer: Printer::new(print),
        out: Output::stdout(),
        report: Report::new(feed.sources.len()),
        waiting: options.until.clone().map(|until| Waiting::new(until, named)),
        progress: SyncProgress::new(),
        left: feed.sources.len(),
        failed: Exit::Ok,
        exit_after_sync: options.exit_after_sync,
        feed,
    };
    let ended = tokio::select! {
        ended = watching.follow(messages) => ended,
        () = interrupted.cancelled() => Ok(Exit::Interrupted),
        () = until(deadline) => timed_out(&options),
    };
    token.cancel();
    for source in &watching.feed.sources {
        source.informer.shutdown().await;
    }
    watching.report.summary(&watching.feed.sources);
    access.close().await;
    match ended {
        Err(failure) if failure.exit() == Exit::Timeout => Err(match &watching.waiting {
            Some(waiting) => {
                let (met, all) = waiting.progress();
                failure.because(format!("{} of {} objects meet it", count(met as u64), count(all as u64)))
            }
            None => failure,
        }),
        ended => ended,
    }
}

async fn until(deadline: Option<Instant>) {
    match deadline {
        Some(deadline) => tokio::time::sleep_until(deadline).await,
        None => std::future::pending().await,
    }
}

/// The time is over. That is what was asked for, unless something was waited for.
fn timed_out(options: &Options) -> Outcome {
    match (&options.until, options.timeout) {
        (Some(_), Some(timeout)) => {
            Err(Failure::new(Exit::Timeout, format!("what was waited for did not happen within {timeout:?}")))
        }
        _ => Ok(Exit::Ok),
    }
}

/// A watch that goes on.
struct Watching {
    feed: Feed,
    printer: Printer,
    out: Output,
    report: Report,
    waiting: Option<Waiting>,
    progress: SyncProgress,
    /// Targets that have not shown what there is.
    left: usize,
    /// How to end, if a target had nothing to show.
    failed: Exit,
    exit_after_sync: bool,
}

impl Watching {
    async fn follow(&mut self, mut messages: mpsc::Receiver<Message>) -> Outcome {
        let mut looks = tokio::time::interval(LOOK);
        let mut ticks = tokio::time::interval(SyncProgress::EVERY);
        loop {
            tokio::select! {
                message = messages.recv() => {
                    let Some(message) = message else { return Ok(self.failed) };
                    if let Some(exit) = self.hear(message)? {
                        return Ok(exit);
                    }
                }
                _ = ticks.tick(), if self.left > 0 => self.progress.update(&self.feed),
                _ = looks.tick() => {
                    for (number, source) in self.feed.sources.iter().enumerate() {
                        self.report.look(number, source);
                    }
                }
            }
        }
    }

    /// How to end, if it is over.
    fn hear(&mut self, message: Message) -> Outcome<Option<Exit>> {
        match message {
            Message::Initial(number, changes) => {
                self.target_is_known();
                for change in &changes {
                    self.wait_for(number, change);
                }
                if let Some(waiting) = &mut self.waiting {
                    waiting.synced(number);
                }
                let columns = self.feed.sources[number].columns();
                let printed = self.printer.changes(&mut self.out, &columns, changes);
                if let Some(exit) = self.was_printed(ChangeType::Added, printed)? {
                    return Ok(Some(exit));
                }
            }
            Message::Change(number, change) => {
                let columns = self.feed.sources[number].columns();
                let printed = self.printer.change(&mut self.out, &columns, &change);
                if let Some(exit) = self.was_printed(change.change, printed)? {
                    return Ok(Some(exit));
                }
                self.wait_for(number, &change);
            }
            Message::Gap(number, gap) => self.report.gap(number, &self.feed.sources[number], &gap),
            Message::Failed(_number, error) => {
                self.target_is_known();
                let failure = Failure::from(error);
                // One kind that may not be seen does not hide the others.
                if self.feed.sources.len() == 1 {
                    return Err(failure);
                }
                self.failed = failure.exit();
                self.progress.say(&failure.to_string());
            }
        }
        if self.waiting.as_ref().is_some_and(Waiting::is_over) {
            return Ok(Some(Exit::Ok));
        }
        if self.exit_after_sync && self.left == 0 {
            return Ok(Some(self.failed));
        }
        Ok(None)
    }

    /// How to end, if nobody reads any more: then there is nothing left to do, and nothing is wrong.
    fn was_printed(&mut self, change: ChangeType, printed: Result<Shown, PrintError>) -> Outcome<Option<Exit>> {
        match printed {
            Ok(shown) => self.report.printed(change, shown),
            Err(PrintError::ReaderGone) => return Ok(Some(Exit::Ok)),
            Err(error) if error.is_about_one_object() => anstream::eprintln!("{error}"),
            Err(error) => return Err(error.into()),
        }
        Ok(None)
    }

    fn target_is_known(&mut self) {
        self.left -= 1;
        // Its line has to be gone before something is written.
        self.progress.update(&self.feed);
    }

    fn wait_for(&mut self, number: usize, change: &Change) {
        let Some(waiting) = &mut self.waiting else { return };
        match change.change {
            ChangeType::Deleted => waiting.remove(number, &change.key),
            ChangeType::Added | ChangeType::Modified => {
                // One that cannot be read meets nothing.
                let object = change.object.value(&change.resource).unwrap_or(&serde_json::Value::Null);
                waiting.put(number, &change.key, object);
            }
        }
    }
}
