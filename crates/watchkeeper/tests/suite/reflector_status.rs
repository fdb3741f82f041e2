//! What the status says at each stage, and what the log says.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::time::Instant;
use tracing::Level;
use watchkeeper::{
    Backoff, BadObject, Error, ErrorKind, Object, ObjectKey, Phase, Reason, Reflector, ReflectorStore, Replacement,
    Scripted, ScriptedList, ScriptedWatch, StatusReader, WatchEvent,
};

use crate::support::*;

// Phases.

#[tokio::test(start_paused = true)]
async fn the_phase_follows_the_work() {
    let source = Scripted::new()
        .fail_list(internal().with_retry_after(seconds(10)))
        .answer_list(ScriptedList::new("10", []).wait(seconds(10)))
        .answer_watch(ScriptedWatch::new().wait(seconds(10)).error_event(overloaded().with_retry_after(seconds(10))))
        .answer_watch(ScriptedWatch::new().wait(seconds(10)).error_event(expired().with_retry_after(seconds(10))))
        .answer_list(ScriptedList::new("20", []).wait(seconds(10)));
    let reflected = reflect(&source);
    assert_eq!(reflected.status().phase, Phase::New, "before the first poll");
    pass(seconds(5)).await;
    let mut phases = Vec::new();
    for _ in 0..8 {
        phases.push(reflected.status().phase);
        pass(seconds(10)).await;
    }
    use Phase::*;
    assert_eq!(phases, [BackingOff, Listing, Watching, BackingOff, Watching, BackingOff, Listing, Watching]);
    let status = reflected.status.clone();
    reflected.stop().await;
    assert_eq!(status.get().phase, Stopped);
}

