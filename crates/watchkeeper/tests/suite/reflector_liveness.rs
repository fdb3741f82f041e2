//! Silence is not peace: deadlines, bookmarks that fail to come, and the second watch.

use std::time::Duration;

use watchkeeper::{Error, ErrorKind, Phase, Reason, Reflector, ScriptedWatch, WatchEvent};

use crate::support::*;

/// The deadline of the watch with this number, in seconds after it was asked for.
fn deadline(reflected: &Reflected, watch: usize) -> f64 {
    (reflected.source.watches()[watch].timeout.expect("a timeout") + seconds(5)).as_secs_f64()
}

/// A watch with bookmarks a minute apart, at 0 s and 60 s, at versions 11 and 12. It is suspicious 180 s after that.
fn with_bookmarks() -> ScriptedWatch {
    ScriptedWatch::new().bookmark("11").wait(seconds(60)).bookmark("12")
}

/// Two watches, and a third one that is silent.
fn race(first: ScriptedWatch, second: ScriptedWatch) -> watchkeeper::Scripted {
    listed().answer_watch(first).answer_watch(second).answer_watch(ScriptedWatch::new().hang())
}

/// With a seed that gives the first watch a day and the second one much less, which then ends before the first.
fn the_first_lasts_longer(reflector: Reflector) -> Reflector {
    let seed = (0..).find(|seed| {
        let mut random = fastrand::Rng::with_seed(*seed);
        random.f64() > random.f64() + 0.5
    });
    reflector.min_watch_timeout(seconds(86_400)).seed(seed.expect("there is one"))
}

// The last resort.

