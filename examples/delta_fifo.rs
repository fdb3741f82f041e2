//! A cache, put together by hand: a reflector writes into a queue, and a loop takes the changes out, fills the store and
//! prints them. What an informer does by itself, for those who want to see the parts.
//!
//! ```text
//! cargo run --example delta_fifo                a few changes on a server in memory
//! cargo run --example delta_fifo -- --cluster   the pods of the current kubeconfig's cluster, until Ctrl-C
//! ```

use std::sync::Arc;

use k8s_openapi::api::core::v1::Pod;
use kube_client::Client;
use tokio_util::sync::CancellationToken;
use watchkeeper::queue::{Delta, DeltaFifo};
use watchkeeper::{Indexer, ListWatch, Object, ObjectKey, Reflector};
use watchkeeper_apiserver::ApiServer;
use watchkeeper_examples::{cluster, pause, pod, remove_pod, server_with, until_ctrl_c, wants_cluster};

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    if wants_cluster()? { watch_pods(cluster().await?, until_ctrl_c()).await } else { in_memory().await }
}

/// A server on which something happens.
pub async fn in_memory() -> anyhow::Result<()> {
    let server = server_with(&[("default/web-0", "node-1"), ("default/web-1", "node-1"), ("default/db-0", "node-1")])?;
    let token = CancellationToken::new();
    let life = tokio::spawn(live(server.clone(), token.clone()));
    watch_pods(server.client(), token).await?;
    life.await?
}

async fn watch_pods(client: Client, token: CancellationToken) -> anyhow::Result<()> {
    let store = Arc::new(Indexer::objects());
    let (queue, mut changes) =
        DeltaFifo::objects().name("pods").known_objects(store.clone()).emit_replaced(true).build();
    let pods = ListWatch::of::<Pod>(client).namespace("default").for_store(&store);
    let reflector = tokio::spawn(Reflector::new(pods, queue).run(token));

    println!("Start syncing...");
    // The queue is closed when the reflector is done with it.
    while let Ok(deltas) = changes.pop().await {
        for delta in deltas.iter() {
            apply(&store, deltas.key(), delta)?;
            println!("Type:{}: Name:{}", delta.delta_type(), deltas.key().name());
        }
    }
    reflector.await?;
    println!("{} pods are left in the store", store.len());
    Ok(())
}

/// Brings the store up to date.
fn apply(store: &Indexer<Object>, key: &ObjectKey, delta: &Delta<Object>) -> anyhow::Result<()> {
    match delta {
        Delta::Added(pod) | Delta::Updated(pod) | Delta::Replaced(pod) | Delta::Sync(pod) => {
            if store.get(pod)?.is_some() { store.update(pod.clone())? } else { store.add(pod.clone())? }
        }
        Delta::Deleted { object: Some(pod), .. } => store.delete(pod)?,
        Delta::Deleted { object: None, .. } => store.delete_by_key(key),
    }
    Ok(())
}

/// What happens in the cluster meanwhile.
async fn live(server: ApiServer, token: CancellationToken) -> anyhow::Result<()> {
    pause().await;
    server.create(pod("default/web-2", "node-2"))?;
    pause().await;
    server.put(pod("default/web-0", "node-3"))?;
    pause().await;
    remove_pod(&server, "default/db-0")?;
    pause().await;
    token.cancel();
    Ok(())
}
