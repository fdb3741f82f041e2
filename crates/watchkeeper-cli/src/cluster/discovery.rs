//! What does a server have? Asked for in one document where the server has that, and else group by group.

use futures::stream::{self, StreamExt};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::APIResource;
use kube_client::core::ApiResource;
use kube_client::core::discovery::v2::{APIGroupDiscovery, APIGroupDiscoveryList};

use super::{Access, Resource};
use crate::failure::{Exit, Failure, Outcome};

/// How many groups are asked for at once.
const AT_ONCE: usize = 8;

/// The kinds of all other groups, and the groups of which nothing could be learnt.
pub(super) struct Groups {
    pub(super) resources: Vec<Resource>,
    pub(super) failed: Vec<(String, Failure)>,
}

/// The kinds of the core group, in the server's order.
pub(super) async fn core(access: &Access) -> Outcome<Vec<Resource>> {
    let what = "ask which kinds there are";
    let list = access.within(what, access.client.list_core_api_versions_aggregated()).await?;
    let resources = aggregated(list);
    if !resources.is_empty() {
        return Ok(resources);
    }
    let list = access.within(what, access.client.list_core_api_resources("v1")).await?;
    Ok(list.resources.into_iter().filter_map(|resource| legacy("", "v1", resource)).collect())
}

/// Those of all other groups, each in its preferred version.
pub(super) async fn groups(access: &Access) -> Outcome<Groups> {
    let what = "ask which groups there are";
    let list = access.within(what, access.client.list_api_groups_aggregated()).await?;
    let failed = stale(&list);
    let resources = aggregated(list);
    if !resources.is_empty() {
        return Ok(Groups { resources, failed });
    }
    let list = access.within(what, access.client.list_api_groups()).await?;
    let versions = list.groups.into_iter().flat_map(|group| {
        // The preferred one first: of a kind that is in several versions the first is taken.
        let preferred = group.preferred_version.map(|version| version.group_version);
        let mut versions: Vec<_> = group.versions.into_iter().map(|version| version.group_version).collect();
        versions.sort_by_key(|version| Some(version) != preferred.as_ref());
        versions
    });
    let mut answers = stream::iter(versions)
        .map(|version| async move {
            let resources = access.within(what, access.client.list_api_group_resources(&version)).await;
            (version, resources)
        })
        .buffered(AT_ONCE);
    let mut groups = Groups { resources: Vec::new(), failed: Vec::new() };
    while let Some((group_version, answer)) = answers.next().await {
        let (group, version) = group_version.split_once('/').unwrap_or(("", &group_version));
        match answer {
            Ok(list) => groups
                .resources
                .extend(list.resources.into_iter().filter_map(|resource| legacy(group, version, resource))),
            Err(failure) => groups.failed.push((group_version, failure)),
        }
    }
    Ok(groups)
}

fn aggregated(list: APIGroupDiscoveryList) -> Vec<Resource> {
    list.items.into_iter().flat_map(aggregated_group).collect()
}

/// The groups whose own server did not tell what it has.
fn stale(list: &APIGroupDiscoveryList) -> Vec<(String, Failure)> {
    let mut failed = Vec::new();
    for group in &list.items {
        let name = group.metadata.as_ref().and_then(|metadata| metadata.name.as_deref()).unwrap_or_default();
        for version in &group.versions {
            if version.resources.is_empty() && version.freshness.as_deref() == Some("Stale") {
                let group_version = format!("{name}/{}", version.version.as_deref().unwrap_or_default());
                failed.push((group_version, Failure::new(Exit::Error, "the server that has it does not answer")));
            }
        }
    }
    failed
}

fn aggregated_group(group: APIGroupDiscovery) -> Vec<Resource> {
    let name = group.metadata.and_then(|metadata| metadata.name).unwrap_or_default();
    let mut resources = Vec::new();
    for version in group.versions {
        let version_name = version.version.unwrap_or_default();
        for resource in version.resources {
            let Some(plural) = resource.resource else { continue };
            let kind = resource.response_kind.and_then(|kind| kind.kind).unwrap_or_default();
            resources.push(Resource {
                api: api_resource(&name, &version_name, kind, plural),
                namespaced: resource.scope.is_some_and(|scope| scope == "Namespaced"),
                singular: resource.singular_resource.unwrap_or_default(),
                short_names: resource.short_names,
                categories: resource.categories,
                verbs: resource.verbs,
            });
        }
    }
    resources
}

fn legacy(group: &str, version: &str, resource: APIResource) -> Option<Resource> {
    // Subresources stand in the same list.
    if resource.name.contains('/') {
        return None;
    }
    Some(Resource {
        api: api_resource(group, version, resource.kind, resource.name),
        namespaced: resource.namespaced,
        singular: resource.singular_name,
        short_names: resource.short_names.unwrap_or_default(),
        categories: resource.categories.unwrap_or_default(),
        verbs: resource.verbs,
    })
}

fn api_resource(group: &str, version: &str, kind: String, plural: String) -> ApiResource {
    let api_version = if group.is_empty() { version.to_owned() } else { format!("{group}/{version}") };
    ApiResource { group: group.to_owned(), version: version.to_owned(), api_version, kind, plural }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_group_whose_server_is_away_is_said_to_be_unknown() {
        let list: APIGroupDiscoveryList = serde_json::from_value(json!({"items": [
            {"metadata": {"name": "metrics.k8s.io"}, "versions": [{"version": "v1beta1", "freshness": "Stale"}]},
            {"metadata": {"name": "apps"}, "versions": [{"version": "v1", "freshness": "Current"}]},
        ]}))
        .expect("it is a list of groups");
        let groups: Vec<String> = stale(&list).into_iter().map(|(group, _)| group).collect();
        assert_eq!(groups, ["metrics.k8s.io/v1beta1"]);
    }
}
