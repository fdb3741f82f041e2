//! Objects that follow each other under one name: nobody is told of the end of something that nobody was told of.

use tokio_util::sync::CancellationToken;
use watchkeeper::{Buffer, Event, HandlerOptions, Object, Scripted, ScriptedList, ScriptedWatch, SharedInformer};

use crate::support::seconds;

fn object(uid: &str, version: &str) -> Object {
    let metadata = format!(r#"{{"name":"a","namespace":"shop","uid":"{uid}","resourceVersion":"{version}"}}"#);
    Object::from_json(format!(r#"{{"metadata":{metadata}}}"#)).expect("an object")
}

async fn last_told(watch: ScriptedWatch, buffer: Buffer) -> Vec<(String, bool)> {
    let source = Scripted::new().answer_list(ScriptedList::new("1", [object("one", "1")])).answer_watch(watch.hang());
    let informer: SharedInformer<serde_json::Value> = SharedInformer::new(source);
    let mut events = informer.events_with(HandlerOptions::new().buffer(buffer)).expect("a stream");
    informer.start(CancellationToken::new()).expect("a runtime");
    let first = events.next().await.expect("the first list");
    assert!(matches!(first, Event::Added { .. }));
    // Everything comes while nobody reads.
    tokio::time::sleep(seconds(1)).await;
    let mut deletions = Vec::new();
    while let Ok(Some(event)) = tokio::time::timeout(seconds(1), events.next()).await {
        if let Event::Deleted { last, final_state_known, .. } = event {
            let uid = last.uid().unwrap_or_default().to_owned();
            deletions.push((uid, final_state_known));
        }
    }
    informer.shutdown().await;
    deletions
}

#[tokio::test(start_paused = true)]
async fn a_coalesced_deletion_is_of_the_object_that_the_handler_knew() {
    let watch =
        || ScriptedWatch::new().deleted(object("one", "2")).added(object("two", "3")).deleted(object("two", "4"));
    let deletions = last_told(watch(), Buffer::Coalesce).await;
    assert_eq!(deletions, [("one".to_owned(), false)]);
    let deletions = last_told(watch(), Buffer::EveryEvent).await;
    assert_eq!(deletions.len(), 2, "{deletions:?}");
}

/// As a watch does that says things again.
#[tokio::test(start_paused = true)]
async fn the_deletion_of_a_namesake_is_told_as_the_end_of_what_was_known() {
    for buffer in [Buffer::EveryEvent, Buffer::Coalesce] {
        let deletions = last_told(ScriptedWatch::new().deleted(object("zero", "1")), buffer).await;
        assert_eq!(deletions, [("one".to_owned(), false)], "{buffer:?}");
    }
}
