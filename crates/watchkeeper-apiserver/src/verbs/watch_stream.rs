//! The events of a watch, one line each, for as long as it lasts.
//!
//! Nothing runs for a watch but this stream: whoever reads the body drives it. What is written meanwhile waits in the
//! subscription's queue, which is bounded: a reader that is too slow finds the stream ended behind what was queued.

use std::sync::Arc;

use bytes::Bytes;
use futures::stream::{self, BoxStream, StreamExt};
use tokio::time::{Instant, sleep_until};

use crate::clock::later;
use crate::kinds::Kind;
use crate::server::Inner;
use crate::storage::{Delivery, EventType, Shape, Stored, Subscription, event_line};
use crate::tables::{Bookmark, Table};

/// When bookmarks are due.
pub(super) struct Bookmarks {
    /// The one behind the initial events has not been sent.
    pub(super) initial_end: bool,
    /// The one shortly before the end.
    pub(super) last: Option<Instant>,
    pub(super) next: Instant,
}

/// A watch that shows rows. Its lines are made for it alone: they say how old the objects are.
pub(super) struct TableEvents {
    table: Table,
    /// The columns stand in the first line.
    columns_due: bool,
}

/// The state of a watch.
pub(super) struct WatchStream {
    pub(super) server: Arc<Inner>,
    pub(super) kind: Arc<Kind>,
    pub(super) shape: Shape,
    /// Set, if objects are shown as rows.
    pub(super) table: Option<TableEvents>,
    pub(super) subscription: Subscription,
    /// Changes up to here are known to the client, even if they have not happened yet.
    pub(super) after: u64,
    pub(super) bookmarks: Option<Bookmarks>,
    pub(super) deadline: Instant,
}

impl WatchStream {
    pub(super) fn lines(self) -> BoxStream<'static, Bytes> {
        stream::unfold(self, |mut watch| async move { watch.next().await.map(|line| (line, watch)) }).boxed()
    }

    /// The next line; none at the end.
    async fn next(&mut self) -> Option<Bytes> {
        let stopping = self.server.stopping.clone();
        if stopping.is_cancelled() || Instant::now() >= self.deadline {
            return None;
        }
        if let Some(object) = self.subscription.initial.pop_front() {
            return Some(match &mut self.table {
                Some(table) => table.line(EventType::Added, &self.kind, &object, &self.server),
                None => event_line(EventType::Added, &self.kind, &object, &self.shape),
            });
        }
        if let Some(bookmarks) = &mut self.bookmarks
            && std::mem::take(&mut bookmarks.initial_end)
        {
            return Some(self.bookmark(self.subscription.revision, true));
        }
        if let Some(delivery) = self.subscription.backlog.pop_front() {
            return Some(self.line(&delivery));
        }
        loop {
            let bookmark = self.bookmarks.as_ref().map_or(self.deadline, Bookmarks::due);
            tokio::select! {
                biased;
                () = stopping.cancelled() => return None,
                delivery = self.subscription.live.recv() => match delivery {
                    None => return None,
                    Some(delivery) if delivery.change.revision() <= self.after => {}
                    Some(delivery) => return Some(self.line(&delivery)),
                },
                () = sleep_until(self.deadline) => return None,
                () = sleep_until(bookmark) => {
                    // Only when everything before it has been told may a bookmark say so.
                    if let Some(revision) = self.server.storage.progress(&self.subscription) {
                        let pause = self.server.bookmark_pause();
                        if let Some(bookmarks) = &mut self.bookmarks {
                            bookmarks.sent(pause);
                        }
                        // Who asked for a version that is yet to come is promised nothing before it has come.
                        if revision >= self.after {
                            return Some(self.bookmark(revision, false));
                        }
                    }
                }
            }
        }
    }

    fn line(&mut self, delivery: &Delivery) -> Bytes {
        let Delivery { event, change } = delivery;
        match &mut self.table {
            Some(table) => match change.state(*event) {
                Some(object) => table.line(*event, &self.kind, &object, &self.server),
                None => Bytes::new(),
            },
            None => change.line(*event, &self.kind, &self.shape),
        }
    }

    /// An object that has nothing but a version, and the mark of the end of the initial events.
    fn bookmark(&mut self, revision: u64, initial_end: bool) -> Bytes {
        let (kind, api_version) = match self.shape.partial {
            true => ("PartialObjectMetadata", "meta.k8s.io/v1"),
            false => (self.kind.kind.as_str(), self.shape.version_of(&self.kind).api_version.as_str()),
        };
        let custom = self.kind.custom && !self.shape.partial;
        let metadata = bookmark_metadata(revision, initial_end, custom);
        let object = match custom {
            false => format!(r#"{{"kind":"{kind}","apiVersion":"{api_version}","metadata":{metadata}}}"#),
            true => format!(r#"{{"apiVersion":"{api_version}","kind":"{kind}","metadata":{metadata}}}"#),
        };
        match &mut self.table {
            Some(table) => {
                let metadata = bookmark_metadata(revision, initial_end, false);
                table.bookmark(&self.kind, Bookmark { revision, metadata: &metadata, object: &object }, &self.server)
            }
            None => format!("{{\"type\":\"BOOKMARK\",\"object\":{object}}}\n").into(),
        }
    }
}

impl TableEvents {
    pub(super) fn new(table: Table) -> Self {
        Self { table, columns_due: true }
    }

    fn line(&mut self, event: EventType, kind: &Arc<Kind>, object: &Stored, server: &Inner) -> Bytes {
        let columns = std::mem::take(&mut self.columns_due);
        self.table.event(event, kind, object, server.clock.timestamp(), columns)
    }

    fn bookmark(&mut self, kind: &Arc<Kind>, bookmark: Bookmark<'_>, server: &Inner) -> Bytes {
        let columns = std::mem::take(&mut self.columns_due);
        self.table.bookmark(kind, bookmark, server.clock.timestamp(), columns)
    }
}

impl Bookmarks {
    /// When the next one is to be sent.
    fn due(&self) -> Instant {
        self.last.map_or(self.next, |last| last.min(self.next))
    }

    /// One was sent: the next is due after a pause.
    fn sent(&mut self, pause: std::time::Duration) {
        let now = Instant::now();
        self.last = self.last.filter(|last| *last > now);
        self.next = later(now, pause);
    }
}

/// The metadata of a bookmark; that of custom objects is sorted.
fn bookmark_metadata(revision: u64, initial_end: bool, sorted: bool) -> String {
    let annotations = r#""annotations":{"k8s.io/initial-events-end":"true"}"#;
    match (initial_end, sorted) {
        (false, _) => format!(r#"{{"resourceVersion":"{revision}"}}"#),
        (true, false) => format!(r#"{{"resourceVersion":"{revision}",{annotations}}}"#),
        (true, true) => format!(r#"{{{annotations},"resourceVersion":"{revision}"}}"#),
    }
}
