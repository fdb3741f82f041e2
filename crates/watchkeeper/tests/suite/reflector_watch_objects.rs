//! What a watch's events do to the store, and to the version from which the next watch goes on.

use std::time::Duration;

use k8s_openapi::api::core::v1::Pod;
use watchkeeper::{Error, ListWatch, Reason, Reflector, Scripted, ScriptedList, ScriptedWatch, WatchEvent};

use crate::support::*;

/// Plays `events` after a list at version 10 with pods a and b, and ends the watch, so that the next one shows the version.
async fn play(events: ScriptedWatch) -> Reflected {
    play_after("10", events).await
}

async fn play_after(version: &str, events: ScriptedWatch) -> Reflected {
    let list = ScriptedList::new(version, [pod("a", "1"), pod("b", "2")]);
    let reflected = reflect(&Scripted::new().answer_list(list).answer_watch(events.wait(seconds(2))));
    pass(seconds(5)).await;
    reflected
}

/// The version from which the second watch went on.
fn went_on_from(reflected: &Reflected) -> String {
    let watches = reflected.source.watches();
    assert_eq!((reflected.source.lists().len(), watches.len()), (1, 2), "{:?}", reflected.asked());
    watches[1].resource_version.to_string()
}

// Changes.

#[tokio::test(start_paused = true)]
async fn events_reach_the_store_in_order() {
    let events = ScriptedWatch::new().added(pod("c", "11")).modified(pod("a", "12")).deleted(pod("b", "13"));
    let reflected = play(events).await;
    let calls = ["replace [a@1 b@2]@10", "add shop/c@11", "update shop/a@12", "delete shop/b@13"];
    assert_eq!(reflected.store.calls(), calls);
    assert_eq!(went_on_from(&reflected), "13", "a deletion has a version of its own");
    reflected.stop().await;
}

#[tokio::test(start_paused = true)]
async fn the_version_is_that_of_the_last_event_even_if_it_is_lower() {
    let reflected = play(ScriptedWatch::new().added(pod("c", "55")).modified(pod("a", "32"))).await;
    assert_eq!(went_on_from(&reflected), "32");
    assert_eq!(reflected.store.contents(), ["a@32", "b@2", "c@55"]);
    reflected.stop().await;
}

#[tokio::test(start_paused = true)]
async fn versions_that_go_backwards_are_counted() {
    let events = ScriptedWatch::new()
        .added(pod("c", "99"))
        .modified(pod("c", "100"))
        .modified(pod("c", "98"))
        .bookmark("98")
        .bookmark("97");
    let reflected = play(events).await;
    assert_eq!(reflected.status().versions_backwards, 2);
    reflected.stop().await;
}

#[tokio::test(start_paused = true)]
async fn versions_that_are_no_numbers_are_passed_on_as_they_are() {
    let reflected = play(ScriptedWatch::new().added(pod("c", "rev-7f")).bookmark("zz-9")).await;
    assert_eq!(went_on_from(&reflected), "zz-9");
    let status = reflected.status();
    assert_eq!((status.resource_version.as_str(), status.versions_backwards), ("zz-9", 0));
    reflected.stop().await;
}

#[tokio::test(start_paused = true)]
async fn the_store_hears_of_each_version_of_a_watch_and_not_of_a_lists() {
    let events =
        ScriptedWatch::new().added(pod("c", "11")).modified(pod("c", "12")).bookmark("15").deleted(pod("c", "16"));
    let reflected = play(events).await;
    assert_eq!(reflected.store.get().versions, ["11", "12", "15", "16"]);
    reflected.stop().await;
}

