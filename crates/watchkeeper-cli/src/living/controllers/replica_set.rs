//! ReplicaSets: as many pods as are wanted.

use std::sync::Arc;
use std::time::Duration;

use watchkeeper::{Lister, ObjectKey, Outcome, ReconcileError};

use super::{Cluster, Team, about, decoded, differs, owned, target};
use crate::living::api::{ApiError, Resource, Target};
use crate::living::objects::{pod, replica_set};
use crate::living::own_writes::OwnWrites;
use crate::living::views::{PodView, ReplicaSetView};

const FROM: &str = "replicaset-controller";
/// No more are made or deleted at once.
const BURST: usize = 50;

pub(in crate::living) fn join(team: &mut Team, cluster: &Arc<Cluster>) {
    let (sets, pods) = (&cluster.informers.replica_sets, &cluster.informers.pods);
    let replicator = Arc::new(Replicator {
        sets: sets.lister(),
        pods: pods.lister(),
        own: OwnWrites::new(pods.lister()),
        itself: OwnWrites::new(sets.lister()),
        cluster: cluster.clone(),
    });
    let sources = |controller: watchkeeper::Controller| {
        controller.reconciles(sets).owns::<k8s_openapi::api::apps::v1::ReplicaSet, _>(pods)
    };
    team.join("replicasets", 4, sources, move |key: ObjectKey| {
        let replicator = replicator.clone();
        async move { replicator.reconcile(&key).await }
    });
}

struct Replicator {
    cluster: Arc<Cluster>,
    sets: Lister<ReplicaSetView>,
    pods: Lister<PodView>,
    /// Writes to pods, and to the ReplicaSet itself.
    own: OwnWrites<PodView>,
    itself: OwnWrites<ReplicaSetView>,
}

impl Replicator {
    async fn reconcile(&self, key: &ObjectKey) -> Result<Outcome, ReconcileError> {
        self.own.seen(key).await?;
        self.itself.seen(key).await?;
        let Some(object) = self.sets.get(key) else { return Ok(Outcome::Done) };
        let set = decoded(&object)?;
        let mut pods = owned(&self.pods, &set.metadata.uid)?;
        pods.retain(|pod| !pod.metadata.is_deleting() && !pod.is_over());
        let mut problem = None;
        if !set.metadata.is_deleting() {
            let wanted = usize::try_from(set.wanted()).unwrap_or_default();
            let missing = wanted.saturating_sub(pods.len()).min(BURST);
            let room = self.cluster.most_pods.saturating_sub(self.pods.store().len());
            if missing > room {
                problem = Some("this cluster has no room for more pods");
            }
            for _ in 0..missing.min(room) {
                self.create(key, &set).await?;
            }
            let too_many = pods.len().saturating_sub(wanted).min(BURST);
            if too_many > 0 {
                pods.sort_by_key(|pod| importance(pod));
            }
            for pod in &pods[..too_many] {
                self.delete(key, &set, pod).await?;
            }
        }
        let ready = pods.iter().filter(|pod| pod.status.is_ready()).count();
        let status = replica_set::status(pods.len(), ready, set.metadata.generation, problem);
        if differs(&set.status, &status) {
            let target = target(Resource::ReplicaSets, key);
            let written = self.cluster.api.patch_status(target, &set.metadata.resource_version, &status).await?;
            self.itself.note(key, &written.metadata.resource_version);
        }
        // There may be room later.
        Ok(problem.map_or(Outcome::Done, |_| Outcome::RequeueAfter(Duration::from_secs(10))))
    }

    async fn create(&self, key: &ObjectKey, set: &ReplicaSetView) -> Result<(), ApiError> {
        let metadata = &set.metadata;
        let owner = replica_set::owner(&metadata.name, &metadata.uid);
        let pod = pod::of_template(&set.spec.template, &metadata.namespace, &owner);
        let made = self.cluster.api.create(Resource::Pods, &metadata.namespace, &pod).await?;
        self.own.note(key, &made.metadata.resource_version);
        let message = format!("Created pod: {}", made.metadata.name);
        self.cluster.note(about("apps/v1", "ReplicaSet", metadata), FROM, false, "SuccessfulCreate", message);
        Ok(())
    }

    async fn delete(&self, key: &ObjectKey, set: &ReplicaSetView, pod: &PodView) -> Result<(), ApiError> {
        let of = &pod.metadata;
        let target = Target { resource: Resource::Pods, namespace: &of.namespace, name: &of.name };
        let deleted = self.cluster.api.delete(target, &of.uid, None).await?;
        self.own.note(key, &deleted.unwrap_or_default().metadata.resource_version);
        let message = format!("Deleted pod: {}", of.name);
        self.cluster.note(about("apps/v1", "ReplicaSet", &set.metadata), FROM, false, "SuccessfulDelete", message);
        Ok(())
    }
}

/// Who goes first: those that are nowhere, then those that do not run, then those that are not ready, then the youngest.
fn importance(pod: &PodView) -> (bool, bool, bool, std::cmp::Reverse<Option<jiff::Timestamp>>) {
    let created = std::cmp::Reverse(pod.metadata.creation_timestamp);
    (!pod.spec.node_name.is_empty(), pod.status.phase == "Running", pod.status.is_ready(), created)
}
