//! What puts keys into a controller's queue?

use std::any::TypeId;
use std::hash::Hash;

use futures::future::BoxFuture;
use kube_core::{ClusterResourceScope, Resource};
use serde::Deserialize;

use super::predicate::Predicate;
use crate::defaults::INITIAL_PRIORITY;
use crate::workqueue::{AddOptions, RateLimitingQueue};
use crate::{Cached, Cause, Error, ErrorKind, Event, HandlerGuard, HandlerOptions, Object, ObjectKey, SharedInformer};

/// An informer whose events put keys into a queue.
pub(super) struct Source<T: Eq + Hash + Clone> {
    begin: Box<Begin<T>>,
}

/// Adds the handler, under the controller's name.
type Begin<T> = dyn FnOnce(&RateLimitingQueue<T>, &str) -> Result<Begun, Error> + Send;

/// One that does.
pub(super) struct Begun {
    /// With it, it ends.
    pub(super) handler: HandlerGuard,
    /// The informer's first list.
    pub(super) synced: BoxFuture<'static, Result<(), Error>>,
    /// The informer's end.
    pub(super) stopped: BoxFuture<'static, Error>,
}

impl<T: Eq + Hash + Clone + Send + 'static> Source<T> {
    /// Puts in what `map` makes of each object that events are about: of both states, if it changed.
    pub(super) fn new<K, I>(
        informer: &SharedInformer<K>,
        predicate: Option<Predicate<K>>,
        map: impl Fn(&Cached<K>) -> I + Send + Sync + 'static,
    ) -> Self
    where
        K: 'static,
        I: IntoIterator<Item = T>,
    {
        let informer = informer.clone();
        let begin = move |queue: &RateLimitingQueue<T>, name: &str| {
            let queue = queue.clone();
            let handler = informer.on_event_with(HandlerOptions::new().name(name), move |event: &Event<K>| {
                if predicate.as_ref().is_some_and(|predicate| !predicate.passes(event)) {
                    return;
                }
                // What was there before the controller can wait for what happens now.
                let priority = if event.cause() == Cause::Initial { INITIAL_PRIORITY } else { 0 };
                let options = AddOptions { priority, ..AddOptions::default() };
                let add = |object: &Cached<K>| map(object).into_iter().for_each(|key| queue.add_with(key, options));
                if let Event::Updated { old, .. } = event {
                    add(old);
                }
                add(event.object());
            })?;
            let (waited_for, name) = (informer.clone(), Box::<str>::from(name));
            let synced = Box::pin(async move { waited_for.synced().await.map(|_| ()) });
            let stopped = Box::pin(async move {
                informer.stopped().await;
                let of = informer.name();
                Error::new(
                    ErrorKind::Stopped,
                    format_args!(
                        "the informer of {of} has been stopped: controller {name} would hear nothing more of it"
                    ),
                )
            });
            Ok(Begun { handler: handler.guard(), synced, stopped })
        };
        Self { begin: Box::new(begin) }
    }

    pub(super) fn begin(self, queue: &RateLimitingQueue<T>, name: &str) -> Result<Begun, Error> {
        (self.begin)(queue, name)
    }
}

/// The key of the object's owner, if that is a `Parent` and the owner that controls it.
pub(super) fn controller_of<Parent>(object: &Object) -> Option<ObjectKey>
where
    Parent: Resource<DynamicType = ()>,
    Parent::Scope: 'static,
{
    let (group, kind) = (Parent::group(&()), Parent::kind(&()));
    let owners = object.decode::<View>().ok()?.metadata.owner_references?;
    // One that makes no sense hides no other.
    let owner = owners.into_iter().filter_map(|owner| Owner::deserialize(owner).ok()).find(|owner| {
        let (of, _) = owner.api_version.split_once('/').unwrap_or(("", &owner.api_version));
        owner.controller == Some(true) && owner.kind == kind && of == group
    })?;
    // An owner is in the namespace of what it owns, or in none.
    let is_cluster_scoped = TypeId::of::<Parent::Scope>() == TypeId::of::<ClusterResourceScope>();
    match object.key().namespace().filter(|_| !is_cluster_scoped) {
        Some(namespace) => Some(ObjectKey::namespaced(namespace, &owner.name)),
        None => Some(ObjectKey::cluster(&owner.name)),
    }
}

#[derive(Deserialize)]
struct View {
    metadata: Metadata,
}

#[derive(Deserialize)]
struct Metadata {
    #[serde(rename = "ownerReferences")]
    owner_references: Option<Vec<serde_json::Value>>,
}

#[derive(Deserialize)]
struct Owner {
    #[serde(rename = "apiVersion")]
    api_version: String,
    kind: String,
    name: String,
    controller: Option<bool>,
}
