//! Many informers on one server.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::Duration;

use kube_client::core::{ApiResource, DynamicObject};
use serde_json::json;
use tokio::runtime::Handle;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;
use watchkeeper::{Event, ListWatch, SharedInformer};
use watchkeeper_apiserver::{ApiServer, CustomResource};

const KINDS: usize = 120;

fn resource(number: usize) -> ApiResource {
    ApiResource {
        group: "many.example.com".to_owned(),
        version: "v1".to_owned(),
        api_version: "many.example.com/v1".to_owned(),
        kind: format!("Kind{number}"),
        plural: format!("kind{number}s"),
    }
}

fn put(server: &ApiServer, number: usize, value: u32) {
    let kind = resource(number);
    let object = json!({
        "apiVersion": kind.api_version, "kind": kind.kind, "metadata": {"name": "one", "namespace": "default"},
        "spec": {"value": value},
    });
    server.put(object).unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_hundred_and_twenty_informers_sync_hear_of_changes_and_leave_nothing_behind() {
    let server = ApiServer::builder().seed(1).build();
    let client = server.client();
    sleep(Duration::from_millis(10)).await;
    let tasks_before = Handle::current().metrics().num_alive_tasks();
    let (added, updated) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let mut informers = Vec::new();
    for number in 0..KINDS {
        let kind = resource(number);
        server.register(CustomResource::namespaced(&kind.group, &kind.version, &kind.kind, &kind.plural)).unwrap();
        put(&server, number, 1);
        let informer: SharedInformer<DynamicObject> = SharedInformer::new(ListWatch::new(client.clone(), kind));
        let (added, updated) = (added.clone(), updated.clone());
        let count = move |event: &Event<DynamicObject>| match event {
            Event::Added { .. } => drop(added.fetch_add(1, Relaxed)),
            Event::Updated { .. } => drop(updated.fetch_add(1, Relaxed)),
            Event::Deleted { .. } => {}
        };
        informer.on_event(count).unwrap();
        informer.start(CancellationToken::new()).unwrap();
        informers.push(informer);
    }
    for informer in &informers {
        informer.synced().await.unwrap();
    }
    sleep(Duration::from_secs(2)).await;
    assert_eq!(added.load(Relaxed), KINDS);
    assert_eq!(server.storage().watches(), KINDS, "one watch each");

    (0..KINDS).for_each(|number| put(&server, number, 2));
    sleep(Duration::from_secs(2)).await;
    assert_eq!(updated.load(Relaxed), KINDS);
    for informer in &informers {
        assert!(informer.verify_against_server().await.unwrap().is_same());
    }
    server.faults().cut();
    (0..KINDS).for_each(|number| put(&server, number, 3));
    sleep(Duration::from_secs(30)).await;
    assert_eq!((added.load(Relaxed), updated.load(Relaxed)), (KINDS, 2 * KINDS));

    for informer in &informers {
        informer.shutdown().await;
    }
    sleep(Duration::from_millis(10)).await;
    assert_eq!(Handle::current().metrics().num_alive_tasks(), tasks_before);
    assert_eq!(server.storage().watches(), 0);
}
