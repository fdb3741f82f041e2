//! What handlers of an informer hear, and how informers live and end.

mod cluster;

mod buffers;
mod causes;
mod decodes;
mod filters;
mod handlers;
mod keeps;
mod late_join;
mod lifecycle;
mod load;
mod panics;
mod partitions;
mod random;
mod relist;
mod removal;
mod resync;
mod status;
mod streams;
mod sync;
mod tables;

use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use k8s_openapi::api::core::v1::Pod;
use tokio_util::sync::CancellationToken;
use watchkeeper::{
    Backoff, Event, HandlerHandle, HandlerOptions, Indexer, InformerBuilder, InformerQueue, ListerWatcher, Object,
    SharedInformer,
};

pub(crate) use cluster::Cluster;

use crate::support::{pass, seconds};

/// Both queues, one after the other. Which one a test failed on is in its output.
fn both_queues() -> impl Iterator<Item = InformerQueue> {
    [InformerQueue::Atomic, InformerQueue::Delta].into_iter().inspect(|queue| println!("queue: {queue:?}"))
}

/// An informer whose waits are not jittered.
fn builder(source: impl ListerWatcher + 'static, queue: InformerQueue) -> InformerBuilder<Pod> {
    SharedInformer::builder(source)
        .queue(queue)
        .reflector(|reflector| reflector.backoff(Backoff::default().jitter(0.0)).seed(1))
}

fn informer(source: impl ListerWatcher + 'static, queue: InformerQueue) -> SharedInformer<Pod> {
    builder(source, queue).build()
}

/// An informer that runs and has synced.
async fn synced(source: impl ListerWatcher + 'static, queue: InformerQueue) -> SharedInformer<Pod> {
    let pods = informer(source, queue);
    start(&pods);
    pods.synced().await.expect("it syncs");
    pods
}

fn start<K>(informer: &SharedInformer<K>) {
    informer.start(CancellationToken::new()).expect("it starts");
}

/// Lets everything that is due happen.
async fn settle() {
    pass(Duration::from_millis(1)).await;
}

/// Long enough for a watch that ended to be opened again, or for a list after it.
async fn recover() {
    pass(seconds(5)).await;
}

/// What a handler has heard, in words: see [`words`].
#[derive(Clone, Default)]
struct Notes(Arc<Mutex<Vec<String>>>);

impl Notes {
    fn lock(&self) -> MutexGuard<'_, Vec<String>> {
        self.0.lock().expect("not poisoned")
    }

    fn note(&self, note: impl Into<String>) {
        self.lock().push(note.into());
    }

    /// All since the last time.
    fn take(&self) -> Vec<String> {
        std::mem::take(&mut *self.lock())
    }

    /// All since the last time, sorted: where the order is nobody's business.
    fn take_sorted(&self) -> Vec<String> {
        let mut notes = self.take();
        notes.sort();
        notes
    }

    /// A handler that notes what it hears.
    fn noting<K>(&self) -> impl FnMut(&Event<K>) + Send + 'static + use<K> {
        let notes = self.clone();
        move |event| notes.note(words(event))
    }
}

/// Adds a handler that notes what it hears.
fn noting<K: 'static>(informer: &SharedInformer<K>) -> (Notes, HandlerHandle) {
    noting_with(informer, HandlerOptions::new())
}

fn noting_with<K: 'static>(informer: &SharedInformer<K>, options: HandlerOptions<K>) -> (Notes, HandlerHandle) {
    let notes = Notes::default();
    let handle = informer.on_event_with(options, notes.noting()).expect("a handler");
    (notes, handle)
}

/// `+a@1 Initial`, `~a@1>2 Watch`, `-a@3 Watch`; a deletion that was not seen itself is `-a@2? Relist`.
fn words<K>(event: &Event<K>) -> String {
    let (name, version, cause) = (event.key().name(), event.object().resource_version(), event.cause());
    match event {
        Event::Added { .. } => format!("+{name}@{version} {cause:?}"),
        Event::Updated { old, .. } => format!("~{name}@{}>{version} {cause:?}", old.resource_version()),
        Event::Deleted { final_state_known: true, .. } => format!("-{name}@{version} {cause:?}"),
        Event::Deleted { .. } => format!("-{name}@{version}? {cause:?}"),
    }
}

/// `["a@1", "b@2"]`, sorted.
fn contents(store: &Indexer<Object>) -> Vec<String> {
    let mut all: Vec<String> =
        store.list().iter().map(|object| format!("{}@{}", object.key().name(), object.resource_version())).collect();
    all.sort();
    all
}

fn alive_tasks() -> usize {
    tokio::runtime::Handle::current().metrics().num_alive_tasks()
}
