//! The kubelets of all nodes: pods start, run, fail, start again and end, each in its time.

use std::collections::HashMap;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use jiff::Timestamp;
use serde_json::json;
use watchkeeper::{Lister, ObjectKey, Outcome, RateLimitingQueue, ReconcileError};

use super::{BY_NODE, Cluster, Team, about, decoded, target};
use crate::living::api::{Resource, Target};
use crate::living::clock::{before, remaining};
use crate::living::fill::pod_ip;
use crate::living::objects::hash;
use crate::living::objects::pod_status::{PodStatus, backoff};
use crate::living::views::{NodeView, PodView};

const FROM: &str = "kubelet";

pub(in crate::living) fn join(team: &mut Team, cluster: &Arc<Cluster>) -> Fates {
    let (nodes, pods) = (&cluster.informers.nodes, &cluster.informers.pods);
    let fates: Arc<Mutex<HashMap<ObjectKey, u32>>> = Arc::default();
    let kubelet = Arc::new(Kubelet {
        nodes: nodes.lister(),
        pods: pods.lister(),
        failing: fates.clone(),
        cluster: cluster.clone(),
    });
    let on_node = pods.lister();
    let sources = |controller: watchkeeper::Controller| {
        // What becomes of a node concerns all its pods.
        controller.reconciles(pods).watches(nodes, move |node| {
            let pods = on_node.by_index(BY_NODE, node.key().name()).ok();
            let keys = pods.iter().flatten().map(|pod| pod.key().clone());
            keys.collect::<Vec<_>>()
        })
    };
    let queue = team.join("kubelet", 4, sources, move |key: ObjectKey| {
        let kubelet = kubelet.clone();
        async move { kubelet.reconcile(&key).await }
    });
    Fates { failing: fates, queue }
}

/// Which pods are going to fail.
#[derive(Clone)]
pub(in crate::living) struct Fates {
    failing: Arc<Mutex<HashMap<ObjectKey, u32>>>,
    queue: RateLimitingQueue<ObjectKey>,
}

impl Fates {
    /// The pod fails now, and again each time that it is started, so many times in all.
    pub(in crate::living) fn fail(&self, pod: &ObjectKey, times: u32) {
        lock(&self.failing).insert(pod.clone(), times);
        self.queue.add(pod.clone());
    }
}

struct Kubelet {
    cluster: Arc<Cluster>,
    nodes: Lister<NodeView>,
    pods: Lister<PodView>,
    /// How often each pod that is meant to fail will still do so.
    failing: Arc<Mutex<HashMap<ObjectKey, u32>>>,
}

