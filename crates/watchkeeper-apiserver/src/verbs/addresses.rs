//! Addresses and ports that services get, and keep.
//!
//! Counterpart: `k8s.io/kubernetes/pkg/registry/core/service/storage/alloc.go`.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::{MutexGuard, PoisonError};

use serde_json::{Map, Value, json};

use super::Call;
use crate::defaulting::{needs_address, needs_node_ports};
use crate::defaults::{NODE_PORTS, SERVICE_ADDRESSES};
use crate::failure::{Cause, Failure};
use crate::storage::Document;
use crate::validation::quoted;

/// Whoever writes a service holds this until it is stored, so that no two get the same address.
pub(super) fn hold(call: &Call) -> Option<MutexGuard<'_, ()>> {
    is_service(call).then(|| call.server.addresses.lock().unwrap_or_else(PoisonError::into_inner))
}

pub(super) fn is_service(call: &Call) -> bool {
    (call.kind.group.as_str(), call.kind.plural.as_str()) == ("", "services")
}

/// Gives a service the addresses that its type asks for. Those that it had stay, if it does not name others; others must
/// be free.
pub(super) fn assign(call: &Call, old: Option<&Document>, next: &mut Document) -> Result<(), Failure> {
    let name = next.meta("name").to_owned();
    let old = old.and_then(|old| old.map().get("spec")?.as_object());
    let Some(Value::Object(spec)) = next.map_mut().get_mut("spec") else { return Ok(()) };
    if let Some(old) = old {
        drop_unneeded(old, spec);
        keep(old, spec);
    }
    let is_external = spec.get("type").and_then(Value::as_str) == Some("ExternalName");
    if is_external {
        for field in ["clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy"] {
            spec.remove(field);
        }
        return Ok(());
    }
    // A kube-apiserver stops at the first.
    if let Some(taken) = refused_address(call, old, spec).or_else(|| refused_port(call, old, spec)) {
        return Err(Failure::invalid(&call.kind.kind, "", &name, vec![taken]));
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
    assign_ports(call, old.is_none(), spec)
}

/// An address that a service asks for and cannot have: it is none, or another has it. Where addresses begin and end is
/// each cluster's own affair, so any is good.
fn refused_address(call: &Call, old: Option<&Map<String, Value>>, spec: &Map<String, Value>) -> Option<Cause> {
    let address = spec.get("clusterIP").filter(|address| old.and_then(|old| old.get("clusterIP")) != Some(*address));
    let address = address.and_then(Value::as_str).filter(|address| !matches!(*address, "" | "None"))?;
    if address.parse::<std::net::IpAddr>().is_err() {
        let text = "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)";
        return Some(Cause::invalid("spec.clusterIPs[0]", quoted(address), text));
    }
    let services = call.server.storage.objects(&call.kind);
    let is_taken = services.iter().any(|service| service.field(&call.kind, "spec.clusterIP") == address);
    let text = format!("failed to allocate IP {address}: provided IP is already allocated");
    is_taken.then(|| Cause::invalid("spec.clusterIPs", json!([address]), text))
}

/// A port of the nodes that a service asks for and cannot have: there is none of this number, or it is taken.
fn refused_port(call: &Call, old: Option<&Map<String, Value>>, spec: &Map<String, Value>) -> Option<Cause> {
    if !matches!(spec.get("type").and_then(Value::as_str), Some("NodePort" | "LoadBalancer")) {
        return None;
    }
    let own: BTreeSet<i64> = old.into_iter().flat_map(ports).map(|port| number(port, "nodePort")).collect();
    let asked = ports(spec).enumerate().map(|(i, port)| (i, number(port, "port"), number(port, "nodePort")));
    let asked: Vec<_> = asked.filter(|(_, _, asked)| *asked != 0 && !own.contains(asked)).collect();
    if asked.is_empty() {
        return None;
    }
    let (first, count) = NODE_PORTS;
    let (first, last) = (i64::from(first), i64::from(first + count - 1));
    let mut used = used_ports(call);
    let mut given = HashMap::new();
    for (i, port, asked) in asked {
        // One port of several protocols is at one port of the nodes.
        if given.get(&port) == Some(&asked) {
            continue;
        }
        let fault = if !(first..=last).contains(&asked) {
            format!("provided port is not in the valid range. The range of valid ports is {first}-{last}")
        } else if used.contains(&asked) {
            "provided port is already allocated".to_owned()
        } else {
            // What an update asks for twice is found later.
            if old.is_none() {
                used.insert(asked);
            }
            given.entry(port).or_insert(asked);
            continue;
        };
        return Some(Cause::invalid(&format!("spec.ports[{i}].nodePort"), asked, fault));
    }
    None
}

fn ports(spec: &Map<String, Value>) -> impl Iterator<Item = &Value> {
    spec.get("ports").and_then(Value::as_array).into_iter().flatten()
}

fn number(port: &Value, key: &str) -> i64 {
    port.get(key).and_then(Value::as_i64).unwrap_or_default()
}

/// Takes away what a service has no more use for as another type, unless it asks for something new there.
fn drop_unneeded(old: &Map<String, Value>, spec: &mut Map<String, Value>) {
    let is = |spec: &Map<String, Value>, types: &[&str]| {
        types.contains(&spec.get("type").and_then(Value::as_str).unwrap_or_default())
    };
    let is_lost = |spec: &Map<String, Value>, types: &[&str]| is(old, types) && !is(spec, types);
    const OUTSIDE: [&str; 2] = ["NodePort", "LoadBalancer"];
    let node_ports =
        |spec: &Map<String, Value>| ports(spec).map(|port| number(port, "nodePort")).collect::<BTreeSet<_>>();
    // Ports may come and go with the type, but none of the nodes may be new; 0 is none.
    if is_lost(spec, &OUTSIDE) && node_ports(spec).difference(&node_ports(old)).all(|port| *port == 0) {
        for port in spec.get_mut("ports").and_then(Value::as_array_mut).into_iter().flatten() {
            port.as_object_mut().map(|port| port.remove("nodePort"));
        }
    }
    let fields: [(&str, &[&str]); 4] = [
        ("externalTrafficPolicy", &OUTSIDE),
        ("healthCheckNodePort", &["LoadBalancer"]),
        ("allocateLoadBalancerNodePorts", &["LoadBalancer"]),
        ("loadBalancerClass", &["LoadBalancer"]),
    ];
    let is_reached = spec.get("externalIPs").and_then(Value::as_array).is_some_and(|addresses| !addresses.is_empty())
        && is(spec, &["ClusterIP"]);
    for (field, types) in fields {
        // What is reached by addresses from outside still has a policy for that.
        let is_used = field == "externalTrafficPolicy" && is_reached;
        if is_lost(spec, types) && !is_used && old.get(field) == spec.get(field) {
            spec.remove(field);
        }
    }
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
    let identity = |port: &Value| {
        let protocol = port.get("protocol").and_then(Value::as_str).unwrap_or_default();
        (port.get("port").and_then(Value::as_i64), protocol.to_owned())
    };
    let ports = old.get("ports").and_then(Value::as_array).into_iter().flatten();
    let mut known = HashMap::new();
    for (port, number) in ports.filter_map(|port| Some((port, port.get("nodePort")?))) {
        known.entry(identity(port)).or_insert(number);
    }
    for port in spec.get_mut("ports").and_then(Value::as_array_mut).into_iter().flatten() {
        let found = known.get(&identity(port)).map(|number| (*number).clone());
        if let (Value::Object(port), Some(number)) = (port, found) {
            port.entry("nodePort").or_insert(number);
        }
    }
}

fn assign_ports(call: &Call, is_new: bool, spec: &mut Map<String, Value>) -> Result<(), Failure> {
    if !needs_node_ports(spec) {
        return Ok(());
    }
    // In a new service, one port of several protocols is at one port of the nodes.
    let mut shared = HashMap::new();
    for port in ports(spec).filter(|port| is_new && number(port, "nodePort") != 0) {
        shared.entry(number(port, "port")).or_insert(number(port, "nodePort"));
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
        return Ok(());
    }
    let mut used = used_ports(call);
    for port in &mut open {
        let number = port.get("port").and_then(Value::as_i64).unwrap_or_default();
        let node_port = match shared.get(&number) {
            Some(node_port) => *node_port,
            None => port_number(call, &mut used)?,
        };
        if is_new {
            shared.insert(number, node_port);
        }
        port.insert("nodePort".to_owned(), node_port.into());
    }
    if wants_check {
        spec.insert("healthCheckNodePort".to_owned(), port_number(call, &mut used)?.into());
    }
    Ok(())
}

/// An address that no service has.
fn address(call: &Call) -> String {
    let (server, kind) = (&call.server, &call.kind);
    let services = server.storage.objects(kind);
    let used = services.iter().map(|service| service.field(kind, "spec.clusterIP"));
    let (first, count) = SERVICE_ADDRESSES;
    let shown = |offset: u32| std::net::Ipv4Addr::from(u32::from(first) + offset).to_string();
    let start = server.random.below(count);
    let likely = shown(start);
    // There are so many that the first one is nearly always free.
    if used.clone().all(|used| used != likely) {
        return likely;
    }
    let used: HashSet<&str> = used.collect();
    let mut candidates = (1..count).map(|i| shown((start + i) % count));
    candidates.find(|address| !used.contains(address.as_str())).unwrap_or(likely)
}

/// A port that no service has.
fn port_number(call: &Call, used: &mut BTreeSet<i64>) -> Result<i64, Failure> {
    let (first, count) = NODE_PORTS;
    let start = call.server.random.below(count);
    let mut candidates = (0..count).map(|i| i64::from(first + (start + i) % count));
    match candidates.find(|port| !used.contains(port)) {
        Some(port) => {
            used.insert(port);
            Ok(port)
        }
        None => Err(Failure::internal_error("failed to allocate a nodePort: range is full".to_owned())),
    }
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
