//! Nodes without containers: pods that are bound to them become ready, finish or go at once.

use std::time::Duration;

use anyhow::Context as _;
use futures::StreamExt as _;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::{Node, Pod};
use k8s_openapi::jiff::Timestamp;
use kube::api::{DeleteParams, Patch, PatchParams, PostParams, Preconditions};
use kube::runtime::watcher::{self, Event, watcher};
use kube::{Api, Client, Resource as _, ResourceExt as _};
use serde_json::{Value, json};
use tokio::task::JoinSet;
use watchkeeper_e2e::Failure;

/// How many nodes there are.
pub(super) const NODES: usize = 5;
/// Pods with this annotation finish as soon as they run.
pub(super) const FINISHES: &str = "e2e.watchkeeper/finishes";
/// As often as a kubelet says that its node lives.
const HEARTBEAT: Duration = Duration::from_secs(10);
/// How many pods are worked on at once.
const AT_ONCE: usize = 8;

/// All kubelets.
pub(super) struct Kubelet(JoinSet<Result<(), Failure>>);

impl Kubelet {
    /// Makes the nodes, and begins to work.
    pub(super) async fn start(client: Client) -> Result<Self, Failure> {
        let mut tasks = JoinSet::new();
        for number in 0..NODES {
            let uid = make_node(&client, &name(number)).await?;
            tasks.spawn(beat(client.clone(), name(number), uid));
        }
        tasks.spawn(work(client));
        Ok(Self(tasks))
    }

    /// Ends, and says whether something went wrong meanwhile.
    pub(super) async fn stop(&mut self) -> Result<(), Failure> {
        if let Some(ended) = self.0.try_join_next() {
            ended.context("a kubelet panicked")?.context("a kubelet gave up")?;
        }
        self.0.shutdown().await;
        Ok(())
    }
}

fn name(number: usize) -> String {
    format!("node-{number}")
}

async fn make_node(client: &Client, name: &str) -> Result<String, Failure> {
    let nodes: Api<Node> = Api::all(client.clone());
    let node = json!({
        "metadata": {"name": name, "labels": {
            "kubernetes.io/hostname": name, "kubernetes.io/os": "linux", "kubernetes.io/arch": "amd64",
        }},
    });
    let made = nodes.create(&PostParams::default(), &serde_json::from_value(node)?).await.context("a node")?;
    nodes.patch_status(name, &PatchParams::default(), &Patch::Strategic(node_status())).await.context("its status")?;
    made.uid().context("a node without a uid")
}

fn node_status() -> Value {
    let room = json!({"cpu": "16", "memory": "64Gi", "pods": "110", "ephemeral-storage": "100Gi"});
    let condition = |kind: &str, status: &str, reason: &str| {
        json!({
            "type": kind, "status": status, "reason": reason, "message": "", "lastHeartbeatTime": now(),
            "lastTransitionTime": now(),
        })
    };
    json!({"status": {
        "capacity": room, "allocatable": room,
        "conditions": [
            condition("Ready", "True", "KubeletReady"),
            condition("MemoryPressure", "False", "KubeletHasSufficientMemory"),
            condition("DiskPressure", "False", "KubeletHasNoDiskPressure"),
            condition("PIDPressure", "False", "KubeletHasSufficientPID"),
        ],
        "nodeInfo": {
            "architecture": "amd64", "operatingSystem": "linux", "kubeletVersion": "fake", "machineID": "",
            "systemUUID": "", "bootID": "", "kernelVersion": "", "osImage": "", "containerRuntimeVersion": "fake://1",
            "kubeProxyVersion": "",
        },
    }})
}

/// Renews a node's lease, so that the controller manager does not take it for dead.
async fn beat(client: Client, node: String, uid: String) -> Result<(), Failure> {
    let leases: Api<Lease> = Api::namespaced(client, "kube-node-lease");
    let owner = json!({"apiVersion": "v1", "kind": "Node", "name": node, "uid": uid});
    loop {
        // To the microsecond, as a `MicroTime` has it.
        let renewed = Timestamp::now().strftime("%Y-%m-%dT%H:%M:%S%.6fZ").to_string();
        let lease = json!({
            "apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
            "metadata": {"name": node, "ownerReferences": [owner]},
            "spec": {"holderIdentity": node, "leaseDurationSeconds": 40, "renewTime": renewed},
        });
        leases.patch(&node, &PatchParams::apply("kubelet").force(), &Patch::Apply(lease)).await.context("a lease")?;
        tokio::time::sleep(HEARTBEAT).await;
    }
}

