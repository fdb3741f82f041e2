//! Objects are decoded once for all that hear of them, and nobody keeps what was decoded for long.

use std::sync::atomic::{AtomicIsize, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use serde::{Deserialize, Deserializer};
use watchkeeper::{Event, HandlerOptions, defaults};

use super::*;

/// A type that counts how often it is decoded, and how many there are.
macro_rules! counting {
    ($type:ident, $decoded:ident, $alive:ident) => {
        static $decoded: AtomicUsize = AtomicUsize::new(0);
        static $alive: AtomicIsize = AtomicIsize::new(0);
        struct $type;
        impl<'de> Deserialize<'de> for $type {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                serde::de::IgnoredAny::deserialize(deserializer)?;
                $decoded.fetch_add(1, Ordering::SeqCst);
                $alive.fetch_add(1, Ordering::SeqCst);
                Ok(Self)
            }
        }
        impl Drop for $type {
            fn drop(&mut self) {
                $alive.fetch_sub(1, Ordering::SeqCst);
            }
        }
    };
}

#[tokio::test(start_paused = true)]
async fn handlers_of_one_event_decode_once() {
    counting!(Counted, DECODED, ALIVE);
    for queue in both_queues() {
        DECODED.store(0, Ordering::SeqCst);
        let cluster = Cluster::with(&["a", "b"]);
        let pods = informer(cluster.clone(), queue).typed::<Counted>();
        for _ in 0..3 {
            pods.on_event(|event| drop(event.object().decode().expect("it decodes"))).expect("a handler");
        }
        start(&pods);
        settle().await;
        assert_eq!(DECODED.load(Ordering::SeqCst), 2, "the first list");
        (0..10).for_each(|_| cluster.put("a"));
        settle().await;
        assert_eq!(DECODED.load(Ordering::SeqCst), 12);
        pods.shutdown().await;
        assert_eq!(ALIVE.load(Ordering::SeqCst), 0);
    }
}

#[tokio::test(start_paused = true)]
async fn a_handler_that_does_not_decode_costs_no_decode() {
    counting!(Counted, DECODED, ALIVE);
    for queue in both_queues() {
        let cluster = Cluster::with(&["a"]);
        let pods = synced(cluster.clone(), queue).await.typed::<Counted>();
        let (notes, _) = noting(&pods);
        cluster.put("a");
        settle().await;
        assert_eq!((notes.take().len(), DECODED.load(Ordering::SeqCst)), (2, 0));
        assert_eq!(ALIVE.load(Ordering::SeqCst), 0);
    }
}

#[tokio::test(start_paused = true)]
async fn a_handler_that_lags_behind_does_not_keep_what_others_decoded() {
    counting!(Counted, DECODED, ALIVE);
    for queue in both_queues() {
        let cluster = Cluster::with(&["a"]);
        let pods = synced(cluster.clone(), queue).await.typed::<Counted>();
        let mut slow = pods.events().expect("a stream");
        slow.next().await.expect("an event");
        let quick = pods.on_event(|event| drop(event.object().decode().expect("it decodes"))).expect("a handler");
        settle().await;
        DECODED.store(0, Ordering::SeqCst);
        for number in 0..3000 {
            cluster.put("a");
            if number % 7 == 0 {
                settle().await;
            }
        }
        settle().await;
        assert_eq!((quick.backlog(), slow.handle().backlog()), (0, 3000));
        assert_eq!(DECODED.load(Ordering::SeqCst), 3000);
        let alive = usize::try_from(ALIVE.load(Ordering::SeqCst)).expect("not negative");
        assert!(alive <= 2 * defaults::SHARED_DECODES, "{alive}");
        // It can still decode all of it, and keeps nothing either.
        let mut heard = 0;
        while slow.handle().backlog() > 0 {
            slow.next().await.expect("an event").object().decode().expect("it decodes");
            heard += 1;
        }
        assert_eq!(heard, 3000);
        let alive = usize::try_from(ALIVE.load(Ordering::SeqCst)).expect("not negative");
        assert!(alive <= 2 * defaults::SHARED_DECODES, "{alive}");
        drop(slow);
        pods.shutdown().await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_large_list_that_one_has_decoded_and_another_has_not_heard_keeps_few_decoded_objects() {
    counting!(Counted, DECODED, ALIVE);
    let names: Vec<String> = (0..3000).map(|number| format!("pod-{number}")).collect();
    let cluster = Cluster::with(&names.iter().map(String::as_str).collect::<Vec<_>>());
    let pods = informer(cluster, InformerQueue::Atomic).typed::<Counted>();
    let slow = pods.events().expect("a stream");
    let quick = pods.on_event(|event| drop(event.object().decode().expect("it decodes"))).expect("a handler");
    start(&pods);
    quick.synced().await.expect("it syncs");
    assert_eq!((DECODED.load(Ordering::SeqCst), slow.handle().backlog()), (3000, 3000));
    let alive = usize::try_from(ALIVE.load(Ordering::SeqCst)).expect("not negative");
    assert!(alive <= defaults::SHARED_DECODES, "{alive}");
}

#[tokio::test(start_paused = true)]
async fn what_one_decoded_of_the_beginning_of_a_list_goes_when_all_have_heard_of_it() {
    counting!(Counted, DECODED, ALIVE);
    let names: Vec<String> = (0..300).map(|number| format!("pod-{number}")).collect();
    let cluster = Cluster::with(&names.iter().map(String::as_str).collect::<Vec<_>>());
    let pods = informer(cluster, InformerQueue::Atomic).typed::<Counted>();
    let mut heard = 0;
    let decode_some = move |event: &Event<Counted>| {
        heard += 1;
        if heard <= 50 {
            drop(event.object().decode().expect("it decodes"));
        }
    };
    let handlers = [pods.on_event(decode_some).expect("a handler"), pods.on_event(|_| {}).expect("another")];
    start(&pods);
    for handler in &handlers {
        handler.synced().await.expect("it syncs");
    }
    settle().await;
    assert_eq!((DECODED.load(Ordering::SeqCst), ALIVE.load(Ordering::SeqCst)), (50, 0));
}

#[tokio::test(start_paused = true)]
async fn an_error_of_decoding_is_shared_too_and_harms_nobody() {
    #[derive(Debug, Deserialize)]
    struct Strange {
        #[serde(rename = "noSuchField")]
        _missing: u8,
    }
    let cluster = Cluster::with(&["a"]);
    let pods = synced(cluster, InformerQueue::Atomic).await.typed::<Strange>();
    let errors = Arc::new(Mutex::new(Vec::new()));
    for _ in 0..2 {
        let errors = errors.clone();
        let note = move |event: &Event<Strange>| {
            let error = event.object().decode().expect_err("it lacks a field").to_string();
            errors.lock().expect("not poisoned").push(error);
        };
        pods.on_event_with(HandlerOptions::new(), note).expect("a handler");
    }
    settle().await;
    let errors = errors.lock().expect("not poisoned");
    assert_eq!((errors.len(), &errors[0]), (2, &errors[1]));
    assert!(errors[0].contains("shop/a") && !errors[0].contains("node-11"), "{errors:?}");
}
