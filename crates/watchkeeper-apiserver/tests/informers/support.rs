//! A server, an informer of its pods with handlers of all kinds, and a hand that writes.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Mutex;
use std::time::Duration;

use bytes::Bytes;
use k8s_openapi::api::core::v1::Pod;
use kube_client::Client;
use kube_client::core::{ApiResource, DynamicObject};
use serde::de::DeserializeOwned;
use serde_json::json;
use tokio::runtime::Handle;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;
use watchkeeper::{
    Backoff, Buffer, Cached, HandlerHandle, HandlerOptions, Index, InformerQueue, InformerStatus, Keep, ListWatch,
    Object, Scope, SharedInformer, TableRow,
};
use watchkeeper_apiserver::{ApiServer, Fault, FaultRecord, Match, Record};

use crate::hearing::{Hearing, How, Journal, Order, State};

/// The limit for one object that the informer is given.
pub(crate) const MAX_OBJECT: usize = 512 << 10;

/// How the reflector lists.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mode {
    Streaming,
    Paged,
}

pub(crate) const MODES: [Mode; 2] = [Mode::Streaming, Mode::Paged];

impl Mode {
    /// The requests by which the reflector lists.
    pub(crate) fn lists(self) -> Match {
        match self {
            Self::Streaming => Match::streaming_list("pods"),
            Self::Paged => Match::list("pods"),
        }
    }
}

/// How an informer sees pods.
pub(crate) trait Sample: DeserializeOwned + Send + Sync + 'static {
    /// Where in what is kept the object is.
    const OBJECT: &'static str = "";
    fn source(client: Client) -> ListWatch;
    /// What it decodes to is what its header says.
    fn check(object: &Cached<Self>);
}

impl Sample for Pod {
    fn source(client: Client) -> ListWatch {
        ListWatch::of::<Self>(client)
    }

    fn check(object: &Cached<Self>) {
        let pod = object.decode().unwrap();
        assert_eq!(pod.metadata.name.as_deref(), Some(object.key().name()));
        assert_eq!(pod.metadata.resource_version.as_deref(), Some(object.resource_version().as_str()));
    }
}

impl Sample for DynamicObject {
    fn source(client: Client) -> ListWatch {
        ListWatch::new(client, ApiResource::erase::<Pod>(&()))
    }

    fn check(object: &Cached<Self>) {
        let pod = object.decode().unwrap();
        assert_eq!(pod.metadata.name.as_deref(), Some(object.key().name()));
        assert_eq!(pod.types.as_ref().unwrap().kind, "Pod");
    }
}

/// Rows of a Table, as people see them.
impl Sample for TableRow<Pod> {
    const OBJECT: &'static str = "/object";

    fn source(client: Client) -> ListWatch {
        ListWatch::of::<Pod>(client).table()
    }

    fn check(object: &Cached<Self>) {
        let row = object.decode().unwrap();
        assert_eq!(row.cells[0], object.key().name());
        assert_eq!(row.object.metadata.name.as_deref(), Some(object.key().name()));
        assert_eq!(row.object.metadata.resource_version.as_deref(), Some(object.resource_version().as_str()));
    }
}

/// What is different from test to test.
#[derive(Debug, Clone)]
pub(crate) struct Setup {
    pub(crate) mode: Mode,
    pub(crate) seed: u64,
    pub(crate) queue: InformerQueue,
    pub(crate) keep: Keep,
    /// All, if there are none.
    pub(crate) namespaces: Vec<&'static str>,
}

impl Setup {
    pub(crate) fn new(mode: Mode) -> Self {
        let (queue, keep) = (InformerQueue::Atomic, Keep::Packed);
        Self { mode, seed: 0, queue, keep, namespaces: Vec::new() }
    }
}

/// All of it together.
pub(crate) struct Bench<K> {
    pub(crate) server: ApiServer,
    pub(crate) informer: SharedInformer<K>,
    pub(crate) setup: Setup,
    /// Those who listen to the end.
    pub(crate) hearings: Mutex<Vec<Hearing>>,
    leaver: Mutex<Option<(Hearing, HandlerHandle)>>,
    written: Mutex<u64>,
    tasks_before: usize,
    /// It has a task of its own, which is none of the informer's.
    _client: Client,
}

