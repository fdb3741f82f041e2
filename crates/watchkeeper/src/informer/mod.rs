//! How does one hear of what changes?
//!
//! A [`SharedInformer`] keeps a copy of a kind (source, reflector, queue and store, put together) and tells handlers of each
//! change, after it is in the store. However many handlers there are, there is one watch.
//!
//! ```
//! use k8s_openapi::api::core::v1::Pod;
//! use tokio_util::sync::CancellationToken;
//! use watchkeeper::{Event, Index, SharedInformer};
//! # use watchkeeper::{Object, Scripted, ScriptedList, ScriptedWatch};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let pod = |name: &str| Object::from_json(format!(
//! #     r#"{{"metadata":{{"name":"{name}","namespace":"shop","resourceVersion":"1"}},"spec":{{"nodeName":"node-1","containers":[]}}}}"#));
//! # let source = Scripted::new().answer_list(ScriptedList::new("1", [pod("web-0")?]))
//! #     .answer_watch(ScriptedWatch::new().added(pod("web-1")?).hang());
//! let pods: SharedInformer<Pod> = SharedInformer::new(source); // with a cluster: ListWatch::of::<Pod>(client)
//! pods.add_index("node", Index::field("/spec/nodeName")).await?;
//! let handler = pods.on_event(|event| match event {
//!     Event::Added { object, .. } => println!("+ {}", object.key()),
//!     Event::Updated { new, .. } => println!("~ {}", new.key()),
//!     Event::Deleted { last, .. } => println!("- {}", last.key()),
//! })?;
//!
//! pods.start(CancellationToken::new())?;
//! let lister = pods.synced().await?; // the first list is in the store
//! handler.synced().await?; // and the handler has heard of all of it
//! for pod in lister.by_index("node", "node-1")? {
//!     println!("{}: {:?}", pod.key(), pod.decode()?.status); // decoded here, and nowhere else
//! }
//! pods.shutdown().await; // nothing of it is left
//! # Ok(()) }
//! ```
//!
//! What a handler hears, folded up, is what the store shows. It hears of each change once, in the order of the changes, and
//! is never called twice at a time. It can be slow: nobody waits for it, and what it has not heard [waits](Buffer). It can
//! panic: it loses that one event. It can come and go at any time.
//!
//! | a handler that | is |
//! |---|---|
//! | puts keys into a queue | a closure: [`on_event`](SharedInformer::on_event) |
//! | has state and three methods | an [`EventHandler`]: [`add_handler`](SharedInformer::add_handler) |
//! | blocks | one with [`HandlerOptions::blocking`] |
//! | is async | a loop over [`events`](SharedInformer::events) |

mod buffer;
mod builder;
mod changes;
pub(crate) mod core;
mod event;
mod flag;
mod handle;
mod handler;
pub(crate) mod lease;
mod listener;
mod processor;
mod run;
mod sample;
mod shared;
mod sieve;
mod status;
mod stream;
mod verification;
mod verify;
mod wait;

pub use buffer::Buffer;
pub use builder::{InformerBuilder, InformerQueue};
pub use event::{Cause, Event};
pub use handle::{HandlerGuard, HandlerHandle};
pub use handler::{EventHandler, HandlerOptions};
pub use shared::SharedInformer;
pub use status::InformerStatus;
pub use stream::EventStream;
pub use verification::{Difference, Found, Verification};
