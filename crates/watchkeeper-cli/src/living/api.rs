//! How the controllers write: requests over the same client that the informers use.

use std::fmt;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::BodyExt as _;
use kube_client::Client;
use kube_client::client::Body;
use serde::Deserialize;
use serde_json::{Value, json};

use super::views::Meta;

/// How long a write may take before it is tried again.
const LIMIT: Duration = Duration::from_secs(15);

/// The kinds that are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Resource {
    ConfigMaps,
    Deployments,
    EndpointSlices,
    Events,
    Jobs,
    Leases,
    #[cfg(test)]
    Namespaces,
    Nodes,
    Pods,
    ReplicaSets,
}

impl Resource {
    fn path(self) -> (&'static str, &'static str) {
        match self {
            Self::ConfigMaps => ("/api/v1", "configmaps"),
            Self::Deployments => ("/apis/apps/v1", "deployments"),
            Self::EndpointSlices => ("/apis/discovery.k8s.io/v1", "endpointslices"),
            Self::Events => ("/api/v1", "events"),
            Self::Jobs => ("/apis/batch/v1", "jobs"),
            Self::Leases => ("/apis/coordination.k8s.io/v1", "leases"),
            #[cfg(test)]
            Self::Namespaces => ("/api/v1", "namespaces"),
            Self::Nodes => ("/api/v1", "nodes"),
            Self::Pods => ("/api/v1", "pods"),
            Self::ReplicaSets => ("/apis/apps/v1", "replicasets"),
        }
    }
}

/// An object that is meant: where it is.
#[derive(Debug, Clone, Copy)]
pub(super) struct Target<'a> {
    pub(super) resource: Resource,
    /// Empty for what is in no namespace.
    pub(super) namespace: &'a str,
    pub(super) name: &'a str,
}

/// Why a request failed. No part of an object is in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum ApiError {
    /// The server said no.
    Refused { code: u16, reason: String },
    /// There was no answer, or none that could be read; nobody knows whether it was done.
    NoAnswer,
}

impl ApiError {
    /// It is not there.
    pub(super) fn is_not_found(&self) -> bool {
        self.has_code(404)
    }

    fn has_code(&self, wanted: u16) -> bool {
        matches!(self, Self::Refused { code, .. } if *code == wanted)
    }
}

impl fmt::Display for ApiError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Refused { code, reason } => write!(f, "the server answered {code} {reason}"),
            Self::NoAnswer => f.write_str("the server gave no answer that can be read"),
        }
    }
}

impl std::error::Error for ApiError {}

/// What the server made of a write.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(super) struct Written {
    pub(super) metadata: Meta,
}

/// Writes. Cheap to clone.
#[derive(Clone)]
pub(super) struct Api {
    client: Client,
}

impl Api {
    pub(super) fn new(client: Client) -> Self {
        Self { client }
    }

    pub(super) async fn get(&self, target: Target<'_>) -> Result<Written, ApiError> {
        self.send("GET", &target.path(), "", None).await
    }

    pub(super) async fn create(
        &self,
        resource: Resource,
        namespace: &str,
        object: &Value,
    ) -> Result<Written, ApiError> {
        self.send("POST", &collection(resource, namespace), "application/json", Some(object)).await
    }

    /// Changes some fields. If the patch names a version, only of that one.
    pub(super) async fn patch(&self, target: Target<'_>, patch: &Value) -> Result<Written, ApiError> {
        self.send("PATCH", &target.path(), MERGE, Some(patch)).await
    }

    /// Changes some fields of the status, of this version.
    pub(super) async fn patch_status(
        &self,
        target: Target<'_>,
        version: &str,
        status: &Value,
    ) -> Result<Written, ApiError> {
        let patch = json!({"metadata": {"resourceVersion": version}, "status": status});
        self.send("PATCH", &format!("{}/status", target.path()), MERGE, Some(&patch)).await
    }

    /// Puts a pod onto a node, if it still is in this version. What became of it has to be asked for: the answer does not say.
    pub(super) async fn bind(&self, pod: Target<'_>, version: &str, node: &str) -> Result<Written, ApiError> {
        let binding = json!({
            "metadata": {"name": pod.name, "namespace": pod.namespace, "resourceVersion": version},
            "target": {"apiVersion": "v1", "kind": "Node", "name": node},
        });
        self.send("POST", &format!("{}/binding", pod.path()), "application/json", Some(&binding)).await?;
        self.get(pod).await
    }

    /// Deletes an object, if it still is the one with this uid. Of one that is gone there is nothing to delete: `None`.
    pub(super) async fn delete(
        &self,
        target: Target<'_>,
        uid: &str,
        grace: Option<i64>,
    ) -> Result<Option<Written>, ApiError> {
        let mut options = json!({"apiVersion": "v1", "kind": "DeleteOptions", "propagationPolicy": "Background"});
        if !uid.is_empty() {
            options["preconditions"] = json!({"uid": uid});
        }
        if let Some(grace) = grace {
            options["gracePeriodSeconds"] = grace.into();
        }
        match self.send("DELETE", &target.path(), "application/json", Some(&options)).await {
            Ok(written) => Ok(Some(written)),
            Err(error) if error.is_not_found() => Ok(None),
            Err(error) => Err(error),
        }
    }

    async fn send(
        &self,
        method: &str,
        path: &str,
        media_type: &str,
        body: Option<&Value>,
    ) -> Result<Written, ApiError> {
        let bytes = body.map(ToString::to_string).unwrap_or_default().into_bytes();
        let mut request = http::Request::builder().method(method).uri(path);
        if body.is_some() {
            request = request.header(http::header::CONTENT_TYPE, media_type);
        }
        let request = request.body(Body::from(bytes)).map_err(|_| ApiError::NoAnswer)?;
        let answer = async {
            let response = self.client.send(request).await.map_err(|_| ApiError::NoAnswer)?;
            let (code, body) = (response.status(), response.into_body());
            let body = body.collect().await.map_err(|_| ApiError::NoAnswer)?.to_bytes();
            if code.is_success() { read(&body) } else { Err(refusal(code.as_u16(), &body)) }
        };
        tokio::time::timeout(LIMIT, answer).await.unwrap_or(Err(ApiError::NoAnswer))
    }
}

const MERGE: &str = "application/merge-patch+json";

impl Target<'_> {
    fn path(&self) -> String {
        format!("{}/{}", collection(self.resource, self.namespace), self.name)
    }
}

fn collection(resource: Resource, namespace: &str) -> String {
    let (base, plural) = resource.path();
    match namespace {
        "" => format!("{base}/{plural}"),
        namespace => format!("{base}/namespaces/{namespace}/{plural}"),
    }
}

fn read(body: &Bytes) -> Result<Written, ApiError> {
    serde_json::from_slice(body).map_err(|_| ApiError::NoAnswer)
}

fn refusal(code: u16, body: &Bytes) -> ApiError {
    #[derive(Default, Deserialize)]
    #[serde(default)]
    struct Status {
        reason: String,
    }
    let status: Status = serde_json::from_slice(body).unwrap_or_default();
    ApiError::Refused { code, reason: status.reason }
}
