//! What an informer of pods takes in memory. A binary of its own with one test, because it measures the whole process.

mod corpus;
mod pod_server;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::Duration;

use k8s_openapi::api::core::v1::Pod;
use peak_alloc::PeakAlloc;
use pod_server::{PODS, PodServer, Watch};
use tokio_util::sync::CancellationToken;
use watchkeeper::{Event, ListWatch, SharedInformer};

#[global_allocator]
static HEAP: PeakAlloc = PeakAlloc;

const MIB: usize = 1 << 20;

/// Until nothing is packed any more: the clock is paused, and goes on when there is nothing else to do.
async fn settle() {
    tokio::time::sleep(Duration::from_secs(300)).await;
}

#[tokio::test(start_paused = true)]
async fn an_informer_of_ten_thousand_pods_with_handlers_takes_little_more_than_the_pods() {
    let server = PodServer::new(Watch::Silence);
    let client = server.client();
    let before = HEAP.current_usage();
    let now = || HEAP.current_usage() - before;
    let peak = || HEAP.peak_usage() - before;

    // One handler decodes everything, one nothing, and one is not read at all for a while.
    let source = ListWatch::of::<Pod>(client);
    let pods: SharedInformer<Pod> =
        SharedInformer::builder(source).reflector(|reflector| reflector.streaming_lists(false)).build();
    let (decoded, heard) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let counter = decoded.clone();
    let decodes = pods.on_event(move |event| {
        event.object().decode().expect("a pod");
        counter.fetch_add(1, Relaxed);
    });
    let counter = heard.clone();
    let looks = pods.on_event(move |_| {
        counter.fetch_add(1, Relaxed);
    });
    let mut lags = pods.events().expect("a stream");

    HEAP.reset_peak_usage();
    pods.start(CancellationToken::new()).expect("started");
    pods.synced().await.expect("synced");
    let decodes = decodes.expect("a handler");
    for handle in [&decodes, &looks.expect("a handler")] {
        handle.synced().await.expect("heard of all");
    }
    settle().await;
    let (with_backlog, first_peak) = (now(), peak());
    assert_eq!(lags.handle().backlog(), PODS);
    assert_eq!((decoded.load(Relaxed), heard.load(Relaxed)), (PODS, PODS));
    for _ in 0..PODS {
        assert!(matches!(lags.next().await, Some(Event::Added { .. })));
    }
    // Asking for the next one lets go of the list.
    let next = tokio::time::timeout(Duration::from_secs(1), lags.next()).await;
    assert!(next.is_err(), "{next:?}");
    let kept = now();
    println!(
        "{} bytes a pod, {} while a handler had not heard of them; the first load peaked at {} more",
        kept / PODS,
        with_backlog / PODS,
        first_peak - kept
    );
    // Without the dictionary, which zstd keeps where it is not counted: another 57 bytes a pod.
    assert!(kept <= 760 * PODS, "{} bytes a pod", kept / PODS);
    // What waits are pointers, and the 64 pods that were decoded last, of some 60 KB each.
    assert!(with_backlog <= kept + 40 * PODS + 5 * MIB, "{} bytes more while they wait", with_backlog - kept);
    assert!(first_peak <= kept + 16 * MIB, "the first load peaked {} above what is kept", first_peak - kept);

    // A tenth of them changed, and a list finds out. Until they are packed, up to 8 MiB of bodies wait as they came.
    decodes.remove_and_wait().await;
    server.roll_out(10);
    HEAP.reset_peak_usage();
    pods.relist();
    while heard.load(Relaxed) < PODS + PODS / 10 {
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
    for _ in 0..PODS / 10 {
        let event = lags.next().await.expect("a change");
        assert!(!matches!(event, Event::Added { .. }), "{event:?}");
    }
    let relist_peak = peak();
    println!("a relist with a tenth changed peaked at {} more than what is kept", relist_peak - kept);
    assert!(relist_peak <= kept + kept / 5 + 8 * MIB, "peaked at {relist_peak} with {kept} kept");
    pods.shutdown().await;
}
