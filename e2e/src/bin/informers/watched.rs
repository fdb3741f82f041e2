//! Informers of many views, and whether they are right.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::{Context as _, bail, ensure};
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::{ConfigMap, Node, Pod, Secret};
use kube::Client;
use kube::core::{DynamicObject, ObjectMeta, PartialObjectMeta};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use tokio::time::{Instant, sleep, timeout};
use tokio_util::sync::CancellationToken;
use watchkeeper::{Buffer, Error, Gap, HandlerHandle, HandlerOptions, InformerStatus, Phase, SharedInformer};
use watchkeeper_e2e::Failure;

use crate::digest::{self, Digests};
use crate::hearing::Hearing;
use crate::kinds::Kind;
use crate::stage::Stage;
use crate::views::{Form, How, View};

/// How long a slow handler takes, now and then.
const SLOW: Duration = Duration::from_millis(40);
/// How long handlers may take to hear of what is in the cache.
pub(crate) const HEAR: Duration = Duration::from_secs(180);

/// An informer, those who listen to it, and what it said of itself.
pub(crate) struct Watched {
    pub(crate) view: View,
    pub(crate) tag: String,
    pub(crate) informer: SharedInformer<DynamicObject>,
    hearings: Mutex<Vec<(Hearing, HandlerHandle)>>,
    noted: Arc<Mutex<Noted>>,
}

/// What hooks were told.
#[derive(Debug, Clone, Default)]
pub(crate) struct Noted {
    pub(crate) gaps: Vec<Gap>,
    /// Each ended a cycle of list and watch.
    pub(crate) errors: Vec<Error>,
}

impl Watched {
    /// An informer that has begun.
    pub(crate) fn start(client: &Client, view: View, tag: String, how: How) -> Result<Self, Failure> {
        let source = view.source(client.clone(), &tag, how);
        let noted = Arc::new(Mutex::new(Noted::default()));
        let (gaps, errors) = (noted.clone(), noted.clone());
        let note = |noted: &Mutex<Noted>, what: &dyn Fn(&mut Noted)| {
            what(&mut noted.lock().unwrap_or_else(PoisonError::into_inner));
        };
        let informer = SharedInformer::builder(source)
            .name(tag.clone())
            .reflector(move |reflector| {
                let gaps = gaps.clone();
                let reflector = reflector.on_gap(move |gap| note(&gaps, &|noted| noted.gaps.push(gap.clone())));
                match how.page_size {
                    Some(size) => reflector.streaming_lists(false).page_size(size),
                    None => reflector,
                }
            })
            .on_watch_error(move |error| note(&errors, &|noted| noted.errors.push(error.clone())))
            .build();
        let watched = Self { view, tag, informer, hearings: Mutex::default(), noted };
        watched.listen("first", false)?;
        watched.listen_slowly()?;
        watched.informer.start(CancellationToken::new())?;
        Ok(watched)
    }

    /// Adds a handler that sees objects as the view says, and decodes each.
    pub(crate) fn listen(&self, name: &str, blocking: bool) -> Result<(), Failure> {
        let hearing = Hearing::new(name, false);
        let options = (name, blocking);
        let handle = match (self.view.form, self.view.kind) {
            (Form::Dynamic, _) => self.listen_as::<DynamicObject>(&hearing, options),
            (Form::Metadata, _) => self.listen_as::<PartialObjectMeta<DynamicObject>>(&hearing, options),
            (Form::Typed, Kind::Pods) => self.listen_as::<Pod>(&hearing, options),
            (Form::Typed, Kind::ConfigMaps) => self.listen_as::<ConfigMap>(&hearing, options),
            (Form::Typed, Kind::Secrets) => self.listen_as::<Secret>(&hearing, options),
            (Form::Typed, Kind::Nodes) => self.listen_as::<Node>(&hearing, options),
            (Form::Typed, Kind::Deployments) => self.listen_as::<Deployment>(&hearing, options),
            (Form::Typed, Kind::Leases) => self.listen_as::<Lease>(&hearing, options),
            (Form::Typed, Kind::Sails) => self.listen_as::<Sail>(&hearing, options),
        }?;
        self.add(hearing, handle);
        Ok(())
    }

    fn listen_as<K: Sample>(
        &self,
        hearing: &Hearing,
        (name, blocking): (&str, bool),
    ) -> Result<HandlerHandle, Failure> {
        let ears = hearing.clone();
        let options = HandlerOptions::new().name(name);
        let options = if blocking { options.blocking() } else { options };
        Ok(self.informer.typed::<K>().on_event_with(options, move |event| {
            ears.hear(event);
            let (key, object) = (event.key(), event.object());
            match object.decode() {
                Ok(decoded) if decoded.name() == Some(key.name()) => {}
                Ok(_) => ears.cannot_decode(&key.to_string(), "its name is another one"),
                Err(error) => ears.cannot_decode(&key.to_string(), &error.to_string()),
            }
        })?)
    }

    /// Adds one that takes its time, and hears of what is left.
    fn listen_slowly(&self) -> Result<(), Failure> {
        let hearing = Hearing::new("slow", true);
        let options = HandlerOptions::new().name("slow").buffer(Buffer::Coalesce);
        let mut events = self.informer.events_with(options)?;
        self.add(hearing.clone(), events.handle().clone());
        tokio::spawn(async move {
            while let Some(event) = events.next().await {
                hearing.hear(&event);
                if hearing.events().is_multiple_of(64) {
                    sleep(SLOW).await;
                }
            }
        });
        Ok(())
    }

    fn add(&self, hearing: Hearing, handle: HandlerHandle) {
        self.hearings.lock().unwrap_or_else(PoisonError::into_inner).push((hearing, handle));
    }

