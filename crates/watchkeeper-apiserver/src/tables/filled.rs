//! What a kube-apiserver fills into an object when it is written, as far as a table shows it.
//!
//! This server keeps objects as they were sent. Its tables show what the real one's would: `0/1` for a deployment that says
//! nothing of replicas. Counterparts: `defaults.go` of each group in `k8s.io/kubernetes/pkg/apis`.

use serde_json::{Map, Value, json};

/// Fills an object, where what is to be filled is there.
pub(super) fn fill(group: &str, plural: &str, object: &mut Value) {
    match (group, plural) {
        ("", "pods") => gate(object),
        ("", "replicationcontrollers") => {
            set(object, "/spec", "replicas", || json!(1));
            let labels = object.pointer("/spec/template/metadata/labels").cloned().unwrap_or_default();
            set(object, "/spec", "selector", || labels);
        }
        ("apps", "deployments" | "replicasets" | "statefulsets") => set(object, "/spec", "replicas", || json!(1)),
        ("batch", "jobs") => {
            let says_nothing = |spec: &Map<String, Value>| {
                !["completions", "parallelism"].iter().any(|field| spec.get(*field).is_some_and(|v| !v.is_null()))
            };
            if object.get("spec").and_then(Value::as_object).is_some_and(says_nothing) {
                set(object, "/spec", "completions", || json!(1));
            }
            // A job finds its pods by its uid, unless it says how else.
            if object.pointer("/spec/manualSelector") != Some(&Value::Bool(true)) {
                let uid = object.pointer("/metadata/uid").cloned().unwrap_or_default();
                let labels = json!({"batch.kubernetes.io/controller-uid": uid});
                set(object, "/spec", "selector", || json!({"matchLabels": labels}));
            }
        }
        ("batch", "cronjobs") => set(object, "/spec", "suspend", || json!(false)),
        ("autoscaling", "horizontalpodautoscalers") => {
            set(object, "/spec", "minReplicas", || json!(1));
            if object.pointer("/spec/targetCPUUtilizationPercentage").is_none_or(Value::is_null) {
                let target = json!({"type": "Utilization", "averageUtilization": 80});
                let cpu = json!([{"type": "Resource", "resource": {"name": "cpu", "target": target}}]);
                set(object, "/spec", "metrics", || cpu);
            }
        }
        ("", "persistentvolumes") => {
            set(object, "/spec", "persistentVolumeReclaimPolicy", || json!("Retain"));
            set(object, "/spec", "volumeMode", || json!("Filesystem"));
        }
        ("", "persistentvolumeclaims") => set(object, "/spec", "volumeMode", || json!("Filesystem")),
        ("storage.k8s.io", "csidrivers") => set(object, "/spec", "volumeLifecycleModes", || json!(["Persistent"])),
        ("scheduling.k8s.io", "priorityclasses") => {
            set(object, "", "preemptionPolicy", || json!("PreemptLowerPriority"));
        }
        ("flowcontrol.apiserver.k8s.io", "flowschemas") => set(object, "/spec", "matchingPrecedence", || json!(1000)),
        ("flowcontrol.apiserver.k8s.io", "prioritylevelconfigurations") => {
            set(object, "/spec/limited", "nominalConcurrencyShares", || json!(30));
            let queuing = "/spec/limited/limitResponse/queuing";
            for (field, value) in [("queues", 64), ("handSize", 8), ("queueLengthLimit", 50)] {
                set(object, queuing, field, || json!(value));
            }
        }
        _ => {}
    }
}

/// A pod that is not to be scheduled yet says so in its status.
fn gate(pod: &mut Value) {
    let gated = pod.pointer("/spec/schedulingGates").and_then(Value::as_array).is_some_and(|gates| !gates.is_empty());
    let Some(Value::Object(status)) = pod.pointer_mut("/status").filter(|_| gated) else { return };
    let conditions = status.entry("conditions").or_insert(Value::Null);
    if conditions.is_null() {
        *conditions = json!([]);
    }
    if let Value::Array(conditions) = conditions
        && !conditions.iter().any(|condition| condition["type"] == "PodScheduled")
    {
        conditions.push(json!({"type": "PodScheduled", "status": "False", "reason": "SchedulingGated"}));
    }
}

/// Sets a field of a part, if the part is there and the field is as good as missing.
fn set(object: &mut Value, part: &str, field: &str, value: impl FnOnce() -> Value) {
    let Some(Value::Object(part)) = object.pointer_mut(part) else { return };
    if part.get(field).is_none_or(is_missing) {
        part.insert(field.to_owned(), value());
    }
}

fn is_missing(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Array(entries) => entries.is_empty(),
        Value::String(text) => text.is_empty(),
        _ => false,
    }
}
