//! The server: how it is made, and what a program can do with it directly.

use std::fs::File;
use std::io::{BufReader, BufWriter};
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use ::http::HeaderValue;
use bytes::Bytes;
use jiff::Timestamp;
use serde_json::{Value, json};
use tokio_util::sync::{CancellationToken, DropGuard};
use tower::ServiceExt as _;

use crate::access::{AccessRules, User};
use crate::clock::Clock;
use crate::crds::{self, Definitions};
use crate::defaults::{BOOKMARK_JITTER, BOOKMARKS, JOURNAL, WATCH_BUFFER};
use crate::failure::Failure;
use crate::faults::{Faults, Injector, Record};
use crate::http::ApiService;
use crate::http::accept::Representation;
use crate::http::body::{self, Sent};
use crate::http::options::Options;
use crate::http::warnings::Warnings;
use crate::kinds::{CustomResource, InvalidResource, Kind, Registry, server_version};
use crate::life::{self, Controllers};
use crate::openapi::Documents;
use crate::private_file::replace;
use crate::random::Random;
use crate::storage::{Expect, FileError, History, Saved, Storage, Stored};
use crate::truth::Truth;
use crate::validation::quoted;
use crate::verbs::{Call, admit, create, place, validate};

/// Who owns the fields of objects that a program creates directly.
const DIRECT: &str = "watchkeeper";
/// Who owns those of the namespaces that every cluster has.
const FOUNDER: &str = "kube-apiserver";

/// Where objects may be created.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Namespaces {
    /// Only in namespaces that are there, as in a cluster.
    Strict,
    /// Anywhere: a namespace that is not there is made.
    OnDemand,
}

/// How a watch from a version that is no longer kept is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExpiredWatch {
    /// With an ERROR event in a stream that was opened, as a kube-apiserver does.
    Event,
    /// With status 410, as a kube-apiserver may do too.
    Status,
}

/// What can be set.
#[derive(Debug, Clone)]
pub(crate) struct Settings {
    pub(crate) namespaces: Namespaces,
    pub(crate) bookmarks: Duration,
    pub(crate) bookmark_jitter: f64,
    pub(crate) expired_watch: ExpiredWatch,
    pub(crate) watch_buffer: usize,
    pub(crate) controllers: Controllers,
    pub(crate) access: Option<Arc<AccessRules>>,
    pub(crate) managed_fields: bool,
}

/// Sets up a server. [`ApiServer::builder`] makes one.
///
/// ```
/// use std::time::Duration;
/// use watchkeeper_apiserver::{ApiServer, Namespaces};
///
/// let server = ApiServer::builder()
///     .namespaces(Namespaces::OnDemand)
///     .bookmarks(Duration::from_secs(10))
///     .seed(7)
///     .build();
/// assert_eq!(server.storage().revision(), 5);
/// ```
#[derive(Debug, Clone)]
pub struct Builder {
    settings: Settings,
    history: History,
    journal: usize,
    seed: Option<u64>,
    wall_clock: Option<Timestamp>,
}

impl Builder {
    /// Where objects may be created; only in namespaces that are there, if not said otherwise.
    pub fn namespaces(mut self, namespaces: Namespaces) -> Self {
        self.settings.namespaces = namespaces;
        self
    }

    /// How often watches that allow it get a bookmark: about every minute, if not said otherwise, and up to a quarter
    /// later.
    pub fn bookmarks(mut self, every: Duration) -> Self {
        self.settings.bookmarks = every;
        self
    }

    /// By how much a bookmark may be late, as a part of their distance; a quarter, if not said otherwise.
    pub fn bookmark_jitter(mut self, part: f64) -> Self {
        self.settings.bookmark_jitter = part.clamp(0.0, 1.0);
        self
    }

    /// How much of the past is kept.
    pub fn history(mut self, history: History) -> Self {
        self.history = history;
        self
    }

    /// How many writes the journal keeps; 100,000, if not said otherwise.
    pub fn journal(mut self, entries: usize) -> Self {
        self.journal = entries;
        self
    }

    /// How many events may wait for a watcher before it is cut off; 1,000, if not said otherwise.
    pub fn watch_buffer(mut self, events: usize) -> Self {
        self.settings.watch_buffer = events;
        self
    }

    /// How a watch from a version that is no longer kept is refused.
    pub fn expired_watch(mut self, expired_watch: ExpiredWatch) -> Self {
        self.settings.expired_watch = expired_watch;
        self
    }

