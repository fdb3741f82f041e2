//! How a connection is made: TCP, then a proxy if there is one, then TLS if the server's URL asks for it.
//!
//! TCP is told to ask a silent peer whether it is still there, and to give up on data that nobody acknowledges: without
//! that a watch on a connection which a firewall has forgotten is silent for ever, and nothing else would tell.
//!
//! What comes out is one type, whatever lies beneath, so that the HTTP stacks above are compiled once and tests can put
//! them on a pipe in memory. The time limit is around the whole: hyper-util's TCP connector has one of its own, but
//! a proxy or a TLS handshake can hang too.

use std::time::Duration;

use http::Uri;
use http::uri::{Authority, Scheme};
use hyper::rt::{Read, Write};
use hyper_util::client::legacy::connect::proxy::{SocksV5, Tunnel};
use hyper_util::client::legacy::connect::{Connected, Connection, HttpConnector};
use hyper_util::client::proxy::matcher::Matcher;
use kube_client::Config;
use tokio::runtime::Handle;
use tokio_util::task::AbortOnDropHandle;
use tower::util::{BoxCloneSyncService, MapRequest};
use tower::{BoxError, Service, ServiceExt, service_fn};

use super::client::ClientOptions;
use crate::error::{Error, ErrorKind};

/// A connection of any sort.
pub(super) type Io = Box<dyn Stream>;

/// What makes connections of any sort.
pub(super) type Connector = BoxCloneSyncService<Uri, Io, Error>;

pub(super) trait Stream: Read + Write + Connection + Send + Unpin {}

impl<T: Read + Write + Connection + Send + Unpin> Stream for T {}

impl Connection for Io {
    fn connected(&self) -> Connected {
        (**self).connected()
    }
}

/// The port that a SOCKS proxy listens at unless its URL says so.
const SOCKS_PORT: u16 = 1080;

/// TCP that notices a dead peer.
pub(super) fn tcp(config: &Config, options: &ClientOptions) -> HttpConnector {
    let mut tcp = HttpConnector::new();
    // It is TLS's and the proxy's carrier too.
    tcp.enforce_http(false);
    tcp.set_connect_timeout(Some(limit(config, options)));
    tcp.set_nodelay(true);
    tcp.set_keepalive(Some(options.tcp_keepalive));
    tcp.set_keepalive_interval(Some(options.tcp_keepalive_interval));
    tcp.set_keepalive_retries(Some(options.tcp_keepalive_retries));
    #[cfg(any(target_os = "android", target_os = "fuchsia", target_os = "linux"))]
    tcp.set_tcp_user_timeout(Some(options.tcp_user_timeout));
    tcp
}

/// Puts TLS onto the connector if the server's URL asks for it, and the time limit around the whole.
pub(super) fn secure<C>(connector: C, config: &Config, options: &ClientOptions) -> Result<Connector, Error>
where
    C: Service<Uri> + Clone + Send + Sync + 'static,
    C::Response: Read + Write + Connection + Send + Unpin + 'static,
    C::Future: Send + 'static,
    C::Error: Into<BoxError>,
{
    match config.cluster_url.scheme_str() {
        Some("http") => within(limit(config, options), connector),
        Some("https") => within(limit(config, options), tls(connector, config, options.http2)?),
        _ => Err(Error::new(ErrorKind::Config, "the server's URL begins neither with http:// nor with https://")),
    }
}

