//! The HTTP client.
//!
//! kube's own client is built for short requests, and three of its habits harm a watch. It repeats a failed request up
//! to fifteen times out of sight, so that for minutes nobody learns that the server is gone; it does not ask whether a
//! silent peer is still there; and its gzip reads the first event of a compressed watch only. So the stack is ours,
//! made of kube's parts where those hold the knowledge: which server, which credentials, which headers, which
//! certificates.
//!
//! From the outside in: base URI, credentials, headers, gzip ([`super::gzip`]), HTTP/1.1 ([`super::http1`]) or HTTP/2 ([`super::http2`]),
//! and the connector ([`super::connect`]) with TLS, proxy and TCP. There is no retry, no deadline on reading (a watch
//! may be silent for long; the connection's keepalive notices a dead peer) and no trace layer (requests hold names, and
//! headers hold credentials).
//!
//! HTTP/1.1 is the default: one connection for each watch, so that none waits for another. Every error that leaves the
//! stack is an [`Error`] already, because the errors below it may quote what must not be shown.

use std::time::Duration;

use bytes::Bytes;
use http::{HeaderValue, Request, Response, Uri, header};
use hyper::rt::{Read, Write};
use hyper_util::client::legacy::connect::Connection;
use kube_client::client::{Body, ConfigExt};
use kube_client::{Client, Config};
use tower::{BoxError, Service, ServiceBuilder};

use super::connect::{self, Connector};
use super::gzip::GzipLayer;
use super::http1::Http1;
use super::http2::Http2;
use crate::defaults;
use crate::error::{Error, ErrorKind};

const USER_AGENT: HeaderValue = HeaderValue::from_static(concat!("watchkeeper/", env!("CARGO_PKG_VERSION")));

/// What can be chosen about a [`client`].
///
/// ```
/// let mut options = watchkeeper::source::ClientOptions::default();
/// options.http2 = true;
/// ```
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct ClientOptions {
    /// Share few connections among many requests instead of having one for each watch. Off by default.
    pub http2: bool,
    /// Let the server compress its answers. On by default; `disable_compression` in the kubeconfig switches it off too.
    pub gzip: bool,
    /// How long making a connection may take, name resolution, proxy and TLS included. Applies where
    /// [`Config::connect_timeout`] is not set.
    pub connect_timeout: Duration,
    /// Silence on a connection after which TCP asks whether the peer is there.
    pub tcp_keepalive: Duration,
    /// Time between two such questions.
    pub tcp_keepalive_interval: Duration,
    /// Questions without an answer after which the peer is dead.
    pub tcp_keepalive_retries: u32,
    /// How long sent data may stay unacknowledged (Linux, Android and Fuchsia).
    pub tcp_user_timeout: Duration,
    /// Time between two pings of an HTTP/2 connection.
    pub http2_ping_interval: Duration,
    /// How long such a ping may stay unanswered.
    pub http2_ping_timeout: Duration,
    /// Requests at once on one HTTP/2 connection.
    pub http2_max_streams: usize,
}

impl Default for ClientOptions {
    fn default() -> Self {
        Self {
            http2: false,
            gzip: true,
            connect_timeout: defaults::CONNECT_TIMEOUT,
            tcp_keepalive: defaults::TCP_KEEPALIVE,
            tcp_keepalive_interval: defaults::TCP_KEEPALIVE_INTERVAL,
            tcp_keepalive_retries: defaults::TCP_KEEPALIVE_RETRIES,
            tcp_user_timeout: defaults::TCP_USER_TIMEOUT,
            http2_ping_interval: defaults::HTTP2_PING_INTERVAL,
            http2_ping_timeout: defaults::HTTP2_PING_TIMEOUT,
            http2_max_streams: defaults::HTTP2_MAX_STREAMS,
        }
    }
}

/// A client that is made for watching: it hides no failure, and notices a dead server within 45 seconds.
///
/// Must be called inside a tokio runtime, where its connections then live: it may be used from other runtimes for as long
/// as that one runs. A credential plugin named in the configuration is run, which blocks.
///
/// # Errors
///
/// [`ErrorKind::Config`] when the configuration asks for what cannot be done, [`ErrorKind::Connect`] when the
/// credentials cannot be had.
pub fn client(config: Config) -> Result<Client, Error> {
    client_with(config, ClientOptions::default())
}

