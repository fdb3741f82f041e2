//! How informers start, and how they end.

use watchkeeper::{ErrorKind, HandlerOptions};

use super::*;
use crate::support::without_deadlock;

#[tokio::test(start_paused = true)]
async fn an_informer_is_started_once_and_a_second_start_does_nothing() {
    for queue in both_queues() {
        let cluster = Cluster::with(&["a"]);
        let pods = informer(cluster.clone(), queue);
        assert!(!pods.is_started() && !pods.is_stopped());
        start(&pods);
        assert!(pods.is_started() && !pods.is_stopped());
        pods.synced().await.expect("it syncs");
        let other = CancellationToken::new();
        pods.start(other.clone()).expect("a second start is fine");
        other.cancel();
        pass(seconds(60)).await;
        assert_eq!((cluster.lists(), cluster.open_watches(), pods.is_stopped()), (1, 1, false));
        pods.shutdown().await;
        assert!(pods.is_started() && pods.is_stopped());
    }
}

#[tokio::test(start_paused = true)]
async fn a_stopped_informer_does_not_start_again_and_takes_no_handlers() {
    for queue in both_queues() {
        let pods = synced(Cluster::with(&["a"]), queue).await;
        pods.shutdown().await;
        let started = pods.start(CancellationToken::new()).expect_err("it is over");
        let added = pods.on_event(|_| {}).expect_err("it is over");
        let streamed = pods.events().expect_err("it is over");
        for error in [started, added, streamed] {
            assert_eq!(error.kind(), ErrorKind::Stopped);
            assert!(error.to_string().contains("has been stopped"), "{error}");
        }
        assert_eq!(contents(pods.store()), ["a@11"], "what it knew can be read");
    }
}

#[tokio::test(start_paused = true)]
async fn one_that_is_stopped_before_its_start_is_over() {
    for queue in both_queues() {
        let cluster = Cluster::with(&["a"]);
        let pods = informer(cluster.clone(), queue);
        let (_, handle) = noting(&pods);
        pods.shutdown().await;
        assert!(pods.is_stopped() && handle.is_removed());
        assert!(pods.start(CancellationToken::new()).is_err());
        assert!(pods.synced().await.is_err() && handle.synced().await.is_err());
        assert_eq!(cluster.lists(), 0);
    }
}

#[tokio::test(start_paused = true)]
async fn run_returns_when_everything_has_ended() {
    for queue in both_queues() {
        let cluster = Cluster::with(&["a"]);
        let pods = informer(cluster.clone(), queue);
        let (_, handle) = noting(&pods);
        let token = CancellationToken::new();
        let running = tokio::spawn({
            let (pods, token) = (pods.clone(), token.clone());
            async move { pods.run(token).await }
        });
        handle.synced().await.expect("it syncs");
        assert!(!running.is_finished());
        token.cancel();
        running.await.expect("no panic").expect("it started");
        assert!(pods.is_stopped() && handle.is_removed());
        assert_eq!(cluster.open_watches(), 0);
    }
}

#[tokio::test(start_paused = true)]
async fn a_handler_may_stop_its_informer() {
    for queue in both_queues() {
        let cluster = Cluster::with(&["a", "b"]);
        let pods = informer(cluster.clone(), queue);
        let (notes, informer) = (Notes::default(), pods.clone());
        let noted = notes.clone();
        let stop = move |event: &Event<Pod>| {
            noted.note(words(event));
            informer.stop();
        };
        pods.on_event(stop).expect("a handler");
        pods.run(CancellationToken::new()).await.expect("it starts");
        assert!(pods.is_stopped() && !notes.take().is_empty());
        assert_eq!(cluster.open_watches(), 0);
    }
}

#[tokio::test(start_paused = true)]
async fn what_handlers_have_not_heard_when_it_stops_they_never_hear() {
    for queue in both_queues() {
        let cluster = Cluster::with(&["a"]);
        let pods = synced(cluster.clone(), queue).await;
        let (notes, _) = noting(&pods);
        settle().await;
        (0..100).for_each(|_| cluster.put("a"));
        pods.shutdown().await;
        let told = notes.take().len();
        assert!(told < 100, "{told}");
        pass(seconds(5)).await;
        assert!(notes.take().is_empty());
    }
}

#[tokio::test(start_paused = true)]
async fn stopping_leaves_no_task_behind_whatever_there_was() {
    for queue in both_queues() {
        let before = alive_tasks();
        // Never started.
        let pods = informer(Cluster::with(&["a"]), queue);
        noting(&pods);
        pods.shutdown().await;
        assert_eq!(alive_tasks(), before);
        // Stopped at once.
        let pods = informer(Cluster::with(&["a"]), queue);
        noting(&pods);
        start(&pods);
        pods.shutdown().await;
        settle().await;
        assert_eq!(alive_tasks(), before, "stopped at once");
        // Synced, with handlers that came before and after, and a stream.
        let cluster = Cluster::with(&["a"]);
        let pods = builder(cluster.clone(), queue).resync_period(seconds(1)).build();
        noting(&pods);
        start(&pods);
        pods.synced().await.expect("it syncs");
        noting(&pods);
        let _stream = pods.events().expect("a stream");
        pass(seconds(5)).await;
        assert!(alive_tasks() > before);
        tokio::time::timeout(seconds(60), pods.shutdown()).await.expect("nothing holds it up");
        settle().await;
        assert_eq!((alive_tasks(), cluster.open_watches()), (before, 0), "after a while");
        // In the middle of a backoff.
        let pods = informer(watchkeeper::Scripted::new().fail_list(crate::support::internal()), queue);
        start(&pods);
        settle().await;
        pods.shutdown().await;
        settle().await;
        assert_eq!(alive_tasks(), before, "while it backs off");
    }
}

