//! What a list changes, after a gap.

use std::sync::{Arc, Mutex};

use watchkeeper::{Event, HandlerOptions, Scripted, ScriptedList, ScriptedWatch};

use super::*;
use crate::support::{bad, expired, key, pod, unreadable};

/// Two lists, with a 410 between them.
fn twice(first: ScriptedList, second: ScriptedList) -> Scripted {
    Scripted::new()
        .answer_list(first)
        .answer_watch(ScriptedWatch::new().wait(seconds(2)).error_event(expired()))
        .answer_list(second)
        .answer_watch(ScriptedWatch::new().hang())
}

#[tokio::test(start_paused = true)]
async fn what_a_list_finds_unchanged_is_told_only_to_handlers_with_a_resync_period_or_that_asked() {
    for queue in both_queues() {
        let cluster = Cluster::with(&["changed", "same"]);
        let pods = synced(cluster.clone(), queue).await;
        let (plain, _) = noting(&pods);
        let (resyncing, _) = noting_with(&pods, HandlerOptions::new().resync_period(seconds(3600)));
        let (asking, _) = noting_with(&pods, HandlerOptions::new().tell_unchanged(true));
        settle().await;
        for notes in [&plain, &resyncing, &asking] {
            notes.take();
        }
        cluster.gap(|cluster| {
            cluster.put("changed");
            cluster.put("new");
        });
        recover().await;
        assert_eq!(plain.take_sorted(), ["+new@14 Relist", "~changed@11>13 Relist"]);
        let all = ["+new@14 Relist", "~changed@11>13 Relist", "~same@12>12 Relist"];
        assert_eq!(
            (resyncing.take_sorted(), asking.take_sorted()),
            (all.map(String::from).into(), all.map(String::from).into())
        );
    }
}

#[tokio::test(start_paused = true)]
async fn after_a_list_the_whole_store_is_the_new_state_before_anybody_hears_of_any_of_it_deletions_first() {
    let cluster = Cluster::with(&["a", "b", "c", "d"]);
    let pods = synced(cluster.clone(), InformerQueue::Atomic).await;
    let (heard, store) = (Notes::default(), pods.store().clone());
    let (notes, mut initial) = (heard.clone(), 0);
    pods.on_event(move |event: &Event<Pod>| {
        initial += 1;
        if initial > 4 {
            notes.note(format!("{} {}", words(event), contents(&store).join(" ")));
        }
    })
    .expect("a handler");
    settle().await;
    cluster.gap(|cluster| {
        cluster.put("a");
        cluster.delete("b");
        cluster.delete("c");
        cluster.put_with("shop", "c", "uid-2", "");
        cluster.put("e");
    });
    recover().await;
    let now = "a@15 c@18 d@14 e@19";
    let told = ["-b@12? Relist", "-c@13? Relist", "~a@11>15 Relist", "+c@18 Relist", "+e@19 Relist"];
    assert_eq!(heard.take(), told.map(|told| format!("{told} {now}")));
}

#[tokio::test(start_paused = true)]
async fn a_list_through_a_delta_fifo_tells_the_same_key_by_key() {
    let cluster = Cluster::with(&["a", "b", "c", "d"]);
    let pods = synced(cluster.clone(), InformerQueue::Delta).await;
    let (notes, _) = noting(&pods);
    settle().await;
    notes.take();
    cluster.gap(|cluster| {
        cluster.put("a");
        cluster.delete("b");
        cluster.delete("c");
        cluster.put_with("shop", "c", "uid-2", "");
        cluster.put("e");
    });
    recover().await;
    let told = ["+c@18 Relist", "+e@19 Relist", "-b@12? Relist", "-c@13? Relist", "~a@11>15 Relist"];
    assert_eq!(notes.take_sorted(), told);
    assert_eq!(contents(pods.store()), cluster.contents());
}

#[tokio::test(start_paused = true)]
async fn an_object_that_cannot_be_used_in_a_list_stays_as_it_was_and_nobody_hears_of_it() {
    for queue in both_queues() {
        let first = ScriptedList::new("10", [pod("a", "1"), pod("b", "2"), pod("c", "3")]);
        let second = ScriptedList::new("20", [pod("a", "11")]).bad(bad("b", "12"));
        let pods = informer(twice(first, second), queue);
        let (notes, _) = noting(&pods);
        start(&pods);
        pass(seconds(10)).await;
        assert_eq!(notes.take()[3..].len(), 2);
        assert_eq!(contents(pods.store()), ["a@11", "b@2"]);
        assert_eq!(pods.status().stale_object_count, 1);
    }
}

#[tokio::test(start_paused = true)]
async fn an_incomplete_list_deletes_nothing_and_is_repeated() {
    for queue in both_queues() {
        let first = ScriptedList::new("10", [pod("a", "1"), pod("b", "2")]);
        let second = ScriptedList::new("20", [pod("a", "11")]).bad(unreadable());
        let source = twice(first, second).answer_list(ScriptedList::new("30", [pod("a", "11")]));
        let pods = informer(source.clone(), queue);
        let (notes, _) = noting(&pods);
        start(&pods);
        pass(Duration::from_millis(3500)).await;
        assert_eq!(notes.take()[2..], ["~a@1>11 Relist"]);
        assert_eq!(contents(pods.store()), ["a@11", "b@2"]);
        pass(seconds(10)).await;
        assert_eq!(notes.take(), ["-b@2? Relist"]);
        assert_eq!(source.lists().len(), 3);
    }
}