/// A connector that goes through `proxy`. Its URL may hold a password and is not shown anywhere.
pub(super) fn proxy(
    proxy: &Uri,
    tcp: HttpConnector,
    config: &Config,
    options: &ClientOptions,
) -> Result<Connector, Error> {
    let unsupported = || {
        let scheme = proxy.scheme_str().unwrap_or_default();
        Error::new(
            ErrorKind::Config,
            format!("a proxy of scheme {scheme:?} is not supported: use http, https or socks5"),
        )
    };
    // hyper-util's matcher splits the URL into the address and the decoded credentials. Whether the proxy is meant for
    // the server has been decided already.
    let matcher = Matcher::builder().all(proxy.to_string()).build();
    let matched = matcher.intercept(&Uri::from_static("http://any")).ok_or_else(unsupported)?;
    let address = matched.uri().clone();
    match matched.uri().scheme_str() {
        Some("http") => secure(with_port(tunnel_through(address, tcp, matched.basic_auth())), config, options),
        Some("https") => {
            // The name that the server's certificate is checked for is not the proxy's.
            let mut own = config.clone();
            own.tls_server_name = None;
            let carrier = tls(tcp, &own, false)?;
            secure(with_port(tunnel_through(address, carrier, matched.basic_auth())), config, options)
        }
        Some("socks5" | "socks5h") => {
            let mut socks = SocksV5::new(with_default_port(address, SOCKS_PORT), tcp);
            if let Some((user, password)) = matched.raw_auth() {
                socks = socks.with_auth(user.into(), password.into());
            }
            secure(with_port(socks), config, options)
        }
        _ => Err(unsupported()),
    }
}

fn tunnel_through<C>(address: Uri, carrier: C, auth: Option<&http::HeaderValue>) -> Tunnel<C> {
    let tunnel = Tunnel::new(address, carrier);
    match auth {
        Some(auth) => tunnel.with_auth(auth.clone()),
        None => tunnel,
    }
}

/// A proxy is told the port that the URL implies: hyper-util's tunnel takes 443 for every URL without one.
fn with_port<C>(connector: C) -> MapRequest<C, fn(Uri) -> Uri>
where
    C: Service<Uri>,
{
    connector.map_request(|uri| {
        let port = if uri.scheme() == Some(&Scheme::HTTPS) { 443 } else { 80 };
        with_default_port(uri, port)
    })
}

fn with_default_port(uri: Uri, port: u16) -> Uri {
    let Some(authority) = uri.authority().filter(|authority| authority.port().is_none()) else { return uri };
    let Ok(authority) = Authority::try_from(format!("{authority}:{port}")) else { return uri };
    let mut parts = uri.clone().into_parts();
    parts.authority = Some(authority);
    Uri::from_parts(parts).unwrap_or(uri)
}

pub(super) fn limit(config: &Config, options: &ClientOptions) -> Duration {
    config.connect_timeout.unwrap_or(options.connect_timeout)
}

/// The runtime that a client is made in. Its connections live there, whichever runtime a request comes from: a
/// connection is there for all, and must not stop when the runtime does that happened to ask for it first.
pub(super) fn runtime() -> Result<Handle, Error> {
    Handle::try_current().map_err(|_| Error::new(ErrorKind::Config, "a client can be made inside a tokio runtime only"))
}

pub(super) fn runtime_gone() -> Error {
    Error::new(ErrorKind::Connect, "the runtime that the client was made in is gone")
}

fn within<C>(limit: Duration, connector: C) -> Result<Connector, Error>
where
    C: Service<Uri> + Clone + Send + Sync + 'static,
    C::Response: Read + Write + Connection + Send + Unpin + 'static,
    C::Future: Send + 'static,
    C::Error: Into<BoxError>,
{
    let runtime = runtime()?;
    Ok(Connector::new(service_fn(move |uri| {
        let connecting = connector.clone().oneshot(uri);
        let connecting = AbortOnDropHandle::new(runtime.spawn(async move {
            match tokio::time::timeout(limit, connecting).await {
                Ok(Ok(io)) => Ok(Box::new(io) as Io),
                Ok(Err(error)) => Err(Error::transport(ErrorKind::Connect, error.into().as_ref())),
                Err(_) => Err(Error::timed_out_connecting(limit)),
            }
        }));
        async move { connecting.await.unwrap_or_else(|_| Err(runtime_gone())) }
    })))
}

