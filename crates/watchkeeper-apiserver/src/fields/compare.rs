//! What has changed between two states of an object. Counterpart: `typed/compare.go` of structured-merge-diff.

use std::cmp::Ordering;
use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::element::Element;
use super::set::{Node, Set};
use super::typed::{BadItem, Shape, filled_list, filled_map, item_elements, member, shape};
use super::value::same;
use crate::schema::{ListSchema, Schema};

/// What has changed. No path is in two of the sets.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Comparison {
    pub(super) removed: Set,
    pub(super) modified: Set,
    pub(super) added: Set,
}

impl Comparison {
    /// Compares two objects of the same type.
    pub(super) fn of(schema: &Schema, old: &Value, new: &Value) -> Result<Self, BadItem> {
        let Change { removed, modified, added } = change(schema, old, new)?;
        Ok(Self { removed: removed.beneath, modified: modified.beneath, added: added.beneath })
    }

    /// The same without some fields, and all beneath them.
    pub(super) fn without(self, fields: &Set) -> Self {
        if fields.is_empty() {
            return self;
        }
        Self {
            removed: self.removed.without(fields),
            modified: self.modified.without(fields),
            added: self.added.without(fields),
        }
    }

    /// What there is now and was not there before, or was something else.
    pub(super) fn changed(&self) -> Set {
        self.modified.clone().union(self.added.clone())
    }
}

/// What has happened to a value, and beneath it.
#[derive(Default)]
struct Change {
    removed: Mark,
    modified: Mark,
    added: Mark,
}

#[derive(Default)]
struct Mark {
    here: bool,
    beneath: Set,
}

/// What has happened to the parts of a value.
#[derive(Default)]
struct Parts {
    removed: Vec<Node>,
    modified: Vec<Node>,
    added: Vec<Node>,
}

impl Parts {
    fn push(&mut self, element: impl Fn() -> Element, change: Change) {
        for (nodes, mark) in [
            (&mut self.removed, change.removed),
            (&mut self.modified, change.modified),
            (&mut self.added, change.added),
        ] {
            if mark.here || !mark.beneath.is_empty() {
                nodes.push(Node { element: element(), member: mark.here, children: mark.beneath });
            }
        }
    }

    fn into_change(self) -> Change {
        let beneath = |nodes| Mark { here: false, beneath: Set::of(nodes) };
        Change { removed: beneath(self.removed), modified: beneath(self.modified), added: beneath(self.added) }
    }
}

impl Change {
    fn added(beneath: Set) -> Self {
        Self { added: Mark { here: true, beneath }, ..Self::default() }
    }

    fn removed(beneath: Set) -> Self {
        Self { removed: Mark { here: true, beneath }, ..Self::default() }
    }

    /// Of a value that is taken as a whole.
    fn of_leaf(old: &Value, new: &Value) -> Self {
        Self { modified: Mark { here: !same(old, new), beneath: Set::default() }, ..Self::default() }
    }
}

/// What has happened to a value that was there and is there.
fn change(schema: &Schema, old: &Value, new: &Value) -> Result<Change, BadItem> {
    match (shape(schema, old), shape(schema, new)) {
        (Shape::Map, Shape::Map) => match (filled_map(old), filled_map(new)) {
            // What is empty is a leaf: null and `{}` are different.
            (None, None) => Ok(Change::of_leaf(old, new)),
            (old, new) => map_change(schema, old, new),
        },
        (Shape::List(list), Shape::List(_)) => match (filled_list(old), filled_list(new)) {
            (None, None) => Ok(Change::of_leaf(old, new)),
            (old, new) => list_change(list, old.map_or(&[][..], Vec::as_slice), new.map_or(&[][..], Vec::as_slice)),
        },
        // What nothing is known of has become something else: a map instead of a scalar, or the other way round.
        (Shape::Map, _) | (_, Shape::Map) => {
            let mut change = map_change(schema, filled_map(old), filled_map(new))?;
            change.modified.here = true;
            Ok(change)
        }
        _ => Ok(Change::of_leaf(old, new)),
    }
}

fn map_change(
    schema: &Schema,
    old: Option<&Map<String, Value>>,
    new: Option<&Map<String, Value>>,
) -> Result<Change, BadItem> {
    let mut parts = Parts::default();
    for (name, old, new) in zipped(old, new) {
        let schema = member(schema, name);
        let change = match (old, new) {
            (Some(old), Some(new)) => change(schema, old, new)?,
            (Some(old), None) => Change::removed(everything(schema, old)?),
            (None, Some(new)) => Change::added(everything(schema, new)?),
            (None, None) => continue,
        };
        parts.push(|| Element::field(name), change);
    }
    Ok(parts.into_change())
}

