//! From informers to what is printed.
//!
//! A [`Feed`] has an informer for each target. What they hear comes out of one channel, in the order in which it came in:
//! the first objects of a target together, then every change, and every time without a watch.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use jiff::Timestamp;
use serde::Deserialize;
use serde_json::Value;
use tokio::sync::{mpsc, watch};
use tokio_util::sync::CancellationToken;
use watchkeeper::{Cached, Error, ErrorKind, Event, Gap, Lister, SharedInformer, TableColumns};

use crate::cluster::{Access, ScopeOptions, Target};
use crate::failure::Outcome;
use crate::output::{Body, Change, ChangeType, Column, Format, Resource};
use crate::terminal::{KindProgress, Progress};

/// How many messages wait to be printed. What waits beyond them does so in the informers, packed.
const WAITING: usize = 1024;

/// Something happened to the target with this number.
pub(super) enum Message {
    /// It has shown what there is.
    Initial(usize, Vec<Change>),
    /// Something changed.
    Change(usize, Box<Change>),
    /// There was no watch for a while.
    Gap(usize, Gap),
    /// There is nothing to show, and why.
    Failed(usize, Error),
}

/// What the informers are for.
pub(super) struct FeedOptions<'a> {
    /// Which objects.
    pub scope: &'a ScopeOptions,
    /// How they are shown: the server is asked for no more than that needs.
    pub format: &'a Format,
    /// Somebody else looks into the bodies.
    pub looks_into_bodies: bool,
    /// Lists come in pages of this size, and not as a stream.
    pub page_size: Option<u32>,
}

/// The informers of a command.
pub(super) struct Feed {
    /// One for each target.
    pub sources: Vec<Source>,
}

/// Where the objects of a target come from.
pub(super) struct Source {
    /// What was asked for.
    pub target: Target,
    /// Its copy.
    pub informer: SharedInformer<Value>,
    /// What the server calls its columns.
    columns: TableColumns,
    /// What the server has said no with.
    refused: watch::Receiver<Option<Error>>,
    resource: Arc<Resource>,
    is_table: bool,
}

/// The part of a row that the table needs.
#[derive(Deserialize)]
struct Cells {
    cells: Vec<Value>,
}

impl Feed {
    /// Makes an informer for each target, and starts none. The gaps go into the channel.
    pub(super) fn new(
        access: &Access,
        options: &FeedOptions<'_>,
        targets: Vec<Target>,
    ) -> Outcome<(Self, mpsc::Receiver<Message>, mpsc::Sender<Message>)> {
        let (sender, receiver) = mpsc::channel(WAITING);
        let is_table = options.format.needs_cells();
        let mut sources = Vec::new();
        for (number, target) in targets.into_iter().enumerate() {
            let mut source = options.scope.source(access, &target)?;
            if is_table {
                source = source.table();
            } else if *options.format == Format::Name && !options.looks_into_bodies {
                source = source.metadata_only();
            }
            let columns = source.columns();
            let (gaps, page_size) = (sender.clone(), options.page_size);
            let (refuse, refused) = watch::channel(None);
            let informer = SharedInformer::builder(source)
                .kind(target.resource.api.kind.as_str())
                .on_watch_error(move |error| {
                    if is_refusal(error) {
                        refuse.send_replace(Some(error.clone()));
                    }
                })
                .reflector(move |mut reflector| {
                    if let Some(size) = page_size {
                        reflector = reflector.page_size(size).streaming_lists(false);
                    }
                    let gaps = gaps.clone();
                    // If so much waits that there is no room, nobody is reading.
                    reflector.on_gap(move |gap| drop(gaps.try_send(Message::Gap(number, gap.clone()))))
                })
                .build();
            let resource = Arc::new(resource(&target));
            sources.push(Source { target, informer, columns, refused, resource, is_table });
        }
        Ok((Self { sources }, receiver, sender))
    }

    /// Starts all informers, and tells what they hear.
    pub(super) fn start(&self, sender: &mpsc::Sender<Message>, token: &CancellationToken) -> Outcome<()> {
        for (number, source) in self.sources.iter().enumerate() {
            let mut events = source.informer.events()?;
            let stop = token.child_token();
            source.informer.start(stop.clone())?;
            let (sender, teller) = (sender.clone(), source.teller());
            let informer_synced = source.synced();
            tokio::spawn(async move {
                let handle = events.handle().clone();
                let mut initial = Vec::new();
                // Only the informer gives up: the stream would wait for ever.
                let synced = async {
                    informer_synced.await?;
                    handle.synced().await
                };
                tokio::pin!(synced);
                loop {
                    tokio::select! {
                        biased;
                        event = events.next() => match event {
                            Some(event) => initial.push(teller.change(&event)),
                            None => return,
                        },
                        result = &mut synced => match result {
                            Ok(()) => break,
                            Err(error) => {
                                // Nobody would hear of it any more.
                                stop.cancel();
                                let _ = sender.send(Message::Failed(number, error)).await;
                                return;
                            }
                        },
                    }
                }
                if sender.send(Message::Initial(number, initial)).await.is_err() {
                    return;
                }
                while let Some(event) = events.next().await {
                    let change = Box::new(teller.change(&event));
                    if sender.send(Message::Change(number, change)).await.is_err() {
                        return;
                    }
                }
            });
        }
        Ok(())
    }
}

/// How far the first lists are, on stderr, if that is a terminal and they take their time.
pub(super) struct SyncProgress {
    began: Instant,
    all: Progress,
    lines: Vec<Option<KindProgress>>,
    /// Those that need no line any more.
    done: BTreeSet<usize>,
}

