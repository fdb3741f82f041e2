//! All that a client has to know, as the file that every client reads.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

/// The name of the cluster, the user and the context.
const NAME: &str = "watchkeeper";

/// A kubeconfig that could not be written.
#[derive(Debug, thiserror::Error)]
#[error("cannot write the kubeconfig {}: {source}", path.display())]
pub struct KubeconfigError {
    path: PathBuf,
    source: io::Error,
}

impl KubeconfigError {
    /// Where it should have been.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

/// The text of a kubeconfig.
pub(super) fn text(url: &str, ca_pem: Option<&str>, token: &str) -> String {
    let authority =
        ca_pem.map_or_else(String::new, |pem| format!("    certificate-authority-data: {}\n", STANDARD.encode(pem)));
    // A text in JSON is a text in YAML, whatever it holds.
    let token = serde_json::Value::from(token);
    format!(
        "apiVersion: v1\n\
         kind: Config\n\
         clusters:\n\
         - name: {NAME}\n  \
           cluster:\n    \
             server: {url}\n\
         {authority}\
         users:\n\
         - name: {NAME}\n  \
           user:\n    \
             token: {token}\n\
         contexts:\n\
         - name: {NAME}\n  \
           context:\n    \
             cluster: {NAME}\n    \
             user: {NAME}\n    \
             namespace: default\n\
         current-context: {NAME}\n"
    )
}

/// Writes a file that only its owner can read, wholly or not at all: somebody who reads the path meanwhile finds what was
/// there before, or everything.
pub(super) fn write(path: &Path, text: &str) -> Result<(), KubeconfigError> {
    let failed = |source| KubeconfigError { path: path.to_owned(), source };
    let name = path.file_name().ok_or_else(|| failed(io::Error::other("the path names no file")))?;
    let mut beside = std::ffi::OsString::from(".");
    beside.push(name);
    beside.push(format!(".{}.{:x}.tmp", std::process::id(), fastrand::u64(..)));
    let beside = path.with_file_name(beside);
    let written = create_private(&beside).and_then(|mut file| {
        file.write_all(text.as_bytes())?;
        file.sync_all()?;
        fs::rename(&beside, path)
    });
    written.map_err(|error| {
        // It may not even be there.
        let _ = fs::remove_file(&beside);
        failed(error)
    })
}

/// A new file; its mode is right from the start, not after a moment in which others could open it.
fn create_private(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path)
}

#[cfg(test)]
mod tests {
    use kube_client::config::Kubeconfig;

    use super::*;

    #[test]
    fn it_is_read_as_it_was_meant() {
        let config = Kubeconfig::from_yaml(&text("https://127.0.0.1:1", Some("PEM"), "a\"b: #'")).unwrap();
        assert_eq!(config.current_context.as_deref(), Some(NAME));
        let cluster = config.clusters[0].cluster.as_ref().unwrap();
        assert_eq!(cluster.server.as_deref(), Some("https://127.0.0.1:1"));
        assert_eq!(cluster.certificate_authority_data.as_deref(), Some("UEVN"));
        let context = config.contexts[0].context.as_ref().unwrap();
        assert_eq!((context.cluster.as_str(), context.user.as_deref()), (NAME, Some(NAME)));
        let json = serde_json::to_value(&config).unwrap();
        assert_eq!(json.pointer("/users/0/user/token").unwrap(), "a\"b: #'");
    }

    #[test]
    fn without_tls_there_is_no_authority() {
        let text = text("http://127.0.0.1:1", None, "t");
        assert!(!text.contains("certificate-authority"), "{text}");
        assert!(Kubeconfig::from_yaml(&text).is_ok());
    }
}