#[cfg(feature = "rustls-tls")]
fn tls<C>(connector: C, config: &Config, http2: bool) -> Result<hyper_rustls::HttpsConnector<C>, Error> {
    use hyper_rustls::{FixedServerNameResolver, HttpsConnectorBuilder};
    use kube_client::client::ConfigExt;
    use rustls::crypto::{CryptoProvider, ring};

    use super::client::config_error;

    // Where a program's crates enable two providers and it has chosen none, rustls would panic.
    if CryptoProvider::get_default().is_none() {
        // An error means that another thread was faster.
        let _ = ring::default_provider().install_default();
    }
    if !http2 {
        return config.rustls_https_connector_with_connector(connector).map_err(config_error);
    }
    let tls = config.rustls_client_config().map_err(config_error)?;
    let mut builder = HttpsConnectorBuilder::new().with_tls_config(tls).https_or_http();
    if let Some(name) = &config.tls_server_name {
        let name = name.clone().try_into().map_err(|_| Error::new(ErrorKind::Config, "tls-server-name is no name"))?;
        builder = builder.with_server_name_resolver(FixedServerNameResolver::new(name));
    }
    // HTTP/1.1 is offered too: a server that speaks nothing else then says so, and does not just hang up.
    Ok(builder.enable_http1().enable_http2().wrap_connector(connector))
}

#[cfg(not(feature = "rustls-tls"))]
fn tls<C>(_: C, _: &Config, _: bool) -> Result<C, Error> {
    Err(Error::new(ErrorKind::Config, "https needs TLS: enable the feature `rustls-tls` of the crate watchkeeper"))
}

#[cfg(test)]
mod tests {
    use hyper_util::rt::TokioIo;
    use tokio::io::{AsyncReadExt, AsyncWriteExt, copy_bidirectional};
    use tokio::net::{TcpListener, TcpStream};

    use super::super::client::client_with;
    use super::super::duplex::{get, ours, read_head};
    use super::*;
    use crate::defaults;

    const OK: &[u8] = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\nconnection: close\r\n\r\nok";

