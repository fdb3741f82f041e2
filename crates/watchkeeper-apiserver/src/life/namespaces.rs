//! The namespace controller: a namespace that is deleted is emptied, and goes when nothing is left in it.
//!
//! Counterpart: `k8s.io/kubernetes/pkg/controller/namespace/deletion`.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Value, json};

use super::{found, rewrite};
use crate::kinds::Kind;
use crate::server::Inner;
use crate::storage::{Place, Stored, Work};
use crate::verbs::delete::{DeleteOptions, delete};

/// The finalizer that keeps a namespace until it is empty.
const FINALIZER: &str = "kubernetes";

/// What is left in a namespace.
#[derive(Default)]
struct Remains {
    /// By resource, as the conditions name them: `deployments.apps`, `pods.`
    resources: BTreeMap<String, usize>,
    finalizers: BTreeMap<String, usize>,
}

/// Deletes what a namespace has, and lets it go if it has nothing. Pods go first, as they may need the rest to end.
pub(super) fn empty(server: &Arc<Inner>, name: &str) {
    let Some(kind) = server.registry.find("", "namespaces") else { return };
    let Some(namespace) = server.storage.get(&kind, name).filter(|namespace| namespace.is_deleting()) else { return };
    if !is_ours(&namespace) {
        return;
    }
    let kinds: Vec<Arc<Kind>> = server.registry.all().into_iter().filter(|kind| is_emptied(kind)).collect();
    let (pods, others): (Vec<_>, Vec<_>) =
        kinds.into_iter().partition(|kind| kind.group.is_empty() && kind.plural == "pods");
    for kinds in [pods, others] {
        let objects: Vec<(Arc<Kind>, Arc<Stored>)> =
            kinds.into_iter().flat_map(|kind| content(server, &kind, name).map(move |o| (kind.clone(), o))).collect();
        let idle = objects.iter().filter(|(_, object)| !object.is_deleting());
        let expelled: Vec<Work> =
            idle.map(|(kind, object)| Work::Expel(Place { kind: kind.id, key: object.key().into() })).collect();
        if !expelled.is_empty() {
            // It is looked at again when that is done.
            server.storage.add_work(expelled.into_iter().chain([Work::Namespace(name.to_owned())]));
            return;
        }
        if !objects.is_empty() {
            // Whoever holds them has to let go. What is removed then leads back here.
            return set_conditions(server, &kind, &namespace, &Remains::of(&objects));
        }
    }
    set_conditions(server, &kind, &namespace, &Remains::default());
    rewrite(server, &kind, &namespace, |document| {
        let Some(Value::Object(spec)) = document.map_mut().get_mut("spec") else { return };
        let Some(Value::Array(finalizers)) = spec.get_mut("finalizers") else { return };
        finalizers.retain(|finalizer| finalizer != FINALIZER);
        if finalizers.is_empty() {
            spec.remove("finalizers");
        }
    });
}

/// Deletes something in a namespace that goes.
pub(super) fn expel(server: &Arc<Inner>, place: &Place) {
    if let Some((kind, object)) = found(server, place) {
        let options = DeleteOptions::of_controller("Background", object.uid());
        // If it is gone by now, that was to be done.
        let _ = delete(server, &kind, object.key(), object.name(), &options);
    }
}

fn is_ours(namespace: &Stored) -> bool {
    let document = namespace.document();
    let finalizers = document.as_value().pointer("/spec/finalizers").and_then(Value::as_array);
    finalizers.is_some_and(|finalizers| finalizers.iter().any(|finalizer| finalizer == FINALIZER))
}

/// Whether the objects of a kind are in namespaces, and can be deleted.
fn is_emptied(kind: &Kind) -> bool {
    kind.namespaced && kind.versions.iter().any(|version| version.allows("list") && version.allows("delete"))
}

fn content(server: &Inner, kind: &Arc<Kind>, namespace: &str) -> std::vec::IntoIter<Arc<Stored>> {
    // The present is never too old.
    let list = server.storage.list(kind, &format!("{namespace}/"), "", None);
    list.map(|list| list.objects).unwrap_or_default().into_iter()
}

impl Remains {
    fn of(objects: &[(Arc<Kind>, Arc<Stored>)]) -> Self {
        let mut remains = Self::default();
        for (kind, object) in objects {
            *remains.resources.entry(format!("{}.{}", kind.plural, kind.group)).or_default() += 1;
            for finalizer in object.document().finalizers() {
                *remains.finalizers.entry(finalizer.to_owned()).or_default() += 1;
            }
        }
        remains
    }

    /// Type, whether it is so, reason and text of each condition, in the order of the real controller.
    fn conditions(&self) -> [(&'static str, bool, &'static str, String); 5] {
        let shown = |map: &BTreeMap<String, usize>, middle: &str| {
            let shown: Vec<String> =
                map.iter().map(|(name, n)| format!("{name} {middle} {n} resource instances")).collect();
            shown.join(", ")
        };
        let removed = || "All content successfully removed".to_owned();
        [
            (
                "NamespaceDeletionDiscoveryFailure",
                false,
                "ResourcesDiscovered",
                "All resources successfully discovered".to_owned(),
            ),
            (
                "NamespaceDeletionGroupVersionParsingFailure",
                false,
                "ParsedGroupVersions",
                "All legacy kube types successfully parsed".to_owned(),
            ),
            (
                "NamespaceDeletionContentFailure",
                false,
                "ContentDeleted",
                "All content successfully deleted, may be waiting on finalization".to_owned(),
            ),
            match self.resources.is_empty() {
                true => ("NamespaceContentRemaining", false, "ContentRemoved", removed()),
                false => (
                    "NamespaceContentRemaining",
                    true,
                    "SomeResourcesRemain",
                    format!("Some resources are remaining: {}", shown(&self.resources, "has")),
                ),
            },
            match self.finalizers.is_empty() {
                true => ("NamespaceFinalizersRemaining", false, "ContentRemoved", removed()),
                false => (
                    "NamespaceFinalizersRemaining",
                    true,
                    "SomeFinalizersRemain",
                    format!("Some finalizers are remaining: {}", shown(&self.finalizers, "in")),
                ),
            },
        ]
    }
}

/// Writes the conditions; times change with the status of a condition only.
fn set_conditions(server: &Inner, kind: &Arc<Kind>, namespace: &Stored, remains: &Remains) {
    let now = server.clock.now();
    rewrite(server, kind, namespace, |document| {
        let status = document.map_mut().entry("status").or_insert_with(|| json!({}));
        let Value::Object(status) = status else { return };
        let known = status.entry("conditions").or_insert_with(|| json!([]));
        let Value::Array(known) = known else { return };
        for (name, holds, reason, message) in remains.conditions() {
            let holds = if holds { "True" } else { "False" };
            let fields = [("status", holds), ("reason", reason), ("message", &message)];
            match known.iter_mut().find(|condition| condition.get("type").is_some_and(|known| known == name)) {
                Some(Value::Object(condition)) => {
                    if condition.get("status").is_none_or(|known| known != holds) {
                        condition.insert("lastTransitionTime".to_owned(), now.as_str().into());
                    }
                    for (field, value) in fields {
                        condition.insert(field.to_owned(), value.into());
                    }
                }
                _ => {
                    let mut condition = json!({"type": name, "lastTransitionTime": now});
                    for (field, value) in fields {
                        condition[field] = value.into();
                    }
                    known.push(condition);
                }
            }
        }
    });
}
