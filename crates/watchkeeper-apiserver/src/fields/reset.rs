//! Fields that a write cannot own. Counterparts: `stripmeta.go` in `k8s.io/apimachinery/pkg/util/managedfields`, and
//! `GetResetFields` of each kind's strategy in `k8s.io/kubernetes/pkg/registry`.

use std::sync::LazyLock;

use super::set::Set;
use crate::kinds::Kind;

/// What nobody owns: the server decides it, or it names the object.
pub(super) static STRIPPED: LazyLock<Set> = LazyLock::new(|| {
    Set::of_fields(&[
        &["apiVersion"],
        &["kind"],
        &["metadata"],
        &["metadata", "name"],
        &["metadata", "namespace"],
        &["metadata", "creationTimestamp"],
        &["metadata", "selfLink"],
        &["metadata", "uid"],
        &["metadata", "clusterName"],
        &["metadata", "generation"],
        &["metadata", "managedFields"],
        &["metadata", "resourceVersion"],
    ])
});

/// What a write of a kind, or of one of its subresources, leaves as it was.
pub(super) fn reset(kind: &Kind, subresource: &str) -> Set {
    let paths: &[&[&str]] = match (subresource, kind.group.as_str(), kind.plural.as_str()) {
        ("", "certificates.k8s.io", "certificatesigningrequests") => &[&["spec"], &["status"]],
        ("", "certificates.k8s.io", "podcertificaterequests") => &[],
        ("", _, _) if kind.has_status() => &[&["status"]],
        ("finalize", "", "namespaces") => &[&["status"]],
        ("approval", "certificates.k8s.io", _) => &[&["spec"], &["status", "certificate"]],
        ("status", "certificates.k8s.io", "certificatesigningrequests") => &[&["spec"], &["status", "conditions"]],
        ("status", "apps", "deployments") => &[&["spec"], &["metadata", "labels"]],
        ("status", "", "pods") => &[&["spec"], &["metadata", "deletionTimestamp"], &["metadata", "ownerReferences"]],
        ("status", group, plural) if kind.custom || resets_metadata(group, plural) => &[&["metadata"], &["spec"]],
        ("status", _, _) => &[&["spec"]],
        _ => &[],
    };
    Set::of_fields(paths)
}

/// Built-in kinds whose status is written without anything of the metadata.
fn resets_metadata(group: &str, plural: &str) -> bool {
    matches!(
        (group, plural),
        ("networking.k8s.io", "servicecidrs")
            | ("storagemigration.k8s.io" | "internal.apiserver.k8s.io", _)
            | ("scheduling.k8s.io", "podgroups")
            | ("resource.k8s.io", _)
            | ("storage.k8s.io", "volumeattachments")
            | ("flowcontrol.apiserver.k8s.io", _)
            | ("admissionregistration.k8s.io", "validatingadmissionpolicies")
            | ("apiregistration.k8s.io", "apiservices")
    )
}
