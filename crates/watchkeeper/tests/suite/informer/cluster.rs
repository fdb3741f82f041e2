//! A source that a test changes as it goes: client-go's `FakeControllerSource`.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard};

use futures::StreamExt as _;
use futures::future::BoxFuture;
use futures::stream;
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};
use watchkeeper::{
    BadObject, Bookmark, Error, Indexer, ListMetadata, ListOptions, ListPart, ListerWatcher, Listing, Object,
    ObjectKey, PartitionSource, Verb, WatchEvent, WatchStream,
};

use crate::support::{expired, forbidden};

/// Objects that change, with a version that each change counts up. Clones are the same cluster.
#[derive(Clone)]
pub(crate) struct Cluster {
    state: Arc<Mutex<State>>,
    /// What is listed and watched of it; everything, if there is none.
    namespace: Option<Arc<str>>,
    partitions: Vec<Arc<str>>,
}

#[derive(Default)]
struct State {
    version: u64,
    objects: BTreeMap<ObjectKey, Object>,
    history: Vec<(u64, WatchEvent)>,
    /// Watches from before this are told that it is forgotten.
    oldest: u64,
    watches: Vec<(Option<Arc<str>>, UnboundedSender<WatchEvent>)>,
    requests: Vec<(Verb, Option<Arc<str>>)>,
    forbidden: Vec<String>,
    /// What the next list has instead of these objects.
    spoilt: Vec<BadObject>,
}

impl Cluster {
    /// An empty one, at version 10.
    pub(crate) fn new() -> Self {
        let state = State { version: 10, ..State::default() };
        Self { state: Arc::new(Mutex::new(state)), namespace: None, partitions: Vec::new() }
    }

    /// One with these objects in namespace `shop`, at versions 11, 12, ..
    pub(crate) fn with(names: &[&str]) -> Self {
        let cluster = Self::new();
        names.iter().for_each(|name| cluster.put(name));
        cluster
    }

    /// The same cluster, of which these namespaces are listed and watched one by one.
    pub(crate) fn of_namespaces(&self, namespaces: &[&str]) -> Self {
        Self { partitions: namespaces.iter().map(|name| (*name).into()).collect(), ..self.clone() }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("not poisoned")
    }

    /// Adds or changes an object in namespace `shop`.
    pub(crate) fn put(&self, name: &str) {
        self.put_in("shop", name);
    }

    pub(crate) fn put_in(&self, namespace: &str, name: &str) {
        self.put_with(namespace, name, &format!("uid-{name}"), "");
    }

    /// Adds or changes an object, with labels like `"app":"web"`.
    pub(crate) fn put_with(&self, namespace: &str, name: &str, uid: &str, labels: &str) {
        let mut state = self.state();
        state.version += 1;
        let version = state.version;
        let object = Object::from_json(format!(
            r#"{{"kind":"Pod","apiVersion":"v1","metadata":{{"name":"{name}","namespace":"{namespace}","uid":"{uid}","resourceVersion":"{version}","labels":{{{labels}}}}},"spec":{{"nodeName":"node-{version}","containers":[]}}}}"#
        ));
        let object = object.expect("a pod");
        let known = state.objects.insert(object.key().clone(), object.clone()).is_some();
        state.tell(if known { WatchEvent::Modified(object) } else { WatchEvent::Added(object) });
    }

    pub(crate) fn label(&self, name: &str, labels: &str) {
        self.put_with("shop", name, &format!("uid-{name}"), labels);
    }

    /// Deletes an object of namespace `shop`.
    pub(crate) fn delete(&self, name: &str) {
        self.delete_in("shop", name);
    }

