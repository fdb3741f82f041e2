//! Which types do the fields of objects have?
//!
//! A [`Schema`] says what a value may be, what its parts are, and how lists and maps are merged. Those of built-in kinds
//! come from the OpenAPI documents of a kube-apiserver, packed without their prose; a type is taken apart when it is first
//! looked at. Those of custom kinds come from their CustomResourceDefinition.

mod built_in;
mod decode;
mod reader;
mod scalars;
mod times;

use std::collections::BTreeMap;
use std::ops::Deref;
use std::sync::Arc;

use serde_json::Value;

pub(crate) use built_in::BuiltIn;
#[cfg(test)]
pub(crate) use built_in::built_in_type;
pub(crate) use decode::{Decoded, decode};
pub(crate) use reader::from_openapi;

use crate::kinds::Kind;

/// What a value may be.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Schema {
    /// Nothing is known of it: everything is kept.
    Any,
    Scalar(Scalar),
    Map(MapSchema),
    List(ListSchema),
}

/// A value without parts of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Scalar {
    String,
    Integer,
    Number,
    Boolean,
    IntOrString,
    Quantity,
    Time,
    MicroTime,
    /// In base64.
    Bytes,
    /// Any JSON, taken as a whole: `RawExtension` and the like.
    Untyped,
}

/// A value with named parts: a struct of Go's, or a map.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct MapSchema {
    pub(crate) fields: BTreeMap<Box<str>, Field>,
    /// Of keys that are no field: `additionalProperties`.
    pub(crate) others: Option<SchemaRef>,
    /// `x-kubernetes-preserve-unknown-fields`.
    pub(crate) keeps_unknown: bool,
    /// `x-kubernetes-map-type: atomic`.
    pub(crate) atomic: bool,
}

/// A part of a struct.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Field {
    pub(crate) schema: SchemaRef,
    /// As the document says it. For built-in kinds, Go's zero values stand here too: they are never filled in.
    pub(crate) default: Option<Value>,
    pub(crate) required: bool,
    /// `x-kubernetes-patch-strategy`, `x-kubernetes-patch-merge-key`.
    pub(crate) patch: Option<PatchStrategy>,
    /// Of an integer: it has 64 bits and not 32.
    pub(crate) wide: bool,
}

/// How a strategic merge patch treats a field.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct PatchStrategy {
    /// Lists are merged, by key or as sets.
    pub(crate) merge: bool,
    /// Of a map, only the keys remain that the patch lists.
    pub(crate) retain_keys: bool,
    /// What tells the entries of a merged list apart; none for a list of scalars.
    pub(crate) merge_key: Option<Box<str>>,
}

/// A sequence.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ListSchema {
    pub(crate) items: SchemaRef,
    pub(crate) kind: ListKind,
}

/// What tells the entries of a list apart: `x-kubernetes-list-type`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ListKind {
    /// Nothing: it is replaced as a whole.
    Atomic,
    /// Their values.
    Set,
    /// Their values of these fields.
    Map(Vec<Box<str>>),
}

/// A schema that many may point to, itself included.
#[derive(Debug, Clone)]
pub(crate) enum SchemaRef {
    Own(Arc<Schema>),
    /// A type of a built-in kind.
    BuiltIn(&'static BuiltIn),
}

/// The schema of a built-in kind in one of its versions.
pub(crate) fn of(kind: &Kind, version: &str) -> Option<SchemaRef> {
    if kind.custom {
        return None;
    }
    let version = kind.version(version)?;
    built_in::of_kind(&version.api_version, &kind.kind)
}

/// The type of a built-in object that is no kind of its own: `Scale`.
pub(crate) fn of_type(api_version: &str, kind: &str) -> Option<SchemaRef> {
    built_in::of_kind(api_version, kind)
}

impl SchemaRef {
    /// The name of a built-in type, with its group: `core.v1.Container`.
    pub(crate) fn type_name(&self) -> Option<&'static str> {
        match self {
            Self::Own(_) => None,
            Self::BuiltIn(built_in) => Some(built_in.type_name()),
        }
    }

