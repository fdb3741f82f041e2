//! Which cells does a row have? One line for each kind, in the order of its columns.
//!
//! Counterpart: the print functions in `k8s.io/kubernetes/pkg/printers/internalversion/printers.go`, and the table
//! convertors of those kinds that have their own.

use serde_json::Value;

use super::cells::Cell::{self, *};
use super::subject::Subject;
use super::{NONE, UNSET, age, events, networking, nodes, pods, policies, volumes, workloads};
use crate::kinds::Kind;

/// The containers of a workload's pods.
const TEMPLATE: &str = "/spec/template/spec/containers";
/// The name, and when it was made: what kinds have that are not printed in any special way.
const PLAIN: &[Cell] = &[Name, Created];

/// The cells of a kind's rows.
pub(super) fn cells(kind: &Kind) -> &'static [Cell] {
    let built_in = if kind.custom { None } else { built_in(&kind.group, &kind.plural) };
    built_in.unwrap_or(&[Name, Made(custom_age)])
}

fn built_in(group: &str, plural: &str) -> Option<&'static [Cell]> {
    match group {
        "" => core(plural),
        "apps" | "batch" | "autoscaling" | "policy" | "scheduling.k8s.io" => workload(plural),
        "networking.k8s.io" | "discovery.k8s.io" => network(plural),
        "storage.k8s.io" | "resource.k8s.io" => storage(plural),
        "admissionregistration.k8s.io" | "rbac.authorization.k8s.io" | "certificates.k8s.io" => access(plural),
        _ => other(group, plural),
    }
}

/// Whether a kind's rows are not printed in any special way. Go's list of such rows is null when it is empty.
pub(super) fn is_plain(cells: &[Cell]) -> bool {
    cells.iter().any(|cell| matches!(cell, Created))
}

/// How long a custom object has been there; null, if it does not say.
pub(super) fn custom_age(object: Subject<'_>) -> Value {
    match object.given("/metadata/creationTimestamp") {
        None => Value::Null,
        Some(time) if age::is_time(time) => age::since(Some(time), object.now()).into(),
        Some(_) => "<invalid>".into(),
    }
}

fn core(plural: &str) -> Option<&'static [Cell]> {
    Some(match plural {
        "componentstatuses" => &[
            Name,
            Made(policies::component_status),
            Made(policies::component_message),
            Made(policies::component_error),
        ],
        "configmaps" => &[Name, Count(&["/data", "/binaryData"]), Age],
        "endpoints" => &[Name, Made(networking::endpoints), Age],
        "events" => EVENT,
        "limitranges" => PLAIN,
        "namespaces" => &[Name, Text("/status/phase"), Age],
        "nodes" => &[
            Name,
            Made(nodes::status),
            Made(nodes::roles),
            Age,
            Text("/status/nodeInfo/kubeletVersion"),
            Made(nodes::internal_ip),
            Made(nodes::external_ip),
            FullTextOr("/status/nodeInfo/osImage", age::UNKNOWN),
            Made(nodes::kernel),
            FullTextOr("/status/nodeInfo/containerRuntimeVersion", age::UNKNOWN),
        ],
        "persistentvolumeclaims" => &[
            Name,
            Made(volumes::phase),
            Text("/spec/volumeName"),
            Made(volumes::claim_capacity),
            Made(volumes::claim_access_modes),
            Made(volumes::class),
            TextOr("/spec/volumeAttributesClassName", UNSET),
            Age,
            TextOr("/spec/volumeMode", UNSET),
        ],
        "persistentvolumes" => &[
            Name,
            Quantity("/spec/capacity/storage"),
            Made(volumes::volume_access_modes),
            Text("/spec/persistentVolumeReclaimPolicy"),
            Made(volumes::phase),
            Made(volumes::claim),
            Made(volumes::class),
            TextOr("/spec/volumeAttributesClassName", UNSET),
            Text("/status/reason"),
            Age,
            TextOr("/spec/volumeMode", UNSET),
        ],
        "pods" => &[
            Name,
            Made(pods::ready),
            Made(pods::status),
            Made(pods::restarts),
            Age,
            Made(pods::ip),
            FullTextOr("/spec/nodeName", NONE),
            FullTextOr("/status/nominatedNodeName", NONE),
            Made(pods::readiness_gates),
        ],
        "podtemplates" => &[
            Name,
            Containers("/template/spec/containers", "/name"),
            Containers("/template/spec/containers", "/image"),
            Labels("/template/metadata/labels"),
        ],
        "replicationcontrollers" => &[
            Name,
            Integer("/spec/replicas"),
            Integer("/status/replicas"),
            Integer("/status/readyReplicas"),
            Age,
            Containers(TEMPLATE, "/name"),
            Containers(TEMPLATE, "/image"),
            Labels("/spec/selector"),
        ],
        "resourcequotas" => &[Name, Made(policies::quota_requests), Made(policies::quota_limits), Age],
        "secrets" => &[Name, Text("/type"), Count(&["/data"]), Age],
        "serviceaccounts" => &[Name, Age],
        "services" => &[
            Name,
            Text("/spec/type"),
            Made(networking::cluster_ip),
            Made(networking::external_ip),
            Made(networking::service_ports),
            Age,
            Labels("/spec/selector"),
        ],
        _ => return None,
    })
}

