//! Whatever a server, a proxy or a broken connection sends: everything goes on afterwards, the store becomes equal to
//! what the server has, and the status tells what happened.

use std::sync::{Arc, Mutex};

use http::{Request, Response};
use k8s_openapi::api::core::v1::Pod;
use kube_client::client::Body;
use watchkeeper::{ListWatch, Phase, Reason, Reflector, ReflectorStatus};

use crate::support::*;

/// A server that sends something bad once, and is in order before and afterwards.
///
/// At version 10 it has the pods a and c. Then something happens to a (11), b comes (12), a changes (13), c goes (14).
#[derive(Clone)]
struct Server(Arc<Mutex<State>>);

struct State {
    versions: [&'static str; 5],
    bad_list: Option<TestBody>,
    bad_watch: Option<TestBody>,
    lists: usize,
    watches: usize,
}

const VERSIONS: [&str; 5] = ["10", "11", "12", "13", "14"];

impl Server {
    fn new() -> Self {
        let state = State { versions: VERSIONS, bad_list: None, bad_watch: None, lists: 0, watches: 0 };
        Self(Arc::new(Mutex::new(state)))
    }

    fn bad_watch(pieces: Vec<Piece>) -> Self {
        let server = Self::new();
        server.0.lock().unwrap().bad_watch = Some(body(pieces));
        server
    }

    fn bad_list(pieces: Vec<Piece>) -> Self {
        let server = Self::new();
        server.0.lock().unwrap().bad_list = Some(body(pieces));
        server
    }

    fn answer(&self, request: &Request<Body>) -> Response<TestBody> {
        let mut state = self.0.lock().unwrap();
        let query = request.uri().query().unwrap_or_default().to_owned();
        if !query.contains("watch=true") {
            let bad = state.bad_list.take();
            let good = list_at(&state.versions, if state.lists == 0 && bad.is_none() { 0 } else { 4 });
            state.lists += 1;
            return bad.map_or_else(|| ok(good), Response::new);
        }
        state.watches += 1;
        if let Some(bad) = state.bad_watch.take() {
            return Response::new(bad);
        }
        let from = query.split('&').find_map(|pair| pair.strip_prefix("resourceVersion=")).unwrap_or_default();
        let at = state.versions.iter().position(|version| *version == from).expect("a version that was sent");
        let events = (at + 1..5).map(|at| Piece::Bytes(event_at(&state.versions, at).into()));
        Response::new(body(events.chain([Piece::Hang]).collect()))
    }

    fn source(&self) -> ListWatch {
        let server = self.clone();
        ListWatch::of::<Pod>(client(move |request| server.answer(&request)))
    }
}

/// What the server has at first and at last.
fn list_at(versions: &[&str; 5], at: usize) -> String {
    let pods = match at {
        0 => [pod_json("a", "1"), pod_json("c", "2")],
        _ => [pod_json("a", versions[3]), pod_json("b", versions[2])],
    };
    format!(
        r#"{{"kind":"PodList","apiVersion":"v1","metadata":{{"resourceVersion":"{}"}},"items":[{}]}}"#,
        versions[at],
        pods.join(",")
    )
}

fn event_at(versions: &[&str; 5], at: usize) -> String {
    let version = versions[at];
    match at {
        1 => event_json("MODIFIED", &pod_json("a", version)),
        2 => event_json("ADDED", &pod_json("b", version)),
        3 => event_json("MODIFIED", &pod_json("a", version)),
        _ => event_json("DELETED", &pod_json("c", version)),
    }
}

/// The events behind the bad one.
fn good_events() -> String {
    (2..5).map(|at| event_at(&VERSIONS, at)).collect()
}

/// The event at version 11, in a form of one's own.
fn pod_a(from: &str, to: &str) -> String {
    event_at(&VERSIONS, 1).replace(from, to)
}

/// What a reflector made of it: ten seconds after the start, and at last.
struct Story {
    early: ReflectorStatus,
    early_contents: Vec<String>,
    end: ReflectorStatus,
}

impl Story {
    /// Lives through it, and sees that all ends well.
    async fn of(server: &Server, source: ListWatch) -> Self {
        let store = Recorder::new();
        let reflector = Reflector::new(source, store.clone()).streaming_lists(false).seed(7);
        let status = reflector.status();
        let running = Running::start(reflector);
        pass(seconds(10)).await;
        let (early, early_contents) = (status.get(), store.contents());
        pass(seconds(110)).await;
        let end = status.get();
        let versions = server.0.lock().unwrap().versions;
        assert_eq!(store.contents(), [format!("a@{}", versions[3]), format!("b@{}", versions[2])], "{end:?}");
        assert_eq!((end.phase, end.synced, end.resource_version.as_str()), (Phase::Watching, true, versions[4]));
        assert!(end.stale_objects.is_empty(), "{end:?}");
        running.stop().await;
        Self { early, early_contents, end }
    }

