//! Who keeps the cluster going? The controllers of a cluster, small ones, each on informers and a queue of the library.
//!
//! All of them read from caches and write to the server, and none talks to another. What a controller does depends only
//! on what there is, so that it does not matter what it has missed. They survive whatever the server does to their
//! requests: the informers list and watch again, and a key whose work fails comes back after a while.
//!
//! | controller | what it looks at | what it sees to |
//! |---|---|---|
//! | [`deployment`] | a Deployment | its ReplicaSets, from one template to the next ([`rolling`]) |
//! | [`replica_set`] | a ReplicaSet | that there are as many pods as it wants |
//! | [`job`] | a Job | its pod |
//! | [`scheduler`] | a Pod that is nowhere | a node for it |
//! | [`kubelet`] | a Pod on a node | that it starts, runs, fails, ends |
//! | [`nodes`] | a Node | its heartbeats |
//! | [`endpoints`] | a Service | the slice of its pods |
//!
//! What belongs to something that goes, and what is in a namespace that goes, is removed by the server itself.

pub(super) mod deployment;
pub(super) mod endpoints;
pub(super) mod job;
pub(super) mod kubelet;
pub(super) mod nodes;
pub(super) mod replica_set;
pub(super) mod rolling;
pub(super) mod scheduler;

use std::fmt;
use std::hash::Hash;
use std::sync::Arc;
use std::sync::atomic::AtomicU32;
use std::time::Duration;

use serde::de::DeserializeOwned;
use serde_json::Value;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use watchkeeper::workqueue::limiter::{Exponential, MaxOf};
use watchkeeper::{
    Cached, Controller, Error, Index, IndexError, InformerFactory, InformerOptions, Keep, Lister, ObjectKey, Outcome,
    RateLimitingQueue, ReconcileError, SharedInformer,
};

use super::api::{Api, Resource, Target};
use super::clock::Clock;
use super::objects::event::{About, Note};
use super::recorder::Recorder;
use super::story::Story;
use super::views::{
    ConfigView, DeploymentView, JobView, Meta, NodeView, PodView, ReplicaSetView, ServiceView, SliceView,
};

/// By the uid of an owner.
pub(super) const BY_OWNER: &str = "owner";
/// Pods by their node.
pub(super) const BY_NODE: &str = "node";
/// Services by each label that they select by.
pub(super) const BY_SELECTOR: &str = "selector";

/// In larger clusters pods are not kept decoded: that would take too much memory.
const MOST_DECODED: usize = 20_000;
/// How often it is looked whether a cache is known to be out of date.
const HEAL: Duration = Duration::from_secs(30);

/// What all controllers share.
pub(super) struct Cluster {
    pub(super) api: Api,
    pub(super) clock: Clock,
    pub(super) story: Story,
    pub(super) recorder: Recorder,
    pub(super) informers: Informers,
    /// No more pods than this are made, whoever wants them.
    pub(super) most_pods: usize,
    /// The number of the last pod that got an address.
    pub(super) addresses: AtomicU32,
}

/// The informers that all controllers share.
pub(super) struct Informers {
    pub(super) configs: SharedInformer<ConfigView>,
    pub(super) deployments: SharedInformer<DeploymentView>,
    pub(super) jobs: SharedInformer<JobView>,
    pub(super) nodes: SharedInformer<NodeView>,
    pub(super) pods: SharedInformer<PodView>,
    pub(super) replica_sets: SharedInformer<ReplicaSetView>,
    pub(super) services: SharedInformer<ServiceView>,
    pub(super) slices: SharedInformer<SliceView>,
}

impl Informers {
    /// The informers, not yet started, with their indexes.
    pub(super) async fn of(factory: &InformerFactory, objects: usize) -> Result<Self, Error> {
        // The scheduler looks at all nodes for each pod.
        let nodes = InformerOptions::new().keep(Keep::decoded::<NodeView>());
        // With each pod that changes all of its ReplicaSet and its Service are looked at.
        let pods = match objects <= MOST_DECODED {
            true => InformerOptions::new().keep(Keep::decoded::<PodView>()),
            false => InformerOptions::new(),
        };
        let informers = Self {
            configs: factory.informer(),
            deployments: factory.informer(),
            jobs: factory.informer(),
            nodes: factory.informer_with(nodes)?,
            pods: factory.informer_with(pods)?,
            replica_sets: factory.informer(),
            services: factory.informer(),
            slices: factory.informer(),
        };
        let selected = |service: &ServiceView| service.spec.selector.iter().map(selected_by).collect::<Vec<_>>();
        informers.pods.add_index(BY_OWNER, Index::owner_uid()).await?;
        informers.pods.add_index(BY_NODE, Index::field("/spec/nodeName")).await?;
        informers.replica_sets.add_index(BY_OWNER, Index::owner_uid()).await?;
        informers.services.add_index(BY_SELECTOR, Index::by(selected)).await?;
        Ok(informers)
    }

    /// Has all that is known to be out of date listed again, for ever: what came in a form that nobody could read, say.
    pub(super) async fn heal(&self) {
        loop {
            tokio::time::sleep(HEAL).await;
            heal(&self.configs);
            heal(&self.deployments);
            heal(&self.jobs);
            heal(&self.nodes);
            heal(&self.pods);
            heal(&self.replica_sets);
            heal(&self.services);
            heal(&self.slices);
        }
    }
}

