//! What a schema says of a value's parts, as far as ownership needs to know.

use serde_json::{Map, Value};

use super::element::Element;
use crate::schema::{ListKind, ListSchema, Scalar, Schema};

/// Of what nothing is known: maps are taken apart, all else is one.
pub(super) static ANY: Schema = Schema::Any;

/// How a value is treated.
pub(super) enum Shape<'a> {
    /// As a whole: a scalar, or what is atomic.
    Leaf,
    /// Field by field.
    Map,
    /// Entry by entry.
    List(&'a ListSchema),
}

/// An entry of a list that cannot be told from others.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum BadItem {
    #[error("associative list with keys may not have a null element")]
    Null,
    #[error("associative list with keys may not have non-map elements")]
    NoMap,
    #[error(
        "associative list with keys has an element that omits all key fields [{0}] (and doesn't have default values for any \
         key fields)"
    )]
    NoKeys(String),
    #[error("associative list without keys has an element that's a map type")]
    MapInSet,
    #[error("not supported: associative list with lists as elements")]
    ListInSet,
    #[error("associative list without keys has an element that's an explicit null")]
    NullInSet,
}

/// How a value of a schema is treated.
pub(super) fn shape<'a>(schema: &'a Schema, value: &Value) -> Shape<'a> {
    match schema {
        Schema::Map(map) if !map.atomic => Shape::Map,
        Schema::List(list) if list.kind != ListKind::Atomic => Shape::List(list),
        // What is null may be anything.
        Schema::Any if value.is_object() || value.is_null() => Shape::Map,
        _ => Shape::Leaf,
    }
}

/// The schema of a field of a map.
pub(super) fn member<'a>(schema: &'a Schema, name: &str) -> &'a Schema {
    schema.member(name).map_or(&ANY, |schema| schema)
}

/// Whether a schema knows a field by its name.
pub(super) fn is_named(schema: &Schema, name: &str) -> bool {
    matches!(schema, Schema::Map(map) if map.fields.contains_key(name))
}

/// Whether a map may have a field.
pub(super) fn allows(schema: &Schema, name: &str) -> bool {
    match schema {
        Schema::Map(map) => {
            map.keeps_unknown || map.others.is_some() || map.fields.is_empty() || map.fields.contains_key(name)
        }
        _ => true,
    }
}

/// The schema behind a step.
pub(super) fn beneath<'a>(schema: &'a Schema, element: &Element) -> Option<&'a Schema> {
    match (schema, element) {
        (Schema::Map(_), Element::Field(name)) => Some(member(schema, name)),
        (Schema::List(list), Element::Key(_)) => Some(&list.items),
        _ => None,
    }
}

/// A map that is not empty.
pub(super) fn filled_map(value: &Value) -> Option<&Map<String, Value>> {
    value.as_object().filter(|map| !map.is_empty())
}

/// A list that is not empty.
pub(super) fn filled_list(value: &Value) -> Option<&Vec<Value>> {
    value.as_array().filter(|list| !list.is_empty())
}

/// The step to an entry of a list.
pub(super) fn item_element(list: &ListSchema, item: &Value) -> Result<Element, BadItem> {
    match &list.kind {
        ListKind::Map(keys) => keyed_element(list, keys, item),
        ListKind::Set | ListKind::Atomic => match item {
            Value::Object(_) => Err(BadItem::MapInSet),
            Value::Array(_) => Err(BadItem::ListInSet),
            Value::Null => Err(BadItem::NullInSet),
            scalar => Ok(Element::Value(scalar.clone())),
        },
    }
}

/// The steps to all entries of a list.
pub(super) fn item_elements(list: &ListSchema, items: &[Value]) -> Result<Vec<Element>, BadItem> {
    items.iter().map(|item| item_element(list, item)).collect()
}

/// Keys that are not there have their defaults, or are left out.
fn keyed_element(list: &ListSchema, keys: &[Box<str>], item: &Value) -> Result<Element, BadItem> {
    let map = match item {
        Value::Object(map) => map,
        Value::Null => return Err(BadItem::Null),
        _ => return Err(BadItem::NoMap),
    };
    let default = |key: &str| match &*list.items {
        Schema::Map(item) => item.fields.get(key).and_then(|field| field.default.as_ref()),
        _ => None,
    };
    let found = keys.iter().filter_map(|key| {
        let value = map.get(&**key).or_else(|| default(key))?;
        Some((key.clone(), value.clone()))
    });
    let found: Vec<_> = found.collect();
    if found.is_empty() {
        let keys: Vec<String> = keys.iter().map(|key| crate::validation::quoted(key)).collect();
        return Err(BadItem::NoKeys(keys.join(" ")));
    }
    Ok(Element::key(found))
}

/// Whether a schema takes any JSON as a whole.
pub(super) fn is_untyped(schema: &Schema) -> bool {
    matches!(schema, Schema::Any | Schema::Scalar(Scalar::Untyped))
}
