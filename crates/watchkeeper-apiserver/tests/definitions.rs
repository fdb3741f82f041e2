//! The answers of a real kube-apiserver v1.36.4 to requests about CustomResourceDefinitions and their objects, and ours to
//! the same: `data/crds.jsonl.gz`.
//!
//! What differs from run to run is masked: versions, uids, times and tokens. Lines with `skip` say why they are not
//! compared.

use std::collections::BTreeMap;
use std::io::Read;

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use serde::Deserialize;
use serde_json::{Map, Value};
use tower::ServiceExt;
use watchkeeper_apiserver::ApiServer;

#[derive(Deserialize)]
struct Recorded {
    method: String,
    path: String,
    headers: BTreeMap<String, String>,
    body: String,
    /// A name for a part of the answer, which later requests use.
    save: Option<(String, String)>,
    status: u16,
    content_type: String,
    #[serde(default)]
    answer: Value,
    /// The texts of the `Warning` headers, without their number.
    #[serde(default)]
    warnings: Vec<String>,
    skip: Option<String>,
}

#[tokio::test(start_paused = true)]
async fn definitions_and_their_objects_are_those_of_a_kube_apiserver() {
    // Tables show ages: it was recorded on that day.
    let now = "2026-11-16T15:00:00Z".parse().expect("a time");
    let server = ApiServer::builder().wall_clock(now).build();
    let mut saved: BTreeMap<String, String> = BTreeMap::new();
    let (mut compared, mut differences) = (0, Vec::new());
    let mut record = String::new();
    let packed = include_bytes!("../data/crds.jsonl.gz").as_slice();
    flate2::read::GzDecoder::new(packed).read_to_string(&mut record).expect("a packed record");
    for line in record.lines() {
        let recorded: Recorded = serde_json::from_str(line).expect("a recorded request");
        let filled = |text: &str| saved.iter().fold(text.to_owned(), |text, (name, value)| text.replace(name, value));
        let mut request = http::Request::builder().method(recorded.method.as_str()).uri(filled(&recorded.path));
        for (name, value) in &recorded.headers {
            request = request.header(name, value);
        }
        let request = request.body(Full::new(Bytes::from(filled(&recorded.body)))).expect("a request");
        let (parts, body) = server.service().oneshot(request).await.expect("an answer").into_parts();
        let body = body.collect().await.expect("a body").to_bytes();
        let body = std::str::from_utf8(&body).expect("text");
        if let Some((name, pointer)) = &recorded.save {
            let document: Value = serde_json::from_str(body).unwrap_or_default();
            let value = document.pointer(pointer).and_then(Value::as_str).unwrap_or("?");
            saved.insert(name.clone(), value.to_owned());
        }
        if recorded.skip.is_some() {
            continue;
        }
        compared += 1;
        let warnings = parts.headers.get_all("warning").iter().filter_map(|value| value.to_str().ok());
        let warnings: Vec<&str> = warnings.filter_map(|value| value.strip_prefix("299 - ")).collect();
        let answer = serde_json::from_str(body).map_or_else(|_| body.trim().into(), |body| masked(body, ""));
        let is_same = parts.status == recorded.status
            && parts.headers["content-type"] == recorded.content_type
            && answer == masked(recorded.answer.clone(), "")
            && warnings == recorded.warnings;
        if !is_same {
            differences.push(format!(
                "{} {} {}\n  expected {} {:?} {}\n  got      {} {warnings:?} {answer}",
                recorded.method,
                recorded.path,
                recorded.body,
                recorded.status,
                recorded.warnings,
                recorded.answer,
                parts.status.as_u16(),
            ));
        }
    }
    assert!(differences.is_empty(), "{} of {compared} differ:\n{}", differences.len(), differences.join("\n"));
    assert!(compared >= 400, "{compared}");
}

/// A value without what is different in every run.
fn masked(value: Value, key: &str) -> Value {
    match value {
        Value::Object(map) => {
            let kept = map.into_iter().filter(|(key, _)| key != "managedFields");
            Value::Object(kept.map(|(key, value)| (key.clone(), masked(value, &key))).collect::<Map<_, _>>())
        }
        Value::Array(values) => {
            let mut values: Vec<Value> = values.into_iter().map(|value| masked(value, "")).collect();
            // A kube-apiserver lists custom kinds in any order.
            if key == "resources" {
                values.sort_by_key(|entry| entry["name"].as_str().map(str::to_owned));
            }
            Value::Array(values)
        }
        Value::String(text) => match key {
            "resourceVersion" if text.bytes().all(|b| b.is_ascii_digit()) && !text.is_empty() => "R".into(),
            "continue" if !text.is_empty() => "C".into(),
            _ => masked_text(&text).into(),
        },
        other => other,
    }
}

/// A text with `U` for each uid in it, and `T` for each time.
fn masked_text(text: &str) -> String {
    let fits = |window: &[u8], pattern: &str| {
        window.iter().zip(pattern.bytes()).all(|(byte, expected)| match expected {
            b'h' => byte.is_ascii_hexdigit(),
            b'd' => byte.is_ascii_digit(),
            expected => *byte == expected,
        })
    };
    let patterns = [("hhhhhhhh-hhhh-hhhh-hhhh-hhhhhhhhhhhh", "U"), ("dddd-dd-ddTdd:dd:ddZ", "T")];
    let mut masked = String::new();
    let mut rest = text;
    'text: while let Some(c) = rest.chars().next() {
        for (pattern, mask) in patterns {
            if rest.as_bytes().get(..pattern.len()).is_some_and(|window| fits(window, pattern)) {
                masked.push_str(mask);
                rest = &rest[pattern.len()..];
                continue 'text;
            }
        }
        masked.push(c);
        rest = &rest[c.len_utf8()..];
    }
    masked
}