fn workload(plural: &str) -> Option<&'static [Cell]> {
    Some(match plural {
        "controllerrevisions" => &[Name, Made(workloads::controller), Integer("/revision"), Age],
        "daemonsets" => &[
            Name,
            Integer("/status/desiredNumberScheduled"),
            Integer("/status/currentNumberScheduled"),
            Integer("/status/numberReady"),
            Integer("/status/updatedNumberScheduled"),
            Integer("/status/numberAvailable"),
            Labels("/spec/template/spec/nodeSelector"),
            Age,
            Containers(TEMPLATE, "/name"),
            Containers(TEMPLATE, "/image"),
            Selector("/spec/selector"),
        ],
        "deployments" => &[
            Name,
            Made(workloads::ready_replicas),
            Integer("/status/updatedReplicas"),
            Integer("/status/availableReplicas"),
            Age,
            Containers(TEMPLATE, "/name"),
            Containers(TEMPLATE, "/image"),
            Made(workloads::deployment_selector),
        ],
        "replicasets" => &[
            Name,
            Integer("/spec/replicas"),
            Integer("/status/replicas"),
            Integer("/status/readyReplicas"),
            Age,
            Containers(TEMPLATE, "/name"),
            Containers(TEMPLATE, "/image"),
            Selector("/spec/selector"),
        ],
        "statefulsets" => {
            &[Name, Made(workloads::ready_replicas), Age, Containers(TEMPLATE, "/name"), Containers(TEMPLATE, "/image")]
        }
        "horizontalpodautoscalers" => &[
            Name,
            Made(workloads::scale_target),
            Made(workloads::metrics),
            Made(workloads::min_replicas),
            Integer("/spec/maxReplicas"),
            Integer("/status/currentReplicas"),
            Age,
        ],
        "cronjobs" => &[
            Name,
            Text("/spec/schedule"),
            TextOr("/spec/timeZone", NONE),
            Made(workloads::suspended),
            Count(&["/status/active"]),
            SinceOr("/status/lastScheduleTime", NONE),
            Age,
            Containers("/spec/jobTemplate/spec/template/spec/containers", "/name"),
            Containers("/spec/jobTemplate/spec/template/spec/containers", "/image"),
            Selector("/spec/jobTemplate/spec/selector"),
        ],
        "jobs" => &[
            Name,
            Made(workloads::job_status),
            Made(workloads::job_completions),
            Made(workloads::job_duration),
            Age,
            Containers(TEMPLATE, "/name"),
            Containers(TEMPLATE, "/image"),
            Selector("/spec/selector"),
        ],
        "poddisruptionbudgets" => &[
            Name,
            Made(workloads::min_available),
            Made(workloads::max_unavailable),
            Integer("/status/disruptionsAllowed"),
            Age,
        ],
        "priorityclasses" => {
            &[Name, Integer("/value"), Boolean("/globalDefault", false), Age, Text("/preemptionPolicy")]
        }
        _ => return None,
    })
}

fn network(plural: &str) -> Option<&'static [Cell]> {
    Some(match plural {
        "endpointslices" => {
            &[Name, Text("/addressType"), Made(networking::slice_ports), Made(networking::slice_endpoints), Age]
        }
        "ingressclasses" => &[
            Made(networking::ingress_class_name),
            Text("/spec/controller"),
            Made(networking::ingress_class_parameters),
            Age,
        ],
        "ingresses" => &[
            Name,
            TextOr("/spec/ingressClassName", NONE),
            Made(networking::hosts),
            Made(networking::ingress_address),
            Made(networking::ingress_ports),
            Age,
        ],
        // A kube-apiserver has no column for the age, and sends it all the same.
        "ipaddresses" => &[Name, Made(networking::parent), Age],
        "networkpolicies" => &[Name, Selector("/spec/podSelector"), Age],
        "servicecidrs" => &[Name, Joined("/spec/cidrs"), Age],
        _ => return None,
    })
}

