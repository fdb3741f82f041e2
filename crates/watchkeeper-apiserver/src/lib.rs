//! An in-memory Kubernetes API server that speaks the real protocol, in process.
//!
//! It stands where a cluster would: `kube::Client` and everything built on it lists, watches and writes objects, and gets
//! the answers of a kube-apiserver: one revision counter, watches that lose nothing between list and watch, expired
//! versions, bookmarks, continue tokens, selectors, finalizers, conflicts, and a `Status` for every error. There is no
//! socket, and under tokio's paused clock an hour passes at once.
//!
//! ```
//! use k8s_openapi::api::core::v1::Node;
//! use kube_client::{Api, api::ListParams};
//! use serde_json::json;
//! use watchkeeper_apiserver::ApiServer;
//!
//! # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let server = ApiServer::new();
//! server.create(json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n1"}}))?;
//!
//! let nodes: Api<Node> = Api::all(server.client());
//! let list = nodes.list(&ListParams::default()).await?;
//! assert_eq!(list.items.len(), 1);
//! # Ok(()) }
//! ```
//!
//! The modules, from the inside out:
//!
//! - [`storage`]: where are the objects, and what has happened to them?
//! - [`kinds`]: which kinds are there?
//! - `openapi`: what do the OpenAPI documents say?
//! - `schema`: which types do the fields of objects have?
//! - `crds`: which kinds do CustomResourceDefinitions make?
//! - [`selectors`]: which objects does a request mean?
//! - `defaulting`: what does an object have that nobody sent?
//! - `tables`: how do objects become rows?
//! - `fields`: who owns which field of an object?
//! - `verbs`: what can be done with objects? One file for each verb.
//! - [`access`]: who asks, and who may do what?
//! - [`life`]: what becomes of objects after a write?
//! - `protobuf`: how do bodies in protobuf become JSON?
//! - `http`: how does a request become an answer?
//! - [`ApiServer`]: all of it together. Every number that decides something stands in [`defaults`].
//! - [`listen`]: how do programs outside of this process reach the server?
//! - [`faults`]: what can go wrong between a server and its clients, on demand?
//! - [`truth`]: what is true, for a cache to be compared with?

pub mod access;
pub mod kinds;
pub mod life;
pub mod listen;
pub mod selectors;
pub mod storage;

pub mod faults;
pub mod truth;

mod crds;
mod defaulting;
mod fields;
mod http;
mod openapi;
mod schema;
mod server;
mod tables;
mod verbs;

pub mod defaults;

mod clock;
mod failure;
mod private_file;
mod protobuf;
mod random;
mod validation;

pub use self::http::{ApiService, Body};
pub use access::AccessRules;
pub use failure::Failure;
pub use faults::{Ending, Fault, FaultRecord, Faults, Match, Record, Rule, StallAt};
pub use kinds::{CustomResource, InvalidResource, Kind};
pub use life::Controllers;
pub use listen::{KubeconfigError, Limits, ListenError, ListenOptions, Listening};
pub use server::{ApiServer, Builder, ExpiredWatch, Namespaces};
pub use storage::{FileError, History, JournalEntry, Storage, Stored};
pub use truth::{Differences, NoTruth, Truth, digest};
