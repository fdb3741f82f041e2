//! Nodes: those whose kubelet is there say so again and again, and of the others it is noticed.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use serde_json::json;
use tokio::time::Instant;
use watchkeeper::{Lister, ObjectKey, Outcome, RateLimitingQueue, ReconcileError};

use super::{Cluster, Team, about, decoded, target};
use crate::living::api::{ApiError, Resource, Target};
use crate::living::clock::micro;
use crate::living::objects::node;
use crate::living::views::NodeView;

const FROM: &str = "node-controller";

pub(in crate::living) fn join(team: &mut Team, cluster: &Arc<Cluster>, heartbeat: Duration) -> Outages {
    let nodes = &cluster.informers.nodes;
    let away: Arc<Mutex<HashSet<ObjectKey>>> = Arc::default();
    let keeper = Arc::new(Keeper {
        nodes: nodes.lister(),
        away: away.clone(),
        renewed: Mutex::default(),
        heartbeat,
        cluster: cluster.clone(),
    });
    let queue = team.join(
        "nodes",
        2,
        |controller| controller.reconciles(nodes),
        move |key: ObjectKey| {
            let keeper = keeper.clone();
            async move { keeper.reconcile(&key).await }
        },
    );
    Outages { away, queue }
}

/// How often a node says that it is there: ten seconds, or less often where there are many.
pub(in crate::living) fn heartbeat(nodes: usize) -> Duration {
    Duration::from_millis(100 * nodes as u64).max(Duration::from_secs(10))
}

/// Which nodes are away.
#[derive(Clone)]
pub(in crate::living) struct Outages {
    away: Arc<Mutex<HashSet<ObjectKey>>>,
    queue: RateLimitingQueue<ObjectKey>,
}

impl Outages {
    /// The node's kubelet is heard of, or not, from now on.
    pub(in crate::living) fn set(&self, node: &ObjectKey, is_away: bool) {
        let mut away = self.away.lock().unwrap_or_else(PoisonError::into_inner);
        let _ = if is_away { away.insert(node.clone()) } else { away.remove(node) };
        drop(away);
        self.queue.add(node.clone());
    }
}

struct Keeper {
    cluster: Arc<Cluster>,
    nodes: Lister<NodeView>,
    away: Arc<Mutex<HashSet<ObjectKey>>>,
    renewed: Mutex<HashMap<ObjectKey, Instant>>,
    heartbeat: Duration,
}

impl Keeper {
    async fn reconcile(&self, key: &ObjectKey) -> Result<Outcome, ReconcileError> {
        let Some(object) = self.nodes.get(key) else {
            self.away.lock().unwrap_or_else(PoisonError::into_inner).remove(key);
            self.renewed.lock().unwrap_or_else(PoisonError::into_inner).remove(key);
            return Ok(Outcome::Done);
        };
        let view = decoded(&object)?;
        let is_heard = !self.away.lock().unwrap_or_else(PoisonError::into_inner).contains(key);
        if view.is_ready() != is_heard {
            let conditions = node::conditions(&view.status.conditions, is_heard, self.cluster.clock.now());
            let status = json!({"conditions": conditions});
            let of = target(Resource::Nodes, key);
            self.cluster.api.patch_status(of, &view.metadata.resource_version, &status).await?;
            let reason = if is_heard { "NodeReady" } else { "NodeNotReady" };
            let message = format!("Node {key} status is now: {reason}");
            self.cluster.note(about("v1", "Node", &view.metadata), FROM, !is_heard, reason, message);
        }
        if !is_heard {
            return Ok(Outcome::Done);
        }
        Ok(Outcome::RequeueAfter(self.renew(key, &view).await?))
    }

    /// Renews the lease, if it is time; says when it is next.
    async fn renew(&self, key: &ObjectKey, view: &NodeView) -> Result<Duration, ApiError> {
        let last = self.renewed.lock().unwrap_or_else(PoisonError::into_inner).get(key).copied();
        // Not all at once: each node begins at a time of its own.
        let Some(last) = last else {
            let part = crate::living::objects::hash(key.name()) % 1000;
            let delay = self.heartbeat.mul_f64(part as f64 / 1000.0);
            self.remember(key, Instant::now().checked_sub(self.heartbeat - delay).unwrap_or_else(Instant::now));
            return Ok(delay.max(Duration::from_millis(1)));
        };
        if let Some(left) = self.heartbeat.checked_sub(last.elapsed()).filter(|left| !left.is_zero()) {
            return Ok(left);
        }
        let (api, now) = (&self.cluster.api, self.cluster.clock.exact());
        let lease = Target { resource: Resource::Leases, namespace: node::LEASES, name: key.name() };
        match api.patch(lease, &json!({"spec": {"renewTime": micro(now)}})).await {
            Err(error) if error.is_not_found() => {
                let lease = node::lease(key.name(), &view.metadata.uid, 4 * self.heartbeat.as_secs(), now);
                api.create(Resource::Leases, node::LEASES, &lease).await?;
            }
            renewed => drop(renewed?),
        }
        self.remember(key, Instant::now());
        Ok(self.heartbeat)
    }

    fn remember(&self, key: &ObjectKey, at: Instant) {
        self.renewed.lock().unwrap_or_else(PoisonError::into_inner).insert(key.clone(), at);
    }
}
