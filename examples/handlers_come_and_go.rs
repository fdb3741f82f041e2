//! Handlers come and go while an informer runs. A late one is told of all that is there, and then of every change, with no
//! gap; one that goes leaves the others alone.
//!
//! ```text
//! cargo run --example handlers_come_and_go
//! ```

use k8s_openapi::api::core::v1::Pod;
use tokio_util::sync::CancellationToken;
use watchkeeper::{Cause, Event, HandlerOptions, InformerFactory, SharedInformer};
use watchkeeper_examples::{pause, pod, remove_pod, server_with};

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    in_memory().await
}

/// Three handlers on a server in memory.
pub async fn in_memory() -> anyhow::Result<()> {
    let server = server_with(&[("shop/web-0", "node-1"), ("shop/web-1", "node-2")])?;
    let factory = InformerFactory::new(server.client());
    let pods = factory.informer::<Pod>();

    let early = pods.on_event(|event| tell("early", event))?;
    factory.start(CancellationToken::new())?;
    early.synced().await?;

    println!("a second one comes");
    let late = pods.on_event(|event| tell("late", event))?;
    late.synced().await?; // it has heard of all that was there
    server.create(pod("shop/web-2", "node-1"))?;
    pause().await;

    println!("the first one goes");
    early.remove_and_wait().await; // its last call has returned, and it has been dropped
    server.put(pod("shop/web-0", "node-3"))?;
    pause().await;

    println!("a third one stays for as long as its guard");
    {
        let _guard = node_1(&pods)?.guard();
        pause().await;
        remove_pod(&server, "shop/web-2")?;
        pause().await;
    }
    server.create(pod("shop/web-3", "node-1"))?;
    pause().await;
    println!("{} handler is left", pods.handlers().len());
    factory.shutdown().await;
    Ok(())
}

/// A handler that hears of the pods of one node only. A pod that moves away is gone for it.
fn node_1(pods: &SharedInformer<Pod>) -> Result<watchkeeper::HandlerHandle, watchkeeper::Error> {
    let on_node_1 = |pod: &watchkeeper::Cached<Pod>| {
        let node = pod.decode().ok().and_then(|pod| pod.spec.as_ref()?.node_name.clone());
        node.as_deref() == Some("node-1")
    };
    pods.on_event_with(HandlerOptions::new().name("node-1").filter(on_node_1), |event| tell("node-1", event))
}

fn tell(who: &str, event: &Event<Pod>) {
    let what = match event {
        Event::Added { cause: Cause::Initial, .. } => "is there",
        Event::Added { .. } => "is new",
        Event::Updated { .. } => "has changed",
        Event::Deleted { .. } => "is gone",
    };
    println!("  {who}: {} {what}", event.key());
}
