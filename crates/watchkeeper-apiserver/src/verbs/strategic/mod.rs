//! Strategic merge patches: lists are merged by the keys that their types name, and directives say what a merge cannot.
//!
//! - `null` deletes. `$patch: replace` and `$patch: delete` stand in a map, and mean it or, in a merged list, its entry.
//! - `$retainKeys` lists the keys of a map that stay.
//! - `$deleteFromPrimitiveList/<field>` lists what goes from a merged list of scalars.
//! - `$setElementOrder/<field>` is the order that a merged list gets.
//!
//! Counterpart: `k8s.io/apimachinery/pkg/util/strategicpatch`. That looks for every entry in the whole list; here the
//! entries are found by a map.

mod lists;

use serde_json::{Map, Value};

use crate::failure::Failure;
use crate::http::body::json_type;
use crate::schema::{PatchStrategy, Schema};

const DIRECTIVE: &str = "$patch";
const RETAIN_KEYS: &str = "$retainKeys";
const DELETE_FROM_LIST: &str = "$deleteFromPrimitiveList";
const ELEMENT_ORDER: &str = "$setElementOrder";

/// Merges a patch into an object whose type is known.
pub(super) fn merge(
    object: &mut Map<String, Value>,
    patch: Map<String, Value>,
    schema: &Schema,
    type_name: &str,
) -> Result<(), Failure> {
    merge_map(object, patch, Type { schema: Some(schema), name: type_name })
}

/// The type of a value, as far as it is known.
#[derive(Clone, Copy)]
struct Type<'a> {
    schema: Option<&'a Schema>,
    /// What Go calls it: `v1.PodSpec`.
    name: &'a str,
}

impl<'a> Type<'a> {
    fn field(self, name: &str) -> (Self, Option<&'a PatchStrategy>) {
        let Some(Schema::Map(map)) = self.schema else { return (Self { schema: None, name: "" }, None) };
        let (member, patch) = match (map.fields.get(name), &map.others) {
            (Some(field), _) => (Some(&field.schema), field.patch.as_ref()),
            (None, others) => (others.as_ref(), None),
        };
        let name = member.and_then(|member| member.go_type()).unwrap_or_default();
        (Self { schema: member.map(|member| &**member), name }, patch)
    }

    fn items(self) -> Self {
        match self.schema {
            Some(Schema::List(list)) => {
                Self { schema: Some(&list.items), name: list.items.go_type().unwrap_or_default() }
            }
            _ => Self { schema: None, name: "" },
        }
    }

    fn has(self, name: &str) -> bool {
        match self.schema {
            Some(Schema::Map(map)) => map.fields.contains_key(name) || map.others.is_some(),
            _ => true,
        }
    }
}

fn merge_map(original: &mut Map<String, Value>, mut patch: Map<String, Value>, ty: Type<'_>) -> Result<(), Failure> {
    match patch.remove(DIRECTIVE) {
        None => {}
        Some(Value::String(directive)) if directive == "replace" => {
            *original = patch;
            return Ok(());
        }
        Some(Value::String(directive)) if directive == "delete" => {
            original.clear();
            return Ok(());
        }
        Some(directive) => return Err(unknown_directive(&directive, &patch)),
    }
    retain_keys(original, &mut patch)?;
    lists::set_orders(original, &mut patch, ty)?;
    for (key, value) in patch {
        match key.strip_prefix(DELETE_FROM_LIST) {
            Some(rest) => {
                let bad_format = || Failure::bad_request("invalid patch format of primitive list");
                let key = rest.strip_prefix('/').ok_or_else(bad_format)?;
                delete_from_list(original, key, value, ty)?;
            }
            None => merge_field(original, key, value, ty)?,
        }
    }
    Ok(())
}

fn merge_field(original: &mut Map<String, Value>, key: String, value: Value, ty: Type<'_>) -> Result<(), Failure> {
    if value.is_null() {
        original.remove(&key);
        return Ok(());
    }
    let (field, strategy) = ty.field(&key);
    match (original.get_mut(&key), value) {
        (Some(Value::Object(known)), Value::Object(patch)) => merge_map(known, patch, field),
        (Some(Value::Array(known)), Value::Array(patch)) if strategy.is_some_and(|strategy| strategy.merge) => {
            let merge_key = strategy.and_then(|strategy| strategy.merge_key.as_deref());
            lists::merge(known, patch, merge_key, field.items())
        }
        (Some(Value::Array(known)), Value::Array(patch)) => {
            *known = patch;
            Ok(())
        }
        (_, mut value) => {
            discard_nulls(&mut value);
            match without_directives(value) {
                Some(value) => drop(original.insert(key, value)),
                None => drop(original.remove(&key)),
            }
            Ok(())
        }
    }
}

/// What is listed goes from a list of scalars.
fn delete_from_list(original: &mut Map<String, Value>, key: &str, gone: Value, ty: Type<'_>) -> Result<(), Failure> {
    if gone.is_null() {
        original.remove(key);
        return Ok(());
    }
    let (_, strategy) = ty.field(key);
    let (Some(Value::Array(known)), Value::Array(gone)) = (original.get_mut(key), gone) else { return Ok(()) };
    match strategy.is_some_and(|strategy| strategy.merge) {
        true => lists::delete(known, &gone),
        false => {
            *known = gone;
            Ok(())
        }
    }
}

