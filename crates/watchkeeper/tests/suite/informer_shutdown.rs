//! What an informer waits for, and what not.

use tokio_util::sync::CancellationToken;
use watchkeeper::{HandlerOptions, Scripted, ScriptedList, ScriptedWatch, SharedInformer};

use crate::support::{pod, seconds};

/// The one who has it may be the one who waits: it would be for ever.
#[tokio::test(start_paused = true)]
async fn a_stream_that_nobody_reads_does_not_hold_up_a_shutdown() {
    let source =
        Scripted::new().answer_list(ScriptedList::new("1", [pod("a", "1")])).answer_watch(ScriptedWatch::new().hang());
    let informer: SharedInformer<serde_json::Value> = SharedInformer::new(source);
    let mut events = informer.events().expect("a stream");
    informer.start(CancellationToken::new()).expect("a runtime");
    informer.synced().await.expect("a list");
    tokio::time::timeout(seconds(60), informer.shutdown()).await.expect("it does not wait for the stream");
    assert!(events.next().await.is_none(), "and that has come to its end");
}

/// It used to spin, and nothing else on its runtime had a turn.
#[tokio::test(start_paused = true)]
async fn a_resync_that_is_due_before_the_first_list_waits_for_it() {
    let list = ScriptedList::new("1", [pod("a", "1")]).wait(seconds(20));
    let source = Scripted::new().answer_list(list).answer_watch(ScriptedWatch::new().hang());
    let informer: SharedInformer<serde_json::Value> = SharedInformer::new(source);
    let every_second = HandlerOptions::new().resync_period(seconds(1));
    let handler = informer.on_event_with(every_second, |_| {}).expect("a handler");
    informer.start(CancellationToken::new()).expect("a runtime");
    informer.synced().await.expect("a list");
    tokio::time::sleep(seconds(10)).await;
    assert!((9..=13).contains(&handler.delivered()), "{}", handler.delivered());
    informer.shutdown().await;
}
