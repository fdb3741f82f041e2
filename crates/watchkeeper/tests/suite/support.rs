//! What the tests share: objects, a store that remembers, a server made of closures.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use bytes::Bytes;
use futures::StreamExt as _;
use http::{Request, Response};
use http_body_util::StreamBody;
use http_body_util::combinators::UnsyncBoxBody;
use hyper::body::Frame;
use kube_client::Client;
use kube_client::client::Body;
use tokio::task::JoinHandle;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tracing_subscriber::layer::SubscriberExt as _;
use watchkeeper::{
    Backoff, BadObject, Error, ErrorKind, ListOptions, ListPart, ListWatch, ListerWatcher as _, Object, ObjectKey,
    Phase, Reflector, ReflectorStatus, ReflectorStore, Replacement, ResourceVersion, Scripted, ScriptedList,
    ScriptedRequest, StatusReader, Verb, WatchEvent,
};

/// A pod in namespace `shop`, as a watch sends it.
pub fn pod_json(name: &str, version: &str) -> String {
    format!(
        r#"{{"kind":"Pod","apiVersion":"v1","metadata":{{"name":"{name}","namespace":"shop","uid":"uid-{name}","resourceVersion":"{version}","labels":{{"app":"{name}"}}}},"spec":{{"nodeName":"node-1"}}}}"#
    )
}

pub fn pod(name: &str, version: &str) -> Object {
    Object::from_json(pod_json(name, version)).expect("a pod")
}

pub fn key(name: &str) -> ObjectKey {
    ObjectKey::namespaced("shop", name)
}

pub fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

/// A line of a watch.
pub fn event_json(event_type: &str, object: &str) -> String {
    format!("{{\"type\":\"{event_type}\",\"object\":{object}}}\n")
}

/// A store that remembers its contents and all calls.
#[derive(Default)]
pub struct Recorder {
    inner: Mutex<Recorded>,
}

#[derive(Default, Clone)]
pub struct Recorded {
    /// What there is, by key, with its version.
    pub objects: BTreeMap<String, String>,
    /// `add shop/a@1`, `update ..`, `delete ..`, `replace [..]@5`, `resync`, `bookmark 7`, in order.
    pub calls: Vec<String>,
    /// Versions that were told with `version_moved`.
    pub versions: Vec<String>,
    /// The next calls of `resync`, `replace` and of the others fail with these.
    pub fail_resync: Option<Error>,
    pub fail_replace: Option<Error>,
    pub fail_changes: Option<Error>,
}

impl Recorder {
    pub fn new() -> Arc<Self> {
        Arc::default()
    }

    pub fn get(&self) -> MutexGuard<'_, Recorded> {
        self.inner.lock().expect("not poisoned")
    }

    pub fn calls(&self) -> Vec<String> {
        self.get().calls.clone()
    }

    /// `["a@1", "b@2"]`, without the namespace.
    pub fn contents(&self) -> Vec<String> {
        let name = |key: &str| key.rsplit('/').next().unwrap_or_default().to_owned();
        self.get().objects.iter().map(|(key, version)| format!("{}@{version}", name(key))).collect()
    }

    fn change(&self, call: &str, object: &Object) -> Result<(), Error> {
        let mut inner = self.get();
        let (key, version) = (object.key().to_string(), object.resource_version().to_string());
        inner.calls.push(format!("{call} {key}@{version}"));
        if let Some(error) = inner.fail_changes.take() {
            return Err(error);
        }
        inner.objects.insert(key, version);
        Ok(())
    }
}

impl ReflectorStore for Recorder {
    fn add(&self, object: Object) -> Result<(), Error> {
        self.change("add", &object)
    }

    fn update(&self, object: Object) -> Result<(), Error> {
        self.change("update", &object)
    }

    fn delete(&self, key: &ObjectKey, last: Option<Object>) -> Result<(), Error> {
        let mut inner = self.get();
        let version = last.map_or("?".to_owned(), |last| last.resource_version().to_string());
        inner.calls.push(format!("delete {key}@{version}"));
        inner.objects.remove(&key.to_string());
        Ok(())
    }

    fn replace(&self, list: Replacement) -> Result<(), Error> {
        let mut inner = self.get();
        let names: Vec<String> =
            list.items.iter().map(|object| format!("{}@{}", object.key().name(), object.resource_version())).collect();
        inner.calls.push(format!("replace [{}]@{}", names.join(" "), list.resource_version));
        if let Some(error) = inner.fail_replace.take() {
            return Err(error);
        }
        if list.complete {
            let unusable: Vec<String> = list.unusable.iter().map(ToString::to_string).collect();
            inner.objects.retain(|key, _| unusable.contains(key));
        }
        for object in list.items {
            inner.objects.insert(object.key().to_string(), object.resource_version().to_string());
        }
        Ok(())
    }

