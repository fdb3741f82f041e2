//! A cluster with objects in it, and hands that write.

use std::ops::Range;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use anyhow::{Context as _, bail};
use http::Method;
use kube::Client;
use serde_json::{Value, json};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep};
use watchkeeper_e2e::{Cluster, Failure, Programs, Proxy, Settings, User};

use crate::kinds::{self, KINDS, Kind, NAMESPACES};

/// How long a write is tried again while the server is away.
const WRITE_PATIENCE: Duration = Duration::from_secs(120);
const WRITERS: u64 = 4;

/// All that a case needs.
pub(crate) struct Stage {
    pub(crate) cluster: Cluster,
    /// Between the informers and the API server.
    pub(crate) proxy: Proxy,
    /// The writers', and ours.
    pub(crate) client: Client,
    /// Objects of each kind.
    pub(crate) objects: u64,
    round: AtomicU64,
}

impl Stage {
    /// A cluster with this many objects of each kind.
    pub(crate) async fn start(programs: &Programs, settings: Settings, objects: u64) -> Result<Self, Failure> {
        let cluster = Cluster::start(programs, settings).await?;
        let proxy = Proxy::start(cluster.port()).await?;
        // One that hides nothing: whoever tries again here shall know.
        let client = watchkeeper::client(cluster.config(User::Admin))?;
        let stage = Self { cluster, proxy, client, objects, round: AtomicU64::new(0) };
        for name in NAMESPACES {
            let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}});
            write(&stage.client, Method::POST, "/api/v1/namespaces", Some(&namespace)).await?;
        }
        stage.define().await?;
        stage.fill(&KINDS, objects).await?;
        Ok(stage)
    }

    /// Keeps what the server has written, for those who want to know why a case failed.
    pub(crate) fn keep_logs(&self, case: &str) {
        let folder = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../target/e2e")).join(case);
        let kept = std::fs::create_dir_all(&folder).and_then(|()| {
            ["audit.log", "kube-apiserver.log", "etcd.log"]
                .into_iter()
                .try_for_each(|name| std::fs::copy(self.cluster.folder().join(name), folder.join(name)).map(drop))
        });
        match kept {
            Ok(()) => eprintln!("{case} failed: the logs are in target/e2e/{case}"),
            Err(error) => eprintln!("{case} failed, and its logs cannot be kept: {error}"),
        }
    }

    /// Undoes what a case that failed may have left behind.
    pub(crate) async fn recover(&mut self) -> Result<(), Failure> {
        self.proxy.freeze(false);
        self.proxy.close(false);
        if !self.cluster.is_apiserver_started() {
            self.cluster.start_apiserver().await?;
        }
        if read(&self.client, &Kind::Sails.path(None)).await.is_err() {
            self.define().await?;
            self.fill(&[Kind::Sails], self.objects).await?;
        }
        Ok(())
    }

    /// Defines the custom kind, and waits until it is served.
    pub(crate) async fn define(&self) -> Result<(), Failure> {
        let path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
        make(&self.client, path, &kinds::definition()).await?;
        let deadline = Instant::now() + Duration::from_secs(60);
        while read(&self.client, &Kind::Sails.path(None)).await.is_err() {
            anyhow::ensure!(Instant::now() < deadline, "the custom kind is not served");
            sleep(Duration::from_millis(100)).await;
        }
        Ok(())
    }

    /// Takes the definition away, with all objects of the kind.
    pub(crate) async fn undefine(&self) -> Result<(), Failure> {
        let path = format!("/apis/apiextensions.k8s.io/v1/customresourcedefinitions/sails.{}", kinds::GROUP);
        write(&self.client, Method::DELETE, &path, None).await?;
        let deadline = Instant::now() + Duration::from_secs(60);
        while read(&self.client, &path).await.is_ok() {
            anyhow::ensure!(Instant::now() < deadline, "the custom kind does not go");
            sleep(Duration::from_millis(100)).await;
        }
        Ok(())
    }

    /// Writes objects, by several writers.
    pub(crate) async fn fill(&self, kinds: &[Kind], objects: u64) -> Result<(), Failure> {
        self.fill_range(kinds, 0..objects).await
    }

    /// Those of these numbers.
    pub(crate) async fn fill_range(&self, kinds: &[Kind], numbers: Range<u64>) -> Result<(), Failure> {
        let mut tasks = JoinSet::new();
        let kinds: Arc<[Kind]> = kinds.into();
        for writer in 0..WRITERS * 2 {
            let (client, kinds, numbers) = (self.client.clone(), kinds.clone(), numbers.clone());
            tasks.spawn(async move {
                for number in numbers.filter(|number| number % (WRITERS * 2) == writer) {
                    for &kind in &*kinds {
                        unless_there(create(&client, kind, number, 0).await)?;
                    }
                }
                Ok::<(), Failure>(())
            });
        }
        while let Some(done) = tasks.join_next().await {
            done??;
        }
        Ok(())
    }

    /// Several writers begin to write, until they are told to stop.
    pub(crate) fn churn(&self, kinds: &[Kind], pause: Duration) -> Churn {
        let (stop, changes) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
        let mut tasks = JoinSet::new();
        let round = self.round.fetch_add(1, Relaxed) + 1;
        for writer in 0..WRITERS {
            let mut hand = Hand {
                client: self.client.clone(),
                kinds: kinds.to_vec(),
                objects: self.objects,
                // Different for each writer and each round, and always the same.
                state: round * 1_000_003 + writer * 7_919 + 1,
            };
            let (stop, changes) = (stop.clone(), changes.clone());
            tasks.spawn(async move {
                while !stop.load(Relaxed) {
                    changes.fetch_add(u64::from(hand.write_something().await?), Relaxed);
                    sleep(pause).await;
                }
                Ok(())
            });
        }
        Churn { stop, changes, tasks }
    }

    /// Writes an object that every view of a kind sees, and tells its key and version.
    pub(crate) async fn mark(&self, kind: Kind, namespace: &str) -> Result<(String, String), Failure> {
        let round = self.round.fetch_add(1, Relaxed) + 1;
        let name = format!("marker-{round}");
        // Of app 0, tier a, and node 0.
        let object = kind.object(namespace, &name, round * 14);
        let written = write(&self.client, Method::POST, &kind.path(Some(namespace)), Some(&object)).await?;
        let version = written.pointer("/metadata/resourceVersion").and_then(Value::as_str);
        let version = version.context("the server tells no version")?.to_owned();
        let key = if kind.is_namespaced() { format!("{namespace}/{name}") } else { name };
        Ok((key, version))
    }
}

