//! What can be chosen about a port.

use std::fmt;
use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

/// Where and how to listen.
///
/// ```
/// use watchkeeper_apiserver::ListenOptions;
///
/// let mut options = ListenOptions::with_tls();
/// options.limits.connections = 20;
/// assert!(options.address.ip().is_loopback());
/// ```
#[derive(Clone)]
#[non_exhaustive]
pub struct ListenOptions {
    /// Where. Any free port of 127.0.0.1 by default.
    pub address: SocketAddr,
    /// Whether the address may be one that other machines reach. Off by default: everybody who has the token can read
    /// and write everything.
    pub allow_other_addresses: bool,
    /// Names by which clients may call the server, with any port, besides `localhost`, the loopback addresses and the
    /// address itself with the server's port. A web page can make its own name mean this machine; requests under
    /// unknown names are refused for that reason.
    pub allowed_hosts: Vec<String>,
    /// Whether to speak TLS, with a certificate authority made for this port alone. Off by default. kubectl and client-go
    /// need it: they send no token without TLS.
    pub tls: bool,
    /// What clients have to show. By default 256 random bits.
    pub token: Option<String>,
    /// How long [`Listening::shutdown`](crate::Listening::shutdown) waits for answers under way. 5 seconds by default.
    pub grace: Duration,
    /// How much clients may take.
    pub limits: Limits,
}

/// How much clients may take of a server.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Limits {
    /// Connections at once. One more is answered with 429 and closed; with TLS it is closed without a word. 512 by
    /// default: half of the files that a process may usually have open.
    pub connections: usize,
    /// The size of a request's head. At least 8 KiB; 64 KiB by default.
    pub header_bytes: u32,
    /// How many headers a request may have; 100 by default.
    pub headers: usize,
    /// How long a new connection may take until its first request has arrived up to its body, TLS included. 32 seconds
    /// by default, as a kube-apiserver's time for headers.
    pub header_timeout: Duration,
    /// How long a body may take to arrive; 60 seconds by default, a kube-apiserver's time for a request.
    pub body_timeout: Duration,
    /// How long a connection is kept without a request, and how long its next one may take to arrive up to its body.
    /// 90 seconds by default, as in a kube-apiserver.
    pub idle_timeout: Duration,
    /// How long a client may take nothing of what is sent to it; 90 seconds by default.
    pub write_timeout: Duration,
    /// Requests at once on one HTTP/2 connection; 100 by default, as in a kube-apiserver.
    pub http2_streams: u32,
}

impl ListenOptions {
    /// The defaults, with TLS.
    pub fn with_tls() -> Self {
        Self { tls: true, ..Self::default() }
    }
}

impl Default for ListenOptions {
    fn default() -> Self {
        Self {
            address: SocketAddr::from((Ipv4Addr::LOCALHOST, 0)),
            allow_other_addresses: false,
            allowed_hosts: Vec::new(),
            tls: false,
            token: None,
            grace: Duration::from_secs(5),
            limits: Limits::default(),
        }
    }
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            connections: 512,
            header_bytes: 64 * 1024,
            headers: 100,
            header_timeout: Duration::from_secs(32),
            body_timeout: Duration::from_secs(60),
            idle_timeout: Duration::from_secs(90),
            write_timeout: Duration::from_secs(90),
            http2_streams: 100,
        }
    }
}

impl fmt::Debug for ListenOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ListenOptions")
            .field("address", &self.address)
            .field("allow_other_addresses", &self.allow_other_addresses)
            .field("allowed_hosts", &self.allowed_hosts)
            .field("tls", &self.tls)
            // Whoever has the token has the server: only whether there is one.
            .field("token", &self.token.as_ref().map(|_| "<hidden>"))
            .field("grace", &self.grace)
            .field("limits", &self.limits)
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_token_is_not_shown() {
        let options = ListenOptions { token: Some("s3cret".to_owned()), ..ListenOptions::default() };
        let shown = format!("{options:?}");
        assert!(shown.contains("<hidden>") && !shown.contains("s3cret"), "{shown}");
    }
}
