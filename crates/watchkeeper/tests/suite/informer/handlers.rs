//! What handlers hear: each change once, in order, after it is in the store.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use watchkeeper::{Cached, Cause, Event, EventHandler, HandlerOptions, Index};

use super::*;
use crate::support::key;

#[tokio::test(start_paused = true)]
async fn a_handler_hears_of_the_first_list_and_then_of_each_change_once_and_in_order() {
    for queue in both_queues() {
        let cluster = Cluster::with(&["a", "b"]);
        let pods = informer(cluster.clone(), queue);
        let (notes, _) = noting(&pods);
        start(&pods);
        pods.synced().await.expect("it syncs");
        settle().await;
        assert_eq!(notes.take_sorted(), ["+a@11 Initial", "+b@12 Initial"]);
        cluster.put("a");
        cluster.put("c");
        settle().await;
        cluster.put("a");
        cluster.delete("b");
        settle().await;
        assert_eq!(notes.take(), ["~a@11>13 Watch", "+c@14 Watch", "~a@13>15 Watch", "-b@16 Watch"]);
        assert_eq!(contents(pods.store()), cluster.contents());
    }
}

#[tokio::test(start_paused = true)]
async fn each_of_many_changes_of_one_object_is_told_and_none_is_joined_with_another() {
    for queue in both_queues() {
        let cluster = Cluster::with(&["a"]);
        let pods = synced(cluster.clone(), queue).await;
        let (notes, _) = noting(&pods);
        settle().await;
        for _ in 0..100 {
            cluster.put("a");
        }
        settle().await;
        let told: Vec<String> = (11..111).map(|old| format!("~a@{old}>{} Watch", old + 1)).collect();
        assert_eq!(notes.take()[1..], told);
    }
}

#[tokio::test(start_paused = true)]
async fn a_change_is_in_the_store_and_in_its_indexes_when_a_handler_hears_of_it() {
    for queue in both_queues() {
        let cluster = Cluster::with(&["a", "b"]);
        let pods = informer(cluster.clone(), queue);
        pods.add_index("node", Index::field("/spec/nodeName")).await.expect("an index");
        let (checked, store) = (Arc::new(AtomicUsize::new(0)), pods.store().clone());
        let count = checked.clone();
        let check = move |event: &Event<Pod>| {
            let version: u64 = event.object().resource_version().as_str().parse().expect("a number");
            let stored = store.get_by_key(event.key());
            match event.is_deletion() {
                // It may be there again.
                true => {
                    assert!(stored.is_none_or(|now| now.resource_version().as_str() > version.to_string().as_str()))
                }
                false => {
                    // Or something newer, or it may be gone.
                    if let Some(stored) = &stored {
                        let now: u64 = stored.resource_version().as_str().parse().expect("a number");
                        assert!(now >= version, "{event:?}, but the store has {now}");
                    }
                    let found = store.index_keys("node", &format!("node-{version}")).expect("an index");
                    assert_eq!(
                        found.contains(event.key()),
                        stored.is_some_and(|stored| stored.resource_version().as_str() == version.to_string())
                    );
                }
            }
            count.fetch_add(1, Ordering::Relaxed);
        };
        let handle = pods.on_event(check).expect("a handler");
        start(&pods);
        handle.synced().await.expect("it syncs");
        for round in 0..20 {
            cluster.put("a");
            cluster.put(&format!("new-{round}"));
            cluster.delete("b");
            cluster.put("b");
            if round % 3 == 0 {
                settle().await;
            }
        }
        cluster.gap(|cluster| cluster.delete("new-3"));
        recover().await;
        assert_eq!((handle.panics(), checked.load(Ordering::Relaxed)), (0, 2 + 4 * 20 + 1));
    }
}

#[tokio::test(start_paused = true)]
async fn old_is_what_the_handler_was_told_last_even_after_a_gap() {
    for queue in both_queues() {
        let cluster = Cluster::with(&["a"]);
        let pods = synced(cluster.clone(), queue).await;
        let (notes, _) = noting(&pods);
        settle().await;
        cluster.put("a");
        settle().await;
        cluster.gap(|cluster| (0..5).for_each(|_| cluster.put("a")));
        recover().await;
        cluster.put("a");
        settle().await;
        assert_eq!(notes.take(), ["+a@11 Initial", "~a@11>12 Watch", "~a@12>17 Relist", "~a@17>19 Watch"]);
    }
}

