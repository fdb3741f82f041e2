//! Services. Their addresses and ports are given out when they are written, not here.

use serde_json::{Map, Value, json};

use super::{entries_mut, set, text};

pub(super) fn apply(fields: &mut Map<String, Value>, type_name: &str) {
    if type_name != "core.v1.ServiceSpec" {
        return;
    }
    set(fields, "sessionAffinity", "None");
    set(fields, "type", "ClusterIP");
    if text(fields, "sessionAffinity") == "ClientIP" {
        let config = fields.entry("sessionAffinityConfig").or_insert_with(|| json!({}));
        if let Some(Value::Object(client)) =
            config.as_object_mut().map(|config| config.entry("clientIP").or_insert(json!({})))
        {
            set(client, "timeoutSeconds", 10_800);
        }
    }
    for port in entries_mut(fields, "ports") {
        let target = port.get("targetPort");
        let is_empty = target.is_none_or(|target| target.as_i64() == Some(0) || target.as_str() == Some(""));
        if let Some(number) = port.get("port").cloned().filter(|_| is_empty) {
            port.insert("targetPort".to_owned(), number);
        }
    }
    match text(fields, "type") {
        "NodePort" => {
            set(fields, "externalTrafficPolicy", "Cluster");
            set(fields, "internalTrafficPolicy", "Cluster");
        }
        "LoadBalancer" => {
            set(fields, "externalTrafficPolicy", "Cluster");
            set(fields, "internalTrafficPolicy", "Cluster");
            set(fields, "allocateLoadBalancerNodePorts", true);
        }
        "ClusterIP" => set(fields, "internalTrafficPolicy", "Cluster"),
        _ => {}
    }
}

/// Whether a service is to get an address within the cluster.
pub(crate) fn needs_address(spec: &Map<String, Value>) -> bool {
    matches!(text(spec, "type"), "" | "ClusterIP" | "NodePort" | "LoadBalancer") && text(spec, "clusterIP").is_empty()
}

/// Whether the ports of a service are to be reached on every node.
pub(crate) fn needs_node_ports(spec: &Map<String, Value>) -> bool {
    match text(spec, "type") {
        "NodePort" => true,
        "LoadBalancer" => spec.get("allocateLoadBalancerNodePorts").and_then(Value::as_bool).unwrap_or(true),
        _ => false,
    }
}
