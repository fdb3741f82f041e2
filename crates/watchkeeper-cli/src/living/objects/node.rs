//! Nodes, and their leases.

use jiff::Timestamp;
use serde_json::{Value, json};

use crate::living::clock::micro;
use crate::living::views::Condition;
use crate::living::world::NodePlan;

/// Where leases of nodes are kept.
pub(in crate::living) const LEASES: &str = "kube-node-lease";

/// A node that is ready.
pub(in crate::living) fn ready(plan: &NodePlan, now: Timestamp) -> Value {
    let NodePlan { name, number, cpus, memory_gib, .. } = plan;
    let role =
        if plan.is_control_plane { "node-role.kubernetes.io/control-plane" } else { "node-role.kubernetes.io/worker" };
    let memory = format!("{}Ki", u64::from(*memory_gib) << 20);
    let allocatable = format!("{}Ki", (u64::from(*memory_gib) << 20).saturating_sub(1 << 20));
    let mut spec = json!({
        "podCIDR": format!("10.{}.{}.0/24", 128 + number / 256, number % 256),
        "providerID": format!("demo://{}/{name}", plan.zone),
    });
    if plan.is_reserved {
        spec["taints"] = json!([{"key": "node-role.kubernetes.io/control-plane", "effect": "NoSchedule"}]);
    }
    json!({
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": name,
            "labels": {
                "kubernetes.io/hostname": name,
                "kubernetes.io/os": "linux",
                "kubernetes.io/arch": plan.architecture,
                "topology.kubernetes.io/region": "north",
                "topology.kubernetes.io/zone": plan.zone,
                "node.kubernetes.io/instance-type": format!("standard-{cpus}"),
                role: "",
            },
        },
        "spec": spec,
        "status": {
            "capacity": {"cpu": cpus.to_string(), "memory": memory, "pods": "110", "ephemeral-storage": "103079844Ki"},
            "allocatable": {"cpu": cpus.to_string(), "memory": allocatable, "pods": "110", "ephemeral-storage": "94998384Ki"},
            "addresses": [{"type": "InternalIP", "address": plan.ip()}, {"type": "Hostname", "address": name}],
            "conditions": conditions(&[], true, now),
            "daemonEndpoints": {"kubeletEndpoint": {"Port": 10250}},
            "nodeInfo": {
                "architecture": plan.architecture,
                "operatingSystem": "linux",
                "osImage": "Debian GNU/Linux 13 (trixie)",
                "kernelVersion": "6.12.41-cloud",
                "kubeletVersion": "v1.36.4",
                "kubeProxyVersion": "v1.36.4",
                "containerRuntimeVersion": "containerd://2.1.4",
                "machineID": plan.machine_id, "systemUUID": plan.machine_id, "bootID": plan.machine_id,
            },
        },
    })
}

/// What is said of a node whose kubelet is heard of, or not. Of what stays as it was, the times stay too.
pub(in crate::living) fn conditions(before: &[Condition], is_heard: bool, now: Timestamp) -> Vec<Condition> {
    let well = [
        ("MemoryPressure", "False", "KubeletHasSufficientMemory", "kubelet has sufficient memory available"),
        ("DiskPressure", "False", "KubeletHasNoDiskPressure", "kubelet has no disk pressure"),
        ("PIDPressure", "False", "KubeletHasSufficientPID", "kubelet has sufficient PID available"),
        ("Ready", "True", "KubeletReady", "kubelet is posting ready status"),
    ];
    let condition = |(of, status, reason, message): (&str, &str, &str, &str)| {
        let (status, reason, message) = match is_heard {
            true => (status, reason, message),
            false => ("Unknown", "NodeStatusUnknown", "Kubelet stopped posting node status."),
        };
        let known = before.iter().find(|known| known.r#type == of && known.status == status);
        Condition {
            r#type: of.to_owned(),
            status: status.to_owned(),
            last_heartbeat_time: known.and_then(|known| known.last_heartbeat_time).or(Some(now)),
            last_transition_time: known.and_then(|known| known.last_transition_time).or(Some(now)),
            reason: reason.to_owned(),
            message: message.to_owned(),
            ..Condition::default()
        }
    };
    well.into_iter().map(condition).collect()
}

/// The lease by which a node says that it is there.
pub(in crate::living) fn lease(node: &str, uid: &str, seconds: u64, now: Timestamp) -> Value {
    json!({
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": {
            "name": node,
            "namespace": LEASES,
            "ownerReferences": [{"apiVersion": "v1", "kind": "Node", "name": node, "uid": uid}],
        },
        "spec": {"holderIdentity": node, "leaseDurationSeconds": seconds, "renewTime": micro(now)},
    })
}
