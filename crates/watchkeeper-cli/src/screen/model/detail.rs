//! What is worth telling of a change?
//!
//! A few words: from where to where the phase of a pod went, how many of a deployment's pods are ready, what an event says.
//! Nothing of what Secrets and ConfigMaps hold is ever told, only how many keys they have.

use serde_json::Value;

/// A few words on what changed between two states of an object; empty if there is nothing to say. Not escaped.
pub(crate) fn detail(kind: &str, old: Option<&Value>, new: &Value) -> String {
    let said = match kind {
        "pods" => pod(old, new),
        "nodes" => node(old, new),
        "deployments.apps" | "replicasets.apps" | "statefulsets.apps" => workload(old, new),
        "events" | "events.events.k8s.io" => event(new),
        "leases.coordination.k8s.io" => text(new, "/spec/holderIdentity").map(|holder| format!("held by {holder}")),
        "endpointslices.discovery.k8s.io" => Some(endpoints(new)),
        "configmaps" | "secrets" => Some(keys(new)),
        "namespaces" => change(old, new, "/status/phase"),
        _ => None,
    };
    said.or_else(|| generic(old, new)).unwrap_or_default()
}

fn pod(old: Option<&Value>, new: &Value) -> Option<String> {
    if text(new, "/metadata/deletionTimestamp").is_some() {
        return Some("terminating".to_owned());
    }
    let waiting = |pod: &Value| {
        let containers = pod.pointer("/status/containerStatuses")?.as_array()?;
        containers.iter().find_map(|container| text(container, "/state/waiting/reason").map(str::to_owned))
    };
    let is_new = |reason: &String| old.and_then(waiting).as_ref() != Some(reason);
    if let Some(reason) = waiting(new).filter(is_new) {
        return Some(reason);
    }
    if let Some(node) = text(new, "/spec/nodeName")
        && old.is_some_and(|old| text(old, "/spec/nodeName").is_none())
    {
        return Some(format!("to {node}"));
    }
    let ready = |pod: &Value| {
        let containers = pod.pointer("/status/containerStatuses")?.as_array()?;
        let ready = containers.iter().filter(|container| container["ready"] == Value::Bool(true)).count();
        Some(format!("ready {ready}/{}", containers.len()))
    };
    moved(old, new, "/status/phase").or_else(|| ready(new)).or_else(|| change(old, new, "/status/phase"))
}

fn node(old: Option<&Value>, new: &Value) -> Option<String> {
    let ready = |node: &Value| {
        let conditions = node.pointer("/status/conditions")?.as_array()?;
        let ready = conditions.iter().find(|condition| condition["type"] == "Ready")?;
        Some(if ready["status"] == "True" { "Ready" } else { "NotReady" })
    };
    let cordoned = |node: &Value| node.pointer("/spec/unschedulable") == Some(&Value::Bool(true));
    if old.is_some_and(|old| cordoned(old) != cordoned(new)) {
        return Some(if cordoned(new) { "cordoned" } else { "uncordoned" }.to_owned());
    }
    match (old.and_then(ready), ready(new)) {
        (Some(before), Some(now)) if before != now => Some(format!("{before} → {now}")),
        (Some(_), Some(_)) => Some("heartbeat".to_owned()),
        (_, now) => now.map(str::to_owned),
    }
}

fn workload(old: Option<&Value>, new: &Value) -> Option<String> {
    let image = "/spec/template/spec/containers/0/image";
    if let Some(image) = moved(old, new, image).and(text(new, image)) {
        return Some(format!("to {}", image.rsplit('/').next().unwrap_or(image)));
    }
    let number = |object: &Value, path: &str| object.pointer(path).and_then(Value::as_u64).unwrap_or_default();
    let wanted = number(new, "/spec/replicas");
    if let Some(before) = old.map(|old| number(old, "/spec/replicas")).filter(|before| *before != wanted) {
        return Some(format!("replicas {before} → {wanted}"));
    }
    Some(format!("ready {}/{wanted}", number(new, "/status/readyReplicas")))
}

