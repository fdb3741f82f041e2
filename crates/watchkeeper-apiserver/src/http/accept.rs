//! Which representation a client wants.

use http::HeaderMap;
use http::header::{ACCEPT, ACCEPT_ENCODING};

use crate::failure::Failure;

/// How objects are shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Representation {
    /// As they are.
    Whole,
    /// Only their metadata: `as=PartialObjectMetadata`, or `...List`.
    Metadata { list: bool },
}

/// The first of the `Accept` header's media types that this server has, as a kube-apiserver chooses.
pub(crate) fn representation(headers: &HeaderMap) -> Result<Representation, Failure> {
    let accepted: Vec<&str> = headers.get_all(ACCEPT).iter().filter_map(|value| value.to_str().ok()).collect();
    if accepted.iter().all(|value| value.trim().is_empty()) {
        return Ok(Representation::Whole);
    }
    let mut clauses = accepted.iter().flat_map(|value| value.split(',')).filter_map(clause).peekable();
    if clauses.peek().is_none() {
        return Err(Failure::not_acceptable());
    }
    clauses.flatten().next().ok_or_else(Failure::unknown_representation)
}

/// Whether the client can read gzip.
pub(crate) fn accepts_gzip(headers: &HeaderMap) -> bool {
    let accepted = headers.get_all(ACCEPT_ENCODING).iter().filter_map(|value| value.to_str().ok());
    accepted.flat_map(|value| value.split(',')).any(|coding| {
        let mut parts = coding.split(';').map(str::trim);
        let is_gzip = parts.next().is_some_and(|name| name.eq_ignore_ascii_case("gzip"));
        is_gzip && !parts.any(|weight| matches!(weight, "q=0" | "q=0.0" | "q=0.00" | "q=0.000"))
    })
}

/// One media type with its parameters: nothing if the server has it not, and else the representation, if it has that.
fn clause(clause: &str) -> Option<Option<Representation>> {
    let mut parts = clause.split(';').map(str::trim);
    let media_type = parts.next()?;
    if !["application/json", "*/*"].iter().any(|known| media_type.eq_ignore_ascii_case(known)) {
        return None;
    }
    let (mut shown_as, mut group, mut version) = ("", "", "");
    for (name, value) in parts.filter_map(|parameter| parameter.split_once('=')) {
        match name.trim() {
            "as" => shown_as = value.trim(),
            "g" => group = value.trim(),
            "v" => version = value.trim(),
            _ => {}
        }
    }
    Some(match (shown_as, group, version) {
        ("", _, _) => Some(Representation::Whole),
        ("PartialObjectMetadata", "meta.k8s.io", "v1") => Some(Representation::Metadata { list: false }),
        ("PartialObjectMetadataList", "meta.k8s.io", "v1") => Some(Representation::Metadata { list: true }),
        // Tables come later; until then a client that also takes plain JSON gets that.
        _ => None,
    })
}
