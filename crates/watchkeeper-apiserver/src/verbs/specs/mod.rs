//! What may not be in a spec: of all that a kube-apiserver checks, what people run into.
//!
//! Counterpart: `validation.go` of each group in `k8s.io/kubernetes/pkg/apis`. The texts are its own. What does not change
//! in an update is not looked at: objects that were put into the storage need not be as a kube-apiserver wants them.

mod fixed;
mod pod_updates;
mod pods;
mod secrets;
mod services;
mod volumes;
mod workloads;

use serde_json::{Map, Value};

use crate::defaults::CAUSES;
use crate::failure::Cause;
use crate::kinds::Kind;
use crate::storage::Document;
use crate::validation::quoted;

/// What is checked of a kind.
type Check = fn(&Value, &mut Causes);

/// The kinds whose objects are looked at, and how.
const CHECKS: &[(&str, &str, Check)] = &[
    ("", "configmaps", data),
    ("", "events", event),
    ("", "persistentvolumeclaims", |object, causes| claim(spec(object), causes)),
    ("", "persistentvolumes", |object, causes| volumes::check(spec(object), causes)),
    ("", "pods", |object, causes| pods::check(spec(object), "spec", causes)),
    ("", "secrets", secrets::check),
    ("", "services", |object, causes| services::check(spec(object), causes)),
    ("apps", "daemonsets", |object, causes| workloads::controller("daemonset", spec(object), causes)),
    ("apps", "deployments", |object, causes| workloads::controller("deployment", spec(object), causes)),
    ("apps", "replicasets", |object, causes| workloads::controller("replicaset", spec(object), causes)),
    ("apps", "statefulsets", |object, causes| workloads::controller("statefulset", spec(object), causes)),
    ("autoscaling", "horizontalpodautoscalers", |object, causes| autoscaler(spec(object), causes)),
    ("batch", "cronjobs", |object, causes| workloads::cron_job(spec(object), causes)),
    ("batch", "jobs", |object, causes| workloads::job(spec(object), "spec", causes)),
    ("networking.k8s.io", "ingresses", |object, causes| ingress(spec(object), causes)),
    ("rbac.authorization.k8s.io", "clusterrolebindings", binding),
    ("rbac.authorization.k8s.io", "clusterroles", rules),
    ("rbac.authorization.k8s.io", "rolebindings", binding),
    ("rbac.authorization.k8s.io", "roles", rules),
];

/// Why the spec of an object may not be, or may not become what it is.
pub(super) fn faults(kind: &Kind, old: Option<&Document>, next: &Document) -> Vec<Cause> {
    let mut causes = Causes::default();
    let check = CHECKS.iter().find(|(group, plural, _)| *group == kind.group && *plural == kind.plural);
    // Of a claim hardly anything may change.
    let is_due = match old {
        None => true,
        Some(old) => kind.plural != "persistentvolumeclaims" && !is_same(old, next),
    };
    // What may not change comes first where the rest follows from it.
    let is_first = kind.group.is_empty() && kind.plural == "secrets";
    let fixed = |causes: &mut Causes| old.into_iter().for_each(|old| fixed::check(kind, old, next, causes));
    if is_first {
        fixed(&mut causes);
    }
    if let Some((_, _, check)) = check.filter(|_| is_due) {
        check(next.as_value(), &mut causes);
    }
    if !is_first {
        fixed(&mut causes);
    }
    causes.0
}

/// Why the status of an object may not be.
pub(super) fn status_faults(kind: &Kind, next: &Document) -> Vec<Cause> {
    let mut causes = Causes::default();
    if (kind.group.as_str(), kind.plural.as_str()) == ("apps", "deployments") {
        workloads::deployment_status(next.map().get("status").unwrap_or(&Value::Null), &mut causes);
    }
    causes.0
}

/// Whether nothing but metadata and status differs.
pub(super) fn is_same(one: &Document, other: &Document) -> bool {
    substance(one) == substance(other)
}

