//! Takes connections, until the port is closed; then sees all of them to their end.

use std::sync::Arc;
use std::time::Duration;

use http::StatusCode;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::time::{sleep, timeout};
use tokio_rustls::TlsAcceptor;

use super::connection::{self, Tasks};
use super::gate::Gate;
use super::socket::Line;
use crate::failure::Failure;

/// What to wait after a failure to accept: it is often a lack of files, and one will be closed soon.
const PAUSE: Duration = Duration::from_millis(50);
/// How long a connection that is one too many has to read why.
const GOODBYE: Duration = Duration::from_secs(1);
/// How many of them are told so at once; others are closed without a word.
const GOODBYES: usize = 32;

/// A port that is open.
pub(super) struct Port {
    pub(super) listener: TcpListener,
    pub(super) tls: Option<TlsAcceptor>,
    pub(super) gate: Arc<Gate>,
    pub(super) tasks: Tasks,
    /// How long answers under way may take once the port is closed.
    pub(super) grace: Duration,
}

impl Port {
    /// Runs until the port is closed or the server stops, and no task is left.
    pub(super) async fn run(self) {
        let Self { listener, tls, gate, tasks, grace } = self;
        let stopping = gate.service.server.stopping.clone();
        let connections = Arc::new(Semaphore::new(gate.limits.connections.min(Semaphore::MAX_PERMITS)));
        let goodbyes = Arc::new(Semaphore::new(GOODBYES));
        loop {
            let accepted = tokio::select! {
                biased;
                () = gate.closing.cancelled() => break,
                () = stopping.cancelled() => break,
                accepted = listener.accept() => accepted,
            };
            let stream = match accepted {
                Ok((stream, _)) => stream,
                Err(error) => {
                    tracing::warn!(%error, "a connection could not be accepted");
                    sleep(PAUSE).await;
                    continue;
                }
            };
            if let Ok(permit) = connections.clone().try_acquire_owned() {
                // Before the task runs: no cut from here on is missed.
                let line = Arc::new(Line::new(gate.service.server.faults.cuts()));
                let serving = connection::serve(stream, line, tls.clone(), gate.clone(), tasks.clone());
                tasks.spawn(async move {
                    serving.await;
                    drop(permit);
                });
                continue;
            }
            tracing::warn!(limit = gate.limits.connections, "a connection was refused: there are too many");
            // Somebody who expects TLS could not read it.
            if tls.is_none()
                && let Ok(permit) = goodbyes.clone().try_acquire_owned()
            {
                let goodbye = refuse(stream, gate.limits.connections);
                tasks.spawn(async move {
                    // It is only polite: whether it was read does not matter.
                    let _ = timeout(GOODBYE, goodbye).await;
                    drop(permit);
                });
            }
        }
        drop(listener);
        // When the server was stopped, nobody has said it yet.
        gate.closing.cancel();
        tasks.tracker.close();
        if timeout(grace, tasks.tracker.wait()).await.is_err() {
            tasks.abort.cancel();
            tasks.tracker.wait().await;
        }
    }
}

/// Says why, to whoever speaks HTTP/1.1.
async fn refuse(mut stream: TcpStream, limit: usize) -> std::io::Result<()> {
    let text = format!("there are {limit} connections already, please try again later");
    let body = Failure::new(StatusCode::TOO_MANY_REQUESTS, "TooManyRequests", text).json();
    let head = format!(
        "HTTP/1.1 429 Too Many Requests\r\ncontent-type: application/json\r\nretry-after: 1\r\n\
         connection: close\r\ncontent-length: {}\r\n\r\n",
        body.len()
    );
    stream.write_all(&[head.as_bytes(), &body].concat()).await?;
    stream.shutdown().await?;
    // Closing a socket with unread bytes in it resets the connection, and the answer would be lost.
    let mut unread = [0; 1024];
    while stream.read(&mut unread).await? > 0 {}
    Ok(())
}
