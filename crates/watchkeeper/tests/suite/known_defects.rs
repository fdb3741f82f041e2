//! Defects of kube-rs's watcher that this reflector must not have.

use std::collections::BTreeSet;

use watchkeeper::{Scripted, ScriptedList, ScriptedWatch};

use crate::support::*;

/// kube-rs 5.0, `StreamBackoff`: each attempt to list emits an `Init`, which resets the backoff, so that a list that fails
/// for ever is asked for every second or so (bitdriftlabs/pulse#52).
#[tokio::test(start_paused = true)]
async fn a_list_that_fails_for_ever_is_asked_for_ever_less_often() {
    let source = (0..1000).fold(Scripted::new(), |source, _| source.fail_list(internal()));
    let reflected = reflect(&source);
    pass(seconds(600)).await;
    let at = reflected.asked_at();
    let waits: Vec<f64> = at.windows(2).map(|pair| pair[1] - pair[0]).collect();
    assert!(waits.windows(2).all(|pair| pair[1] >= pair[0] - 0.001), "{waits:?}");
    assert!(at.len() < 30, "{} lists in ten minutes", at.len());
    reflected.stop().await;
}

/// The same, where every second request succeeds.
#[tokio::test(start_paused = true)]
async fn a_list_that_succeeds_does_not_reset_the_backoff_of_the_watch() {
    let source = (0..1000)
        .fold(Scripted::new(), |source, _| source.answer_list(ScriptedList::new("10", [])).fail_watch(forbidden()));
    let reflected = reflect(&source);
    pass(seconds(600)).await;
    assert!(reflected.asked().len() < 60, "{} requests in ten minutes", reflected.asked().len());
    reflected.stop().await;
}

/// kube-rs 5.0, `step_trampolined`: a watch whose start fails with 410 is started again at the same version for ever.
#[tokio::test(start_paused = true)]
async fn a_410_at_the_start_of_a_watch_leads_to_a_list_and_a_new_version() {
    let source = listed()
        .fail_watch(expired())
        .answer_list(ScriptedList::new("500", [pod("a", "400")]))
        .answer_watch(ScriptedWatch::new().hang());
    let reflected = reflect(&source);
    pass(seconds(600)).await;
    assert_eq!(reflected.asked()[..4], ["list@0", "watch@10", "list@10", "watch@500"]);
    assert_eq!(reflected.store.contents(), ["a@400"]);
    reflected.stop().await;
}

/// kube-rs 5.0: a watch that ends is started again at once; a server that ends each at once is asked in a hot loop.
#[tokio::test(start_paused = true)]
async fn a_server_that_ends_each_watch_at_once_is_not_asked_in_a_hot_loop() {
    let source = (0..2000).fold(Scripted::new(), |source, _| {
        source.answer_list(ScriptedList::new("10", [])).answer_watch(ScriptedWatch::new())
    });
    let reflected = reflect(&source);
    pass(seconds(600)).await;
    assert!(reflected.asked().len() < 60, "{} requests in ten minutes", reflected.asked().len());
    reflected.stop().await;
}

/// The same, where each watch delivers one event before it ends.
#[tokio::test(start_paused = true)]
async fn a_server_that_ends_each_watch_after_an_event_is_asked_once_a_second_at_most() {
    let source =
        (0..2000).fold(listed(), |source, _| source.answer_watch(ScriptedWatch::new().modified(pod("a", "11"))));
    let reflected = reflect(&source);
    pass(seconds(600)).await;
    let requests = reflected.asked().len();
    assert!((500..=602).contains(&requests), "{requests} requests in ten minutes");
    reflected.stop().await;
}

/// The same for streaming lists: kube-rs starts again at once when one ends before its bookmark.
#[tokio::test(start_paused = true)]
async fn a_server_that_ends_each_streaming_list_at_once_is_not_asked_in_a_hot_loop() {
    let source = (0..2000).fold(Scripted::new().with_streaming_lists(), |source, _| {
        source.fail_list(internal()).answer_watch(ScriptedWatch::new())
    });
    let reflected = reflect(&source);
    pass(seconds(600)).await;
    assert!(reflected.asked().len() < 60, "{} requests in ten minutes", reflected.asked().len());
    reflected.stop().await;
}

/// kube-rs 5.0 asks for 290 s each time, so that all watches that were opened together end together.
#[tokio::test(start_paused = true)]
async fn the_timeouts_of_watches_differ_and_lie_between_five_and_ten_minutes() {
    let source = (0..100).fold(listed(), |source, _| source.answer_watch(ScriptedWatch::new().wait(seconds(2))));
    let reflected = reflect(&source);
    pass(seconds(210)).await;
    let timeouts: BTreeSet<_> = source.watches().iter().map(|watch| watch.timeout.expect("a timeout")).collect();
    assert!(timeouts.len() > 50, "{timeouts:?}");
    assert!(timeouts.iter().all(|timeout| (seconds(300)..seconds(600)).contains(timeout)), "{timeouts:?}");
    reflected.stop().await;
}
