//! Deployments: one ReplicaSet for each template, and the way from one to the next.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde_json::{Value, json};
use watchkeeper::{Lister, ObjectKey, Outcome, ReconcileError};

use super::rolling::{Count, Limits, recreate, step};
use super::{Cluster, Team, about, decoded, differs, owned, target};
use crate::living::api::{ApiError, Resource, Target};
use crate::living::objects::{HASH_LABEL, deployment, replica_set};
use crate::living::own_writes::OwnWrites;
use crate::living::views::{DeploymentView, ReplicaSetView, replicas};

const FROM: &str = "deployment-controller";

pub(in crate::living) fn join(team: &mut Team, cluster: &Arc<Cluster>) {
    let (deployments, sets) = (&cluster.informers.deployments, &cluster.informers.replica_sets);
    let deployer = Arc::new(Deployer {
        deployments: deployments.lister(),
        sets: sets.lister(),
        own: OwnWrites::new(sets.lister()),
        itself: OwnWrites::new(deployments.lister()),
        rolling: Mutex::default(),
        cluster: cluster.clone(),
    });
    let sources = |controller: watchkeeper::Controller| {
        controller.reconciles(deployments).owns::<k8s_openapi::api::apps::v1::Deployment, _>(sets)
    };
    team.join("deployments", 2, sources, move |key: ObjectKey| {
        let deployer = deployer.clone();
        async move { deployer.reconcile(&key).await }
    });
}

struct Deployer {
    cluster: Arc<Cluster>,
    deployments: Lister<DeploymentView>,
    sets: Lister<ReplicaSetView>,
    /// Writes to ReplicaSets, and to the Deployment itself.
    own: OwnWrites<ReplicaSetView>,
    itself: OwnWrites<DeploymentView>,
    /// Those with a rollout whose end is to be told.
    rolling: Mutex<HashSet<ObjectKey>>,
}

impl Deployer {
    async fn reconcile(&self, key: &ObjectKey) -> Result<Outcome, ReconcileError> {
        self.own.seen(key).await?;
        self.itself.seen(key).await?;
        let Some(object) = self.deployments.get(key) else {
            self.rolling().remove(key);
            return Ok(Outcome::Done);
        };
        let view = decoded(&object)?;
        if view.metadata.is_deleting() {
            return Ok(Outcome::Done);
        }
        if !view.spec.template["spec"].is_object() {
            return Err(ReconcileError::terminal("its template has no spec"));
        }
        let mut sets = owned(&self.sets, &view.metadata.uid)?;
        sets.retain(|set| !set.metadata.is_deleting());
        sets.sort_by_key(|set| revision(set));
        let hash = replica_set::template_hash(&view.spec.template);
        let newest = sets.iter().position(|set| set.metadata.labels.get(HASH_LABEL) == Some(&hash));
        let Some(newest) = newest.map(|i| sets.remove(i)) else {
            if view.spec.paused {
                return Ok(Outcome::Done);
            }
            self.begin(key, &view, &sets).await?;
            return Ok(Outcome::Done);
        };
        let latest = sets.iter().map(|set| revision(set)).max().unwrap_or_default();
        if revision(&newest) < latest {
            // Somebody went back to a template of before.
            self.renew(key, &newest, latest + 1).await?;
            return Ok(Outcome::Done);
        }
        if !self.scale(key, &view, &newest, &sets).await? {
            self.forget_old(key, &view, &newest, &sets).await?;
        }
        self.tell(key, &view, &newest, &sets).await?;
        Ok(Outcome::Done)
    }

    /// Makes the ReplicaSet of a new template.
    async fn begin(
        &self,
        key: &ObjectKey,
        view: &DeploymentView,
        others: &[Arc<ReplicaSetView>],
    ) -> Result<(), ApiError> {
        let metadata = &view.metadata;
        let (replicas, _) = next_counts(view, Count::default(), others);
        let revision = others.iter().map(|set| revision(set)).max().unwrap_or_default() + 1;
        let owner = deployment::owner(&metadata.name, &metadata.uid);
        let (selector, template) = (&view.spec.selector, &view.spec.template);
        let set = replica_set::of_deployment(&owner, &metadata.namespace, selector, template, replicas, revision);
        let made = self.cluster.api.create(Resource::ReplicaSets, &metadata.namespace, &set).await?;
        self.own.note(key, &made.metadata.resource_version);
        self.scaled(view, &made.metadata.name, 0, replicas);
        self.rolling().insert(key.clone());
        self.number(key, revision).await
    }

    /// Makes a ReplicaSet the newest again.
    async fn renew(&self, key: &ObjectKey, set: &ReplicaSetView, revision: u64) -> Result<(), ApiError> {
        let patch = json!({"metadata": {
            "resourceVersion": set.metadata.resource_version,
            "annotations": {replica_set::REVISION: revision.to_string()},
        }});
        let written = self.cluster.api.patch(of_set(set), &patch).await?;
        self.own.note(key, &written.metadata.resource_version);
        self.rolling().insert(key.clone());
        self.number(key, revision).await
    }

    /// Writes down which revision it is.
    async fn number(&self, key: &ObjectKey, revision: u64) -> Result<(), ApiError> {
        let patch = json!({"metadata": {"annotations": {replica_set::REVISION: revision.to_string()}}});
        let written = self.cluster.api.patch(target(Resource::Deployments, key), &patch).await?;
        self.itself.note(key, &written.metadata.resource_version);
        Ok(())
    }

