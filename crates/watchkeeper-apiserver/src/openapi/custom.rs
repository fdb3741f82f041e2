//! The documents of custom kinds.
//!
//! What a kube-apiserver says of a kind depends on nothing but its names, its scope, its subresources and its schema. The
//! packed templates are its answers for a made-up kind, with gaps for the names; the schema is put in here.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use super::unpacked;
use crate::kinds::{Kind, Version};

/// By scope (`namespaced`, `cluster`) and document (`v3`, `v2`): nobody reads more than one of them for a kind.
static TEMPLATES: LazyLock<BTreeMap<String, BTreeMap<String, Box<RawValue>>>> = LazyLock::new(|| {
    // The data is part of the program, and tests read it: it cannot be bad at run time.
    serde_json::from_slice(&unpacked(include_bytes!("../../data/openapi-custom.json.gz"))).expect("templates")
});

/// What a kind adds to a document.
#[derive(Debug, Default, Deserialize)]
pub(super) struct Parts {
    pub(super) paths: Map<String, Value>,
    /// The types, under the name that they have in this document.
    #[serde(alias = "definitions")]
    pub(super) schemas: Map<String, Value>,
}

/// What a custom kind adds in one of its versions to the document of its group version.
pub(super) fn v3_parts(kind: &Kind, version: &Version) -> Parts {
    let mut parts = parts(kind, version, "v3", v3_schema);
    if version.subresource("scale").is_none() {
        parts.schemas.retain(|name, _| !name.starts_with("io.k8s.api.autoscaling.v1.Scale"));
    }
    parts
}

/// What it adds to the older document of all kinds.
pub(super) fn v2_parts(kind: &Kind, version: &Version) -> Parts {
    parts(kind, version, "v2", v2_schema)
}

fn parts(kind: &Kind, version: &Version, document: &str, shown: fn(&Value) -> Value) -> Parts {
    let scope = if kind.namespaced { "namespaced" } else { "cluster" };
    let template = TEMPLATES.get(scope).and_then(|templates| templates.get(document));
    let text = template.map(|template| filled(template.get(), kind, version)).unwrap_or_default();
    let mut parts: Parts = serde_json::from_str(&text).unwrap_or_default();
    for subresource in ["status", "scale"] {
        if version.subresource(subresource).is_none() {
            let beneath = format!("/{{name}}/{subresource}");
            parts.paths.retain(|path, _| !path.ends_with(&beneath));
        }
    }
    let name = format!("{}.{}", type_prefix(kind, version), kind.kind);
    if let Some(Value::Object(own)) = parts.schemas.get_mut(&name) {
        merge(own, version.openapi.as_deref().map(shown));
    }
    parts
}

/// A template with the names of a kind. They are words of letters, digits, dots and dashes: nothing that JSON minds.
fn filled(template: &str, kind: &Kind, version: &Version) -> String {
    let group = kind.group.strip_suffix(".k8s.io").unwrap_or(&kind.group);
    let operation = identifier(group, true) + &identifier(&version.name, true);
    let tag = format!("{}_{}", identifier(group, false), identifier(&version.name, false));
    let mut text = template.to_owned();
    for (gap, word) in [
        ("{{type}}", type_prefix(kind, version).as_str()),
        ("{{operation}}", &operation),
        ("{{tag}}", &tag),
        ("{{group}}", &kind.group),
        ("{{version}}", &version.name),
        (" a {{kind}}", &format!(" {}", with_article(&kind.kind))),
        ("{{kind}}", &kind.kind),
        ("{{list}}", &kind.list_kind),
        ("{{plural}}", &kind.plural),
    ] {
        text = text.replace(gap, word);
    }
    text
}

/// `com.example.shop.v1` of `shop.example.com/v1`.
fn type_prefix(kind: &Kind, version: &Version) -> String {
    let mut parts: Vec<&str> = kind.group.split('.').rev().collect();
    parts.push(&version.name);
    parts.join(".")
}

