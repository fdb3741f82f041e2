//! Handlers that go.

use std::sync::Arc;
use std::sync::mpsc;

use watchkeeper::HandlerOptions;

use super::*;
use crate::support::without_deadlock;

#[tokio::test(start_paused = true)]
async fn a_handler_that_was_removed_hears_nothing_more_and_the_others_do() {
    for queue in both_queues() {
        let cluster = Cluster::with(&["a"]);
        let pods = synced(cluster.clone(), queue).await;
        let ((gone, handle), (other, _)) = (noting(&pods), noting(&pods));
        settle().await;
        handle.remove();
        cluster.put("a");
        settle().await;
        assert_eq!(gone.take(), ["+a@11 Initial"]);
        assert_eq!(other.take(), ["+a@11 Initial", "~a@11>12 Watch"]);
        assert!(handle.is_removed() && pods.handlers().len() == 1);
    }
}

#[tokio::test(start_paused = true)]
async fn what_waits_for_a_handler_is_dropped_when_it_is_removed() {
    for queue in both_queues() {
        let cluster = Cluster::with(&["a"]);
        let pods = synced(cluster.clone(), queue).await;
        let mut events = pods.events().expect("a stream");
        let handle = events.handle().clone();
        assert!(events.next().await.is_some());
        (0..10).for_each(|_| cluster.put("a"));
        settle().await;
        assert_eq!(handle.backlog(), 10);
        handle.remove();
        assert_eq!(handle.backlog(), 0);
        assert!(events.next().await.is_none());
        cluster.put("a");
        settle().await;
        assert_eq!(handle.backlog(), 0, "nobody collects for it");
    }
}

#[tokio::test(start_paused = true)]
async fn removing_again_or_after_the_end_does_nothing() {
    for queue in both_queues() {
        let pods = synced(Cluster::with(&["a"]), queue).await;
        let (_, handle) = noting(&pods);
        handle.remove();
        handle.remove();
        handle.remove_and_wait().await;
        let (_, other) = noting(&pods);
        pods.shutdown().await;
        other.remove();
        other.remove_and_wait().await;
        assert!(other.is_removed());
    }
}

#[tokio::test(start_paused = true)]
async fn a_handle_belongs_to_its_informer_and_removing_it_leaves_others_alone() {
    for queue in both_queues() {
        let (one, two) = (synced(Cluster::with(&["a"]), queue).await, synced(Cluster::with(&["b"]), queue).await);
        let ((_, of_one), (_, of_two)) = (noting(&one), noting(&two));
        of_two.remove();
        assert!(!of_one.is_removed());
        assert_eq!((one.handlers().len(), two.handlers().len()), (1, 0));
    }
}

#[tokio::test(start_paused = true)]
async fn a_handler_may_remove_itself_and_others() {
    for queue in both_queues() {
        let cluster = Cluster::with(&["a"]);
        let pods = synced(cluster.clone(), queue).await;
        let (other, other_handle) = noting(&pods);
        let own: Arc<std::sync::OnceLock<HandlerHandle>> = Arc::default();
        let (notes, itself) = (Notes::default(), own.clone());
        let noted = notes.clone();
        let handle = pods
            .on_event(move |event| {
                noted.note(words(event));
                other_handle.remove();
                if let Some(itself) = itself.get() {
                    itself.remove();
                }
            })
            .expect("a handler");
        own.set(handle.clone()).expect("once");
        settle().await;
        cluster.put("a");
        cluster.put("a");
        settle().await;
        assert_eq!(notes.take(), ["+a@11 Initial"]);
        assert_eq!(other.take().len(), 1);
        handle.remove_and_wait().await;
        assert!(pods.handlers().is_empty());
    }
}

/// A handler on a thread of its own that waits in its first call until it is let go.
fn stuck(pods: &SharedInformer<Pod>) -> (HandlerHandle, mpsc::Receiver<()>, mpsc::Sender<()>) {
    let (entered, enters) = mpsc::channel();
    let (release, released) = mpsc::channel();
    let handler = move |_: &Event<Pod>| {
        let _sent = entered.send(());
        let _released = released.recv();
    };
    let handle = pods.on_event_with(HandlerOptions::new().blocking(), handler).expect("a handler");
    (handle, enters, release)
}

