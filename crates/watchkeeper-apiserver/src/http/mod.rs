//! How does a request become an answer?
//!
//! [`ApiService`] is a tower service: it reads the path ([`route`]), the query ([`options`]), what kind of answer is
//! wanted ([`accept`]) and the body ([`body`]), lets a verb do the work, and writes the [`answer`].
//!
//! ```
//! use http_body_util::{BodyExt, Full};
//! use tower::ServiceExt;
//! use watchkeeper_apiserver::ApiServer;
//!
//! # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
//! let server = ApiServer::new();
//! let body = Full::<bytes::Bytes>::from(r#"{"metadata": {"name": "Bad_Name"}}"#);
//! let request = http::Request::post("/api/v1/nodes").body(body)?;
//! let response = server.service().oneshot(request).await?;
//! assert_eq!(response.status(), 422);
//! let status: serde_json::Value = serde_json::from_slice(&response.into_body().collect().await?.to_bytes())?;
//! assert_eq!(status["reason"], "Invalid");
//! # Ok(()) }
//! ```

pub(crate) mod accept;
mod aggregated;
pub(crate) mod answer;
pub(crate) mod body;
mod discovery;
pub(crate) mod etag;
mod health;
mod openapi;
pub(crate) mod options;
pub(crate) mod route;
pub(crate) mod service;
pub(crate) mod warnings;

pub use answer::Body;
pub use service::ApiService;
