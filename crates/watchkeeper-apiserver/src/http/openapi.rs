//! `/openapi/v2` and `/openapi/v3`: which types there are, for clients that explain and check objects.
//!
//! Counterpart: `k8s.io/kube-openapi/pkg/handler` and `handler3`.

use http::header::{ACCEPT, CACHE_CONTROL, EXPIRES, LOCATION, VARY};
use http::{HeaderMap, HeaderValue, StatusCode};

use super::answer::Answer;
use super::etag::ETag;
use crate::server::Inner;

const JSON: &str = "application/json";
const PROTOBUF: &str = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf";
/// The name that clients ask with: it is no well-formed media type, and so never an answer's.
const OLD_PROTOBUF: &str = "application/com.github.proto-openapi.spec.v2@v1.0+protobuf";

/// `/openapi/v3`. A kube-apiserver calls it text, and looks at no `Accept` header.
pub(super) fn index(server: &Inner) -> Answer {
    Answer::text(StatusCode::OK, server.openapi.index(&server.registry))
}

/// `/openapi/v3/<path>`. With the right hash it stays the same for ever; with a wrong one the client is sent on.
pub(super) fn document(server: &Inner, path: &str, query: &str, headers: &HeaderMap) -> Answer {
    let Some(document) = server.openapi.find(&server.registry, path) else {
        return Answer::empty(StatusCode::NOT_FOUND);
    };
    if !accepts(headers, &[JSON]) {
        return varying(Answer::empty(StatusCode::NOT_ACCEPTABLE));
    }
    let hash = form_urlencoded::parse(query.as_bytes()).find(|(name, _)| name == "hash").map(|(_, value)| value);
    let answer = match hash.as_deref() {
        None | Some("") => read(document.bytes, JSON, &document.etag, headers),
        Some(hash) if hash == document.etag.as_str() => {
            let expires = server.clock.timestamp() + jiff::Span::new().hours(365 * 24);
            let expires = expires.strftime("%a, %d %b %Y %H:%M:%S UTC").to_string();
            let answer = read(document.bytes, JSON, &document.etag, headers)
                .with_header(CACHE_CONTROL, HeaderValue::from_static("public, immutable"));
            match HeaderValue::try_from(expires) {
                Ok(expires) => answer.with_header(EXPIRES, expires),
                Err(_) => answer,
            }
        }
        Some(_) => {
            let address = format!("/openapi/v3/{path}?hash={}", document.etag.as_str());
            let answer = Answer::empty(StatusCode::MOVED_PERMANENTLY).of_type(JSON);
            match HeaderValue::try_from(address) {
                Ok(address) => answer.with_header(LOCATION, address),
                Err(_) => answer,
            }
        }
    };
    varying(document.etag.on(answer))
}

/// `/openapi/v2`, as JSON or as protobuf.
pub(super) fn older(server: &Inner, headers: &HeaderMap) -> Answer {
    let Some(media_type) = chosen(headers, &[JSON, PROTOBUF, OLD_PROTOBUF]) else {
        return varying(Answer::empty(StatusCode::NOT_ACCEPTABLE));
    };
    let older = server.openapi.older(&server.registry);
    let (bytes, media_type) = match media_type {
        JSON => (older.json, JSON),
        _ => (older.protobuf, PROTOBUF),
    };
    varying(older.etag.on(read(bytes, media_type, &older.etag, headers)))
}

/// The document, unless the client has it.
fn read(bytes: bytes::Bytes, media_type: &'static str, etag: &ETag, headers: &HeaderMap) -> Answer {
    match etag.is_among(headers) {
        true => Answer::empty(StatusCode::NOT_MODIFIED),
        false => Answer::parts(StatusCode::OK, vec![bytes]).of_type(media_type),
    }
}

fn varying(answer: Answer) -> Answer {
    answer.with_header(VARY, HeaderValue::from_static("Accept"))
}

fn accepts(headers: &HeaderMap, known: &[&'static str]) -> bool {
    chosen(headers, known).is_some()
}

/// The first of the client's media types that is known; the first known one, if it does not care.
fn chosen(headers: &HeaderMap, known: &[&'static str]) -> Option<&'static str> {
    let mut accepted: Vec<(&str, f32)> = headers
        .get_all(ACCEPT)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .map(|clause| {
            let mut parts = clause.split(';').map(str::trim);
            let media_type = parts.next().unwrap_or_default();
            let quality = parts.find_map(|part| part.strip_prefix("q=")).map_or(1.0, |q| q.parse().unwrap_or(0.0));
            (media_type, quality)
        })
        .filter(|(media_type, _)| !media_type.is_empty())
        .collect();
    if accepted.is_empty() {
        return known.first().copied();
    }
    accepted.sort_by(|a, b| b.1.total_cmp(&a.1));
    accepted.into_iter().find_map(|(media_type, _)| match media_type {
        "*/*" | "application/*" => known.first().copied(),
        media_type => known.iter().find(|known| **known == media_type).copied(),
    })
}
