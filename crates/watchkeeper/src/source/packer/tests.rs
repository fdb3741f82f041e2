mod alike;
mod better;
mod busy;
#[path = "../../../tests/corpus/mod.rs"]
mod corpus;
mod exact;
mod faults;
mod first;
mod gather;
mod room;

use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, LazyLock, Mutex, MutexGuard};
use std::time::Duration;

use tokio::runtime::Handle;
use tokio::time::{sleep, timeout};

use self::corpus::Pods;
use super::Packer;
use crate::defaults::{DICTIONARY_SHARE, MAX_RAW_BYTES};
use crate::{KnownObjects, Object, ObjectKey};

const MIB: usize = 1 << 20;

static PODS: LazyLock<Pods> = LazyLock::new(|| Pods::new(1));
/// After a rollout.
static OTHERS: LazyLock<Pods> = LazyLock::new(|| Pods::new(2).with_another_template());

#[derive(Default)]
struct Store(Mutex<HashMap<ObjectKey, Object>>);

impl Store {
    fn new() -> Arc<Self> {
        Arc::default()
    }

    fn objects(&self) -> MutexGuard<'_, HashMap<ObjectKey, Object>> {
        self.0.lock().expect("not poisoned")
    }

    fn put(&self, object: Object) {
        self.objects().insert(object.key().clone(), object);
    }

    /// How many dictionaries the objects need.
    fn generations(&self) -> usize {
        let bases: Vec<_> = self.objects().values().filter_map(Object::base).collect();
        bases.iter().filter_map(|base| base.packed.dictionary()).map(Arc::as_ptr).collect::<HashSet<_>>().len()
    }
}

impl KnownObjects<Object> for Store {
    fn list_keys(&self) -> Vec<ObjectKey> {
        self.objects().keys().cloned().collect()
    }

    fn get_by_key(&self, key: &ObjectKey) -> Option<Object> {
        self.objects().get(key).cloned()
    }
}

fn object(json: impl Into<String>) -> Object {
    Object::from_json(json.into()).expect("an object")
}

/// An object with a payload.
fn with_payload(name: &str, version: usize, payload: &str) -> Object {
    object(format!(
        r#"{{"kind":"ConfigMap","apiVersion":"v1","metadata":{{"name":"{name}","namespace":"shop","uid":"uid-{name}","resourceVersion":"{version}"}},"data":{{"key":"{payload}"}}}}"#
    ))
}

fn noise(seed: u64, length: usize) -> String {
    let mut random = fastrand::Rng::with_seed(seed);
    std::iter::repeat_with(|| random.alphanumeric()).take(length).collect()
}

/// Admits these pods, and puts them into the store, if there is one.
async fn admit(packer: &Packer, store: &Store, pods: &Pods, numbers: impl IntoIterator<Item = usize>) {
    for number in numbers {
        let pod = object(pods.pod(number));
        packer.admit(&pod, store.get_by_key(pod.key()).as_ref()).await;
        packer.flush();
        store.put(pod);
    }
}

/// Admits so many objects that a dictionary of them is of no use for pods: 4 MiB are 600.
async fn admit_unlike_pods(packer: &Packer, store: &Store, count: usize) {
    for number in 0..count {
        let config = with_payload(&format!("config-{number}"), number, &"nothing of a pod ".repeat(420));
        packer.admit(&config, None).await;
        packer.flush();
        store.put(config);
    }
}

/// Waits until it is so. With a paused clock, hours pass in no time.
#[track_caller]
fn until(what: &'static str, is_so: impl Fn() -> bool) -> impl Future<Output = ()> {
    let caller = std::panic::Location::caller();
    async move {
        for _ in 0..20_000 {
            if is_so() {
                return;
            }
            sleep(Duration::from_millis(10)).await;
        }
        panic!("{caller}: in vain: {what}");
    }
}

/// Waits until everything that was admitted has had its turn.
async fn drained(packer: &Packer) {
    packer.flush();
    until("all had their turn", || packer.0.room.available_permits() == packer.0.room_bytes).await;
}

fn known(store: &Arc<Store>) -> Option<super::Known> {
    Some(store.clone())
}

/// A store whose objects are packed against a first dictionary, and a packer without further plans.
async fn settled(count: usize) -> (Arc<Store>, Packer) {
    let store = Store::new();
    let packer = Packer::new(MAX_RAW_BYTES, known(&store));
    admit(&packer, &store, &PODS, 0..count).await;
    packer.list_ended();
    drained(&packer).await;
    sleep(Duration::from_secs(300)).await;
    until("one dictionary", || packer.status().dictionaries == 1).await;
    (store, packer)
}

/// A pod whose name does not say what it is like.
fn unlike_others(number: usize, pod: String) -> String {
    pod.replacen("\"name\":\"", &format!("\"name\":\"n{number}z-"), 1)
}
