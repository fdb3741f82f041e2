//! An etcd and a kube-apiserver on the loopback interface.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::bail;

use crate::{Failure, Programs};

/// What is different from cluster to cluster.
#[derive(Debug, Clone, Default)]
pub struct Settings {
    /// Flags of kube-apiserver, beyond the usual ones or in their place.
    pub apiserver: Vec<String>,
    /// How often kube-apiserver compacts etcd; every five minutes by default.
    pub compaction_interval: Option<Duration>,
}

/// Who asks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum User {
    /// May do everything.
    Admin,
    /// May do what RBAC says, which is nothing at first. Its name is `powerless`.
    Powerless,
}

/// A cluster. Its processes end with it.
#[derive(Debug)]
pub struct Cluster {}

impl Cluster {
    /// Starts one, and waits until it is ready.
    pub async fn start(_programs: &Programs, _settings: Settings) -> Result<Self, Failure> {
        bail!("not yet")
    }

    /// Of the API server.
    pub fn url(&self) -> String {
        format!("https://127.0.0.1:{}", self.port())
    }

    /// Of the API server.
    pub fn port(&self) -> u16 {
        0
    }

    /// How a user reaches the API server.
    pub fn config(&self, user: User) -> kube::Config {
        self.config_through(user, self.port())
    }

    /// The same, through the port of a proxy.
    pub fn config_through(&self, _user: User, _port: u16) -> kube::Config {
        kube::Config::new(http::Uri::from_static("https://127.0.0.1"))
    }

    /// A file with the same.
    pub fn kubeconfig(&self, _user: User) -> PathBuf {
        PathBuf::new()
    }

    /// Ends the API server as a signal to stop does, and starts it again on the same port.
    pub async fn restart_apiserver(&mut self) -> Result<(), Failure> {
        bail!("not yet")
    }

    /// Ends the API server at once, with no goodbye.
    pub async fn kill_apiserver(&mut self) -> Result<(), Failure> {
        bail!("not yet")
    }

    /// Starts it again on the same port, and waits until it is ready.
    pub async fn start_apiserver(&mut self) -> Result<(), Failure> {
        bail!("not yet")
    }

    /// Compacts etcd at its newest revision: all that was before is forgotten.
    pub async fn compact(&self) -> Result<(), Failure> {
        bail!("not yet")
    }

    /// Ends all processes, and removes what they have written.
    pub async fn stop(self) -> Result<(), Failure> {
        Ok(())
    }
}
