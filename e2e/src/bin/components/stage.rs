//! Our server, as people start it, with a controller manager, a scheduler and nodes.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail, ensure};
use k8s_openapi::api::core::v1::Node;
use kube::api::ListParams;
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Api, Client, Config};
use tempfile::TempDir;
use watchkeeper_e2e::{Cluster, Failure, Programs, Settings, User};

use crate::kubelet::Kubelet;
use crate::logs::Logs;
use crate::process::Process;
use crate::wait::{differs, until};

/// What is different from stage to stage.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// Our server, which leaves everything to the controller manager. Components are as they come.
    Ours,
    /// The same. Components write and read JSON.
    Json,
    /// Our server, which collects garbage and empties namespaces too.
    Both,
    /// Our server alone, with no component and no node.
    Alone,
    /// A real API server: what holds there should hold here.
    Real,
}

/// The API server of a stage.
enum Server {
    Ours(Process),
    Real(Cluster),
}

/// A component whose lease is not renewed in time ends. Machines can be very busy.
const PATIENT: [&str; 2] = ["--leader-elect-lease-duration=200s", "--leader-elect-renew-deadline=180s"];

/// A whole cluster, but for containers.
pub(super) struct Stage {
    folder: TempDir,
    kubeconfig: PathBuf,
    kind: Kind,
    /// Our server's: `1.36`.
    version: String,
    client: Client,
    server: Server,
    components: Vec<Process>,
    kubelet: Option<Kubelet>,
}

impl Stage {
    pub(super) async fn start(programs: &Programs, kind: Kind) -> Result<Self, Failure> {
        let folder = tempfile::Builder::new().prefix("watchkeeper-components-").tempdir()?;
        let (server, kubeconfig) = if kind == Kind::Real {
            // Components have no accounts of their own here, and pods need none.
            let flags = ["--disable-admission-plugins=ServiceAccount".to_owned()];
            let settings = Settings { apiserver: flags.to_vec(), ..Settings::default() };
            let cluster = Cluster::start(programs, settings).await?;
            let kubeconfig = cluster.kubeconfig(User::Admin);
            (Server::Real(cluster), kubeconfig)
        } else {
            let kubeconfig = folder.path().join("kubeconfig");
            (Server::Ours(serve(folder.path(), &kubeconfig, kind).await?), kubeconfig)
        };
        let client = Client::try_from(config(&kubeconfig).await?)?;
        let version = client.apiserver_version().await?;
        let version = format!("{}.{}", version.major, version.minor);
        let components = Vec::new();
        let mut stage = Self { folder, kubeconfig, kind, version, client, server, components, kubelet: None };
        if kind == Kind::Alone {
            return Ok(stage);
        }
        stage.kubelet = Some(Kubelet::start(stage.client()).await?);
        let plugins = format!("--flex-volume-plugin-dir={}", stage.folder().display());
        stage.start_component(
            "kube-controller-manager",
            &programs.kube_controller_manager,
            &[
                PATIENT[0],
                PATIENT[1],
                // It would make a folder of the system's.
                &plugins,
                // Our server gives out no tokens for service accounts, and says nothing of old ones.
                "--controllers=*,-legacy-serviceaccount-token-cleaner-controller",
            ],
        )?;
        stage.start_component("kube-scheduler", &programs.kube_scheduler, &PATIENT)?;
        stage.nodes_are_free().await?;
        Ok(stage)
    }

    /// A real API server taints new nodes, and the controller manager takes that back when they are ready.
    async fn nodes_are_free(&self) -> Result<(), Failure> {
        let nodes: Api<Node> = Api::all(self.client());
        until("nodes are free", async || {
            let all = nodes.list(&ListParams::default()).await?.items;
            let tainted = all.iter().filter(|node| node.spec.as_ref().is_some_and(|spec| spec.taints.is_some()));
            Ok(differs("tainted nodes", tainted.count(), 0))
        })
        .await
    }

    pub(super) fn client(&self) -> Client {
        self.client.clone()
    }

    pub(super) fn kubeconfig(&self) -> &Path {
        &self.kubeconfig
    }

    pub(super) fn folder(&self) -> &Path {
        self.folder.path()
    }

