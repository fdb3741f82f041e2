//! Events for async code.

use futures::{FutureExt as _, StreamExt as _};
use watchkeeper::HandlerOptions;

use super::*;

#[tokio::test(start_paused = true)]
async fn a_stream_has_what_a_handler_hears() {
    for queue in both_queues() {
        let cluster = Cluster::with(&["a"]);
        let pods = informer(cluster.clone(), queue);
        let mut events = pods.events().expect("a stream");
        start(&pods);
        assert_eq!(words(&events.next().await.expect("an event")), "+a@11 Initial");
        cluster.put("a");
        cluster.delete("a");
        let rest: Vec<String> = (&mut events).take(2).map(|event| words(&event)).collect().await;
        assert_eq!(rest, ["~a@11>12 Watch", "-a@13 Watch"]);
        assert!(events.next().now_or_never().is_none());
        assert_eq!(events.handle().delivered(), 3);
    }
}

#[tokio::test(start_paused = true)]
async fn a_stream_ends_with_its_informer_and_stays_ended() {
    for queue in both_queues() {
        let pods = synced(Cluster::with(&["a"]), queue).await;
        let mut events = pods.events().expect("a stream");
        assert!(events.next().await.is_some());
        pods.stop();
        assert!(events.next().await.is_none());
        assert!(events.next().await.is_none(), "one may ask again");
        pods.stopped().await;
    }
}

#[tokio::test(start_paused = true)]
async fn an_informer_stops_while_somebody_holds_a_stream_that_is_not_read() {
    for queue in both_queues() {
        let pods = synced(Cluster::with(&["a"]), queue).await;
        let mut events = pods.events().expect("a stream");
        tokio::time::timeout(seconds(60), pods.shutdown()).await.expect("nobody waits for its reader");
        assert!(pods.is_stopped());
        assert!(events.next().await.is_none());
    }
}

#[tokio::test(start_paused = true)]
async fn who_reads_a_stream_may_remove_it_and_wait() {
    for queue in both_queues() {
        let pods = synced(Cluster::with(&["a"]), queue).await;
        let mut events = pods.events().expect("a stream");
        assert!(events.next().await.is_some());
        let removed = tokio::time::timeout(seconds(60), events.handle().remove_and_wait()).await;
        removed.expect("nobody waits for its reader");
        assert!(events.next().await.is_none() && pods.handlers().is_empty());
    }
}

#[tokio::test(start_paused = true)]
async fn dropping_a_stream_is_the_end_of_it_and_dropping_a_read_loses_nothing() {
    for queue in both_queues() {
        let cluster = Cluster::with(&["a", "b"]);
        let pods = synced(cluster.clone(), queue).await;
        let mut events = pods.events().expect("a stream");
        let mut heard = Vec::new();
        for round in 0..20 {
            // Reads that are given up at any time.
            tokio::select! {
                biased;
                () = tokio::task::yield_now() => {}
                event = events.next() => heard.push(words(&event.expect("an event"))),
            }
            if round < 5 {
                cluster.put("a");
            }
        }
        while let Some(event) = events.next().now_or_never() {
            heard.push(words(&event.expect("an event")));
        }
        settle().await;
        while let Some(event) = events.next().now_or_never() {
            heard.push(words(&event.expect("an event")));
        }
        heard.retain(|note| note.contains('a'));
        assert_eq!(heard.iter().filter(|note| note.starts_with('~')).count(), 5, "{heard:?}");
        drop(events);
        assert!(pods.handlers().is_empty());
    }
}

#[tokio::test(start_paused = true)]
async fn a_filtered_stream_has_what_passes() {
    for queue in both_queues() {
        let cluster = Cluster::with(&["a", "b"]);
        let pods = synced(cluster.clone(), queue).await;
        let options = HandlerOptions::new().filter(|pod| pod.key().name() == "b").name("only b");
        let mut events = pods.events_with(options).expect("a stream");
        assert_eq!(events.handle().name(), "only b");
        assert_eq!(words(&events.next().await.expect("an event")), "+b@12 Initial");
        cluster.put("a");
        cluster.put("b");
        assert_eq!(words(&events.next().await.expect("an event")), "~b@12>14 Watch");
    }
}
