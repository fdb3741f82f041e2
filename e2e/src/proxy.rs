//! A TCP proxy that can be made to fail.

use crate::Failure;

/// Forwards connections from a free port of the loopback interface.
#[derive(Debug)]
pub struct Proxy {}

impl Proxy {
    /// A proxy for a port of this machine.
    pub async fn start(_target: u16) -> Result<Self, Failure> {
        anyhow::bail!("not yet")
    }

    /// Where it listens.
    pub fn port(&self) -> u16 {
        0
    }

    /// Closes all connections in good order (FIN).
    pub fn cut(&self) {}

    /// Closes all connections with RST.
    pub fn reset(&self) {}

    /// Whether bytes stop to flow. Nothing is closed: what was sent meanwhile flows later. New connections are accepted, and
    /// hang likewise.
    pub fn freeze(&self, _frozen: bool) {}

    /// Lets the connections that there are hang for ever, and new ones flow: what a lost entry in a firewall does.
    pub fn half_open(&self) {}
}
