//! A connection for each request.
//!
//! hyper-util's pooling client gives every connection a task of its own, and hands each piece of an answer from that task
//! to its reader: at full speed two wake-ups for every event of a watch, which cost more than all the rest that happens
//! to it. So here no connection has a task. Whoever reads the body of an answer drives the connection that it comes over,
//! and a piece is handed on within one poll.
//!
//! A connection whose answer was read to its end waits for the next request. Nobody looks at it meanwhile: that the server
//! has hung up is found out when it is next needed, and a request of which nothing was sent goes to another one. A request
//! that was sent never does, as that would be a retry which nobody sees.

use std::pin::{Pin, pin};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use futures::future::{BoxFuture, FutureExt as _};
use http::uri::{PathAndQuery, Scheme};
use http::{HeaderValue, Request, Response, Uri, header};
use http_body::{Body as _, Frame, SizeHint};
use hyper::body::Incoming;
use hyper::client::conn::http1;
use kube_client::Config;
use kube_client::client::Body;
use tokio::time::Instant;
use tower::{Service, ServiceExt as _};

use super::client::wire_error;
use super::connect::{Connector, Io};
use crate::error::{Error, ErrorKind};

/// How long a connection without a request is kept. kube's number, and Go's.
const IDLE_TIMEOUT: Duration = Duration::from_secs(90);

/// A client of one server. Clones share the connections that wait.
#[derive(Clone)]
pub(super) struct Http1(Arc<Pool>);

struct Pool {
    connector: Connector,
    origin: Uri,
    host: HeaderValue,
    /// The one that was used last is at the end.
    idle: Mutex<Vec<(Connection, Instant)>>,
}

impl Http1 {
    /// A client of the server that `config` names. Connects when it is first used.
    pub(super) fn new(connector: Connector, config: &Config) -> Result<Self, Error> {
        let no_url = || Error::new(ErrorKind::Config, "the server's URL has no scheme or no host");
        let host = host(&config.cluster_url).ok_or_else(no_url)?;
        let mut parts = config.cluster_url.clone().into_parts();
        parts.path_and_query = Some(PathAndQuery::from_static("/"));
        let origin = Uri::from_parts(parts).map_err(|_| no_url())?;
        Ok(Self(Arc::new(Pool { connector, origin, host, idle: Mutex::default() })))
    }
}

impl Service<Request<Body>> for Http1 {
    type Response = Response<DrivenBody>;
    type Error = Error;
    type Future = BoxFuture<'static, Result<Self::Response, Error>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Error>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let pool = Arc::clone(&self.0);
        async move { pool.send(request).await }.boxed()
    }
}

impl Pool {
    async fn send(self: Arc<Self>, mut request: Request<Body>) -> Result<Response<DrivenBody>, Error> {
        // What HTTP/1.1 wants to see: the path in the first line, and the server's name in a header.
        let path = request.uri().path_and_query().cloned().unwrap_or(PathAndQuery::from_static("/"));
        *request.uri_mut() = Uri::from(path);
        request.headers_mut().entry(header::HOST).or_insert_with(|| self.host.clone());

        while let Some(mut connection) = self.take() {
            if !connection.is_ready().await {
                continue;
            }
            match connection.send(request).await {
                Ok(response) => return Ok(response.map(|body| connection.driving(body, self))),
                Err((_, Some(unsent))) => request = unsent,
                Err((error, None)) => return Err(error),
            }
        }
        let mut connection = Connection::open(self.connector.clone().oneshot(self.origin.clone()).await?).await?;
        match connection.send(request).await {
            Ok(response) => Ok(response.map(|body| connection.driving(body, self))),
            Err((error, _)) => Err(error),
        }
    }

    /// One that waits, if there is one.
    fn take(&self) -> Option<Connection> {
        let mut idle = self.idle();
        forget_old(&mut idle);
        idle.pop().map(|(connection, _)| connection)
    }

    fn give_back(&self, connection: Connection) {
        let mut idle = self.idle();
        forget_old(&mut idle);
        idle.push((connection, Instant::now()));
    }

    fn idle(&self) -> MutexGuard<'_, Vec<(Connection, Instant)>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn forget_old(idle: &mut Vec<(Connection, Instant)>) {
    idle.retain(|(_, since)| since.elapsed() < IDLE_TIMEOUT);
}

/// The server's name, with its port where that is not the usual one.
fn host(url: &Uri) -> Option<HeaderValue> {
    let usual = if url.scheme() == Some(&Scheme::HTTPS) { 443 } else { 80 };
    let name = url.host()?;
    match url.port_u16().filter(|port| *port != usual) {
        Some(port) => HeaderValue::from_str(&format!("{name}:{port}")).ok(),
        None => HeaderValue::from_str(name).ok(),
    }
}

/// A connection that goes on when it is polled.
struct Connection {
    sender: http1::SendRequest<Body>,
    driver: http1::Connection<Io, Body>,
}

impl Connection {
    async fn open(io: Io) -> Result<Self, Error> {
        let opened = http1::handshake(io).await;
        let (sender, driver) = opened.map_err(|error| Error::transport(ErrorKind::Connect, &error))?;
        Ok(Self { sender, driver })
    }

    /// It can take a request at once: the server has not hung up, and the last answer is over.
    async fn is_ready(&mut self) -> bool {
        std::future::poll_fn(|cx| {
            let is_over = Pin::new(&mut self.driver).poll(cx).is_ready();
            Poll::Ready(!is_over && matches!(self.sender.poll_ready(cx), Poll::Ready(Ok(()))))
        })
        .await
    }

    /// Sends a request. With the error comes the request if not a byte of it has left.
    async fn send(&mut self, request: Request<Body>) -> Result<Response<Incoming>, (Error, Option<Request<Body>>)> {
        let mut answer = pin!(self.sender.try_send_request(request));
        let mut is_over = false;
        let answered = std::future::poll_fn(|cx| {
            // How the connection ended is told to the request.
            is_over = is_over || Pin::new(&mut self.driver).poll(cx).is_ready();
            answer.as_mut().poll(cx)
        });
        answered.await.map_err(|mut error| {
            let unsent = error.take_message();
            (wire_error(error.into_error()), unsent)
        })
    }

    fn driving(self, body: Incoming, pool: Arc<Pool>) -> DrivenBody {
        DrivenBody { body, connection: Some(self), pool }
    }
}

/// The body of an answer, which drives the connection that it comes over.
pub(super) struct DrivenBody {
    body: Incoming,
    /// Until it has ended, or the body has.
    connection: Option<Connection>,
    pool: Arc<Pool>,
}

impl DrivenBody {
    fn give_back(&mut self) {
        if let Some(connection) = self.connection.take() {
            self.pool.give_back(connection);
        }
    }
}

impl http_body::Body for DrivenBody {
    type Data = Bytes;
    type Error = Error;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Error>>> {
        let this = &mut *self;
        let mut frame = Pin::new(&mut this.body).poll_frame(cx);
        if frame.is_pending()
            && let Some(connection) = &mut this.connection
        {
            // How it ended is told to the body.
            if Pin::new(&mut connection.driver).poll(cx).is_ready() {
                this.connection = None;
            }
            frame = Pin::new(&mut this.body).poll_frame(cx);
        }
        if matches!(frame, Poll::Ready(None)) {
            this.give_back();
        }
        frame.map(|frame| frame.map(|frame| frame.map_err(wire_error)))
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// Who knows that a body has ended need not ask once more.
impl Drop for DrivenBody {
    fn drop(&mut self) {
        if self.body.is_end_stream() {
            self.give_back();
        }
    }
}
