//! The garbage collector: what belongs to something that is gone goes too.
//!
//! An owner that is waited for in the foreground goes when nothing belongs to it any more; one whose dependents are to be
//! left alone goes when nothing refers to it any more.

use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use watchkeeper::{Controller, Event, Lister, ObjectKey, Outcome, Predicate, ReconcileError, SharedInformer};

use super::{BY_OWNER, Cluster, Team, target};
use crate::living::api::{Resource, Target, Written};
use crate::living::views::{Meta, Owner};

const FOREGROUND: &str = "foregroundDeletion";
const ORPHAN: &str = "orphan";

/// Something that is looked at.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum Suspect {
    /// Whose owner may be gone.
    Dependent(Resource, ObjectKey),
    /// That waits for its dependents.
    Owner(Resource, ObjectKey),
}

pub(in crate::living) fn join(team: &mut Team, cluster: &Arc<Cluster>) {
    let informers = &cluster.informers;
    let collector = Arc::new(Collector { cluster: cluster.clone() });
    let sources = |controller: Controller<Suspect>| {
        let controller = dependents(controller, &informers.pods, Resource::Pods);
        let controller = dependents(controller, &informers.replica_sets, Resource::ReplicaSets);
        let controller = dependents(controller, &informers.slices, Resource::EndpointSlices);
        let sets = informers.replica_sets.lister();
        let controller = owners(controller, &informers.deployments, Resource::Deployments, sets, Resource::ReplicaSets);
        let pods = informers.pods.lister();
        let controller = owners(controller, &informers.replica_sets, Resource::ReplicaSets, pods, Resource::Pods);
        let pods = informers.pods.lister();
        let controller = owners(controller, &informers.jobs, Resource::Jobs, pods, Resource::Pods);
        let slices = informers.slices.lister();
        owners(controller, &informers.services, Resource::Services, slices, Resource::EndpointSlices)
    };
    team.join("garbage", 2, sources, move |suspect: Suspect| {
        let collector = collector.clone();
        async move {
            match suspect {
                Suspect::Dependent(resource, key) => collector.dependent(resource, &key).await,
                Suspect::Owner(resource, key) => collector.owner(resource, &key).await,
            }
        }
    });
}

/// What is new may have come after its owner went.
fn dependents<K: 'static>(
    controller: Controller<Suspect>,
    informer: &SharedInformer<K>,
    resource: Resource,
) -> Controller<Suspect> {
    let is_new = Predicate::new(|event| matches!(event, Event::Added { .. }));
    controller.watches_if(informer, is_new, move |object| [Suspect::Dependent(resource, object.key().clone())])
}

/// What goes, or wants to go, concerns its dependents.
fn owners<K: 'static, D: 'static>(
    controller: Controller<Suspect>,
    informer: &SharedInformer<K>,
    resource: Resource,
    dependents: Lister<D>,
    of: Resource,
) -> Controller<Suspect> {
    let goes = Predicate::new(|event| matches!(event, Event::Deleted { .. }) || event.object().is_deleting());
    controller.watches_if(informer, goes, move |owner| {
        let owned = owner.uid().and_then(|uid| dependents.by_index(BY_OWNER, uid).ok());
        let owned = owned.into_iter().flatten().map(|object| Suspect::Dependent(of, object.key().clone()));
        owned.chain([Suspect::Owner(resource, owner.key().clone())]).collect::<Vec<_>>()
    })
}

struct Collector {
    cluster: Arc<Cluster>,
}

impl Collector {
    /// Deletes what has no owner left.
    async fn dependent(&self, resource: Resource, key: &ObjectKey) -> Result<Outcome, ReconcileError> {
        let Some(metadata) = self.metadata(resource, key)? else { return Ok(Outcome::Done) };
        if metadata.owner_references.is_empty() || metadata.is_deleting() {
            return Ok(Outcome::Done);
        }
        for owner in &metadata.owner_references {
            if !self.is_gone(&metadata.namespace, owner).await? {
                return Ok(Outcome::Done);
            }
        }
        self.cluster.api.delete(target(resource, key), &metadata.uid, None).await?;
        Ok(Outcome::Done)
    }

