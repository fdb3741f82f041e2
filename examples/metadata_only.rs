//! Metadata alone: the server sends names, labels, annotations and owners, and leaves the rest out. For those who count,
//! clean up, or watch labels: of Secrets and ConfigMaps the metadata is often a hundredth of the whole.
//!
//! ```text
//! cargo run --example metadata_only                a server in memory
//! cargo run --example metadata_only -- --cluster   the config maps of the current kubeconfig's cluster
//! ```

use k8s_openapi::api::core::v1::ConfigMap;
use kube_client::Client;
use serde_json::json;
use tokio_util::sync::CancellationToken;
use watchkeeper::InformerFactory;
use watchkeeper_apiserver::{ApiServer, Namespaces};
use watchkeeper_examples::{cluster, wants_cluster};

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    if wants_cluster()? { show(cluster().await?).await } else { in_memory().await }
}

/// A server with settings that are large.
pub async fn in_memory() -> anyhow::Result<()> {
    let server = ApiServer::builder().namespaces(Namespaces::OnDemand).build();
    for name in ["colours", "fonts"] {
        server.create(json!({
            "apiVersion": "v1", "kind": "ConfigMap",
            "metadata": {"name": name, "namespace": "shop", "labels": {"team": "design"}},
            "data": {"all": "x".repeat(10_000)},
        }))?;
    }
    show(server.client()).await
}

async fn show(client: Client) -> anyhow::Result<()> {
    let factory = InformerFactory::new(client);
    let maps = factory.metadata::<ConfigMap>();
    factory.start(CancellationToken::new())?;

    for map in maps.synced().await?.list().iter() {
        // Key and labels are at hand without decoding.
        let team = map.labels().get("team").unwrap_or("nobody");
        println!("{}: of {team}, {} bytes are kept", map.key(), map.json()?.len());
        if map.decode()?.metadata.owner_references.is_some() {
            println!("  it has an owner");
        }
    }
    factory.shutdown().await;
    Ok(())
}