impl<K: Sample> Bench<K> {
    /// A server with pods, and an informer that has them.
    pub(crate) async fn start(setup: Setup) -> Self {
        let bench = Self::start_with(setup, |_| {}).await;
        assert!(bench.informer.has_synced(), "{:?}", bench.informer.status());
        bench.assert_true("at the start");
        bench
    }

    /// The same, prepared before the informer starts.
    pub(crate) async fn start_with(setup: Setup, prepare: impl FnOnce(&ApiServer)) -> Self {
        let server = ApiServer::builder().seed(setup.seed).build();
        let client = server.client();
        // What an earlier client has left behind is gone by then.
        sleep(Duration::from_millis(10)).await;
        let tasks_before = Handle::current().metrics().num_alive_tasks();
        let scope = match setup.namespaces.as_slice() {
            [] => Scope::All,
            [one] => Scope::Namespace((*one).to_owned()),
            several => Scope::Namespaces(several.iter().map(|name| (*name).to_owned()).collect()),
        };
        // With so little room even these few pods are packed.
        let source = K::source(client.clone()).max_object_size(MAX_OBJECT).max_raw_bytes(4 << 10).scope(scope);
        let (mode, seed) = (setup.mode, setup.seed);
        let informer = SharedInformer::builder(source.keep(setup.keep.clone()))
            .queue(setup.queue)
            .reflector(move |reflector| {
                let reflector = reflector.streaming_lists(mode == Mode::Streaming).seed(seed);
                reflector.backoff(Backoff::default().seed(seed))
            })
            .build();
        let field = format!("{}/metadata/annotations/write", K::OBJECT);
        informer.add_index("write", Index::field(&field)).await.unwrap();
        informer.add_index("app", Index::label("app")).await.unwrap();
        let bench = Self {
            server,
            informer,
            setup,
            hearings: Mutex::default(),
            leaver: Mutex::default(),
            written: Mutex::new(0),
            tasks_before,
            _client: client,
        };
        bench.listen("begin");
        bench.listen_slowly("coalesce", Duration::from_millis(700));
        *bench.leaver.lock().unwrap() = Some(bench.add("leaver", How::default(), HandlerOptions::new()));
        for name in 0..5 {
            bench.put(&format!("p{name}"));
        }
        prepare(&bench.server);
        bench.informer.start(CancellationToken::new()).unwrap();
        sleep(Duration::from_secs(3)).await;
        bench
    }

    /// Adds a handler that listens to the end.
    pub(crate) fn listen(&self, name: &str) -> HandlerHandle {
        let (hearing, handle) = self.add(name, How::default(), HandlerOptions::new());
        self.hearings.lock().unwrap().push(hearing);
        handle
    }

    pub(crate) fn add(&self, name: &str, how: How, options: HandlerOptions<K>) -> (Hearing, HandlerHandle) {
        let hearing = Hearing::new(name, How { partitioned: self.setup.namespaces.len() > 1, ..how });
        let ears = hearing.clone();
        let handle = self.informer.on_event_with(options.name(name), move |event| {
            ears.hear(event);
            K::check(event.object());
        });
        let handle = handle.unwrap();
        hearing.set_handle(&handle);
        (hearing, handle)
    }

    /// Adds one that takes its time for each event, and hears of what is left.
    pub(crate) fn listen_slowly(&self, name: &str, pause: Duration) -> HandlerHandle {
        let hearing = Hearing::new(name, How { coalesces: true, ..How::default() });
        let mut events = self.informer.events_with(HandlerOptions::new().name(name).buffer(Buffer::Coalesce)).unwrap();
        let handle = events.handle().clone();
        hearing.set_handle(&handle);
        let ears = hearing.clone();
        tokio::spawn(async move {
            while let Some(event) = events.next().await {
                ears.hear(&event);
                sleep(pause).await;
            }
        });
        self.hearings.lock().unwrap().push(hearing);
        handle
    }

    /// A handler that listened to the end is removed before that.
    pub(crate) async fn remove(&self, (hearing, handle): (Hearing, HandlerHandle)) {
        handle.remove_and_wait().await;
        self.hearings.lock().unwrap().retain(|other| !other.is(&hearing));
    }

