//! All groups, versions and resources in one document, which newer clients ask for: `APIGroupDiscoveryList`.
//!
//! Counterpart: `k8s.io/apiserver/pkg/endpoints/discovery/aggregated`.

use http::header::{CACHE_CONTROL, VARY};
use http::{HeaderMap, HeaderValue, StatusCode};
use serde::Serialize;

use super::answer::Answer;
use super::etag::ETag;
use crate::kinds::{Group, GroupVersion, Kind, Registry, Subresource};

const MEDIA_TYPE: &str = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct GroupList<'a> {
    kind: &'static str,
    api_version: &'static str,
    metadata: Metadata<'a>,
    items: Vec<Item<'a>>,
}

#[derive(Serialize)]
struct Metadata<'a> {
    #[serde(skip_serializing_if = "str::is_empty")]
    name: &'a str,
}

#[derive(Serialize)]
struct Item<'a> {
    metadata: Metadata<'a>,
    versions: Vec<Version<'a>>,
}

#[derive(Serialize)]
struct Version<'a> {
    version: &'a str,
    resources: Vec<Resource<'a>>,
    freshness: &'static str,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Resource<'a> {
    resource: &'a str,
    response_kind: ResponseKind<'a>,
    scope: &'static str,
    singular_resource: &'a str,
    verbs: &'a [String],
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    short_names: &'a [String],
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    categories: &'a [String],
    #[serde(skip_serializing_if = "Vec::is_empty")]
    subresources: Vec<Beneath<'a>>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Beneath<'a> {
    subresource: &'a str,
    response_kind: ResponseKind<'a>,
    verbs: &'a [String],
}

#[derive(Serialize)]
struct ResponseKind<'a> {
    group: &'a str,
    version: &'a str,
    kind: &'a str,
}

/// `/api`, if `core`, or `/apis`.
pub(super) fn answer(registry: &Registry, core: bool, headers: &HeaderMap) -> Answer {
    let groups = registry.groups();
    let shown = groups.iter().filter(|group| group.name.is_empty() == core);
    let document = GroupList {
        kind: "APIGroupDiscoveryList",
        api_version: "apidiscovery.k8s.io/v2",
        metadata: Metadata { name: "" },
        items: shown.map(item).collect(),
    };
    // Texts and lists of them always encode.
    let document = serde_json::to_vec(&document).unwrap_or_default();
    let etag = ETag::of(&document);
    let answer = match etag.is_exactly(headers) {
        true => Answer::empty(StatusCode::NOT_MODIFIED),
        false => Answer::json(StatusCode::OK, document).of_type(MEDIA_TYPE),
    };
    etag.on(answer)
        .with_header(CACHE_CONTROL, HeaderValue::from_static("public"))
        .with_header(VARY, HeaderValue::from_static("Accept"))
}

fn item(group: &Group) -> Item<'_> {
    let versions = group.versions.iter().map(|version| Version {
        version: &version.name,
        resources: version.kinds.iter().filter_map(|kind| resource(kind, version)).collect(),
        freshness: "Current",
    });
    Item { metadata: Metadata { name: &group.name }, versions: versions.collect() }
}

fn resource<'a>(kind: &'a Kind, version: &'a GroupVersion) -> Option<Resource<'a>> {
    let served = kind.version(&version.name)?;
    Some(Resource {
        resource: &kind.plural,
        response_kind: own_kind(kind, version),
        scope: if kind.namespaced { "Namespaced" } else { "Cluster" },
        singular_resource: &kind.singular,
        verbs: &served.verbs,
        short_names: &kind.short_names,
        categories: &kind.categories,
        subresources: served.subresources.iter().map(|subresource| beneath(kind, version, subresource)).collect(),
    })
}

fn beneath<'a>(kind: &'a Kind, version: &'a GroupVersion, subresource: &'a Subresource) -> Beneath<'a> {
    let entry = &subresource.entry;
    let response_kind = match entry.group.is_empty() && entry.version.is_empty() && kind.custom {
        true => own_kind(kind, version),
        false => ResponseKind { group: &entry.group, version: &entry.version, kind: &entry.kind },
    };
    Beneath { subresource: &subresource.name, response_kind, verbs: &subresource.verbs }
}

/// Built-in kinds leave out the group and version that they are listed in, custom ones do not.
fn own_kind<'a>(kind: &'a Kind, version: &'a GroupVersion) -> ResponseKind<'a> {
    match kind.custom {
        true => ResponseKind { group: &kind.group, version: &version.name, kind: &kind.kind },
        false => ResponseKind { group: "", version: "", kind: &kind.kind },
    }
}
