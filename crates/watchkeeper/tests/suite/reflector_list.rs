//! The list of a cycle: which version it asks for, in which pages, and what becomes of its objects.

use std::time::Duration;

use futures::future::{self, BoxFuture};
use futures::stream::{self, StreamExt as _};
use k8s_openapi::api::core::v1::Pod;
use tokio_util::sync::CancellationToken;
use watchkeeper::{
    Error, ErrorKind, ListMetadata, ListOptions, ListPart, ListWatch, ListerWatcher, Listing, Reason, Reflector,
    Scripted, ScriptedList, ScriptedWatch, WatchStream,
};

use crate::support::*;

/// A watch that makes the reflector list again.
fn ends() -> ScriptedWatch {
    ScriptedWatch::new().wait(seconds(2)).error_event(expired())
}

fn limits(source: &Scripted) -> Vec<Option<u32>> {
    source.lists().iter().map(|options| options.limit).collect()
}

// Versions.

#[tokio::test(start_paused = true)]
async fn the_first_list_asks_for_version_0_in_pages_of_500() {
    let source = listed();
    let reflected = reflect(&source);
    pass(seconds(1)).await;
    let list = &source.lists()[0];
    assert_eq!((list.resource_version.as_str(), list.limit, &list.continue_token), ("0", Some(500), &None));
    assert_eq!((list.resource_version_match, list.allow_watch_bookmarks, list.timeout), (None, false, None));
    reflected.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_relist_asks_for_the_last_seen_version_without_a_limit() {
    let events = ScriptedWatch::new().added(pod("b", "11")).bookmark("17").error_event(internal());
    let source = listed().answer_watch(events);
    let reflected = reflect(&source);
    pass(seconds(10)).await;
    assert_eq!(reflected.asked(), ["list@0", "watch@10", "list@17"]);
    assert_eq!(limits(&source), [Some(500), None]);
    reflected.stop().await;
}

#[tokio::test(start_paused = true)]
async fn relist_after_watch_410_asks_for_the_last_seen_version() {
    let reflected = reflect(&listed().answer_watch(ends()));
    pass(seconds(10)).await;
    assert_eq!(reflected.asked(), ["list@0", "watch@10", "list@10"]);
    reflected.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_relist_that_says_410_is_repeated_at_once_without_a_version() {
    let source =
        listed().answer_watch(ends()).fail_list(expired()).answer_list(ScriptedList::new("20", [pod("b", "20")]));
    let reflected = reflect(&source);
    pass(seconds(5)).await;
    assert_eq!(reflected.asked(), ["list@0", "watch@10", "list@10", "list@", "watch@20"]);
    assert_eq!(reflected.asked_at(), [0.0, 0.0, 2.8, 2.8, 2.8]);
    assert_eq!(limits(&source), [Some(500), None, Some(500)]);
    assert_eq!(reflected.store.contents(), ["b@20"]);
    reflected.stop().await;
}

#[tokio::test(start_paused = true)]
async fn after_a_list_without_a_version_the_next_asks_for_the_last_seen_one_again() {
    let source = listed()
        .answer_watch(ends())
        .fail_list(expired())
        .answer_list(ScriptedList::new("20", []))
        .answer_watch(ends());
    let reflected = reflect(&source);
    pass(seconds(10)).await;
    assert_eq!(reflected.asked(), ["list@0", "watch@10", "list@10", "list@", "watch@20", "list@20"]);
    reflected.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_list_without_a_version_that_fails_is_tried_again_without_a_version() {
    let source = listed().answer_watch(ends()).fail_list(expired()).fail_list(internal());
    let reflected = reflect(&source);
    pass(seconds(10)).await;
    assert_eq!(reflected.asked(), ["list@0", "watch@10", "list@10", "list@", "list@"]);
    assert_eq!(reflected.asked_at()[3..], [2.8, 4.4], "with a backoff in between");
    reflected.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_410_to_a_list_without_a_version_is_waited_on() {
    let source = listed()
        .answer_watch(ends())
        .fail_list(expired())
        .fail_list(expired())
        .fail_list(expired())
        .fail_list(expired());
    let reflected = reflect(&source);
    pass(seconds(15)).await;
    assert_eq!(reflected.asked(), ["list@0", "watch@10", "list@10", "list@", "list@", "list@", "list@"]);
    assert_eq!(reflected.asked_at()[2..], [2.8, 2.8, 4.4, 7.6, 14.0], "none but the first is repeated at once");
    reflected.stop().await;
}

#[tokio::test(start_paused = true)]
async fn each_way_to_say_that_a_version_is_too_large_leads_to_a_list_without_one() {
    let ways = [
        r#""reason":"Timeout","message":"later","details":{"causes":[{"reason":"ResourceVersionTooLarge","message":"x"}]}"#,
        r#""reason":"Timeout","message":"Too large resource version: 10, current: 5""#,
        r#""reason":"Timeout","message":"later","details":{"causes":[{"message":"Too large resource version"}]}"#,
    ];
    for way in ways {
        let client = client(move |request| {
            let query = request.uri().query().unwrap_or_default();
            if query.contains("watch=true") {
                return http::Response::new(body(vec![Piece::Hang]));
            }
            if query.contains("resourceVersion=0") {
                let status = format!(r#"{{"kind":"Status","apiVersion":"v1","status":"Failure",{way},"code":504}}"#);
                let mut response = ok(status);
                *response.status_mut() = http::StatusCode::GATEWAY_TIMEOUT;
                return response;
            }
            assert!(!query.contains("resourceVersion"), "{query}");
            ok(r#"{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"5"},"items":[]}"#)
        });
        let store = Recorder::new();
        let running =
            Running::start(Reflector::new(ListWatch::of::<Pod>(client), store.clone()).streaming_lists(false));
        pass(Duration::from_millis(100)).await;
        assert_eq!(store.calls(), ["replace []@5"], "at once, for {way}");
        running.stop().await;
    }
}

// Pages.

#[tokio::test(start_paused = true)]
async fn a_page_that_is_forgotten_leads_to_the_whole_list_at_the_same_version() {
    let source = Scripted::new()
        .answer_list(ScriptedList::new("10", [pod("a", "1")]).continues("more"))
        .fail_list(expired())
        .answer_list(ScriptedList::new("12", [pod("a", "1"), pod("b", "2")]));
    let reflected = reflect(&source);
    pass(seconds(1)).await;
    assert_eq!(reflected.asked(), ["list@0", "list@", "list@0", "watch@12"]);
    assert_eq!(limits(&source), [Some(500), Some(500), None]);
    assert_eq!(reflected.store.calls(), ["replace [a@1 b@2]@12"]);
    reflected.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_page_size_of_ones_own_is_used_for_every_page_of_every_list() {
    let source = Scripted::new()
        .answer_list(ScriptedList::new("10", [pod("a", "1")]).continues("more"))
        .answer_list(ScriptedList::new("10", [pod("b", "2")]))
        .answer_watch(ends())
        .answer_list(ScriptedList::new("20", []));
    let reflected = reflect_with(&source, |reflector| reflector.page_size(4));
    pass(seconds(10)).await;
    assert_eq!(limits(&source), [Some(4), Some(4), Some(4)]);
    assert_eq!(reflected.store.calls(), ["replace [a@1 b@2]@10", "replace []@20"]);
    reflected.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_list_at_version_0_that_came_in_pages_means_pages_for_ever() {
    let source = Scripted::new()
        .answer_list(ScriptedList::new("10", [pod("a", "1")]).continues("more"))
        .answer_list(ScriptedList::new("10", [pod("b", "2")]))
        .answer_watch(ends())
        .answer_list(ScriptedList::new("20", []))
        .answer_watch(ends());
    let reflected = reflect(&source);
    pass(seconds(10)).await;
    assert_eq!(reflected.asked(), ["list@0", "list@", "watch@10", "list@10", "watch@20", "list@20"]);
    assert_eq!(limits(&source), [Some(500); 4]);
    reflected.stop().await;
}

#[tokio::test(start_paused = true)]
async fn pages_of_a_list_without_a_version_say_nothing_of_later_ones() {
    let source = listed()
        .answer_watch(ends())
        .fail_list(expired())
        .answer_list(ScriptedList::new("20", [pod("a", "1")]).continues("more"))
        .answer_list(ScriptedList::new("20", [pod("b", "2")]))
        .answer_watch(ends());
    let reflected = reflect(&source);
    pass(seconds(10)).await;
    assert_eq!(limits(&source), [Some(500), None, Some(500), Some(500), None]);
    reflected.stop().await;
}

// Failures.

#[tokio::test(start_paused = true)]
async fn a_failed_list_comes_out_of_the_cycle_and_leaves_the_store_alone() {
    let source = listed()
        .answer_watch(ends())
        .answer_list(ScriptedList::new("20", [pod("b", "2")]).error(cut()))
        .answer_list(ScriptedList::new("30", [pod("c", "3")]))
        .fail_watch(forbidden());
    let (store, token) = (Recorder::new(), CancellationToken::new());
    let mut reflector = reflector(&source, &store);
    let mut errors = Vec::new();
    for _ in 0..3 {
        errors.push(reflector.list_and_watch(&token).await.expect_err("ends with an error"));
    }
    assert!(errors[0].is_expired() && errors[1].is_disconnect() && errors[2].is_forbidden(), "{errors:?}");
    assert_eq!(store.calls(), ["replace [a@1]@10", "replace [c@3]@30"]);
    assert_eq!(reflector.last_sync_resource_version().as_str(), "30");
}

#[tokio::test(start_paused = true)]
async fn a_list_that_is_not_answered_for_30_s_is_tried_again() {
    let source = Scripted::new();
    let reflected = reflect(&source);
    pass(seconds(35)).await;
    assert_eq!(reflected.asked_at(), [0.0, 30.8]);
    assert_eq!(reflected.status().relists, [(Reason::TimedOut, 1)].into());
    reflected.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_list_that_is_silent_for_30_s_in_its_middle_is_tried_again() {
    let list = ScriptedList::new("10", [pod("a", "1")]).wait(seconds(29)).item(pod("b", "2")).hang();
    let source = Scripted::new().answer_list(list).answer_list(ScriptedList::new("11", [pod("c", "3")]));
    let reflected = reflect(&source);
    pass(seconds(65)).await;
    assert_eq!(reflected.asked_at()[..2], [0.0, 59.8]);
    assert_eq!(reflected.store.calls(), ["replace [c@3]@11"]);
    reflected.stop().await;
}

/// A source whose lists come in bits, 20 s apart, and whose watches are never answered.
struct Dribbling;

impl ListerWatcher for Dribbling {
    fn list(&self, _: ListOptions) -> BoxFuture<'_, Result<Listing, Error>> {
        let metadata = ListMetadata { resource_version: "10".into(), ..ListMetadata::default() };
        let bits = std::iter::repeat_n(ListPart::Progress, 20);
        let parts = bits.chain([ListPart::Item(pod("a", "1")), ListPart::Metadata(metadata)]);
        let parts = stream::iter(parts).then(|part| async {
            tokio::time::sleep(seconds(20)).await;
            Ok(part)
        });
        Box::pin(future::ready(Ok(Listing::new(parts))))
    }
    fn watch(&self, _: ListOptions) -> BoxFuture<'_, Result<WatchStream, Error>> {
        Box::pin(future::pending())
    }
    fn description(&self) -> String {
        "bits of objects".into()
    }
}

#[tokio::test(start_paused = true)]
async fn a_list_may_take_for_ever_if_bytes_keep_coming() {
    let store = Recorder::new();
    let reflector = Reflector::new(Dribbling, store.clone());
    let status = reflector.status();
    let running = Running::start(reflector);
    pass(seconds(20 * 22 + 1)).await;
    assert_eq!(store.calls(), ["replace [a@1]@10"]);
    assert!(status.get().relists.is_empty());
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_list_idle_timeout_of_ones_own_is_honoured() {
    let reflected = reflect_with(&Scripted::new(), |reflector| reflector.list_idle_timeout(seconds(5)));
    pass(seconds(6)).await;
    assert_eq!(reflected.asked_at(), [0.0, 5.8]);
    reflected.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_store_that_refuses_the_list_gets_another_after_a_backoff() {
    let source = listed().answer_list(ScriptedList::new("11", [pod("b", "2")]));
    let reflected = reflect(&source);
    reflected.store.get().fail_replace = Some(Error::store("full"));
    pass(Duration::from_millis(500)).await;
    let status = reflected.status();
    assert_eq!((status.synced, status.resource_version.as_str()), (false, ""));
    assert_eq!(status.relists, [(Reason::Store, 1)].into());
    pass(seconds(1)).await;
    assert_eq!(reflected.asked(), ["list@0", "list@0", "watch@11"]);
    assert!(reflected.status().synced);
    reflected.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_list_of_nothing_is_a_list() {
    let reflected = reflect(&Scripted::new().answer_list(ScriptedList::new("10", [])));
    pass(seconds(1)).await;
    assert_eq!((reflected.store.calls(), reflected.status().synced), (vec!["replace []@10".to_owned()], true));
    reflected.stop().await;
}

#[tokio::test(start_paused = true)]
async fn an_error_event_about_a_corrupt_object_lists_again_and_the_object_is_gone() {
    let corrupt = Error::api(500, "StoreReadError", "data from the storage is not transformable");
    let source = Scripted::new()
        .answer_list(ScriptedList::new("10", [pod("a", "1"), pod("corrupt", "2")]))
        .answer_watch(ScriptedWatch::new().wait(seconds(2)).error_event(corrupt))
        .answer_list(ScriptedList::new("20", [pod("a", "1")]))
        .answer_watch(ScriptedWatch::new().hang());
    let reflected = reflect(&source);
    pass(seconds(5)).await;
    assert_eq!(reflected.asked(), ["list@0", "watch@10", "list@10", "watch@20"]);
    assert_eq!(reflected.store.contents(), ["a@1"]);
    reflected.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_list_of_tables_is_refused() {
    let client = client(|_| {
        ok(r#"{"kind":"Table","apiVersion":"meta.k8s.io/v1","metadata":{"resourceVersion":"1"},"rows":[]}"#)
    });
    let store = Recorder::new();
    let source = ListWatch::by_name(client, "", "v1", "pods");
    let mut reflector = Reflector::new(source, store.clone()).streaming_lists(false);
    let error = reflector.list_and_watch(&CancellationToken::new()).await.expect_err("a Table");
    assert_eq!(error.kind(), ErrorKind::Malformed);
    assert!(store.calls().is_empty());
}

// Objects that cannot be used.

#[tokio::test(start_paused = true)]
async fn a_bad_object_in_a_relist_counts_as_present_and_is_listed_as_stale() {
    let source = Scripted::new()
        .answer_list(ScriptedList::new("10", [pod("a", "1"), pod("b", "2"), pod("c", "3")]))
        .answer_watch(ends())
        .answer_list(ScriptedList::new("20", [pod("a", "11")]).bad(bad("b", "12")))
        .answer_watch(ScriptedWatch::new().hang());
    let reflected = reflect(&source);
    pass(seconds(5)).await;
    assert_eq!(reflected.store.contents(), ["a@11", "b@2"], "b as it was, and c is gone");
    assert_eq!(reflected.status().stale_objects, [(key("b"), "it is larger than the limit")].into());
    assert_eq!(reflected.asked().last().map(String::as_str), Some("watch@20"));
    reflected.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_relist_in_which_an_object_is_good_again_clears_its_mark() {
    let source = Scripted::new()
        .answer_list(ScriptedList::new("10", [pod("a", "1")]).bad(bad("b", "2")))
        .answer_watch(ends())
        .answer_list(ScriptedList::new("20", [pod("b", "12")]).bad(bad("a", "11")));
    let reflected = reflect(&source);
    pass(seconds(1)).await;
    assert_eq!(reflected.status().stale_objects.into_keys().collect::<Vec<_>>(), [key("b")]);
    pass(seconds(4)).await;
    assert_eq!(reflected.status().stale_objects.into_keys().collect::<Vec<_>>(), [key("a")]);
    reflected.stop().await;
}

#[tokio::test(start_paused = true)]
async fn an_object_without_a_key_in_a_relist_deletes_nothing_and_is_retried() {
    let source = Scripted::new()
        .answer_list(ScriptedList::new("10", [pod("a", "1"), pod("b", "2")]))
        .answer_watch(ends())
        .answer_list(ScriptedList::new("20", [pod("a", "11")]).bad(unreadable()))
        .answer_list(ScriptedList::new("30", [pod("a", "21")]));
    let reflected = reflect(&source);
    pass(Duration::from_millis(3500)).await;
    assert_eq!(reflected.store.contents(), ["a@11", "b@2"], "what is new is taken over, nothing is deleted");
    let status = reflected.status();
    assert_eq!(status.unreadable_objects, 1);
    assert_eq!(status.relists, [(Reason::Expired, 1), (Reason::UnreadableObject, 1)].into());
    assert_eq!(status.resource_version.as_str(), "10");
    pass(seconds(3)).await;
    assert_eq!(reflected.asked(), ["list@0", "watch@10", "list@10", "list@10", "watch@30"]);
    assert_eq!(reflected.store.contents(), ["a@21"]);
    reflected.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_first_list_with_an_object_without_a_key_is_not_a_sync() {
    let source = Scripted::new().answer_list(ScriptedList::new("10", [pod("a", "1")]).bad(unreadable()));
    let reflected = reflect(&source);
    pass(seconds(1)).await;
    assert_eq!((reflected.store.contents(), reflected.status().synced), (vec!["a@1".to_owned()], false));
    assert_eq!(reflected.asked(), ["list@0", "list@0"]);
    reflected.stop().await;
}
