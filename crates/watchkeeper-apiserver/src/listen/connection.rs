//! One connection: from its handshake to its end.
//!
//! hyper speaks HTTP on it. What hyper does not know is when it has waited long enough: its own timeout is for headers of
//! HTTP/1.1 only, and does not see a connection that never says which HTTP it speaks. So each connection counts its
//! requests, and one that has had none for too long is closed, whatever it is doing.

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use hyper::rt::Executor;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::sync::watch;
use tokio::time::timeout;
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::gate::Gate;
use super::patient::Patient;
use super::socket::{Line, Socket};

/// How long a connection that has no request when it is closed has to take note.
const LINGER: Duration = Duration::from_secs(1);
/// hyper takes no less.
const LEAST_HEADER_BYTES: usize = 8 * 1024;

/// All tasks of a port but the one that accepts. None outlives the port.
#[derive(Clone)]
pub(super) struct Tasks {
    pub(super) tracker: TaskTracker,
    /// Ends them all at once.
    pub(super) abort: CancellationToken,
}

/// Counts a request for as long as it is held.
pub(super) struct Busy(Arc<watch::Sender<usize>>);

impl Tasks {
    pub(super) fn spawn<F>(&self, task: F)
    where
        F: Future + Send + 'static,
        F::Output: Send + 'static,
    {
        let abort = self.abort.clone();
        self.tracker.spawn(async move { abort.run_until_cancelled_owned(task).await.map(drop) });
    }
}

/// hyper has a task for each request of an HTTP/2 connection.
impl<F> Executor<F> for Tasks
where
    F: Future + Send + 'static,
    F::Output: Send + 'static,
{
    fn execute(&self, task: F) {
        self.spawn(task);
    }
}

impl Busy {
    fn new(requests: &Arc<watch::Sender<usize>>) -> Self {
        requests.send_modify(|requests| *requests += 1);
        Self(requests.clone())
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        self.0.send_modify(|requests| *requests -= 1);
    }
}

/// Serves a connection to its end, or until all connections are cut.
pub(super) async fn serve(stream: TcpStream, line: Arc<Line>, tls: Option<TlsAcceptor>, gate: Arc<Gate>, tasks: Tasks) {
    // Events are small, and are not to wait for one another.
    let _ = stream.set_nodelay(true);
    let stream = Socket::new(stream, line.clone());
    tokio::select! {
        biased;
        () = line.down() => {}
        () = speak(stream, &line, tls, gate, tasks) => {}
    }
}

async fn speak(stream: Socket, line: &Arc<Line>, tls: Option<TlsAcceptor>, gate: Arc<Gate>, tasks: Tasks) {
    let Some(tls) = tls else {
        return http(stream, line, gate, tasks).await;
    };
    let handshake = timeout(gate.limits.header_timeout, tls.accept(stream));
    match gate.closing.run_until_cancelled(handshake).await {
        Some(Ok(Ok(stream))) => http(stream, line, gate, tasks).await,
        Some(Ok(Err(error))) => tracing::debug!(%error, "a TLS handshake failed"),
        Some(Err(_)) => tracing::debug!("a TLS handshake took too long"),
        None => {}
    }
}

async fn http<S>(stream: S, line: &Arc<Line>, gate: Arc<Gate>, tasks: Tasks)
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let stream = Patient::new(stream, gate.limits.write_timeout);
    let requests = Arc::new(watch::Sender::new(0));
    let count = requests.subscribe();
    let patience = silence(count.clone(), gate.limits.header_timeout, gate.limits.idle_timeout);
    let closing = gate.closing.clone();
    let builder = builder(&gate, tasks);
    let service = service_fn(move |request| {
        let (gate, line, busy) = (gate.clone(), line.clone(), Busy::new(&requests));
        async move { gate.answer(request, line, busy).await }
    });
    let mut connection = pin!(builder.serve_connection(TokioIo::new(stream), service));
    tokio::select! {
        biased;
        result = connection.as_mut() => return log(result),
        () = line.ended() => return,
        () = closing.cancelled() => {}
        () = patience => {}
    }
    connection.as_mut().graceful_shutdown();
    tokio::select! {
        biased;
        result = connection => log(result),
        () = line.ended() => {}
        // Answers under way are sent. But somebody in the middle of a request's head may never come to its end.
        () = silence(count, LINGER, LINGER) => {}
    }
}

fn log<E: std::fmt::Display>(result: Result<(), E>) {
    if let Err(error) = result {
        tracing::debug!(%error, "a connection ended early");
    }
}

fn builder(gate: &Gate, tasks: Tasks) -> auto::Builder<Tasks> {
    let limits = &gate.limits;
    let mut builder = auto::Builder::new(tasks);
    builder
        .http1()
        // It would count a pause between requests as a slow header; `silence` knows better.
        .header_read_timeout(None)
        .max_buf_size(LEAST_HEADER_BYTES.max(limits.header_bytes as usize))
        .max_headers(limits.headers);
    builder
        .http2()
        .timer(TokioTimer::new())
        .max_header_list_size(limits.header_bytes.max(LEAST_HEADER_BYTES as u32))
        .max_concurrent_streams(limits.http2_streams);
    builder
}

/// Returns once there was no request for too long.
async fn silence(mut requests: watch::Receiver<usize>, first: Duration, later: Duration) {
    let mut patience = first;
    loop {
        // Not marked as seen: a request that came and went before this line still counts as a change.
        let is_busy = *requests.borrow() > 0;
        let changed = match is_busy {
            true => requests.changed().await,
            false => match timeout(patience, requests.changed()).await {
                Ok(changed) => changed,
                Err(_) => return,
            },
        };
        if changed.is_err() {
            // The connection is gone, and with it this function's caller in a moment.
            return;
        }
        patience = later;
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::{Instant, sleep};

    use super::*;

    const FIRST: Duration = Duration::from_secs(3);
    const LATER: Duration = Duration::from_secs(9);

    #[tokio::test(start_paused = true)]
    async fn a_connection_without_a_request_is_silent_after_the_first_patience() {
        let requests = watch::Sender::new(0);
        let began = Instant::now();
        silence(requests.subscribe(), FIRST, LATER).await;
        assert_eq!(began.elapsed(), FIRST);
    }

    #[tokio::test(start_paused = true)]
    async fn a_request_that_is_over_before_anybody_looked_was_the_first() {
        let requests = Arc::new(watch::Sender::new(0));
        let count = requests.subscribe();
        drop(Busy::new(&requests));
        let began = Instant::now();
        silence(count, FIRST, LATER).await;
        assert_eq!(began.elapsed(), LATER);
    }

    #[tokio::test(start_paused = true)]
    async fn no_request_is_too_long_and_no_pause_is_counted_twice() {
        let requests = Arc::new(watch::Sender::new(0));
        let began = Instant::now();
        let silence = tokio::spawn(silence(requests.subscribe(), FIRST, LATER));
        sleep(Duration::from_secs(2)).await;
        let watch = Busy::new(&requests);
        sleep(Duration::from_secs(3600)).await;
        drop(watch);
        sleep(Duration::from_secs(8)).await;
        // Over before anybody looked: it counts nevertheless.
        drop(Busy::new(&requests));
        silence.await.unwrap();
        assert_eq!(began.elapsed(), Duration::from_secs(2 + 3600 + 8) + LATER);
    }
}
