//! Services, endpoints, ingresses, addresses.

use std::collections::BTreeSet;

use serde_json::Value;

use super::cells::shortened;
use super::subject::Subject;
use super::{NONE, UNSET};
use crate::kinds::qualified;

/// How many addresses, ports and hosts are shown.
const MOST: usize = 3;

/// The first cluster address. The older field is enough.
pub(super) fn cluster_ip(service: Subject<'_>) -> Value {
    match service.first_text(&["/spec/clusterIPs/0", "/spec/clusterIP"]) {
        "" => NONE.into(),
        ip => ip.into(),
    }
}

/// Where a service is reached from outside.
pub(super) fn external_ip(service: Subject<'_>) -> Value {
    let given = service.texts("/spec/externalIPs");
    match service.text("/spec/type") {
        "ClusterIP" | "NodePort" if given.is_empty() => NONE.into(),
        "ClusterIP" | "NodePort" => given.join(",").into(),
        "LoadBalancer" => {
            let balancers = balancers(service);
            let all: Vec<&str> = balancers.iter().copied().chain(given).collect();
            if all.is_empty() { "<pending>".into() } else { all.join(",").into() }
        }
        "ExternalName" => service.text("/spec/externalName").into(),
        _ => "<unknown>".into(),
    }
}

/// `80:30080/TCP,...`
pub(super) fn service_ports(service: Subject<'_>) -> Value {
    let ports: Vec<String> = service
        .list("/spec/ports")
        .map(|port| {
            let protocol = port.first_text(&["/protocol"]);
            let protocol = if protocol.is_empty() { "TCP" } else { protocol };
            match (port.integer("/port"), port.integer("/nodePort")) {
                (number, node) if node > 0 => format!("{number}:{node}/{protocol}"),
                (number, _) => format!("{number}/{protocol}"),
            }
        })
        .collect();
    if ports.is_empty() { NONE.into() } else { ports.join(",").into() }
}

/// The addresses of `Endpoints`, with each of their ports.
pub(super) fn endpoints(endpoints: Subject<'_>) -> Value {
    if endpoints.count("/subsets") == 0 {
        return NONE.into();
    }
    let (mut shown, mut count) = (Vec::new(), 0);
    for subset in endpoints.list("/subsets") {
        let addresses = || subset.list("/addresses").map(|address| address.text("/ip"));
        // A service without a head may have no ports.
        if subset.count("/ports") == 0 {
            count += addresses().len();
            shown.extend(addresses().take(MOST).map(str::to_owned));
        }
        for port in subset.list("/ports").map(|port| port.integer("/port")) {
            count += addresses().len();
            shown.extend(addresses().take(MOST).map(|ip| host_and_port(ip, port)));
        }
        shown.truncate(MOST);
    }
    shortened(&shown, MOST, count).into()
}

/// The ports of an `EndpointSlice`.
pub(super) fn slice_ports(slice: Subject<'_>) -> Value {
    let ports = slice.list("/ports");
    let count = ports.len();
    let shown: Vec<String> = ports
        .take(MOST)
        .map(|port| match (port.given_integer("/port"), port.given("/name")) {
            (Some(number), _) => number.to_string(),
            // Ports without a name have an empty one.
            (None, name) => name.unwrap_or_default().to_owned(),
        })
        .collect();
    or_unset(shortened(&shown, MOST, count))
}

/// The addresses of an `EndpointSlice`.
pub(super) fn slice_endpoints(slice: Subject<'_>) -> Value {
    let count = slice.list("/endpoints").map(|endpoint| endpoint.count("/addresses")).sum();
    let addresses = slice.list("/endpoints").flat_map(|endpoint| endpoint.list("/addresses"));
    let shown: Vec<String> = addresses.take(MOST).map(|address| address.text("").to_owned()).collect();
    or_unset(shortened(&shown, MOST, count))
}

/// The hosts of an ingress; `*` without any.
pub(super) fn hosts(ingress: Subject<'_>) -> Value {
    let count = ingress.count("/spec/rules");
    let mut hosts: Vec<&str> = Vec::new();
    let mut more = false;
    for rule in ingress.list("/spec/rules") {
        more |= hosts.len() == MOST;
        match rule.text("/host") {
            host if !more && !host.is_empty() => hosts.push(host),
            _ => {}
        }
    }
    match (hosts.is_empty(), more) {
        (true, _) => "*".into(),
        (_, true) => format!("{} + {} more...", hosts.join(","), count - MOST).into(),
        _ => hosts.join(",").into(),
    }
}

/// The addresses of what stands before an ingress.
pub(super) fn ingress_address(ingress: Subject<'_>) -> Value {
    balancers(ingress).into_iter().collect::<Vec<_>>().join(",").into()
}

pub(super) fn ingress_ports(ingress: Subject<'_>) -> Value {
    if ingress.count("/spec/tls") == 0 { "80" } else { "80, 443" }.into()
}

/// The name, and whether it is the default.
pub(super) fn ingress_class_name(class: Subject<'_>) -> Value {
    let is_default = class.annotation("ingressclass.kubernetes.io/is-default-class") == Some("true");
    format!("{}{}", class.text("/metadata/name"), if is_default { " (default)" } else { "" }).into()
}

/// `Kind.group/name`
pub(super) fn ingress_class_parameters(class: Subject<'_>) -> Value {
    let Some(parameters) = class.part("/spec/parameters") else { return NONE.into() };
    let group = parameters.given("/apiGroup").map(|group| format!(".{group}")).unwrap_or_default();
    format!("{}{group}/{}", parameters.text("/kind"), parameters.text("/name")).into()
}

/// `services/default/kubernetes`: what an address belongs to.
pub(super) fn parent(address: Subject<'_>) -> Value {
    let Some(parent) = address.part("/spec/parentRef") else { return NONE.into() };
    let resource = qualified(parent.text("/resource"), parent.text("/group")).to_lowercase();
    match parent.text("/namespace") {
        "" => format!("{resource}/{}", parent.text("/name")),
        namespace => format!("{resource}/{namespace}/{}", parent.text("/name")),
    }
    .into()
}

/// The addresses or names of load balancers, each once and sorted.
fn balancers<'a>(object: Subject<'a>) -> BTreeSet<&'a str> {
    let points = object.list("/status/loadBalancer/ingress");
    points.map(|point| point.first_text(&["/ip", "/hostname"])).filter(|address| !address.is_empty()).collect()
}

fn host_and_port(host: &str, port: i64) -> String {
    if host.contains(':') { format!("[{host}]:{port}") } else { format!("{host}:{port}") }
}

fn or_unset(text: String) -> Value {
    if text.is_empty() { UNSET.into() } else { text.into() }
}
