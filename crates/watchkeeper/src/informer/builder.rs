//! How is an informer set up?

use std::marker::PhantomData;
use std::sync::{Arc, Mutex, Weak};
use std::time::Duration;

use hashbrown::HashSet;

use super::SharedInformer;
use super::core::{Core, Engine, Gauge, Line, Partition, Parts, WatchErrorHook};
use super::lease::Lease;
use super::processor::Processor;
use super::sample::Measured;
use crate::defaults::{LINGER, SYNC_TIMEOUT};
use crate::metrics::{InformerIdentity, MetricsProvider};
use crate::source::PartitionSource;
use crate::store::PartitionVersions;
use crate::{
    AtomicFifo, DeltaFifo, Error, Indexer, KnownObjects, ListerWatcher, Object, ObjectKey, Reflector, ReflectorStore,
};

/// Which queue stands between the watch and the store.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum InformerQueue {
    /// An [`AtomicFifo`]: changes in the order in which they came, and each list as one. After a list the whole store is
    /// the new state before anybody hears of any of it.
    #[default]
    Atomic,
    /// A [`DeltaFifo`]: changes by key, as client-go had it before. A list is applied key by key, so that readers see it
    /// half applied, and handlers hear of a key while others are still to come; it takes more memory meanwhile; bookmarks
    /// do not move the store's version, and [`wait_for`](crate::Lister::wait_for) may return before an earlier change of
    /// another key can be read.
    Delta,
}

/// Makes the sources of objects that end up in a store.
type Sources = dyn FnOnce(&Arc<Indexer<Object>>) -> Vec<PartitionSource> + Send;

/// Options of a [`SharedInformer`].
#[must_use]
pub struct InformerBuilder<K> {
    source: Box<Sources>,
    partitioned: bool,
    name: Arc<str>,
    kind: Option<Box<str>>,
    resync: Duration,
    sync_timeout: Duration,
    linger: Duration,
    queue: InformerQueue,
    reflector: Box<dyn FnMut(Reflector) -> Reflector + Send>,
    on_watch_error: Option<Box<WatchErrorHook>>,
    metrics: Option<(Arc<dyn MetricsProvider>, InformerIdentity)>,
    of: PhantomData<fn() -> K>,
}

impl<K> InformerBuilder<K> {
    pub(crate) fn of_source(source: impl ListerWatcher + 'static) -> Self {
        Self {
            name: source.description().into(),
            partitioned: source.namespaces().len() > 1,
            source: Box::new(move |store| source.into_partitions(store)),
            kind: None,
            resync: Duration::ZERO,
            sync_timeout: SYNC_TIMEOUT,
            linger: LINGER,
            queue: InformerQueue::default(),
            reflector: Box::new(|reflector| reflector),
            on_watch_error: None,
            metrics: None,
            of: PhantomData,
        }
    }

    /// What logs and errors call it; by default what its source is called.
    pub fn name(mut self, name: impl Into<Arc<str>>) -> Self {
        self.name = name.into();
        self
    }

    /// What listers call the kind, if the name of `K` does not tell.
    pub fn kind(mut self, kind: impl Into<Box<str>>) -> Self {
        self.kind = Some(kind.into());
        self
    }

    /// How often everything is said again to handlers that do not say otherwise; zero, the default, is never. Nothing is
    /// asked of the server for that. Less than a second becomes a second.
    pub fn resync_period(mut self, period: Duration) -> Self {
        self.resync = period;
        self
    }

    /// How long [`synced`](SharedInformer::synced) waits without any progress; two minutes by default.
    pub fn sync_timeout(mut self, timeout: Duration) -> Self {
        self.sync_timeout = timeout;
        self
    }

    /// How long it runs on when nobody needs it any more; 30 s by default.
    pub fn linger(mut self, linger: Duration) -> Self {
        self.linger = linger;
        self
    }

    /// Which queue stands between the watch and the store.
    pub fn queue(mut self, queue: InformerQueue) -> Self {
        self.queue = queue;
        self
    }

    /// Sets what is to be set of each reflector: its backoff, its page size, its timeouts. Its resync period is the
    /// informer's, and its hook too.
    pub fn reflector(mut self, mut set: impl FnMut(Reflector) -> Reflector + Send + 'static) -> Self {
        let mut before = self.reflector;
        self.reflector = Box::new(move |reflector| set(before(reflector)));
        self
    }

    /// Called with each error that ends a cycle of list and watch: client-go's `SetWatchErrorHandler`. It must not block.
    /// The informer tries again afterwards whatever it does.
    pub fn on_watch_error(mut self, hook: impl Fn(&Error) + Send + Sync + 'static) -> Self {
        self.on_watch_error = Some(Box::new(hook));
        self
    }

