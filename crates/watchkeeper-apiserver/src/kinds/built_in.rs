//! The kinds of Kubernetes 1.36, from the packed discovery documents.

use std::collections::BTreeMap;
use std::io::Read;
use std::sync::LazyLock;

use bytes::Bytes;
use serde::Deserialize;

use super::{Entry, FieldLabels, Kind, Rules, Subresource, Version};

/// What a real server answers to `/api`, `/apis`, `/version` and to each group version.
#[derive(Debug, Deserialize)]
struct Documents {
    version: BTreeMap<String, String>,
    /// In the order of `/apis`, which is that of preference.
    apis: Groups,
    resources: BTreeMap<String, Resources>,
}

#[derive(Debug, Deserialize)]
struct Groups {
    groups: Vec<Group>,
}

#[derive(Debug, Deserialize)]
struct Group {
    name: String,
    versions: Vec<GroupVersion>,
}

#[derive(Debug, Deserialize)]
struct GroupVersion {
    version: String,
}

#[derive(Debug, Deserialize)]
struct Resources {
    resources: Vec<Entry>,
}

/// The documents, unpacked once per process.
static DOCUMENTS: LazyLock<Documents> = LazyLock::new(|| {
    let packed = include_bytes!("../../data/discovery.json.gz");
    let mut text = String::new();
    // The data is part of the program, and a test reads it: it cannot be bad at run time.
    flate2::read::GzDecoder::new(packed.as_slice()).read_to_string(&mut text).expect("packed discovery documents");
    serde_json::from_str(&text).expect("discovery documents")
});

/// The answer to `/version`, in the order of Go's struct.
pub(crate) fn server_version() -> Bytes {
    let fields = [
        "major",
        "minor",
        "emulationMajor",
        "emulationMinor",
        "minCompatibilityMajor",
        "minCompatibilityMinor",
        "gitVersion",
        "gitCommit",
        "gitTreeState",
        "buildDate",
        "goVersion",
        "compiler",
        "platform",
    ];
    let known = fields.iter().filter_map(|field| Some((field, DOCUMENTS.version.get(*field)?)));
    let lines: Vec<String> = known.map(|(field, value)| format!("  \"{field}\": \"{value}\"")).collect();
    format!("{{\n{}\n}}", lines.join(",\n")).into()
}

/// All built-in kinds, in the order of discovery.
pub(super) fn kinds() -> Vec<Kind> {
    let mut kinds: Vec<Kind> = Vec::new();
    let core = [("", vec!["v1"])];
    let groups =
        DOCUMENTS.apis.groups.iter().map(|group| {
            (group.name.as_str(), group.versions.iter().map(|version| version.version.as_str()).collect())
        });
    for (group, versions) in core.into_iter().chain(groups) {
        for version in versions {
            let path = if group.is_empty() { format!("/api/{version}") } else { format!("/apis/{group}/{version}") };
            let Some(resources) = DOCUMENTS.resources.get(&path) else { continue };
            for entry in &resources.resources {
                add(&mut kinds, group, version, entry);
            }
        }
    }
    kinds
}

fn add(kinds: &mut Vec<Kind>, group: &str, version: &str, entry: &Entry) {
    let resource = entry.clone();
    let position = |kinds: &[Kind], plural: &str| kinds.iter().position(|k| k.group == group && k.plural == plural);
    if let Some((plural, name)) = resource.name.split_once('/') {
        let Some(kind) = position(kinds, plural).map(|i| &mut kinds[i]) else { return };
        let Some(served) = kind.versions.iter_mut().find(|served| served.name == version) else { return };
        served.subresources.push(Subresource { name: name.to_owned(), verbs: resource.verbs, entry: entry.clone() });
        return;
    }
    let mut served = Version::new(group, version, &resource.kind, false);
    served.verbs = resource.verbs;
    served.storage_version_hash = resource.storage_version_hash;
    match position(kinds, &resource.name) {
        Some(i) => kinds[i].versions.push(served),
        None => kinds.push(Kind {
            group: group.to_owned(),
            list_kind: format!("{}List", resource.kind),
            singular: resource.singular_name,
            short_names: resource.short_names,
            categories: resource.categories,
            namespaced: resource.namespaced,
            custom: false,
            fields: FieldLabels::of(group, &resource.kind),
            rules: Rules::of(group, &resource.name),
            kind: resource.kind,
            plural: resource.name,
            versions: vec![served],
            storage: None,
            terminating: false,
            id: 0,
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_kinds_of_the_documents_are_there() {
        let kinds = kinds();
        assert_eq!(DOCUMENTS.resources.len(), 22);
        assert_eq!(kinds.len(), 67);
        let find = |group: &str, plural: &str| {
            kinds.iter().find(|kind| kind.group == group && kind.plural == plural).expect("a kind")
        };
        let pods = find("", "pods");
        assert!(pods.namespaced && pods.has_status());
        assert_eq!(pods.short_names, ["po"]);
        assert_eq!(pods.storage_version().prefix, r#"{"kind":"Pod","apiVersion":"v1","#);
        assert_eq!(find("autoscaling", "horizontalpodautoscalers").versions.len(), 2);
        assert!(find("apps", "deployments").storage_version().subresource("scale").is_some());
        assert!(!find("", "nodes").namespaced);
    }
}
