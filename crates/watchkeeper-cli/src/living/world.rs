//! Which cluster is it? A plan of everything that is there at the beginning, made from a seed.

use std::fmt;
use std::time::Duration;

use fastrand::Rng;
use serde_json::{Value, json};

use super::names::{self, CHORES, SYSTEM, ZONES};
use super::objects::NAME_LABEL;
use super::options::LivingOptions;

const HOUR: u64 = 3600;
const DAY: u64 = 24 * HOUR;
/// What every server has already: the first namespaces.
const FOUND: usize = 4;
/// A Deployment, a ReplicaSet and a Pod.
const SMALLEST_APP: usize = 3;

/// Everything that is there at the beginning.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct World {
    pub(super) nodes: Vec<NodePlan>,
    /// Without those that every server has.
    pub(super) namespaces: Vec<String>,
    pub(super) apps: Vec<App>,
    /// Jobs that are done: namespace, name and how long ago.
    pub(super) jobs: Vec<(String, String, Duration)>,
    /// How many ConfigMaps there are besides those of the applications.
    pub(super) switches: usize,
}

/// A node.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct NodePlan {
    pub(super) name: String,
    pub(super) number: usize,
    pub(super) is_control_plane: bool,
    /// Nothing but the control plane runs there.
    pub(super) is_reserved: bool,
    pub(super) zone: &'static str,
    pub(super) architecture: &'static str,
    pub(super) cpus: u32,
    pub(super) memory_gib: u32,
    pub(super) machine_id: String,
    pub(super) age: Duration,
}

impl NodePlan {
    pub(super) fn ip(&self) -> String {
        format!("10.0.{}.{}", self.number / 250, self.number % 250 + 4)
    }
}

/// A version of an application.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Version {
    pub(super) major: u32,
    pub(super) minor: u32,
    pub(super) patch: u32,
}

impl Version {
    /// The one before: what an old ReplicaSet has.
    pub(super) fn before(self, steps: u32) -> Self {
        let number = (self.minor * 10 + self.patch).saturating_sub(steps);
        Self { minor: number / 10, patch: number % 10, ..self }
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}.{}", self.major, self.minor, self.patch)
    }
}

/// An application: a Deployment and what belongs to it.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct App {
    pub(super) namespace: String,
    pub(super) name: String,
    pub(super) version: Version,
    pub(super) replicas: u32,
    pub(super) port: u16,
    pub(super) cpu: &'static str,
    pub(super) memory: &'static str,
    pub(super) tier: &'static str,
    pub(super) has_sidecar: bool,
    pub(super) has_service: bool,
    pub(super) has_config: bool,
    pub(super) has_secret: bool,
    /// How many old ReplicaSets there are.
    pub(super) history: u32,
    pub(super) age: Duration,
    /// How long ago the latest rollout was.
    pub(super) rolled: Duration,
}

impl App {
    pub(super) fn labels(&self) -> Value {
        json!({
            NAME_LABEL: self.name,
            "app.kubernetes.io/part-of": self.namespace,
            "app.kubernetes.io/managed-by": "watchkeeper-demo",
            "tier": self.tier,
        })
    }

    pub(super) fn image(&self, version: Version) -> String {
        format!("{}/{}:{version}", self.namespace, self.name)
    }

    pub(super) fn config_name(&self) -> String {
        format!("{}-config", self.name)
    }

    pub(super) fn secret_name(&self) -> String {
        format!("{}-credentials", self.name)
    }

    /// How many objects it is.
    fn objects(&self) -> usize {
        let service = if self.has_service { 2 } else { 0 };
        let further = usize::from(self.has_config) + usize::from(self.has_secret);
        2 + self.history as usize + self.replicas as usize + service + further
    }

    fn random(namespace: &str, name: String, largest: u32, rng: &mut Rng) -> Self {
        let replicas = match rng.u32(..20) {
            0..9 => rng.u32(1..4),
            9..16 => rng.u32(3..9),
            16..19 => rng.u32(6..20),
            _ => rng.u32(15..41),
        };
        let age = rng.u64(DAY..120 * DAY);
        let (cpu, memory) = [("50m", "64Mi"), ("100m", "128Mi"), ("250m", "256Mi"), ("500m", "1Gi")][rng.usize(..4)];
        Self {
            namespace: namespace.to_owned(),
            name,
            version: Version { major: rng.u32(0..5), minor: rng.u32(1..20), patch: rng.u32(0..10) },
            replicas: replicas.clamp(1, largest),
            port: [8080, 8000, 3000, 9000, 5000][rng.usize(..5)],
            cpu,
            memory,
            tier: ["frontend", "backend", "data"][rng.usize(..3)],
            has_sidecar: rng.u32(..6) == 0,
            has_service: rng.u32(..10) < 7,
            has_config: rng.u32(..10) < 5,
            has_secret: rng.u32(..10) < 3,
            history: rng.u32(..3),
            age: Duration::from_secs(age),
            rolled: Duration::from_secs(rng.u64(HOUR / 2..age)),
        }
    }
}

