//! The real programs: found in the user's cache folder, or built from their modules.

use std::fmt;
use std::path::PathBuf;

/// The programs of one release of Kubernetes.
#[derive(Debug, Clone)]
pub struct Programs {
    /// etcd.
    pub etcd: PathBuf,
    /// kube-apiserver.
    pub kube_apiserver: PathBuf,
    /// kubectl.
    pub kubectl: PathBuf,
    /// kube-controller-manager.
    pub kube_controller_manager: PathBuf,
    /// kube-scheduler.
    pub kube_scheduler: PathBuf,
    /// Of Kubernetes, as in `1.36.4`.
    pub version: String,
}

/// This machine has not what it takes: what is missing, and how to get it.
#[derive(Debug)]
pub struct NotHere(String);

impl Programs {
    /// Those in the cache folder. What is missing is built, which takes minutes.
    pub fn find() -> Result<Self, NotHere> {
        Err(NotHere("the programs are not built yet".to_owned()))
    }
}

impl fmt::Display for NotHere {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for NotHere {}
