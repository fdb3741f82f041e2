//! The types of the built-in kinds, from the packed definitions.

use std::collections::BTreeMap;
use std::sync::{LazyLock, OnceLock};

use serde::Deserialize;
use serde_json::Value;

use super::{Scalar, Schema, SchemaRef, reader};
use crate::openapi::unpacked;

/// A named type.
pub(crate) struct BuiltIn {
    /// `io.k8s.api.core.v1.Container`
    name: Box<str>,
    definition: Value,
    schema: OnceLock<Schema>,
}

struct Types {
    /// The names of the types of the kinds, by `apps/v1/Deployment`.
    kinds: BTreeMap<Box<str>, Box<str>>,
    types: BTreeMap<Box<str>, BuiltIn>,
}

#[derive(Deserialize)]
struct Packed {
    kinds: BTreeMap<Box<str>, Box<str>>,
    types: BTreeMap<Box<str>, Value>,
}

/// All types, unpacked once per process.
static TYPES: LazyLock<Types> = LazyLock::new(|| {
    let bytes = unpacked(include_bytes!("../../data/schemas.json.gz"));
    // The data is part of the program, and tests read it: it cannot be bad at run time.
    let packed: Packed = serde_json::from_slice(&bytes).expect("packed types");
    let types = packed.types.into_iter().map(|(name, definition)| {
        let built_in = BuiltIn { name: name.clone(), definition, schema: OnceLock::new() };
        (name, built_in)
    });
    Types { kinds: packed.kinds, types: types.collect() }
});

/// The type of a kind.
pub(super) fn of_kind(api_version: &str, kind: &str) -> Option<SchemaRef> {
    named(TYPES.kinds.get(format!("{api_version}/{kind}").as_str())?)
}

/// The type of this name.
pub(super) fn named(name: &str) -> Option<SchemaRef> {
    TYPES.types.get(name).map(SchemaRef::BuiltIn)
}

/// The type whose name has these last parts: `core.v1.Container`.
#[cfg(test)]
pub(crate) fn built_in_type(type_name: &str) -> Option<SchemaRef> {
    TYPES.types.values().find(|built_in| built_in.type_name() == type_name).map(SchemaRef::BuiltIn)
}

/// The type of the metadata of all objects.
pub(super) fn object_meta() -> SchemaRef {
    named("io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta").unwrap_or_else(|| Schema::Any.into())
}

impl BuiltIn {
    /// Its name with its group: `core.v1.Container`.
    pub(crate) fn type_name(&self) -> &str {
        last_parts(&self.name, 3)
    }

    /// What Go calls this type: `v1.Container`.
    pub(crate) fn go_type(&self) -> &str {
        last_parts(&self.name, 2)
    }

    /// Its parts.
    pub(crate) fn schema(&self) -> &Schema {
        self.schema.get_or_init(|| match special(&self.name) {
            Some(scalar) => Schema::Scalar(scalar),
            None => reader::built_in(&self.definition),
        })
    }
}

impl std::fmt::Debug for BuiltIn {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // Not its parts: a type may contain itself.
        f.debug_tuple("BuiltIn").field(&self.name).finish()
    }
}

/// Types that read and write themselves in Go, and that no definition describes.
fn special(name: &str) -> Option<Scalar> {
    Some(match name.rsplit('.').next().unwrap_or_default() {
        "Quantity" => Scalar::Quantity,
        "IntOrString" => Scalar::IntOrString,
        "Time" => Scalar::Time,
        "MicroTime" => Scalar::MicroTime,
        "FieldsV1" | "Patch" | "RawExtension" => Scalar::Untyped,
        "JSON" | "JSONSchemaPropsOrArray" | "JSONSchemaPropsOrBool" | "JSONSchemaPropsOrStringArray" => Scalar::Untyped,
        _ => return None,
    })
}

/// The last parts of a name: the package and the type, or those and the group.
fn last_parts(name: &str, parts: usize) -> &str {
    let mut dots = name.rmatch_indices('.').map(|(i, _)| i + 1);
    dots.nth(parts - 1).map_or(name, |start| &name[start..])
}
