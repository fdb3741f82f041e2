//! Which changes does nobody want to see?
//!
//! A change of nothing but `metadata.managedFields` and `metadata.resourceVersion`, and the heartbeat of a Lease
//! (`spec.renewTime`). A cluster at rest makes several of these in a second.

use serde_json::Value;

use super::{Change, ChangeType, Resource};

/// The fields that every object has and that say nothing about it.
const ALWAYS: [&[&str]; 2] = [&["metadata", "managedFields"], &["metadata", "resourceVersion"]];

/// What else says nothing, for a Lease.
const OF_LEASES: &[&str] = &["spec", "renewTime"];

/// The change says nothing to a person. What cannot be decoded, or has no known state before, is not noise.
pub(super) fn is_noise(change: &Change) -> bool {
    if change.change != ChangeType::Modified {
        return false;
    }
    match (change.old(), change.object()) {
        (Some(Ok(old)), Ok(new)) => same_without(old, new, &paths(&change.resource)),
        _ => false,
    }
}

/// The paths whose changes are noise for a kind.
pub(super) fn paths(resource: &Resource) -> Vec<&'static [&'static str]> {
    let lease = resource.group == "coordination.k8s.io" && resource.kind == "Lease";
    ALWAYS.into_iter().chain(lease.then_some(OF_LEASES)).collect()
}

/// Both are the same, apart from what stands at the paths.
fn same_without(old: &Value, new: &Value, paths: &[&[&str]]) -> bool {
    if paths.is_empty() {
        return old == new;
    }
    if paths.iter().any(|path| path.is_empty()) {
        return true;
    }
    let (Value::Object(old), Value::Object(new)) = (old, new) else { return old == new };
    old.keys().chain(new.keys().filter(|name| !old.contains_key(*name))).all(|name| {
        let below: Vec<&[&str]> = paths.iter().filter(|path| path[0] == name).map(|path| &path[1..]).collect();
        let missing = Value::Null;
        same_without(old.get(name).unwrap_or(&missing), new.get(name).unwrap_or(&missing), &below)
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::samples;
    use super::*;

    fn noise(resource: Resource, old: Value, new: Value) -> bool {
        is_noise(&samples::modified(resource, old, new))
    }

    #[test]
    fn versions_and_managers_alone_are_noise() {
        let old = json!({"metadata": {"name": "a", "resourceVersion": "1"}, "spec": {"replicas": 1}});
        let touched =
            json!({"metadata": {"name": "a", "resourceVersion": "2", "managedFields": [{}]}, "spec": {"replicas": 1}});
        let scaled = json!({"metadata": {"name": "a", "resourceVersion": "2"}, "spec": {"replicas": 2}});
        assert!(noise(samples::deployments(), old.clone(), touched));
        assert!(!noise(samples::deployments(), old.clone(), scaled));
        assert!(!noise(samples::deployments(), old.clone(), json!({"metadata": 7})));
        assert!(!noise(samples::deployments(), old, json!([])));
    }

    #[test]
    fn a_heartbeat_is_noise_of_a_lease_only() {
        let at = |time: &str| json!({"metadata": {"name": "a", "resourceVersion": time}, "spec": {"holderIdentity": "x", "renewTime": time}});
        assert!(noise(samples::leases(), at("1"), at("2")));
        assert!(!noise(samples::deployments(), at("1"), at("2")));
        assert!(!noise(
            samples::leases(),
            at("1"),
            json!({"metadata": {"name": "a"}, "spec": {"holderIdentity": "y"}})
        ));
    }

    #[test]
    fn what_is_new_or_gone_or_unknown_before_is_shown() {
        let object = json!({"metadata": {"name": "a"}});
        let mut change = samples::modified(samples::pods(), object.clone(), object);
        assert!(is_noise(&change));
        change.change = ChangeType::Added;
        assert!(!is_noise(&change));
        change.change = ChangeType::Modified;
        change.old = None;
        assert!(!is_noise(&change));
    }
}
