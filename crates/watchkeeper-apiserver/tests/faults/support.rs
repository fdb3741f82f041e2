//! A server, a reflector that copies its pods, and a hand that writes.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use serde_json::json;
use tokio::time::sleep;
use tokio_util::sync::{CancellationToken, DropGuard};
use watchkeeper::{Backoff, Index, Indexer, ListWatch, Object, Reason, Reflector, ReflectorStatus, StatusReader};
use watchkeeper_apiserver::{ApiServer, Differences, Fault, Match, digest};

/// The limit for one object that the reflector is given.
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

/// All of it together.
pub(crate) struct Bench {
    pub(crate) server: ApiServer,
    pub(crate) status: StatusReader,
    store: Arc<Indexer<Object>>,
    source: ListWatch,
    written: Mutex<u64>,
    _stop: DropGuard,
}

impl Bench {
    /// A server with pods, and a reflector that has copied them.
    pub(crate) async fn start(mode: Mode) -> Self {
        let bench = Self::start_with(mode, 0, |_| {}).await;
        assert!(bench.status.get().synced, "{mode:?}: {:?}", bench.status);
        bench.assert_true("at the start");
        bench
    }

    /// The same, prepared before the reflector starts.
    pub(crate) async fn start_with(mode: Mode, seed: u64, prepare: impl FnOnce(&ApiServer)) -> Self {
        let server = ApiServer::builder().seed(seed).build();
        let writes = Index::field("/metadata/annotations/write");
        let store = Arc::new(Indexer::objects().with_index("write", writes).unwrap());
        // With so little room even these few pods are packed.
        let source = ListWatch::by_name(server.client(), "", "v1", "pods")
            .max_object_size(MAX_OBJECT)
            .max_raw_bytes(4 << 10)
            .for_store(&store);
        let reflector = Reflector::new(source.clone(), store.clone())
            .streaming_lists(mode == Mode::Streaming)
            .seed(seed)
            .backoff(Backoff::default().seed(seed));
        let token = CancellationToken::new();
        let status = reflector.status();
        let bench = Self { server, status, store, source, written: Mutex::new(0), _stop: token.clone().drop_guard() };
        for name in 0..5 {
            bench.put(&format!("p{name}"));
        }
        prepare(&bench.server);
        tokio::spawn(reflector.run(token));
        sleep(Duration::from_secs(3)).await;
        bench
    }

    /// Writes a pod, with a state that it never had.
    pub(crate) fn put(&self, name: &str) {
        let mut written = self.written.lock().unwrap();
        *written += 1;
        let pod = json!({
            "apiVersion": "v1", "kind": "Pod",
            "metadata": {"name": name, "namespace": "default", "annotations": {"write": written.to_string()}},
            "spec": {"containers": [{"name": "c", "image": "x"}]},
        });
        self.server.put(pod).unwrap();
    }

    pub(crate) fn delete(&self, name: &str) {
        let pods = self.server.kind("", "pods").unwrap();
        self.server.remove(&pods, &format!("default/{name}"));
    }

    /// New pods, changed pods, deleted pods, and pods of the same name again.
    pub(crate) fn write_some(&self) {
        for _ in 0..3 {
            let written = *self.written.lock().unwrap();
            self.put(&format!("p{}", written * 7 % 11));
            if written.is_multiple_of(4) {
                self.delete(&format!("p{}", written * 3 % 11));
            }
        }
    }