#[tokio::test(start_paused = true)]
async fn a_watch_that_is_being_opened_counts_as_watching() {
    let source = listed().fail_watch(overloaded());
    let reflected = reflect(&source);
    pass(seconds(20)).await;
    assert_eq!(source.watches().len(), 2, "the second is not answered");
    assert_eq!(reflected.status().phase, Phase::Watching);
    reflected.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_streaming_list_counts_as_listing_and_then_as_watching() {
    let stream = ScriptedWatch::new().opens_after(seconds(10)).wait(seconds(10)).initial_events_end("10").hang();
    let source = Scripted::new()
        .with_streaming_lists()
        .fail_watch(overloaded().with_retry_after(seconds(10)))
        .answer_watch(stream);
    let reflected = reflect(&source);
    pass(seconds(5)).await;
    let mut phases = Vec::new();
    for _ in 0..4 {
        phases.push(reflected.status().phase);
        pass(seconds(10)).await;
    }
    assert_eq!(phases, [Phase::BackingOff, Phase::Listing, Phase::Listing, Phase::Watching]);
    reflected.stop().await;
}

// Sync.

/// A store that looks at the status while it is being filled.
#[derive(Default)]
struct Suspicious {
    status: Mutex<Option<StatusReader>>,
    synced_during_replace: Mutex<Vec<bool>>,
}

impl ReflectorStore for Suspicious {
    fn add(&self, _: Object) -> Result<(), Error> {
        Ok(())
    }
    fn update(&self, _: Object) -> Result<(), Error> {
        Ok(())
    }
    fn delete(&self, _: &ObjectKey, _: Option<Object>) -> Result<(), Error> {
        Ok(())
    }
    fn replace(&self, _: Replacement) -> Result<(), Error> {
        let status = self.status.lock().expect("not poisoned");
        let synced = status.as_ref().expect("set before the start").get().synced;
        self.synced_during_replace.lock().expect("not poisoned").push(synced);
        Ok(())
    }
}

#[tokio::test(start_paused = true)]
async fn synced_is_not_true_before_the_list_is_in_the_store() {
    let streaming = Scripted::new().with_streaming_lists();
    let streaming = streaming.answer_watch(ScriptedWatch::new().added(pod("a", "1")).initial_events_end("10").hang());
    for source in [listed(), streaming] {
        let store = Arc::new(Suspicious::default());
        let reflector = Reflector::new(source, store.clone());
        let status = reflector.status();
        *store.status.lock().expect("not poisoned") = Some(status.clone());
        let running = Running::start(reflector);
        pass(seconds(1)).await;
        assert_eq!(*store.synced_during_replace.lock().expect("not poisoned"), [false]);
        assert!(status.get().synced);
        running.stop().await;
    }
}

#[tokio::test(start_paused = true)]
async fn synced_stays_true_whatever_happens_afterwards() {
    let source = listed().answer_watch(ScriptedWatch::new().error_event(expired())).fail_list(forbidden());
    let reflected = reflect(&source);
    pass(seconds(20)).await;
    assert!(reflected.status().synced);
    reflected.stop().await;
}

// Contact, errors, counters.

#[tokio::test(start_paused = true)]
async fn last_contact_moves_with_all_that_the_server_sends_and_with_nothing_else() {
    let start = Instant::now();
    let source = Scripted::new()
        .fail_list(Error::unreachable())
        .answer_list(ScriptedList::new("10", [pod("a", "1")]).wait(seconds(5)).item(pod("b", "2")))
        .answer_watch(
            ScriptedWatch::new()
                .opens_after(seconds(5))
                .wait(seconds(5))
                .event(WatchEvent::Progress)
                .wait(seconds(5))
                .bookmark("15")
                .wait(seconds(5))
                .error(cut()),
        );
    let backoff = Backoff::new(seconds(5), seconds(5)).jitter(0.0);
    let reflected = reflect_with(&source, |reflector| reflector.backoff(backoff));
    pass(seconds(1)).await;
    let mut contacts = Vec::new();
    for _ in 0..8 {
        contacts.push(reflected.status().last_contact.map(|at| at.duration_since(start).as_secs()));
        pass(seconds(5)).await;
    }
    let expected = [None, Some(5), Some(10), Some(15), Some(20), Some(25), Some(25), Some(25)];
    assert_eq!(contacts, expected, "the list's first part, its item, the opening, bytes, a bookmark, and no more");
    reflected.stop().await;
}

#[tokio::test(start_paused = true)]
async fn the_last_error_is_kept_with_its_time() {
    let start = Instant::now();
    let source = listed()
        .answer_watch(ScriptedWatch::new().wait(seconds(5)).error_event(overloaded()))
        .answer_watch(ScriptedWatch::new().hang());
    let reflected = reflect(&source);
    pass(seconds(1)).await;
    assert!(reflected.status().last_error.is_none());
    pass(seconds(60)).await;
    let (error, at) = reflected.status().last_error.expect("an error");
    assert!(error.is_too_many_requests());
    assert_eq!(at.duration_since(start), seconds(5));
    reflected.stop().await;
}

#[tokio::test(start_paused = true)]
async fn restarts_and_relists_are_counted_by_reason() {
    let wait = || ScriptedWatch::new().wait(seconds(2));
    let source = Scripted::new()
        .fail_list(Error::unreachable())
        .fail_list(overloaded())
        .fail_list(cut())
        .answer_list(ScriptedList::new("10", []))
        .answer_watch(wait())
        .answer_watch(wait())
        .answer_watch(wait().error(cut()))
        .fail_watch(overloaded())
        .fail_watch(Error::unreachable())
        .answer_watch(wait().error_event(expired()))
        .answer_list(ScriptedList::new("20", []))
        .answer_watch(ScriptedWatch::new())
        .answer_list(ScriptedList::new("30", []))
        .fail_watch(forbidden())
        .fail_list(internal())
        .answer_list(ScriptedList::new("40", []))
        .answer_watch(ScriptedWatch::new().hang());
    let reflected = reflect(&source);
    pass(seconds(290)).await;
    let status = reflected.status();
    let restarts =
        [(Reason::Ended, 2), (Reason::Disconnected, 1), (Reason::TooManyRequests, 1), (Reason::Unreachable, 1)];
    assert_eq!(status.watch_restarts, restarts.into());
    let relists = [
        (Reason::Disconnected, 1),
        (Reason::TooManyRequests, 1),
        (Reason::Unreachable, 1),
        (Reason::InternalError, 1),
        (Reason::Expired, 1),
        (Reason::VeryShortWatch, 1),
        (Reason::Other, 1),
    ];
    assert_eq!(status.relists, relists.into());
    assert_eq!(status.phase, Phase::Watching);
    reflected.stop().await;
}

#[tokio::test(start_paused = true)]
async fn listed_objects_grow_with_the_list_and_begin_anew_with_the_next() {
    let source = Scripted::new()
        .answer_list(ScriptedList::new("10", [pod("a", "1")]).wait(seconds(10)).bad(bad("b", "2")).item(pod("c", "3")))
        .answer_watch(ScriptedWatch::new().added(pod("d", "11")).wait(seconds(10)).error_event(expired()))
        .answer_list(ScriptedList::new("20", []).wait(seconds(10)).item(pod("a", "1")));
    let reflected = reflect(&source);
    let mut counts = Vec::new();
    for _ in 0..4 {
        pass(seconds(8)).await;
        counts.push(reflected.status().listed_objects);
    }
    assert_eq!(counts, [1, 3, 0, 1]);
    reflected.stop().await;
}

#[tokio::test(start_paused = true)]
async fn events_and_the_version_are_shown_as_they_come() {
    let events = ScriptedWatch::new().added(pod("b", "11")).wait(seconds(2)).bookmark("12").hang();
    let reflected = reflect(&listed().answer_watch(events));
    pass(seconds(1)).await;
    let status = reflected.status();
    assert_eq!((status.events, status.resource_version.as_str()), (1, "11"));
    pass(seconds(2)).await;
    let status = reflected.status();
    assert_eq!((status.events, status.resource_version.as_str()), (2, "12"));
    reflected.stop().await;
}

// The log.

#[tokio::test(start_paused = true)]
async fn a_list_that_takes_more_than_ten_seconds_is_logged_with_its_steps() {
    let logs = Logs::capture();
    let slow = ScriptedList::new("10", [pod("a", "1")]).wait(seconds(11)).item(pod("b", "2"));
    let reflected = reflect(&Scripted::new().answer_list(slow));
    pass(seconds(12)).await;
    let lines = logs.lines(Level::WARN, "was slow");
    assert_eq!(lines.len(), 1);
    assert!(lines[0].contains("objects listed after 11s") && lines[0].contains("store replaced"), "{lines:?}");
    reflected.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_streaming_list_that_takes_more_than_ten_seconds_is_logged_with_its_steps() {
    let logs = Logs::capture();
    let slow = ScriptedWatch::new().opens_after(seconds(4)).wait(seconds(7)).initial_events_end("10").hang();
    let reflected = reflect(&Scripted::new().with_streaming_lists().answer_watch(slow));
    pass(seconds(12)).await;
    let lines = logs.lines(Level::WARN, "was slow");
    assert_eq!(lines.len(), 1);
    assert!(lines[0].contains("stream opened after 4s") && lines[0].contains("received after 7s"), "{lines:?}");
    reflected.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_list_of_ten_seconds_is_not_logged() {
    let logs = Logs::capture();
    let list = ScriptedList::new("10", []).wait(seconds(10));
    let reflected = reflect(&Scripted::new().answer_list(list));
    pass(seconds(12)).await;
    assert!(reflected.status().synced);
    assert!(logs.lines(Level::WARN, "").is_empty());
    reflected.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_list_that_fails_for_ever_is_one_warning() {
    let logs = Logs::capture();
    let source = (0..100).fold(Scripted::new(), |source, _| source.fail_list(forbidden()));
    let reflected = reflect(&source);
    pass(seconds(1800)).await;
    assert!(source.lists().len() > 50);
    assert_eq!(logs.lines(Level::WARN, "").len(), 1);
    reflected.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_list_that_is_never_answered_is_a_warning() {
    let logs = Logs::capture();
    let reflected = reflect(&Scripted::new());
    pass(seconds(1800)).await;
    assert_eq!(logs.lines(Level::WARN, "sent nothing for 30s").len(), 1);
    reflected.stop().await;
}

#[tokio::test(start_paused = true)]
async fn an_error_that_comes_back_after_a_recovery_is_a_warning_again() {
    let logs = Logs::capture();
    let source = Scripted::new()
        .fail_list(forbidden())
        .answer_list(ScriptedList::new("10", []))
        .answer_watch(ScriptedWatch::new().bookmark("11").error_event(expired()))
        .fail_list(forbidden())
        .fail_list(forbidden());
    let reflected = reflect(&source);
    pass(seconds(30)).await;
    assert_eq!(logs.lines(Level::WARN, "forbidden").len(), 2);
    reflected.stop().await;
}

#[tokio::test(start_paused = true)]
async fn what_belongs_to_the_day_is_no_warning() {
    let logs = Logs::capture();
    let wait = || ScriptedWatch::new().bookmark("11").wait(seconds(2));
    let source = listed()
        .answer_watch(wait())
        .answer_watch(wait().error(cut()))
        .answer_watch(wait().error_event(overloaded()))
        .answer_watch(wait().error_event(expired()))
        .answer_list(ScriptedList::new("20", []))
        .answer_watch(ScriptedWatch::new().hang());
    let reflected = reflect(&source);
    pass(seconds(60)).await;
    assert_eq!(reflected.status().phase, Phase::Watching);
    assert_eq!(logs.lines(Level::WARN, ""), Vec::<String>::new());
    reflected.stop().await;
}

#[tokio::test(start_paused = true)]
async fn an_object_that_is_bad_again_and_again_is_one_warning() {
    let logs = Logs::capture();
    let events = (11..20)
        .fold(ScriptedWatch::new(), |watch, version| watch.event(WatchEvent::Bad(bad("a", &version.to_string()))));
    let source = Scripted::new()
        .answer_list(ScriptedList::new("10", []).bad(bad("a", "1")))
        .answer_watch(events.error_event(expired()))
        .answer_list(ScriptedList::new("30", []).bad(bad("a", "29")));
    let reflected = reflect(&source);
    pass(seconds(10)).await;
    assert_eq!(reflected.store.calls().len(), 2);
    assert_eq!(logs.lines(Level::WARN, "last good state").len(), 1);
    reflected.stop().await;
}

#[tokio::test(start_paused = true)]
async fn events_that_are_passed_over_are_one_warning_for_each_sort() {
    let logs = Logs::capture();
    let events = (0..10).fold(ScriptedWatch::new(), |watch, _| {
        let other = BadObject { key: None, resource_version: "11".into(), problem: "it is of another kind" };
        watch.event(WatchEvent::WrongKind(other)).event(WatchEvent::Unknown("11".into()))
    });
    let reflected = reflect(&listed().answer_watch(events.hang()));
    pass(seconds(1)).await;
    assert_eq!((reflected.status().wrong_kind, reflected.status().unknown_events), (10, 10));
    assert_eq!(logs.lines(Level::WARN, "passed over").len(), 2);
    reflected.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_silent_watch_is_a_warning() {
    let logs = Logs::capture();
    let events = ScriptedWatch::new().bookmark("11").wait(seconds(60)).bookmark("12").hang();
    let reflected = reflect(&listed().answer_watch(events));
    pass(seconds(250)).await;
    assert_eq!(logs.lines(Level::WARN, "the watch is silent").len(), 1);
    reflected.stop().await;
}

#[tokio::test(start_paused = true)]
async fn two_kinds_of_errors_are_told_apart() {
    let logs = Logs::capture();
    let source = Scripted::new()
        .fail_list(forbidden())
        .fail_list(Error::new(ErrorKind::Connect, "no such host"))
        .fail_list(forbidden());
    let reflected = reflect(&source);
    pass(Duration::from_secs(20)).await;
    assert_eq!(logs.lines(Level::WARN, "will list again").len(), 3);
    reflected.stop().await;
}
