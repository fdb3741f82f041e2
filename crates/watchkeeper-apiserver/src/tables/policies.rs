//! Who may do what, and how much of it: roles, certificates, admission, quotas, priorities.

use jiff::SignedDuration;
use serde_json::Value;

use super::subject::Subject;
use super::{NONE, UNSET, age, labels, quantity};

/// `ClusterRole/admin`
pub(super) fn role(binding: Subject<'_>) -> Value {
    format!("{}/{}", binding.text("/roleRef/kind"), binding.text("/roleRef/name")).into()
}

pub(super) fn users(binding: Subject<'_>) -> Value {
    subjects(binding, "User", |subject| subject.text("/name").to_owned())
}

pub(super) fn groups(binding: Subject<'_>) -> Value {
    subjects(binding, "Group", |subject| subject.text("/name").to_owned())
}

pub(super) fn service_accounts(binding: Subject<'_>) -> Value {
    subjects(binding, "ServiceAccount", |subject| format!("{}/{}", subject.text("/namespace"), subject.text("/name")))
}

/// For how long a certificate is asked for.
pub(super) fn requested_duration(request: Subject<'_>) -> Value {
    match request.given_integer("/spec/expirationSeconds") {
        Some(seconds) => age::human(SignedDuration::from_secs(seconds)).into(),
        None => NONE.into(),
    }
}

/// `Approved,Issued`, ...: how far a request for a certificate has come.
pub(super) fn certificate_state(request: Subject<'_>) -> Value {
    let has = |kind: &str| request.condition("/status/conditions", kind).is_some();
    let mut states = vec![match (has("Denied"), has("Approved")) {
        (true, _) => "Denied",
        (_, true) => "Approved",
        _ => "Pending",
    }];
    if has("Failed") {
        states.push("Failed");
    }
    if !request.text("/status/certificate").is_empty() {
        states.push("Issued");
    }
    states.join(",").into()
}

/// `v1/ConfigMap`: what a policy takes its parameters from.
pub(super) fn parameter_kind(policy: Subject<'_>) -> Value {
    match policy.part("/spec/paramKind") {
        Some(kind) => format!("{}/{}", kind.text("/apiVersion"), kind.text("/kind")).into(),
        None => UNSET.into(),
    }
}

/// `namespace/name`, or a selector.
pub(super) fn parameter(binding: Subject<'_>) -> Value {
    let Some(parameter) = binding.part("/spec/paramRef") else { return UNSET.into() };
    let (namespace, name) = (parameter.text("/namespace"), parameter.text("/name"));
    match (namespace, name, parameter.part("/selector")) {
        ("", name, _) if !name.is_empty() => format!("*/{name}").into(),
        (_, name, _) if !name.is_empty() => format!("{namespace}/{name}").into(),
        (_, _, Some(selector)) => labels::debugged(selector).into(),
        _ => UNSET.into(),
    }
}

pub(super) fn quota_requests(quota: Subject<'_>) -> Value {
    quotas(quota, false)
}

pub(super) fn quota_limits(quota: Subject<'_>) -> Value {
    quotas(quota, true)
}

/// Whether a flow schema's priority level is missing.
pub(super) fn is_dangling(schema: Subject<'_>) -> Value {
    schema.condition("/status/conditions", "Dangling").map_or("?", |condition| condition.text("/status")).into()
}

/// How requests of a flow schema are told apart.
pub(super) fn distinguisher(schema: Subject<'_>) -> Value {
    schema.part("/spec/distinguisherMethod").map_or(NONE, |method| method.text("/type")).into()
}

/// `Local`, or the service behind an API.
pub(super) fn api_service(service: Subject<'_>) -> Value {
    match service.part("/spec/service") {
        Some(target) => format!("{}/{}", target.text("/namespace"), target.text("/name")).into(),
        None => "Local".into(),
    }
}

/// `True`, `False (MissingEndpoints)`, ...
pub(super) fn is_available(service: Subject<'_>) -> Value {
    let Some(condition) = service.condition("/status/conditions", "Available") else { return "Unknown".into() };
    match (condition.text("/status"), condition.text("/reason")) {
        ("True", _) => "True".into(),
        (status, "") => status.into(),
        (status, reason) => format!("{status} ({reason})").into(),
    }
}

pub(super) fn component_status(component: Subject<'_>) -> Value {
    match component.condition("/conditions", "Healthy").map(|condition| condition.text("/status")) {
        Some("True") => "Healthy".into(),
        Some(_) => "Unhealthy".into(),
        None => "Unknown".into(),
    }
}

pub(super) fn component_message(component: Subject<'_>) -> Value {
    component.condition("/conditions", "Healthy").map_or("", |condition| condition.text("/message")).into()
}

pub(super) fn component_error(component: Subject<'_>) -> Value {
    component.condition("/conditions", "Healthy").map_or("", |condition| condition.text("/error")).into()
}

/// `allocated,reserved`, ...: how far a claim on devices has come.
pub(super) fn device_claim_state(claim: Subject<'_>) -> Value {
    let allocated = claim.at("/status/allocation").is_some();
    let reserved = allocated && claim.count("/status/reservedFor") > 0;
    let states = [
        (claim.is_deleting(), "deleted"),
        (!allocated && !claim.is_deleting(), "pending"),
        (allocated, "allocated"),
        (reserved, "reserved"),
    ];
    states.iter().filter(|(holds, _)| *holds).map(|(_, state)| *state).collect::<Vec<_>>().join(",").into()
}

/// What is used of each resource, and how much may be: either of the limits, or of all others.
fn quotas(quota: Subject<'_>, limits: bool) -> Value {
    let used = quota.map("/status/used");
    let hard = quota.map("/status/hard").into_iter().flatten();
    let mut quotas: Vec<(&String, &Value)> =
        hard.filter(|(resource, _)| resource.starts_with("limits.") == limits).collect();
    quotas.sort_unstable_by_key(|(resource, _)| *resource);
    let shown = quotas.into_iter().map(|(resource, hard)| {
        let used = quantity::shown(used.and_then(|used| used.get(resource)));
        format!("{resource}: {used}/{}", quantity::shown(Some(hard)))
    });
    shown.collect::<Vec<_>>().join(", ").into()
}

fn subjects(binding: Subject<'_>, kind: &str, shown: impl Fn(Subject<'_>) -> String) -> Value {
    let subjects = binding.list("/subjects").filter(|subject| subject.text("/kind") == kind);
    subjects.map(shown).collect::<Vec<_>>().join(", ").into()
}
