//! Lists that somebody asks for.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::time::Duration;

use futures::future::{self, BoxFuture};
use futures::stream;
use tokio_util::sync::CancellationToken;
use watchkeeper::{
    Error, ListMetadata, ListOptions, ListerWatcher, Listing, Phase, Reason, Reflector, Relister, Scripted,
    ScriptedList, ScriptedWatch, WatchEvent, WatchStream,
};

use crate::support::*;

fn millis(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

/// A reflector at work, and how to ask it for a list.
fn relisting(source: &Scripted) -> (Reflected, Relister) {
    relisting_with(source, |reflector| reflector)
}

fn relisting_with(source: &Scripted, options: impl FnOnce(Reflector) -> Reflector) -> (Reflected, Relister) {
    let mut relister = None;
    let reflected = reflect_with(source, |reflector| {
        relister = Some(reflector.relister());
        options(reflector)
    });
    (reflected, relister.expect("a relister"))
}

fn hanging() -> ScriptedWatch {
    ScriptedWatch::new().hang()
}

#[tokio::test(start_paused = true)]
async fn a_request_lists_at_no_version_and_watches_on_from_there() {
    let source =
        listed().answer_watch(hanging()).answer_list(ScriptedList::new("20", [pod("b", "15")])).answer_watch(hanging());
    let (reflected, relister) = relisting(&source);
    pass(seconds(5)).await;
    relister.relist();
    pass(seconds(1)).await;
    assert_eq!(reflected.asked(), ["list@0", "watch@10", "list@", "watch@20"]);
    assert_eq!(reflected.asked_at(), [0.0, 0.0, 5.0, 5.0]);
    assert_eq!(reflected.store.contents(), ["b@15"]);
    assert_eq!(source.open_watches(), 1, "the watch before was closed");
    reflected.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_requested_streaming_list_asks_for_no_version_either() {
    let source = Scripted::new()
        .with_streaming_lists()
        .answer_watch(ScriptedWatch::new().added(pod("a", "1")).initial_events_end("10").hang())
        .answer_watch(ScriptedWatch::new().added(pod("b", "15")).initial_events_end("20").hang());
    let (reflected, relister) = relisting(&source);
    pass(seconds(5)).await;
    relister.relist();
    pass(seconds(1)).await;
    assert_eq!(reflected.asked(), ["stream@", "stream@"], "a relist would else ask for version 10");
    assert_eq!(reflected.store.contents(), ["b@15"]);
    reflected.stop().await;
}

#[tokio::test(start_paused = true)]
async fn the_list_after_a_requested_one_asks_for_the_last_version_again() {
    let source = listed()
        .answer_watch(hanging())
        .answer_list(ScriptedList::new("20", []))
        .answer_watch(ScriptedWatch::new().wait(seconds(5)).error_event(expired()))
        .answer_list(ScriptedList::new("30", []));
    let (reflected, relister) = relisting(&source);
    pass(seconds(5)).await;
    relister.relist();
    pass(seconds(10)).await;
    assert_eq!(source.lists()[1..].iter().map(|list| list.resource_version.as_str()).collect::<Vec<_>>(), ["", "20"]);
    reflected.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_request_is_counted_and_is_no_error() {
    let logs = Logs::capture();
    let hooks = Arc::new(AtomicUsize::new(0));
    let source = listed().answer_watch(hanging()).answer_list(ScriptedList::new("20", [])).answer_watch(hanging());
    let (reflected, relister) = relisting_with(&source, |reflector| {
        let hooks = hooks.clone();
        reflector.on_watch_error(move |_| _ = hooks.fetch_add(1, SeqCst))
    });
    pass(seconds(5)).await;
    relister.relist();
    pass(seconds(1)).await;
    let status = reflected.status();
    assert_eq!(status.relists, [(Reason::Requested, 1)].into());
    assert_eq!(status.phase, Phase::Watching);
    assert!(status.last_error.is_none() && status.watch_restarts.is_empty());
    assert_eq!(hooks.load(SeqCst), 0);
    for level in [tracing::Level::WARN, tracing::Level::ERROR] {
        assert!(logs.lines(level, "").is_empty(), "{:?}", logs.lines(level, ""));
    }
    reflected.stop().await;
}

#[tokio::test(start_paused = true)]
async fn requests_merge_and_lead_to_one_list_a_second() {
    let mut source = listed().answer_watch(hanging());
    for version in ["20", "30", "40", "50", "60", "70"] {
        source = source.answer_list(ScriptedList::new(version, [])).answer_watch(hanging());
    }
    let (reflected, relister) = relisting(&source);
    pass(seconds(10)).await;
    for _ in 0..25 {
        relister.relist();
        relister.clone().relist();
        pass(millis(100)).await;
    }
    pass(seconds(10)).await;
    let lists: Vec<f64> = reflected
        .asked_at()
        .into_iter()
        .zip(reflected.asked())
        .filter(|(_, request)| request.starts_with("list"))
        .map(|(at, _)| at)
        .collect();
    assert_eq!(lists, [0.0, 10.0, 11.0, 12.0, 13.0]);
    assert_eq!(reflected.status().relists, [(Reason::Requested, 4)].into());
    reflected.stop().await;
}

#[tokio::test(start_paused = true)]
async fn the_watch_goes_on_until_the_second_is_over() {
    let source = listed()
        .answer_watch(ScriptedWatch::new().wait(millis(500)).added(pod("b", "11")).hang())
        .answer_list(ScriptedList::new("20", []));
    let (reflected, relister) = relisting(&source);
    pass(millis(100)).await;
    relister.relist();
    pass(millis(500)).await;
    assert_eq!(reflected.store.contents(), ["a@1", "b@11"]);
    assert_eq!(reflected.asked(), ["list@0", "watch@10"]);
    pass(millis(500)).await;
    assert_eq!(reflected.asked_at(), [0.0, 0.0, 1.0, 1.0]);
    reflected.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_request_while_a_list_is_read_leads_to_another_one_after_it() {
    let source = Scripted::new()
        .answer_list(ScriptedList::new("10", [pod("a", "1")]).wait(seconds(5)).item(pod("b", "2")))
        .answer_list(ScriptedList::new("20", [pod("c", "15")]))
        .answer_watch(hanging())
        .answer_watch(hanging());
    let (reflected, relister) = relisting(&source);
    pass(seconds(2)).await;
    relister.relist();
    pass(seconds(2)).await;
    assert_eq!(reflected.asked(), ["list@0"], "the list is read to its end");
    pass(seconds(2)).await;
    let (asked, at) = (reflected.asked(), reflected.asked_at());
    let lists: Vec<_> = asked.iter().zip(at).filter(|(request, _)| request.starts_with("list")).collect();
    assert_eq!(lists, [(&"list@0".to_owned(), 0.0), (&"list@".to_owned(), 5.0)]);
    assert_eq!(reflected.store.contents(), ["c@15"]);
    reflected.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_request_while_a_streaming_list_is_read_leads_to_another_one_after_it() {
    let source = Scripted::new()
        .with_streaming_lists()
        .answer_watch(ScriptedWatch::new().added(pod("a", "1")).wait(seconds(5)).initial_events_end("10").hang())
        .answer_watch(ScriptedWatch::new().initial_events_end("20").hang());
    let (reflected, relister) = relisting(&source);
    pass(seconds(2)).await;
    relister.relist();
    pass(seconds(2)).await;
    assert_eq!(reflected.asked(), ["stream@"], "the stream is read to its end");
    pass(seconds(2)).await;
    assert_eq!(reflected.asked_at(), [0.0, 5.0]);
    assert_eq!(reflected.status().relists, [(Reason::Requested, 1)].into());
    reflected.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_request_before_a_streaming_list_has_its_turn_is_served_by_it() {
    let end = |version| ScriptedWatch::new().initial_events_end(version);
    let source = Scripted::new()
        .with_streaming_lists()
        .answer_watch(end("10").wait(millis(200)).error_event(internal()))
        .answer_watch(end("20").hang())
        .answer_watch(end("30").hang());
    // The first stream's failure is at 0.2 s and its wait 0.1 s; the next may be opened at 1 s.
    let (reflected, relister) = relisting_with(&source, |reflector| {
        reflector.backoff(watchkeeper::Backoff::new(millis(100), millis(100)).jitter(0.0))
    });
    pass(millis(600)).await;
    assert_eq!(reflected.status().phase, Phase::Listing);
    relister.relist();
    pass(seconds(10)).await;
    assert_eq!(reflected.asked(), ["stream@", "stream@"]);
    assert_eq!(reflected.status().relists, [(Reason::InternalError, 1)].into());
    reflected.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_request_during_a_backoff_is_served_by_the_list_after_it() {
    let source = listed()
        .answer_watch(ScriptedWatch::new().wait(seconds(5)).error_event(expired()))
        .answer_list(ScriptedList::new("20", []))
        .answer_watch(hanging());
    let (reflected, relister) = relisting(&source);
    pass(millis(5400)).await;
    assert_eq!(reflected.status().phase, Phase::BackingOff);
    relister.relist();
    pass(seconds(10)).await;
    assert_eq!(reflected.asked(), ["list@0", "watch@10", "list@", "watch@20"]);
    assert_eq!(reflected.asked_at()[2], 5.8, "the backoff was waited for");
    assert_eq!(reflected.status().relists, [(Reason::Expired, 1)].into(), "it would have come in any case");
    reflected.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_request_while_a_watch_waits_after_a_429_does_not_cut_the_wait_short() {
    let source = listed()
        .fail_watch(overloaded().with_retry_after(seconds(20)))
        .answer_list(ScriptedList::new("20", []))
        .answer_watch(hanging());
    let (reflected, relister) = relisting(&source);
    pass(seconds(5)).await;
    relister.relist();
    pass(seconds(5)).await;
    assert_eq!(reflected.status().phase, Phase::BackingOff);
    pass(seconds(20)).await;
    assert_eq!(reflected.asked(), ["list@0", "watch@10", "list@", "watch@20"]);
    assert_eq!(reflected.asked_at()[2], 20.0);
    reflected.stop().await;
}

/// The second watch that was to be tried need not be any more.
#[tokio::test(start_paused = true)]
async fn a_watch_that_came_back_is_not_given_up_for_the_wait_of_the_one_that_was_tried_beside_it() {
    let silent = ScriptedWatch::new().bookmark("11").wait(seconds(60)).bookmark("12").wait(seconds(185));
    let source = listed()
        .answer_watch(silent.added(pod("b", "13")).hang())
        .fail_watch(overloaded().with_retry_after(seconds(60)))
        .answer_list(ScriptedList::new("20", []))
        .answer_watch(hanging());
    let (reflected, relister) = relisting(&source);
    pass(seconds(250)).await;
    assert_eq!((reflected.asked().len(), reflected.status().phase), (3, Phase::Watching));
    relister.relist();
    pass(seconds(5)).await;
    assert_eq!(reflected.asked(), ["list@0", "watch@10", "watch@12", "list@", "watch@20"]);
    assert_eq!(reflected.status().phase, Phase::Watching);
    reflected.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_request_before_the_start_is_served_by_the_first_list() {
    let source = listed().answer_watch(hanging());
    let (reflected, _) = relisting_with(&source, |reflector| {
        reflector.relister().relist();
        reflector
    });
    pass(seconds(10)).await;
    assert_eq!(reflected.asked(), ["list@", "watch@10"]);
    assert!(reflected.status().relists.is_empty(), "the first list is no relist");
    reflected.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_requested_list_that_fails_is_repeated_without_a_version() {
    let source = listed()
        .answer_watch(hanging())
        .fail_list(internal())
        .answer_list(ScriptedList::new("20", []))
        .answer_watch(hanging());
    let (reflected, relister) = relisting(&source);
    pass(seconds(5)).await;
    relister.relist();
    pass(seconds(5)).await;
    assert_eq!(reflected.asked(), ["list@0", "watch@10", "list@", "list@", "watch@20"]);
    assert_eq!(reflected.status().relists, [(Reason::Requested, 1), (Reason::InternalError, 1)].into());
    reflected.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_requested_list_that_the_store_refuses_is_repeated_without_a_version() {
    let source = listed()
        .answer_watch(hanging())
        .answer_list(ScriptedList::new("20", []))
        .answer_list(ScriptedList::new("30", []))
        .answer_watch(hanging());
    let (reflected, relister) = relisting(&source);
    pass(seconds(5)).await;
    reflected.store.get().fail_replace = Some(Error::store("full"));
    relister.relist();
    pass(seconds(5)).await;
    assert_eq!(reflected.asked(), ["list@0", "watch@10", "list@", "list@", "watch@30"]);
    reflected.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_watch_that_is_not_answered_does_not_hold_a_request_up() {
    let source = listed()
        .answer_watch(ScriptedWatch::new().opens_after(seconds(200)).hang())
        .answer_list(ScriptedList::new("20", []));
    let (reflected, relister) = relisting(&source);
    pass(seconds(5)).await;
    relister.relist();
    pass(seconds(1)).await;
    assert_eq!(reflected.asked()[2], "list@");
    reflected.stop().await;
}

/// A source whose watch has an event ready at any time.
#[derive(Clone, Default)]
struct Endless(Arc<AtomicUsize>);

impl ListerWatcher for Endless {
    fn list(&self, _: ListOptions) -> BoxFuture<'_, Result<Listing, Error>> {
        self.0.fetch_add(1, SeqCst);
        let metadata = ListMetadata { resource_version: "10".into(), ..ListMetadata::default() };
        Box::pin(future::ready(Ok(Listing::of(metadata, []))))
    }
    fn watch(&self, _: ListOptions) -> BoxFuture<'_, Result<WatchStream, Error>> {
        let events = stream::repeat_with(|| Ok(WatchEvent::Modified(pod("a", "11"))));
        Box::pin(future::ready(Ok(WatchStream::new(events))))
    }
    fn description(&self) -> String {
        "no end of objects".into()
    }
}

#[tokio::test]
async fn a_watch_that_always_has_an_event_does_not_hold_a_request_up() {
    let source = Endless::default();
    let reflector = Reflector::new(source.clone(), watchkeeper::Indexer::objects());
    let relister = reflector.relister();
    let running = Running::start(reflector);
    pass(millis(10)).await;
    relister.relist();
    let twice = async {
        while source.0.load(SeqCst) < 2 {
            pass(millis(10)).await;
        }
    };
    tokio::time::timeout(seconds(20), twice).await.expect("a second list");
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_cycle_serves_requests_without_ending() {
    let source = listed()
        .answer_watch(hanging())
        .answer_list(ScriptedList::new("20", []))
        .answer_watch(ScriptedWatch::new().wait(seconds(5)).error_event(forbidden()));
    let mut reflector = reflector(&source, &Recorder::new());
    let relister = reflector.relister();
    let ask = async {
        pass(seconds(5)).await;
        relister.relist();
    };
    let token = CancellationToken::new();
    let (result, ()) = tokio::join!(reflector.list_and_watch(&token), ask);
    assert!(result.expect_err("the failure after the requested list").is_forbidden());
    assert_eq!(asked(&source), ["list@0", "watch@10", "list@", "watch@20"]);
}

#[tokio::test(start_paused = true)]
async fn a_requested_list_that_is_cancelled_is_still_owed_to_the_next_cycle() {
    let source = listed()
        .answer_watch(hanging())
        .answer_list(ScriptedList::new("20", []).hang())
        .answer_list(ScriptedList::new("30", []))
        .answer_watch(hanging());
    let mut reflector = reflector(&source, &Recorder::new());
    let relister = reflector.relister();
    let first = CancellationToken::new();
    let ask_and_cancel = async {
        pass(seconds(5)).await;
        relister.relist();
        pass(seconds(5)).await;
        first.cancel();
    };
    let (result, ()) = tokio::join!(reflector.list_and_watch(&first), ask_and_cancel);
    assert!(result.is_ok());
    let second = CancellationToken::new();
    let cancel = async {
        pass(seconds(5)).await;
        second.cancel();
    };
    let (result, ()) = tokio::join!(reflector.list_and_watch(&second), cancel);
    assert!(result.is_ok());
    assert_eq!(asked(&source), ["list@0", "watch@10", "list@", "list@", "watch@30"]);
}

#[tokio::test(start_paused = true)]
async fn a_requested_list_that_can_delete_nothing_is_repeated_with_a_consistent_read() {
    let source = listed()
        .answer_watch(hanging())
        .answer_list(ScriptedList::new("20", []).bad(unreadable()))
        .answer_list(ScriptedList::new("30", []))
        .answer_watch(hanging());
    let (reflected, relister) = relisting(&source);
    pass(seconds(5)).await;
    relister.relist();
    pass(seconds(60)).await;
    assert_eq!(reflected.asked(), ["list@0", "watch@10", "list@", "list@", "watch@30"]);
    assert!(reflected.store.contents().is_empty());
    reflected.stop().await;
}

#[tokio::test(start_paused = true)]
async fn cancelling_around_requests_leaves_no_open_watch_at_any_time() {
    for moment in (0..120).map(|step| millis(step * 37)) {
        let mut source = Scripted::new().with_streaming_lists();
        for version in ["10", "20", "30", "40", "50", "60"] {
            let list = ScriptedWatch::new().opens_after(millis(50)).added(pod("a", "1")).wait(millis(300));
            source = source.answer_watch(list.initial_events_end(version).wait(millis(900)).error(cut()));
        }
        let (reflected, relister) = relisting(&source);
        let asks = tokio::spawn(async move {
            loop {
                relister.relist();
                pass(millis(171)).await;
            }
        });
        pass(moment).await;
        reflected.stop().await;
        asks.abort();
    }
}

#[tokio::test(start_paused = true)]
async fn a_request_to_a_reflector_that_has_stopped_does_nothing() {
    let source = listed().answer_watch(hanging());
    let (reflected, relister) = relisting(&source);
    pass(seconds(1)).await;
    reflected.stop().await;
    relister.relist();
    pass(seconds(10)).await;
    assert_eq!(asked(&source), ["list@0", "watch@10"]);
}
