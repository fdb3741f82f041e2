//! Tests: a server that stops talking is noticed within the stated bounds, over a connection in memory and on paused time.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::StreamBody;
use hyper::body::{Frame, Incoming};
use hyper_util::rt::{TokioExecutor, TokioIo};
use kube_client::Config;
use tokio::io::{AsyncWriteExt as _, DuplexStream};
use tokio::sync::mpsc::UnboundedReceiver;
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;

use super::{Phase, Reason, Reflector, ReflectorStore, Replacement, StatusReader};
use crate::source::duplex::{network, read_head};
use crate::source::{ClientOptions, ListWatch, client_over};
use crate::{Error, Object, ObjectKey, defaults};

const HEAD: &str = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n";

/// What the server does for one request. Each piece is sent after its time; then nothing happens any more.
type Answer = Vec<(Duration, String)>;

/// A server that answers request after request as written down, and records them with their times.
#[derive(Clone, Default)]
struct Server(Arc<Mutex<(VecDeque<Answer>, Vec<(String, Instant)>)>>);

impl Server {
    fn answering(answers: impl IntoIterator<Item = Answer>) -> Self {
        Self(Arc::new(Mutex::new((answers.into_iter().collect(), Vec::new()))))
    }

    fn requests(&self) -> Vec<(String, Instant)> {
        self.0.lock().unwrap().1.clone()
    }

    /// The queries of all requests, shortened to what matters here.
    fn asked(&self) -> Vec<String> {
        let version =
            |query: &str| query.split("resourceVersion=").nth(1).unwrap_or("").split('&').next().unwrap().to_owned();
        let verb = |query: &str| match () {
            () if query.contains("sendInitialEvents") => "stream",
            () if query.contains("watch=true") => "watch",
            () => "list",
        };
        self.requests().iter().map(|(query, _)| format!("{} {}", verb(query), version(query))).collect()
    }

    fn next(&self, query: &str) -> Option<Answer> {
        let mut inner = self.0.lock().unwrap();
        inner.1.push((query.to_owned(), Instant::now()));
        inner.0.pop_front()
    }

    async fn serve(self, mut connection: DuplexStream) {
        loop {
            let head = read_head(&mut connection).await;
            let query = head.lines().next().unwrap_or_default().split(' ').nth(1).unwrap_or_default().to_owned();
            let answer = self.next(&query).unwrap_or_default();
            let is_complete = answer.last().is_some_and(|(_, piece)| piece.ends_with("0\r\n\r\n"));
            for (wait, piece) in answer {
                sleep(wait).await;
                connection.write_all(piece.as_bytes()).await.unwrap();
            }
            if !is_complete {
                // The connection stays open, and nothing comes.
                std::future::pending::<()>().await;
            }
        }
    }

    async fn serve_all(self, mut connections: UnboundedReceiver<DuplexStream>) {
        while let Some(connection) = connections.recv().await {
            tokio::spawn(self.clone().serve(connection));
        }
    }
}

fn at_once(pieces: &[&str]) -> Answer {
    vec![(Duration::ZERO, pieces.concat())]
}

fn chunk(text: &str) -> String {
    format!("{:x}\r\n{text}\r\n", text.len())
}