/// A [`client`] with options.
///
/// # Errors
///
/// As [`client`].
pub fn client_with(config: Config, options: ClientOptions) -> Result<Client, Error> {
    let tcp = connect::tcp(&config, &options);
    let connector = match &config.proxy_url {
        Some(proxy) => connect::proxy(proxy, tcp, &config, &options)?,
        None => connect::secure(tcp, &config, &options)?,
    };
    stacked(connector, &config, &options)
}

/// A [`client`] over any connector, for tests that speak to a server through memory. The proxy is left out.
///
/// # Errors
///
/// As [`client`].
#[doc(hidden)]
pub fn client_over<C>(connector: C, config: Config, options: ClientOptions) -> Result<Client, Error>
where
    C: Service<Uri> + Clone + Send + Sync + 'static,
    C::Response: Read + Write + Connection + Send + Unpin + 'static,
    C::Future: Send + 'static,
    C::Error: Into<BoxError>,
{
    let connector = connect::secure(connector, &config, &options)?;
    stacked(connector, &config, &options)
}

fn stacked(connector: Connector, config: &Config, options: &ClientOptions) -> Result<Client, Error> {
    if options.http2 {
        return stack(Http2::new(connector, config, options)?, config, options);
    }
    stack(Http1::new(connector, config)?, config, options)
}

/// All that is above the connection, whichever protocol it speaks.
fn stack<S, B>(transport: S, config: &Config, options: &ClientOptions) -> Result<Client, Error>
where
    S: Service<Request<Body>, Response = Response<B>, Error = Error> + Clone + Send + 'static,
    S::Future: Send + 'static,
    B: http_body::Body<Data = Bytes, Error = Error> + Send + Unpin + 'static,
{
    let service = ServiceBuilder::new()
        // kube prints what it wraps, and a credential plugin's error holds the plugin's output: the text has to be made
        // before the error leaves the stack.
        .map_err(|error: BoxError| Error::transport(ErrorKind::Disconnected, error.as_ref()))
        .layer(config.base_uri_layer())
        .option_layer(config.auth_layer().map_err(config_error)?)
        .layer(config.extra_headers_layer().map_err(config_error)?)
        .map_request(name_ourselves)
        .layer(GzipLayer::new(options.gzip && !config.disable_compression))
        .map_err(BoxError::from)
        .service(transport);
    Ok(Client::new(service, config.default_namespace.clone()))
}

/// What hyper says about a connection that was there.
pub(super) fn wire_error(error: hyper::Error) -> Error {
    Error::transport(kind_of(&error), &error)
}

fn kind_of(error: &hyper::Error) -> ErrorKind {
    if error.is_timeout() {
        ErrorKind::Timeout
    } else if error.is_parse() {
        ErrorKind::Malformed
    } else {
        ErrorKind::Disconnected
    }
}

/// An error of kube's while the stack is built.
pub(super) fn config_error(error: kube_client::Error) -> Error {
    match &error {
        // The wrapper prints what it wraps, which may be the output of a credential plugin.
        kube_client::Error::Auth(auth) => Error::transport(ErrorKind::Config, auth),
        other => Error::transport(ErrorKind::Config, other),
    }
}

