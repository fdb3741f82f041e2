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
use super::apart::apart;
use super::feed::{Feed, FeedOptions, Message, SyncProgress};
use super::show::ShowOptions;
use crate::cluster::{AccessOptions, ScopeOptions, kinds};
use crate::failure::{Exit, Failure, Outcome};
use crate::interrupt;
use crate::output::{Change, ChangeType, PrintError, Printer, Shown};
use crate::terminal::{Color, Output, count, tell};

/// How long the end may take, once it was asked for. Nobody reads the output if it takes longer.
const GRACE: Duration = Duration::from_secs(1);

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

    /// End after this time: an error (exit code 5) if --until or --exit-after-sync is not done by then
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
    let (access, words) = (options.access.clone(), options.words.clone());
    let connecting = apart(|| async move {
        let access = access.connect().await?;
        let targets = kinds::targets(&access, &words).await?;
        Ok((access, targets))
    });
    let (access, targets) = tokio::select! {
        connected = connecting => connected?,
        asked_for = asked_to_end(&interrupted, deadline, &options) => return asked_for,
    };

    let several_kinds = targets.iter().any(|target| target.resource != targets[0].resource);
    let several_namespaces = options.scope.names(&access).is_none_or(|names| names.len() > 1);
    let mut print = options.show.print_options(color, several_kinds, several_namespaces)?;
    print.output_watch_events = options.output_watch_events;
    print.all_changes = options.all_changes;
    let feed_options = FeedOptions {
        scope: &options.scope,
        format: &options.show.output,
        // Whether a change says something is seen in the whole object only.
        looks_into_bodies: options.until.is_some() || options.show.sort_by.is_some() || !options.all_changes,
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
        refused: 0,
        failed: Exit::Ok,
        exit_after_sync: options.exit_after_sync,
        feed,
    };
    let end = CancellationToken::new();
    let asked = end.clone();
    let following = apart(|| async move {
        let ended = tokio::select! {
            ended = watching.follow(messages) => Some(ended),
            () = asked.cancelled() => None,
        };
        Ok((watching, ended))
    });
    tokio::pin!(following);
    let (followed, asked_for) = tokio::select! {
        followed = &mut following => (followed?, Ok(Exit::Ok)),
        asked_for = asked_to_end(&interrupted, deadline, &options) => {
            end.cancel();
            match tokio::time::timeout(GRACE, following).await {
                Ok(followed) => (followed?, asked_for),
                Err(_) => return asked_for,
            }
        }
    };
    let (watching, ended) = followed;
    let ended = ended.unwrap_or(asked_for);
    token.cancel();
    for source in &watching.feed.sources {
        source.informer.shutdown().await;
    }
    watching.progress.make_room();
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

/// Waits for Ctrl-C and for the end of the time; how to end then.
async fn asked_to_end(interrupted: &CancellationToken, deadline: Option<Instant>, options: &Options) -> Outcome {
    let time_is_over = async {
        match deadline {
            Some(deadline) => tokio::time::sleep_until(deadline).await,
            None => std::future::pending().await,
        }
    };
    tokio::select! {
        () = interrupted.cancelled() => Ok(Exit::Interrupted),
        () = time_is_over => timed_out(options),
    }
}

/// The time is over. That is what was asked for, unless something was waited for.
fn timed_out(options: &Options) -> Outcome {
    match (&options.until, options.timeout) {
        (Some(_), Some(timeout)) => {
            Err(Failure::new(Exit::Timeout, format!("what was waited for did not happen within {timeout:?}")))
        }
        (None, Some(timeout)) if options.exit_after_sync => {
            Err(Failure::new(Exit::Timeout, format!("not everything that is there could be shown within {timeout:?}"))
                .try_this("wait longer: --timeout 10m; or see what is slow: watchkeeper doctor"))
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
    /// Targets that have nothing to show.
    refused: usize,
    /// How to end, if there is such a target.
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
                    self.progress.make_room();
                    for (number, source) in self.feed.sources.iter().enumerate() {
                        self.report.look(number, source);
                    }
                }
            }
        }
    }

    /// How to end, if it is over.
    fn hear(&mut self, message: Message) -> Outcome<Option<Exit>> {
        self.progress.make_room();
        match message {
            Message::Initial(number, changes) => {
                self.target_is_known(number);
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
            Message::Failed(number, error) => {
                self.target_is_known(number);
                self.refused += 1;
                let failure = Failure::from(error);
                // One kind that may not be seen does not hide the others, but it cannot be waited for.
                if self.refused == self.feed.sources.len() || self.waiting.is_some() {
                    return Err(failure);
                }
                self.failed = failure.exit();
                tell(&failure);
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
            Err(error) if error.is_about_one_object() => tell(&error),
            Err(error) => return Err(error.into()),
        }
        Ok(None)
    }

    fn target_is_known(&mut self, number: usize) {
        self.left -= 1;
        self.progress.done(number);
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
