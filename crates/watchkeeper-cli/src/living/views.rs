//! What of the objects the controllers look at. Everything else stays undecoded.

use std::collections::BTreeMap;

use jiff::Timestamp;
use k8s_openapi::api::apps::v1::{Deployment, ReplicaSet};
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::{ConfigMap, Node, Pod, Service};
use k8s_openapi::api::discovery::v1::EndpointSlice;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use watchkeeper::view_of;

use super::objects::pod_status::PodStatus;

view_of!(DeploymentView: Deployment);
view_of!(ReplicaSetView: ReplicaSet);
view_of!(PodView: Pod);
view_of!(NodeView: Node);
view_of!(ServiceView: Service);
view_of!(SliceView: EndpointSlice);
view_of!(JobView: Job);
view_of!(ConfigView: ConfigMap);

/// The metadata of any object.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Meta {
    pub(super) name: String,
    pub(super) namespace: String,
    pub(super) uid: String,
    pub(super) resource_version: String,
    pub(super) generation: i64,
    pub(super) labels: BTreeMap<String, String>,
    pub(super) annotations: BTreeMap<String, String>,
    pub(super) creation_timestamp: Option<Timestamp>,
    pub(super) deletion_timestamp: Option<Timestamp>,
    pub(super) deletion_grace_period_seconds: Option<i64>,
}

impl Meta {
    pub(super) fn is_deleting(&self) -> bool {
        self.deletion_timestamp.is_some()
    }
}

/// Whom an object belongs to.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Owner {
    pub(super) api_version: String,
    pub(super) kind: String,
    pub(super) name: String,
    pub(super) uid: String,
    pub(super) controller: bool,
    pub(super) block_owner_deletion: bool,
}

/// A number, or a part of another number: `2` or `25%`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(untagged)]
pub(super) enum Amount {
    Number(i64),
    Part(String),
}

/// A Deployment.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(super) struct DeploymentView {
    pub(super) metadata: Meta,
    pub(super) spec: DeploymentSpec,
    pub(super) status: Value,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct DeploymentSpec {
    pub(super) replicas: Option<i64>,
    pub(super) paused: bool,
    pub(super) revision_history_limit: Option<i64>,
    pub(super) selector: Value,
    pub(super) strategy: Strategy,
    pub(super) template: Value,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Strategy {
    pub(super) r#type: Option<String>,
    pub(super) rolling_update: Option<RollingUpdate>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct RollingUpdate {
    pub(super) max_surge: Option<Amount>,
    pub(super) max_unavailable: Option<Amount>,
}

/// A ReplicaSet.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(super) struct ReplicaSetView {
    pub(super) metadata: Meta,
    pub(super) spec: ReplicaSetSpec,
    pub(super) status: Value,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct ReplicaSetSpec {
    pub(super) replicas: Option<i64>,
    pub(super) template: Value,
}

impl ReplicaSetView {
    /// How many pods there are to be.
    pub(super) fn wanted(&self) -> i64 {
        replicas(self.spec.replicas)
    }

    /// A number of the status.
    pub(super) fn count(&self, field: &str) -> i64 {
        self.status.get(field).and_then(Value::as_i64).unwrap_or_default()
    }
}

/// Replicas that somebody wants. There is one if nothing is said, and less than none cannot be.
pub(super) fn replicas(wanted: Option<i64>) -> i64 {
    wanted.unwrap_or(1).clamp(0, i64::from(i32::MAX))
}

/// A Pod.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(super) struct PodView {
    pub(super) metadata: Meta,
    pub(super) spec: PodSpec,
    pub(super) status: PodStatus,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct PodSpec {
    pub(super) node_name: String,
    pub(super) restart_policy: String,
    pub(super) containers: Vec<Container>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(super) struct Container {
    pub(super) name: String,
    pub(super) image: String,
}

impl PodView {
    /// It will not run any more.
    pub(super) fn is_over(&self) -> bool {
        matches!(self.status.phase.as_str(), "Succeeded" | "Failed")
    }
}

/// A Node.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(super) struct NodeView {
    pub(super) metadata: Meta,
    pub(super) spec: NodeSpec,
    pub(super) status: NodeStatus,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(super) struct NodeSpec {
    pub(super) unschedulable: bool,
    pub(super) taints: Vec<Taint>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(super) struct Taint {
    pub(super) effect: String,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(super) struct NodeStatus {
    pub(super) conditions: Vec<Condition>,
    pub(super) addresses: Vec<Address>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(super) struct Address {
    pub(super) r#type: String,
    pub(super) address: String,
}

impl NodeView {
    /// Its kubelet is there.
    pub(super) fn is_ready(&self) -> bool {
        self.status.conditions.iter().any(|condition| condition.r#type == "Ready" && condition.status == "True")
    }

    /// New pods may come.
    pub(super) fn takes_pods(&self) -> bool {
        let refuses = |taint: &Taint| matches!(taint.effect.as_str(), "NoSchedule" | "NoExecute");
        self.is_ready()
            && !self.spec.unschedulable
            && !self.metadata.is_deleting()
            && !self.spec.taints.iter().any(refuses)
    }

    pub(super) fn internal_ip(&self) -> &str {
        let internal = self.status.addresses.iter().find(|address| address.r#type == "InternalIP");
        internal.map_or("", |address| &address.address)
    }
}

/// A condition of anything.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Condition {
    pub(super) r#type: String,
    pub(super) status: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) last_heartbeat_time: Option<Timestamp>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) last_update_time: Option<Timestamp>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) last_transition_time: Option<Timestamp>,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(super) reason: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(super) message: String,
}

/// A Service.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(super) struct ServiceView {
    pub(super) metadata: Meta,
    pub(super) spec: ServiceSpec,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(super) struct ServiceSpec {
    pub(super) selector: BTreeMap<String, String>,
    pub(super) ports: Vec<ServicePort>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct ServicePort {
    pub(super) name: String,
    pub(super) port: i64,
    pub(super) target_port: Value,
    pub(super) protocol: String,
}

/// An EndpointSlice.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(super) struct SliceView {
    pub(super) metadata: Meta,
    pub(super) endpoints: Value,
    pub(super) ports: Value,
}

/// A Job.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(super) struct JobView {
    pub(super) metadata: Meta,
    pub(super) spec: JobSpec,
    pub(super) status: Value,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(super) struct JobSpec {
    pub(super) template: Value,
}

/// A ConfigMap.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(super) struct ConfigView {
    pub(super) metadata: Meta,
}
