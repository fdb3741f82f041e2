//! Makes informers, one for each subject.

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use futures::future::join_all;
use kube_client::config::KubeconfigError;
use kube_client::{Client, Config};
use kube_core::{ApiResource, DynamicObject, PartialObjectMeta};
use tokio_util::sync::CancellationToken;

use super::{InformerOptions, Subject, SyncResult};
use crate::informer::core::Core;
use crate::informer::lease::Lease;
use crate::metrics::{InformerIdentity, InformerName, MetricsProvider};
use crate::{Error, ErrorKind, InformerBuilder, Kind, SharedInformer, StreamingLists};

/// Makes informers, and gives the same one to all who ask for the same objects: client-go's `SharedInformerFactory`,
/// `DynamicSharedInformerFactory` and its metadata-only sister in one. Cheap to clone.
///
/// See [the module](crate::factory) for an example.
#[derive(Clone)]
pub struct InformerFactory(Arc<Shared>);

struct Shared {
    client: Client,
    defaults: InformerOptions,
    kinds: HashMap<(String, String), InformerOptions>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    informers: BTreeMap<Subject, Entry>,
    /// Those that are not to be had any more. Something of them may be left, which a shutdown waits for.
    leaving: Vec<Weak<Core>>,
    /// What is known of the server's streaming lists, by group and plural.
    streaming: HashMap<(String, String), StreamingLists>,
    metrics: Option<Metrics>,
    shut_down: bool,
}

/// Who measures informers, and under which labels.
struct Metrics {
    provider: Arc<dyn MetricsProvider>,
    name: InformerName,
    /// Kept while it is used, since of two who make an informer at once only one is right, and nobody knows which.
    identities: HashMap<Subject, InformerIdentity>,
}

impl State {
    /// The informer of a subject. Whoever lets it go may be the last: not with the lock held.
    fn core(&self, subject: &Subject) -> Option<Arc<Core>> {
        self.informers.get(subject)?.core()
    }

    fn leaves(&mut self, core: &Arc<Core>) {
        self.leaving.retain(|core| core.strong_count() > 0);
        self.leaving.push(Arc::downgrade(core));
    }
}

struct Entry {
    core: Held,
    options: InformerOptions,
}

/// Before its start nobody but the factory may hold an informer with handlers; from then on it holds itself, for as long as
/// it is needed.
enum Held {
    Waiting(Arc<Core>),
    Started(Weak<Core>),
}

impl Entry {
    fn core(&self) -> Option<Arc<Core>> {
        match &self.core {
            Held::Waiting(core) => Some(core.clone()),
            Held::Started(core) => core.upgrade(),
        }
    }
}

/// Options of an [`InformerFactory`].
#[must_use]
pub struct InformerFactoryBuilder {
    client: Client,
    defaults: InformerOptions,
    kinds: HashMap<(String, String), InformerOptions>,
    metrics: Option<(Arc<dyn MetricsProvider>, InformerName)>,
}

impl InformerFactoryBuilder {
    /// What holds for all informers that do not say otherwise.
    pub fn defaults(mut self, options: InformerOptions) -> Self {
        self.defaults = options;
        self
    }

    /// What holds for the informers of a kind that do not say otherwise: client-go's `WithCustomResyncConfig`, for all options.
    pub fn kind<K: Kind>(self, options: InformerOptions) -> Self {
        self.resource(&K::resource(), options)
    }

    /// The same for a kind that is known at run time.
    pub fn resource(mut self, resource: &ApiResource, options: InformerOptions) -> Self {
        self.kinds.insert((resource.group.clone(), resource.plural.clone()), options);
        self
    }

    /// Who measures the informers, and the name that tells them from those of other factories: client-go's
    /// `WithInformerName`. An informer of some of a kind's objects has its selection in the label `resource`.
    pub fn metrics(mut self, provider: impl MetricsProvider, name: InformerName) -> Self {
        self.metrics = Some((Arc::new(provider), name));
        self
    }

    /// The factory.
    pub fn build(self) -> InformerFactory {
        let Self { client, defaults, kinds, metrics } = self;
        let metrics = metrics.map(|(provider, name)| Metrics { provider, name, identities: HashMap::new() });
        let state = Mutex::new(State { metrics, ..State::default() });
        InformerFactory(Arc::new(Shared { client, defaults, kinds, state }))
    }
}

