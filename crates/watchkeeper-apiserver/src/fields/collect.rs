//! The fields that a configuration mentions. Counterpart: `typed/tofieldset.go` of structured-merge-diff.
//!
//! Fields of structs are mentioned by what is in them; keys of maps and entries of lists by themselves.

use std::collections::BTreeMap;

use serde_json::Value;

use super::element::Element;
use super::set::{Node, Set};
use super::typed::{BadItem, Shape, is_named, item_elements, member, shape};
use crate::schema::Schema;

/// The fields that a value mentions.
pub(super) fn fields(schema: &Schema, value: &Value) -> Result<Set, BadItem> {
    collect(schema, value).map(|(_, set)| set)
}

/// Whether a value is mentioned itself, and what is beneath it.
fn collect(schema: &Schema, value: &Value) -> Result<(bool, Set), BadItem> {
    let mut nodes = Vec::new();
    match (shape(schema, value), value) {
        (Shape::Leaf, _) => return Ok((true, Set::default())),
        (Shape::Map, Value::Object(map)) => {
            for (name, value) in map {
                let (leaf, children) = collect(member(schema, name), value)?;
                let nothing = value.is_null() || value.as_object().is_some_and(serde_json::Map::is_empty);
                let member = leaf || nothing || !is_named(schema, name);
                nodes.push(Node { element: Element::field(name), member, children });
            }
        }
        (Shape::List(list), Value::Array(items)) => {
            let elements = item_elements(list, items)?;
            let mut counts: BTreeMap<&Element, usize> = BTreeMap::new();
            for element in &elements {
                *counts.entry(element).or_default() += 1;
            }
            for (element, item) in elements.iter().zip(items) {
                // Of entries with one name, only the name counts.
                let (_, children) =
                    if counts[element] == 1 { collect(&list.items, item)? } else { (true, Set::default()) };
                nodes.push(Node { element: element.clone(), member: true, children });
            }
        }
        _ => {}
    }
    Ok((false, Set::of(nodes)))
}