#[tokio::test(start_paused = true)]
async fn a_first_list_that_is_incomplete_syncs_with_what_can_be_read() {
    for queue in both_queues() {
        let source = Scripted::new()
            .answer_list(ScriptedList::new("10", [pod("a", "1")]).bad(unreadable()))
            .answer_list(ScriptedList::new("11", [pod("a", "1"), pod("b", "2")]))
            .answer_watch(ScriptedWatch::new().hang());
        let pods = informer(source, queue);
        let (notes, handle) = noting(&pods);
        start(&pods);
        settle().await;
        assert!(pods.has_synced() && handle.has_synced());
        assert_eq!(pods.status().partitions[0].1.unreadable_objects, 1);
        recover().await;
        assert_eq!(notes.take(), ["+a@1 Initial", "+b@2 Relist"]);
    }
}

#[tokio::test(start_paused = true)]
async fn of_two_objects_with_one_key_in_a_list_the_last_counts_and_is_told_once() {
    for queue in both_queues() {
        let (once, again) = (pod("a", "1"), pod("b", "2"));
        let first = ScriptedList::new("10", [once.clone(), again.clone(), once.clone(), pod("b", "3")]);
        let second = ScriptedList::new("20", [once.clone(), pod("b", "4"), once, again]);
        let pods = informer(twice(first, second), queue);
        let (notes, _) = noting_with(&pods, HandlerOptions::new().tell_unchanged(true));
        start(&pods);
        settle().await;
        assert_eq!(contents(pods.store()), ["a@1", "b@3"]);
        let heard = notes.take();
        if queue == InformerQueue::Atomic {
            assert_eq!(heard, ["+a@1 Initial", "+b@3 Initial"]);
        }
        pass(seconds(10)).await;
        let heard = notes.take();
        assert_eq!(contents(pods.store()), ["a@1", "b@2"]);
        if queue == InformerQueue::Atomic {
            assert_eq!(heard, ["~a@1>1 Relist", "~b@3>2 Relist"]);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_watch_that_ends_and_goes_on_tells_nothing_twice() {
    for queue in both_queues() {
        let cluster = Cluster::with(&["a"]);
        let pods = synced(cluster.clone(), queue).await;
        let (notes, _) = noting(&pods);
        for _ in 0..3 {
            cluster.put("a");
            pass(seconds(2)).await;
            cluster.end_watches();
            cluster.put("a");
            pass(seconds(2)).await;
        }
        assert_eq!(notes.take().len(), 1 + 6);
        assert_eq!(cluster.lists(), 1);
        assert_eq!(contents(pods.store()), cluster.contents());
    }
}

#[tokio::test(start_paused = true)]
async fn the_stores_version_follows_changes_deletions_lists_and_bookmarks() {
    let cluster = Cluster::with(&["a"]);
    let pods = synced(cluster.clone(), InformerQueue::Atomic).await;
    let version = || pods.store().last_version().to_string();
    assert_eq!(version(), "11");
    cluster.put("a");
    settle().await;
    assert_eq!(version(), "12");
    cluster.delete("a");
    settle().await;
    assert_eq!(version(), "13");
    cluster.bookmark();
    settle().await;
    assert_eq!((version(), pods.last_sync_resource_version().to_string()), ("14".to_owned(), "14".to_owned()));
    cluster.gap(|_| {});
    recover().await;
    assert_eq!(version(), cluster.version());
}

#[tokio::test(start_paused = true)]
async fn whoever_waits_for_a_version_can_read_what_was_written_by_then() {
    let cluster = Cluster::with(&["a"]);
    let pods = synced(cluster.clone(), InformerQueue::Atomic).await;
    let lister = pods.lister();
    let read = Arc::new(Mutex::new(None));
    let (reader, into) = (lister.clone(), read.clone());
    tokio::spawn(async move {
        reader.wait_for(&"13".into()).await.expect("a number");
        *into.lock().expect("not poisoned") = reader.get(&key("a")).map(|pod| pod.resource_version().to_string());
    });
    cluster.put("b");
    settle().await;
    assert_eq!(*read.lock().expect("not poisoned"), None);
    cluster.put("a");
    settle().await;
    assert_eq!(read.lock().expect("not poisoned").as_deref(), Some("13"));
}

#[tokio::test(start_paused = true)]
async fn only_states_that_there_were_are_ever_seen_in_their_order() {
    for queue in both_queues() {
        let cluster = Cluster::with(&["a"]);
        let pods = synced(cluster.clone(), queue).await;
        let (notes, _) = noting(&pods);
        for round in 0..30 {
            match round % 5 {
                4 => cluster.gap(|cluster| cluster.put("a")),
                3 => cluster.end_watches(),
                _ => cluster.put("a"),
            }
            pass(Duration::from_millis(700)).await;
        }
        pass(seconds(120)).await;
        let versions: Vec<u64> = notes
            .take()
            .iter()
            .map(|note| note.split(['@', '>']).next_back().and_then(|rest| rest.split(' ').next()))
            .map(|version| version.expect("a version").parse().expect("a number"))
            .collect();
        assert!(versions.is_sorted() && versions.len() > 10, "{versions:?}");
        assert_eq!(contents(pods.store()), cluster.contents());
    }
}

#[tokio::test(start_paused = true)]
async fn an_object_that_a_list_has_twice_is_told_once_also_if_others_stay() {
    for queue in both_queues() {
        let twofold = pod("a", "11");
        let first = ScriptedList::new("10", [pod("b", "2")]);
        // As many as there are in the store then, one of which stays as it was.
        let second = ScriptedList::new("20", [twofold.clone(), twofold]).bad(bad("b", "12"));
        let pods = informer(twice(first, second), queue);
        let (notes, _) = noting(&pods);
        start(&pods);
        pass(seconds(10)).await;
        assert_eq!(notes.take(), ["+b@2 Initial", "+a@11 Relist"]);
        assert_eq!(contents(pods.store()), ["a@11", "b@2"]);
    }
}
