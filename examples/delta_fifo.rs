//! A cache, put together by hand: a reflector writes into a queue, and a loop takes the changes out, fills the store and
//! prints them. What an informer does by itself, for those who want to see the parts.
//!
//! ```text
//! cargo run --example delta_fifo                a few changes on a server in memory
//! cargo run --example delta_fifo -- --cluster   the pods of the current kubeconfig's cluster, until Ctrl-C
//! ```

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, bail};
use k8s_openapi::api::core::v1::Pod;
use kube_client::{Client, Config};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;
use watchkeeper::queue::{Delta, DeltaFifo};
use watchkeeper::{Indexer, ListWatch, Object, ObjectKey, Reflector};
use watchkeeper_apiserver::ApiServer;

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let token = CancellationToken::new();
    match std::env::args().nth(1).as_deref() {
        None => {
            let server = ApiServer::new();
            for name in ["web-0", "web-1", "db-0"] {
                server.create(pod(name, "node-1"))?;
            }
            let life = tokio::spawn(live(server.clone(), token.clone()));
            watch_pods(server.client(), token).await?;
            life.await?
        }
        Some("--cluster") => {
            let config =
                Config::infer().await.context("there is no cluster: set KUBECONFIG, or leave --cluster out")?;
            let stop = token.clone();
            tokio::spawn(async move {
                if tokio::signal::ctrl_c().await.is_ok() {
                    stop.cancel();
                }
            });
            watch_pods(watchkeeper::client(config)?, token).await
        }
        Some(other) => bail!("unknown argument {other:?}; the only one is --cluster"),
    }
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
    let pause = || tokio::time::sleep(Duration::from_millis(300));
    pause().await;
    server.create(pod("web-2", "node-2"))?;
    pause().await;
    server.put(pod("web-0", "node-3"))?;
    pause().await;
    let kind = server.kind("", "pods").context("a server knows pods")?;
    server.remove(&kind, "default/db-0");
    pause().await;
    token.cancel();
    Ok(())
}

fn pod(name: &str, node: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": "default"}, "spec": {"nodeName": node}})
}
