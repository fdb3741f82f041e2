//! When an informer, and a handler, is synced.

use watchkeeper::{ErrorKind, HandlerOptions, Scripted, ScriptedList, ScriptedWatch};

use super::*;
use crate::support::{forbidden, internal, invalid, key, overloaded, pod};

#[tokio::test(start_paused = true)]
async fn an_informer_is_synced_when_the_first_list_is_in_the_store_and_stays_so() {
    for queue in both_queues() {
        let cluster = Cluster::with(&["a"]);
        let pods = informer(cluster.clone(), queue);
        assert!(!pods.has_synced());
        start(&pods);
        assert!(!pods.has_synced());
        let lister = pods.synced().await.expect("it syncs");
        assert!(pods.has_synced() && lister.get(&key("a")).is_some());
        cluster.forbid("shop");
        cluster.gap(|cluster| cluster.put("b"));
        recover().await;
        assert!(pods.has_synced(), "whatever comes");
        pods.shutdown().await;
        assert!(pods.has_synced());
        pods.synced().await.expect("what is known can be read");
    }
}

#[tokio::test(start_paused = true)]
async fn an_empty_list_syncs_informer_and_handlers() {
    for queue in both_queues() {
        let pods = informer(Cluster::new(), queue);
        let (notes, handle) = noting(&pods);
        start(&pods);
        handle.synced().await.expect("it syncs");
        assert!(pods.has_synced() && notes.take().is_empty());
        let (_, late) = noting(&pods);
        late.synced().await.expect("it syncs");
    }
}

#[tokio::test(start_paused = true)]
async fn a_handler_is_synced_when_its_last_initial_call_has_returned_whatever_others_do() {
    for queue in both_queues() {
        let pods = informer(Cluster::with(&["a", "b"]), queue);
        let mut slow = pods.events().expect("a stream");
        let (_, quick) = noting(&pods);
        start(&pods);
        pods.synced().await.expect("it syncs");
        quick.synced().await.expect("it syncs");
        let handle = slow.handle().clone();
        for _ in 0..2 {
            assert!(!handle.has_synced());
            slow.next().await.expect("an event");
        }
        settle().await;
        assert!(!handle.has_synced(), "the last call has not returned");
        tokio::select! {
            event = slow.next() => panic!("{event:?}"),
            () = settle() => {}
        }
        assert!(handle.has_synced());
    }
}

#[tokio::test(start_paused = true)]
async fn waiting_ends_at_the_moment_of_syncing() {
    for queue in both_queues() {
        let source = Scripted::new()
            .answer_list(ScriptedList::new("10", [pod("a", "1")]).wait(seconds(7)))
            .answer_watch(ScriptedWatch::new().hang());
        let pods = informer(source, queue);
        let (_, handle) = noting(&pods);
        start(&pods);
        let began = tokio::time::Instant::now();
        let (synced, told) = tokio::join!(pods.synced(), handle.synced());
        assert!(synced.is_ok() && told.is_ok());
        assert_eq!(began.elapsed().as_secs(), 7);
        assert!(pods.has_synced() && handle.has_synced());
    }
}

#[tokio::test(start_paused = true)]
async fn a_handler_whose_filter_lets_nothing_through_is_synced_too() {
    for queue in both_queues() {
        let pods = informer(Cluster::with(&["a", "b"]), queue);
        let (notes, handle) = noting_with(&pods, HandlerOptions::new().filter(|_| false));
        start(&pods);
        handle.synced().await.expect("it syncs");
        assert!(notes.take().is_empty());
    }
}

#[tokio::test(start_paused = true)]
async fn three_refusals_of_the_first_list_are_told_and_the_informer_goes_on_trying() {
    for (queue, refusal) in both_queues().flat_map(|queue| [(queue, forbidden()), (queue, invalid())]) {
        let source = Scripted::new()
            .fail_list(refusal.clone())
            .fail_list(refusal.clone())
            .fail_list(refusal.clone())
            .answer_list(ScriptedList::new("10", [pod("a", "1")]))
            .answer_watch(ScriptedWatch::new().hang());
        let pods = informer(source.clone(), queue);
        start(&pods);
        let error = pods.synced().await.expect_err("it is refused");
        assert_eq!(error.to_string(), refusal.to_string());
        assert_eq!(source.lists().len(), 3);
        // Who asks again waits for another answer.
        pods.synced().await.expect("it syncs");
        assert_eq!(source.lists().len(), 4);
    }
}

#[tokio::test(start_paused = true)]
async fn refusals_with_another_error_between_them_are_not_in_a_row() {
    for queue in both_queues() {
        let source = Scripted::new()
            .fail_list(forbidden())
            .fail_list(forbidden())
            .fail_list(internal())
            .fail_list(forbidden())
            .fail_list(forbidden())
            .answer_list(ScriptedList::new("10", [pod("a", "1")]))
            .answer_watch(ScriptedWatch::new().hang());
        let pods = informer(source.clone(), queue);
        start(&pods);
        pods.synced().await.expect("it syncs");
    }
}

