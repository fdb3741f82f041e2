//! Namespaces: one that is to go is emptied first.

use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use watchkeeper::{Lister, ObjectKey, Outcome, Predicate, ReconcileError};

use super::{Cluster, Team, decoded};
use crate::living::api::Resource;
use crate::living::views::{NamespaceView, PodView};

/// What is in namespaces; who makes others comes before them.
const CONTENT: [Resource; 10] = [
    Resource::Deployments,
    Resource::ReplicaSets,
    Resource::Jobs,
    Resource::Services,
    Resource::EndpointSlices,
    Resource::Pods,
    Resource::ConfigMaps,
    Resource::Secrets,
    Resource::ServiceAccounts,
    Resource::Events,
];

pub(in crate::living) fn join(team: &mut Team, cluster: &Arc<Cluster>) {
    let (namespaces, pods) = (&cluster.informers.namespaces, &cluster.informers.pods);
    let cleaner = Arc::new(Cleaner { namespaces: namespaces.lister(), pods: pods.lister(), cluster: cluster.clone() });
    let goes = Predicate::<NamespaceView>::new(|event| event.object().is_deleting());
    // The pods are not reconciled, but have to be known.
    let sources = |controller: watchkeeper::Controller| {
        controller.reconciles_if(namespaces, goes).watches_if(pods, Predicate::new(|_| false), |_| None)
    };
    team.join("namespaces", 1, sources, move |key: ObjectKey| {
        let cleaner = cleaner.clone();
        async move { cleaner.reconcile(&key).await }
    });
}

struct Cleaner {
    cluster: Arc<Cluster>,
    namespaces: Lister<NamespaceView>,
    pods: Lister<PodView>,
}

impl Cleaner {
    async fn reconcile(&self, key: &ObjectKey) -> Result<Outcome, ReconcileError> {
        let Some(object) = self.namespaces.get(key) else { return Ok(Outcome::Done) };
        let view = decoded(&object)?;
        let is_held = view.spec.get("finalizers").and_then(Value::as_array).is_some_and(|held| !held.is_empty());
        if !view.metadata.is_deleting() || !is_held {
            return Ok(Outcome::Done);
        }
        for resource in CONTENT {
            self.cluster.api.delete_all(resource, key.name()).await?;
        }
        // Pods take their time.
        if !self.pods.namespace(key.name()).list().is_empty() {
            return Ok(Outcome::RequeueAfter(Duration::from_secs(1)));
        }
        self.cluster.api.finalize(key.name()).await?;
        Ok(Outcome::Done)
    }
}
