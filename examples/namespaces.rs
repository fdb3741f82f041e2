//! Several namespaces, one informer. Each is listed and watched by itself, so that the rights for these few are enough; one
//! that is forbidden is reported, and does not stop the rest.
//!
//! ```text
//! cargo run --example namespaces                                     a server in memory
//! cargo run --example namespaces -- --cluster default kube-system    namespaces of the current kubeconfig's cluster
//! ```

use k8s_openapi::api::core::v1::Pod;
use kube_client::Client;
use tokio_util::sync::CancellationToken;
use watchkeeper::{InformerFactory, InformerOptions};
use watchkeeper_examples::{cluster, pause, pod, server_with, wants_cluster};

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    if wants_cluster()? {
        let namespaces: Vec<String> = std::env::args().skip(2).collect();
        anyhow::ensure!(!namespaces.is_empty(), "which namespaces? For example: --cluster default kube-system");
        return show(cluster().await?, &namespaces, async { Ok(()) }).await;
    }
    in_memory().await
}

/// A server with pods in two of the three namespaces, and in one that nobody asks for.
pub async fn in_memory() -> anyhow::Result<()> {
    let server = server_with(&[
        ("shop/web-0", "node-1"),
        ("shop/web-1", "node-2"),
        ("bank/db-0", "node-1"),
        ("farm/cow-0", "node-1"),
    ])?;
    let namespaces = ["shop", "bank", "empty"].map(str::to_owned);
    show(server.client(), &namespaces, async {
        server.create(pod("empty/web-0", "node-1"))?;
        server.create(pod("farm/cow-1", "node-1"))?;
        pause().await;
        Ok(())
    })
    .await
}

async fn show(
    client: Client,
    namespaces: &[String],
    change: impl Future<Output = anyhow::Result<()>>,
) -> anyhow::Result<()> {
    let factory = InformerFactory::new(client);
    let pods = factory.informer_with::<Pod>(InformerOptions::new().namespaces(namespaces))?;
    factory.start(CancellationToken::new())?;
    if let Err(error) = pods.synced().await {
        // It names the namespace, and goes on trying. What can be read of the others is there.
        println!("{error}");
    }
    let lister = pods.lister();
    let count = || {
        for (namespace, status) in pods.status().partitions {
            let namespace = namespace.unwrap_or_default();
            println!("{namespace}: {:?}, pods: {}", status.phase, lister.namespace(namespace.clone()).list().len());
        }
    };
    count();
    change.await?;
    println!("and then:");
    count();
    factory.shutdown().await;
    Ok(())
}
