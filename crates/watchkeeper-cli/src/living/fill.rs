//! Makes the objects of a plan, in their settled state: nothing is left to do for the controllers.

use std::time::Duration;

use fastrand::Rng;
use jiff::Timestamp;
use serde::Deserialize as _;
use serde_json::{Value, json};

use super::clock::{before, seconds};
use super::objects::pod_status::PodStatus;
use super::objects::{config, deployment, job, namespace, node, pod, replica_set, service, set, slice};
use super::views::{Owner, PodSpec, PodView, ServiceView};
use super::world::{App, NodePlan, World};

/// Puts one object there.
pub(super) type Put<'a, E> = &'a mut dyn FnMut(Value) -> Result<(), E>;

/// Puts all objects of a plan there.
pub(super) struct Filler<'a, E> {
    world: &'a World,
    now: Timestamp,
    rng: Rng,
    put: Put<'a, E>,
    /// Where the next pod goes.
    next_node: usize,
    /// How many addresses of pods and of Services have been given out.
    pods: u32,
    services: u32,
}

/// The address of a pod of this number.
pub(super) fn pod_ip(number: u32) -> String {
    let [_, b, c, d] = number.to_be_bytes();
    format!("10.{}.{c}.{d}", 128 | (b & 127))
}

impl<'a, E> Filler<'a, E> {
    /// With the same seed, uids and all else that is made up are the same.
    pub(super) fn new(world: &'a World, seed: u64, now: Timestamp, put: Put<'a, E>) -> Self {
        let rng = Rng::with_seed(seed.wrapping_add(1));
        Self { world, now: seconds(now), rng, put, next_node: 0, pods: 0, services: 0 }
    }

    /// Puts everything there; answers with the number of pods.
    pub(super) fn fill(mut self, lease_seconds: u64) -> Result<u32, E> {
        for plan in &self.world.nodes {
            self.node(plan, lease_seconds)?;
        }
        for name in &self.world.namespaces {
            let age = Duration::from_secs(120 * 86_400);
            self.put(namespace::active(name), age)?;
            self.put(namespace::account(name), age)?;
        }
        for app in &self.world.apps {
            self.app(app)?;
        }
        for (namespace, name, age) in &self.world.jobs {
            self.job(namespace, name, *age)?;
        }
        for number in 0..self.world.switches {
            let namespace = &self.world.namespaces[number % self.world.namespaces.len()];
            let switches = config::switches(namespace, number, &mut self.rng);
            self.put(switches, Duration::from_secs(3 * 86_400))?;
        }
        Ok(self.pods)
    }

    /// Puts an object of this age there, and says which uid it got.
    fn put(&mut self, mut object: Value, age: Duration) -> Result<String, E> {
        let uid = self.uid();
        let created = json!(before(self.now, age));
        set(&mut object, &["metadata", "uid"], uid.as_str());
        set(&mut object, &["metadata", "creationTimestamp"], created);
        (self.put)(object)?;
        Ok(uid)
    }

    fn node(&mut self, plan: &NodePlan, lease_seconds: u64) -> Result<(), E> {
        let uid = self.put(node::ready(plan, before(self.now, plan.age)), plan.age)?;
        self.put(node::lease(&plan.name, &uid, lease_seconds, self.now), plan.age)?;
        Ok(())
    }

    fn app(&mut self, app: &App) -> Result<(), E> {
        if app.has_config {
            let config = config::map(app, &mut self.rng);
            self.put(config, app.age)?;
        }
        if app.has_secret {
            let secret = config::secret(app, &mut self.rng);
            self.put(secret, app.age)?;
        }
        let revisions = app.history + 1;
        let wanted = i64::from(app.replicas);
        let tally = deployment::Tally {
            wanted,
            all: wanted,
            updated: wanted,
            ready: wanted,
            available: wanted,
            least: wanted - wanted / 4,
        };
        let generation = i64::from(revisions);
        let template = deployment::template(app, app.version);
        let newest = format!("{}-{}", app.name, replica_set::template_hash(&template));
        let mut object = deployment::of_app(app);
        set(&mut object, &["metadata", "generation"], generation);
        set(&mut object, &["metadata", "annotations", replica_set::REVISION], revisions.to_string());
        let settled = before(self.now, app.rolled);
        object["status"] = deployment::status(&Value::Null, tally, generation, &newest, settled);
        let owner = deployment::owner(&app.name, &self.put(object, app.age)?);
        for steps in (1..=app.history).rev() {
            let age = app.rolled + (app.age - app.rolled) * steps / revisions;
            self.replica_set(app, &owner, steps, age)?;
        }
        let pods = self.replica_set(app, &owner, 0, app.rolled)?;
        if app.has_service { self.service(app, &pods) } else { Ok(()) }
    }

