//! How a handler is called.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::Ordering::Relaxed;

use futures::future::BoxFuture;
use tokio::runtime::Handle;
use tracing::Instrument as _;

use super::handler::EventHandler;
use super::lease::Lease;
use super::listener::Inbox;
use super::sieve::Sieve;
use crate::defaults::HANDLER_PANIC_PAUSE;

/// A handler that waits to be started.
pub(super) struct Runner {
    run: BoxFuture<'static, ()>,
    blocking: bool,
    name: Box<str>,
}

impl Runner {
    pub(super) fn new<K: 'static>(
        inbox: Inbox,
        handler: impl EventHandler<K>,
        sieve: Sieve<K>,
        blocking: bool,
    ) -> Self {
        let name = inbox.listener().name.clone();
        let span = tracing::info_span!("handler", name = &*name);
        Self { run: Box::pin(run(inbox, handler, sieve).instrument(span)), blocking, name }
    }

    /// Gives it a task or a thread, and the informer a reason to run. However that ends, the listener is told.
    pub(super) fn start(self, runtime: &Handle, lease: Lease) {
        let Self { run, blocking, name } = self;
        let run = async move {
            let _lease = lease;
            run.await;
        };
        if !blocking {
            runtime.spawn(run);
            return;
        }
        let on = runtime.clone();
        let thread = std::thread::Builder::new().name(name.chars().filter(|c| *c != '\0').take(64).collect());
        if let Err(error) = thread.spawn(move || on.block_on(run)) {
            tracing::error!(handler = &*name, %error, "no thread can be had for a handler, which will hear nothing");
        }
    }
}

/// What a panic carries may panic when it is dropped, and nobody would catch that.
pub(super) fn forget(panic: Box<dyn Any + Send>) {
    if let Err(another) = catch_unwind(AssertUnwindSafe(|| drop(panic))) {
        std::mem::forget(another);
    }
}

/// Calls the handler with one event after the other. The handler is dropped before the inbox, which says that all is over.
async fn run<K: 'static>(mut inbox: Inbox, mut handler: impl EventHandler<K>, mut sieve: Sieve<K>) {
    while inbox.next().await {
        let call = AssertUnwindSafe(|| {
            if let Some(event) = inbox.event().and_then(|event| sieve.pass(event)) {
                handler.on_event(&event);
            }
        });
        if let Err(panic) = catch_unwind(call) {
            forget(panic);
            inbox.listener().panics.fetch_add(1, Relaxed);
            let name = &*inbox.listener().name;
            let key = inbox.event::<K>().map(|event| event.key().to_string());
            tracing::error!(
                handler = name,
                object = key,
                "a handler panicked, and goes on with the next event after a pause"
            );
            tokio::select! {
                () = tokio::time::sleep(HANDLER_PANIC_PAUSE) => {}
                () = inbox.listener().removed.raised() => {}
            }
        }
    }
}
