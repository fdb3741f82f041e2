//! Our server, as people start it, with a controller manager, a scheduler and nodes.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail, ensure};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};
use tempfile::TempDir;
use watchkeeper_e2e::{Failure, Programs};

use crate::kubelet::Kubelet;
use crate::process::Process;
use crate::wait::until;

/// What is different from stage to stage.
#[derive(Debug, Clone, Copy)]
pub(super) struct Options {
    /// How components write and want to read; what they are built with, if none.
    pub(super) content_type: Option<&'static str>,
    /// Whether our server collects garbage and empties namespaces too.
    pub(super) own_controllers: bool,
}

/// A whole cluster, but for containers.
pub(super) struct Stage {
    folder: TempDir,
    kubeconfig: PathBuf,
    options: Options,
    /// Our server's: `1.36`.
    version: String,
    client: Client,
    server: Process,
    components: Vec<Process>,
    kubelet: Kubelet,
}

impl Stage {
    pub(super) async fn start(programs: &Programs, options: Options) -> Result<Self, Failure> {
        let folder = tempfile::Builder::new().prefix("watchkeeper-components-").tempdir()?;
        let kubeconfig = folder.path().join("kubeconfig");
        let server = serve(folder.path(), &kubeconfig, options).await?;
        let client = Client::try_from(config(&kubeconfig).await?)?;
        let version = client.apiserver_version().await?;
        let version = format!("{}.{}", version.major, version.minor);
        let kubelet = Kubelet::start(client.clone()).await?;
        let mut stage = Self { folder, kubeconfig, options, version, client, server, components: Vec::new(), kubelet };
        let plugins = format!("--flex-volume-plugin-dir={}", stage.folder().display());
        stage.start_component(
            "kube-controller-manager",
            &programs.kube_controller_manager,
            &[
                // It would make a folder of the system's.
                &plugins,
                // Our server gives out no tokens for service accounts, and says nothing of old ones.
                "--controllers=*,-legacy-serviceaccount-token-cleaner-controller",
            ],
        )?;
        stage.start_component("kube-scheduler", &programs.kube_scheduler, &[])?;
        Ok(stage)
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
        match (self.options.own_controllers, self.options.content_type) {
            (false, None) => {
                "watchkeeper serve --no-controllers, kube-controller-manager and kube-scheduler as they come"
            }
            (false, Some(_)) => "the same, with --kube-api-content-type=application/json",
            (true, _) => "watchkeeper serve with its own garbage collector and namespace controller beside Kubernetes'",
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
        arguments.extend(self.options.content_type.map(|value| format!("--kube-api-content-type={value}")));
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
        self.server.check()?;
        for component in self.components.iter_mut().filter(|component| !but.contains(&component.name())) {
            component.check()?;
        }
        Ok(())
    }

    /// Ends everything, and says what the logs say.
    pub(super) async fn stop(mut self) -> Result<String, Failure> {
        self.kubelet.stop().await?;
        for component in &mut self.components {
            component.kill().await?;
        }
        let status = self.server.terminate().await?;
        ensure!(status.success(), "watchkeeper serve ended with {status}");
        let mut problems = Vec::new();
        let mut lines = 0;
        for component in &self.components {
            let log = component.log()?;
            lines += log.lines().count();
            problems.extend(errors(&log).map(|line| format!("{}: {line}", component.name())));
        }
        if !problems.is_empty() {
            let kept = self.folder.keep();
            let shown: Vec<&str> = problems.iter().map(String::as_str).take(20).collect();
            bail!("{} errors in logs ({}):\n{}", problems.len(), kept.display(), shown.join("\n"));
        }
        Ok(format!("{} logs, {lines} lines, no error and no panic", self.components.len()))
    }
}

/// The lines of a component's log that say that something is wrong: `E1118 00:25:24.123456 ...`, or a panic.
fn errors(log: &str) -> impl Iterator<Item = &str> {
    log.lines().filter(|line| {
        let day = line.as_bytes().get(1..5);
        let is_error = line.starts_with(['E', 'F']) && day.is_some_and(|day| day.iter().all(u8::is_ascii_digit));
        (is_error || line.starts_with("panic:")) && !is_usual(line)
    })
}

/// What they say on a real API server too, when writers meet.
fn is_usual(line: &str) -> bool {
    const USUAL: [&str; 2] = [
        "the object has been modified; please apply your changes to the latest version",
        // Of a file that nobody named.
        "The manifest file is empty, ignoring.",
    ];
    USUAL.iter().any(|usual| line.contains(usual))
}

/// `watchkeeper serve`, ready.
async fn serve(folder: &Path, kubeconfig: &Path, options: Options) -> Result<Process, Failure> {
    let program = std::env::current_exe()?.with_file_name(format!("watchkeeper{}", std::env::consts::EXE_SUFFIX));
    ensure!(program.exists(), "{} is not built: cargo build -p watchkeeper-cli", program.display());
    let mut arguments = vec!["serve".to_owned(), format!("--kubeconfig={}", kubeconfig.display())];
    if !options.own_controllers {
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
