//! The program of the README: the pods of the current kubeconfig's cluster, by node.

use k8s_openapi::api::core::v1::Pod;
use tokio_util::sync::CancellationToken;
use watchkeeper::{Event, Index, InformerFactory};

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let factory = InformerFactory::try_default().await?; // kubeconfig, or the cluster that this runs in
    let pods = factory.informer::<Pod>(); // one watch, however many ask
    pods.add_index("node", Index::field("/spec/nodeName")).await?;
    let handler = pods.on_event(|event| match event {
        Event::Added { object, .. } => println!("+ {}", object.key()),
        Event::Updated { old, new, .. } => {
            println!("~ {} {} -> {}", new.key(), old.resource_version(), new.resource_version())
        }
        Event::Deleted { last, .. } => println!("- {}", last.key()),
    })?;

    factory.start(CancellationToken::new())?;
    let lister = pods.synced().await?; // or an error that says what is wrong, and what to do
    handler.synced().await?; // the handler has heard of all that there was
    for pod in lister.by_index("node", "node-1")? {
        let pod = pod.decode()?; // decoded here, and nowhere else
        println!("on node-1: {:?}", pod.metadata.name);
    }
    factory.shutdown().await; // the watch is closed, and nothing is left running
    Ok(())
}
