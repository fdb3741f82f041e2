//! Which requests a rule means, and what the journal says of it.

use bytes::Bytes;
use http_body_util::{BodyExt, Empty};
use serde_json::json;
use tower::ServiceExt;
use watchkeeper_apiserver::{ApiServer, Ending, Fault, Match, Record};

async fn code(server: &ApiServer, path: &str) -> u16 {
    let request = http::Request::get(path).body(Empty::<Bytes>::new()).unwrap();
    server.service().oneshot(request).await.unwrap().status().as_u16()
}

const TEAPOT: u16 = 418;

fn teapot() -> Fault {
    Fault::status(TEAPOT, "")
}

#[tokio::test(start_paused = true)]
async fn rules_count_the_requests_that_they_mean() {
    let server = ApiServer::new();
    let rule = server.faults().on(Match::list("pods").after(1).times(2)).then(teapot());
    let mut codes = Vec::new();
    for _ in 0..5 {
        codes.push(code(&server, "/api/v1/pods").await);
        assert_eq!(code(&server, "/api/v1/nodes").await, 200);
        assert_eq!(code(&server, "/api/v1/namespaces/default").await, 200);
    }
    assert_eq!(codes, [200, TEAPOT, TEAPOT, 200, 200]);
    assert_eq!(rule.injected(), 2);
}

#[tokio::test(start_paused = true)]
async fn kinds_are_named_with_or_without_their_group() {
    let server = ApiServer::new();
    let deployments = "/apis/apps/v1/deployments";
    for (kind, expected) in [("deployments.apps", TEAPOT), ("deployments", TEAPOT), ("deployments.batch", 200)] {
        let rule = server.faults().on(Match::verb("list", kind)).then(teapot());
        assert_eq!(code(&server, deployments).await, expected, "{kind}");
        rule.remove();
        assert_eq!(code(&server, deployments).await, 200, "{kind}");
    }
}

#[tokio::test(start_paused = true)]
async fn several_rules_stand_beside_each_other() {
    let server = ApiServer::new();
    let faults = server.faults();
    faults.on(Match::verb("get", "namespaces")).then(teapot());
    let lists = faults.on(Match::list("namespaces")).then(Fault::status(500, "InternalError"));
    assert_eq!(code(&server, "/api/v1/namespaces/default").await, TEAPOT);
    assert_eq!(code(&server, "/api/v1/namespaces").await, 500);
    lists.remove();
    assert_eq!(code(&server, "/api/v1/namespaces").await, 200);
    faults.clear();
    assert_eq!(code(&server, "/api/v1/namespaces/default").await, 200);
}

#[tokio::test(start_paused = true)]
async fn faults_stand_in_the_journal_between_the_writes() {
    let server = ApiServer::new();
    let node = |name: &str| json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}});
    server.create(node("a")).unwrap();
    server.faults().on(Match::list("nodes")).then(teapot());
    code(&server, "/api/v1/nodes?limit=7").await;
    server.create(node("b")).unwrap();
    let journal = server.journal();
    let [.., Record::Write(a), Record::Fault(fault), Record::Write(b)] = journal.as_slice() else {
        panic!("{journal:?}")
    };
    assert_eq!((&*a.key, &*b.key), ("a", "b"));
    assert_eq!((fault.request.as_str(), fault.path.as_str()), ("list nodes", "/api/v1/nodes?limit=7"));
    assert_eq!((fault.revision, &fault.fault), (6, &teapot()));
}

#[tokio::test(start_paused = true)]
async fn the_same_seed_does_the_same() {
    let mut runs = Vec::new();
    for seed in [3, 3, 4] {
        let server = ApiServer::new();
        server.faults().on(Match::any()).then(Fault::random(seed));
        for _ in 0..40 {
            let request = http::Request::get("/api/v1/pods").body(Empty::<Bytes>::new()).unwrap();
            let _ = tokio::time::timeout(std::time::Duration::from_secs(100), server.service().oneshot(request)).await;
        }
        runs.push(server.faults().injected().into_iter().map(|record| record.fault).collect::<Vec<_>>());
    }
    assert_eq!(runs[0], runs[1]);
    assert_ne!(runs[0], runs[2]);
    assert!(runs[0].len() > 10);
}

/// Over a socket a body that merely ends would be ended properly: there every cut is an error.
#[tokio::test(start_paused = true)]
async fn in_process_a_close_is_an_end_and_over_a_socket_an_error() {
    use watchkeeper_apiserver::faults::{Cut, OnSocket};
    let server = ApiServer::new();
    for (ending, on_socket, is_error) in [
        (Ending::Fin, false, false),
        (Ending::Reset, false, true),
        (Ending::Fin, true, true),
        (Ending::Reset, true, true),
    ] {
        server.faults().on(Match::any().once()).then(Fault::cut_after_bytes(30, ending));
        let mut request = http::Request::get("/api/v1/namespaces").body(Empty::<Bytes>::new()).unwrap();
        if on_socket {
            request.extensions_mut().insert(OnSocket);
        }
        let response = server.service().oneshot(request).await.unwrap();
        match response.into_body().collect().await {
            Ok(body) => assert!(!is_error && body.to_bytes().len() == 30),
            Err(error) => assert!(is_error && error.downcast_ref::<Cut>().unwrap().ending == ending),
        }
    }
}

#[tokio::test(start_paused = true)]
async fn without_rules_nothing_is_written_down() {
    let server = ApiServer::new();
    assert_eq!(code(&server, "/api/v1/pods").await, 200);
    assert!(server.faults().injected().is_empty());
}

/// What a client fears most: the write happened, and it was not told.
#[tokio::test(start_paused = true)]
async fn a_write_whose_answer_is_lost_has_happened() {
    let server = ApiServer::new();
    server.faults().on(Match::verb("create", "nodes").once()).then(Fault::cut_after_bytes(0, Ending::Reset));
    let node = json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "a"}}).to_string();
    let request = http::Request::post("/api/v1/nodes").body(http_body_util::Full::new(Bytes::from(node))).unwrap();
    let response = server.service().oneshot(request).await.unwrap();
    assert!(response.into_body().collect().await.is_err());
    assert_eq!(code(&server, "/api/v1/nodes/a").await, 200);
}

/// Revisions begin anew, and the journal with them; the faults of the time before are still told.
#[tokio::test(start_paused = true)]
async fn a_restart_without_data_begins_the_journal_anew() {
    let server = ApiServer::new();
    let node = |name: &str| json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}});
    server.create(node("a")).unwrap();
    server.faults().on(Match::list("nodes").once()).then(Fault::Restart { keep_data: false });
    let request = http::Request::get("/api/v1/nodes").body(Empty::<Bytes>::new()).unwrap();
    assert!(server.service().oneshot(request).await.is_err());
    server.create(node("b")).unwrap();
    let lines: Vec<String> = server.journal().iter().map(ToString::to_string).collect();
    assert!(lines[0].contains("at revision 6: Restart { keep_data: false } for list nodes"), "{lines:?}");
    assert_eq!(lines[1], "revision 2: namespaces default written");
    assert_eq!(lines.last().unwrap(), "revision 6: nodes b written");
    assert_eq!(server.truth().now("nodes").unwrap().compare([("b", 6)]), Ok(()));
}
