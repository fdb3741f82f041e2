//! Many requests on few connections.
//!
//! hyper-util's pooling client keeps one HTTP/2 connection for each server, and the API server allows a hundred streams
//! on it: with watches, which do not end, request 101 would wait for ever. So this keeps as many connections as the
//! requests need, each with room to spare.
//!
//! A request takes a place on a connection and keeps it until the body of its answer has ended or is dropped. Where no
//! place is free, one connection is opened, and all that wait, wait for that one: its opening is a task that they share,
//! so that a request that is given up in the meantime takes nothing with it, and a failure reaches all of them at once
//! instead of one time limit after the other.
//!
//! A connection that is closed, by GOAWAY, an unanswered ping or an error, is left out as soon as hyper knows. A
//! request that it had not begun to send by then goes to another one, and so does one that the server says it has not looked at.
//! Any other request that has been sent never does, as that would be a retry which nobody sees.
//!
//! hyper runs several tasks for each connection. All of them end when the client and the last body on that connection
//! are gone.

mod connection;
mod heard;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};

use futures::future::{BoxFuture, FutureExt, Shared, WeakShared};
use http::uri::{PathAndQuery, Scheme};
use http::{Request, Response, Uri};
use hyper_util::client::legacy::connect::Connection as _;
use kube_client::Config;
use kube_client::client::Body;
use tokio::runtime::Handle;
use tokio::sync::Notify;
use tokio_util::task::AbortOnDropHandle;
use tower::{Service, ServiceExt};

use self::connection::{Connection, Lease, LeasedBody};
use super::client::ClientOptions;
use super::connect::{self, Connector};
use crate::error::{Error, ErrorKind};

/// As many connections a request is sent on, if each goes away before the server looks at it.
const MOST_CONNECTIONS: u32 = 8;

/// A client of one server. Clones share their connections.
#[derive(Clone)]
pub(super) struct Http2(Arc<Pool>);

struct Pool {
    connector: Connector,
    origin: Uri,
    options: ClientOptions,
    runtime: Handle,
    connections: Mutex<Connections>,
    freed: Arc<Notify>,
}

#[derive(Default)]
struct Connections {
    open: Vec<Arc<Connection>>,
    /// Weak, so that the attempt ends with the last request that waits for it.
    opening: Option<WeakShared<Opening>>,
}

type Opening = BoxFuture<'static, Result<Arc<Connection>, Error>>;

impl Http2 {
    /// A client of the server that `config` names. Connects when it is first used.
    pub(super) fn new(connector: Connector, config: &Config, options: &ClientOptions) -> Result<Self, Error> {
        let mut parts = config.cluster_url.clone().into_parts();
        parts.path_and_query = Some(PathAndQuery::from_static("/"));
        let origin = Uri::from_parts(parts)
            .map_err(|_| Error::new(ErrorKind::Config, "the server's URL has no scheme or no host"))?;
        Ok(Self(Arc::new(Pool {
            connector,
            origin,
            options: ClientOptions { connect_timeout: connect::limit(config, options), ..options.clone() },
            runtime: connect::runtime()?,
            connections: Mutex::default(),
            freed: Arc::default(),
        })))
    }
}

impl Service<Request<Body>> for Http2 {
    type Response = Response<LeasedBody>;
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
    async fn send(self: Arc<Self>, mut request: Request<Body>) -> Result<Response<LeasedBody>, Error> {
        let mut connections_left = MOST_CONNECTIONS;
        loop {
            connections_left -= 1;
            match self.lease().await?.send(request).await {
                Ok(response) => return Ok(response),
                Err((_, Some(again))) if connections_left > 0 => request = again,
                Err((error, _)) => return Err(error),
            }
        }
    }