    pub(crate) fn noted(&self) -> Noted {
        self.noted.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Waits for what was written, and sees it.
    pub(crate) async fn wait_for(&self, key: &str, version: &str, patience: Duration) -> Result<(), Failure> {
        let lister = self.informer.lister();
        let wanted = version.into();
        let waited = match key.split_once('/') {
            Some((namespace, _)) => timeout(patience, lister.namespace(namespace).wait_for(&wanted)).await,
            None => timeout(patience, lister.wait_for(&wanted)).await,
        };
        let waited = waited.with_context(|| {
            format!("{}: version {version} has not come in {patience:?}: {:?}", self.tag, self.informer.status())
        })?;
        waited.with_context(|| format!("{}: version {version} does not come", self.tag))?;
        let object = self.informer.store().get_by_key(&key.parse()?);
        let seen = object.map(|object| object.resource_version().as_str().to_owned());
        ensure!(seen.as_deref() == Some(version), "{}: {key} was waited for at {version}, and is {seen:?}", self.tag);
        Ok(())
    }

    /// The cache is what the server has, by a list of our own, and each handler was told of just that. Says how many objects
    /// these are.
    pub(crate) async fn compare(&self, client: &Client, hear: Duration) -> Result<usize, Failure> {
        let (server, _) = digest::of_server(client, &self.view).await?;
        let cache = Digests::of_cache(&self.informer.store().snapshot())?;
        let mut wrong = cache.differences(&server, "cached", "on the server");
        let deadline = Instant::now() + hear;
        let hearings = self.hearings.lock().unwrap_or_else(PoisonError::into_inner).clone();
        for (hearing, handle) in hearings {
            while !(hearing.is_equal(&cache) && handle.backlog() == 0) && Instant::now() < deadline && wrong.is_empty()
            {
                sleep(Duration::from_millis(20)).await;
            }
            wrong.extend(hearing.check(&cache));
            if hearing.events() == 0 && !cache.is_empty() {
                wrong.push(format!("handler {} has heard nothing", handle.name()));
            }
        }
        wrong.extend(oddities(&self.informer.status()));
        if wrong.is_empty() {
            return Ok(server.len());
        }
        bail!("{} ({:?}):\n  {}", self.tag, self.view, wrong.join("\n  "))
    }

    /// Makes a handler forget what it was told of one object, as if it had never been told.
    pub(crate) fn forget_one(&self) {
        let hearings = self.hearings.lock().unwrap_or_else(PoisonError::into_inner);
        hearings.iter().for_each(|(hearing, _)| hearing.forget_one());
    }

    /// The library says so too.
    pub(crate) async fn verify(&self) -> Result<(), Failure> {
        let verification = self.informer.verify_against_server().await?;
        ensure!(verification.is_same(), "{}: the library says: {verification}", self.tag);
        let (compared, cached) = (verification.objects, self.informer.store().len() as u64);
        ensure!(compared == cached, "{}: {compared} objects were compared, of {cached}", self.tag);
        Ok(())
    }
}

/// Also when a case has failed: those of the next one shall not share the machine with it.
impl Drop for Watched {
    fn drop(&mut self) {
        self.informer.stop();
    }
}

/// What a real server gives no reason for.
fn oddities(status: &InformerStatus) -> Vec<String> {
    let mut odd = Vec::new();
    if status.phase != Phase::Watching {
        odd.push(format!("it is {:?}", status.phase));
    }
    for (namespace, status) in &status.partitions {
        let counts = BTreeMap::from([
            ("stale objects", status.stale_object_count),
            ("unreadable objects", status.unreadable_objects),
            ("objects of another kind", status.wrong_kind),
            ("unknown events", status.unknown_events),
            ("versions backwards", status.versions_backwards),
            ("refusals of the store", status.store_errors),
        ]);
        let not_none = counts.into_iter().filter(|(_, count)| *count > 0);
        odd.extend(not_none.map(|(what, count)| format!("{count} {what} in namespace {namespace:?}")));
    }
    odd
}

/// Writes a marker for each kind and namespace that is watched, and waits until each informer shows those that it sees.
pub(crate) async fn wait_for_markers(stage: &Stage, all: &[Watched], patience: Duration) -> Result<(), Failure> {
    let mut markers = BTreeMap::new();
    for watched in all {
        for namespace in watched.view.seen_namespaces() {
            let at = (watched.view.kind, namespace);
            if let std::collections::btree_map::Entry::Vacant(entry) = markers.entry(at) {
                entry.insert(stage.mark(watched.view.kind, namespace).await?);
            }
        }
    }
    let deadline = Instant::now() + patience;
    for watched in all {
        for namespace in watched.view.seen_namespaces() {
            let (key, version) = &markers[&(watched.view.kind, namespace)];
            watched.wait_for(key, version, deadline.saturating_duration_since(Instant::now())).await?;
        }
    }
    Ok(())
}

/// A type that objects decode into.
trait Sample: DeserializeOwned + Send + Sync + 'static {
    fn name(&self) -> Option<&str>;
}

macro_rules! samples {
    ($($kind:ty),*) => {$(
        impl Sample for $kind {
            fn name(&self) -> Option<&str> {
                self.metadata.name.as_deref()
            }
        }
    )*};
}

samples!(Pod, ConfigMap, Secret, Node, Deployment, Lease, DynamicObject, PartialObjectMeta<DynamicObject>);

impl Sample for Sail {
    fn name(&self) -> Option<&str> {
        // An area is a number of ours.
        self.metadata.name.as_deref().filter(|_| self.spec.area < u64::MAX)
    }
}

/// An object of the custom kind.
#[derive(Deserialize)]
struct Sail {
    metadata: ObjectMeta,
    spec: SailSpec,
}

#[derive(Deserialize)]
struct SailSpec {
    area: u64,
}
