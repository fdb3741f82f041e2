//! Lists that are merged: by key, or as sets of scalars.

use std::collections::{HashMap, HashSet};

use serde_json::{Map, Value};

use super::{DIRECTIVE, ELEMENT_ORDER, Type, merge_map, shown, unknown_directive};
use crate::failure::Failure;

/// Merges a list into another. With a key, both are lists of maps.
pub(super) fn merge(
    original: &mut Vec<Value>,
    patch: Vec<Value>,
    key: Option<&str>,
    items: Type<'_>,
) -> Result<(), Failure> {
    if original.is_empty() && patch.is_empty() {
        return Ok(());
    }
    let is_of_maps = check_types(original, &patch)?;
    let (original_order, patch_order, merged) = match is_of_maps {
        false => {
            let orders = (original.clone(), patch.clone());
            original.extend(patch);
            let mut seen = HashSet::new();
            original.retain(|value| seen.insert(value.to_string()));
            (orders.0, orders.1, std::mem::take(original))
        }
        true => {
            let Some(key) = key else {
                return Err(Failure::internal("cannot merge lists without merge key for type struct"));
            };
            let patch = without_special_entries(original, patch, key)?;
            let patch_order: Vec<Value> = patch.iter().map(|entry| only_key(entry, key)).collect();
            let original_order: Vec<Value> = original.iter().map(|entry| only_key(entry, key)).collect();
            merge_entries(original, patch, key, items)?;
            (original_order, patch_order, std::mem::take(original))
        }
    };
    *original = in_order(merged, &patch_order, &original_order, key.filter(|_| is_of_maps))?;
    Ok(())
}

/// Removes scalars from a list of scalars.
pub(super) fn delete(original: &mut Vec<Value>, gone: &[Value]) -> Result<(), Failure> {
    if original.is_empty() && gone.is_empty() {
        return Ok(());
    }
    check_types(original, gone)?;
    let gone: HashSet<String> = gone.iter().map(Value::to_string).collect();
    original.retain(|value| !gone.contains(&value.to_string()));
    Ok(())
}

/// Does what `$setElementOrder/<field>` says, together with the merge of that field; both are taken out of the patch.
pub(super) fn set_orders(
    original: &mut Map<String, Value>,
    patch: &mut Map<String, Value>,
    ty: Type<'_>,
) -> Result<(), Failure> {
    let directives: Vec<String> = patch.keys().filter(|key| key.starts_with(ELEMENT_ORDER)).cloned().collect();
    for directive in directives {
        let order = array(patch.remove(&directive).unwrap_or_default())?;
        let name = directive.strip_prefix(ELEMENT_ORDER).and_then(|rest| rest.strip_prefix('/'));
        let name = name.ok_or_else(|| Failure::bad_request("invalid patch format of setElementOrder list"))?;
        if !ty.has(name) {
            let type_name = ty.name.rsplit('.').next().unwrap_or_default();
            return Err(Failure::internal(format!(
                "unable to find api field in struct {type_name} for the json field \"{name}\""
            )));
        }
        let (field, strategy) = ty.field(name);
        let key = strategy.and_then(|strategy| strategy.merge_key.as_deref());
        let known = original.get(name).cloned().map(array).transpose()?;
        let change = patch.get(name).cloned().map(array).transpose()?;
        check_order(change.as_deref().unwrap_or_default(), &order, key)?;
        let server_order = known.clone().unwrap_or_default();
        let is_of_maps = match (&known, &change) {
            (None, None) => continue,
            (known, change) => {
                let (known, change) = (known.as_deref().unwrap_or_default(), change.as_deref().unwrap_or_default());
                if known.is_empty() && change.is_empty() {
                    return Err(Failure::internal("no elements in any of the given slices"));
                }
                check_types(known, change)?
            }
        };
        patch.remove(name);
        let merged = match (known, change) {
            (Some(mut known), Some(change)) if strategy.is_some_and(|strategy| strategy.merge) => {
                merge(&mut known, change, key, field.items())?;
                known
            }
            (None, Some(change)) => change.into_iter().filter_map(super::without_directives).collect(),
            (_, Some(change)) => change,
            (known, None) => known.unwrap_or_default(),
        };
        let sorted = in_order(merged, &order, &server_order, key.filter(|_| is_of_maps))?;
        original.insert(name.to_owned(), Value::Array(sorted));
    }
    Ok(())
}

/// Takes entries with directives out of a patch, and does what they say.
fn without_special_entries(original: &mut Vec<Value>, patch: Vec<Value>, key: &str) -> Result<Vec<Value>, Failure> {
    let mut plain = Vec::new();
    let mut gone = HashSet::new();
    let mut replaces = false;
    for entry in patch {
        let Value::Object(map) = &entry else { return Err(not_a_map(&entry)) };
        match map.get(DIRECTIVE).map(|directive| (directive, directive.as_str())) {
            None => plain.push(entry),
            Some((_, Some("delete"))) => drop(gone.insert(key_of(map, key)?.to_string())),
            Some((_, Some("replace"))) => replaces = true,
            Some((_, Some("merge"))) => {
                return Err(Failure::internal("merging lists cannot yet be specified in the patch"));
            }
            Some((directive, _)) => return Err(unknown_directive(directive, map)),
        }
    }
    if replaces {
        *original = plain;
        return Ok(Vec::new());
    }
    if !gone.is_empty() {
        original.retain(|entry| entry.get(key).is_none_or(|value| !gone.contains(&value.to_string())));
    }
    Ok(plain)
}

