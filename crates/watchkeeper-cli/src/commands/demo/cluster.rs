//! The cluster of the demo, and those who watch it: all that runs while it is shown.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use kube_client::Config;
use kube_client::config::{KubeConfigOptions, Kubeconfig};
use kube_client::core::ApiResource;
use tempfile::TempDir;
use tokio_util::sync::CancellationToken;
use watchkeeper::{Backoff, InformerFactory, InformerOptions};
use watchkeeper_apiserver::{ApiServer, Fault, ListenOptions, Listening, Match};

use super::Options;
use super::check::{Check, Verdict, keep_checking};
use super::faults::Rain;
use crate::failure::{Exit, Failure, Outcome};
use crate::living::{Living, LivingOptions};
use crate::screen::model::{Observed, Watchers, measure};

/// What is watched: group, version, kind, plural.
const KINDS: [(&str, &str, &str, &str); 11] = [
    ("", "v1", "Node", "nodes"),
    ("", "v1", "Namespace", "namespaces"),
    ("apps", "v1", "Deployment", "deployments"),
    ("apps", "v1", "ReplicaSet", "replicasets"),
    ("", "v1", "Pod", "pods"),
    ("", "v1", "Service", "services"),
    ("discovery.k8s.io", "v1", "EndpointSlice", "endpointslices"),
    ("", "v1", "ConfigMap", "configmaps"),
    ("", "v1", "Secret", "secrets"),
    ("coordination.k8s.io", "v1", "Lease", "leases"),
    ("", "v1", "Event", "events"),
];

/// A quiet kind is told how far the server is this often, so that all caches can be seen to keep up.
const BOOKMARKS: Duration = Duration::from_secs(1);
/// The journal holds all objects and this many writes: so far back a cache can be compared exactly.
const JOURNAL: usize = 10_000;
/// How long the first lists may take.
const FIRST_LISTS: Duration = Duration::from_secs(60);

/// Everything that runs.
pub(crate) struct Cluster {
    /// The server.
    pub(crate) server: ApiServer,
    /// What lives in it.
    pub(crate) living: Living,
    /// Where it can be reached.
    pub(crate) url: String,
    /// The kubeconfig for that.
    pub(crate) kubeconfig: PathBuf,
    /// The caches.
    pub(crate) observed: Arc<[Observed]>,
    /// What they tell of their changes.
    pub(crate) watchers: Arc<Watchers>,
    /// What goes wrong.
    pub(crate) rain: Rain,
    /// When the informers were started.
    pub(crate) started: Instant,
    factory: InformerFactory,
    verdict: Arc<Mutex<Verdict>>,
    listening: Listening,
    /// The folder of the kubeconfig, which goes with it.
    folder: TempDir,
    token: CancellationToken,
}

impl Cluster {
    /// Makes the cluster, opens the port, and starts the informers. Nothing is synced yet.
    pub(crate) async fn start(options: &Options) -> Outcome<Self> {
        let journal = options.objects.saturating_add(JOURNAL);
        let server = ApiServer::builder().bookmarks(BOOKMARKS).journal(journal).seed(options.seed).build();
        let token = CancellationToken::new();
        let living = LivingOptions { objects: options.objects, seed: options.seed, rate: options.rate, now: None };
        let living = Living::start(&server, living, token.clone())
            .await
            .map_err(|error| Failure::new(Exit::Error, "the cluster in memory cannot be made").because(error))?;
        let listening = listen(&server, options.port).await?;
        let (folder, kubeconfig) = write_kubeconfig(&listening)?;
        if options.sabotage {
            // The first object of the list is left out, which no client can notice.
            let pods = Match { kind: Some("pods".to_owned()), ..Match::any() };
            server.faults().on(pods.from_outside().once()).then(Fault::DropEvent { nth: 1 });
        }

        let factory = InformerFactory::new(client(&listening).await?);
        let watchers: Arc<Watchers> = Arc::default();
        let observed = KINDS.iter().map(|kind| observe(kind, &factory, &watchers)).collect::<Result<Arc<[_]>, _>>()?;
        factory.start(token.clone())?;
        Ok(Self {
            url: listening.url(),
            rain: Rain::new(options.faults),
            started: Instant::now(),
            verdict: Arc::default(),
            server,
            living,
            kubeconfig,
            observed,
            watchers,
            factory,
            listening,
            folder,
            token,
        })
    }

