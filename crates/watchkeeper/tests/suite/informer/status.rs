//! How an informer is doing.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use watchkeeper::{Phase, Reason, Scripted, ScriptedList, ScriptedWatch};

use super::*;
use crate::support::{bad, forbidden, internal, pod};

#[tokio::test(start_paused = true)]
async fn the_status_says_where_it_stands_from_beginning_to_end() {
    for queue in both_queues() {
        let cluster = Cluster::with(&["a", "b"]);
        let pods = informer(cluster.clone(), queue);
        let status = pods.status();
        assert_eq!((status.phase, status.synced, status.objects), (Phase::New, false, 0));
        assert!(status.last_contact.is_none() && !status.is_current(seconds(600)));
        start(&pods);
        pods.synced().await.expect("it syncs");
        settle().await;
        let status = pods.status();
        assert_eq!((status.phase, status.synced, status.objects), (Phase::Watching, true, 2));
        assert_eq!(status.listed_objects, 2);
        assert!(status.is_current(seconds(600)));
        cluster.delete("a");
        settle().await;
        assert_eq!(pods.status().objects, 1);
        pass(seconds(100)).await;
        assert!(!pods.status().is_current(seconds(60)), "nothing was heard of for long");
        pods.shutdown().await;
        let status = pods.status();
        assert_eq!((status.phase, status.synced), (Phase::Stopped, true));
        assert!(!status.is_current(Duration::MAX) && status.failure.is_none());
    }
}

#[tokio::test(start_paused = true)]
async fn errors_relists_and_stale_objects_are_in_the_status() {
    for queue in both_queues() {
        let source = Scripted::new()
            .fail_list(internal())
            .answer_list(ScriptedList::new("10", [pod("a", "1")]).bad(bad("b", "2")))
            .answer_watch(ScriptedWatch::new().hang());
        let pods = informer(source, queue);
        start(&pods);
        pods.synced().await.expect("it syncs");
        settle().await;
        let status = pods.status();
        assert!(status.last_error.is_some(), "{status:?}");
        assert_eq!(status.stale_object_count, 1);
        assert_eq!(status.relists.values().sum::<u64>(), 1, "{:?}", status.relists);
        assert!(!status.relists.contains_key(&Reason::Expired) || status.relists[&Reason::Expired] == 0);
    }
}

#[tokio::test(start_paused = true)]
async fn the_hook_hears_of_each_cycle_that_fails_and_the_informer_goes_on() {
    for queue in both_queues() {
        let source = Scripted::new()
            .fail_list(forbidden())
            .fail_list(internal())
            .answer_list(ScriptedList::new("10", [pod("a", "1")]))
            .answer_watch(ScriptedWatch::new().hang());
        let first = Arc::new(AtomicUsize::new(0));
        let (count, heard) = (first.clone(), Notes::default());
        let pods = builder(source, queue)
            .on_watch_error(move |_| {
                count.fetch_add(1, Ordering::Relaxed);
            })
            .build();
        start(&pods);
        settle().await;
        assert_eq!(first.load(Ordering::Relaxed), 1);
        // The last one that was set counts, and it can be set at any time.
        let notes = heard.clone();
        pods.on_watch_error(move |error| notes.note(error.to_string()));
        pods.synced().await.expect("it syncs");
        assert_eq!((first.load(Ordering::Relaxed), heard.take().len()), (1, 1));
    }
}

#[tokio::test(start_paused = true)]
async fn a_hook_set_before_the_start_hears_of_a_list_that_fails() {
    for queue in both_queues() {
        let pods = informer(Scripted::new().fail_list(forbidden()), queue);
        let heard = Notes::default();
        let notes = heard.clone();
        pods.on_watch_error(move |error| notes.note(error.is_forbidden().to_string()));
        start(&pods);
        settle().await;
        assert_eq!(heard.take(), ["true"]);
    }
}

#[tokio::test(start_paused = true)]
async fn a_hook_that_panics_stops_nothing() {
    for queue in both_queues() {
        let source = Scripted::new().fail_list(internal()).answer_list(ScriptedList::new("10", [pod("a", "1")]));
        let pods = builder(source, queue).on_watch_error(|_| panic!("a bug")).build();
        start(&pods);
        pods.synced().await.expect("it syncs");
        assert!(pods.status().failure.is_none());
    }
}

#[tokio::test(start_paused = true)]
async fn the_last_version_received_may_be_ahead_of_the_store_and_the_stores_is_what_can_be_read() {
    for queue in both_queues() {
        let cluster = Cluster::with(&["a"]);
        let pods = informer(cluster.clone(), queue);
        assert_eq!(pods.last_sync_resource_version().as_str(), "");
        start(&pods);
        pods.synced().await.expect("it syncs");
        settle().await;
        cluster.put("a");
        settle().await;
        assert_eq!(pods.last_sync_resource_version().as_str(), "12");
        assert_eq!(pods.store().last_version().as_str(), "12");
    }
}

#[tokio::test(start_paused = true)]
async fn names_are_as_they_were_given_or_the_sources() {
    let pods: SharedInformer<Pod> = SharedInformer::new(Cluster::new());
    assert_eq!(pods.name(), "pods");
    let pods: SharedInformer<Pod> = SharedInformer::builder(Cluster::new()).name("web pods").build();
    assert_eq!(pods.name(), "web pods");
    start(&pods);
    pods.shutdown().await;
    let error = pods.events().expect_err("it is over");
    assert!(error.to_string().contains("web pods"), "{error}");
}