/// `a Pod`, `an Order`, `Endpoints`.
///
/// Counterpart: `GetArticleForNoun` in `k8s.io/apiserver/pkg/endpoints`.
fn with_article(noun: &str) -> String {
    let is_plural = noun.ends_with('s') && !noun.ends_with("ss");
    let begins_with_vowel = noun.starts_with(['a', 'e', 'i', 'o', 'u', 'A', 'E', 'I', 'O', 'U']);
    match (is_plural, begins_with_vowel) {
        (true, _) => noun.to_owned(),
        (false, true) => format!("an {noun}"),
        (false, false) => format!("a {noun}"),
    }
}

/// A name without what no identifier has: what stands behind that has a capital.
///
/// Counterpart: `ToValidOperationID` in `k8s.io/apiserver/pkg/endpoints/openapi`.
fn identifier(name: &str, capital: bool) -> String {
    let mut capital = capital;
    let mut identifier = String::new();
    for (i, c) in name.char_indices() {
        if !(c.is_ascii_alphabetic() || c == '_' || (i != 0 && c.is_ascii_digit())) {
            capital = true;
            continue;
        }
        identifier.push(if capital { c.to_ascii_uppercase() } else { c });
        capital = false;
    }
    identifier
}

/// Puts a schema beneath what every object has. Without one, objects may have anything.
fn merge(own: &mut Map<String, Value>, schema: Option<Value>) {
    let schema = schema.unwrap_or_else(|| json!({"x-kubernetes-preserve-unknown-fields": true}));
    let Value::Object(schema) = schema else { return };
    for (key, value) in schema {
        match (key.as_str(), value) {
            ("properties", Value::Object(properties)) => {
                let Some(Value::Object(known)) = own.get_mut("properties") else { continue };
                for (name, value) in properties {
                    // Metadata is always a built-in type.
                    known.entry(name).or_insert(value);
                }
            }
            ("type" | "x-kubernetes-group-version-kind", _) => {}
            (_, value) => drop(own.insert(key, value)),
        }
    }
}

/// A schema as the documents of the group versions show it.
fn v3_schema(schema: &Value) -> Value {
    let mut schema = schema.clone();
    visit(&mut schema, &|schema| {
        if is_true(schema, "x-kubernetes-int-or-string") && !schema.contains_key("anyOf") {
            schema.insert("anyOf".to_owned(), json!([{"type": "integer"}, {"type": "string"}]));
        }
        embed(schema);
    });
    schema
}

/// A schema as the older document shows it, whose readers know less.
///
/// Counterpart: `ToStructuralOpenAPIV2` in `k8s.io/apiextensions-apiserver/pkg/controller/openapi/v2`.
fn v2_schema(schema: &Value) -> Value {
    let mut schema = schema.clone();
    visit(&mut schema, &|schema| {
        for key in ["allOf", "anyOf", "oneOf", "not", "default"] {
            schema.remove(key);
        }
        if is_true(schema, "nullable") {
            schema.retain(|key, _| key == "description" || key.starts_with("x-"));
        }
        if is_true(schema, "x-kubernetes-preserve-unknown-fields") {
            for key in ["type", "properties", "items", "additionalProperties", "required"] {
                schema.remove(key);
            }
        }
        embed(schema);
    });
    schema
}

/// An object within an object has a kind and an apiVersion too.
fn embed(schema: &mut Map<String, Value>) {
    if !is_true(schema, "x-kubernetes-embedded-resource") {
        return;
    }
    let properties = schema.entry("properties").or_insert_with(|| json!({}));
    if let Value::Object(properties) = properties {
        for name in ["apiVersion", "kind"] {
            properties.entry(name).or_insert_with(|| json!({"type": "string"}));
        }
        properties.entry("metadata").or_insert_with(|| json!({"type": "object"}));
    }
}

fn is_true(schema: &Map<String, Value>, key: &str) -> bool {
    schema.get(key).and_then(Value::as_bool) == Some(true)
}

/// Every schema beneath a schema, the innermost first. No deeper than the object that brought it, whose depth is limited.
fn visit(schema: &mut Value, change: &impl Fn(&mut Map<String, Value>)) {
    let Value::Object(map) = schema else { return };
    for (key, value) in map.iter_mut() {
        match (key.as_str(), value) {
            ("properties", Value::Object(properties)) => properties.values_mut().for_each(|value| visit(value, change)),
            ("items" | "additionalProperties", value) => visit(value, change),
            _ => {}
        }
    }
    change(map);
}
