//! Why a port was not opened.

use std::io;
use std::net::SocketAddr;

/// Why [`ApiServer::listen`](crate::ApiServer::listen) failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ListenError {
    /// Others could reach the address, and nobody said that they may.
    #[error("{0} can be reached from other machines; set ListenOptions::allow_other_addresses to listen there")]
    NotLoopback(SocketAddr),
    /// The address cannot be used.
    #[error("cannot listen on {address}: {source}")]
    Bind {
        /// Which one.
        address: SocketAddr,
        /// What the system said.
        source: io::Error,
    },
    /// The token that was given cannot stand in a header.
    #[error("a token has letters, digits and punctuation of ASCII, at least one of them, and no spaces")]
    Token,
    /// The system has no random numbers.
    #[error("the system gave no random bytes for a token")]
    Random,
    /// No certificate could be made; a name in [`ListenOptions::allowed_hosts`](crate::ListenOptions) may be the cause.
    #[error("cannot make a certificate: {0}")]
    Certificate(String),
}
