//! Pods, in objects of their own and in templates.

use serde_json::{Map, Value, json};

use super::{entries_mut, set, text};
use crate::tables::quantity;

pub(super) fn apply(fields: &mut Map<String, Value>, type_name: &str) {
    match type_name {
        "core.v1.Pod" => pod(fields),
        "core.v1.PodSpec" => spec(fields),
        "core.v1.Container" | "core.v1.EphemeralContainer" => {
            let policy = pull_policy(text(fields, "image"));
            set(fields, "imagePullPolicy", policy);
        }
        "core.v1.ImageVolumeSource" => {
            let policy = pull_policy(text(fields, "reference"));
            set(fields, "pullPolicy", policy);
        }
        // A volume that says nothing of what it is lives as long as its pod.
        "core.v1.Volume" if fields.keys().all(|key| key == "name") => set(fields, "emptyDir", json!({})),
        _ => {}
    }
}

/// How a pod is treated when its node runs out of something.
pub(crate) fn quality_of_service(spec: &Value) -> &'static str {
    let lists = ["containers", "initContainers"].into_iter().filter_map(|list| spec.get(list)?.as_array());
    let (mut asks, mut guaranteed) = (false, true);
    for container in lists.flatten() {
        for resource in ["cpu", "memory"] {
            let amount = |part: &str| {
                let value = container.get("resources")?.get(part)?.get(resource)?;
                let shown = quantity::shown(Some(value));
                (shown != "0").then_some(shown)
            };
            let (limit, request) = (amount("limits"), amount("requests"));
            asks |= limit.is_some() || request.is_some();
            guaranteed &= limit.is_some() && limit == request;
        }
    }
    match (asks, guaranteed) {
        (false, _) => "BestEffort",
        (true, true) => "Guaranteed",
        (true, false) => "Burstable",
    }
}

/// What a pod has and a template has not.
fn pod(fields: &mut Map<String, Value>) {
    let Some(Value::Object(spec)) = fields.get_mut("spec") else { return };
    set(spec, "enableServiceLinks", true);
    for list in ["containers", "initContainers"] {
        entries_mut(spec, list).for_each(requests_from_limits);
    }
}

/// What the admission plugins write that are always on. It is nobody's.
pub(crate) fn admit_pod(fields: &mut Map<String, Value>) {
    let Some(Value::Object(spec)) = fields.get_mut("spec") else { return };
    tolerate_lost_nodes(spec);
    // No time is less than none, and none would mean at once.
    if spec.get("terminationGracePeriodSeconds").and_then(Value::as_i64).is_some_and(|seconds| seconds < 0) {
        spec.insert("terminationGracePeriodSeconds".to_owned(), 1.into());
    }
}

/// Who asks for no less than all gets all.
fn requests_from_limits(container: &mut Map<String, Value>) {
    let Some(Value::Object(resources)) = container.get_mut("resources") else { return };
    let Some(Value::Object(limits)) = resources.get("limits").cloned() else { return };
    if limits.is_empty() {
        return;
    }
    if let Value::Object(requests) = resources.entry("requests").or_insert_with(|| json!({})) {
        for (resource, amount) in limits {
            requests.entry(resource).or_insert(amount);
        }
    }
}

/// Pods stay for five minutes on a node that is not heard of, unless they say otherwise.
fn tolerate_lost_nodes(spec: &mut Map<String, Value>) {
    let tolerations = spec.entry("tolerations").or_insert_with(|| json!([]));
    let Value::Array(tolerations) = tolerations else { return };
    for key in ["node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"] {
        let tolerated = tolerations.iter().any(|toleration| {
            let text = |field: &str| toleration.get(field).and_then(Value::as_str).unwrap_or_default();
            (text("key") == key || text("key").is_empty()) && matches!(text("effect"), "NoExecute" | "")
        });
        if !tolerated {
            tolerations
                .push(json!({"key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300}));
        }
    }
}

fn spec(fields: &mut Map<String, Value>) {
    // The same under its old name.
    for (from, to) in [("serviceAccountName", "serviceAccount"), ("serviceAccount", "serviceAccountName")] {
        if let Some(name) = fields.get(from).cloned().filter(|name| name.as_str().is_some_and(|name| !name.is_empty()))
        {
            set(fields, to, name);
        }
    }
    // In the node's own network, a port is the node's.
    if fields.get("hostNetwork").and_then(Value::as_bool) == Some(true) {
        for list in ["containers", "initContainers"] {
            for container in entries_mut(fields, list) {
                for port in entries_mut(container, "ports") {
                    if let Some(number) = port.get("containerPort").cloned()
                        && port.get("hostPort").is_none_or(|port| port.as_i64() == Some(0))
                    {
                        port.insert("hostPort".to_owned(), number);
                    }
                }
            }
        }
    }
}

/// An image that may mean another tomorrow is pulled each time.
fn pull_policy(image: &str) -> &'static str {
    let name = image.rsplit('/').next().unwrap_or_default();
    let always = match (name.contains('@'), name.split_once(':')) {
        _ if name.is_empty() => false,
        (true, _) => false,
        (false, None) => true,
        (false, Some((_, tag))) => tag == "latest",
    };
    if always { "Always" } else { "IfNotPresent" }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_image_without_a_tag_is_pulled_each_time() {
        for image in ["nginx", "nginx:latest", "host:5000/nginx", "host:5000/a/nginx:latest"] {
            assert_eq!(pull_policy(image), "Always", "{image}");
        }
        for image in ["nginx:1", "nginx@sha256:0", "nginx:latest@sha256:0", "host:5000/nginx:1", ""] {
            assert_eq!(pull_policy(image), "IfNotPresent", "{image}");
        }
    }
}
