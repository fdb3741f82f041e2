//! What the reflector says of the times in which it saw nothing.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio_util::sync::CancellationToken;
use watchkeeper::{Error, ErrorKind, Gap, Reason, Scripted, ScriptedList, ScriptedWatch};

use crate::support::*;

#[tokio::test(start_paused = true)]
async fn a_watch_that_the_server_ends_leaves_a_gap_as_long_as_the_next_one_takes_to_open() {
    let source = listed()
        .answer_watch(ScriptedWatch::new().wait(seconds(5)))
        .answer_watch(ScriptedWatch::new().opens_after(seconds(3)).hang());
    let gaps = gaps(source).await;
    assert_eq!(gaps.len(), 1);
    assert_eq!((gaps[0].reasons.as_slice(), gaps[0].lasted, gaps[0].listed), (&[Reason::Ended][..], seconds(3), None));
    assert!(gaps[0].error.is_none(), "it is no error that a watch ends");
}

#[tokio::test(start_paused = true)]
async fn one_gap_has_all_its_reasons_in_their_order_and_what_the_list_showed() {
    let source = listed()
        .answer_watch(ScriptedWatch::new().wait(seconds(5)).error(cut()))
        .fail_watch(overloaded().with_retry_after(seconds(2)))
        .fail_watch(overloaded().with_retry_after(seconds(2)))
        .fail_watch(expired().with_retry_after(seconds(2)))
        .answer_list(ScriptedList::new("20", [pod("a", "12"), pod("b", "20")]).wait(seconds(4)))
        .answer_watch(ScriptedWatch::new().hang());
    let gaps = gaps(source).await;
    assert_eq!(gaps.len(), 1, "it is one gap, however many failures");
    let Gap { reasons, error, lasted, listed, .. } = &gaps[0];
    assert_eq!(reasons, &[Reason::Disconnected, Reason::TooManyRequests, Reason::Expired]);
    assert!(error.as_ref().is_some_and(|error| error.is_expired()));
    assert_eq!(*listed, Some(2));
    assert!(*lasted >= seconds(10) && *lasted < seconds(20), "{lasted:?}");
}

