//! What the examples share: where their objects come from. The examples stand beside this folder:
//! `cargo run --example informer`.

use std::time::Duration;

use anyhow::{Context as _, bail};
use kube_client::{Client, Config};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;
use watchkeeper_apiserver::{ApiServer, Namespaces};

/// Whether the first argument is `--cluster`. Without it an example has a server in memory, and ends by itself.
pub fn wants_cluster() -> anyhow::Result<bool> {
    match std::env::args().nth(1).as_deref() {
        None => Ok(false),
        Some("--cluster") => Ok(true),
        Some(other) => bail!("unknown argument {other:?}; --cluster is for the current kubeconfig's cluster"),
    }
}

/// A client of the current kubeconfig's cluster.
pub async fn cluster() -> anyhow::Result<Client> {
    let config = Config::infer().await.context("there is no cluster: set KUBECONFIG, or leave --cluster out")?;
    Ok(watchkeeper::client(config)?)
}

/// A token that Ctrl-C cancels.
pub fn until_ctrl_c() -> CancellationToken {
    let token = CancellationToken::new();
    let stop = token.clone();
    tokio::spawn(async move {
        if tokio::signal::ctrl_c().await.is_ok() {
            stop.cancel();
        }
    });
    token
}

/// A server in memory, with these pods: `namespace/name`, and the node.
pub fn server_with(pods: &[(&str, &str)]) -> anyhow::Result<ApiServer> {
    let server = ApiServer::builder().namespaces(Namespaces::OnDemand).build();
    for (key, node) in pods {
        server.put(pod(key, node))?;
    }
    Ok(server)
}

/// The pod `namespace/name`, on a node.
pub fn pod(key: &str, node: &str) -> Value {
    let (namespace, name) = key.split_once('/').unwrap_or(("default", key));
    let app = name.split('-').next();
    json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": name, "namespace": namespace, "labels": {"app": app}},
        "spec": {"nodeName": node, "containers": [{"name": "main", "image": "example/image"}]},
        "status": {"phase": "Running"},
    })
}

/// Removes the pod `namespace/name`.
pub fn remove_pod(server: &ApiServer, key: &str) -> anyhow::Result<()> {
    let pods = server.kind("", "pods").context("a server knows pods")?;
    server.remove(&pods, key).with_context(|| format!("there is no pod {key}"))?;
    Ok(())
}

/// Long enough for what was written to come through, and to be read by whoever looks at the screen.
pub async fn pause() {
    tokio::time::sleep(Duration::from_millis(200)).await;
}
