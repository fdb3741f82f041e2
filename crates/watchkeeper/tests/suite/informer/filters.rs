//! Handlers that hear of some objects only.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use watchkeeper::{Cached, HandlerOptions};

use super::*;

const WEB: &str = r#""app":"web""#;
const API: &str = r#""app":"api""#;

fn web() -> HandlerOptions<Pod> {
    HandlerOptions::new().filter(|pod: &Cached<Pod>| pod.labels().get("app") == Some("web"))
}

#[tokio::test(start_paused = true)]
async fn an_object_that_begins_to_pass_is_added_and_one_that_no_longer_does_is_deleted_with_its_last_state_that_did() {
    for queue in both_queues() {
        let cluster = Cluster::new();
        let pods = synced(cluster.clone(), queue).await;
        let (notes, _) = noting_with(&pods, web());
        cluster.label("a", API);
        cluster.label("a", API);
        settle().await;
        assert!(notes.take().is_empty(), "neither old nor new passes");
        cluster.label("a", WEB);
        settle().await;
        assert_eq!(notes.take(), ["+a@13 Watch"], "new passes");
        cluster.label("a", WEB);
        settle().await;
        assert_eq!(notes.take(), ["~a@13>14 Watch"], "both pass");
        cluster.label("a", API);
        settle().await;
        assert_eq!(notes.take(), ["-a@14 Watch"], "old passed");
        cluster.delete("a");
        settle().await;
        assert!(notes.take().is_empty(), "it is deleted already");
    }
}

#[tokio::test(start_paused = true)]
async fn an_addition_because_of_a_filter_is_not_initial() {
    for queue in both_queues() {
        let cluster = Cluster::new();
        cluster.label("a", WEB);
        cluster.label("b", API);
        let pods = informer(cluster.clone(), queue);
        let (notes, _) = noting_with(&pods, web());
        start(&pods);
        settle().await;
        cluster.label("b", WEB);
        settle().await;
        assert_eq!(notes.take(), ["+a@11 Initial", "+b@13 Watch"]);
    }
}

#[tokio::test(start_paused = true)]
async fn a_deletion_is_told_if_the_handler_knows_the_object_whether_its_last_state_passes_or_not() {
    for queue in both_queues() {
        let watch = watchkeeper::ScriptedWatch::new();
        let with = |name: &str, version: &str, app: &str| {
            let json = crate::support::pod_json(name, version);
            Object::from_json(json.replace(&format!(r#""app":"{name}""#), &format!(r#""app":"{app}""#))).expect("a pod")
        };
        let list = watchkeeper::ScriptedList::new("10", [with("known", "1", "web"), with("unknown", "2", "api")]);
        let watch = watch.deleted(with("known", "11", "api")).deleted(with("unknown", "12", "web")).hang();
        let pods = informer(watchkeeper::Scripted::new().answer_list(list).answer_watch(watch), queue);
        let (notes, _) = noting_with(&pods, web());
        start(&pods);
        settle().await;
        assert_eq!(notes.take(), ["+known@1 Initial", "-known@11 Watch"]);
    }
}

#[tokio::test(start_paused = true)]
async fn a_filter_may_change_its_mind() {
    for queue in both_queues() {
        let cluster = Cluster::with(&["a"]);
        let pods = synced(cluster.clone(), queue).await;
        let open = Arc::new(AtomicBool::new(false));
        let is_open = open.clone();
        let options = HandlerOptions::new().filter(move |_| is_open.load(Ordering::Relaxed));
        let (notes, _) = noting_with(&pods, options);
        settle().await;
        open.store(true, Ordering::Relaxed);
        cluster.put("a");
        settle().await;
        open.store(false, Ordering::Relaxed);
        cluster.put("a");
        cluster.put("a");
        settle().await;
        open.store(true, Ordering::Relaxed);
        cluster.delete("a");
        settle().await;
        assert_eq!(notes.take(), ["+a@12 Watch", "-a@12 Watch"]);
    }
}

#[tokio::test(start_paused = true)]
async fn a_resync_says_again_what_passes() {
    for queue in both_queues() {
        let cluster = Cluster::new();
        cluster.label("a", WEB);
        cluster.label("b", API);
        let pods = synced(cluster, queue).await;
        let (notes, handle) = noting_with(&pods, web().resync_period(seconds(10)));
        pass(seconds(15)).await;
        assert_eq!(notes.take(), ["+a@11 Initial", "~a@11>11 Resync"]);
        assert_eq!(handle.delivered(), 4, "what was passed over counts");
    }
}

#[tokio::test(start_paused = true)]
async fn a_successor_is_asked_about_by_itself() {
    for queue in both_queues() {
        let cluster = Cluster::new();
        cluster.label("a", WEB);
        let pods = synced(cluster.clone(), queue).await;
        let (notes, _) = noting_with(&pods, web());
        settle().await;
        cluster.gap(|cluster| cluster.put_with("shop", "a", "uid-2", API));
        recover().await;
        assert_eq!(notes.take(), ["+a@11 Initial", "-a@11? Relist"]);
    }
}
