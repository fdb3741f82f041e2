//! Informers that somebody else makes: client-go's `InformerFor`.

use std::time::Duration;

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::Pod;
use watchkeeper::{InformerOptions, ListWatch, Object, Scripted, ScriptedList, ScriptedWatch, SharedInformer};

use crate::support::{Cluster, Heard, names, seconds, settle, start, sync, tasks};

#[tokio::test(start_paused = true)]
async fn a_special_informer_is_made_once_and_started_waited_for_and_shut_down_with_the_others() {
    let cluster = Cluster::with_pods(&["shop/web-0", "bank/web-1"]);
    let factory = cluster.factory();
    let mut made = 0;
    let mut ask = || -> SharedInformer<Pod> {
        factory.informer_from("pods of the shop", |maker| {
            made += 1;
            maker.informer(ListWatch::of::<Pod>(maker.client.clone()).namespace("shop"))
        })
    };
    let (pods, again) = (ask(), ask());
    assert_eq!(made, 1);
    let _others = factory.informer::<Deployment>();
    start(&factory);
    let result = factory.wait_synced().await;
    let subjects: Vec<String> = result.informers.keys().map(ToString::to_string).collect();
    assert_eq!(subjects, ["deployments.apps", "pods of the shop"]);
    assert!(result.is_ok());
    assert_eq!(names(&pods), ["shop/web-0"]);
    assert_eq!(names(&again), ["shop/web-0"]);
    assert_eq!(cluster.asked("pods").len(), 1);
    factory.shutdown().await;
    assert!(pods.is_stopped());
    assert_eq!(tasks(), 0);
}

#[tokio::test(start_paused = true)]
async fn whoever_makes_one_may_ask_the_factory_for_others() {
    let cluster = Cluster::new();
    let factory = cluster.factory();
    let mut deployments = None;
    let _pods: SharedInformer<Pod> = factory.informer_from("a", |maker| {
        deployments = Some(factory.informer::<Deployment>());
        let _nested: SharedInformer<Pod> =
            factory.informer_from("b", |maker| maker.informer(ListWatch::of::<Pod>(maker.client.clone())));
        maker.informer(ListWatch::of::<Pod>(maker.client.clone()))
    });
    let subjects: Vec<String> = factory.subjects().iter().map(ToString::to_string).collect();
    assert_eq!(subjects, ["deployments.apps", "a", "b"]);
    sync(&factory).await;
    assert!(deployments.unwrap().has_synced());
}

#[tokio::test(start_paused = true)]
async fn its_source_can_be_anything() {
    let pod = Object::from_json(r#"{"metadata":{"name":"web-0","namespace":"shop","resourceVersion":"1"}}"#).unwrap();
    let source = Scripted::new().answer_list(ScriptedList::new("1", [pod])).answer_watch(ScriptedWatch::new().hang());
    let factory = Cluster::new().factory();
    let pods: SharedInformer<Pod> = factory.informer_from("scripted", |maker| maker.informer(source));
    sync(&factory).await;
    assert_eq!(names(&pods), ["shop/web-0"]);
}

#[tokio::test(start_paused = true)]
async fn the_factorys_defaults_hold_for_it_unless_its_maker_says_otherwise() {
    let cluster = Cluster::with_pods(&["default/web-0"]);
    let factory = cluster.factory_with(InformerOptions::new().resync_period(Duration::from_secs(10)));
    let source = |client: &kube_client::Client| ListWatch::of::<Pod>(client.clone());
    let tens: SharedInformer<Pod> = factory.informer_from("tens", |maker| maker.informer(source(&maker.client)));
    let thirties: SharedInformer<Pod> = factory.informer_from("thirties", |maker| {
        maker.informer(source(&maker.client)).resync_period(Duration::from_secs(30))
    });
    let ((tens, _a), (thirties, _b)) = (Heard::listen(&tens), Heard::listen(&thirties));
    sync(&factory).await;
    tens.take();
    thirties.take();
    seconds(35).await;
    assert_eq!((tens.take().len(), thirties.take().len()), (3, 1));
}

#[tokio::test(start_paused = true)]
async fn a_special_informer_that_nobody_needs_stops_and_is_made_again() {
    let cluster = Cluster::new();
    let factory = cluster.factory();
    let ask = || -> SharedInformer<Pod> {
        factory.informer_from("pods", |maker| maker.informer(ListWatch::of::<Pod>(maker.client.clone())))
    };
    let pods = ask();
    sync(&factory).await;
    drop(pods);
    seconds(31).await;
    assert_eq!(cluster.open_watches(), 0);
    let pods = ask();
    sync(&factory).await;
    settle().await;
    assert!(pods.has_synced());
    assert_eq!(cluster.lists("pods"), 2);
}
