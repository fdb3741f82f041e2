//! client-go and a controller of kube-rs, for minutes, while everything changes; and whether all is right at the end.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::atomic::Ordering;
use std::time::Duration;

use anyhow::{Context as _, bail, ensure};
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{ConfigMap, Namespace, Secret};
use kube::api::{DeleteParams, ListParams, Patch, PatchParams};
use kube::{Api, Client, ResourceExt as _};
use serde_json::json;
use tokio::process::{Child, Command};
use tokio::task::JoinSet;
use tokio::time::Instant;
use watchkeeper_e2e::Failure;

use crate::operator::{self, LABEL};
use crate::stage::Stage;
use crate::wait::{differs, until};
use crate::workloads::{create, deployment_of, namespace, settled};

/// How many write to config maps, and how many maps each of them has.
const WRITERS: usize = 4;
const MAPS: usize = 10;
/// Between two writes of one writer.
const PACE: Duration = Duration::from_millis(25);
/// Between two changes of the deployment.
const SCALING: Duration = Duration::from_secs(2);

/// The value that each map should have at the end; those without one should not be there.
type Expected = BTreeMap<String, String>;

/// A controller of kube-rs and a deployment of Kubernetes' controllers.
pub(super) async fn run(stage: &Stage, time: Duration) -> Result<String, Failure> {
    let client = stage.client();
    let namespace = namespace(&client, "churn").await?;
    let end = Instant::now() + time;
    let scaler = tokio::spawn(scale(client.clone(), namespace.clone(), end));
    let told = operated(&client, &namespace, end).await?;
    let changes = scaler.await.context("the scaler panicked")?.context("the scaler")?;
    settled(&client, &namespace, "churned").await?;
    Ok(format!("{} s: {told}; {changes} changes of a Deployment", time.as_secs()))
}

/// A controller of kube-rs and informers of client-go, which see the same; and the checks of client-go again and again.
pub(super) async fn clients(stage: &Stage, time: Duration) -> Result<String, Failure> {
    let client = stage.client();
    let namespace = namespace(&client, "clients").await?;
    let program = build(stage.folder()).await?;
    let mirror = Mirror::start(stage, &program, &namespace)?;
    let end = Instant::now() + time;
    let (told, passed) = tokio::join!(operated(&client, &namespace, end), client_go(stage, &program, end));
    let (told, passed) = (told?, passed.context("client-go")?);
    let mirrored = mirror.end().await.context("client-go's informers")?;
    no_namespace_stays(&client).await?;
    Ok(format!("{} s: {passed}, and its informers ended equal to the server ({mirrored}); {told}", time.as_secs()))
}

/// A controller of kube-rs under writers, and whether all is right at the end.
async fn operated(client: &Client, namespace: &str, end: Instant) -> Result<String, Failure> {
    let (running, done) = operator::start(client.clone(), namespace);
    let mut writers = JoinSet::new();
    for number in 0..WRITERS {
        writers.spawn(write(Api::namespaced(client.clone(), namespace), number, end));
    }
    let (mut expected, mut writes) = (Expected::new(), 0);
    while let Some(written) = writers.join_next().await {
        let (of_writer, count) = written.context("a writer panicked")?.context("a writer")?;
        expected.extend(of_writer);
        writes += count;
    }
    right_in_the_end(client, namespace, &expected).await?;
    ensure!(!running.is_finished(), "the controller has ended");
    running.abort();
    let count = |counter: &std::sync::atomic::AtomicUsize| counter.load(Ordering::Relaxed);
    Ok(format!(
        "kube-rs's controller applied {} times, cleaned up {} times and tried again {} times under {writes} writes; {} \
         ConfigMaps with their Secrets, and nothing else, are left",
        count(&done.applied),
        count(&done.cleaned),
        count(&done.failed),
        expected.len(),
    ))
}

/// Creates, changes and deletes maps.
async fn write(maps: Api<ConfigMap>, number: usize, end: Instant) -> Result<(Expected, usize), Failure> {
    let (mut expected, mut writes) = (Expected::new(), 0_usize);
    while Instant::now() < end {
        // Each map has its turn; what happens to it is different each time.
        let name = format!("map-{number}-{}", writes * 7 % MAPS);
        let value = format!("{number}-{writes}");
        let answer = match (expected.contains_key(&name), writes % 5) {
            (true, 0) => {
                expected.remove(&name);
                maps.delete(&name, &DeleteParams::default()).await.map(drop)
            }
            (true, _) => {
                expected.insert(name.clone(), value.clone());
                let patch = Patch::Merge(json!({"data": {"value": value}}));
                maps.patch(&name, &PatchParams::default(), &patch).await.map(drop)
            }
            (false, _) => {
                let object = json!({"metadata": {"name": name, "labels": {LABEL: "yes"}}, "data": {"value": value}});
                match maps.create(&Default::default(), &serde_json::from_value(object)?).await {
                    // The one before it has not yet gone.
                    Err(kube::Error::Api(status)) if status.code == 409 => Ok(()),
                    answer => answer.map(|_| drop(expected.insert(name.clone(), value))),
                }
            }
        };
        answer.with_context(|| format!("write {writes} of {name}"))?;
        writes += 1;
        tokio::time::sleep(PACE).await;
    }
    Ok((expected, writes))
}