    /// Waits for the first lists, and begins what goes on until the end: comparing, measuring, and the rain.
    pub(crate) async fn sync(&self, seed: u64) -> Outcome<Duration> {
        let synced = tokio::time::timeout(FIRST_LISTS, self.factory.wait_synced());
        let synced = synced.await.map_err(|_| Failure::new(Exit::Timeout, "the caches did not fill in time"))?;
        synced.into_result()?;
        let took = self.started.elapsed();

        let (verdict, observed, token) = (self.verdict.clone(), self.observed.clone(), self.token.clone());
        let check = Check::new(self.server.clone(), observed.len());
        tokio::spawn(async move {
            let tell = |told| *lock(&verdict) = told;
            let _ = token.run_until_cancelled(keep_checking(check, observed, tell)).await;
        });
        let (observed, token) = (self.observed.clone(), self.token.clone());
        tokio::spawn(async move {
            let kinds = || observed.iter().map(|kind| (&**kind.informer.store(), &kind.sizes));
            measure(kinds, token).await;
        });
        let (rain, server, token) = (self.rain.clone(), self.server.clone(), self.token.clone());
        let names: Vec<Arc<str>> = self.observed.iter().map(|kind| kind.name.clone()).collect();
        tokio::spawn(async move { rain.fall(&server, &names, seed, token).await });
        Ok(took)
    }

    /// What came of comparing so far.
    pub(crate) fn verdict(&self) -> Verdict {
        lock(&self.verdict).clone()
    }

    /// Compares for the last time, and ends everything.
    pub(crate) async fn stop(self) -> Verdict {
        self.token.cancel();
        // First of all: whoever does not wait for the end shall not leave it behind.
        drop(self.folder);
        let mut last = Check::new(self.server.clone(), self.observed.len());
        let now = last.last_round(&self.observed);
        let mut verdict = lock(&self.verdict).clone();
        verdict.compared += now.compared;
        verdict.compared_bytes += now.compared_bytes;
        verdict.not_comparable += now.not_comparable;
        verdict.kinds.resize(now.kinds.len(), Default::default());
        for (kind, now) in verdict.kinds.iter_mut().zip(now.kinds) {
            kind.equal_at = now.equal_at.or(kind.equal_at);
            kind.difference = kind.difference.take().or(now.difference);
        }
        // Whoever quits does not want to wait; the process ends anyway.
        let ending = async {
            self.factory.shutdown().await;
            self.living.stop().await;
            drop(self.listening);
        };
        let _ = tokio::time::timeout(Duration::from_millis(500), ending).await;
        verdict
    }
}

fn observe(
    &(group, version, kind, plural): &(&str, &str, &str, &str),
    factory: &InformerFactory,
    watchers: &Arc<Watchers>,
) -> Result<Observed, Failure> {
    let api_version = if group.is_empty() { version.to_owned() } else { format!("{group}/{version}") };
    let resource = ApiResource {
        group: group.to_owned(),
        version: version.to_owned(),
        api_version,
        kind: kind.to_owned(),
        plural: plural.to_owned(),
    };
    // Nobody is in the way of an impatient client here.
    let backoff = Backoff::new(Duration::from_millis(100), Duration::from_secs(1));
    Ok(Observed::new(factory, &resource, InformerOptions::new(), false, &backoff, watchers)?)
}

async fn listen(server: &ApiServer, port: u16) -> Outcome<Listening> {
    let mut options = ListenOptions::with_tls();
    options.address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    server.listen(options).await.map_err(|error| {
        let failure = Failure::new(Exit::Error, "the demo has no port to listen on").because(error);
        if port == 0 { failure } else { failure.try_this("leave out --port, for one that is free") }
    })
}

fn write_kubeconfig(listening: &Listening) -> Outcome<(TempDir, PathBuf)> {
    let no_file = |error: &dyn std::fmt::Display| {
        Failure::new(Exit::Error, "the kubeconfig cannot be written")
            .because(error)
            .try_this("see whether $TMPDIR can be written to")
    };
    // Others cannot look into it: it has the token.
    let folder = tempfile::Builder::new().prefix("watchkeeper-").tempdir().map_err(|error| no_file(&error))?;
    let path = folder.path().join("kubeconfig");
    listening.write_kubeconfig(&path).map_err(|error| no_file(&error))?;
    Ok((folder, path))
}

async fn client(listening: &Listening) -> Outcome<kube_client::Client> {
    let unusable = |error: &dyn std::fmt::Display| {
        Failure::new(Exit::Error, "the demo's own client cannot be made").because(error)
    };
    let kubeconfig = Kubeconfig::from_yaml(&listening.kubeconfig()).map_err(|error| unusable(&error))?;
    let choice = KubeConfigOptions::default();
    let config = Config::from_custom_kubeconfig(kubeconfig, &choice).await.map_err(|error| unusable(&error))?;
    Ok(watchkeeper::client(config)?)
}

fn lock(verdict: &Mutex<Verdict>) -> MutexGuard<'_, Verdict> {
    verdict.lock().unwrap_or_else(PoisonError::into_inner)
}
