//! Faults as clients behind a socket see them.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use kube_client::Config;
use kube_client::config::{KubeConfigOptions, Kubeconfig};
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;
use watchkeeper::{Backoff, ClientOptions, Indexer, ListWatch, Object, Reflector, client, client_with};
use watchkeeper_apiserver::{ApiServer, Ending, Fault, ListenOptions, Listening, Match, StallAt};

/// Nothing here takes this long, unless it hangs.
const LONG: Duration = Duration::from_secs(4);
const SOON: Duration = Duration::from_millis(150);
const LIST: &str = "/api/v1/nodes";
/// It begins with the objects.
const WATCH: &str = "/api/v1/nodes?watch=1";
/// The last chunk of a body that ended properly.
const END: &str = "0\r\n\r\n";
/// How the chunk of an event ends.
const EVENT: &str = "}}}\n\r\n";

async fn start() -> (ApiServer, Listening) {
    let server = ApiServer::new();
    put(&server, "a");
    let listening = server.listen(ListenOptions::default()).await.unwrap();
    (server, listening)
}

fn put(server: &ApiServer, name: &str) {
    server.put(json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}})).unwrap();
}

async fn ask(listening: &Listening, path: &str) -> TcpStream {
    let mut stream = TcpStream::connect(listening.addr()).await.unwrap();
    ask_again(&mut stream, listening, path).await;
    stream
}

