//! One HTTP/2 connection: its places, its tasks, and the bodies that come over it.

use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
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
use tokio::runtime::Handle;
use tokio::sync::Notify;
use tokio_util::sync::{CancellationToken, DropGuard};

use super::heard::{Heard, Listening};
use crate::error::{Error, ErrorKind};
use crate::source::client::{ClientOptions, wire_error};
use crate::source::connect::Io;

/// How much of one answer may be under way before it is read.
const STREAM_WINDOW: u32 = 512 << 10;

/// How long a connection that nobody needs may take to say goodbye.
pub(super) const CLOSE_GRACE: Duration = Duration::from_secs(1);

/// How often a new connection is asked whether the server has spoken.
const SETTINGS_POLL: Duration = Duration::from_millis(1);

pub(super) struct Connection {
    sender: http2::SendRequest<Body>,
    in_use: AtomicUsize,
    /// Our own limit of streams.
    most: usize,
    /// Knows the server's. Weak, because the connection counts as open for as long as this is there.
    driver: Weak<Mutex<Driver>>,
    answered: AtomicBool,
    heard: Heard,
    ping_timeout: Duration,
    _tasks: DropGuard,
}

type Driver = http2::Connection<Listening, Body, Tasks>;

impl Connection {
    /// Begins to speak HTTP/2, and waits until the server does. Its tasks go to `runtime`.
    pub(super) async fn open(io: Io, options: &ClientOptions, runtime: &Handle) -> Result<Self, Error> {
        let limit = options.connect_timeout;
        let opening = async {
            let connection = Self::begin(io, options, runtime).await?;
            connection.heard().await?;
            Ok(connection)
        };
        tokio::time::timeout(limit, opening)
            .await
            .unwrap_or_else(|_| Err(Error::new(ErrorKind::Connect, format!("no word of HTTP/2 within {limit:?}"))))
    }

    async fn begin(io: Io, options: &ClientOptions, runtime: &Handle) -> Result<Self, Error> {
        let token = CancellationToken::new();
        let tasks = Tasks { token: token.clone(), runtime: runtime.clone() };
        let guard = token.drop_guard();
        let most = options.http2_max_streams.max(1);
        // All streams together may fill the connection: a watch whose reader is slow must not stop the others.
        let streams = u32::try_from(most).unwrap_or(u32::MAX);
        let connection_window = STREAM_WINDOW.saturating_mul(streams).min((1 << 31) - 1);
        let (io, heard) = Listening::new(io);
        let (sender, connection) = http2::Builder::new(tasks.clone())
            .timer(TokioTimer::new())
            // Nothing is known before the server has spoken: see `heard`.
            .initial_max_send_streams(0)
            .initial_stream_window_size(STREAM_WINDOW)
            .initial_connection_window_size(connection_window)
            .keep_alive_interval(options.http2_ping_interval)
            .keep_alive_timeout(options.http2_ping_timeout)
            .keep_alive_while_idle(true)
            .handshake(io)
            .await
            .map_err(|error| Error::transport(ErrorKind::Connect, &error))?;
        let connection = Arc::new(Mutex::new(connection));
        let driver = Arc::downgrade(&connection);
        tasks.execute(drive(connection));
        let (in_use, answered) = (AtomicUsize::new(0), AtomicBool::new(false));
        let ping_timeout = options.http2_ping_timeout;
        Ok(Self { sender, in_use, most, driver, answered, heard, ping_timeout, _tasks: guard })
    }

    /// Waits for the server's settings. Requests that are sent before them may be more than it allows, and those would
    /// wait in hyper, out of sight, until a watch ends.
    async fn heard(&self) -> Result<(), Error> {
        while !self.is_closed() {
            if self.limit() > 0 {
                return Ok(());
            }
            // Nobody is woken when they come.
            tokio::time::sleep(SETTINGS_POLL).await;
        }
        Err(Error::new(ErrorKind::Disconnected, "the server hung up before it spoke HTTP/2"))
    }

