//! ReplicaSets, and the hash of a template.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::{HASH_LABEL, hash, set};
use crate::living::views::Owner;

/// In which revision of its Deployment it was the newest.
pub(in crate::living) const REVISION: &str = "deployment.kubernetes.io/revision";

/// The ReplicaSet of a Deployment for a template.
pub(in crate::living) fn of_deployment(
    owner: &Owner,
    namespace: &str,
    selector: &Value,
    template: &Value,
    replicas: i64,
    revision: u64,
) -> Value {
    let hash = template_hash(template);
    let mut template = template.clone();
    set(&mut template, &["metadata", "labels", HASH_LABEL], hash.as_str());
    let labels = template.pointer("/metadata/labels").cloned().unwrap_or_default();
    let mut selector = selector.clone();
    set(&mut selector, &["matchLabels", HASH_LABEL], hash.as_str());
    json!({
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "metadata": {
            "name": format!("{}-{hash}", owner.name),
            "namespace": namespace,
            "labels": labels,
            "annotations": {REVISION: revision.to_string()},
            "ownerReferences": [owner],
        },
        "spec": {"replicas": replicas, "selector": selector, "template": template},
    })
}

/// The ReplicaSet, as the owner of its pods.
pub(in crate::living) fn owner(name: &str, uid: &str) -> Owner {
    Owner {
        api_version: "apps/v1".to_owned(),
        kind: "ReplicaSet".to_owned(),
        name: name.to_owned(),
        uid: uid.to_owned(),
        controller: true,
        block_owner_deletion: true,
    }
}

/// What stands for a template in names and labels. The order of its fields does not matter.
pub(in crate::living) fn template_hash(template: &Value) -> String {
    const LETTERS: &[u8] = b"bcdfghjklmnpqrstvwxz2456789";
    let mut text = String::new();
    canonical(template, &mut text);
    let mut left = hash(&text);
    let letters = (0..10).map(|_| {
        let letter = LETTERS[(left % LETTERS.len() as u64) as usize];
        left /= LETTERS.len() as u64;
        char::from(letter)
    });
    letters.collect()
}

/// The status, given how many pods there are and how many of them are ready.
pub(in crate::living) fn status(all: usize, ready: usize, generation: i64, problem: Option<&str>) -> Value {
    let mut status = json!({
        "replicas": all,
        "fullyLabeledReplicas": all,
        "readyReplicas": ready,
        "availableReplicas": ready,
        "observedGeneration": generation,
    });
    let failure =
        |message| json!({"type": "ReplicaFailure", "status": "True", "reason": "FailedCreate", "message": message});
    status["conditions"] = problem.map(failure).into_iter().collect();
    status
}

fn canonical(value: &Value, out: &mut String) {
    match value {
        Value::Object(fields) => {
            out.push('{');
            // Sorted, whichever kind of map it is.
            for (key, value) in fields.iter().collect::<BTreeMap<_, _>>() {
                out.push_str(key);
                out.push(':');
                canonical(value, out);
                out.push(',');
            }
            out.push('}');
        }
        Value::Array(items) => {
            out.push('[');
            items.iter().for_each(|item| {
                canonical(item, out);
                out.push(',');
            });
            out.push(']');
        }
        other => out.push_str(&other.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_template_has_one_hash_whatever_the_order_of_its_fields() {
        let read = |text: &str| serde_json::from_str::<Value>(text).expect("JSON");
        let one = template_hash(&read(r#"{"spec": {"a": 1, "b": [1, "x"]}, "metadata": {}}"#));
        let same = template_hash(&read(r#"{"metadata": {}, "spec": {"b": [1, "x"], "a": 1}}"#));
        let other = template_hash(&read(r#"{"metadata": {}, "spec": {"b": ["x", 1], "a": 1}}"#));
        assert_eq!((one.len(), &one), (10, &same));
        assert_ne!(one, other);
    }
}
