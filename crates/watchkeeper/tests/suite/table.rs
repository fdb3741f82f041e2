//! Lists and watches as Tables: what is asked for, what is kept of a row, and what becomes of rows that are not as they
//! should be.

use std::sync::{Arc, Mutex};

use bytes::Bytes;
use futures::StreamExt as _;
use http::Response;
use k8s_openapi::api::core::v1::Pod;
use kube_core::DynamicObject;
use serde_json::Value;
use watchkeeper::{
    Cached, ErrorKind, ListOptions, ListWatch, ListerWatcher as _, Object, Scope, TableColumn, TableRow, Transform,
    WatchEvent,
};

use crate::support::*;

const COLUMNS: &str = r#"[{"name":"Name","type":"string","format":"name","description":"What it is called.","priority":0},{"name":"Age","type":"string","format":"","description":"","priority":1}]"#;

/// A row, as kube-apiserver writes it.
fn row(name: &str, version: &str) -> String {
    row_of(&format!(r#"["{name}","{version}s"]"#), &pod_json(name, version))
}

fn row_of(cells: &str, object: &str) -> String {
    format!(r#"{{"cells":{cells},"object":{object}}}"#)
}

fn table(version: &str, columns: &str, rows: &[&str]) -> String {
    let rows = rows.join(",");
    format!(
        r#"{{"kind":"Table","apiVersion":"meta.k8s.io/v1","metadata":{{"resourceVersion":"{version}"}},"columnDefinitions":{columns},"rows":[{rows}]}}"#
    )
}

/// An event with a row, of a watch whose first event has been.
fn row_event(event_type: &str, row: &str) -> String {
    event_json(event_type, &table("7", "null", &[row]))
}

fn tables_in<P: Into<Bytes>>(pieces: impl IntoIterator<Item = P>) -> ListWatch {
    pods_in(pieces).table()
}

/// The parts of a list, without its metadata.
async fn listed(rows: &[&str]) -> Vec<String> {
    let mut parts = read_list(&tables_in([table("9", COLUMNS, rows)])).await.complete();
    assert_eq!(parts.remove(0), "metadata 9");
    parts
}

async fn watched(lines: impl AsRef<[u8]>) -> Vec<String> {
    read_watch(&tables_in([Bytes::copy_from_slice(lines.as_ref())])).await.complete()
}

/// The JSON of all objects that a watch tells of.
async fn watched_json(source: &ListWatch) -> Vec<String> {
    let mut stream = source.watch(ListOptions::default()).await.expect("an answer");
    let mut bodies = Vec::new();
    while let Some(event) = stream.next().await.expect("no error") {
        if let WatchEvent::Added(object) | WatchEvent::Modified(object) | WatchEvent::Deleted(object) = event {
            bodies.push(String::from_utf8(object.json().expect("a body").to_vec()).expect("text"));
        }
    }
    bodies
}

fn names(source: &ListWatch) -> Vec<String> {
    source.columns().get().iter().map(|column| column.name.clone()).collect()
}

#[tokio::test]
async fn tables_are_asked_for_with_their_objects_and_anything_else_will_do() {
    let sent = Arc::new(Mutex::new(Vec::new()));
    let note = sent.clone();
    let client = client(move |request| {
        let accept = request.headers()["accept"].to_str().expect("text").to_owned();
        note.lock().unwrap().push((request.uri().to_string(), accept));
        ok("{}")
    });
    let source = ListWatch::of::<Pod>(client).table();
    for source in [source.clone(), source.metadata_only()] {
        source.list(ListOptions { limit: Some(5), ..ListOptions::default() }).await.map(drop).unwrap();
        source.watch(ListOptions::default()).await.map(drop).unwrap();
    }
    let table = |rest: &str| format!("application/json;as=Table;v=v1;g=meta.k8s.io,{rest}");
    let metadata = |kind: &str| table(&format!("application/json;as={kind};g=meta.k8s.io;v=v1"));
    let expected = [
        ("/api/v1/pods?limit=5&includeObject=Object".to_owned(), table("application/json")),
        ("/api/v1/pods?watch=true&includeObject=Object".to_owned(), table("application/json")),
        ("/api/v1/pods?limit=5&includeObject=Metadata".to_owned(), metadata("PartialObjectMetadataList")),
        ("/api/v1/pods?watch=true&includeObject=Metadata".to_owned(), metadata("PartialObjectMetadata")),
    ];
    assert_eq!(*sent.lock().unwrap(), expected);
}

#[tokio::test]
async fn a_list_of_rows_comes_out_row_by_row_however_it_is_cut() {
    let text = table("9", COLUMNS, &[&row("a", "1"), &row("b", "2")]);
    let expected = ["metadata 9".to_owned(), format!("item {}", row("a", "1")), format!("item {}", row("b", "2"))];
    assert_eq!(read_list(&tables_in(bytewise(text.as_bytes()))).await.complete(), expected);
    for at in 0..text.len() {
        assert_eq!(read_list(&tables_in(cut_at(text.as_bytes(), at))).await.complete(), expected, "cut at {at}");
    }
}

#[tokio::test]
async fn a_row_is_given_out_before_the_next_one_has_come() {
    let text = table("9", COLUMNS, &[&row("a", "1"), &row("b", "2")]);
    let first = text.find(r#",{"cells":["b""#).expect("the second row");
    let source = ListWatch::of::<Pod>(client(move |_| {
        Response::new(body(vec![Piece::Bytes(Bytes::copy_from_slice(&text.as_bytes()[..first])), Piece::Hang]))
    }));
    let mut listing = source.table().list(ListOptions::default()).await.expect("an answer");
    loop {
        match listing.next().await.expect("no error") {
            Some(watchkeeper::ListPart::Item(object)) => break assert_eq!(object.key(), &key("a")),
            Some(_) => {}
            None => panic!("the list has ended"),
        }
    }
}

#[tokio::test]
async fn pages_go_on_where_the_table_says() {
    let page = table("9", COLUMNS, &[])
        .replace(r#""resourceVersion":"9""#, r#""resourceVersion":"9","continue":"next","remainingItemCount":3"#);
    assert_eq!(read_list(&tables_in([page])).await.complete(), ["metadata 9 continue next remaining 3"]);
}

#[tokio::test]
async fn a_row_decodes_and_has_the_header_of_its_object() {
    let source = tables_in([row_event("ADDED", &row("a", "1"))]);
    let mut stream = source.watch(ListOptions::default()).await.expect("an answer");
    let Some(WatchEvent::Added(object)) = stream.next().await.expect("no error") else { panic!("no object") };
    assert_eq!((object.key(), object.uid(), object.labels().get("app")), (&key("a"), Some("uid-a"), Some("a")));
    assert_eq!(object.resource_version().as_str(), "1");
    let row: Cached<TableRow<DynamicObject>> = object.clone().typed();
    assert_eq!(row.decode().expect("a row").cells, ["a", "1s"].map(Value::from));
    assert_eq!(row.decode().expect("a row").object.data["spec"]["nodeName"], "node-1");
    let row: TableRow<Pod> = object.decode().expect("a row");
    assert_eq!(row.object.spec.expect("a spec").node_name.as_deref(), Some("node-1"));
}

#[tokio::test]
async fn cells_and_object_are_kept_as_they_were_sent_and_nothing_else_is() {
    let sent = format!(
        r#"{{ "conditions":[{{"type":"Completed"}}], "object":{} , "x":1,"cells":["<\u003e", 1e3 ,null] }}"#,
        pod_json("a", "1")
    );
    let kept = row_of(r#"["<\u003e", 1e3 ,null]"#, &pod_json("a", "1"));
    assert_eq!(listed(&[&sent]).await, [format!("item {kept}")]);
    assert_eq!(watched_json(&tables_in([row_event("MODIFIED", &sent)])).await, [kept]);
}

#[tokio::test]
async fn objects_without_kind_get_it_in_front_and_cells_may_be_missing() {
    let bare = pod_json("a", "1").replace(r#""kind":"Pod","apiVersion":"v1","#, "");
    let kept = format!("item {}", row_of("[]", &pod_json("a", "1")));
    for row in [row_of("[]", &bare), row_of("null", &bare), format!(r#"{{"object":{bare}}}"#)] {
        assert_eq!(listed(&[&row]).await, [kept.as_str()], "{row}");
    }
}

#[tokio::test]
async fn columns_are_those_of_the_last_answer_that_told_any() {
    let other = r#"[{"name":"Name"},{"name":"Legs","type":"integer"}]"#;
    let lines = [
        event_json("ADDED", &table("1", COLUMNS, &[&row("a", "1")])),
        row_event("ADDED", &row("b", "2")),
        event_json("ADDED", &table("3", other, &[&row("c", "3")])),
    ];
    let pieces = lines.clone();
    let client = client(move |_| {
        let pieces = pieces.iter().map(|line| Piece::Bytes(line.clone().into()));
        Response::new(body(pieces.collect()))
    });
    let source = ListWatch::of::<Pod>(client).table().scope(Scope::Namespaces(["a".to_owned()].into()));
    let before = source.clone();
    assert!(before.columns().get().is_empty());
    let partition = source.partitions().remove(0);
    let mut stream = partition.watch(ListOptions::default()).await.expect("an answer");
    let mut seen = Vec::new();
    while stream.next().await.expect("no error").is_some() {
        seen.push(names(&before).join(" "));
    }
    assert_eq!(seen, ["Name Age", "Name Age", "Name Legs"]);

    let listed = tables_in([table("9", COLUMNS, &[])]);
    read_list(&listed).await.complete();
    let age = TableColumn { name: "Age".into(), type_: "string".into(), priority: 1, ..TableColumn::default() };
    assert_eq!(listed.columns().get()[1], age, "a list without rows has columns");
    assert_eq!(listed.columns().get()[0].format, "name");
}

#[tokio::test]
async fn a_table_whose_columns_cannot_be_read_has_rows_all_the_same() {
    for columns in ["7", r#"[{"name":[]}]"#, r#"{"a":1}"#] {
        let source = tables_in([table("9", columns, &[&row("a", "1")])]);
        assert_eq!(read_list(&source).await.complete()[1], format!("item {}", row("a", "1")), "{columns}");
        assert!(names(&source).is_empty());
    }
}

#[tokio::test]
async fn events_of_a_table_watch_are_those_of_their_rows() {
    let lines = [
        event_json("ADDED", &table("1", COLUMNS, &[&row("a", "1")])),
        row_event("MODIFIED", &row("a", "2")),
        row_event("DELETED", &row("a", "3")),
        event_json("ODD", &table("4", "null", &[&row("a", "4")])),
    ]
    .concat();
    let expected = ["added shop/a@1", "modified shop/a@2", "deleted shop/a@3", "unknown 4"];
    assert_eq!(watched(&lines).await, expected);
    assert_eq!(read_watch(&tables_in(bytewise(lines.as_bytes()))).await.complete(), expected);
    // As it is printed for people, over several lines.
    let pretty: String =
        lines.lines().map(|line| format!("{:#}\n", serde_json::from_str::<Value>(line).expect("an event"))).collect();
    assert_eq!(watched(&pretty).await, expected);
}

#[tokio::test]
async fn bookmarks_are_read_from_their_row() {
    let bookmark = |annotations: &str| {
        let object = format!(
            r#"{{"kind":"Pod","apiVersion":"v1","metadata":{{"resourceVersion":"8"{annotations}}},"spec":{{}}}}"#
        );
        row_of(r#"["","<unknown>"]"#, &object)
    };
    let end = r#","annotations":{"k8s.io/initial-events-end":"true"}"#;
    let source = tables_in([
        event_json("BOOKMARK", &table("8", COLUMNS, &[&bookmark(end)])),
        row_event("BOOKMARK", &bookmark("")),
        // Without what they need not have.
        event_json("BOOKMARK", &table("9", "null", &[])),
        event_json("BOOKMARK", &table("9", "null", &[r#"{"cells":[],"object":null}"#])),
        event_json("BOOKMARK", &table("9", "null", &[r#"{"cells":[],"object":{"metadata":{}}}"#])),
        // As a server without Tables sends them.
        event_json("BOOKMARK", r#"{"kind":"Pod","apiVersion":"v1","metadata":{"resourceVersion":"10"}}"#),
    ]);
    let expected = ["bookmark 8 end", "bookmark 8", "bookmark 9", "bookmark 9", "bookmark 9", "bookmark 10"];
    assert_eq!(read_watch(&source).await.complete(), expected);
    assert_eq!(names(&source), ["Name", "Age"], "the first event may be a bookmark");
}

#[tokio::test]
async fn bookmarks_that_say_nothing_of_use_are_passed_over() {
    let of_a_node = row_of("[]", r#"{"kind":"Node","apiVersion":"v1","metadata":{"resourceVersion":"8"}}"#);
    let unreadable = table("8", "null", &[]).replace("[]", "7");
    let lines = [
        row_event("BOOKMARK", &of_a_node),
        event_json("BOOKMARK", &table("", "null", &[])),
        event_json("BOOKMARK", &unreadable),
    ]
    .concat();
    let expected = [
        "wrong kind ?@8: the bookmark is of another kind than was asked for",
        "wrong kind ?@: the bookmark has no version",
        "wrong kind ?@8: the Table that it came in cannot be read",
    ];
    assert_eq!(watched(&lines).await, expected);
}

#[tokio::test]
async fn each_of_several_rows_is_a_change_and_no_row_is_none_that_is_known() {
    let rows = [row("a", "1"), r#"{"cells":[]}"#.to_owned(), row("b", "2")];
    let rows: Vec<&str> = rows.iter().map(String::as_str).collect();
    let lines = [
        event_json("MODIFIED", &table("2", "null", &rows)),
        event_json("DELETED", &table("2", "null", &[&row("a", "3"), &row("b", "4")])),
        row_event("ADDED", &row("c", "5")),
        event_json("ADDED", &table("6", "null", &[])),
        event_json("DELETED", &table("6", "null", &[])),
        event_json("ADDED", &table("", "null", &[])),
        event_json("ADDED", r#"{"kind":"Table","apiVersion":"meta.k8s.io/v1"}"#),
    ];
    let expected = [
        "modified shop/a@1",
        "bad ?@: its row has no object",
        "modified shop/b@2",
        "deleted shop/a@3",
        "deleted shop/b@4",
        "added shop/c@5",
        "bad ?@6: the Table that it came in has no rows",
        "deleted bad ?@6: the Table that it came in has no rows",
        "unknown ",
        "unknown ",
    ];
    let lines = lines.concat();
    assert_eq!(watched(&lines).await, expected);
    assert_eq!(read_watch(&tables_in(bytewise(lines.as_bytes()))).await.complete(), expected);
    // At the end of the stream, without a newline.
    assert_eq!(watched(lines.trim_end()).await, expected);
}

#[tokio::test]
async fn an_event_with_rows_without_end_is_not_kept() {
    let rows = vec!["{}"; 200_000];
    let line = event_json("ADDED", &table("7", "null", &rows));
    assert_eq!(watched(&line).await, ["bad ?@7: the Table that it came in cannot be read"]);
}

#[tokio::test]
async fn a_bad_row_harms_only_itself() {
    let good = row("b", "2");
    let no_name = pod_json("a", "1").replace(r#""name":"a","#, "");
    let no_version = pod_json("a", "1").replace(r#","resourceVersion":"1""#, "");
    let of_a_node = pod_json("a", "1").replace(r#""kind":"Pod""#, r#""kind":"Node""#);
    let cases = [
        ("7".to_owned(), "?@: its row has no object"),
        ("null".to_owned(), "?@: its row has no object"),
        (format!("[[],{}]", pod_json("a", "1")), "?@: its row has no object"),
        (r#"{"cells":[]}"#.to_owned(), "?@: its row has no object"),
        (row_of("[]", "null"), "?@: its row has no object"),
        (row_of("[]", "7"), "?@: it is no JSON object"),
        (row_of("[]", "[]"), "?@: it is no JSON object"),
        (row_of("[]", &no_name), "?@1: it has no metadata.name"),
        (row_of("[]", &no_version), "shop/a@: it has no metadata.resourceVersion"),
        (row_of("7", &pod_json("a", "1")), "shop/a@1: the cells of its row are no array"),
        (row_of(r#"{"a":[]}"#, &pod_json("a", "1")), "shop/a@1: the cells of its row are no array"),
    ];
    let deep = row_of(&format!("{}{}", "[".repeat(10_001), "]".repeat(10_001)), &pod_json("a", "1"));
    let cases = cases.into_iter().chain([(deep, "shop/a@1: it is nested too deeply")]);
    for (bad, problem) in cases {
        let good_item = format!("item {good}");
        assert_eq!(listed(&[&bad, &good]).await, [format!("bad {problem}"), good_item], "{bad}");
        let lines = [row_event("ADDED", &bad), row_event("DELETED", &bad), row_event("ADDED", &good)].concat();
        let expected = [format!("bad {problem}"), format!("deleted bad {problem}"), "added shop/b@2".to_owned()];
        assert_eq!(watched(&lines).await, expected, "{bad}");
    }
    let of_a_node = row_of("[]", &of_a_node);
    let problem = "it is of another kind than was asked for";
    assert_eq!(listed(&[&of_a_node, &good]).await[0], format!("bad ?@1: {problem}"));
    assert_eq!(watched(row_event("ADDED", &of_a_node)).await, [format!("wrong kind shop/a@1: {problem}")]);
}

#[tokio::test]
async fn a_row_that_is_not_text_is_bad_and_its_key_is_known() {
    let good = row("b", "2");
    for broken in [row("a", "1").replace("1s", "1\u{1}s"), row("a", "1").replace("node-1", "\u{1}")] {
        let not_utf8 =
            |text: String| -> Vec<u8> { text.bytes().map(|byte| if byte == 1 { 0xff } else { byte }).collect() };
        let list = not_utf8(table("9", COLUMNS, &[&broken, &good]));
        let parts = read_list(&tables_in([list])).await.complete();
        assert_eq!(parts[1..], ["bad shop/a@1: it is not UTF-8".to_owned(), format!("item {good}")]);
        let lines = not_utf8([row_event("DELETED", &broken), row_event("ADDED", &good)].concat());
        let events = read_watch(&tables_in([lines])).await.complete();
        assert_eq!(events, ["deleted bad shop/a@1: it holds text that cannot be read", "added shop/b@2"]);
        let both = not_utf8(event_json("ADDED", &table("7", "null", &[&broken, &good])));
        let events = read_watch(&tables_in([both])).await.complete();
        assert_eq!(events, ["bad shop/a@1: it holds text that cannot be read", "added shop/b@2"]);
    }
}

#[tokio::test]
async fn a_row_above_the_limit_is_skipped_and_its_key_is_known() {
    let large = row("a", "1").replace("node-1", &"x".repeat(2_000));
    let good = row("b", "2");
    let cut = |text: String, piece: usize| -> Vec<Bytes> {
        text.as_bytes().chunks(piece).map(Bytes::copy_from_slice).collect()
    };
    for piece in [1, 100, 100_000] {
        let list = tables_in(cut(table("9", COLUMNS, &[&large, &good]), piece)).max_object_size(1_000);
        let parts = read_list(&list).await.complete();
        assert_eq!(parts[1..], ["bad shop/a@1: it is larger than the limit".to_owned(), format!("item {good}")]);
        let lines = [row_event("MODIFIED", &large), row_event("DELETED", &large), row_event("ADDED", &good)].concat();
        let watch = tables_in(cut(lines, piece)).max_object_size(1_000);
        let expected = [
            "bad shop/a@1: it is larger than the limit",
            "deleted bad shop/a@1: it is larger than the limit",
            "added shop/b@2",
        ];
        assert_eq!(read_watch(&watch).await.complete(), expected);
    }
}

#[tokio::test]
async fn a_server_without_tables_makes_rows_without_cells() {
    let items = [pod_json("a", "1").replace(r#""kind":"Pod","apiVersion":"v1","#, ""), pod_json("b", "2")].join(",");
    let list =
        format!(r#"{{"kind":"PodList","apiVersion":"v1","metadata":{{"resourceVersion":"9"}},"items":[{items}]}}"#);
    let watch = [event_json("ADDED", &pod_json("a", "1")), event_json("DELETED", &pod_json("a", "3"))].concat();
    let client = client(move |request| {
        let is_watch = request.uri().query().is_some_and(|query| query.contains("watch"));
        ok(if is_watch { watch.clone() } else { list.clone() })
    });
    let kept = |name: &str, version: &str| row_of("[]", &pod_json(name, version));
    for source in [ListWatch::of::<Pod>(client.clone()), ListWatch::by_name(client, "", "v1", "pods")] {
        let source = source.table();
        let parts = read_list(&source).await.complete();
        assert_eq!(parts[1..], [format!("item {}", kept("a", "1")), format!("item {}", kept("b", "2"))]);
        assert_eq!(watched_json(&source).await, [kept("a", "1"), kept("a", "3")]);
        assert!(source.columns().get().is_empty());
    }
}

#[tokio::test]
async fn a_kind_that_is_called_table_is_none() {
    let oak =
        r#"{"apiVersion":"example.com/v1","kind":"Table","metadata":{"name":"oak","resourceVersion":"1"},"rows":[]}"#;
    let list = format!(
        r#"{{"apiVersion":"example.com/v1","items":[{oak}],"kind":"TableList","metadata":{{"resourceVersion":"9"}}}}"#
    );
    let lines = event_json("ADDED", oak) + &row_event("MODIFIED", &row_of("[4]", oak));
    let source = |text: &str| {
        let text = text.to_owned();
        ListWatch::by_name(client(move |_| ok(text.clone())), "example.com", "v1", "tables").table()
    };
    assert_eq!(read_list(&source(&list)).await.complete()[0], format!("item {}", row_of("[]", oak)));
    assert_eq!(watched_json(&source(&lines)).await, [row_of("[]", oak), row_of("[4]", oak)]);
}

#[tokio::test]
async fn an_answer_that_is_no_table_of_rows_is_no_empty_one() {
    let rows = format!("[{}]", row("a", "1"));
    let cases = [
        (format!(r#"{{"kind":"PodList","apiVersion":"v1","metadata":{{}},"rows":{rows}}}"#), "rows that is no Table"),
        (format!(r#"{{"rows":{rows},"kind":"Table","apiVersion":"example.com/v1"}}"#), "rows that is no Table"),
        (r#"{"kind":"Table","apiVersion":"meta.k8s.io/v1","items":[]}"#.to_owned(), "a Table that has items"),
        (r#"{"kind":"Table","apiVersion":"meta.k8s.io/v1beta1","metadata":{}}"#.to_owned(), "something else"),
        (r#"{"kind":"NodeList","apiVersion":"v1","metadata":{},"items":[]}"#.to_owned(), "something else"),
        (r#"{"kind":"Table","apiVersion":"meta.k8s.io/v1","rows":[{"cells":]}"#.to_owned(), "not valid JSON"),
        (r#"{"kind":"Table","apiVersion":"meta.k8s.io/v1","rows":{}}"#.to_owned(), "rows are no array"),
    ];
    for (text, problem) in cases {
        let outcome = read_list(&tables_in([text.clone()])).await;
        assert!(outcome.error.as_deref().is_some_and(|error| error.contains(problem)), "{text}: {outcome:?}");
        assert_eq!(outcome.kind, Some(ErrorKind::Malformed));
    }
    let cut_off = table("9", COLUMNS, &[&row("a", "1")]);
    let outcome = read_list(&tables_in([cut_off[..cut_off.len() - 10].to_owned()])).await;
    assert_eq!(outcome.kind, Some(ErrorKind::Disconnected));
}

#[tokio::test]
async fn a_table_that_nobody_asked_for_is_refused() {
    let outcome = read_list(&pods_in([table("9", COLUMNS, &[&row("a", "1")])])).await;
    assert!(outcome.error.is_some_and(|error| error.contains("the server sent a Table")));
    let events = read_watch(&pods_in([row_event("ADDED", &row("a", "1"))])).await.complete();
    assert_eq!(events, ["wrong kind ?@7: it is of another kind than was asked for"]);
}

#[tokio::test]
async fn errors_come_through_where_tables_were_asked_for() {
    let status = r#"{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"too old","reason":"Expired","code":410}"#;
    let list = read_list(&tables_in([status])).await;
    assert!(list.error.is_some_and(|error| error.contains("410 Expired: too old")));
    let lines = event_json("ERROR", status) + status + "\n" + &event_json("ERROR", &table("7", "null", &[]));
    let events = watched(&lines).await;
    assert!(events[..2].iter().all(|event| event.contains("410 Expired: too old")), "{events:?}");
    assert!(events[2].starts_with("error ") && events[2].contains("without a Status"), "{events:?}");
}

#[tokio::test]
async fn a_transform_changes_the_object_of_a_row() {
    let managed = pod_json("a", "1").replace(r#""labels""#, r#""managedFields":[{"manager":"x"}],"labels""#);
    let lines = row_event("ADDED", &row_of(r#"["a","1s"]"#, &managed));
    let source = tables_in([lines.clone()]).transform(Transform::strip_managed_fields());
    assert_eq!(watched_json(&source).await, [row("a", "1")]);
    let replacing = |from: &'static str, to: &'static str| {
        Transform::json(move |json: &[u8]| {
            let text = std::str::from_utf8(json)?;
            assert!(text.starts_with('{') && !text.contains("cells"), "it sees the object alone");
            Ok::<_, std::str::Utf8Error>(Some(text.replace(from, to).into_bytes()))
        })
    };
    let moved = tables_in([row_event("ADDED", &row("a", "1"))]).transform(replacing("node-1", "node-2"));
    assert_eq!(watched_json(&moved).await, [row("a", "1").replace("node-1", "node-2")]);
    let renamed = tables_in([lines]).transform(replacing("uid-a", "uid-b"));
    let problem = "bad shop/a@1: the transform changed its name, namespace, uid or version";
    assert_eq!(read_watch(&renamed).await.complete(), [problem]);
}

#[tokio::test]
async fn a_row_that_is_older_only_in_its_cells_is_the_one_that_is_known() {
    let known: Arc<Mutex<Option<Object>>> = Arc::default();
    struct Known(Arc<Mutex<Option<Object>>>);
    impl watchkeeper::KnownObjects<Object> for Known {
        fn list_keys(&self) -> Vec<watchkeeper::ObjectKey> {
            self.0.lock().unwrap().iter().map(|object| object.key().clone()).collect()
        }
        fn get_by_key(&self, _: &watchkeeper::ObjectKey) -> Option<Object> {
            self.0.lock().unwrap().clone()
        }
    }
    let text = Arc::new(Mutex::new(String::new()));
    let answer = text.clone();
    let source = ListWatch::of::<Pod>(client(move |_| ok(answer.lock().unwrap().clone()))).table();
    let source = source.known_objects(Known(known.clone()));
    let cell_of = async |columns: &str, cell: &str, node: &str| {
        let row = row_of(&format!(r#"["a","{cell}"]"#), &pod_json("a", "1").replace("node-1", node));
        *text.lock().unwrap() = table("9", columns, &[&row]);
        let parts = futures::stream::unfold(source.list(ListOptions::default()).await.unwrap(), async |mut listing| {
            listing.next().await.unwrap().map(|part| (part, listing))
        });
        let items = parts.filter_map(async |part| match part {
            watchkeeper::ListPart::Item(object) => Some(object),
            _ => None,
        });
        let object = items.collect::<Vec<_>>().await.remove(0);
        *known.lock().unwrap() = Some(object.clone());
        object.decode::<TableRow<Value>>().expect("a row").cells[1].clone()
    };
    assert_eq!(cell_of(COLUMNS, "1s", "node-1").await, "1s");
    assert_eq!(cell_of(COLUMNS, "5m", "node-1").await, "1s", "the known one");
    assert_eq!(cell_of(COLUMNS, "6m", "node-2").await, "6m", "another state, whatever its version says");
    assert_eq!(cell_of(r#"[{"name":"Name"},{"name":"Legs"}]"#, "4", "node-2").await, "4", "cells of other columns");
    assert_eq!(cell_of(r#"[{"name":"Name"},{"name":"Legs"}]"#, "4", "node-2").await, "4");
}

/// Bytes are changed, left out, repeated and put in; then the whole is read in one piece and in several.
#[tokio::test]
async fn damage_is_read_alike_however_the_bytes_come() {
    let list = table("9", COLUMNS, &[&row("a", "1"), &row_of("[null]", &pod_json("b", "2")), &row("c", "3")]);
    let first = event_json("ADDED", &table("7", COLUMNS, &[&row("a", "5")]));
    let bookmark = row_of(r#"["",""]"#, r#"{"kind":"Pod","apiVersion":"v1","metadata":{"resourceVersion":"9"}}"#);
    let watch = first
        + &row_event("MODIFIED", &row("b", "6"))
        + &row_event("BOOKMARK", &bookmark)
        + &row_event("DELETED", &row("b", "8"));
    const ODD: &[&[u8]] =
        &[b"{", b"}", b"[", b"]", b"\"", b",", b":", b"\\", b"\n", b"\xff", b"null", b"7", b"\"rows\":["];
    for seed in 0..400 {
        let mut random = fastrand::Rng::with_seed(seed);
        for text in [&list, &watch] {
            let mut bytes = text.clone().into_bytes();
            for _ in 0..random.usize(1..3) {
                let (at, length) = (random.usize(..bytes.len()), random.usize(..12));
                let end = (at + length).min(bytes.len());
                let put = match random.u8(..4) {
                    0 => Vec::new(),
                    1 => bytes[at..end].repeat(2),
                    _ => random.choice(ODD).map(|odd| odd.to_vec()).unwrap_or_default(),
                };
                bytes.splice(at..if random.bool() { end } else { at }, put);
            }
            let cut = random.usize(..bytes.len());
            let shown = String::from_utf8_lossy(&bytes);
            if text == &list {
                let whole = read_list(&tables_in([bytes.clone()])).await;
                assert_eq!(read_list(&tables_in(bytewise(&bytes))).await, whole, "seed {seed}: {shown}");
                assert_eq!(read_list(&tables_in(cut_at(&bytes, cut))).await, whole, "seed {seed}: {shown}");
            } else {
                let whole = read_watch(&tables_in([bytes.clone()])).await;
                assert_eq!(read_watch(&tables_in(bytewise(&bytes))).await, whole, "seed {seed}: {shown}");
                assert_eq!(read_watch(&tables_in(cut_at(&bytes, cut))).await, whole, "seed {seed}: {shown}");
            }
        }
    }
}
