//! A client that sees everything: statuses, headers, bytes and lines.

use bytes::Bytes;
use http::{HeaderMap, Method, Request};
use http_body_util::{BodyExt, Full};
use serde_json::{Value, json};
use std::time::Duration;
use tower::ServiceExt;
use watchkeeper_apiserver::{ApiServer, Body, Builder};

pub const MAPS: &str = "/api/v1/namespaces/default/configmaps";
pub const PODS: &str = "/api/v1/namespaces/default/pods";
pub const DEPLOYMENTS: &str = "/apis/apps/v1/namespaces/default/deployments";

/// A server whose made-up values are the same in every run.
pub fn builder() -> Builder {
    let now = "2026-11-15T12:00:00Z".parse().expect("a time");
    ApiServer::builder().seed(1).wall_clock(now)
}

pub fn server() -> ApiServer {
    builder().build()
}

/// An answer that was read to its end.
#[derive(Debug)]
pub struct Reply {
    pub status: u16,
    pub headers: HeaderMap,
    pub bytes: Bytes,
}

impl Reply {
    pub fn text(&self) -> &str {
        std::str::from_utf8(&self.bytes).expect("text")
    }

    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.bytes).unwrap_or_else(|error| panic!("{error} in {:?}", self.text()))
    }

    /// The object or list, which there must be.
    pub fn ok(&self) -> Value {
        assert!((200..300).contains(&self.status), "{} {}", self.status, self.text());
        self.json()
    }

    /// Code, reason and message of a `Status`.
    pub fn failure(&self) -> (u16, String, String) {
        let status = self.json();
        assert_eq!(status["kind"], "Status", "{status}");
        assert_eq!(status["apiVersion"], "v1");
        assert_eq!(status["status"], "Failure");
        assert_eq!(status["code"], self.status);
        (self.status, text(&status["reason"]), text(&status["message"]))
    }

    pub fn revision(&self) -> u64 {
        revision(&self.ok())
    }

    pub fn names(&self) -> Vec<String> {
        let list = self.ok();
        list["items"].as_array().into_iter().flatten().map(|item| text(&item["metadata"]["name"])).collect()
    }
}

pub fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

pub fn revision(object: &Value) -> u64 {
    text(&object["metadata"]["resourceVersion"]).parse().unwrap_or_else(|_| panic!("a version in {object}"))
}

/// What a test does with a server.
pub trait Http {
    async fn send(&self, method: Method, path: &str, headers: &[(&str, &str)], body: Bytes) -> http::Response<Body>;

    async fn call(&self, method: Method, path: &str, headers: &[(&str, &str)], body: Bytes) -> Reply {
        let (parts, body) = self.send(method, path, headers, body).await.into_parts();
        let bytes = body.collect().await.expect("a body").to_bytes();
        Reply { status: parts.status.as_u16(), headers: parts.headers, bytes }
    }

    async fn get(&self, path: &str) -> Reply {
        self.call(Method::GET, path, &[], Bytes::new()).await
    }

    async fn get_as(&self, path: &str, accept: &str) -> Reply {
        self.call(Method::GET, path, &[("accept", accept)], Bytes::new()).await
    }

    async fn post(&self, path: &str, body: Value) -> Reply {
        self.call(Method::POST, path, &[("content-type", "application/json")], body.to_string().into()).await
    }

    async fn replace(&self, path: &str, body: Value) -> Reply {
        self.call(Method::PUT, path, &[("content-type", "application/json")], body.to_string().into()).await
    }

    async fn patch(&self, path: &str, media_type: &str, body: Value) -> Reply {
        self.call(Method::PATCH, path, &[("content-type", media_type)], body.to_string().into()).await
    }

    async fn merge(&self, path: &str, body: Value) -> Reply {
        self.patch(path, "application/merge-patch+json", body).await
    }

    async fn delete(&self, path: &str) -> Reply {
        self.call(Method::DELETE, path, &[], Bytes::new()).await
    }

    async fn delete_with(&self, path: &str, options: Value) -> Reply {
        self.call(Method::DELETE, path, &[("content-type", "application/json")], options.to_string().into()).await
    }

    /// A watch; it must have been opened.
    async fn watch(&self, path: &str) -> Watch {
        self.watch_as(path, "application/json").await
    }

    async fn watch_as(&self, path: &str, accept: &str) -> Watch {
        let response = self.send(Method::GET, path, &[("accept", accept)], Bytes::new()).await;
        assert_eq!(response.status(), 200);
        Watch { body: response.into_body(), rest: Vec::new() }
    }

    /// A config map with this name.
    async fn map(&self, name: &str) -> Value {
        self.post(MAPS, config_map(name)).await.ok()
    }
}

impl Http for ApiServer {
    async fn send(&self, method: Method, path: &str, headers: &[(&str, &str)], body: Bytes) -> http::Response<Body> {
        let mut request = Request::builder().method(method).uri(path);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        self.service().oneshot(request.body(Full::new(body)).expect("a request")).await.expect("an answer")
    }
}

pub fn config_map(name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}})
}

/// A watch, read line by line.
pub struct Watch {
    body: Body,
    rest: Vec<u8>,
}

impl Watch {
    /// The next event; none at the end of the stream.
    pub async fn next(&mut self) -> Option<Value> {
        loop {
            if let Some(end) = self.rest.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = self.rest.drain(..=end).collect();
                return Some(serde_json::from_slice(&line).expect("an event"));
            }
            match self.body.frame().await {
                None => {
                    assert!(self.rest.is_empty(), "the stream ended within a line");
                    return None;
                }
                Some(frame) => self.rest.extend_from_slice(&frame.expect("a frame").into_data().expect("data")),
            }
        }
    }

    /// The next event as `TYPE name@version`; the initial end is `BOOKMARK end@version`.
    pub async fn event(&mut self) -> String {
        shown(&self.next().await.expect("an event"))
    }

    /// What comes within a time, as texts.
    pub async fn events_for(&mut self, time: Duration) -> Vec<String> {
        let mut events = Vec::new();
        let deadline = tokio::time::Instant::now() + time;
        while let Ok(Some(event)) = tokio::time::timeout_at(deadline, self.next()).await {
            events.push(shown(&event));
        }
        events
    }

    /// Everything up to the end of the stream.
    pub async fn rest_of_it(&mut self) -> Vec<String> {
        let mut events = Vec::new();
        while let Some(event) = self.next().await {
            events.push(shown(&event));
        }
        events
    }
}

pub fn shown(event: &Value) -> String {
    let object = &event["object"];
    let metadata = &object["metadata"];
    let name = match metadata["annotations"]["k8s.io/initial-events-end"] == "true" {
        true => "end".to_owned(),
        false => text(&metadata["name"]),
    };
    format!("{} {name}@{}", text(&event["type"]), text(&metadata["resourceVersion"]))
}

pub fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

/// An event as [`Watch::event`] shows it.
pub fn event(event: &str, object: &Value) -> String {
    format!("{event} {}@{}", text(&object["metadata"]["name"]), revision(object))
}
