//! Is the copy complete, and is it current? What a readiness and a liveness probe can ask of an informer, and how the
//! answers change when the server goes away.
//!
//! ```text
//! cargo run --example health                a server in memory that goes away and comes back
//! cargo run --example health -- --cluster   the current kubeconfig's cluster, until Ctrl-C
//! ```

use std::time::Duration;

use k8s_openapi::api::core::v1::Pod;
use tokio_util::sync::CancellationToken;
use watchkeeper::{InformerFactory, InformerStatus, SharedInformer};
use watchkeeper_apiserver::{ApiServer, Fault, Match};
use watchkeeper_examples::{cluster, until_ctrl_c, wants_cluster};

/// What a probe answers.
struct Health {
    /// The first list is there: requests that need the copy can be answered. It stays so.
    ready: bool,
    /// The server was heard within the time. A process that is not live for long may be restarted.
    live: bool,
    /// For people.
    text: String,
}

fn health(status: &InformerStatus, silence: Duration) -> Health {
    let error = status.last_error.as_ref().map(|(error, _)| format!(", last error: {error}"));
    Health {
        ready: status.synced,
        // Until the first list is there, it is for readiness to say so, and nothing is gained by a restart.
        live: status.failure.is_none() && (!status.synced || status.is_current(silence)),
        text: format!("{:?}, {} objects{}", status.phase, status.objects, error.unwrap_or_default()),
    }
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    if wants_cluster()? {
        let (factory, token) = (InformerFactory::new(cluster().await?), until_ctrl_c());
        let pods = factory.informer::<Pod>();
        factory.start(token.clone())?;
        // Bookmarks come about once a minute; a server may send none, and then ends each watch within ten minutes.
        token.run_until_cancelled(report(&pods, Duration::from_secs(600), |_| false)).await;
        return Ok(());
    }
    in_memory().await
}

/// A server that goes away and comes back.
pub async fn in_memory() -> anyhow::Result<()> {
    // One that sends bookmarks every half second, so that silence is noticed soon.
    let server = ApiServer::builder().bookmarks(Duration::from_millis(500)).build();
    let factory = InformerFactory::new(server.client());
    let pods = factory.informer::<Pod>();
    let silence = Duration::from_secs(2);
    print("before the start", &health(&pods.status(), silence));
    factory.start(CancellationToken::new())?;
    report(&pods, silence, |health| health.ready).await;

    println!("the server goes away");
    let gone = server.faults().on(Match::any()).then(Fault::Refuse);
    server.faults().cut();
    report(&pods, silence, |health| !health.live).await;

    println!("the server comes back");
    gone.remove();
    report(&pods, silence, |health| health.live).await;
    factory.shutdown().await;
    Ok(())
}

/// Looks five times a second, and tells what has changed, until somebody is content.
async fn report(pods: &SharedInformer<Pod>, silence: Duration, enough: impl Fn(&Health) -> bool) {
    let mut told = None;
    loop {
        let health = health(&pods.status(), silence);
        let now = (health.ready, health.live);
        if told.replace(now) != Some(now) {
            print("now", &health);
        }
        if enough(&health) {
            return;
        }
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
}

fn print(when: &str, health: &Health) {
    let Health { ready, live, text } = health;
    println!("{when}: ready {ready}, live {live} ({text})");
}
