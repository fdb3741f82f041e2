//! The specs of services.

use std::collections::BTreeSet;

use serde_json::Value;

use super::{Causes, is_empty, list, pods, text};
use crate::failure::Cause;
use crate::validation::{dns_label, quoted};

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
            name if !dns_label(name).is_empty() => {
                dns_label(name)
                    .into_iter()
                    .for_each(|fault| causes.invalid(format!("{path}.name"), quoted(name), fault));
            }
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
    causes.one_of(spec, "sessionAffinity", "spec", &["ClientIP", "None"]);
    causes.one_of(spec, "type", "spec", &["ClusterIP", "ExternalName", "LoadBalancer", "NodePort"]);
    if text(spec, "type") == "ClusterIP" {
        for (i, _) in ports.iter().enumerate().filter(|(_, port)| number(port, "nodePort") != 0) {
            causes.forbidden(format!("spec.ports[{i}].nodePort"), "may not be used when `type` is 'ClusterIP'");
        }
    }
    duplicates(ports, causes);
}

/// Two ports of one protocol have two numbers, and are at two ports of the nodes.
fn duplicates(ports: &[Value], causes: &mut Causes) {
    let (mut numbers, mut node_ports) = (BTreeSet::new(), BTreeSet::new());
    for (i, port) in ports.iter().enumerate() {
        let (protocol, node_port) = (text(port, "protocol"), number(port, "nodePort"));
        if node_port != 0 && !node_ports.insert((protocol, node_port)) {
            causes.push(Cause::duplicate(&format!("spec.ports[{i}].nodePort"), node_port));
        }
    }
    for (i, port) in ports.iter().enumerate() {
        let (protocol, number) = (text(port, "protocol"), number(port, "port"));
        if !numbers.insert((protocol, number)) {
            // What Go shows of a port that has nothing else.
            let shown = format!(
                r#"{{"Name":"","Protocol":{},"AppProtocol":null,"Port":{number},"TargetPort":0,"NodePort":0}}"#,
                quoted(protocol)
            );
            causes.push(Cause::duplicate(&format!("spec.ports[{i}]"), shown));
        }
    }
}

fn number(port: &Value, key: &str) -> i64 {
    port.get(key).and_then(Value::as_i64).unwrap_or_default()
}
