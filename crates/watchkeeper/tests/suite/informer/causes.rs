//! How a change came to be known.

use watchkeeper::{HandlerOptions, ScriptedList, ScriptedWatch, WatchEvent};

use super::*;
use crate::support::{bad, listed, pod};

#[tokio::test(start_paused = true)]
async fn what_a_relist_finds_is_told_with_its_cause_and_is_not_initial() {
    for queue in both_queues() {
        let cluster = Cluster::with(&["changed", "gone", "same"]);
        let pods = synced(cluster.clone(), queue).await;
        let (notes, _) = noting(&pods);
        settle().await;
        notes.take();
        cluster.gap(|cluster| {
            cluster.put("changed");
            cluster.put("new");
            cluster.delete("gone");
        });
        recover().await;
        assert_eq!(notes.take_sorted(), ["+new@15 Relist", "-gone@12? Relist", "~changed@11>14 Relist"]);
    }
}

#[tokio::test(start_paused = true)]
async fn the_replay_to_a_late_handler_is_initial_however_late() {
    for queue in both_queues() {
        let cluster = Cluster::with(&["a"]);
        let pods = synced(cluster.clone(), queue).await;
        cluster.put("b");
        pass(seconds(3600)).await;
        let (notes, _) = noting(&pods);
        settle().await;
        cluster.put("c");
        settle().await;
        assert_eq!(notes.take_sorted(), ["+a@11 Initial", "+b@12 Initial", "+c@13 Watch"]);
    }
}

#[tokio::test(start_paused = true)]
async fn a_deletion_whose_object_cannot_be_used_is_a_watchs_and_its_last_state_is_the_cached_one() {
    for queue in both_queues() {
        let watch = ScriptedWatch::new().event(WatchEvent::DeletedBad(bad("a", "11"))).hang();
        let pods = informer(listed().answer_watch(watch), queue);
        let (notes, _) = noting(&pods);
        start(&pods);
        settle().await;
        assert_eq!(notes.take(), ["+a@1 Initial", "-a@1? Watch"]);
        assert!(pods.store().is_empty());
    }
}

#[tokio::test(start_paused = true)]
async fn an_object_of_another_uid_is_a_deletion_and_an_addition() {
    for queue in both_queues() {
        let cluster = Cluster::with(&["a"]);
        let pods = synced(cluster.clone(), queue).await;
        let (notes, _) = noting(&pods);
        settle().await;
        notes.take();
        // Both the deletion and the addition are seen.
        cluster.delete("a");
        cluster.put_with("shop", "a", "uid-2", "");
        settle().await;
        assert_eq!(notes.take(), ["-a@12 Watch", "+a@13 Watch"]);
        // The deletion fell into a gap.
        cluster.gap(|cluster| {
            cluster.delete("a");
            cluster.put_with("shop", "a", "uid-3", "");
        });
        recover().await;
        assert_eq!(notes.take(), ["-a@13? Relist", "+a@15 Relist"]);
        // A watch that skips the deletion.
        cluster.put_with("shop", "a", "uid-4", "");
        settle().await;
        assert_eq!(notes.take(), ["-a@15? Watch", "+a@17 Watch"]);
    }
}

#[tokio::test(start_paused = true)]
async fn an_end_of_something_that_nobody_was_told_of_is_told_to_nobody() {
    for queue in both_queues() {
        let watch = ScriptedWatch::new()
            .deleted(pod("unknown", "11"))
            .deleted(pod("a", "12"))
            .wait(seconds(1))
            .deleted(pod("a", "13"))
            .added(pod("b", "14"))
            .hang();
        let pods = informer(listed().answer_watch(watch), queue);
        let (notes, _) = noting(&pods);
        start(&pods);
        pass(seconds(2)).await;
        assert_eq!(notes.take(), ["+a@1 Initial", "-a@12 Watch", "+b@14 Watch"]);
    }
}

#[tokio::test(start_paused = true)]
async fn what_a_watch_says_again_is_told_only_to_those_who_want_to_hear_of_what_has_not_changed() {
    for queue in both_queues() {
        let watch = ScriptedWatch::new().added(pod("a", "1")).modified(pod("a", "1")).modified(pod("a", "11")).hang();
        let pods = informer(listed().answer_watch(watch), queue);
        let (notes, _) = noting(&pods);
        let (all, _) = noting_with(&pods, HandlerOptions::new().tell_unchanged(true));
        start(&pods);
        settle().await;
        assert_eq!(notes.take(), ["+a@1 Initial", "~a@1>11 Watch"]);
        assert_eq!(all.take(), ["+a@1 Initial", "~a@1>1 Watch", "~a@1>1 Watch", "~a@1>11 Watch"]);
    }
}

#[tokio::test(start_paused = true)]
async fn an_object_of_another_kind_or_that_cannot_be_used_is_told_to_nobody_and_the_old_state_stays() {
    for queue in both_queues() {
        let watch = ScriptedWatch::new()
            .event(WatchEvent::WrongKind(bad("strange", "11")))
            .event(WatchEvent::Bad(bad("a", "12")))
            .added(pod("b", "13"))
            .hang();
        let pods = informer(listed().answer_watch(watch), queue);
        let (notes, _) = noting(&pods);
        start(&pods);
        settle().await;
        assert_eq!(notes.take(), ["+a@1 Initial", "+b@13 Watch"]);
        assert_eq!(contents(pods.store()), ["a@1", "b@13"]);
        assert_eq!(pods.status().stale_object_count, 1);
    }
}

#[tokio::test(start_paused = true)]
async fn a_changed_object_that_a_watch_calls_added_is_an_update() {
    for queue in both_queues() {
        let watch = ScriptedWatch::new().added(pod("a", "11")).modified(pod("b", "12")).hang();
        let pods = informer(listed().answer_watch(watch), queue);
        let (notes, _) = noting(&pods);
        start(&pods);
        settle().await;
        assert_eq!(notes.take(), ["+a@1 Initial", "~a@1>11 Watch", "+b@12 Watch"]);
    }
}

#[tokio::test(start_paused = true)]
async fn servers_without_uids_have_updates_only() {
    let object = |version: &str| {
        let json = format!(r#"{{"metadata":{{"name":"a","namespace":"shop","resourceVersion":"{version}"}}}}"#);
        Object::from_json(json).expect("an object")
    };
    for queue in both_queues() {
        let source = watchkeeper::Scripted::new()
            .answer_list(ScriptedList::new("10", [object("1")]))
            .answer_watch(ScriptedWatch::new().modified(object("11")).modified(pod("a", "12")).hang());
        let pods = informer(source, queue);
        let (notes, _) = noting(&pods);
        start(&pods);
        settle().await;
        assert_eq!(notes.take(), ["+a@1 Initial", "~a@1>11 Watch", "~a@11>12 Watch"]);
    }
}
