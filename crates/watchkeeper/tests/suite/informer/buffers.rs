//! What waits for a handler that is busy.

use futures::FutureExt as _;
use watchkeeper::{Buffer, EventStream, HandlerOptions, ScriptedList, ScriptedWatch};

use super::*;
use crate::support::pod;

fn coalescing() -> HandlerOptions<Pod> {
    HandlerOptions::new().buffer(Buffer::Coalesce)
}

/// All that waits now, as its reader gets it.
async fn drain(events: &mut EventStream<Pod>) -> Vec<String> {
    let mut all = Vec::new();
    loop {
        tokio::select! {
            biased;
            event = events.next() => all.push(words(&event.expect("an event"))),
            () = settle() => return all,
        }
    }
}

#[tokio::test(start_paused = true)]
async fn every_change_waits_for_a_handler_that_is_busy() {
    for queue in both_queues() {
        let cluster = Cluster::with(&["a"]);
        let pods = synced(cluster.clone(), queue).await;
        let mut events = pods.events().expect("a stream");
        drain(&mut events).await;
        for _ in 0..5 {
            cluster.put("a");
            cluster.put("b");
            cluster.delete("b");
            settle().await;
        }
        assert_eq!(events.handle().backlog(), 15);
        assert_eq!(drain(&mut events).await.len(), 15);
        assert_eq!(events.handle().backlog(), 0);
    }
}

#[tokio::test(start_paused = true)]
async fn a_coalescing_buffer_joins_changes_of_an_object_to_one_from_what_was_told_last_to_the_newest() {
    for queue in both_queues() {
        let cluster = Cluster::with(&["a", "b", "c"]);
        let pods = synced(cluster.clone(), queue).await;
        let mut events = pods.events_with(coalescing()).expect("a stream");
        drain(&mut events).await;
        cluster.put("b");
        cluster.put("a");
        cluster.put("b");
        cluster.put("new");
        cluster.put("new");
        cluster.put("c");
        cluster.delete("c");
        cluster.put("short");
        cluster.put("short");
        cluster.delete("short");
        settle().await;
        assert_eq!(events.handle().backlog(), 4);
        let told = ["~b@12>16 Watch", "~a@11>15 Watch", "+new@18 Watch", "-c@20 Watch"];
        assert_eq!(drain(&mut events).await, told, "in the order in which they began");
    }
}

#[tokio::test(start_paused = true)]
async fn what_is_deleted_and_comes_back_while_a_handler_is_busy_is_an_update_from_what_it_was_told_last() {
    for queue in both_queues() {
        let watch = ScriptedWatch::new()
            .wait(seconds(1))
            .modified(pod("a", "11"))
            .deleted(pod("a", "12"))
            .added(pod("a", "13"))
            .wait(seconds(2))
            .deleted(pod("a", "14"))
            .added(pod("a", "15"))
            .hang();
        let source = watchkeeper::Scripted::new().answer_list(ScriptedList::new("10", [pod("a", "1")]));
        let pods = informer(source.answer_watch(watch), queue);
        let mut events = pods.events_with(coalescing()).expect("a stream");
        start(&pods);
        settle().await;
        assert_eq!(drain(&mut events).await, ["+a@1 Initial"]);
        pass(seconds(2)).await;
        assert_eq!(drain(&mut events).await, ["~a@1>13 Watch"]);
        pass(seconds(2)).await;
        assert_eq!(drain(&mut events).await, ["~a@13>15 Watch"], "not from the state in which it was deleted");
    }
}

#[tokio::test(start_paused = true)]
async fn what_is_again_what_a_handler_was_told_last_is_told_only_to_those_who_hear_of_what_has_not_changed() {
    for queue in both_queues() {
        let watch = ScriptedWatch::new().wait(seconds(1)).deleted(pod("a", "11")).added(pod("a", "1")).hang();
        let source = watchkeeper::Scripted::new().answer_list(ScriptedList::new("10", [pod("a", "1")]));
        let pods = informer(source.answer_watch(watch), queue);
        let mut events = pods.events_with(coalescing()).expect("a stream");
        let mut all = pods.events_with(coalescing().tell_unchanged(true)).expect("a stream");
        start(&pods);
        settle().await;
        drain(&mut events).await;
        drain(&mut all).await;
        pass(seconds(2)).await;
        assert_eq!(events.handle().backlog(), 0);
        assert!(drain(&mut events).await.is_empty());
        assert_eq!(drain(&mut all).await, ["~a@1>1 Watch"]);
    }
}

