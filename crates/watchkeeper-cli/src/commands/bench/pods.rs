//! Which objects does a server in memory have?
//!
//! Pods as deployments make them: many of few templates, each with a name, a node, addresses and times of its own, and
//! with the managed fields that a cluster keeps.

use serde_json::{Value, json};

/// Where a pod says when it was changed: a label, so that nobody has to decode it to know.
pub(super) const SENT: &str = "watchkeeper.test/sent";

/// Pods of one template.
const OF_A_TEMPLATE: u32 = 50;

/// The pod of this number, always the same; `sent` is when it was changed.
pub(super) fn pod(number: u32, sent: Option<u128>) -> Value {
    let template = number / OF_A_TEMPLATE;
    let app = format!("app-{template}");
    let namespace = format!("team-{}", template % 20);
    let (hash, suffix) = (scattered(template), scattered(number));
    let name = format!("{app}-{:08x}-{:05x}", hash & 0xffff_ffff, suffix & 0xf_ffff);
    let ip = format!("10.{}.{}.{}", number >> 16 & 255, number >> 8 & 255, number & 255);
    let started = format!(
        "2026-{:02}-{:02}T{:02}:{:02}:{:02}Z",
        1 + number % 12,
        1 + number % 28,
        number % 24,
        number / 7 % 60,
        number / 3 % 60
    );
    let containers: Vec<Value> = ["main", "proxy"].map(|container| container_of(&app, container, hash)).to_vec();
    let statuses: Vec<Value> = ["main", "proxy"].map(|container| status_of(&app, container, suffix, &started)).to_vec();
    let conditions: Vec<Value> =
        ["PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady", "PodScheduled"]
            .map(|kind| json!({"type": kind, "status": "True", "lastProbeTime": null, "lastTransitionTime": started}))
            .to_vec();
    let owner = json!({
        "apiVersion": "apps/v1", "kind": "ReplicaSet", "name": format!("{app}-{:08x}", hash & 0xffff_ffff),
        "uid": uid(u64::from(template) << 32), "controller": true, "blockOwnerDeletion": true,
    });
    let mut pod = json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {
            "name": name, "namespace": namespace, "uid": uid(u64::from(number)), "creationTimestamp": started,
            "generateName": format!("{app}-{:08x}-", hash & 0xffff_ffff), "ownerReferences": [owner],
            "labels": {"app.kubernetes.io/name": app, "pod-template-hash": format!("{:08x}", hash & 0xffff_ffff)},
            "annotations": {"prometheus.io/scrape": "true", "prometheus.io/port": "9090"},
            "managedFields": managed_fields(&started),
        },
        "spec": {
            "containers": containers, "nodeName": format!("node-{}", suffix % 500), "restartPolicy": "Always",
            "serviceAccountName": app, "terminationGracePeriodSeconds": 30, "dnsPolicy": "ClusterFirst",
            "schedulerName": "default-scheduler", "priority": 0, "preemptionPolicy": "PreemptLowerPriority",
            "volumes": [{"name": "config", "configMap": {"name": format!("{app}-config"), "defaultMode": 420}}],
            "tolerations": [{"key": "node.kubernetes.io/not-ready", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300}],
        },
        "status": {
            "phase": "Running", "podIP": ip, "podIPs": [{"ip": ip}], "hostIP": format!("192.168.0.{}", suffix % 250),
            "startTime": started, "qosClass": "Burstable", "conditions": conditions, "containerStatuses": statuses,
        },
    });
    if let Some(sent) = sent {
        pod["metadata"]["labels"][SENT] = sent.to_string().into();
    }
    pod
}

