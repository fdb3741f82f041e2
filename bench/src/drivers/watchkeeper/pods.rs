//! The informer of pods, and how it is read.

use std::collections::BTreeMap;
use std::hint::black_box;

use clap::ValueEnum;
use k8s_openapi::api::core::v1::Pod;
use kube_client::Config;
use serde::Deserialize;
use tokio_util::sync::CancellationToken;
use watchkeeper::{
    Event, HandlerHandle, Index, Keep, ListWatch, Lister, ObjectKey, Objects, Selector, SharedInformer, Transform,
};

use crate::shared::arguments::Handler;
use crate::shared::heard::Heard;
use crate::shared::library::{Cache, Library, Setup, read_pod};
use crate::shared::reads::Look;
use crate::shared::{Failure, Outcome};

/// How objects are kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Mode {
    /// Compressed, which is the default
    Packed,
    /// As the server sent them
    Raw,
    /// Compressed, and decoded as well
    Decoded,
    /// Compressed, and managedFields are dropped
    PackedStrip,
}

/// The library.
pub(crate) struct Watchkeeper;

impl Library for Watchkeeper {
    const NAME: &str = "watchkeeper";
    const PACKAGE: &str = "watchkeeper";
    type Mode = Mode;
    type Cache = Pods;

    async fn start(Setup { server, mode, handler, heard }: Setup<'_, Mode>, by_node: bool) -> Outcome<Pods> {
        let source = ListWatch::of::<Pod>(watchkeeper::client(Config::new(server))?);
        let source = match mode {
            Mode::Packed => source,
            Mode::Raw => source.keep(Keep::Raw),
            Mode::Decoded => source.keep(Keep::decoded::<Pod>()),
            Mode::PackedStrip => source.transform(Transform::strip_managed_fields()),
        };
        let informer: SharedInformer<Pod> = SharedInformer::new(source);
        informer.on_watch_error(|error| eprintln!("watch: {error}"));
        if by_node {
            informer.add_index("node", Index::field("/spec/nodeName")).await?;
        }
        let handlers = heard.iter().map(|heard| {
            let heard = heard.clone();
            informer.on_event(move |event| hear(event, handler, &heard))
        });
        let handlers = handlers.collect::<Result<_, _>>()?;
        informer.start(CancellationToken::new())?;
        Ok(Pods { lister: informer.lister(), informer, handlers })
    }
}

/// Seven fields of a pod.
#[derive(Debug, Deserialize)]
struct Seven {
    metadata: Metadata,
    spec: Spec,
    status: Status,
}

#[derive(Debug, Deserialize)]
struct Metadata {
    name: String,
    namespace: String,
    #[serde(default)]
    labels: BTreeMap<String, String>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Spec {
    node_name: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Status {
    phase: Option<String>,
    #[serde(rename = "podIP")]
    pod_ip: Option<String>,
    start_time: Option<String>,
}

/// What a handler does with an event. One that fails says nothing, so that what waits for it fails too.
fn hear(event: &Event<Pod>, handler: Handler, heard: &Heard) {
    let pod = event.object();
    let read = match handler {
        Handler::Keys => Ok(black_box(event.key().clone()).name().len()),
        Handler::Seven => pod.view().map(|seven| read_seven(&seven)),
        Handler::Decode => pod.decode().map(|pod| read_pod(&pod)),
    };
    match read.map(black_box) {
        Ok(_) => heard.tell(pod.resource_version().as_str()),
        Err(error) => eprintln!("handler: {error}"),
    }
}

fn read_seven(Seven { metadata, spec, status }: &Seven) -> usize {
    let optional = [&spec.node_name, &status.phase, &status.pod_ip, &status.start_time];
    let lengths: usize = optional.into_iter().flatten().map(String::len).sum();
    lengths + metadata.name.len() + metadata.namespace.len() + metadata.labels.len()
}

/// The informer, and its lister.
#[derive(Clone)]
pub(crate) struct Pods {
    informer: SharedInformer<Pod>,
    lister: Lister<Pod>,
    handlers: Vec<HandlerHandle>,
}

fn look_at(pods: &Objects<Pod>, look: &mut Look) {
    for pod in pods.untyped() {
        look.at(pod.key().name(), pod.resource_version().as_str());
    }
}

impl Cache for Pods {
    type Key = ObjectKey;
    type Selector = Selector;

    async fn synced(&self) -> Outcome {
        self.informer.synced().await?;
        for handler in &self.handlers {
            handler.synced().await?;
        }
        Ok(())
    }

    fn is_at_rest(&self) -> bool {
        !self.informer.packing().busy
    }

    fn all(&self, mut each: impl FnMut(&str, &str, &str)) {
        for pod in self.lister.list().untyped() {
            each(pod.key().namespace().unwrap_or_default(), pod.key().name(), pod.resource_version().as_str());
        }
    }

    fn key(namespace: &str, name: &str) -> ObjectKey {
        ObjectKey::namespaced(namespace, name)
    }

    fn selector(label: &str, value: &str) -> Outcome<Selector> {
        Selector::label(label, value).map_err(Failure::from)
    }

    fn get(&self, key: &ObjectKey, look: &mut Look) {
        if let Some(pod) = self.lister.get(key) {
            look.at(pod.key().name(), pod.resource_version().as_str());
        }
    }

    fn namespace(&self, namespace: &str, look: &mut Look) {
        look_at(&self.lister.namespace(namespace).list(), look);
    }

    fn node(&self, node: &str, look: &mut Look) {
        // The index is there: it was added before the start.
        if let Ok(pods) = self.lister.by_index("node", node) {
            look_at(&pods, look);
        }
    }

    fn matching(&self, selector: &Selector, look: &mut Look) {
        look_at(&self.lister.matching(selector), look);
    }
}
