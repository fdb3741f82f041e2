//! Streaming lists that fail: starting over, waiting, and going back to pages.

use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use watchkeeper::{
    Error, ErrorKind, ListOptions, ListerWatcher, Listing, Reason, Scripted, ScriptedList, ScriptedWatch,
    StreamingLists, WatchEvent, WatchStream,
};

use crate::support::*;

fn streaming() -> Scripted {
    Scripted::new().with_streaming_lists()
}

fn whole() -> ScriptedWatch {
    ScriptedWatch::new().added(pod("a", "1")).initial_events_end("10")
}

/// A stream that shows `name`, and is cut after two seconds.
fn cut_off(name: &str) -> ScriptedWatch {
    ScriptedWatch::new().added(pod(name, "1")).wait(seconds(2)).error(cut())
}

fn pages() -> ScriptedList {
    ScriptedList::new("20", [pod("p", "20")])
}

// Starting over.

#[tokio::test(start_paused = true)]
async fn a_stream_that_ends_before_its_end_starts_over_with_nothing() {
    let ended = ScriptedWatch::new().added(pod("gone", "1")).wait(seconds(2));
    let source = streaming().answer_watch(ended).answer_watch(whole().hang());
    let reflected = reflect(&source);
    pass(seconds(5)).await;
    assert_eq!(reflected.asked(), ["stream@", "stream@"]);
    assert_eq!(reflected.store.calls(), ["replace [a@1]@10"], "what only the first one showed may be gone");
    assert_eq!(source.open_watches(), 1);
    reflected.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_stream_that_is_cut_before_its_end_starts_over_with_nothing_after_a_backoff() {
    let source = streaming().answer_watch(cut_off("gone")).answer_watch(whole().hang());
    let reflected = reflect(&source);
    pass(seconds(5)).await;
    assert_eq!(reflected.asked_at(), [0.0, 2.8]);
    assert_eq!(reflected.store.calls(), ["replace [a@1]@10"]);
    assert!(reflected.status().relists.is_empty(), "it is still the same cycle");
    reflected.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_stream_that_starts_over_keeps_the_version() {
    let source = streaming()
        .answer_watch(whole().wait(seconds(2)).error_event(expired()))
        .answer_watch(ScriptedWatch::new().modified(pod("a", "30")).bookmark("31").wait(seconds(2)).error(cut()));
    let reflected = reflect(&source);
    pass(seconds(10)).await;
    assert_eq!(reflected.asked(), ["stream@", "stream@10", "stream@10"]);
    reflected.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_stream_that_is_not_answered_for_30_s_starts_over() {
    let reflected = reflect(&streaming());
    pass(seconds(40)).await;
    assert_eq!(reflected.asked_at(), [0.0, 30.8]);
    reflected.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_stream_that_is_silent_for_30_s_starts_over() {
    let silent = ScriptedWatch::new().added(pod("gone", "1")).wait(seconds(29)).added(pod("b", "2")).hang();
    let source = streaming().answer_watch(silent).answer_watch(whole().hang());
    let reflected = reflect(&source);
    pass(seconds(65)).await;
    assert_eq!(reflected.asked_at(), [0.0, 59.8]);
    assert_eq!((reflected.store.contents(), source.open_watches()), (vec!["a@1".to_owned()], 1));
    reflected.stop().await;
}

#[tokio::test(start_paused = true)]
async fn bytes_keep_a_stream_alive() {
    let slow = (0..10).fold(ScriptedWatch::new(), |watch, _| watch.wait(seconds(20)).event(WatchEvent::Progress));
    let reflected = reflect(&streaming().answer_watch(slow.added(pod("a", "1")).initial_events_end("10").hang()));
    pass(seconds(210)).await;
    assert_eq!((reflected.asked().len(), reflected.store.contents()), (1, vec!["a@1".to_owned()]));
    reflected.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_stream_that_does_not_end_within_its_time_starts_over() {
    let endless = (1..100)
        .fold(ScriptedWatch::new(), |watch, version| watch.added(pod("a", &version.to_string())).wait(seconds(20)));
    let source = streaming().answer_watch(endless);
    let reflected = reflect(&source);
    pass(seconds(620)).await;
    let deadline = source.watches()[0].timeout.expect("a timeout").as_secs_f64() + 5.0;
    assert_eq!(reflected.asked_at()[..2], [0.0, deadline + 0.8]);
    reflected.stop().await;
}

// Waiting.

#[tokio::test(start_paused = true)]
async fn a_stream_that_is_put_off_is_asked_for_again_and_pages_are_not() {
    let source = streaming()
        .fail_watch(overloaded())
        .fail_watch(Error::unreachable())
        .answer_watch(ScriptedWatch::new().error_event(overloaded()))
        .fail_watch(overloaded())
        .answer_watch(whole().hang());
    let reflected = reflect(&source);
    pass(seconds(30)).await;
    assert_eq!(reflected.asked(), ["stream@"; 5]);
    assert_eq!(reflected.asked_at(), [0.0, 1.0, 2.6, 5.8, 12.2]);
    assert_eq!(reflected.store.contents(), ["a@1"]);
    reflected.stop().await;
}

// Pages for this cycle.

#[tokio::test(start_paused = true)]
async fn any_other_error_of_a_stream_pages_for_this_cycle() {
    let malformed = Error::new(ErrorKind::Malformed, "the answer is no JSON object");
    for error in [forbidden(), internal(), malformed, Error::api(404, "NotFound", "not found")] {
        let source = streaming()
            .fail_watch(error)
            .answer_list(pages())
            .answer_watch(ScriptedWatch::new().wait(seconds(2)).error_event(expired()))
            .answer_watch(whole().hang());
        let reflected = reflect(&source);
        pass(seconds(10)).await;
        assert_eq!(reflected.asked(), ["stream@", "list@0", "watch@20", "stream@20"], "and the next one streams again");
        reflected.stop().await;
    }
}

#[tokio::test(start_paused = true)]
async fn an_error_within_a_stream_pages_for_this_cycle() {
    let source = streaming()
        .answer_watch(ScriptedWatch::new().added(pod("gone", "1")).error_event(internal()).hang())
        .answer_list(pages());
    let reflected = reflect(&source);
    pass(seconds(3)).await;
    assert_eq!(reflected.asked(), ["stream@", "list@0", "watch@20"]);
    assert_eq!((reflected.store.contents(), source.open_watches()), (vec!["p@20".to_owned()], 0));
    reflected.stop().await;
}

#[tokio::test(start_paused = true)]
async fn the_error_of_a_stream_is_shown_though_the_pages_are_good() {
    let reflected = reflect(&streaming().fail_watch(forbidden()).answer_list(pages()));
    pass(seconds(3)).await;
    let status = reflected.status();
    assert!(status.last_error.is_some_and(|(error, _)| error.is_forbidden()));
    assert!(status.relists.is_empty(), "it is still the same cycle");
    reflected.stop().await;
}

// Pages for an hour.

/// What follows: a cycle that begins within the hour, one that begins after it, and a stream that is whole.
fn an_hour_of_cycles(source: Scripted) -> Scripted {
    let lasts = |time| ScriptedWatch::new().wait(seconds(time)).error_event(expired());
    source
        .answer_list(pages())
        .answer_watch(lasts(3000))
        .answer_list(pages())
        .answer_watch(lasts(700))
        .answer_watch(whole().hang())
}

#[tokio::test(start_paused = true)]
async fn a_server_that_does_not_know_streams_is_asked_for_pages_for_an_hour() {
    for error in
        [Error::api(400, "BadRequest", "unknown"), Error::api(422, "Invalid", "sendInitialEvents is forbidden")]
    {
        let source = an_hour_of_cycles(streaming().fail_watch(error));
        let reflected = reflect_with(&source, |reflector| reflector.min_watch_timeout(seconds(7200)));
        pass(seconds(4000)).await;
        assert_eq!(reflected.asked(), ["stream@", "list@0", "watch@20", "list@20", "watch@20", "stream@20"]);
        assert_eq!(reflected.asked_at()[1], 0.0, "the pages come at once");
        reflected.stop().await;
    }
}

#[tokio::test(start_paused = true)]
async fn two_streams_without_an_end_lead_to_pages_for_an_hour() {
    let source = an_hour_of_cycles(streaming().answer_watch(cut_off("gone")).answer_watch(cut_off("gone too")));
    let reflected = reflect_with(&source, |reflector| reflector.min_watch_timeout(seconds(7200)));
    pass(seconds(5)).await;
    assert_eq!(reflected.asked_at(), [0.0, 2.8, 4.8, 4.8], "the pages come at once");
    assert_eq!(reflected.store.calls(), ["replace [p@20]@20"]);
    pass(seconds(4000)).await;
    let asked = ["stream@", "stream@", "list@0", "watch@20", "list@20", "watch@20", "stream@20"];
    assert_eq!(reflected.asked(), asked, "and after an hour a stream is tried again");
    reflected.stop().await;
}

#[tokio::test(start_paused = true)]
async fn after_the_hour_a_stream_has_two_tries_again() {
    let source = streaming()
        .answer_watch(cut_off("gone"))
        .answer_watch(cut_off("gone too"))
        .answer_list(pages())
        .answer_watch(ScriptedWatch::new().wait(seconds(3700)).error_event(expired()))
        .answer_watch(cut_off("gone as well"))
        .answer_watch(whole().hang());
    let reflected = reflect_with(&source, |reflector| reflector.min_watch_timeout(seconds(7200)));
    pass(seconds(4000)).await;
    assert_eq!(reflected.asked(), ["stream@", "stream@", "list@0", "watch@20", "stream@20", "stream@20"]);
    assert_eq!(reflected.store.contents(), ["a@1"]);
    reflected.stop().await;
}

#[tokio::test(start_paused = true)]
async fn streams_without_an_end_count_only_in_a_row() {
    let source = streaming()
        .answer_watch(cut_off("gone"))
        .answer_watch(whole().wait(seconds(2)).error_event(expired()))
        .answer_watch(cut_off("gone too"))
        .answer_watch(whole().hang());
    let reflected = reflect(&source);
    pass(seconds(30)).await;
    assert_eq!(reflected.asked(), ["stream@", "stream@", "stream@10", "stream@10"]);
    reflected.stop().await;
}

/// A source with another's knowledge of streaming lists, as two `ListWatch`es of one server and kind have.
struct Sharing(Scripted, StreamingLists);

impl ListerWatcher for Sharing {
    fn list(&self, options: ListOptions) -> BoxFuture<'_, Result<Listing, Error>> {
        self.0.list(options)
    }
    fn watch(&self, options: ListOptions) -> BoxFuture<'_, Result<WatchStream, Error>> {
        self.0.watch(options)
    }
    fn description(&self) -> String {
        self.0.description()
    }
    fn streaming_lists(&self) -> Option<&StreamingLists> {
        Some(&self.1)
    }
}

#[tokio::test(start_paused = true)]
async fn what_one_reflector_learns_of_streams_its_clones_know() {
    let shared = StreamingLists::default();
    let first = Scripted::new().fail_watch(Error::api(422, "Invalid", "sendInitialEvents is forbidden"));
    let second = Scripted::new().answer_list(pages());
    let run = |source: &Scripted| {
        let sharing = Sharing(source.clone(), shared.clone());
        Running::start(watchkeeper::Reflector::new(Arc::new(sharing), Recorder::new()))
    };
    let one = run(&first);
    pass(seconds(1)).await;
    let two = run(&second);
    pass(seconds(1)).await;
    assert_eq!(asked(&first), ["stream@", "list@0"]);
    assert_eq!(asked(&second), ["list@0", "watch@20"]);
    assert!(!shared.are_allowed());
    one.stop().await;
    two.stop().await;
}

// Stopping.

#[tokio::test(start_paused = true)]
async fn cancelling_a_stream_before_its_end_closes_it_and_leaves_the_store_alone() {
    let source = streaming().answer_watch(ScriptedWatch::new().added(pod("a", "1")).hang());
    let reflected = reflect(&source);
    pass(seconds(5)).await;
    assert_eq!(source.open_watches(), 1);
    let store = reflected.store.clone();
    reflected.stop().await;
    assert!(store.calls().is_empty());
}

#[tokio::test(start_paused = true)]
async fn cancelling_ends_the_wait_between_two_streams() {
    let source = streaming().fail_watch(overloaded().with_retry_after(seconds(60)));
    let reflected = reflect(&source);
    pass(seconds(5)).await;
    let before = tokio::time::Instant::now();
    reflected.stop().await;
    assert_eq!(before.elapsed(), Duration::ZERO);
}

#[tokio::test(start_paused = true)]
async fn a_cycle_whose_stream_and_pages_fail_is_one_relist() {
    let source = streaming().fail_watch(forbidden()).fail_list(forbidden()).answer_watch(whole().hang());
    let reflected = reflect(&source);
    pass(seconds(5)).await;
    assert_eq!(reflected.asked(), ["stream@", "list@0", "stream@"]);
    assert_eq!(reflected.status().relists, [(Reason::Other, 1)].into());
    reflected.stop().await;
}

/// What is of another kind, and has no name, may stand where an object should: a proxy that sends Tables to those who asked
/// for objects shows none.
#[tokio::test(start_paused = true)]
async fn a_stream_of_what_nobody_asked_for_is_no_empty_list() {
    let table = r#"{"kind":"Table","apiVersion":"meta.k8s.io/v1","metadata":{"resourceVersion":"7"},"rows":[]}"#;
    let end = r#"{"kind":"Pod","apiVersion":"v1","metadata":{"resourceVersion":"10","annotations":{"k8s.io/initial-events-end":"true"}}}"#;
    let source = pods_in([event_json("ADDED", table) + &event_json("BOOKMARK", end)]);
    let mut reflector = watchkeeper::Reflector::new(source, Recorder::new());
    let token = tokio_util::sync::CancellationToken::new();
    let error = reflector.list_and_watch(&token).await.expect_err("it shows no pods");
    assert!(error.to_string().contains("so it deletes nothing"), "{error}");
    assert!(!reflector.status().get().synced);
}