    /// `line`, and twenty seconds later all that is good.
    async fn of_event(line: impl AsRef<[u8]>) -> Self {
        let line = bytes::Bytes::copy_from_slice(line.as_ref());
        let later = Piece::Bytes(good_events().into());
        let server = Server::bad_watch(vec![Piece::Bytes(line), Piece::Pause(seconds(20)), later, Piece::Hang]);
        Self::of(&server, server.source()).await
    }

    /// One object could not be used; meanwhile its last good state stood, and nothing else happened.
    #[track_caller]
    fn was_one_stale_object(&self, problem: &str) {
        assert_eq!(self.early_contents, ["a@1", "c@2"]);
        assert_eq!(self.early.stale_objects.iter().collect::<Vec<_>>(), [(&key("a"), &problem)]);
        assert_eq!((self.early.phase, self.early.resource_version.as_str()), (Phase::Watching, "11"));
        assert_eq!((self.end.events, self.end.unreadable_objects), (4, 0));
        assert!(self.end.relists.is_empty() && self.end.watch_restarts.is_empty(), "{:?}", self.end);
    }

    /// Nothing was sure any more, so the reflector listed again, once.
    #[track_caller]
    fn was_one_relist(&self, reason: Reason, words: &str) {
        assert_eq!(self.end.relists.iter().collect::<Vec<_>>(), [(&reason, &1)]);
        assert!(self.end.watch_restarts.is_empty());
        let (error, _) = self.end.last_error.as_ref().expect("it says what happened");
        assert!(error.to_string().contains(words), "{error}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_stream_that_is_cut_off_at_any_byte() {
    let events = good_events();
    let ends: Vec<usize> = events.match_indices('\n').map(|(at, _)| at).collect();
    for length in 0..=events.len() {
        for broken in [false, true] {
            let start = Piece::Bytes(events.as_bytes()[..length].to_vec().into());
            let end = if broken { vec![Piece::Break] } else { vec![] };
            let server = Server::bad_watch(std::iter::once(start).chain(end).collect());
            let end = Story::of(&server, server.source()).await.end;
            // With an event seen, the watch goes on from there. Without one it was too short to be trusted.
            let seen = ends.iter().filter(|end| **end < length || (!broken && **end == length)).count();
            let restarts: u64 = end.watch_restarts.values().sum();
            let relists: u64 = end.relists.values().sum();
            assert_eq!((restarts, relists), if seen > 0 { (1, 0) } else { (0, 1) }, "cut at {length}: {end:?}");
            assert!(end.last_error.is_some() || seen > 0, "cut at {length}: {end:?}");
            assert_eq!((end.unreadable_objects, end.wrong_kind, end.unknown_events), (0, 0, 0));
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_list_that_is_cut_off_at_any_byte() {
    let list = list_at(&VERSIONS, 0);
    for length in 0..list.len() {
        let server = Server::bad_list(vec![Piece::Bytes(list.as_bytes()[..length].to_vec().into())]);
        let end = Story::of(&server, server.source()).await.end;
        assert_eq!(end.relists.values().sum::<u64>(), 1, "cut at {length}");
        let (error, _) = end.last_error.expect("it says what happened");
        assert!(error.to_string().starts_with("list pods: the answer "), "cut at {length}: {error}");
    }
}

#[tokio::test(start_paused = true)]
async fn invalid_utf_8_in_a_value() {
    let spoilt: Vec<u8> =
        pod_a("node-1", "node-#").bytes().map(|byte| if byte == b'#' { 0xff } else { byte }).collect();
    Story::of_event(spoilt).await.was_one_stale_object("it is not UTF-8");
}

#[tokio::test(start_paused = true)]
async fn invalid_utf_8_in_a_name() {
    let spoilt: Vec<u8> =
        pod_a("\"name\":\"a\"", "\"name\":\"#\"").bytes().map(|byte| if byte == b'#' { 0xff } else { byte }).collect();
    let story = Story::of_event(spoilt).await;
    assert_eq!(story.end.unreadable_objects, 1);
    story.was_one_relist(Reason::UnreadableObject, "an object without a readable key at version 11");
}

#[tokio::test(start_paused = true)]
async fn an_event_of_an_unknown_type() {
    let story = Story::of_event(pod_a("MODIFIED", "RENAMED")).await;
    assert_eq!((story.end.unknown_events, story.early.resource_version.as_str()), (1, "11"));
    assert!(story.end.relists.is_empty() && story.end.watch_restarts.is_empty());
}

#[tokio::test(start_paused = true)]
async fn an_object_without_a_name() {
    let story = Story::of_event(pod_a("\"name\":\"a\",", "")).await;
    assert_eq!(story.end.unreadable_objects, 1);
    story.was_one_relist(Reason::UnreadableObject, "it has no metadata.name");
}

#[tokio::test(start_paused = true)]
async fn an_object_without_a_version() {
    let story = Story::of_event(pod_a("\"resourceVersion\":\"11\",", "")).await;
    assert_eq!(story.early.stale_objects.get(&key("a")), Some(&"it has no metadata.resourceVersion"));
    assert_eq!((story.early.resource_version.as_str(), story.early_contents), ("10", vec!["a@1".into(), "c@2".into()]));
    assert!(story.end.relists.is_empty());
}

#[tokio::test(start_paused = true)]
async fn metadata_of_a_wrong_type() {
    let story = Story::of_event(pod_a("{\"app\":\"a\"}", "7")).await;
    story.was_one_stale_object("metadata.labels is no object");
}

#[tokio::test(start_paused = true)]
async fn an_object_of_another_kind() {
    let story = Story::of_event(pod_a("\"Pod\"", "\"Service\"")).await;
    assert_eq!((story.end.wrong_kind, story.early.resource_version.as_str()), (1, "10"));
    assert_eq!(story.early_contents, ["a@1", "c@2"]);
    assert!(story.end.relists.is_empty() && story.end.stale_objects.is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_status_in_place_of_an_event() {
    let status =
        r#"{"kind":"Status","apiVersion":"v1","status":"Failure","message":"too old","reason":"Expired","code":410}"#;
    Story::of_event(format!("{status}\n")).await.was_one_relist(Reason::Expired, "watch pods: 410 Expired: too old");
}

#[tokio::test(start_paused = true)]
async fn an_error_event_without_a_status() {
    let story = Story::of_event(event_json("ERROR", &pod_json("a", "11"))).await;
    story.was_one_relist(Reason::Other, "an ERROR event without a Status");
}

#[tokio::test(start_paused = true)]
async fn a_hundred_thousand_levels_of_nesting() {
    for (open, close) in [("[", "]"), ("{\"x\":", "}")] {
        let nested = open.repeat(100_000) + "1" + &close.repeat(100_000);
        Story::of_event(pod_a("\"node-1\"", &nested)).await.was_one_stale_object("it is nested too deeply");
    }
}

#[tokio::test(start_paused = true)]
async fn equal_keys() {
    let story = Story::of_event(pod_a("\"name\":\"a\"", "\"name\":\"x\",\"name\":\"a\"")).await;
    assert_eq!((story.early_contents, story.end.events), (vec!["a@11".to_owned(), "c@2".to_owned()], 4));
}

#[tokio::test(start_paused = true)]
async fn versions_that_are_no_numbers() {
    let server = Server::bad_watch(vec![]);
    let versions = ["v-ten", "0xb", "twelve", "13.0", "zz/14"];
    server.0.lock().unwrap().versions = versions;
    let start: String = (1..3).map(|at| event_at(&versions, at)).collect();
    server.0.lock().unwrap().bad_watch = Some(body(vec![Piece::Bytes(start.into()), Piece::Break]));
    let end = Story::of(&server, server.source()).await.end;
    assert_eq!((end.watch_restarts.get(&Reason::Disconnected), end.versions_backwards), (Some(&1), 0));
}

#[tokio::test(start_paused = true)]
async fn html_in_place_of_a_watch() {
    let server = Server::bad_watch(vec![Piece::Bytes("<html><body>Log in</body></html>".into()), Piece::Hang]);
    let story = Story::of(&server, server.source()).await;
    story.was_one_relist(Reason::Other, "watch pods: the answer is no JSON object; check for a proxy");
}

#[tokio::test(start_paused = true)]
async fn html_in_place_of_a_list() {
    let server = Server::bad_list(vec![Piece::Bytes("<html><body>Log in</body></html>".into())]);
    let story = Story::of(&server, server.source()).await;
    story.was_one_relist(Reason::Other, "list pods: the answer is no JSON object; check for a proxy");
}

#[tokio::test(start_paused = true)]
async fn an_object_without_end() {
    let start = pod_a("node-1\"}}}\n", "");
    let (body, taken) = endless_body(start.into(), "x".repeat(1_000).into());
    let server = Server::new();
    server.0.lock().unwrap().bad_watch = Some(body);
    let story = Story::of(&server, server.source().max_object_size(10_000)).await;
    story.was_one_relist(Reason::Other, "an event of the watch has no end");
    assert!(taken.load(std::sync::atomic::Ordering::Relaxed) < 50_000);
}

#[tokio::test(start_paused = true)]
async fn an_object_above_the_limit() {
    let line = pod_a("node-1", &"x".repeat(20_000));
    let pieces =
        vec![Piece::Bytes(line.into()), Piece::Pause(seconds(20)), Piece::Bytes(good_events().into()), Piece::Hang];
    let server = Server::bad_watch(pieces);
    let story = Story::of(&server, server.source().max_object_size(10_000)).await;
    story.was_one_stale_object("it is larger than the limit");
}

#[tokio::test(start_paused = true)]
async fn a_damaged_line_between_good_ones() {
    let damaged = pod_a("\"}}}\n", "\n");
    let server = Server::bad_watch(vec![Piece::Bytes((damaged + &good_events()).into()), Piece::Hang]);
    let story = Story::of(&server, server.source()).await;
    assert_eq!(story.end.events, 4);
    assert!(story.end.relists.is_empty() && story.end.watch_restarts.is_empty());
}

#[tokio::test(start_paused = true)]
async fn an_object_without_a_name_in_a_list_deletes_nothing_and_is_listed_again() {
    let list = list_at(&VERSIONS, 4).replace("\"name\":\"a\",", "");
    let server = Server::new();
    let source = server.source();
    let again = server.clone();
    // The first list is good, the watch expires, the second list has an object that cannot be told apart.
    let status = r#"{"kind":"Status","message":"too old","reason":"Expired","code":410}"#;
    server.0.lock().unwrap().bad_watch = Some(body(vec![Piece::Bytes(event_json("ERROR", status).into())]));
    let store = Recorder::new();
    let reflector = Reflector::new(source, store.clone()).streaming_lists(false).seed(7);
    let reader = reflector.status();
    let running = Running::start(reflector);
    pass(std::time::Duration::from_millis(100)).await;
    again.0.lock().unwrap().bad_list = Some(body(vec![Piece::Bytes(list.into())]));
    while reader.get().unreadable_objects == 0 {
        pass(seconds(1)).await;
    }
    assert_eq!(store.contents(), ["a@1", "b@12", "c@2"], "nothing was deleted");
    pass(seconds(60)).await;
    assert_eq!(store.contents(), ["a@13", "b@12"]);
    assert!(reader.get().last_error.is_some_and(|(error, _)| error.to_string().contains("deletes nothing")));
    running.stop().await;
}
