//! What a reflector tells of its lists and watches.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use watchkeeper::metrics::{InformerMetrics, ListOutcome, NoMetrics};
use watchkeeper::{Error, ErrorKind, Reflector, Scripted, ScriptedList, ScriptedWatch};

use crate::support::*;

/// Remembers what it is told: `list 2 success 0s` and `watch 3 5s`, with the number of objects or events.
#[derive(Default)]
struct Told(Mutex<Vec<String>>);

impl Told {
    fn all(&self) -> Vec<String> {
        self.0.lock().expect("not poisoned").clone()
    }

    fn tell(&self, text: String) {
        self.0.lock().expect("not poisoned").push(text);
    }
}

impl InformerMetrics for Told {
    fn listed(&self, took: Duration, items: u64, outcome: ListOutcome) {
        self.tell(format!("list {items} {outcome} {took:?}"));
    }

    fn watched(&self, took: Duration, events: u64, short: bool) {
        let short = if short { " short" } else { "" };
        self.tell(format!("watch {events} {took:?}{short}"));
    }
}

fn measured(source: &Scripted) -> (Reflected, Arc<Told>) {
    measured_with(source, |reflector| reflector)
}

fn measured_with(source: &Scripted, options: impl FnOnce(Reflector) -> Reflector) -> (Reflected, Arc<Told>) {
    let told = Arc::<Told>::default();
    (reflect_with(source, |reflector| options(reflector.metrics(told.clone()))), told)
}

#[tokio::test(start_paused = true)]
async fn a_list_is_told_with_its_time_and_its_objects() {
    let source = Scripted::new().answer_list(
        ScriptedList::new("10", [pod("a", "1"), pod("b", "2")]).wait(seconds(3)).item(pod("c", "3")).bad(bad("d", "4")),
    );
    let (reflected, told) = measured(&source);
    pass(seconds(2)).await;
    assert!(told.all().is_empty(), "not before its end");
    pass(seconds(2)).await;
    assert_eq!(told.all(), ["list 4 success 3s"]);
    reflected.stop().await;
}

#[tokio::test(start_paused = true)]
async fn pages_are_one_list() {
    let source = Scripted::new()
        .answer_list(ScriptedList::new("10", [pod("a", "1")]).continues("more"))
        .answer_list(ScriptedList::new("10", [pod("b", "2")]).wait(seconds(1)));
    let (reflected, told) = measured(&source);
    pass(seconds(2)).await;
    assert_eq!(told.all(), ["list 2 success 1s"]);
    reflected.stop().await;
}