    fn resync(&self) -> Result<(), Error> {
        let mut inner = self.get();
        inner.calls.push("resync".into());
        inner.fail_resync.take().map_or(Ok(()), Err)
    }

    fn bookmark(&self, version: &ResourceVersion) -> Result<(), Error> {
        self.get().calls.push(format!("bookmark {version}"));
        Ok(())
    }

    fn version_moved(&self, version: &ResourceVersion) {
        self.get().versions.push(version.to_string());
    }
}

/// A reflector that runs until this is dropped or stopped.
pub struct Running {
    pub token: CancellationToken,
    pub task: JoinHandle<()>,
}

impl Running {
    pub fn start(reflector: Reflector) -> Self {
        let token = CancellationToken::new();
        Self { task: tokio::spawn(reflector.run(token.clone())), token }
    }

    pub async fn stop(self) {
        self.token.cancel();
        self.task.await.expect("the reflector did not panic");
    }
}

/// Lets everything that is due happen, and then lets `time` pass. For tests with a paused clock.
pub async fn pass(time: Duration) {
    tokio::time::sleep(time).await;
}

/// A piece of a body: bytes, a pause, or an error that breaks the connection.
pub enum Piece {
    Bytes(Bytes),
    Pause(Duration),
    Break,
    Hang,
}

pub type TestBody = UnsyncBoxBody<Bytes, std::io::Error>;

/// A body that comes in these pieces.
pub fn body(pieces: Vec<Piece>) -> TestBody {
    let frames = futures::stream::unfold(pieces.into_iter(), |mut pieces| async move {
        loop {
            match pieces.next()? {
                Piece::Bytes(bytes) => return Some((Ok(Frame::data(bytes)), pieces)),
                Piece::Pause(time) => tokio::time::sleep(time).await,
                Piece::Break => {
                    let error = std::io::Error::from(std::io::ErrorKind::ConnectionReset);
                    return Some((Err(error), Vec::new().into_iter()));
                }
                Piece::Hang => std::future::pending().await,
            }
        }
    });
    UnsyncBoxBody::new(StreamBody::new(frames))
}

/// An answer with status 200 and a body in one piece.
pub fn ok(text: impl Into<Bytes>) -> Response<TestBody> {
    Response::new(body(vec![Piece::Bytes(text.into())]))
}

/// A client whose server is a closure, without any network.
pub fn client(answer: impl Fn(Request<Body>) -> Response<TestBody> + Clone + Send + 'static) -> Client {
    let service = tower::service_fn(move |request| {
        let response = answer(request);
        async move { Ok::<_, Infallible>(response) }
    });
    Client::new(service, "default")
}

/// A reflector at work between a script and a store, with waits that are not jittered.
pub struct Reflected {
    pub source: Scripted,
    pub store: Arc<Recorder>,
    pub status: StatusReader,
    start: Instant,
    running: Running,
}

pub fn reflect(source: &Scripted) -> Reflected {
    reflect_with(source, |reflector| reflector)
}

pub fn reflect_with(source: &Scripted, options: impl FnOnce(Reflector) -> Reflector) -> Reflected {
    let store = Recorder::new();
    let reflector = options(reflector(source, &store));
    let status = reflector.status();
    Reflected { source: source.clone(), store, status, start: Instant::now(), running: Running::start(reflector) }
}

/// A reflector with a seed, and waits that are not jittered.
pub fn reflector(source: &Scripted, store: &Arc<Recorder>) -> Reflector {
    Reflector::new(source.clone(), store.clone()).backoff(Backoff::default().jitter(0.0)).seed(1)
}

impl Reflected {
    pub fn status(&self) -> ReflectorStatus {
        self.status.get()
    }

    /// All requests: `list@0`, `stream@` and `watch@10`, with the version that each asked for.
    pub fn asked(&self) -> Vec<String> {
        asked(&self.source)
    }

    /// When each request was made, in seconds after the start.
    pub fn asked_at(&self) -> Vec<f64> {
        let after = |request: &ScriptedRequest| request.at.duration_since(self.start).as_secs_f64();
        self.source.requests().iter().map(|request| (after(request) * 1000.0).round() / 1000.0).collect()
    }

