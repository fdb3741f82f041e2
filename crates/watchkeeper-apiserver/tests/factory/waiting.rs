//! Waiting for the first lists of all.

use std::time::Duration;

use k8s_openapi::api::apps::v1::{DaemonSet, Deployment};
use k8s_openapi::api::core::v1::{ConfigMap, Pod};
use kube_client::core::{ApiResource, GroupVersionKind};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use watchkeeper::{ErrorKind, InformerOptions};
use watchkeeper_apiserver::{Fault, Match, StallAt};

use crate::support::{Cluster, settle, start, sync};

fn widgets() -> ApiResource {
    ApiResource::from_gvk_with_plural(&GroupVersionKind::gvk("example.com", "v1", "Widget"), "widgets")
}

#[tokio::test(start_paused = true)]
async fn synced_tells_of_each_that_was_started() {
    let cluster = Cluster::new();
    let factory = cluster.factory();
    assert!(factory.synced().is_empty());
    let _pods = factory.informer::<Pod>();
    assert!(factory.synced().is_empty(), "it has not been started");
    start(&factory);
    assert_eq!(factory.synced().into_values().collect::<Vec<_>>(), [false]);
    let _deployments = factory.informer::<Deployment>();
    assert!(factory.wait_synced().await.is_ok());
    let synced = factory.synced();
    let synced: Vec<_> = synced.iter().map(|(subject, synced)| (subject.to_string(), *synced)).collect();
    assert_eq!(synced, [("pods".to_owned(), true)]);
}

#[tokio::test(start_paused = true)]
async fn waiting_for_nothing_is_over_at_once() {
    let cluster = Cluster::new();
    let factory = cluster.factory();
    let _not_started = factory.informer::<Pod>();
    let began = Instant::now();
    let result = factory.wait_synced().await;
    assert!(result.is_ok() && result.informers.is_empty());
    assert_eq!(began.elapsed(), Duration::ZERO);
}

#[tokio::test(start_paused = true)]
async fn what_has_synced_stays_so_when_it_is_stopped() {
    let cluster = Cluster::new();
    let factory = cluster.factory();
    let pods = factory.informer::<Pod>();
    sync(&factory).await;
    pods.shutdown().await;
    assert!(factory.wait_synced().await.is_ok());
}

#[tokio::test(start_paused = true)]
async fn some_that_are_forbidden_and_missing_are_told_apart_from_those_that_synced() {
    let cluster = Cluster::with_pods(&["default/web-0"]);
    cluster.forbid("/deployments");
    let factory = cluster.factory();
    let (pods, deployments) = (factory.informer::<Pod>(), factory.informer::<Deployment>());
    let _widgets = factory.informer_for(&widgets());
    start(&factory);
    let began = Instant::now();
    let result = factory.wait_synced().await;
    assert!(began.elapsed() < Duration::from_secs(60), "after {:?}", began.elapsed());
    assert!(pods.has_synced() && !result.is_ok());
    let lists = |plural| cluster.asked(plural).iter().filter(|asked| !asked.is_watch()).count();
    assert_eq!((lists("deployments"), lists("widgets")), (3, 3), "three refusals are enough");

    let each: Vec<(String, Option<u16>)> = result
        .informers
        .iter()
        .map(|(subject, result)| (subject.to_string(), result.as_ref().err().and_then(|error| error.code())))
        .collect();
    let expected = [("pods", None), ("deployments.apps", Some(403)), ("widgets.example.com", Some(404))];
    assert_eq!(each, expected.map(|(subject, code)| (subject.to_owned(), code)));
    assert!(result.informers.values().filter_map(|result| result.as_ref().err()).any(|error| error.is_forbidden()));

    let error = result.into_result().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotSynced);
    let text = error.to_string();
    for part in [
        "2 of 3 informers have not synced",
        "deployments.apps: ",
        "this is not for you",
        "widgets.example.com: ",
        // What to do.
        "grant",
        "whether the CRD is installed",
    ] {
        assert!(text.contains(part), "{part:?} is not in {text:?}");
    }

    cluster.allow_all();
    deployments.synced().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn of_one_that_failed_the_result_is_its_own_error() {
    let cluster = Cluster::new();
    cluster.forbid("/deployments");
    let factory = cluster.factory();
    let _informers = (factory.informer::<Pod>(), factory.informer::<Deployment>());
    start(&factory);
    let error = factory.wait_synced().await.into_result().unwrap_err();
    assert!(error.is_forbidden(), "{error}");
    assert!(error.to_string().contains("deployments"), "{error}");
}

#[tokio::test(start_paused = true)]
async fn one_forbidden_namespace_is_named_and_the_others_are_there() {
    let cluster = Cluster::with_pods(&["shop/web-0"]);
    cluster.forbid("/namespaces/bank/pods");
    let factory = cluster.factory();
    let pods = factory.informer_with::<Pod>(InformerOptions::new().namespaces(["bank", "shop"])).unwrap();
    start(&factory);
    let error = factory.wait_synced().await.into_result().unwrap_err();
    assert!(error.is_forbidden() && error.to_string().contains("bank"), "{error}");
    assert_eq!(pods.lister().list().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn an_informer_that_was_not_started_says_so_to_those_who_wait_for_it() {
    let cluster = Cluster::new();
    let factory = cluster.factory();
    let pods = factory.informer::<Pod>();
    let error = pods.synced().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotSynced);
    assert!(
        error.to_string().contains("has not been started") && error.to_string().contains("call start()"),
        "{error}"
    );
}

#[tokio::test(start_paused = true)]
async fn all_are_waited_for_at_once_and_each_until_it_makes_no_progress() {
    let cluster = Cluster::new();
    let faults = cluster.server.faults();
    for kind in ["pods", "deployments", "configmaps"] {
        faults.on(Match { kind: Some(kind.to_owned()), ..Match::any() }).then(Fault::stall_for_ever(StallAt::Headers));
    }
    let factory = cluster.factory_with(InformerOptions::new().sync_timeout(Duration::from_secs(20)));
    let _informers = (factory.informer::<Pod>(), factory.informer::<Deployment>(), factory.informer::<ConfigMap>());
    let sets = factory.informer::<DaemonSet>();
    start(&factory);
    let began = Instant::now();
    let result = factory.wait_synced().await;
    assert_eq!(began.elapsed().as_secs(), 20);
    assert!(sets.has_synced());
    assert_eq!(result.informers.values().filter(|result| result.is_err()).count(), 3);
    let text = result.into_result().unwrap_err().to_string();
    assert!(text.contains("3 of 4") && text.contains("has not received anything for 20s"), "{text}");
}

#[tokio::test(start_paused = true)]
async fn waiting_ends_when_all_is_stopped() {
    let cluster = Cluster::new();
    cluster.server.faults().on(Match::any()).then(Fault::stall_for_ever(StallAt::Headers));
    let factory = cluster.factory();
    let _pods = factory.informer::<Pod>();
    let token = CancellationToken::new();
    factory.start(token.clone()).unwrap();
    let waiting = tokio::spawn({
        let factory = factory.clone();
        async move { factory.wait_synced().await }
    });
    settle().await;
    assert!(!waiting.is_finished());
    token.cancel();
    let error = waiting.await.unwrap().into_result().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Stopped);
    assert!(error.to_string().contains("the informer of pods has been stopped"), "{error}");
}