/// Changes a deployment's size and its pods.
async fn scale(client: Client, namespace: String, end: Instant) -> Result<usize, Failure> {
    let deployments: Api<Deployment> = Api::namespaced(client, &namespace);
    create(&deployments, deployment_of("churned", 8)).await?;
    let mut changes = 0;
    while Instant::now() < end {
        tokio::time::sleep(SCALING).await;
        changes += 1;
        let container = json!({"name": "main", "image": format!("example/web:{}", changes % 3)});
        let replicas = changes * 5 % 14;
        let patch = json!({"spec": {"replicas": replicas, "template": {"spec": {"containers": [container]}}}});
        deployments.patch("churned", &PatchParams::default(), &Patch::Strategic(patch)).await?;
    }
    Ok(changes)
}

/// Each map has its secret, and there is nothing else.
async fn right_in_the_end(client: &Client, namespace: &str, expected: &Expected) -> Result<(), Failure> {
    let maps: Api<ConfigMap> = Api::namespaced(client.clone(), namespace);
    let secrets: Api<Secret> = Api::namespaced(client.clone(), namespace);
    let ours = ListParams::default().labels(LABEL);
    until("maps and secrets", async || {
        let found: Expected = maps
            .list(&ours)
            .await?
            .into_iter()
            .map(|map| (map.name_any(), map.data.unwrap_or_default().remove("value").unwrap_or_default()))
            .collect();
        let derived: Expected = secrets
            .list(&ours)
            .await?
            .into_iter()
            .map(|secret| {
                let value = secret.data.clone().unwrap_or_default().remove("value").unwrap_or_default();
                (secret.name_any(), String::from_utf8_lossy(&value.0).into_owned())
            })
            .collect();
        Ok(differs("maps", &found, expected).or_else(|| differs("secrets", &derived, expected)))
    })
    .await
}

/// client-go's checks each have a namespace of their own, which they delete.
async fn no_namespace_stays(client: &Client) -> Result<(), Failure> {
    let namespaces: Api<Namespace> = Api::all(client.clone());
    until("namespaces go", async || {
        let all = namespaces.list(&ListParams::default()).await?.items;
        let left: Vec<String> = all.iter().map(|n| n.name_any()).filter(|name| name.starts_with("e2e-")).collect();
        Ok((!left.is_empty()).then(|| left.join(", ")))
    })
    .await
}

/// The program of client-go's checks, on the stage's server.
fn command(stage: &Stage, program: &Path) -> Command {
    let mut command = Command::new(program);
    command.arg(format!("--kubeconfig={}", stage.kubeconfig().display())).kill_on_drop(true);
    command
}

/// Informers of client-go that run for as long as all else does, and compare themselves with the server at the end.
struct Mirror(Child);

impl Mirror {
    fn start(stage: &Stage, program: &Path, namespace: &str) -> Result<Self, Failure> {
        let mut command = command(stage, program);
        command.arg(format!("--mirror={namespace}")).stdin(Stdio::piped()).stdout(Stdio::piped());
        Ok(Self(command.spawn()?))
    }

    /// What they say of themselves when nothing more changes.
    async fn end(mut self) -> Result<String, Failure> {
        // It waits for the end of its input.
        drop(self.0.stdin.take());
        let output = self.0.wait_with_output().await?;
        let said = String::from_utf8_lossy(&output.stdout);
        ensure!(output.status.success(), "{said}");
        let told: Vec<&str> = said.lines().filter_map(|line| line.strip_prefix("ok mirror of ")).collect();
        ensure!(told.len() == 2, "two kinds were mirrored, but it says: {said}");
        Ok(told.join("; "))
    }
}

/// Runs client-go's checks again and again.
async fn client_go(stage: &Stage, program: &Path, end: Instant) -> Result<String, Failure> {
    let (mut runs, mut checks) = (0, 0);
    while Instant::now() < end {
        let content_type = ["", "application/json"][runs % 2];
        let output =
            command(stage, program).arg(format!("--content-type={content_type}")).stdin(Stdio::null()).output().await?;
        let said = String::from_utf8_lossy(&output.stdout);
        if !output.status.success() {
            let failed: Vec<&str> = said.lines().filter(|line| line.starts_with("FAILED")).collect();
            bail!("run {runs} of its checks ({content_type:?}):\n{}", failed.join("\n"));
        }
        checks += said.lines().filter(|line| line.starts_with("ok ")).count();
        runs += 1;
    }
    Ok(format!("client-go passed {checks} checks in {runs} runs"))
}

/// The program with the checks.
async fn build(folder: &Path) -> Result<PathBuf, Failure> {
    let module = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/client-go"));
    let program = folder.join(format!("client-go{}", std::env::consts::EXE_SUFFIX));
    let built = Command::new("go")
        .args(["build", "-mod=readonly", "-buildvcs=false", "-ldflags", "-s -w", "-o"])
        .arg(&program)
        .arg(".")
        .env("GOWORK", "off")
        .current_dir(module)
        .status()
        .await
        .context("the program with client-go's checks needs Go, which cannot be run")?;
    ensure!(built.success(), "go build of the program with client-go's checks ended with {built}");
    Ok(program)
}
