//! The informer, as its users see it.

use std::any::type_name;
use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;
use std::time::Duration;

use hashbrown::HashSet;
use tokio_util::sync::CancellationToken;

use super::builder::InformerBuilder;
use super::handle::HandlerHandle;
use super::handler::{Closure, EventHandler, HandlerOptions};
use super::lease::Lease;
use super::listener::{Inbox, Listener};
use super::run::Runner;
use super::sieve::Sieve;
use super::status::InformerStatus;
use super::stream::EventStream;
use crate::defaults::MIN_RESYNC_PERIOD;
use crate::lister::Keeper;
use crate::{Error, Event, Index, IndexError, Indexer, Lister, ListerWatcher, Object, Packing, ResourceVersion};

/// Keeps a copy of a kind, and tells any number of handlers what changes: client-go's `SharedIndexInformer`. Cheap to clone.
///
/// All clones, and all informers of a [factory](crate::InformerFactory) for the same objects, are one: one watch, one store.
/// The type `K` is how this handle sees the objects; [`typed`](Self::typed) gives another view of the same informer.
///
/// It is started once, and does not begin again after it was stopped. See [the module](crate::informer) for an example.
pub struct SharedInformer<K> {
    lease: Lease,
    of: PhantomData<fn() -> K>,
}

impl<K> SharedInformer<K> {
    /// An informer of what `source` lists and watches, with the defaults.
    pub fn new(source: impl ListerWatcher + 'static) -> Self {
        Self::builder(source).build()
    }

    /// Begins an informer of what `source` lists and watches: a [`ListWatch`](crate::ListWatch), as a rule.
    pub fn builder(source: impl ListerWatcher + 'static) -> InformerBuilder<K> {
        InformerBuilder::of_source(source)
    }

    pub(crate) fn of_lease(lease: Lease) -> Self {
        Self { lease, of: PhantomData }
    }

    pub(super) fn core(&self) -> &Arc<super::core::Core> {
        self.lease.core()
    }

    /// The same informer, whose objects are seen as another type: a struct with the few fields that matter, say.
    pub fn typed<J>(&self) -> SharedInformer<J> {
        SharedInformer::of_lease(self.lease.clone())
    }

    /// What is listed and watched, as logs and errors call it.
    pub fn name(&self) -> &str {
        &self.core().name
    }

    /// The store, with its indexes.
    pub fn store(&self) -> &Arc<Indexer<Object>> {
        &self.core().processor.store
    }

    /// Adds an index, before or after the start: see [`Indexer::add_index`].
    pub async fn add_index(&self, name: impl Into<Arc<str>>, index: Index<Object>) -> Result<(), IndexError> {
        self.store().add_index(name, index).await
    }

    /// Reads the objects, as they are now. Before the informer has [synced](Self::synced) some are missing.
    ///
    /// The lister keeps the informer running.
    pub fn lister(&self) -> Lister<K> {
        let core = self.core();
        let keeper: Arc<dyn Keeper> = Arc::new(self.lease.clone());
        let (store, versions) = (core.processor.store.clone(), core.processor.versions.clone());
        Lister::of_informer(store, core.kind.clone(), versions, Some(keeper))
    }

    /// Starts to list and watch, on the tokio runtime that this is called in; outside of one that is an error. It goes on
    /// until `token` is cancelled, [`stop`](Self::stop) is called, or nobody needs it any more. A second start does nothing.
    pub fn start(&self, token: CancellationToken) -> Result<(), Error> {
        self.core().start(token)
    }

    /// Starts it, and returns when it has stopped and nothing is left of it: client-go's `Run`. Dropping the future does not
    /// stop it: that is for the token, for [`stop`](Self::stop), or for the last who needs it.
    pub async fn run(&self, token: CancellationToken) -> Result<(), Error> {
        // Who waits here needs it.
        let _lease = self.lease.clone();
        self.start(token)?;
        self.stopped().await;
        Ok(())
    }

    /// Begins to stop it, for everybody. What handlers have not heard by then they will not hear.
    pub fn stop(&self) {
        self.core().stop();
    }

    /// Stops it, for everybody, and returns when nothing is left of it: the watch is closed, and each handler has returned
    /// from its last call. So a handler that waits for this in one of its calls waits for ever: it calls [`stop`](Self::stop).
    pub async fn shutdown(&self) {
        self.stop();
        self.stopped().await;
    }

    /// Waits until it has stopped.
    pub async fn stopped(&self) {
        self.core().until_stopped().await;
    }

    /// It has been started, whether or not it has stopped since.
    pub fn is_started(&self) -> bool {
        self.core().is_started()
    }

    /// It has stopped, and nothing of it is left.
    pub fn is_stopped(&self) -> bool {
        self.core().is_stopped()
    }

    /// The first list has been applied to the store, of each namespace if there are several. It stays so. Handlers may still
    /// have to hear of it: [`HandlerHandle::has_synced`].
    pub fn has_synced(&self) -> bool {
        self.core().has_synced()
    }

    /// Waits for the first list, and gives a lister.
    ///
    /// That fails if the server refuses it three times (400, 401, 403, 404, 422), or if there is no progress for
    /// [a while](InformerBuilder::sync_timeout), with an error that says what is wrong and what to do; and if the informer is
    /// stopped. Of several namespaces, progress is what comes of those that have not had their list. Otherwise it goes on trying, and this can be called again.
    pub async fn synced(&self) -> Result<Lister<K>, Error> {
        self.core().wait_synced().await?;
        Ok(self.lister())
    }

