//! What is said of an informer: who has the last word, and what the server hears of it.

use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::Pod;
use kube_client::core::ApiResource;
use serde_json::{Value, json};
use watchkeeper::{
    ErrorKind, InformerFactory, InformerOptions, InformerQueue, Keep, ObjectKey, Scope, SharedInformer, Transform,
};

use crate::support::{Cluster, Heard, names, pod, seconds, settle, sync};

/// Marks objects, so that one sees which transform it was.
fn mark(with: &'static str) -> Transform {
    Transform::typed(move |object: &mut Value| object["mark"] = with.into())
}

fn marked(informer: &SharedInformer<Pod>) -> String {
    let objects = informer.lister().list();
    let object: Value = objects.iter().next().unwrap().view().unwrap();
    object["mark"].as_str().unwrap_or("nothing").to_owned()
}

#[tokio::test(start_paused = true)]
async fn the_transform_of_an_informer_wins_over_that_of_its_kind_and_of_the_factory() {
    let cluster = Cluster::with_pods(&["default/web-0"]);
    cluster.put(json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n1"}}));
    let factory = || {
        InformerFactory::builder(cluster.client())
            .defaults(InformerOptions::new().transform(mark("factory")))
            .kind::<Pod>(InformerOptions::new().transform(mark("kind")))
            .build()
    };
    let own = factory();
    let pods = own.informer_with::<Pod>(InformerOptions::new().transform(mark("informer"))).unwrap();
    sync(&own).await;
    assert_eq!(marked(&pods), "informer");

    let kinds = factory();
    let (pods, nodes) = (kinds.informer::<Pod>(), kinds.informer::<k8s_openapi::api::core::v1::Node>().typed::<Pod>());
    sync(&kinds).await;
    assert_eq!((marked(&pods).as_str(), marked(&nodes).as_str()), ("kind", "factory"));
}

#[tokio::test(start_paused = true)]
async fn the_resync_period_of_an_informer_wins_over_that_of_its_kind_and_of_the_factory() {
    let cluster = Cluster::with_pods(&["default/web-0"]);
    let period = |seconds| InformerOptions::new().resync_period(Duration::from_secs(seconds));
    let builder = || InformerFactory::builder(cluster.client()).defaults(period(40));
    let resource = ApiResource::erase::<Pod>(&());
    let cases = [
        (builder().build(), InformerOptions::new(), 40),
        (builder().resource(&resource, period(20)).build(), InformerOptions::new(), 20),
        (builder().resource(&resource, period(20)).build(), period(10), 10),
    ];
    for (factory, options, expected) in cases {
        let pods = factory.informer_with::<Pod>(options).unwrap();
        let (heard, _handle) = Heard::listen(&pods);
        sync(&factory).await;
        heard.take();
        seconds(expected - 1).await;
        assert!(heard.take().is_empty(), "{expected} s have not passed");
        seconds(2).await;
        assert_eq!(heard.take(), ["~ default/web-0"], "{expected} s have passed");
        factory.shutdown().await;
    }
}

#[tokio::test(start_paused = true)]
async fn what_a_kind_does_not_say_the_factory_says() {
    let cluster = Cluster::with_pods(&["shop/web-0", "bank/web-0", "bank/db-0"]);
    let factory = InformerFactory::builder(cluster.client())
        .defaults(InformerOptions::new().namespace("bank"))
        .kind::<Pod>(InformerOptions::new().labels("app=web"))
        .build();
    let pods = factory.informer::<Pod>();
    let all = factory.informer_with::<Pod>(InformerOptions::new().scope(Scope::All).labels("")).unwrap();
    sync(&factory).await;
    assert_eq!(names(&pods), ["bank/web-0"]);
    assert_eq!(names(&all), ["bank/db-0", "bank/web-0", "shop/web-0"], "an informer undoes what the defaults say");
}

#[tokio::test]
async fn asking_with_other_options_is_an_error_that_names_them_and_the_subject() {
    let cluster = Cluster::new();
    let factory = cluster.factory();
    let _pods = factory.informer_with::<Pod>(InformerOptions::new().namespace("shop").keep(Keep::Raw)).unwrap();
    let other = InformerOptions::new()
        .namespace("shop")
        .keep(Keep::Packed)
        .transform(Transform::strip_managed_fields())
        .tweak(|_| {})
        .resync_period(Duration::from_secs(60))
        .queue(InformerQueue::Delta)
        .linger(Duration::ZERO)
        .sync_timeout(Duration::from_secs(1))
        .max_object_size(1)
        .max_raw_bytes(1)
        .reflector(|reflector| reflector)
        .on_watch_error(|_| {});
    let error = factory.informer_with::<Pod>(other).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Config);
    assert_eq!(
        error.to_string(),
        "there is an informer of pods in namespace shop already, with other options (keep, transform, tweak, \
         resync_period, queue, linger, sync_timeout, max_object_size, max_raw_bytes, reflector, on_watch_error): ask \
         without them, or before the others do"
    );
    let error = factory.informer_with::<Pod>(InformerOptions::new().namespace("shop").linger(Duration::ZERO));
    assert!(error.unwrap_err().to_string().contains("(linger)"));
}

