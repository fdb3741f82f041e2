//! Reads schemas out of OpenAPI documents.

use std::collections::BTreeMap;

use serde_json::Value;

use super::built_in::{named, object_meta};
use super::{Field, ListKind, ListSchema, MapSchema, PatchStrategy, Scalar, Schema, SchemaRef};

/// The `openAPIV3Schema` of a CustomResourceDefinition, with the fields that every object has. A document that was read
/// from a request is not deeper than requests may be, so neither is this.
pub(crate) fn from_openapi(document: &Value) -> Schema {
    let mut schema = custom(document);
    if let Schema::Map(map) = &mut schema {
        add_object_fields(map);
    }
    schema
}

/// A packed type of a built-in kind.
pub(super) fn built_in(definition: &Value) -> Schema {
    match reference(definition) {
        SchemaRef::Own(schema) => std::sync::Arc::unwrap_or_clone(schema),
        SchemaRef::BuiltIn(built_in) => built_in.schema().clone(),
    }
}

/// A type, or the name of one.
fn reference(definition: &Value) -> SchemaRef {
    if let Some(name) = definition.get("$ref").and_then(Value::as_str) {
        let named = named(name).unwrap_or_else(|| Schema::Any.into());
        // What is one elsewhere may be taken apart here. Other types are not looked at: this may be one of them.
        if text(definition, "x-kubernetes-map-type") == "granular"
            && let Schema::Map(map) = &*named
        {
            return Schema::Map(MapSchema { atomic: false, ..map.clone() }).into();
        }
        return named;
    }
    match text(definition, "type") {
        "object" => map(definition, reference).into(),
        "array" => list(definition, reference).into(),
        _ => scalar(definition).into(),
    }
}

fn custom(document: &Value) -> Schema {
    let keeps_unknown = is_set(document, "x-kubernetes-preserve-unknown-fields");
    if is_set(document, "x-kubernetes-int-or-string") {
        return Schema::Scalar(Scalar::IntOrString);
    }
    match text(document, "type") {
        "object" => {
            let Schema::Map(mut map) = map(document, |part| custom(part).into()) else { return Schema::Any };
            map.keeps_unknown = keeps_unknown;
            if is_set(document, "x-kubernetes-embedded-resource") {
                add_object_fields(&mut map);
            }
            Schema::Map(map)
        }
        "array" => list(document, |part| custom(part).into()),
        "" => Schema::Any,
        _ => scalar(document),
    }
}

fn map(definition: &Value, part: impl Fn(&Value) -> SchemaRef) -> Schema {
    let required: Vec<&str> =
        definition.get("required").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str).collect();
    let properties = definition.get("properties").and_then(Value::as_object);
    let fields: BTreeMap<Box<str>, Field> = properties
        .into_iter()
        .flatten()
        .map(|(name, property)| {
            let field = Field {
                schema: part(property),
                default: property.get("default").cloned(),
                required: required.contains(&name.as_str()),
                patch: patch(property),
                wide: is_wide(property),
            };
            (name.as_str().into(), field)
        })
        .collect();
    let others = match definition.get("additionalProperties") {
        Some(Value::Bool(true)) => Some(Schema::Any.into()),
        Some(others @ Value::Object(_)) => Some(part(others)),
        _ => None,
    };
    let atomic = text(definition, "x-kubernetes-map-type") == "atomic";
    Schema::Map(MapSchema { fields, others, keeps_unknown: false, atomic })
}

fn list(definition: &Value, part: impl Fn(&Value) -> SchemaRef) -> Schema {
    let keys = definition.get("x-kubernetes-list-map-keys").and_then(Value::as_array);
    let kind = match text(definition, "x-kubernetes-list-type") {
        "set" => ListKind::Set,
        "map" => ListKind::Map(keys.into_iter().flatten().filter_map(Value::as_str).map(Into::into).collect()),
        _ => ListKind::Atomic,
    };
    let items = definition.get("items").map_or_else(|| Schema::Any.into(), part);
    Schema::List(ListSchema { items, kind })
}

