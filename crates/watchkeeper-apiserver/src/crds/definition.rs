//! What a CustomResourceDefinition says, as far as the server needs it.

use std::sync::Arc;

use serde::Deserialize;
use serde_json::Value;

use super::props::Props;
use super::{faults, prepare};
use crate::kinds::{Entry, FieldLabels, Kind, Rules, Subresource, Version, by_preference};
use crate::schema;
use crate::storage::Document;
use crate::tables::Printer;

/// A definition. What it lacks is empty: the checks of [`faults`](super::faults) come before anything is made of it.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Definition {
    pub(crate) spec: Spec,
    pub(crate) status: Status,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Spec {
    pub(crate) group: String,
    pub(crate) names: Names,
    pub(crate) scope: String,
    #[serde(deserialize_with = "or_empty")]
    pub(crate) versions: Vec<VersionSpec>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct Names {
    pub(crate) plural: String,
    pub(crate) singular: String,
    #[serde(deserialize_with = "or_empty")]
    pub(crate) short_names: Vec<String>,
    pub(crate) kind: String,
    pub(crate) list_kind: String,
    #[serde(deserialize_with = "or_empty")]
    pub(crate) categories: Vec<String>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct VersionSpec {
    pub(crate) name: String,
    pub(crate) served: bool,
    pub(crate) storage: bool,
    pub(crate) deprecated: bool,
    pub(crate) deprecation_warning: Option<String>,
    pub(crate) schema: Option<SchemaSpec>,
    pub(crate) subresources: Option<Subresources>,
    #[serde(deserialize_with = "or_empty")]
    pub(crate) additional_printer_columns: Vec<ColumnSpec>,
    #[serde(deserialize_with = "or_empty")]
    pub(crate) selectable_fields: Vec<SelectableField>,
}

#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default)]
pub(crate) struct SchemaSpec {
    #[serde(rename = "openAPIV3Schema")]
    pub(crate) schema: Option<Value>,
}

#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default)]
pub(crate) struct Subresources {
    pub(crate) status: Option<Value>,
    pub(crate) scale: Option<ScalePaths>,
}

/// Where an object says how many there are to be, how many there are, and which.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct ScalePaths {
    pub(crate) spec_replicas_path: String,
    pub(crate) status_replicas_path: String,
    pub(crate) label_selector_path: Option<String>,
}

/// A column of a table.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct ColumnSpec {
    pub(crate) name: String,
    #[serde(rename = "type")]
    pub(crate) kind: String,
    pub(crate) format: String,
    pub(crate) description: String,
    pub(crate) priority: i32,
    pub(crate) json_path: String,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct SelectableField {
    pub(crate) json_path: String,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct Status {
    pub(crate) accepted_names: Names,
    #[serde(deserialize_with = "or_empty")]
    pub(crate) conditions: Vec<Condition>,
    #[serde(deserialize_with = "or_empty")]
    pub(crate) stored_versions: Vec<String>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct Condition {
    #[serde(rename = "type")]
    pub(crate) kind: String,
    pub(crate) status: String,
    pub(crate) last_transition_time: Option<String>,
    pub(crate) reason: String,
    pub(crate) message: String,
}

/// What a version of a custom kind has beside its name.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Served {
    pub(crate) props: Props,
    /// Its own columns; none, if it has name and age.
    pub(crate) printer: Option<Printer>,
    pub(crate) scale: Option<ScalePaths>,
    /// What clients are told who use it.
    pub(crate) deprecation: Option<String>,
}

impl Definition {
    /// Of a definition as it is stored. None, if it is not even of the right types.
    pub(crate) fn of(object: &Value) -> Option<Self> {
        Self::deserialize(object).ok()
    }

    /// The same, if there is nothing wrong with it. Names that were not given yet count as given.
    pub(crate) fn usable(object: &Value) -> Option<Self> {
        let mut document = Document::new(object.clone())?;
        prepare::adopt(&mut document);
        let mut definition = Self::of(document.as_value())?;
        let is_fine = faults::faults(&definition, document.as_value(), None).is_empty();
        if definition.status.accepted_names.plural.is_empty() {
            definition.status.accepted_names = definition.spec.names.clone();
        }
        is_fine.then_some(definition)
    }

    pub(crate) fn is_true(&self, condition: &str) -> bool {
        self.status.conditions.iter().any(|known| known.kind == condition && known.status == "True")
    }

    /// The kind that it makes, under the names that it was given. None, if there is something wrong with it.
    pub(crate) fn kind(&self, terminating: bool) -> Option<Kind> {
        let (spec, names) = (&self.spec, &self.status.accepted_names);
        if names.plural.is_empty() || names.kind.is_empty() {
            return None;
        }
        let versions: Option<Vec<(Version, &VersionSpec)>> =
            spec.versions.iter().map(|version| Some((self.version(version, terminating)?, version))).collect();
        let mut versions = versions?;
        let storage = versions.iter().find(|(_, spec)| spec.storage).map(|(version, _)| version.clone())?;
        versions.retain(|(_, spec)| spec.served);
        versions.sort_by(|(one, _), (other, _)| by_preference(&one.name, &other.name));
        let mut selectable: Vec<String> = Vec::new();
        for field in spec.versions.iter().flat_map(|version| &version.selectable_fields) {
            if !selectable.contains(&field.json_path) {
                selectable.push(field.json_path.clone());
            }
        }
        let namespaced = spec.scope == "Namespaced";
        Some(Kind {
            fields: FieldLabels::custom(&names.kind, namespaced, &selectable),
            rules: Rules::custom(),
            group: spec.group.clone(),
            kind: names.kind.clone(),
            list_kind: names.list_kind.clone(),
            plural: names.plural.clone(),
            singular: names.singular.clone(),
            short_names: names.short_names.clone(),
            categories: names.categories.clone(),
            namespaced,
            custom: true,
            terminating,
            versions: versions.into_iter().map(|(version, _)| version).collect(),
            storage: Some(Box::new(storage)),
            id: 0,
        })
    }

    fn version(&self, spec: &VersionSpec, terminating: bool) -> Option<Version> {
        let names = &self.status.accepted_names;
        let document = spec.schema.as_ref()?.schema.as_ref()?;
        let mut version = Version::new(&self.spec.group, &spec.name, &names.kind, true);
        // In the order of the real server.
        let verbs: &[&str] = match terminating {
            false => &["delete", "deletecollection", "get", "list", "patch", "create", "update", "watch"],
            true => &["delete", "deletecollection", "get", "list", "watch"],
        };
        version.verbs = verbs.iter().map(|verb| (*verb).to_owned()).collect();
        let group = &self.spec.group;
        version.storage_version_hash = super::hash::storage_version(group, &self.storage_version()?.name, &names.kind);
        let subresources = spec.subresources.clone().unwrap_or_default();
        let namespaced = self.spec.scope == "Namespaced";
        let entry = |name: &str| Entry {
            name: format!("{}/{name}", names.plural),
            namespaced,
            kind: names.kind.clone(),
            verbs: ["get", "patch", "update"].map(str::to_owned).to_vec(),
            ..Entry::default()
        };
        if subresources.status.is_some() {
            version.subresources.push(subresource("status", entry("status")));
        }
        if subresources.scale.is_some() {
            let scale = Entry {
                group: "autoscaling".to_owned(),
                version: "v1".to_owned(),
                kind: "Scale".to_owned(),
                ..entry("scale")
            };
            version.subresources.push(subresource("scale", scale));
        }
        let deprecation = spec.deprecated.then(|| {
            let text = format!("{} {} is deprecated", version.api_version, names.kind);
            spec.deprecation_warning.clone().unwrap_or(text)
        });
        let columns = &spec.additional_printer_columns;
        version.openapi = Some(Arc::new(document.clone()));
        version.schema = Some(schema::from_openapi(document).into());
        version.served = Some(Arc::new(Served {
            props: Props::read(document).ok()?,
            printer: Some(columns).filter(|columns| !columns.is_empty()).map(|columns| Printer::new(columns)),
            scale: subresources.scale,
            deprecation,
        }));
        Some(version)
    }

    /// The version that objects are stored in.
    pub(crate) fn storage_version(&self) -> Option<&VersionSpec> {
        self.spec.versions.iter().find(|version| version.storage)
    }
}

impl Served {
    /// Whether nothing is said of a version but its name: then it shows objects as any other does.
    pub(crate) fn shows_the_same(&self, other: &Self) -> bool {
        self.props == other.props
    }
}

fn subresource(name: &str, entry: Entry) -> Subresource {
    Subresource { name: name.to_owned(), verbs: entry.verbs.clone(), entry }
}

/// In Go, a list that is null is empty.
fn or_empty<'de, D, T>(deserializer: D) -> Result<Vec<T>, D::Error>
where
    D: serde::Deserializer<'de>,
    T: Deserialize<'de>,
{
    Ok(Option::deserialize(deserializer)?.unwrap_or_default())
}
