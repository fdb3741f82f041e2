//! How do the parts of a program share their informers?
//!
//! An [`InformerFactory`] makes informers and gives the same one to all who ask for the same objects: however many
//! controllers a program has, each kind is watched once and kept once.
//!
//! ```no_run
//! use k8s_openapi::api::{apps::v1::Deployment, core::v1::Pod};
//! use tokio_util::sync::CancellationToken;
//! use watchkeeper::{InformerFactory, ObjectKey};
//!
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! let factory = InformerFactory::try_default().await?;
//! let pods = factory.informer::<Pod>();
//! let deployments = factory.informer::<Deployment>().lister();
//! let _handle = pods.on_event(|event| println!("{event:?}"))?;
//!
//! factory.start(CancellationToken::new())?;
//! factory.wait_synced().await.into_result()?;
//! println!("{:?}", deployments.require(&ObjectKey::namespaced("shop", "web"))?.decode()?.status);
//! factory.shutdown().await;
//! # Ok(()) }
//! ```
//!
//! | objects | |
//! |---|---|
//! | of a type: those of `k8s-openapi`, of `#[derive(CustomResource)]`, of [`view_of!`](crate::view_of) | [`informer`](InformerFactory::informer) |
//! | of a kind that is known at run time | [`informer_for`](InformerFactory::informer_for) |
//! | of which only the metadata matters | [`metadata`](InformerFactory::metadata), [`metadata_for`](InformerFactory::metadata_for) |
//! | of one namespace, of several, with labels | [`informer_with`](InformerFactory::informer_with) and [`InformerOptions`] |
//! | from somewhere else | [`informer_from`](InformerFactory::informer_from) |
//!
//! Informers are counted: those that nobody holds, that no lister reads and that have no handler stop after a
//! [while](InformerOptions::linger). Who asks again gets a new one, to be [started](InformerFactory::start).

#[allow(clippy::module_inception, reason = "the folder is named after what it is about")]
mod factory;
mod options;
mod subject;
mod synced;

pub use factory::{InformerFactory, InformerFactoryBuilder, InformerMaker};
pub use options::InformerOptions;
pub use subject::Subject;
pub use synced::SyncResult;
