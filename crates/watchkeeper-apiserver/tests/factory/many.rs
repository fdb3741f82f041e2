//! Many informers, many threads, and what they learn from each other.

use std::sync::Barrier;

use k8s_openapi::api::core::v1::{ConfigMap, Pod};
use serde_json::json;
use watchkeeper::{InformerOptions, SharedInformer};
use watchkeeper_apiserver::{CustomResource, Fault, Match};

use crate::support::{Cluster, pod, seconds, start, sync, tasks};

#[tokio::test(start_paused = true)]
async fn a_hundred_and_twenty_informers_of_one_factory_all_sync() {
    let cluster = Cluster::new();
    let factory = cluster.factory();
    let mut informers = Vec::new();
    for number in 0..120 {
        let (kind, plural) = (format!("Kind{number}"), format!("kind{number}s"));
        cluster.server.register(CustomResource::namespaced("example.com", "v1", &kind, &plural)).unwrap();
        for name in 0..3 {
            cluster.put(json!({"apiVersion": "example.com/v1", "kind": kind,
                "metadata": {"name": format!("o{name}"), "namespace": "default"}}));
        }
        let gvk = kube_client::core::GroupVersionKind::gvk("example.com", "v1", &kind);
        informers.push(factory.informer_for(&kube_client::core::ApiResource::from_gvk_with_plural(&gvk, &plural)));
    }
    sync(&factory).await;
    assert!(informers.iter().all(|informer| informer.lister().list().len() == 3));
    assert_eq!(cluster.open_watches(), 120);
    factory.shutdown().await;
    assert_eq!((tasks(), cluster.open_watches()), (0, 0));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_threads_that_ask_at_once_get_one_informer() {
    let cluster = Cluster::with_pods(&["default/web-0"]);
    for round in 0..20 {
        let factory = cluster.factory();
        let before = cluster.asked("pods").len();
        let barrier = Barrier::new(8);
        let informers: Vec<SharedInformer<Pod>> = std::thread::scope(|scope| {
            let ask = || {
                barrier.wait();
                factory.informer::<Pod>()
            };
            let threads: Vec<_> = (0..8).map(|_| scope.spawn(ask)).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        start(&factory);
        factory.wait_synced().await.into_result().unwrap();
        assert!(informers.iter().all(|informer| std::ptr::eq(informer.store(), informers[0].store())), "{round}");
        assert_eq!(cluster.asked("pods").len(), before + 1, "round {round}");
        factory.shutdown().await;
    }
}

#[tokio::test(start_paused = true)]
async fn that_a_server_knows_no_streaming_lists_is_learnt_once_for_each_kind() {
    let cluster = Cluster::with_pods(&["shop/web-0", "bank/web-0"]);
    let streams = Match { kind: None, ..Match::streaming_list("") };
    cluster.server.faults().on(streams).then(Fault::status(400, "BadRequest"));
    let factory = cluster.factory();
    let in_namespace = |name: &str| factory.informer_with::<Pod>(InformerOptions::new().namespace(name)).unwrap();
    let _first = in_namespace("shop");
    sync(&factory).await;
    let streams = |plural: &str| {
        let asked = cluster.asked(plural);
        asked.iter().filter(|asked| asked.is_list() && asked.is_watch()).count()
    };
    assert_eq!(streams("pods"), 1);
    let bank = in_namespace("bank");
    let (_all, _metadata) = (factory.informer::<Pod>(), factory.metadata::<Pod>());
    let _maps = factory.informer::<ConfigMap>();
    sync(&factory).await;
    assert_eq!((streams("pods"), streams("configmaps")), (1, 1));
    seconds(2).await;
    cluster.put(pod("bank/web-1"));
    seconds(2).await;
    assert_eq!(bank.lister().list().len(), 2, "pages do as well");
}
