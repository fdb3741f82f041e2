//! What do producers and the consumer of a queue share?
//!
//! One lock around all of it, and two bells: one wakes the consumer when there is something to take, the other those
//! who wait for the first list to be processed. The lock is never held while somebody waits or processes, and the
//! bells are rung after it is released.

use std::pin::pin;
use std::sync::Arc;

use tokio::sync::Notify;

use crate::sync::{Mutex, MutexGuard, lock};

/// There is nothing in the queue, and nothing will come: it is closed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the queue is closed and empty")]
pub struct Closed;

/// The contents of a queue, of either kind.
pub(super) trait Contents {
    /// Nothing can be taken.
    fn is_empty(&self) -> bool;

    fn is_synced(&self) -> bool;

    /// What waits in it.
    type Waiting;

    /// The consumer is gone. Gives back what waited.
    fn clear(&mut self) -> Self::Waiting;

    /// What is not needed any more.
    type Discarded;

    /// Gives back what has been discarded, so that it is dropped when the lock is released.
    fn discarded(&mut self) -> Self::Discarded;
}

pub(super) struct Shared<C> {
    state: Mutex<State<C>>,
    ready: Notify,
    synced: Notify,
    name: Box<str>,
}

struct State<C> {
    contents: C,
    closed: bool,
    /// There is no consumer any more.
    abandoned: bool,
    /// More will come at once: the consumer is not woken yet...
    held: bool,
    /// ... but then.
    to_ring: bool,
}

impl<C: Contents> Shared<C> {
    pub(super) fn new(name: &str, contents: C) -> Arc<Self> {
        Arc::new(Self {
            state: Mutex::new(State { contents, closed: false, abandoned: false, held: false, to_ring: false }),
            ready: Notify::new(),
            synced: Notify::new(),
            name: name.into(),
        })
    }

    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// Looks at the contents.
    pub(super) fn read<R>(&self, look: impl FnOnce(&C) -> R) -> R {
        look(&lock(&self.state).contents)
    }

    /// Changes the contents, unless nobody will ever take anything out.
    pub(super) fn produce(&self, change: impl FnOnce(&mut C)) {
        let state = lock(&self.state);
        if !state.abandoned {
            self.change(state, change);
        }
    }

    /// Changes the contents on behalf of the consumer.
    pub(super) fn consume<R>(&self, change: impl FnOnce(&mut C) -> R) -> R {
        self.change(lock(&self.state), change)
    }

    fn change<R>(&self, mut state: MutexGuard<'_, State<C>>, change: impl FnOnce(&mut C) -> R) -> R {
        let contents = &mut state.contents;
        let (was_empty, was_synced) = (contents.is_empty(), contents.is_synced());
        let result = change(contents);
        let _discarded = contents.discarded();
        let (ready, synced) = (was_empty && !contents.is_empty(), !was_synced && contents.is_synced());
        let ring = ready && !state.held;
        state.to_ring |= ready && state.held;
        drop(state);
        if ring {
            self.ready.notify_one();
        }
        if synced {
            self.synced.notify_waiters();
        }
        result
    }

    /// More will come at once, or not. In between the consumer sleeps on, if it does.
    pub(super) fn hold(&self, hold: bool) {
        let mut state = lock(&self.state);
        state.held = hold;
        let ring = !hold && std::mem::take(&mut state.to_ring);
        drop(state);
        if ring {
            self.ready.notify_one();
        }
    }

    /// Takes something out, with `take`. None if nothing is there.
    pub(super) fn try_take<R>(&self, take: impl FnOnce(&mut C) -> Option<R>) -> Result<Option<R>, Closed> {
        let state = lock(&self.state);
        let closed = state.closed;
        match self.change(state, take) {
            None if closed => Err(Closed),
            taken => Ok(taken),
        }
    }

    /// Takes something out as soon as something is there. Cancel-safe: what is taken is returned without another
    /// wait.
    pub(super) async fn take<R>(&self, take: impl Fn(&mut C) -> Option<R>) -> Result<R, Closed> {
        // A consumer that always finds something must let others run now and then.
        tokio::task::coop::consume_budget().await;
        loop {
            if let Some(taken) = self.try_take(&take)? {
                return Ok(taken);
            }
            // There is one consumer: a bell that rings before this waits is remembered.
            self.ready.notified().await;
        }
    }

    pub(super) async fn until_synced(&self) {
        loop {
            let mut bell = pin!(self.synced.notified());
            bell.as_mut().enable();
            if self.read(C::is_synced) {
                return;
            }
            bell.await;
        }
    }

    pub(super) fn close(&self) {
        lock(&self.state).closed = true;
        self.ready.notify_one();
    }

    pub(super) fn is_closed(&self) -> bool {
        lock(&self.state).closed
    }

    /// The consumer is gone: what waits is dropped, and nothing more is let in.
    pub(super) fn abandon(&self) {
        let mut state = lock(&self.state);
        state.abandoned = true;
        let waited = state.contents.clear();
        drop(state);
        drop(waited);
    }
}

/// All producers of a queue. With the last of them the queue is closed, else its consumer would wait for ever.
pub(super) struct Producers<C: Contents>(pub(super) Arc<Shared<C>>);

impl<C: Contents> Drop for Producers<C> {
    fn drop(&mut self) {
        self.0.close();
    }
}
