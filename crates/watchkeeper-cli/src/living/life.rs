//! What happens: rollouts, scaling, failures, outages, chores. Somebody with a die, who keeps an eye on the rate.

use std::sync::Arc;
use std::time::Duration;

use fastrand::Rng;
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};
use watchkeeper::{Cached, Lister, ObjectKey};
use watchkeeper_apiserver::ApiServer;

use super::api::{Resource, Target};
use super::controllers::kubelet::Fates;
use super::controllers::nodes::{Outages, heartbeat};
use super::controllers::{BY_NODE, Cluster, target};
use super::names::CHORES;
use super::objects::job;
use super::options::LivingOptions;
use super::views::{ConfigView, DeploymentView, JobView, NodeView, PodView, replicas};
use super::world::World;

/// How often it is looked whether something may happen.
const TICK: Duration = Duration::from_millis(200);
/// No Deployment is made larger.
const LARGEST: i64 = 60;

/// Makes things happen.
pub(super) struct Life {
    server: ApiServer,
    cluster: Arc<Cluster>,
    fates: Fates,
    outages: Outages,
    rng: Rng,
    budget: Budget,
    /// What is put right again, and when.
    repairs: Vec<(Instant, Repair)>,
    /// How many pods and jobs there are to be, more or less.
    pods: usize,
    jobs: usize,
    chores: u32,
    configs: Lister<ConfigView>,
    deployments: Lister<DeploymentView>,
    of_jobs: Lister<JobView>,
    nodes: Lister<NodeView>,
    of_pods: Lister<PodView>,
}

#[derive(Debug, Clone)]
enum Repair {
    Outage(ObjectKey),
    Cordon(ObjectKey),
}

impl Life {
    pub(super) fn new(
        server: &ApiServer,
        options: &LivingOptions,
        world: &World,
        cluster: &Arc<Cluster>,
        fates: &Fates,
        outages: &Outages,
    ) -> Self {
        let (rate, informers) = (options.writes_per_second(), &cluster.informers);
        let beats = world.nodes.len() as f64 / heartbeat(world.nodes.len()).as_secs_f64();
        Self {
            budget: Budget::new(rate, beats, server.storage().revision()),
            server: server.clone(),
            cluster: cluster.clone(),
            fates: fates.clone(),
            outages: outages.clone(),
            rng: Rng::with_seed(options.seed.wrapping_add(2)),
            repairs: Vec::new(),
            pods: world.apps.iter().map(|app| app.replicas as usize).sum::<usize>() + world.jobs.len(),
            jobs: world.jobs.len().max(2),
            chores: 0,
            configs: informers.configs.lister(),
            deployments: informers.deployments.lister(),
            of_jobs: informers.jobs.lister(),
            nodes: informers.nodes.lister(),
            of_pods: informers.pods.lister(),
        }
    }

    /// Lives for ever.
    pub(super) async fn live(mut self) {
        // Until the caches are there, nothing can be chosen.
        let informers = &self.cluster.informers;
        while !(informers.pods.has_synced() && informers.deployments.has_synced() && informers.nodes.has_synced()) {
            sleep(TICK).await;
        }
        loop {
            sleep(TICK).await;
            self.repair().await;
            self.budget.tick(self.server.storage().revision());
            // A quiet moment, after which more happens.
            if self.rng.u32(..80) == 0 {
                sleep(Duration::from_millis(self.rng.u64(1000..4000))).await;
                continue;
            }
            // In a burst, several things at once.
            for _ in 0..8 {
                if !self.budget.allows() {
                    break;
                }
                let cost = self.act().await;
                self.budget.spend(cost);
            }
        }
    }

    /// Something happens; says how many writes will come of it, about.
    async fn act(&mut self) -> f64 {
        let cost = match self.rng.u32(..74) {
            0..30 => self.edit().await,
            30..42 => self.delete_pod().await,
            42..50 => self.fail(),
            50..60 => self.scale().await,
            60..65 => self.roll_out().await,
            65..71 => self.chore().await,
            71..73 => self.cordon().await,
            _ => self.outage(),
        };
        // Even what comes to nothing counts, so that it is not tried without end.
        cost.unwrap_or(0.5)
    }

    async fn edit(&mut self) -> Option<f64> {
        let config = pick(&self.configs, &mut self.rng)?;
        let (number, ttl) = (self.rng.u32(2..10_000), self.rng.u32(5..600));
        let patch = json!({"data": {"revision": number.to_string(), "cache.ttl": format!("{ttl}s")}});
        self.cluster.api.patch(target(Resource::ConfigMaps, config.key()), &patch).await.ok()?;
        Some(1.0)
    }