    /// One of the handlers is removed, and is not called again.
    pub(crate) async fn leave(&self) {
        let leaver = self.leaver.lock().unwrap().take();
        let Some((hearing, handle)) = leaver else { return };
        handle.remove_and_wait().await;
        let calls = hearing.get().calls;
        for _ in 0..2 {
            self.write_some();
            sleep(Duration::from_secs(3)).await;
        }
        assert_eq!(hearing.get().calls, calls, "it was removed");
        assert_eq!(self.informer.handlers().len(), self.hearings.lock().unwrap().len());
    }

    /// Writes a pod, with a state that it never had.
    pub(crate) fn put(&self, name: &str) {
        let mut written = self.written.lock().unwrap();
        *written += 1;
        let namespaces = self.all_namespaces();
        let pod = json!({
            "apiVersion": "v1", "kind": "Pod",
            "metadata": {
                "name": name, "namespace": namespaces[name.len() * 7 % namespaces.len()],
                "annotations": {"write": written.to_string()}, "labels": {"app": format!("app-{}", *written % 3)},
            },
            "spec": {"containers": [{"name": "c", "image": "x"}]},
        });
        self.server.put(pod).unwrap();
    }

    pub(crate) fn delete(&self, name: &str) {
        let pods = self.server.kind("", "pods").unwrap();
        for namespace in self.all_namespaces() {
            self.server.remove(&pods, &format!("{namespace}/{name}"));
        }
    }

