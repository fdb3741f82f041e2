//! Jobs: work that comes to an end.

use jiff::Timestamp;
use serde_json::{Value, json};

use super::NAME_LABEL;
use crate::living::views::Owner;

/// A job that is yet to be done.
pub(in crate::living) fn new(namespace: &str, name: &str, image: &str) -> Value {
    json!({
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": name, "namespace": namespace, "labels": {NAME_LABEL: name}},
        "spec": {
            "completions": 1,
            "parallelism": 1,
            "backoffLimit": 6,
            "completionMode": "NonIndexed",
            "suspend": false,
            "selector": {"matchLabels": {"batch.kubernetes.io/job-name": name}},
            "template": {
                "metadata": {"labels": {NAME_LABEL: name, "batch.kubernetes.io/job-name": name}},
                "spec": {
                    "restartPolicy": "Never",
                    "terminationGracePeriodSeconds": 30,
                    "containers": [{
                        "name": "job",
                        "image": image,
                        "args": ["--once"],
                        "resources": {"requests": {"cpu": "100m", "memory": "128Mi"}},
                    }],
                },
            },
        },
    })
}

/// The job, as the owner of its pod.
pub(in crate::living) fn owner(name: &str, uid: &str) -> Owner {
    Owner {
        api_version: "batch/v1".to_owned(),
        kind: "Job".to_owned(),
        name: name.to_owned(),
        uid: uid.to_owned(),
        controller: true,
        block_owner_deletion: true,
    }
}

/// The status of a job that is being done.
pub(in crate::living) fn active(since: Timestamp, ready: bool) -> Value {
    json!({"active": 1, "ready": i32::from(ready), "startTime": since})
}

/// The status of a job that is done.
pub(in crate::living) fn complete(since: Timestamp, until: Timestamp) -> Value {
    json!({
        "active": 0,
        "ready": 0,
        "succeeded": 1,
        "startTime": since,
        "completionTime": until,
        "conditions": [{
            "type": "Complete", "status": "True", "reason": "CompletionsReached",
            "message": "Reached expected number of succeeded pods",
            "lastProbeTime": until, "lastTransitionTime": until,
        }],
    })
}
