//! An etcd and a kube-apiserver on the loopback interface, as Kubernetes' own envtest starts them.

mod credentials;
mod process;

use std::net::{Ipv4Addr, TcpListener};
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, bail};
use http::{Request, Uri};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::time::{Instant, sleep, timeout};

use crate::{Failure, Programs};
use credentials::Credentials;
use process::Process;

/// How long a process may take to be ready. It takes three seconds; machines can be very busy.
const READY: Duration = Duration::from_secs(180);
/// How long an API server may take to end once it is told to.
const END: Duration = Duration::from_secs(90);
/// Ports are picked, given back and then used: somebody else may be faster.
const ATTEMPTS: u32 = 3;

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
pub struct Cluster {
    kube_apiserver: PathBuf,
    settings: Settings,
    credentials: Credentials,
    ports: Ports,
    // Before the folder and before etcd, so that it is dropped first.
    apiserver: Option<Process>,
    etcd: Process,
    folder: TempDir,
}

#[derive(Debug, Clone, Copy)]
struct Ports {
    apiserver: u16,
    etcd: u16,
    etcd_peer: u16,
}

impl Cluster {
    /// Starts one, and waits until it is ready.
    pub async fn start(programs: &Programs, settings: Settings) -> Result<Self, Failure> {
        let mut attempt = 1;
        loop {
            match Self::try_start(programs, settings.clone()).await {
                Err(failure) if attempt < ATTEMPTS && format!("{failure:#}").contains("address already in use") => {
                    attempt += 1;
                }
                started => return started,
            }
        }
    }

    async fn try_start(programs: &Programs, settings: Settings) -> Result<Self, Failure> {
        let folder = tempfile::Builder::new().prefix("watchkeeper-e2e-").tempdir().context("no temporary folder")?;
        let ports = Ports::pick()?;
        let credentials = Credentials::make(folder.path(), ports.apiserver)?;
        let etcd = Process::start("etcd", &programs.etcd, &etcd_flags(folder.path(), ports), folder.path())?;
        let kube_apiserver = programs.kube_apiserver.clone();
        let mut cluster = Self { kube_apiserver, settings, credentials, ports, apiserver: None, etcd, folder };
        cluster.etcd_ready().await?;
        cluster.start_apiserver().await?;
        Ok(cluster)
    }

    /// Of the API server.
    pub fn url(&self) -> String {
        format!("https://127.0.0.1:{}", self.port())
    }

    /// Of the API server.
    pub fn port(&self) -> u16 {
        self.ports.apiserver
    }

    /// How a user reaches the API server.
    pub fn config(&self, user: User) -> kube::Config {
        self.config_through(user, self.port())
    }

    /// The same, through the port of a proxy.
    pub fn config_through(&self, user: User, port: u16) -> kube::Config {
        let uri = Uri::try_from(format!("https://127.0.0.1:{port}")).expect("a number makes a URL");
        let mut config = kube::Config::new(uri);
        config.root_cert = Some(vec![self.credentials.authority.clone()]);
        config.auth_info.token = Some(self.credentials.token(user).to_owned().into());
        config
    }

    /// A file with the same.
    pub fn kubeconfig(&self, user: User) -> PathBuf {
        credentials::kubeconfig_path(self.folder.path(), user)
    }

    /// Where its processes write: `etcd.log`, `kube-apiserver.log`, and what the API server was asked, `audit.log`.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// The API server was started, and nobody has ended it.
    pub fn is_apiserver_started(&self) -> bool {
        self.apiserver.is_some()
    }

    /// Ends the API server as a signal to stop does, and starts it again on the same port.
    pub async fn restart_apiserver(&mut self) -> Result<(), Failure> {
        self.stop_apiserver().await?;
        self.start_apiserver().await
    }

    /// Ends the API server as a signal to stop does.
    pub async fn stop_apiserver(&mut self) -> Result<(), Failure> {
        match self.apiserver.take() {
            Some(apiserver) => apiserver.terminate(END).await,
            None => Ok(()),
        }
    }

    /// Ends the API server at once, with no goodbye.
    pub async fn kill_apiserver(&mut self) -> Result<(), Failure> {
        // Dropping it does that.
        drop(self.apiserver.take());
        Ok(())
    }

    /// Starts it again on the same port, and waits until it is ready.
    pub async fn start_apiserver(&mut self) -> Result<(), Failure> {
        if self.apiserver.is_some() {
            bail!("the API server runs already");
        }
        let flags = self.apiserver_flags();
        self.apiserver = Some(Process::start("kube-apiserver", &self.kube_apiserver, &flags, self.folder.path())?);
        let client = watchkeeper::client(self.config(User::Admin))?;
        let deadline = Instant::now() + READY;
        loop {
            let request = Request::get("/readyz").body(Vec::new())?;
            let ready = timeout(Duration::from_secs(5), client.request_text(request)).await;
            if let Ok(Ok(text)) = &ready
                && text == "ok"
            {
                return Ok(());
            }
            if let Some(process) = &mut self.apiserver {
                process.check_running()?;
            }
            if Instant::now() > deadline {
                let log = self.apiserver.as_ref().map(Process::log_tail).unwrap_or_default();
                bail!("kube-apiserver is not ready: {ready:?}\n{log}");
            }
            sleep(Duration::from_millis(50)).await;
        }
    }

