//! A connection for each request.
//!
//! hyper-util's pooling client gives every connection a task of its own, and hands each piece of an answer from that task
//! to its reader: two wake-ups for every event of a watch. So here no connection has a task. Whoever reads the body of an
//! answer drives the connection that it comes over, and a piece is handed on within one poll.
//!
//! A connection whose answer was read to its end waits for the next request. Nobody looks at it meanwhile: that the server
//! has hung up is found out when it is next needed, and a request of which nothing was sent goes to another one. A request
//! that was sent never does, as that would be a retry which nobody sees.

use std::io;
use std::pin::{Pin, pin};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use futures::future::{BoxFuture, Fuse, FusedFuture as _, FutureExt as _};
use http::uri::{PathAndQuery, Scheme};
use http::{HeaderValue, Request, Response, StatusCode, Uri, header};
use http_body::{Body as _, Frame, SizeHint};
use hyper::body::Incoming;
use hyper::client::conn::http1;
use kube_client::Config;
use kube_client::client::Body;
use tokio::runtime::Handle;
use tokio::task::coop::unconstrained;
use tokio::time::Instant;
use tower::{Service, ServiceExt as _};

use super::calm::Calm;
use super::client::wire_error;
use super::connect::{self, Connector, Io};
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
    runtime: Handle,
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
        Ok(Self(Arc::new(Pool { connector, origin, host, runtime: connect::runtime()?, idle: Mutex::default() })))
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
                Ok(response) => return Ok(connection.driven(response, self)),
                Err((_, Some(unsent))) => request = unsent,
                Err((error, None)) => return Err(error),
            }
        }
        let mut connection = Connection::open(self.connector.clone().oneshot(self.origin.clone()).await?).await?;
        match connection.send(request).await {
            Ok(response) => Ok(connection.driven(response, self)),
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
    /// It may end within any poll, and hyper's panics at the next if another protocol has taken over.
    driver: Fuse<BoxFuture<'static, hyper::Result<()>>>,
}

impl Connection {
    async fn open(io: Io) -> Result<Self, Error> {
        let opened = http1::handshake(io).await;
        let (sender, driver) = opened.map_err(|error| Error::transport(ErrorKind::Connect, &error))?;
        Ok(Self { sender, driver: driver.with_upgrades().boxed().fuse() })
    }

    /// It can take a request at once: the server has not hung up, and the last answer is over.
    async fn is_ready(&mut self) -> bool {
        // Who has used up its budget would be told that nothing has come, and take a dead connection for a live one.
        unconstrained(std::future::poll_fn(|cx| {
            let _ = self.driver.poll_unpin(cx);
            Poll::Ready(!self.driver.is_terminated() && matches!(self.sender.poll_ready(cx), Poll::Ready(Ok(()))))
        }))
        .await
    }

    /// Sends a request. With the error comes the request if not a byte of it has left.
    async fn send(&mut self, request: Request<Body>) -> Result<Response<Incoming>, (Error, Option<Request<Body>>)> {
        let mut answer = pin!(self.sender.try_send_request(request));
        let answered = std::future::poll_fn(|cx| {
            // How the connection ended is told to the request.
            let _ = self.driver.poll_unpin(cx);
            answer.as_mut().poll(cx)
        });
        answered.await.map_err(|mut error| {
            let unsent = error.take_message();
            (wire_error(error.into_error()), unsent)
        })
    }

    /// The answer, whose body drives the connection.
    fn driven(self, response: Response<Incoming>, pool: Arc<Pool>) -> Response<DrivenBody> {
        if response.status() == StatusCode::SWITCHING_PROTOCOLS {
            // It belongs to somebody else now (kube's `exec`, say), who gets it from hyper's hands.
            if !self.driver.is_terminated() {
                pool.runtime.spawn(self.driver);
            }
            return response.map(|body| DrivenBody::new(body, None, pool));
        }
        response.map(|body| DrivenBody::new(body, Some(self), pool))
    }
}

