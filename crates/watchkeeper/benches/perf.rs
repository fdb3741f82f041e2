//! Do readers and the writer hold each other up, and what does a large cache take in memory?
//!
//! `cargo xtask perf` runs this. It fails if a figure is beyond its bound.

#[path = "../tests/corpus/mod.rs"]
mod corpus;

use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use bytes::Bytes;
use corpus::Pods;
use http::Response;
use http_body_util::StreamBody;
use hyper::body::Frame;
use k8s_openapi::api::core::v1::Pod;
use kube_client::Client;
use peak_alloc::PeakAlloc;
use tokio_util::sync::CancellationToken;
use watchkeeper::{Indexer, ListWatch, Object, Reflector};

#[global_allocator]
static HEAP: PeakAlloc = PeakAlloc;

const OBJECTS: usize = 100_000;
const BOUND: Duration = Duration::from_millis(1);
const RESIDENT_BOUND: f64 = 1.25;
const PEAK_BOUND: usize = 16 << 20;

fn main() -> ExitCode {
    // Before the rest: what that leaves to the allocator would be in the resident size.
    let resident = resident_growth();
    let write = write_while_another_lists();
    let get = get_during_replaces();
    let mut passed = true;
    for (what, times) in [("write, while another thread lists everything", write), ("get, during replaces", get)] {
        let Percentiles { count, p50, p99, max } = times;
        passed &= p99 < BOUND;
        println!("{what}: p50 {p50:?}, p99 {p99:?}, longest {max:?}, of {count} (bound: p99 < {BOUND:?})");
    }
    let Resident { counted, peak, resident } = resident;
    let above = peak.saturating_sub(counted);
    passed &= above <= PEAK_BOUND;
    println!("the first list of {OBJECTS} pods peaks {above} bytes above what is kept (bound: {PEAK_BOUND})");
    let ratio = resident as f64 / counted as f64;
    passed &= ratio <= RESIDENT_BOUND;
    println!(
        "{OBJECTS} pods kept packed: {} bytes each counted, {} resident, {ratio:.2} times (bound: {RESIDENT_BOUND})",
        counted / OBJECTS,
        resident / OBJECTS,
    );
    if passed { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

struct Percentiles {
    count: usize,
    p50: Duration,
    p99: Duration,
    max: Duration,
}

impl Percentiles {
    fn of(mut times: Vec<Duration>) -> Self {
        times.sort_unstable();
        let at = |share: f64| times[((times.len() - 1) as f64 * share) as usize];
        Self { count: times.len(), p50: at(0.5), p99: at(0.99), max: at(1.0) }
    }
}

/// Small objects: the store does not look at bodies.
fn objects(version: usize) -> Vec<Object> {
    let object = |number: usize| {
        let json = format!(
            r#"{{"metadata":{{"name":"pod-{number}","namespace":"team-{}","uid":"u-{number}","resourceVersion":"{version}"}}}}"#,
            number % 100
        );
        Object::from_json(json).expect("an object")
    };
    (0..OBJECTS).map(object).collect()
}

fn filled() -> Arc<Indexer<Object>> {
    let store = Indexer::objects();
    store.replace(objects(1), "1".into()).expect("keys");
    Arc::new(store)
}

fn time(mut work: impl FnMut()) -> Duration {
    let start = Instant::now();
    work();
    start.elapsed()
}

/// Runs `other` again and again on another thread while `measured` runs.
fn beside<T>(mut other: impl FnMut() + Send, measured: impl FnOnce() -> T) -> T {
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !done.load(Ordering::Relaxed) {
                other();
            }
        });
        let result = measured();
        done.store(true, Ordering::Relaxed);
        result
    })
}

fn write_while_another_lists() -> Percentiles {
    let store = filled();
    let changes = objects(2);
    let list = || drop(std::hint::black_box(store.list()));
    beside(list, || {
        Percentiles::of(changes.iter().map(|object| time(|| store.update(object.clone()).expect("a key"))).collect())
    })
}

fn get_during_replaces() -> Percentiles {
    let store = filled();
    let (a, b) = (objects(1), objects(2));
    let mut turn = false;
    let replace = || {
        turn = !turn;
        store.replace(if turn { a.clone() } else { b.clone() }, "2".into()).expect("keys");
    };
    beside(replace, || {
        let start = Instant::now();
        let mut times = Vec::new();
        // Long enough for several replaces.
        for object in a.iter().cycle().take_while(|_| start.elapsed() < Duration::from_secs(3)) {
            times.push(time(|| drop(std::hint::black_box(store.get_by_key(object.key())))));
        }
        Percentiles::of(times)
    })
}

struct Resident {
    counted: usize,
    peak: usize,
    resident: usize,
}

/// A whole list of pods, through source and reflector into a store.
fn resident_growth() -> Resident {
    let pods = Pods::new(3);
    // As a server's list is: the first dictionary sees one namespace or two.
    let pods = Arc::new((pods.sorted(OBJECTS), pods));
    let service = tower::service_fn(move |request: http::Request<kube_client::client::Body>| {
        let pods = pods.clone();
        let is_watch = request.uri().query().unwrap_or_default().contains("watch=true");
        let items = (0..OBJECTS).map(move |number| {
            let start = match number {
                0 => r#"{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"9"},"items":["#,
                _ => ",",
            };
            let end = if number == OBJECTS - 1 { "]}" } else { "" };
            let (order, pods) = &*pods;
            Bytes::from(format!("{start}{}{end}", pods.item(order[number])))
        });
        let frames =
            items.take(if is_watch { 0 } else { OBJECTS }).map(|piece| Ok::<_, std::io::Error>(Frame::data(piece)));
        // A watch says nothing, and stays open.
        let quiet = futures::stream::pending();
        let frames: futures::stream::BoxStream<'static, _> = match is_watch {
            true => Box::pin(quiet),
            false => Box::pin(futures::stream::iter(frames)),
        };
        async move { Ok::<_, std::convert::Infallible>(Response::new(StreamBody::new(frames))) }
    });
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().expect("a runtime");
    runtime.block_on(async {
        let client = Client::new(service, "default");
        let store = Arc::new(Indexer::objects());
        let source = ListWatch::of::<Pod>(client).for_store(&store);
        let (counted, resident) = (HEAP.current_usage(), resident_bytes());
        HEAP.reset_peak_usage();
        let token = CancellationToken::new();
        let reflector = Reflector::new(source.clone(), store.clone()).streaming_lists(false);
        let running = tokio::spawn(reflector.run(token.clone()));
        let start = Instant::now();
        while store.len() < OBJECTS {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        println!("{OBJECTS} pods listed in {:.1?}", start.elapsed());
        // Until the packer is done with what it does after a list.
        let mut before = source.packing();
        loop {
            tokio::time::sleep(Duration::from_secs(8)).await;
            let now = source.packing();
            if now == before && now.dictionaries == 1 {
                break;
            }
            before = now;
        }
        let zstd = source.packing().dictionary_bytes;
        let grown = Resident {
            counted: HEAP.current_usage() - counted + zstd,
            peak: HEAP.peak_usage() - counted + zstd,
            resident: resident_bytes().saturating_sub(resident),
        };
        token.cancel();
        running.await.expect("the reflector ends");
        grown
    })
}

/// What of this process is in memory, but for its code.
fn resident_bytes() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("RssAnon:")).unwrap_or_default();
    line.trim().trim_end_matches(" kB").trim().parse::<usize>().unwrap_or_default() << 10
}
