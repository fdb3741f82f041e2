//! The specs of services.

use std::collections::BTreeSet;

use serde_json::Value;

use super::{Causes, is_empty, list, pods, text};

/// What is wrong with the spec of a service.
pub(super) fn check(spec: &Value, causes: &mut Causes) {
    let is_headless = text(spec, "clusterIP") == "None";
    if is_empty(spec, "ports") && !is_headless && text(spec, "type") != "ExternalName" {
        causes.required("spec.ports", "");
    }
    let ports = list(spec, "ports");
    let mut names = BTreeSet::new();
    for (i, port) in ports.iter().enumerate() {
        let path = format!("spec.ports[{i}]");
        match text(port, "name") {
            "" if ports.len() > 1 => causes.required(format!("{path}.name"), ""),
            "" => {}
            name if !names.insert(name) => causes.duplicate(format!("{path}.name"), name),
            _ => {}
        }
        pods::port(port.get("port"), &format!("{path}.port"), causes);
        causes.one_of(port, "protocol", &path, &["SCTP", "TCP", "UDP"]);
        pods::port(port.get("targetPort"), &format!("{path}.targetPort"), causes);
    }
    if text(spec, "type") == "ExternalName" && text(spec, "externalName").is_empty() {
        causes.required("spec.externalName", "");
    }
    causes.one_of(spec, "type", "spec", &["ClusterIP", "ExternalName", "LoadBalancer", "NodePort"]);
}
