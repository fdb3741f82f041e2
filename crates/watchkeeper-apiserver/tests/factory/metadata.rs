//! Metadata alone: client-go's metadatainformer.

use k8s_openapi::api::core::v1::Pod;
use kube_client::core::{ApiResource, PartialObjectMeta};
use serde_json::{Value, json};
use watchkeeper::{InformerOptions, ObjectKey, SharedInformer};
use watchkeeper_apiserver::{Fault, Match};

use crate::support::{Cluster, Heard, pod, settle, sync};

fn body(informer: &SharedInformer<PartialObjectMeta<Pod>>, key: &str) -> Value {
    let (namespace, name) = key.split_once('/').unwrap();
    informer.lister().require(&ObjectKey::namespaced(namespace, name)).unwrap().view().unwrap()
}

#[tokio::test(start_paused = true)]
async fn metadata_is_all_that_is_asked_for_and_all_that_comes() {
    let cluster = Cluster::with_pods(&["default/web-0"]);
    let factory = cluster.factory();
    let pods = factory.metadata::<Pod>();
    sync(&factory).await;
    cluster.put(pod("default/web-1"));
    settle().await;
    for asked in cluster.asked("pods") {
        assert!(asked.accept.contains("as=PartialObjectMetadata"), "{asked:?}");
    }
    for key in ["default/web-0", "default/web-1"] {
        let body = body(&pods, key);
        assert_eq!((&body["spec"], &body["kind"]), (&Value::Null, &json!("PartialObjectMetadata")), "{body}");
        assert_eq!(body["metadata"]["labels"]["app"], "web");
    }
    let decoded = pods.lister().require(&ObjectKey::namespaced("default", "web-0")).unwrap().decode().unwrap();
    assert_eq!(decoded.metadata.name.as_deref(), Some("web-0"));
}

#[tokio::test(start_paused = true)]
async fn objects_that_are_there_come_first_and_then_what_is_added_updated_and_deleted() {
    let cluster = Cluster::with_pods(&["default/web-0"]);
    let factory = cluster.factory();
    let pods = factory.metadata::<Pod>();
    let (heard, _handle) = Heard::listen(&pods);
    sync(&factory).await;
    assert_eq!(heard.take(), ["+ default/web-0"]);
    cluster.put(pod("default/web-1"));
    settle().await;
    assert_eq!(heard.take(), ["+ default/web-1"]);
    let mut changed = pod("default/web-1");
    changed["metadata"]["annotations"] = json!({"note": "new"});
    cluster.put(changed);
    settle().await;
    assert_eq!(heard.take(), ["~ default/web-1"]);
    assert_eq!(body(&pods, "default/web-1")["metadata"]["annotations"]["note"], "new");
    cluster.delete_pod("default/web-1");
    settle().await;
    assert_eq!(heard.take(), ["- default/web-1"]);
}

#[tokio::test(start_paused = true)]
async fn a_namespace_and_a_tweak_filter_what_comes() {
    let cluster = Cluster::with_pods(&["shop/web-0", "shop/db-0", "bank/web-0"]);
    let factory = cluster.factory();
    let options = InformerOptions::new()
        .namespace("shop")
        .tweak(|options| options.field_selector = Some("metadata.name=db-0".into()));
    let pods = factory.metadata_for_with(&ApiResource::erase::<Pod>(&()), options).unwrap();
    let (heard, _handle) = Heard::listen(&pods);
    sync(&factory).await;
    cluster.put(pod("shop/web-1"));
    settle().await;
    assert_eq!(heard.take(), ["+ shop/db-0"]);
    assert_eq!(pods.lister().namespace("shop").list().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn of_a_type_and_of_a_resource_metadata_is_one_informer() {
    let cluster = Cluster::with_pods(&["default/web-0"]);
    let factory = cluster.factory();
    let (typed, dynamic) = (factory.metadata::<Pod>(), factory.metadata_for(&ApiResource::erase::<Pod>(&())));
    sync(&factory).await;
    assert_eq!((typed.lister().list().len(), dynamic.lister().list().len()), (1, 1));
    assert_eq!(cluster.asked("pods").len(), 1);
}

#[tokio::test(start_paused = true)]
async fn in_pages_it_is_metadata_alone_too() {
    let cluster = Cluster::with_pods(&["default/web-0", "default/web-1", "default/web-2"]);
    cluster.server.faults().on(Match::streaming_list("pods")).then(Fault::status(400, "BadRequest"));
    let factory = cluster.factory();
    let pods = factory.metadata::<Pod>();
    sync(&factory).await;
    let lists: Vec<_> = cluster.asked("pods").into_iter().filter(|asked| !asked.is_watch()).collect();
    assert_eq!(lists.len(), 1);
    assert!(lists[0].accept.contains("as=PartialObjectMetadataList"), "{lists:?}");
    assert_eq!(pods.lister().list().len(), 3);
    assert!(body(&pods, "default/web-2")["spec"].is_null());
}