fn name_ourselves(mut request: Request<Body>) -> Request<Body> {
    request.headers_mut().entry(header::USER_AGENT).or_insert(USER_AGENT);
    request
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use hyper::body::Incoming;
    use hyper_util::rt::TokioExecutor;
    use kube_client::config::ExecConfig;
    use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream};
    use tokio::sync::mpsc::UnboundedReceiver;
    use tokio::time::Instant;

    use super::super::duplex::{get, network, ours, read_head};
    use super::*;

    fn config() -> Config {
        Config::new(Uri::from_static("http://cluster.test/prefix"))
    }

    fn http1(config: Config) -> (Client, UnboundedReceiver<DuplexStream>) {
        let (connector, connections) = network();
        (client_over(connector, config, ClientOptions::default()).unwrap(), connections)
    }

    /// Takes one request, answers it, and returns the request's head.
    async fn answer(connections: &mut UnboundedReceiver<DuplexStream>, answer: &[u8]) -> (String, DuplexStream) {
        let mut stream = connections.recv().await.unwrap();
        let head = read_head(&mut stream).await;
        stream.write_all(answer).await.unwrap();
        (head, stream)
    }

    #[tokio::test(start_paused = true)]
    async fn a_request_reaches_the_server_with_our_name_and_the_prefix() {
        let mut config = config();
        config.default_namespace = "web".into();
        let (client, mut connections) = http1(config);
        assert_eq!(client.default_namespace(), "web");
        let (response, (head, _stream)) = tokio::join!(
            client.send(get("/api/v1/pods?limit=1")),
            answer(&mut connections, b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhello"),
        );
        assert_eq!(response.unwrap().into_body().collect_bytes().await.unwrap(), "hello");
        let head = head.to_ascii_lowercase();
        assert!(head.starts_with("get /prefix/api/v1/pods?limit=1 http/1.1\r\n"), "{head}");
        assert!(head.contains("\r\nhost: cluster.test\r\n"), "{head}");
        assert!(head.contains("\r\naccept-encoding: gzip\r\n"), "{head}");
        assert!(head.contains(&format!("\r\nuser-agent: watchkeeper/{}\r\n", env!("CARGO_PKG_VERSION"))), "{head}");
    }

    #[tokio::test(start_paused = true)]
    async fn a_user_agent_from_the_configuration_is_kept() {
        let mut config = config();
        config.headers.push((header::USER_AGENT, HeaderValue::from_static("mine/1")));
        let (client, mut connections) = http1(config);
        let (response, (head, _stream)) = tokio::join!(
            client.send(get("/")),
            answer(&mut connections, b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n"),
        );
        response.unwrap();
        assert!(head.contains("mine/1") && !head.contains("watchkeeper/"), "{head}");
    }

    #[tokio::test(start_paused = true)]
    async fn a_refusal_is_answered_after_exactly_one_request() {
        let (client, mut connections) = http1(config());
        let (response, (_, mut stream)) = tokio::join!(
            client.send(get("/api")),
            answer(&mut connections, b"HTTP/1.1 503 Busy\r\nretry-after: 1\r\ncontent-length: 0\r\n\r\n"),
        );
        assert_eq!(response.unwrap().status(), 503);
        let silence = tokio::time::timeout(Duration::from_secs(80), stream.read_u8()).await;
        assert!(silence.is_err() && connections.try_recv().is_err());
    }

    #[tokio::test(start_paused = true)]
    async fn a_dropped_connection_is_an_error_and_not_repeated() {
        let (client, mut connections) = http1(config());
        let (response, (head, ())) = tokio::join!(client.send(get("/api")), async {
            let mut stream = connections.recv().await.unwrap();
            (read_head(&mut stream).await, drop(stream))
        });
        assert!(head.starts_with("GET"));
        assert_eq!(ours(response.unwrap_err()).kind(), ErrorKind::Disconnected);
        assert!(connections.try_recv().is_err());
    }

    #[tokio::test(start_paused = true)]
    async fn a_body_that_is_cut_off_is_a_disconnect() {
        let (client, mut connections) = http1(config());
        let (response, (_, stream)) = tokio::join!(
            client.send(get("/api")),
            answer(&mut connections, b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\nab\r\n"),
        );
        drop(stream);
        let error = response.unwrap().into_body().collect_bytes().await.unwrap_err();
        assert_eq!(ours(error).kind(), ErrorKind::Disconnected);
    }

    #[tokio::test(start_paused = true)]
    async fn nobody_listening_is_told_apart() {
        let (client, connections) = http1(config());
        drop(connections);
        let error = ours(client.send(get("/api")).await.unwrap_err());
        assert!(error.kind() == ErrorKind::Connect && error.is_unreachable(), "{error}");
    }

    #[tokio::test(start_paused = true)]
    async fn an_answer_that_is_no_http_is_malformed() {
        let (client, mut connections) = http1(config());
        let (response, _) = tokio::join!(client.send(get("/api")), answer(&mut connections, b"SSH-2.0-x\r\n\r\n"));
        assert_eq!(ours(response.unwrap_err()).kind(), ErrorKind::Malformed);
    }

    #[tokio::test(start_paused = true)]
    async fn a_watch_may_be_silent_for_an_hour() {
        let (client, mut connections) = http1(config());
        let (response, (_, mut stream)) = tokio::join!(
            client.send(get("/api")),
            answer(&mut connections, b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n"),
        );
        let began = Instant::now();
        let (body, ()) = tokio::join!(response.unwrap().into_body().collect_bytes(), async {
            tokio::time::sleep(Duration::from_secs(3600)).await;
            stream.write_all(b"2\r\nab\r\n0\r\n\r\n").await.unwrap();
        });
        assert_eq!(body.unwrap(), "ab");
        assert!(began.elapsed() >= Duration::from_secs(3600));
    }

    #[tokio::test(start_paused = true)]
    async fn a_compressed_answer_is_decoded_even_where_identity_was_asked_for() {
        let (client, mut connections) = http1(config());
        let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        gzip.write_all(b"hello").unwrap();
        let gzip = gzip.finish().unwrap();
        let mut bytes =
            format!("HTTP/1.1 200 OK\r\ncontent-encoding: GZIP\r\ncontent-length: {}\r\n\r\n", gzip.len()).into_bytes();
        bytes.extend_from_slice(&gzip);
        let mut request = get("/");
        request.headers_mut().insert(header::ACCEPT_ENCODING, HeaderValue::from_static("identity"));
        let (response, (head, _stream)) = tokio::join!(client.send(request), answer(&mut connections, &bytes));
        assert!(head.contains("accept-encoding: gzip\r\n") && !head.contains("identity"), "{head}");
        let response = response.unwrap();
        assert!(!response.headers().contains_key(header::CONTENT_LENGTH));
        assert!(!response.headers().contains_key(header::CONTENT_ENCODING));
        assert_eq!(response.into_body().collect_bytes().await.unwrap(), "hello");
    }

    #[tokio::test(start_paused = true)]
    async fn a_token_is_sent_and_not_shown() {
        let mut config = config();
        config.auth_info.token = Some(String::from("s3cret").into());
        let (client, mut connections) = http1(config);
        let (response, (head, ())) = tokio::join!(client.send(get("/")), async {
            let mut stream = connections.recv().await.unwrap();
            (read_head(&mut stream).await, drop(stream))
        });
        assert!(head.contains("authorization: Bearer s3cret\r\n"), "{head}");
        let error = response.unwrap_err();
        let text = format!("{error} {error:?}");
        assert!(!text.contains("s3cret"), "{text}");
        assert!(!format!("{:?}", ours(error)).contains("s3cret"));
    }

    #[tokio::test]
    async fn what_a_credential_plugin_is_given_or_prints_is_not_shown() {
        let mut config = config();
        let exec = serde_json::json!({
            "command": "sh",
            "args": ["-c", "echo printed; exit 3", "argument"],
            "env": [{"name": "KEY", "value": "environment"}],
        });
        config.auth_info.exec = Some(serde_json::from_value::<ExecConfig>(exec).unwrap());
        let wrapped = ours(config.auth_layer().err().unwrap());
        let error = client(config).err().unwrap();
        for error in [error, wrapped] {
            assert_eq!(error.kind(), ErrorKind::Connect);
            assert_eq!(error.to_string(), "the credential plugin failed with exit status: 3");
        }
    }

    #[test]
    fn outside_of_a_runtime_there_is_an_error_and_no_panic() {
        assert_eq!(client(config()).err().unwrap().kind(), ErrorKind::Config);
    }

    /// A server on the loopback, which answers each request of each connection.
    async fn listen(http2: bool) -> Uri {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap()).parse().unwrap();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let io = hyper_util::rt::TokioIo::new(stream);
                let answer = hyper::service::service_fn(async |_: Request<Incoming>| {
                    Ok::<_, std::convert::Infallible>(Response::new(http_body_util::Full::<Bytes>::from("ok")))
                });
                if http2 {
                    let builder = hyper::server::conn::http2::Builder::new(TokioExecutor::new());
                    tokio::spawn(builder.serve_connection(io, answer));
                } else {
                    tokio::spawn(hyper::server::conn::http1::Builder::new().serve_connection(io, answer));
                }
            }
        });
        url
    }

    #[test]
    fn a_client_lives_in_the_runtime_that_it_was_made_in() {
        let runtime = || tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        for http2 in [false, true] {
            let home = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
            let options = ClientOptions { http2, ..ClientOptions::default() };
            let client = home.block_on(async { client_with(Config::new(listen(http2).await), options).unwrap() });
            let ask = async || {
                let answer = tokio::time::timeout(Duration::from_secs(5), client.send(get("/"))).await;
                answer.expect("an answer").unwrap().into_body().collect_bytes().await.unwrap()
            };
            // The connection is made for a request of a runtime which nothing drives afterwards.
            let guest = runtime();
            assert_eq!(guest.block_on(ask()), "ok");
            assert_eq!(home.block_on(ask()), "ok");
            drop(guest);
            assert_eq!(home.block_on(ask()), "ok");
        }
    }
}