async fn ask_again(stream: &mut TcpStream, listening: &Listening, path: &str) {
    let (host, token) = (listening.addr(), listening.token());
    let request = format!("GET {path} HTTP/1.1\r\nhost: {host}\r\nauthorization: Bearer {token}\r\n\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
}

/// Reads until a text has come.
async fn until(stream: &mut TcpStream, text: &str) {
    let mut all = Vec::new();
    while !String::from_utf8_lossy(&all).contains(text) {
        let read = timeout(LONG, stream.read_buf(&mut all)).await.expect(text).unwrap();
        assert!(read > 0, "ended before {text}: {}", String::from_utf8_lossy(&all));
    }
}

/// What comes up to the end, and how it ends.
async fn rest(stream: &mut TcpStream) -> (String, io::Result<()>) {
    let mut bytes = Vec::new();
    let ended = timeout(LONG, stream.read_to_end(&mut bytes)).await.expect("the connection ends");
    (String::from_utf8_lossy(&bytes).into_owned(), ended.map(drop))
}

fn is_reset(ended: &io::Result<()>) -> bool {
    ended.as_ref().is_err_and(|error| error.kind() == io::ErrorKind::ConnectionReset)
}

#[tokio::test]
async fn a_watch_that_is_closed_has_no_end() {
    let (server, listening) = start().await;
    server.faults().on(Match::watch("nodes")).then(Fault::cut_after_bytes(100, Ending::Fin));
    let (answer, ended) = rest(&mut ask(&listening, WATCH).await).await;
    ended.unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    assert!(head.starts_with("HTTP/1.1 200") && head.contains("chunked"), "{head}");
    assert!(body.starts_with("64\r\n{\"type\":\"ADDED\"") && body.len() == 4 + 100 + 2, "{body}");
    assert!(!body.ends_with(END));
}

#[tokio::test]
async fn a_watch_that_is_reset_is_reset_behind_its_bytes() {
    let (server, listening) = start().await;
    server.faults().on(Match::watch("nodes")).then(Fault::cut_after_bytes(100, Ending::Reset));
    let mut stream = ask(&listening, WATCH).await;
    until(&mut stream, "64\r\n{\"type\":\"ADDED\"").await;
    let (_, ended) = rest(&mut stream).await;
    assert!(is_reset(&ended), "{ended:?}");
}

#[tokio::test]
async fn what_comes_before_a_cut_is_sent_even_to_a_slow_reader() {
    const BYTES: usize = 8 << 20;
    let (server, listening) = start().await;
    let faults = server.faults();
    // More than a socket's buffers hold.
    faults.on(Match::watch("nodes")).then(Fault::Oversize { nth: 1, bytes: 2 * BYTES });
    faults.on(Match::watch("nodes")).then(Fault::cut_after_bytes(BYTES, Ending::Fin));
    let mut stream = ask(&listening, WATCH).await;
    sleep(SOON).await;
    let (answer, ended) = rest(&mut stream).await;
    ended.unwrap();
    assert!(answer.len() > BYTES && !answer.ends_with(END), "{}", answer.len());
}

#[tokio::test]
async fn a_list_is_cut_in_its_middle() {
    let (server, listening) = start().await;
    server.faults().on(Match::list("nodes")).then(Fault::Truncate);
    let (answer, ended) = rest(&mut ask(&listening, LIST).await).await;
    ended.unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    let length = head.lines().find_map(|line| line.strip_prefix("content-length: ")).unwrap().parse::<usize>().unwrap();
    assert_eq!(body.len(), length / 2);
}

#[tokio::test]
async fn a_refusal_resets_the_connection_without_an_answer() {
    let (server, listening) = start().await;
    server.faults().on(Match::list("nodes").once()).then(Fault::Refuse);
    let (answer, ended) = rest(&mut ask(&listening, LIST).await).await;
    assert!(answer.is_empty() && is_reset(&ended), "{answer} {ended:?}");
    until(&mut ask(&listening, LIST).await, "NodeList").await;
}

#[tokio::test]
async fn a_rule_for_those_outside_leaves_this_process_alone() {
    let (server, listening) = start().await;
    let rule = server.faults().on(Match::list("nodes").from_outside()).then(Fault::status(500, "InternalError"));
    let request = http::Request::get(LIST).body(http_body_util::Empty::<bytes::Bytes>::new()).unwrap();
    let inside = tower::ServiceExt::oneshot(server.service(), request).await.unwrap();
    assert_eq!((inside.status().as_u16(), rule.injected()), (200, 0));
    until(&mut ask(&listening, LIST).await, "HTTP/1.1 500").await;
    assert_eq!(rule.injected(), 1);
}

#[tokio::test]
async fn an_answer_that_stands_still_is_no_idle_connection() {
    let server = ApiServer::new();
    put(&server, "a");
    let mut options = ListenOptions::default();
    (options.limits.header_timeout, options.limits.idle_timeout) = (SOON, SOON);
    let listening = server.listen(options).await.unwrap();
    let faults = server.faults();
    faults.on(Match::list("nodes")).then(Fault::stall(Duration::from_secs(3600)));
    faults.on(Match::watch("nodes")).then(Fault::Stall { at: StallAt::Bytes(100), time: None });
    let (mut list, mut watch) = (ask(&listening, LIST).await, ask(&listening, WATCH).await);
    until(&mut watch, "ADDED").await;
    for stream in [&mut list, &mut watch] {
        assert!(timeout(3 * SOON, stream.read(&mut [0])).await.is_err(), "nothing comes, and no end");
    }
    server.faults().cut();
    assert_eq!(rest(&mut list).await.0, "");
    assert_eq!(rest(&mut watch).await.0, "");
}

/// A connection that is kept alive and a watch, on two ports, end at once, and the watch does not end properly.
async fn ends_all(cut: impl FnOnce(&ApiServer)) {
    let (server, listening) = start().await;
    let other = server.listen(ListenOptions::default()).await.unwrap();
    let (mut idle, mut watch) = (ask(&other, LIST).await, ask(&listening, WATCH).await);
    until(&mut idle, "}]}").await;
    until(&mut watch, EVENT).await;
    ask_again(&mut idle, &other, LIST).await;
    until(&mut idle, "}]}").await;
    cut(&server);
    for stream in [&mut idle, &mut watch] {
        let (answer, ended) = rest(stream).await;
        ended.unwrap();
        assert!(answer.is_empty(), "{answer}");
    }
    until(&mut ask(&listening, LIST).await, "NodeList").await;
}

#[tokio::test]
async fn a_cut_closes_all_connections() {
    ends_all(|server| server.faults().cut()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_cut_closes_all_connections_of_all_threads() {
    for _ in 0..20 {
        ends_all(|server| server.faults().cut()).await;
    }
}

#[tokio::test]
async fn a_restart_closes_all_connections() {
    ends_all(|server| server.faults().restart(true)).await;
    ends_all(|server| server.faults().restart(false)).await;
}

#[tokio::test]
async fn the_request_that_restarts_is_reset_and_others_are_closed() {
    let (server, listening) = start().await;
    let mut watch = ask(&listening, WATCH).await;
    until(&mut watch, EVENT).await;
    server.faults().on(Match::list("nodes").once()).then(Fault::Restart { keep_data: true });
    let (answer, ended) = rest(&mut ask(&listening, LIST).await).await;
    assert!(answer.is_empty() && is_reset(&ended), "{answer} {ended:?}");
    let (answer, ended) = rest(&mut watch).await;
    assert!(answer.is_empty() && ended.is_ok(), "{answer} {ended:?}");
}

/// Waits until the copy is the truth.
async fn is_true(server: &ApiServer, store: &Indexer<Object>) {
    let compare = || {
        let objects = store.snapshot();
        let observed = objects.iter().map(|(key, object)| (key, object.resource_version()));
        server.truth().now("nodes").unwrap().compare(observed)
    };
    let waited = timeout(LONG, async {
        while compare().is_err() {
            sleep(Duration::from_millis(5)).await;
        }
    });
    assert!(waited.await.is_ok(), "{}", compare().unwrap_err());
}

/// A reflector survives a restart, and what happens to the watch behind it.
async fn recovers(options: ListenOptions, http2: bool, fault: Fault) {
    let server = ApiServer::new();
    put(&server, "a");
    let listening = server.listen(options).await.unwrap();
    let kubeconfig = Kubeconfig::from_yaml(&listening.kubeconfig()).unwrap();
    let config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await.unwrap();
    let client = match http2 {
        false => client(config).unwrap(),
        true => {
            let mut options = ClientOptions::default();
            options.http2 = true;
            client_with(config, options).unwrap()
        }
    };
    let store = Arc::new(Indexer::objects());
    let backoff = Backoff::new(Duration::from_millis(10), Duration::from_millis(50));
    let reflector =
        Reflector::new(ListWatch::by_name(client, "", "v1", "nodes").for_store(&store), store.clone()).backoff(backoff);
    let status = reflector.status();
    let token = CancellationToken::new();
    let running = tokio::spawn(reflector.run(token.clone()));
    is_true(&server, &store).await;

    let rule = server.faults().on(Match::watch("nodes").once()).then(fault);
    server.faults().restart(true);
    put(&server, "b");
    is_true(&server, &store).await;
    assert_eq!(rule.injected(), 1);
    assert!(status.get().watch_restarts.values().sum::<u64>() > 0, "{status:?}");
    token.cancel();
    running.await.unwrap();
}

#[tokio::test]
async fn a_reflector_recovers() {
    recovers(ListenOptions::default(), false, Fault::cut_after_bytes(100, Ending::Fin)).await;
}

#[tokio::test]
async fn a_reflector_recovers_over_tls() {
    recovers(ListenOptions::with_tls(), false, Fault::cut_after_bytes(100, Ending::Reset)).await;
}

#[tokio::test]
async fn a_reflector_recovers_over_http2() {
    recovers(ListenOptions::with_tls(), true, Fault::Refuse).await;
}
