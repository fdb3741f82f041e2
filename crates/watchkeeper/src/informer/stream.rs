//! Events for async code.

use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll};

use futures::stream::{self, BoxStream, Stream, StreamExt as _};

use super::handle::HandlerHandle;
use super::lease::Lease;
use super::listener::Inbox;
use super::sieve::Sieve;
use crate::Event;

/// The events of an informer, as a stream: see [`SharedInformer::events`](crate::SharedInformer::events).
///
/// It keeps the informer running, and ends when that is stopped. What is not taken waits, as the
/// [buffer](crate::HandlerOptions::buffer) says. Dropping it is the end of it.
pub struct EventStream<K> {
    events: BoxStream<'static, Event<K>>,
    handle: HandlerHandle,
    _lease: Lease,
}

impl<K: 'static> EventStream<K> {
    pub(super) fn new(inbox: Inbox, sieve: Sieve<K>, handle: HandlerHandle, lease: Lease) -> Self {
        let events = stream::unfold((inbox, sieve), |(mut inbox, mut sieve)| async {
            loop {
                if !inbox.next().await {
                    return None;
                }
                let event = inbox.event().and_then(|event| sieve.pass(event));
                if let Some(event) = event.map(|event| event.into_owned().into_kept()) {
                    return Some((event, (inbox, sieve)));
                }
            }
        });
        // One may ask again after the end.
        Self { events: events.fuse().boxed(), handle, _lease: lease }
    }
}

impl<K> EventStream<K> {
    /// The next event, or `None` when the informer has been stopped. May be dropped and called again.
    pub async fn next(&mut self) -> Option<Event<K>> {
        self.events.next().await
    }

    /// How it goes: whether everything that there was at first has been taken, how much waits. An event counts as dealt
    /// with when the next one is asked for.
    pub fn handle(&self) -> &HandlerHandle {
        &self.handle
    }
}

impl<K> Stream for EventStream<K> {
    type Item = Event<K>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Event<K>>> {
        self.events.poll_next_unpin(cx)
    }
}

impl<K> fmt::Debug for EventStream<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("EventStream").field(&self.handle).finish()
    }
}
