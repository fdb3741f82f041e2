#[path = "../../../tests/corpus/mod.rs"]
mod corpus;

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

#[tokio::test(start_paused = true)]
async fn a_kind_of_less_than_a_mebibyte_stays_raw() {
    let store = Store::new();
    let packer = Packer::new(MAX_RAW_BYTES, known(&store));
    admit(&packer, &store, &PODS, 0..100).await;
    packer.list_ended();
    for round in 0..12 {
        // Changes of the same few objects do not make it a large kind.
        for number in 0..100 {
            let pod = object(PODS.pod(number).replacen("\"uid\":\"", &format!("\"generation\":{round},\"uid\":\""), 1));
            packer.admit(&pod, None).await;
            packer.flush();
            store.put(pod);
        }
    }
    drained(&packer).await;
    sleep(Duration::from_secs(600)).await;
    assert!(store.objects().values().all(|pod| pod.raw().is_some()));
    assert_eq!((packer.status().generation, packer.status().packed), (0, 0));
}

#[tokio::test(start_paused = true)]
async fn the_first_dictionary_is_made_of_the_first_four_mebibytes_or_of_the_first_list() {
    let store = Store::new();
    let packer = Packer::new(MAX_RAW_BYTES, known(&store));
    let (mut bytes, mut number) = (0, 0);
    while bytes < 4 * MIB - 64 * 1024 {
        bytes += PODS.pod(number).len();
        admit(&packer, &store, &PODS, [number]).await;
        number += 1;
    }
    drained(&packer).await;
    assert_eq!(packer.status().generation, 0);
    admit(&packer, &store, &PODS, number..number + 20).await;
    drained(&packer).await;
    assert_eq!(packer.status().generation, 1);
    assert!(store.objects().values().all(|pod| pod.base().is_some()));

    let store = Store::new();
    let packer = Packer::new(MAX_RAW_BYTES, known(&store));
    admit(&packer, &store, &PODS, 0..200).await;
    drained(&packer).await;
    assert_eq!(packer.status().generation, 0);
    packer.list_ended();
    until("a dictionary of what there is", || packer.status().generation == 1).await;
    assert!(store.objects().values().all(|pod| pod.base().is_some()));
}

#[tokio::test(start_paused = true)]
async fn a_body_that_does_not_shrink_stays_raw() {
    let store = Store::new();
    let packer = Packer::new(MAX_RAW_BYTES, known(&store));
    let mut random = fastrand::Rng::with_seed(3);
    let wide: String = std::iter::repeat_with(|| random.char('\u{10000}'..'\u{e0000}')).take(20_000).collect();
    admit(&packer, &store, &PODS, 0..600).await;
    let stubborn = with_payload("stubborn", 1, &wide);
    packer.admit(&stubborn, None).await;
    packer.flush();
    drained(&packer).await;
    let saved = stubborn.base().map(|base| base.packed.size());
    assert!(saved.is_none_or(|size| size <= wide.len() * 9 / 10), "{saved:?}");
    assert!(stubborn.json().is_ok());
}