    /// Who removes what belongs to something that is gone, and empties namespaces; the server itself, if not said
    /// otherwise. Say so if a kube-controller-manager runs on it.
    pub fn controllers(mut self, controllers: Controllers) -> Self {
        self.settings.controllers = controllers;
        self
    }

    /// Who may do what; everybody everything, if not said otherwise.
    pub fn rules(mut self, rules: AccessRules) -> Self {
        self.settings.access = Some(Arc::new(rules));
        self
    }

    /// Whether `metadata.managedFields` are kept: who owns which field. They are, if not said otherwise. Without them an
    /// object is a third smaller, and applying a configuration removes nothing and conflicts with nobody.
    pub fn managed_fields(mut self, kept: bool) -> Self {
        self.settings.managed_fields = kept;
        self
    }

    /// Makes uids, generated names and jitter the same in every run.
    pub fn seed(mut self, seed: u64) -> Self {
        self.seed = Some(seed);
        self
    }

    /// What time it is when the server is made. Time then passes with tokio's clock, which tests can pause.
    pub fn wall_clock(mut self, now: Timestamp) -> Self {
        self.wall_clock = Some(now);
        self
    }

    /// The server, with the namespaces that every cluster has.
    pub fn build(self) -> ApiServer {
        let stopping = CancellationToken::new();
        let inner = Arc::new(Inner {
            registry: Registry::new(),
            storage: Storage::new(self.history, self.journal, self.settings.controllers == Controllers::BuiltIn),
            clock: Clock::starting_at(self.wall_clock.unwrap_or_else(Timestamp::now)),
            random: Random::new(self.seed),
            settings: self.settings,
            version: server_version(),
            stopping: stopping.clone(),
            faults: Injector::new(),
            openapi: Documents::default(),
            definitions: Definitions::default(),
            addresses: Mutex::default(),
        });
        inner.found();
        ApiServer { inner, _stop: Arc::new(stopping.drop_guard()) }
    }
}

/// An API server in memory. Clones are the same server; with the last one all its watches end, and its services and
/// clients answer no more.
///
/// ```
/// use kube_client::{Api, api::ListParams};
/// use k8s_openapi::api::core::v1::ConfigMap;
/// use serde_json::json;
/// use watchkeeper_apiserver::ApiServer;
///
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let server = ApiServer::new();
/// let maps: Api<ConfigMap> = Api::namespaced(server.client(), "default");
/// server.create(json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "namespace": "default"}}))?;
/// assert_eq!(maps.list(&ListParams::default()).await?.items.len(), 1);
/// # Ok(()) }
/// ```
#[derive(Clone)]
pub struct ApiServer {
    inner: Arc<Inner>,
    /// Ends all watches with the last clone.
    _stop: Arc<DropGuard>,
}

/// What services and watches share.
pub(crate) struct Inner {
    pub(crate) registry: Registry,
    pub(crate) storage: Storage,
    pub(crate) clock: Clock,
    pub(crate) random: Random,
    pub(crate) settings: Settings,
    /// The answer to `/version`.
    pub(crate) version: Bytes,
    pub(crate) stopping: CancellationToken,
    pub(crate) faults: Injector,
    pub(crate) openapi: Documents,
    pub(crate) definitions: Definitions,
    /// Held by whoever gives out addresses of services.
    pub(crate) addresses: Mutex<()>,
}

impl Default for ApiServer {
    fn default() -> Self {
        Self::new()
    }
}

impl ApiServer {
    /// A server as a fresh cluster has it.
    pub fn new() -> Self {
        Self::builder().build()
    }

    /// Sets up a server.
    pub fn builder() -> Builder {
        Builder {
            settings: Settings {
                namespaces: Namespaces::Strict,
                bookmarks: BOOKMARKS,
                bookmark_jitter: BOOKMARK_JITTER,
                expired_watch: ExpiredWatch::Event,
                watch_buffer: WATCH_BUFFER,
                controllers: Controllers::BuiltIn,
                access: None,
                managed_fields: true,
            },
            history: History::default(),
            journal: JOURNAL,
            seed: None,
            wall_clock: None,
        }
    }

    /// The server as a tower service, for any client that takes one.
    pub fn service(&self) -> ApiService {
        ApiService { server: self.inner.clone() }
    }