/// The body of an answer, which drives the connection that it comes over.
pub(super) struct DrivenBody {
    body: Incoming,
    /// Until it has ended, or the body has.
    connection: Option<Connection>,
    pool: Arc<Pool>,
    calm: Calm,
}

impl DrivenBody {
    fn new(body: Incoming, connection: Option<Connection>, pool: Arc<Pool>) -> Self {
        Self { body, connection, pool, calm: Calm::default() }
    }

    fn poll_driven(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        let mut frame = Pin::new(&mut self.body).poll_frame(cx);
        if frame.is_pending()
            && let Some(connection) = &mut self.connection
        {
            // How it ended is told to the body.
            if connection.driver.poll_unpin(cx).is_ready() {
                self.connection = None;
            }
            frame = Pin::new(&mut self.body).poll_frame(cx);
        }
        frame
    }

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
        let calm = this.calm.clone();
        let frame = calm.poll(cx, |cx| this.poll_driven(cx));
        if matches!(frame, Poll::Ready(None)) {
            this.give_back();
        }
        frame.map(|frame| frame.map(|frame| frame.map_err(body_error)))
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// A peer of which nothing came until the kernel gave it up has fallen silent. It has not hung up.
fn body_error(error: hyper::Error) -> Error {
    let causes = std::iter::successors(std::error::Error::source(&error), |cause| cause.source());
    let is_silence = |error: &io::Error| error.kind() == io::ErrorKind::TimedOut;
    match causes.filter_map(|cause| cause.downcast_ref()).any(is_silence) {
        true => Error::transport(ErrorKind::Timeout, &error),
        false => wire_error(error),
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

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
    use std::task::Wake;

    use http_body::Body as _;
    use http_body_util::BodyExt as _;
    use kube_client::Client;
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, DuplexStream};
    use tokio::sync::mpsc::UnboundedReceiver;
    use tokio::task::coop::{consume_budget, has_budget_remaining};
    use tokio::time::sleep;

    use super::super::client::{ClientOptions, client_over};
    use super::super::duplex::{get, network, ours, read_head};
    use super::*;

    const HELLO: &[u8] = b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhello";
    const CHUNKED: &[u8] = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n";

    fn connected() -> (Client, UnboundedReceiver<DuplexStream>) {
        let (connector, connections) = network();
        let config = Config::new(Uri::from_static("http://cluster.test:8080"));
        (client_over(connector, config, ClientOptions::default()).unwrap(), connections)
    }

    /// Asks, and has the answer given on `stream`.
    async fn ask(client: &Client, stream: &mut DuplexStream, answer: &[u8]) -> kube_client::client::Body {
        let (response, _) = tokio::join!(client.send(get("/")), async {
            let head = read_head(stream).await;
            assert!(
                head.starts_with("GET / HTTP/1.1\r\n") && head.contains("\r\nhost: cluster.test:8080\r\n"),
                "{head}"
            );
            stream.write_all(answer).await.unwrap();
        });
        response.unwrap().into_body()
    }

    /// Asks on a connection of its own.
    async fn ask_anew(
        client: &Client,
        connections: &mut UnboundedReceiver<DuplexStream>,
        answer: &[u8],
    ) -> (kube_client::client::Body, DuplexStream) {
        let (response, stream) = tokio::join!(client.send(get("/")), async {
            let mut stream = connections.recv().await.unwrap();
            read_head(&mut stream).await;
            stream.write_all(answer).await.unwrap();
            stream
        });
        (response.unwrap().into_body(), stream)
    }

    async fn read(body: kube_client::client::Body) -> Bytes {
        body.collect_bytes().await.unwrap()
    }

    #[tokio::test(start_paused = true)]
    async fn a_connection_serves_one_request_after_the_other() {
        let (client, mut connections) = connected();
        let (body, mut stream) = ask_anew(&client, &mut connections, HELLO).await;
        assert_eq!(read(body).await, "hello");
        let body = ask(&client, &mut stream, &[CHUNKED, b"2\r\nab\r\n0\r\n\r\n"].concat()).await;
        assert_eq!(read(body).await, "ab");
        let body = ask(&client, &mut stream, HELLO).await;
        assert_eq!(read(body).await, "hello");
        assert!(connections.try_recv().is_err(), "one connection was enough");
    }

    #[tokio::test(start_paused = true)]
    async fn requests_at_once_have_a_connection_each() {
        let (client, mut connections) = connected();
        let (watch, mut watched) = ask_anew(&client, &mut connections, CHUNKED).await;
        let (body, _stream) = ask_anew(&client, &mut connections, HELLO).await;
        assert_eq!(read(body).await, "hello");
        watched.write_all(b"2\r\nab\r\n0\r\n\r\n").await.unwrap();
        assert_eq!(read(watch).await, "ab");
    }

    /// Piece by piece, and none waits for the next.
    #[tokio::test(start_paused = true)]
    async fn each_piece_is_handed_on_when_it_is_there() {
        let (client, mut connections) = connected();
        let (mut body, mut stream) = ask_anew(&client, &mut connections, CHUNKED).await;
        for number in 0..100 {
            let text = format!("event {number:02}");
            stream.write_all(format!("8\r\n{text}\r\n").as_bytes()).await.unwrap();
            let frame = body.frame().await.unwrap().unwrap();
            assert_eq!(frame.into_data().unwrap(), text);
        }
    }

    /// The connection and its body are read by one task, which is woken by what has come and not by their talk.
    #[tokio::test(start_paused = true)]
    async fn a_piece_wakes_who_reads_it_once() {
        #[derive(Default)]
        struct Wakes(AtomicUsize);
        impl Wake for Wakes {
            fn wake(self: Arc<Self>) {
                self.0.fetch_add(1, SeqCst);
            }
        }
        let (client, mut connections) = connected();
        let (mut body, mut stream) = ask_anew(&client, &mut connections, CHUNKED).await;
        let wakes = Arc::new(Wakes::default());
        let waker = wakes.clone().into();
        let mut poll = || Pin::new(&mut body).poll_frame(&mut Context::from_waker(&waker));
        for _ in 0..100 {
            assert!(poll().is_pending());
            wakes.0.store(0, SeqCst);
            stream.write_all(b"2\r\nab\r\n").await.unwrap();
            assert_eq!(wakes.0.swap(0, SeqCst), 1);
            assert!(matches!(poll(), Poll::Ready(Some(Ok(_)))));
            assert_eq!(wakes.0.load(SeqCst), 0);
            // What is polled has a budget, which ends with the task's turn.
            tokio::task::yield_now().await;
        }
    }

    #[tokio::test(start_paused = true)]
    async fn who_drops_a_body_hangs_up() {
        let (client, mut connections) = connected();
        let (body, mut stream) = ask_anew(&client, &mut connections, CHUNKED).await;
        drop(body);
        assert_eq!(stream.read(&mut [0; 8]).await.unwrap(), 0, "the end");
    }

    #[tokio::test(start_paused = true)]
    async fn a_server_that_hung_up_meanwhile_costs_nothing_but_a_connection() {
        let (client, mut connections) = connected();
        let (body, stream) = ask_anew(&client, &mut connections, HELLO).await;
        assert_eq!(read(body).await, "hello");
        drop(stream);
        let (body, _stream) = ask_anew(&client, &mut connections, HELLO).await;
        assert_eq!(read(body).await, "hello");
    }

    #[tokio::test(start_paused = true)]
    async fn a_server_that_wants_to_hang_up_is_not_asked_again() {
        let (client, mut connections) = connected();
        let closing = b"HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 2\r\n\r\nok";
        let (body, _stream) = ask_anew(&client, &mut connections, closing).await;
        assert_eq!(read(body).await, "ok");
        let (body, _another) = ask_anew(&client, &mut connections, HELLO).await;
        assert_eq!(read(body).await, "hello");
    }

    /// The request has left: to send it again would be a retry which nobody sees.
    #[tokio::test(start_paused = true)]
    async fn a_server_that_hangs_up_on_a_request_is_an_error() {
        let (client, mut connections) = connected();
        let (body, mut stream) = ask_anew(&client, &mut connections, HELLO).await;
        assert_eq!(read(body).await, "hello");
        let (response, ()) = tokio::join!(client.send(get("/")), async {
            read_head(&mut stream).await;
            drop(stream);
        });
        assert_eq!(ours(response.unwrap_err()).kind(), ErrorKind::Disconnected);
        assert!(connections.try_recv().is_err());
    }

    #[tokio::test(start_paused = true)]
    async fn a_connection_does_not_wait_for_ever() {
        let (client, mut connections) = connected();
        let (body, mut stream) = ask_anew(&client, &mut connections, HELLO).await;
        assert_eq!(read(body).await, "hello");
        sleep(IDLE_TIMEOUT).await;
        let (body, _another) = ask_anew(&client, &mut connections, HELLO).await;
        assert_eq!(read(body).await, "hello");
        assert_eq!(stream.read(&mut [0; 8]).await.unwrap(), 0, "the old one was given up");
    }

    /// It may come with the answer's head, and be known to be over before anybody reads it.
    #[tokio::test(start_paused = true)]
    async fn an_empty_answer_leaves_its_connection_too() {
        let (client, mut connections) = connected();
        let nothing = b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n";
        let (body, mut stream) = ask_anew(&client, &mut connections, nothing).await;
        drop(body);
        let body = ask(&client, &mut stream, HELLO).await;
        assert_eq!(read(body).await, "hello");
    }

    #[tokio::test(start_paused = true)]
    async fn a_connection_can_be_taken_over_by_another_protocol() {
        let (client, mut connections) = connected();
        let switching = b"HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: echo\r\n\r\n";
        let request = Request::get("/").header("connection", "upgrade").header("upgrade", "echo");
        let (response, mut stream) = tokio::join!(client.send(request.body(Body::empty()).unwrap()), async {
            let mut stream = connections.recv().await.unwrap();
            read_head(&mut stream).await;
            stream.write_all(switching).await.unwrap();
            stream
        });
        let mut upgraded = hyper_util::rt::TokioIo::new(hyper::upgrade::on(response.unwrap()).await.unwrap());
        upgraded.write_all(b"ping").await.unwrap();
        let mut heard = [0; 4];
        stream.read_exact(&mut heard).await.unwrap();
        stream.write_all(b"pong").await.unwrap();
        upgraded.read_exact(&mut heard).await.unwrap();
        assert_eq!(&heard, b"pong");
    }

    /// It is over as soon as its answer is there, and is not asked to go on.
    #[tokio::test(start_paused = true)]
    async fn a_connection_that_is_taken_over_at_once_is_not_driven_on() {
        let (client, mut connections) = connected();
        let switching = b"HTTP/1.1 101 Switching Protocols\r\n\r\nmore";
        let tasks = || Handle::current().metrics().num_alive_tasks();
        let before = tasks();
        let (body, _stream) = ask_anew(&client, &mut connections, switching).await;
        drop(body);
        assert_eq!(tasks(), before, "nobody has to drive it");
        let (body, _another) = ask_anew(&client, &mut connections, HELLO).await;
        assert_eq!(read(body).await, "hello");
    }

    #[tokio::test(start_paused = true)]
    async fn a_dead_connection_is_recognised_by_whoever_has_no_budget_left() {
        let (connector, mut connections) = network();
        let io = connector.oneshot(Uri::from_static("http://cluster.test")).await.unwrap();
        let mut connection = Connection::open(Box::new(io)).await.unwrap();
        let server = connections.recv().await.unwrap();
        assert!(connection.is_ready().await);
        drop(server);
        while has_budget_remaining() {
            consume_budget().await;
        }
        assert!(!connection.is_ready().await);
    }
}