    /// How it goes, now.
    pub fn status(&self) -> InformerStatus {
        self.core().status()
    }

    /// How the packing of its objects goes, of all namespaces together. When it has stopped there is nothing to tell.
    pub fn packing(&self) -> Packing {
        self.core().packing()
    }

    /// The handlers that there are.
    pub fn handlers(&self) -> Vec<HandlerHandle> {
        let handle = |listener| HandlerHandle { listener, informer: self.core().name.clone() };
        self.core().processor.listeners().into_iter().map(handle).collect()
    }

    /// The version of the last change, list or bookmark that was received: client-go's `LastSyncResourceVersion`. The store
    /// may still be behind; what it has come to is [`Indexer::last_version`]. Of several namespaces it is the first one's.
    pub fn last_sync_resource_version(&self) -> ResourceVersion {
        let first = self.core().partitions.first();
        first.map(|partition| partition.status.get().resource_version).unwrap_or_default()
    }

    /// Called from now on, in place of the hook that there was, with each error that ends a cycle of list and watch: see
    /// [`InformerBuilder::on_watch_error`].
    pub fn on_watch_error(&self, hook: impl Fn(&Error) + Send + Sync + 'static) {
        self.core().on_watch_error.store(Some(Arc::new(Box::new(hook))));
    }
}

impl<K: 'static> SharedInformer<K> {
    /// Adds a handler: a closure that is called with each event, one after the other.
    ///
    /// It is first told of all that is in the cache, and then of everything that changes. This can be done at any time, from
    /// within handlers too, until the informer is stopped. It keeps the informer running.
    pub fn on_event(&self, handler: impl FnMut(&Event<K>) + Send + 'static) -> Result<HandlerHandle, Error> {
        self.on_event_with(HandlerOptions::new(), handler)
    }

    /// The same, with options.
    pub fn on_event_with<F>(&self, options: HandlerOptions<K>, handler: F) -> Result<HandlerHandle, Error>
    where
        F: FnMut(&Event<K>) + Send + 'static,
    {
        self.add(options, type_name::<F>(), Closure(handler))
    }

    /// Adds a handler that has a type of its own: client-go's `AddEventHandler`. See [`on_event`](Self::on_event).
    pub fn add_handler<H: EventHandler<K>>(&self, handler: H) -> Result<HandlerHandle, Error> {
        self.add_handler_with(HandlerOptions::new(), handler)
    }

    /// The same, with options.
    pub fn add_handler_with<H: EventHandler<K>>(
        &self,
        options: HandlerOptions<K>,
        handler: H,
    ) -> Result<HandlerHandle, Error> {
        self.add(options, type_name::<H>(), handler)
    }

    /// The events as a stream, for async code: all that is in the cache first, and then everything that changes.
    pub fn events(&self) -> Result<EventStream<K>, Error> {
        self.events_with(HandlerOptions::new())
    }

    /// The same, with options. A stream has no thread, so whether it blocks is the reader's business.
    pub fn events_with(&self, options: HandlerOptions<K>) -> Result<EventStream<K>, Error> {
        let listener = self.listener(&options, "events");
        listener.becomes_stream();
        let (inbox, handle) = self.inbox(&listener);
        self.core().join(&listener, None)?;
        Ok(EventStream::new(inbox, Sieve::new(options.filter), handle, self.lease.clone()))
    }

    fn add(
        &self,
        options: HandlerOptions<K>,
        type_name: &str,
        handler: impl EventHandler<K>,
    ) -> Result<HandlerHandle, Error> {
        let listener = self.listener(&options, type_name);
        let (inbox, handle) = self.inbox(&listener);
        let runner = Runner::new(inbox, handler, Sieve::new(options.filter), options.blocking);
        self.core().join(&listener, Some(runner))?;
        Ok(handle)
    }

    fn inbox(&self, listener: &Arc<Listener>) -> (Inbox, HandlerHandle) {
        let handle = HandlerHandle { listener: listener.clone(), informer: self.core().name.clone() };
        (Inbox::new(listener.clone()), handle)
    }

    fn listener(&self, options: &HandlerOptions<K>, type_name: &str) -> Arc<Listener> {
        let period = options.resync.unwrap_or(self.core().resync);
        let resync = Some(period).filter(|period| *period > Duration::ZERO).map(|period| period.max(MIN_RESYNC_PERIOD));
        let name = options.name.clone().unwrap_or_else(|| super::handler::name_of(type_name));
        let others = self.core().processor.listeners();
        let taken: HashSet<&str> = others.iter().map(|listener| &*listener.name).collect();
        let is_taken = |name: &str| taken.contains(name);
        let numbered = (2..).map(|number| format!("{name}-{number}").into_boxed_str());
        let name = std::iter::once(name.clone()).chain(numbered).find(|name| !is_taken(name)).unwrap_or(name);
        Arc::new(Listener::new(name, options.buffer, resync, options.tell_unchanged))
    }
}

impl<K> Clone for SharedInformer<K> {
    fn clone(&self) -> Self {
        Self::of_lease(self.lease.clone())
    }
}

impl<K> fmt::Debug for SharedInformer<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SharedInformer")
            .field("name", &self.name())
            .field("synced", &self.has_synced())
            .field("stopped", &self.is_stopped())
            .finish_non_exhaustive()
    }
}