    async fn delete_pod(&mut self) -> Option<f64> {
        let pod = pick(&self.of_pods, &mut self.rng)?;
        let view = pod.decode().ok()?;
        if view.metadata.is_deleting() || view.is_over() {
            return None;
        }
        self.cluster.api.delete(target(Resource::Pods, pod.key()), &view.metadata.uid, None).await.ok()?;
        self.tell(format!("pod {} is deleted", pod.key()));
        Some(18.0)
    }

    fn fail(&mut self) -> Option<f64> {
        let pod = pick(&self.of_pods, &mut self.rng)?;
        if !pod.decode().ok()?.status.is_ready() {
            return None;
        }
        let times = self.rng.u32(1..4);
        self.fates.fail(pod.key(), times);
        self.tell(match times {
            1 => format!("pod {} crashes", pod.key()),
            _ => format!("pod {} crashes, and will again", pod.key()),
        });
        Some(12.0 * f64::from(times))
    }

    async fn scale(&mut self) -> Option<f64> {
        let deployment = pick(&self.deployments, &mut self.rng)?;
        let view = deployment.decode().ok()?;
        let (now, pods) = (replicas(view.spec.replicas), self.of_pods.store().len());
        let step = self.rng.i64(1..=(now / 2).clamp(1, 8));
        let too_many = pods > self.pods + self.pods / 30;
        let too_few = pods < self.pods - self.pods / 30;
        let up = if too_many || too_few { too_few } else { self.rng.bool() };
        let next = if up { (now + step).min(LARGEST.max(now)) } else { (now - step).max(1) };
        if next == now || view.metadata.is_deleting() {
            return None;
        }
        self.patch(&deployment, &view, json!({"replicas": next})).await?;
        self.tell(format!("{} is scaled from {now} to {next}", deployment.key()));
        Some(12.0 * (next - now).unsigned_abs() as f64)
    }

    async fn roll_out(&mut self) -> Option<f64> {
        let deployment = pick(&self.deployments, &mut self.rng)?;
        let view = deployment.decode().ok()?;
        let mut containers = view.spec.template.pointer("/spec/containers")?.clone();
        let image = containers.pointer("/0/image").and_then(Value::as_str)?;
        let (repository, version) = image.rsplit_once(':')?;
        let version = next_version(version, self.rng.u32(..4) == 0)?;
        *containers.pointer_mut("/0/image")? = format!("{repository}:{version}").into();
        self.patch(&deployment, &view, json!({"template": {"spec": {"containers": containers}}})).await?;
        self.tell(format!("rollout of {} to {version}", deployment.key()));
        Some(22.0 * replicas(view.spec.replicas) as f64)
    }

    async fn chore(&mut self) -> Option<f64> {
        if self.of_jobs.store().len() > self.jobs {
            // The oldest goes, and its pod with it.
            let jobs = self.of_jobs.list();
            let jobs = jobs.iter().filter_map(|job| Some((job.decode().ok()?.metadata.creation_timestamp, job)));
            let (_, oldest) = jobs.min_by_key(|(created, _)| *created)?;
            self.cluster.api.delete(target(Resource::Jobs, oldest.key()), "", None).await.ok()?;
            return Some(4.0);
        }
        let deployment = pick(&self.deployments, &mut self.rng)?;
        let namespace = deployment.key().namespace()?;
        self.chores += 1;
        let chore = CHORES[self.rng.usize(..CHORES.len())];
        let name = format!("{chore}-{}", 30_000_000 + self.chores);
        let job = job::new(namespace, &name, &format!("{namespace}/chores:1.4.0"));
        self.cluster.api.create(Resource::Jobs, namespace, &job).await.ok()?;
        self.tell(format!("job {namespace}/{name} begins"));
        Some(14.0)
    }

    async fn cordon(&mut self) -> Option<f64> {
        let node = self.healthy_node()?;
        self.set_cordon(&node, true).await?;
        self.later(15..60, Repair::Cordon(node));
        Some(2.0)
    }

    fn outage(&mut self) -> Option<f64> {
        let node = self.healthy_node()?;
        let pods = self.of_pods.by_index(BY_NODE, node.name()).ok()?.len();
        self.outages.set(&node, true);
        self.tell(format!("{node} is NotReady: {pods} pods are out of reach"));
        self.later(10..40, Repair::Outage(node));
        Some(8.0 * pods as f64 + 2.0)
    }

    /// A node that is well, if few enough are not.
    fn healthy_node(&mut self) -> Option<ObjectKey> {
        let nodes = self.nodes.store().len();
        if self.repairs.len() >= (nodes / 15).max(usize::from(nodes > 2)) {
            return None;
        }
        let node = pick(&self.nodes, &mut self.rng)?;
        node.decode().ok()?.takes_pods().then(|| node.key().clone())
    }

