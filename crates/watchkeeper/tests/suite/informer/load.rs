//! Many events, slow handlers, and handlers that come and go all the time.

use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::time::Instant;
use watchkeeper::{Buffer, HandlerOptions};

use super::*;

/// Reads a stream, one event a second, until it ends. The count is of those that were read.
fn read_slowly(pods: &SharedInformer<Pod>, buffer: Buffer) -> (HandlerHandle, Arc<AtomicUsize>) {
    let mut events = pods.events_with(HandlerOptions::new().buffer(buffer)).expect("a stream");
    let (handle, count) = (events.handle().clone(), Arc::new(AtomicUsize::new(0)));
    let counted = count.clone();
    tokio::spawn(async move {
        while events.next().await.is_some() {
            pass(seconds(1)).await;
            counted.fetch_add(1, Ordering::Relaxed);
        }
    });
    (handle, count)
}

#[tokio::test(start_paused = true)]
async fn a_slow_handler_holds_up_neither_the_watch_nor_another_handler() {
    const EVENTS: usize = 10_000;
    for queue in both_queues() {
        let cluster = Cluster::with(&["a"]);
        let pods = synced(cluster.clone(), queue).await;
        let (slow, read) = read_slowly(&pods, Buffer::EveryEvent);
        let (joined, joined_read) = read_slowly(&pods, Buffer::Coalesce);
        let (notes, quick) = noting(&pods);
        settle().await;
        let began = Instant::now();
        for number in 0..EVENTS {
            cluster.put(["a", "b", "c"][number % 3]);
        }
        settle().await;
        assert_eq!(contents(pods.store()), cluster.contents(), "the watch went on");
        assert_eq!((notes.take().len(), quick.backlog()), (1 + EVENTS, 0), "the other heard all");
        assert!(began.elapsed() < seconds(1));
        assert_eq!((slow.backlog(), joined.backlog()), (EVENTS, 3));
        pass(seconds(100)).await;
        assert_eq!(slow.backlog(), EVENTS - read.load(Ordering::Relaxed));
        assert!((99..=101).contains(&read.load(Ordering::Relaxed)));
        assert_eq!((joined_read.load(Ordering::Relaxed), joined.backlog()), (4, 0), "it is up to date");
        pods.shutdown().await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_blocking_handler_holds_up_nobody() {
    for queue in both_queues() {
        let cluster = Cluster::with(&["a"]);
        let pods = synced(cluster.clone(), queue).await;
        let (release, released) = std::sync::mpsc::channel::<()>();
        let options = HandlerOptions::new().blocking();
        let blocked = pods.on_event_with(options, move |_| released.recv().unwrap_or_default()).expect("a handler");
        let (notes, _) = noting(&pods);
        (0..100).for_each(|_| cluster.put("a"));
        settle().await;
        assert_eq!(notes.take().len(), 101);
        assert_eq!(contents(pods.store()), cluster.contents());
        assert!(!blocked.has_synced());
        drop(release);
        pods.shutdown().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_hundred_tasks_add_and_remove_handlers_while_thousands_of_events_come_and_nothing_is_left() {
    for queue in both_queues() {
        let before = alive_tasks();
        let cluster = Cluster::with(&["a"]);
        let pods = synced(cluster.clone(), queue).await;
        let mut tasks = tokio::task::JoinSet::new();
        for number in 0..100 {
            let pods = pods.clone();
            tasks.spawn(async move {
                for round in 0..20 {
                    let buffer = if round % 2 == 0 { Buffer::EveryEvent } else { Buffer::Coalesce };
                    let count = Arc::new(AtomicUsize::new(0));
                    let counted = count.clone();
                    let count_one = move |_: &Event<Pod>| {
                        counted.fetch_add(1, Ordering::Relaxed);
                    };
                    let handle = pods.on_event_with(HandlerOptions::new().buffer(buffer), count_one).expect("one");
                    match (number + round) % 4 {
                        0 => handle.synced().await.expect("it is there"),
                        1 => tokio::task::yield_now().await,
                        2 => handle.remove_and_wait().await,
                        _ => drop(pods.events().expect("a stream")),
                    }
                    handle.remove();
                    handle.remove_and_wait().await;
                    assert_eq!(Arc::strong_count(&count), 1, "the handler is dropped");
                }
            });
        }
        let changing = tokio::task::spawn_blocking({
            let cluster = cluster.clone();
            move || {
                for number in 0..5000 {
                    cluster.put(&format!("pod-{}", number % 20));
                }
            }
        });
        while let Some(done) = tokio::time::timeout(seconds(60), tasks.join_next()).await.expect("no deadlock") {
            done.expect("no panic");
        }
        changing.await.expect("no panic");
        assert!(pods.handlers().is_empty());
        let (notes, handle) = noting(&pods);
        handle.synced().await.expect("it syncs");
        assert!(!notes.take().is_empty());
        // Some are in the middle of it when it stops.
        let late: Vec<_> = (0..20)
            .map(|_| {
                tokio::spawn({
                    let pods = pods.clone();
                    async move {
                        while pods.on_event(|_| {}).is_ok() {
                            tokio::task::yield_now().await;
                        }
                    }
                })
            })
            .collect();
        tokio::time::timeout(seconds(60), pods.shutdown()).await.expect("no deadlock");
        for task in late {
            task.await.expect("no panic");
        }
        drop(pods);
        while alive_tasks() > before {
            tokio::task::yield_now().await;
        }
        assert_eq!(cluster.open_watches(), 0);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn changes_by_many_threads_never_hang_it_and_the_store_ends_up_right() {
    for queue in both_queues() {
        let cluster = Cluster::with(&["a"]);
        let pods = informer(cluster.clone(), queue);
        let heard: Arc<Mutex<std::collections::BTreeMap<String, String>>> = Arc::default();
        let fold = heard.clone();
        pods.on_event(move |event| {
            let mut fold = fold.lock().expect("not poisoned");
            match event.is_deletion() {
                true => fold.remove(event.key().name()),
                false => fold.insert(event.key().name().into(), event.object().resource_version().to_string()),
            };
        })
        .expect("a handler");
        assert!(!pods.has_synced());
        start(&pods);
        let threads = (0..4u64).map(|seed| {
            let cluster = cluster.clone();
            tokio::task::spawn_blocking(move || {
                let mut random = fastrand::Rng::with_seed(seed);
                for _ in 0..500 {
                    let name = format!("pod-{}", random.u8(..10));
                    if random.u8(..3) == 0 {
                        cluster.delete(&name)
                    } else {
                        cluster.put(&name)
                    }
                    if random.u8(..50) == 0 {
                        cluster.end_watches();
                    }
                }
            })
        });
        futures::future::join_all(threads).await.into_iter().for_each(|thread| thread.expect("no panic"));
        pods.synced().await.expect("it syncs");
        cluster.put("last");
        let is_there = || contents(pods.store()) == cluster.contents();
        let deadline = Instant::now() + seconds(60);
        while !is_there() {
            assert!(Instant::now() < deadline, "{:?}", pods.status());
            pass(Duration::from_millis(5)).await;
        }
        let folded = || -> Vec<String> {
            let heard = heard.lock().expect("not poisoned");
            heard.iter().map(|(name, version)| format!("{name}@{version}")).collect()
        };
        while folded() != cluster.contents() {
            assert!(Instant::now() < deadline, "{:?}", folded());
            pass(Duration::from_millis(5)).await;
        }
        pods.shutdown().await;
    }
}

#[tokio::test(start_paused = true)]
async fn handlers_on_threads_end_with_their_informer() {
    let before = alive_tasks();
    let pods = synced(Cluster::with(&["a"]), InformerQueue::Atomic).await;
    let handles: Vec<HandlerHandle> =
        (0..5).map(|_| pods.on_event_with(HandlerOptions::new().blocking(), |_| {}).expect("a handler")).collect();
    for handle in &handles {
        handle.synced().await.expect("it syncs");
    }
    pods.shutdown().await;
    assert!(handles.iter().all(HandlerHandle::is_removed));
    assert_eq!(alive_tasks(), before);
}
