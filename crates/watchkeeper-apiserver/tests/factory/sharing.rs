//! Who asks for the same objects gets the same informer.

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::Pod;
use kube_client::core::ApiResource;
use serde::Deserialize;
use watchkeeper::{InformerOptions, ObjectKey, Scope, view_of};

use crate::support::{Cluster, Heard, names, settle, sync};

#[derive(Deserialize)]
struct Placement {
    spec: PlacementSpec,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct PlacementSpec {
    node_name: String,
}

view_of!(Placement: Pod);

#[tokio::test(start_paused = true)]
async fn all_who_ask_for_a_kind_share_one_list_and_one_watch() {
    let cluster = Cluster::with_pods(&["default/web-0"]);
    let factory = cluster.factory_with(InformerOptions::new().reflector(|reflector| reflector.streaming_lists(false)));
    let informers: Vec<_> = (0..5).map(|_| factory.informer::<Pod>()).collect();
    sync(&factory).await;
    assert!(informers.iter().all(|informer| informer.lister().list().len() == 1));
    assert_eq!((cluster.lists("pods"), cluster.watches("pods")), (1, 1));
}

#[tokio::test(start_paused = true)]
async fn a_streaming_list_is_the_only_request_of_all() {
    let cluster = Cluster::with_pods(&["default/web-0"]);
    let factory = cluster.factory();
    let _informers: Vec<_> = (0..5).map(|_| factory.informer::<Pod>()).collect();
    sync(&factory).await;
    assert_eq!(cluster.asked("pods").len(), 1);
    assert_eq!(cluster.open_watches(), 1);
}

#[tokio::test(start_paused = true)]
async fn two_types_of_one_kind_are_views_of_one_informer() {
    let cluster = Cluster::with_pods(&["default/web-0"]);
    let factory = cluster.factory();
    let (pods, placements) = (factory.informer::<Pod>(), factory.informer::<Placement>());
    let dynamic = factory.informer_for(&ApiResource::erase::<Pod>(&()));
    let (heard, _handle) = Heard::listen(&placements);
    sync(&factory).await;

    let key = ObjectKey::namespaced("default", "web-0");
    assert_eq!(pods.lister().require(&key).unwrap().decode().unwrap().metadata.name.as_deref(), Some("web-0"));
    assert_eq!(placements.lister().require(&key).unwrap().decode().unwrap().spec.node_name, "node-1");
    assert_eq!(dynamic.lister().require(&key).unwrap().decode().unwrap().data["spec"]["nodeName"], "node-1");
    assert_eq!(heard.take(), ["+ default/web-0"]);
    assert_eq!(cluster.asked("pods").len(), 1);
    assert_eq!(factory.subjects().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_resource_of_which_only_the_names_are_known_is_the_same_kind() {
    let cluster = Cluster::new();
    let factory = cluster.factory();
    let names = ApiResource {
        group: "apps".into(),
        version: "v1".into(),
        api_version: "apps/v1".into(),
        kind: String::new(),
        plural: "deployments".into(),
    };
    let _dynamic = factory.informer_for(&names);
    let _typed = factory.informer::<Deployment>();
    sync(&factory).await;
    assert_eq!(cluster.asked("deployments").len(), 1);
}

#[tokio::test(start_paused = true)]
async fn other_objects_are_another_informer() {
    let cluster = Cluster::with_pods(&["shop/web-0", "bank/web-1", "bank/db-0"]);
    let factory = cluster.factory();
    let all = factory.informer::<Pod>();
    let bank = factory.informer_with::<Pod>(InformerOptions::new().namespace("bank")).unwrap();
    let web = factory.informer_with::<Pod>(InformerOptions::new().labels("app=web")).unwrap();
    let field = factory.informer_with::<Pod>(InformerOptions::new().fields("metadata.name=db-0")).unwrap();
    let metadata = factory.metadata::<Pod>();
    sync(&factory).await;
    assert_eq!(cluster.asked("pods").len(), 5);
    let counts = [all.lister(), bank.lister(), web.lister(), field.lister()].map(|lister| lister.list().len());
    assert_eq!(counts, [3, 2, 2, 1]);
    assert_eq!(metadata.lister().list().len(), 3);

    let subjects: Vec<String> = factory.subjects().iter().map(ToString::to_string).collect();
    assert_eq!(
        subjects,
        [
            "pods",
            "pods with fields metadata.name=db-0",
            "pods with labels app=web",
            "pods in namespace bank",
            "pods (metadata only)",
        ]
    );
    assert!(factory.subjects().iter().all(|subject| subject.is_of("", "pods")));
}

#[tokio::test(start_paused = true)]
async fn the_same_objects_in_other_words_are_the_same_informer() {
    let cluster = Cluster::new();
    let factory = cluster.factory();
    let one = InformerOptions::new().namespaces(["shop"]);
    let several = InformerOptions::new().scope(Scope::Namespaces(["a".to_owned(), "b".to_owned()].into()));
    let _informers = [
        factory.informer_with::<Pod>(one).unwrap(),
        factory.informer_with(InformerOptions::new().namespace("shop")).unwrap(),
        factory.informer_with(several).unwrap(),
        factory.informer_with(InformerOptions::new().namespaces(["b", "a", "b"])).unwrap(),
        factory.informer(),
        factory.informer_with(InformerOptions::new().namespace("").labels("").fields("")).unwrap(),
    ];
    let subjects: Vec<String> = factory.subjects().iter().map(ToString::to_string).collect();
    assert_eq!(subjects, ["pods", "pods in namespace shop", "pods in namespaces a, b"]);
    sync(&factory).await;
    assert_eq!(cluster.asked("pods").len(), 4);
}

#[tokio::test(start_paused = true)]
async fn two_factories_share_nothing() {
    let cluster = Cluster::with_pods(&["default/web-0"]);
    let (one, other) = (cluster.factory(), cluster.factory());
    let _informers = (one.informer::<Pod>(), other.informer::<Pod>());
    sync(&one).await;
    sync(&other).await;
    assert_eq!(cluster.asked("pods").len(), 2);
}

#[tokio::test(start_paused = true)]
async fn an_informer_asked_for_while_another_runs_has_all_that_is_there() {
    let cluster = Cluster::with_pods(&["default/web-0"]);
    let factory = cluster.factory();
    let first = factory.informer::<Pod>();
    sync(&factory).await;
    let second = factory.informer::<Pod>();
    assert!(second.has_synced());
    let (heard, _handle) = Heard::listen(&second);
    settle().await;
    assert_eq!(heard.take(), ["+ default/web-0"]);
    first.stop();
    settle().await;
    assert!(second.is_stopped(), "they are one");
}

#[tokio::test(start_paused = true)]
async fn the_empty_namespace_stands_for_all_among_others_too() {
    let cluster = Cluster::with_pods(&["shop/web-0", "bank/web-0"]);
    let factory = cluster.factory();
    let all = factory.informer::<Pod>();
    let alone = factory.informer_with::<Pod>(InformerOptions::new().namespaces([""])).unwrap();
    let among = factory.informer_with::<Pod>(InformerOptions::new().namespaces(["shop", ""])).unwrap();
    sync(&factory).await;
    assert_eq!((names(&all).len(), names(&alone).len(), names(&among).len()), (2, 2, 2));
    assert_eq!(factory.subjects().len(), 1);
    assert_eq!(cluster.lists("pods"), 1);
}