fn heal<K: 'static>(informer: &SharedInformer<K>) {
    if informer.status().stale_object_count > 0 {
        informer.relist();
    }
}

/// A label that a Service selects by, in the index.
pub(super) fn selected_by<K: fmt::Display, V: fmt::Display>((key, value): (K, V)) -> String {
    format!("{key}={value}")
}

/// How a queue is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct QueueSample {
    /// The controller's name.
    pub(crate) name: &'static str,
    /// Keys that wait for a worker.
    pub(crate) depth: usize,
    /// Keys that wait for their time.
    pub(crate) waiting: usize,
    /// Keys that are being worked on.
    pub(crate) in_flight: usize,
    /// Keys that were worked on without an error.
    pub(crate) processed: u64,
    /// Keys that were to be tried again after an error.
    pub(crate) retries: u64,
}

/// The controllers that run.
pub(super) struct Team {
    token: CancellationToken,
    tasks: Vec<JoinHandle<()>>,
    samples: Vec<Box<dyn Fn() -> QueueSample + Send + Sync>>,
}

impl Team {
    /// Nobody yet; all who join stop with the token.
    pub(super) fn new(token: CancellationToken) -> Self {
        Self { token, tasks: Vec::new(), samples: Vec::new() }
    }

    /// Starts a controller, and gives its queue.
    pub(super) fn join<T, F, R>(
        &mut self,
        name: &'static str,
        workers: usize,
        sources: impl FnOnce(Controller<T>) -> Controller<T>,
        reconcile: F,
    ) -> RateLimitingQueue<T>
    where
        T: Eq + Hash + Clone + fmt::Debug + Send + Sync + 'static,
        F: Fn(T) -> R + Send + Sync + 'static,
        R: Future<Output = Result<Outcome, ReconcileError>> + Send + 'static,
    {
        let limiter = MaxOf::new().and(Exponential::new(Duration::from_millis(5), Duration::from_secs(10)));
        let queue: RateLimitingQueue<T> = RateLimitingQueue::new(limiter);
        let controller = Controller::new(name, queue.clone())
            .workers(workers)
            .timeout(Duration::from_secs(120))
            .grace(Duration::from_secs(2));
        let controller = sources(controller);
        let (sampled, stats) = (queue.clone(), controller.stats());
        self.samples.push(Box::new(move || {
            let stats = stats.get();
            QueueSample {
                name,
                depth: sampled.len(),
                waiting: sampled.waiting_len(),
                in_flight: stats.active,
                processed: stats.succeeded,
                retries: stats.failed,
            }
        }));
        let token = self.token.clone();
        self.tasks.push(tokio::spawn(async move {
            if let Err(error) = controller.run(token, reconcile).await {
                tracing::error!(controller = name, %error, "a controller of the living cluster has stopped");
            }
        }));
        queue
    }

    /// Something else that runs, and ends with the token.
    pub(super) fn also(&mut self, work: impl Future<Output = ()> + Send + 'static) {
        self.tasks.push(tokio::spawn(work));
    }

    pub(super) fn samples(&self) -> Vec<QueueSample> {
        self.samples.iter().map(|sample| sample()).collect()
    }

    /// Waits until all have stopped, which the token tells them to.
    pub(super) async fn stopped(&mut self) {
        for task in self.tasks.drain(..) {
            let _ = task.await;
        }
    }
}

impl Cluster {
    /// Tells of an object.
    pub(super) fn note(&self, about: About, from: &'static str, warning: bool, reason: &'static str, message: String) {
        self.recorder.tell(Note { about, from, warning, reason, message });
    }
}

/// What an event is about.
pub(super) fn about(api_version: &'static str, kind: &'static str, metadata: &Meta) -> About {
    About {
        api_version,
        kind,
        namespace: metadata.namespace.clone(),
        name: metadata.name.clone(),
        uid: metadata.uid.clone(),
    }
}

/// The object under a key, in a request.
pub(super) fn target(resource: Resource, key: &ObjectKey) -> Target<'_> {
    Target { resource, namespace: key.namespace().unwrap_or_default(), name: key.name() }
}

/// An object as its controller sees it. One that makes no sense is left alone until somebody changes it.
pub(super) fn decoded<K>(object: &Cached<K>) -> Result<Arc<K>, ReconcileError>
where
    K: DeserializeOwned + Send + Sync + 'static,
{
    object.decode().map_err(ReconcileError::terminal)
}

/// All that somebody owns; what makes no sense is left out.
pub(super) fn owned<K>(lister: &Lister<K>, owner_uid: &str) -> Result<Vec<Arc<K>>, IndexError>
where
    K: DeserializeOwned + Send + Sync + 'static,
{
    Ok(lister.by_index(BY_OWNER, owner_uid)?.iter().filter_map(|object| object.decode().ok()).collect())
}

/// Whether anything of what is wanted is not so yet. What else is there is somebody else's.
pub(super) fn differs(present: &Value, wanted: &Value) -> bool {
    match wanted {
        Value::Object(wanted) => wanted.iter().any(|(key, value)| present.get(key) != Some(value)),
        wanted => present != wanted,
    }
}