impl InformerFactory {
    /// A factory for the cluster of the kubeconfig, or the one that this runs in.
    pub async fn try_default() -> Result<Self, Error> {
        let config = Config::infer().await.map_err(|error| {
            let cause = std::error::Error::source(&error).and_then(|cause| cause.downcast_ref::<KubeconfigError>());
            let why = match cause {
                // A parser's error may quote what is in the file.
                Some(KubeconfigError::Parse(_)) => "the kubeconfig is not valid YAML, or is no kubeconfig".to_owned(),
                Some(cause) => cause.to_string(),
                None => "no kubeconfig can be read".to_owned(),
            };
            let remedy = "set KUBECONFIG to one that `kubectl` can use, or run this in a cluster";
            Error::new(ErrorKind::Config, format_args!("there is no cluster to talk to: {why}; {remedy}"))
        })?;
        Ok(Self::new(crate::client(config)?))
    }

    /// A factory for the cluster that `client` talks to, best one of [`watchkeeper::client`](crate::client)'s.
    pub fn new(client: Client) -> Self {
        Self::builder(client).build()
    }

    /// Begins a factory with options.
    pub fn builder(client: Client) -> InformerFactoryBuilder {
        InformerFactoryBuilder { client, defaults: InformerOptions::new(), kinds: HashMap::new(), metrics: None }
    }

    /// The client, for requests of one's own.
    pub fn client(&self) -> &Client {
        &self.0.client
    }

    /// The informer of a kind. If there is none yet, it is made, and runs from the next [`start`](Self::start) on.
    pub fn informer<K: Kind>(&self) -> SharedInformer<K> {
        SharedInformer::of_lease(self.get(&K::resource(), false))
    }

    /// The informer of a kind with these options. An error if there is one for the same objects, with others.
    pub fn informer_with<K: Kind>(&self, options: InformerOptions) -> Result<SharedInformer<K>, Error> {
        self.get_with(&K::resource(), false, options).map(SharedInformer::of_lease)
    }

    /// The informer of a kind that is known at run time: client-go's `ForResource`, and all that its dynamic factory makes.
    pub fn informer_for(&self, resource: &ApiResource) -> SharedInformer<DynamicObject> {
        SharedInformer::of_lease(self.get(resource, false))
    }

    /// The same with options: see [`informer_with`](Self::informer_with).
    pub fn informer_for_with(
        &self,
        resource: &ApiResource,
        options: InformerOptions,
    ) -> Result<SharedInformer<DynamicObject>, Error> {
        self.get_with(resource, false, options).map(SharedInformer::of_lease)
    }

    /// An informer of the metadata of a kind's objects, which is all that the server sends of them.
    pub fn metadata<K: Kind>(&self) -> SharedInformer<PartialObjectMeta<K>> {
        SharedInformer::of_lease(self.get(&K::resource(), true))
    }

    /// The same with options: see [`informer_with`](Self::informer_with).
    pub fn metadata_with<K: Kind>(
        &self,
        options: InformerOptions,
    ) -> Result<SharedInformer<PartialObjectMeta<K>>, Error> {
        self.get_with(&K::resource(), true, options).map(SharedInformer::of_lease)
    }

    /// An informer of the metadata of objects whose kind is known at run time.
    pub fn metadata_for(&self, resource: &ApiResource) -> SharedInformer<PartialObjectMeta<DynamicObject>> {
        SharedInformer::of_lease(self.get(resource, true))
    }

    /// The same with options: see [`informer_with`](Self::informer_with).
    pub fn metadata_for_with(
        &self,
        resource: &ApiResource,
        options: InformerOptions,
    ) -> Result<SharedInformer<PartialObjectMeta<DynamicObject>>, Error> {
        self.get_with(resource, true, options).map(SharedInformer::of_lease)
    }

    /// The informer under a name, which `make` makes if there is none: client-go's `InformerFor`. For sources and options that
    /// a factory does not know of; it is started, waited for and shut down with the others. The factory's defaults hold for
    /// what the informer itself can be told, unless `make` says otherwise.
    pub fn informer_from<K>(
        &self,
        name: impl Into<String>,
        make: impl FnOnce(InformerMaker) -> InformerBuilder<K>,
    ) -> SharedInformer<K> {
        let subject = Subject::special(name.into());
        let maker = InformerMaker { client: self.client().clone(), defaults: self.0.defaults.clone() };
        SharedInformer::of_lease(self.lease(subject, InformerOptions::new(), || make(maker).build_core()))
    }