    /// Stops, and makes sure that nothing stays open.
    pub async fn stop(self) {
        self.running.stop().await;
        assert_eq!(self.source.open_watches(), 0, "a watch was left open");
        assert_eq!(self.status.get().phase, Phase::Stopped);
    }
}

pub fn asked(source: &Scripted) -> Vec<String> {
    let text = |request: &ScriptedRequest| {
        let verb = match request.verb {
            Verb::List => "list",
            Verb::Watch if request.options.send_initial_events == Some(true) => "stream",
            Verb::Watch => "watch",
        };
        format!("{verb}@{}", request.options.resource_version)
    };
    source.requests().iter().map(text).collect()
}

/// A source whose list at version 10 holds pod a at version 1.
pub fn listed() -> Scripted {
    Scripted::new().answer_list(ScriptedList::new("10", [pod("a", "1")]))
}

pub fn expired() -> Error {
    Error::api(410, "Expired", "too old resource version: 10 (500)")
}

pub fn overloaded() -> Error {
    Error::api(429, "TooManyRequests", "too many requests, please try again later")
}

pub fn internal() -> Error {
    Error::api(500, "InternalError", "an error on the server has prevented the request from succeeding")
}

pub fn forbidden() -> Error {
    Error::api(403, "Forbidden", "pods is forbidden")
}

pub fn invalid() -> Error {
    Error::api(400, "BadRequest", "unable to parse requirement")
}

pub fn cut() -> Error {
    Error::new(ErrorKind::Disconnected, "connection reset by peer")
}

/// An object that cannot be used, of which the key is known.
pub fn bad(name: &str, version: &str) -> BadObject {
    BadObject { key: Some(key(name)), resource_version: version.into(), problem: "it is larger than the limit" }
}

/// An object of which not even the key is known.
pub fn unreadable() -> BadObject {
    BadObject { key: None, resource_version: ResourceVersion::unset(), problem: "it is not valid JSON" }
}

/// What this thread logs while this lives.
pub struct Logs {
    lines: Arc<Mutex<Vec<String>>>,
    _guard: tracing::subscriber::DefaultGuard,
}

struct LogLines(Arc<Mutex<Vec<String>>>);

impl Logs {
    pub fn capture() -> Self {
        let lines = Arc::new(Mutex::new(Vec::new()));
        let subscriber = tracing_subscriber::registry().with(LogLines(lines.clone()));
        Self { lines, _guard: tracing::subscriber::set_default(subscriber) }
    }

    /// The lines of this level that contain `text`.
    pub fn lines(&self, level: tracing::Level, text: &str) -> Vec<String> {
        let lines = self.lines.lock().expect("not poisoned");
        lines.iter().filter(|line| line.starts_with(level.as_str()) && line.contains(text)).cloned().collect()
    }
}

impl<S: tracing::Subscriber> tracing_subscriber::Layer<S> for LogLines {
    fn on_event(&self, event: &tracing::Event<'_>, _: tracing_subscriber::layer::Context<'_, S>) {
        use std::fmt::Write as _;
        let mut line = event.metadata().level().to_string();
        event.record(&mut |field: &tracing::field::Field, value: &dyn std::fmt::Debug| {
            let _ = write!(line, " {field}={value:?}");
        });
        if event.metadata().target().starts_with("watchkeeper") {
            self.0.lock().expect("not poisoned").push(line);
        }
    }
}

/// Pods from a server that answers every request with these pieces of bytes.
pub fn pods_in<P: Into<Bytes>>(pieces: impl IntoIterator<Item = P>) -> ListWatch {
    let pieces: Vec<Bytes> = pieces.into_iter().map(Into::into).collect();
    ListWatch::of::<k8s_openapi::api::core::v1::Pod>(client(move |_| {
        Response::new(body(pieces.iter().cloned().map(Piece::Bytes).collect()))
    }))
}

/// Pieces of one byte each.
pub fn bytewise(text: &[u8]) -> Vec<Bytes> {
    text.chunks(1).map(Bytes::copy_from_slice).collect()
}

/// The two pieces that a cut makes.
pub fn cut_at(text: &[u8], at: usize) -> Vec<Bytes> {
    vec![Bytes::copy_from_slice(&text[..at]), Bytes::copy_from_slice(&text[at..])]
}

/// What came of a request, in words: the parts or events, and the error at the end, if there was one.
#[derive(Debug, Clone, PartialEq)]
pub struct Outcome {
    pub parts: Vec<String>,
    pub error: Option<String>,
    pub kind: Option<ErrorKind>,
}

