//! Kinds that are known at run time: client-go's dynamicinformer.

use kube_client::core::{ApiResource, DynamicObject, GroupVersionKind};
use serde_json::{Value, json};
use watchkeeper::{InformerOptions, ObjectKey, SharedInformer};
use watchkeeper_apiserver::{CustomResource, Fault, Match};

use crate::support::{Cluster, Heard, seconds, settle, sync};

fn orders() -> ApiResource {
    ApiResource::from_gvk_with_plural(&GroupVersionKind::gvk("shop.example.com", "v1", "Order"), "orders")
}

fn order(key: &str, amount: u32) -> Value {
    let (namespace, name) = key.split_once('/').unwrap();
    json!({
        "apiVersion": "shop.example.com/v1", "kind": "Order",
        "metadata": {"name": name, "namespace": namespace, "labels": {"size": if amount < 10 { "s" } else { "l" }}},
        "spec": {"amount": amount},
    })
}

fn cluster() -> Cluster {
    let cluster = Cluster::new();
    cluster.server.register(CustomResource::namespaced("shop.example.com", "v1", "Order", "orders")).unwrap();
    cluster.put(order("default/one", 1));
    cluster
}

fn delete(cluster: &Cluster, key: &str) {
    let kind = cluster.server.kind("shop.example.com", "orders").unwrap();
    cluster.server.remove(&kind, key).unwrap();
}

fn amount(orders: &SharedInformer<DynamicObject>, name: &str) -> Value {
    let order = orders.lister().require(&ObjectKey::namespaced("default", name)).unwrap();
    order.decode().unwrap().data["spec"]["amount"].clone()
}

#[tokio::test(start_paused = true)]
async fn objects_that_are_there_come_first_and_then_what_is_added_updated_and_deleted() {
    let cluster = cluster();
    let factory = cluster.factory();
    let informer = factory.informer_for(&orders());
    let (heard, _handle) = Heard::listen(&informer);
    sync(&factory).await;
    assert_eq!(heard.take(), ["+ default/one"]);
    cluster.put(order("default/two", 2));
    settle().await;
    assert_eq!(heard.take(), ["+ default/two"]);
    cluster.put(order("default/two", 20));
    settle().await;
    assert_eq!(heard.take(), ["~ default/two"]);
    assert_eq!(amount(&informer, "two"), 20);
    delete(&cluster, "default/two");
    settle().await;
    assert_eq!(heard.take(), ["- default/two"]);
}

#[tokio::test(start_paused = true)]
async fn a_lister_finds_by_name_lists_by_namespace_and_says_what_it_does_not_find() {
    let cluster = cluster();
    cluster.put(order("bank/two", 2));
    let factory = cluster.factory();
    let informer = factory.informer_for(&orders());
    sync(&factory).await;
    let lister = informer.lister();
    assert_eq!(lister.list().len(), 2);
    assert_eq!(lister.namespace("bank").list().len(), 1);
    let order = lister.namespace("bank").require("two").unwrap().decode().unwrap();
    assert_eq!(order.types.as_ref().unwrap().kind, "Order");
    let error = lister.require(&ObjectKey::namespaced("bank", "three")).unwrap_err();
    assert!(error.to_string().contains("Order") && error.to_string().contains("bank/three"), "{error}");
}

#[tokio::test(start_paused = true)]
async fn a_namespace_and_a_tweak_filter_what_comes() {
    let cluster = cluster();
    cluster.put(order("default/two", 20));
    cluster.put(order("bank/three", 20));
    let factory = cluster.factory_with(
        InformerOptions::new().namespace("default").tweak(|options| options.label_selector = Some("size=l".into())),
    );
    let informer = factory.informer_for(&orders());
    let (heard, _handle) = Heard::listen(&informer);
    sync(&factory).await;
    cluster.put(order("default/four", 40));
    cluster.put(order("default/five", 5));
    cluster.put(order("bank/six", 60));
    settle().await;
    assert_eq!(heard.take(), ["+ default/two", "+ default/four"]);
}

#[tokio::test(start_paused = true)]
async fn the_first_list_is_a_stream_where_the_server_knows_streams() {
    let cluster = cluster();
    let factory = cluster.factory();
    let informer = factory.informer_for(&orders());
    sync(&factory).await;
    assert_eq!(amount(&informer, "one"), 1);
    let asked = cluster.asked("orders");
    assert_eq!(asked.len(), 1);
    assert_eq!(asked[0].path, "/apis/shop.example.com/v1/orders");
    assert!(asked[0].is_watch() && asked[0].option("sendInitialEvents") == "true", "{asked:?}");
}

#[tokio::test(start_paused = true)]
async fn the_first_list_comes_in_pages_where_it_does_not() {
    let cluster = cluster();
    let refused = Fault::status(400, "BadRequest");
    cluster.server.faults().on(Match::streaming_list("orders")).then(refused);
    let factory = cluster.factory();
    let informer = factory.informer_for(&orders());
    let (heard, _handle) = Heard::listen(&informer);
    sync(&factory).await;
    cluster.put(order("default/two", 2));
    // The next watch is not opened within a second of the last one, which the stream was.
    seconds(1).await;
    assert_eq!(heard.take(), ["+ default/one", "+ default/two"]);
    let asked = cluster.asked("orders");
    let kinds: Vec<&str> = asked
        .iter()
        .map(|asked| match (asked.is_list(), asked.is_watch()) {
            (true, true) => "stream",
            (true, false) => "list",
            (false, _) => "watch",
        })
        .collect();
    assert_eq!(kinds, ["stream", "list", "watch"]);
}