fn event(new: &Value) -> Option<String> {
    let reason = text(new, "/reason")?;
    let message = text(new, "/message").or_else(|| text(new, "/note")).unwrap_or_default();
    Some(format!("{reason}: {message}"))
}

fn endpoints(new: &Value) -> String {
    let all = new["endpoints"].as_array().map(Vec::as_slice).unwrap_or_default();
    let ready = all.iter().filter(|endpoint| endpoint.pointer("/conditions/ready") == Some(&Value::Bool(true))).count();
    format!("ready {ready}/{}", all.len())
}

fn keys(new: &Value) -> String {
    let count = |field: &str| new[field].as_object().map_or(0, serde_json::Map::len);
    match count("data") + count("binaryData") {
        1 => "1 key".to_owned(),
        keys => format!("{keys} keys"),
    }
}

/// Which part of it changed, of an object that nothing more is known of.
fn generic(old: Option<&Value>, new: &Value) -> Option<String> {
    let (old, new) = (old?.as_object()?, new.as_object()?);
    let differs = |field: &&String| old.get(*field) != new.get(*field) && *field != "metadata";
    let parts: Vec<&str> = new.keys().filter(differs).map(String::as_str).take(3).collect();
    Some(if parts.is_empty() { "metadata".to_owned() } else { parts.join(", ") })
}

/// The value of a field, and the one before it if that was another.
fn change(old: Option<&Value>, new: &Value, path: &str) -> Option<String> {
    moved(old, new, path).or_else(|| text(new, path).map(str::to_owned))
}

/// The values of a field before and after, if they are two.
fn moved(old: Option<&Value>, new: &Value, path: &str) -> Option<String> {
    let (before, now) = (old.and_then(|old| text(old, path))?, text(new, path)?);
    (before != now).then(|| format!("{before} → {now}"))
}

fn text<'a>(object: &'a Value, path: &str) -> Option<&'a str> {
    object.pointer(path).and_then(Value::as_str).filter(|text| !text.is_empty())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_is_told_is_what_a_person_would_ask_for() {
        let pod = |phase: &str, node: &str| json!({"spec": {"nodeName": node}, "status": {"phase": phase}});
        let of = |kind: &str, old: Value, new: Value| detail(kind, Some(&old), &new);
        assert_eq!(of("pods", pod("Pending", "n1"), pod("Running", "n1")), "Pending → Running");
        assert_eq!(of("pods", pod("Pending", ""), pod("Pending", "n1")), "to n1");
        let deployment = |wanted: u32, ready: u32, image: &str| {
            json!({"spec": {"replicas": wanted, "template": {"spec": {"containers": [{"image": image}]}}},
                "status": {"readyReplicas": ready}})
        };
        let (one, other) = (deployment(3, 3, "shop/web:1"), deployment(5, 3, "shop/web:1"));
        assert_eq!(of("deployments.apps", one.clone(), other), "replicas 3 → 5");
        assert_eq!(of("deployments.apps", one.clone(), deployment(3, 3, "shop/web:2")), "to web:2");
        assert_eq!(of("deployments.apps", one.clone(), deployment(3, 2, "shop/web:1")), "ready 2/3");
        assert_eq!(detail("secrets", None, &json!({"data": {"password": "aHVudGVyMg=="}})), "1 key");
    }

    #[test]
    fn objects_of_any_shape_are_survived() {
        let odd =
            [json!(null), json!([]), json!({"status": 1, "spec": [], "data": "x"}), json!({"endpoints": {"a": 1}})];
        for kind in ["pods", "nodes", "deployments.apps", "events", "secrets", "widgets", "namespaces"] {
            for old in &odd {
                for new in &odd {
                    let _ = detail(kind, Some(old), new);
                    let _ = detail(kind, None, new);
                }
            }
        }
    }
}