    /// A listener on the loopback, and a URL of it.
    async fn listen(scheme: &str) -> (TcpListener, Uri) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        (listener, format!("{scheme}{address}").parse().unwrap())
    }

    #[tokio::test]
    async fn a_socket_asks_whether_its_peer_is_there() {
        let (listener, url) = listen("http://").await;
        let tcp = tcp(&Config::new(url.clone()), &ClientOptions::default());
        let (io, _peer) = tokio::join!(tcp.oneshot(url), listener.accept());
        let io: TokioIo<TcpStream> = io.unwrap();
        let socket = socket2::SockRef::from(io.inner());
        assert!(socket.tcp_nodelay().unwrap());
        assert!(socket.keepalive().unwrap());
        assert_eq!(socket.tcp_keepalive_time().unwrap(), defaults::TCP_KEEPALIVE);
        assert_eq!(socket.tcp_keepalive_interval().unwrap(), defaults::TCP_KEEPALIVE_INTERVAL);
        assert_eq!(socket.tcp_keepalive_retries().unwrap(), defaults::TCP_KEEPALIVE_RETRIES);
        #[cfg(target_os = "linux")]
        assert_eq!(socket.tcp_user_timeout().unwrap(), Some(defaults::TCP_USER_TIMEOUT));
    }

    #[tokio::test]
    async fn a_request_goes_through_a_tunnel_with_the_decoded_credentials() {
        let (server, url) = listen("http://").await;
        let (proxy, proxy_url) = listen("http://me:p%40ss@").await;
        let mut config = Config::new(url.clone());
        config.proxy_url = Some(proxy_url);
        let client = client_with(config, ClientOptions::default()).unwrap();
        let proxying = async {
            let mut inner = proxy.accept().await.unwrap().0;
            let head = read_head(&mut inner).await;
            let mut outer = TcpStream::connect(server.local_addr().unwrap()).await.unwrap();
            inner.write_all(b"HTTP/1.1 200 Connected\r\n\r\n").await.unwrap();
            let _ = copy_bidirectional(&mut inner, &mut outer).await;
            head
        };
        let serving = async {
            let mut stream = server.accept().await.unwrap().0;
            let head = read_head(&mut stream).await;
            stream.write_all(OK).await.unwrap();
            head
        };
        let (answer, asked, served) = tokio::join!(client.send(get("/api")), proxying, serving);
        assert_eq!(answer.unwrap().into_body().collect_bytes().await.unwrap(), "ok");
        assert!(asked.starts_with(&format!("CONNECT {} HTTP/1.1\r\n", url.authority().unwrap())), "{asked}");
        // base64 of "me:p@ss"
        assert!(asked.contains("Proxy-Authorization: Basic bWU6cEBzcw==\r\n"), "{asked}");
        assert!(served.starts_with("GET /api HTTP/1.1\r\n") && !served.contains("bWU6"), "{served}");
    }

    #[tokio::test]
    async fn a_request_goes_through_socks() {
        let (proxy, proxy_url) = listen("socks5://me:pass@").await;
        let mut config = Config::new(Uri::from_static("http://cluster.test"));
        config.proxy_url = Some(proxy_url);
        let client = client_with(config, ClientOptions::default()).unwrap();
        let proxying = async {
            let mut stream = proxy.accept().await.unwrap().0;
            let mut hello = [0; 3];
            stream.read_exact(&mut hello).await.unwrap();
            assert_eq!(hello, [5, 1, 2]);
            stream.write_all(&[5, 2]).await.unwrap();
            let mut login = [0; 9];
            stream.read_exact(&mut login).await.unwrap();
            assert_eq!(&login, b"\x01\x02me\x04pass");
            stream.write_all(&[1, 0]).await.unwrap();
            let mut target = [0; 19];
            stream.read_exact(&mut target).await.unwrap();
            assert_eq!(&target, b"\x05\x01\x00\x03\x0ccluster.test\x00\x50");
            stream.write_all(&[5, 0, 0, 1, 0, 0, 0, 0, 0, 0]).await.unwrap();
            read_head(&mut stream).await;
            stream.write_all(OK).await.unwrap();
        };
        let (answer, ()) = tokio::join!(client.send(get("/")), proxying);
        assert_eq!(answer.unwrap().status(), 200);
    }

    #[tokio::test]
    async fn a_proxy_that_cannot_be_used_is_named_without_its_password() {
        for (url, scheme) in [("ftp://me:s3cret@proxy:1", "ftp"), ("socks4://me:s3cret@proxy:1", "socks4")] {
            let mut config = Config::new(Uri::from_static("http://cluster.test"));
            config.proxy_url = Some(Uri::from_static(url));
            let error = client_with(config, ClientOptions::default()).err().unwrap();
            assert_eq!(error.kind(), ErrorKind::Config);
            let text = format!("{error} {error:?}");
            assert!(text.contains(scheme) && !text.contains("s3cret"), "{text}");
        }
        let (listener, proxy_url) = listen("http://me:s3cret@").await;
        drop(listener);
        let mut config = Config::new(Uri::from_static("http://cluster.test"));
        config.proxy_url = Some(proxy_url);
        let error = client_with(config, ClientOptions::default()).unwrap().send(get("/")).await.unwrap_err();
        let text = format!("{error} {error:?}");
        assert!(!text.contains("s3cret"), "{text}");
        let error = ours(error);
        assert!(error.kind() == ErrorKind::Connect && error.is_unreachable(), "{error}");
    }

    #[cfg(not(feature = "rustls-tls"))]
    #[tokio::test]
    async fn without_tls_the_error_says_which_feature_to_enable() {
        let config = Config::new(Uri::from_static("https://cluster.test"));
        let error = client_with(config, ClientOptions::default()).err().unwrap();
        assert!(error.kind() == ErrorKind::Config && error.to_string().contains("rustls-tls"), "{error}");
    }
}

#[cfg(all(test, feature = "rustls-tls"))]
mod tls_tests {
    use std::convert::Infallible;
    use std::sync::Arc;

    use http_body_util::Full;
    use hyper_util::rt::{TokioExecutor, TokioIo};
    use kube_client::Client;
    use tokio::io::DuplexStream;
    use tokio::sync::mpsc::UnboundedReceiver;
    use tokio_rustls::TlsAcceptor;

    use super::super::client::client_over;
    use super::super::duplex::{get, network, ours};
    use super::*;