    /// Those that are watched, and one that is not, unless all are.
    fn all_namespaces(&self) -> Vec<&'static str> {
        match self.setup.namespaces.as_slice() {
            [] => vec!["default"],
            some => some.iter().copied().chain(["elsewhere"]).collect(),
        }
    }

    /// New pods, changed pods, deleted pods, and pods of the same name again.
    pub(crate) fn write_some(&self) {
        for _ in 0..3 {
            let written = *self.written.lock().unwrap();
            // Names of different lengths, so that they are in different namespaces.
            let name = |number: u64| format!("p{}{}", number % 11, "x".repeat((number % 4) as usize));
            self.put(&name(written * 7));
            if written.is_multiple_of(4) {
                self.delete(&name(written * 3));
            }
        }
    }

    /// Writes for a while.
    pub(crate) async fn write_on(&self, times: usize) {
        for _ in 0..times {
            self.write_some();
            sleep(Duration::from_secs(3)).await;
        }
    }

    /// Ends all watches; the next one is the next request.
    pub(crate) async fn cut(&self) {
        self.server.faults().cut();
        sleep(Duration::from_millis(100)).await;
    }

    /// As long as a client may take to come round: the longest timeout of a watch is ten minutes.
    pub(crate) async fn settle(&self) {
        sleep(Duration::from_secs(1500)).await;
    }

    fn is_watched(&self, key: &str) -> bool {
        let namespaces = &self.setup.namespaces;
        namespaces.is_empty() || namespaces.iter().any(|namespace| key.starts_with(&format!("{namespace}/")))
    }

    /// Everything that does not agree: server and store, store and indexes, store and handlers.
    pub(crate) fn disagreements(&self) -> Vec<String> {
        let mut wrong = Vec::new();
        let objects = self.informer.store().snapshot();
        let mut store = BTreeMap::new();
        let mut indexed: BTreeMap<(&str, String), BTreeSet<String>> = BTreeMap::new();
        for (key, object) in objects.iter() {
            let json: serde_json::Value = object.decode().unwrap();
            let json = json.pointer(K::OBJECT).unwrap();
            for (index, pointer) in [("write", "/metadata/annotations/write"), ("app", "/metadata/labels/app")] {
                if let Some(value) = json.pointer(pointer).and_then(|value| value.as_str()) {
                    indexed.entry((index, value.to_owned())).or_default().insert(key.to_string());
                }
            }
            store.insert(key.to_string(), (State::of(&object.clone().typed::<K>()), object.clone()));
        }
        self.compare_store(&store, &mut wrong);
        let store: BTreeMap<String, State> = store.into_iter().map(|(key, (state, _))| (key, state)).collect();
        for index in ["write", "app"] {
            for value in self.informer.store().index_values(index).unwrap() {
                let keys = self.informer.store().index_keys(index, &value).unwrap();
                let found: BTreeSet<String> = keys.iter().map(ToString::to_string).collect();
                let right = indexed.remove(&(index, value.clone())).unwrap_or_default();
                if found != right {
                    wrong.push(format!("index {index} has {found:?} under {value}, and not {right:?}"));
                }
            }
        }
        wrong.extend(indexed.into_iter().map(|(lost, keys)| format!("{keys:?} are not in index {lost:?}")));

        let journal = self.journal();
        for hearing in self.hearings.lock().unwrap().iter() {
            wrong.extend(hearing.get().check(&store, journal.as_ref(), self.order()));
        }
        wrong
    }

    fn compare_store(&self, store: &BTreeMap<String, (State, Object)>, wrong: &mut Vec<String>) {
        let truth = self.server.truth().now("pods").unwrap();
        let expected: BTreeMap<&str, _> =
            truth.objects().map(|object| (object.key(), object)).filter(|(key, _)| self.is_watched(key)).collect();
        for (key, (state, object)) in store {
            match expected.get(key.as_str()) {
                None => wrong.push(format!("extra {key}@{}", state.version)),
                Some(right) if right.revision() != state.version => {
                    wrong.push(format!("stale {key}@{}, is {}", state.version, right.revision()));
                }
                // An object that was padded on its way is true as long as nobody looks inside.
                Some(right) if kept_object::<K>(object) != right.json() && !is_padded(object) => {
                    wrong.push(format!("altered {key}@{}", state.version));
                }
                Some(_) => {}
            }
        }
        let missing = expected.iter().filter(|(key, _)| !store.contains_key(**key));
        wrong.extend(missing.map(|(key, object)| format!("missing {key}@{}", object.revision())));
    }

    fn order(&self) -> Order {
        let is_padded = |record: &FaultRecord| matches!(record.fault, Fault::Oversize { .. });
        if self.informer.status().partitions.iter().any(|(_, status)| status.versions_backwards > 0) {
            Order::Any
        } else if self.server.faults().injected().iter().any(is_padded) {
            Order::NotFalling
        } else {
            Order::Rising
        }
    }

    /// All that ever was, unless the server has lost its data.
    fn journal(&self) -> Option<Journal> {
        if self.server.faults().injected().iter().any(|record| record.fault == Fault::Restart { keep_data: false }) {
            return None;
        }
        let mut journal = Journal::new();
        for record in self.server.journal() {
            if let Record::Write(entry) = record {
                journal.entry(entry.key.to_string()).or_default().insert(entry.revision);
            }
        }
        Some(journal)
    }

    #[track_caller]
    pub(crate) fn assert_true(&self, when: &str) {
        let wrong = self.disagreements();
        if !wrong.is_empty() {
            let faults: Vec<String> = self.server.faults().injected().iter().map(ToString::to_string).collect();
            let status = self.informer.status();
            panic!("{when}:\n{}\n{status:?}\n{}", wrong.join("\n"), faults.join("\n"));
        }
    }

    /// The comparison with the server agrees that all is well.
    pub(crate) async fn assert_verified(&self, when: &str) {
        let verification = self.informer.verify_against_server().await.unwrap();
        assert!(verification.is_same(), "{when}: {verification}");
    }

    /// Stops the informer; nothing of it is left.
    pub(crate) async fn end(self, when: &str) -> InformerStatus {
        let status = self.informer.status();
        for hearing in self.informer.handlers() {
            assert!(hearing.has_synced() && hearing.backlog() == 0 && hearing.panics() == 0, "{when}: {hearing:?}");
        }
        self.informer.shutdown().await;
        // What was told to end has its turn.
        sleep(Duration::from_millis(10)).await;
        let tasks = Handle::current().metrics().num_alive_tasks();
        assert_eq!(tasks, self.tasks_before, "{when}: tasks are left");
        assert_eq!(self.server.storage().watches(), 0, "{when}: watches are left");
        status
    }
}

/// The JSON of the object itself, of what is kept of it.
fn kept_object<K: Sample>(object: &Object) -> Bytes {
    const OBJECT_KEY: &[u8] = br#","object":"#;
    let json = object.json().unwrap();
    match K::OBJECT {
        "" => json,
        // What is kept of a row ends with the object.
        _ => {
            let start = json.windows(OBJECT_KEY.len()).position(|window| window == OBJECT_KEY).unwrap();
            json.slice(start + OBJECT_KEY.len()..json.len() - 1)
        }
    }
}

fn is_padded(object: &Object) -> bool {
    object.json().unwrap().ends_with(b"xxx\"}")
}
