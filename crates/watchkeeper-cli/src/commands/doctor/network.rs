//! Can the server be reached, and is it the one that is meant?
//!
//! Name, TCP and TLS are tried one after the other, by hand: the error of a whole request does not say how far it came.
//! Nothing is sent on these connections.

use std::io;
use std::net::{SocketAddr, TcpStream, ToSocketAddrs as _};
use std::sync::Arc;
use std::time::{Duration, Instant};

use http::uri::Scheme;
use kube_client::Config;
use kube_client::client::ConfigExt as _;
use kube_client::config::AuthInfo;
use rustls::pki_types::ServerName;
use rustls::{CertificateError, ClientConfig, ClientConnection, ProtocolVersion};

use super::certificate::Certificate;
use super::kubeconfig::ends;
use super::report::{Check, Report};
use crate::terminal::seconds;

/// What was agreed on with a server.
struct Handshake {
    version: &'static str,
    certificate: Option<Certificate>,
    took: Duration,
}

/// Tries to reach the server; whether that works.
pub(super) async fn check(config: &Config, limit: Duration, report: &mut Report) -> io::Result<bool> {
    let url = &config.cluster_url;
    if config.proxy_url.is_some() {
        let found = "requests go through the proxy of the kubeconfig: its way is not looked at step by step";
        report.add(Check::skipped("connection", found))?;
        return Ok(true);
    }
    let is_tls = url.scheme() != Some(&Scheme::HTTP);
    let host = url.host().unwrap_or_default().trim_matches(['[', ']']).to_owned();
    let port = url.port_u16().unwrap_or(if is_tls { 443 } else { 80 });

    let address = match within(limit, {
        let host = host.clone();
        move || resolve(&host, port)
    })
    .await
    {
        Ok((addresses, took)) => match connect(addresses, limit).await {
            Ok((address, connected)) => {
                let name = if host == address.ip().to_string() { String::new() } else { named(&host, took) };
                report.add(Check::ok("connection", format!("{address} answers in {}{name}", seconds(connected))))?;
                address
            }
            Err(why) => {
                let check = Check::failed("connection", format!("nobody answers at {host}:{port}: {why}"));
                report.add(
                    check.with_remedy("is the server running, are you in its network (VPN), is the port right?"),
                )?;
                return Ok(false);
            }
        },
        Err(why) => {
            let check = Check::failed("connection", format!("the name {host} means nothing: {why}"));
            report.add(check.with_remedy("is the name right, does name resolution work, does it need a VPN?"))?;
            return Ok(false);
        }
    };
    if !is_tls {
        report.add(Check::skipped("tls", "the server's URL is http"))?;
        return Ok(true);
    }
    tls(config, &host, address, limit, report).await
}

fn named(host: &str, took: Duration) -> String {
    format!(" ({host} found in {})", seconds(took))
}

async fn tls(
    config: &Config,
    host: &str,
    address: SocketAddr,
    limit: Duration,
    report: &mut Report,
) -> io::Result<bool> {
    let name = config.tls_server_name.clone().unwrap_or_else(|| host.to_owned());
    match handshake(config, &name, address, limit).await {
        Ok(Handshake { version, certificate, took }) => {
            let names = certificate.as_ref().map(|certificate| names(&certificate.names)).unwrap_or_default();
            report.add(Check::ok("tls", format!("{version} in {}{names}", seconds(took))))?;
            if let Some(certificate) = certificate {
                report.add(ends("tls", "the server's certificate", certificate.ends))?;
            }
            Ok(true)
        }
        Err(failure) => {
            // Who is it then? Nothing is sent to find that out, and no credentials are shown.
            let mut curious = config.clone();
            curious.accept_invalid_certs = true;
            curious.root_cert_file = None;
            curious.auth_info = AuthInfo::default();
            let seen = handshake(&curious, &name, address, limit).await.ok().and_then(|seen| seen.certificate);
            let (found, remedy) = failure.explain(&name, seen.as_ref());
            report.add(Check::failed("tls", found).with_remedy(remedy))?;
            Ok(false)
        }
    }
}

fn names(names: &[String]) -> String {
    const MOST: usize = 8;
    if names.is_empty() {
        return String::new();
    }
    let more = if names.len() > MOST { ", ..." } else { "" };
    format!(", a certificate for {}{more}", names[..names.len().min(MOST)].join(", "))
}

/// Why there is no TLS.
enum TlsFailure {
    Config(String),
    Io(io::Error),
    InTime(String),
}