#[tokio::test(start_paused = true)]
async fn a_successor_in_a_coalescing_buffer_is_a_deletion_and_an_addition() {
    for queue in both_queues() {
        let cluster = Cluster::with(&["a"]);
        let pods = synced(cluster.clone(), queue).await;
        let mut events = pods.events_with(coalescing()).expect("a stream");
        drain(&mut events).await;
        cluster.put("a");
        cluster.delete("a");
        cluster.put_with("shop", "a", "uid-2", "");
        cluster.put_with("shop", "a", "uid-2", "");
        settle().await;
        assert_eq!(drain(&mut events).await, ["-a@11? Watch", "+a@15 Watch"]);
        assert_eq!(events.handle().backlog(), 0);
    }
}

#[tokio::test(start_paused = true)]
async fn a_successor_that_is_gone_again_is_the_end_of_the_one_that_was_told() {
    for queue in both_queues() {
        let cluster = Cluster::with(&["a"]);
        let pods = synced(cluster.clone(), queue).await;
        let mut events = pods.events_with(coalescing()).expect("a stream");
        drain(&mut events).await;
        cluster.delete("a");
        cluster.put_with("shop", "a", "uid-2", "");
        cluster.delete("a");
        settle().await;
        let event = events.next().await.expect("an event");
        assert_eq!((words(&event).as_str(), event.object().uid()), ("-a@11? Watch", Some("uid-a")));
        assert!(drain(&mut events).await.is_empty());
    }
}

#[tokio::test(start_paused = true)]
async fn a_change_while_a_successor_waits_behind_its_deletion_is_joined_with_it() {
    for queue in both_queues() {
        let cluster = Cluster::with(&["a"]);
        let pods = synced(cluster.clone(), queue).await;
        let mut events = pods.events_with(coalescing()).expect("a stream");
        drain(&mut events).await;
        cluster.put_with("shop", "a", "uid-2", "");
        settle().await;
        assert_eq!(words(&events.next().await.expect("an event")), "-a@11? Watch");
        cluster.delete("a");
        settle().await;
        assert!(drain(&mut events).await.is_empty(), "it was never told");
        cluster.put_with("shop", "a", "uid-3", "");
        settle().await;
        assert_eq!(drain(&mut events).await, ["+a@14 Watch"]);
    }
}

#[tokio::test(start_paused = true)]
async fn a_first_list_that_nobody_has_heard_and_what_changes_of_it_keep_their_order() {
    for queue in both_queues() {
        let cluster = Cluster::with(&["a", "b"]);
        let pods = informer(cluster.clone(), queue);
        let mut events = pods.events_with(coalescing()).expect("a stream");
        start(&pods);
        settle().await;
        cluster.put("a");
        cluster.put("a");
        cluster.delete("b");
        settle().await;
        let mut heard = drain(&mut events).await;
        heard[..2].sort();
        assert_eq!(heard, ["+a@11 Initial", "+b@12 Initial", "~a@11>14 Watch", "-b@15 Watch"]);
        assert!(events.handle().has_synced());
    }
}

#[tokio::test(start_paused = true)]
async fn an_addition_of_the_first_list_that_changes_before_it_is_told_is_initial_still() {
    // A queue by key can have both before the informer is synced.
    let watch = ScriptedWatch::new().modified(pod("a", "11")).hang();
    let source = watchkeeper::Scripted::new().answer_list(ScriptedList::new("10", [pod("a", "1"), pod("b", "2")]));
    let pods = informer(source.answer_watch(watch), InformerQueue::Delta);
    let mut events = pods.events_with(coalescing()).expect("a stream");
    start(&pods);
    settle().await;
    assert_eq!(drain(&mut events).await, ["+a@11 Initial", "+b@2 Initial"]);
}