/// What is to be done with a pod.
#[derive(Debug, Clone, PartialEq)]
enum Step {
    /// Nothing, until something changes.
    Rest,
    /// Nothing yet.
    Wait(Duration),
    /// Its status is to be this; and why, if that is worth telling.
    Write(Box<PodStatus>, Option<(bool, &'static str, String)>),
    /// The same, and it has failed once more.
    Fail(Box<PodStatus>),
    /// It has ended, and goes.
    Remove,
}

impl Kubelet {
    async fn reconcile(&self, key: &ObjectKey) -> Result<Outcome, ReconcileError> {
        let Some(object) = self.pods.get(key) else {
            lock(&self.failing).remove(key);
            return Ok(Outcome::Done);
        };
        let pod = decoded(&object)?;
        if pod.spec.node_name.is_empty() {
            return Ok(Outcome::Done);
        }
        let cluster = &self.cluster;
        let step = match self.nodes.get(&ObjectKey::cluster(&pod.spec.node_name)) {
            None if self.is_gone(&pod.spec.node_name).await? => Step::Remove,
            None => Step::Wait(Duration::from_secs(5)),
            Some(node) => {
                let node = decoded(&node)?;
                let failures = lock(&self.failing).get(key).copied().unwrap_or_default();
                let address = || pod_ip(cluster.addresses.fetch_add(1, Relaxed).wrapping_add(1));
                step(&pod, &node, failures, address, cluster.clock.exact())
            }
        };
        let (of, version) = (target(Resource::Pods, key), &pod.metadata.resource_version);
        match step {
            Step::Rest => {}
            Step::Wait(time) => return Ok(Outcome::RequeueAfter(time)),
            Step::Write(status, note) => {
                cluster.api.patch_status(of, version, &json!(status)).await?;
                if let Some((warning, reason, message)) = note {
                    cluster.note(about("v1", "Pod", &pod.metadata), FROM, warning, reason, message);
                }
            }
            Step::Fail(status) => {
                cluster.api.patch_status(of, version, &json!(status)).await?;
                if let Some(left) = lock(&self.failing).get_mut(key) {
                    *left = left.saturating_sub(1);
                }
                let message = format!("Back-off restarting failed container in pod {}", key.name());
                cluster.note(about("v1", "Pod", &pod.metadata), FROM, true, "BackOff", message);
            }
            Step::Remove => drop(cluster.api.delete(of, &pod.metadata.uid, Some(0)).await?),
        }
        Ok(Outcome::Done)
    }

    /// A node that the cache does not have is not there, or not yet known.
    async fn is_gone(&self, node: &str) -> Result<bool, ReconcileError> {
        match self.cluster.api.get(Target { resource: Resource::Nodes, namespace: "", name: node }).await {
            Ok(_) => Ok(false),
            Err(error) if error.is_not_found() => Ok(true),
            Err(error) => Err(error.into()),
        }
    }
}

/// What is to be done with a pod on a node, that is meant to fail so often.
fn step(pod: &PodView, node: &NodeView, failures: u32, address: impl FnOnce() -> String, now: Timestamp) -> Step {
    let (metadata, status) = (&pod.metadata, &pod.status);
    let uid = metadata.uid.as_str();
    let write = |status: PodStatus| Step::Write(Box::new(status), None);
    let told = |status: PodStatus, reason, message| Step::Write(Box::new(status), Some((false, reason, message)));
    let second = crate::living::clock::seconds(now);
    if !node.is_ready() {
        // Nobody is there who could do anything.
        let was_ready = status.is_ready();
        return if was_ready { write(status.clone().out_of_reach(second)) } else { Step::Rest };
    }
    if let Some(end) = metadata.deletion_timestamp {
        let grace = u64::try_from(metadata.deletion_grace_period_seconds.unwrap_or_default()).unwrap_or_default();
        let grace = Duration::from_secs(grace.min(3600));
        let length = span(uid, "end", 1.0..4.0).min(grace);
        return remaining(before(end, grace), length, now).map_or(Step::Remove, Step::Wait);
    }
    if pod.is_over() {
        return Step::Rest;
    }
    let Some(start) = status.start_time else {
        return write(PodStatus::creating(&pod.spec, node.internal_ip(), second));
    };
    if status.phase != "Running" {
        return match remaining(start, span(uid, "pull", 1.0..5.0), now) {
            Some(time) => Step::Wait(time),
            None => {
                let names = pod.spec.containers.iter().map(|container| container.name.as_str());
                let message = format!("Started container {}", names.collect::<Vec<_>>().join(", "));
                told(status.clone().running(uid, &address(), second), "Started", message)
            }
        };
    }
    // What somebody else made of a status may have no containers: it is as good as ready.
    let Some(main) = status.container_statuses.first() else {
        return if status.is_ready() { Step::Rest } else { write(status.clone().ready(second)) };
    };
    let Some(running) = &main.state.running else {
        let failed = main.last_state.terminated.as_ref().and_then(|terminated| terminated.finished_at);
        return match remaining(failed.unwrap_or(start), backoff(main.restart_count), now) {
            Some(time) => Step::Wait(time),
            None => write(status.clone().restarted(uid, second)),
        };
    };
    let since = running.started_at.unwrap_or(start);
    let is_all_ready = status.container_statuses.iter().all(|container| container.ready);
    if failures > 0 {
        return match remaining(since, span(uid, "fail", 1.0..3.0), now) {
            Some(time) => Step::Wait(time),
            None => {
                Step::Fail(Box::new(status.clone().crashed(if hash(uid).is_multiple_of(3) { 137 } else { 1 }, second)))
            }
        };
    }
    if !is_all_ready {
        return match remaining(since, span(uid, "warm", 0.5..3.0), now) {
            Some(time) => Step::Wait(time),
            None => write(status.clone().ready(second)),
        };
    }
    if !status.is_ready() {
        // Its node was away.
        return write(status.clone().ready(second));
    }
    if matches!(pod.spec.restart_policy.as_str(), "Never" | "OnFailure") {
        return match remaining(since, span(uid, "work", 4.0..15.0), now) {
            Some(time) => Step::Wait(time),
            None => told(status.clone().succeeded(second), "Completed", "It has done its work".to_owned()),
        };
    }
    Step::Rest
}

/// How long something takes this pod: always the same.
fn span(uid: &str, what: &str, seconds: std::ops::Range<f64>) -> Duration {
    let part = (hash(&format!("{what}{uid}")) % 1000) as f64 / 1000.0;
    Duration::from_secs_f64(seconds.start + part * (seconds.end - seconds.start))
}

fn lock(failing: &Mutex<HashMap<ObjectKey, u32>>) -> MutexGuard<'_, HashMap<ObjectKey, u32>> {
    failing.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use jiff::SignedDuration;
    use serde_json::from_value;

    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::UNIX_EPOCH + SignedDuration::from_secs(second)
    }

