//! Handlers that panic.

use tokio::time::Instant;
use tracing::Level;
use watchkeeper::HandlerOptions;

use super::*;
use crate::support::{Logs, without_deadlock};

/// Adds a handler that notes what it is called with, and when, and panics on objects of this name.
fn panics_on(pods: &SharedInformer<Pod>, name: &'static str) -> (Notes, HandlerHandle) {
    let (notes, began) = (Notes::default(), Instant::now());
    let noted = notes.clone();
    let handler = move |event: &Event<Pod>| {
        noted.note(format!("{}s {}", began.elapsed().as_secs(), words(event)));
        assert_ne!(event.key().name(), name, "a secret of the handler");
    };
    let handle = pods.on_event_with(HandlerOptions::new().name("fragile"), handler).expect("a handler");
    (notes, handle)
}

#[tokio::test(start_paused = true)]
async fn a_handler_that_panics_pauses_for_a_second_and_loses_that_one_event() {
    for queue in both_queues() {
        let cluster = Cluster::with(&["bad"]);
        let pods = synced(cluster.clone(), queue).await;
        let (notes, handle) = panics_on(&pods, "bad");
        let (other, _) = noting(&pods);
        settle().await;
        cluster.put("bad");
        cluster.put("good");
        settle().await;
        assert_eq!(other.take().len(), 3, "others go on at once");
        pass(seconds(10)).await;
        assert_eq!(notes.take(), ["0s +bad@11 Initial", "1s ~bad@11>12 Watch", "2s +good@13 Watch"]);
        assert_eq!((handle.panics(), handle.backlog(), handle.delivered()), (2, 0, 3));
    }
}

#[tokio::test(start_paused = true)]
async fn a_panic_in_the_first_list_does_not_keep_the_handler_from_being_synced() {
    for queue in both_queues() {
        let pods = informer(Cluster::with(&["a", "bad"]), queue);
        let (notes, handle) = panics_on(&pods, "bad");
        start(&pods);
        tokio::time::timeout(seconds(10), handle.synced()).await.expect("no hang").expect("it syncs");
        assert_eq!((notes.take().len(), handle.panics()), (2, 1));
    }
}

#[tokio::test(start_paused = true)]
async fn a_panic_is_logged_with_the_handler_and_the_key_and_not_with_what_it_said() {
    let logs = Logs::capture();
    let pods = synced(Cluster::with(&["bad"]), InformerQueue::Atomic).await;
    let _handle = panics_on(&pods, "bad");
    pass(seconds(2)).await;
    let lines = logs.lines(Level::ERROR, "a handler panicked");
    assert_eq!(lines.len(), 1);
    assert!(lines[0].contains("shop/bad") && lines[0].contains("fragile") && !lines[0].contains("secret"), "{lines:?}");
}

#[tokio::test(start_paused = true)]
async fn a_filter_that_panics_costs_its_event() {
    for queue in both_queues() {
        let cluster = Cluster::with(&["a"]);
        let pods = synced(cluster.clone(), queue).await;
        let options = HandlerOptions::new().filter(|pod: &watchkeeper::Cached<Pod>| {
            assert_ne!(pod.resource_version().as_str(), "12");
            true
        });
        let (notes, handle) = noting_with(&pods, options);
        settle().await;
        cluster.put("a");
        cluster.put("a");
        pass(seconds(5)).await;
        assert_eq!((notes.take(), handle.panics()), (vec!["+a@11 Initial".into(), "~a@12>13 Watch".into()], 1));
    }
}

#[tokio::test(start_paused = true)]
async fn removal_and_the_end_do_not_wait_for_the_pause() {
    for queue in both_queues() {
        let pods = synced(Cluster::with(&["bad"]), queue).await;
        let (_, one) = panics_on(&pods, "bad");
        let (_, two) = panics_on(&pods, "bad");
        settle().await;
        assert_eq!((one.panics(), two.panics()), (1, 1));
        let began = Instant::now();
        one.remove_and_wait().await;
        pods.shutdown().await;
        assert!(two.is_removed());
        assert_eq!(began.elapsed(), Duration::ZERO);
    }
}

#[test]
fn a_blocking_handler_that_panics_goes_on_too() {
    without_deadlock(|| {
        let runtime = tokio::runtime::Runtime::new().expect("a runtime");
        let pods = runtime.block_on(synced(Cluster::with(&["bad", "good"]), InformerQueue::Atomic));
        let mut first = true;
        let handler = move |_: &Event<Pod>| assert!(!std::mem::replace(&mut first, false));
        let handle = pods.on_event_with(HandlerOptions::new().blocking(), handler).expect("a handler");
        runtime.block_on(handle.synced()).expect("it syncs");
        assert_eq!((handle.panics(), handle.delivered()), (1, 2));
        runtime.block_on(pods.shutdown());
    });
}

/// Notes that it is dropped, and panics then.
struct Fragile(Notes);

impl Drop for Fragile {
    fn drop(&mut self) {
        self.0.note("dropped");
        panic!("a handler that panics when it is dropped");
    }
}

#[tokio::test(start_paused = true)]
async fn a_handler_that_panics_when_it_is_dropped_is_in_nobodys_way_also_if_it_never_ran() {
    for queue in both_queues() {
        for is_started in [false, true] {
            let pods = informer(Cluster::with(&["a"]), queue);
            let notes = Notes::default();
            let add = || {
                let fragile = Fragile(notes.clone());
                pods.on_event(move |_| drop(fragile.0.lock())).expect("a handler")
            };
            let (first, second) = (add(), add());
            let (_, other) = noting(&pods);
            if is_started {
                start(&pods);
                other.synced().await.expect("it syncs");
            }
            first.remove_and_wait().await;
            tokio::time::timeout(seconds(10), pods.shutdown()).await.expect("it ends");
            assert!(second.is_removed() && other.is_removed() && pods.is_stopped());
            assert_eq!(notes.take().len(), 2);
        }
    }
}

/// What a panic carries may panic too, when it is dropped.
struct Bomb;

impl Drop for Bomb {
    fn drop(&mut self) {
        panic!("a panic that panics");
    }
}

#[tokio::test(start_paused = true)]
async fn a_panic_that_panics_costs_its_event_and_not_the_handler() {
    for queue in both_queues() {
        let cluster = Cluster::with(&["a"]);
        let pods = synced(cluster.clone(), queue).await;
        let handle = pods.on_event(|_| std::panic::panic_any(Bomb)).expect("a handler");
        settle().await;
        cluster.put("a");
        pass(seconds(5)).await;
        assert_eq!((handle.panics(), handle.is_removed()), (2, false));
    }
}