    /// Tells the ReplicaSets how many pods to have. False if they know.
    async fn scale(
        &self,
        key: &ObjectKey,
        view: &DeploymentView,
        newest: &Arc<ReplicaSetView>,
        others: &[Arc<ReplicaSetView>],
    ) -> Result<bool, ApiError> {
        let (next, left) = next_counts(view, count(newest), others);
        let changes = others.iter().zip(left).chain([(newest, next)]);
        let changes: Vec<_> = changes.filter(|(set, replicas)| set.wanted() != *replicas).collect();
        if view.spec.paused && !others.is_empty() {
            return Ok(false);
        }
        for (set, replicas) in &changes {
            let patch = json!({
                "metadata": {"resourceVersion": set.metadata.resource_version},
                "spec": {"replicas": replicas},
            });
            let written = self.cluster.api.patch(of_set(set), &patch).await?;
            self.own.note(key, &written.metadata.resource_version);
            self.scaled(view, &set.metadata.name, set.wanted(), *replicas);
        }
        Ok(!changes.is_empty())
    }

    fn scaled(&self, view: &DeploymentView, set: &str, from: i64, to: i64) {
        let direction = if to >= from { "up" } else { "down" };
        let message = format!("Scaled {direction} replica set {set} from {from} to {to}");
        let about = about("apps/v1", "Deployment", &view.metadata);
        self.cluster.note(about, FROM, false, "ScalingReplicaSet", message);
    }

    /// Removes ReplicaSets that nobody will go back to.
    async fn forget_old(
        &self,
        key: &ObjectKey,
        view: &DeploymentView,
        newest: &ReplicaSetView,
        others: &[Arc<ReplicaSetView>],
    ) -> Result<(), ApiError> {
        if !tally(view, newest, others).is_complete() {
            return Ok(());
        }
        let empty: Vec<_> = others.iter().filter(|set| set.wanted() == 0 && set.count("replicas") == 0).collect();
        let keep = usize::try_from(view.spec.revision_history_limit.unwrap_or(10)).unwrap_or_default();
        // They come oldest first.
        for set in &empty[..empty.len().saturating_sub(keep)] {
            let written = self.cluster.api.delete(of_set(set), &set.metadata.uid, None).await?;
            self.own.note(key, &written.unwrap_or_default().metadata.resource_version);
        }
        Ok(())
    }

    /// Says how it goes.
    async fn tell(
        &self,
        key: &ObjectKey,
        view: &DeploymentView,
        newest: &ReplicaSetView,
        others: &[Arc<ReplicaSetView>],
    ) -> Result<(), ApiError> {
        let (metadata, now) = (&view.metadata, self.cluster.clock.now());
        let tally = tally(view, newest, others);
        let status = deployment::status(&view.status, tally, metadata.generation, &newest.metadata.name, now);
        if !differs(&view.status, &status) {
            return Ok(());
        }
        let deployment = target(Resource::Deployments, key);
        let written = self.cluster.api.patch_status(deployment, &metadata.resource_version, &status).await?;
        self.itself.note(key, &written.metadata.resource_version);
        if tally.is_complete() && self.rolling().remove(key) {
            self.cluster.story.tell(format!("{key} is complete: {} pods of {}", tally.wanted, image(view)));
        }
        Ok(())
    }

    fn rolling(&self) -> MutexGuard<'_, HashSet<ObjectKey>> {
        self.rolling.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// How many pods the newest ReplicaSet and the others are to have next.
fn next_counts(view: &DeploymentView, newest: Count, others: &[Arc<ReplicaSetView>]) -> (i64, Vec<i64>) {
    let counts: Vec<Count> = others.iter().map(|set| count(set)).collect();
    match view.spec.strategy.r#type.as_deref() {
        Some("Recreate") => recreate(replicas(view.spec.replicas), newest, &counts),
        _ => step(Limits::of(&view.spec), newest, &counts),
    }
}

fn count(set: &ReplicaSetView) -> Count {
    Count { wanted: set.wanted(), present: set.count("replicas"), available: set.count("availableReplicas") }
}

fn tally(view: &DeploymentView, newest: &ReplicaSetView, others: &[Arc<ReplicaSetView>]) -> deployment::Tally {
    let sum = |field: &str| newest.count(field) + others.iter().map(|set| set.count(field)).sum::<i64>();
    let limits = Limits::of(&view.spec);
    deployment::Tally {
        wanted: limits.wanted,
        all: sum("replicas"),
        updated: newest.count("replicas"),
        ready: sum("readyReplicas"),
        available: sum("availableReplicas"),
        least: limits.least(),
    }
}

fn image(view: &DeploymentView) -> &str {
    view.spec.template.pointer("/spec/containers/0/image").and_then(Value::as_str).unwrap_or("no image")
}

fn of_set(set: &ReplicaSetView) -> Target<'_> {
    Target { resource: Resource::ReplicaSets, namespace: &set.metadata.namespace, name: &set.metadata.name }
}

fn revision(set: &ReplicaSetView) -> u64 {
    set.metadata.annotations.get(replica_set::REVISION).and_then(|text| text.parse().ok()).unwrap_or_default()
}
