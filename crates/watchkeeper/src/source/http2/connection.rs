//! One HTTP/2 connection: its places, its tasks, and the bodies that come over it.

use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response};
use http_body::{Frame, SizeHint};
use hyper::body::Incoming;
use hyper::client::conn::http2;
use hyper::rt::Executor;
use hyper_util::rt::TokioTimer;
use kube_client::client::Body;
use tokio::sync::Notify;
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::error::{Error, ErrorKind};
use crate::source::client::{ClientOptions, wire_error};
use crate::source::connect::Io;

/// How much of one answer may be under way before it is read.
const STREAM_WINDOW: u32 = 512 << 10;

/// How long a connection that nobody needs may take to say goodbye.
pub(super) const CLOSE_GRACE: Duration = Duration::from_secs(1);

pub(super) struct Connection {
    sender: http2::SendRequest<Body>,
    in_use: AtomicUsize,
    /// Ours, or what the server allows if that is less.
    limit: Arc<AtomicUsize>,
    answered: AtomicBool,
    _tasks: DropGuard,
}

impl Connection {
    /// Begins to speak HTTP/2. The server has not said a word by the end of this.
    pub(super) async fn open(io: Io, options: &ClientOptions) -> Result<Self, Error> {
        let token = CancellationToken::new();
        let tasks = Tasks(token.clone());
        let guard = token.drop_guard();
        let most = options.http2_max_streams.max(1);
        // All streams together may fill the connection: a watch whose reader is slow must not stop the others.
        let streams = u32::try_from(most).unwrap_or(u32::MAX);
        let connection_window = STREAM_WINDOW.saturating_mul(streams).min((1 << 31) - 1);
        let (sender, connection) = http2::Builder::new(tasks.clone())
            .timer(TokioTimer::new())
            .initial_stream_window_size(STREAM_WINDOW)
            .initial_connection_window_size(connection_window)
            .keep_alive_interval(options.http2_ping_interval)
            .keep_alive_timeout(options.http2_ping_timeout)
            .keep_alive_while_idle(true)
            .handshake(io)
            .await
            .map_err(|error| Error::transport(ErrorKind::Connect, &error))?;
        let limit = Arc::new(AtomicUsize::new(most));
        tasks.execute(drive(connection, Arc::clone(&limit), most));
        Ok(Self { sender, in_use: AtomicUsize::new(0), limit, answered: AtomicBool::new(false), _tasks: guard })
    }

    pub(super) fn is_closed(&self) -> bool {
        self.sender.is_closed()
    }

    /// A place, if one is free. `freed` is told when it is free again.
    pub(super) fn lease(self: &Arc<Self>, freed: &Arc<Notify>) -> Option<Lease> {
        let limit = self.limit.load(Ordering::Relaxed);
        let more = |in_use| (in_use < limit).then_some(in_use + 1);
        self.in_use.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more).ok()?;
        Some(Lease { connection: Arc::clone(self), freed: Arc::clone(freed) })
    }
}

/// A place on a connection.
pub(super) struct Lease {
    connection: Arc<Connection>,
    freed: Arc<Notify>,
}

impl Lease {
    /// Sends a request. With the error comes the request if it may be sent on another connection: not a byte of it has
    /// left, and this connection has worked before, so that closing it was no answer to us.
    pub(super) async fn send(
        self,
        request: Request<Body>,
    ) -> Result<Response<LeasedBody>, (Error, Option<Request<Body>>)> {
        let connection = &self.connection;
        match connection.sender.clone().try_send_request(request).await {
            Ok(response) => {
                connection.answered.store(true, Ordering::Relaxed);
                Ok(response.map(|body| LeasedBody { body, lease: Some(self) }))
            }
            Err(mut error) => {
                let unsent = error.take_message().filter(|_| connection.answered.load(Ordering::Relaxed));
                Err((wire_error(error.into_error()), unsent))
            }
        }
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        self.connection.in_use.fetch_sub(1, Ordering::Relaxed);
        self.freed.notify_one();
    }
}

/// Runs a connection, and keeps to the number of streams that the server allows: what is above it would wait in hyper,
/// out of sight, while another connection could be opened.
async fn drive(connection: http2::Connection<Io, Body, Tasks>, limit: Arc<AtomicUsize>, most: usize) {
    let mut connection = pin!(connection);
    // How it ended is told to the requests and the bodies.
    let _ = std::future::poll_fn(|cx| {
        let ended = connection.as_mut().poll(cx);
        limit.store(connection.current_max_send_streams().clamp(1, most), Ordering::Relaxed);
        ended
    })
    .await;
}

/// Starts hyper's tasks such that they end with the connection.
#[derive(Clone)]
struct Tasks(CancellationToken);

impl<F> Executor<F> for Tasks
where
    F: Future<Output = ()> + Send + 'static,
{
    fn execute(&self, task: F) {
        let token = self.0.clone();
        tokio::spawn(async move {
            let over = async {
                token.cancelled().await;
                tokio::time::sleep(CLOSE_GRACE).await;
            };
            tokio::select! {
                () = task => {}
                () = over => {}
            }
        });
    }
}

/// The body of an answer, which keeps the place that the request has on its connection.
pub(crate) struct LeasedBody {
    body: Incoming,
    lease: Option<Lease>,
}

impl http_body::Body for LeasedBody {
    type Data = Bytes;
    type Error = Error;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Error>>> {
        let frame = ready!(Pin::new(&mut self.body).poll_frame(cx));
        if !matches!(frame, Some(Ok(_))) {
            self.lease = None;
        }
        Poll::Ready(frame.map(|frame| frame.map_err(wire_error)))
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
