//! Addresses and ports that services get, and keep.
//!
//! Counterpart: `k8s.io/kubernetes/pkg/registry/core/service/storage/alloc.go`.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

use super::Call;
use crate::defaulting::{needs_address, needs_node_ports};
use crate::defaults::{NODE_PORTS, SERVICE_ADDRESSES};
use crate::storage::Document;

/// Gives a service the addresses that its type asks for. Those that it had stay, if it does not name others.
pub(super) fn assign(call: &Call, old: Option<&Document>, next: &mut Document) {
    let old = old.and_then(|old| old.map().get("spec")?.as_object());
    let Some(Value::Object(spec)) = next.map_mut().get_mut("spec") else { return };
    if let Some(old) = old {
        keep(old, spec);
    }
    let is_external = spec.get("type").and_then(Value::as_str) == Some("ExternalName");
    if is_external {
        for field in ["clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy"] {
            spec.remove(field);
        }
        return;
    }
    if needs_address(spec) {
        spec.insert("clusterIP".to_owned(), address(call).into());
    }
    if let Some(address) = spec.get("clusterIP").cloned() {
        spec.entry("clusterIPs").or_insert_with(|| json!([address]));
    }
    let is_headless = spec.get("clusterIP").and_then(Value::as_str) == Some("None");
    let has_selector = spec.get("selector").and_then(Value::as_object).is_some_and(|selector| !selector.is_empty());
    // Who lists the endpoints of a service without address may list any.
    let (policy, families) = match is_headless && !has_selector {
        true => ("RequireDualStack", json!(["IPv4", "IPv6"])),
        false => ("SingleStack", json!(["IPv4"])),
    };
    if !spec.contains_key("ipFamilyPolicy") {
        spec.insert("ipFamilyPolicy".to_owned(), policy.into());
        spec.entry("ipFamilies").or_insert(families);
    }
    spec.entry("ipFamilies").or_insert_with(|| json!(["IPv4"]));
    assign_ports(call, spec);
}

fn keep(old: &Map<String, Value>, spec: &mut Map<String, Value>) {
    let text =
        |map: &Map<String, Value>, key: &str| map.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
    if text(spec, "type") == "ExternalName" || text(old, "type") == "ExternalName" {
        return;
    }
    if needs_address(spec) {
        for field in ["clusterIP", "clusterIPs"] {
            if let Some(value) = old.get(field) {
                spec.insert(field.to_owned(), value.clone());
            }
        }
    }
    for field in ["ipFamilies", "ipFamilyPolicy", "healthCheckNodePort"] {
        let lost = field == "healthCheckNodePort" && text(spec, "externalTrafficPolicy") != "Local";
        if let Some(value) = old.get(field).filter(|_| !lost) {
            spec.entry(field).or_insert_with(|| value.clone());
        }
    }
    if !needs_node_ports(spec) {
        return;
    }
    // A port is the same one if its number and protocol are.
    let identity = |port: &Value| (port.get("port").cloned(), port.get("protocol").cloned());
    let known = old.get("ports").and_then(Value::as_array).into_iter().flatten();
    let known: Vec<_> = known.filter_map(|port| Some((identity(port), port.get("nodePort")?.clone()))).collect();
    for port in spec.get_mut("ports").and_then(Value::as_array_mut).into_iter().flatten() {
        let found = known.iter().find(|(known, _)| *known == identity(port)).map(|(_, number)| number.clone());
        if let (Value::Object(port), Some(number)) = (port, found) {
            port.entry("nodePort").or_insert(number);
        }
    }
}

fn assign_ports(call: &Call, spec: &mut Map<String, Value>) {
    if !needs_node_ports(spec) {
        return;
    }
    let is_local = spec.get("externalTrafficPolicy").and_then(Value::as_str) == Some("Local");
    let is_balanced = spec.get("type").and_then(Value::as_str) == Some("LoadBalancer");
    let wants_check = is_local && is_balanced && !spec.contains_key("healthCheckNodePort");
    let ports = spec.get_mut("ports").and_then(Value::as_array_mut);
    let mut open: Vec<&mut Map<String, Value>> = ports
        .into_iter()
        .flatten()
        .filter_map(Value::as_object_mut)
        .filter(|port| !port.contains_key("nodePort"))
        .collect();
    if open.is_empty() && !wants_check {
        return;
    }
    let mut used = used_ports(call);
    for port in &mut open {
        port.insert("nodePort".to_owned(), port_number(call, &mut used).into());
    }
    if wants_check {
        spec.insert("healthCheckNodePort".to_owned(), port_number(call, &mut used).into());
    }
}

/// An address that no service has.
fn address(call: &Call) -> String {
    let (server, kind) = (&call.server, &call.kind);
    let services = server.storage.objects(kind);
    let used: BTreeSet<&str> = services.iter().map(|service| service.field(kind, "spec.clusterIP")).collect();
    let (first, count) = SERVICE_ADDRESSES;
    let shown = |offset: u32| std::net::Ipv4Addr::from(u32::from(first) + offset).to_string();
    let start = server.random.below(count);
    let candidates = (0..count).map(|i| shown((start + i) % count));
    candidates.into_iter().find(|address| !used.contains(address.as_str())).unwrap_or_else(|| shown(start))
}

/// A port that no service has; with all of them taken, any.
fn port_number(call: &Call, used: &mut BTreeSet<i64>) -> i64 {
    let (first, count) = NODE_PORTS;
    let start = call.server.random.below(count);
    let mut candidates = (0..count).map(|i| i64::from(first + (start + i) % count));
    let port = candidates.find(|port| !used.contains(port)).unwrap_or_else(|| i64::from(first + start));
    used.insert(port);
    port
}

fn used_ports(call: &Call) -> BTreeSet<i64> {
    let (server, kind) = (&call.server, &call.kind);
    let services = server.storage.objects(kind);
    let reachable =
        services.iter().filter(|service| matches!(service.field(kind, "spec.type"), "NodePort" | "LoadBalancer"));
    let mut used = BTreeSet::new();
    for document in reachable.map(|service| service.document()) {
        let spec = &document.as_value()["spec"];
        let ports = spec["ports"].as_array().into_iter().flatten().map(|port| &port["nodePort"]);
        used.extend(ports.chain([&spec["healthCheckNodePort"]]).filter_map(Value::as_i64));
    }
    used
}
