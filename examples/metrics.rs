//! Metrics for Prometheus, under the names that client-go's dashboards know: what a program's `/metrics` would answer.
//!
//! ```text
//! cargo run --example metrics                a server in memory
//! cargo run --example metrics -- --cluster   the current kubeconfig's cluster
//! ```

use k8s_openapi::api::core::v1::Pod;
use kube_client::Client;
use prometheus_client::encoding::text::encode;
use prometheus_client::registry::Registry;
use tokio_util::sync::CancellationToken;
use watchkeeper::metrics::PrometheusMetrics;
use watchkeeper::{HandlerOptions, InformerFactory, InformerOptions};
use watchkeeper_examples::{cluster, server_with, wants_cluster};

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    if wants_cluster()? { show(cluster().await?).await } else { in_memory().await }
}

/// A server with a few pods.
pub async fn in_memory() -> anyhow::Result<()> {
    let server = server_with(&[("shop/web-0", "node-1"), ("shop/web-1", "node-2"), ("bank/db-0", "node-1")])?;
    show(server.client()).await
}

async fn show(client: Client) -> anyhow::Result<()> {
    let mut registry = Registry::default();
    let metrics = PrometheusMetrics::new();
    metrics.register(&mut registry);
    // The name tells the informers of this factory from those of others.
    let name = metrics.names().reserve("example")?;

    let factory = InformerFactory::builder(client).metrics(metrics, name).build();
    let pods = factory.informer::<Pod>();
    let handler = pods.on_event_with(HandlerOptions::new().name("nothing"), |_| {})?;
    let _shop = factory.informer_with::<Pod>(InformerOptions::new().namespace("shop"))?;
    factory.start(CancellationToken::new())?;
    factory.wait_synced().await.into_result()?;
    handler.synced().await?;

    // At each scrape the informers are asked how they are; between scrapes it costs nothing.
    let mut page = String::new();
    encode(&mut page, &registry)?;
    for line in page.lines().filter(|line| line.starts_with("informer_") && !line.contains("_bucket")) {
        println!("{line}");
    }
    factory.shutdown().await;
    Ok(())
}
