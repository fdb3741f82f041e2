//! Who owns which fields, after each of a script of requests: on a real kube-apiserver v1.36.4, and here.
//!
//! `data/ownership.jsonl` has a request and its answer on each line; `data/README.md` says how it was made. Managed fields
//! are compared as bytes, without times; failures as a whole.

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use serde::Deserialize;
use serde_json::{Value, json};
use tower::ServiceExt;
use watchkeeper_apiserver::{ApiServer, Controllers, CustomResource};

#[derive(Deserialize)]
struct Recorded {
    method: String,
    path: String,
    r#type: String,
    agent: String,
    body: String,
    status: u16,
    /// The bytes of `metadata.managedFields`.
    managed: Option<String>,
    /// Whether an entry has no time.
    #[serde(default)]
    timeless: bool,
    /// The object, if it is compared, without what differs in every run.
    object: Option<Value>,
    /// A failure.
    answer: Option<Value>,
    skip: Option<String>,
}

/// The bytes of the managed fields, without times; and whether an entry has none.
fn managed(body: &str) -> Option<(String, bool)> {
    const NAME: &str = "\"managedFields\":";
    let start = body.find(NAME)? + NAME.len();
    let mut values = serde_json::Deserializer::from_str(&body[start..]).into_iter::<Value>();
    let entries = values.next()?.expect("managed fields");
    let text = &body[start..start + values.byte_offset()];
    let entries = entries.as_array().expect("a list");
    let timeless = entries.iter().any(|entry| entry.get("time").is_none());
    let text = entries.iter().filter_map(|entry| entry["time"].as_str()).fold(text.to_owned(), |text, time| {
        text.replace(&format!("\"time\":\"{time}\","), "").replace(&format!(",\"time\":\"{time}\""), "")
    });
    Some((text, timeless))
}

/// An object without what differs in every run.
fn bare(mut object: Value) -> Value {
    if let Some(metadata) = object["metadata"].as_object_mut() {
        for field in ["uid", "resourceVersion", "creationTimestamp", "generation", "managedFields"] {
            metadata.remove(field);
        }
    }
    object
}

/// A failure with its causes in one order: Go has none.
fn sorted(mut failure: Value) -> Value {
    if let Some(causes) = failure.pointer_mut("/details/causes").and_then(Value::as_array_mut) {
        causes.sort_by_key(|cause| (cause["message"].to_string(), cause["field"].to_string()));
    }
    failure
}

#[tokio::test(start_paused = true)]
async fn fields_belong_to_whom_they_belong_to_on_a_kube_apiserver() {
    // The real one had no controllers beside it.
    let server = ApiServer::builder().controllers(Controllers::Elsewhere).build();
    let foos = CustomResource::namespaced("ownership.test", "v1", "Foo", "foos").version("v1beta1").with_status();
    server.register(foos).expect("a kind");
    server
        .create(json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "ownership"}}))
        .expect("a namespace");
    let mut compared = 0;
    for line in include_str!("../data/ownership.jsonl").lines() {
        let recorded: Recorded = serde_json::from_str(line).expect("a recorded request");
        let request = http::Request::builder()
            .method(recorded.method.as_str())
            .uri(&recorded.path)
            .header("content-type", &recorded.r#type)
            .header("user-agent", &recorded.agent)
            .body(Full::new(Bytes::from(recorded.body.clone())))
            .expect("a request");
        let (parts, body) = server.service().oneshot(request).await.expect("an answer").into_parts();
        let body = body.collect().await.expect("a body").to_bytes();
        let body = std::str::from_utf8(&body).expect("text");
        if recorded.skip.is_some() {
            continue;
        }
        let shown = format!("{} {} {}", recorded.method, recorded.path, recorded.body);
        assert_eq!(parts.status, recorded.status, "{shown}: {body}");
        let answer: Value = serde_json::from_str(body).expect("JSON");
        match &recorded.answer {
            Some(failure) => assert_eq!(sorted(answer), sorted(failure.clone()), "{shown}"),
            None => {
                let (text, timeless) = managed(body).unzip();
                assert_eq!(text, recorded.managed, "{shown}");
                assert_eq!(timeless.unwrap_or_default(), recorded.timeless, "{shown}");
                if let Some(object) = &recorded.object {
                    assert_eq!(&bare(answer), object, "{shown}");
                }
            }
        }
        compared += 1;
    }
    assert!(compared >= 120, "{compared}");
}