    /// Who measures it, under which labels: see [`metrics`](crate::metrics).
    pub fn metrics(mut self, provider: impl MetricsProvider, identity: InformerIdentity) -> Self {
        self.metrics = Some((Arc::new(provider), identity));
        self
    }

    /// The informer. It does nothing before it is started.
    pub fn build(self) -> SharedInformer<K> {
        SharedInformer::of_lease(Lease::first(self.build_core()))
    }

    pub(crate) fn build_core(self) -> Arc<Core> {
        let Self {
            source,
            partitioned,
            name,
            kind,
            resync,
            sync_timeout,
            linger,
            queue,
            mut reflector,
            on_watch_error,
            metrics,
            ..
        } = self;
        let store = Arc::new(if partitioned { Indexer::objects_unversioned() } else { Indexer::objects() });
        let mut sources = source(&store);
        // A namespace that is named twice is one.
        let mut known = HashSet::new();
        sources.retain(|source| known.insert(source.namespace.clone()));
        let namespaces: Vec<Option<Arc<str>>> = sources.iter().map(|source| source.namespace.clone()).collect();
        let versions = partitioned
            .then(|| Arc::new(PartitionVersions::new(namespaces.iter().map(|name| name.clone().unwrap_or_default()))));

        Arc::new_cyclic(|core: &Weak<Core>| {
            let measured = metrics.map(|(provider, identity)| Measured::new(&*provider, &identity, core));
            let (mut partitions, mut engines) = (Vec::new(), Vec::new());
            for (at, PartitionSource { namespace, source }) in sources.into_iter().enumerate() {
                let core = core.clone();
                let hook = move |error: &Error| {
                    if let Some(core) = core.upgrade() {
                        core.watch_failed(at, error);
                    }
                };
                let (line, gauge, reflected) = line(queue, &source, &store, namespace.as_ref());
                let reflected = reflector(reflected).resync_period(Duration::ZERO).on_watch_error(hook);
                let reflected = match &measured {
                    Some(measured) => reflected.metrics(measured.metrics.clone()),
                    None => reflected,
                };
                partitions.push(Partition {
                    namespace,
                    description: source.description().into(),
                    source: Mutex::new(Some(source)),
                    status: reflected.status(),
                    queue: gauge,
                    ordered: queue == InformerQueue::Atomic,
                    relister: reflected.relister(),
                    refusals: Default::default(),
                });
                engines.push(Engine { reflector: reflected, line });
            }
            let processor = Processor::new(store, namespaces, versions);
            Core::new(Parts {
                name,
                kind,
                processor,
                partitions,
                engines,
                resync,
                sync_timeout,
                linger,
                on_watch_error,
                measured,
            })
        })
    }
}

/// The queue of a partition, how long it is, and the reflector that writes into it.
fn line(
    queue: InformerQueue,
    source: &Arc<dyn ListerWatcher>,
    store: &Arc<Indexer<Object>>,
    namespace: Option<&Arc<str>>,
) -> (Line, Gauge, Reflector) {
    fn reflector(source: &Arc<dyn ListerWatcher>, queue: impl ReflectorStore + 'static) -> Reflector {
        Reflector::new(source.clone(), queue)
    }
    match queue {
        InformerQueue::Atomic => {
            let (queue, consumer) = AtomicFifo::objects().name(source.description()).build();
            let reflector = reflector(source, queue.clone());
            let gauge = queue.clone();
            (Line::Atomic(queue, consumer), Box::new(move || gauge.len()), reflector)
        }
        InformerQueue::Delta => {
            let known = KnownOf { store: store.clone(), namespace: namespace.cloned() };
            let queue = DeltaFifo::objects().known_objects(known).emit_replaced(true);
            let (queue, consumer) = queue.name(source.description()).build();
            let reflector = reflector(source, queue.clone());
            let gauge = queue.clone();
            // What is in hand is not in the store yet: whoever compares the two must know of it.
            (Line::Delta(queue, consumer), Box::new(move || gauge.unprocessed()), reflector)
        }
    }
}

/// What the store has of one partition: a list of it says nothing of the others.
struct KnownOf {
    store: Arc<Indexer<Object>>,
    namespace: Option<Arc<str>>,
}

impl KnownObjects<Object> for KnownOf {
    fn list_keys(&self) -> Vec<ObjectKey> {
        match &self.namespace {
            None => self.store.list_keys(),
            Some(namespace) => self.store.index_keys("namespace", namespace).unwrap_or_default(),
        }
    }

    fn get_by_key(&self, key: &ObjectKey) -> Option<Object> {
        self.store.get_by_key(key).filter(|_| self.namespace.is_none() || key.namespace() == self.namespace.as_deref())
    }
}
