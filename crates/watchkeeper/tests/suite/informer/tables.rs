//! Informers of rows.

use bytes::Bytes;
use http::Response;
use kube_client::Client;
use watchkeeper::{Index, InformerQueue, Keep, ListWatch, Scope, TableRow};

use super::*;
use crate::support::{Piece, body, client, event_json, key, pod_json};

/// A server that has one pod in a Table, whose age is another one in each answer. Watches are silent, but for one that says
/// that it is too old, if that is wanted.
struct Ageing {
    answers: Arc<Mutex<u32>>,
    expire: Arc<Mutex<bool>>,
}

impl Ageing {
    fn new() -> Self {
        Self { answers: Arc::default(), expire: Arc::default() }
    }

    fn client(&self) -> Client {
        let (answers, expire) = (self.answers.clone(), self.expire.clone());
        client(move |request| {
            let query = request.uri().query().unwrap_or_default();
            let age = {
                let mut answers = answers.lock().unwrap();
                *answers += 1;
                *answers
            };
            let namespace = request.uri().path().split('/').nth(4).unwrap_or("shop").to_owned();
            let pod = pod_json("a", "1").replace(r#""shop""#, &format!("{namespace:?}"));
            let table = |columns: &str, object: &str| {
                format!(
                    r#"{{"kind":"Table","apiVersion":"meta.k8s.io/v1","metadata":{{"resourceVersion":"9"}},"columnDefinitions":{columns},"rows":[{{"cells":["a","{age}s"],"object":{object}}}]}}"#
                )
            };
            let columns = r#"[{"name":"Name"},{"name":"Age"}]"#;
            let end = r#"{"metadata":{"resourceVersion":"9","annotations":{"k8s.io/initial-events-end":"true"}}}"#;
            let expired = r#"{"kind":"Status","status":"Failure","reason":"Expired","code":410}"#;
            let text = if query.contains("sendInitialEvents=true") {
                event_json("ADDED", &table(columns, &pod)) + &event_json("BOOKMARK", &table("null", end))
            } else if query.contains("watch=true") {
                String::new()
            } else {
                return Response::new(body(vec![Piece::Bytes(table(columns, &pod).into())]));
            };
            let expires = std::mem::take(&mut *expire.lock().unwrap());
            let rest = if expires { event_json("ERROR", expired) } else { String::new() };
            let pieces = [text, rest].map(|text| Piece::Bytes(Bytes::from(text)));
            Response::new(body(pieces.into_iter().chain([Piece::Hang]).collect()))
        })
    }
}

async fn rows(source: ListWatch, queue: InformerQueue, streaming: bool) -> SharedInformer<TableRow<Pod>> {
    let rows = SharedInformer::<TableRow<Pod>>::builder(source).queue(queue);
    let rows = rows
        .reflector(move |reflector| {
            reflector.backoff(Backoff::default().jitter(0.0)).seed(1).streaming_lists(streaming)
        })
        .build();
    start(&rows);
    rows.synced().await.expect("it syncs");
    rows
}

#[tokio::test(start_paused = true)]
async fn a_relist_of_rows_that_have_only_grown_older_is_no_news() {
    for queue in both_queues() {
        for streaming in [true, false] {
            let server = Ageing::new();
            *server.expire.lock().unwrap() = true;
            let rows = rows(ListWatch::of::<Pod>(server.client()).table(), queue, streaming).await;
            let (notes, _handle) = noting(&rows);
            pass(seconds(60)).await;
            assert!(rows.status().relists.values().sum::<u64>() >= 1, "{:?}", rows.status().relists);
            assert_eq!(notes.take(), ["+a@1 Initial"], "streaming: {streaming}");
            assert_eq!(contents(rows.store()), ["a@1"]);
            let verification = rows.verify_against_server().await.expect("an answer");
            assert!(verification.is_same(), "{verification:?}");
            rows.shutdown().await;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn rows_are_found_by_fields_of_their_objects_and_by_what_is_in_their_headers() {
    let source = ListWatch::of::<Pod>(Ageing::new().client()).table().keep(Keep::decoded::<TableRow<Pod>>());
    let columns = source.columns();
    let informer = SharedInformer::<TableRow<Pod>>::new(source);
    informer.add_index("node", Index::field("/object/spec/nodeName")).await.expect("an index");
    informer.add_index("app", Index::label("app")).await.expect("an index");
    start(&informer);
    let pods = informer.synced().await.expect("it syncs");
    assert_eq!(pods.by_index("node", "node-1").expect("an index").len(), 1);
    assert_eq!(pods.by_index("app", "a").expect("an index").len(), 1);
    assert_eq!(pods.namespace("shop").list().len(), 1);
    let row = pods.get(&key("a")).expect("a row").decode().expect("a row");
    assert_eq!((row.cells.len(), row.object.metadata.name.as_deref()), (columns.get().len(), Some("a")));
}

#[tokio::test(start_paused = true)]
async fn the_columns_of_several_namespaces_are_one() {
    let namespaces = Scope::Namespaces(["blue".to_owned(), "green".to_owned()].into());
    let source = ListWatch::of::<Pod>(Ageing::new().client()).table().scope(namespaces);
    let kept = source.clone();
    let rows = rows(source, InformerQueue::Atomic, true).await;
    assert_eq!(rows.store().len(), 2);
    assert_eq!(kept.columns().get().len(), 2);
}
