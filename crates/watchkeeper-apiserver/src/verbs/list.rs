//! `GET` of a collection. Which state is shown is decided by version, match, limit and continue together.
//!
//! Counterpart: `ShouldDelegateList` in `k8s.io/apiserver/pkg/storage/cacher/delegator`.

use std::sync::Arc;

use bytes::Bytes;
use http::StatusCode;

use super::continue_token::ContinueToken;
use super::{Call, reach};
use crate::failure::Failure;
use crate::http::accept::Representation;
use crate::http::answer::Answer;
use crate::http::options::{Options, revision};
use crate::kinds::Kind;
use crate::storage::{Shape, Stored};
use crate::validation::quoted;

/// Which state a list shows.
#[derive(Debug, Clone, PartialEq, Eq)]
enum At {
    /// The present one.
    Now,
    /// The present one, once it is at least at this revision.
    NotOlderThan(u64),
    /// The one of this revision.
    Exact(u64),
    /// What a token says.
    Token(ContinueToken),
}

/// What a list document says beside its items.
pub(super) struct Page {
    pub(super) revision: u64,
    pub(super) continue_token: String,
    pub(super) remaining: Option<usize>,
}

pub(crate) async fn run(mut call: Call) -> Result<Answer, Failure> {
    if call.representation == (Representation::Metadata { list: false }) {
        return Err(Failure::wrong_representation(format!(
            "you requested PartialObjectMetadata, but the requested object is a list (*{})",
            call.go_type(&call.kind.list_kind)
        )));
    }
    let (page, items) = select(&mut call).await?;
    shown(&call, &page, &items)
}

/// An answer with a list of objects.
pub(super) fn shown(call: &Call, page: &Page, items: &[Arc<Stored>]) -> Result<Answer, Failure> {
    let parts = match call.table()? {
        Some(table) => table.list(&call.kind, &metadata(page), items, call.server.clock.timestamp()),
        None => document(&call.kind, &call.shape(), page, items),
    };
    Ok(Answer::parts(StatusCode::OK, parts))
}

/// The objects that a list shows, or that a deletion of a collection deletes.
pub(super) async fn select(call: &mut Call) -> Result<(Page, Vec<Arc<Stored>>), Failure> {
    call.options = std::mem::take(&mut call.options).validated()?;
    let filter = call.filter()?;
    let at = At::of(&call.options)?;
    if let At::NotOlderThan(revision)
    | At::Exact(revision)
    | At::Token(ContinueToken { revision: Some(revision), .. }) = at
    {
        reach(&call.server, revision).await?;
    }
    let (start, exact) = match &at {
        At::Now | At::NotOlderThan(_) => (String::new(), None),
        At::Exact(revision) => (String::new(), Some(*revision)),
        At::Token(token) => (format!("{}{}", filter.prefix(), token.start), token.revision),
    };
    let snapshot = call.server.storage.list(&call.kind, filter.prefix(), &start, exact).map_err(|_| match &at {
        At::Token(token) => Failure::expired_continue(token.inconsistent().encode()),
        _ => Failure::expired("The resourceVersion for the provided list is too old."),
    })?;
    // Version 0 means anything that is at hand, and all of it.
    let limit = if call.options.resource_version == "0" { 0 } else { call.options.limit };
    let mut items: Vec<Arc<Stored>> = Vec::new();
    let mut page = Page { revision: snapshot.revision, continue_token: String::new(), remaining: None };
    let mut objects = snapshot.objects;
    // A name in a namespace is one key: nothing can come behind it.
    if let Some(name) = filter.fields.exact("metadata.name")
        && (call.namespace.is_some() || !call.kind.namespaced)
    {
        objects.retain(|object| object.name() == name);
    }
    let mut rest = objects.into_iter();
    while let Some(object) = rest.next() {
        if !filter.matches(&object) {
            continue;
        }
        items.push(object);
        // There may be more as long as there is anything behind, whether it matches or not.
        if limit > 0 && items.len() == limit && rest.len() > 0 {
            let last = items.last().map(|last| last.key()).unwrap_or_default();
            let last = last.strip_prefix(filter.prefix()).unwrap_or(last);
            page.continue_token = ContinueToken::after(last, snapshot.revision).encode();
            page.remaining = filter.is_empty().then_some(rest.len());
            break;
        }
    }
    Ok((page, items))
}

