//! Comparing a cache with the server. The in-memory server's tests of informers have the rest.

use tokio_util::sync::CancellationToken;
use watchkeeper::{
    BadObject, Error, ErrorKind, Found, ListOptions, Object, Scripted, ScriptedList, ScriptedWatch, SharedInformer,
    Verification, VersionMatch,
};

use crate::support::{key, pod, seconds};

/// An informer with pods `a` and `b`, whose next answers are these, and whose watch is silent then.
async fn informer(answers: impl FnOnce(Scripted) -> Scripted) -> (SharedInformer<serde_json::Value>, Scripted) {
    let first = ScriptedList::new("5", [pod("a", "1"), pod("b", "2")]);
    let source = answers(Scripted::new().answer_list(first)).answer_watch(ScriptedWatch::new().hang());
    let informer: SharedInformer<serde_json::Value> = SharedInformer::new(source.clone());
    informer.start(CancellationToken::new()).expect("a runtime");
    informer.synced().await.expect("a list");
    tokio::time::sleep(seconds(1)).await;
    (informer, source)
}

async fn verify(lists: impl FnOnce(Scripted) -> Scripted) -> (Verification, Vec<ListOptions>) {
    let (informer, source) = informer(lists).await;
    let verification = informer.verify_against_server().await.expect("a comparison");
    informer.shutdown().await;
    (verification, source.lists().split_off(1))
}

fn found(verification: &Verification) -> Vec<(&str, &Found)> {
    verification.differences.iter().map(|difference| (difference.key.name(), &difference.found)).collect()
}

#[tokio::test(start_paused = true)]
async fn the_state_that_the_store_is_at_is_asked_for_in_pages() {
    let (verification, lists) = verify(|source| {
        let first = ScriptedList::new("5", [pod("a", "1")]).continues("more");
        source.answer_list(first).answer_list(ScriptedList::new("5", [pod("b", "2")]))
    })
    .await;
    assert!(verification.is_same(), "{verification}");
    assert_eq!((verification.objects, verification.versions.as_slice()), (2, [(None, "5".into())].as_slice()));
    assert_eq!(verification.to_string(), "2 objects compared at version 5: all are the same");
    assert_eq!(lists.len(), 2);
    assert_eq!((lists[0].resource_version.as_str(), lists[0].limit), ("5", Some(500)));
    assert_eq!(lists[0].resource_version_match, Some(VersionMatch::Exact));
    assert_eq!(lists[1].continue_token.as_deref(), Some("more"));
}

#[tokio::test(start_paused = true)]
async fn what_differs_in_two_lists_is_a_difference() {
    let there = || [pod("a", "4"), pod("c", "3")];
    let (verification, lists) = verify(|source| {
        source.answer_list(ScriptedList::new("5", there())).answer_list(ScriptedList::new("5", there()))
    })
    .await;
    assert_eq!(lists[1].resource_version.as_str(), "", "the second look is a consistent read");
    assert_eq!(verification.difference_count, 3);
    assert_eq!(
        found(&verification),
        [
            ("a", &Found::Different { cached: "1".into(), server: "4".into() }),
            ("b", &Found::Extra { cached: "2".into() }),
            ("c", &Found::Missing { server: "3".into() }),
        ]
    );
    assert_eq!(
        verification.to_string(),
        "2 objects compared at version 5: 3 differ\n  shop/a is at version 4, and cached at 1\n  \
         shop/b is gone, and was at version 2\n  shop/c is missing, and is at version 3"
    );
}

#[tokio::test(start_paused = true)]
async fn what_a_second_list_does_not_show_is_no_difference() {
    let (verification, _) = verify(|source| {
        let first = ScriptedList::new("5", [pod("a", "1")]);
        source.answer_list(first).answer_list(ScriptedList::new("6", [pod("a", "1"), pod("b", "2")]))
    })
    .await;
    assert!(verification.is_same(), "{verification}");
}

#[tokio::test(start_paused = true)]
async fn another_body_of_the_same_version_is_a_difference() {
    let other = || Object::from_json(crate::support::pod_json("b", "2").replace("node-1", "node-2")).expect("a pod");
    let list = || ScriptedList::new("5", [pod("a", "1"), other()]);
    let (verification, _) = verify(|source| source.answer_list(list()).answer_list(list())).await;
    assert_eq!(found(&verification), [("b", &Found::Different { cached: "2".into(), server: "2".into() })]);
    assert!(verification.to_string().ends_with("shop/b is another one, also at version 2"), "{verification}");
    assert!(!format!("{verification:?}").contains("node-2"), "no part of a body");
}

