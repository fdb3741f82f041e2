//! The scheduler: a node for each pod, the one with the fewest.

use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use watchkeeper::{IndexError, Lister, ObjectKey, Outcome, Predicate, ReconcileError};

use super::{BY_NODE, Cluster, Team, about, decoded, target};
use crate::living::api::Resource;
use crate::living::own_writes::OwnWrites;
use crate::living::views::{NodeView, PodView};

const FROM: &str = "default-scheduler";
/// What a kubelet takes.
const PODS_PER_NODE: usize = 110;
/// When to look again for a node.
const AGAIN: Duration = Duration::from_secs(3);

pub(in crate::living) fn join(team: &mut Team, cluster: &Arc<Cluster>) {
    let (nodes, pods) = (&cluster.informers.nodes, &cluster.informers.pods);
    let scheduler = Arc::new(Scheduler {
        nodes: nodes.lister(),
        pods: pods.lister(),
        own: OwnWrites::new(pods.lister()),
        cluster: cluster.clone(),
    });
    // What has a node needs none.
    let unplaced =
        Predicate::<PodView>::new(|event| event.object().decode().is_ok_and(|pod| pod.spec.node_name.is_empty()));
    // The nodes are not reconciled, but have to be known.
    let sources =
        |controller: watchkeeper::Controller| controller.reconciles_if(pods, unplaced).watches(nodes, |_| None);
    // One worker: so that none takes the place that another has just given away.
    team.join("scheduler", 1, sources, move |key: ObjectKey| {
        let scheduler = scheduler.clone();
        async move { scheduler.reconcile(&key).await }
    });
}

struct Scheduler {
    cluster: Arc<Cluster>,
    nodes: Lister<NodeView>,
    pods: Lister<PodView>,
    own: OwnWrites<PodView>,
}

impl Scheduler {
    async fn reconcile(&self, key: &ObjectKey) -> Result<Outcome, ReconcileError> {
        // Whichever pod it was: where it went counts.
        let last = ObjectKey::cluster("the last one");
        self.own.seen(&last).await?;
        let Some(object) = self.pods.get(key) else { return Ok(Outcome::Done) };
        let pod = decoded(&object)?;
        if !pod.spec.node_name.is_empty() || pod.metadata.is_deleting() || pod.is_over() {
            return Ok(Outcome::Done);
        }
        let (api, version) = (&self.cluster.api, &pod.metadata.resource_version);
        let Some(node) = self.node()? else {
            let message = format!("0/{} nodes are available", self.nodes.store().len());
            let status = pod.status.clone().unschedulable(&message, self.cluster.clock.now());
            if status != pod.status {
                api.patch_status(target(Resource::Pods, key), version, &json!(status)).await?;
                self.cluster.note(about("v1", "Pod", &pod.metadata), FROM, true, "FailedScheduling", message);
            }
            return Ok(Outcome::RequeueAfter(AGAIN));
        };
        let written = api.bind(target(Resource::Pods, key), version, &node).await?;
        self.own.note(&last, &written.metadata.resource_version);
        let message = format!("Successfully assigned {key} to {node}");
        self.cluster.note(about("v1", "Pod", &pod.metadata), FROM, false, "Scheduled", message);
        Ok(Outcome::Done)
    }

    /// The node with the fewest pods, of those that take more.
    fn node(&self) -> Result<Option<String>, IndexError> {
        let mut best: Option<(usize, String)> = None;
        for node in &self.nodes.list() {
            if !node.decode().is_ok_and(|node| node.takes_pods()) {
                continue;
            }
            let name = node.key().name();
            let pods = self.pods.by_index(BY_NODE, name)?.len();
            let is_better = best.as_ref().is_none_or(|(fewest, of)| (pods, name) < (*fewest, of.as_str()));
            if pods < PODS_PER_NODE && is_better {
                best = Some((pods, name.to_owned()));
            }
        }
        Ok(best.map(|(_, name)| name))
    }
}