impl TlsFailure {
    fn explain(&self, name: &str, seen: Option<&Certificate>) -> (String, String) {
        let error = match self {
            Self::Config(why) => {
                return (format!("the kubeconfig's certificates cannot be used: {why}"), AUTHORITY.into());
            }
            Self::InTime(why) => return (format!("no TLS came about: {why}"), NOT_TLS.into()),
            Self::Io(error) => error,
        };
        let inner = error.get_ref().and_then(|inner| inner.downcast_ref::<rustls::Error>());
        let its_names = seen.map(|seen| names(&seen.names)).unwrap_or_default();
        match inner {
            Some(rustls::Error::InvalidCertificate(why)) => match why {
                CertificateError::UnknownIssuer | CertificateError::BadSignature => (
                    format!("the server's certificate is signed by none whom the kubeconfig trusts{its_names}"),
                    AUTHORITY.into(),
                ),
                CertificateError::Expired | CertificateError::ExpiredContext { .. } => {
                    let when = seen.map(|seen| format!(": {}", seen.ends)).unwrap_or_default();
                    (
                        format!("the server's certificate has ended{when}"),
                        "have it renewed; or is this machine's clock wrong?".into(),
                    )
                }
                CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => {
                    ("the server's certificate is not good yet".into(), "is this machine's clock right?".into())
                }
                CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => (
                    format!("the server's certificate is not for {name}{its_names}"),
                    "use one of its names in the server's URL, or set tls-server-name of the cluster".into(),
                ),
                other => {
                    (format!("the server's certificate cannot be trusted: {other:?}{its_names}"), AUTHORITY.into())
                }
            },
            Some(rustls::Error::InvalidMessage(_)) => ("what answers does not speak TLS".into(), NOT_TLS.into()),
            Some(other) => (format!("no TLS came about: {other}"), NOT_TLS.into()),
            None => (format!("no TLS came about: {error}"), NOT_TLS.into()),
        }
    }
}

const AUTHORITY: &str = "get the cluster's kubeconfig anew: its certificate-authority-data must be that of this server; \
                         if it is, somebody intercepts the connection";
const NOT_TLS: &str = "is the port right, and is it https? A proxy or a firewall may cut it too";

async fn handshake(config: &Config, name: &str, address: SocketAddr, limit: Duration) -> Result<Handshake, TlsFailure> {
    // Where two providers are linked in and none is chosen, rustls would panic.
    if rustls::crypto::CryptoProvider::get_default().is_none() {
        // An error means that another thread was faster.
        let _ = rustls::crypto::ring::default_provider().install_default();
    }
    // A plugin would be run for it, and might never end; who asks is looked at later.
    let mut config = config.clone();
    config.auth_info.exec = None;
    let tls = config.rustls_client_config().map_err(|error| TlsFailure::Config(error.to_string()))?;
    let name = ServerName::try_from(name.to_owned()).map_err(|error| TlsFailure::Config(error.to_string()))?;
    let shaking = tokio::task::spawn_blocking(move || shake_hands(tls, name, address, limit));
    match tokio::time::timeout(limit, shaking).await {
        Ok(Ok(done)) => done.map_err(TlsFailure::Io),
        Ok(Err(error)) => Err(TlsFailure::InTime(error.to_string())),
        Err(_) => Err(TlsFailure::InTime(format!("silence for {}", seconds(limit)))),
    }
}

fn shake_hands(
    tls: ClientConfig,
    name: ServerName<'static>,
    address: SocketAddr,
    limit: Duration,
) -> io::Result<Handshake> {
    let started = Instant::now();
    let mut stream = TcpStream::connect_timeout(&address, limit)?;
    stream.set_read_timeout(Some(limit))?;
    stream.set_write_timeout(Some(limit))?;
    let mut connection = ClientConnection::new(Arc::new(tls), name).map_err(io::Error::other)?;
    while connection.is_handshaking() {
        connection.complete_io(&mut stream)?;
    }
    let version = match connection.protocol_version() {
        Some(ProtocolVersion::TLSv1_3) => "TLS 1.3",
        Some(ProtocolVersion::TLSv1_2) => "TLS 1.2",
        _ => "TLS",
    };
    let certificate =
        connection.peer_certificates().and_then(|all| all.first()).and_then(|der| Certificate::parse(der));
    Ok(Handshake { version, certificate, took: started.elapsed() })
}

fn resolve(host: &str, port: u16) -> io::Result<(Vec<SocketAddr>, Duration)> {
    let started = Instant::now();
    let addresses: Vec<SocketAddr> = (host, port).to_socket_addrs()?.collect();
    if addresses.is_empty() { Err(io::Error::other("it has no address")) } else { Ok((addresses, started.elapsed())) }
}

/// Tries all addresses of a name; the first that answers is taken.
async fn connect(addresses: Vec<SocketAddr>, limit: Duration) -> Result<(SocketAddr, Duration), String> {
    let mut why = String::new();
    for address in addresses {
        let connecting = move || {
            let started = Instant::now();
            TcpStream::connect_timeout(&address, limit).map(|_| (address, started.elapsed()))
        };
        match within(limit, connecting).await {
            Ok(connected) => return Ok(connected),
            Err(error) => why = error,
        }
    }
    Err(why)
}

async fn within<T: Send + 'static>(
    limit: Duration,
    work: impl FnOnce() -> io::Result<T> + Send + 'static,
) -> Result<T, String> {
    match tokio::time::timeout(limit, tokio::task::spawn_blocking(work)).await {
        Ok(Ok(done)) => done.map_err(|error| error.to_string()),
        Ok(Err(error)) => Err(error.to_string()),
        Err(_) => Err(format!("nothing came within {}", seconds(limit))),
    }
}
