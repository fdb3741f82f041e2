//! The answers of a real kube-apiserver v1.36.4 to scripts of requests, and ours to the same.
//!
//! `data/recorded.jsonl`, `data/typed.jsonl.gz` and `data/refused.jsonl.gz` have a request and its answer on each line; `data/README.md` says how
//! they were made. What differs from run to run is masked: versions, uids, times, tokens, addresses and ports. Lines with
//! `skip` say why they are not compared.

use std::collections::BTreeMap;
use std::io::Read;

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use serde::Deserialize;
use serde_json::{Map, Value};
use tower::ServiceExt;
use watchkeeper_apiserver::{AccessRules, ApiServer, Controllers, CustomResource};

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
    #[serde(default)]
    warnings: Vec<String>,
    skip: Option<String>,
}

/// A value without what is different in every run, and without what this server does not keep.
fn masked(value: Value, key: &str) -> Value {
    match value {
        Value::Object(map) => {
            let kept = map.into_iter().filter(|(key, _)| key != "managedFields");
            Value::Object(kept.map(|(key, value)| (key.clone(), masked(value, &key))).collect::<Map<_, _>>())
        }
        Value::Array(values) => values.into_iter().map(|value| masked(value, key)).collect(),
        Value::Number(_) if matches!(key, "nodePort" | "healthCheckNodePort") => "N".into(),
        Value::String(text) => match key {
            "clusterIP" | "clusterIPs" if !matches!(text.as_str(), "" | "None") => "A".into(),
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
        window.len() == pattern.len()
            && window.iter().zip(pattern.bytes()).all(|(byte, expected)| match expected {
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

/// The events of a watch, a document, or a text.
fn parsed(body: &str) -> Value {
    if body.starts_with("{\"type\":") {
        return body.lines().map(|line| masked(serde_json::from_str(line).expect("an event"), "")).collect();
    }
    serde_json::from_str(body).map_or_else(|_| body.trim().into(), |document| masked(document, ""))
}

/// Sends what was sent, and compares what comes back. All lines that differ are shown. How many were compared.
async fn replay(server: &ApiServer, lines: &str, warnings: bool) -> usize {
    let mut saved: BTreeMap<String, String> = BTreeMap::new();
    let mut compared = 0;
    let mut differences = Vec::new();
    for line in lines.lines() {
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
        let content_type = parts.headers.get("content-type").map_or("", |value| value.to_str().unwrap_or("?"));
        let told = parts.headers.get_all("warning").into_iter();
        let told: Vec<String> = told.map(|value| String::from_utf8_lossy(value.as_bytes()).into_owned()).collect();
        let same = parts.status == recorded.status
            && content_type == recorded.content_type
            && parsed(body) == recorded.answer
            && (!warnings || told == recorded.warnings);
        if !same {
            differences.push(format!(
                "{} {} {}\n  expected {} {:?} {}\n  got      {} {told:?} {}",
                recorded.method,
                recorded.path,
                recorded.body,
                recorded.status,
                recorded.warnings,
                recorded.answer,
                parts.status,
                parsed(body)
            ));
        }
    }
    assert!(differences.is_empty(), "{} of {compared} differ:\n{}", differences.len(), differences.join("\n"));
    compared
}

/// A server without controllers, as the real one was.
fn server() -> ApiServer {
    let server = ApiServer::builder().controllers(Controllers::Elsewhere).build();
    let foos = CustomResource::namespaced("wks1.test", "v1", "Foo", "foos").version("v1beta1").with_status();
    server.register(foos).expect("a kind");
    server
}

#[tokio::test(start_paused = true)]
async fn answers_are_those_of_a_kube_apiserver() {
    let compared = replay(&server(), include_str!("../data/recorded.jsonl"), false).await;
    assert!(compared >= 190, "{compared}");
}

#[tokio::test(start_paused = true)]
async fn objects_are_read_filled_in_and_merged_as_by_a_kube_apiserver() {
    let compared = replay(&server(), &unpacked(include_bytes!("../data/typed.jsonl.gz")), true).await;
    assert!(compared >= 230, "{compared}");
}

#[tokio::test(start_paused = true)]
async fn specs_are_refused_as_by_a_kube_apiserver() {
    let compared = replay(&server(), &unpacked(include_bytes!("../data/refused.jsonl.gz")), true).await;
    assert!(compared >= 75, "{compared}");
}

fn unpacked(packed: &[u8]) -> String {
    let mut lines = String::new();
    flate2::read::GzDecoder::new(packed).read_to_string(&mut lines).expect("packed lines");
    lines
}

/// Bindings, evictions, scales, deletions, reviews, and what is forbidden: of a server without controllers, as the real one was.
#[tokio::test(start_paused = true)]
async fn calls_and_refusals_are_those_of_a_kube_apiserver() {
    let rules = serde_json::json!({"users": [
        {"name": "admin", "uid": "admin-uid", "token": "admin-token", "groups": ["system:masters"]},
        {"name": "nobody", "uid": "nobody-uid", "token": "nobody-token"},
    ]});
    let rules: AccessRules = serde_json::from_value(rules).expect("rules");
    let server = ApiServer::builder().controllers(Controllers::Elsewhere).rules(rules).build();
    let compared = replay(&server, include_str!("../data/life.jsonl"), false).await;
    assert!(compared >= 110, "{compared}");
}