    /// A client of the server: no socket, no runtime of its own, and time that can be paused.
    pub fn client(&self) -> kube_client::Client {
        kube_client::Client::new(self.service(), "default")
    }

    /// A client that is a user of the [`AccessRules`], or some other one that they do not know.
    pub fn client_of(&self, user: &str) -> kube_client::Client {
        // A name that no header can have is nobody's.
        let user = HeaderValue::try_from(user).unwrap_or_else(|_| HeaderValue::from_static("system:anonymous"));
        let service = self.service().map_request(move |mut request: ::http::Request<kube_client::client::Body>| {
            request.headers_mut().insert("impersonate-user", user.clone());
            request
        });
        kube_client::Client::new(service, "default")
    }

    /// All objects, and what has happened to them.
    pub fn storage(&self) -> &Storage {
        &self.inner.storage
    }

    /// What goes wrong, on demand.
    pub fn faults(&self) -> Faults {
        Faults::new(self.inner.clone())
    }

    /// What is true, for a cache to be compared with.
    pub fn truth(&self) -> Truth<'_> {
        Truth::new(&self.inner)
    }

    /// Every write, as far as the journal reaches back, and every fault that was injected, oldest first.
    ///
    /// ```
    /// let server = watchkeeper_apiserver::ApiServer::new();
    /// let lines: Vec<String> = server.journal().iter().map(ToString::to_string).collect();
    /// assert_eq!(lines[0], "revision 2: namespaces default written");
    /// ```
    pub fn journal(&self) -> Vec<Record> {
        let (storage, faults) = (&self.inner.storage, &self.inner.faults);
        crate::faults::merged(storage.journal_since(0), faults.records(), faults.life())
    }

    /// Adds a custom kind, or replaces it; objects that there are stay. A CustomResourceDefinition that is created, put or
    /// loaded makes its kind itself.
    pub fn register(&self, resource: CustomResource) -> Result<Arc<Kind>, InvalidResource> {
        self.inner.registry.register(resource)
    }

    /// The kind of a group and a plural: `("apps", "deployments")`.
    pub fn kind(&self, group: &str, plural: &str) -> Option<Arc<Kind>> {
        self.inner.registry.find(group, plural)
    }

    /// Creates an object as a `POST` does, with `watchkeeper` as its field manager. Its kind decides the path; in
    /// namespaced kinds, `default` is the namespace of one that names none.
    pub fn create(&self, object: Value) -> Result<Arc<Stored>, Failure> {
        let created = self.inner.create(object);
        life::settle_now(&self.inner);
        created
    }

    /// Puts an object there as it is, with its status, whatever was there: for filling a server. Only uid, creation time
    /// and version are filled in. Namespaces are not looked at, nor are owners, and nobody owns its fields but whom it names itself.
    pub fn put(&self, object: Value) -> Result<Arc<Stored>, Failure> {
        let (call, sent) = self.inner.call_for(object)?;
        let (kind, mut document) = (&call.kind, sent.document);
        place(&call, &mut document)?;
        if crds::is_definition(kind) {
            crds::adopt(&mut document);
        }
        validate(kind, None, &document, None, Vec::new())?;
        let key = call.key_of(document.meta("name"));
        if document.meta("uid").is_empty() {
            let known = self.inner.storage.get(kind, &key);
            document.set_meta("uid", known.map_or_else(|| self.inner.random.uid(), |known| known.uid().to_owned()));
        }
        if document.meta("creationTimestamp").is_empty() {
            document.set_meta("creationTimestamp", self.inner.clock.now());
        }
        let written = self.inner.storage.fill(kind, &key, &document);
        crds::settle(&self.inner);
        Ok(written)
    }

    /// Removes an object, whatever holds it; answers with the deletion's revision, if it was there. `key` is
    /// `namespace/name`, or `name`.
    pub fn remove(&self, kind: &Arc<Kind>, key: &str) -> Option<u64> {
        self.inner.storage.get(kind, key)?;
        let revision = self.inner.storage.delete(kind, key, Expect::Anything).ok();
        life::settle_now(&self.inner);
        revision
    }

    /// The CustomResourceDefinitions whose kinds are not served, by name: their names are taken, or they came from a file
    /// and there is something wrong with them.
    pub fn unserved_definitions(&self) -> Vec<String> {
        crds::unserved(&self.inner)
    }

    /// Forgets all changes up to a revision, as etcd's compaction does.
    pub fn compact(&self, revision: u64) {
        self.inner.storage.compact(revision);
    }

    /// Ends all watches, and answers no more.
    pub fn stop(&self) {
        self.inner.stopping.cancel();
    }

    /// Writes all objects to a file that only its owner can read. One that was there is replaced at once.
    pub fn save(&self, path: impl AsRef<Path>) -> Result<(), FileError> {
        replace(path.as_ref(), |file| self.inner.storage.save(&self.inner.registry.all(), &mut BufWriter::new(file)))
    }

    /// Puts the objects of a file in the place of all that there are. Custom kinds are made by the definitions of the file, or
    /// must have been registered. No revision
    /// that the file has seen is used again, and watches and lists of the time before are told that they are too old.
    ///
    /// ```
    /// use watchkeeper_apiserver::ApiServer;
    ///
    /// let path = std::env::temp_dir().join(format!("watchkeeper-apiserver-{}.jsonl", std::process::id()));
    /// let server = ApiServer::new();
    /// server.create(serde_json::json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n1"}}))?;
    /// server.save(&path)?;
    ///
    /// let again = ApiServer::new();
    /// again.load(&path)?;
    /// assert_eq!(again.storage().revision(), server.storage().revision());
    /// # std::fs::remove_file(&path)?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn load(&self, path: impl AsRef<Path>) -> Result<(), FileError> {
        crds::load(&self.inner, Saved::read(BufReader::new(File::open(path)?))?)
    }
}

