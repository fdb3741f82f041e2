//! Ctrl-C, SIGTERM and SIGHUP: the first asks for an end, the second does not wait for it.

use std::time::Duration;

use tokio_util::sync::CancellationToken;

use crate::failure::Exit;
use crate::screen;

/// Signals that come so soon after the first are the same one.
const AT_ONCE: Duration = Duration::from_secs(1);

/// A token that is cancelled when somebody wants the program to end.
pub(crate) fn token() -> CancellationToken {
    let token = CancellationToken::new();
    let cancel = token.clone();
    let mut signals = Signals::listen();
    tokio::spawn(async move {
        signals.next().await;
        cancel.cancel();
        // Whoever closes a terminal tells more than once, and does not mean that there is no time to tidy up.
        tokio::time::sleep(AT_ONCE).await;
        signals.next().await;
        // Nothing is dropped from here on.
        screen::give_back();
        std::process::exit(Exit::Interrupted as i32);
    });
    token
}

/// Listened to once and for all, so that none is lost in between.
#[cfg(unix)]
struct Signals(Vec<tokio::signal::unix::Signal>);

#[cfg(unix)]
impl Signals {
    fn listen() -> Self {
        use tokio::signal::unix::{SignalKind, signal};

        let kinds = [SignalKind::interrupt(), SignalKind::terminate(), SignalKind::hangup()];
        // One that cannot be listened to ends the program, as it does by itself.
        Self(kinds.into_iter().filter_map(|kind| signal(kind).ok()).collect())
    }

    async fn next(&mut self) {
        let received = std::future::poll_fn(|context| {
            let any = self.0.iter_mut().any(|signal| signal.poll_recv(context).is_ready());
            if any { std::task::Poll::Ready(()) } else { std::task::Poll::Pending }
        });
        received.await;
    }
}

#[cfg(not(unix))]
struct Signals;

#[cfg(not(unix))]
impl Signals {
    fn listen() -> Self {
        Self
    }

    async fn next(&mut self) {
        if tokio::signal::ctrl_c().await.is_err() {
            std::future::pending::<()>().await;
        }
    }
}