    /// A client of a server with a certificate of its own, and what the server needs.
    fn encrypted(http2: bool, alpn: &[&[u8]]) -> (Client, UnboundedReceiver<DuplexStream>, TlsAcceptor) {
        let made = rcgen::generate_simple_self_signed(["cluster.test".into()]).unwrap();
        let mut config = Config::new(Uri::from_static("https://10.0.0.1:6443"));
        config.root_cert = Some(vec![made.cert.der().to_vec()]);
        config.tls_server_name = Some("cluster.test".into());
        let (connector, connections) = network();
        let client = client_over(connector, config, ClientOptions { http2, ..ClientOptions::default() }).unwrap();
        let key = made.signing_key.serialize_der().try_into().unwrap();
        let mut tls = tokio_rustls::rustls::ServerConfig::builder()
            .with_no_client_auth()
            .with_single_cert(vec![made.cert.der().clone()], key)
            .unwrap();
        tls.alpn_protocols = alpn.iter().map(|name| name.to_vec()).collect();
        (client, connections, TlsAcceptor::from(Arc::new(tls)))
    }

    /// Answers with the version that is spoken and the URI that was asked for.
    async fn serve(mut connections: UnboundedReceiver<DuplexStream>, acceptor: TlsAcceptor) {
        let stream = acceptor.accept(connections.recv().await.unwrap()).await.unwrap();
        let http2 = stream.get_ref().1.alpn_protocol() == Some(b"h2");
        let answer = hyper::service::service_fn(async |request: http::Request<hyper::body::Incoming>| {
            let text = format!("{:?} {}", request.version(), request.uri());
            Ok::<_, Infallible>(http::Response::new(Full::<bytes::Bytes>::from(text)))
        });
        let io = TokioIo::new(stream);
        let _ = if http2 {
            hyper::server::conn::http2::Builder::new(TokioExecutor::new()).serve_connection(io, answer).await
        } else {
            hyper::server::conn::http1::Builder::new().serve_connection(io, answer).await
        };
    }

    async fn ask(http2: bool, alpn: &[&[u8]]) -> Result<bytes::Bytes, Error> {
        let (client, connections, acceptor) = encrypted(http2, alpn);
        tokio::spawn(serve(connections, acceptor));
        let answer = client.send(get("/api")).await.map_err(ours)?;
        Ok(answer.into_body().collect_bytes().await.unwrap())
    }

    #[tokio::test(start_paused = true)]
    async fn tls_carries_either_protocol() {
        let both: [&[u8]; 2] = [b"h2", b"http/1.1"];
        assert_eq!(ask(false, &both).await.unwrap(), "HTTP/1.1 /api");
        assert_eq!(ask(false, &[]).await.unwrap(), "HTTP/1.1 /api");
        assert_eq!(ask(true, &both).await.unwrap(), "HTTP/2.0 https://10.0.0.1:6443/api");
    }

    #[tokio::test(start_paused = true)]
    async fn a_server_without_http2_is_named_as_such() {
        for alpn in [&[][..], &[&b"http/1.1"[..]]] {
            let error = ask(true, alpn).await.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Config);
            assert!(error.to_string().contains("does not speak HTTP/2"), "{error}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn an_unknown_certificate_is_a_failure_to_connect() {
        let (client, mut connections, _) = encrypted(false, &[]);
        let (.., other) = encrypted(false, &[]);
        let serving = async { other.accept(connections.recv().await.unwrap()).await.is_err() };
        let (answer, refused) = tokio::join!(client.send(get("/")), serving);
        let error = ours(answer.unwrap_err());
        assert!(error.kind() == ErrorKind::Connect && refused, "{error}");
        assert!(error.to_string().contains("certificate"), "{error}");
    }

    #[tokio::test(start_paused = true)]
    async fn a_handshake_that_hangs_is_given_up() {
        for http2 in [false, true] {
            let (client, mut connections, _) = encrypted(http2, &[]);
            let began = tokio::time::Instant::now();
            let error = ours(client.send(get("/")).await.unwrap_err());
            assert_eq!((error.kind(), began.elapsed().as_secs()), (ErrorKind::Connect, 30), "{error}");
            assert!(connections.try_recv().is_ok());
        }
    }
}
