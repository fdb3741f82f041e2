//! What can be said of an informer that a factory makes.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use kube_client::Client;
use kube_core::ApiResource;

use crate::defaults::{LINGER, MAX_FRAME, MAX_RAW_BYTES, SYNC_TIMEOUT};
use crate::informer::InformerBuilder;
use crate::source::Tweak;
use crate::{Error, InformerQueue, Keep, ListOptions, ListWatch, Reflector, Scope, StreamingLists, Transform};

/// Options of an informer of a factory. What is not said is as the factory's defaults say, and else as always.
///
/// Scope and selectors decide which informer is meant: others make another one. All that stands below them is how that one
/// works, which the first who asks decides.
///
/// ```
/// use std::time::Duration;
/// use watchkeeper::{InformerOptions, Keep, Transform};
///
/// let options = InformerOptions::new()
///     .namespaces(["shop", "bank"])
///     .labels("app=web")
///     .keep(Keep::Raw)
///     .transform(Transform::strip_managed_fields())
///     .resync_period(Duration::from_secs(600));
/// ```
#[derive(Clone, Default)]
#[must_use]
pub struct InformerOptions {
    pub(super) scope: Option<Scope>,
    pub(super) labels: Option<String>,
    pub(super) fields: Option<String>,
    keep: Option<Keep>,
    transform: Option<Transform>,
    tweak: Option<Arc<Tweak>>,
    resync: Option<Duration>,
    queue: Option<InformerQueue>,
    linger: Option<Duration>,
    sync_timeout: Option<Duration>,
    max_object_size: Option<usize>,
    max_raw_bytes: Option<usize>,
    reflector: Option<Arc<SetReflector>>,
    on_watch_error: Option<Arc<Hook>>,
}

type SetReflector = dyn Fn(Reflector) -> Reflector + Send + Sync;
type Hook = dyn Fn(&Error) + Send + Sync;

impl InformerOptions {
    /// Nothing is said.
    pub fn new() -> Self {
        Self::default()
    }

    /// Only objects of this scope; [`Scope::All`] if the defaults say less.
    pub fn scope(mut self, scope: Scope) -> Self {
        self.scope = Some(scope);
        self
    }

    /// Only objects of one namespace. The empty one stands for all, as in client-go.
    pub fn namespace(self, namespace: impl Into<String>) -> Self {
        self.scope(Scope::Namespace(namespace.into()))
    }

    /// Only objects of these namespaces. Each is listed and watched by itself; one that is forbidden does not stop the rest.
    /// If the empty one is among them, all are meant.
    pub fn namespaces<N: Into<String>>(self, namespaces: impl IntoIterator<Item = N>) -> Self {
        self.scope(Scope::Namespaces(namespaces.into_iter().map(Into::into).collect::<BTreeSet<_>>()))
    }

    /// Only objects with these labels, in the server's grammar. The empty selector selects all, whatever the defaults say.
    pub fn labels(mut self, selector: impl Into<String>) -> Self {
        self.labels = Some(selector.into());
        self
    }

    /// Only objects with these fields, in the server's grammar. The empty selector selects all, whatever the defaults say.
    pub fn fields(mut self, selector: impl Into<String>) -> Self {
        self.fields = Some(selector.into());
        self
    }

    /// How bodies are kept: see [`ListWatch::keep`].
    pub fn keep(mut self, keep: Keep) -> Self {
        self.keep = Some(keep);
        self
    }

    /// Changes each object before anything else sees it: client-go's `WithTransform`.
    pub fn transform(mut self, transform: Transform) -> Self {
        self.transform = Some(transform);
        self
    }

    /// Changes the options of each request: client-go's `WithTweakListOptions`.
    pub fn tweak(mut self, tweak: impl Fn(&mut ListOptions) + Send + Sync + 'static) -> Self {
        self.tweak = Some(Arc::new(tweak));
        self
    }