/// Of a map only the keys remain that are listed; a patch for others contradicts itself.
fn retain_keys(original: &mut Map<String, Value>, patch: &mut Map<String, Value>) -> Result<(), Failure> {
    let bad_format = || Failure::bad_request("invalid patch format of retainKeys");
    let Some(keys) = patch.remove(RETAIN_KEYS) else { return Ok(()) };
    let Value::Array(keys) = keys else { return Err(bad_format()) };
    let keys: std::collections::BTreeSet<&str> = keys.iter().filter_map(Value::as_str).collect();
    let is_directive = |key: &str| key.starts_with(DELETE_FROM_LIST) || key.starts_with(ELEMENT_ORDER);
    if patch.iter().any(|(key, value)| !value.is_null() && !is_directive(key) && !keys.contains(key.as_str())) {
        return Err(bad_format());
    }
    original.retain(|key, _| keys.contains(key.as_str()));
    Ok(())
}

/// A null in what is new deletes nothing.
fn discard_nulls(value: &mut Value) {
    match value {
        Value::Object(map) => {
            map.retain(|_, value| !value.is_null());
            map.values_mut().for_each(discard_nulls);
        }
        Value::Array(values) => values.iter_mut().for_each(discard_nulls),
        _ => {}
    }
}

/// What is new has nothing that a directive could change: a map with one is nothing.
fn without_directives(value: Value) -> Option<Value> {
    match value {
        Value::Object(map) if map.contains_key(DIRECTIVE) => None,
        Value::Object(map) => {
            Some(map.into_iter().filter_map(|(key, value)| Some((key, without_directives(value)?))).collect())
        }
        Value::Array(values) => Some(values.into_iter().filter_map(without_directives).collect()),
        value => Some(value),
    }
}

/// Values of objects are not shown in texts: a kube-apiserver shows them here.
fn shown(map: &Map<String, Value>) -> String {
    let keys: Vec<String> = map.keys().map(|key| format!("{key}:...")).collect();
    format!("map[{}]", keys.join(" "))
}

fn unknown_directive(directive: &Value, map: &Map<String, Value>) -> Failure {
    let directive = directive.as_str().unwrap_or_else(|| json_type(directive));
    Failure::internal(format!("unknown patch type: {directive} in map: {}", shown(map)))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// What a patch makes of a deployment's spec.
    fn patched(spec: Value, patch: Value) -> Result<Value, Failure> {
        let kind = crate::kinds::Registry::new().find("apps", "deployments").expect("a kind");
        let schema = crate::schema::of(&kind, "v1").expect("a schema");
        let (Value::Object(mut object), Value::Object(patch)) = (json!({"spec": spec}), json!({"spec": patch})) else {
            panic!("maps")
        };
        merge(&mut object, patch, &schema, "v1.Deployment")?;
        Ok(object["spec"].take())
    }

    fn pod(spec: Value) -> Value {
        json!({"template": {"spec": spec}})
    }

    #[test]
    fn containers_are_merged_by_name_and_come_in_the_order_of_the_patch() {
        let before =
            pod(json!({"containers": [{"name": "a", "image": "1"}, {"name": "b", "image": "1"}, {"name": "c"}]}));
        let patch =
            pod(json!({"containers": [{"name": "c", "image": "2"}, {"name": "a", "image": null}, {"name": "d"}]}));
        let after = json!([{"name": "b", "image": "1"}, {"name": "c", "image": "2"}, {"name": "a"}, {"name": "d"}]);
        let got = patched(before, patch).expect("an object");
        assert_eq!(got, pod(json!({ "containers": after })));
    }

    #[test]
    fn a_list_without_a_strategy_is_replaced() {
        let before = pod(json!({"tolerations": [{"key": "a"}, {"key": "b"}]}));
        let got = patched(before, pod(json!({"tolerations": [{"key": "c"}]}))).expect("an object");
        assert_eq!(got, pod(json!({"tolerations": [{"key": "c"}]})));
    }

    #[test]
    fn thousands_of_entries_take_no_time_to_speak_of() {
        let entries = |from: usize, to: usize| -> Vec<Value> {
            (from..to).map(|i| json!({"name": format!("n{i}"), "image": "x"})).collect()
        };
        let before = pod(json!({"containers": entries(0, 20_000)}));
        let order: Vec<Value> = (0..30_000).rev().map(|i| json!({"name": format!("n{i}")})).collect();
        let mut changes = entries(10_000, 30_000);
        changes.reverse();
        let patch = pod(json!({"$setElementOrder/containers": order, "containers": changes}));
        let started = std::time::Instant::now();
        let got = patched(before, patch).expect("an object");
        let containers = got["template"]["spec"]["containers"].as_array().expect("a list");
        assert_eq!(containers.len(), 30_000);
        assert_eq!(containers[0]["name"], "n29999");
        // A comparison of each with each would take minutes here.
        assert!(started.elapsed() < std::time::Duration::from_secs(20), "{:?}", started.elapsed());
    }
}