/// All but metadata and status.
fn substance(document: &Document) -> Vec<(&String, &Value)> {
    document.map().iter().filter(|(key, _)| !matches!(key.as_str(), "metadata" | "status")).collect()
}

/// What is wrong with an object, so far.
#[derive(Debug, Default)]
struct Causes(Vec<Cause>);

impl Causes {
    fn push(&mut self, cause: Cause) {
        if self.0.len() < CAUSES {
            self.0.push(cause);
        }
    }

    fn required(&mut self, field: impl AsRef<str>, text: &str) {
        self.push(Cause::required(field.as_ref(), text));
    }

    fn invalid(&mut self, field: impl AsRef<str>, value: impl std::fmt::Display, text: impl std::fmt::Display) {
        self.push(Cause::invalid(field.as_ref(), value, text));
    }

    fn forbidden(&mut self, field: impl AsRef<str>, text: &str) {
        self.push(Cause::forbidden(field.as_ref(), text));
    }

    fn duplicate(&mut self, field: impl AsRef<str>, value: &str) {
        self.push(Cause::duplicate(field.as_ref(), quoted(value)));
    }

    fn not_found(&mut self, field: impl AsRef<str>, value: &str) {
        self.push(Cause::not_found(field.as_ref(), quoted(value)));
    }

    /// Refuses a text that is none of those that there are. One that is not there has been filled in, or is not asked for.
    fn one_of(&mut self, map: &Value, key: &str, path: &str, supported: &[&str]) {
        if let Some(value) = map.get(key).and_then(Value::as_str).filter(|value| !supported.contains(value)) {
            self.push(Cause::unsupported(&format!("{path}.{key}"), quoted(value), supported));
        }
    }
}

fn spec(object: &Value) -> &Value {
    object.get("spec").unwrap_or(&Value::Null)
}

fn text<'a>(map: &'a Value, key: &str) -> &'a str {
    map.get(key).and_then(Value::as_str).unwrap_or_default()
}

fn list<'a>(map: &'a Value, key: &str) -> &'a [Value] {
    map.get(key).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default()
}

fn is_empty(map: &Value, key: &str) -> bool {
    match map.get(key) {
        None | Some(Value::Null) => true,
        Some(Value::String(text)) => text.is_empty(),
        Some(Value::Array(values)) => values.is_empty(),
        Some(Value::Object(values)) => values.is_empty(),
        Some(_) => false,
    }
}

fn claim(spec: &Value, causes: &mut Causes) {
    if is_empty(spec, "accessModes") {
        causes.required("spec.accessModes", "at least 1 access mode is required");
    }
    if spec.pointer("/resources/requests/storage").is_none() {
        causes.required("spec.resources[storage]", "");
    }
}

/// The keys of config maps and secrets become the names of files.
fn data(object: &Value, causes: &mut Causes) {
    const FORM: &str = "a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. 'key.name',  or \
                        'KEY_NAME',  or 'key-name', regex used for validation is '[-._a-zA-Z0-9]+')";
    let empty = Map::new();
    let part = |name: &str| object.get(name).and_then(Value::as_object).unwrap_or(&empty);
    for name in ["data", "binaryData"] {
        for key in part(name).keys() {
            let field = format!("{name}[{key}]");
            let is_valid = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.');
            if key.is_empty() || !key.bytes().all(is_valid) {
                causes.invalid(&field, quoted(key), FORM);
            }
            match key.as_str() {
                "." | ".." => causes.invalid(&field, quoted(key), format!("must not be '{key}'")),
                key if key.starts_with("..") => causes.invalid(&field, quoted(key), "must not start with '..'"),
                _ => {}
            }
            if name == "data" && part("binaryData").contains_key(key) {
                causes.invalid(&field, quoted(key), "duplicate of key present in binaryData");
            }
        }
    }
}

