//! How is the server asked?
//!
//! Each request has the time that `--request-timeout` says, and no answer is read beyond a bound.

use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http::header::{ACCEPT, ACCEPT_ENCODING, CONTENT_TYPE};
use http::{HeaderMap, Method, Request, Response};
use http_body_util::BodyExt as _;
use kube_client::client::Body;
use serde_json::Value;
use tokio::time::Instant;

use crate::cluster::Access;
use crate::terminal::seconds;

/// The most that is read of an answer.
const MOST: usize = 4 << 20;

/// A query that matches nothing, so that asking costs nothing.
pub(super) const NOTHING: &str = "labelSelector=watchkeeper.test%2Fno-such-label%3Dyes";

/// An answer, whatever it says.
pub(super) struct Answer {
    pub(super) status: u16,
    pub(super) headers: HeaderMap,
    pub(super) body: Bytes,
    /// From the request to the headers.
    pub(super) took: Duration,
}

/// Asks for JSON.
pub(super) async fn get(access: &Access, path: &str) -> Result<Answer, String> {
    get_as(access, path, "application/json").await
}

/// Asks for a representation.
pub(super) async fn get_as(access: &Access, path: &str, accept: &str) -> Result<Answer, String> {
    read(access, open(&access.client, Method::GET, path, accept, None), access.request_timeout).await
}

/// Sends a document: a review, which changes nothing.
pub(super) async fn review(access: &Access, path: &str, document: &Value) -> Result<Answer, String> {
    let request = open(&access.client, Method::POST, path, "application/json", Some(document));
    read(access, request, access.request_timeout).await
}

/// Sends a request; the answer's body is still to be read.
pub(super) async fn open(
    client: &kube_client::Client,
    method: Method,
    path: &str,
    accept: &str,
    document: Option<&Value>,
) -> Result<Response<Body>, String> {
    let request = Request::builder().method(method).uri(path).header(ACCEPT, accept);
    let request = request.header(ACCEPT_ENCODING, "identity");
    let request = match document {
        Some(document) => {
            request.header(CONTENT_TYPE, "application/json").body(Body::from(document.to_string().into_bytes()))
        }
        None => request.body(Body::empty()),
    };
    let request = request.map_err(|error| error.to_string())?;
    client.send(request).await.map_err(|error| words(&error))
}

/// What a client's error says, without the layers that it came through.
pub(super) fn words(error: &kube_client::Error) -> String {
    match error {
        kube_client::Error::Service(inner) => match inner.downcast_ref::<watchkeeper::Error>() {
            Some(ours) => ours.to_string(),
            None => inner.to_string(),
        },
        error => error.to_string(),
    }
}

async fn read(
    access: &Access,
    request: impl Future<Output = Result<Response<Body>, String>>,
    limit: Duration,
) -> Result<Answer, String> {
    let started = Instant::now();
    let reading = async {
        let (head, body) = request.await?.into_parts();
        let took = started.elapsed();
        let body = collect(body).await?;
        Ok(Answer { status: head.status.as_u16(), headers: head.headers, body, took })
    };
    match tokio::time::timeout(limit, reading).await {
        Ok(answer) => answer,
        Err(_) => Err(format!("{} did not answer within {}", access.url, seconds(limit))),
    }
}

async fn collect(mut body: Body) -> Result<Bytes, String> {
    let mut bytes = BytesMut::new();
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|error| format!("the answer broke off: {}", words(&error)))?;
        if let Some(data) = frame.data_ref() {
            bytes.extend_from_slice(data);
        }
        if bytes.len() > MOST {
            return Err(format!("the answer is larger than {MOST} bytes"));
        }
    }
    Ok(bytes.freeze())
}

impl Answer {
    /// The answer as JSON, if it is good and is JSON.
    pub(super) fn json(&self) -> Result<Value, String> {
        match self.status {
            200..=299 => serde_json::from_slice(&self.body).map_err(|_| self.not_json()),
            _ => Err(self.refusal()),
        }
    }

    /// What a refusal says.
    pub(super) fn refusal(&self) -> String {
        let message = serde_json::from_slice::<Value>(&self.body).ok();
        let message = message.as_ref().and_then(|status| status.get("message")).and_then(Value::as_str);
        match message {
            Some(message) => format!("{}: {message}", self.status),
            None if self.is_html() => format!("{}, with a web page: {PROXY}", self.status),
            None => format!("{}, without a reason", self.status),
        }
    }

    /// The answer is a page for people, so that something else than the server gave it.
    pub(super) fn is_html(&self) -> bool {
        let content_type = self.headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
        content_type.starts_with("text/html") || self.body.trim_ascii_start().starts_with(b"<")
    }

    /// A reviews API or a path that is not served.
    pub(super) fn is_not_served(&self) -> bool {
        matches!(self.status, 404 | 405 | 501)
    }

    fn not_json(&self) -> String {
        if self.is_html() { format!("the answer is a web page: {PROXY}") } else { "the answer is no JSON".to_owned() }
    }
}

/// What to think of a page.
const PROXY: &str = "a proxy or a login page stands before the server";

/// The path of a kind's objects, in a namespace or all of them. The error says what makes no path.
pub(super) fn path(resource: &kube_client::core::ApiResource, namespace: Option<&str>) -> Result<String, String> {
    let segment = |text: &str| {
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
        let is_name = !text.is_empty() && text != "." && text != ".." && text.bytes().all(is_plain);
        if is_name { Ok(text.to_owned()) } else { Err(format!("{text:?} is no name in a path")) }
    };
    let (version, plural) = (segment(&resource.version)?, segment(&resource.plural)?);
    let root = match resource.group.as_str() {
        "" => format!("/api/{version}"),
        group => format!("/apis/{}/{version}", segment(group)?),
    };
    match namespace {
        Some(namespace) => Ok(format!("{root}/namespaces/{}/{plural}", segment(namespace)?)),
        None => Ok(format!("{root}/{plural}")),
    }
}
