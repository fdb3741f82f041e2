//! Handlers that come while the informer runs.

use watchkeeper::{ScriptedList, ScriptedWatch};

use super::*;
use crate::support::{listed, pod};

#[tokio::test(start_paused = true)]
async fn a_late_handler_hears_of_all_that_there_is_and_then_of_all_that_comes() {
    for queue in both_queues() {
        let cluster = Cluster::with(&["a", "b"]);
        let pods = synced(cluster.clone(), queue).await;
        cluster.put("a");
        cluster.delete("b");
        settle().await;
        let (notes, _) = noting(&pods);
        cluster.put("c");
        cluster.put("a");
        settle().await;
        assert_eq!(notes.take(), ["+a@13 Initial", "+c@15 Watch", "~a@13>16 Watch"]);
    }
}

#[tokio::test(start_paused = true)]
async fn a_handler_that_comes_between_two_batches_misses_nothing_and_hears_nothing_twice() {
    for queue in both_queues() {
        let cluster = Cluster::with(&["a"]);
        let pods = synced(cluster.clone(), queue).await;
        let mut heard = Vec::new();
        for round in 0..50 {
            cluster.put(&format!("b{round}"));
            if round % 2 == 0 {
                // Some of what was sent has been applied, and some has not.
                tokio::task::yield_now().await;
            }
            heard.push(noting(&pods).0);
            cluster.put("a");
        }
        settle().await;
        for notes in heard {
            let mut fold = std::collections::BTreeMap::new();
            for note in notes.take() {
                let (name, rest) = note[1..].split_once('@').expect("a version");
                let versions: Vec<&str> = rest.split(' ').next().expect("a version").split('>').collect();
                let before = fold.insert(name.to_owned(), versions.last().expect("one").to_string());
                match &note[..1] {
                    "+" => assert_eq!(before, None, "{note}"),
                    _ => assert_eq!(before.as_deref(), Some(versions[0]), "{note}"),
                }
            }
            let fold: Vec<String> = fold.iter().map(|(name, version)| format!("{name}@{version}")).collect();
            assert_eq!(fold, cluster.contents());
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_late_handler_is_synced_when_it_has_heard_of_all_that_there_was_and_not_before() {
    for queue in both_queues() {
        let cluster = Cluster::with(&["a", "b", "c"]);
        let pods = synced(cluster.clone(), queue).await;
        let mut events = pods.events().expect("a stream");
        assert!(!events.handle().has_synced());
        for _ in 0..3 {
            assert!(matches!(events.next().await, Some(Event::Added { .. })));
            settle().await;
            assert!(!events.handle().has_synced(), "the last one may still be in hand");
        }
        let handle = events.handle().clone();
        tokio::select! {
            event = events.next() => panic!("{event:?}"),
            synced = handle.synced() => synced.expect("it is not removed"),
        }
        assert!(handle.has_synced());
    }
}

#[tokio::test(start_paused = true)]
async fn a_handler_that_comes_while_the_first_list_is_read_hears_of_it_as_the_first_list() {
    for queue in both_queues() {
        let source = watchkeeper::Scripted::new()
            .answer_list(ScriptedList::new("10", [pod("a", "1")]).wait(seconds(5)).item(pod("b", "2")))
            .answer_watch(ScriptedWatch::new().hang());
        let pods = informer(source, queue);
        start(&pods);
        pass(seconds(2)).await;
        let (notes, handle) = noting(&pods);
        pass(seconds(2)).await;
        assert!(!pods.has_synced() && !handle.has_synced() && notes.take().is_empty());
        pass(seconds(2)).await;
        assert!(pods.has_synced() && handle.has_synced());
        assert_eq!(notes.take(), ["+a@1 Initial", "+b@2 Initial"]);
    }
}

#[tokio::test(start_paused = true)]
async fn handlers_that_come_and_the_start_may_race() {
    for queue in both_queues() {
        let cluster = Cluster::with(&["a"]);
        let pods = informer(cluster, queue);
        let mut adding = Vec::new();
        for number in 0..20 {
            let pods = pods.clone();
            adding.push(tokio::spawn(async move {
                if number == 10 {
                    start(&pods);
                }
                noting(&pods)
            }));
        }
        for added in adding {
            let (notes, handle) = added.await.expect("added");
            handle.synced().await.expect("it syncs");
            assert_eq!(notes.take(), ["+a@11 Initial"]);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_handler_may_add_handlers() {
    for queue in both_queues() {
        let cluster = Cluster::with(&["a"]);
        let pods = synced(cluster.clone(), queue).await;
        let inner = Notes::default();
        let (informer, notes) = (pods.clone(), inner.clone());
        let mut added = false;
        let outer = pods
            .on_event(move |_| {
                if !std::mem::replace(&mut added, true) {
                    informer.on_event(notes.noting()).expect("a handler");
                }
            })
            .expect("a handler");
        outer.synced().await.expect("it syncs");
        cluster.put("a");
        settle().await;
        assert_eq!(inner.take(), ["+a@11 Initial", "~a@11>12 Watch"]);
        pods.shutdown().await;
    }
}

#[tokio::test(start_paused = true)]
async fn handlers_added_outside_a_runtime_before_the_start_are_started_with_it() {
    for queue in both_queues() {
        let source = listed().answer_watch(ScriptedWatch::new().hang());
        let thread = std::thread::spawn(move || {
            let pods = informer(source, queue);
            let (notes, handle) = noting(&pods);
            (pods, notes, handle)
        });
        let (pods, notes, handle) = thread.join().expect("no runtime is needed");
        start(&pods);
        handle.synced().await.expect("it syncs");
        assert_eq!(notes.take(), ["+a@1 Initial"]);
    }
}