#[tokio::test(start_paused = true)]
async fn a_resync_stands_where_it_came_also_in_a_coalescing_buffer() {
    for queue in both_queues() {
        let watch = ScriptedWatch::new().wait(Duration::from_millis(1500));
        let watch = watch.modified(pod("a", "11")).wait(seconds(1)).modified(pod("a", "12")).modified(pod("a", "13"));
        let source = watchkeeper::Scripted::new().answer_list(ScriptedList::new("10", [pod("a", "1")]));
        let pods = informer(source.answer_watch(watch.hang()), queue);
        let mut events = pods.events_with(coalescing().resync_period(seconds(2))).expect("a stream");
        start(&pods);
        settle().await;
        drain(&mut events).await;
        pass(Duration::from_millis(3500)).await;
        assert_eq!(drain(&mut events).await, ["~a@1>11 Watch", "~a@11>11 Resync", "~a@11>13 Watch"]);
    }
}

#[tokio::test(start_paused = true)]
async fn a_coalescing_buffer_stays_small_whatever_comes() {
    for queue in both_queues() {
        let mut watch = ScriptedWatch::new();
        for round in 0..2000 {
            let version = (100 + 3 * round).to_string();
            watch = watch.modified(pod("a", &version)).added(pod("short", &version)).deleted(pod("short", &version));
        }
        let source = watchkeeper::Scripted::new().answer_list(ScriptedList::new("10", [pod("a", "1")]));
        let pods = informer(source.answer_watch(watch.hang()), queue);
        let mut events = pods.events_with(coalescing()).expect("a stream");
        start(&pods);
        pass(seconds(1)).await;
        assert!(events.handle().backlog() <= 2, "{}", events.handle().backlog());
        let heard = drain(&mut events).await;
        assert!(heard.last().expect("some").contains(">6097 ") || heard == ["+a@6097 Initial"], "{heard:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_long_backlog_is_mentioned_once_until_it_is_short_again() {
    let logs = crate::support::Logs::capture();
    let cluster = Cluster::with(&["a"]);
    let pods = synced(cluster.clone(), InformerQueue::Atomic).await;
    let mut events = pods.events_with(HandlerOptions::new().name("slow")).expect("a stream");
    let warnings = || logs.lines(tracing::Level::WARN, "does not keep up").len();
    (0..1000).for_each(|_| cluster.put("a"));
    settle().await;
    assert_eq!(warnings(), 0);
    (0..1000).for_each(|_| cluster.put("a"));
    settle().await;
    assert_eq!(warnings(), 1);
    drain(&mut events).await;
    cluster.put("a");
    settle().await;
    (0..1100).for_each(|_| cluster.put("a"));
    settle().await;
    assert_eq!(warnings(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_long_list_alone_is_no_long_backlog() {
    let logs = crate::support::Logs::capture();
    for queue in both_queues() {
        let names: Vec<String> = (0..3000).map(|number| format!("pod-{number}")).collect();
        let cluster = Cluster::with(&names.iter().map(String::as_str).collect::<Vec<_>>());
        let pods = informer(cluster, queue);
        let (_, first) = noting(&pods);
        start(&pods);
        first.synced().await.expect("it syncs");
        let (_, late) = noting_with(&pods, coalescing().resync_period(seconds(5)));
        late.synced().await.expect("it syncs");
        pass(seconds(20)).await;
        assert_eq!((first.delivered(), late.delivered()), (3000, 3000 * 4));
    }
    assert!(logs.lines(tracing::Level::WARN, "does not keep up").is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_backlog_counts_what_was_taken_out_and_not_told() {
    let cluster = Cluster::with(&[]);
    let pods = synced(cluster.clone(), InformerQueue::Atomic).await;
    let mut events = pods.events_with(coalescing()).expect("a stream");
    (0..100).for_each(|number| cluster.put(&format!("pod-{number}")));
    settle().await;
    let mut heard = 0;
    while heard < 100 {
        match events.next().now_or_never() {
            Some(event) => {
                event.expect("an event");
                heard += 1;
            }
            // It lets others go on now and then.
            None => assert_eq!((events.handle().backlog(), events.handle().delivered()), (100 - heard, heard as u64)),
        }
    }
}