    /// The ReplicaSet of so many versions ago; only the newest has pods.
    fn replica_set(&mut self, app: &App, owner: &Owner, steps: u32, age: Duration) -> Result<Vec<PodView>, E> {
        let template = deployment::template(app, app.version.before(steps));
        let replicas = if steps == 0 { app.replicas } else { 0 };
        let revision = u64::from(app.history + 1 - steps);
        let selector = deployment::selector(app);
        let mut object =
            replica_set::of_deployment(owner, &app.namespace, &selector, &template, i64::from(replicas), revision);
        let name = object["metadata"]["name"].as_str().unwrap_or_default().to_owned();
        let template = object["spec"]["template"].clone();
        let count = replicas as usize;
        set(&mut object, &["metadata", "generation"], 1);
        object["status"] = replica_set::status(count, count, 1, None);
        let owner = replica_set::owner(&name, &self.put(object, age)?);
        let spec = PodSpec::deserialize(&template["spec"]).unwrap_or_default();
        let new = pod::of_template(&template, &app.namespace, &owner);
        (0..replicas)
            .map(|_| {
                // Some were moved since.
                let age = if self.rng.u32(..8) == 0 { age / self.rng.u32(2..20) } else { age };
                self.pod(new.clone(), &spec, &app.namespace, &name, age, |status, uid, rng, now| {
                    let status = status.ready(now);
                    match rng.u32(..25) {
                        0 => (0..rng.u32(1..4)).fold(status, |status, _| {
                            status.crashed(if rng.bool() { 1 } else { 137 }, now).restarted(uid, now).ready(now)
                        }),
                        _ => status,
                    }
                })
            })
            .collect()
    }

    /// A pod that came to run, and what became of it.
    fn pod(
        &mut self,
        mut object: Value,
        spec: &PodSpec,
        namespace: &str,
        owner: &str,
        age: Duration,
        then: impl Fn(PodStatus, &str, &mut Rng, Timestamp) -> PodStatus,
    ) -> Result<PodView, E> {
        let workers = self.world.workers();
        let node = workers[self.next_node % workers.len()];
        self.next_node += 1;
        let (name, uid) = (format!("{owner}-{}", self.suffix()), self.uid());
        self.pods += 1;
        let since = before(self.now, age);
        let started = before(self.now, age.saturating_sub(Duration::from_secs(4)));
        let status = PodStatus::creating(spec, &node.ip(), since).running(&uid, &pod_ip(self.pods), started);
        let status = then(status, &uid, &mut self.rng, started);
        set(&mut object, &["metadata", "name"], name.as_str());
        set(&mut object, &["metadata", "uid"], uid.as_str());
        set(&mut object, &["metadata", "creationTimestamp"], json!(since));
        set(&mut object, &["metadata", "generation"], 1);
        set(&mut object, &["spec", "nodeName"], node.name.as_str());
        object["status"] = json!(status);
        (self.put)(object)?;
        let mut view = PodView { status, ..PodView::default() };
        (view.metadata.name, view.metadata.namespace, view.metadata.uid) = (name, namespace.to_owned(), uid);
        view.spec.node_name = node.name.clone();
        Ok(view)
    }

    fn service(&mut self, app: &App, pods: &[PodView]) -> Result<(), E> {
        self.services += 1;
        let [_, _, c, d] = self.services.to_be_bytes();
        let object = service::of_app(app, &format!("10.96.{c}.{d}"));
        let mut view = ServiceView::deserialize(&object).unwrap_or_default();
        view.metadata.uid = self.put(object, app.age)?;
        let pods: Vec<&PodView> = pods.iter().collect();
        let slice = slice::of_service(&view, &pods);
        slice.map_or(Ok(()), |mut slice| {
            set(&mut slice, &["metadata", "generation"], 1);
            self.put(slice, app.age).map(|_| ())
        })
    }

    fn job(&mut self, namespace: &str, name: &str, age: Duration) -> Result<(), E> {
        let mut object = job::new(namespace, name, &format!("{namespace}/chores:1.4.0"));
        let template = object["spec"]["template"].clone();
        let spec = PodSpec::deserialize(&template["spec"]).unwrap_or_default();
        let (since, length) = (before(self.now, age), Duration::from_secs(self.rng.u64(10..600)));
        let until = before(self.now, age.saturating_sub(length));
        set(&mut object, &["metadata", "generation"], 1);
        object["status"] = job::complete(since, until);
        let owner = job::owner(name, &self.put(object, age)?);
        let new = pod::of_template(&template, namespace, &owner);
        self.pod(new, &spec, namespace, name, age, |status, _, _, _| status.succeeded(until)).map(|_| ())
    }

    fn uid(&mut self) -> String {
        // The version and the variant of a random uid.
        let bits = self.rng.u128(..) & !(0xf << 76) & !(0b11 << 62) | 4 << 76 | 0b10 << 62;
        let text = format!("{bits:032x}");
        [&text[..8], &text[8..12], &text[12..16], &text[16..20], &text[20..]].join("-")
    }

    fn suffix(&mut self) -> String {
        const LETTERS: &[u8] = b"bcdfghjklmnpqrstvwxz2456789";
        (0..5).map(|_| char::from(LETTERS[self.rng.usize(..LETTERS.len())])).collect()
    }
}