#[tokio::test(start_paused = true)]
async fn a_server_that_has_no_such_state_is_asked_for_its_newest() {
    let message = "Too large resource version: 5, current: 3";
    for refusal in [
        Error::api(410, "Expired", "too old"),
        Error::api(400, "BadRequest", "what?"),
        Error::api(504, "Timeout", message),
    ] {
        let (verification, lists) = verify(|source| {
            source.fail_list(refusal).answer_list(ScriptedList::new("7", [pod("a", "1"), pod("b", "2")]))
        })
        .await;
        assert!(verification.is_same(), "{verification}");
        assert_eq!(verification.versions, [(None, "7".into())]);
        assert_eq!((lists.len(), lists[1].resource_version.as_str()), (2, ""));
    }
}

/// An aggregated API server, say, that looks at no version in a request.
#[tokio::test(start_paused = true)]
async fn a_server_that_shows_a_newer_state_than_it_was_asked_for_is_waited_for() {
    let (verification, _) = verify(|source| {
        let late = ScriptedWatch::new().wait(seconds(20)).modified(pod("a", "8")).deleted(pod("b", "9")).hang();
        let list = || ScriptedList::new("9", [pod("a", "8")]);
        source.answer_watch(late).answer_list(list()).answer_list(list())
    })
    .await;
    assert!(verification.is_same(), "{verification}");
    assert_eq!(verification.versions, [(None, "9".into())]);
}

/// A server whose watches are stuck, behind a proxy that ends what is silent: each opening is a contact, and the state at
/// the last version is right for ever.
#[tokio::test(start_paused = true)]
async fn watches_that_open_and_bring_nothing_are_no_proof_that_a_version_is_the_newest() {
    let (informer, source) = informer(|source| {
        let ends = |source: Scripted, _| source.answer_watch(ScriptedWatch::new().wait(seconds(60)));
        (0..10).fold(source, ends).answer_list(ScriptedList::new("9", [pod("a", "1"), pod("b", "2")]))
    })
    .await;
    tokio::time::sleep(seconds(400)).await;
    assert!(source.watches().len() > 5, "each of them a contact");
    informer.verify_against_server().await.expect("a comparison");
    assert_eq!((source.lists().len(), source.lists()[1].resource_version.as_str()), (2, ""), "the newest state");
    informer.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn an_object_that_cannot_be_used_is_a_difference_with_its_reason() {
    let bad = || BadObject { key: Some(key("b")), resource_version: "9".into(), problem: "it is too large" };
    let list = || ScriptedList::new("9", [pod("a", "1")]).bad(bad());
    let (verification, _) = verify(|source| source.answer_list(list()).answer_list(list())).await;
    assert_eq!(found(&verification), [("b", &Found::Different { cached: "2".into(), server: "9".into() })]);
    assert_eq!(verification.differences[0].unusable, Some("it is too large"));
}

#[tokio::test(start_paused = true)]
async fn an_object_without_a_readable_key_makes_the_comparison_fail() {
    let bad = BadObject { key: None, resource_version: "9".into(), problem: "it has no name" };
    let (informer, _) = informer(|source| source.answer_list(ScriptedList::new("5", [pod("a", "1")]).bad(bad))).await;
    let error = informer.verify_against_server().await.expect_err("nothing can be said of b");
    assert_eq!(error.kind(), ErrorKind::Malformed);
    informer.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn before_the_first_list_and_after_the_end_there_is_nothing_to_compare() {
    let informer: SharedInformer<serde_json::Value> = SharedInformer::new(Scripted::new());
    let error = informer.verify_against_server().await.expect_err("not started");
    assert_eq!(error.kind(), ErrorKind::NotSynced);
    informer.shutdown().await;
    let error = informer.verify_against_server().await.expect_err("stopped");
    assert_eq!(error.kind(), ErrorKind::Stopped);
}

#[tokio::test(start_paused = true)]
async fn a_relist_on_request_asks_for_no_version_and_tells_what_it_changes() {
    let (informer, source) = informer(|source| source.answer_list(ScriptedList::new("8", [pod("a", "1")]))).await;
    let mut events = informer.events().expect("a stream");
    assert!(events.next().await.is_some() && events.next().await.is_some(), "a and b");
    informer.relist();
    let gone = events.next().await.expect("an event");
    assert!(gone.is_deletion() && gone.key() == &key("b"), "{gone:?}");
    assert_eq!(source.lists()[1].resource_version.as_str(), "");
    informer.shutdown().await;
}
