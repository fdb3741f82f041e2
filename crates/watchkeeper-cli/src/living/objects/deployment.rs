//! Deployments.

use jiff::Timestamp;
use serde::Deserialize as _;
use serde_json::{Value, json};

use super::NAME_LABEL;
use crate::living::views::{Condition, Owner};
use crate::living::world::{App, Version};

/// The Deployment of an application.
pub(in crate::living) fn of_app(app: &App) -> Value {
    json!({
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {
            "name": app.name,
            "namespace": app.namespace,
            "labels": app.labels(),
        },
        "spec": {
            "replicas": app.replicas,
            "revisionHistoryLimit": 2,
            "progressDeadlineSeconds": 600,
            "selector": selector(app),
            "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": "25%", "maxUnavailable": "25%"}},
            "template": template(app, app.version),
        },
    })
}

/// Which pods belong to an application.
pub(in crate::living) fn selector(app: &App) -> Value {
    json!({"matchLabels": {NAME_LABEL: app.name}})
}

/// What the pods of a version look like.
pub(in crate::living) fn template(app: &App, version: Version) -> Value {
    let mut containers = vec![main_container(app, version)];
    if app.has_sidecar {
        containers.push(json!({
            "name": "proxy",
            "image": "mesh/proxy:1.27.0",
            "ports": [{"name": "mesh", "containerPort": 15090, "protocol": "TCP"}],
            "resources": {"requests": {"cpu": "10m", "memory": "40Mi"}, "limits": {"memory": "128Mi"}},
        }));
    }
    json!({
        "metadata": {
            "labels": app.labels(),
            "annotations": {"prometheus.io/scrape": "true", "prometheus.io/port": app.port.to_string()},
        },
        "spec": {
            "containers": containers,
            "volumes": volumes(app),
            "restartPolicy": "Always",
            "terminationGracePeriodSeconds": 30,
            "dnsPolicy": "ClusterFirst",
            "serviceAccountName": "default",
            "schedulerName": "default-scheduler",
            "securityContext": {"runAsNonRoot": true},
        },
    })
}

/// The Deployment, as the owner of its ReplicaSets.
pub(in crate::living) fn owner(name: &str, uid: &str) -> Owner {
    Owner {
        api_version: "apps/v1".to_owned(),
        kind: "Deployment".to_owned(),
        name: name.to_owned(),
        uid: uid.to_owned(),
        controller: true,
        block_owner_deletion: true,
    }
}

/// How many pods there are, of all ReplicaSets.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(in crate::living) struct Tally {
    pub(in crate::living) wanted: i64,
    pub(in crate::living) all: i64,
    pub(in crate::living) updated: i64,
    pub(in crate::living) ready: i64,
    pub(in crate::living) available: i64,
    /// With fewer it counts as unavailable.
    pub(in crate::living) least: i64,
}

impl Tally {
    /// All pods are new, and there.
    pub(in crate::living) fn is_complete(&self) -> bool {
        self.updated == self.wanted && self.all == self.wanted && self.available >= self.wanted
    }
}

/// The status. Of conditions that stay as they were, the times stay too.
pub(in crate::living) fn status(before: &Value, tally: Tally, generation: i64, newest: &str, now: Timestamp) -> Value {
    let (available, available_text) = match tally.available >= tally.least {
        true => (true, "Deployment has minimum availability."),
        false => (false, "Deployment does not have minimum availability."),
    };
    let available_reason = if available { "MinimumReplicasAvailable" } else { "MinimumReplicasUnavailable" };
    let (progress_reason, progress_text) = match tally.is_complete() {
        true => ("NewReplicaSetAvailable", format!("ReplicaSet \"{newest}\" has successfully progressed.")),
        false => ("ReplicaSetUpdated", format!("ReplicaSet \"{newest}\" is progressing.")),
    };
    json!({
        "replicas": tally.all,
        "updatedReplicas": tally.updated,
        "readyReplicas": tally.ready,
        "availableReplicas": tally.available,
        "unavailableReplicas": (tally.wanted - tally.available).max(0),
        "observedGeneration": generation,
        "conditions": [
            condition(before, "Available", available, available_reason, available_text, now),
            condition(before, "Progressing", true, progress_reason, &progress_text, now),
        ],
    })
}

fn condition(before: &Value, of: &str, holds: bool, reason: &str, message: &str, now: Timestamp) -> Condition {
    let status = if holds { "True" } else { "False" };
    let known = before.get("conditions").and_then(Value::as_array).into_iter().flatten();
    let known = known.filter_map(|condition| Condition::deserialize(condition).ok()).find(|known| known.r#type == of);
    let same = known.as_ref().filter(|known| known.status == status);
    let same_reason = same.filter(|known| known.reason == reason && known.message == message);
    Condition {
        r#type: of.to_owned(),
        status: status.to_owned(),
        last_transition_time: same.and_then(|known| known.last_transition_time).or(Some(now)),
        last_update_time: same_reason.and_then(|known| known.last_update_time).or(Some(now)),
        reason: reason.to_owned(),
        message: message.to_owned(),
        ..Condition::default()
    }
}

fn main_container(app: &App, version: Version) -> Value {
    let mut env = vec![
        json!({"name": "PORT", "value": app.port.to_string()}),
        json!({"name": "POD_NAME", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}),
        json!({"name": "LOG_LEVEL", "value": "info"}),
    ];
    if app.has_secret {
        let secret = json!({"secretKeyRef": {"name": app.secret_name(), "key": "password"}});
        env.push(json!({"name": "DATABASE_PASSWORD", "valueFrom": secret}));
    }
    let probe = |path: &str, delay: u32| {
        json!({
            "httpGet": {"path": path, "port": "http", "scheme": "HTTP"},
            "initialDelaySeconds": delay, "periodSeconds": 10, "timeoutSeconds": 1, "successThreshold": 1, "failureThreshold": 3,
        })
    };
    json!({
        "name": app.name,
        "image": app.image(version),
        "imagePullPolicy": "IfNotPresent",
        "ports": [{"name": "http", "containerPort": app.port, "protocol": "TCP"}],
        "env": env,
        "resources": {
            "requests": {"cpu": app.cpu, "memory": app.memory},
            "limits": {"memory": app.memory},
        },
        "readinessProbe": probe("/ready", 2),
        "livenessProbe": probe("/healthz", 10),
        "volumeMounts": mounts(app),
        "securityContext": {"allowPrivilegeEscalation": false, "capabilities": {"drop": ["ALL"]}},
        "terminationMessagePath": "/dev/termination-log",
        "terminationMessagePolicy": "File",
    })
}

fn volumes(app: &App) -> Vec<Value> {
    let mut volumes = vec![json!({"name": "tmp", "emptyDir": {}})];
    if app.has_config {
        volumes.push(json!({"name": "config", "configMap": {"name": app.config_name(), "defaultMode": 420}}));
    }
    volumes
}

fn mounts(app: &App) -> Vec<Value> {
    let mut mounts = vec![json!({"name": "tmp", "mountPath": "/tmp"})];
    if app.has_config {
        mounts.push(json!({"name": "config", "mountPath": "/etc/app", "readOnly": true}));
    }
    mounts
}
