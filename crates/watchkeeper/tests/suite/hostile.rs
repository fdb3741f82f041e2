//! What a server can do that none should: lie, dawdle, and make work.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;
use futures::stream;
use http::Response;
use k8s_openapi::api::core::v1::Pod;
use tokio_util::sync::CancellationToken;
use watchkeeper::{
    Backoff, Error, ErrorKind, ListMetadata, ListOptions, ListPart, ListWatch, ListerWatcher as _, Listing, Object,
    Pager, Phase, Reason, Reflector, Scripted, ScriptedList, ScriptedWatch, StreamingLists, WatchEvent,
};

use crate::support::*;

/// The time that a test may take on a busy machine, far above what it takes and far below what it took.
const SOON: std::time::Duration = std::time::Duration::from_secs(5);

#[tokio::test]
async fn an_object_behind_a_space_keeps_its_bytes() {
    let line = event_json("ADDED", &pod_json("a", "1")).replace("\"object\":", "\"object\": ");
    let source = pods_in([line]);
    let mut stream = source.watch(ListOptions::default()).await.unwrap();
    let object = loop {
        match stream.next().await.unwrap().unwrap() {
            WatchEvent::Added(object) => break object,
            WatchEvent::Progress => {}
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(String::from_utf8_lossy(&object.json().expect("a body")), pod_json("a", "1"));
    object.decode::<Pod>().expect("a pod");
}

#[test]
fn many_labels_take_no_more_than_their_share_of_time() {
    let labels: Vec<String> = (0..40_000).map(|at| format!("\"l{at}\":\"\"")).collect();
    let json =
        format!(r#"{{"metadata":{{"name":"a","resourceVersion":"1","labels":{{{},"l7":"last"}}}}}}"#, labels.join(","));
    let start = std::time::Instant::now();
    let object = Object::from_json(json).unwrap();
    assert!(start.elapsed() < SOON, "{:?}", start.elapsed());
    assert_eq!((object.labels().len(), object.labels().get("l7")), (40_000, Some("last")));
    assert_eq!(object.labels().iter().nth(7), Some(("l7", "last")), "in the place of the first");
}

#[tokio::test]
async fn spaces_before_an_event_are_not_looked_at_again_and_again() {
    let text = format!("{}{}", " ".repeat(100_000), event_json("ADDED", &pod_json("a", "1")));
    let start = std::time::Instant::now();
    assert_eq!(read_watch(&pods_in(bytewise(text.as_bytes()))).await.complete(), ["added shop/a@1"]);
    assert!(start.elapsed() < SOON, "{:?}", start.elapsed());
}

#[tokio::test]
async fn a_line_of_many_events_is_read_once() {
    let event = event_json("ADDED", r#"{"metadata":{"name":"a","resourceVersion":"1"}}"#).replace('\n', "");
    let start = std::time::Instant::now();
    for end in ["", "\n", "\n\n{"] {
        let text = format!("{}{end}", event.repeat(40_000));
        let outcome = read_watch(&pods_in([text])).await;
        assert_eq!(outcome.parts.len(), 40_000, "{:?}", outcome.error);
    }
    assert!(start.elapsed() < SOON * 3, "{:?}", start.elapsed());
}

#[tokio::test]
async fn events_without_newlines_above_the_limit_are_read_once() {
    let event = event_json("ADDED", r#"{"metadata":{"name":"a","resourceVersion":"1"}}"#).replace('\n', "");
    let text = Bytes::from(event.repeat(60_000));
    let pieces: Vec<Bytes> = text.chunks(300_000).map(Bytes::copy_from_slice).collect();
    let start = std::time::Instant::now();
    let outcome = read_watch(&pods_in(pieces).max_object_size(2 << 20)).await;
    assert_eq!((outcome.parts.len(), outcome.error), (60_000, None));
    assert!(start.elapsed() < SOON * 3, "{:?}", start.elapsed());
}

#[tokio::test]
async fn a_type_without_an_end_is_not_looked_for_again_and_again() {
    let text = format!("{{\n{{\"type\":\"{}", "A".repeat(8 << 20));
    let pieces = [Bytes::from(text)].into_iter().chain(bytewise(&[b'A'; 20_000]));
    let start = std::time::Instant::now();
    let outcome = read_watch(&pods_in(pieces)).await;
    assert_eq!(outcome.kind, Some(ErrorKind::Disconnected));
    assert!(start.elapsed() < SOON, "{:?}", start.elapsed());
}

#[tokio::test]
async fn no_limit_on_objects_is_a_limit() {
    let list = format!(
        r#"{{"kind":"PodList","apiVersion":"v1","metadata":{{"resourceVersion":"10"}},"items":[{}]}}"#,
        pod_json("a", "1")
    );
    for at in 0..list.len() {
        let outcome = read_list(&pods_in(cut_at(list.as_bytes(), at)).max_object_size(usize::MAX)).await;
        assert_eq!(outcome.complete().len(), 2);
    }
}

#[tokio::test(start_paused = true)]
async fn no_limit_on_time_is_a_limit() {
    let forever = std::time::Duration::MAX;
    let source = Scripted::new()
        .with_streaming_lists()
        .answer_watch(ScriptedWatch::new().added(pod("a", "1")).wait(seconds(100)).initial_events_end("10").hang());
    let reflected = reflect_with(&source, |reflector| reflector.list_idle_timeout(forever).min_watch_timeout(forever));
    pass(seconds(200)).await;
    assert_eq!(reflected.store.contents(), ["a@1"]);
    reflected.stop().await;

    let lists = StreamingLists::default();
    lists.pause_for(forever);
    assert!(!lists.are_allowed());
}

#[tokio::test(start_paused = true)]
async fn a_continue_token_that_leads_to_itself_is_an_error() {
    let asked = Arc::new(AtomicUsize::new(0));
    let count = asked.clone();
    let pager = Pager::new(move |_| {
        let asked = count.fetch_add(1, Ordering::SeqCst);
        async move {
            if asked > 100 {
                return Err(Error::new(ErrorKind::Config, "asked too often"));
            }
            let metadata = ListMetadata { continue_token: Some("again".into()), ..ListMetadata::default() };
            Ok(Listing::of(metadata, [pod("a", "1")]))
        }
    });
    let error = pager.list(ListOptions::default()).await.unwrap_err();
    assert_eq!((error.kind(), asked.load(Ordering::SeqCst)), (ErrorKind::Malformed, 2));
}

#[tokio::test(start_paused = true)]
async fn parts_that_hold_no_object_do_not_pile_up_either() {
    let taken = Arc::new(AtomicUsize::new(0));
    let count = taken.clone();
    let pager = Pager::new(move |_| {
        let count = count.clone();
        let parts = (0..3_000_000).map(move |at| {
            count.fetch_add(1, Ordering::SeqCst);
            Ok(match at {
                0 => ListPart::Item(pod("a", "1")),
                at if at % 2 == 0 => ListPart::Bad(unreadable()),
                _ => ListPart::Progress,
            })
        });
        async move { Ok(Listing::new(stream::iter(parts))) }
    });
    let each = async |_: Object| -> Result<(), Error> {
        pass(seconds(1)).await;
        let taken = taken.load(Ordering::SeqCst);
        assert!(taken < 300_000, "{taken} parts wait to be used");
        Ok(())
    };
    pager.each_item(ListOptions::default(), each).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn an_error_whose_text_does_not_come_is_an_error_all_the_same() {
    let source = ListWatch::of::<Pod>(client(|request| {
        let watch = request.uri().query().unwrap_or_default().contains("watch=true");
        match watch {
            false => ok(r#"{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"10"},"items":[]}"#),
            true => Response::builder().status(410).body(body(vec![Piece::Bytes("{".into()), Piece::Hang])).unwrap(),
        }
    }));
    let reflector = Reflector::new(source, Recorder::new()).streaming_lists(false);
    let status = reflector.status();
    let running = Running::start(reflector);
    pass(seconds(60)).await;
    let (error, _) = status.get().last_error.expect("it says what happened");
    assert_eq!(error.code(), Some(410), "{error}");
    assert!(status.get().relists.contains_key(&Reason::Expired), "{:?}", status.get());
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_streamed_object_of_another_kind_deletes_nothing() {
    let source = Scripted::new()
        .with_streaming_lists()
        .answer_watch(
            ScriptedWatch::new()
                .added(pod("a", "1"))
                .added(pod("b", "2"))
                .initial_events_end("10")
                .error_event(expired()),
        )
        .answer_watch(
            ScriptedWatch::new()
                .added(pod("a", "1"))
                .event(WatchEvent::WrongKind(bad("b", "11")))
                .initial_events_end("12")
                .hang(),
        );
    let reflected = reflect(&source);
    pass(seconds(2)).await;
    assert_eq!(reflected.store.contents(), ["a@1", "b@2"]);
    assert_eq!(reflected.status().relists.get(&Reason::UnreadableObject), Some(&1));
    assert_eq!(reflected.status().wrong_kind, 1);
    reflected.stop().await;
}

/// The requests of an hour.
async fn an_hour_of(source: Scripted, options: impl FnOnce(Reflector) -> Reflector) -> usize {
    let reflected = reflect_with(&source, options);
    pass(seconds(3600)).await;
    let requests = source.requests().len();
    reflected.stop().await;
    requests
}

#[tokio::test(start_paused = true)]
async fn a_source_that_times_out_at_once_is_not_asked_every_second() {
    let mut source = Scripted::new();
    for _ in 0..5000 {
        source = source
            .answer_list(ScriptedList::new("10", [pod("a", "1")]))
            .fail_watch(Error::new(ErrorKind::Timeout, "the proxy has lost patience"));
    }
    let requests = an_hour_of(source, |reflector| reflector).await;
    assert!(requests < 300, "{requests} requests in an hour");
}

#[tokio::test(start_paused = true)]
async fn waits_above_two_minutes_stay_long() {
    let mut source = Scripted::new();
    for _ in 0..5000 {
        source = source.fail_list(internal());
    }
    let backoff = Backoff::new(seconds(1), seconds(600)).jitter(0.0);
    let requests = an_hour_of(source, |reflector| reflector.backoff(backoff)).await;
    assert!(requests < 20, "{requests} requests in an hour");
}

#[tokio::test]
async fn a_status_without_end_is_not_collected() {
    let start = Bytes::from_static(br#"{"kind":"Status","apiVersion":"v1""#);
    let field = Bytes::from(format!(",\"field\":\"{}\"", "x".repeat(10_000)));
    let outcome = read_list(&pods_in(std::iter::once(start).chain(std::iter::repeat_n(field, 2000)))).await;
    assert_eq!(outcome.kind, Some(ErrorKind::Malformed), "{:?}", outcome.error);
}

#[tokio::test]
async fn a_message_of_a_server_is_shown_in_part() {
    let status =
        format!(r#"{{"kind":"Status","code":500,"reason":"InternalError","message":"{}"}}"#, "x".repeat(1 << 19));
    let outcome = read_watch(&pods_in([event_json("ERROR", &status)])).await;
    assert!(outcome.parts[0].len() < 10_000, "{}", outcome.parts[0].len());
    assert!(outcome.parts[0].contains("500 InternalError"), "{:.200}", outcome.parts[0]);
}

#[tokio::test(start_paused = true)]
async fn nobody_watches_after_a_cycle() {
    let source = listed().answer_watch(ScriptedWatch::new().error_event(expired()));
    let mut reflector = reflector(&source, &Recorder::new());
    let status = reflector.status();
    reflector.list_and_watch(&CancellationToken::new()).await.unwrap_err();
    assert_ne!(status.get().phase, Phase::Watching);
}

#[tokio::test(start_paused = true)]
async fn a_watch_from_no_version_cannot_be_taken_up_again() {
    for version in ["", "0"] {
        let source = Scripted::new()
            .answer_list(ScriptedList::new(version, [pod("a", "1"), pod("b", "2")]))
            .answer_watch(ScriptedWatch::new().added(pod("a", "1")).added(pod("b", "2")).wait(seconds(5)))
            // Meanwhile b goes. No watch can tell any more.
            .answer_watch(ScriptedWatch::new().added(pod("a", "1")).hang())
            .answer_list(ScriptedList::new(version, [pod("a", "1")]));
        let reflected = reflect(&source);
        pass(seconds(30)).await;
        assert_eq!(reflected.store.contents(), ["a@1"], "{:?}", reflected.asked());
        reflected.stop().await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_store_that_refuses_everything_does_not_fill_the_log() {
    struct Refuses;
    impl watchkeeper::ReflectorStore for Refuses {
        fn add(&self, _: Object) -> Result<(), Error> {
            Err(Error::store("it is full"))
        }
        fn update(&self, _: Object) -> Result<(), Error> {
            Err(Error::store("it is full"))
        }
        fn delete(&self, _: &watchkeeper::ObjectKey, _: Option<Object>) -> Result<(), Error> {
            Err(Error::store("it is full"))
        }
        fn replace(&self, _: watchkeeper::Replacement) -> Result<(), Error> {
            Ok(())
        }
    }
    let logs = Logs::capture();
    let mut watch = ScriptedWatch::new();
    for at in 11..1011 {
        watch = watch.modified(pod("a", &at.to_string()));
    }
    let reflector = Reflector::new(listed().answer_watch(watch.hang()), Refuses);
    let status = reflector.status();
    let running = Running::start(reflector);
    pass(seconds(1)).await;
    assert_eq!(status.get().store_errors, 1000);
    let lines = logs.lines(tracing::Level::ERROR, "refused").len();
    assert!((1..10).contains(&lines), "{lines} lines");
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn an_incomplete_list_does_not_forget_what_is_stale() {
    let source = listed()
        .answer_watch(ScriptedWatch::new().event(WatchEvent::Bad(bad("a", "11"))).error_event(expired()))
        .answer_list(ScriptedList::new("12", []).bad(unreadable()));
    let reflected = reflect(&source);
    pass(seconds(2)).await;
    assert_eq!(reflected.store.contents(), ["a@1"]);
    assert_eq!(reflected.status().stale_objects.into_keys().collect::<Vec<_>>(), [key("a")]);
    reflected.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_version_that_no_request_can_carry_does_not_stop_it_for_ever() {
    let long = "9".repeat(100_000);
    let source = ListWatch::of::<Pod>(client(move |request| {
        match request.uri().query().unwrap_or_default().contains("watch=true") {
            false => ok(r#"{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"10"},"items":[]}"#),
            true => {
                let event = event_json("ADDED", &pod_json("a", &long));
                Response::new(body(vec![Piece::Bytes(event.into()), Piece::Pause(seconds(5))]))
            }
        }
    }));
    let reflector = Reflector::new(source, Recorder::new()).streaming_lists(false);
    let status = reflector.status();
    let running = Running::start(reflector);
    pass(seconds(600)).await;
    let status = status.get();
    let config = status.last_error.as_ref().is_some_and(|(error, _)| error.kind() == ErrorKind::Config);
    assert!(!config, "{:?} {:?}", status.phase, status.relists);
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn pages_wait_too_if_the_server_asks_for_it() {
    let later = Error::api(503, "ServiceUnavailable", "starting").with_retry_after(seconds(20));
    let reflected = reflect(&Scripted::new().with_streaming_lists().fail_watch(later));
    pass(seconds(25)).await;
    assert_eq!((reflected.asked(), reflected.asked_at()), (vec!["stream@".into(), "list@0".into()], vec![0.0, 20.0]));
    reflected.stop().await;
}

#[tokio::test(start_paused = true)]
async fn thousands_of_bad_objects_are_counted_and_a_hundred_named() {
    let mut watch = ScriptedWatch::new();
    for number in 0..3_000 {
        watch = watch.event(WatchEvent::Bad(bad(&format!("pod-{number}"), "11")));
    }
    let source = Scripted::new().answer_list(ScriptedList::new("10", [])).answer_watch(watch.hang());
    let logs = Logs::capture();
    let reflected = reflect(&source);
    pass(seconds(1)).await;
    let status = reflected.status();
    assert_eq!((status.stale_object_count, status.stale_objects.len()), (3_000, 100));
    assert_eq!(logs.lines(tracing::Level::WARN, "keeps its last good state").len(), 100);
    reflected.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_watch_without_a_bookmark_where_bookmarks_came_before_is_followed_by_a_list() {
    // A server that was restored from a backup accepts a version that it has not reached, and is silent.
    let source = Scripted::new()
        .answer_list(ScriptedList::new("100", [pod("a", "90")]))
        .answer_watch(ScriptedWatch::new().wait(seconds(60)).bookmark("101").wait(seconds(240)))
        .answer_watch(ScriptedWatch::new().wait(seconds(300)))
        .answer_list(ScriptedList::new("40", [pod("a", "30"), pod("b", "35")]))
        .answer_watch(ScriptedWatch::new().hang());
    let reflected = reflect(&source);
    pass(seconds(640)).await;
    assert_eq!(reflected.asked(), ["list@0", "watch@100", "watch@101", "list@101", "watch@40"]);
    assert_eq!(reflected.store.contents(), ["a@30", "b@35"]);
    assert_eq!(reflected.status().relists, [(Reason::TimedOut, 1)].into());
    reflected.stop().await;
}