impl Inner {
    /// Makes the namespaces that every cluster has.
    pub(crate) fn found(self: &Arc<Self>) {
        for name in ["default", "kube-node-lease", "kube-public", "kube-system"] {
            // They are new and well-formed: this cannot fail.
            let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}});
            let _ = self.create_as(FOUNDER, namespace);
        }
    }

    /// How long until the next bookmark of a watch.
    pub(crate) fn bookmark_pause(&self) -> Duration {
        self.random.jittered(self.settings.bookmarks, 1.0 + self.settings.bookmark_jitter)
    }

    /// Creates an object as a `POST` does.
    pub(crate) fn create(self: &Arc<Self>, object: Value) -> Result<Arc<Stored>, Failure> {
        self.create_as(DIRECT, object)
    }

    fn create_as(self: &Arc<Self>, manager: &str, object: Value) -> Result<Arc<Stored>, Failure> {
        let (mut call, sent) = self.call_for(object)?;
        call.options.field_manager = manager.to_owned();
        let sent = admit::decoded(&call, sent)?;
        create::create(&call, sent, false)
    }

    /// The request that an object asks for by its own kind and namespace.
    fn call_for(self: &Arc<Self>, object: Value) -> Result<(Call, Sent), Failure> {
        let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
        let (api_version, kind) = (text("/apiVersion"), text("/kind"));
        let kind = self.registry.of_object(api_version, kind).ok_or_else(|| {
            let (kind, version) = (quoted(kind), quoted(api_version));
            Failure::bad_request(format!("no kind {kind} is registered for version {version}"))
        })?;
        let version = api_version.rsplit('/').next().unwrap_or(api_version).to_owned();
        let namespace = match (kind.namespaced, text("/metadata/namespace")) {
            (false, _) => None,
            (true, "") => Some("default".to_owned()),
            (true, namespace) => Some(namespace.to_owned()),
        };
        let served = kind.version(&version).unwrap_or_else(|| kind.storage_version());
        let sent = body::from_tree(&kind, served, object)?;
        Ok((self.call(kind, version, namespace), sent))
    }

    /// What the server itself writes to the status of an object, as a request of its own.
    pub(crate) fn status_call(self: &Arc<Self>, kind: &Arc<Kind>) -> Call {
        let mut call = self.call(kind.clone(), kind.storage_version().name.clone(), None);
        call.subresource = Some("status".to_owned());
        call.options.field_manager = FOUNDER.to_owned();
        call
    }

    fn call(self: &Arc<Self>, kind: Arc<Kind>, version: String, namespace: Option<String>) -> Call {
        Call {
            server: self.clone(),
            kind,
            version,
            namespace,
            name: None,
            subresource: None,
            options: Options::default(),
            representation: Representation::Whole,
            media_type: String::new(),
            user_agent: String::new(),
            body: Bytes::new(),
            warnings: Warnings::default(),
            user: User::admin(),
        }
    }
}