#[tokio::test(start_paused = true)]
async fn each_way_in_which_a_list_fails_is_told_apart() {
    let too_large = Error::api(504, "Timeout", "Too large resource version: 7, current: 5");
    for (error, outcome) in [
        (Error::api(401, "Unauthorized", ""), "unauthorized"),
        (forbidden(), "forbidden"),
        (Error::api(404, "NotFound", ""), "not-found"),
        (overloaded(), "too-many-requests"),
        (Error::unreachable(), "unreachable"),
        (cut(), "disconnected"),
        (Error::new(ErrorKind::Timeout, "silence"), "disconnected"),
        (internal(), "internal-error"),
        (Error::api(503, "ServiceUnavailable", ""), "other"),
        (Error::new(ErrorKind::Malformed, "a page of HTML"), "other"),
        (expired(), "expired"),
        (too_large, "expired"),
    ] {
        let (reflected, told) = measured(&Scripted::new().fail_list(error));
        pass(Duration::from_millis(500)).await;
        assert_eq!(told.all(), [format!("list 0 {outcome} 0ns")]);
        reflected.stop().await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_list_that_breaks_off_is_told_with_what_had_come() {
    let list = ScriptedList::new("10", [pod("a", "1"), pod("b", "2")]).wait(seconds(2)).error(cut());
    let (reflected, told) = measured(&Scripted::new().answer_list(list));
    pass(Duration::from_millis(2500)).await;
    assert_eq!(told.all(), ["list 2 disconnected 2s"]);
    reflected.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_list_that_is_repeated_without_a_version_is_two() {
    let source = listed()
        .answer_watch(ScriptedWatch::new().wait(seconds(1)).error_event(expired()))
        .fail_list(expired())
        .answer_list(ScriptedList::new("30", []));
    let (reflected, told) = measured(&source);
    pass(seconds(3)).await;
    assert_eq!(told.all()[2..], ["list 0 expired 0ns", "list 0 success 0ns"]);
    reflected.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_list_that_the_store_refuses_or_that_cannot_be_told_apart_is_no_success() {
    let source = Scripted::new()
        .answer_list(ScriptedList::new("10", [pod("a", "1")]))
        .answer_list(ScriptedList::new("10", [pod("a", "1")]).bad(unreadable()));
    let told = Arc::<Told>::default();
    let store = Recorder::new();
    store.get().fail_replace = Some(Error::store("full"));
    let running = Running::start(reflector(&source, &store).metrics(told.clone()));
    pass(seconds(2)).await;
    assert_eq!(told.all(), ["list 1 store 0ns", "list 2 unreadable-object 0ns"]);
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_streaming_list_is_a_list_and_then_a_watch() {
    let stream = ScriptedWatch::new().added(pod("a", "1")).added(pod("b", "2")).wait(seconds(2));
    let stream = stream.initial_events_end("10").added(pod("c", "11")).wait(seconds(3));
    let (reflected, told) = measured(&Scripted::new().with_streaming_lists().answer_watch(stream));
    pass(seconds(3)).await;
    assert_eq!(told.all(), ["list 2 success 2s"]);
    pass(seconds(3)).await;
    assert_eq!(told.all()[1..], ["watch 2 5s"], "an event, and the bookmark that ends the list");
    reflected.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_streaming_list_that_fails_is_a_list_and_no_watch() {
    let source = Scripted::new()
        .with_streaming_lists()
        .answer_watch(ScriptedWatch::new().added(pod("a", "1")).wait(seconds(2)).error(cut()))
        .fail_watch(forbidden())
        .answer_list(ScriptedList::new("10", []));
    let (reflected, told) = measured(&source);
    pass(seconds(5)).await;
    assert_eq!(told.all(), ["list 1 disconnected 2s", "list 0 forbidden 0ns", "list 0 success 0ns"]);
    reflected.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_watch_is_told_at_its_end_with_its_time_and_its_events() {
    let events = ScriptedWatch::new().added(pod("b", "11")).bookmark("12").wait(seconds(5));
    let (reflected, told) = measured(&listed().answer_watch(events).answer_watch(ScriptedWatch::new().hang()));
    pass(seconds(4)).await;
    assert_eq!(told.all().len(), 1, "not before its end");
    pass(seconds(4)).await;
    assert_eq!(told.all()[1..], ["watch 2 5s"]);
    reflected.stop().await;
    assert_eq!(told.all()[2..], ["watch 0 3s"], "also of one that is cancelled");
}

#[tokio::test(start_paused = true)]
async fn a_watch_that_ends_within_a_second_without_an_event_is_short() {
    let half = Duration::from_millis(500);
    let source = listed()
        .answer_watch(ScriptedWatch::new().wait(half))
        .answer_list(ScriptedList::new("20", []))
        .answer_watch(ScriptedWatch::new().bookmark("21").wait(half))
        .answer_watch(ScriptedWatch::new().wait(half).error_event(expired()))
        .answer_list(ScriptedList::new("30", []))
        .answer_watch(ScriptedWatch::new().hang());
    let (reflected, told) = measured(&source);
    pass(Duration::from_millis(5300)).await;
    reflected.stop().await;
    let watches: Vec<String> = told.all().into_iter().filter(|told| told.starts_with("watch")).collect();
    assert_eq!(
        watches,
        ["watch 0 500ms short", "watch 1 500ms", "watch 0 500ms", "watch 0 900ms"],
        "nor is one that ended with an error, which says what is wrong, or that was cancelled"
    );
}

#[tokio::test(start_paused = true)]
async fn the_wait_after_a_watch_is_no_part_of_it() {
    let source = listed()
        .answer_watch(ScriptedWatch::new().wait(seconds(5)).error_event(overloaded().with_retry_after(seconds(20))));
    let (reflected, told) = measured(&source);
    pass(seconds(6)).await;
    assert_eq!(told.all()[1..], ["watch 0 5s"]);
    pass(seconds(60)).await;
    assert_eq!(told.all().len(), 2, "once");
    reflected.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_watch_that_cannot_be_opened_is_none() {
    let source = listed().fail_watch(overloaded()).fail_watch(forbidden());
    let (reflected, told) = measured(&source);
    pass(seconds(10)).await;
    assert_eq!(told.all(), ["list 1 success 0ns"]);
    reflected.stop().await;
}

#[tokio::test(start_paused = true)]
async fn of_two_watches_the_one_that_is_followed_counts() {
    let source = listed()
        .answer_watch(ScriptedWatch::new().bookmark("11").bookmark("12").hang())
        .answer_watch(ScriptedWatch::new().added(pod("b", "13")).wait(seconds(2)));
    let (reflected, told) = measured(&source);
    pass(seconds(151)).await;
    assert_eq!(told.all()[1..], ["watch 2 150s"], "the silent one");
    pass(seconds(2)).await;
    assert_eq!(told.all()[2..], ["watch 1 2s"], "the one in its place");
    reflected.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_watch_that_a_request_for_a_list_ends_is_told() {
    let source = listed().answer_watch(ScriptedWatch::new().hang()).answer_list(ScriptedList::new("20", []));
    let mut relister = None;
    let (reflected, told) = measured_with(&source, |reflector| {
        relister = Some(reflector.relister());
        reflector
    });
    pass(seconds(5)).await;
    relister.expect("a relister").relist();
    pass(seconds(1)).await;
    assert_eq!(told.all(), ["list 1 success 0ns", "watch 0 5s", "list 0 success 0ns"]);
    reflected.stop().await;
}

#[tokio::test(start_paused = true)]
async fn who_is_given_to_one_reflector_hears_of_no_other() {
    let one = listed().answer_watch(ScriptedWatch::new().hang());
    let other = Scripted::new().answer_list(ScriptedList::new("10", [pod("a", "1"), pod("b", "2")]));
    let (one, told) = measured(&one);
    let silent = reflect(&other);
    let nobody =
        reflect_with(&Scripted::new().fail_list(forbidden()), |reflector| reflector.metrics(Arc::new(NoMetrics)));
    pass(seconds(5)).await;
    assert_eq!(silent.store.contents(), ["a@1", "b@2"]);
    assert_eq!(told.all(), ["list 1 success 0ns"]);
    for reflected in [one, silent, nobody] {
        reflected.stop().await;
    }
}

#[tokio::test(start_paused = true)]
async fn the_status_knows_when_the_last_event_came() {
    let events = ScriptedWatch::new().wait(seconds(5)).added(pod("b", "11")).hang();
    let reflected = reflect(&listed().answer_watch(events));
    pass(seconds(1)).await;
    assert_eq!(reflected.status().last_event, None, "a list is none");
    pass(seconds(10)).await;
    let age = reflected.status().last_event.expect("an event").elapsed();
    assert_eq!(age.as_secs_f64().round(), 6.0);
    reflected.stop().await;
}