    fn get(&self, resource: &ApiResource, metadata_only: bool) -> Lease {
        let options = self.options_for(resource, InformerOptions::new());
        self.make(resource, metadata_only, &options)
    }

    fn get_with(&self, resource: &ApiResource, metadata_only: bool, asked: InformerOptions) -> Result<Lease, Error> {
        let options = self.options_for(resource, asked.clone());
        let subject = Subject::new(resource, metadata_only, &options);
        let lease = self.make(resource, metadata_only, &options);
        let state = self.state();
        let missing = state.informers.get(&subject).map(|entry| asked.missing_in(&entry.options)).unwrap_or_default();
        drop(state);
        if missing.is_empty() {
            return Ok(lease);
        }
        Err(Error::new(
            ErrorKind::Config,
            format_args!(
                "there is an informer of {subject} already, with other options ({}): ask without them, or before the others do",
                missing.join(", ")
            ),
        ))
    }

    fn make(&self, resource: &ApiResource, metadata_only: bool, options: &InformerOptions) -> Lease {
        let subject = Subject::new(resource, metadata_only, options);
        self.lease(subject.clone(), options.clone().settled(resource), || {
            let key = (resource.group.clone(), resource.plural.clone());
            let streaming = self.state().streaming.entry(key).or_default().clone();
            let source = options.source(self.client().clone(), resource, metadata_only, &streaming);
            let mut builder = options.apply(InformerBuilder::<()>::of_source(source)).name(subject.to_string());
            if !resource.kind.is_empty() {
                builder = builder.kind(resource.kind.as_str());
            }
            if let Some((provider, identity)) = self.measured(resource, &subject) {
                builder = builder.metrics(provider, identity);
            }
            builder.build_core()
        })
    }

    fn measured(
        &self,
        resource: &ApiResource,
        subject: &Subject,
    ) -> Option<(Arc<dyn MetricsProvider>, InformerIdentity)> {
        let mut state = self.state();
        let informers = state.informers.len();
        let Metrics { provider, name, identities } = state.metrics.as_mut()?;
        // Informers of namespaces that come and go shall not fill it.
        if identities.len() > 2 * informers + 64 {
            identities.retain(|_, identity| identity.is_shared());
        }
        let identity = identities.entry(subject.clone()).or_insert_with(|| {
            // Of the same kind there may be several, and each needs labels of its own.
            let label = format!("{}{}", resource.plural, subject.selection());
            name.with_resource(&resource.group, &resource.version, &label)
        });
        Some((provider.clone(), identity.clone()))
    }

    /// Somebody's share in the informer of a subject, which is made if there is none that runs or can be started.
    fn lease(&self, subject: Subject, options: InformerOptions, make: impl FnOnce() -> Arc<Core>) -> Lease {
        let known = self.state().core(&subject);
        // None of one that neither runs nor can be started.
        if let Some(lease) = known.as_ref().and_then(Lease::of) {
            return lease;
        }
        // Without the lock: whoever makes it may ask the factory for others.
        let core = make();
        let made = Lease::first(core.clone());
        let mut state = self.state();
        let known = state.core(&subject);
        if let Some(lease) = known.as_ref().and_then(Lease::of) {
            // Somebody was faster.
            drop(state);
            return lease;
        }
        if state.shut_down {
            drop(state);
            core.stop_because(Error::new(ErrorKind::Stopped, "its factory has been shut down"));
            return made;
        }
        let before = state.informers.insert(subject, Entry { core: Held::Waiting(core), options });
        let gone = before.as_ref().and_then(Entry::core);
        if let Some(core) = &gone {
            state.leaves(core);
        }
        drop(state);
        made
    }

    fn options_for(&self, resource: &ApiResource, asked: InformerOptions) -> InformerOptions {
        let kind = self.0.kinds.get(&(resource.group.clone(), resource.plural.clone()));
        let of_kind = kind.cloned().unwrap_or_default();
        asked.or(&of_kind).or(&self.0.defaults).plain()
    }

