//! What is watched: seven kinds, and objects of them.

use kube::core::ApiResource;
use serde_json::{Value, json};

/// The namespaces with objects.
pub(crate) const NAMESPACES: [&str; 3] = ["e2e-a", "e2e-b", "e2e-c"];
/// The label that selectors ask for, with the value that they want.
pub(crate) const TIER: &str = "tier";

/// A kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Kind {
    Pods,
    ConfigMaps,
    Secrets,
    Nodes,
    Deployments,
    Leases,
    /// A custom one.
    Sails,
}

pub(crate) const KINDS: [Kind; 7] =
    [Kind::Pods, Kind::ConfigMaps, Kind::Secrets, Kind::Nodes, Kind::Deployments, Kind::Leases, Kind::Sails];

/// The group of the custom kind.
pub(crate) const GROUP: &str = "e2e.watchkeeper.example";

impl Kind {
    /// Group, version, kind, plural.
    fn names(self) -> [&'static str; 4] {
        match self {
            Self::Pods => ["", "v1", "Pod", "pods"],
            Self::ConfigMaps => ["", "v1", "ConfigMap", "configmaps"],
            Self::Secrets => ["", "v1", "Secret", "secrets"],
            Self::Nodes => ["", "v1", "Node", "nodes"],
            Self::Deployments => ["apps", "v1", "Deployment", "deployments"],
            Self::Leases => ["coordination.k8s.io", "v1", "Lease", "leases"],
            Self::Sails => [GROUP, "v1", "Sail", "sails"],
        }
    }

    pub(crate) fn resource(self) -> ApiResource {
        let [group, version, kind, plural] = self.names().map(str::to_owned);
        let api_version = if group.is_empty() { version.clone() } else { format!("{group}/{version}") };
        ApiResource { group, version, api_version, kind, plural }
    }

    pub(crate) fn is_namespaced(self) -> bool {
        self != Self::Nodes
    }

    /// Of the collection; of all namespaces if none is given.
    pub(crate) fn path(self, namespace: Option<&str>) -> String {
        let [group, version, _, plural] = self.names();
        let root = if group.is_empty() { format!("/api/{version}") } else { format!("/apis/{group}/{version}") };
        match namespace.filter(|_| self.is_namespaced()) {
            Some(namespace) => format!("{root}/namespaces/{namespace}/{plural}"),
            None => format!("{root}/{plural}"),
        }
    }

    /// An object. What is in it depends on the number; with an even one it is of tier `a`, which selectors ask for.
    pub(crate) fn object(self, namespace: &str, name: &str, number: u64) -> Value {
        let resource = self.resource();
        let mut object = json!({
            "apiVersion": resource.api_version, "kind": resource.kind,
            "metadata": {
                "name": name,
                "labels": {TIER: tier(number), "app": format!("app-{}", number % 7)},
                // What JSON can write in several ways, so that a difference of bytes would show.
                "annotations": {"number": number.to_string(), "text": "a\"b\\c <d> & ü \u{1F6A2} \u{2028}\n"},
            },
        });
        if self.is_namespaced() {
            object["metadata"]["namespace"] = namespace.into();
        }
        let fields = match self {
            Self::Pods => json!({"spec": {
                "nodeName": format!("node-{}", number % 2), "terminationGracePeriodSeconds": 0,
                "containers": [{"name": "c", "image": "registry.example/image:1", "env": [{"name": "A", "value": "b"}]}],
            }}),
            Self::ConfigMaps => {
                json!({"data": {"number": number.to_string(), "long": "x".repeat((number % 900) as usize)}})
            }
            Self::Secrets => json!({"stringData": {"number": number.to_string()}}),
            Self::Nodes => json!({"spec": {"podCIDR": format!("10.{}.{}.0/24", number / 250 % 250, number % 250)}}),
            Self::Deployments => json!({"spec": {
                "replicas": number % 50, "selector": {"matchLabels": {"app": "web"}},
                "template": {
                    "metadata": {"labels": {"app": "web"}},
                    "spec": {"containers": [{"name": "c", "image": "registry.example/image:1"}]},
                },
            }}),
            Self::Leases => json!({"spec": {"holderIdentity": format!("holder-{number}"), "leaseDurationSeconds": 15}}),
            Self::Sails => {
                json!({"spec": {"area": number, "ratio": number as f64 / 7.0, "free": {"any": [1, null, "x"]}}})
            }
        };
        object.as_object_mut().expect("an object").extend(fields.as_object().expect("an object").clone());
        object
    }

    /// A change of an object, as a merge patch. It may move into the sight of a selector, or out of it.
    pub(crate) fn change(self, number: u64) -> Value {
        let mut change = json!({
            "metadata": {"annotations": {"number": number.to_string()}, "labels": {TIER: tier(number)}},
        });
        let fields = match self {
            // Of what else these have, little may change.
            Self::Pods | Self::Nodes => json!({}),
            Self::ConfigMaps => json!({"data": {"number": number.to_string()}}),
            Self::Secrets => json!({"stringData": {"number": number.to_string()}}),
            Self::Deployments => json!({"spec": {"replicas": number % 50}}),
            Self::Leases => json!({"spec": {"holderIdentity": format!("holder-{number}")}}),
            Self::Sails => json!({"spec": {"area": number}}),
        };
        change.as_object_mut().expect("an object").extend(fields.as_object().expect("an object").clone());
        change
    }
}

fn tier(number: u64) -> &'static str {
    if number.is_multiple_of(2) { "a" } else { "b" }
}

/// The definition of the custom kind.
pub(crate) fn definition() -> Value {
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("sails.{GROUP}")},
        "spec": {
            "group": GROUP, "scope": "Namespaced",
            "names": {"kind": "Sail", "plural": "sails", "singular": "sail"},
            "versions": [{
                "name": "v1", "served": true, "storage": true,
                "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": {
                    "type": "object", "x-kubernetes-preserve-unknown-fields": true,
                }}}},
            }],
        },
    })
}
