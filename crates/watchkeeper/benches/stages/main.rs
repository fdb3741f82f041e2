//! What each stage on the path of an object costs.
//!
//! `cargo bench -p watchkeeper --bench stages` measures times. `cargo xtask perf` also counts instructions, by running one
//! stage under valgrind: `stages --instructions NAME COUNT`.

#[path = "../../tests/corpus/mod.rs"]
mod corpus;

use std::hint::black_box;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bytes::Bytes;
use corpus::Pods;
use criterion::Criterion;
use k8s_openapi::api::core::v1::Pod;
use serde::Deserialize;
use watchkeeper::__private::{Dictionary, header_is_read};
use watchkeeper::queue::{AtomicFifo, DeltaFifo};
use watchkeeper::workqueue::limiter::{Exponential, default_controller};
use watchkeeper::workqueue::{AddOptions, DelayingQueue, RateLimitingQueue, WorkQueue};
use watchkeeper::{Index, Indexer, Object};

/// How many different pods the stages work on. Fewer where instructions are counted: valgrind is slow.
static PODS: AtomicUsize = AtomicUsize::new(2_000);

/// One thing to do, again and again.
type Stage = Box<dyn FnMut()>;

/// The few fields that a controller looks at.
#[derive(Deserialize)]
#[allow(dead_code, reason = "decoded, and not looked at")]
struct View {
    metadata: Metadata,
    spec: Spec,
    status: Status,
}

#[derive(Deserialize)]
#[allow(dead_code, reason = "decoded, and not looked at")]
struct Metadata {
    name: String,
    namespace: String,
    uid: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
#[allow(dead_code, reason = "decoded, and not looked at")]
struct Spec {
    node_name: Option<String>,
}

#[derive(Deserialize)]
#[allow(dead_code, reason = "decoded, and not looked at")]
struct Status {
    phase: Option<String>,
}

/// Calls `each` with one of `all` after the other.
fn in_turn<T: 'static>(all: Vec<T>, mut each: impl FnMut(&T) + 'static) -> Stage {
    let mut next = 0;
    Box::new(move || {
        each(&all[next % all.len()]);
        next += 1;
    })
}

fn bodies(seed: u64) -> Vec<Bytes> {
    let pods = Pods::new(seed);
    (0..PODS.load(Ordering::Relaxed)).map(|number| Bytes::from(pods.pod(number))).collect()
}

fn objects(seed: u64) -> Vec<Object> {
    bodies(seed).into_iter().map(|body| Object::from_json(body).expect("a pod")).collect()
}

/// All objects twice, so that each, put after the others, is another than the one that is there.
fn other_handles() -> Vec<Object> {
    objects(1).into_iter().chain(objects(1)).collect()
}

fn packed(dictionary: &Dictionary) -> Vec<Object> {
    let objects = objects(1);
    objects.iter().for_each(|object| dictionary.pack(object));
    objects
}

fn indexer(objects: &[Object]) -> Arc<Indexer<Object>> {
    let store = Indexer::objects().with_index("app", Index::label("app.kubernetes.io/name")).expect("an index");
    for object in objects {
        store.add(object.clone()).expect("a key");
    }
    Arc::new(store)
}

/// A queue with so many items that wait for a time which does not come.
fn waiting(items: u64) -> DelayingQueue<u64> {
    let queue = DelayingQueue::new();
    (0..items).for_each(|item| queue.add_after(item, far(item)));
    queue
}

/// Some hours, in no particular order.
fn far(item: u64) -> Duration {
    Duration::from_secs(3600) + Duration::from_millis(item.wrapping_mul(2_654_435_761) % 100_000_000)
}

/// Calls `each` with the next number.
fn counted(mut each: impl FnMut(u64) + 'static) -> Stage {
    let mut next = 0;
    Box::new(move || {
        each(next);
        next += 1;
    })
}

/// A stage of a work queue.
fn work_stage(name: &str) -> Option<Stage> {
    // Fewer where instructions are counted: valgrind is slow.
    let many = if PODS.load(Ordering::Relaxed) < 2_000 { 10_000 } else { 1_000_000 };
    Some(match name {
        "work queue: add, get, done" => {
            let queue = WorkQueue::new();
            counted(move |item| {
                queue.add(item);
                drop(black_box(queue.try_get()));
            })
        }
        "work queue: add, get, done with 10,000 in it, 3 priorities, 10 tenants" => {
            let queue = WorkQueue::builder().fair_by(|item: &u64| item % 10).build();
            let add = move |queue: &WorkQueue<u64>, item: u64| {
                queue.add_with(item, AddOptions { priority: (item % 3) as i32, ..AddOptions::default() });
            };
            (0..10_000).for_each(|item| add(&queue, item));
            counted(move |item| {
                add(&queue, 10_000 + item);
                drop(black_box(queue.try_get()));
            })
        }
        "work queue: add after, a million waiting" => {
            let queue = waiting(many);
            // Of those that wait, so that there are no more of them: to an earlier time, each round.
            counted(move |item| queue.add_after(item % many, far(item % many) / (item / many + 2) as u32))
        }
        "work queue: add, get, done, a million waiting" => {
            let queue = waiting(many);
            counted(move |item| {
                queue.add(many + item);
                drop(black_box(queue.try_get()));
            })
        }
        "work queue: add rate limited, forget" => {
            let queue = RateLimitingQueue::new(default_controller());
            counted(move |item| {
                queue.add_rate_limited(item % 1_000);
                queue.forget(&(item % 1_000));
            })
        }
        "work queue: add rate limited, never forgotten" => {
            let queue = RateLimitingQueue::new(Exponential::new(Duration::from_secs(3600), Duration::from_secs(7200)));
            counted(move |item| queue.add_rate_limited(item % 1_000_000))
        }
        _ => return None,
    })
}