    /// Writes for a minute.
    pub(crate) async fn write_on(&self) {
        for _ in 0..20 {
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

    /// Makes the reflector list again: its next watch is told that its version is forgotten.
    pub(crate) async fn force_relist(&self) {
        let before = self.relists(Reason::Expired);
        self.server.faults().on(Match::watch("pods").once()).then(Fault::expired());
        self.server.faults().cut();
        self.settle().await;
        assert!(self.relists(Reason::Expired) > before, "{:?}", self.status);
    }

    /// Compares keys and versions only: a padded object is true as long as nobody looks inside.
    pub(crate) fn compare_versions(&self) -> Result<(), Differences> {
        let objects = self.store.snapshot();
        let truth = self.server.truth().now("pods").unwrap();
        truth.compare(objects.iter().map(|(key, object)| (key, object.resource_version())))
    }

    pub(crate) fn compare(&self) -> Result<(), Differences> {
        let objects: Vec<(String, String, Bytes)> = {
            let parts = |object: &Object| {
                (object.key().to_string(), object.resource_version().to_string(), object.json().expect("a body"))
            };
            self.store.snapshot().iter().map(|(_, object)| parts(object)).collect()
        };
        self.compare_index();
        let truth = self.server.truth().now("pods").unwrap();
        let compared = truth.compare_bytes(objects.iter().map(|(key, version, json)| (key, version, json)));
        if compared.is_ok() {
            assert_eq!(digest(objects.iter().map(|(key, version, _)| (key, version))), truth.digest());
        }
        compared
    }

    /// The index has each object under what stands in its body, and nothing else.
    fn compare_index(&self) {
        let mut indexed = 0;
        for value in self.store.index_values("write").unwrap() {
            for (key, object) in self.store.by_index("write", &value).unwrap().iter() {
                let pod: serde_json::Value = object.decode().unwrap();
                assert_eq!(pod["metadata"]["annotations"]["write"], value.as_str(), "{key}");
                indexed += 1;
            }
        }
        let all = self.store.snapshot();
        let with_value = |object: &Object| {
            let pod: serde_json::Value = object.decode().unwrap();
            !pod["metadata"]["annotations"]["write"].is_null()
        };
        assert_eq!(indexed, all.iter().filter(|(_, object)| with_value(object)).count());
    }

    #[track_caller]
    pub(crate) fn assert_true(&self, when: &str) {
        self.expect(when, self.compare());
    }

    #[track_caller]
    pub(crate) fn expect(&self, when: &str, compared: Result<(), Differences>) {
        if let Err(differences) = compared {
            let faults: Vec<String> = self.server.faults().injected().iter().map(ToString::to_string).collect();
            panic!("{when}: {differences}\n{:?}\n{}", self.status, faults.join("\n"));
        }
    }

    pub(crate) fn relists(&self, reason: Reason) -> u64 {
        self.status.get().relists.get(&reason).copied().unwrap_or_default()
    }

    pub(crate) fn restarts(&self, reason: Reason) -> u64 {
        self.status.get().watch_restarts.get(&reason).copied().unwrap_or_default()
    }
}

/// A fault of the next watches, with writes before, during and after; the copy is true again without any help.
pub(crate) async fn watch_heals(mode: Mode, times: u64, fault: Fault) -> (Bench, ReflectorStatus) {
    let bench = Bench::start(mode).await;
    bench.write_some();
    sleep(Duration::from_secs(2)).await;
    bench.assert_true("before");
    let rule = bench.server.faults().on(Match::watch("pods").times(times)).then(fault.clone());
    bench.cut().await;
    // A watch that ends within its first second, with no event, counts as broken, whatever ended it.
    sleep(Duration::from_secs(2)).await;
    bench.write_on().await;
    finish(&bench, mode, &fault, rule.injected()).await;
    let status = bench.status.get();
    (bench, status)
}

/// A fault of the lists, the first ones and those of a forced relist.
pub(crate) async fn list_heals(mode: Mode, times: u64, fault: Fault) -> (Bench, ReflectorStatus) {
    let bench = Bench::start_with(mode, 0, |server| {
        server.faults().on(mode.lists().times(times)).then(fault.clone());
    })
    .await;
    bench.write_on().await;
    let injected = u64::try_from(bench.server.faults().injected().len()).unwrap();
    finish(&bench, mode, &fault, injected).await;

    // After some faults streaming lists are not used for an hour.
    sleep(Duration::from_secs(3700)).await;
    let rule = bench.server.faults().on(mode.lists().times(times)).then(fault.clone());
    // In either mode the first watch after the cut asks for a version, and is refused; what follows is the list.
    bench
        .server
        .faults()
        .on(Match { initial_events: Some(false), ..Match::watch("pods").once() })
        .then(Fault::expired());
    bench.cut().await;
    bench.write_on().await;
    finish(&bench, mode, &fault, rule.injected()).await;
    let status = bench.status.get();
    (bench, status)
}

async fn finish(bench: &Bench, mode: Mode, fault: &Fault, injected: u64) {
    let text = format!("{mode:?} {fault:?}");
    assert!(injected > 0, "{text}: never injected, {:?}", bench.status);
    bench.settle().await;
    assert!(bench.source.packing().packed > 0, "{text}: nothing was packed");
    bench.server.faults().clear();
    bench.settle().await;
    bench.assert_true(&format!("after {text}"));
    bench.write_on().await;
    bench.assert_true(&format!("after more writes, after {text}"));
}
