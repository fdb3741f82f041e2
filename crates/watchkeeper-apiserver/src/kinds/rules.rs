//! What writing an object of a kind does beside writing it.
//!
//! Counterparts: `strategy.go` and `storage.go` of each kind in `k8s.io/kubernetes/pkg/registry`.

/// The habits of a kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Rules {
    /// Objects count the changes of all that is not metadata or status.
    pub(crate) generation: bool,
    /// An update that names no version overwrites whatever is there.
    pub(crate) unconditional_update: bool,
    /// An update of what is not there creates it.
    pub(crate) creates_on_update: bool,
    /// A deletion answers with the object and not with a `Status`.
    pub(crate) returns_deleted: bool,
    /// A status that comes with a new object is kept, although there is a status subresource.
    pub(crate) keeps_status: bool,
    /// What a name may look like.
    pub(crate) name: NameRule,
}

/// What a name may look like.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NameRule {
    Subdomain,
    Label,
    PathSegment,
}

impl Rules {
    /// Those of a built-in kind.
    pub(super) fn of(group: &str, plural: &str) -> Self {
        Self {
            generation: matches!(
                (group, plural),
                ("", "pods" | "podtemplates" | "replicationcontrollers")
                    | ("apps", "daemonsets" | "deployments" | "replicasets" | "statefulsets")
                    | ("batch", "jobs" | "cronjobs")
                    | ("policy", "poddisruptionbudgets")
                    | ("networking.k8s.io", "ingresses" | "ingressclasses" | "networkpolicies")
                    | ("discovery.k8s.io", "endpointslices")
                    | ("scheduling.k8s.io", "priorityclasses")
                    | ("resource.k8s.io", "resourceslices" | "deviceclasses" | "devicetaintrules")
                    | ("apiextensions.k8s.io", "customresourcedefinitions")
                    | ("flowcontrol.apiserver.k8s.io" | "admissionregistration.k8s.io", _)
            ),
            unconditional_update: !matches!(
                (group, plural),
                ("node.k8s.io", "runtimeclasses")
                    | ("policy", "poddisruptionbudgets")
                    | ("storage.k8s.io", "csidrivers" | "csistoragecapacities" | "volumeattachments" | "csinodes")
                    | ("coordination.k8s.io" | "admissionregistration.k8s.io" | "apiregistration.k8s.io", _)
                    | ("apiextensions.k8s.io", _)
            ),
            creates_on_update: matches!(
                (group, plural),
                ("", "endpoints" | "events" | "limitranges" | "services")
                    | ("coordination.k8s.io", "leases")
                    | ("events.k8s.io", "events")
                    | ("node.k8s.io", "runtimeclasses")
                    | ("rbac.authorization.k8s.io", _)
            ),
            returns_deleted: matches!(
                (group, plural),
                (
                    "",
                    "pods"
                        | "services"
                        | "serviceaccounts"
                        | "persistentvolumes"
                        | "persistentvolumeclaims"
                        | "resourcequotas"
                        | "podtemplates"
                        | "namespaces"
                ) | ("resource.k8s.io", _)
                    | (
                        "storage.k8s.io",
                        "csidrivers" | "csinodes" | "storageclasses" | "volumeattachments" | "volumeattributesclasses"
                    )
            ),
            keeps_status: (group, plural) == ("", "nodes"),
            name: match (group, plural) {
                ("", "namespaces" | "services") => NameRule::Label,
                ("rbac.authorization.k8s.io", _) => NameRule::PathSegment,
                _ => NameRule::Subdomain,
            },
        }
    }

    /// Those of a custom kind.
    pub(crate) fn custom() -> Self {
        Self {
            generation: true,
            unconditional_update: false,
            creates_on_update: false,
            returns_deleted: false,
            keeps_status: false,
            name: NameRule::Subdomain,
        }
    }
}