fn container_of(app: &str, container: &str, hash: u64) -> Value {
    json!({
        "name": container, "image": format!("registry.example.com/{app}/{container}:1.{}.{}", hash % 30, hash % 7),
        "ports": [{"name": "http", "containerPort": 8080, "protocol": "TCP"}],
        "env": [
            {"name": "LOG_LEVEL", "value": "info"}, {"name": "REGION", "value": "eu-central"},
            {"name": "POD_NAME", "valueFrom": {"fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.name"}}},
        ],
        "resources": {"requests": {"cpu": "100m", "memory": "256Mi"}, "limits": {"memory": "512Mi"}},
        "readinessProbe": {"httpGet": {"path": "/ready", "port": "http", "scheme": "HTTP"}, "periodSeconds": 10, "failureThreshold": 3},
        "volumeMounts": [{"name": "config", "mountPath": "/etc/app", "readOnly": true}],
        "terminationMessagePath": "/dev/termination-log", "imagePullPolicy": "IfNotPresent",
    })
}

fn status_of(app: &str, container: &str, suffix: u64, started: &str) -> Value {
    json!({
        "name": container, "ready": true, "started": true, "restartCount": suffix % 3,
        "image": format!("registry.example.com/{app}/{container}"),
        "imageID": format!("registry.example.com/{app}/{container}@sha256:{:016x}{:016x}", scattered(1_u32), scattered(2_u32)),
        "containerID": format!("containerd://{:016x}{:016x}", suffix, suffix.rotate_left(17)),
        "state": {"running": {"startedAt": started}}, "lastState": {},
    })
}

fn managed_fields(started: &str) -> Value {
    let condition = json!({".": {}, "f:type": {}, "f:status": {}, "f:lastProbeTime": {}, "f:lastTransitionTime": {}});
    let container = json!({
        ".": {}, "f:name": {}, "f:image": {}, "f:env": {}, "f:ports": {}, "f:resources": {"f:limits": {}, "f:requests": {}},
        "f:readinessProbe": {".": {}, "f:httpGet": {"f:path": {}, "f:port": {}, "f:scheme": {}}, "f:periodSeconds": {}},
    });
    json!([
        {"manager": "kube-controller-manager", "operation": "Update", "apiVersion": "v1", "time": started, "fieldsType": "FieldsV1",
         "fieldsV1": {"f:metadata": {"f:labels": {}, "f:generateName": {}, "f:ownerReferences": {}},
                      "f:spec": {"f:containers": {"k:{\"name\":\"main\"}": container, "k:{\"name\":\"proxy\"}": container}}}},
        {"manager": "kubelet", "operation": "Update", "apiVersion": "v1", "time": started, "fieldsType": "FieldsV1", "subresource": "status",
         "fieldsV1": {"f:status": {"f:conditions": {"k:{\"type\":\"Ready\"}": condition, "k:{\"type\":\"Initialized\"}": condition},
                                   "f:containerStatuses": {}, "f:podIP": {}, "f:phase": {}, "f:startTime": {}}}},
    ])
}

/// A number that looks like chance, and is the same in every run.
fn scattered(number: impl Into<u64>) -> u64 {
    let mixed = (number.into().wrapping_add(1)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let mixed = (mixed ^ mixed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed ^ mixed >> 27
}

fn uid(number: u64) -> String {
    let (high, low) = (scattered(number), scattered(number ^ 0xffff));
    format!(
        "{:08x}-{:04x}-4{:03x}-8{:03x}-{:012x}",
        high >> 32,
        high >> 16 & 0xffff,
        high & 0xfff,
        low & 0xfff,
        low >> 16
    )
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn each_pod_is_another_and_always_the_same() {
        let name = |pod: &Value| format!("{}/{}", pod["metadata"]["namespace"], pod["metadata"]["name"]);
        let names: BTreeSet<String> = (0..20_000).map(|number| name(&pod(number, None))).collect();
        assert_eq!(names.len(), 20_000);
        assert_eq!(pod(7, None), pod(7, None));
        assert_eq!(pod(7, Some(9))["metadata"]["labels"][SENT], "9");
    }

    #[test]
    fn a_pod_has_the_size_that_pods_have() {
        let size = pod(7, None).to_string().len();
        assert!((4_000..9_000).contains(&size), "{size}");
    }
}
