//! An object without some of its fields. Counterpart: `typed/remove.go` of structured-merge-diff.

use serde_json::{Map, Value};

use super::element::Element;
use super::set::{Node, Set};
use super::typed::{Shape, filled_list, filled_map, item_element, member, shape};
use crate::schema::Schema;

/// A value without the fields and entries of a set. What is left with nothing in it is null.
pub(super) fn without(schema: &Schema, value: &Value, set: &Set) -> Value {
    if set.is_empty() {
        return value.clone();
    }
    match shape(schema, value) {
        Shape::Leaf if value.is_array() || value.is_object() => Value::Null,
        Shape::Leaf => value.clone(),
        Shape::Map => match filled_map(value) {
            None => Value::Null,
            Some(map) => {
                let kept = map.iter().filter_map(|(name, value)| {
                    let value = kept(set.field(name), member(schema, name), value)?;
                    Some((name.clone(), value))
                });
                let kept: Map<String, Value> = kept.collect();
                if kept.is_empty() { Value::Null } else { Value::Object(kept) }
            }
        },
        Shape::List(list) => {
            let Some(items) = filled_list(value) else { return Value::Null };
            let kept = items.iter().filter_map(|item| {
                let element: Option<Element> = item_element(list, item).ok();
                kept(element.and_then(|element| set.node(&element)), &list.items, item)
            });
            let kept: Vec<Value> = kept.collect();
            if kept.is_empty() { Value::Null } else { Value::Array(kept) }
        }
    }
}

/// What is left of a part, if it stays.
fn kept(node: Option<&Node>, schema: &Schema, value: &Value) -> Option<Value> {
    match node {
        None => Some(value.clone()),
        Some(node) if node.member => None,
        Some(node) => Some(without(schema, value, &node.children)),
    }
}