#[tokio::test(start_paused = true)]
async fn a_watch_that_is_not_answered_is_given_up_five_seconds_after_its_timeout() {
    let reflected = reflect(&listed());
    pass(seconds(610)).await;
    let deadline = deadline(&reflected, 0);
    assert_eq!(reflected.asked_at(), [0.0, 0.0, deadline]);
    assert_eq!(reflected.asked(), ["list@0", "watch@10", "watch@10"]);
    assert_eq!(reflected.status().watch_restarts, [(Reason::TimedOut, 1)].into());
    reflected.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_silent_watch_is_given_up_five_seconds_after_its_timeout() {
    let source = listed().answer_watch(ScriptedWatch::new().opens_after(seconds(100)).hang());
    let reflected = reflect(&source);
    pass(seconds(610)).await;
    let deadline = deadline(&reflected, 0);
    assert_eq!(reflected.asked_at(), [0.0, 0.0, deadline], "counted from the request, not from the answer");
    assert_eq!((source.open_watches(), source.lists().len()), (0, 1));
    assert_eq!(reflected.status().watch_restarts, [(Reason::TimedOut, 1)].into());
    reflected.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_watch_that_fell_silent_after_some_events_goes_on_from_the_last_of_them() {
    let events = ScriptedWatch::new().added(pod("b", "11")).wait(seconds(50)).modified(pod("b", "12")).hang();
    let reflected = reflect(&listed().answer_watch(events));
    pass(seconds(610)).await;
    let deadline = deadline(&reflected, 0);
    assert_eq!(reflected.asked_at(), [0.0, 0.0, deadline]);
    assert_eq!(reflected.asked(), ["list@0", "watch@10", "watch@12"]);
    reflected.stop().await;
}

#[tokio::test(start_paused = true)]
async fn events_do_not_prolong_a_watch() {
    let busy = (11..100)
        .fold(ScriptedWatch::new(), |watch, version| watch.modified(pod("a", &version.to_string())).wait(seconds(20)));
    let reflected = reflect(&listed().answer_watch(busy));
    pass(seconds(610)).await;
    let deadline = deadline(&reflected, 0);
    assert_eq!(reflected.asked_at(), [0.0, 0.0, deadline]);
    reflected.stop().await;
}

// When silence is suspicious.

#[tokio::test(start_paused = true)]
async fn silence_of_three_times_the_longest_gap_between_bookmarks_opens_a_second_watch() {
    let reflected = reflect(&listed().answer_watch(with_bookmarks().hang()));
    pass(seconds(239)).await;
    assert_eq!((reflected.status().phase, reflected.asked().len()), (Phase::Watching, 2));
    pass(seconds(2)).await;
    assert_eq!(reflected.status().phase, Phase::Stale);
    assert_eq!(reflected.asked(), ["list@0", "watch@10", "watch@12"]);
    assert_eq!(reflected.asked_at(), [0.0, 0.0, 240.0]);
    assert_eq!(reflected.source.open_watches(), 1, "the first stays open");
    reflected.stop().await;
}

#[tokio::test(start_paused = true)]
async fn silence_of_less_than_150_s_is_never_suspicious() {
    let events = ScriptedWatch::new().bookmark("11").wait(seconds(1)).bookmark("12").hang();
    let reflected = reflect(&listed().answer_watch(events));
    pass(seconds(200)).await;
    assert_eq!(reflected.asked_at(), [0.0, 0.0, 151.0]);
    reflected.stop().await;
}

#[tokio::test(start_paused = true)]
async fn the_longest_gap_counts_not_the_last() {
    let events = ScriptedWatch::new().bookmark("11").wait(seconds(70)).bookmark("12").wait(seconds(10)).bookmark("13");
    let reflected = reflect(&listed().answer_watch(events.hang()));
    pass(seconds(300)).await;
    assert_eq!(reflected.asked_at(), [0.0, 0.0, 80.0 + 210.0]);
    reflected.stop().await;
}

#[tokio::test(start_paused = true)]
async fn one_bookmark_is_no_promise() {
    let events = ScriptedWatch::new().bookmark("11").added(pod("b", "12")).modified(pod("b", "13")).hang();
    let reflected = reflect(&listed().answer_watch(events));
    pass(seconds(610)).await;
    assert_eq!(reflected.asked_at()[2], deadline(&reflected, 0), "only the last resort");
    reflected.stop().await;
}

#[tokio::test(start_paused = true)]
async fn whatever_comes_breaks_the_silence() {
    let events = with_bookmarks().wait(seconds(100)).event(WatchEvent::Progress).hang();
    let reflected = reflect(&listed().answer_watch(events));
    pass(seconds(300)).await;
    assert_eq!(reflected.asked().len(), 2);
    pass(seconds(41)).await;
    assert_eq!(reflected.asked_at()[2], f64::min(340.0, deadline(&reflected, 0)));
    reflected.stop().await;
}

// The two watches.

#[tokio::test(start_paused = true)]
async fn a_second_watch_that_delivers_first_is_kept_and_nothing_of_the_first_is_applied() {
    let first = with_bookmarks().wait(seconds(195)).added(pod("late", "13")).hang();
    let second = ScriptedWatch::new().wait(seconds(10)).added(pod("b", "13")).wait(seconds(60)).bookmark("14").hang();
    let reflected = reflect(&race(first, second));
    pass(seconds(249)).await;
    assert_eq!((reflected.source.open_watches(), reflected.status().phase), (2, Phase::Stale));
    pass(seconds(2)).await;
    assert_eq!((reflected.source.open_watches(), reflected.status().phase), (1, Phase::Watching));
    pass(seconds(70)).await;
    assert_eq!(reflected.store.contents(), ["a@1", "b@13"]);
    let status = reflected.status();
    assert_eq!((status.resource_version.as_str(), status.watch_restarts), ("14", [(Reason::Stale, 1)].into()));
    assert_eq!(reflected.asked(), ["list@0", "watch@10", "watch@12"]);
    reflected.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_first_watch_that_delivers_first_is_kept_and_nothing_of_the_second_is_applied() {
    let first = with_bookmarks().wait(seconds(185)).added(pod("b", "13")).wait(seconds(20)).bookmark("14").hang();
    let second = ScriptedWatch::new().wait(seconds(10)).added(pod("late", "13")).hang();
    let reflected = reflect(&race(first, second));
    pass(seconds(246)).await;
    assert_eq!((reflected.source.open_watches(), reflected.status().phase), (1, Phase::Watching));
    pass(seconds(30)).await;
    assert_eq!(reflected.store.contents(), ["a@1", "b@13"]);
    let status = reflected.status();
    assert_eq!((status.resource_version.as_str(), status.watch_restarts.len()), ("14", 0));
    reflected.stop().await;
}

#[tokio::test(start_paused = true)]
async fn bytes_that_are_no_whole_event_are_no_delivery_of_the_second_watch() {
    let second = ScriptedWatch::new().event(WatchEvent::Progress).wait(seconds(20)).bookmark("13").hang();
    let reflected = reflect(&race(with_bookmarks().hang(), second));
    pass(seconds(250)).await;
    assert_eq!((reflected.source.open_watches(), reflected.status().phase), (2, Phase::Stale));
    pass(seconds(11)).await;
    assert_eq!((reflected.source.open_watches(), reflected.status().phase), (1, Phase::Watching));
    reflected.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_410_to_the_second_watch_closes_both_and_lists_again() {
    let within = race(with_bookmarks().hang(), ScriptedWatch::new().error_event(expired()));
    let at_once = listed().answer_watch(with_bookmarks().hang()).fail_watch(expired());
    for source in [within, at_once] {
        let reflected = reflect(&source);
        pass(Duration::from_millis(240_500)).await;
        assert_eq!((source.open_watches(), reflected.status().phase), (0, Phase::BackingOff));
        pass(seconds(1)).await;
        assert_eq!(reflected.asked(), ["list@0", "watch@10", "watch@12", "list@12"]);
        let status = reflected.status();
        assert_eq!((status.relists, status.watch_restarts), ([(Reason::Expired, 1)].into(), [].into()));
        reflected.stop().await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_second_watch_that_is_put_off_is_tried_again_after_a_backoff_beside_the_first() {
    let within = || ScriptedWatch::new().error_event(overloaded());
    let source = listed()
        .answer_watch(with_bookmarks().hang())
        .fail_watch(overloaded())
        .fail_watch(Error::unreachable())
        .fail_watch(Error::new(ErrorKind::Connect, "no such host"))
        .answer_watch(within())
        .answer_watch(ScriptedWatch::new().added(pod("b", "13")).hang());
    let reflected = reflect(&source);
    pass(seconds(250)).await;
    assert_eq!((source.open_watches(), reflected.status().phase), (1, Phase::Stale));
    pass(seconds(10)).await;
    assert_eq!(reflected.asked_at()[2..], [240.0, 241.0, 242.6, 245.8, 252.2]);
    assert_eq!((source.open_watches(), reflected.status().phase), (1, Phase::Watching));
    assert_eq!(reflected.store.contents(), ["a@1", "b@13"]);
    assert_eq!(source.lists().len(), 1);
    reflected.stop().await;
}

#[tokio::test(start_paused = true)]
async fn the_first_watch_can_deliver_while_the_second_is_put_off() {
    let source = listed()
        .answer_watch(with_bookmarks().wait(seconds(190)).added(pod("b", "13")).hang())
        .fail_watch(overloaded().with_retry_after(seconds(30)));
    let reflected = reflect(&source);
    pass(seconds(300)).await;
    assert_eq!((source.open_watches(), reflected.status().phase), (1, Phase::Watching));
    assert_eq!(reflected.store.contents(), ["a@1", "b@13"]);
    assert_eq!(reflected.asked().len(), 3);
    reflected.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_second_watch_that_ends_empty_is_tried_again_after_a_backoff_beside_the_first() {
    let source = listed()
        .answer_watch(with_bookmarks().hang())
        .answer_watch(ScriptedWatch::new())
        .answer_watch(ScriptedWatch::new().wait(seconds(3)).error(cut()))
        .answer_watch(ScriptedWatch::new().bookmark("13").hang());
    let reflected = reflect(&source);
    pass(Duration::from_millis(240_500)).await;
    assert_eq!((source.open_watches(), reflected.status().phase), (1, Phase::Stale));
    pass(seconds(10)).await;
    assert_eq!(reflected.asked_at()[2..], [240.0, 241.0, 245.6]);
    assert_eq!((source.open_watches(), reflected.status().phase), (1, Phase::Watching));
    assert_eq!(source.lists().len(), 1);
    reflected.stop().await;
}

#[tokio::test(start_paused = true)]
async fn two_silent_watches_end_with_the_firsts_deadline_and_both_are_closed() {
    let source = race(with_bookmarks().hang(), ScriptedWatch::new().hang());
    let reflected = reflect(&source);
    let deadline = {
        pass(seconds(1)).await;
        deadline(&reflected, 0)
    };
    pass(Duration::from_secs_f64(deadline - 2.0)).await;
    assert_eq!((source.open_watches(), reflected.status().phase), (2, Phase::Stale));
    pass(seconds(2)).await;
    assert_eq!((source.open_watches(), reflected.status().phase), (1, Phase::Watching));
    assert_eq!(reflected.asked(), ["list@0", "watch@10", "watch@12", "watch@12"]);
    assert_eq!(reflected.status().watch_restarts, [(Reason::TimedOut, 1)].into());
    reflected.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_second_watch_that_outlives_its_own_time_is_tried_again_beside_the_first() {
    let events = ScriptedWatch::new().bookmark("11").wait(seconds(1)).bookmark("12").hang();
    let source = race(events, ScriptedWatch::new().hang());
    let reflected = reflect_with(&source, the_first_lasts_longer);
    pass(seconds(160)).await;
    let second_deadline = deadline(&reflected, 1);
    pass(Duration::from_secs_f64(second_deadline)).await;
    assert_eq!(reflected.asked(), ["list@0", "watch@10", "watch@12", "watch@12"]);
    assert_eq!((reflected.source.open_watches(), reflected.status().phase), (2, Phase::Stale));
    reflected.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_second_watch_that_is_not_answered_within_its_own_time_is_tried_again_beside_the_first() {
    let events = ScriptedWatch::new().bookmark("11").wait(seconds(1)).bookmark("12").hang();
    let source = listed().answer_watch(events).answer_watch(ScriptedWatch::new().opens_after(seconds(1_000_000)));
    let reflected = reflect_with(&source, the_first_lasts_longer);
    pass(seconds(160)).await;
    let second_deadline = deadline(&reflected, 1);
    pass(Duration::from_secs_f64(second_deadline)).await;
    assert_eq!(reflected.asked(), ["list@0", "watch@10", "watch@12", "watch@12"]);
    assert_eq!((reflected.source.open_watches(), reflected.status().phase), (1, Phase::Stale));
    reflected.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_first_watch_that_ends_beside_the_second_is_opened_again() {
    let source = race(with_bookmarks().wait(seconds(200)), ScriptedWatch::new().hang());
    let reflected = reflect(&source);
    pass(seconds(261)).await;
    assert_eq!((source.open_watches(), reflected.status().phase), (1, Phase::Watching));
    assert_eq!(reflected.asked_at()[2..], [240.0, 260.0]);
    assert_eq!(reflected.status().watch_restarts, [(Reason::Ended, 1)].into());
    reflected.stop().await;
}

#[tokio::test(start_paused = true)]
async fn the_watch_that_was_kept_must_show_bookmarks_of_its_own_before_it_is_suspicious() {
    let second = ScriptedWatch::new().added(pod("b", "13")).hang();
    let reflected = reflect(&race(with_bookmarks().hang(), second));
    pass(seconds(540)).await;
    assert_eq!((reflected.status().phase, reflected.asked().len()), (Phase::Watching, 3));
    reflected.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_watch_can_be_suspicious_twice() {
    let events = with_bookmarks().wait(seconds(185)).added(pod("b", "13")).hang();
    let source = listed().answer_watch(events);
    let reflected = reflect_with(&source, |reflector| reflector.min_watch_timeout(seconds(1000)));
    pass(seconds(430)).await;
    assert_eq!(reflected.asked_at(), [0.0, 0.0, 240.0, 245.0 + 180.0]);
    assert_eq!(reflected.status().phase, Phase::Stale);
    reflected.stop().await;
}

#[tokio::test(start_paused = true)]
async fn cancelling_beside_a_second_watch_closes_both() {
    let source = race(with_bookmarks().hang(), ScriptedWatch::new().hang());
    let reflected = reflect(&source);
    pass(seconds(250)).await;
    assert_eq!(source.open_watches(), 2);
    reflected.stop().await;
    assert_eq!(source.open_watches(), 0);
}