/// An event is where that is which it is about; what is in no namespace has its events in the default one.
fn event(object: &Value, causes: &mut Causes) {
    let about = object.pointer("/involvedObject/namespace").and_then(Value::as_str).unwrap_or_default();
    let namespace = object.pointer("/metadata/namespace").and_then(Value::as_str).unwrap_or_default();
    let fits = match about {
        "" => matches!(namespace, "" | "default"),
        about => about == namespace,
    };
    if !fits {
        causes.invalid("involvedObject.namespace", quoted(about), "does not match event.namespace");
    }
}

fn autoscaler(spec: &Value, causes: &mut Causes) {
    let number = |key: &str| spec.get(key).and_then(Value::as_i64).unwrap_or_default();
    if number("maxReplicas") < 1 {
        causes.required("spec.maxReplicas", "must be set and greater than 0");
    }
    if number("maxReplicas") < number("minReplicas") {
        let text = "must be greater than or equal to `minReplicas`";
        causes.invalid("spec.maxReplicas", number("maxReplicas"), text);
    }
    let target = spec.get("scaleTargetRef").unwrap_or(&Value::Null);
    for field in ["kind", "name"] {
        if text(target, field).is_empty() {
            causes.required(format!("spec.scaleTargetRef.{field}"), "");
        }
    }
    if text(target, "apiVersion").is_empty() {
        causes.invalid("spec.scaleTargetRef.apiVersion", quoted(""), "apiVersion must specify API group");
    }
}

fn ingress(spec: &Value, causes: &mut Causes) {
    if is_empty(spec, "rules") && spec.get("defaultBackend").is_none() {
        causes.invalid("spec", "null", "either `defaultBackend` or `rules` must be specified");
    }
}

fn rules(object: &Value, causes: &mut Causes) {
    for (i, rule) in list(object, "rules").iter().enumerate() {
        if is_empty(rule, "verbs") {
            causes.required(format!("rules[{i}].verbs"), "verbs must contain at least one value");
        }
        if is_empty(rule, "nonResourceURLs") {
            if is_empty(rule, "apiGroups") {
                causes.required(format!("rules[{i}].apiGroups"), "resource rules must supply at least one api group");
            }
            if is_empty(rule, "resources") {
                causes.required(format!("rules[{i}].resources"), "resource rules must supply at least one resource");
            }
        }
    }
}

fn binding(object: &Value, causes: &mut Causes) {
    let role = object.get("roleRef").unwrap_or(&Value::Null);
    if !matches!(text(role, "kind"), "Role" | "ClusterRole") {
        let cause = Cause::unsupported("roleRef.kind", quoted(text(role, "kind")), &["Role", "ClusterRole"]);
        causes.push(cause);
    }
    if text(role, "name").is_empty() {
        causes.required("roleRef.name", "");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_documentation_names_the_kinds_that_are_not_checked() {
        let kinds = crate::kinds::Registry::new().all();
        let is_checked = |group: &str, plural: &str| CHECKS.iter().any(|(g, p, _)| *g == group && *p == plural);
        for (group, plural, _) in CHECKS {
            assert!(kinds.iter().any(|kind| kind.group == *group && kind.plural == *plural), "no kind {plural}");
        }
        // Definitions of custom kinds are looked at elsewhere.
        let unchecked = kinds
            .iter()
            .filter(|kind| kind.storage_version().allows("list") && kind.plural != "customresourcedefinitions");
        let mut unchecked: Vec<String> =
            unchecked.filter(|kind| !is_checked(&kind.group, &kind.plural)).map(|kind| kind.resource()).collect();
        unchecked.sort_unstable();
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/apiserver.md");
        let text = std::fs::read_to_string(path).expect("the documentation");
        let (_, listed) = text.split_once("<!-- unchecked kinds -->").expect("the list");
        let (listed, _) = listed.split_once("<!-- end -->").expect("its end");
        let listed: Vec<&str> = listed.split([',', '\n']).map(str::trim).filter(|kind| !kind.is_empty()).collect();
        assert_eq!(listed, unchecked, "{}", unchecked.join(", "));
    }
}
