//! Everything is said again in time.

use std::collections::BTreeMap;

use tokio::time::Instant;
use watchkeeper::{Buffer, HandlerOptions, Scripted, ScriptedList, ScriptedWatch};

use super::*;
use crate::support::{listed, pod, without_deadlock};

/// Adds a handler with a resync period that notes when it hears of a resync, in seconds from now.
fn resyncs(pods: &SharedInformer<Pod>, period: u64) -> Notes {
    let (notes, began) = (Notes::default(), Instant::now());
    let noted = notes.clone();
    let options = HandlerOptions::new().resync_period(seconds(period));
    let note = move |event: &Event<Pod>| {
        if event.cause() == watchkeeper::Cause::Resync {
            noted.note(began.elapsed().as_secs().to_string());
        }
    };
    pods.on_event_with(options, note).expect("a handler");
    notes
}

#[tokio::test(start_paused = true)]
async fn each_handler_hears_everything_again_in_its_own_period_and_the_server_is_asked_for_nothing() {
    for queue in both_queues() {
        let cluster = Cluster::with(&["a"]);
        let pods = informer(cluster.clone(), queue);
        let (never, two, three) = (resyncs(&pods, 0), resyncs(&pods, 2), resyncs(&pods, 3));
        start(&pods);
        pass(Duration::from_millis(12_500)).await;
        assert!(never.take().is_empty());
        assert_eq!(two.take(), ["2", "4", "6", "8", "10", "12"]);
        assert_eq!(three.take(), ["3", "6", "9", "12"]);
        assert_eq!((cluster.lists(), cluster.open_watches()), (1, 1));
    }
}

#[tokio::test(start_paused = true)]
async fn a_handler_that_says_nothing_has_the_informers_period_and_one_that_says_never_has_none() {
    for queue in both_queues() {
        let pods = builder(Cluster::with(&["a"]), queue).resync_period(seconds(10)).build();
        let (notes, _) = noting(&pods);
        let (never, _) = noting_with(&pods, HandlerOptions::new().resync_period(Duration::ZERO));
        start(&pods);
        pass(seconds(25)).await;
        assert_eq!(notes.take(), ["+a@11 Initial", "~a@11>11 Resync", "~a@11>11 Resync"]);
        assert_eq!(never.take(), ["+a@11 Initial"]);
    }
}

#[tokio::test(start_paused = true)]
async fn a_period_of_less_than_a_second_is_a_second() {
    let pods = informer(Cluster::with(&["a"]), InformerQueue::Atomic);
    let (notes, _) = noting_with(&pods, HandlerOptions::new().resync_period(Duration::from_millis(1)));
    start(&pods);
    pass(Duration::from_millis(3500)).await;
    assert_eq!(notes.take().len(), 1 + 3);
}

#[tokio::test(start_paused = true)]
async fn a_handler_that_comes_late_brings_its_own_period_and_leaves_those_of_others_alone() {
    for queue in both_queues() {
        let pods = informer(Cluster::with(&["a"]), queue);
        let ten = resyncs(&pods, 10);
        start(&pods);
        pass(seconds(5)).await;
        let one = resyncs(&pods, 1);
        pass(Duration::from_millis(5500)).await;
        assert_eq!(one.take(), ["1", "2", "3", "4", "5"]);
        assert_eq!(ten.take(), ["10"]);
    }
}

#[tokio::test(start_paused = true)]
async fn an_informer_that_is_started_late_resyncs_in_time_from_then_on() {
    for queue in both_queues() {
        let pods = informer(Cluster::with(&["a"]), queue);
        let (two, three) = (resyncs(&pods, 2), resyncs(&pods, 3));
        pass(seconds(7)).await;
        start(&pods);
        pass(Duration::from_millis(5500)).await;
        // Those that were missed are not made up for.
        assert_eq!((two.take().len(), three.take().len()), (2, 1));
    }
}