/// The keys of two maps in order, with their values.
fn zipped<'a>(
    old: Option<&'a Map<String, Value>>,
    new: Option<&'a Map<String, Value>>,
) -> impl Iterator<Item = (&'a str, Option<&'a Value>, Option<&'a Value>)> {
    let sorted = |map: Option<&'a Map<String, Value>>| {
        let mut entries: Vec<(&str, &Value)> =
            map.into_iter().flatten().map(|(key, value)| (key.as_str(), value)).collect();
        // They are sorted, unless another crate of the program has turned on `serde_json/preserve_order`.
        if !entries.is_sorted_by_key(|entry| entry.0) {
            entries.sort_unstable_by_key(|entry| entry.0);
        }
        entries.into_iter().peekable()
    };
    let (mut old, mut new) = (sorted(old), sorted(new));
    std::iter::from_fn(move || {
        let order = match (old.peek(), new.peek()) {
            (Some(old), Some(new)) => old.0.cmp(new.0),
            (Some(_), None) => Ordering::Less,
            (None, Some(_)) => Ordering::Greater,
            (None, None) => return None,
        };
        let one = if order.is_le() { old.next() } else { None };
        let other = if order.is_ge() { new.next() } else { None };
        Some((one.or(other)?.0, one.map(|entry| entry.1), other.map(|entry| entry.1)))
    })
}

fn list_change(list: &ListSchema, old: &[Value], new: &[Value]) -> Result<Change, BadItem> {
    // Most lists do not change, and entries need no names then.
    if old == new {
        return Ok(Change::default());
    }
    let mut parts = Parts::default();
    let (old, new) = (grouped(list, old)?, grouped(list, new)?);
    let (mut olds, mut news) = (old.into_iter().peekable(), new.into_iter().peekable());
    loop {
        let order = match (olds.peek(), news.peek()) {
            (Some(old), Some(new)) => old.0.cmp(&new.0),
            (Some(_), None) => Ordering::Less,
            (None, Some(_)) => Ordering::Greater,
            (None, None) => break,
        };
        let (element, old) = if order.is_le() { olds.next().unzip() } else { (None, None) };
        let (other, new) = if order.is_ge() { news.next().unzip() } else { (None, None) };
        let Some(element) = element.or(other) else { break };
        let change = item_change(list, &old.unwrap_or_default(), &new.unwrap_or_default())?;
        parts.push(|| element.clone(), change);
    }
    Ok(parts.into_change())
}

/// What has happened to the entries with one name. There should be one; if there are more, they are taken as a whole.
fn item_change(list: &ListSchema, old: &[&Value], new: &[&Value]) -> Result<Change, BadItem> {
    Ok(match (old, new) {
        ([], []) => Change::default(),
        ([old], [new]) => change(&list.items, old, new)?,
        ([old], []) => Change::removed(everything(&list.items, old)?),
        ([], [new]) => Change::added(everything(&list.items, new)?),
        ([_, _, ..], []) => Change::removed(Set::default()),
        ([], [_, _, ..]) => Change::added(Set::default()),
        ([_, _, ..], [new]) => Change {
            removed: Mark { here: true, beneath: Set::default() },
            added: Mark { here: true, beneath: everything(&list.items, new)? },
            ..Change::default()
        },
        ([old], [_, _, ..]) => Change {
            removed: Mark { here: true, beneath: everything(&list.items, old)? },
            added: Mark { here: true, beneath: Set::default() },
            ..Change::default()
        },
        (old, new) => {
            let equal = old.len() == new.len() && old.iter().zip(new).all(|(old, new)| same(old, new));
            Change { modified: Mark { here: !equal, beneath: Set::default() }, ..Change::default() }
        }
    })
}

/// The entries of a list by their names.
fn grouped<'a>(list: &ListSchema, items: &'a [Value]) -> Result<BTreeMap<Element, Vec<&'a Value>>, BadItem> {
    let mut groups: BTreeMap<Element, Vec<&Value>> = BTreeMap::new();
    for (element, item) in item_elements(list, items)?.into_iter().zip(items) {
        groups.entry(element).or_default().push(item);
    }
    Ok(groups)
}

/// All that is beneath a value that has come or gone.
fn everything(schema: &Schema, value: &Value) -> Result<Set, BadItem> {
    let mut nodes = Vec::new();
    match shape(schema, value) {
        Shape::Leaf => {}
        Shape::Map => {
            for (name, value) in filled_map(value).into_iter().flatten() {
                let children = everything(member(schema, name), value)?;
                nodes.push(Node { element: Element::field(name), member: true, children });
            }
        }
        Shape::List(list) => {
            let items = filled_list(value).map_or(&[][..], Vec::as_slice);
            let elements = item_elements(list, items)?;
            let mut counts: BTreeMap<&Element, usize> = BTreeMap::new();
            for element in &elements {
                *counts.entry(element).or_default() += 1;
            }
            for (element, item) in elements.iter().zip(items) {
                // Of entries with one name, only the name counts.
                let children = if counts[element] == 1 { everything(&list.items, item)? } else { Set::default() };
                nodes.push(Node { element: element.clone(), member: true, children });
            }
        }
    }
    Ok(Set::of(nodes))
}
