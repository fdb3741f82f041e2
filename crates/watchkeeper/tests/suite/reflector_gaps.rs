//! What the reflector says of the times in which it saw nothing.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use watchkeeper::{Gap, Reason, Scripted, ScriptedList, ScriptedWatch};

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

/// The gaps that the hook hears of within two minutes. The status has the same.
async fn gaps(source: Scripted) -> Vec<Gap> {
    let told: Arc<Mutex<Vec<Gap>>> = Arc::default();
    let reflected = reflect_with(&source, |reflector| {
        let told = told.clone();
        reflector.on_gap(move |gap| told.lock().expect("not poisoned").push(gap.clone()))
    });
    pass(Duration::from_secs(120)).await;
    let told = told.lock().expect("not poisoned").clone();
    let status = reflected.status();
    assert_eq!(status.gaps, told.len() as u64);
    assert_eq!(status.last_gap.map(|gap| gap.lasted), told.last().map(|gap| gap.lasted));
    reflected.stop().await;
    told
}