    /// Compacts etcd at its newest revision: all that was before is forgotten.
    pub async fn compact(&self) -> Result<u64, Failure> {
        let revision = self.etcd_revision().await?;
        let answer = self.ask_etcd("/v3/kv/compaction", &json!({"revision": revision.to_string()})).await;
        match answer {
            Ok(_) => Ok(revision),
            // Nothing was written since the last time.
            Err(failure) if format!("{failure:#}").contains("has been compacted") => Ok(revision),
            Err(failure) => Err(failure),
        }
    }

    /// The newest revision of etcd, which is the newest version of any object.
    pub async fn etcd_revision(&self) -> Result<u64, Failure> {
        // The key is a zero byte, which nobody has.
        let answer = self.ask_etcd("/v3/kv/range", &json!({"key": "AA=="})).await?;
        let revision = answer.pointer("/header/revision").and_then(Value::as_str).and_then(|text| text.parse().ok());
        revision.with_context(|| format!("etcd tells no revision: {answer}"))
    }

    /// Ends all processes, and removes what they have written.
    pub async fn stop(mut self) -> Result<(), Failure> {
        self.stop_apiserver().await
    }

    async fn etcd_ready(&mut self) -> Result<(), Failure> {
        let deadline = Instant::now() + READY;
        loop {
            match self.etcd_revision().await {
                Ok(_) => return Ok(()),
                Err(failure) if Instant::now() > deadline => return Err(failure.context(self.etcd.log_tail())),
                Err(_) => self.etcd.check_running()?,
            }
            sleep(Duration::from_millis(20)).await;
        }
    }

    /// By its JSON gateway, which spares us a gRPC client.
    async fn ask_etcd(&self, path: &str, body: &Value) -> Result<Value, Failure> {
        let uri = Uri::try_from(format!("http://127.0.0.1:{}", self.ports.etcd))?;
        let client = watchkeeper::client(kube::Config::new(uri))?;
        let request = Request::post(path).header("content-type", "application/json").body(serde_json::to_vec(body)?)?;
        let answer =
            timeout(Duration::from_secs(30), client.send(request.map(Into::into))).await.context(path.to_owned())??;
        let (head, body) = answer.into_parts();
        let body = body.collect_bytes().await.with_context(|| format!("etcd's answer to {path}"))?;
        if !head.status.is_success() {
            bail!("etcd refuses {path}: {}", String::from_utf8_lossy(&body));
        }
        Ok(serde_json::from_slice(&body)?)
    }

    fn apiserver_flags(&self) -> Vec<String> {
        let folder = self.folder.path().display();
        let mut flags = vec![
            format!("--etcd-servers=http://127.0.0.1:{}", self.ports.etcd),
            "--bind-address=127.0.0.1".to_owned(),
            "--advertise-address=127.0.0.1".to_owned(),
            // A loopback address is no endpoint.
            "--endpoint-reconciler-type=none".to_owned(),
            format!("--secure-port={}", self.ports.apiserver),
            format!("--cert-dir={folder}/certificates"),
            format!("--tls-cert-file={folder}/server.crt"),
            format!("--tls-private-key-file={folder}/server.key"),
            format!("--token-auth-file={folder}/tokens.csv"),
            "--authorization-mode=RBAC".to_owned(),
            "--service-account-issuer=https://kubernetes.default.svc.cluster.local".to_owned(),
            format!("--service-account-key-file={folder}/service-accounts.pub"),
            format!("--service-account-signing-key-file={folder}/service-accounts.key"),
            "--service-cluster-ip-range=10.0.0.0/24".to_owned(),
            // Nobody makes service accounts where no controllers run.
            "--disable-admission-plugins=ServiceAccount".to_owned(),
            "--allow-privileged=true".to_owned(),
            format!("--audit-policy-file={folder}/audit-policy.json"),
            format!("--audit-log-path={folder}/audit.log"),
            "--profiling=false".to_owned(),
            // Else it waits for a minute for those who watch.
            "--shutdown-watch-termination-grace-period=1s".to_owned(),
        ];
        if let Some(interval) = self.settings.compaction_interval {
            flags.push(format!("--etcd-compaction-interval={}ms", interval.as_millis()));
        }
        // Of a flag that is given twice the second one counts.
        flags.extend(self.settings.apiserver.iter().cloned());
        flags
    }
}

impl Ports {
    fn pick() -> Result<Self, Failure> {
        let listen = || TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).context("no free port");
        // All at once, so that they differ.
        let listeners = [listen()?, listen()?, listen()?];
        let port = |at: usize| -> Result<u16, Failure> { Ok(listeners[at].local_addr()?.port()) };
        Ok(Self { apiserver: port(0)?, etcd: port(1)?, etcd_peer: port(2)? })
    }
}

fn etcd_flags(folder: &Path, ports: Ports) -> Vec<String> {
    let (client, peer) = (ports.etcd, ports.etcd_peer);
    vec![
        format!("--data-dir={}", folder.join("etcd").display()),
        format!("--listen-client-urls=http://127.0.0.1:{client}"),
        format!("--advertise-client-urls=http://127.0.0.1:{client}"),
        format!("--listen-peer-urls=http://127.0.0.1:{peer}"),
        format!("--initial-advertise-peer-urls=http://127.0.0.1:{peer}"),
        format!("--initial-cluster=default=http://127.0.0.1:{peer}"),
        "--log-level=warn".to_owned(),
        // Nobody misses it after a power cut.
        "--unsafe-no-fsync".to_owned(),
        "--quota-backend-bytes=4294967296".to_owned(),
    ]
}
