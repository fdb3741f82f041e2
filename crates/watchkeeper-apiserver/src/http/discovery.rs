//! Which groups, versions and resources there are: the documents that clients had before aggregated discovery.

use http::StatusCode;
use serde::Serialize;

use super::answer::Answer;
use crate::failure::Failure;
use crate::kinds::{self, Entry, Kind, Registry, Version};

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Versions<'a> {
    kind: &'static str,
    versions: [&'static str; 1],
    #[serde(rename = "serverAddressByClientCIDRs")]
    addresses: [Address<'a>; 1],
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Address<'a> {
    #[serde(rename = "clientCIDR")]
    client_cidr: &'static str,
    server_address: &'a str,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct GroupList {
    kind: &'static str,
    api_version: &'static str,
    groups: Vec<Group>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Group {
    #[serde(skip_serializing_if = "Option::is_none")]
    kind: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    api_version: Option<&'static str>,
    name: String,
    versions: Vec<GroupVersion>,
    preferred_version: GroupVersion,
}

#[derive(Serialize, Clone)]
#[serde(rename_all = "camelCase")]
struct GroupVersion {
    group_version: String,
    version: String,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ResourceList {
    kind: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    api_version: Option<&'static str>,
    group_version: String,
    resources: Vec<Entry>,
}

/// `/api`
pub(super) fn core_versions(host: &str) -> Answer {
    answer(&Versions {
        kind: "APIVersions",
        versions: ["v1"],
        addresses: [Address { client_cidr: "0.0.0.0/0", server_address: host }],
    })
}

/// `/apis`
pub(super) fn groups(registry: &Registry) -> Answer {
    answer(&GroupList { kind: "APIGroupList", api_version: "v1", groups: all_groups(registry) })
}

/// `/apis/<group>`
pub(super) fn group(registry: &Registry, name: &str) -> Answer {
    match all_groups(registry).into_iter().find(|group| group.name == name) {
        Some(group) => answer(&Group { kind: Some("APIGroup"), api_version: Some("v1"), ..group }),
        None => Answer::page_not_found(),
    }
}

/// `/api/v1`, `/apis/<group>/<version>`
pub(super) fn resources(registry: &Registry, group: &str, version: &str) -> Answer {
    let Some(group) = registry.groups().into_iter().find(|known| known.name == group) else {
        return Answer::page_not_found();
    };
    let Some(version) = group.versions.iter().find(|known| known.name == version) else {
        return if group.custom { Answer::page_not_found() } else { Failure::no_such_resource().into() };
    };
    let served = version.kinds.iter().filter_map(|kind| Some((kind, kind.version(&version.name)?)));
    answer(&ResourceList {
        kind: "APIResourceList",
        // The core group's list has none, for reasons lost in time.
        api_version: (!group.name.is_empty()).then_some("v1"),
        group_version: version.api_version.clone(),
        resources: served.flat_map(|(kind, version)| entries(kind, version)).collect(),
    })
}

fn entries(kind: &Kind, version: &Version) -> Vec<Entry> {
    let entry = Entry {
        name: kind.plural.clone(),
        singular_name: kind.singular.clone(),
        namespaced: kind.namespaced,
        kind: kind.kind.clone(),
        verbs: version.verbs.clone(),
        short_names: kind.short_names.clone(),
        categories: kind.categories.clone(),
        storage_version_hash: version.storage_version_hash.clone(),
        ..Entry::default()
    };
    let subresources = version.subresources.iter().map(|subresource| subresource.entry.clone());
    std::iter::once(entry).chain(subresources).collect()
}

fn all_groups(registry: &Registry) -> Vec<Group> {
    let groups = registry.groups().into_iter().filter(|group| !group.name.is_empty());
    let shown = groups.filter_map(|group| {
        let version =
            |version: kinds::GroupVersion| GroupVersion { group_version: version.api_version, version: version.name };
        let versions: Vec<GroupVersion> = group.versions.into_iter().map(version).collect();
        let preferred_version = versions.first()?.clone();
        Some(Group { kind: None, api_version: None, name: group.name, versions, preferred_version })
    });
    shown.collect()
}

fn answer(document: &impl Serialize) -> Answer {
    // Texts, numbers and lists of them always encode.
    Answer::json(StatusCode::OK, serde_json::to_vec(document).unwrap_or_default())
}