impl World {
    /// The cluster of a seed, with as many objects as the options say.
    pub(super) fn plan(options: &LivingOptions) -> Self {
        let mut rng = Rng::with_seed(options.seed);
        let size = options.size();
        let mut world = Self {
            nodes: nodes((size / 60).clamp(1, 1000), &mut rng),
            namespaces: (0..(size / 300).clamp(1, 80)).map(names::namespace).collect(),
            apps: Vec::new(),
            jobs: Vec::new(),
            switches: 0,
        };
        // A namespace has an account.
        let around = FOUND + 2 * world.nodes.len() + 2 * world.namespaces.len();
        // However small the cluster is, something runs in it.
        let mut left = size.saturating_sub(around).max(SMALLEST_APP);
        world.system(size, &mut left, &mut rng);
        world.done_jobs(size, &mut left, &mut rng);
        world.fill(&mut left, &mut rng);
        world.switches = left;
        world
    }

    /// Nodes that pods can run on.
    pub(super) fn workers(&self) -> Vec<&NodePlan> {
        self.nodes.iter().filter(|node| !node.is_reserved).collect()
    }

    fn system(&mut self, size: usize, left: &mut usize, rng: &mut Rng) {
        if size < 200 {
            return;
        }
        for (name, replicas) in SYSTEM {
            let app = App::random("kube-system", name.to_owned(), 1, rng);
            let app = App { replicas, has_secret: false, has_sidecar: false, history: 0, tier: "system", ..app };
            *left = left.saturating_sub(app.objects());
            self.apps.push(app);
        }
    }

    fn done_jobs(&mut self, size: usize, left: &mut usize, rng: &mut Rng) {
        for i in 0..size / 300 {
            let namespace = self.namespaces[i % self.namespaces.len()].clone();
            let name = format!("{}-{}", CHORES[rng.usize(..CHORES.len())], 29_000_000 + i);
            self.jobs.push((namespace, name, Duration::from_secs(rng.u64(HOUR..DAY))));
            *left = left.saturating_sub(2);
        }
    }

    fn fill(&mut self, left: &mut usize, rng: &mut Rng) {
        let mut numbers = vec![0; self.namespaces.len()];
        // A small cluster has no large applications.
        let largest = u32::try_from(*left / 20).unwrap_or(u32::MAX).clamp(3, 40);
        while *left >= SMALLEST_APP {
            let i = rng.usize(..self.namespaces.len());
            let name = names::app(i, numbers[i]);
            numbers[i] += 1;
            let mut app = App::random(&self.namespaces[i], name, largest, rng);
            if app.objects() > *left {
                app = App { history: 0, has_service: false, has_config: false, has_secret: false, ..app };
                app.replicas = app.replicas.min(u32::try_from(*left - 2).unwrap_or(1));
            }
            *left -= app.objects();
            self.apps.push(app);
        }
    }
}

fn nodes(count: usize, rng: &mut Rng) -> Vec<NodePlan> {
    let control_planes = if count >= 20 { 3 } else { 1 };
    let width = count.to_string().len().max(2);
    let node = |number: usize| {
        let is_control_plane = number < control_planes;
        let cpus = [4, 8, 16][rng.usize(..3)];
        let name = match is_control_plane {
            true => format!("control-{}", number + 1),
            false => format!("node-{:0width$}", number + 1 - control_planes),
        };
        NodePlan {
            name,
            number,
            is_control_plane,
            is_reserved: is_control_plane && count >= 4,
            zone: ZONES[number % ZONES.len()],
            architecture: if rng.u32(..5) == 0 { "arm64" } else { "amd64" },
            cpus,
            memory_gib: 4 * cpus,
            machine_id: format!("{:032x}", rng.u128(..)),
            age: Duration::from_secs(rng.u64(30 * DAY..300 * DAY)),
        }
    };
    (0..count).map(node).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(objects: usize, seed: u64) -> World {
        World::plan(&LivingOptions { objects, seed, ..LivingOptions::default() })
    }

    #[test]
    fn the_same_seed_plans_the_same_cluster_and_another_seed_another() {
        assert_eq!(plan(3000, 7), plan(3000, 7));
        assert_ne!(plan(3000, 7), plan(3000, 8));
    }

    #[test]
    fn a_plan_has_as_many_objects_as_were_asked_for() {
        for size in [10, 11, 50, 300, 3000, 100_000] {
            let world = plan(size, 3);
            let apps: usize = world.apps.iter().map(App::objects).sum();
            let around = FOUND + 2 * world.nodes.len() + 2 * world.namespaces.len() + 2 * world.jobs.len();
            assert_eq!(around + apps + world.switches, size.max(11), "{size}");
            let pods: usize = world.apps.iter().map(|app| app.replicas as usize).sum();
            assert!(pods / world.workers().len() < 100, "{size}: {pods} pods on {} nodes", world.workers().len());
        }
    }

    #[test]
    fn whatever_number_is_asked_for_there_is_a_cluster() {
        assert_eq!(plan(0, 1), plan(10, 1));
        assert_eq!(plan(usize::MAX, 1).nodes.len(), 1000);
    }
}
