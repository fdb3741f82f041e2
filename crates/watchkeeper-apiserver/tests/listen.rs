//! The server behind a socket: with clients as they are, and with those that mean no good.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use futures::{StreamExt, TryStreamExt};
use k8s_openapi::api::core::v1::{ConfigMap, Namespace};
use kube::api::{ListParams, PostParams, WatchEvent, WatchParams};
use kube_client::config::{KubeConfigOptions, Kubeconfig};
use kube_client::{Api, Client, Config};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use watchkeeper::source::{ClientOptions, client_with};
use watchkeeper_apiserver::{ApiServer, Ending, Fault, ListenError, ListenOptions, Listening, Match};

const SOON: Duration = Duration::from_millis(150);
/// Nothing here takes this long, unless it hangs.
const LONG: Duration = Duration::from_secs(4);

async fn listen(options: ListenOptions) -> Listening {
    ApiServer::new().listen(options).await.unwrap()
}

async fn config(listening: &Listening) -> Config {
    let kubeconfig = Kubeconfig::from_yaml(&listening.kubeconfig()).unwrap();
    Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await.unwrap()
}

fn config_map(name: &str) -> ConfigMap {
    let object = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"a": "b"}});
    serde_json::from_value(object).unwrap()
}

/// Creates, lists, watches.
async fn use_it(client: Client) {
    let maps: Api<ConfigMap> = Api::default_namespaced(client);
    maps.create(&PostParams::default(), &config_map("one")).await.unwrap();
    let list = maps.list(&ListParams::default()).await.unwrap();
    assert_eq!(list.items.len(), 1);
    let version = list.metadata.resource_version.unwrap();
    let mut events = maps.watch(&WatchParams::default(), &version).await.unwrap().boxed();
    maps.create(&PostParams::default(), &config_map("two")).await.unwrap();
    match events.try_next().await.unwrap() {
        Some(WatchEvent::Added(map)) => assert_eq!(map.metadata.name.as_deref(), Some("two")),
        other => panic!("{other:?}"),
    }
}

/// A request of HTTP/1.1, with its host; other headers are the caller's.
fn get(listening: &Listening, path: &str, headers: &str) -> String {
    format!("GET {path} HTTP/1.1\r\nhost: {}\r\n{headers}\r\n", listening.addr())
}

fn bearer(listening: &Listening) -> String {
    format!("authorization: Bearer {}\r\n", listening.token())
}

async fn connect(address: SocketAddr) -> TcpStream {
    TcpStream::connect(address).await.unwrap()
}