/// Writers that write.
pub(crate) struct Churn {
    stop: Arc<AtomicBool>,
    changes: Arc<AtomicU64>,
    tasks: JoinSet<Result<(), Failure>>,
}

impl Churn {
    /// How much has been written so far.
    pub(crate) fn changes(&self) -> u64 {
        self.changes.load(Relaxed)
    }

    /// Waits until so many more changes were written.
    pub(crate) async fn write(&mut self, changes: u64) -> Result<(), Failure> {
        let enough = self.changes() + changes;
        let deadline = Instant::now() + WRITE_PATIENCE * 2;
        while self.changes() < enough {
            if let Some(ended) = self.tasks.try_join_next() {
                ended??;
            }
            anyhow::ensure!(Instant::now() < deadline, "{changes} changes take too long");
            sleep(Duration::from_millis(20)).await;
        }
        Ok(())
    }

    /// Ends it, and tells how much was written.
    pub(crate) async fn stop(mut self) -> Result<u64, Failure> {
        self.stop.store(true, Relaxed);
        while let Some(done) = self.tasks.join_next().await {
            done??;
        }
        Ok(self.changes())
    }
}

/// One that writes.
struct Hand {
    client: Client,
    kinds: Vec<Kind>,
    objects: u64,
    state: u64,
}