    /// How often everything is said again to handlers that do not say otherwise: see [`InformerBuilder::resync_period`].
    pub fn resync_period(mut self, period: Duration) -> Self {
        self.resync = Some(period);
        self
    }

    /// Which queue stands between the watch and the store.
    pub fn queue(mut self, queue: InformerQueue) -> Self {
        self.queue = Some(queue);
        self
    }

    /// How long the informer runs on when nobody needs it any more; 30 s by default.
    pub fn linger(mut self, linger: Duration) -> Self {
        self.linger = Some(linger);
        self
    }

    /// How long one waits for the first list without any progress; two minutes by default.
    pub fn sync_timeout(mut self, timeout: Duration) -> Self {
        self.sync_timeout = Some(timeout);
        self
    }

    /// The largest object that is read: see [`ListWatch::max_object_size`].
    pub fn max_object_size(mut self, bytes: usize) -> Self {
        self.max_object_size = Some(bytes);
        self
    }

    /// How many bytes of bodies may wait to be packed: see [`ListWatch::max_raw_bytes`].
    pub fn max_raw_bytes(mut self, bytes: usize) -> Self {
        self.max_raw_bytes = Some(bytes);
        self
    }

    /// Sets what is to be set of each reflector: see [`InformerBuilder::reflector`].
    pub fn reflector(mut self, set: impl Fn(Reflector) -> Reflector + Send + Sync + 'static) -> Self {
        self.reflector = Some(Arc::new(set));
        self
    }

    /// Called with each error that ends a cycle of list and watch: see [`InformerBuilder::on_watch_error`].
    pub fn on_watch_error(mut self, hook: impl Fn(&Error) + Send + Sync + 'static) -> Self {
        self.on_watch_error = Some(Arc::new(hook));
        self
    }

    /// What is said here, and what is not, as `defaults` say.
    pub(super) fn or(self, defaults: &Self) -> Self {
        let defaults = defaults.clone();
        Self {
            scope: self.scope.or(defaults.scope),
            labels: self.labels.or(defaults.labels),
            fields: self.fields.or(defaults.fields),
            keep: self.keep.or(defaults.keep),
            transform: self.transform.or(defaults.transform),
            tweak: self.tweak.or(defaults.tweak),
            resync: self.resync.or(defaults.resync),
            queue: self.queue.or(defaults.queue),
            linger: self.linger.or(defaults.linger),
            sync_timeout: self.sync_timeout.or(defaults.sync_timeout),
            max_object_size: self.max_object_size.or(defaults.max_object_size),
            max_raw_bytes: self.max_raw_bytes.or(defaults.max_raw_bytes),
            reflector: self.reflector.or(defaults.reflector),
            on_watch_error: self.on_watch_error.or(defaults.on_watch_error),
        }
    }

    /// The same objects are said in one way only: they decide which informer is meant.
    pub(super) fn plain(mut self) -> Self {
        self.scope = self.scope.map(|scope| match scope {
            Scope::Namespace(namespace) if namespace.is_empty() => Scope::All,
            Scope::Namespaces(namespaces) if namespaces.contains("") => Scope::All,
            Scope::Namespaces(mut namespaces) if namespaces.len() == 1 => {
                namespaces.pop_first().map_or(Scope::All, Scope::Namespace)
            }
            scope => scope,
        });
        self.labels = self.labels.filter(|selector| !selector.is_empty());
        self.fields = self.fields.filter(|selector| !selector.is_empty());
        self
    }

    /// With all that holds if nobody says otherwise.
    pub(super) fn settled(self, resource: &ApiResource) -> Self {
        self.or(&Self {
            keep: Some(Keep::default_for(resource)),
            resync: Some(Duration::ZERO),
            queue: Some(InformerQueue::default()),
            linger: Some(LINGER),
            sync_timeout: Some(SYNC_TIMEOUT),
            max_object_size: Some(MAX_FRAME),
            max_raw_bytes: Some(MAX_RAW_BYTES),
            ..Self::default()
        })
    }