#[test]
fn removing_does_not_wait_for_a_call_that_runs_and_remove_and_wait_does() {
    without_deadlock(|| {
        for queue in both_queues() {
            let runtime = tokio::runtime::Runtime::new().expect("a runtime");
            let pods = runtime.block_on(synced(Cluster::with(&["a", "b"]), queue));
            let (handle, enters, release) = stuck(&pods);
            enters.recv().expect("it is called");
            handle.remove();
            let waiting = runtime.spawn({
                let handle = handle.clone();
                async move { handle.remove_and_wait().await }
            });
            std::thread::sleep(Duration::from_millis(20));
            assert!(!waiting.is_finished(), "the call runs");
            release.send(()).expect("it waits");
            runtime.block_on(waiting).expect("no panic");
            assert!(enters.try_recv().is_err(), "there was no second call, and the handler is dropped");
        }
    });
}

#[test]
fn stopping_waits_for_a_call_that_runs() {
    without_deadlock(|| {
        for queue in both_queues() {
            let runtime = tokio::runtime::Runtime::new().expect("a runtime");
            let pods = runtime.block_on(synced(Cluster::with(&["a", "b"]), queue));
            let (handle, enters, release) = stuck(&pods);
            enters.recv().expect("it is called");
            let informer = pods.clone();
            let stopping = runtime.spawn(async move { informer.shutdown().await });
            std::thread::sleep(Duration::from_millis(20));
            assert!(!stopping.is_finished() && !pods.is_stopped());
            release.send(()).expect("it waits");
            runtime.block_on(stopping).expect("no panic");
            assert!(pods.is_stopped() && handle.is_removed());
        }
    });
}

#[tokio::test(start_paused = true)]
async fn remove_and_wait_returns_for_handlers_that_never_ran() {
    for queue in both_queues() {
        let pods = informer(Cluster::with(&["a"]), queue);
        let (notes, never_started) = noting(&pods);
        never_started.remove_and_wait().await;
        let (_, before) = noting(&pods);
        start(&pods);
        let (_, after) = noting(&pods);
        before.remove_and_wait().await;
        after.remove_and_wait().await;
        assert!(notes.take().is_empty() && pods.handlers().is_empty());
    }
}

#[tokio::test(start_paused = true)]
async fn dropping_a_handle_detaches_it_and_dropping_a_guard_removes_the_handler() {
    for queue in both_queues() {
        let cluster = Cluster::with(&["a"]);
        let pods = synced(cluster.clone(), queue).await;
        let (detached, handle) = noting(&pods);
        drop(handle);
        let (guarded, handle) = noting(&pods);
        let guard = handle.guard();
        settle().await;
        assert!(guard.has_synced());
        drop(guard);
        cluster.put("a");
        settle().await;
        assert_eq!(detached.take(), ["+a@11 Initial", "~a@11>12 Watch"]);
        assert_eq!(guarded.take(), ["+a@11 Initial"]);
    }
}

#[tokio::test(start_paused = true)]
async fn a_handler_is_dropped_when_it_is_removed_and_when_the_informer_stops() {
    for queue in both_queues() {
        let pods = synced(Cluster::with(&["a"]), queue).await;
        let (one, two) = (Arc::new(()), Arc::new(()));
        let holding = |held: &Arc<()>| {
            let held = held.clone();
            pods.on_event(move |_| drop(held.clone())).expect("a handler")
        };
        let (handle, _kept) = (holding(&one), holding(&two));
        settle().await;
        handle.remove_and_wait().await;
        assert_eq!((Arc::strong_count(&one), Arc::strong_count(&two)), (1, 2));
        pods.shutdown().await;
        assert_eq!(Arc::strong_count(&two), 1);
    }
}

/// Uses its informer when it is dropped.
struct Meddles(SharedInformer<Pod>);

impl Drop for Meddles {
    fn drop(&mut self) {
        // There is no runtime, so this looks at the informer's life and changes nothing.
        assert!(self.0.start(CancellationToken::new()).is_err());
    }
}

#[test]
fn a_handler_that_is_removed_while_it_is_added_is_dropped_with_no_lock_held() {
    without_deadlock(|| {
        let pods = informer(Cluster::with(&["a"]), InformerQueue::Atomic);
        let (removing, over) = (pods.clone(), CancellationToken::new());
        let is_over = over.clone();
        let remover = std::thread::spawn(move || {
            while !is_over.is_cancelled() {
                removing.handlers().iter().for_each(HandlerHandle::remove);
            }
        });
        let began = std::time::Instant::now();
        while began.elapsed() < seconds(2) {
            let meddles = Meddles(pods.clone());
            pods.on_event(move |_| assert!(!meddles.0.is_started())).expect("a handler");
        }
        over.cancel();
        remover.join().expect("no panic");
        pods.stop();
    });
}