    fn node(is_ready: &str) -> NodeView {
        from_value(json!({"status": {"conditions": [{"type": "Ready", "status": is_ready}]}})).expect("a node")
    }

    fn pod() -> PodView {
        from_value(json!({
            "metadata": {"name": "web", "uid": "u1"},
            "spec": {"nodeName": "n1", "containers": [{"name": "web", "image": "shop/web:1.0.0"}]},
        }))
        .expect("a pod")
    }

    /// Does what is to be done until there is nothing, and shows the phases on the way.
    fn run(pod: &mut PodView, node: &NodeView, mut failures: u32) -> Vec<String> {
        let (mut now, mut seen) = (at(0), Vec::new());
        for _ in 0..100 {
            match step(pod, node, failures, || "10.128.0.1".to_owned(), now) {
                Step::Wait(time) => now += SignedDuration::try_from(time).expect("short"),
                Step::Write(status, _) => {
                    pod.status = *status;
                    seen.push(format!("{} {}", pod.status.phase, pod.status.is_ready()));
                }
                Step::Fail(status) => {
                    (pod.status, failures) = (*status, failures - 1);
                    seen.push("failed".to_owned());
                }
                Step::Rest | Step::Remove => return seen,
            }
        }
        panic!("no end: {seen:?}");
    }

    #[test]
    fn a_pod_starts_gets_ready_and_stays_so() {
        assert_eq!(run(&mut pod(), &node("True"), 0), ["Pending false", "Running false", "Running true"]);
    }

    #[test]
    fn a_pod_that_fails_is_started_again_until_it_works() {
        let mut pod = pod();
        run(&mut pod, &node("True"), 0);
        let seen = run(&mut pod, &node("True"), 2);
        assert_eq!(seen, ["failed", "Running false", "failed", "Running false", "Running true"]);
        assert_eq!(pod.status.container_statuses[0].restart_count, 2);
    }

    #[test]
    fn a_pod_of_a_job_ends() {
        let mut pod = pod();
        pod.spec.restart_policy = "Never".to_owned();
        assert_eq!(run(&mut pod, &node("True"), 0).last().expect("steps"), "Succeeded false");
    }

    #[test]
    fn on_a_node_that_is_away_a_pod_is_not_ready_and_is_again_when_it_comes_back() {
        let mut pod = pod();
        run(&mut pod, &node("True"), 0);
        assert_eq!(run(&mut pod, &node("Unknown"), 0), ["Running false"]);
        assert_eq!(run(&mut pod, &node("Unknown"), 0), [""; 0]);
        assert_eq!(run(&mut pod, &node("True"), 0), ["Running true"]);
    }

    #[test]
    fn a_pod_without_containers_or_times_is_no_trouble() {
        let mut bare: PodView = from_value(json!({"spec": {"nodeName": "n1"}})).expect("a pod");
        assert_eq!(run(&mut bare, &node("True"), 1), ["Pending false", "Running true"]);
    }
}
