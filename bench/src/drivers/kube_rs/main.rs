//! kube-rs at work: `watcher`, `reflector`, and a store, as its documentation has them.

#[path = "../shared/mod.rs"]
mod shared;

use std::future::ready;
use std::hint::black_box;
use std::pin::pin;
use std::process::ExitCode;
use std::sync::Arc;

use clap::{Parser, ValueEnum};
use futures::StreamExt as _;
use k8s_openapi::api::core::v1::Pod;
use kube_client::core::{Expression, Selector};
use kube_client::{Api, Client, Config, ResourceExt as _};
use kube_runtime::reflector::{ObjectRef, Store, store, store_shared};
use kube_runtime::{WatchStreamExt as _, watcher};

use self::shared::arguments::{Handler, InformerArguments};
use self::shared::heard::Heard;
use self::shared::library::{Cache, Library, Setup, read_pod};
use self::shared::reads::Look;
use self::shared::{Outcome, finish, phases};

/// How many objects wait for the slowest subscriber: as in kube's example of a shared stream.
const SUBSCRIBER_BUFFER: usize = 256;

/// kube-rs at work
#[derive(Debug, Parser)]
enum Command {
    /// Be a reflector, and do what the phases say
    Informer(InformerArguments<Mode>),
}

/// How objects are listed and kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Mode {
    /// Paged lists
    List,
    /// Streaming lists
    Stream,
    /// Paged lists, and managedFields are dropped
    ListStrip,
    /// Streaming lists, and managedFields are dropped
    StreamStrip,
}

#[tokio::main]
async fn main() -> ExitCode {
    let Command::Informer(arguments) = Command::parse();
    finish(phases::run::<KubeRs>(arguments).await)
}

struct KubeRs;

impl Library for KubeRs {
    const NAME: &str = "kube-rs";
    const PACKAGE: &str = "kube-runtime";
    type Mode = Mode;
    type Cache = Pods;

    async fn start(Setup { server, mode, handler, heard }: Setup<'_, Mode>, _by_node: bool) -> Outcome<Pods> {
        if handler == Handler::Seven {
            return Err("kube-rs decodes whole pods: try --handler keys or decode".into());
        }
        let pods: Api<Pod> = Api::all(Client::try_from(Config::new(server))?);
        let config = match mode {
            Mode::List | Mode::ListStrip => watcher::Config::default().any_semantic(),
            Mode::Stream | Mode::StreamStrip => watcher::Config::default().streaming_lists(),
        };
        let strip = matches!(mode, Mode::ListStrip | Mode::StreamStrip);
        let watched = watcher(pods, config).default_backoff().modify(move |pod| {
            if strip {
                pod.managed_fields_mut().clear();
            }
        });
        // A subscriber costs something, and who is alone needs none: the reflector's own stream has it all.
        if let [alone] = heard {
            let (store, writer) = store();
            let heard = alone.clone();
            let touched = watched.reflect(writer).touched_objects();
            tokio::spawn(async move {
                let mut touched = pin!(touched);
                while let Some(pod) = touched.next().await {
                    match pod {
                        Ok(pod) => hear(&pod, handler, &heard),
                        Err(error) => eprintln!("watch: {error}"),
                    }
                }
            });
            return Ok(Pods(store));
        }
        let (store, writer) = store_shared(SUBSCRIBER_BUFFER);
        for heard in heard {
            let heard = heard.clone();
            let mut subscriber = writer.subscribe().ok_or("a shared store has no subscribers")?;
            tokio::spawn(async move {
                while let Some(pod) = subscriber.next().await {
                    hear(&pod, handler, &heard);
                }
            });
        }
        tokio::spawn(watched.reflect_shared(writer).for_each(|event| {
            if let Err(error) = event {
                eprintln!("watch: {error}");
            }
            ready(())
        }));
        Ok(Pods(store))
    }
}

/// What a handler does with a pod.
fn hear(pod: &Pod, handler: Handler, heard: &Arc<Heard>) {
    match handler {
        Handler::Keys | Handler::Seven => drop(black_box(ObjectRef::from_obj(pod))),
        Handler::Decode => {
            black_box(read_pod(pod));
        }
    }
    heard.tell(version(pod));
}

fn version(pod: &Pod) -> &str {
    pod.metadata.resource_version.as_deref().unwrap_or_default()
}

/// The store. It has no indexes: what is not a key is looked for.
#[derive(Clone)]
struct Pods(Store<Pod>);

impl Pods {
    fn filtered(&self, look: &mut Look, predicate: impl Fn(&Pod) -> bool) {
        look_at(&self.0.state_filter(predicate), look);
    }
}

fn look_at<'a>(pods: impl IntoIterator<Item = &'a Arc<Pod>>, look: &mut Look) {
    for pod in pods {
        look.at(pod.metadata.name.as_deref().unwrap_or_default(), version(pod));
    }
}

impl Cache for Pods {
    type Key = ObjectRef<Pod>;
    type Selector = Selector;

    async fn synced(&self) -> Outcome {
        Ok(self.0.wait_until_ready().await?)
    }

    fn is_at_rest(&self) -> bool {
        true
    }

    fn all(&self, mut each: impl FnMut(&str, &str, &str)) {
        for pod in self.0.state() {
            let metadata = &pod.metadata;
            let [namespace, name] =
                [&metadata.namespace, &metadata.name].map(|text| text.as_deref().unwrap_or_default());
            each(namespace, name, version(&pod));
        }
    }

    fn key(namespace: &str, name: &str) -> Self::Key {
        ObjectRef::new(name).within(namespace)
    }

    fn selector(label: &str, value: &str) -> Outcome<Selector> {
        Ok(Expression::Equal(label.to_owned(), value.to_owned()).into())
    }

    fn get(&self, key: &Self::Key, look: &mut Look) {
        look_at(&self.0.get(key), look);
    }

    fn namespace(&self, namespace: &str, look: &mut Look) {
        self.filtered(look, |pod| pod.metadata.namespace.as_deref() == Some(namespace));
    }

    fn node(&self, node: &str, look: &mut Look) {
        self.filtered(look, |pod| pod.spec.as_ref().is_some_and(|spec| spec.node_name.as_deref() == Some(node)));
    }

    fn matching(&self, selector: &Selector, look: &mut Look) {
        look_at(&self.0.state_filter_selector(selector), look);
    }
}
