//! An informer with two handlers and an index: one watch, however many listen, and objects that are found by where they run.
//!
//! ```text
//! cargo run --example informer                a few changes on a server in memory
//! cargo run --example informer -- --cluster   the pods of the current kubeconfig's cluster, until Ctrl-C
//! ```

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use k8s_openapi::api::core::v1::Pod;
use kube_client::Client;
use tokio_util::sync::CancellationToken;
use watchkeeper::{Event, Index, ListWatch, SharedInformer};
use watchkeeper_apiserver::ApiServer;
use watchkeeper_examples::{cluster, pause, pod, remove_pod, server_with, until_ctrl_c, wants_cluster};

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    if wants_cluster()? { watch_pods(cluster().await?, until_ctrl_c()).await } else { in_memory().await }
}

/// A server on which something happens.
pub async fn in_memory() -> anyhow::Result<()> {
    let server = server_with(&[("shop/web-0", "node-1"), ("shop/web-1", "node-2"), ("bank/db-0", "node-1")])?;
    let token = CancellationToken::new();
    let life = tokio::spawn(live(server.clone(), token.clone()));
    watch_pods(server.client(), token).await?;
    life.await?
}

async fn watch_pods(client: Client, token: CancellationToken) -> anyhow::Result<()> {
    let pods: SharedInformer<Pod> = SharedInformer::new(ListWatch::of::<Pod>(client));
    pods.add_index("node", Index::field("/spec/nodeName")).await?;

    pods.on_event(|event| match event {
        Event::Added { object, cause } => println!("+ {} ({cause:?})", object.key()),
        Event::Updated { new, .. } => println!("~ {}", new.key()),
        Event::Deleted { last, .. } => println!("- {}", last.key()),
    })?;
    // Another one, which knows nothing of the first. A slow handler holds up neither the watch nor its neighbours.
    let deletions = Arc::new(AtomicUsize::new(0));
    let counter = deletions.clone();
    let handler = pods.on_event(move |event| {
        counter.fetch_add(usize::from(event.is_deletion()), Relaxed);
    })?;

    pods.start(token)?;
    let lister = pods.synced().await?; // the first list is in the store
    handler.synced().await?; // and this handler has heard of all of it
    for pod in lister.by_index("node", "node-1")? {
        println!("on node-1: {}", pod.key());
    }

    pods.stopped().await;
    println!("{} pods are left, {} were deleted", lister.list().len(), deletions.load(Relaxed));
    Ok(())
}

/// What happens in the cluster meanwhile.
async fn live(server: ApiServer, token: CancellationToken) -> anyhow::Result<()> {
    pause().await;
    server.create(pod("shop/web-2", "node-1"))?;
    pause().await;
    server.put(pod("shop/web-0", "node-3"))?;
    pause().await;
    remove_pod(&server, "bank/db-0")?;
    pause().await;
    token.cancel();
    Ok(())
}