impl At {
    fn of(options: &Options) -> Result<Self, Failure> {
        let version = options.resource_version.as_str();
        if !options.continue_token.is_empty() {
            let token = ContinueToken::decode(&options.continue_token)
                .map_err(|error| Failure::bad_request(format!("invalid continue token: {error}")))?;
            return match version {
                "" | "0" => Ok(Self::Token(token)),
                _ => Err(Failure::bad_request("specifying resource version is not allowed when using continue")),
            };
        }
        if matches!(version, "" | "0") {
            return Ok(Self::Now);
        }
        let revision = revision(version).map_err(|error| {
            let value = quoted(version);
            Failure::bad_request(format!("invalid resource version: resourceVersion: Invalid value: {value}: {error}"))
        })?;
        // A limit with a version, and no word on how to match it, has always meant that very version.
        match options.resource_version_match.as_str() {
            "Exact" => Ok(Self::Exact(revision)),
            "" if options.limit > 0 => Ok(Self::Exact(revision)),
            _ => Ok(Self::NotOlderThan(revision)),
        }
    }
}

/// The parts of a list document, in the order in which a kube-apiserver writes it. Objects are not copied.
fn document(kind: &Arc<Kind>, shape: &Shape, page: &Page, items: &[Arc<Stored>]) -> Vec<Bytes> {
    let version = shape.version_of(kind);
    let mut parts: Vec<Bytes> = Vec::with_capacity(items.len() * 2 + 2);
    let custom = kind.custom && !shape.partial;
    let (head, tail) = match (shape.partial, kind.custom) {
        (true, _) => {
            let metadata = metadata(page);
            // Go's list without items has none here, and writes it so.
            let (open, close) = if items.is_empty() { ("null", "") } else { ("[", "]") };
            let head = format!(
                r#"{{"kind":"PartialObjectMetadataList","apiVersion":"meta.k8s.io/v1","metadata":{metadata},"items":{open}"#
            );
            (head, format!("{close}}}\n"))
        }
        (false, false) => {
            let metadata = metadata(page);
            let (list, api_version) = (&kind.list_kind, &version.api_version);
            let head = format!(r#"{{"kind":"{list}","apiVersion":"{api_version}","metadata":{metadata},"items":["#);
            (head, "]}\n".to_owned())
        }
        (false, true) => {
            let metadata = sorted_metadata(page);
            let tail = format!("],\"kind\":\"{}\",\"metadata\":{metadata}}}\n", kind.list_kind);
            (format!(r#"{{"apiVersion":"{}","items":["#, version.api_version), tail)
        }
    };
    parts.push(head.into());
    for (i, object) in items.iter().enumerate() {
        if i > 0 {
            parts.push(Bytes::from_static(b","));
        }
        if custom || shape.partial {
            parts.push(shape.apply(kind, object));
            continue;
        }
        // Items of built-in kinds have no kind and no apiVersion: the object without its beginning.
        parts.push(Bytes::from_static(b"{"));
        parts.push(object.json_as(kind).slice(kind.storage_version().prefix.len()..));
    }
    parts.push(tail.into());
    parts
}

fn metadata(page: &Page) -> String {
    let continues = match page.continue_token.as_str() {
        "" => String::new(),
        token => format!(r#","continue":"{token}""#),
    };
    let remaining = page.remaining.map(|count| format!(r#","remainingItemCount":{count}"#)).unwrap_or_default();
    format!(r#"{{"resourceVersion":"{}"{continues}{remaining}}}"#, page.revision)
}

/// Lists of custom resources have sorted keys, and always a continue.
fn sorted_metadata(page: &Page) -> String {
    let remaining = page.remaining.map(|count| format!(r#","remainingItemCount":{count}"#)).unwrap_or_default();
    format!(r#"{{"continue":"{}"{remaining},"resourceVersion":"{}"}}"#, page.continue_token, page.revision)
}