/// Reads until the server has closed the connection; a reset is an end too.
async fn rest(stream: &mut TcpStream) -> String {
    let mut bytes = Vec::new();
    let _ = tokio::time::timeout(LONG, stream.read_to_end(&mut bytes)).await.expect("the server closes the connection");
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Sends some bytes, and reads what comes until the server closes.
async fn exchange(address: SocketAddr, request: &str) -> String {
    let mut stream = connect(address).await;
    // A server that has refused already may not read on.
    let _ = stream.write_all(request.as_bytes()).await;
    rest(&mut stream).await
}

/// Reads until a text has come.
async fn until(stream: &mut TcpStream, text: &str) -> String {
    let mut all = Vec::new();
    while !String::from_utf8_lossy(&all).contains(text) {
        let read = tokio::time::timeout(LONG, stream.read_buf(&mut all)).await.expect(text).unwrap();
        assert!(read > 0, "ended before {text}: {}", String::from_utf8_lossy(&all));
    }
    String::from_utf8_lossy(&all).into_owned()
}

/// The status code, and the `Status` in the body.
fn status(answer: &str) -> (u16, Value) {
    let code = answer.split(' ').nth(1).and_then(|code| code.parse().ok()).unwrap_or_default();
    let body = answer.split_once("\r\n\r\n").map_or("", |(_, body)| body);
    (code, serde_json::from_str(body).unwrap_or_default())
}

/// How HTTP/2 begins: the preface, and settings without a setting.
const HTTP2: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0";
const CLOSE: &str = "connection: close\r\n";

#[tokio::test]
async fn kube_uses_it_over_plain_tcp() {
    let listening = listen(ListenOptions::default()).await;
    assert_eq!(listening.url(), format!("http://{}", listening.addr()));
    assert!(listening.ca_pem().is_none());
    use_it(Client::try_from(config(&listening).await).unwrap()).await;
}

#[tokio::test]
async fn kube_uses_it_over_tls() {
    let listening = listen(ListenOptions::with_tls()).await;
    assert_eq!(listening.url(), format!("https://{}", listening.addr()));
    use_it(Client::try_from(config(&listening).await).unwrap()).await;
}

#[tokio::test]
async fn our_client_uses_it_over_tls_with_http2() {
    let listening = listen(ListenOptions::with_tls()).await;
    let mut options = ClientOptions::default();
    options.http2 = true;
    use_it(client_with(config(&listening).await, options).unwrap()).await;
}

#[tokio::test]
async fn our_client_uses_it_over_tls_with_http11() {
    let listening = listen(ListenOptions::with_tls()).await;
    use_it(client_with(config(&listening).await, ClientOptions::default()).unwrap()).await;
}

#[tokio::test]
async fn its_certificate_is_trusted_by_nobody_without_the_kubeconfig() {
    let (listening, other) = (listen(ListenOptions::with_tls()).await, listen(ListenOptions::with_tls()).await);
    let mut config = config(&listening).await;
    config.root_cert = self::config(&other).await.root_cert;
    let error = client_with(config, ClientOptions::default()).unwrap().apiserver_version().await.unwrap_err();
    assert!(format!("{error:?}").contains("certificate"), "{error:?}");
}

#[tokio::test]
async fn a_wrong_or_missing_token_is_unauthorized() {
    let listening = listen(ListenOptions::default()).await;
    for headers in ["", "authorization: Bearer wrong\r\n", "authorization: Basic YTpi\r\n"] {
        let request = get(&listening, "/api/v1/namespaces", &format!("{headers}{CLOSE}"));
        let (code, body) = status(&exchange(listening.addr(), &request).await);
        assert_eq!(code, 401, "{headers}");
        let expected = json!({
            "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "message": "Unauthorized",
            "reason": "Unauthorized", "code": 401,
        });
        assert_eq!(body, expected);
    }
    let right = get(&listening, "/api/v1/namespaces", &format!("{}{CLOSE}", bearer(&listening)));
    assert_eq!(status(&exchange(listening.addr(), &right).await).0, 200);
}

#[tokio::test]
async fn health_and_version_need_no_token_but_take_no_wrong_one() {
    let listening = listen(ListenOptions::default()).await;
    for (path, headers, expected) in [
        ("/healthz", "", 200),
        ("/livez", "", 200),
        ("/readyz", "", 200),
        ("/version", "", 200),
        ("/version", "authorization: Bearer wrong\r\n", 401),
        ("/livez/ping", "", 401),
        ("/api", "", 401),
    ] {
        let request = get(&listening, path, &format!("{headers}{CLOSE}"));
        assert_eq!(status(&exchange(listening.addr(), &request).await).0, expected, "{path} {headers}");
    }
}

#[tokio::test]
async fn a_chosen_token_is_the_token() {
    let mut options = ListenOptions::default();
    options.token = Some("chosen".to_owned());
    let listening = listen(options).await;
    assert_eq!(listening.token(), "chosen");
    let request = get(&listening, "/api", &format!("authorization: Bearer chosen\r\n{CLOSE}"));
    assert_eq!(status(&exchange(listening.addr(), &request).await).0, 200);
    let mut options = ListenOptions::default();
    options.token = Some("no good".to_owned());
    assert!(matches!(ApiServer::new().listen(options).await, Err(ListenError::Token)));
}

#[tokio::test]
async fn a_foreign_host_is_refused_even_with_the_token() {
    let listening = listen(ListenOptions::default()).await;
    let port = listening.addr().port();
    for (host, expected) in [
        (format!("localhost:{port}"), 200),
        (format!("[::1]:{port}"), 200),
        (format!("evil.test:{port}"), 403),
        (format!("localhost:{}", port ^ 1), 403),
        ("evil.test".to_owned(), 403),
    ] {
        let request = format!("GET /api HTTP/1.1\r\nhost: {host}\r\n{}{CLOSE}\r\n", bearer(&listening));
        let (code, body) = status(&exchange(listening.addr(), &request).await);
        assert_eq!(code, expected, "{host}");
        assert!(code == 200 || body["message"].as_str().unwrap().contains("allowed_hosts"), "{body}");
    }
}

#[tokio::test]
async fn an_address_that_others_reach_needs_permission() {
    let mut options = ListenOptions::default();
    options.address = "0.0.0.0:0".parse().unwrap();
    let error = ApiServer::new().listen(options.clone()).await.unwrap_err();
    assert!(matches!(error, ListenError::NotLoopback(_)));
    assert!(error.to_string().contains("allow_other_addresses"), "{error}");
    // The permission itself is not tried here: tests open no port to others.
}

#[tokio::test]
async fn a_port_that_is_taken_is_an_error_with_the_address() {
    let listening = listen(ListenOptions::default()).await;
    let mut options = ListenOptions::default();
    options.address = listening.addr();
    let error = ApiServer::new().listen(options).await.unwrap_err();
    assert!(error.to_string().contains(&listening.addr().to_string()), "{error}");
}

#[tokio::test]
async fn a_connection_that_never_asks_is_dropped() {
    let mut options = ListenOptions::default();
    options.limits.header_timeout = SOON;
    let listening = listen(options).await;
    let began = Instant::now();
    let (mut silent, mut slow) = (connect(listening.addr()).await, connect(listening.addr()).await);
    let drip = async {
        // A header that never ends, one byte after the other.
        let mut sent = slow.write_all(b"GET /api HTTP/1.1\r\nx: ").await;
        while sent.is_ok() && began.elapsed() < LONG {
            tokio::time::sleep(SOON / 5).await;
            sent = slow.write_all(b"x").await;
        }
    };
    let ((), answer) = tokio::join!(drip, rest(&mut silent));
    assert_eq!(answer, "");
    assert!(began.elapsed() < LONG, "{:?}", began.elapsed());
}

#[tokio::test]
async fn an_http2_connection_that_never_asks_is_dropped() {
    let mut options = ListenOptions::default();
    options.limits.header_timeout = SOON;
    let listening = listen(options).await;
    let mut stream = connect(listening.addr()).await;
    stream.write_all(HTTP2).await.unwrap();
    rest(&mut stream).await;
}

#[tokio::test]
async fn a_handshake_that_never_comes_is_dropped() {
    let mut options = ListenOptions::with_tls();
    options.limits.header_timeout = SOON;
    let listening = listen(options).await;
    assert_eq!(rest(&mut connect(listening.addr()).await).await, "");
}

#[tokio::test]
async fn an_idle_connection_is_closed_but_no_watch_is() {
    let mut options = ListenOptions::default();
    options.limits.idle_timeout = SOON;
    let listening = listen(options).await;
    let mut idle = connect(listening.addr()).await;
    idle.write_all(get(&listening, "/version", "").as_bytes()).await.unwrap();
    let mut watch = connect(listening.addr()).await;
    let path = "/api/v1/namespaces?watch=1&resourceVersion=1&timeoutSeconds=1";
    watch.write_all(get(&listening, path, &bearer(&listening)).as_bytes()).await.unwrap();
    let began = Instant::now();
    assert!(rest(&mut idle).await.starts_with("HTTP/1.1 200"));
    let idle_for = began.elapsed();
    until(&mut watch, "\r\n0\r\n\r\n").await;
    assert!(idle_for < began.elapsed() && began.elapsed() > SOON * 5);
}

#[tokio::test]
async fn a_body_that_never_comes_is_given_up() {
    let mut options = ListenOptions::default();
    options.limits.body_timeout = SOON;
    let listening = listen(options).await;
    let head = format!(
        "POST /api/v1/namespaces HTTP/1.1\r\nhost: {}\r\ncontent-length: 100\r\n{}\r\n{{",
        listening.addr(),
        bearer(&listening)
    );
    let (code, body) = status(&exchange(listening.addr(), &head).await);
    assert_eq!((code, &body["reason"]), (400, &json!("BadRequest")), "{body}");
}

#[tokio::test]
async fn one_connection_too_many_is_told_so() {
    let mut options = ListenOptions::default();
    options.limits.connections = 2;
    let listening = listen(options).await;
    let mut kept = Vec::new();
    for _ in 0..2 {
        let mut stream = connect(listening.addr()).await;
        stream.write_all(get(&listening, "/version", "").as_bytes()).await.unwrap();
        until(&mut stream, "}\n").await;
        kept.push(stream);
    }
    let answer = exchange(listening.addr(), &get(&listening, "/version", "")).await;
    let (code, body) = status(&answer);
    assert_eq!((code, &body["reason"]), (429, &json!("TooManyRequests")), "{answer}");
    assert!(answer.contains("retry-after: 1\r\n"), "{answer}");
    // Once one is gone, there is room again.
    drop(kept.pop());
    let began = Instant::now();
    while status(&exchange(listening.addr(), &get(&listening, "/version", CLOSE)).await).0 != 200 {
        assert!(began.elapsed() < LONG);
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

#[tokio::test]
async fn one_connection_too_many_is_closed_where_it_expects_tls() {
    let mut options = ListenOptions::with_tls();
    options.limits.connections = 0;
    let listening = listen(options).await;
    assert_eq!(rest(&mut connect(listening.addr()).await).await, "");
}

#[tokio::test]
async fn http2_is_told_its_limits() {
    let listening = listen(ListenOptions::default()).await;
    let mut stream = connect(listening.addr()).await;
    stream.write_all(HTTP2).await.unwrap();
    let mut head = [0; 9];
    stream.read_exact(&mut head).await.unwrap();
    assert_eq!(head[3], 4, "a server begins with its settings");
    let mut settings = vec![0; usize::from(head[2])];
    stream.read_exact(&mut settings).await.unwrap();
    let told = |id: u8, value: u32| settings.chunks(6).any(|s| s[1] == id && s[2..] == value.to_be_bytes());
    assert!(told(3, 100) && told(6, 64 * 1024), "{settings:?}");
}

#[tokio::test]
async fn limits_without_an_end_are_limits() {
    let mut options = ListenOptions::default();
    options.limits.header_timeout = Duration::MAX;
    options.limits.body_timeout = Duration::MAX;
    options.limits.idle_timeout = Duration::MAX;
    options.limits.connections = usize::MAX;
    options.grace = Duration::MAX;
    let listening = listen(options).await;
    use_it(Client::try_from(config(&listening).await).unwrap()).await;
    listening.shutdown().await;
}

#[tokio::test]
async fn too_much_header_is_refused() {
    let listening = listen(ListenOptions::default()).await;
    let long = format!("x-long: {}\r\n{}", "x".repeat(1024 * 1024), bearer(&listening));
    let answer = exchange(listening.addr(), &get(&listening, "/api", &long)).await;
    // The answer is lost where the server closed with bytes unread.
    assert!(answer.is_empty() || answer.starts_with("HTTP/1.1 431"), "{answer}");
    let many: String = (0..101).map(|i| format!("x-{i}: y\r\n")).collect();
    let answer = exchange(listening.addr(), &get(&listening, "/api", &format!("{many}{}", bearer(&listening)))).await;
    assert!(answer.starts_with("HTTP/1.1 431"), "{answer}");
}

#[tokio::test]
async fn too_much_header_is_refused_over_http2() {
    let listening = listen(ListenOptions::with_tls()).await;
    let mut options = ClientOptions::default();
    options.http2 = true;
    let client = client_with(config(&listening).await, options).unwrap();
    let code = async |headers: Vec<(String, String)>| {
        let mut request = http::Request::get("/api");
        for (name, value) in headers {
            request = request.header(name, value);
        }
        client
            .send(request.body(kube_client::client::Body::empty()).unwrap())
            .await
            .map(|answer| answer.status().as_u16())
    };
    assert_eq!(code(Vec::new()).await.unwrap(), 200);
    let many = (0..101).map(|i| (format!("x-{i}"), "y".to_owned())).collect();
    assert_eq!(code(many).await.unwrap(), 431);
    let long = code(vec![("x-long".to_owned(), "x".repeat(1024 * 1024))]).await;
    assert!(!matches!(long, Ok(200)), "{long:?}");
}

#[tokio::test]
async fn shutdown_ends_watches_cleanly_and_leaves_no_task() {
    let tasks = || tokio::runtime::Handle::current().metrics().num_alive_tasks();
    let before = tasks();
    let server = ApiServer::new();
    let listening = server.listen(ListenOptions::default()).await.unwrap();
    let address = listening.addr();
    let mut idle = connect(address).await;
    idle.write_all(get(&listening, "/version", "").as_bytes()).await.unwrap();
    until(&mut idle, "}\n").await;
    let mut watch = connect(address).await;
    let request = get(&listening, "/api/v1/namespaces?watch=1&resourceVersion=1", &bearer(&listening));
    watch.write_all(request.as_bytes()).await.unwrap();
    until(&mut watch, "kube-system").await;
    assert!(tasks() > before);

    let began = Instant::now();
    listening.shutdown().await;
    assert_eq!(tasks(), before);
    assert!(began.elapsed() < Duration::from_secs(2), "{:?}", began.elapsed());
    assert!(rest(&mut watch).await.ends_with("0\r\n\r\n"), "the watch has its last chunk");
    assert_eq!(rest(&mut idle).await, "");
    assert!(TcpStream::connect(address).await.is_err());
    // Only the port is closed.
    let namespaces: Api<Namespace> = Api::all(server.client());
    assert_eq!(namespaces.list(&ListParams::default()).await.unwrap().items.len(), 4);
}

#[tokio::test]
async fn shutdown_ends_watches_over_http2_without_an_error() {
    let server = ApiServer::new();
    let listening = server.listen(ListenOptions::with_tls()).await.unwrap();
    let mut options = ClientOptions::default();
    options.http2 = true;
    let maps: Api<ConfigMap> = Api::default_namespaced(client_with(config(&listening).await, options).unwrap());
    let events = maps.watch(&WatchParams::default(), "0").await.unwrap().boxed();
    let began = Instant::now();
    // It has begun, and may have told of that.
    let (end, ()) = tokio::join!(events.try_collect::<Vec<_>>(), listening.shutdown());
    assert!(end.is_ok(), "{end:?}");
    assert!(began.elapsed() < Duration::from_secs(3), "{:?}", began.elapsed());
}

#[tokio::test]
async fn who_does_not_read_is_cut_off_after_the_grace() {
    let tasks = || tokio::runtime::Handle::current().metrics().num_alive_tasks();
    let before = tasks();
    let server = ApiServer::new();
    for i in 0..64 {
        let data = json!({"a": "x".repeat(500_000)});
        let object =
            json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": format!("m{i}")}, "data": data});
        server.create(object).unwrap();
    }
    let mut options = ListenOptions::default();
    options.grace = SOON;
    let listening = server.listen(options).await.unwrap();
    let mut stream = connect(listening.addr()).await;
    let request = get(&listening, "/api/v1/configmaps", &bearer(&listening));
    stream.write_all(request.as_bytes()).await.unwrap();
    until(&mut stream, "m0").await;
    let began = Instant::now();
    listening.shutdown().await;
    assert!(began.elapsed() >= SOON && began.elapsed() < LONG, "{:?}", began.elapsed());
    assert_eq!(tasks(), before);
}

#[tokio::test]
async fn dropping_the_handle_or_stopping_the_server_closes_the_port() {
    let tasks = || tokio::runtime::Handle::current().metrics().num_alive_tasks();
    let before = tasks();
    for stop in [false, true] {
        let server = ApiServer::new();
        let listening = server.listen(ListenOptions::default()).await.unwrap();
        let address = listening.addr();
        let mut watch = connect(address).await;
        let request = get(&listening, "/api/v1/namespaces?watch=1&resourceVersion=1", &bearer(&listening));
        watch.write_all(request.as_bytes()).await.unwrap();
        until(&mut watch, "kube-system").await;
        let kept = match stop {
            true => {
                server.stop();
                Some(listening)
            }
            false => {
                drop(listening);
                None
            }
        };
        rest(&mut watch).await;
        let began = Instant::now();
        while tasks() > before {
            assert!(began.elapsed() < LONG);
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        assert!(TcpStream::connect(address).await.is_err());
        drop(kept);
    }
}

#[cfg(unix)]
#[tokio::test]
async fn the_kubeconfig_is_for_its_owner_only() {
    use std::os::unix::fs::PermissionsExt;

    let listening = listen(ListenOptions::with_tls()).await;
    let folder = std::env::temp_dir().join(format!("watchkeeper-listen-{}", std::process::id()));
    std::fs::create_dir(&folder).unwrap();
    let path = folder.join("config");
    // One that all can read is there, and is replaced.
    std::fs::write(&path, "old").unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o644)).unwrap();
    listening.write_kubeconfig(&path).unwrap();
    assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    assert_eq!(std::fs::read_to_string(&path).unwrap(), listening.kubeconfig());
    assert_eq!(std::fs::read_dir(&folder).unwrap().count(), 1, "nothing is left beside it");

    let nowhere = folder.join("no/such/folder/config");
    let error = listening.write_kubeconfig(&nowhere).unwrap_err();
    assert!(error.to_string().contains(nowhere.to_str().unwrap()), "{error}");
    assert_eq!(error.path(), nowhere);
    std::fs::remove_dir_all(&folder).unwrap();
}

#[tokio::test]
async fn no_text_about_it_shows_the_token() {
    let listening = listen(ListenOptions::default()).await;
    let shown = format!("{listening:?}");
    assert!(shown.contains("127.0.0.1") && !shown.contains(listening.token()), "{shown}");
}

/// The end of a chunked body says that nothing is missing: a connection that breaks does not say so.
#[tokio::test]
async fn a_cut_watch_is_not_ended_properly() {
    for ending in [Ending::Fin, Ending::Reset] {
        let server = ApiServer::new();
        let listening = server.listen(ListenOptions::default()).await.unwrap();
        server.faults().on(Match::watch("namespaces")).then(Fault::cut_after_bytes(700, ending));
        let request = get(&listening, "/api/v1/namespaces?watch=1&resourceVersion=1", &bearer(&listening));
        let answer = exchange(listening.addr(), &request).await;
        assert!(answer.contains("ADDED") && !answer.ends_with("0\r\n\r\n"), "{ending:?}: {answer}");
    }
}

/// Whoever asks and never reads holds a connection, and needs no token for it.
#[tokio::test]
async fn a_client_that_reads_no_answers_is_cut_off() {
    let mut options = ListenOptions::default();
    options.limits.connections = 1;
    options.limits.write_timeout = SOON;
    let listening = listen(options).await;
    let mut stream = connect(listening.addr()).await;
    let requests = get(&listening, "/version", "").repeat(100);
    // Until no more fit into all the buffers on the way.
    while let Ok(written) = tokio::time::timeout(SOON / 3, stream.write_all(requests.as_bytes())).await {
        if written.is_err() {
            break;
        }
    }
    tokio::time::sleep(SOON * 3).await;
    let answer = exchange(listening.addr(), &get(&listening, "/version", "connection: close\r\n")).await;
    assert_eq!(status(&answer).0, 200, "{answer}");
    drop(stream);
}