impl Hand {
    /// Creates, changes or deletes an object. False if another writer was faster.
    async fn write_something(&mut self) -> Result<bool, Failure> {
        let choice = self.random(self.kinds.len() as u64);
        let kind = self.kinds[choice as usize];
        // A few more names than there are objects.
        let number = self.random(self.objects + 8);
        let (what, value) = (self.random(10), self.random(1 << 32));
        let (namespace, name) = place(number);
        let one = format!("{}/{name}", kind.path(Some(namespace)));
        let written = match what {
            0..6 => write(&self.client, Method::PATCH, &one, Some(&kind.change(value))).await,
            6..8 => create(&self.client, kind, number, value).await,
            _ => write(&self.client, Method::DELETE, &one, None).await,
        };
        match written {
            Ok(_) => Ok(true),
            Err(failure) => match failure.downcast_ref::<Refused>() {
                // There is none; there is one already, or another write came in between; the kind is on its way out.
                Some(Refused { code: 404 | 409 | 405, .. }) => Ok(false),
                _ => Err(failure),
            },
        }
    }

    /// Splitmix64: the same for the same seed.
    fn random(&mut self, below: u64) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.state;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % below
    }
}

/// Namespace and name of an object.
fn place(number: u64) -> (&'static str, String) {
    (NAMESPACES[(number % 3) as usize], format!("object-{number}"))
}

async fn create(client: &Client, kind: Kind, number: u64, salt: u64) -> Result<Value, Failure> {
    let (namespace, name) = place(number);
    let object = kind.object(namespace, &name, number + salt);
    write(client, Method::POST, &kind.path(Some(namespace)), Some(&object)).await
}

/// The server answered, and the answer is a refusal.
#[derive(Debug)]
pub(crate) struct Refused {
    pub(crate) code: u16,
    message: String,
}

impl std::fmt::Display for Refused {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {}", self.code, self.message)
    }
}

impl std::error::Error for Refused {}

/// A write, tried again while the server cannot be reached or is not ready. One whose answer was lost may be done twice:
/// that is a conflict then, or one change more.
pub(crate) async fn write(client: &Client, method: Method, path: &str, body: Option<&Value>) -> Result<Value, Failure> {
    let deadline = Instant::now() + WRITE_PATIENCE;
    loop {
        match ask(client, method.clone(), path, body).await {
            Ok(answer) => return Ok(answer),
            Err(failure) => {
                let refusal = failure.downcast_ref::<Refused>();
                // A server that begins says 403 before it has read its rules, 404 before it knows custom kinds.
                let may_pass = refusal.is_none_or(|refused| matches!(refused.code, 403 | 429 | 500..600));
                if !may_pass || Instant::now() > deadline {
                    return Err(failure.context(format!("{method} {path}")));
                }
            }
        }
        sleep(Duration::from_millis(100)).await;
    }
}

/// Writes an object, unless there is one already.
pub(crate) async fn make(client: &Client, path: &str, object: &Value) -> Result<(), Failure> {
    unless_there(write(client, Method::POST, path, Some(object)).await)
}

fn unless_there(written: Result<Value, Failure>) -> Result<(), Failure> {
    match written {
        Err(failure) if failure.downcast_ref::<Refused>().is_some_and(|refused| refused.code == 409) => Ok(()),
        written => written.map(drop),
    }
}

pub(crate) async fn read(client: &Client, path: &str) -> Result<Value, Failure> {
    ask(client, Method::GET, path, None).await
}

async fn ask(client: &Client, method: Method, path: &str, body: Option<&Value>) -> Result<Value, Failure> {
    let content = if method == Method::PATCH { "application/merge-patch+json" } else { "application/json" };
    let request = http::Request::builder().method(method).uri(path).header("content-type", content);
    let body = body.map(serde_json::to_vec).transpose()?.unwrap_or_default();
    let asked = client.send(request.body(body.into())?);
    let answer = tokio::time::timeout(Duration::from_secs(30), asked).await.context("no answer")??;
    let (head, body) = answer.into_parts();
    let body = body.collect_bytes().await?;
    if !head.status.is_success() {
        let status: Value = serde_json::from_slice(&body).unwrap_or_default();
        let message = status["message"].as_str().unwrap_or_default().to_owned();
        bail!(Refused { code: head.status.as_u16(), message });
    }
    Ok(serde_json::from_slice(&body)?)
}
