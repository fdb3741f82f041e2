//! How does one read the objects of a kind?
//!
//! A [`Lister`] reads a store of objects as objects of one type. It finds them by key, by namespace, by label (with a
//! [`Selector`]) and by index. What it finds is [`Cached`](crate::Cached), decoded when somebody looks, and a list of it is an
//! [`Objects`]: all of one moment, one after the other, and no copy.
//!
//! ```
//! use std::sync::Arc;
//!
//! use k8s_openapi::api::core::v1::Pod;
//! use watchkeeper::{Indexer, Lister, Object, ObjectKey, Selector};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let store = Arc::new(Indexer::objects());
//! let pod = r#"{"metadata": {"name": "web-0", "namespace": "shop", "resourceVersion": "7", "labels": {"app": "web"}}}"#;
//! store.add(Object::from_json(pod)?)?;
//!
//! let pods: Lister<Pod> = Lister::new(store);
//! pods.wait_for(&"7".into()).await?; // what was written up to that version can be read
//! let pod = pods.require(&ObjectKey::namespaced("shop", "web-0"))?;
//! assert_eq!(pod.decode()?.metadata.name.as_deref(), Some("web-0"));
//!
//! let web = Selector::parse("app in (web, api), !canary")?;
//! for pod in pods.namespace("shop").matching(&web) {
//!     println!("{} is at version {}", pod.key(), pod.resource_version());
//! }
//! assert!(pods.namespace("other").get("web-0").is_none());
//! # Ok(())
//! # }
//! ```

#[allow(clippy::module_inception, reason = "the folder is named after what it is about")]
mod lister;
mod namespace;
mod not_found;
mod objects;
mod selector;

pub use lister::Lister;
pub(crate) use lister::{Keeper, without_paths};
pub use namespace::NamespaceLister;
pub use not_found::NotFound;
pub use objects::{IntoIter, Iter, Objects};
pub use selector::{InvalidSelector, Selector};