    async fn set_cordon(&self, node: &ObjectKey, cordoned: bool) -> Option<()> {
        let patch = json!({"spec": {"unschedulable": cordoned.then_some(true)}});
        self.cluster.api.patch(target(Resource::Nodes, node), &patch).await.ok()?;
        self.tell(format!("{node} is {}", if cordoned { "cordoned" } else { "uncordoned" }));
        Some(())
    }

    /// Puts right what has been wrong for long enough.
    async fn repair(&mut self) {
        let now = Instant::now();
        let due: Vec<(Instant, Repair)> = self.repairs.extract_if(.., |(at, _)| *at <= now).collect();
        for (_, repair) in due {
            match &repair {
                Repair::Outage(node) => {
                    self.outages.set(node, false);
                    self.tell(format!("{node} is Ready again"));
                }
                Repair::Cordon(node) => {
                    // One that is gone needs none.
                    let is_there = self.nodes.get(node).is_some();
                    if is_there && self.set_cordon(node, false).await.is_none() {
                        self.later(2..4, repair);
                    }
                }
            }
        }
    }

    fn later(&mut self, seconds: std::ops::Range<u64>, repair: Repair) {
        let at = Instant::now() + Duration::from_secs(self.rng.u64(seconds));
        self.repairs.push((at, repair));
    }

    async fn patch(&self, deployment: &Cached<DeploymentView>, view: &DeploymentView, spec: Value) -> Option<()> {
        let metadata = &view.metadata;
        let patch = json!({"metadata": {"resourceVersion": metadata.resource_version}, "spec": spec});
        let place =
            Target { resource: Resource::Deployments, namespace: &metadata.namespace, name: deployment.key().name() };
        self.cluster.api.patch(place, &patch).await.ok().map(|_| ())
    }

    fn tell(&self, text: String) {
        self.cluster.story.tell(text);
    }
}

/// Any one of them.
fn pick<K>(lister: &Lister<K>, rng: &mut Rng) -> Option<Cached<K>> {
    let all = lister.list();
    let count = all.len();
    if count == 0 { None } else { all.iter().nth(rng.usize(..count)) }
}

/// The version after this one.
fn next_version(version: &str, minor: bool) -> Option<String> {
    let parts: Option<Vec<u32>> = version.split('.').map(|part| part.parse().ok()).collect();
    let [x, y, z] = parts?[..] else { return None };
    Some(if minor { format!("{x}.{}.0", y.saturating_add(1)) } else { format!("{x}.{y}.{}", z.saturating_add(1)) })
}

/// How much may happen. What comes of an act comes later, so it is paid for in advance, by what such acts have cost so
/// far.
#[derive(Debug)]
struct Budget {
    rate: f64,
    /// Writes in a second that come by themselves.
    beats: f64,
    credit: f64,
    since: Instant,
    last: Instant,
    first_revision: u64,
    written: f64,
    estimated: f64,
}

impl Budget {
    fn new(rate: f64, beats: f64, revision: u64) -> Self {
        let now = Instant::now();
        Self {
            rate,
            beats,
            credit: rate,
            since: now,
            last: now,
            first_revision: revision,
            written: 0.0,
            estimated: 0.0,
        }
    }

    fn tick(&mut self, revision: u64) {
        let passed = std::mem::replace(&mut self.last, Instant::now());
        let passed = self.last.duration_since(passed).as_secs_f64();
        let rate = (self.rate - self.beats).max(self.rate / 10.0);
        self.credit = (self.credit + rate * passed).min(3.0 * self.rate);
        // A server that begins anew begins with a low revision.
        let writes = revision.saturating_sub(self.first_revision) as f64;
        self.written = (writes - self.beats * self.since.elapsed().as_secs_f64()).max(0.0);
    }

    fn allows(&self) -> bool {
        self.credit > 0.0
    }

    fn spend(&mut self, estimate: f64) {
        self.estimated += estimate;
        // At first there is nothing to go by.
        let factor = (self.written + 500.0) / (self.estimated + 500.0);
        self.credit -= estimate * factor.clamp(0.2, 5.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_is_followed_by_the_next() {
        assert_eq!(next_version("1.8.2", false).as_deref(), Some("1.8.3"));
        assert_eq!(next_version("1.8.2", true).as_deref(), Some("1.9.0"));
        assert_eq!(next_version("4294967295.4294967295.4294967295", true).as_deref(), Some("4294967295.4294967295.0"));
        for bad in ["", "latest", "1.2", "1.2.3.4", "v1.2.3", "1.2.x"] {
            assert_eq!(next_version(bad, false), None, "{bad}");
        }
    }
}