#[tokio::test(start_paused = true)]
async fn the_last_informer_lister_stream_or_handler_stops_it_after_a_while() {
    for queue in both_queues() {
        let before = alive_tasks();
        let cluster = Cluster::with(&["a"]);
        let pods = builder(cluster.clone(), queue).linger(seconds(30)).build();
        let (_, handle) = noting(&pods);
        start(&pods);
        let lister = pods.synced().await.expect("it syncs");
        let stream = pods.events().expect("a stream");
        // Each of them is enough.
        for last in [Box::new(pods) as Box<dyn std::any::Any>, Box::new(lister), Box::new(stream)] {
            assert_eq!(cluster.open_watches(), 1);
            drop(last);
            pass(seconds(100)).await;
        }
        assert_eq!(cluster.open_watches(), 1, "the handler still needs it");
        handle.remove();
        pass(seconds(29)).await;
        assert_eq!(cluster.open_watches(), 1);
        pass(seconds(2)).await;
        assert_eq!((cluster.open_watches(), alive_tasks()), (0, before));
    }
}

#[tokio::test(start_paused = true)]
async fn dropping_everything_before_the_start_drops_the_handlers() {
    let held = std::sync::Arc::new(());
    let pods = informer(Cluster::new(), InformerQueue::Atomic);
    let inner = held.clone();
    let handle = pods.on_event(move |_| drop(inner.clone())).expect("a handler");
    drop(pods);
    assert_eq!(std::sync::Arc::strong_count(&held), 1);
    assert!(handle.is_removed() && handle.synced().await.is_err());
}

#[test]
fn a_start_outside_a_runtime_is_an_error_that_says_what_to_do_and_can_be_repeated_inside() {
    let cluster = Cluster::with(&["a"]);
    let pods = informer(cluster, InformerQueue::Atomic);
    let error = pods.start(CancellationToken::new()).expect_err("there is no runtime");
    assert_eq!(error.kind(), ErrorKind::Config);
    assert!(error.to_string().contains("from within a tokio runtime"), "{error}");
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(async {
        start(&pods);
        pods.synced().await.expect("it syncs");
        pods.shutdown().await;
    });
}

#[test]
fn dropping_the_runtime_ends_informers_handlers_and_those_who_wait() {
    without_deadlock(|| {
        for queue in both_queues() {
            let runtime = tokio::runtime::Runtime::new().expect("a runtime");
            let cluster = Cluster::with(&["a"]);
            let pods = informer(cluster.clone(), queue);
            let (_, handle) = noting(&pods);
            let (_, blocking) = noting_with(&pods, HandlerOptions::new().blocking());
            runtime.block_on(async {
                start(&pods);
                handle.synced().await.expect("it syncs");
                blocking.synced().await.expect("it syncs");
            });
            drop(runtime);
            assert!(pods.is_stopped() && handle.is_removed());
            assert_eq!(cluster.open_watches(), 0);
            let other = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
            other.block_on(async {
                pods.shutdown().await;
                blocking.remove_and_wait().await;
                assert!(pods.on_event(|_| {}).is_err());
            });
        }
    });
}

#[tokio::test(start_paused = true)]
async fn a_source_that_panics_stops_the_informer_which_says_so() {
    struct Broken;
    impl ListerWatcher for Broken {
        fn list(
            &self,
            _: watchkeeper::ListOptions,
        ) -> futures::future::BoxFuture<'_, Result<watchkeeper::Listing, watchkeeper::Error>> {
            Box::pin(async { panic!("a bug") })
        }
        fn watch(
            &self,
            _: watchkeeper::ListOptions,
        ) -> futures::future::BoxFuture<'_, Result<watchkeeper::WatchStream, watchkeeper::Error>> {
            Box::pin(async { panic!("a bug") })
        }
        fn description(&self) -> String {
            "broken things".into()
        }
    }
    for queue in both_queues() {
        let before = alive_tasks();
        let pods = informer(Broken, queue);
        let (_, handle) = noting(&pods);
        start(&pods);
        let error = pods.synced().await.expect_err("there will be no list");
        assert_eq!(error.kind(), ErrorKind::Stopped);
        assert!(error.to_string().contains("broken things") && error.to_string().contains("panicked"), "{error}");
        pods.stopped().await;
        let status = pods.status();
        assert!(status.failure.is_some(), "{status:?}");
        assert_eq!(status.phase, watchkeeper::Phase::Stopped);
        assert!(handle.synced().await.is_err() && handle.is_removed());
        settle().await;
        assert_eq!(alive_tasks(), before);
    }
}

#[tokio::test(start_paused = true)]
async fn a_token_that_is_cancelled_already_asks_for_nothing() {
    for queue in both_queues() {
        let cluster = Cluster::with(&["a"]);
        let pods = informer(cluster.clone(), queue);
        let token = CancellationToken::new();
        token.cancel();
        pods.run(token).await.expect("it starts, and ends");
        assert!(pods.is_stopped());
        assert_eq!((cluster.lists(), pods.store().len()), (0, 0));
    }
}
