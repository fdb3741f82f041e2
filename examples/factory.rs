//! Several kinds from one factory. Each part of the program asks for the informers that it needs; who asks for the same
//! objects gets the same informer, and all are started, waited for and shut down together.
//!
//! ```text
//! cargo run --example factory                a few changes on a server in memory
//! cargo run --example factory -- --cluster   the current kubeconfig's cluster, until Ctrl-C
//! ```

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{ConfigMap, Pod};
use serde_json::json;
use tokio_util::sync::CancellationToken;
use watchkeeper::{Event, InformerFactory, InformerOptions, Lister, ObjectKey, Selector, Transform};
use watchkeeper_examples::{cluster, pause, pod, server_with, until_ctrl_c, wants_cluster};

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    if !wants_cluster()? {
        return in_memory().await;
    }
    let (factory, token) = (InformerFactory::new(cluster().await?), until_ctrl_c());
    run(&factory, async {
        token.cancelled().await;
        Ok(())
    })
    .await
}

/// A server with a deployment and its pods, of which there is soon one more.
pub async fn in_memory() -> anyhow::Result<()> {
    let server = server_with(&[("shop/web-0", "node-1"), ("shop/web-1", "node-2")])?;
    server.create(json!({
        "apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {"name": "web", "namespace": "shop"},
        "spec": {
            "replicas": 3,
            "selector": {"matchLabels": {"app": "web"}},
            "template": {
                "metadata": {"labels": {"app": "web"}},
                "spec": {"containers": [{"name": "main", "image": "example/image"}]},
            },
        },
    }))?;
    // What holds for all informers that do not say otherwise.
    let defaults = InformerOptions::new().transform(Transform::strip_managed_fields());
    let factory = InformerFactory::builder(server.client()).defaults(defaults).build();
    run(&factory, async {
        pause().await;
        server.create(pod("shop/web-2", "node-1"))?;
        pause().await;
        Ok(())
    })
    .await
}

async fn run(factory: &InformerFactory, end: impl Future<Output = anyhow::Result<()>>) -> anyhow::Result<()> {
    // Two parts of a program, which need not know of each other.
    let pods = factory.informer::<Pod>().lister();
    let deployments = factory.informer::<Deployment>().lister();
    let watched = factory.informer::<Pod>(); // the same informer as above
    let settings = factory.informer_with::<ConfigMap>(InformerOptions::new().namespace("shop"))?;

    watched.on_event(move |event| {
        if let Event::Added { object, .. } = event {
            println!("+ {}", object.key());
        }
    })?;

    factory.start(CancellationToken::new())?;
    factory.wait_synced().await.into_result()?;
    for subject in factory.subjects() {
        println!("there is a copy of {subject}");
    }
    println!("{} settings", settings.lister().list().len());
    report(&deployments, &pods)?;
    end.await?;
    report(&deployments, &pods)?;

    factory.shutdown().await; // nothing of them is left
    Ok(())
}

/// Compares what is wanted with what is there, as any controller does.
fn report(deployments: &Lister<Deployment>, pods: &Lister<Pod>) -> anyhow::Result<()> {
    let selector: Selector = "app=web".parse()?;
    if let Some(web) = deployments.get(&ObjectKey::namespaced("shop", "web")) {
        let wanted = web.decode()?.spec.replicas.unwrap_or(1);
        println!("web has {} of {wanted} pods", pods.namespace("shop").matching(&selector).len());
    }
    Ok(())
}
