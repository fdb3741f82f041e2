//! A kind that is known at run time only: a custom one, or one that a user names. No Rust type is needed.
//!
//! ```text
//! cargo run --example dynamic                                     orders on a server in memory
//! cargo run --example dynamic -- --cluster apps/v1/Deployment     a kind of the current kubeconfig's cluster, until Ctrl-C
//! ```

use anyhow::{Context as _, bail};
use kube_client::Client;
use kube_client::core::GroupVersionKind;
use kube_client::discovery::pinned_kind;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;
use watchkeeper::{Index, InformerFactory};
use watchkeeper_apiserver::{ApiServer, CustomResource, Namespaces};
use watchkeeper_examples::{cluster, pause, until_ctrl_c, wants_cluster};

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    if wants_cluster()? {
        let kind = std::env::args().nth(2).context("which kind? For example: --cluster apps/v1/Deployment")?;
        return watch_kind(cluster().await?, &kind, until_ctrl_c()).await;
    }
    in_memory().await
}

/// A server that knows orders.
pub async fn in_memory() -> anyhow::Result<()> {
    let server = ApiServer::builder().namespaces(Namespaces::OnDemand).build();
    server.register(CustomResource::namespaced("shop.example.com", "v1", "Order", "orders"))?;
    server.create(order("first", "ada"))?;
    let token = CancellationToken::new();
    let life = tokio::spawn(live(server.clone(), token.clone()));
    watch_kind(server.client(), "shop.example.com/v1/Order", token).await?;
    life.await?
}

async fn watch_kind(client: Client, kind: &str, token: CancellationToken) -> anyhow::Result<()> {
    let names: Vec<&str> = kind.split('/').collect();
    let gvk = match names[..] {
        [version, kind] => GroupVersionKind::gvk("", version, kind),
        [group, version, kind] => GroupVersionKind::gvk(group, version, kind),
        _ => bail!("{kind:?} is not GROUP/VERSION/KIND"),
    };
    // The server knows what the kind is called in URLs.
    let (resource, _) = pinned_kind(&client, &gvk).await.with_context(|| format!("no kind {kind}"))?;
    println!("{kind} is {}", resource.plural);

    let factory = InformerFactory::new(client);
    let objects = factory.informer_for(&resource);
    objects.add_index("customer", Index::field("/spec/customer")).await?;
    let mut events = objects.events()?;
    factory.start(token)?;
    let lister = objects.synced().await?;
    println!("{} there", lister.list().len());

    // Events as a stream, which ends with the informer.
    while let Some(event) = events.next().await {
        let object = event.object().decode()?;
        println!("{} {}: {}", if event.is_deletion() { "gone" } else { "is" }, event.key(), object.data["spec"]);
    }
    println!("{} of ada", lister.by_index("customer", "ada")?.len());
    Ok(())
}

/// What happens in the cluster meanwhile.
async fn live(server: ApiServer, token: CancellationToken) -> anyhow::Result<()> {
    pause().await;
    server.create(order("second", "ada"))?;
    pause().await;
    server.put(order("first", "grace"))?;
    pause().await;
    token.cancel();
    Ok(())
}

fn order(name: &str, customer: &str) -> Value {
    json!({
        "apiVersion": "shop.example.com/v1", "kind": "Order",
        "metadata": {"name": name, "namespace": "shop"}, "spec": {"customer": customer},
    })
}
