//! The program of the README: a controller that looks at each pod of the current kubeconfig's cluster.

use k8s_openapi::api::core::v1::Pod;
use tokio_util::sync::CancellationToken;
use watchkeeper::{
    Controller, Index, InformerFactory, Lister, ObjectKey, Outcome, RateLimitingQueue, ReconcileError, limiter,
};

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let token = CancellationToken::new();
    let factory = InformerFactory::try_default().await?; // kubeconfig, or the cluster that this runs in
    let pods = factory.informer::<Pod>(); // one watch, however many ask
    pods.add_index("node", Index::field("/spec/nodeName")).await?;

    let queue = RateLimitingQueue::new(limiter::default_controller());
    let events = queue.clone();
    let _handle = pods.on_event(move |event| events.add(event.key().clone()))?; // called with each change

    factory.start(token.clone())?;
    let pods = pods.synced().await?; // a lister; or an error that says what is wrong, and what to do
    println!("{} pods on node-1", pods.by_index("node", "node-1")?.len());

    let stop = token.clone();
    tokio::spawn(async move { tokio::signal::ctrl_c().await.map(|()| stop.cancel()) });
    let work = move |key| reconcile(key, pods.clone());
    Controller::new("web", queue).workers(8).run(token, work).await?;
    factory.shutdown().await; // the watch is closed, and nothing is left running
    Ok(())
}

/// Called with the key of each pod that changed, by one worker at a time; an error is tried again, after a backoff.
async fn reconcile(key: ObjectKey, pods: Lister<Pod>) -> Result<Outcome, ReconcileError> {
    let Some(pod) = pods.get(&key) else {
        println!("{key} is gone");
        return Ok(Outcome::Done);
    };
    let pod = pod.decode()?; // decoded here, and nowhere else
    println!("{key} is {}", pod.status.as_ref().and_then(|status| status.phase.as_deref()).unwrap_or("new"));
    Ok(Outcome::Done)
}