#[tokio::test(start_paused = true)]
async fn of_a_watch_that_fell_silent_the_gap_begins_with_the_last_that_was_heard() {
    let watch = ScriptedWatch::new().wait(seconds(7)).added(pod("a", "11")).hang();
    let source = listed().answer_watch(watch).answer_watch(ScriptedWatch::new().hang());
    let told: Arc<Mutex<Vec<Gap>>> = Arc::default();
    let reflected = reflect_with(&source, |reflector| {
        let told = told.clone();
        reflector.on_gap(move |gap| told.lock().expect("not poisoned").push(gap.clone()))
    });
    pass(seconds(700)).await;
    let told = told.lock().expect("not poisoned").clone();
    assert_eq!(told[0].reasons, [Reason::TimedOut]);
    assert!(told[0].lasted > seconds(290), "{:?}", told[0].lasted);
    reflected.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_first_list_that_takes_its_time_is_no_gap() {
    let source = Scripted::new()
        .fail_list(internal())
        .answer_list(ScriptedList::new("10", []).wait(seconds(2)))
        .fail_watch(overloaded())
        .answer_watch(ScriptedWatch::new().hang());
    assert!(gaps(source).await.is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_list_that_somebody_asked_for_is_a_gap_with_that_reason() {
    let source = listed()
        .answer_watch(ScriptedWatch::new().hang())
        .answer_list(ScriptedList::new("20", []).wait(seconds(3)))
        .answer_watch(ScriptedWatch::new().hang());
    let told: Arc<Mutex<Vec<Gap>>> = Arc::default();
    let mut relister = None;
    let reflected = reflect_with(&source, |reflector| {
        relister = Some(reflector.relister());
        let told = told.clone();
        reflector.on_gap(move |gap| told.lock().expect("not poisoned").push(gap.clone()))
    });
    pass(seconds(5)).await;
    relister.expect("it was made").relist();
    pass(seconds(5)).await;
    let status = reflected.status();
    assert_eq!(status.gaps, 1);
    let gap = status.last_gap.expect("there was one");
    assert_eq!((gap.reasons.as_slice(), gap.listed, gap.lasted), (&[Reason::Requested][..], Some(0), seconds(3)));
    assert_eq!(told.lock().expect("not poisoned").len(), 1);
    reflected.stop().await;
}

#[tokio::test(start_paused = true)]
async fn what_keeps_a_streaming_list_from_ending_is_among_the_reasons() {
    let stream = || ScriptedWatch::new().added(pod("a", "9")).initial_events_end("10");
    let source = Scripted::new()
        .with_streaming_lists()
        .answer_watch(stream().wait(seconds(5)).error_event(expired()))
        .fail_watch(overloaded())
        .answer_watch(ScriptedWatch::new().error(cut()))
        .answer_watch(stream().hang());
    let gaps = gaps(source).await;
    assert_eq!(gaps.len(), 1);
    assert_eq!(gaps[0].reasons, [Reason::Expired, Reason::TooManyRequests, Reason::Disconnected]);
    assert!(gaps[0].error.as_ref().is_some_and(|error| error.is_disconnect()), "{:?}", gaps[0].error);
    assert_eq!(gaps[0].listed, Some(1));
}

#[tokio::test(start_paused = true)]
async fn what_a_list_is_told_before_it_asks_for_no_version_is_among_the_reasons() {
    let source = listed()
        .answer_watch(ScriptedWatch::new().wait(seconds(5)).error_event(internal()))
        .fail_list(expired())
        .answer_list(ScriptedList::new("20", []))
        .answer_watch(ScriptedWatch::new().hang());
    let gaps = gaps(source).await;
    assert_eq!(gaps[0].reasons, [Reason::InternalError, Reason::Expired]);
}

#[tokio::test(start_paused = true)]
async fn a_streaming_list_shows_each_object_once_however_often_it_is_told() {
    let stream = || ScriptedWatch::new().added(pod("a", "9"));
    let changing = stream().added(pod("b", "8")).modified(pod("a", "11")).deleted(pod("b", "12"));
    let source = Scripted::new()
        .with_streaming_lists()
        .answer_watch(stream().initial_events_end("10").wait(seconds(5)).error_event(expired()))
        .answer_watch(changing.initial_events_end("12").hang());
    assert_eq!(gaps(source).await[0].listed, Some(1));
}

#[tokio::test(start_paused = true)]
async fn of_a_connection_that_died_the_gap_begins_with_the_last_that_was_heard() {
    let dead = Error::new(ErrorKind::Timeout, "no answer to a ping");
    let source = listed()
        .answer_watch(ScriptedWatch::new().added(pod("a", "11")).wait(seconds(50)).error(dead))
        .answer_watch(ScriptedWatch::new().hang());
    let gaps = gaps(source).await;
    assert_eq!((gaps[0].reasons.as_slice(), gaps[0].lasted), (&[Reason::Disconnected][..], seconds(50)));
}

#[tokio::test(start_paused = true)]
async fn of_a_silent_watch_whose_second_one_is_refused_the_gap_begins_with_the_last_that_was_heard() {
    let silent = ScriptedWatch::new().bookmark("11").wait(seconds(1)).bookmark("12").hang();
    let source = listed()
        .answer_watch(silent)
        .fail_watch(expired())
        .answer_list(ScriptedList::new("20", []))
        .answer_watch(ScriptedWatch::new().hang());
    let gaps = gaps_within(source, seconds(200)).await;
    assert_eq!(gaps[0].reasons, [Reason::Expired]);
    assert!(gaps[0].lasted >= seconds(150), "{:?}", gaps[0].lasted);
}

#[tokio::test(start_paused = true)]
async fn a_store_that_ends_the_watch_leaves_a_gap() {
    let source = listed()
        .answer_watch(ScriptedWatch::new().hang())
        .answer_list(ScriptedList::new("20", []))
        .answer_watch(ScriptedWatch::new().hang());
    let told: Arc<Mutex<Vec<Gap>>> = Arc::default();
    let reflected = reflect_with(&source, |reflector| {
        let told = told.clone();
        reflector.resync_period(seconds(5)).on_gap(move |gap| told.lock().expect("not poisoned").push(gap.clone()))
    });
    reflected.store.get().fail_resync = Some(Error::new(ErrorKind::Store, "no room"));
    pass(seconds(60)).await;
    let told = told.lock().expect("not poisoned").clone();
    assert_eq!(told.iter().map(|gap| gap.reasons.as_slice()).collect::<Vec<_>>(), [[Reason::Store]]);
    reflected.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_list_that_somebody_asked_for_before_the_first_watch_is_no_gap() {
    let source = listed()
        .fail_watch(overloaded().with_retry_after(seconds(30)))
        .answer_list(ScriptedList::new("20", []))
        .answer_watch(ScriptedWatch::new().hang());
    let mut relister = None;
    let reflected = reflect_with(&source, |reflector| {
        relister = Some(reflector.relister());
        reflector
    });
    pass(seconds(5)).await;
    relister.expect("it was made").relist();
    pass(seconds(60)).await;
    assert_eq!(reflected.source.lists().len(), 2);
    assert_eq!(reflected.status().gaps, 0);
    reflected.stop().await;
}

#[tokio::test(start_paused = true)]
async fn between_cycles_that_somebody_else_repeats_a_gap_has_its_reason_too() {
    let source = listed()
        .answer_watch(ScriptedWatch::new().wait(seconds(5)).error_event(expired()))
        .answer_list(ScriptedList::new("20", []))
        .answer_watch(ScriptedWatch::new().hang());
    let store = Recorder::new();
    let mut reflector = reflector(&source, &store);
    let token = CancellationToken::new();
    reflector.list_and_watch(&token).await.expect_err("the version is too old");
    let _ = tokio::time::timeout(seconds(20), reflector.list_and_watch(&token)).await;
    let gap = reflector.status().get().last_gap.expect("there was one");
    assert_eq!(gap.reasons, [Reason::Expired]);
    assert!(gap.error.is_some_and(|error| error.is_expired()));
}

/// The gaps that the hook hears of within two minutes. The status has the same.
async fn gaps(source: Scripted) -> Vec<Gap> {
    gaps_within(source, seconds(120)).await
}

async fn gaps_within(source: Scripted, time: Duration) -> Vec<Gap> {
    let told: Arc<Mutex<Vec<Gap>>> = Arc::default();
    let reflected = reflect_with(&source, |reflector| {
        let told = told.clone();
        reflector.on_gap(move |gap| told.lock().expect("not poisoned").push(gap.clone()))
    });
    pass(time).await;
    let told = told.lock().expect("not poisoned").clone();
    let status = reflected.status();
    assert_eq!(status.gaps, told.len() as u64);
    assert_eq!(status.last_gap.map(|gap| gap.lasted), told.last().map(|gap| gap.lasted));
    reflected.stop().await;
    told
}
