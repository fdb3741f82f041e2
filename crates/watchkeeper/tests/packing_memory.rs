//! What a cache of pods takes in memory. A binary of its own with one test, because it measures the whole process.

mod corpus;
mod pod_server;

use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::Pod;
use peak_alloc::PeakAlloc;
use pod_server::{PODS, PodServer, Watch};
use tokio_util::sync::CancellationToken;
use watchkeeper::{Indexer, ListWatch, Packing, Reflector};

#[global_allocator]
static HEAP: PeakAlloc = PeakAlloc;

const MIB: usize = 1 << 20;

/// What the cache takes, all of it.
struct Meter {
    before: usize,
    source: ListWatch,
}

impl Meter {
    fn now(&self) -> usize {
        HEAP.current_usage() - self.before + self.source.packing().dictionary_bytes
    }

    fn peak(&self) -> usize {
        HEAP.peak_usage() - self.before + self.source.packing().dictionary_bytes
    }

    /// Waits until nothing is packed any more.
    async fn settled(&self) -> Packing {
        let mut before = self.source.packing();
        loop {
            tokio::time::sleep(Duration::from_secs(30)).await;
            let now = self.source.packing();
            if now == before && now.dictionaries == 1 {
                return now;
            }
            before = now;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn ten_thousand_pods_take_700_bytes_each_in_all() {
    let server = PodServer::new(Watch::Expired);
    let store = Arc::new(Indexer::objects());
    let source = ListWatch::of::<Pod>(server.client()).for_store(&store);
    let meter = Meter { before: HEAP.current_usage(), source: source.clone() };
    let token = CancellationToken::new();
    let mut reflector = Reflector::new(source, store.clone()).streaming_lists(false);

    HEAP.reset_peak_usage();
    reflector.list_and_watch(&token).await.expect_err("the watch is too old");
    assert_eq!(store.len(), PODS);
    let first = meter.settled().await;
    let (kept, peak) = (meter.now(), meter.peak());
    println!("{} bytes a pod, the first load peaked at {} more, {first:?}", kept / PODS, peak - kept);
    assert!(kept <= 700 * PODS, "{} bytes a pod", kept / PODS);
    assert!(peak <= kept + 16 * MIB, "the first load peaked {} above what is kept", peak - kept);

    // What the objects say of themselves is most of it; the rest is the store's, and the dictionary.
    let told: usize = store.snapshot().iter().map(|(_, object)| object.memory()).sum();
    println!("{} bytes a pod, as the pods tell", told / PODS);
    assert!(told <= kept && told * 10 >= kept * 7, "{} of {} bytes a pod", told / PODS, kept / PODS);

    // All of it is decoded, and let go.
    for (_, object) in store.snapshot().iter() {
        object.clone().typed::<Pod>().decode().expect("a pod");
    }
    let after = meter.now();
    assert!(after.abs_diff(kept) <= kept / 100, "{kept} bytes before decoding, {after} after");

    // All of it comes again, as fresh bytes.
    HEAP.reset_peak_usage();
    reflector.list_and_watch(&token).await.expect_err("the watch is too old");
    let (again, peak) = (meter.now(), meter.peak());
    println!("replaced by itself: {} bytes a pod, peaked at {:.2} times", again / PODS, peak as f64 / kept as f64);
    assert!(peak * 10 <= kept * 12, "peaked at {peak} with {kept} kept");
    assert_eq!(meter.settled().await, first, "nothing was packed");

    // Another template is rolled out.
    server.roll_out(1);
    reflector.list_and_watch(&token).await.expect_err("the watch is too old");
    let rolled_out = meter.settled().await;
    println!("after a rollout: {} bytes a pod, {rolled_out:?}", meter.now() / PODS);
    assert!(rolled_out.generation > first.generation, "{rolled_out:?}");
    assert!(meter.now() <= 900 * PODS, "{} bytes a pod", meter.now() / PODS);
    for (_, object) in store.snapshot().iter().take(100) {
        let json = object.json().expect("a body");
        assert!(memchr::memmem::find(&json, b"rollout").is_some(), "{:?}", object);
    }
}
