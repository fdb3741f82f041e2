//! The handle of an open port.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::Path;
use std::sync::Arc;

use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::accept::Port;
use super::certificate::Identity;
use super::connection::Tasks;
use super::error::ListenError;
use super::gate::Gate;
use super::host::Hosts;
use super::kubeconfig::{self, KubeconfigError};
use super::options::ListenOptions;
use super::token::Token;
use crate::server::ApiServer;

/// A server that listens on a port; [`ApiServer::listen`] makes one. It keeps the server alive. Dropped, it closes the
/// port and cuts off all connections; [`shutdown`](Self::shutdown) does so in order.
pub struct Listening {
    address: SocketAddr,
    token: Token,
    ca_pem: Option<String>,
    closing: CancellationToken,
    abort: CancellationToken,
    /// The task that accepts, and that ends last.
    port: Option<JoinHandle<()>>,
    _server: ApiServer,
}

impl ApiServer {
    /// Opens a port for programs outside of this process: on 127.0.0.1, with a random token, if not said otherwise. A
    /// server may have many.
    ///
    /// ```
    /// use watchkeeper_apiserver::{ApiServer, ListenOptions};
    ///
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let listening = ApiServer::new().listen(ListenOptions::with_tls()).await?;
    /// assert!(listening.url().starts_with("https://127.0.0.1:"));
    /// listening.shutdown().await;
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    ///
    /// If the address cannot be had or is no loopback address, or the token or the names cannot be used.
    pub async fn listen(&self, options: ListenOptions) -> Result<Listening, ListenError> {
        if !options.address.ip().is_loopback() && !options.allow_other_addresses {
            return Err(ListenError::NotLoopback(options.address));
        }
        let token = options.token.as_deref().map_or_else(Token::random, Token::chosen)?;
        let identity = match options.tls {
            true => Some(Identity::new(options.address.ip(), &options.allowed_hosts)?),
            false => None,
        };
        let failed = |source| ListenError::Bind { address: options.address, source };
        let listener = TcpListener::bind(options.address).await.map_err(failed)?;
        let address = listener.local_addr().map_err(failed)?;
        let (tls, ca_pem) = identity.map(|identity| (identity.acceptor, identity.ca_pem)).unzip();

        let (closing, abort) = (CancellationToken::new(), CancellationToken::new());
        let gate = Arc::new(Gate {
            service: self.service(),
            token: token.clone(),
            hosts: Hosts::new(address, options.tls, &options.allowed_hosts),
            limits: options.limits,
            closing: closing.clone(),
        });
        let tasks = Tasks { tracker: TaskTracker::new(), abort: abort.clone() };
        let port = Port { listener, tls, gate, tasks, grace: options.grace };
        let port = Some(tokio::spawn(port.run()));
        Ok(Listening { address, token, ca_pem, closing, abort, port, _server: self.clone() })
    }
}

impl Listening {
    /// Where it listens, with the port that the system chose.
    pub fn addr(&self) -> SocketAddr {
        self.address
    }

    /// Where clients on this machine find it: `http://127.0.0.1:41234`.
    pub fn url(&self) -> String {
        let scheme = if self.ca_pem.is_some() { "https" } else { "http" };
        format!("{scheme}://{}", callable(self.address))
    }

    /// What clients show as `Authorization: Bearer <token>`. Whoever has it can do everything.
    pub fn token(&self) -> &str {
        self.token.as_str()
    }

    /// The certificate of the authority to trust, with TLS.
    pub fn ca_pem(&self) -> Option<&str> {
        self.ca_pem.as_deref()
    }

    /// The text of a kubeconfig, with the token in it. Its context is `watchkeeper`.
    pub fn kubeconfig(&self) -> String {
        kubeconfig::text(&self.url(), self.ca_pem(), self.token())
    }

    /// Writes the kubeconfig to a file that only its owner can read. One that was there is replaced at once.
    ///
    /// # Errors
    ///
    /// If the file cannot be written; the error names it.
    pub fn write_kubeconfig(&self, path: impl AsRef<Path>) -> Result<(), KubeconfigError> {
        kubeconfig::write(path.as_ref(), &self.kubeconfig())
    }

    /// Closes the port, ends all watches that came through it, and waits for other answers for as long as
    /// [`ListenOptions::grace`] says. After that, no task of it is left. The server itself goes on.
    pub async fn shutdown(mut self) {
        self.closing.cancel();
        if let Some(port) = self.port.take() {
            // It does not panic, and nobody else can abort it; at the end of the runtime it is gone either way.
            let _ = port.await;
        }
    }
}

impl Drop for Listening {
    fn drop(&mut self) {
        self.closing.cancel();
        self.abort.cancel();
    }
}

/// All addresses are no address to call: this machine's own is one of them.
fn callable(address: SocketAddr) -> SocketAddr {
    let ip = match address.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(ip) if ip.is_unspecified() => Ipv6Addr::LOCALHOST.into(),
        ip => ip,
    };
    SocketAddr::new(ip, address.port())
}

impl fmt::Debug for Listening {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Listening").field("url", &self.url()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_to_call_is_one_address() {
        for (bound, called) in [
            ("127.0.0.1:1", "127.0.0.1:1"),
            ("0.0.0.0:1", "127.0.0.1:1"),
            ("[::]:1", "[::1]:1"),
            ("10.0.0.1:1", "10.0.0.1:1"),
        ] {
            assert_eq!(callable(bound.parse().unwrap()).to_string(), called);
        }
    }
}
