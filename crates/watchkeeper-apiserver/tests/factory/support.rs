//! A server that counts what it is asked, and handlers that write down what they hear.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex, mpsc};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use futures::future::BoxFuture;
use http::{Request, Response};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt as _, Full};
use k8s_openapi::api::core::v1::Pod;
use kube_client::Client;
use kube_client::client::Body;
use serde_json::{Value, json};
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;
use tower::{BoxError, Service};
use watchkeeper::{Event, HandlerHandle, HandlerOptions, InformerFactory, InformerOptions, SharedInformer};
use watchkeeper_apiserver::{ApiServer, ApiService, Namespaces};

/// A server, and everything that it was asked.
pub(crate) struct Cluster {
    pub(crate) server: ApiServer,
    log: Arc<Log>,
}

#[derive(Default)]
struct Log {
    requests: Mutex<Vec<Asked>>,
    open_watches: AtomicUsize,
    forbidden: Mutex<Vec<String>>,
}

/// A request, as far as a test can want to know.
#[derive(Debug, Clone)]
pub(crate) struct Asked {
    pub(crate) path: String,
    pub(crate) query: BTreeMap<String, String>,
    pub(crate) accept: String,
}

impl Asked {
    pub(crate) fn option(&self, name: &str) -> &str {
        self.query.get(name).map_or("", String::as_str)
    }

    pub(crate) fn is_watch(&self) -> bool {
        self.option("watch") == "true"
    }

    /// A list, in pages or as the beginning of a watch.
    pub(crate) fn is_list(&self) -> bool {
        !self.is_watch() || self.option("sendInitialEvents") == "true"
    }
}

impl Cluster {
    pub(crate) fn new() -> Self {
        let server = ApiServer::builder().namespaces(Namespaces::OnDemand).seed(1).build();
        Self { server, log: Arc::default() }
    }

    /// One that has these pods.
    pub(crate) fn with_pods(pods: &[&str]) -> Self {
        let cluster = Self::new();
        for key in pods {
            cluster.put(pod(key));
        }
        cluster
    }

    pub(crate) fn client(&self) -> Client {
        Client::new(Door { service: self.server.service(), log: self.log.clone() }, "default")
    }

    pub(crate) fn factory(&self) -> InformerFactory {
        InformerFactory::new(self.client())
    }

    pub(crate) fn factory_with(&self, defaults: InformerOptions) -> InformerFactory {
        InformerFactory::builder(self.client()).defaults(defaults).build()
    }

    /// Puts an object there, or another one in its place.
    pub(crate) fn put(&self, object: Value) {
        self.server.put(object).unwrap();
    }

    pub(crate) fn delete_pod(&self, key: &str) {
        let pods = self.server.kind("", "pods").unwrap();
        self.server.remove(&pods, key).unwrap();
    }

    /// All paths that end so are forbidden.
    pub(crate) fn forbid(&self, path: &str) {
        self.log.forbidden.lock().unwrap().push(path.to_owned());
    }

    pub(crate) fn allow_all(&self) {
        self.log.forbidden.lock().unwrap().clear();
    }

    /// What it was asked about a kind.
    pub(crate) fn asked(&self, plural: &str) -> Vec<Asked> {
        let requests = self.log.requests.lock().unwrap();
        requests.iter().filter(|asked| asked.path.rsplit('/').next() == Some(plural)).cloned().collect()
    }

    pub(crate) fn lists(&self, plural: &str) -> usize {
        self.asked(plural).iter().filter(|asked| asked.is_list()).count()
    }

    pub(crate) fn watches(&self, plural: &str) -> usize {
        self.asked(plural).iter().filter(|asked| asked.is_watch()).count()
    }

    pub(crate) fn open_watches(&self) -> usize {
        self.log.open_watches.load(SeqCst)
    }
}

/// The way to the server.
#[derive(Clone)]
struct Door {
    service: ApiService,
    log: Arc<Log>,
}

type Answer = Response<UnsyncBoxBody<Bytes, BoxError>>;

