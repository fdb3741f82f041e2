//! The end: of all informers of a factory, and of the factory.

use std::sync::Arc;
use std::time::Duration;

use futures::join;
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{ConfigMap, Pod};
use tokio::time::{Instant, timeout};
use tokio_util::sync::CancellationToken;
use watchkeeper::{ErrorKind, InformerFactory, InformerOptions, Scripted, SharedInformer};

use crate::support::{Busy, Cluster, Heard, pod, seconds, settle, start, sync, tasks};

#[tokio::test(start_paused = true)]
async fn a_shutdown_stops_all_and_leaves_no_task() {
    let cluster = Cluster::with_pods(&["default/web-0"]);
    let factory = cluster.factory();
    let (pods, deployments) = (factory.informer::<Pod>(), factory.informer::<Deployment>());
    let _several = factory.informer_with::<Pod>(InformerOptions::new().namespaces(["a", "b"])).unwrap();
    let (_, handle) = Heard::listen(&pods);
    sync(&factory).await;
    let waiting = factory.informer::<ConfigMap>();
    assert!(tasks() > 0);
    assert_eq!(cluster.open_watches(), 4);

    factory.shutdown().await;
    assert_eq!(tasks(), 0);
    assert_eq!(cluster.open_watches(), 0);
    assert!(pods.is_stopped() && deployments.is_stopped() && waiting.is_stopped());
    assert!(handle.is_removed());
    assert!(factory.subjects().is_empty());
    assert!(factory.synced().is_empty());
    let key = watchkeeper::ObjectKey::namespaced("default", "web-0");
    assert!(pods.lister().get(&key).is_some(), "what there was can still be read");
}

#[tokio::test(start_paused = true)]
async fn a_shutdown_in_the_middle_of_the_first_lists_leaves_no_task() {
    let cluster = Cluster::with_pods(&["default/web-0"]);
    let factory = cluster.factory();
    let (_, _handle) = Heard::listen(&factory.informer::<Pod>());
    let _deployments = factory.informer::<Deployment>();
    start(&factory);
    factory.shutdown().await;
    assert_eq!(tasks(), 0);
    assert_eq!(cluster.open_watches(), 0);
}

#[tokio::test]
async fn each_of_several_shutdowns_at_once_waits_for_the_end() {
    let cluster = Cluster::with_pods(&["default/web-0"]);
    let factory = cluster.factory();
    let busy = Busy::start(&factory).await;
    let shutdown = || async {
        factory.shutdown().await;
        assert!(busy.has_returned(), "a handler is still in its last call");
    };
    let let_go = async {
        tokio::time::sleep(Duration::from_millis(100)).await;
        busy.let_go();
    };
    join!(shutdown(), shutdown(), shutdown(), let_go);
    shutdown().await;
}

#[tokio::test]
async fn a_shutdown_that_is_given_up_can_be_waited_for_again() {
    let cluster = Cluster::with_pods(&["default/web-0"]);
    let factory = cluster.factory();
    let busy = Busy::start(&factory).await;
    assert!(timeout(Duration::from_millis(10), factory.shutdown()).await.is_err());
    assert!(timeout(Duration::from_millis(10), factory.shutdown()).await.is_err());
    busy.let_go();
    factory.shutdown().await;
    assert!(busy.has_returned());
}

#[tokio::test]
async fn a_shutdown_waits_also_for_an_informer_whose_place_another_one_has_taken() {
    let cluster = Cluster::with_pods(&["default/web-0"]);
    let factory = cluster.factory();
    let busy = Busy::start(&factory).await;
    let first = factory.informer::<Pod>();
    first.stop();
    let second = factory.informer::<Pod>();
    assert!(!second.is_started(), "it is a new one");
    assert!(timeout(Duration::from_millis(10), factory.shutdown()).await.is_err());
    assert!(second.is_stopped() && !first.is_stopped());
    busy.let_go();
    factory.shutdown().await;
    assert!(first.is_stopped());
}

#[tokio::test(start_paused = true)]
async fn a_second_shutdown_has_nothing_to_do() {
    let cluster = Cluster::new();
    let factory = cluster.factory();
    let _pods = factory.informer::<Pod>();
    sync(&factory).await;
    factory.shutdown().await;
    let began = Instant::now();
    factory.shutdown().await;
    factory.clone().shutdown().await;
    assert_eq!(began.elapsed(), Duration::ZERO);
}