#[tokio::test(start_paused = true)]
async fn an_event_without_a_version_does_not_move_it() {
    let events =
        ScriptedWatch::new().bookmark("15").event(WatchEvent::Unknown("".into())).event(WatchEvent::Bad(bad("a", "")));
    let reflected = play(events).await;
    assert_eq!(went_on_from(&reflected), "15");
    reflected.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_bookmark_moves_the_version_and_is_told_to_the_store() {
    let reflected = play(ScriptedWatch::new().bookmark("40")).await;
    assert_eq!(went_on_from(&reflected), "40");
    assert_eq!(reflected.store.calls(), ["replace [a@1 b@2]@10", "bookmark 40"]);
    reflected.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_change_that_the_store_refuses_is_counted_and_the_version_moves() {
    let list = ScriptedList::new("10", []);
    let events = ScriptedWatch::new().wait(seconds(1)).added(pod("c", "11")).wait(seconds(2));
    let reflected = reflect(&Scripted::new().answer_list(list).answer_watch(events));
    reflected.store.get().fail_changes = Some(Error::store("no room"));
    pass(seconds(5)).await;
    assert_eq!(went_on_from(&reflected), "11");
    assert_eq!(reflected.status().store_errors, 1);
    assert!(reflected.status().last_error.is_some());
    reflected.stop().await;
}

// Watches that begin with the state.

#[tokio::test(start_paused = true)]
async fn added_events_of_a_watch_from_no_version_do_not_move_it() {
    for version in ["", "0"] {
        let reflected = play_after(version, ScriptedWatch::new().added(pod("c", "30")).added(pod("d", "20"))).await;
        assert_eq!(reflected.status().resource_version.as_str(), version);
        assert_eq!(reflected.store.contents(), ["a@1", "b@2", "c@30", "d@20"]);
        reflected.stop().await;
    }
}

#[tokio::test(start_paused = true)]
async fn the_first_event_that_is_not_added_moves_the_version_of_a_watch_from_no_version() {
    let events = ScriptedWatch::new().added(pod("c", "30")).modified(pod("c", "31")).added(pod("d", "32"));
    let reflected = play_after("", events).await;
    assert_eq!(went_on_from(&reflected), "32");
    assert_eq!(reflected.store.get().versions, ["31", "32"]);
    reflected.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_bookmark_moves_the_version_of_a_watch_from_no_version() {
    let reflected = play_after("0", ScriptedWatch::new().added(pod("c", "30")).bookmark("29")).await;
    assert_eq!(went_on_from(&reflected), "29");
    reflected.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_bad_object_may_be_an_added_one_and_does_not_move_the_version_of_a_watch_from_no_version() {
    let events = ScriptedWatch::new().event(WatchEvent::Bad(bad("c", "99"))).added(pod("d", "30"));
    let reflected = play_after("", events).await;
    assert_eq!(reflected.status().resource_version.as_str(), "");
    reflected.stop().await;
}

// Objects that cannot be used.

#[tokio::test(start_paused = true)]
async fn a_bad_object_keeps_its_last_good_state_is_stale_and_moves_the_version() {
    let reflected = play(ScriptedWatch::new().event(WatchEvent::Bad(bad("a", "11")))).await;
    assert_eq!(reflected.store.calls(), ["replace [a@1 b@2]@10"]);
    assert_eq!(reflected.status().stale_objects, [(key("a"), "it is larger than the limit")].into());
    assert_eq!(went_on_from(&reflected), "11");
    reflected.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_later_good_state_clears_the_mark_of_a_bad_one() {
    let stale = |name| ScriptedWatch::new().event(WatchEvent::Bad(bad(name, "11")));
    for events in [stale("c").added(pod("c", "12")), stale("a").modified(pod("a", "12"))] {
        let reflected = play(events).await;
        assert!(reflected.status().stale_objects.is_empty());
        reflected.stop().await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_deletion_clears_the_mark_of_a_bad_object() {
    let stale = ScriptedWatch::new().event(WatchEvent::Bad(bad("a", "11")));
    let reflected = play(stale.deleted(pod("a", "12"))).await;
    assert!(reflected.status().stale_objects.is_empty());
    assert_eq!(reflected.store.contents(), ["b@2"]);
    reflected.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_bad_deleted_object_with_a_key_is_deleted() {
    let events =
        ScriptedWatch::new().event(WatchEvent::Bad(bad("a", "11"))).event(WatchEvent::DeletedBad(bad("a", "12")));
    let reflected = play(events).await;
    assert_eq!(reflected.store.calls(), ["replace [a@1 b@2]@10", "delete shop/a@?"]);
    assert!(reflected.status().stale_objects.is_empty());
    assert_eq!(went_on_from(&reflected), "12");
    reflected.stop().await;
}

#[tokio::test(start_paused = true)]
async fn an_object_without_a_key_lists_again_after_a_backoff() {
    for event in [WatchEvent::Bad(unreadable()), WatchEvent::DeletedBad(unreadable())] {
        let source = listed().answer_watch(ScriptedWatch::new().added(pod("b", "11")).event(event).hang());
        let reflected = reflect(&source);
        pass(seconds(2)).await;
        assert_eq!(reflected.asked(), ["list@0", "watch@10", "list@11"]);
        assert_eq!(reflected.asked_at()[2], 0.8);
        let status = reflected.status();
        assert_eq!((status.unreadable_objects, status.relists), (1, [(Reason::UnreadableObject, 1)].into()));
        assert_eq!(reflected.store.contents(), ["a@1", "b@11"]);
        reflected.stop().await;
    }
}

#[tokio::test(start_paused = true)]
async fn an_object_of_another_kind_is_passed_over_and_does_not_move_the_version() {
    let reflected = play(ScriptedWatch::new().bookmark("15").event(WatchEvent::WrongKind(bad("c", "99")))).await;
    assert_eq!(reflected.store.contents(), ["a@1", "b@2"]);
    assert_eq!(reflected.status().wrong_kind, 1);
    assert_eq!(went_on_from(&reflected), "15");
    reflected.stop().await;
}

#[tokio::test(start_paused = true)]
async fn objects_of_another_kind_do_not_make_a_short_watch_a_good_one() {
    let reflected = reflect(&listed().answer_watch(ScriptedWatch::new().event(WatchEvent::WrongKind(bad("c", "9")))));
    pass(seconds(2)).await;
    assert_eq!(reflected.status().relists, [(Reason::VeryShortWatch, 1)].into());
    reflected.stop().await;
}

#[tokio::test(start_paused = true)]
async fn an_event_of_an_unknown_type_moves_the_version() {
    let reflected = play(ScriptedWatch::new().event(WatchEvent::Unknown("12".into()))).await;
    assert_eq!(reflected.status().unknown_events, 1);
    assert_eq!(went_on_from(&reflected), "12");
    reflected.stop().await;
}

#[tokio::test(start_paused = true)]
async fn bytes_that_are_no_whole_event_are_no_event() {
    let reflected = play(ScriptedWatch::new().event(WatchEvent::Progress)).await;
    assert_eq!(reflected.status().events, 0);
    assert_eq!(went_on_from(&reflected), "10");
    reflected.stop().await;
}

// Kinds, over HTTP.

/// What is in the store after a list of nothing and one event of a watch.
async fn after_event(source: impl FnOnce(kube_client::Client) -> ListWatch, object: String) -> (Vec<String>, u64) {
    let client = client(move |request| match request.uri().query().unwrap_or_default().contains("watch=true") {
        false => ok(r#"{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"10"},"items":[]}"#),
        true => {
            let event = event_json("ADDED", &object);
            http::Response::new(body(vec![Piece::Bytes(event.into()), Piece::Hang]))
        }
    });
    let store = Recorder::new();
    let reflector = Reflector::new(source(client), store.clone()).streaming_lists(false);
    let status = reflector.status();
    let running = Running::start(reflector);
    pass(Duration::from_millis(100)).await;
    running.stop().await;
    (store.contents(), status.get().wrong_kind)
}

fn service() -> String {
    pod_json("a", "11").replace(r#""kind":"Pod""#, r#""kind":"Service""#)
}

fn by_name(client: kube_client::Client) -> ListWatch {
    ListWatch::by_name(client, "", "v1", "pods")
}

#[tokio::test(start_paused = true)]
async fn a_source_that_knows_its_kind_takes_no_other() {
    assert_eq!(after_event(ListWatch::of::<Pod>, pod_json("a", "11")).await, (vec!["a@11".to_owned()], 0));
    assert_eq!(after_event(ListWatch::of::<Pod>, service()).await, (vec![], 1));
    let other_version = pod_json("a", "11").replace(r#""apiVersion":"v1""#, r#""apiVersion":"v2""#);
    assert_eq!(after_event(ListWatch::of::<Pod>, other_version).await, (vec![], 1));
}

#[tokio::test(start_paused = true)]
async fn a_source_that_knows_no_kind_takes_any() {
    assert_eq!(after_event(by_name, service()).await, (vec!["a@11".to_owned()], 0));
}

#[tokio::test(start_paused = true)]
async fn a_table_in_a_watch_is_passed_over() {
    let table = r#"{"kind":"Table","apiVersion":"meta.k8s.io/v1","metadata":{"resourceVersion":"11"},"rows":[]}"#;
    assert_eq!(after_event(ListWatch::of::<Pod>, table.into()).await, (vec![], 1));
}