fn storage(plural: &str) -> Option<&'static [Cell]> {
    Some(match plural {
        "csidrivers" => &[
            Name,
            Boolean("/spec/attachRequired", true),
            Boolean("/spec/podInfoOnMount", false),
            Boolean("/spec/storageCapacity", false),
            Made(volumes::token_audiences),
            Boolean("/spec/requiresRepublish", false),
            Made(volumes::lifecycle_modes),
            Age,
        ],
        "csinodes" => &[Name, Count(&["/spec/drivers"]), Age],
        "csistoragecapacities" => PLAIN,
        "storageclasses" => &[
            Made(volumes::storage_class_name),
            Text("/provisioner"),
            TextOr("/reclaimPolicy", "Delete"),
            TextOr("/volumeBindingMode", "Immediate"),
            Boolean("/allowVolumeExpansion", false),
            Age,
        ],
        "volumeattachments" => &[
            Name,
            Text("/spec/attacher"),
            Text("/spec/source/persistentVolumeName"),
            Text("/spec/nodeName"),
            Boolean("/status/attached", false),
            Age,
        ],
        "volumeattributesclasses" => &[Name, Text("/driverName"), Age],
        "deviceclasses" | "resourceclaimtemplates" => &[Name, Age],
        "resourceclaims" => &[Name, Made(policies::device_claim_state), Age],
        "resourceslices" => &[Name, Text("/spec/nodeName"), Text("/spec/driver"), Text("/spec/pool/name"), Age],
        _ => return None,
    })
}

fn access(plural: &str) -> Option<&'static [Cell]> {
    Some(match plural {
        "mutatingadmissionpolicies" => &[Name, Count(&["/spec/mutations"]), Made(policies::parameter_kind), Age],
        "validatingadmissionpolicies" => &[Name, Count(&["/spec/validations"]), Made(policies::parameter_kind), Age],
        "mutatingadmissionpolicybindings" | "validatingadmissionpolicybindings" => {
            &[Name, Text("/spec/policyName"), Made(policies::parameter), Age]
        }
        "mutatingwebhookconfigurations" | "validatingwebhookconfigurations" => &[Name, Count(&["/webhooks"]), Age],
        "clusterroles" | "roles" => PLAIN,
        "clusterrolebindings" | "rolebindings" => &[
            Name,
            Made(policies::role),
            Age,
            Made(policies::users),
            Made(policies::groups),
            Made(policies::service_accounts),
        ],
        "certificatesigningrequests" => &[
            Name,
            Age,
            FullTextOr("/spec/signerName", NONE),
            Text("/spec/username"),
            Made(policies::requested_duration),
            Made(policies::certificate_state),
        ],
        _ => return None,
    })
}

fn other(group: &str, plural: &str) -> Option<&'static [Cell]> {
    Some(match (group, plural) {
        ("events.k8s.io", "events") => EVENT,
        ("apiregistration.k8s.io", "apiservices") => {
            &[Name, Made(policies::api_service), Made(policies::is_available), Age]
        }
        ("apiextensions.k8s.io", "customresourcedefinitions") => PLAIN,
        ("coordination.k8s.io", "leases") => &[Name, Text("/spec/holderIdentity"), Age],
        ("node.k8s.io", "runtimeclasses") => &[Name, Text("/handler"), Age],
        ("flowcontrol.apiserver.k8s.io", "flowschemas") => &[
            Name,
            Text("/spec/priorityLevelConfiguration/name"),
            Integer("/spec/matchingPrecedence"),
            Made(policies::distinguisher),
            Age,
            Made(policies::is_dangling),
        ],
        ("flowcontrol.apiserver.k8s.io", "prioritylevelconfigurations") => &[
            Name,
            Text("/spec/type"),
            IntegerOr("/spec/limited/nominalConcurrencyShares", NONE),
            IntegerOr("/spec/limited/limitResponse/queuing/queues", NONE),
            IntegerOr("/spec/limited/limitResponse/queuing/handSize", NONE),
            IntegerOr("/spec/limited/limitResponse/queuing/queueLengthLimit", NONE),
            Age,
        ],
        _ => return None,
    })
}

const EVENT: &[Cell] = &[
    Made(events::last_seen),
    Text("/type"),
    Text("/reason"),
    Made(events::about),
    Made(events::field),
    Made(events::source),
    Made(events::message),
    Made(events::first_seen),
    Made(events::count),
    Name,
];
