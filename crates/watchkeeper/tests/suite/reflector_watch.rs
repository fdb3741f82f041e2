//! The watches of a cycle: what each asks for, how it may end, and what follows.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use k8s_openapi::api::core::v1::Pod;
use tokio_util::sync::CancellationToken;
use watchkeeper::{Error, ErrorKind, ListWatch, Phase, Reason, Reflector, Scripted, ScriptedList, ScriptedWatch};

use crate::support::*;

/// One event, and the end.
fn one(name: &str, version: &str) -> ScriptedWatch {
    ScriptedWatch::new().added(pod(name, version))
}

// What a watch asks for.

#[tokio::test(start_paused = true)]
async fn a_watch_asks_for_bookmarks_from_the_lists_version_on_with_a_timeout() {
    let source = listed();
    let reflected = reflect(&source);
    pass(seconds(1)).await;
    let watch = &source.watches()[0];
    assert_eq!((watch.resource_version.as_str(), watch.allow_watch_bookmarks), ("10", true));
    assert_eq!((watch.send_initial_events, watch.resource_version_match, watch.limit), (None, None, None));
    let timeout = watch.timeout.expect("a timeout");
    assert!((seconds(300)..seconds(600)).contains(&timeout), "{timeout:?}");
    assert_eq!(timeout.subsec_nanos(), 0, "servers read whole seconds");
    reflected.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_longer_watch_timeout_is_asked_for_and_up_to_twice_as_much() {
    let source = (0..50).fold(listed(), |source, _| source.answer_watch(ScriptedWatch::new().wait(seconds(2))));
    let reflected = reflect_with(&source, |reflector| reflector.min_watch_timeout(seconds(1000)));
    pass(seconds(110)).await;
    let timeouts: Vec<_> = source.watches().iter().map(|watch| watch.timeout.expect("a timeout")).collect();
    assert!(timeouts.len() > 50 && timeouts.iter().all(|timeout| (seconds(1000)..seconds(2000)).contains(timeout)));
    reflected.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_watch_timeout_below_five_minutes_is_not_taken() {
    let source = (0..50).fold(listed(), |source, _| source.answer_watch(ScriptedWatch::new().wait(seconds(2))));
    let reflected = reflect_with(&source, |reflector| reflector.min_watch_timeout(seconds(10)));
    pass(seconds(110)).await;
    assert!(source.watches().iter().all(|watch| watch.timeout >= Some(seconds(300))));
    reflected.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_watch_is_not_opened_within_a_second_of_the_last_opening() {
    let source = listed()
        .answer_watch(one("b", "11"))
        .answer_watch(one("c", "12").wait(Duration::from_millis(400)))
        .answer_watch(one("d", "13").wait(Duration::from_millis(2500)));
    let reflected = reflect(&source);
    pass(seconds(10)).await;
    assert_eq!(reflected.asked(), ["list@0", "watch@10", "watch@11", "watch@12", "watch@13"]);
    assert_eq!(reflected.asked_at(), [0.0, 0.0, 1.0, 2.0, 4.5], "and at once if the second has passed");
    reflected.stop().await;
}

#[tokio::test(start_paused = true)]
async fn the_second_between_two_watches_holds_across_a_list() {
    let backoff = watchkeeper::Backoff::new(Duration::from_millis(100), seconds(30)).jitter(0.0);
    let source = listed().fail_watch(forbidden()).answer_list(ScriptedList::new("20", []));
    let reflected = reflect_with(&source, |reflector| reflector.backoff(backoff));
    pass(seconds(5)).await;
    assert_eq!(reflected.asked_at(), [0.0, 0.0, 0.1, 1.0]);
    reflected.stop().await;
}

// Clean ends.

#[tokio::test(start_paused = true)]
async fn a_watch_that_ends_is_opened_again_at_once_from_the_last_version() {
    let source = listed().answer_watch(one("b", "11").wait(seconds(5)));
    let reflected = reflect(&source);
    pass(seconds(6)).await;
    assert_eq!(reflected.asked(), ["list@0", "watch@10", "watch@11"]);
    assert_eq!(reflected.asked_at(), [0.0, 0.0, 5.0]);
    assert_eq!(reflected.status().watch_restarts, [(Reason::Ended, 1)].into());
    assert!(reflected.status().last_error.is_none());
    reflected.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_watch_that_breaks_is_opened_again_at_once_from_the_last_version() {
    let source = listed().answer_watch(one("b", "11").wait(seconds(5)).error(cut()));
    let reflected = reflect(&source);
    pass(seconds(6)).await;
    assert_eq!(reflected.asked(), ["list@0", "watch@10", "watch@11"]);
    assert_eq!(reflected.asked_at(), [0.0, 0.0, 5.0]);
    assert_eq!(reflected.status().watch_restarts, [(Reason::Disconnected, 1)].into());
    reflected.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_watch_that_times_out_in_the_transport_is_opened_again_at_once() {
    let timeout = Error::new(ErrorKind::Timeout, "no answer to a ping");
    let source = listed().answer_watch(ScriptedWatch::new().wait(seconds(45)).error(timeout));
    let reflected = reflect(&source);
    pass(seconds(50)).await;
    assert_eq!(reflected.asked_at(), [0.0, 0.0, 45.0]);
    assert!(reflected.status().relists.is_empty());
    reflected.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_watch_without_events_that_lasted_a_second_is_opened_again_at_once() {
    let source = listed().answer_watch(ScriptedWatch::new().wait(seconds(1)));
    let reflected = reflect(&source);
    pass(seconds(2)).await;
    assert_eq!(reflected.asked(), ["list@0", "watch@10", "watch@10"]);
    reflected.stop().await;
}

#[tokio::test(start_paused = true)]
async fn the_age_of_a_watch_counts_from_its_request() {
    let source = listed().answer_watch(ScriptedWatch::new().opens_after(seconds(20)));
    let reflected = reflect(&source);
    pass(seconds(25)).await;
    assert_eq!(reflected.asked(), ["list@0", "watch@10", "watch@10"], "a proxy held back the answer for 20 s");
    reflected.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_connection_that_breaks_in_the_middle_of_an_event_is_a_clean_end_too() {
    let asked: Arc<Mutex<Vec<String>>> = Arc::default();
    let requests = asked.clone();
    let client = client(move |request| {
        let query = request.uri().query().unwrap_or_default().to_owned();
        let version = query.split('&').find(|pair| pair.starts_with("resourceVersion=")).unwrap_or_default();
        requests.lock().expect("not poisoned").push(version.to_owned());
        let event = event_json("ADDED", &pod_json("b", "11"));
        let half = event_json("ADDED", &pod_json("c", "12")).split_at(50).0.to_owned();
        match query.contains("watch=true") {
            false => ok(r#"{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"10"},"items":[]}"#),
            true if version.ends_with("10") => {
                let pieces =
                    [Piece::Bytes(event.into()), Piece::Pause(seconds(5)), Piece::Bytes(half.into()), Piece::Break];
                http::Response::new(body(pieces.into()))
            }
            true => http::Response::new(body(vec![Piece::Hang])),
        }
    });
    let store = Recorder::new();
    let running = Running::start(Reflector::new(ListWatch::of::<Pod>(client), store.clone()).streaming_lists(false));
    pass(seconds(10)).await;
    assert_eq!(*asked.lock().expect("not poisoned"), ["resourceVersion=0", "resourceVersion=10", "resourceVersion=11"]);
    assert_eq!(store.contents(), ["b@11"]);
    running.stop().await;
}

// Very short watches.

#[tokio::test(start_paused = true)]
async fn a_watch_that_ends_at_once_without_an_event_is_a_very_short_watch() {
    let source = listed().answer_watch(ScriptedWatch::new());
    let cycle = reflector(&source, &Recorder::new()).list_and_watch(&CancellationToken::new()).await;
    assert_eq!(cycle.expect_err("very short").kind(), ErrorKind::VeryShortWatch);
}

#[tokio::test(start_paused = true)]
async fn a_watch_that_ends_within_a_second_without_an_event_lists_again_after_a_backoff() {
    let source = listed().answer_watch(ScriptedWatch::new().wait(Duration::from_millis(999)));
    let reflected = reflect(&source);
    pass(seconds(3)).await;
    assert_eq!(reflected.asked(), ["list@0", "watch@10", "list@10"]);
    assert_eq!(reflected.asked_at(), [0.0, 0.0, 1.799]);
    assert_eq!(reflected.status().relists, [(Reason::VeryShortWatch, 1)].into());
    reflected.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_watch_that_breaks_within_a_second_without_an_event_lists_again_after_a_backoff() {
    let source = listed().answer_watch(ScriptedWatch::new().error(cut()));
    let reflected = reflect(&source);
    pass(seconds(3)).await;
    assert_eq!(reflected.asked(), ["list@0", "watch@10", "list@10"]);
    reflected.stop().await;
}

#[tokio::test(start_paused = true)]
async fn one_event_makes_a_watch_of_under_a_second_a_good_one() {
    let source = listed().answer_watch(ScriptedWatch::new().bookmark("15"));
    let reflected = reflect(&source);
    pass(seconds(3)).await;
    assert_eq!(reflected.asked(), ["list@0", "watch@10", "watch@15"]);
    reflected.stop().await;
}

// Errors.

#[tokio::test(start_paused = true)]
async fn an_error_event_closes_the_watch() {
    let source = listed().answer_watch(ScriptedWatch::new().wait(seconds(2)).error_event(internal()).hang());
    let reflected = reflect(&source);
    pass(seconds(1)).await;
    assert_eq!(source.open_watches(), 1);
    pass(Duration::from_millis(1500)).await;
    assert_eq!(source.open_watches(), 0);
    reflected.stop().await;
}

#[tokio::test(start_paused = true)]
async fn an_error_that_is_no_disconnect_lists_again_after_a_backoff() {
    let malformed = Error::new(ErrorKind::Malformed, "the answer is no JSON object");
    let source = listed().answer_watch(one("b", "11").wait(seconds(2)).error(malformed));
    let reflected = reflect(&source);
    pass(seconds(5)).await;
    assert_eq!(reflected.asked(), ["list@0", "watch@10", "list@11"]);
    assert_eq!(reflected.asked_at(), [0.0, 0.0, 2.8]);
    assert_eq!(reflected.status().relists, [(Reason::Other, 1)].into());
    reflected.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_watch_that_cannot_be_opened_comes_out_of_the_cycle() {
    let store = Recorder::new();
    let mut reflector = reflector(&listed().fail_watch(forbidden()), &store);
    let error = reflector.list_and_watch(&CancellationToken::new()).await.expect_err("forbidden");
    assert!(error.is_forbidden());
    assert_eq!(store.contents(), ["a@1"]);
}

#[tokio::test(start_paused = true)]
async fn a_410_to_a_watch_lists_again_after_a_backoff_wherever_it_comes() {
    let within = ScriptedWatch::new().bookmark("15").error_event(expired());
    for source in [listed().answer_watch(within), listed().fail_watch(expired())] {
        let reflected = reflect(&source);
        pass(seconds(2)).await;
        let asked = reflected.asked();
        assert!(asked[2] == "list@15" || asked[2] == "list@10", "{asked:?}");
        assert_eq!(reflected.asked_at(), [0.0, 0.0, 0.8]);
        assert_eq!(reflected.status().relists, [(Reason::Expired, 1)].into());
        reflected.stop().await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_429_to_a_watch_and_one_within_it_wait_once_each() {
    let source = listed()
        .fail_watch(overloaded())
        .answer_watch(ScriptedWatch::new().wait(seconds(2)).error_event(overloaded()))
        .answer_watch(ScriptedWatch::new().hang());
    let reflected = reflect(&source);
    pass(seconds(10)).await;
    assert_eq!(reflected.asked_at(), [0.0, 0.0, 1.0, 4.6], "0.8 s, below the second between watches, and 1.6 s");
    reflected.stop().await;
}

#[tokio::test(start_paused = true)]
async fn four_429s_are_five_watches_and_one_list() {
    let within = || ScriptedWatch::new().error_event(overloaded());
    let source = listed()
        .fail_watch(overloaded())
        .answer_watch(within())
        .fail_watch(overloaded())
        .answer_watch(within())
        .answer_watch(ScriptedWatch::new().hang());
    let reflected = reflect(&source);
    pass(seconds(30)).await;
    assert_eq!((source.lists().len(), source.watches().len()), (1, 5));
    assert_eq!(reflected.status().watch_restarts, [(Reason::TooManyRequests, 4)].into());
    reflected.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_429_within_a_stream_goes_on_from_the_last_version() {
    let source = listed().answer_watch(one("b", "11").error_event(overloaded()));
    let reflected = reflect(&source);
    pass(seconds(3)).await;
    assert_eq!(reflected.asked(), ["list@0", "watch@10", "watch@11"]);
    reflected.stop().await;
}

#[tokio::test(start_paused = true)]
async fn an_internal_error_lists_again_by_default() {
    let source = listed().answer_watch(ScriptedWatch::new().error_event(internal()));
    let reflected = reflect(&source);
    pass(seconds(2)).await;
    assert_eq!(reflected.asked(), ["list@0", "watch@10", "list@10"]);
    assert_eq!(reflected.status().relists, [(Reason::InternalError, 1)].into());
    reflected.stop().await;
}

#[tokio::test(start_paused = true)]
async fn internal_errors_are_watched_on_for_the_time_allowed() {
    let fails = || ScriptedWatch::new().wait(seconds(4)).error_event(internal());
    let source = (0..4).fold(listed(), |source, _| source.answer_watch(fails()));
    let reflected = reflect_with(&source, |reflector| reflector.max_internal_error_retry(seconds(10)));
    pass(seconds(20)).await;
    assert_eq!(reflected.asked(), ["list@0", "watch@10", "watch@10", "watch@10", "watch@10", "list@10"]);
    assert_eq!(reflected.asked_at(), [0.0, 0.0, 4.0, 8.0, 12.0, 16.8], "the first at 4 s, the last one 12 s later");
    assert_eq!(reflected.status().watch_restarts, [(Reason::InternalError, 3)].into());
    reflected.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_minute_without_internal_errors_allows_the_whole_time_again() {
    let fails = |after| ScriptedWatch::new().wait(seconds(after)).error_event(internal());
    let source = [4, 59, 4].into_iter().fold(listed(), |source, after| source.answer_watch(fails(after)));
    let reflected = reflect_with(&source, |reflector| reflector.max_internal_error_retry(seconds(10)));
    pass(seconds(70)).await;
    assert_eq!(source.lists().len(), 2, "59 s after the last one, the time since the first counts");
    reflected.stop().await;

    let source = [4, 60, 4].into_iter().fold(listed(), |source, after| source.answer_watch(fails(after)));
    let reflected = reflect_with(&source, |reflector| reflector.max_internal_error_retry(seconds(10)));
    pass(seconds(80)).await;
    assert_eq!(source.lists().len(), 1);
    reflected.stop().await;
}

#[tokio::test(start_paused = true)]
async fn other_outcomes_do_not_move_the_time_allowed_for_internal_errors() {
    let fails = |after| ScriptedWatch::new().wait(seconds(after)).error_event(internal());
    let source = listed()
        .answer_watch(fails(2))
        .answer_watch(ScriptedWatch::new().bookmark("11").wait(seconds(5)))
        .answer_watch(ScriptedWatch::new().wait(seconds(4)).error(cut()))
        .answer_watch(fails(2));
    let reflected = reflect_with(&source, |reflector| reflector.max_internal_error_retry(seconds(10)));
    pass(seconds(20)).await;
    assert_eq!(reflected.asked().last().map(String::as_str), Some("list@11"), "11 s after the first one");
    reflected.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_watch_that_fails_otherwise_is_followed_by_a_list_and_the_store_ends_up_right() {
    let source = listed()
        .answer_watch(one("b", "11").modified(pod("a", "12")).error_event(expired()))
        .answer_list(ScriptedList::new("30", [pod("b", "20"), pod("c", "21")]))
        .answer_watch(ScriptedWatch::new().deleted(pod("b", "31")).wait(seconds(2)).error_event(internal()))
        .fail_list(forbidden())
        .answer_list(ScriptedList::new("40", [pod("d", "39")]))
        .answer_watch(ScriptedWatch::new().hang());
    let reflected = reflect(&source);
    pass(Duration::from_millis(900)).await;
    assert_eq!(reflected.store.contents(), ["b@20", "c@21"]);
    pass(seconds(2)).await;
    assert_eq!(reflected.store.contents(), ["c@21"]);
    pass(seconds(20)).await;
    assert_eq!(reflected.store.contents(), ["d@39"]);
    assert_eq!(reflected.status().phase, Phase::Watching);
    reflected.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_refused_connection_between_two_watches_loses_nothing() {
    let source = listed()
        .answer_watch(one("b", "11").wait(seconds(3)))
        .fail_watch(Error::unreachable())
        .answer_watch(one("c", "12").hang());
    let reflected = reflect(&source);
    pass(seconds(10)).await;
    assert_eq!(reflected.asked(), ["list@0", "watch@10", "watch@11", "watch@11"]);
    assert_eq!(reflected.store.contents(), ["a@1", "b@11", "c@12"]);
    reflected.stop().await;
}

/// An API server that is told to stop ends its watches, and a moment later the connections that these came over.
#[tokio::test(start_paused = true)]
async fn a_server_that_ends_a_watch_and_then_hangs_up_is_not_asked_for_a_list() {
    let source = listed()
        .answer_watch(one("b", "11").wait(seconds(3)))
        .fail_watch(cut())
        .fail_watch(Error::unreachable())
        .answer_watch(one("c", "12").wait(seconds(3)))
        .fail_watch(cut())
        .answer_watch(one("d", "13").hang());
    let reflected = reflect(&source);
    pass(seconds(30)).await;
    let asked = ["list@0", "watch@10", "watch@11", "watch@11", "watch@11", "watch@12", "watch@12"];
    assert_eq!(reflected.asked(), asked);
    assert_eq!(reflected.asked_at()[..5], [0.0, 0.0, 3.0, 4.0, 5.6], "after a wait");
    assert_eq!(reflected.store.contents(), ["a@1", "b@11", "c@12", "d@13"]);
    reflected.stop().await;
}

/// Something in between may let lists pass, and no watch.
#[tokio::test(start_paused = true)]
async fn a_server_that_hangs_up_on_watch_after_watch_is_asked_for_a_list() {
    let source = listed()
        .answer_watch(one("b", "11").wait(seconds(3)))
        .fail_watch(cut())
        .fail_watch(cut())
        .answer_list(ScriptedList::new("20", [pod("a", "1")]))
        .fail_watch(cut())
        .answer_list(ScriptedList::new("30", [pod("a", "1")]));
    let reflected = reflect(&source);
    pass(seconds(30)).await;
    let asked = ["list@0", "watch@10", "watch@11", "watch@11", "list@11", "watch@20", "list@20", "watch@30"];
    assert_eq!(reflected.asked()[..asked.len()], asked);
    reflected.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_connection_that_fails_otherwise_lists_again() {
    let source = Scripted::new()
        .answer_list(ScriptedList::new("10", []))
        .fail_watch(Error::new(ErrorKind::Connect, "no such host"));
    let reflected = reflect(&source);
    pass(seconds(2)).await;
    assert_eq!(reflected.asked(), ["list@0", "watch@10", "list@10"]);
    reflected.stop().await;
}
