//! Tests of the whole way from the wire to the store, over connections in memory and on paused time.

mod cuts;
mod liveness;

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use kube_client::Config;
use tokio::io::{AsyncWriteExt as _, DuplexStream};
use tokio::sync::mpsc::UnboundedReceiver;
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;

use super::{Reflector, ReflectorStore, Replacement, StatusReader};
use crate::source::duplex::{network, read_head};
use crate::source::{ClientOptions, ListWatch, client_over};
use crate::{Error, Object, ObjectKey};

const HEAD: &str = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n";

/// What the server does for one request: each piece is sent after its time. After an answer that is complete the next
/// request is read; after an empty piece the connection is closed; else nothing happens any more.
type Answer = Vec<(Duration, Bytes)>;

/// A server that answers request after request as written down, and records them.
#[derive(Clone, Default)]
struct Server(Arc<Mutex<Script>>);

#[derive(Default)]
struct Script {
    answers: VecDeque<Answer>,
    requests: Vec<String>,
    /// What watches bring after the answers have run out: these objects, from the version on that is asked for.
    history: Vec<(u64, String)>,
}

impl Server {
    fn answering(answers: impl IntoIterator<Item = Answer>) -> Self {
        Self(Arc::new(Mutex::new(Script { answers: answers.into_iter().collect(), ..Script::default() })))
    }

    fn resuming(self, history: impl IntoIterator<Item = (u64, String)>) -> Self {
        self.0.lock().unwrap().history = history.into_iter().collect();
        self
    }

    /// The queries of all requests, shortened to what matters here.
    fn asked(&self) -> Vec<String> {
        let verb = |query: &str| match () {
            () if query.contains("sendInitialEvents") => "stream",
            () if query.contains("watch=true") => "watch",
            () => "list",
        };
        let requests = &self.0.lock().unwrap().requests;
        requests.iter().map(|query| format!("{} {}", verb(query), version_in(query))).collect()
    }

    fn next(&self, query: &str) -> Option<Answer> {
        let mut script = self.0.lock().unwrap();
        script.requests.push(query.to_owned());
        let next = script.answers.pop_front();
        let from = version_in(query).parse().unwrap_or(0);
        next.or_else(|| {
            let events = script.history.iter().filter(|(version, _)| *version > from);
            let events: Vec<String> = events.map(|(version, name)| event("ADDED", &pod(name, *version))).collect();
            (!script.history.is_empty()).then(|| alive(&events))
        })
    }

    async fn serve(self, mut connection: DuplexStream) {
        loop {
            let head = read_head(&mut connection).await;
            let query = head.lines().next().unwrap_or_default().split(' ').nth(1).unwrap_or_default().to_owned();
            let answer = self.next(&query).unwrap_or_default();
            let is_complete = answer.last().is_some_and(|(_, piece)| piece.ends_with(b"0\r\n\r\n"));
            for (wait, piece) in answer {
                sleep(wait).await;
                if piece.is_empty() {
                    return;
                }
                // A client that has seen enough may be gone.
                let _ = connection.write_all(&piece).await;
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

fn version_in(query: &str) -> &str {
    query.split("resourceVersion=").nth(1).unwrap_or_default().split('&').next().unwrap_or_default()
}

fn at_once(pieces: &[&str]) -> Answer {
    vec![(Duration::ZERO, pieces.concat().into())]
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
    let reflector = Reflector::new(source, names.clone()).streaming_lists(streaming).seed(1);
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
