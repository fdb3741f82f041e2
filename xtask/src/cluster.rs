//! The cluster that other people's clients are tried on: our server, or another one to compare with.

use std::path::{Path, PathBuf};

use super::cargo;
use super::serving::{Serving, binary};

/// What may stand behind the commands that try clients.
pub(super) struct Options {
    /// `--kubeconfig FILE`: the cluster of this file, and not ours.
    kubeconfig: Option<String>,
    /// `--no-controllers`: it is an API server alone.
    controllers: bool,
    /// `--built`: not the client that this machine has, but one built from its sources.
    pub(super) built: bool,
}

impl Options {
    pub(super) fn read() -> Result<Self, String> {
        let mut options = Self { kubeconfig: None, controllers: true, built: false };
        let mut arguments = std::env::args().skip(2);
        while let Some(argument) = arguments.next() {
            match argument.as_str() {
                "--kubeconfig" => options.kubeconfig = Some(arguments.next().ok_or("--kubeconfig needs a file")?),
                "--no-controllers" => options.controllers = false,
                "--built" => options.built = true,
                _ => return Err(format!("{argument:?} is not understood")),
            }
        }
        Ok(options)
    }
}

/// A cluster, and a folder for what its clients write.
pub(super) struct Cluster {
    folder: Folder,
    kubeconfig: PathBuf,
    /// Whether dependents are collected and deleted namespaces emptied.
    pub(super) controllers: bool,
    serving: Option<Serving>,
}

impl Cluster {
    pub(super) fn start(options: &Options) -> Result<Self, String> {
        let folder = Folder::new()?;
        let controllers = options.controllers;
        if let Some(file) = &options.kubeconfig {
            let kubeconfig = std::path::absolute(file).map_err(|error| error.to_string())?;
            return Ok(Self { folder, kubeconfig, controllers, serving: None });
        }
        // A debug build, because it stops where numbers overflow.
        if !cargo("build", &["-p", "watchkeeper-cli"], &[]) {
            return Err("the server cannot be built".to_owned());
        }
        let kubeconfig = folder.path().join("kubeconfig");
        let serving = Serving::start(&binary("debug"), &kubeconfig, &[])?;
        Ok(Self { folder, kubeconfig, controllers, serving: Some(serving) })
    }

    pub(super) fn kubeconfig(&self) -> &Path {
        &self.kubeconfig
    }

    /// It is gone when the cluster is.
    pub(super) fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Ends our server, which must end well.
    pub(super) fn stop(self) -> Result<(), String> {
        self.serving.map_or(Ok(()), Serving::stop)
    }
}

/// A folder that is removed at the end.
struct Folder(PathBuf);

impl Folder {
    fn new() -> Result<Self, String> {
        let path = std::env::temp_dir().join(format!("watchkeeper-clients-{}", std::process::id()));
        std::fs::create_dir(&path).map_err(|error| format!("{} cannot be made: {error}", path.display()))?;
        Ok(Self(path))
    }

    fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
