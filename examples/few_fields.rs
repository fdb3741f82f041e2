//! A struct with just the fields that matter. It decodes several times as fast as the whole type, takes a fraction of its
//! memory, and is a view of the same informer: others may look at the same objects through another type.
//!
//! ```text
//! cargo run --example few_fields                a server in memory
//! cargo run --example few_fields -- --cluster   the pods of the current kubeconfig's cluster
//! ```

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::Pod;
use kube_client::Client;
use serde::Deserialize;
use tokio_util::sync::CancellationToken;
use watchkeeper::{InformerFactory, view_of};
use watchkeeper_examples::{cluster, server_with, wants_cluster};

/// Where a pod runs, and how it goes. Name, namespace and labels need no field: each object has them at hand.
#[derive(Deserialize)]
struct Placement {
    spec: Spec,
    status: Option<Status>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Spec {
    node_name: Option<String>,
}

#[derive(Deserialize)]
struct Status {
    phase: Option<String>,
}

view_of!(Placement: Pod);

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    if wants_cluster()? { count(cluster().await?).await } else { in_memory().await }
}

/// A server with a few pods.
pub async fn in_memory() -> anyhow::Result<()> {
    let server = server_with(&[("shop/web-0", "node-1"), ("shop/web-1", "node-2"), ("bank/db-0", "node-1")])?;
    count(server.client()).await
}

async fn count(client: Client) -> anyhow::Result<()> {
    let factory = InformerFactory::new(client);
    let placements = factory.informer::<Placement>();
    let pods = factory.informer::<Pod>(); // the same watch, the same copy
    factory.start(CancellationToken::new())?;

    let mut running: BTreeMap<String, usize> = BTreeMap::new();
    for pod in placements.synced().await?.list().iter() {
        let placement = pod.decode()?;
        let phase = placement.status.as_ref().and_then(|status| status.phase.as_deref());
        if let (Some(node), Some("Running")) = (&placement.spec.node_name, phase) {
            *running.entry(node.clone()).or_default() += 1;
        }
    }
    for (node, pods) in running {
        println!("{node}: {pods} running");
    }
    println!("{} pods, {} informer", pods.lister().list().len(), factory.subjects().len());
    factory.shutdown().await;
    Ok(())
}
