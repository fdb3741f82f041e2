//! The same through a `ListWatch`, however bodies are kept.

use http::Response;
use watchkeeper::{Index, Keep, ListWatch};

use super::*;
use crate::support::{Piece, body, client, event_json, key, ok};

fn pod_on(name: &str, version: &str, node: &str) -> String {
    format!(
        r#"{{"kind":"Pod","apiVersion":"v1","metadata":{{"name":"{name}","namespace":"shop","uid":"uid-{name}","resourceVersion":"{version}"}},"spec":{{"nodeName":"{node}","containers":[]}}}}"#
    )
}

fn list(version: &str, items: &[String]) -> String {
    // Items of built-in kinds come without kind and version.
    let items = items.join(",").replace(r#""kind":"Pod","apiVersion":"v1","#, "");
    format!(r#"{{"kind":"PodList","apiVersion":"v1","metadata":{{"resourceVersion":"{version}"}},"items":[{items}]}}"#)
}

/// Two objects are listed, three changes watched; then the version is forgotten, and another list has missed changes.
fn source(keep: Keep) -> ListWatch {
    let requests = Mutex::new((0, 0));
    let requests = Arc::new(requests);
    let text = |text: String| Piece::Bytes(text.into());
    let client = client(move |request| {
        let (lists, watches) = &mut *requests.lock().expect("not poisoned");
        let query = request.uri().query().unwrap_or_default();
        if !query.contains("watch") {
            *lists += 1;
            return ok(match lists {
                1 => list("10", &[pod_on("a", "1", "one"), pod_on("b", "2", "one")]),
                _ => list("20", &[pod_on("a", "12", "two"), pod_on("c", "18", "three"), pod_on("d", "19", "two")]),
            });
        }
        *watches += 1;
        if *watches > 1 {
            return Response::new(body(vec![Piece::Hang]));
        }
        let gone = r#"{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Expired","code":410}"#;
        Response::new(body(vec![
            text(event_json("ADDED", &pod_on("c", "11", "two"))),
            text(event_json("MODIFIED", &pod_on("a", "12", "two"))),
            text(event_json("DELETED", &pod_on("b", "13", "one"))),
            Piece::Pause(seconds(2)),
            text(event_json("ERROR", gone)),
        ]))
    });
    ListWatch::of::<Pod>(client).keep(keep)
}

#[tokio::test(start_paused = true)]
async fn handlers_hear_and_read_the_same_however_bodies_are_kept() {
    for queue in both_queues() {
        for keep in [Keep::Packed, Keep::Raw, Keep::decoded::<Pod>()] {
            println!("keep: {keep:?}");
            let pods = builder(source(keep), queue).reflector(|reflector| reflector.streaming_lists(false)).build();
            pods.add_index("node", Index::field("/spec/nodeName")).await.expect("an index");
            let heard = Notes::default();
            let (notes, store) = (heard.clone(), pods.store().clone());
            let note = move |event: &Event<Pod>| {
                let pod = event.object().decode().expect("a pod");
                let node = pod.spec.as_ref().and_then(|spec| spec.node_name.as_deref()).expect("a node").to_owned();
                let found = store.index_keys("node", &node).expect("an index").contains(event.key());
                notes.note(format!("{} on {node}, found: {found}", words(event)));
            };
            let handle = pods.on_event(note).expect("a handler");
            start(&pods);
            pass(seconds(1)).await;
            let mut first = heard.take();
            first[..2].sort();
            assert_eq!(first[0][..13], *"+a@1 Initial ");
            assert_eq!(
                first[2..],
                [
                    "+c@11 Watch on two, found: true",
                    "~a@1>12 Watch on two, found: true",
                    "-b@13 Watch on one, found: false"
                ]
            );
            recover().await;
            let second = heard.take_sorted();
            assert_eq!(second, ["+d@19 Relist on two, found: true", "~c@11>18 Relist on three, found: true"]);
            let lister = pods.lister();
            assert_eq!(lister.by_index("node", "two").expect("an index").len(), 2);
            let json = lister.get(&key("a")).expect("there").json().expect("a body");
            assert_eq!(json, pod_on("a", "12", "two").as_bytes());
            assert_eq!(handle.panics(), 0);
            let (late, late_handle) = noting(&pods);
            late_handle.synced().await.expect("it syncs");
            assert_eq!(late.take_sorted(), ["+a@12 Initial", "+c@18 Initial", "+d@19 Initial"]);
            pods.shutdown().await;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn handlers_and_store_see_what_a_transform_made_deletions_included() {
    for queue in both_queues() {
        let transform = watchkeeper::Transform::json(|json: &[u8]| {
            let text = std::str::from_utf8(json)?;
            Ok::<_, std::str::Utf8Error>(Some(text.replace(r#""nodeName":""#, r#""nodeName":"new-"#).into_bytes()))
        });
        let source = source(Keep::Packed).transform(transform);
        let pods = builder(source, queue).reflector(|reflector| reflector.streaming_lists(false)).build();
        let heard = Notes::default();
        let notes = heard.clone();
        let node = |pod: &watchkeeper::Cached<Pod>| {
            let spec = pod.decode().expect("a pod").spec.clone();
            spec.and_then(|spec| spec.node_name).expect("a node")
        };
        let note = move |event: &Event<Pod>| match event {
            Event::Updated { old, new, .. } => notes.note(format!("{} {}>{}", words(event), node(old), node(new))),
            event => notes.note(format!("{} {}", words(event), node(event.object()))),
        };
        pods.on_event(note).expect("a handler");
        start(&pods);
        recover().await;
        let mut expected = [
            "+a@1 Initial new-one",
            "+b@2 Initial new-one",
            "+c@11 Watch new-two",
            "~a@1>12 Watch new-one>new-two",
            "-b@13 Watch new-one",
            "~c@11>18 Relist new-two>new-three",
            "+d@19 Relist new-two",
        ];
        expected.sort_unstable();
        assert_eq!(heard.take_sorted(), expected);
        assert!(pods.lister().list().iter().all(|pod| node(&pod).starts_with("new-")));
    }
}

#[tokio::test(start_paused = true)]
async fn a_streaming_list_is_told_as_a_first_list() {
    for queue in both_queues() {
        for keep in [Keep::Packed, Keep::Raw, Keep::decoded::<Pod>()] {
            let client = client(move |request| {
                assert!(request.uri().query().is_some_and(|query| query.contains("sendInitialEvents=true")));
                let end = r#"{"kind":"Pod","apiVersion":"v1","metadata":{"resourceVersion":"10","annotations":{"k8s.io/initial-events-end":"true"}}}"#;
                let events = [
                    event_json("ADDED", &pod_on("a", "1", "one")),
                    event_json("ADDED", &pod_on("b", "2", "one")),
                    event_json("MODIFIED", &pod_on("b", "3", "two")),
                    event_json("BOOKMARK", end),
                    event_json("MODIFIED", &pod_on("a", "11", "two")),
                ];
                let mut pieces: Vec<Piece> = events.map(|event| Piece::Bytes(event.into())).into();
                pieces.insert(4, Piece::Pause(seconds(1)));
                pieces.push(Piece::Hang);
                Response::new(body(pieces))
            });
            let pods = informer(ListWatch::of::<Pod>(client).keep(keep), queue);
            let (notes, _) = noting(&pods);
            start(&pods);
            pods.synced().await.expect("it syncs");
            settle().await;
            assert_eq!(notes.take_sorted(), ["+a@1 Initial", "+b@3 Initial"]);
            pass(seconds(2)).await;
            assert_eq!(notes.take(), ["~a@1>11 Watch"]);
            pods.shutdown().await;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn an_informer_tells_how_the_packing_of_its_objects_goes() {
    const PODS: usize = 400;
    let pods = crate::corpus::Pods::new(1);
    let items: Vec<String> = (0..PODS).map(|at| pods.item(at)).collect();
    let listed = list("10", &items);
    let client = client(move |request| {
        let is_watch = request.uri().query().is_some_and(|query| query.contains("watch"));
        if is_watch { Response::new(body(vec![Piece::Hang])) } else { ok(listed.clone()) }
    });
    let source = ListWatch::of::<Pod>(client);
    let kept = source.clone();
    let pods = builder(source, InformerQueue::Atomic).reflector(|reflector| reflector.streaming_lists(false)).build();
    assert_eq!(pods.packing(), watchkeeper::Packing::default());
    start(&pods);
    pods.synced().await.expect("it syncs");
    let memory = || pods.store().list().iter().map(|pod| pod.memory()).sum::<usize>() / PODS;
    while pods.packing().packed < PODS as u64 {
        pass(Duration::from_millis(10)).await;
    }
    assert!(pods.packing().dictionary_bytes > 0);
    assert!((300..1_500).contains(&memory()), "{} bytes a pod", memory());
    assert_eq!(kept.packing().packed, 0, "the informer's objects are packed by the informer's source");
    pods.shutdown().await;
    assert_eq!(pods.packing(), watchkeeper::Packing::default());
}
