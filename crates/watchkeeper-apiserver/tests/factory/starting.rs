//! What `start` starts.

use std::sync::mpsc;
use std::time::Duration;

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::Pod;
use tokio::runtime::Runtime;
use tokio_util::sync::CancellationToken;
use watchkeeper::{ErrorKind, InformerFactory, InformerOptions};

use crate::support::{Cluster, Heard, seconds, settle, start, sync, tasks};

#[tokio::test(start_paused = true)]
async fn nothing_is_asked_before_the_start() {
    let cluster = Cluster::with_pods(&["default/web-0"]);
    let factory = cluster.factory();
    let pods = factory.informer::<Pod>();
    let (heard, _handle) = Heard::listen(&pods);
    seconds(60).await;
    assert!(!pods.is_started());
    assert!(cluster.asked("pods").is_empty());
    assert_eq!(tasks(), 0);
    assert!(heard.take().is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_second_start_starts_only_what_is_new() {
    let cluster = Cluster::new();
    let factory = cluster.factory();
    let pods = factory.informer::<Pod>();
    sync(&factory).await;
    let deployments = factory.informer::<Deployment>();
    seconds(60).await;
    assert!(pods.is_started() && !deployments.is_started(), "not before the next start");
    assert!(cluster.asked("deployments").is_empty());
    sync(&factory).await;
    sync(&factory).await;
    assert!(deployments.has_synced());
    assert_eq!((cluster.asked("pods").len(), cluster.asked("deployments").len()), (1, 1));
}

#[tokio::test(start_paused = true)]
async fn each_start_has_a_token_of_its_own() {
    let cluster = Cluster::new();
    let factory = cluster.factory();
    let (first, second) = (CancellationToken::new(), CancellationToken::new());
    let pods = factory.informer::<Pod>();
    factory.start(first.clone()).unwrap();
    let deployments = factory.informer::<Deployment>();
    factory.start(second).unwrap();
    first.cancel();
    pods.stopped().await;
    settle().await;
    assert!(!deployments.is_stopped());
}

fn runtime() -> Runtime {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap()
}

#[test]
fn outside_of_a_runtime_starting_is_an_error_that_says_what_to_do() {
    let (cluster, runtime) = (Cluster::new(), runtime());
    let factory = runtime.block_on(async { cluster.factory() });
    let pods = factory.informer::<Pod>();
    let error = factory.start(CancellationToken::new()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Config);
    let text = error.to_string();
    assert!(text.contains("the informer of pods") && text.contains("#[tokio::main]"), "{text}");

    runtime.block_on(async {
        factory.start(CancellationToken::new()).unwrap();
        pods.synced().await.unwrap();
    });
}

#[tokio::test(start_paused = true)]
async fn after_a_shutdown_starting_is_an_error() {
    let cluster = Cluster::new();
    let factory = cluster.factory();
    factory.shutdown().await;
    let error = factory.start(CancellationToken::new()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Stopped);
    assert!(error.to_string().contains("the factory has been shut down"), "{error}");
}

#[tokio::test(start_paused = true)]
async fn an_informer_that_nobody_needs_is_not_started() {
    let cluster = Cluster::new();
    let factory = cluster.factory();
    drop(factory.informer::<Pod>());
    let _deployments = factory.informer::<Deployment>();
    sync(&factory).await;
    assert!(cluster.asked("pods").is_empty());
    let subjects: Vec<String> = factory.subjects().iter().map(ToString::to_string).collect();
    assert_eq!(subjects, ["deployments.apps"]);
}

#[tokio::test(start_paused = true)]
async fn an_informer_that_only_a_handler_needs_is_started() {
    let cluster = Cluster::with_pods(&["default/web-0"]);
    let factory = cluster.factory();
    let (heard, handle) = Heard::listen(&factory.informer::<Pod>());
    drop(handle);
    sync(&factory).await;
    assert_eq!(heard.take(), ["+ default/web-0"]);
}

#[tokio::test(start_paused = true)]
async fn one_that_cannot_be_started_does_not_hold_up_the_others() {
    let cluster = Cluster::new();
    let factory = cluster.factory();
    let nowhere = InformerOptions::new().namespaces(Vec::<String>::new());
    let _nothing = factory.informer_with::<Pod>(nowhere).unwrap();
    let (deployments, all) = (factory.informer::<Deployment>(), factory.informer::<Pod>());
    let error = factory.start(CancellationToken::new()).unwrap_err();
    assert!(error.to_string().contains("was given no namespace to watch"), "{error}");
    settle().await;
    assert!(deployments.has_synced() && all.has_synced());
}

#[tokio::test(start_paused = true)]
async fn an_informer_that_was_stopped_before_the_start_is_in_nobodys_way() {
    let cluster = Cluster::new();
    let factory = cluster.factory();
    let pods = factory.informer::<Pod>();
    pods.stop();
    assert!(pods.is_stopped() && !pods.is_started());
    let deployments = factory.informer::<Deployment>();
    sync(&factory).await;
    assert!(deployments.has_synced());

    let pods = factory.informer::<Pod>();
    sync(&factory).await;
    assert!(pods.has_synced(), "who asks again gets a new one");
}

#[tokio::test(start_paused = true)]
async fn an_informer_that_was_started_by_itself_is_one_of_the_factorys() {
    let cluster = Cluster::new();
    let factory = cluster.factory();
    let pods = factory.informer::<Pod>();
    pods.start(CancellationToken::new()).unwrap();
    assert_eq!(factory.wait_synced().await.informers.len(), 1);
    start(&factory);
    settle().await;
    assert_eq!(cluster.asked("pods").len(), 1);
    factory.shutdown().await;
    assert!(pods.is_stopped());
}

#[test]
fn an_informer_whose_runtime_is_gone_has_stopped_even_if_it_never_ran() {
    let (cluster, first) = (Cluster::new(), runtime());
    let factory = first.block_on(async { cluster.factory() });
    let pods = factory.informer::<Pod>();
    first.block_on(async { factory.start(CancellationToken::new()).unwrap() });
    drop(first);
    assert!(pods.is_stopped());
    runtime().block_on(factory.shutdown());
}

/// Looks at the factory when it is dropped, as one might to ask for another informer in its place.
struct Looks(InformerFactory, mpsc::Sender<usize>);

impl Drop for Looks {
    fn drop(&mut self) {
        let _ = self.1.send(self.0.subjects().len());
    }
}

#[test]
fn what_a_runtime_drops_that_is_over_may_use_the_factory() {
    let (cluster, gone) = (Cluster::new(), runtime());
    let factory = gone.block_on(async { cluster.factory() });
    let (sender, dropped) = mpsc::channel();
    let looks = Looks(factory.clone(), sender);
    factory.informer::<Pod>().on_event(move |_| drop(looks.0.subjects())).unwrap();
    let handle = gone.handle().clone();
    drop(gone);
    std::thread::spawn(move || {
        let _runtime = handle.enter();
        let _ = factory.start(CancellationToken::new());
    });
    let looked = dropped.recv_timeout(Duration::from_secs(10));
    assert_eq!(looked, Ok(1), "a handler is dropped while the factory is locked");
}