impl SyncProgress {
    /// How often it should be looked at.
    pub(super) const EVERY: Duration = Duration::from_millis(100);
    /// What takes no longer is not worth a line.
    const PATIENCE: Duration = Duration::from_millis(500);

    /// Nothing is shown yet.
    pub(super) fn new() -> Self {
        Self { began: Instant::now(), all: Progress::stderr(), lines: Vec::new(), done: BTreeSet::new() }
    }

    /// Shows how far those are that are not done.
    pub(super) fn update(&mut self, feed: &Feed) {
        if self.began.elapsed() < Self::PATIENCE {
            return;
        }
        self.lines.resize_with(feed.sources.len(), || None);
        for (number, (line, source)) in self.lines.iter_mut().zip(&feed.sources).enumerate() {
            let status = source.informer.status();
            if status.synced || self.done.contains(&number) {
                *line = None;
            } else {
                let begin = || self.all.kind(&source.target.resource.full_name());
                line.get_or_insert_with(begin).objects(status.listed_objects);
            }
        }
    }

    /// This target has shown what there is, or has nothing to show.
    pub(super) fn done(&mut self, number: usize) {
        self.done.insert(number);
        if let Some(line) = self.lines.get_mut(number) {
            *line = None;
        }
    }

    /// Takes the lines away before something is written, which they would be in. The next update shows them again.
    pub(super) fn make_room(&self) {
        if self.lines.iter().any(Option::is_some) {
            self.all.clear();
        }
    }

    /// Waits for something, and shows how far the lists are meanwhile.
    pub(super) async fn during<T>(mut self, feed: &Feed, work: impl Future<Output = T>) -> T {
        tokio::pin!(work);
        loop {
            tokio::select! {
                result = &mut work => return result,
                () = tokio::time::sleep(Self::EVERY) => self.update(feed),
            }
        }
    }
}

impl Source {
    /// The columns that the server has for it, if it has said so already.
    pub(super) fn columns(&self) -> Vec<Column> {
        let columns = self.columns.get();
        let column = |column: &watchkeeper::TableColumn| Column {
            name: column.name.clone(),
            kind: column.type_.clone(),
            format: column.format.clone(),
            description: column.description.clone(),
            priority: column.priority,
        };
        columns.iter().map(column).collect()
    }

    /// What there is, for a listing.
    pub(super) fn listing(&self, objects: impl IntoIterator<Item = Cached<Value>>) -> Vec<Change> {
        let teller = self.teller();
        let now = Timestamp::now();
        objects.into_iter().map(|object| teller.state(ChangeType::Added, now, &object, None)).collect()
    }

    /// Waits until it has a copy of everything. An informer gives a server that says no a few chances; somebody at a
    /// terminal wants to know at once.
    pub(super) fn synced(&self) -> impl Future<Output = Result<Lister<Value>, Error>> + use<> {
        let (informer, mut refused) = (self.informer.clone(), self.refused.clone());
        async move {
            let refusal = async {
                match refused.wait_for(Option::is_some).await {
                    Ok(error) => error.clone(),
                    Err(_) => None,
                }
            };
            tokio::select! {
                biased;
                lister = informer.synced() => lister,
                Some(error) = refusal => Err(error),
            }
        }
    }

    /// Where a field of the object is in what is kept.
    pub(super) fn pointer(&self, field: &str) -> String {
        if self.is_table { format!("/object{field}") } else { field.to_owned() }
    }

    fn teller(&self) -> Teller {
        Teller { resource: self.resource.clone(), is_table: self.is_table }
    }
}

/// Makes changes of events.
struct Teller {
    resource: Arc<Resource>,
    is_table: bool,
}

impl Teller {
    fn change(&self, event: &Event<Value>) -> Change {
        let now = Timestamp::now();
        let (change, old) = match event {
            Event::Added { .. } => (ChangeType::Added, None),
            Event::Updated { old, .. } => (ChangeType::Modified, Some(old)),
            Event::Deleted { .. } => (ChangeType::Deleted, None),
        };
        self.state(change, now, event.object(), old)
    }

    fn state(
        &self,
        change: ChangeType,
        time: Timestamp,
        object: &Cached<Value>,
        old: Option<&Cached<Value>>,
    ) -> Change {
        let cells = match self.is_table {
            // A row that cannot be read is shown without its cells.
            true => object.view::<Cells>().map(|row| row.cells).unwrap_or_default(),
            false => Vec::new(),
        };
        let body = |object: &Cached<Value>| match self.is_table {
            true => Body::of_row(object.object().clone()),
            false => Body::from(object.object().clone()),
        };
        Change {
            change,
            time,
            resource: self.resource.clone(),
            key: object.key().clone(),
            version: object.resource_version().to_string(),
            object: body(object),
            old: old.map(body),
            cells,
        }
    }
}

/// Trying again will not help, until somebody does something about it.
fn is_refusal(error: &Error) -> bool {
    error.is_unauthorized()
        || error.is_forbidden()
        || error.is_not_found()
        || error.is_invalid_request()
        || matches!(error.kind(), ErrorKind::Config)
}

fn resource(target: &Target) -> Resource {
    let api = &target.resource.api;
    Resource {
        plural: api.plural.clone(),
        group: api.group.clone(),
        version: api.version.clone(),
        kind: api.kind.clone(),
        namespaced: target.resource.namespaced,
    }
}
