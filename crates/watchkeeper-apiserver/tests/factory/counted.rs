//! Who needs an informer keeps it running; nobody else does.

use std::time::Duration;

use k8s_openapi::api::core::v1::Pod;
use watchkeeper::InformerOptions;

use crate::support::{Cluster, Heard, names, pod, seconds, settle, sync, tasks};

#[tokio::test(start_paused = true)]
async fn with_its_last_holder_gone_an_informer_stops_after_a_while() {
    let cluster = Cluster::new();
    let factory = cluster.factory();
    let pods = factory.informer::<Pod>();
    let other = pods.clone();
    sync(&factory).await;
    drop(pods);
    seconds(3600).await;
    assert_eq!(cluster.open_watches(), 1, "somebody holds it");
    drop(other);
    seconds(29).await;
    assert_eq!(cluster.open_watches(), 1, "the while is not over");
    seconds(2).await;
    assert_eq!(cluster.open_watches(), 0);
    assert_eq!(tasks(), 0);
    assert!(factory.subjects().is_empty());
}

#[tokio::test(start_paused = true)]
async fn who_asks_within_that_while_gets_the_same_one() {
    let cluster = Cluster::with_pods(&["default/web-0"]);
    let factory = cluster.factory_with(InformerOptions::new().linger(Duration::from_secs(5)));
    let pods = factory.informer::<Pod>();
    sync(&factory).await;
    drop(pods);
    seconds(4).await;
    let pods = factory.informer::<Pod>();
    assert!(pods.has_synced());
    seconds(3600).await;
    assert_eq!(names(&pods), ["default/web-0"]);
    assert_eq!(cluster.lists("pods"), 1);
}

#[tokio::test(start_paused = true)]
async fn the_while_begins_anew_with_each_who_comes_and_goes() {
    let cluster = Cluster::new();
    let factory = cluster.factory_with(InformerOptions::new().linger(Duration::from_secs(10)));
    drop(factory.informer::<Pod>().lister());
    let pods = factory.informer::<Pod>();
    sync(&factory).await;
    drop(pods);
    for _ in 0..5 {
        seconds(8).await;
        assert_eq!(cluster.open_watches(), 1);
        drop(factory.informer::<Pod>());
    }
    seconds(11).await;
    assert_eq!(cluster.open_watches(), 0);
}

#[tokio::test(start_paused = true)]
async fn who_asks_later_gets_a_new_one_that_lists_again_after_the_next_start() {
    let cluster = Cluster::with_pods(&["default/web-0"]);
    let factory = cluster.factory();
    let pods = factory.informer::<Pod>();
    sync(&factory).await;
    drop(pods);
    seconds(60).await;
    cluster.put(pod("default/web-1"));
    let pods = factory.informer::<Pod>();
    seconds(60).await;
    assert!(!pods.is_started() && cluster.lists("pods") == 1, "not before the next start");
    sync(&factory).await;
    assert_eq!(cluster.lists("pods"), 2);
    assert_eq!(names(&pods), ["default/web-0", "default/web-1"]);
}

#[tokio::test(start_paused = true)]
async fn a_lister_keeps_an_informer_alive() {
    let cluster = Cluster::new();
    let factory = cluster.factory();
    let lister = factory.informer::<Pod>().lister();
    sync(&factory).await;
    let by_namespace = lister.namespace("default");
    drop(lister);
    seconds(3600).await;
    cluster.put(pod("default/web-0"));
    settle().await;
    assert!(by_namespace.get("web-0").is_some());
    drop(by_namespace);
    seconds(31).await;
    assert_eq!(cluster.open_watches(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_handler_keeps_an_informer_alive_until_it_is_removed() {
    let cluster = Cluster::new();
    let factory = cluster.factory();
    let (heard, handle) = Heard::listen(&factory.informer::<Pod>());
    sync(&factory).await;
    seconds(3600).await;
    cluster.put(pod("default/web-0"));
    settle().await;
    assert_eq!(heard.take(), ["+ default/web-0"]);
    handle.remove();
    seconds(31).await;
    assert_eq!((cluster.open_watches(), tasks()), (0, 0));
}

#[tokio::test(start_paused = true)]
async fn a_stream_keeps_an_informer_alive() {
    let cluster = Cluster::new();
    let factory = cluster.factory();
    let mut events = factory.informer::<Pod>().events().unwrap();
    sync(&factory).await;
    seconds(3600).await;
    cluster.put(pod("default/web-0"));
    assert_eq!(events.next().await.unwrap().key().name(), "web-0");
    drop(events);
    seconds(31).await;
    assert_eq!((cluster.open_watches(), tasks()), (0, 0));
}
