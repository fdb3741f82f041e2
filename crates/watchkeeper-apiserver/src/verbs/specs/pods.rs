//! The specs of pods.

use std::collections::BTreeSet;

use serde_json::Value;

use super::{Causes, is_empty, list, text};
use crate::tables::quantity;
use crate::validation::{dns_label, label_key, label_value, quoted, subdomain};

const PORT: &str = "must be between 1 and 65535, inclusive";

/// What is wrong with the spec of a pod, or of a template of pods.
pub(super) fn check(spec: &Value, path: &str, causes: &mut Causes) {
    let mut volumes = BTreeSet::new();
    for (i, volume) in list(spec, "volumes").iter().enumerate() {
        name(volume, &format!("{path}.volumes[{i}]"), &mut volumes, causes);
    }
    if is_empty(spec, "containers") {
        causes.required(format!("{path}.containers"), "");
    }
    let mut names = BTreeSet::new();
    for part in ["containers", "initContainers"] {
        for (i, container) in list(spec, part).iter().enumerate() {
            let path = format!("{path}.{part}[{i}]");
            name(container, &path, &mut names, causes);
            check_container(container, &path, &volumes, causes);
        }
    }
    let node = text(spec, "nodeName");
    if !node.is_empty() {
        subdomain(node).into_iter().for_each(|fault| causes.invalid(format!("{path}.nodeName"), quoted(node), fault));
    }
    for (key, value) in spec.get("nodeSelector").and_then(Value::as_object).into_iter().flatten() {
        let field = format!("{path}.nodeSelector");
        let value = value.as_str().unwrap_or_default();
        label_key(key).into_iter().for_each(|fault| causes.invalid(&field, quoted(key), fault));
        label_value(value).into_iter().for_each(|fault| causes.invalid(&field, quoted(value), fault));
    }
    causes.one_of(spec, "restartPolicy", path, &["Always", "OnFailure", "Never"]);
    causes.one_of(spec, "dnsPolicy", path, &["ClusterFirstWithHostNet", "ClusterFirst", "Default", "None"]);
}

/// A number of a port; 0 is none.
pub(super) fn port(value: Option<&Value>, path: &str, causes: &mut Causes) {
    if let Some(number) = value.and_then(Value::as_i64).filter(|number| !(1..=65_535).contains(number)) {
        causes.invalid(path, number, PORT);
    }
}

fn check_container<'a>(container: &'a Value, path: &str, volumes: &BTreeSet<&'a str>, causes: &mut Causes) {
    match text(container, "image") {
        "" => causes.required(format!("{path}.image"), ""),
        image if image.trim() != image => {
            let text = "must not have leading or trailing whitespace";
            causes.invalid(format!("{path}.image"), quoted(image), text);
        }
        _ => {}
    }
    causes.one_of(container, "imagePullPolicy", path, &["Always", "IfNotPresent", "Never"]);
    for (i, port) in list(container, "ports").iter().enumerate() {
        let field = format!("{path}.ports[{i}].containerPort");
        match port.get("containerPort").and_then(Value::as_i64).unwrap_or_default() {
            0 => causes.required(&field, ""),
            _ => self::port(port.get("containerPort"), &field, causes),
        }
        causes.one_of(port, "protocol", &format!("{path}.ports[{i}]"), &["SCTP", "TCP", "UDP"]);
    }
    for (i, variable) in list(container, "env").iter().enumerate() {
        if text(variable, "name").is_empty() {
            causes.required(format!("{path}.env[{i}].name"), "");
        }
    }
    for probe in ["livenessProbe", "readinessProbe", "startupProbe"] {
        let handlers = ["exec", "httpGet", "tcpSocket", "grpc"];
        let is_probe = container.get(probe).is_some_and(|probe| !probe.is_null());
        if is_probe && handlers.iter().all(|handler| container[probe].get(handler).is_none_or(Value::is_null)) {
            causes.required(format!("{path}.{probe}"), "must specify a handler type");
        }
    }
    amounts(container.get("resources").unwrap_or(&Value::Null), &format!("{path}.resources"), causes);
    for (i, mount) in list(container, "volumeMounts").iter().enumerate() {
        let field = format!("{path}.volumeMounts[{i}]");
        match text(mount, "name") {
            "" => causes.required(format!("{field}.name"), ""),
            name if !volumes.contains(name) => causes.not_found(format!("{field}.name"), name),
            _ => {}
        }
        if text(mount, "mountPath").is_empty() {
            causes.required(format!("{field}.mountPath"), "");
        }
    }
}

/// Nobody may ask for more than they may have.
fn amounts(resources: &Value, path: &str, causes: &mut Causes) {
    let limits = resources.get("limits").unwrap_or(&Value::Null);
    for (resource, request) in resources.get("requests").and_then(Value::as_object).into_iter().flatten() {
        let (request, limit) = (quantity::shown(Some(request)), limits.get(resource).map(|l| quantity::shown(Some(l))));
        let (Some(asked), Some(limit)) = (quantity::amount(&request), limit) else { continue };
        if quantity::amount(&limit).is_some_and(|limit| asked > limit) {
            let text = format!("must be less than or equal to {resource} limit of {limit}");
            causes.invalid(format!("{path}.requests"), quoted(&request), text);
        }
    }
}

/// Something has a name of its own, that can be part of a host's.
fn name<'a>(entry: &'a Value, path: &str, known: &mut BTreeSet<&'a str>, causes: &mut Causes) {
    let (name, field) = (text(entry, "name"), format!("{path}.name"));
    match name {
        "" => causes.required(&field, ""),
        name => {
            let faults = dns_label(name);
            if faults.is_empty() && !known.insert(name) {
                causes.duplicate(&field, name);
            }
            faults.into_iter().for_each(|fault| causes.invalid(&field, quoted(name), fault));
        }
    }
}
