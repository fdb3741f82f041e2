//! Lists that come as a stream: when they are asked for, what they ask for, and when they are whole.

use k8s_openapi::api::core::v1::Pod;
use tokio_util::sync::CancellationToken;
use tracing::Level;
use watchkeeper::{
    ListWatch, ListerWatcher, Phase, Reason, Reflector, Scripted, ScriptedList, ScriptedWatch, VersionMatch, WatchEvent,
};

use crate::support::*;

fn streaming() -> Scripted {
    Scripted::new().with_streaming_lists()
}

/// A stream of pod a at version 1, which is whole at version 10.
fn whole() -> ScriptedWatch {
    ScriptedWatch::new().added(pod("a", "1")).initial_events_end("10")
}

// When streams are asked for.

#[tokio::test(start_paused = true)]
async fn a_source_that_can_stream_is_asked_to() {
    let reflected = reflect(&streaming().answer_watch(whole().hang()));
    pass(seconds(1)).await;
    assert_eq!(reflected.asked(), ["stream@"]);
    reflected.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_source_that_cannot_stream_is_asked_for_pages() {
    let source = listed();
    assert!(source.streaming_lists().is_none());
    let reflected = reflect(&source);
    pass(seconds(1)).await;
    assert_eq!(reflected.asked(), ["list@0", "watch@10"]);
    reflected.stop().await;
}

#[tokio::test(start_paused = true)]
async fn streams_can_be_turned_off() {
    let source = streaming().answer_list(ScriptedList::new("10", []));
    let reflected = reflect_with(&source, |reflector| reflector.streaming_lists(false));
    pass(seconds(1)).await;
    assert_eq!(reflected.asked(), ["list@0", "watch@10"]);
    reflected.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_wrapped_source_says_what_the_source_says() {
    let wrapped: std::sync::Arc<dyn ListerWatcher> = std::sync::Arc::new(listed());
    assert!(wrapped.streaming_lists().is_none());
    let wrapped: std::sync::Arc<dyn ListerWatcher> = std::sync::Arc::new(streaming());
    assert!(wrapped.streaming_lists().is_some());
    let over_http = ListWatch::of::<Pod>(client(|_| ok("")));
    assert!(std::sync::Arc::new(over_http).streaming_lists().is_some());
}

// What they ask for.

#[tokio::test(start_paused = true)]
async fn a_stream_asks_for_initial_events_not_older_than_and_bookmarks() {
    let source = streaming();
    let reflected = reflect(&source);
    pass(seconds(1)).await;
    let stream = &source.watches()[0];
    assert_eq!((stream.send_initial_events, stream.allow_watch_bookmarks), (Some(true), true));
    assert_eq!(stream.resource_version_match, Some(VersionMatch::NotOlderThan));
    assert_eq!((stream.resource_version.as_str(), stream.limit), ("", None));
    assert!((seconds(300)..seconds(600)).contains(&stream.timeout.expect("a timeout")));
    reflected.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_second_stream_asks_for_the_last_seen_version() {
    let source = streaming().answer_watch(whole().bookmark("15").wait(seconds(2)).error_event(expired()));
    let reflected = reflect(&source);
    pass(seconds(10)).await;
    assert_eq!(reflected.asked(), ["stream@", "stream@15"]);
    reflected.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_stream_that_says_410_is_repeated_at_once_without_a_version() {
    let too_large = watchkeeper::Error::api(504, "Timeout", "Too large resource version: 10, current: 5");
    for error in [expired(), too_large] {
        let source = streaming()
            .answer_watch(whole().wait(seconds(2)).error_event(expired()))
            .fail_watch(error)
            .answer_watch(ScriptedWatch::new().initial_events_end("30").wait(seconds(2)).error_event(expired()));
        let reflected = reflect(&source);
        pass(seconds(10)).await;
        assert_eq!(reflected.asked(), ["stream@", "stream@10", "stream@", "stream@30"], "and the last version again");
        assert_eq!(reflected.asked_at()[..3], [0.0, 2.8, 2.8]);
        reflected.stop().await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_410_to_a_stream_without_a_version_pages_for_this_cycle() {
    let source = streaming().fail_watch(expired()).answer_list(ScriptedList::new("10", []));
    let reflected = reflect(&source);
    pass(seconds(3)).await;
    assert_eq!(reflected.asked(), ["stream@", "list@0", "watch@10"]);
    reflected.stop().await;
}

// When they are whole.

#[tokio::test(start_paused = true)]
async fn nothing_is_in_the_store_before_the_bookmark_that_ends_the_stream() {
    let stream = ScriptedWatch::new().added(pod("a", "1")).wait(seconds(20)).added(pod("b", "2")).hang();
    let reflected = reflect(&streaming().answer_watch(stream));
    pass(seconds(45)).await;
    assert!(reflected.store.calls().is_empty());
    assert_eq!((reflected.status().synced, reflected.status().listed_objects), (false, 2));
    reflected.stop().await;
}

#[tokio::test(start_paused = true)]
async fn the_bookmark_that_ends_the_stream_makes_it_the_list() {
    let reflected = reflect(&streaming().answer_watch(whole().hang()));
    pass(seconds(1)).await;
    assert_eq!(reflected.store.calls(), ["replace [a@1]@10"]);
    let status = reflected.status();
    assert_eq!((status.synced, status.phase, status.resource_version.as_str()), (true, Phase::Watching, "10"));
    reflected.stop().await;
}

#[tokio::test(start_paused = true)]
async fn only_the_annotations_value_true_ends_a_stream() {
    let bookmark = |value: &str| {
        let object = format!(
            r#"{{"kind":"Pod","apiVersion":"v1","metadata":{{"resourceVersion":"10","annotations":{{"k8s.io/initial-events-end":"{value}"}}}}}}"#
        );
        event_json("BOOKMARK", &object)
    };
    for (value, calls) in [("false", 0), ("", 0), ("True", 0), ("true", 1)] {
        let events = event_json("ADDED", &pod_json("a", "1")) + &bookmark(value);
        let client = client(move |_| http::Response::new(body(vec![Piece::Bytes(events.clone().into()), Piece::Hang])));
        let store = Recorder::new();
        let running = Running::start(Reflector::new(ListWatch::of::<Pod>(client), store.clone()));
        pass(seconds(1)).await;
        assert_eq!(store.calls().len(), calls, "for {value:?}");
        running.stop().await;
    }
}

#[tokio::test(start_paused = true)]
async fn changes_and_deletions_before_the_end_are_part_of_the_list() {
    let stream = ScriptedWatch::new()
        .added(pod("a", "1"))
        .added(pod("b", "2"))
        .modified(pod("a", "3"))
        .deleted(pod("b", "4"))
        .added(pod("c", "5"))
        .initial_events_end("10");
    let reflected = reflect(&streaming().answer_watch(stream.hang()));
    pass(seconds(1)).await;
    assert_eq!(reflected.store.calls(), ["replace [a@3 c@5]@10"]);
    reflected.stop().await;
}

#[tokio::test(start_paused = true)]
async fn the_same_stream_goes_on_as_the_watch() {
    let stream = whole().added(pod("b", "11")).wait(seconds(5)).modified(pod("b", "12")).hang();
    let source = streaming().answer_watch(stream);
    let reflected = reflect(&source);
    pass(seconds(6)).await;
    assert_eq!(reflected.store.calls(), ["replace [a@1]@10", "add shop/b@11", "update shop/b@12"]);
    assert_eq!((reflected.asked().len(), source.open_watches()), (1, 1));
    assert_eq!(reflected.status().resource_version.as_str(), "12", "an ADDED after the end moves the version");
    reflected.stop().await;
}

#[tokio::test(start_paused = true)]
async fn nothing_moves_the_version_before_the_end() {
    let stream = ScriptedWatch::new()
        .added(pod("a", "21"))
        .modified(pod("a", "22"))
        .deleted(pod("a", "23"))
        .bookmark("24")
        .event(WatchEvent::Unknown("25".into()));
    let source = streaming().answer_watch(stream.wait(seconds(2)));
    let reflected = reflect(&source);
    pass(seconds(10)).await;
    assert_eq!(reflected.asked(), ["stream@", "stream@"]);
    assert_eq!(reflected.status().resource_version.as_str(), "");
    assert!(reflected.store.get().versions.is_empty());
    reflected.stop().await;
}

#[tokio::test(start_paused = true)]
async fn the_version_is_that_of_the_bookmark_that_ends_the_stream() {
    let stream = ScriptedWatch::new().added(pod("a", "99")).initial_events_end("50").wait(seconds(2));
    let reflected = reflect(&streaming().answer_watch(stream));
    pass(seconds(5)).await;
    assert_eq!(reflected.asked(), ["stream@", "watch@50"]);
    reflected.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_stream_that_ends_after_its_end_is_watched_on_from_the_last_version() {
    let stream = whole().added(pod("b", "11")).wait(seconds(5));
    let reflected = reflect(&streaming().answer_watch(stream).answer_watch(ScriptedWatch::new().hang()));
    pass(seconds(10)).await;
    assert_eq!(reflected.asked(), ["stream@", "watch@11"]);
    assert_eq!(reflected.status().watch_restarts, [(Reason::Ended, 1)].into());
    reflected.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_stream_that_ends_right_after_its_end_is_no_very_short_watch() {
    let reflected = reflect(&streaming().answer_watch(whole()));
    pass(seconds(3)).await;
    assert_eq!(reflected.asked(), ["stream@", "watch@10"]);
    reflected.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_410_to_the_watch_after_a_stream_comes_out_of_the_cycle() {
    let source = streaming()
        .answer_watch(whole().wait(seconds(2)))
        .answer_watch(ScriptedWatch::new().bookmark("15").error_event(expired()));
    let store = Recorder::new();
    let error = reflector(&source, &store).list_and_watch(&CancellationToken::new()).await.expect_err("expired");
    assert!(error.is_expired());
    assert_eq!(asked(&source), ["stream@", "watch@10"]);
    assert_eq!(store.contents(), ["a@1"]);
}

#[tokio::test(start_paused = true)]
async fn the_bookmark_that_ends_a_stream_is_the_first_of_the_two_that_make_silence_suspicious() {
    let reflected = reflect(&streaming().answer_watch(whole().wait(seconds(60)).bookmark("12").hang()));
    pass(seconds(250)).await;
    assert_eq!(
        (reflected.asked(), reflected.status().phase),
        (vec!["stream@".to_owned(), "watch@12".to_owned()], Phase::Stale)
    );
    reflected.stop().await;
}

// Objects that cannot be used.

#[tokio::test(start_paused = true)]
async fn a_bad_object_in_a_stream_counts_as_present_and_is_listed_as_stale() {
    let second = ScriptedWatch::new().event(WatchEvent::Bad(bad("a", "12"))).initial_events_end("20").hang();
    let source = streaming().answer_watch(whole().wait(seconds(2)).error_event(expired())).answer_watch(second);
    let reflected = reflect(&source);
    pass(seconds(5)).await;
    assert_eq!(reflected.store.contents(), ["a@1"]);
    assert_eq!(reflected.status().stale_objects.into_keys().collect::<Vec<_>>(), [key("a")]);
    reflected.stop().await;
}

#[tokio::test(start_paused = true)]
async fn the_last_word_of_a_stream_on_an_object_counts() {
    let stream = ScriptedWatch::new()
        .event(WatchEvent::Bad(bad("good", "1")))
        .modified(pod("good", "2"))
        .added(pod("bad", "3"))
        .event(WatchEvent::Bad(bad("bad", "4")))
        .event(WatchEvent::Bad(bad("gone", "5")))
        .event(WatchEvent::DeletedBad(bad("gone", "6")))
        .event(WatchEvent::Bad(bad("gone too", "7")))
        .deleted(pod("gone too", "8"))
        .initial_events_end("10");
    let reflected = reflect(&streaming().answer_watch(stream.hang()));
    pass(seconds(1)).await;
    assert_eq!(reflected.store.calls(), ["replace [good@2]@10"]);
    assert_eq!(reflected.status().stale_objects.into_keys().collect::<Vec<_>>(), [key("bad")]);
    reflected.stop().await;
}

#[tokio::test(start_paused = true)]
async fn an_object_without_a_key_in_a_stream_deletes_nothing_and_is_retried() {
    let second = ScriptedWatch::new().event(WatchEvent::Bad(unreadable())).initial_events_end("20").hang();
    let source = streaming()
        .answer_watch(whole().wait(seconds(2)).error_event(expired()))
        .answer_watch(second)
        .answer_watch(ScriptedWatch::new().initial_events_end("30").hang());
    let reflected = reflect(&source);
    pass(seconds(4)).await;
    assert_eq!((reflected.store.contents(), source.open_watches()), (vec!["a@1".to_owned()], 0));
    pass(seconds(2)).await;
    assert_eq!(reflected.asked(), ["stream@", "stream@10", "stream@10"]);
    assert_eq!(reflected.status().relists, [(Reason::Expired, 1), (Reason::UnreadableObject, 1)].into());
    assert!(reflected.store.contents().is_empty());
    reflected.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_store_that_refuses_a_streams_list_gets_another_after_a_backoff() {
    let source = streaming().answer_watch(whole().hang()).answer_watch(whole().hang());
    let reflected = reflect(&source);
    reflected.store.get().fail_replace = Some(watchkeeper::Error::store("full"));
    pass(seconds(2)).await;
    assert_eq!(reflected.asked(), ["stream@", "stream@"]);
    assert_eq!((source.open_watches(), reflected.status().relists), (1, [(Reason::Store, 1)].into()));
    reflected.stop().await;
}

// The warning.

#[tokio::test(start_paused = true)]
async fn a_stream_that_is_silent_before_its_end_is_mentioned_each_ten_seconds() {
    let logs = Logs::capture();
    let stream = ScriptedWatch::new().added(pod("a", "1")).wait(seconds(25)).initial_events_end("10").hang();
    let reflected = reflect(&streaming().answer_watch(stream));
    pass(seconds(26)).await;
    assert_eq!(logs.lines(Level::WARN, "waiting for the bookmark").len(), 2);
    reflected.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_stream_that_keeps_coming_is_not_mentioned() {
    let logs = Logs::capture();
    let stream = (1..10)
        .fold(ScriptedWatch::new(), |watch, version| watch.added(pod("a", &version.to_string())).wait(seconds(7)));
    let reflected = reflect(&streaming().answer_watch(stream.initial_events_end("10").hang()));
    pass(seconds(100)).await;
    assert!(reflected.status().synced);
    assert!(logs.lines(Level::WARN, "waiting for the bookmark").is_empty());
    reflected.stop().await;
}
