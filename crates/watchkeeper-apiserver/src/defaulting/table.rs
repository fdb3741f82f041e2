//! The defaults that are plain values, by the type that they belong to. Beside them stands why clients rely on them.

use std::collections::HashMap;
use std::sync::LazyLock;

use serde_json::{Map, Value};

/// A type, and the fields of it that are filled in, with their values as JSON.
type Entry = (&'static str, &'static [(&'static str, &'static str)]);

const TABLE: &[Entry] = &[
    // Kubelets and schedulers take these for given, and so do `kubectl diff` and every operator that compares specs.
    (
        "core.v1.PodSpec",
        &[
            ("dnsPolicy", r#""ClusterFirst""#),
            ("restartPolicy", r#""Always""#),
            ("schedulerName", r#""default-scheduler""#),
            ("securityContext", "{}"),
            ("terminationGracePeriodSeconds", "30"),
        ],
    ),
    ("core.v1.Container", CONTAINER),
    ("core.v1.EphemeralContainer", CONTAINER),
    // A probe without numbers runs with these.
    (
        "core.v1.Probe",
        &[("failureThreshold", "3"), ("periodSeconds", "10"), ("successThreshold", "1"), ("timeoutSeconds", "1")],
    ),
    ("core.v1.HTTPGetAction", &[("path", r#""/""#), ("scheme", r#""HTTP""#)]),
    ("core.v1.ObjectFieldSelector", &[("apiVersion", r#""v1""#)]),
    // Modes are written in decimal: 0644.
    ("core.v1.SecretVolumeSource", &[("defaultMode", "420")]),
    ("core.v1.ConfigMapVolumeSource", &[("defaultMode", "420")]),
    ("core.v1.DownwardAPIVolumeSource", &[("defaultMode", "420")]),
    ("core.v1.ProjectedVolumeSource", &[("defaultMode", "420")]),
    ("core.v1.ServiceAccountTokenProjection", &[("expirationSeconds", "3600")]),
    ("core.v1.HostPathVolumeSource", &[("type", r#""""#)]),
    // Claims and volumes find each other by these.
    ("core.v1.PersistentVolumeClaimSpec", &[("volumeMode", r#""Filesystem""#)]),
    (
        "core.v1.PersistentVolumeSpec",
        &[("persistentVolumeReclaimPolicy", r#""Retain""#), ("volumeMode", r#""Filesystem""#)],
    ),
    ("core.v1.TypedLocalObjectReference", &[("apiGroup", "null")]),
    ("core.v1.TypedObjectReference", &[("apiGroup", "null")]),
    // Field selectors for secrets ask for the type.
    ("core.v1.Secret", &[("type", r#""Opaque""#)]),
    ("core.v1.EndpointPort", &[("protocol", r#""TCP""#)]),
    ("core.v1.ReplicationControllerSpec", &[("replicas", "1")]),
    // What scales, rolls out and waits for workloads reads these, and does not know another default.
    (
        "apps.v1.DeploymentSpec",
        &[("progressDeadlineSeconds", "600"), ("replicas", "1"), ("revisionHistoryLimit", "10")],
    ),
    ("apps.v1.DeploymentStrategy", &[("type", r#""RollingUpdate""#)]),
    ("apps.v1.RollingUpdateDeployment", &[("maxSurge", r#""25%""#), ("maxUnavailable", r#""25%""#)]),
    ("apps.v1.ReplicaSetSpec", &[("replicas", "1")]),
    (
        "apps.v1.StatefulSetSpec",
        &[
            ("persistentVolumeClaimRetentionPolicy", "{}"),
            ("podManagementPolicy", r#""OrderedReady""#),
            ("replicas", "1"),
            ("revisionHistoryLimit", "10"),
        ],
    ),
    (
        "apps.v1.StatefulSetPersistentVolumeClaimRetentionPolicy",
        &[("whenDeleted", r#""Retain""#), ("whenScaled", r#""Retain""#)],
    ),
    ("apps.v1.DaemonSetSpec", &[("revisionHistoryLimit", "10")]),
    ("apps.v1.DaemonSetUpdateStrategy", &[("type", r#""RollingUpdate""#)]),
    ("apps.v1.RollingUpdateDaemonSet", &[("maxSurge", "0"), ("maxUnavailable", "1")]),
    (
        "batch.v1.CronJobSpec",
        &[
            ("concurrencyPolicy", r#""Allow""#),
            ("failedJobsHistoryLimit", "1"),
            ("successfulJobsHistoryLimit", "3"),
            ("suspend", "false"),
        ],
    ),
    ("batch.v1.PodFailurePolicyOnPodConditionsPattern", &[("status", r#""True""#)]),
    // An autoscaler that says nothing scales from one, at 80 % of the CPU.
    ("autoscaling.v1.HorizontalPodAutoscalerSpec", &[("minReplicas", "1"), ("targetCPUUtilizationPercentage", "80")]),
    ("autoscaling.v2.HorizontalPodAutoscalerSpec", &[("minReplicas", "1")]),
    // Policies and slices name the protocol of a port, whoever leaves it out.
    ("networking.v1.NetworkPolicyPort", &[("protocol", r#""TCP""#)]),
    ("networking.v1.IngressClassParametersReference", &[("scope", r#""Cluster""#)]),
    ("discovery.v1.EndpointPort", &[("name", r#""""#), ("protocol", r#""TCP""#)]),
    // Bindings are compared by their role's group.
    ("rbac.v1.RoleRef", &[("apiGroup", r#""rbac.authorization.k8s.io""#)]),
    // Provisioners and the scheduler ask for these two.
    ("storage.v1.StorageClass", &[("reclaimPolicy", r#""Delete""#), ("volumeBindingMode", r#""Immediate""#)]),
    (
        "storage.v1.CSIDriverSpec",
        &[
            ("attachRequired", "true"),
            ("fsGroupPolicy", r#""ReadWriteOnceWithFSType""#),
            ("podInfoOnMount", "false"),
            ("requiresRepublish", "false"),
            ("seLinuxMount", "false"),
            ("storageCapacity", "false"),
            ("volumeLifecycleModes", r#"["Persistent"]"#),
        ],
    ),
    ("scheduling.v1.PriorityClass", &[("preemptionPolicy", r#""PreemptLowerPriority""#)]),
    // A kube-apiserver configures itself with these.
    ("flowcontrol.v1.FlowSchemaSpec", &[("matchingPrecedence", "1000")]),
    (
        "flowcontrol.v1.LimitedPriorityLevelConfiguration",
        &[("lendablePercent", "0"), ("nominalConcurrencyShares", "30")],
    ),
    ("flowcontrol.v1.ExemptPriorityLevelConfiguration", &[("lendablePercent", "0"), ("nominalConcurrencyShares", "0")]),
    ("flowcontrol.v1.QueuingConfiguration", &[("handSize", "8"), ("queueLengthLimit", "50"), ("queues", "64")]),
    // Those who install webhooks compare them with what they installed.
    ("admissionregistration.v1.ValidatingWebhook", WEBHOOK),
    ("admissionregistration.v1.MutatingWebhook", WEBHOOK),
    ("admissionregistration.v1.RuleWithOperations", &[("scope", r#""*""#)]),
    ("admissionregistration.v1.NamedRuleWithOperations", &[("scope", r#""*""#)]),
    ("admissionregistration.v1.ServiceReference", &[("port", "443")]),
    ("admissionregistration.v1.MatchResources", MATCH_RESOURCES),
    ("admissionregistration.v1.ValidatingAdmissionPolicySpec", &[("failurePolicy", r#""Fail""#)]),
    ("admissionregistration.v1.MutatingAdmissionPolicySpec", &[("failurePolicy", r#""Fail""#)]),
    ("apiregistration.v1.ServiceReference", &[("port", "443")]),
    // Schedulers count devices by these.
    ("resource.v1.ExactDeviceRequest", &[("allocationMode", r#""ExactCount""#)]),
    ("resource.v1.DeviceSubRequest", &[("allocationMode", r#""ExactCount""#)]),
];

const CONTAINER: &[(&str, &str)] =
    &[("terminationMessagePath", r#""/dev/termination-log""#), ("terminationMessagePolicy", r#""File""#)];

const WEBHOOK: &[(&str, &str)] = &[
    ("failurePolicy", r#""Fail""#),
    ("matchPolicy", r#""Equivalent""#),
    ("namespaceSelector", "{}"),
    ("objectSelector", "{}"),
    ("timeoutSeconds", "10"),
];

const MATCH_RESOURCES: &[(&str, &str)] =
    &[("matchPolicy", r#""Equivalent""#), ("namespaceSelector", "{}"), ("objectSelector", "{}")];

/// Fields that Go leaves out when they are empty. Of others that are empty nothing tells whether they are pointers, and so
/// meant to be empty: they stay.
const LEFT_OUT: &[(&str, &[&str])] = &[
    ("core.v1.ConfigMapEnvSource", &["name"]),
    ("core.v1.ConfigMapKeySelector", &["name"]),
    ("core.v1.ConfigMapProjection", &["name"]),
    ("core.v1.ConfigMapVolumeSource", &["name"]),
    ("core.v1.LocalObjectReference", &["name"]),
    ("core.v1.NodeRuntimeHandler", &["name"]),
    ("core.v1.SecretEnvSource", &["name"]),
    ("core.v1.SecretKeySelector", &["name"]),
    ("core.v1.SecretProjection", &["name"]),
    ("core.v1.ReplicationControllerSpec", &["minReadySeconds"]),
    ("core.v1.EnvVar", &["value"]),
    ("core.v1.Container", &["workingDir", "stdin", "stdinOnce", "tty"]),
    ("core.v1.ContainerPort", &["name", "hostIP", "hostPort"]),
    ("core.v1.VolumeMount", &["readOnly", "subPath", "subPathExpr"]),
    ("core.v1.Probe", &["initialDelaySeconds"]),
    (
        "core.v1.PodSpec",
        &["hostIPC", "hostNetwork", "hostPID", "hostname", "nodeName", "priorityClassName", "subdomain"],
    ),
    (
        "core.v1.ServiceSpec",
        &["externalName", "externalTrafficPolicy", "healthCheckNodePort", "loadBalancerIP", "publishNotReadyAddresses"],
    ),
    ("core.v1.ServicePort", &["name", "nodePort"]),
    ("core.v1.NodeSpec", &["podCIDR", "providerID", "unschedulable"]),
    ("apps.v1.DeploymentSpec", &["minReadySeconds", "paused"]),
    ("apps.v1.ReplicaSetSpec", &["minReadySeconds"]),
    ("apps.v1.StatefulSetSpec", &["minReadySeconds"]),
    ("apps.v1.DaemonSetSpec", &["minReadySeconds"]),
    ("meta.v1.ObjectMeta", &["name", "generateName", "namespace", "generation"]),
];

/// Times and lists that Go writes although there are none.
const NULLS: &[(&str, &[&str])] = &[
    ("core.v1.Event", &["eventTime", "firstTimestamp", "lastTimestamp"]),
    ("events.v1.Event", &["deprecatedFirstTimestamp", "deprecatedLastTimestamp"]),
    ("core.v1.PodCondition", &["lastProbeTime", "lastTransitionTime"]),
    ("core.v1.NodeCondition", &["lastHeartbeatTime", "lastTransitionTime"]),
    ("core.v1.NamespaceCondition", &["lastTransitionTime"]),
    ("core.v1.PersistentVolumeClaimCondition", &["lastProbeTime", "lastTransitionTime"]),
    ("core.v1.ContainerStateRunning", &["startedAt"]),
    ("core.v1.ContainerStateTerminated", &["startedAt", "finishedAt"]),
    ("apps.v1.DeploymentCondition", &["lastTransitionTime", "lastUpdateTime"]),
    ("apps.v1.ReplicaSetCondition", &["lastTransitionTime"]),
    ("apps.v1.StatefulSetCondition", &["lastTransitionTime"]),
    ("apps.v1.DaemonSetCondition", &["lastTransitionTime"]),
    ("batch.v1.JobCondition", &["lastProbeTime", "lastTransitionTime"]),
    ("autoscaling.v2.HorizontalPodAutoscalerStatus", &["currentMetrics"]),
    ("rbac.v1.ClusterRole", &["rules"]),
    ("rbac.v1.Role", &["rules"]),
];

type Values = HashMap<&'static str, Vec<(&'static str, Value)>>;

static VALUES: LazyLock<Values> = LazyLock::new(|| {
    let value = |(field, json): &(&'static str, &str)| {
        // The table is part of the program, and a test reads it.
        (*field, serde_json::from_str(json).expect("a value of the table"))
    };
    TABLE.iter().map(|(name, fields)| (*name, fields.iter().map(value).collect())).collect()
});

static LEFT_OUT_BY_TYPE: LazyLock<HashMap<&'static str, &'static [&'static str]>> =
    LazyLock::new(|| LEFT_OUT.iter().copied().collect());

/// Fills in what the table has for a type.
pub(super) fn apply(fields: &mut Map<String, Value>, type_name: &str) {
    for (field, value) in VALUES.get(type_name).into_iter().flatten() {
        if !fields.contains_key(*field) {
            fields.insert((*field).to_owned(), value.clone());
        }
    }
}

/// The fields of a type that Go leaves out when they are empty.
pub(super) fn left_out(type_name: &str) -> &'static [&'static str] {
    LEFT_OUT_BY_TYPE.get(type_name).copied().unwrap_or_default()
}

/// Whether Go writes a time or a list although there is none.
pub(super) fn is_null(type_name: &str, field: &str) -> bool {
    NULLS.iter().any(|(name, fields)| *name == type_name && fields.contains(&field))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema::{Schema, built_in_type};

    #[test]
    fn every_type_and_field_of_the_tables_is_one() {
        let named = TABLE.iter().map(|(name, fields)| (*name, fields.iter().map(|(field, _)| *field).collect()));
        let empty = LEFT_OUT.iter().chain(NULLS).map(|(name, fields)| (*name, fields.to_vec()));
        for (name, fields) in named.chain(empty).collect::<Vec<(&str, Vec<&str>)>>() {
            let schema = built_in_type(name).unwrap_or_else(|| panic!("no type {name}"));
            let Schema::Map(map) = &*schema else { panic!("{name} is no struct") };
            for field in fields {
                assert!(map.fields.contains_key(field), "{name} has no {field}");
            }
        }
        assert!(!VALUES.is_empty());
    }
}