    pub(crate) fn delete_in(&self, namespace: &str, name: &str) {
        let mut state = self.state();
        let Some(last) = state.objects.remove(&ObjectKey::namespaced(namespace, name)) else { return };
        state.version += 1;
        let json = String::from_utf8(last.json().expect("a body").to_vec()).expect("text");
        let before = format!(r#""resourceVersion":"{}""#, last.resource_version());
        let last = json.replace(&before, &format!(r#""resourceVersion":"{}""#, state.version));
        state.tell(WatchEvent::Deleted(Object::from_json(last).expect("a pod")));
    }

    /// Sends something else to all that watch.
    pub(crate) fn send(&self, event: WatchEvent) {
        self.state().tell(event);
    }

    pub(crate) fn bookmark(&self) {
        let mut state = self.state();
        state.version += 1;
        let bookmark =
            Bookmark { resource_version: state.version.to_string().as_str().into(), initial_events_end: false };
        state.tell(WatchEvent::Bookmark(bookmark));
    }

    /// Ends all watches. Those who watch again miss nothing.
    pub(crate) fn end_watches(&self) {
        self.state().watches.clear();
    }

    /// Ends all watches; who watches again missed these changes, and has to list.
    pub(crate) fn gap(&self, changes: impl FnOnce(&Self)) {
        self.end_watches();
        changes(self);
        let mut state = self.state();
        state.version += 1;
        state.oldest = state.version;
    }

    /// Lists and watches of a namespace are refused, and its watches end.
    pub(crate) fn forbid(&self, namespace: &str) {
        let mut state = self.state();
        state.watches.retain(|(of, _)| of.as_deref() != Some(namespace));
        state.forbidden.push(namespace.to_owned());
    }

    /// In the next list these cannot be used.
    pub(crate) fn spoil_next_list(&self, objects: impl IntoIterator<Item = BadObject>) {
        self.state().spoilt.extend(objects);
    }

    /// The keys of all objects.
    pub(crate) fn objects(&self) -> Vec<Object> {
        self.state().objects.values().cloned().collect()
    }

    pub(crate) fn allow_all(&self) {
        self.state().forbidden.clear();
    }

    pub(crate) fn version(&self) -> String {
        self.state().version.to_string()
    }

    /// How many lists were asked for.
    pub(crate) fn lists(&self) -> usize {
        self.state().requests.iter().filter(|(verb, _)| *verb == Verb::List).count()
    }

    pub(crate) fn lists_of(&self, namespace: &str) -> usize {
        let is_it = |(verb, of): &&(Verb, Option<Arc<str>>)| *verb == Verb::List && of.as_deref() == Some(namespace);
        self.state().requests.iter().filter(is_it).count()
    }

    /// How many watches are open.
    pub(crate) fn open_watches(&self) -> usize {
        let mut state = self.state();
        state.watches.retain(|(_, watch)| !watch.is_closed());
        state.watches.len()
    }

    /// `["a@11", "b@12"]`
    pub(crate) fn contents(&self) -> Vec<String> {
        let state = self.state();
        state.objects.iter().map(|(key, object)| format!("{}@{}", key.name(), object.resource_version())).collect()
    }

    fn refuse(&self, verb: Verb) -> Result<(), Error> {
        let mut state = self.state();
        state.requests.push((verb, self.namespace.clone()));
        match &self.namespace {
            Some(namespace) if state.forbidden.iter().any(|name| **name == **namespace) => Err(forbidden()),
            _ => Ok(()),
        }
    }
}

impl State {
    fn tell(&mut self, event: WatchEvent) {
        self.watches.retain(|(namespace, watch)| {
            if !is_of(namespace.as_deref(), &event) {
                return true;
            }
            watch.send(event.clone()).is_ok()
        });
        self.history.push((self.version, event));
    }
}

fn is_of(namespace: Option<&str>, event: &WatchEvent) -> bool {
    match event {
        WatchEvent::Added(object) | WatchEvent::Modified(object) | WatchEvent::Deleted(object) => {
            namespace.is_none_or(|namespace| object.key().namespace() == Some(namespace))
        }
        _ => true,
    }
}

impl ListerWatcher for Cluster {
    fn list(&self, _: ListOptions) -> BoxFuture<'_, Result<Listing, Error>> {
        Box::pin(async move {
            self.refuse(Verb::List)?;
            let mut state = self.state();
            let spoilt = std::mem::take(&mut state.spoilt);
            let metadata =
                ListMetadata { resource_version: state.version.to_string().as_str().into(), ..ListMetadata::default() };
            let is_of = |key: &&ObjectKey| self.namespace.as_deref().is_none_or(|name| key.namespace() == Some(name));
            let is_good = |key: &&ObjectKey| !spoilt.iter().any(|object| object.key.as_ref() == Some(*key));
            let items = state.objects.iter().filter(|(key, _)| is_of(key) && is_good(key));
            let mut parts = vec![ListPart::Metadata(metadata)];
            parts.extend(items.map(|(_, object)| ListPart::Item(object.clone())));
            let is_here = |object: &BadObject| object.key.as_ref().is_none_or(|key| is_of(&key));
            parts.extend(spoilt.iter().filter(|object| is_here(object)).cloned().map(ListPart::Bad));
            Ok(Listing::new(stream::iter(parts.into_iter().map(Ok))))
        })
    }

    fn watch(&self, options: ListOptions) -> BoxFuture<'_, Result<WatchStream, Error>> {
        Box::pin(async move {
            self.refuse(Verb::Watch)?;
            let mut state = self.state();
            let from: u64 = options.resource_version.as_str().parse().expect("a version of ours");
            if from < state.oldest {
                return Err(expired());
            }
            let (sender, receiver) = unbounded_channel();
            for (_, event) in
                state.history.iter().filter(|(at, event)| *at > from && is_of(self.namespace.as_deref(), event))
            {
                let _sent = sender.send(event.clone());
            }
            state.watches.push((self.namespace.clone(), sender));
            let events = stream::unfold(receiver, |mut receiver| async { Some((receiver.recv().await?, receiver)) });
            Ok(WatchStream::new(events.map(Ok)))
        })
    }

    fn description(&self) -> String {
        match &self.namespace {
            Some(namespace) => format!("pods in namespace {namespace}"),
            None => "pods".into(),
        }
    }

    fn namespaces(&self) -> Vec<Arc<str>> {
        self.partitions.clone()
    }

    fn into_partitions(self, _: &Arc<Indexer<Object>>) -> Vec<PartitionSource> {
        let whole = vec![None];
        let parts = self.partitions.iter().cloned().map(Some).collect();
        let all = if self.partitions.is_empty() { whole } else { parts };
        let source = |namespace: Option<Arc<str>>| {
            let source = Arc::new(Self { namespace: namespace.clone(), partitions: Vec::new(), ..self.clone() });
            PartitionSource { namespace, source }
        };
        all.into_iter().map(source).collect()
    }
}