    pub(super) fn described(&self) -> &'static str {
        match self.kind {
            Kind::Ours => "watchkeeper serve --no-controllers, kube-controller-manager and kube-scheduler as they come",
            Kind::Json => "the same, with --kube-api-content-type=application/json",
            Kind::Both => {
                "watchkeeper serve with its own garbage collector and namespace controller beside Kubernetes'"
            }
            Kind::Alone => "watchkeeper serve, with nothing beside it",
            Kind::Real => "kube-apiserver, to see that these cases hold there",
        }
    }

    /// Starts one more component, which is told how to reach our server.
    pub(super) fn start_component(&mut self, name: &str, program: &Path, flags: &[&str]) -> Result<(), Failure> {
        let mut arguments = vec![
            format!("--kubeconfig={}", self.kubeconfig.display()),
            // A component is never newer than its API server: it would ask for kinds that there are not yet.
            format!("--emulated-version=kube={}", self.version),
            // Nothing else needs to reach it.
            "--secure-port=0".to_owned(),
            // A test may ask as often as it likes.
            "--kube-api-qps=300".to_owned(),
            "--kube-api-burst=600".to_owned(),
        ];
        if self.kind == Kind::Json {
            arguments.push("--kube-api-content-type=application/json".to_owned());
        }
        arguments.extend(flags.iter().map(|&flag| flag.to_owned()));
        self.components.push(Process::start(name, program, &arguments, self.folder.path())?);
        Ok(())
    }

    /// A component that was started before.
    pub(super) fn component(&mut self, name: &str) -> Result<&mut Process, Failure> {
        let found = self.components.iter_mut().find(|component| component.name() == name);
        found.with_context(|| format!("there is no {name}"))
    }

    /// Kills a component, and forgets it but for its log.
    pub(super) async fn kill_component(&mut self, name: &str) -> Result<(), Failure> {
        self.component(name)?.kill().await
    }

    /// Whether all are still there that should be.
    pub(super) fn check(&mut self, but: &[&str]) -> Result<(), Failure> {
        if let Server::Ours(server) = &mut self.server {
            server.check()?;
        }
        for component in self.components.iter_mut().filter(|component| !but.contains(&component.name())) {
            component.check()?;
        }
        Ok(())
    }

    /// Ends everything, and says what the logs say.
    pub(super) async fn stop(mut self) -> Result<String, Failure> {
        if let Some(kubelet) = &mut self.kubelet {
            kubelet.stop().await?;
        }
        for component in &mut self.components {
            component.kill().await?;
        }
        let mut logs = Logs::default();
        match self.server {
            Server::Real(cluster) => cluster.stop().await?,
            Server::Ours(mut server) => {
                let status = server.terminate().await?;
                ensure!(status.success(), "watchkeeper serve ended with {status}");
                logs.read(server.name(), &server.log()?, self.kind);
            }
        }
        for component in &self.components {
            logs.read(component.name(), &component.log()?, self.kind);
        }
        if !logs.problems.is_empty() {
            let kept = self.folder.keep();
            let shown: Vec<&str> = logs.problems.iter().map(String::as_str).take(20).collect();
            bail!("{} errors in logs ({}):\n{}", logs.problems.len(), kept.display(), shown.join("\n"));
        }
        Ok(logs.to_string())
    }
}

/// `watchkeeper serve`, ready.
async fn serve(folder: &Path, kubeconfig: &Path, kind: Kind) -> Result<Process, Failure> {
    let program = std::env::current_exe()?.with_file_name(format!("watchkeeper{}", std::env::consts::EXE_SUFFIX));
    ensure!(program.exists(), "{} is not built: cargo build -p watchkeeper-cli", program.display());
    let mut arguments = vec!["serve".to_owned(), format!("--kubeconfig={}", kubeconfig.display())];
    if !matches!(kind, Kind::Both | Kind::Alone) {
        arguments.push("--no-controllers".to_owned());
    }
    let mut server = Process::start("watchkeeper", &program, &arguments, folder)?;
    until("our server is ready", async || {
        server.check()?;
        Ok((!kubeconfig.exists()).then(|| "there is no kubeconfig".to_owned()))
    })
    .await?;
    Ok(server)
}

async fn config(kubeconfig: &Path) -> Result<Config, Failure> {
    let kubeconfig = Kubeconfig::read_from(kubeconfig)?;
    Ok(Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await?)
}
