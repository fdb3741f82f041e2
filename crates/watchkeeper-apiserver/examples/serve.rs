//! An API server for programs in any language: prints where its kubeconfig is, and serves until it is interrupted.
//!
//! ```text
//! cargo run -p watchkeeper-apiserver --example serve -- watchkeeper.kubeconfig
//! kubectl --kubeconfig watchkeeper.kubeconfig get --raw /api/v1/namespaces
//! ```

use watchkeeper_apiserver::{ApiServer, ListenOptions};

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let path = std::env::args().nth(1).unwrap_or_else(|| "watchkeeper.kubeconfig".to_owned());
    let listening = ApiServer::new().listen(ListenOptions::with_tls()).await?;
    listening.write_kubeconfig(&path)?;
    println!("{} with the kubeconfig {path}", listening.url());
    tokio::signal::ctrl_c().await?;
    listening.shutdown().await;
    Ok(())
}