    /// How many streams there may be now. The server can change its mind at any time.
    fn limit(&self) -> usize {
        let Some(driver) = self.driver.upgrade() else { return self.most };
        lock(&driver).current_max_send_streams().min(self.most)
    }

    pub(super) fn is_closed(&self) -> bool {
        self.sender.is_closed()
    }

    /// What hyper says about a body that came over it. Of a ping without an answer it does not tell them.
    fn error(&self, error: hyper::Error) -> Error {
        let error = wire_error(error);
        let silence = self.heard.silence();
        if error.kind() == ErrorKind::Disconnected && silence >= self.ping_timeout {
            return Error::silent(silence);
        }
        error
    }

    /// A place, if one is free. `freed` is told when it is free again.
    pub(super) fn lease(self: &Arc<Self>, freed: &Arc<Notify>) -> Option<Lease> {
        let limit = self.limit();
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
    /// left, or the server says that it has not looked at it; and this connection has worked before, so that closing it was no
    /// answer to us.
    pub(super) async fn send(
        self,
        request: Request<Body>,
    ) -> Result<Response<LeasedBody>, (Error, Option<Request<Body>>)> {
        let connection = &self.connection;
        let copy = copy(&request);
        match connection.sender.clone().try_send_request(request).await {
            Ok(response) => {
                connection.answered.store(true, Ordering::Relaxed);
                Ok(response.map(|body| LeasedBody { body, lease: Some(self) }))
            }
            Err(mut error) => {
                let unsent = error.take_message();
                let error = error.into_error();
                let again = unsent.or_else(|| copy.filter(|_| was_left_alone(&error)));
                Err((wire_error(error), again.filter(|_| connection.answered.load(Ordering::Relaxed))))
            }
        }
    }
}

/// A request without a body, once more.
fn copy(request: &Request<Body>) -> Option<Request<Body>> {
    if !http_body::Body::is_end_stream(request.body()) {
        return None;
    }
    let mut copy = Request::new(Body::empty());
    copy.method_mut().clone_from(request.method());
    copy.uri_mut().clone_from(request.uri());
    copy.headers_mut().clone_from(request.headers());
    copy.extensions_mut().clone_from(request.extensions());
    Some(copy)
}

/// The server has said in a GOAWAY up to which request it has looked, and this one is behind that. (Those before it are told
/// otherwise when their connection ends.)
fn was_left_alone(error: &hyper::Error) -> bool {
    let cause = std::error::Error::source(error).and_then(|cause| cause.downcast_ref::<h2::Error>());
    cause.is_some_and(|cause| cause.is_go_away() && cause.is_remote() && cause.reason() == Some(h2::Reason::NO_ERROR))
}

impl Drop for Lease {
    fn drop(&mut self) {
        self.connection.in_use.fetch_sub(1, Ordering::Relaxed);
        self.freed.notify_one();
    }
}

/// Runs a connection.
async fn drive(connection: Arc<Mutex<Driver>>) {
    // How it ended is told to the requests and the bodies.
    let _ = std::future::poll_fn(|cx| Pin::new(&mut *lock(&connection)).poll(cx)).await;
}

fn lock(driver: &Mutex<Driver>) -> MutexGuard<'_, Driver> {
    driver.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Starts hyper's tasks such that they end with the connection.
#[derive(Clone)]
struct Tasks {
    token: CancellationToken,
    runtime: Handle,
}

impl<F> Executor<F> for Tasks
where
    F: Future<Output = ()> + Send + 'static,
{
    fn execute(&self, task: F) {
        let token = self.token.clone();
        self.runtime.spawn(async move {
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
        if matches!(frame, Some(Ok(_))) {
            return Poll::Ready(frame.map(|frame| frame.map_err(wire_error)));
        }
        let lease = self.lease.take();
        let error = |error| match &lease {
            Some(lease) => lease.connection.error(error),
            None => wire_error(error),
        };
        Poll::Ready(frame.map(|frame| frame.map_err(error)))
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
