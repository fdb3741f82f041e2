//! How do programs outside of this process reach the server?
//!
//! Over a socket: [`ApiServer::listen`](crate::ApiServer::listen) opens a port, and [`Listening::kubeconfig`] is all that
//! a client needs to know.
//!
//! ```
//! use kube_client::config::{KubeConfigOptions, Kubeconfig};
//! use kube_client::{Client, Config};
//! use watchkeeper_apiserver::{ApiServer, ListenOptions};
//!
//! # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let listening = ApiServer::new().listen(ListenOptions::default()).await?;
//!
//! let kubeconfig = Kubeconfig::from_yaml(&listening.kubeconfig())?;
//! let config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await?;
//! assert_eq!(Client::try_from(config)?.apiserver_version().await?.major, "1");
//!
//! listening.shutdown().await;
//! # Ok(()) }
//! ```
//!
//! Who may come in, from the outside in:
//!
//! - `accept`: so many connections at once, and no more.
//! - `certificate`: with TLS, a certificate that only this kubeconfig trusts.
//! - `connection`: HTTP/1.1 or HTTP/2; a connection that asks nothing is closed.
//! - `gate`: the `Host` header is one of ours (`host`), the token is the right one (`token`), the body arrives in
//!   time. What passes goes to the same service that clients in process use.
//!
//! `socket` is below all of it: a fault that cuts the connection closes or resets it there.
//!
//! [`Listening`] holds all of it: with it the port is closed and every task is gone.

mod accept;
mod certificate;
mod connection;
mod error;
mod gate;
mod host;
mod kubeconfig;
mod listening;
mod options;
mod patient;
mod socket;
mod token;

pub use error::ListenError;
pub use kubeconfig::KubeconfigError;
pub use listening::Listening;
pub use options::{Limits, ListenOptions};

/// The programs in the guide are compiled with the tests.
#[cfg(doctest)]
#[doc = include_str!("../../../../docs/apiserver.md")]
struct Guide;