#[test]
fn a_resync_that_is_due_before_the_first_list_is_put_off_and_nobody_is_kept_busy() {
    // The paused clock stands still while anybody is busy.
    without_deadlock(|| {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build();
        runtime.expect("a runtime").block_on(async {
            for queue in both_queues() {
                let source = Scripted::new()
                    .answer_list(ScriptedList::new("10", [pod("a", "1")]).wait(Duration::from_millis(4500)))
                    .answer_watch(ScriptedWatch::new().hang());
                let pods = informer(source, queue);
                let notes = resyncs(&pods, 1);
                start(&pods);
                pods.synced().await.expect("it syncs");
                pass(Duration::from_millis(2100)).await;
                // At 5.5 and 6.5 seconds.
                assert_eq!(notes.take(), ["5", "6"]);
            }
        });
    });
}

#[tokio::test(start_paused = true)]
async fn a_resync_says_what_is_in_the_cache_and_nothing_older_than_what_was_told() {
    for queue in both_queues() {
        let watch = ScriptedWatch::new().wait(Duration::from_millis(2900)).modified(pod("a", "11"));
        let watch = watch.wait(Duration::from_millis(200)).modified(pod("a", "12")).hang();
        let pods = informer(listed().answer_watch(watch), queue);
        let (notes, _) = noting_with(&pods, HandlerOptions::new().resync_period(seconds(1)));
        start(&pods);
        pass(Duration::from_millis(4500)).await;
        let told = ["+a@1 Initial", "~a@1>1 Resync", "~a@1>1 Resync"];
        let then = ["~a@1>11 Watch", "~a@11>11 Resync", "~a@11>12 Watch", "~a@12>12 Resync"];
        assert_eq!(notes.take(), [&told[..], &then[..]].concat());
    }
}

#[tokio::test(start_paused = true)]
async fn a_resync_is_not_repeated_while_the_last_one_waits() {
    for queue in both_queues() {
        for buffer in [Buffer::EveryEvent, Buffer::Coalesce] {
            let cluster = Cluster::with(&["a", "b"]);
            let pods = synced(cluster.clone(), queue).await;
            let options = HandlerOptions::new().resync_period(seconds(1)).buffer(buffer);
            let mut events = pods.events_with(options).expect("a stream");
            pass(seconds(100)).await;
            assert_eq!(events.handle().backlog(), 4, "what there was, and one resync");
            let mut causes = BTreeMap::new();
            while events.handle().backlog() > 0 {
                *causes.entry(format!("{:?}", events.next().await.expect("an event").cause())).or_insert(0) += 1;
            }
            assert_eq!(causes, BTreeMap::from([("Initial".to_owned(), 2), ("Resync".to_owned(), 2)]));
            // Asking for the next says that the resync is over.
            tokio::select! {
                event = events.next() => assert_eq!(event.expect("an event").cause(), watchkeeper::Cause::Resync),
                () = pass(seconds(2)) => panic!("there is another resync"),
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_transform_never_sees_what_is_said_again() {
    use crate::support::{body, client, ok, pod_json};
    let runs = std::sync::Arc::new(std::sync::atomic::AtomicUsize::new(0));
    let counted = runs.clone();
    let client = client(move |request| match request.uri().query().unwrap_or_default() {
        query if query.contains("watch") => http::Response::new(body(vec![crate::support::Piece::Hang])),
        _ => ok(format!(
            r#"{{"kind":"PodList","apiVersion":"v1","metadata":{{"resourceVersion":"10"}},"items":[{}]}}"#,
            pod_json("a", "1")
        )),
    });
    let transform = watchkeeper::Transform::json(move |_| {
        counted.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        Ok::<_, std::convert::Infallible>(None)
    });
    let source = watchkeeper::ListWatch::of::<Pod>(client).transform(transform);
    let pods = builder(source, InformerQueue::Atomic).reflector(|reflector| reflector.streaming_lists(false)).build();
    let notes = resyncs(&pods, 1);
    start(&pods);
    pass(Duration::from_millis(3500)).await;
    assert_eq!(notes.take(), ["1", "2", "3"]);
    assert_eq!(runs.load(std::sync::atomic::Ordering::Relaxed), 1);
}