#[tokio::test(start_paused = true)]
async fn an_informer_of_a_factory_that_was_shut_down_says_so() {
    let cluster = Cluster::new();
    let factory = cluster.factory();
    factory.shutdown().await;
    let pods = factory.informer::<Pod>();
    assert!(pods.is_stopped() && !pods.is_started());
    let errors = [
        pods.on_event(|_| {}).unwrap_err(),
        pods.synced().await.unwrap_err(),
        pods.start(tokio_util::sync::CancellationToken::new()).unwrap_err(),
        factory.informer_with::<Pod>(InformerOptions::new().namespace("a")).unwrap().events().unwrap_err(),
        factory.metadata::<Pod>().events().unwrap_err(),
    ];
    for error in errors {
        assert_eq!(error.kind(), ErrorKind::Stopped);
        assert!(error.to_string().contains("its factory has been shut down"), "{error}");
    }
    assert!(factory.subjects().is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_handler_for_an_informer_that_was_stopped_is_an_error() {
    let cluster = Cluster::new();
    let factory = cluster.factory();
    let pods = factory.informer::<Pod>();
    sync(&factory).await;
    factory.shutdown().await;
    let error = pods.on_event(|_| {}).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Stopped);
    assert!(error.to_string().contains("the informer of pods has been stopped"), "{error}");
}

#[tokio::test(start_paused = true)]
async fn dropping_the_factory_leaves_running_informers_running() {
    let cluster = Cluster::new();
    let factory = cluster.factory();
    let pods = factory.informer::<Pod>();
    sync(&factory).await;
    drop(factory);
    seconds(3600).await;
    cluster.put(pod("default/web-0"));
    settle().await;
    assert_eq!(pods.lister().list().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn an_informer_that_was_stopped_and_is_asked_for_again_tells_everything_again() {
    let cluster = Cluster::with_pods(&["default/web-0"]);
    let factory = cluster.factory();
    for round in 1..=2 {
        let pods = factory.informer::<Pod>();
        let (heard, _handle) = Heard::listen(&pods);
        sync(&factory).await;
        assert_eq!(heard.take(), ["+ default/web-0"], "round {round}");
        assert_eq!(cluster.lists("pods"), round);
        pods.shutdown().await;
    }
}

/// Looks at the factory when it is dropped.
struct Looks(InformerFactory);

impl Drop for Looks {
    fn drop(&mut self) {
        self.0.subjects();
    }
}

#[test]
fn what_an_informer_leaves_is_dropped_without_the_factorys_lock_whoever_looks_at_it_meanwhile() {
    let (done, is_done) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let factory = runtime.block_on(async { Cluster::new().factory() });
        let (looking, over) = (factory.clone(), CancellationToken::new());
        let is_over = over.clone();
        let looker = std::thread::spawn(move || {
            while !is_over.is_cancelled() {
                looking.subjects();
            }
        });
        let _runtime = runtime.enter();
        for _ in 0..2_000 {
            let looks = Arc::new(Looks(factory.clone()));
            let there = Arc::downgrade(&looks);
            let pods: SharedInformer<Pod> = factory.informer_from("special", move |maker| {
                let hook = move |_: &watchkeeper::Error| drop(looks.0.subjects());
                maker.informer(Scripted::new()).on_watch_error(hook)
            });
            start(&factory);
            pods.stop();
            drop(pods);
            while there.strong_count() > 0 {
                std::thread::yield_now();
            }
        }
        over.cancel();
        looker.join().unwrap();
        done.send(()).unwrap();
    });
    assert_eq!(is_done.recv_timeout(Duration::from_secs(30)), Ok(()), "the factory waits for itself");
}

#[test]
fn the_options_of_an_informer_that_is_gone_are_dropped_without_the_factorys_lock() {
    let (done, is_done) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let factory = Cluster::new().factory();
            for asks_first in [false, true] {
                let looks = Looks(factory.clone());
                let options = InformerOptions::new().on_watch_error(move |_| drop(looks.0.subjects()));
                let pods = factory.informer_with::<Pod>(options).unwrap();
                start(&factory);
                pods.shutdown().await;
                drop(pods);
                settle().await;
                if asks_first {
                    factory.informer::<Pod>();
                }
                start(&factory);
            }
        });
        done.send(()).unwrap();
    });
    assert_eq!(is_done.recv_timeout(Duration::from_secs(10)), Ok(()), "the factory waits for itself");
}
