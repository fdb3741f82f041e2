//! How a reflector starts, repeats itself, waits and stops.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures::future::{self, BoxFuture};
use futures::stream;
use tokio_util::sync::CancellationToken;
use watchkeeper::{
    Backoff, Error, ListMetadata, ListOptions, ListerWatcher, Listing, Phase, Reason, Reflector, Scripted,
    ScriptedList, ScriptedWatch, WatchEvent, WatchStream,
};

use crate::support::*;

// Stopping.

#[tokio::test(start_paused = true)]
async fn cancelling_closes_the_open_watch_and_run_returns() {
    let source = listed().answer_watch(ScriptedWatch::new().hang());
    let reflected = reflect(&source);
    pass(seconds(1)).await;
    assert_eq!(source.open_watches(), 1);
    reflected.stop().await;
    assert_eq!(source.open_watches(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_token_that_is_cancelled_already_means_that_nothing_is_asked_for() {
    let source = listed();
    let token = CancellationToken::new();
    token.cancel();
    reflector(&source, &Recorder::new()).run(token).await;
    assert!(source.requests().is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_cycle_with_a_cancelled_token_is_no_error_and_asks_for_nothing() {
    let source = listed();
    let token = CancellationToken::new();
    token.cancel();
    assert!(reflector(&source, &Recorder::new()).list_and_watch(&token).await.is_ok());
    assert!(source.requests().is_empty());
}

#[tokio::test(start_paused = true)]
async fn cancelling_an_idle_watch_is_no_error_and_closes_it() {
    let source = listed().answer_watch(ScriptedWatch::new().hang());
    let token = CancellationToken::new();
    let mut reflector = reflector(&source, &Recorder::new());
    let cancel = async {
        pass(seconds(5)).await;
        token.cancel();
    };
    let (result, ()) = tokio::join!(reflector.list_and_watch(&token), cancel);
    assert!(result.is_ok(), "{result:?}");
    assert_eq!(source.open_watches(), 0);
}

#[tokio::test(start_paused = true)]
async fn cancelling_between_two_events_keeps_the_first_and_applies_no_other() {
    let events = ScriptedWatch::new().added(pod("b", "11")).wait(seconds(10)).added(pod("c", "12")).hang();
    let reflected = reflect(&listed().answer_watch(events));
    pass(seconds(5)).await;
    let store = reflected.store.clone();
    reflected.stop().await;
    pass(seconds(10)).await;
    assert_eq!(store.contents(), ["a@1", "b@11"]);
}

#[tokio::test(start_paused = true)]
async fn cancelling_is_not_told_to_the_hook() {
    let calls = Arc::new(AtomicUsize::new(0));
    let reflected = reflect_with(&listed().answer_watch(ScriptedWatch::new().hang()), counting(&calls));
    pass(seconds(1)).await;
    reflected.stop().await;
    assert_eq!(calls.load(SeqCst), 0);
}

#[tokio::test(start_paused = true)]
async fn cancelling_at_any_time_returns_at_once_and_leaves_no_open_watch() {
    for moment in (0..400).map(|step| Duration::from_millis(step * 97)) {
        let events = || ScriptedWatch::new().opens_after(Duration::from_millis(300)).added(pod("b", "11"));
        let source = Scripted::new()
            .with_streaming_lists()
            .answer_watch(events().wait(seconds(2)).error(cut()))
            .fail_watch(Error::unreachable())
            .fail_watch(forbidden())
            .answer_list(ScriptedList::new("10", [pod("a", "1")]).wait(seconds(3)).item(pod("b", "2")))
            .answer_watch(events().wait(seconds(2)))
            .fail_watch(overloaded())
            .answer_watch(events().wait(seconds(1)).error_event(expired()))
            .answer_watch(events().initial_events_end("20").bookmark("21").wait(seconds(1)).bookmark("22").hang());
        let reflected = reflect_with(&source, |reflector| reflector.resync_period(seconds(4)));
        pass(moment).await;
        let before = tokio::time::Instant::now();
        reflected.stop().await;
        assert_eq!(before.elapsed(), Duration::ZERO, "cancelled after {moment:?}");
    }
}

/// A source with a list of nothing, and a watch with an event ready at any time.
struct Endless;

impl ListerWatcher for Endless {
    fn list(&self, _: ListOptions) -> BoxFuture<'_, Result<Listing, Error>> {
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

#[tokio::test(start_paused = true)]
async fn a_watch_that_always_has_an_event_ready_can_be_cancelled() {
    let running = Running::start(Reflector::new(Endless, Recorder::new()));
    for _ in 0..100 {
        tokio::task::yield_now().await;
    }
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn dropping_a_reflector_that_never_ran_says_stopped() {
    let reflector = Reflector::new(Scripted::new(), Recorder::new());
    let status = reflector.status();
    assert_eq!(status.get().phase, Phase::New);
    drop(reflector);
    assert_eq!(status.get().phase, Phase::Stopped);
}

// Resync.

#[tokio::test(start_paused = true)]
async fn resync_comes_each_period_and_asks_the_server_for_nothing() {
    let source = listed().answer_watch(ScriptedWatch::new().hang());
    let reflected = reflect_with(&source, |reflector| reflector.resync_period(seconds(10)));
    pass(seconds(35)).await;
    assert_eq!(reflected.store.calls(), ["replace [a@1]@10", "resync", "resync", "resync"]);
    assert_eq!(reflected.asked(), ["list@0", "watch@10"]);
    reflected.stop().await;
}

#[tokio::test(start_paused = true)]
async fn resync_comes_in_order_with_the_changes() {
    let events = ScriptedWatch::new().wait(seconds(5)).added(pod("b", "11")).wait(seconds(10)).deleted(pod("b", "12"));
    let source = listed().answer_watch(events.hang());
    let reflected = reflect_with(&source, |reflector| reflector.resync_period(seconds(10)));
    pass(seconds(25)).await;
    let calls = ["replace [a@1]@10", "add shop/b@11", "resync", "delete shop/b@12", "resync"];
    assert_eq!(reflected.store.calls(), calls);
    reflected.stop().await;
}

#[tokio::test(start_paused = true)]
async fn no_resync_period_means_no_resync() {
    let reflected = reflect_with(&listed(), |reflector| reflector.resync_period(Duration::ZERO));
    pass(seconds(600)).await;
    assert_eq!(reflected.store.calls(), ["replace [a@1]@10"]);
    reflected.stop().await;
}

#[tokio::test(start_paused = true)]
async fn should_resync_decides_each_time() {
    let due = Arc::new(AtomicBool::new(false));
    let source = listed().answer_watch(ScriptedWatch::new().hang());
    let reflected = reflect_with(&source, |reflector| {
        let due = due.clone();
        reflector.resync_period(seconds(10)).should_resync(move || due.load(SeqCst))
    });
    pass(seconds(25)).await;
    assert_eq!(reflected.store.calls(), ["replace [a@1]@10"]);
    due.store(true, SeqCst);
    pass(seconds(10)).await;
    assert_eq!(reflected.store.calls(), ["replace [a@1]@10", "resync"]);
    reflected.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_resync_error_ends_the_cycle_closes_the_watch_and_lists_again() {
    let source = listed().answer_watch(ScriptedWatch::new().hang());
    let reflected = reflect_with(&source, |reflector| reflector.resync_period(seconds(10)));
    reflected.store.get().fail_resync = Some(Error::store("full"));
    pass(Duration::from_millis(10_500)).await;
    assert_eq!((source.open_watches(), reflected.status().phase), (0, Phase::BackingOff));
    pass(seconds(1)).await;
    assert_eq!(reflected.asked(), ["list@0", "watch@10", "list@10"]);
    assert_eq!(reflected.status().relists, [(Reason::Store, 1)].into());
    reflected.stop().await;
}

#[tokio::test(start_paused = true)]
async fn the_resync_period_begins_anew_with_each_cycle() {
    let source = listed()
        .answer_watch(ScriptedWatch::new().wait(seconds(8)).error_event(expired()))
        .answer_list(ScriptedList::new("20", []))
        .answer_watch(ScriptedWatch::new().hang());
    let reflected = reflect_with(&source, |reflector| reflector.resync_period(seconds(10)));
    pass(seconds(18)).await;
    assert_eq!(reflected.store.calls(), ["replace [a@1]@10", "replace []@20"]);
    pass(seconds(1)).await;
    assert_eq!(reflected.store.calls().last().map(String::as_str), Some("resync"));
    reflected.stop().await;
}

// Waiting.

#[tokio::test(start_paused = true)]
async fn refused_watches_wait_exponentially_then_flat_and_never_list() {
    let source = (0..8).fold(listed(), |source, _| source.fail_watch(Error::unreachable()));
    let reflected = reflect(&source);
    pass(seconds(300)).await;
    let at = [0.0, 0.0, 1.0, 2.6, 5.8, 12.2, 25.0, 50.6, 80.6, 110.6];
    assert_eq!(reflected.asked_at(), at, "0.8 s is rounded up to the second between two watches");
    assert_eq!(source.lists().len(), 1);
    assert_eq!(reflected.status().watch_restarts, [(Reason::Unreachable, 8)].into());
    reflected.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_backoff_of_ones_own_is_honoured() {
    let source = (0..5).fold(Scripted::new(), |source, _| source.fail_list(internal()));
    let backoff = Backoff::new(Duration::from_millis(10), Duration::from_millis(100)).jitter(0.0);
    let reflected = reflect_with(&source, |reflector| reflector.backoff(backoff));
    pass(seconds(1)).await;
    assert_eq!(reflected.asked_at(), [0.0, 0.01, 0.03, 0.07, 0.15, 0.25]);
    reflected.stop().await;
}

#[tokio::test(start_paused = true)]
async fn lists_and_watches_share_one_backoff() {
    let source = Scripted::new()
        .fail_list(internal())
        .answer_list(ScriptedList::new("10", []))
        .fail_watch(overloaded())
        .fail_watch(forbidden())
        .answer_list(ScriptedList::new("20", []));
    let reflected = reflect(&source);
    pass(seconds(30)).await;
    assert_eq!(reflected.asked(), ["list@0", "list@0", "watch@10", "watch@10", "list@10", "watch@20"]);
    assert_eq!(reflected.asked_at(), [0.0, 0.8, 0.8, 2.4, 5.6, 5.6], "0.8 s, then 1.6 s, then 3.2 s");
    reflected.stop().await;
}

#[tokio::test(start_paused = true)]
async fn two_minutes_without_a_failure_begin_the_backoff_anew() {
    let source = Scripted::new()
        .fail_list(internal())
        .fail_list(internal())
        .answer_list(ScriptedList::new("10", []))
        .answer_watch(ScriptedWatch::new().wait(seconds(121)).error_event(expired()))
        .answer_list(ScriptedList::new("20", []));
    let reflected = reflect(&source);
    pass(seconds(130)).await;
    assert_eq!(reflected.asked_at(), [0.0, 0.8, 2.4, 2.4, 124.2, 124.2]);
    reflected.stop().await;
}

#[tokio::test(start_paused = true)]
async fn waits_are_jittered_by_default_and_repeatable_with_a_seed() {
    let mut runs = Vec::new();
    for seed in [1, 1, 2] {
        let source = (0..3).fold(Scripted::new(), |source, _| source.fail_list(internal()));
        let reflected = reflect_with(&source, |reflector| reflector.backoff(Backoff::default().seed(seed)));
        pass(seconds(20)).await;
        runs.push(reflected.asked_at());
        reflected.stop().await;
    }
    assert_eq!(runs[0], runs[1]);
    assert_ne!(runs[0], runs[2]);
    assert!((0.8..1.6).contains(&runs[0][1]), "{runs:?}");
}

#[tokio::test(start_paused = true)]
async fn retry_after_is_waited_for() {
    let source = listed().fail_watch(overloaded().with_retry_after(seconds(20))).answer_watch(ScriptedWatch::new());
    let reflected = reflect(&source);
    pass(seconds(19)).await;
    assert_eq!(source.watches().len(), 1);
    pass(seconds(2)).await;
    assert_eq!(source.watches().len(), 2);
    reflected.stop().await;
}

#[tokio::test(start_paused = true)]
async fn retry_after_is_capped_at_a_minute() {
    let source = Scripted::new().fail_list(overloaded().with_retry_after(seconds(86_400)));
    let reflected = reflect(&source);
    pass(seconds(61)).await;
    assert_eq!(reflected.asked_at(), [0.0, 60.0]);
    reflected.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_retry_after_below_the_backoff_does_not_shorten_it() {
    let source = Scripted::new().fail_list(internal()).fail_list(overloaded().with_retry_after(seconds(1)));
    let reflected = reflect(&source);
    pass(seconds(10)).await;
    assert_eq!(reflected.asked_at(), [0.0, 0.8, 2.4]);
    reflected.stop().await;
}

// The hook.

#[tokio::test(start_paused = true)]
async fn the_hook_hears_of_a_failed_list_once() {
    assert_eq!(told(Scripted::new().fail_list(forbidden())).await, [Some(403)]);
}

#[tokio::test(start_paused = true)]
async fn the_hook_hears_of_a_watch_that_cannot_be_opened_once() {
    assert_eq!(told(listed().fail_watch(forbidden())).await, [Some(403)]);
}

#[tokio::test(start_paused = true)]
async fn the_hook_hears_of_an_error_within_a_stream_once() {
    let events = ScriptedWatch::new().added(pod("b", "11")).error_event(expired());
    assert_eq!(told(listed().answer_watch(events)).await, [Some(410)]);
}

#[tokio::test(start_paused = true)]
async fn the_hook_hears_of_a_very_short_watch() {
    assert_eq!(told(listed().answer_watch(ScriptedWatch::new())).await, [None]);
}

#[tokio::test(start_paused = true)]
async fn the_hook_hears_of_the_last_error_of_a_list_only() {
    let source = listed()
        .answer_watch(ScriptedWatch::new().wait(seconds(2)).error_event(internal()))
        .fail_list(expired())
        .fail_list(forbidden());
    assert_eq!(told(source).await, [Some(500), Some(403)], "the 410 was answered with a list at no version");
}

#[tokio::test(start_paused = true)]
async fn the_hook_hears_nothing_of_what_needs_no_list() {
    let source = listed()
        .fail_watch(overloaded())
        .fail_watch(Error::unreachable())
        .answer_watch(ScriptedWatch::new().wait(seconds(2)))
        .answer_watch(ScriptedWatch::new().wait(seconds(2)).error(cut()))
        .answer_watch(ScriptedWatch::new().wait(seconds(2)).error_event(overloaded()));
    assert!(told(source).await.is_empty());
}

/// The codes of the errors that the hook hears of in half a minute.
async fn told(source: Scripted) -> Vec<Option<u16>> {
    let errors: Arc<Mutex<Vec<Option<u16>>>> = Arc::default();
    let reflected = reflect_with(&source, |reflector| {
        let errors = errors.clone();
        reflector.on_watch_error(move |error| errors.lock().expect("not poisoned").push(error.code()))
    });
    pass(seconds(25)).await;
    reflected.stop().await;
    let errors = errors.lock().expect("not poisoned");
    errors.clone()
}

fn counting(calls: &Arc<AtomicUsize>) -> impl FnOnce(Reflector) -> Reflector {
    let calls = calls.clone();
    move |reflector| {
        reflector.on_watch_error(move |_| {
            calls.fetch_add(1, SeqCst);
        })
    }
}
