//! How a command reaches a cluster.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use kube_client::config::{KubeConfigOptions, Kubeconfig, KubeconfigError};
use kube_client::{Client, Config};
use tokio_util::sync::CancellationToken;
use watchkeeper_apiserver::ApiServer;

use crate::failure::{Exit, Failure, Outcome};
use crate::living::{Living, LivingOptions};

/// Which cluster, and as whom: kubectl's flags.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Which cluster")]
pub(crate) struct AccessOptions {
    /// The kubeconfig [default: $KUBECONFIG, ~/.kube/config, or the pod's service account]
    #[arg(long, value_name = "FILE")]
    pub kubeconfig: Option<PathBuf>,

    /// The context of the kubeconfig to use
    #[arg(long, value_name = "NAME")]
    pub context: Option<String>,

    /// The cluster of the kubeconfig to use
    #[arg(long, value_name = "NAME")]
    pub cluster: Option<String>,

    /// The user of the kubeconfig to be
    #[arg(long, value_name = "NAME")]
    pub user: Option<String>,

    /// How long a single request may take; lists and watches have limits of their own
    #[arg(long, value_name = "TIME", default_value = "30s", value_parser = crate::time::duration)]
    pub request_timeout: Duration,

    /// A living cluster in memory, in this process
    #[arg(long, conflicts_with_all = ["kubeconfig", "context", "cluster", "user"])]
    pub demo: bool,
}

/// A cluster that can be asked.
pub(crate) struct Access {
    /// Asks it.
    pub client: Client,
    /// The namespace that is meant when none is named.
    pub namespace: String,
    /// What to call it: the context's name, or what stands in its place.
    pub name: String,
    /// Where it is.
    pub url: String,
    /// How long a single request may take.
    pub request_timeout: Duration,
    demo: Option<(ApiServer, Living)>,
}

impl AccessOptions {
    /// Makes a client. Nothing is asked yet.
    pub(crate) async fn connect(&self) -> Outcome<Access> {
        if self.demo {
            return self.demo().await;
        }
        let (config, name) = self.config().await?;
        let (namespace, url) = (config.default_namespace.clone(), shown(&config.cluster_url));
        let client = watchkeeper::client(config).map_err(|error| {
            Failure::new(Exit::Error, format!("no client can be made for {name}"))
                .because(error)
                .try_this("see what is wrong with the kubeconfig: watchkeeper doctor")
        })?;
        Ok(Access { client, namespace, name, url, request_timeout: self.request_timeout, demo: None })
    }

    async fn demo(&self) -> Outcome<Access> {
        let server = ApiServer::new();
        let living = Living::start(&server, LivingOptions::default(), CancellationToken::new())
            .await
            .map_err(|error| Failure::new(Exit::Error, "the cluster in memory cannot be made").because(error))?;
        Ok(Access {
            client: server.client(),
            namespace: "default".to_owned(),
            name: "the demo".to_owned(),
            url: "in this process".to_owned(),
            request_timeout: self.request_timeout,
            demo: Some((server, living)),
        })
    }

    /// What the kubeconfig says, and what to call it.
    pub(crate) async fn config(&self) -> Outcome<(Config, String)> {
        let choice =
            KubeConfigOptions { context: self.context.clone(), cluster: self.cluster.clone(), user: self.user.clone() };
        let nothing_chosen = [&self.context, &self.cluster, &self.user].iter().all(|chosen| chosen.is_none());
        let kubeconfig = match &self.kubeconfig {
            Some(path) => Kubeconfig::read_from(path),
            None => Kubeconfig::read(),
        };
        let kubeconfig = match kubeconfig {
            Ok(kubeconfig) => kubeconfig,
            // In a pod there is none; whoever named one, or a part of one, or has a broken one, wants that.
            Err(error) if self.kubeconfig.is_none() && nothing_chosen && is_missing(&error) => {
                return match Config::incluster() {
                    Ok(config) => Ok((config, "the cluster of this pod".to_owned())),
                    Err(_) => Err(no_cluster(&error)),
                };
            }
            Err(error) => return Err(self.unreadable(&error)),
        };
        let name = self.context.clone().or_else(|| kubeconfig.current_context.clone()).unwrap_or_default();
        match Config::from_custom_kubeconfig(kubeconfig, &choice).await {
            Ok(config) => Ok((config, if name.is_empty() { "the kubeconfig".to_owned() } else { name })),
            Err(error) => Err(self.unreadable(&error)),
        }
    }