/// Raw bodies among the objects that are held, whatever holds them.
#[tokio::test(start_paused = true)]
async fn raw_bodies_keep_within_their_bound_at_every_step() {
    for bound in [0, 1, 2, 1000, 64 << 10, 200_000, MAX_RAW_BYTES] {
        for list_ends in [false, true] {
            let packer = Packer::new(bound, None);
            let mut unpacked: Vec<Object> = Vec::new();
            let mut held = Vec::new();
            let mut largest = 0;
            for number in 0..if bound < MIB { 100 } else { 700 } {
                let json = PODS.pod(number);
                largest = largest.max(json.len());
                let pod = object(json);
                packer.admit(&pod, None).await;
                packer.flush();
                unpacked.push(pod.clone());
                held.push(pod);
                if list_ends && number == 50 {
                    packer.list_ended();
                }
                unpacked.retain(|pod| pod.raw().is_some());
                let raw: usize = unpacked.iter().map(Object::size).sum();
                assert!(raw <= bound.max(largest), "{raw} bytes are raw at a bound of {bound}, object {number}");
            }
            drained(&packer).await;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn bounds_without_measure_bound_nothing() {
    for bound in [usize::MAX, u32::MAX as usize + 1] {
        let store = Store::new();
        let packer = Packer::new(bound, known(&store));
        admit(&packer, &store, &PODS, 0..700).await;
        drained(&packer).await;
        assert_eq!(packer.status().packed, 700);
    }
}

#[tokio::test(start_paused = true)]
async fn objects_larger_than_all_the_room_pass_one_by_one() {
    let packer = Packer::new(100_000, None);
    let large: Vec<Object> = (0..8).map(|n| with_payload(&format!("large-{n}"), n, &"x".repeat(300_000))).collect();
    let small: Vec<Object> = (0..200).map(|n| with_payload(&format!("small-{n}"), n, &"y".repeat(600))).collect();
    let admissions = large.iter().chain(&small).map(|object| packer.admit(object, None));
    timeout(Duration::from_secs(60), futures::future::join_all(admissions)).await.expect("all pass");
    drained(&packer).await;
    assert!(large.iter().all(|object| object.base().is_some()));
}

#[tokio::test(start_paused = true)]
async fn an_object_that_changes_again_before_its_turn_is_packed_once() {
    let store = Store::new();
    let packer = Packer::new(MAX_RAW_BYTES, None);
    admit(&packer, &store, &PODS, 0..700).await;
    drained(&packer).await;
    let before = packer.status();
    for version in 0..10 {
        let object = with_payload("busy", version, &"x".repeat(1000));
        packer.admit(&object, None).await;
        packer.flush();
        store.put(object);
    }
    drained(&packer).await;
    let after = packer.status();
    assert_eq!((after.packed - before.packed, after.skipped - before.skipped), (1, 9));
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

#[tokio::test(start_paused = true)]
async fn objects_that_are_much_alike_are_kept_as_what_differs_also_when_the_dictionary_changes() {
    let store = Store::new();
    let packer = Packer::new(MAX_RAW_BYTES, known(&store));
    let numbers = PODS.sorted(4000);
    admit(&packer, &store, &PODS, numbers.iter().copied()).await;
    packer.list_ended();
    drained(&packer).await;
    let shares = || {
        let objects = store.objects();
        let bases: Vec<_> = objects.values().filter_map(Object::base).filter(|base| base.is_shared).collect();
        let different: HashSet<_> = bases.iter().map(|base| base.packed.address()).collect();
        (bases.len(), different.len())
    };
    let (spliced, bases) = shares();
    assert!(spliced > 2500 && bases < 450, "{spliced} {bases}");
    let old = packer.status();
    let mean = |store: &Store| store.objects().values().map(Object::size).sum::<usize>() / numbers.len();
    assert!(mean(&store) < 400, "{}", mean(&store));
    until("all is done", || !packer.status().busy).await;
    let status = packer.status();
    assert!(status.generation > old.generation && status.dictionaries == 1, "{status:?}");
    assert_eq!(store.generations(), 1);
    assert_eq!(shares(), (spliced, bases), "what they share is packed once");
    for number in numbers {
        let json = PODS.pod(number);
        let pod = store.get_by_key(object(json.clone()).key()).expect("kept");
        assert_eq!(pod.json().expect("whole"), json);
    }
}

#[tokio::test(start_paused = true)]
async fn a_change_of_an_object_that_is_like_another_is_kept_as_what_differs_from_that() {
    let (store, packer) = settled(1500).await;
    let is_like_another = |pod: &Object| pod.base().is_some_and(|base| base.is_shared);
    let like: Vec<Object> = store.objects().values().filter(|pod| is_like_another(pod)).cloned().collect();
    assert!(like.len() > 100, "{}", like.len());
    let (mut kept, mut grown) = (0, 0);
    for pod in &like {
        let json = String::from_utf8(pod.json().expect("whole").to_vec()).expect("text");
        let json = json.replacen("\"phase\":\"Running\"", "\"phase\":\"Failed\",\"reason\":\"Evicted\"", 1);
        let changed = object(json.clone());
        packer.admit(&changed, Some(pod)).await;
        packer.flush();
        store.put(changed.clone());
        drained(&packer).await;
        assert_eq!(changed.json().expect("whole"), json);
        // One that differed much differs too much now.
        if is_like_another(&changed) {
            kept += 1;
            grown += changed.size().saturating_sub(pod.size());
        }
    }
    assert!(kept * 10 > like.len() * 8, "{kept} of {}", like.len());
    // Not each of them: what became too different from its own base may still be like another one.
    assert!(grown < kept * 60, "{grown} bytes more in {kept}");
}

#[tokio::test(start_paused = true)]
async fn a_packer_is_busy_while_something_waits_or_a_dictionary_is_looked_for() {
    let store = Store::new();
    let packer = Packer::new(MAX_RAW_BYTES, known(&store));
    assert!(!packer.status().busy, "there is nothing");
    let pod = object(PODS.pod(0));
    packer.admit(&pod, None).await;
    assert!(packer.status().busy, "it waits");
    store.put(pod);
    admit(&packer, &store, &PODS, 1..700).await;
    packer.list_ended();
    drained(&packer).await;
    assert!(packer.status().busy, "a dictionary of all pods is to be tried");
    until("all is done", || !packer.status().busy).await;
    let done = packer.status();
    assert_eq!(done.dictionaries, 1);
    sleep(Duration::from_secs(3600)).await;
    assert_eq!(packer.status(), done);
}

#[test]
fn a_packer_whose_task_has_ended_with_its_runtime_is_not_busy() {
    let store = Store::new();
    let packer = Packer::new(MAX_RAW_BYTES, known(&store));
    let runtime =
        || tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build().expect("a runtime");
    runtime().block_on(async {
        admit(&packer, &store, &PODS, 0..700).await;
        packer.list_ended();
        until("a dictionary is to be tried", || packer.0.status.lock().expect("not poisoned").busy).await;
    });
    assert!(!packer.status().busy, "nobody is there who would do anything");
    runtime().block_on(async {
        admit(&packer, &store, &PODS, 700..710).await;
        sleep(Duration::from_secs(3600)).await;
        assert!(!packer.status().busy, "nor has the next one anything to do");
    });
}

#[tokio::test(start_paused = true)]
async fn a_packer_is_busy_that_has_not_yet_heard_that_a_list_has_ended() {
    let store = Store::new();
    let packer = Packer::new(MAX_RAW_BYTES, known(&store));
    admit(&packer, &store, &PODS, 0..300).await;
    drained(&packer).await;
    assert!(!packer.status().busy, "they wait for more, and nothing is to be done: {:?}", packer.status());
    packer.list_ended();
    assert!(packer.status().busy, "a dictionary is to be made of them");
    until("all is done", || !packer.status().busy).await;
    assert_eq!(packer.status().packed, 300);
}

#[tokio::test(start_paused = true)]
async fn after_a_rollout_there_is_a_new_dictionary_and_soon_nothing_of_the_old_one() {
    let (store, packer) = settled(700).await;
    let generation = packer.status().generation;
    let mut expected = HashMap::new();
    for number in 0..1200 {
        let json = unlike_others(number, OTHERS.pod(number));
        let pod = object(json.clone());
        expected.insert(pod.key().clone(), json);
        packer.admit(&pod, None).await;
        packer.flush();
        store.put(pod);
        if number % 100 == 0 {
            assert!(store.generations() <= 2);
        }
    }
    until("a new generation", || packer.status().generation > generation).await;
    until("the old one is gone", || packer.status().dictionaries == 1).await;
    assert_eq!(store.generations(), 1);
    assert!(packer.status().repacked > 0);
    for (key, json) in expected {
        assert_eq!(store.get_by_key(&key).expect("kept").json().expect("whole"), json);
    }
    // And that is that.
    let generation = packer.status().generation;
    for number in 1200..2300 {
        let pod = object(unlike_others(number, OTHERS.pod(number)));
        packer.admit(&pod, None).await;
        packer.flush();
        store.put(pod);
    }
    drained(&packer).await;
    sleep(Duration::from_secs(3600)).await;
    assert_eq!(packer.status().generation, generation);
}

#[tokio::test(start_paused = true)]
async fn without_a_store_to_look_at_old_dictionaries_live_until_their_objects_are_gone_and_no_third_is_made() {
    let (old, new) = (Store::new(), Store::new());
    let packer = Packer::new(MAX_RAW_BYTES, None);
    admit(&packer, &old, &PODS, 0..700).await;
    packer.list_ended();
    for round in 1..4 {
        let common = noise(round, 3000);
        for number in 0..1100 {
            let object = with_payload(&format!("o{number}z"), number, &common);
            packer.admit(&object, None).await;
            packer.flush();
            new.put(object);
        }
        drained(&packer).await;
        sleep(Duration::from_secs(120)).await;
        assert!(packer.status().generation <= 2, "{:?}", packer.status());
    }
    assert_eq!((packer.status().generation, packer.status().dictionaries), (2, 2));
    drop((old, new));
    sleep(Duration::from_secs(120)).await;
    assert_eq!(packer.status().dictionaries, 1);
}

/// What no dictionary makes smaller must not hide what another one would.
#[tokio::test(start_paused = true)]
async fn after_tries_in_vain_a_rollout_is_noticed_all_the_same() {
    let (store, packer) = settled(1500).await;
    let before = packer.status().generation;
    let admit = async |number: usize, payload: &str| {
        let object = with_payload(&format!("o{number}z"), number, payload);
        packer.admit(&object, None).await;
        packer.flush();
        store.put(object);
        drained(&packer).await;
    };
    for number in 0..150 {
        admit(number, &noise(number as u64 + 100, 20_000)).await;
    }
    until("the try is over", || !packer.status().busy).await;
    assert_eq!(packer.status().generation, before, "nothing is better");
    let template = noise(7, 3000);
    for number in 1000..1500 {
        admit(number, &template).await;
    }
    until("a dictionary with the template", || packer.status().generation > before).await;
}

/// Pods of which a few are others: too few for drift, enough for a better dictionary.
async fn admit_mixed(packer: &Packer, store: &Store, numbers: std::ops::Range<usize>) {
    for number in numbers {
        admit(packer, store, if number % 8 == 0 { &OTHERS } else { &PODS }, [number]).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_dictionary_of_the_whole_store_is_tried_however_often_the_first_list_was_begun() {
    let store = Store::new();
    let packer = Packer::new(MAX_RAW_BYTES, known(&store));
    // Twice the connection breaks.
    for _ in 0..2 {
        let broken_off = Store::new();
        admit(&packer, &broken_off, &PODS, 0..700).await;
        drained(&packer).await;
    }
    let list = Store::new();
    admit_mixed(&packer, &list, 0..1000).await;
    packer.list_ended();
    *store.objects() = std::mem::take(&mut *list.objects());
    until("the dictionary of the whole store", || packer.status().generation == 2).await;
    until("all is packed against it", || packer.status().dictionaries == 1).await;
    assert_eq!(store.generations(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_dictionary_of_the_whole_store_is_tried_while_objects_change_all_the_time() {
    let store = Store::new();
    let packer = Packer::new(MAX_RAW_BYTES, known(&store));
    admit(&packer, &store, &PODS, 0..600).await;
    admit_mixed(&packer, &store, 600..1400).await;
    packer.list_ended();
    for _ in 0..6 {
        admit(&packer, &store, &PODS, 0..300).await;
        sleep(Duration::from_millis(150)).await;
    }
    until("the dictionary of the whole store", || packer.status().generation == 2).await;
}

/// As with several namespaces, whose lists come to their ends one after the other.
#[tokio::test(start_paused = true)]
async fn a_dictionary_of_the_whole_store_is_tried_though_the_first_list_was_too_small_for_one() {
    let store = Store::new();
    let packer = Packer::new(MAX_RAW_BYTES, known(&store));
    admit(&packer, &store, &PODS, 0..20).await;
    packer.list_ended();
    admit(&packer, &store, &PODS, 20..300).await;
    admit_mixed(&packer, &store, 300..1400).await;
    packer.list_ended();
    until("the dictionary of the whole store", || packer.status().generation == 2).await;
}

#[tokio::test(start_paused = true)]
async fn a_rollout_while_the_first_list_is_on_its_way_to_the_store_is_noticed() {
    let store = Store::new();
    let packer = Packer::new(MAX_RAW_BYTES, known(&store));
    let on_its_way = Store::new();
    admit(&packer, &on_its_way, &PODS, 0..800).await;
    packer.list_ended();
    admit(&packer, &on_its_way, &OTHERS, 0..1500).await;
    drained(&packer).await;
    sleep(Duration::from_millis(500)).await;
    *store.objects() = std::mem::take(&mut *on_its_way.objects());
    until("a new dictionary", || packer.status().generation >= 2).await;
    until("the old one is gone", || packer.status().dictionaries == 1).await;
}

/// What differs from object to object cannot be learnt: it would be rated on what it has seen.
#[tokio::test(start_paused = true)]
async fn no_dictionary_is_made_for_objects_that_have_nothing_in_common() {
    let (store, packer) = settled(600).await;
    let generation = packer.status().generation;
    let payloads: Vec<String> = (0..60).map(|n| noise(n, 5000)).collect();
    for version in 0..100 {
        for (number, payload) in payloads.iter().enumerate() {
            let object = with_payload(&format!("hot-{number}"), version, payload);
            packer.admit(&object, None).await;
            packer.flush();
            store.put(object);
        }
        drained(&packer).await;
    }
    sleep(Duration::from_secs(60)).await;
    assert_eq!(packer.status().generation, generation);
}

#[tokio::test(start_paused = true)]
async fn a_dictionary_takes_a_sixteenth_of_the_bodies_at_most_however_often_they_change() {
    let store = Store::new();
    let packer = Packer::new(MAX_RAW_BYTES, known(&store));
    let [first, second] = [noise(1, 20_000), noise(2, 10_000)];
    let change = async |number: usize, version: usize, payload: &str| {
        let object = with_payload(&format!("o-{number}"), version, payload);
        packer.admit(&object, None).await;
        packer.flush();
        store.put(object);
    };
    for number in 0..60 {
        change(number, 0, &first).await;
    }
    packer.list_ended();
    drained(&packer).await;
    assert_eq!(packer.status().generation, 1);
    store.objects().retain(|key, _| key.name() < "o-30");
    for version in 0..60 {
        for number in 0..20 {
            change(number, version, &second).await;
        }
        drained(&packer).await;
    }
    until("a dictionary for what there is now", || packer.status().generation == 2).await;
    until("all is packed against it", || packer.status().dictionaries == 1).await;
    let bodies: usize = store.objects().values().map(|object| object.json().expect("whole").len()).sum();
    let packed = store.get_by_key(&ObjectKey::namespaced("shop", "o-1")).expect("kept").base().expect("packed").packed;
    let dictionary = packed.dictionary().expect("its dictionary").memory_of_content();
    assert!(dictionary <= bodies / DICTIONARY_SHARE + DICTIONARY_OVERHEAD, "{dictionary} of {bodies}");
}

/// What zstd needs besides a dictionary's content to unpack.
const DICTIONARY_OVERHEAD: usize = 32 << 10;

#[tokio::test(start_paused = true)]
async fn a_store_that_panics_harms_nobody_for_long() {
    struct Panicking(Arc<Store>, AtomicBool);
    impl KnownObjects<Object> for Panicking {
        fn list_keys(&self) -> Vec<ObjectKey> {
            assert!(!self.1.load(Ordering::Relaxed), "a store that panics");
            self.0.list_keys()
        }

        fn get_by_key(&self, key: &ObjectKey) -> Option<Object> {
            self.0.get_by_key(key)
        }
    }
    let store = Store::new();
    let panicking = Arc::new(Panicking(store.clone(), AtomicBool::new(true)));
    let packer = Packer::new(MAX_RAW_BYTES, Some(panicking.clone()));
    admit(&packer, &store, &PODS, 0..700).await;
    packer.list_ended();
    drained(&packer).await;
    sleep(Duration::from_secs(120)).await;
    panicking.1.store(false, Ordering::Relaxed);
    let later = Store::new();
    admit(&packer, &later, &PODS, 700..1500).await;
    drained(&packer).await;
    assert!(later.objects().values().all(|pod| pod.base().is_some()));
}

#[test]
fn a_packer_outlives_its_runtime() {
    let store = Store::new();
    let packer = Packer::new(MAX_RAW_BYTES, known(&store));
    for round in 0..2 {
        store.objects().clear();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        let numbers = round * 1400..round * 1400 + 1400;
        runtime.block_on(async { admit(&packer, &store, &PODS, numbers).await });
        // In the middle of everything.
        drop(runtime);
    }
    let raw: usize = store.objects().values().filter_map(Object::raw).map(|body| body.len()).sum();
    assert!(raw <= MAX_RAW_BYTES, "{raw} bytes are raw");
    assert_eq!(packer.0.room.available_permits(), packer.0.room_bytes);
}

#[tokio::test(start_paused = true)]
async fn an_admission_that_is_given_up_leaks_no_room() {
    let packer = Packer::new(64 << 10, None);
    let objects: Vec<Object> =
        (0..200).map(|n| with_payload(&format!("o-{n}"), n, &noise(n as u64, 200 * n))).collect();
    for object in &objects {
        let given_up = timeout(Duration::ZERO, packer.admit(object, None)).await.is_err();
        if !given_up {
            continue;
        }
        timeout(Duration::from_secs(60), packer.admit(object, None)).await.expect("there will be room");
    }
    drained(&packer).await;
}

#[tokio::test(start_paused = true)]
async fn nothing_is_left_behind_with_the_last_clone() {
    let tasks = || Handle::current().metrics().num_alive_tasks();
    let before = tasks();
    let store = Store::new();
    let packer = Packer::new(MAX_RAW_BYTES, known(&store));
    let clone = packer.clone();
    admit(&clone, &store, &PODS, 0..700).await;
    packer.list_ended();
    drop(packer);
    sleep(Duration::from_secs(1)).await;
    assert_eq!(tasks(), before + 1);
    admit(&clone, &store, &PODS, 700..800).await;
    drop(clone);
    until("no task is left", || tasks() == before).await;
    // The store alone holds itself.
    assert_eq!(Arc::strong_count(&store), 1);
    assert!(store.objects().values().all(|pod| pod.base().is_some()));
}

type Expected = (Object, Arc<str>);

/// Objects of all sorts come and go, dictionaries too, while others read.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_body_is_exact_at_every_moment() {
    let seed = fastrand::u64(..);
    println!("seed {seed}");
    let mut random = fastrand::Rng::with_seed(seed);
    let store = Store::new();
    let expected: Arc<Mutex<HashMap<ObjectKey, Expected>>> = Arc::default();
    let packer = Packer::new(300_000, known(&store));
    let done = Arc::new(AtomicBool::new(false));
    let readers: Vec<_> = (0..2)
        .map(|reader| {
            let (expected, done) = (expected.clone(), done.clone());
            std::thread::spawn(move || {
                let mut random = fastrand::Rng::with_seed(seed ^ reader);
                while !done.load(Ordering::Relaxed) {
                    let all: Vec<Expected> = expected.lock().expect("not poisoned").values().cloned().collect();
                    for _ in 0..200.min(all.len()) {
                        let (object, json) = &all[random.usize(..all.len())];
                        assert_eq!(object.json().expect("a body"), **json, "seed {seed}");
                    }
                    std::thread::sleep(Duration::from_millis(10));
                }
            })
        })
        .collect();
    let mut were_like_another = 0;
    for step in 0..3500 {
        let rollout = if step / 1200 % 2 == 0 { &PODS } else { &OTHERS };
        let json = if random.u8(..) == 0 { hostile(&mut random, step) } else { rollout.pod(random.usize(..800)) };
        // Its states are not the same: some differ in little, some in more.
        let noise = noise(step as u64, random.usize(..300));
        let json = json.replacen("\"phase\":\"Running\"", &format!("\"phase\":\"{noise}\""), 1);
        let object = Object::from_json(json.clone()).expect("an object");
        let last = store.get_by_key(object.key());
        were_like_another += usize::from(last.as_ref().and_then(Object::base).is_some_and(|base| base.is_shared));
        packer.admit(&object, last.as_ref()).await;
        // At some times many come together.
        if step % 600 < 300 || random.u8(..) == 0 {
            packer.flush();
        }
        assert_eq!(object.json().expect("a body"), json, "seed {seed}");
        store.put(object.clone());
        {
            let mut expected = expected.lock().expect("not poisoned");
            expected.insert(object.key().clone(), (object, json.into()));
            if random.u8(..) < 8 {
                let gone = expected.keys().next().cloned().expect("an object");
                expected.remove(&gone);
                store.objects().remove(&gone);
            }
        }
        match step {
            800 => packer.list_ended(),
            // The first dictionary is a small one: that of the whole store is better for certain.
            1800 => until("a second generation", || packer.status().generation >= 2).await,
            _ => {}
        }
        assert!(packer.status().dictionaries <= 2, "seed {seed}");
    }
    drained(&packer).await;
    done.store(true, Ordering::Relaxed);
    for reader in readers {
        reader.join().expect("exact bytes");
    }
    for (object, json) in expected.lock().expect("not poisoned").values() {
        assert_eq!(object.json().expect("a body"), **json, "seed {seed}");
    }
    assert!(were_like_another > 0, "seed {seed}");
}

/// An object that nobody would write.
fn hostile(random: &mut fastrand::Rng, number: usize) -> String {
    let escaped = |text: &str| serde_json::Value::from(text).to_string();
    let mut text = |length: usize| -> String { (0..length).map(|_| random.char(..)).collect() };
    let (short, long) = (text(20), text(3000));
    let pairs: Vec<String> =
        (0..number % 300).map(|n| format!("{}:{}", escaped(&format!("{short}{n}")), escaped(&short))).collect();
    let body = match number % 4 {
        0 => String::new(),
        1 => format!(",\"data\":{{{}:{}}}", escaped(&short), escaped(&long)),
        2 => format!(",\"data\":\"{}\"", "x".repeat(1_000_000)),
        _ => format!(",\"spec\":[[[[[[1e400,-0,{}]]]]]], \"\\u0041\" : null", escaped(&long)),
    };
    format!(
        "{{\"metadata\":{{\"labels\":{{{}}},\"name\":{},\"resourceVersion\":\"{number}\"}}{body}}}",
        pairs.join(","),
        escaped(&format!("o{short}"))
    )
}

/// Whoever drops a stream flushes, and may do so when the runtime is gone.
#[test]
fn outside_of_a_runtime_nothing_is_packed_and_nothing_breaks() {
    let packer = Packer::new(MAX_RAW_BYTES, None);
    let read = bytes::Bytes::from(with_payload("a", 1, &noise(1, 100)).json().expect("raw").to_vec());
    let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
    let object = Object::from_json(read.clone()).expect("an object");
    runtime.block_on(packer.admit(&object, None));
    packer.flush();
    assert!(object.raw().is_some());
    drop(object);
    assert!(read.is_unique(), "it is not kept where it was read");
    runtime.block_on(async { packer.list_ended() });
    drop(runtime);
    let object = with_payload("b", 1, "");
    let another = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
    another.block_on(packer.admit(&object, None));
    packer.flush();
}

fn like(stem: usize, number: usize, version: usize, common: &str, own: &str) -> Object {
    object(format!(
        r#"{{"kind":"ConfigMap","apiVersion":"v1","metadata":{{"name":"t{stem}x-{number}","namespace":"shop","uid":"{stem:08x}-{number:08x}","resourceVersion":"{version}"}},"data":{{"common":"{common}","own":"{own}"}}}}"#
    ))
}

/// Old pods change while new ones, of another template with the same name, come.
#[tokio::test(start_paused = true)]
async fn in_a_rollout_new_ones_are_like_each_other() {
    let (store, packer) = settled(1500).await;
    let (old, new) = (noise(1, 3000), noise(2, 3000));
    let mut fresh = Vec::new();
    for number in 0..100 {
        let object = like(1, number, 1, &old, "");
        packer.admit(&object, None).await;
        packer.flush();
        store.put(object);
    }
    drained(&packer).await;
    for number in 0..100 {
        let last = store.get_by_key(&ObjectKey::namespaced("shop", format!("t1x-{number}"))).expect("kept");
        let changed = like(1, number, 2, &old, "deleting");
        packer.admit(&changed, Some(&last)).await;
        store.put(changed);
        let object = like(1, number + 1000, 1, &new, "");
        packer.admit(&object, None).await;
        packer.flush();
        store.put(object.clone());
        fresh.push(object);
    }
    drained(&packer).await;
    let shared = fresh.iter().filter(|object| object.base().is_some_and(|base| base.is_shared)).count();
    assert!(shared > 90, "{shared} of 100");
}

/// All threads for what blocks are taken, by somebody who waits for the objects.
#[test]
fn objects_are_packed_though_no_thread_for_what_blocks_is_free() {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .max_blocking_threads(1)
        .enable_all()
        .build()
        .expect("a runtime");
    let (tell, told) = std::sync::mpsc::channel::<()>();
    runtime.spawn_blocking(move || told.recv());
    let store = Store::new();
    let packer = Packer::new(MAX_RAW_BYTES, known(&store));
    let all = runtime.block_on(async {
        timeout(Duration::from_secs(20), async {
            for number in 0..1500 {
                let pod = object(PODS.pod(number));
                packer.admit(&pod, None).await;
                store.put(pod);
            }
        })
        .await
    });
    let count = store.objects().len();
    drop(tell);
    assert!(all.is_ok(), "reading stopped after {count} objects");
}
