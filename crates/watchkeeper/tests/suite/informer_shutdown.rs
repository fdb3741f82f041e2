//! What a shutdown waits for, and what not.

use tokio_util::sync::CancellationToken;
use watchkeeper::{Scripted, ScriptedList, ScriptedWatch, SharedInformer};

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
