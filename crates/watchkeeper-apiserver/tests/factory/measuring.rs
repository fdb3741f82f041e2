//! The metrics of a factory's informers.

use std::sync::Barrier;

use k8s_openapi::api::core::v1::Pod;
use prometheus_client::encoding::text::encode;
use prometheus_client::registry::Registry;
use watchkeeper::metrics::PrometheusMetrics;
use watchkeeper::{InformerFactory, InformerOptions, SharedInformer};

use crate::support::{Busy, Cluster, pod, settle, sync};

struct Bench {
    cluster: Cluster,
    metrics: PrometheusMetrics,
    registry: Registry,
    factory: InformerFactory,
}

impl Bench {
    fn new(pods: &[&str]) -> Self {
        let cluster = Cluster::with_pods(pods);
        let mut registry = Registry::default();
        let metrics = PrometheusMetrics::new();
        metrics.register(&mut registry);
        let name = metrics.names().reserve("web").unwrap();
        let factory = InformerFactory::builder(cluster.client()).metrics(metrics.clone(), name).build();
        Self { cluster, metrics, registry, factory }
    }

    fn page(&self) -> String {
        let mut page = String::new();
        encode(&mut page, &self.registry).unwrap();
        page
    }

    /// The value of a metric of an informer.
    fn value(&self, metric: &str, resource: &str) -> Option<f64> {
        let page = self.page();
        let label = format!("resource=\"{resource}\"");
        let mut lines = page.lines().filter(|line| line.starts_with(metric) && line.contains(&label));
        let line = lines.next()?;
        assert!(lines.next().is_none(), "{metric} of {resource} stands there twice:\n{page}");
        line.rsplit(' ').next()?.parse().ok()
    }

    fn objects(&self, resource: &str) -> Option<f64> {
        self.value("informer_store_objects{", resource)
    }
}

#[tokio::test(start_paused = true)]
async fn two_informers_of_one_kind_are_both_measured_and_rightly() {
    let bench = Bench::new(&["shop/web-0", "bank/web-0"]);
    let _all = bench.factory.informer::<Pod>();
    let _shop = bench.factory.informer_with::<Pod>(InformerOptions::new().namespace("shop")).unwrap();
    let _metadata = bench.factory.metadata::<Pod>();
    sync(&bench.factory).await;
    let all = "pods";
    let (shop, metadata) = ("pods in namespace shop", "pods (metadata only)");
    assert_eq!([all, shop, metadata].map(|of| bench.objects(of)), [Some(2.0), Some(1.0), Some(2.0)]);

    bench.cluster.put(pod("shop/web-1"));
    bench.cluster.put(pod("shop/web-2"));
    bench.cluster.delete_pod("bank/web-0");
    settle().await;
    assert_eq!([all, shop, metadata].map(|of| bench.objects(of)), [Some(3.0), Some(3.0), Some(3.0)]);
    let lists = |of| bench.value("informer_synced{", of);
    assert_eq!((lists(all), lists(shop)), (Some(1.0), Some(1.0)));
}

#[tokio::test(start_paused = true)]
async fn after_a_shutdown_nothing_is_published_and_the_name_is_free() {
    let bench = Bench::new(&["default/web-0"]);
    let pods = bench.factory.informer::<Pod>();
    let lister = pods.lister();
    sync(&bench.factory).await;
    assert_eq!(bench.objects("pods"), Some(1.0));
    assert!(bench.metrics.names().reserve("web").is_err());
    bench.factory.shutdown().await;
    assert_eq!(bench.objects("pods"), None, "{}", bench.page());
    assert_eq!(lister.list().len(), 1, "somebody still holds it");
    bench.metrics.names().reserve("web").unwrap();
}

#[tokio::test(start_paused = true)]
async fn an_informer_that_takes_the_place_of_a_stopped_one_is_measured() {
    let bench = Bench::new(&["default/web-0"]);
    let first = bench.factory.informer::<Pod>();
    sync(&bench.factory).await;
    first.shutdown().await;
    assert_eq!(bench.objects("pods"), None);
    let second = bench.factory.informer::<Pod>();
    sync(&bench.factory).await;
    assert_eq!(bench.objects("pods"), Some(1.0));
    drop((first, second));
}

#[tokio::test]
async fn one_that_is_still_stopping_and_the_one_in_its_place_are_not_both_published() {
    let bench = Bench::new(&["default/web-0"]);
    let busy = Busy::start(&bench.factory).await;
    let first = bench.factory.informer::<Pod>();
    first.stop();
    let second = bench.factory.informer::<Pod>();
    sync(&bench.factory).await;
    assert!(!first.is_stopped() && second.has_synced());
    assert_eq!(bench.objects("pods"), Some(1.0));
    busy.let_go();
    bench.factory.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_many_threads_that_ask_at_once_one_informer_is_measured() {
    for round in 0..50 {
        let bench = Bench::new(&["default/web-0"]);
        let barrier = Barrier::new(8);
        let _informers: Vec<SharedInformer<Pod>> = std::thread::scope(|scope| {
            let ask = || {
                barrier.wait();
                bench.factory.informer::<Pod>()
            };
            let threads: Vec<_> = (0..8).map(|_| scope.spawn(ask)).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        assert_eq!(bench.objects("pods"), Some(0.0), "round {round}");
    }
}

#[tokio::test(start_paused = true)]
async fn labels_of_informers_that_are_gone_do_not_pile_up() {
    let cluster = Cluster::new();
    let metrics = PrometheusMetrics::new();
    let name = metrics.names().reserve("web").unwrap();
    let factory = InformerFactory::builder(cluster.client()).metrics(metrics, name.clone()).build();
    for number in 0..500 {
        let options = InformerOptions::new().namespace(format!("n-{number}"));
        let pods = factory.informer_with::<Pod>(options).unwrap();
        sync(&factory).await;
        pods.shutdown().await;
    }
    let is_kept = |number: &usize| {
        let label = format!("pods in namespace n-{number}");
        !name.with_resource("", "v1", &label).is_reserved()
    };
    let kept = (0..500).filter(is_kept).count();
    assert!(kept < 100, "{kept} of 500 are still in use");
}