impl Service<Request<Body>> for Door {
    type Response = Answer;
    type Error = BoxError;
    type Future = BoxFuture<'static, Result<Answer, BoxError>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let query = request.uri().query().unwrap_or_default();
        let asked = Asked {
            path: request.uri().path().to_owned(),
            query: form_urlencoded::parse(query.as_bytes()).into_owned().collect(),
            accept: request.headers()[http::header::ACCEPT].to_str().unwrap().to_owned(),
        };
        let is_watch = asked.is_watch();
        let is_forbidden = self.log.forbidden.lock().unwrap().iter().any(|path| asked.path.ends_with(path));
        self.log.requests.lock().unwrap().push(asked);
        if is_forbidden {
            let status = json!({"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": 403,
                "reason": "Forbidden", "message": "this is not for you"});
            let body = Full::new(Bytes::from(status.to_string())).map_err(|never: Infallible| match never {});
            let answer = Response::builder().status(403).header("Content-Type", "application/json");
            return Box::pin(async move { Ok(answer.body(body.boxed_unsync())?) });
        }
        let (answer, log) = (self.service.call(request), self.log.clone());
        Box::pin(async move {
            let answer = answer.await?;
            if !is_watch {
                return Ok(answer.map(|body| body.map_err(Into::into).boxed_unsync()));
            }
            let open = Open::new(log);
            Ok(answer.map(|body| {
                let body = body.map_frame(move |frame| {
                    let _open = &open;
                    frame
                });
                body.map_err(Into::into).boxed_unsync()
            }))
        })
    }
}

/// A watch that is being read.
struct Open(Arc<Log>);

impl Open {
    fn new(log: Arc<Log>) -> Self {
        log.open_watches.fetch_add(1, SeqCst);
        Self(log)
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        self.0.open_watches.fetch_sub(1, SeqCst);
    }
}

/// What a handler has heard: `+ shop/web-0`, `~ shop/web-0`, `- shop/web-0`.
#[derive(Clone, Default)]
pub(crate) struct Heard(Arc<Mutex<Vec<String>>>);

impl Heard {
    pub(crate) fn listen<K: 'static>(informer: &SharedInformer<K>) -> (Self, HandlerHandle) {
        let heard = Self::default();
        let lines = heard.0.clone();
        let handle = informer.on_event(move |event| lines.lock().unwrap().push(line(event))).unwrap();
        (heard, handle)
    }

    /// What was heard since the last time.
    pub(crate) fn take(&self) -> Vec<String> {
        std::mem::take(&mut self.0.lock().unwrap())
    }
}

/// A handler of pods that is in its first call until it is let go.
pub(crate) struct Busy {
    let_go: mpsc::Sender<()>,
    returned: Arc<AtomicBool>,
}

impl Busy {
    /// Starts the factory, which has a pod, and waits until the handler is busy with it.
    pub(crate) async fn start(factory: &InformerFactory) -> Self {
        let (let_go, gone) = mpsc::channel();
        let (entered, returned) = (Arc::new(Notify::new()), Arc::new(AtomicBool::new(false)));
        let (is_in, is_over) = (entered.clone(), returned.clone());
        let handler = move |_: &Event<Pod>| {
            is_in.notify_one();
            let _ = gone.recv();
            is_over.store(true, SeqCst);
        };
        factory.informer::<Pod>().on_event_with(HandlerOptions::new().blocking(), handler).unwrap();
        start(factory);
        entered.notified().await;
        Self { let_go, returned }
    }

    pub(crate) fn let_go(&self) {
        self.let_go.send(()).unwrap();
    }

    pub(crate) fn has_returned(&self) -> bool {
        self.returned.load(SeqCst)
    }
}

pub(crate) fn line<K>(event: &Event<K>) -> String {
    let sign = match event {
        Event::Added { .. } => '+',
        Event::Updated { .. } => '~',
        Event::Deleted { .. } => '-',
    };
    format!("{sign} {}", event.key())
}

/// `namespace/name`, on a node, with a label.
pub(crate) fn pod(key: &str) -> Value {
    let (namespace, name) = key.split_once('/').unwrap();
    json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": name, "namespace": namespace, "labels": {"app": name.split('-').next()}},
        "spec": {"nodeName": "node-1", "containers": [{"name": "c", "image": "x"}]},
    })
}

pub(crate) fn start(factory: &InformerFactory) {
    factory.start(CancellationToken::new()).unwrap();
}

/// Starts all, and waits for all first lists.
pub(crate) async fn sync(factory: &InformerFactory) {
    start(factory);
    factory.wait_synced().await.into_result().unwrap();
    settle().await;
}

/// Time for everything that is under way. Less than a pause between two requests.
pub(crate) async fn settle() {
    tokio::time::sleep(Duration::from_millis(50)).await;
}

pub(crate) async fn seconds(seconds: u64) {
    tokio::time::sleep(Duration::from_secs(seconds)).await;
}

pub(crate) fn names(informer: &SharedInformer<Pod>) -> Vec<String> {
    let mut names: Vec<String> = informer.lister().list().iter().map(|pod| pod.key().to_string()).collect();
    names.sort();
    names
}

/// Tasks that there are, apart from the one that each kube client has.
pub(crate) fn tasks() -> usize {
    tokio::runtime::Handle::current().metrics().num_alive_tasks() - 1
}