async fn work(client: Client) -> Result<(), Failure> {
    let pods: Api<Pod> = Api::all(client.clone());
    let mut seen = std::pin::pin!(
        watcher(pods, watcher::Config::default())
            .map(|event| async {
                match event.context("the watch of pods")? {
                    Event::Apply(pod) | Event::InitApply(pod) => see(&client, pod).await,
                    Event::Delete(_) | Event::Init | Event::InitDone => Ok(()),
                }
            })
            .buffer_unordered(AT_ONCE)
    );
    while let Some(seen) = seen.next().await {
        seen?;
    }
    Ok(())
}

/// Does with a pod what is next.
async fn see(client: &Client, pod: Pod) -> Result<(), Failure> {
    let (Some(spec), Some(namespace)) = (&pod.spec, pod.namespace()) else { return Ok(()) };
    // Some are on nodes that there are not.
    if !(0..NODES).any(|number| spec.node_name.as_ref() == Some(&name(number))) {
        return Ok(());
    }
    let pods: Api<Pod> = Api::namespaced(client.clone(), &namespace);
    let pod_name = pod.name_any();
    let phase = pod.status.as_ref().and_then(|status| status.phase.as_deref()).unwrap_or_default();
    let done = if pod.meta().deletion_timestamp.is_some() {
        let preconditions = Some(Preconditions { uid: pod.uid(), resource_version: None });
        let options = DeleteParams { preconditions, ..DeleteParams::default().grace_period(0) };
        pods.delete(&pod_name, &options).await.map(drop)
    } else if matches!(phase, "" | "Pending") {
        pods.patch_status(&pod_name, &PatchParams::default(), &Patch::Strategic(running(&pod))).await.map(drop)
    } else if phase == "Running" && pod.annotations().contains_key(FINISHES) {
        pods.patch_status(&pod_name, &PatchParams::default(), &Patch::Strategic(finished(&pod))).await.map(drop)
    } else {
        return Ok(());
    };
    match done {
        // Another one was faster: it is gone, or a new one has its name.
        Err(kube::Error::Api(status)) if matches!(status.code, 404 | 409) => Ok(()),
        done => done.with_context(|| format!("{phase} pod {namespace}/{pod_name}")),
    }
}

fn running(pod: &Pod) -> Value {
    let state = json!({"running": {"startedAt": now()}});
    json!({"metadata": {"uid": pod.uid()}, "status": {
        "phase": "Running", "startTime": now(), "podIP": "10.1.1.1", "podIPs": [{"ip": "10.1.1.1"}], "hostIP": "127.0.0.1",
        "conditions": conditions(true), "containerStatuses": containers(pod, &state, true),
    }})
}

fn finished(pod: &Pod) -> Value {
    let state = json!({"terminated": {"exitCode": 0, "reason": "Completed", "startedAt": now(), "finishedAt": now()}});
    json!({"metadata": {"uid": pod.uid()}, "status": {
        "phase": "Succeeded", "conditions": conditions(false), "containerStatuses": containers(pod, &state, false),
    }})
}

fn conditions(ready: bool) -> Value {
    let status = if ready { "True" } else { "False" };
    let reason = if ready { Value::Null } else { json!("PodCompleted") };
    let condition = |kind: &str, status: &str| {
        json!({
            "type": kind, "status": status, "reason": reason, "lastTransitionTime": now(),
        })
    };
    json!([condition("Ready", status), condition("ContainersReady", status), condition("Initialized", "True")])
}

fn containers(pod: &Pod, state: &Value, ready: bool) -> Value {
    let containers = pod.spec.iter().flat_map(|spec| &spec.containers);
    let statuses = containers.map(|container| {
        let image = container.image.as_deref().unwrap_or_default();
        // The state that it is no longer in is taken back.
        let mut states = json!({"running": null, "terminated": null, "waiting": null});
        if let (Some(states), Some(state)) = (states.as_object_mut(), state.as_object()) {
            states.extend(state.clone());
        }
        json!({
            "name": container.name, "image": image, "imageID": format!("fake://{image}"), "ready": ready, "started": ready,
            "restartCount": 0, "state": states,
        })
    });
    statuses.collect()
}

/// To the second, as a `Time` has it.
fn now() -> String {
    Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}