    /// The options that were asked for and that an informer, made with `these`, does not have.
    pub(super) fn missing_in(&self, these: &Self) -> Vec<&'static str> {
        fn differs<T>(asked: &Option<T>, here: &Option<T>, same: impl Fn(&T, &T) -> bool) -> bool {
            asked.as_ref().is_some_and(|asked| !here.as_ref().is_some_and(|here| same(asked, here)))
        }
        let mut missing = Vec::new();
        let mut check = |name, differs: bool| missing.extend(differs.then_some(name));
        check("keep", differs(&self.keep, &these.keep, PartialEq::eq));
        check("transform", differs(&self.transform, &these.transform, Transform::is_same));
        check("tweak", differs(&self.tweak, &these.tweak, Arc::ptr_eq));
        check("resync_period", differs(&self.resync, &these.resync, PartialEq::eq));
        check("queue", differs(&self.queue, &these.queue, PartialEq::eq));
        check("linger", differs(&self.linger, &these.linger, PartialEq::eq));
        check("sync_timeout", differs(&self.sync_timeout, &these.sync_timeout, PartialEq::eq));
        check("max_object_size", differs(&self.max_object_size, &these.max_object_size, PartialEq::eq));
        check("max_raw_bytes", differs(&self.max_raw_bytes, &these.max_raw_bytes, PartialEq::eq));
        check("reflector", differs(&self.reflector, &these.reflector, Arc::ptr_eq));
        check("on_watch_error", differs(&self.on_watch_error, &these.on_watch_error, Arc::ptr_eq));
        missing
    }

    /// Where the objects come from.
    pub(super) fn source(
        &self,
        client: Client,
        resource: &ApiResource,
        metadata_only: bool,
        streaming: &StreamingLists,
    ) -> ListWatch {
        let mut source = ListWatch::new(client, resource.clone()).share_streaming_lists(streaming);
        source = source.scope(self.scope.clone().unwrap_or_default());
        if metadata_only {
            source = source.metadata_only();
        }
        if let Some(selector) = &self.labels {
            source = source.labels(selector);
        }
        if let Some(selector) = &self.fields {
            source = source.fields(selector);
        }
        if let Some(keep) = &self.keep {
            source = source.keep(keep.clone());
        }
        if let Some(transform) = &self.transform {
            source = source.transform(transform.clone());
        }
        if let Some(tweak) = self.tweak.clone() {
            source = source.tweak(move |options| tweak(options));
        }
        if let Some(bytes) = self.max_object_size {
            source = source.max_object_size(bytes);
        }
        if let Some(bytes) = self.max_raw_bytes {
            source = source.max_raw_bytes(bytes);
        }
        source
    }

    /// The informer's own options.
    pub(super) fn apply<K>(&self, mut builder: InformerBuilder<K>) -> InformerBuilder<K> {
        if let Some(period) = self.resync {
            builder = builder.resync_period(period);
        }
        if let Some(queue) = self.queue {
            builder = builder.queue(queue);
        }
        if let Some(linger) = self.linger {
            builder = builder.linger(linger);
        }
        if let Some(timeout) = self.sync_timeout {
            builder = builder.sync_timeout(timeout);
        }
        if let Some(set) = self.reflector.clone() {
            builder = builder.reflector(move |reflector| set(reflector));
        }
        if let Some(hook) = self.on_watch_error.clone() {
            builder = builder.on_watch_error(move |error| hook(error));
        }
        builder
    }
}

impl fmt::Debug for InformerOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("InformerOptions")
            .field("scope", &self.scope)
            .field("labels", &self.labels)
            .field("fields", &self.fields)
            .field("keep", &self.keep)
            .field("resync", &self.resync)
            .field("queue", &self.queue)
            .finish_non_exhaustive()
    }
}