    /// What Go calls this type, if it is a named one: `v1.Container`.
    pub(crate) fn go_type(&self) -> Option<&'static str> {
        match self {
            Self::Own(_) => None,
            Self::BuiltIn(built_in) => Some(built_in.go_type()),
        }
    }
}

impl Deref for SchemaRef {
    type Target = Schema;

    fn deref(&self) -> &Schema {
        match self {
            Self::Own(schema) => schema,
            Self::BuiltIn(built_in) => built_in.schema(),
        }
    }
}

impl PartialEq for SchemaRef {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Own(one), Self::Own(other)) => one == other,
            // A type may contain itself: by its name it is compared.
            (Self::BuiltIn(one), Self::BuiltIn(other)) => std::ptr::eq(*one, *other),
            _ => false,
        }
    }
}

impl From<Schema> for SchemaRef {
    fn from(schema: Schema) -> Self {
        Self::Own(Arc::new(schema))
    }
}

impl Schema {
    /// The schema of a part of this one, if it is a map that may have it.
    pub(crate) fn member(&self, key: &str) -> Option<&SchemaRef> {
        let Self::Map(map) = self else { return None };
        map.fields.get(key).map(|field| &field.schema).or(map.others.as_ref())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn path<'a>(schema: &'a Schema, path: &[&str]) -> &'a Schema {
        path.iter().fold(schema, |schema, part| match schema {
            Schema::List(list) if *part == "[]" => &list.items,
            _ => schema.member(part).unwrap_or_else(|| panic!("no {part}")),
        })
    }

    #[test]
    fn a_built_in_kind_has_the_types_of_its_document() {
        let registry = crate::kinds::Registry::new();
        let kind = registry.find("apps", "deployments").expect("a kind");
        let deployment = of(&kind, "v1").expect("a schema");
        assert_eq!(path(&deployment, &["spec", "replicas"]), &Schema::Scalar(Scalar::Integer));
        let pod = path(&deployment, &["spec", "template", "spec"]);
        let Schema::List(containers) = path(pod, &["containers"]) else { panic!("a list") };
        assert_eq!(containers.kind, ListKind::Map(vec!["name".into()]));
        assert_eq!(containers.items.go_type(), Some("v1.Container"));
        let Schema::Map(container) = &*containers.items else { panic!("a map") };
        let Schema::List(ports) = &*container.fields["ports"].schema else { panic!("a list") };
        assert_eq!(ports.kind, ListKind::Map(vec!["containerPort".into(), "protocol".into()]));
        let Schema::Map(port) = &*ports.items else { panic!("a map") };
        assert_eq!(port.fields["protocol"].default, Some(json!("TCP")));
        assert!(port.fields["containerPort"].required);
        let limits = path(&containers.items, &["resources", "limits", "cpu"]);
        assert_eq!(limits, &Schema::Scalar(Scalar::Quantity));
        let Schema::Map(selector) = path(&deployment, &["spec", "selector"]) else { panic!("a map") };
        assert!(selector.atomic);
        let Schema::Map(spec) = path(&deployment, &["spec"]) else { panic!("a map") };
        assert!(spec.fields["strategy"].patch.as_ref().is_some_and(|patch| patch.retain_keys && !patch.merge));
    }

    #[test]
    fn every_built_in_kind_has_a_schema_in_every_version() {
        for kind in crate::kinds::Registry::new().all() {
            for version in &kind.versions {
                let schema = of(&kind, &version.name);
                assert!(matches!(schema.as_deref(), Some(Schema::Map(_))), "{} {}", version.api_version, kind.kind);
            }
        }
    }

    #[test]
    fn a_type_may_contain_itself() {
        let registry = crate::kinds::Registry::new();
        let kind = registry.find("apiextensions.k8s.io", "customresourcedefinitions").expect("a kind");
        let definition = of(&kind, "v1").expect("a schema");
        let schema = path(&definition, &["spec", "versions", "[]", "schema", "openAPIV3Schema"]);
        let mut deep = schema;
        for _ in 0..200 {
            deep = path(deep, &["properties", "a"]);
        }
        assert_eq!(schema, deep);
        assert_eq!(path(schema, &["default"]), &Schema::Scalar(Scalar::Untyped));
    }
}