fn pod(name: &str, version: u64) -> String {
    format!(r#"{{"kind":"Pod","apiVersion":"v1","metadata":{{"name":"{name}","resourceVersion":"{version}"}}}}"#)
}

fn event(kind: &str, object: &str) -> String {
    chunk(&format!("{{\"type\":\"{kind}\",\"object\":{object}}}\n"))
}

fn bookmark(version: u64) -> String {
    event("BOOKMARK", &format!(r#"{{"kind":"Pod","apiVersion":"v1","metadata":{{"resourceVersion":"{version}"}}}}"#))
}

fn list(version: u64, items: &[String]) -> Answer {
    let items = items.join(",");
    let list = format!(
        r#"{{"kind":"PodList","apiVersion":"v1","metadata":{{"resourceVersion":"{version}"}},"items":[{items}]}}"#
    );
    at_once(&[HEAD, &chunk(&list), "0\r\n\r\n"])
}

/// A watch that lives.
fn alive(events: &[String]) -> Answer {
    at_once(&[HEAD, &events.concat()])
}

#[derive(Default)]
struct Names(Mutex<Vec<String>>);

impl Names {
    fn get(&self) -> Vec<String> {
        self.0.lock().unwrap().clone()
    }
}

impl ReflectorStore for Names {
    fn add(&self, object: Object) -> Result<(), Error> {
        self.0.lock().unwrap().push(object.key().name().to_owned());
        Ok(())
    }

    fn update(&self, _: Object) -> Result<(), Error> {
        Ok(())
    }

    fn delete(&self, key: &ObjectKey, _: Option<Object>) -> Result<(), Error> {
        self.0.lock().unwrap().retain(|name| name != key.name());
        Ok(())
    }

    fn replace(&self, list: Replacement) -> Result<(), Error> {
        *self.0.lock().unwrap() = list.items.iter().map(|object| object.key().name().to_owned()).collect();
        Ok(())
    }
}

struct Informer {
    names: Arc<Names>,
    status: StatusReader,
    token: CancellationToken,
    task: JoinHandle<()>,
}

/// A reflector on the server. Lists come in pages unless `streaming`.
fn start(server: &Server, streaming: bool) -> Informer {
    let (connector, connections) = network();
    tokio::spawn(server.clone().serve_all(connections));
    start_over(connector, ClientOptions::default(), streaming)
}

fn start_over<C>(connector: C, options: ClientOptions, streaming: bool) -> Informer
where
    C: tower::Service<http::Uri, Error = std::io::Error, Future: Send + 'static> + Clone + Send + Sync + 'static,
    C::Response:
        hyper::rt::Read + hyper::rt::Write + hyper_util::client::legacy::connect::Connection + Send + Unpin + 'static,
{
    let config = Config::new("http://cluster.test".parse().unwrap());
    let source = ListWatch::by_name(client_over(connector, config, options).unwrap(), "", "v1", "pods");
    let names = Arc::new(Names::default());
    let reflector = Reflector::new(source, names.clone()).streaming_lists(streaming);
    let (status, token) = (reflector.status(), CancellationToken::new());
    Informer { names, status, task: tokio::spawn(reflector.run(token.clone())), token }
}

impl Informer {
    /// Waits until these are there, and says how long that took.
    async fn sees(&self, names: &[&str], within: Duration) -> Duration {
        let began = Instant::now();
        while self.names.get() != names {
            assert!(
                began.elapsed() < within,
                "after {within:?} there is {:?} in place of {names:?}: {:?}",
                self.names.get(),
                self.status
            );
            sleep(Duration::from_millis(100)).await;
        }
        began.elapsed()
    }

    async fn stop(self) {
        self.token.cancel();
        self.task.await.unwrap();
    }
}

const SECOND: Duration = Duration::from_secs(1);
/// The longest first wait of the backoff.
const FIRST_BACKOFF: Duration = Duration::from_millis(1600);

async fn list_goes_on_after(silent: Answer) {
    let server = Server::answering([silent, list(5, &[pod("a", 1)]), alive(&[])]);
    let informer = start(&server, false);
    let took = informer.sees(&["a"], Duration::from_secs(120)).await;
    assert!(took >= defaults::LIST_IDLE_TIMEOUT, "{took:?}");
    assert!(took <= defaults::LIST_IDLE_TIMEOUT + FIRST_BACKOFF + SECOND, "{took:?}");
    assert_eq!(informer.status.get().relists, [(Reason::TimedOut, 1)].into());
    informer.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_list_that_is_silent_before_its_headers_is_given_up_after_30_seconds() {
    list_goes_on_after(vec![]).await;
}

#[tokio::test(start_paused = true)]
async fn a_list_that_is_silent_after_its_headers_is_given_up_after_30_seconds() {
    list_goes_on_after(at_once(&[HEAD])).await;
}

#[tokio::test(start_paused = true)]
async fn a_list_that_is_silent_after_two_objects_is_given_up_after_30_seconds() {
    let start = format!(r#"{{"kind":"PodList","items":[{},{},"#, pod("x", 1), pod("y", 2));
    list_goes_on_after(at_once(&[HEAD, &chunk(&start)])).await;
}

#[tokio::test(start_paused = true)]
async fn a_list_that_drips_is_never_given_up() {
    let items: Vec<(Duration, String)> = (0..20)
        .flat_map(|at| {
            let item = format!("{}{}", if at == 0 { "" } else { "," }, pod(&format!("pod-{at:02}"), 1));
            let (first, second) = item.split_at(20);
            [(20 * SECOND, chunk(first)), (20 * SECOND, chunk(second))]
        })
        .collect();
    let mut answer = at_once(&[HEAD, &chunk(r#"{"kind":"PodList","metadata":{"resourceVersion":"9"},"items":["#)]);
    answer.extend(items);
    answer.push((SECOND, chunk("]}") + "0\r\n\r\n"));
    let server = Server::answering([answer, alive(&[])]);
    let informer = start(&server, false);
    sleep(820 * SECOND).await;
    assert_eq!(informer.names.get().len(), 20);
    assert_eq!(server.asked(), ["list 0", "watch 9"]);
    informer.stop().await;
}

async fn watch_goes_on_after(silent: Answer, from: u64, before: &[&str], after: &[&str]) {
    let server = Server::answering([list(5, &[pod("a", 1)]), silent, alive(&[event("ADDED", &pod("new", 50))])]);
    let informer = start(&server, false);
    informer.sees(before, 2 * SECOND).await;
    let took = informer.sees(after, Duration::from_secs(700)).await;
    let least = defaults::MIN_WATCH_TIMEOUT + defaults::WATCH_TIMEOUT_GRACE;
    assert!(took >= least - 2 * SECOND && took <= defaults::MIN_WATCH_TIMEOUT + least, "{took:?}");
    assert_eq!(server.asked(), ["list 0".to_owned(), "watch 5".to_owned(), format!("watch {from}")], "no list");
    assert_eq!(informer.status.get().watch_restarts, [(Reason::TimedOut, 1)].into());
    informer.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_watch_that_is_silent_before_its_headers_is_opened_again_5_seconds_after_its_timeout() {
    watch_goes_on_after(vec![], 5, &["a"], &["a", "new"]).await;
}

#[tokio::test(start_paused = true)]
async fn a_watch_that_is_silent_after_its_headers_is_opened_again_5_seconds_after_its_timeout() {
    watch_goes_on_after(at_once(&[HEAD]), 5, &["a"], &["a", "new"]).await;
}

#[tokio::test(start_paused = true)]
async fn a_watch_that_is_silent_after_two_events_is_opened_again_5_seconds_after_its_timeout() {
    let events = [event("ADDED", &pod("b", 6)), event("ADDED", &pod("c", 7))].concat();
    watch_goes_on_after(at_once(&[HEAD, &events]), 7, &["a", "b", "c"], &["a", "b", "c", "new"]).await;
}

#[tokio::test(start_paused = true)]
async fn a_watch_that_is_silent_within_an_event_is_opened_again_before_that_event() {
    let event = event("ADDED", &pod("b", 6));
    watch_goes_on_after(at_once(&[HEAD, &event[..40]]), 5, &["a"], &["a", "new"]).await;
}

#[tokio::test(start_paused = true)]
async fn a_watch_whose_bookmarks_stop_gets_a_second_one_beside_it() {
    let bookmarks: Answer =
        [vec![(Duration::ZERO, HEAD.to_owned())], vec![(60 * SECOND, bookmark(6)), (70 * SECOND, bookmark(7))]]
            .concat();
    let server = Server::answering([list(5, &[]), bookmarks, alive(&[event("ADDED", &pod("new", 50))])]);
    let informer = start(&server, false);
    let took = informer.sees(&["new"], Duration::from_secs(400)).await;
    // The longest gap between two bookmarks was 70 s.
    assert!(took >= 340 * SECOND && took <= 342 * SECOND, "{took:?}");
    assert_eq!(server.asked(), ["list 0", "watch 5", "watch 7"]);
    let status = informer.status.get();
    assert_eq!((status.phase, status.watch_restarts), (Phase::Watching, [(Reason::Stale, 1)].into()));
    informer.stop().await;
}

async fn streaming_list_goes_on_after(silent: Answer) {
    let end = event(
        "BOOKMARK",
        r#"{"kind":"Pod","apiVersion":"v1","metadata":{"resourceVersion":"9","annotations":{"k8s.io/initial-events-end":"true"}}}"#,
    );
    let server = Server::answering([silent, alive(&[event("ADDED", &pod("a", 1)), end])]);
    let informer = start(&server, true);
    let took = informer.sees(&["a"], Duration::from_secs(120)).await;
    assert!(took >= defaults::INITIAL_EVENTS_SILENCE, "{took:?}");
    assert!(took <= defaults::INITIAL_EVENTS_SILENCE + FIRST_BACKOFF + SECOND, "{took:?}");
    assert_eq!(server.asked(), ["stream ", "stream "]);
    informer.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_streaming_list_that_is_silent_before_its_headers_starts_over_after_30_seconds() {
    streaming_list_goes_on_after(vec![]).await;
}

#[tokio::test(start_paused = true)]
async fn a_streaming_list_that_is_silent_after_its_headers_starts_over_after_30_seconds() {
    streaming_list_goes_on_after(at_once(&[HEAD])).await;
}

#[tokio::test(start_paused = true)]
async fn a_streaming_list_that_is_silent_after_two_events_starts_over_with_nothing() {
    let events = [event("ADDED", &pod("x", 1)), event("ADDED", &pod("y", 2))].concat();
    streaming_list_goes_on_after(at_once(&[HEAD, &events])).await;
}

/// Serves HTTP/2, and freezes (answers no ping, reads and writes nothing) at the given moment of the `n`th connection.
async fn freezing_http2(
    mut connections: UnboundedReceiver<DuplexStream>,
    server: Server,
    freeze: [CancellationToken; 2],
) {
    let mut freeze = freeze.into_iter();
    while let Some(stream) = connections.recv().await {
        let (server, freeze) = (server.clone(), freeze.next().unwrap_or_default());
        tokio::spawn(async move {
            let service = hyper::service::service_fn(move |request: Request<Incoming>| {
                let answer = server.next(&request.uri().to_string());
                async move {
                    let Some(answer) = answer else { return std::future::pending().await };
                    let frames = futures::stream::unfold(answer.into_iter(), |mut pieces| async move {
                        let Some((wait, piece)) = pieces.next() else { return std::future::pending().await };
                        sleep(wait).await;
                        match piece.as_str() {
                            "" => None,
                            _ => Some((Ok::<_, Infallible>(Frame::data(Bytes::from(piece))), pieces)),
                        }
                    });
                    Ok::<_, Infallible>(Response::new(StreamBody::new(frames)))
                }
            });
            let connection = hyper::server::conn::http2::Builder::new(TokioExecutor::new())
                .serve_connection(TokioIo::new(stream), service);
            let mut connection = std::pin::pin!(connection);
            tokio::select! {
                _ = &mut connection => {}
                // The connection stays, and is not looked after any more.
                () = freeze.cancelled() => std::future::pending().await,
            }
        });
    }
}

#[tokio::test(start_paused = true)]
async fn a_frozen_http2_server_is_noticed_by_ping_within_45_seconds() {
    let line = |name: &str, version| format!("{{\"type\":\"ADDED\",\"object\":{}}}\n", pod(name, version));
    let list = r#"{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"5"},"items":[]}"#;
    let server = Server::answering([
        vec![(Duration::ZERO, list.to_owned()), (Duration::ZERO, String::new())],
        vec![(Duration::ZERO, line("a", 6)), (Duration::ZERO, line("b", 7))],
        vec![(Duration::ZERO, line("new", 50))],
    ]);
    let (connector, connections) = network();
    let freeze = [CancellationToken::new(), CancellationToken::new()];
    tokio::spawn(freezing_http2(connections, server.clone(), freeze.clone()));
    let informer = start_over(connector, ClientOptions { http2: true, ..ClientOptions::default() }, false);
    informer.sees(&["a", "b"], 2 * SECOND).await;
    freeze[0].cancel();
    let took = informer.sees(&["a", "b", "new"], 120 * SECOND).await;
    assert!(took <= defaults::HTTP2_PING_INTERVAL + defaults::HTTP2_PING_TIMEOUT + SECOND, "{took:?}");
    assert_eq!(server.asked(), ["list 0", "watch 5", "watch 7"], "no list");
    assert_eq!(informer.status.get().watch_restarts, [(Reason::Disconnected, 1)].into());
    informer.stop().await;
}