#[tokio::test]
async fn asking_with_the_same_options_or_with_none_is_fine() {
    let cluster = Cluster::new();
    let factory = cluster.factory();
    let transform = Transform::strip_managed_fields();
    let options = InformerOptions::new()
        .keep(Keep::Raw)
        .transform(transform.clone())
        .tweak(|_| {})
        .reflector(|reflector| reflector)
        .on_watch_error(|_| {})
        .linger(Duration::from_secs(1));
    let _first = factory.informer_with::<Pod>(options.clone()).unwrap();
    factory.informer_with::<Pod>(options).unwrap();
    factory.informer_with::<Pod>(InformerOptions::new().transform(transform)).unwrap();
    factory.informer_with::<Pod>(InformerOptions::new()).unwrap();
    factory.informer_for_with(&ApiResource::erase::<Pod>(&()), InformerOptions::new().keep(Keep::Raw)).unwrap();
    assert_eq!(factory.subjects().len(), 1);
}

#[tokio::test]
async fn what_holds_by_default_counts_as_the_same() {
    let cluster = Cluster::new();
    let factory = cluster.factory();
    let _pods = factory.informer::<Pod>();
    let defaults = InformerOptions::new()
        .keep(Keep::Packed)
        .resync_period(Duration::ZERO)
        .queue(InformerQueue::Atomic)
        .linger(Duration::from_secs(30))
        .sync_timeout(Duration::from_secs(120))
        .max_object_size(16 << 20)
        .max_raw_bytes(8 << 20);
    factory.informer_with::<Pod>(defaults).unwrap();

    let period = InformerOptions::new().resync_period(Duration::from_secs(60));
    let factory = cluster.factory_with(period.clone());
    let _pods = factory.informer::<Pod>();
    factory.informer_with::<Pod>(period).unwrap();
    factory.informer_with::<Pod>(InformerOptions::new().resync_period(Duration::ZERO)).unwrap_err();
}

#[tokio::test(start_paused = true)]
async fn a_tweak_changes_each_request() {
    let cluster = Cluster::with_pods(&["default/web-0", "default/db-0"]);
    let seen = Arc::new(());
    let count = seen.clone();
    let factory = cluster.factory_with(InformerOptions::new().tweak(move |options| {
        let _count = &count;
        options.label_selector = Some("app=web".into());
    }));
    let pods = factory.informer::<Pod>();
    sync(&factory).await;
    cluster.server.faults().cut();
    seconds(5).await;
    assert!(cluster.asked("pods").len() > 1);
    for asked in cluster.asked("pods") {
        assert_eq!(asked.option("labelSelector"), "app=web", "{asked:?}");
    }
    assert_eq!(names(&pods), ["default/web-0"]);
}

#[tokio::test(start_paused = true)]
async fn of_one_namespace_nothing_else_is_asked_for() {
    let cluster = Cluster::with_pods(&["shop/web-0", "bank/web-1"]);
    let factory = cluster.factory_with(InformerOptions::new().namespace("shop"));
    let (pods, _deployments) = (factory.informer::<Pod>(), factory.informer::<Deployment>());
    sync(&factory).await;
    cluster.put(pod("shop/web-2"));
    cluster.put(pod("bank/web-3"));
    settle().await;
    assert_eq!(names(&pods), ["shop/web-0", "shop/web-2"]);
    assert!(cluster.asked("pods").iter().all(|asked| asked.path == "/api/v1/namespaces/shop/pods"));
    assert_eq!(cluster.asked("deployments")[0].path, "/apis/apps/v1/namespaces/shop/deployments");
}

#[tokio::test(start_paused = true)]
async fn of_several_namespaces_each_is_asked_for_by_itself() {
    let cluster = Cluster::with_pods(&["shop/web-0", "bank/web-1", "farm/web-2"]);
    let factory = cluster.factory();
    let options = InformerOptions::new().namespaces(["shop", "bank", "empty"]);
    let pods = factory.informer_with::<Pod>(options).unwrap();
    let (heard, handle) = Heard::listen(&pods);
    sync(&factory).await;
    handle.synced().await.unwrap();
    assert_eq!(names(&pods), ["bank/web-1", "shop/web-0"]);
    cluster.put(pod("empty/web-3"));
    cluster.delete_pod("shop/web-0");
    settle().await;
    let mut heard = heard.take();
    heard.sort();
    assert_eq!(heard, ["+ bank/web-1", "+ empty/web-3", "+ shop/web-0", "- shop/web-0"]);
    assert!(pods.lister().get(&ObjectKey::namespaced("empty", "web-3")).is_some());
    assert_eq!(cluster.asked("pods").len(), 3);
}