    /// Starts the informers that have not been started, on the tokio runtime that this is called in; outside of one that is
    /// an error. Call it again after others have been asked for. An informer that nobody holds and that has no handler is not
    /// started.
    ///
    /// They go on until `token` is cancelled, [`shutdown`](Self::shutdown) is called, or nobody needs them any more.
    pub fn start(&self, token: CancellationToken) -> Result<(), Error> {
        let mut state = self.state();
        if state.shut_down {
            return Err(Error::new(
                ErrorKind::Stopped,
                "the factory has been shut down, and starts no informers any more",
            ));
        }
        let (mut gone, mut waiting) = (Vec::new(), Vec::new());
        for (subject, entry) in &state.informers {
            match &entry.core {
                Held::Started(core) if core.strong_count() > 0 => {}
                Held::Started(_) => gone.push(subject.clone()),
                // Who wanted it has stopped it again, or has gone.
                Held::Waiting(core) if core.is_ending() || !core.is_needed() => gone.push(subject.clone()),
                Held::Waiting(core) => waiting.push((subject.clone(), core.clone())),
            }
        }
        // Taken out, and dropped when the lock is released: options have functions of the user's.
        let gone: Vec<Entry> = gone.iter().filter_map(|subject| state.informers.remove(subject)).collect();
        for entry in &gone {
            if let Held::Waiting(core) = &entry.core {
                state.leaves(core);
            }
        }
        drop(state);
        drop(gone);
        // Without the lock: a runtime that is over drops what it is given, and handlers with it.
        let mut result = Ok(());
        for (subject, core) in waiting {
            match core.start(token.clone()) {
                Ok(()) => self.has_started(&subject, &core),
                // The others are started nevertheless.
                Err(error) if result.is_ok() => result = Err(error),
                Err(_) => {}
            }
        }
        result
    }

    /// It holds itself from now on.
    fn has_started(&self, subject: &Subject, core: &Arc<Core>) {
        if let Some(entry) = self.state().informers.get_mut(subject)
            && matches!(&entry.core, Held::Waiting(waiting) if Arc::ptr_eq(waiting, core))
        {
            entry.core = Held::Started(Arc::downgrade(core));
        }
    }

    /// For each informer that was started, whether its first list has come.
    pub fn synced(&self) -> BTreeMap<Subject, bool> {
        self.started().into_iter().map(|(subject, core)| (subject, core.has_synced())).collect()
    }

    /// Waits for the first lists of all informers that were started, at once: client-go's `WaitForCacheSync`. See
    /// [`SharedInformer::synced`] for when it gives up one. Handlers may still have to hear of what came.
    pub async fn wait_synced(&self) -> SyncResult {
        let waits =
            self.started().into_iter().map(|(subject, core)| async move { (subject, core.wait_synced().await) });
        SyncResult { informers: join_all(waits).await.into_iter().collect() }
    }

    /// Stops all informers, and waits until nothing is left of them: client-go's `Shutdown`. The factory starts no others,
    /// and the name of its metrics is free again. Can be called several times, also at once: each call waits.
    pub async fn shutdown(&self) {
        let cores: Vec<Arc<Core>> = {
            let mut state = self.state();
            state.shut_down = true;
            let leaving = state.leaving.iter().filter_map(Weak::upgrade);
            state.informers.values().filter_map(Entry::core).chain(leaving).collect()
        };
        for core in &cores {
            core.stop();
        }
        join_all(cores.iter().map(|core| core.until_stopped())).await;
        // They stand in the state until then, for others who call this meanwhile.
        let mut state = self.state();
        let gone = (std::mem::take(&mut state.informers), state.metrics.take());
        drop(state);
        drop(gone);
    }

    /// What there are informers for: those that run, and those that wait to be started.
    pub fn subjects(&self) -> Vec<Subject> {
        let living = self.living().into_iter().filter(|(_, core)| !core.is_stopped());
        living.map(|(subject, _)| subject).collect()
    }

    fn started(&self) -> Vec<(Subject, Arc<Core>)> {
        self.living().into_iter().filter(|(_, core)| core.is_started()).collect()
    }

    fn living(&self) -> Vec<(Subject, Arc<Core>)> {
        let state = self.state();
        state.informers.iter().filter_map(|(subject, entry)| Some((subject.clone(), entry.core()?))).collect()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What an informer can be made with by [`InformerFactory::informer_from`].
pub struct InformerMaker {
    /// The factory's client.
    pub client: Client,
    defaults: InformerOptions,
}

impl InformerMaker {
    /// Begins an informer of what `source` lists and watches, with the factory's defaults.
    pub fn informer<K>(&self, source: impl crate::ListerWatcher + 'static) -> InformerBuilder<K> {
        self.defaults.apply(SharedInformer::builder(source))
    }
}

impl fmt::Debug for InformerFactory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("InformerFactory").field("subjects", &self.subjects()).finish_non_exhaustive()
    }
}