/// Merges the entries of a patch into those of the same key; others are put at the end.
fn merge_entries(original: &mut Vec<Value>, patch: Vec<Value>, key: &str, items: Type<'_>) -> Result<(), Failure> {
    let mut places: HashMap<String, usize> = HashMap::new();
    for (i, entry) in original.iter().enumerate() {
        if let Some(value) = entry.get(key) {
            places.entry(value.to_string()).or_insert(i);
        }
    }
    for entry in patch {
        let Value::Object(map) = entry else { return Err(not_a_map(&entry)) };
        let value = key_of(&map, key)?.to_string();
        match places.get(&value).and_then(|place| original.get_mut(*place)) {
            Some(Value::Object(known)) => merge_map(known, map, items)?,
            _ => {
                places.insert(value, original.len());
                original.push(Value::Object(map));
            }
        }
    }
    Ok(())
}

/// A merged list: what the patch names in the patch's order, the rest in the server's, and both woven together as the
/// server had them.
fn in_order(
    merged: Vec<Value>,
    patch_order: &[Value],
    server_order: &[Value],
    key: Option<&str>,
) -> Result<Vec<Value>, Failure> {
    let patch_places = places(patch_order, key)?;
    let server_places = places(server_order, key)?;
    let mut patched = Vec::new();
    let mut others = Vec::new();
    for entry in merged {
        let identity = identity(&entry, key)?;
        let server_place = server_places.get(&identity).copied();
        match patch_places.get(&identity) {
            Some(place) => patched.push((*place, server_place, entry)),
            None => others.push((server_place.unwrap_or(usize::MAX), server_place, entry)),
        }
    }
    patched.sort_by_key(|(place, _, _)| *place);
    others.sort_by_key(|(place, _, _)| *place);
    let mut sorted = Vec::with_capacity(patched.len() + others.len());
    let mut others = others.into_iter().peekable();
    for (_, place, entry) in patched {
        while let Some(place) = place
            && let Some((_, _, other)) = others.next_if(|(_, other, _)| other.is_some_and(|other| other < place))
        {
            sorted.push(other);
        }
        sorted.push(entry);
    }
    sorted.extend(others.map(|(_, _, entry)| entry));
    Ok(sorted)
}

/// The order that a directive asks for must be that of the patch itself.
fn check_order(patch: &[Value], order: &[Value], key: Option<&str>) -> Result<(), Failure> {
    let has_directive = |entry: &&Value| entry.get(DIRECTIVE).is_some();
    let mut expected = patch.iter().filter(|entry| !has_directive(entry)).peekable();
    if order.is_empty() {
        return Ok(());
    }
    for entry in order {
        let Some(next) = expected.peek() else { return Ok(()) };
        if identity(next, key)? == identity(entry, key)? {
            expected.next();
        }
    }
    match expected.peek() {
        None => Ok(()),
        Some(_) => {
            let names = |entries: &[Value]| -> String {
                let names = entries.iter().map(|entry| match (key, entry) {
                    (Some(key), Value::Object(map)) => {
                        format!("map[{key}:{}]", map.get(key).map_or_else(String::new, plain))
                    }
                    _ => plain(entry),
                });
                names.collect::<Vec<_>>().join(" ")
            };
            Err(Failure::internal(format!(
                "The order in patch list:\n[{}]\n doesn't match {ELEMENT_ORDER} list:\n[{}]\n",
                names(patch),
                names(order)
            )))
        }
    }
}

/// Where each entry stands first.
fn places(order: &[Value], key: Option<&str>) -> Result<HashMap<String, usize>, Failure> {
    let mut places = HashMap::with_capacity(order.len());
    for (i, entry) in order.iter().enumerate() {
        places.entry(identity(entry, key)?).or_insert(i);
    }
    Ok(places)
}

/// What tells an entry from others.
fn identity(entry: &Value, key: Option<&str>) -> Result<String, Failure> {
    match (key, entry) {
        (None, entry) => Ok(entry.to_string()),
        (Some(key), Value::Object(map)) => key_of(map, key).map(Value::to_string),
        (Some(_), entry) => Err(not_a_map(entry)),
    }
}

fn key_of<'a>(map: &'a Map<String, Value>, key: &str) -> Result<&'a Value, Failure> {
    map.get(key)
        .ok_or_else(|| Failure::internal(format!("map: {} does not contain declared merge key: {key}", shown(map))))
}

/// An entry without all that does not tell it from others.
fn only_key(entry: &Value, key: &str) -> Value {
    match entry.get(key) {
        Some(value) => Value::Object([(key.to_owned(), value.clone())].into_iter().collect()),
        None => Value::Object(Map::new()),
    }
}

/// Whether the entries are maps: all of them are, or none.
fn check_types(original: &[Value], patch: &[Value]) -> Result<bool, Failure> {
    let mut entries = original.iter().chain(patch).map(go_type);
    let Some(first) = entries.next() else { return Ok(false) };
    if first == "[]interface {}" {
        return Err(Failure::rejected());
    }
    match entries.all(|other| other == first) && first != "<nil>" {
        true => Ok(first == "map[string]interface {}"),
        false => Err(Failure::internal("list element types are not identical")),
    }
}

fn array(value: Value) -> Result<Vec<Value>, Failure> {
    match value {
        Value::Array(values) => Ok(values),
        other => Err(Failure::internal(format!("expected a []interface {{}}, but received a {}", go_type(&other)))),
    }
}

fn not_a_map(value: &Value) -> Failure {
    Failure::internal(format!("expected a map[string]interface {{}}, but received a {}", go_type(value)))
}

fn go_type(value: &Value) -> &'static str {
    match value {
        Value::Null => "<nil>",
        Value::Bool(_) => "bool",
        Value::Number(number) if number.is_f64() => "float64",
        Value::Number(_) => "int64",
        Value::String(_) => "string",
        Value::Array(_) => "[]interface {}",
        Value::Object(_) => "map[string]interface {}",
    }
}

fn plain(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}