    async fn lease(self: &Arc<Self>) -> Result<Lease, Error> {
        // Kept while we wait: a place that becomes free and is taken by another must not end the attempt.
        let mut opening = None;
        loop {
            let attempt = match self.take(&mut opening) {
                Ok(lease) => return Ok(lease),
                Err(attempt) => attempt,
            };
            tokio::select! {
                opened = attempt => {
                    // Even if it is closed by now: the request then fails, where another attempt could be the first of
                    // an endless row.
                    if let Some(lease) = opened?.lease(&self.freed) {
                        return Ok(lease);
                    }
                    opening = None;
                }
                () = self.freed.notified() => {}
            }
        }
    }

    /// A free place, or else the connection that is being opened. Both are looked for under one lock: a connection that
    /// becomes ready in between would be overlooked, and another one opened.
    fn take<'a>(self: &Arc<Self>, opening: &'a mut Option<Shared<Opening>>) -> Result<Lease, &'a mut Shared<Opening>> {
        let mut connections = self.connections();
        connections.open.retain(|connection| !connection.is_closed());
        if let Some(lease) = connections.open.iter().find_map(|connection| connection.lease(&self.freed)) {
            return Ok(lease);
        }
        Err(opening.get_or_insert_with(|| {
            let attempt = connections.opening.as_ref().and_then(WeakShared::upgrade).unwrap_or_else(|| self.open());
            connections.opening = attempt.downgrade();
            attempt
        }))
    }

    fn open(self: &Arc<Self>) -> Shared<Opening> {
        let pool = Arc::clone(self);
        let attempt = self.runtime.spawn(async move {
            let connection = pool.connect().await;
            let mut connections = pool.connections();
            connections.opening = None;
            let connection = Arc::new(connection?);
            connections.open.push(Arc::clone(&connection));
            Ok(connection)
        });
        let attempt = AbortOnDropHandle::new(attempt);
        async move { attempt.await.unwrap_or_else(|_| Err(connect::runtime_gone())) }.boxed().shared()
    }

    async fn connect(&self) -> Result<Connection, Error> {
        let io = self.connector.clone().oneshot(self.origin.clone()).await?;
        if self.origin.scheme() == Some(&Scheme::HTTPS) && !io.connected().is_negotiated_h2() {
            let text = "the server does not speak HTTP/2: switch the option `http2` of the client off";
            return Err(Error::new(ErrorKind::Config, text));
        }
        Connection::open(io, &self.options, &self.runtime).await
    }

    fn connections(&self) -> MutexGuard<'_, Connections> {
        // Nothing that is done under the lock leaves the list half changed.
        self.connections.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;
    use std::io;
    use std::pin::pin;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::time::Duration;

    use bytes::Bytes;
    use futures::StreamExt;
    use futures::future::{join_all, pending};
    use http_body::Frame;
    use http_body_util::{BodyExt, StreamBody};
    use hyper::body::Incoming;
    use hyper_util::rt::{TokioExecutor, TokioIo};
    use kube_client::Client;
    use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream};
    use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
    use tokio::time::Instant;
    use tokio_util::sync::CancellationToken;

    use super::super::client::client_over;
    use super::super::duplex::{Pipe, get, network, ours};
    use super::connection::CLOSE_GRACE;
    use super::*;
    use crate::defaults::{CONNECT_TIMEOUT, HTTP2_MAX_STREAMS, HTTP2_PING_INTERVAL, HTTP2_PING_TIMEOUT};

    fn connected() -> (Client, UnboundedReceiver<DuplexStream>) {
        let (connector, connections) = network();
        (http2(connector), connections)
    }

    fn http2<C>(connector: C) -> Client
    where
        C: Service<Uri, Response = TokioIo<Pipe>, Error = io::Error, Future: Send + 'static>,
        C: Clone + Send + Sync + 'static,
    {
        let options = ClientOptions { http2: true, ..ClientOptions::default() };
        client_over(connector, Config::new(Uri::from_static("http://cluster.test")), options).unwrap()
    }

    /// What a test can do to a server's connection.
    #[derive(Clone, Default)]
    struct Control {
        /// It stops reading and writing.
        freeze: CancellationToken,
        /// It takes no further requests.
        go_away: CancellationToken,
    }

    /// Answers each request with its own URI, and with "again" after an hour.
    async fn serve(stream: DuplexStream, max_streams: u32, control: Control) {
        let answer = hyper::service::service_fn(async |request: Request<Incoming>| {
            let first = Frame::data(Bytes::from(request.uri().to_string()));
            let again = async {
                tokio::time::sleep(Duration::from_secs(3600)).await;
                Ok(Frame::data(Bytes::from("again")))
            };
            let body = futures::stream::iter([Ok::<_, Infallible>(first)]).chain(futures::stream::once(again));
            Ok::<_, Infallible>(Response::new(StreamBody::new(body)))
        });
        let connection = hyper::server::conn::http2::Builder::new(TokioExecutor::new())
            .max_concurrent_streams(max_streams)
            .serve_connection(TokioIo::new(stream), answer);
        let mut connection = pin!(connection);
        tokio::select! {
            _ = &mut connection => return,
            () = control.freeze.cancelled() => pending().await,
            () = control.go_away.cancelled() => connection.as_mut().graceful_shutdown(),
        }
        let _ = connection.await;
    }

    /// Serves every connection, each with its own control, and tells how many there were.
    fn serve_all(mut connections: UnboundedReceiver<DuplexStream>, max_streams: u32) -> Arc<Mutex<Vec<Control>>> {
        let controls = Arc::new(Mutex::new(Vec::new()));
        let seen = Arc::clone(&controls);
        tokio::spawn(async move {
            while let Some(stream) = connections.recv().await {
                let control = Control::default();
                seen.lock().unwrap().push(control.clone());
                tokio::spawn(serve(stream, max_streams, control));
            }
        });
        controls
    }

    async fn watch(client: &Client) -> Body {
        let mut body = client.send(get("/api?watch=1")).await.unwrap().into_body();
        let first = body.frame().await.unwrap().unwrap().into_data().unwrap();
        assert_eq!(first, "http://cluster.test/api?watch=1");
        body
    }

    async fn rest(body: &mut Body) -> Bytes {
        body.collect().await.unwrap().to_bytes()
    }

    async fn watches(client: &Client, count: usize) -> Vec<Body> {
        join_all((0..count).map(|_| watch(client))).await
    }

    #[tokio::test(start_paused = true)]
    async fn two_hundred_watches_at_once_take_three_connections() {
        let (client, connections) = connected();
        let controls = serve_all(connections, 100);
        let bodies = watches(&client, 200).await;
        assert_eq!(controls.lock().unwrap().len(), 200_usize.div_ceil(HTTP2_MAX_STREAMS));
        // Places are free again when the bodies are gone.
        drop(bodies);
        let _bodies = watches(&client, 3 * HTTP2_MAX_STREAMS).await;
        assert_eq!(controls.lock().unwrap().len(), 3);
    }

    #[tokio::test(start_paused = true)]
    async fn a_body_that_has_ended_frees_its_place_though_it_is_kept() {
        let (client, connections) = connected();
        let controls = serve_all(connections, 100);
        let mut bodies = watches(&client, HTTP2_MAX_STREAMS).await;
        for body in &mut bodies {
            assert_eq!(rest(body).await, "again");
        }
        watch(&client).await;
        assert_eq!(controls.lock().unwrap().len(), 1);
    }

    #[tokio::test(start_paused = true)]
    async fn a_server_that_allows_less_gets_less() {
        let (client, connections) = connected();
        let controls = serve_all(connections, 10);
        let mut bodies = Vec::new();
        for _ in 0..15 {
            bodies.push(watch(&client).await);
        }
        assert_eq!(controls.lock().unwrap().len(), 2);
    }

    #[tokio::test(start_paused = true)]
    async fn a_frozen_server_is_noticed_and_replaced() {
        let (client, connections) = connected();
        let controls = serve_all(connections, 100);
        let mut body = watch(&client).await;
        controls.lock().unwrap()[0].freeze.cancel();
        let began = Instant::now();
        let error = ours(body.frame().await.unwrap().unwrap_err());
        assert_eq!(error.kind(), ErrorKind::Timeout, "{error}");
        assert!(began.elapsed() <= HTTP2_PING_INTERVAL + HTTP2_PING_TIMEOUT, "{:?}", began.elapsed());
        watch(&client).await;
        assert_eq!(controls.lock().unwrap().len(), 2);
    }

    #[tokio::test(start_paused = true)]
    async fn after_goaway_running_watches_go_on_and_new_ones_go_elsewhere() {
        let (client, connections) = connected();
        let controls = serve_all(connections, 100);
        let mut running = watch(&client).await;
        controls.lock().unwrap()[0].go_away.cancel();
        tokio::time::sleep(Duration::from_secs(1)).await;
        let _bodies = watches(&client, 20).await;
        assert_eq!(controls.lock().unwrap().len(), 2);
        assert_eq!(rest(&mut running).await, "again");
    }

    #[tokio::test(start_paused = true)]
    async fn a_server_that_hangs_up_at_once_is_tried_once() {
        let (client, mut connections) = connected();
        let (answer, ()) = tokio::join!(client.send(get("/")), async { drop(connections.recv().await) });
        assert_eq!(ours(answer.unwrap_err()).kind(), ErrorKind::Disconnected);
        assert!(connections.try_recv().is_err());
    }

    #[tokio::test(start_paused = true)]
    async fn a_server_that_never_speaks_is_given_up() {
        let (client, mut connections) = connected();
        let began = Instant::now();
        for answer in join_all((0..3).map(|_| client.send(get("/")))).await {
            assert_eq!(ours(answer.unwrap_err()).kind(), ErrorKind::Connect);
        }
        assert_eq!(began.elapsed().as_secs(), CONNECT_TIMEOUT.as_secs());
        assert!(connections.try_recv().is_ok() && connections.try_recv().is_err());
    }

    fn tasks() -> usize {
        tokio::runtime::Handle::current().metrics().num_alive_tasks()
    }

    #[tokio::test(start_paused = true)]
    async fn dropping_the_client_leaves_no_task_behind() {
        let (client, connections) = connected();
        let controls = serve_all(connections, 100);
        let bodies = watches(&client, 100).await;
        let mut kept = watch(&client).await;
        assert_eq!(controls.lock().unwrap().len(), 2);
        drop((client, bodies));
        // What is still read goes on without the client.
        assert_eq!(rest(&mut kept).await, "again");
        drop(kept);
        tokio::time::sleep(2 * CLOSE_GRACE).await;
        assert_eq!(tasks(), 0);
    }

    #[tokio::test(start_paused = true)]
    async fn a_frozen_server_cannot_keep_our_tasks_alive() {
        let (client, connections) = connected();
        let controls = serve_all(connections, 100);
        let body = watch(&client).await;
        controls.lock().unwrap()[0].freeze.cancel();
        drop((client, body));
        tokio::time::sleep(2 * CLOSE_GRACE).await;
        // The server's own two: its connection, which is frozen, and the stream on it.
        assert_eq!(tasks(), 2);
    }

    /// A network in which each connection takes ten seconds, or fails after them.
    fn slow_network(fail: bool) -> (Client, Arc<AtomicUsize>, Arc<Mutex<Vec<Control>>>) {
        let (connector, connections) = network();
        let attempts = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&attempts);
        let slow = tower::service_fn(move |uri: Uri| {
            counted.fetch_add(1, Ordering::Relaxed);
            let connector = connector.clone();
            async move {
                tokio::time::sleep(Duration::from_secs(10)).await;
                if fail { Err(io::ErrorKind::ConnectionRefused.into()) } else { connector.oneshot(uri).await }
            }
        });
        (http2(slow), attempts, serve_all(connections, 100))
    }

    #[tokio::test(start_paused = true)]
    async fn requests_that_wait_for_a_connection_share_it_and_may_be_given_up() {
        let (client, attempts, controls) = slow_network(false);
        let mut first = Box::pin(watch(&client));
        let mut second = Box::pin(watch(&client));
        let waited = Duration::from_secs(5);
        assert!(tokio::time::timeout(waited, async { tokio::join!(&mut first, &mut second) }).await.is_err());
        // The one that began the attempt is given up.
        drop(first);
        let began = Instant::now();
        second.await;
        assert!(began.elapsed() <= waited + Duration::from_secs(1));
        assert_eq!((attempts.load(Ordering::Relaxed), controls.lock().unwrap().len()), (1, 1));
    }

    #[tokio::test(start_paused = true)]
    async fn the_pool_works_after_all_that_waited_have_given_up() {
        let (client, attempts, controls) = slow_network(false);
        assert!(tokio::time::timeout(Duration::from_secs(5), watches(&client, 20)).await.is_err());
        let _bodies = watches(&client, 20).await;
        assert_eq!((attempts.load(Ordering::Relaxed), controls.lock().unwrap().len()), (2, 1));
    }

    #[tokio::test(start_paused = true)]
    async fn a_failed_connection_fails_all_that_wait_for_it_at_once() {
        let (client, attempts, _) = slow_network(true);
        let began = Instant::now();
        for answer in join_all((0..50).map(|_| client.send(get("/")))).await {
            assert!(ours(answer.unwrap_err()).is_unreachable());
        }
        assert!(began.elapsed() < Duration::from_secs(11));
        assert_eq!(attempts.load(Ordering::Relaxed), 1);
    }

    #[tokio::test(start_paused = true)]
    async fn a_server_that_allows_less_gets_less_at_once_too() {
        let (client, connections) = connected();
        let controls = serve_all(connections, 10);
        let bodies = tokio::time::timeout(Duration::from_secs(60), watches(&client, 15)).await;
        assert_eq!(bodies.expect("none waits for another").len(), 15);
        assert_eq!(controls.lock().unwrap().len(), 2);
    }

    /// A server by hand, which answers so many requests with headers only. It also sends the frames that it is given.
    fn serve_by_hand(stream: DuplexStream, mut answered: usize) -> UnboundedSender<Vec<u8>> {
        let (frames, mut given) = unbounded_channel::<Vec<u8>>();
        let answers = frames.downgrade();
        let (mut input, mut output) = tokio::io::split(stream);
        tokio::spawn(async move {
            while let Some(frame) = given.recv().await {
                output.write_all(&frame).await.unwrap();
            }
        });
        tokio::spawn(async move {
            input.read_exact(&mut [0; 24]).await.unwrap();
            let mut head = [0; 9];
            while input.read_exact(&mut head).await.is_ok() {
                let [a, b, c, kind, flags, id @ ..] = head;
                let mut payload = vec![0; u32::from_be_bytes([0, a, b, c]) as usize];
                input.read_exact(&mut payload).await.unwrap();
                let answer = match (kind, flags) {
                    (SETTINGS, 0) => frame(SETTINGS, 1, id, &[]),
                    (PING, 0) => frame(PING, 1, id, &payload),
                    // ":status: 200"
                    (HEADERS, _) if answered > 0 => {
                        answered -= 1;
                        frame(HEADERS, 4, id, &[0x88])
                    }
                    _ => continue,
                };
                let Some(answers) = answers.upgrade() else { break };
                answers.send(answer).unwrap();
            }
        });
        frames
    }

    const HEADERS: u8 = 1;
    const SETTINGS: u8 = 4;
    const PING: u8 = 6;
    const GOAWAY: u8 = 7;

    fn frame(kind: u8, flags: u8, id: [u8; 4], payload: &[u8]) -> Vec<u8> {
        let [_, length @ ..] = u32::try_from(payload.len()).unwrap().to_be_bytes();
        [&length[..], &[kind, flags], &id, payload].concat()
    }

    /// How many streams there may be at once.
    fn allow(streams: u32) -> Vec<u8> {
        frame(SETTINGS, 0, [0; 4], &[&[0, 3][..], &streams.to_be_bytes()].concat())
    }

    /// It hangs up when the first ping comes, after half a minute without a word.
    #[tokio::test(start_paused = true)]
    async fn a_server_that_hangs_up_after_a_silence_is_not_taken_for_a_silent_one() {
        let (client, mut connections) = connected();
        let (body, frames) = tokio::join!(client.send(get("/")), async {
            let frames = serve_by_hand(connections.recv().await.unwrap(), usize::MAX);
            frames.send(allow(100)).unwrap();
            frames
        });
        let began = Instant::now();
        tokio::time::sleep(Duration::from_secs(1)).await;
        drop(frames);
        let error = ours(body.unwrap().into_body().frame().await.unwrap().unwrap_err());
        assert_eq!(error.kind(), ErrorKind::Disconnected, "{error}");
        assert!(began.elapsed() >= HTTP2_PING_TIMEOUT, "{:?}", began.elapsed());
    }

    #[tokio::test(start_paused = true)]
    async fn a_request_that_a_server_goes_away_from_is_sent_elsewhere() {
        // It says which request was the last that it has looked at: the first one, or the second, which then has no answer.
        for (last, is_sent_again) in [(1, true), (3, false)] {
            let (client, mut connections) = connected();
            let (first, frames) = tokio::join!(client.send(get("/")), async {
                let frames = serve_by_hand(connections.recv().await.unwrap(), 1);
                frames.send(allow(100)).unwrap();
                frames
            });
            let _first = first.unwrap();
            let (second, controls) = tokio::join!(client.send(get("/api?watch=1")), async {
                tokio::time::sleep(Duration::from_secs(1)).await;
                frames.send(frame(GOAWAY, 0, [0; 4], &[0, 0, 0, last, 0, 0, 0, 0])).unwrap();
                drop(frames);
                serve_all(connections, 100)
            });
            assert_eq!(second.is_ok(), is_sent_again, "{last}");
            assert_eq!(controls.lock().unwrap().len(), usize::from(is_sent_again), "{last}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_server_that_comes_to_allow_less_gets_less() {
        let (client, mut connections) = connected();
        let (first, frames) = tokio::join!(client.send(get("/")), async {
            let frames = serve_by_hand(connections.recv().await.unwrap(), usize::MAX);
            frames.send(allow(100)).unwrap();
            frames
        });
        let _bodies = [first.unwrap(), client.send(get("/")).await.unwrap()];
        frames.send(allow(2)).unwrap();
        tokio::time::sleep(Duration::from_secs(1)).await;
        let controls = serve_all(connections, 100);
        let third = tokio::time::timeout(Duration::from_secs(60), watch(&client)).await;
        assert!(third.is_ok(), "it waits for the others");
        assert_eq!(controls.lock().unwrap().len(), 1);
    }

    #[test]
    fn a_runtime_that_ends_takes_no_connection_with_it() {
        let home = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let guest = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let (connector, connections) = network();
        let slow = tower::service_fn(move |uri: Uri| {
            let connector = connector.clone();
            async move {
                tokio::time::sleep(Duration::from_millis(300)).await;
                connector.oneshot(uri).await
            }
        });
        let client = home.block_on(async { http2(slow) });
        let controls = home.block_on(async { serve_all(connections, 100) });
        let guests = client.clone();
        guest.spawn(async move { watch(&guests).await });
        guest.block_on(async { tokio::time::sleep(Duration::from_millis(50)).await });
        // It waits for the connection that the guest has begun to open.
        let waiting = home.spawn(async move { watch(&client).await });
        guest.block_on(async { tokio::time::sleep(Duration::from_millis(50)).await });
        drop(guest);
        home.block_on(waiting).unwrap();
        assert_eq!(controls.lock().unwrap().len(), 1);
    }
}