#[tokio::test(start_paused = true)]
async fn a_deletion_has_the_version_of_the_deletion() {
    for queue in both_queues() {
        let cluster = Cluster::with(&["a"]);
        let pods = synced(cluster.clone(), queue).await;
        let (notes, _) = noting(&pods);
        cluster.delete("a");
        settle().await;
        assert_eq!(notes.take(), ["+a@11 Initial", "-a@12 Watch"]);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn calls_of_one_handler_never_overlap_also_on_many_threads() {
    for queue in both_queues() {
        let cluster = Cluster::with(&["a"]);
        let pods = synced(cluster.clone(), queue).await;
        let inside = AtomicUsize::new(0);
        let (heard, mut hears) = tokio::sync::watch::channel(String::new());
        let handle = pods
            .on_event(move |event| {
                assert_eq!(inside.fetch_add(1, Ordering::SeqCst), 0, "called while it is called");
                std::thread::yield_now();
                inside.fetch_sub(1, Ordering::SeqCst);
                heard.send_replace(event.object().resource_version().to_string());
            })
            .expect("a handler");
        for _ in 0..2000 {
            cluster.put("a");
        }
        hears.wait_for(|heard| *heard == cluster.version()).await.expect("the handler lives");
        assert_eq!(handle.panics(), 0);
        pods.shutdown().await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_handler_with_three_methods_is_called_by_what_happened_and_the_ones_it_lacks_do_nothing() {
    struct OnlyAdditions(Notes);
    impl EventHandler<Pod> for OnlyAdditions {
        fn on_add(&mut self, object: &Cached<Pod>, cause: Cause) {
            self.0.note(format!("add {} {cause:?}", object.key().name()));
        }
    }
    struct All(Notes);
    impl EventHandler<Pod> for All {
        fn on_add(&mut self, object: &Cached<Pod>, cause: Cause) {
            self.0.note(format!("add {} {cause:?}", object.key().name()));
        }
        fn on_update(&mut self, old: &Cached<Pod>, new: &Cached<Pod>, cause: Cause) {
            self.0.note(format!("update {} {} {cause:?}", old.resource_version(), new.resource_version()));
        }
        fn on_delete(&mut self, last: &Cached<Pod>, final_state_known: bool, cause: Cause) {
            self.0.note(format!("delete {} {final_state_known} {cause:?}", last.resource_version()));
        }
    }
    for queue in both_queues() {
        let cluster = Cluster::with(&["a"]);
        let pods = synced(cluster.clone(), queue).await;
        let (some, all) = (Notes::default(), Notes::default());
        pods.add_handler(OnlyAdditions(some.clone())).expect("a handler");
        pods.add_handler_with(HandlerOptions::new().name("all"), All(all.clone())).expect("a handler");
        settle().await;
        cluster.put("a");
        cluster.delete("a");
        cluster.put("b");
        settle().await;
        assert_eq!(some.take(), ["add a Initial", "add b Watch"]);
        assert_eq!(all.take(), ["add a Initial", "update 11 12 Watch", "delete 13 true Watch", "add b Watch"]);
    }
}

#[tokio::test(start_paused = true)]
async fn the_same_handler_twice_is_two_handlers_each_with_its_own_handle() {
    for queue in both_queues() {
        let cluster = Cluster::with(&["a"]);
        let pods = synced(cluster.clone(), queue).await;
        let notes = Notes::default();
        let one = pods.on_event(notes.noting()).expect("a handler");
        let two = pods.on_event(notes.noting()).expect("a handler");
        settle().await;
        assert_eq!(notes.take(), ["+a@11 Initial", "+a@11 Initial"]);
        assert_eq!(pods.handlers().len(), 2);
        one.remove();
        cluster.put("a");
        settle().await;
        assert_eq!((notes.take(), pods.handlers().len()), (vec!["~a@11>12 Watch".to_owned()], 1));
        two.remove();
        cluster.put("a");
        settle().await;
        assert!(notes.take().is_empty() && pods.handlers().is_empty());
    }
}

#[tokio::test(start_paused = true)]
async fn handlers_are_called_by_the_name_they_were_given_or_by_their_type_and_a_name_that_is_taken_gets_a_number() {
    struct Reconciler;
    impl EventHandler<Pod> for Reconciler {}
    let pods = informer(Cluster::new(), InformerQueue::Atomic);
    let first = pods.add_handler(Reconciler).expect("a handler");
    let second = pods.add_handler(Reconciler).expect("a handler");
    let named = noting_with(&pods, HandlerOptions::new().name("queue")).1;
    let again = noting_with(&pods, HandlerOptions::new().name("queue")).1;
    assert_eq!([first.name(), second.name()], ["Reconciler", "Reconciler-2"]);
    assert_eq!([named.name(), again.name()], ["queue", "queue-2"]);
    named.remove();
    assert_eq!(noting_with(&pods, HandlerOptions::new().name("queue")).1.name(), "queue");
    assert!(!noting(&pods).1.name().is_empty());
}

#[tokio::test(start_paused = true)]
async fn handlers_of_different_types_see_the_same_objects() {
    #[derive(serde::Deserialize)]
    struct Tiny {
        spec: TinySpec,
    }
    #[derive(serde::Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct TinySpec {
        node_name: String,
    }
    let cluster = Cluster::with(&["a"]);
    let pods = synced(cluster, InformerQueue::Atomic).await;
    let notes = Notes::default();
    let (one, two) = (notes.clone(), notes.clone());
    pods.on_event(move |event| {
        let pod = event.object().decode().expect("a pod");
        one.note(pod.spec.as_ref().and_then(|spec| spec.node_name.clone()).unwrap_or_default());
    })
    .expect("a handler");
    pods.typed::<Tiny>()
        .on_event(move |event| two.note(event.object().decode().expect("a pod").spec.node_name.clone()))
        .expect("a handler");
    settle().await;
    assert_eq!(notes.take(), ["node-11", "node-11"]);
}

#[tokio::test(start_paused = true)]
async fn an_index_finds_objects_of_the_first_list_and_later_ones_also_if_it_is_added_late() {
    for queue in both_queues() {
        let cluster = Cluster::with(&["a", "b"]);
        let pods = informer(cluster.clone(), queue);
        pods.add_index("early", Index::field("/spec/nodeName")).await.expect("an index");
        start(&pods);
        let lister = pods.synced().await.expect("it syncs");
        assert_eq!(lister.by_index("early", "node-12").expect("an index").len(), 1);
        cluster.put("c");
        settle().await;
        assert_eq!(lister.by_index("early", "node-13").expect("an index").len(), 1);
        pods.add_index("late", Index::field("/spec/nodeName")).await.expect("an index");
        assert_eq!(lister.by_index("late", "node-11").expect("an index").len(), 1);
        cluster.put("a");
        settle().await;
        assert_eq!(lister.by_index("late", "node-11").expect("an index").len(), 0);
        assert_eq!(lister.by_index("late", "node-14").expect("an index").len(), 1);
    }
}

#[tokio::test(start_paused = true)]
async fn the_cache_is_empty_before_the_start_and_nothing_is_asked_for() {
    for queue in both_queues() {
        let cluster = Cluster::with(&["a"]);
        let pods = informer(cluster.clone(), queue);
        let (notes, handle) = noting(&pods);
        pass(seconds(60)).await;
        assert!(pods.store().is_empty() && notes.take().is_empty());
        assert!(!pods.has_synced() && !handle.has_synced() && !pods.is_started());
        assert_eq!(cluster.lists(), 0);
    }
}

#[tokio::test(start_paused = true)]
async fn an_event_and_its_handle_show_no_body() {
    let cluster = Cluster::with(&["a"]);
    let pods = synced(cluster, InformerQueue::Atomic).await;
    let notes = Notes::default();
    let shown = notes.clone();
    let handle = pods.on_event(move |event| shown.note(format!("{event:?} {:?}", event.clone()))).expect("a handler");
    settle().await;
    let text = format!("{:?} {handle:?} {pods:?} {:?}", notes.take(), pods.status());
    assert!(text.contains("shop/a@11") && !text.contains("node-11"), "{text}");
    assert!(pods.lister().get(&key("a")).is_some());
}

#[tokio::test(start_paused = true)]
async fn thousands_of_handlers_of_one_name_are_added_in_no_time() {
    let pods = informer(Cluster::with(&["a"]), InformerQueue::Atomic);
    let began = std::time::Instant::now();
    for _ in 0..3_000 {
        pods.on_event_with(HandlerOptions::new().name("same"), |_| {}).expect("a handler");
    }
    assert!(began.elapsed() < seconds(20), "it took {:?}", began.elapsed());
    assert_eq!(pods.handlers().last().map(|handle| handle.name().to_owned()).as_deref(), Some("same-3000"));
}
