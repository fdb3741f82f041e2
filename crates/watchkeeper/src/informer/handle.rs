//! What whoever added a handler has of it.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use super::listener::Listener;
use crate::{Error, ErrorKind};

/// A handler that was added to an informer: client-go's `ResourceEventHandlerRegistration`. Cheap to clone.
///
/// Dropping it changes nothing: the handler stays, and keeps the informer running. [`guard`](Self::guard) makes something of
/// it whose drop removes the handler.
#[derive(Clone)]
pub struct HandlerHandle {
    pub(super) listener: Arc<Listener>,
    pub(super) informer: Arc<str>,
}

impl HandlerHandle {
    /// What logs and metrics call the handler.
    pub fn name(&self) -> &str {
        &self.listener.name
    }

    /// The handler has been called with everything that there was at first: the informer is synced, and each call with
    /// [`Cause::Initial`](crate::Cause::Initial) has returned. It stays so.
    pub fn has_synced(&self) -> bool {
        self.listener.synced.is_raised()
    }

    /// Waits until [`has_synced`](Self::has_synced). An error if the handler is removed, or the informer stopped, before.
    pub async fn synced(&self) -> Result<(), Error> {
        tokio::select! {
            biased;
            () = self.listener.synced.raised() => Ok(()),
            () = self.listener.removed.raised() => Err(Error::new(
                ErrorKind::Stopped,
                format_args!(
                    "handler {} of the informer of {} was removed before it had heard of everything",
                    self.name(),
                    self.informer
                ),
            )),
        }
    }

    /// How many events the handler has not been called with yet.
    pub fn backlog(&self) -> usize {
        self.listener.backlog()
    }

    /// How many events it was called with, or passed over because of its filter.
    pub fn delivered(&self) -> u64 {
        self.listener.delivered.load(Relaxed)
    }

    /// How often it panicked.
    pub fn panics(&self) -> u64 {
        self.listener.panics.load(Relaxed)
    }

    /// Removes the handler: client-go's `RemoveEventHandler`. What waits for it is dropped. It may be in the middle of a call,
    /// which this does not wait for; there will be no other. To remove it again does nothing.
    pub fn remove(&self) {
        self.listener.remove();
    }

    /// Removes the handler, and waits until its last call has returned and it has been dropped: client-go's
    /// `ShutDownEventHandler`. A handler that waits for this in one of its calls waits for ever: it calls
    /// [`remove`](Self::remove), or lets a task of its own wait.
    pub async fn remove_and_wait(&self) {
        self.listener.remove();
        self.listener.done.raised().await;
    }

    /// The handler was removed, or the informer was stopped.
    pub fn is_removed(&self) -> bool {
        self.listener.removed.is_raised()
    }

    /// Removes the handler when this is dropped.
    pub fn guard(self) -> HandlerGuard {
        HandlerGuard(self)
    }
}

impl fmt::Debug for HandlerHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HandlerHandle")
            .field("informer", &self.informer)
            .field("name", &self.name())
            .field("synced", &self.has_synced())
            .field("backlog", &self.backlog())
            .finish_non_exhaustive()
    }
}

/// Removes a handler when it is dropped.
#[derive(Debug)]
#[must_use = "dropping the guard removes the handler"]
pub struct HandlerGuard(HandlerHandle);

impl std::ops::Deref for HandlerGuard {
    type Target = HandlerHandle;

    fn deref(&self) -> &HandlerHandle {
        &self.0
    }
}

impl Drop for HandlerGuard {
    fn drop(&mut self) {
        self.0.remove();
    }
}
