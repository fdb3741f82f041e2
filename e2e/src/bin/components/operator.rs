//! A controller of kube-rs: each ConfigMap of a namespace gets a Secret with the same value, which it owns, and has a
//! finalizer that waits for a last look.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use futures::StreamExt as _;
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::api::{Patch, PatchParams};
use kube::runtime::controller::{self, Action, Controller};
use kube::runtime::finalizer::Event;
use kube::runtime::{finalizer, watcher};
use kube::{Api, Client, Resource as _, ResourceExt as _};
use serde_json::json;
use tokio::task::JoinHandle;

/// What it works on: namespaces have maps of their own.
pub(super) const LABEL: &str = "operated";
const FINALIZER: &str = "e2e.watchkeeper/look";

/// What it has done.
#[derive(Debug, Default)]
pub(super) struct Done {
    pub(super) applied: AtomicUsize,
    pub(super) cleaned: AtomicUsize,
    /// Tried again, and not lost.
    pub(super) failed: AtomicUsize,
}

struct Context {
    maps: Api<ConfigMap>,
    secrets: Api<Secret>,
    done: Arc<Done>,
}

/// Runs until it is aborted.
pub(super) fn start(client: Client, namespace: &str) -> (JoinHandle<()>, Arc<Done>) {
    let done = Arc::new(Done::default());
    let (maps, secrets) = (Api::namespaced(client.clone(), namespace), Api::namespaced(client, namespace));
    let context = Arc::new(Context { maps: maps.clone(), secrets: secrets.clone(), done: done.clone() });
    let controller = Controller::new(maps, watcher::Config::default().labels(LABEL))
        .owns(secrets, watcher::Config::default().labels(LABEL))
        .run(reconcile, |_, _, _| Action::requeue(Duration::from_millis(200)), context);
    let failed = done.clone();
    let running = controller.for_each(move |result| {
        // (One whose object is gone meanwhile has nothing to do.)
        let has_failed = matches!(result, Err(controller::Error::ReconcilerFailed(..)));
        failed.failed.fetch_add(usize::from(has_failed), Ordering::Relaxed);
        std::future::ready(())
    });
    (tokio::spawn(running), done)
}

async fn reconcile(map: Arc<ConfigMap>, context: Arc<Context>) -> Result<Action, finalizer::Error<kube::Error>> {
    finalizer(&context.maps, FINALIZER, map, |event| async {
        match event {
            Event::Apply(map) => {
                apply(&map, &context.secrets).await?;
                context.done.applied.fetch_add(1, Ordering::Relaxed);
            }
            // The secret goes with its owner: that is the garbage collector's business.
            Event::Cleanup(_) => drop(context.done.cleaned.fetch_add(1, Ordering::Relaxed)),
        }
        Ok(Action::await_change())
    })
    .await
}

async fn apply(map: &ConfigMap, secrets: &Api<Secret>) -> Result<(), kube::Error> {
    let name = map.name_any();
    let secret = json!({
        "apiVersion": "v1", "kind": "Secret",
        "metadata": {"name": name, "labels": {LABEL: "yes"}, "ownerReferences": map.controller_owner_ref(&()).map(|o| [o])},
        "stringData": map.data,
    });
    secrets.patch(&name, &PatchParams::apply("operator").force(), &Patch::Apply(secret)).await.map(drop)
}
