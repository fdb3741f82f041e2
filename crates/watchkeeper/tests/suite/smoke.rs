//! The whole way once.

use k8s_openapi::api::core::v1::Pod;
use watchkeeper::{ListWatch, Reflector, Scripted, ScriptedList, ScriptedWatch};

use crate::support::*;

#[tokio::test(start_paused = true)]
async fn a_list_and_a_watch_reach_the_store() {
    let source = Scripted::new().answer_list(ScriptedList::new("10", [pod("a", "1"), pod("b", "2")])).answer_watch(
        ScriptedWatch::new().added(pod("c", "11")).modified(pod("a", "12")).deleted(pod("b", "13")).hang(),
    );
    let store = Recorder::new();
    let running = Running::start(Reflector::new(source, store.clone()));
    pass(seconds(1)).await;
    assert_eq!(store.contents(), ["a@12", "c@11"]);
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_list_and_a_watch_come_over_http() {
    let client = client(|request| match request.uri().query().unwrap_or_default().contains("watch=true") {
        false => ok(format!(
            r#"{{"kind":"PodList","apiVersion":"v1","metadata":{{"resourceVersion":"10"}},"items":[{}]}}"#,
            r#"{"metadata":{"name":"a","namespace":"shop","resourceVersion":"1"}}"#
        )),
        true => {
            http::Response::new(body(vec![Piece::Bytes(event_json("ADDED", &pod_json("b", "11")).into()), Piece::Hang]))
        }
    });
    let store = Recorder::new();
    let source = ListWatch::of::<Pod>(client);
    let running = Running::start(Reflector::new(source, store.clone()).streaming_lists(false));
    pass(seconds(1)).await;
    assert_eq!(store.contents(), ["a@1", "b@11"]);
    running.stop().await;
}
