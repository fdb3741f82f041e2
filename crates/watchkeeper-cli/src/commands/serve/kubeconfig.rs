//! How do clients find the server?
//!
//! The file is written when the server is ready, and removed at the end. Nobody's own kubeconfig is ever replaced: only a
//! file that this program wrote, and whose server is gone.

use std::fs::{self, File};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::time::Duration;

use kube_client::config::Kubeconfig;
use watchkeeper_apiserver::Listening;

use crate::failure::{Exit, Failure, Outcome};
use crate::terminal::escape_text;

/// What the server calls its cluster, its user and its context.
const NAME: &str = "watchkeeper";

/// How long a server that is there takes to let somebody in, on this machine.
const KNOCK: Duration = Duration::from_millis(500);

/// The place of a kubeconfig that may be written.
pub(super) struct KubeconfigFile {
    path: PathBuf,
    /// One is there, of a server that is gone.
    is_there: bool,
}

/// A kubeconfig that was written.
pub(super) struct Written {
    path: PathBuf,
    text: String,
}

impl KubeconfigFile {
    /// Looks at what is there.
    pub(super) async fn at(path: &Path) -> Outcome<Self> {
        // Scripts go elsewhere with it.
        let path = std::path::absolute(path)
            .map_err(|error| Failure::new(Exit::Error, format!("{} is no path", path.display())).because(error))?;
        let is_there = match fs::read_to_string(&path) {
            Ok(text) => match server_of_ours(&text) {
                None => return Err(refused(&path, "there is a file, and it is not one of watchkeeper's")),
                Some(server) if answers(&server).await => {
                    return Err(refused(&path, &format!("there is one, and its server is running at {server}")));
                }
                Some(_) => true,
            },
            Err(error) if error.kind() == ErrorKind::NotFound => false,
            Err(error) => return Err(refused(&path, &error.to_string())),
        };
        Ok(Self { path, is_there })
    }

    /// Writes it, if nobody else has done so meanwhile.
    pub(super) async fn write(self, listening: &Listening) -> Outcome<Written> {
        let now = Self::at(&self.path).await?;
        // Of two that begin at the same time, one makes the file.
        let claimed = File::create_new(&self.path);
        if claimed.is_err_and(|error| error.kind() == ErrorKind::AlreadyExists) && !now.is_there {
            return Err(refused(&self.path, "another one has just been written"));
        }
        listening.write_kubeconfig(&self.path).map_err(|error| {
            if !now.is_there {
                // It may not even be there.
                let _ = fs::remove_file(&self.path);
            }
            Failure::new(Exit::Error, "the kubeconfig cannot be written")
                .because(error)
                .try_this("name a file in a folder that is there and can be written to: --kubeconfig FILE")
        })?;
        Ok(Written { path: self.path, text: listening.kubeconfig() })
    }
}

impl Written {
    /// The path alone, as a line.
    pub(super) fn line(&self) -> String {
        format!("{}\n", self.path.display())
    }

    /// The path as a shell reads it.
    pub(super) fn shell_path(&self) -> String {
        let path = self.path.display().to_string();
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"/._-+@%:,".contains(&byte);
        if path.bytes().all(is_plain) { path } else { format!("'{}'", path.replace('\'', r"'\''")) }
    }

    /// Removes it, unless it has become another's.
    pub(super) fn remove(&self) {
        let is_ours = fs::read_to_string(&self.path).is_ok_and(|text| text == self.text);
        if is_ours && let Err(error) = fs::remove_file(&self.path) {
            let path = self.path.display().to_string();
            eprintln!("the kubeconfig {} is still there: {error}", escape_text(&path));
        }
    }
}

fn refused(path: &Path, why: &str) -> Failure {
    Failure::new(Exit::Error, format!("the kubeconfig is not written to {}", path.display()))
        .because(why)
        .try_this("name another file: --kubeconfig FILE")
}

/// The server's URL, if the file was written by this program and by nobody else.
fn server_of_ours(text: &str) -> Option<String> {
    let config = Kubeconfig::from_yaml(text).ok()?;
    let [cluster] = config.clusters.as_slice() else { return None };
    let is_ours = cluster.name == NAME
        && config.contexts.iter().map(|context| context.name.as_str()).eq([NAME])
        && config.auth_infos.iter().map(|user| user.name.as_str()).eq([NAME]);
    cluster.cluster.as_ref()?.server.clone().filter(|_| is_ours)
}

/// Whether somebody is at home.
async fn answers(server: &str) -> bool {
    let Ok(uri) = server.parse::<http::Uri>() else { return false };
    let (Some(host), Some(port)) = (uri.host(), uri.port_u16()) else { return false };
    let Ok(ip) = host.trim_matches(['[', ']']).parse() else { return false };
    let address = std::net::SocketAddr::new(ip, port);
    let knock = tokio::task::spawn_blocking(move || std::net::TcpStream::connect_timeout(&address, KNOCK).is_ok());
    knock.await.unwrap_or(false)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(path: &str) -> Written {
        Written { path: path.into(), text: String::new() }
    }

    #[test]
    fn a_path_is_written_so_that_a_shell_reads_it() {
        assert_eq!(written("/tmp/a.kubeconfig").shell_path(), "/tmp/a.kubeconfig");
        assert_eq!(written("/tmp/it's mine/$(a)").shell_path(), r"'/tmp/it'\''s mine/$(a)'");
    }

    #[test]
    fn only_what_this_program_wrote_is_ours() {
        let config = |cluster: &str, extra: &str| {
            format!(
                "clusters: [{{name: {cluster}, cluster: {{server: \"https://127.0.0.1:1\"}}}}]\n\
                 contexts: [{{name: watchkeeper, context: {{cluster: watchkeeper, user: watchkeeper}}}}]\n\
                 users: [{{name: watchkeeper, user: {{token: t}}}}{extra}]\n"
            )
        };
        assert_eq!(server_of_ours(&config("watchkeeper", "")).as_deref(), Some("https://127.0.0.1:1"));
        assert_eq!(server_of_ours(&config("production", "")), None);
        assert_eq!(server_of_ours(&config("watchkeeper", ", {name: me, user: {token: t}}")), None);
        assert_eq!(server_of_ours("just: text"), None);
        assert_eq!(server_of_ours(": :"), None);
    }
}
