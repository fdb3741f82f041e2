//! Ctrl-C, SIGTERM and SIGHUP: the first asks for an end, the second does not wait for it.

use tokio_util::sync::CancellationToken;

use crate::failure::Exit;

/// A token that is cancelled when somebody wants the program to end.
pub fn token() -> CancellationToken {
    let token = CancellationToken::new();
    let cancel = token.clone();
    tokio::spawn(async move {
        interrupted().await;
        cancel.cancel();
        interrupted().await;
        std::process::exit(Exit::Interrupted as i32);
    });
    token
}

#[cfg(unix)]
async fn interrupted() {
    use tokio::signal::unix::{SignalKind, signal};

    let listen = |kind| async move {
        match signal(kind) {
            Ok(mut signal) => signal.recv().await,
            Err(_) => std::future::pending().await,
        };
    };
    tokio::select! {
        () = listen(SignalKind::interrupt()) => {}
        () = listen(SignalKind::terminate()) => {}
        () = listen(SignalKind::hangup()) => {}
    }
}

#[cfg(not(unix))]
async fn interrupted() {
    if tokio::signal::ctrl_c().await.is_err() {
        std::future::pending::<()>().await;
    }
}