    fn unreadable(&self, error: &KubeconfigError) -> Failure {
        let failure = match &self.kubeconfig {
            Some(path) => Failure::new(Exit::Error, format!("the kubeconfig {} cannot be used", path.display())),
            None => Failure::new(Exit::Error, "the kubeconfig cannot be used"),
        };
        match error {
            KubeconfigError::CurrentContextNotSet => failure
                .because("it has no current context")
                .try_this("name one: --context NAME; `kubectl config get-contexts` lists them"),
            KubeconfigError::LoadContext(name) => failure
                .because(format!("it has no context {name:?}"))
                .try_this("`kubectl config get-contexts` lists those that there are"),
            KubeconfigError::LoadClusterOfContext(name) => failure
                .because(format!("it has no cluster {name:?}"))
                .try_this("see its `clusters`, or name one that is there: --cluster NAME"),
            // The text of this error shows the lines around, and tokens are in such lines.
            KubeconfigError::Parse(error) => {
                let place = error.location().map(|at| format!(" at line {}, column {}", at.line(), at.column()));
                failure
                    .because(format!("it cannot be read as a kubeconfig{}", place.unwrap_or_default()))
                    .try_this("`kubectl config view` says more; or name another: --kubeconfig FILE")
            }
            error => failure.because(error).try_this("name another: --kubeconfig FILE"),
        }
    }
}

/// A URL without the password that may be in it.
pub(crate) fn shown(url: &http::Uri) -> String {
    let text = url.to_string();
    match url.authority().and_then(|authority| authority.as_str().rsplit_once('@')) {
        Some((secret, _)) => text.replacen(&format!("{secret}@"), "", 1),
        None => text,
    }
}

/// There is no kubeconfig, where one would be.
fn is_missing(error: &KubeconfigError) -> bool {
    match error {
        KubeconfigError::FindPath => true,
        KubeconfigError::ReadConfig(error, _) => error.kind() == std::io::ErrorKind::NotFound,
        _ => false,
    }
}

fn no_cluster(error: &KubeconfigError) -> Failure {
    Failure::new(Exit::Error, "there is no cluster to talk to")
        .because(format!("no kubeconfig can be read ({error}), and this is no pod of a cluster"))
        .try_this("add --demo for a cluster in memory, or name yours: --kubeconfig FILE")
}

impl Access {
    /// The server in memory, if that is what it is.
    pub(crate) fn demo_server(&self) -> Option<&ApiServer> {
        self.demo.as_ref().map(|(server, _)| server)
    }

    /// Waits for the answer to a single request, but not for ever.
    pub(crate) async fn within<T>(
        &self,
        what: &str,
        request: impl Future<Output = Result<T, kube_client::Error>>,
    ) -> Outcome<T> {
        match tokio::time::timeout(self.request_timeout, request).await {
            Ok(answer) => {
                answer.map_err(|error| Failure::of_request(format!("cannot {what} on {}", self.name), &error))
            }
            Err(_) => Err(Failure::new(Exit::Timeout, format!("cannot {what} on {}", self.name))
                .because(format!("{} did not answer within {:?}", self.url, self.request_timeout))
                .try_this(
                    "see what is between here and the server: watchkeeper doctor; or wait longer: --request-timeout",
                )),
        }
    }

    /// Ends what was begun with it.
    pub(crate) async fn close(self) {
        if let Some((_, living)) = self.demo {
            living.stop().await;
        }
    }
}
