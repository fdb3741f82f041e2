//! What the tests share: objects, a store that remembers, a server made of closures.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::StreamBody;
use http_body_util::combinators::UnsyncBoxBody;
use hyper::body::Frame;
use kube_client::Client;
use kube_client::client::Body;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use watchkeeper::{Error, Object, ObjectKey, Reflector, ReflectorStore, Replacement, ResourceVersion};

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
