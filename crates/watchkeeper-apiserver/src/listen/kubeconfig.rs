//! All that a client has to know, as the file that every client reads.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use crate::private_file::replace;

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

/// Writes it to a file that only its owner can read.
pub(super) fn write(path: &Path, text: &str) -> Result<(), KubeconfigError> {
    let written = replace(path, |file| file.write_all(text.as_bytes()));
    written.map_err(|source| KubeconfigError { path: path.to_owned(), source })
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