impl Outcome {
    fn new(parts: Vec<String>, error: Option<Error>) -> Self {
        Self { parts, kind: error.as_ref().map(Error::kind), error: error.map(|error| error.to_string()) }
    }

    /// The parts, of something that came to its end.
    #[track_caller]
    pub fn complete(self) -> Vec<String> {
        assert_eq!(self.error, None, "after {:?}", self.parts);
        self.parts
    }
}

/// Reads a list to its end: `metadata 10`, `item {..}` with the JSON, `bad shop/a@1: it has ..`.
pub async fn read_list(source: &ListWatch) -> Outcome {
    let mut parts = Vec::new();
    let mut listing = match source.list(ListOptions::default()).await {
        Ok(listing) => listing,
        Err(error) => return Outcome::new(parts, Some(error)),
    };
    loop {
        parts.push(match listing.next().await {
            Ok(None) => return Outcome::new(parts, None),
            Err(error) => return Outcome::new(parts, Some(error)),
            Ok(Some(ListPart::Progress)) => continue,
            Ok(Some(ListPart::Item(object))) => {
                format!("item {}", String::from_utf8_lossy(&object.json().expect("a body")))
            }
            Ok(Some(ListPart::Bad(object))) => format!("bad {}", words_of_bad(&object)),
            Ok(Some(ListPart::Metadata(metadata))) => {
                let token = metadata.continue_token.map(|token| format!(" continue {token}")).unwrap_or_default();
                let rest = metadata.remaining_item_count.map(|rest| format!(" remaining {rest}")).unwrap_or_default();
                format!("metadata {}{token}{rest}", metadata.resource_version)
            }
        });
    }
}

/// Reads a watch to its end: `added shop/a@1`, `bookmark 7`, `bookmark 7 end`, `bad shop/a@1: it has ..`.
pub async fn read_watch(source: &ListWatch) -> Outcome {
    let mut events = Vec::new();
    let mut stream = match source.watch(ListOptions::default()).await {
        Ok(stream) => stream,
        Err(error) => return Outcome::new(events, Some(error)),
    };
    let object = |object: &Object| format!("{}@{}", object.key(), object.resource_version());
    loop {
        events.push(match stream.next().await {
            Ok(None) => return Outcome::new(events, None),
            Err(error) => return Outcome::new(events, Some(error)),
            Ok(Some(event)) => match event {
                WatchEvent::Progress => continue,
                WatchEvent::Added(added) => format!("added {}", object(&added)),
                WatchEvent::Modified(modified) => format!("modified {}", object(&modified)),
                WatchEvent::Deleted(deleted) => format!("deleted {}", object(&deleted)),
                WatchEvent::DeletedBad(bad) => format!("deleted bad {}", words_of_bad(&bad)),
                WatchEvent::Bad(bad) => format!("bad {}", words_of_bad(&bad)),
                WatchEvent::WrongKind(bad) => format!("wrong kind {}", words_of_bad(&bad)),
                WatchEvent::Unknown(version) => format!("unknown {version}"),
                WatchEvent::Error(error) => format!("error {error}"),
                WatchEvent::Bookmark(bookmark) => {
                    let end = if bookmark.initial_events_end { " end" } else { "" };
                    format!("bookmark {}{end}", bookmark.resource_version)
                }
            },
        });
    }
}

fn words_of_bad(object: &BadObject) -> String {
    let key = object.key.as_ref().map_or("?".to_owned(), ToString::to_string);
    format!("{key}@{}: {}", object.resource_version, object.problem)
}

/// A body of `start` and then `piece` without end, and a count of the bytes that were taken of it.
pub fn endless_body(start: Bytes, piece: Bytes) -> (TestBody, Arc<AtomicUsize>) {
    let taken = Arc::new(AtomicUsize::new(0));
    let count = taken.clone();
    let frames = futures::stream::iter(std::iter::once(start).chain(std::iter::repeat(piece))).map(move |piece| {
        count.fetch_add(piece.len(), Ordering::Relaxed);
        Ok(Frame::data(piece))
    });
    (UnsyncBoxBody::new(StreamBody::new(frames)), taken)
}

/// Does something that must not wait for itself: a test that would hang fails.
pub fn without_deadlock(action: impl FnOnce() + Send + 'static) {
    let (done, is_done) = std::sync::mpsc::channel();
    let thread = std::thread::spawn(move || {
        action();
        let _ok = done.send(());
    });
    if is_done.recv_timeout(seconds(20)) == Err(std::sync::mpsc::RecvTimeoutError::Timeout) {
        panic!("it waits for itself");
    }
    thread.join().expect("no panic");
}
