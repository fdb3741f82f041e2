//! An object with a configuration put into it. Counterpart: `typed/merge.go` of structured-merge-diff.
//!
//! Nothing is removed. Where both say something, the configuration is right, except that null means no more than nothing for
//! what has parts.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value};

use super::element::Element;
use super::typed::{BadItem, Shape, filled_list, filled_map, item_elements, member, shape};
use crate::schema::{ListSchema, Schema};

/// Puts a configuration into an object.
pub(super) fn merged(schema: &Schema, live: &Value, config: &Value) -> Result<Value, BadItem> {
    match shape(schema, config) {
        Shape::Map => match (filled_map(live), filled_map(config)) {
            (None, _) => Ok(config.clone()),
            (Some(_), None) => Ok(live.clone()),
            (Some(live), Some(config)) => merged_map(schema, live, config).map(Value::Object),
        },
        Shape::List(list) => match (filled_list(live), filled_list(config)) {
            (None, _) => Ok(config.clone()),
            (Some(_), None) => Ok(live.clone()),
            (Some(live), Some(config)) => merged_list(list, live, config).map(Value::Array),
        },
        Shape::Leaf => Ok(config.clone()),
    }
}

fn merged_map(
    schema: &Schema,
    live: &Map<String, Value>,
    config: &Map<String, Value>,
) -> Result<Map<String, Value>, BadItem> {
    let mut out = live.clone();
    for (name, config) in config {
        let value = match live.get(name) {
            Some(live) => merged(member(schema, name), live, config)?,
            None => config.clone(),
        };
        out.insert(name.clone(), value);
    }
    Ok(out)
}

/// Entries that only one of the lists has keep their neighbours as far as that goes; those that both have come in the
/// configuration's order.
fn merged_list(list: &ListSchema, live: &[Value], config: &[Value]) -> Result<Vec<Value>, BadItem> {
    let (lefts, rights) = (item_elements(list, live)?, item_elements(list, config)?);
    // Entries of the live list that share a name are not merged with anything.
    let mut left_of: BTreeMap<&Element, Option<&Value>> = BTreeMap::new();
    for (element, item) in lefts.iter().zip(live) {
        left_of.entry(element).and_modify(|known| *known = None).or_insert(Some(item));
    }
    let right_of: BTreeSet<&Element> = rights.iter().collect();
    let mut shared = rights.iter().filter(|element| left_of.contains_key(element));
    let mut next_shared = shared.next();
    let mut taken: BTreeSet<&Element> = BTreeSet::new();
    let mut out = Vec::with_capacity(live.len().max(config.len()));
    let (mut l, mut r) = (0, 0);
    while l < lefts.len() || r < rights.len() {
        if let (Some(left), Some(right)) = (lefts.get(l), rights.get(r)) {
            if left == right {
                out.push(merged_item(list, left_of.get(left).copied().flatten(), &config[r])?);
                taken.insert(right);
                l += 1;
                r += 1;
                next_shared = shared.next();
                continue;
            }
            if right_of.contains(left) && next_shared.is_some_and(|next| next != left) {
                // Both have it, but its turn comes later.
                l += 1;
                continue;
            }
        }
        if let Some(left) = lefts.get(l) {
            if !right_of.contains(left) {
                out.push(live[l].clone());
                l += 1;
                continue;
            }
            if taken.contains(left) {
                l += 1;
            }
        }
        if let Some(right) = rights.get(r) {
            out.push(merged_item(list, left_of.get(right).copied().flatten(), &config[r])?);
            taken.insert(right);
            r += 1;
            if next_shared == Some(right) {
                next_shared = shared.next();
            }
        }
    }
    Ok(out)
}

fn merged_item(list: &ListSchema, live: Option<&Value>, config: &Value) -> Result<Value, BadItem> {
    match live {
        Some(live) => merged(&list.items, live, config),
        None => Ok(config.clone()),
    }
}
