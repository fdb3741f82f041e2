//! Who does the work?
//!
//! A [`Controller`] joins informers, a [queue](crate::workqueue) and a function of yours: events put keys into the queue, workers
//! take them out, and your function makes the world look as the object under that key says, each time from the beginning.
//!
//! ```
//! use k8s_openapi::api::core::v1::Pod;
//! use tokio_util::sync::CancellationToken;
//! use watchkeeper::{Controller, ObjectKey, Outcome, RateLimitingQueue, SharedInformer, limiter};
//! # use watchkeeper::{Object, Scripted, ScriptedList, ScriptedWatch};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let pod = Object::from_json(r#"{"metadata":{"name":"web-0","namespace":"shop","resourceVersion":"1"}}"#)?;
//! # let source = Scripted::new().answer_list(ScriptedList::new("1", [pod])).answer_watch(ScriptedWatch::new().hang());
//! let pods: SharedInformer<Pod> = SharedInformer::new(source); // with a cluster: of an InformerFactory
//! let lister = pods.lister();
//! let token = CancellationToken::new();
//! pods.start(token.clone())?;
//!
//! # let stop = token.clone();
//! let queue = RateLimitingQueue::new(limiter::default_controller());
//! let controller = Controller::new("web", queue).workers(8).reconciles(&pods);
//! controller
//!     .run(token, move |key: ObjectKey| {
//!         let lister = lister.clone();
//! #       let stop = stop.clone();
//!         async move {
//! #           stop.cancel();
//!             let Some(pod) = lister.get(&key) else { return Ok(Outcome::Done) }; // it is gone
//!             let pod = pod.decode()?; // any error is tried again, after a backoff
//!             println!("{key}: {:?}", pod.status);
//!             Ok(Outcome::Done)
//!         }
//!     })
//!     .await?;
//! # Ok(()) }
//! ```
//!
//! | what comes back | what is done |
//! |---|---|
//! | [`Outcome::Done`] | nothing, until something changes |
//! | [`Outcome::Requeue`] | it is tried again soon, with backoff |
//! | [`Outcome::RequeueAfter`] | it is looked at again when so long has passed |
//! | an error, a panic, no answer within [the limit](Controller::timeout) | it is tried again, with backoff, [so often](Controller::max_retries) |
//! | a [terminal](ReconcileError::terminal) error | it is reported, and left alone until something changes |
//!
//! To write to the cluster there is `kube::Api`, over the same client.

#[allow(clippy::module_inception, reason = "the folder is named after what it is about")]
mod controller;
mod outcome;
mod predicate;
mod sources;
mod stats;
mod worker;

pub use controller::Controller;
pub use outcome::{Outcome, ReconcileError};
pub use predicate::Predicate;
pub use stats::{ControllerStats, StatsReader};