/// A stage of this name, ready to run.
fn stage(name: &str) -> Option<Stage> {
    if let Some(stage) = work_stage(name) {
        return Some(stage);
    }
    let dictionary = Dictionary::of(&bodies(7)[..33]).expect("a dictionary");
    Some(match name {
        "header" => in_turn(bodies(1), |body| assert!(header_is_read(black_box(body)))),
        "handle" => in_turn(bodies(1), |body| drop(black_box(Object::from_json(body.clone())))),
        "pack" => in_turn(bodies(1), move |body| {
            black_box(dictionary.packed_size(body));
        }),
        "unpack" => in_turn(packed(&dictionary), |object| drop(black_box(object.json()))),
        "decode Pod, raw" => in_turn(objects(1), |object| drop(black_box(object.decode::<Pod>()))),
        "decode Pod, packed" => in_turn(packed(&dictionary), |object| drop(black_box(object.decode::<Pod>()))),
        "view of 5 fields, raw" => in_turn(objects(1), |object| drop(black_box(object.decode::<View>()))),
        "view of 5 fields, packed" => in_turn(packed(&dictionary), |object| drop(black_box(object.decode::<View>()))),
        "put" => {
            let objects = other_handles();
            let store = indexer(&objects);
            in_turn(objects, move |object| store.update(object.clone()).expect("a key"))
        }
        "put, with an index by a field" => {
            let store = Indexer::objects().with_index("node", Index::field("/spec/nodeName")).expect("an index");
            in_turn(other_handles(), move |object| store.update(object.clone()).expect("a key"))
        }
        "put under a snapshot" => {
            let objects = other_handles();
            let store = indexer(&objects);
            in_turn(objects, move |object| {
                let snapshot = store.snapshot();
                store.update(object.clone()).expect("a key");
                drop(black_box(snapshot));
            })
        }
        "get" => {
            let objects = objects(1);
            let store = indexer(&objects);
            in_turn(objects, move |object| drop(black_box(store.get_by_key(object.key()))))
        }
        "by_index, about 50 of 2,000" => {
            let objects = objects(1);
            let store = indexer(&objects);
            in_turn(objects, move |object| {
                let found =
                    store.by_index("namespace", object.key().namespace().unwrap_or_default()).expect("an index");
                black_box(found.iter().count());
            })
        }
        "list 2,000" => {
            let objects = objects(1);
            let store = indexer(&objects);
            in_turn(objects, move |_| drop(black_box(store.list())))
        }
        "DeltaFifo push and pop" => {
            let (queue, mut consumer) = DeltaFifo::objects().build();
            in_turn(objects(1), move |object| {
                queue.update(object.clone()).expect("a key");
                drop(black_box(consumer.try_pop()));
            })
        }
        "AtomicFifo push and pop" => {
            let (queue, mut consumer) = AtomicFifo::objects().build();
            in_turn(objects(1), move |object| {
                queue.update(object.clone()).expect("a key");
                drop(black_box(consumer.try_pop()));
            })
        }
        _ => return None,
    })
}

const NAMES: [&str; 22] = [
    "header",
    "handle",
    "pack",
    "unpack",
    "decode Pod, raw",
    "decode Pod, packed",
    "view of 5 fields, raw",
    "view of 5 fields, packed",
    "put",
    "put, with an index by a field",
    "put under a snapshot",
    "get",
    "by_index, about 50 of 2,000",
    "list 2,000",
    "DeltaFifo push and pop",
    "AtomicFifo push and pop",
    "work queue: add, get, done",
    "work queue: add, get, done with 10,000 in it, 3 priorities, 10 tenants",
    "work queue: add after, a million waiting",
    "work queue: add, get, done, a million waiting",
    "work queue: add rate limited, forget",
    "work queue: add rate limited, never forgotten",
];

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    if arguments.iter().any(|argument| argument == "--names") {
        println!("{}", NAMES.join("\n"));
        return;
    }
    match arguments.iter().position(|argument| argument == "--instructions") {
        Some(at) => {
            let name = arguments.get(at + 1).map(String::as_str).unwrap_or_default();
            PODS.store(100, Ordering::Relaxed);
            let count: usize = arguments.get(at + 2).and_then(|count| count.parse().ok()).unwrap_or(1);
            let Some(mut stage) = stage(name) else {
                eprintln!("there is no stage {name:?}; there are {NAMES:?}");
                std::process::exit(2);
            };
            for _ in 0..count {
                stage();
            }
        }
        None => {
            let mut criterion = Criterion::default().configure_from_args();
            for name in NAMES {
                let mut stage = stage(name).expect("a stage of the list");
                criterion.bench_function(name, |bencher| bencher.iter(&mut stage));
            }
            criterion.final_summary();
        }
    }
}