fn scalar(definition: &Value) -> Schema {
    Schema::Scalar(match (text(definition, "type"), text(definition, "format")) {
        ("string", "byte") => Scalar::Bytes,
        ("string", _) => Scalar::String,
        ("integer", _) => Scalar::Integer,
        ("number", _) => Scalar::Number,
        ("boolean", _) => Scalar::Boolean,
        _ => Scalar::Untyped,
    })
}

fn patch(property: &Value) -> Option<PatchStrategy> {
    let strategies = property.get("x-kubernetes-patch-strategy").and_then(Value::as_str)?;
    let merge_key = property.get("x-kubernetes-patch-merge-key").and_then(Value::as_str);
    Some(PatchStrategy {
        merge: strategies.split(',').any(|strategy| strategy == "merge"),
        retain_keys: strategies.split(',').any(|strategy| strategy == "retainKeys"),
        merge_key: merge_key.map(Into::into),
    })
}

/// Every object has these, whether its schema says so or not.
fn add_object_fields(map: &mut MapSchema) {
    let parts = [
        ("apiVersion", Schema::Scalar(Scalar::String).into()),
        ("kind", Schema::Scalar(Scalar::String).into()),
        ("metadata", object_meta()),
    ];
    for (name, schema) in parts {
        let field = Field { schema, default: None, required: false, patch: None, wide: false };
        map.fields.insert(name.into(), field);
    }
}

/// Whether a number, or the numbers in a list or a map, have 64 bits.
fn is_wide(property: &Value) -> bool {
    let parts = [Some(property), property.get("items"), property.get("additionalProperties")];
    parts.into_iter().flatten().any(|part| text(part, "format") == "int64")
}

fn text<'a>(definition: &'a Value, key: &str) -> &'a str {
    definition.get(key).and_then(Value::as_str).unwrap_or_default()
}

fn is_set(definition: &Value, key: &str) -> bool {
    definition.get(key).and_then(Value::as_bool).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_definition_of_a_custom_kind_is_read() {
        let schema = from_openapi(&json!({
            "type": "object",
            "required": ["spec"],
            "properties": {
                "spec": {"type": "object", "properties": {
                    "port": {"x-kubernetes-int-or-string": true},
                    "size": {"type": "integer", "format": "int64", "default": 3},
                    "tags": {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}},
                    "free": {"x-kubernetes-preserve-unknown-fields": true},
                    "open": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
                    "object": {"type": "object", "x-kubernetes-embedded-resource": true},
                }},
                "labels": {"type": "object", "additionalProperties": {"type": "string"}},
            },
        }));
        let Schema::Map(root) = &schema else { panic!("a map") };
        assert!(root.fields["spec"].required);
        assert_eq!(root.fields["metadata"].schema.go_type(), Some("v1.ObjectMeta"));
        let Schema::Map(spec) = &*root.fields["spec"].schema else { panic!("a map") };
        assert_eq!(*spec.fields["port"].schema, Schema::Scalar(Scalar::IntOrString));
        assert!(spec.fields["size"].wide && spec.fields["size"].default == Some(json!(3)));
        let tags = ListSchema { items: Schema::Scalar(Scalar::String).into(), kind: ListKind::Set };
        assert_eq!(*spec.fields["tags"].schema, Schema::List(tags));
        assert_eq!(*spec.fields["free"].schema, Schema::Any);
        assert!(matches!(&*spec.fields["open"].schema, Schema::Map(map) if map.keeps_unknown));
        assert_eq!(
            spec.fields["object"].schema.member("kind").map(|kind| &**kind),
            Some(&Schema::Scalar(Scalar::String))
        );
        assert_eq!(
            schema.member("labels").and_then(|labels| labels.member("a")).map(|a| &**a),
            Some(&Schema::Scalar(Scalar::String))
        );
    }
}