#[tokio::test(start_paused = true)]
async fn two_minutes_without_progress_are_told_with_what_went_wrong() {
    for queue in both_queues() {
        let source = (0..100).fold(Scripted::new(), |source, _| source.fail_list(internal()));
        let pods = informer(source, queue);
        start(&pods);
        let began = tokio::time::Instant::now();
        let error = pods.synced().await.expect_err("nothing comes");
        assert_eq!(error.kind(), ErrorKind::NotSynced);
        let text = error.to_string();
        assert!(text.contains("scripted objects") && text.contains("InternalError") | text.contains("500"), "{text}");
        let waited = began.elapsed().as_secs();
        assert!((120..=140).contains(&waited), "{waited}");
    }
}

#[tokio::test(start_paused = true)]
async fn errors_that_come_often_do_not_put_off_the_end_of_the_wait() {
    let source = (0..1000).fold(Scripted::new(), |source, _| source.fail_list(overloaded()));
    let pods: SharedInformer<Pod> = SharedInformer::builder(source)
        .reflector(|reflector| reflector.backoff(Backoff::new(seconds(1), seconds(1)).jitter(0.0)))
        .build();
    start(&pods);
    let synced = tokio::time::timeout(seconds(200), pods.synced()).await.expect("it gives up");
    assert_eq!(synced.expect_err("nothing comes").kind(), ErrorKind::NotSynced);
}

#[tokio::test(start_paused = true)]
async fn an_object_that_is_received_is_progress() {
    for queue in both_queues() {
        let mut list = ScriptedList::new("10", []);
        for number in 0..20 {
            list = list.wait(seconds(25)).item(pod(&format!("pod-{number}"), "1"));
        }
        let source = Scripted::new().answer_list(list).answer_watch(ScriptedWatch::new().hang());
        let pods = informer(source, queue);
        start(&pods);
        assert_eq!(pods.synced().await.expect("it syncs, after 500 s").list().len(), 20);
    }
}

#[tokio::test(start_paused = true)]
async fn the_time_without_progress_can_be_set() {
    let pods = builder(Scripted::new(), InformerQueue::Atomic).sync_timeout(seconds(8)).build();
    start(&pods);
    let began = tokio::time::Instant::now();
    assert!(pods.synced().await.is_err());
    assert!((8..=9).contains(&began.elapsed().as_secs()), "{:?}", began.elapsed());
}

#[tokio::test(start_paused = true)]
async fn one_that_was_not_started_says_so() {
    let pods = informer(Cluster::new(), InformerQueue::Atomic);
    let error = pods.synced().await.expect_err("nobody starts it");
    assert_eq!(error.kind(), ErrorKind::NotSynced);
    assert!(error.to_string().contains("start()"), "{error}");
}

#[tokio::test(start_paused = true)]
async fn who_waits_when_it_is_stopped_is_told() {
    for queue in both_queues() {
        let pods = informer(Scripted::new(), queue);
        let (_, handle) = noting(&pods);
        start(&pods);
        let waiting = tokio::spawn({
            let pods = pods.clone();
            async move { pods.synced().await.map(|_| ()) }
        });
        settle().await;
        pods.shutdown().await;
        assert_eq!(waiting.await.expect("no panic").expect_err("it is stopped").kind(), ErrorKind::Stopped);
        let error = handle.synced().await.expect_err("it is stopped");
        assert_eq!(error.kind(), ErrorKind::Stopped);
        assert!(error.to_string().contains("scripted objects"), "{error}");
    }
}

#[tokio::test(start_paused = true)]
async fn who_waits_for_a_handler_that_is_removed_is_told() {
    for queue in both_queues() {
        let pods = informer(Scripted::new(), queue);
        let (_, handle) = noting_with(&pods, HandlerOptions::new().name("gone"));
        start(&pods);
        handle.remove();
        let error = handle.synced().await.expect_err("it is removed");
        assert!(error.to_string().contains("gone"), "{error}");
    }
}

#[tokio::test(start_paused = true)]
async fn many_wait_at_once_and_each_is_told() {
    for queue in both_queues() {
        let source = Scripted::new()
            .fail_list(forbidden())
            .fail_list(forbidden())
            .fail_list(forbidden())
            .answer_list(ScriptedList::new("10", [pod("a", "1")]))
            .answer_watch(ScriptedWatch::new().hang());
        let pods = informer(source, queue);
        start(&pods);
        let waiting = (0..10).map(|_| pods.synced());
        assert!(futures::future::join_all(waiting).await.iter().all(Result::is_err));
        pass(seconds(60)).await;
        let waiting = (0..10).map(|_| pods.synced());
        assert!(futures::future::join_all(waiting).await.iter().all(Result::is_ok));
    }
}