    /// Lets an owner go that waits for its dependents.
    async fn owner(&self, resource: Resource, key: &ObjectKey) -> Result<Outcome, ReconcileError> {
        let Some(metadata) = self.metadata(resource, key)? else { return Ok(Outcome::Done) };
        let waits_for = |finalizer: &str| metadata.finalizers.iter().any(|of| of == finalizer);
        if !metadata.is_deleting() || !(waits_for(FOREGROUND) || waits_for(ORPHAN)) {
            return Ok(Outcome::Done);
        }
        let dependents = self.owned_by(resource, &metadata.uid)?;
        let api = &self.cluster.api;
        for (of, dependent) in &dependents {
            let place = Target { resource: *of, namespace: &dependent.namespace, name: &dependent.name };
            if waits_for(ORPHAN) {
                let mut left = dependent.owner_references.clone();
                left.retain(|owner| owner.uid != metadata.uid);
                let version = &dependent.resource_version;
                let patch = json!({"metadata": {"resourceVersion": version, "ownerReferences": left}});
                api.patch(place, &patch).await?;
            } else if !dependent.is_deleting() {
                api.delete(place, &dependent.uid, None).await?;
            }
        }
        if !dependents.is_empty() {
            return Ok(Outcome::RequeueAfter(Duration::from_secs(1)));
        }
        let left: Vec<_> =
            metadata.finalizers.iter().filter(|of| ![FOREGROUND, ORPHAN].contains(&of.as_str())).collect();
        let patch = json!({"metadata": {"resourceVersion": metadata.resource_version, "finalizers": left}});
        api.patch(target(resource, key), &patch).await?;
        Ok(Outcome::Done)
    }

    /// An owner that is not in the cache is gone, or not yet known: the server knows. Owners of other kinds are somebody
    /// else's business, and count as there.
    async fn is_gone(&self, namespace: &str, owner: &Owner) -> Result<bool, ReconcileError> {
        let resource = match (owner.api_version.as_str(), owner.kind.as_str()) {
            ("apps/v1", "Deployment") => Resource::Deployments,
            ("apps/v1", "ReplicaSet") => Resource::ReplicaSets,
            ("batch/v1", "Job") => Resource::Jobs,
            ("v1", "Service") => Resource::Services,
            _ => return Ok(false),
        };
        let key = ObjectKey::namespaced(namespace, &owner.name);
        let is_same = |metadata: &Meta| metadata.uid == owner.uid;
        if self.metadata(resource, &key)?.is_some_and(|metadata| is_same(&metadata)) {
            return Ok(false);
        }
        match self.cluster.api.get(target(resource, &key)).await {
            Ok(written) => Ok(!is_same(&written.metadata)),
            Err(error) if error.is_not_found() => Ok(true),
            Err(error) => Err(error.into()),
        }
    }

    /// The metadata of an object in the cache.
    fn metadata(&self, resource: Resource, key: &ObjectKey) -> Result<Option<Meta>, ReconcileError> {
        let informers = &self.cluster.informers;
        match resource {
            Resource::Deployments => of(&informers.deployments, key),
            Resource::EndpointSlices => of(&informers.slices, key),
            Resource::Jobs => of(&informers.jobs, key),
            Resource::Pods => of(&informers.pods, key),
            Resource::ReplicaSets => of(&informers.replica_sets, key),
            Resource::Services => of(&informers.services, key),
            _ => Ok(None),
        }
    }

    /// All that belongs to an owner.
    fn owned_by(&self, resource: Resource, uid: &str) -> Result<Vec<(Resource, Meta)>, ReconcileError> {
        let informers = &self.cluster.informers;
        match resource {
            Resource::Deployments => all(&informers.replica_sets, Resource::ReplicaSets, uid),
            Resource::ReplicaSets | Resource::Jobs => all(&informers.pods, Resource::Pods, uid),
            Resource::Services => all(&informers.slices, Resource::EndpointSlices, uid),
            _ => Ok(Vec::new()),
        }
    }
}

fn of<K>(informer: &SharedInformer<K>, key: &ObjectKey) -> Result<Option<Meta>, ReconcileError> {
    let Some(object) = informer.store().get_by_key(key) else { return Ok(None) };
    let view: Written = object.decode().map_err(ReconcileError::terminal)?;
    Ok(Some(view.metadata))
}

fn all<K>(
    informer: &SharedInformer<K>,
    resource: Resource,
    uid: &str,
) -> Result<Vec<(Resource, Meta)>, ReconcileError> {
    let objects = informer.lister().by_index(BY_OWNER, uid)?;
    let metadata = objects.untyped().filter_map(|object| object.decode::<Written>().ok());
    Ok(metadata.map(|view| (resource, view.metadata)).collect())
}
