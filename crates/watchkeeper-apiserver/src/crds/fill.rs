//! Defaults of custom objects. Counterpart: `k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting`.

use serde_json::Value;

use super::props::{Additional, DefaultValue, Props};

/// Fills in what is missing, and removes nulls for which there is no room. `budget` is how many bytes may be added; false, if
/// they did not suffice: a list of a million entries has a million times the defaults of one.
pub(crate) fn fill(value: &mut Value, props: &Props, budget: &mut usize) -> bool {
    drop_nulls(value, Some(props));
    add(value, props, budget)
}

// Values have a bounded depth, and so has this.
fn add(value: &mut Value, props: &Props, budget: &mut usize) -> bool {
    match value {
        Value::Object(map) => {
            for (name, property) in &props.properties {
                let Some(default) = &property.default else { continue };
                if map.get(&**name).is_none_or(|given| property.refuses(given)) {
                    let Some(default) = taken(default, budget) else { return false };
                    map.insert(name.to_string(), default);
                }
            }
            map.iter_mut().all(|(name, value)| match (props.properties.get(name.as_str()), &props.additional) {
                (Some(property), _) => add(value, property, budget),
                (None, Additional::Values(values)) => replace_null(value, values, budget) && add(value, values, budget),
                (None, _) => true,
            })
        }
        Value::Array(values) => match &props.items {
            Some(items) => {
                values.iter_mut().all(|value| replace_null(value, items, budget) && add(value, items, budget))
            }
            None => true,
        },
        _ => true,
    }
}

/// A null in a list, or in a map, becomes the default of its values.
fn replace_null(value: &mut Value, props: &Props, budget: &mut usize) -> bool {
    if let Some(default) = props.default.as_ref().filter(|_| props.refuses(value)) {
        match taken(default, budget) {
            Some(default) => *value = default,
            None => return false,
        }
    }
    true
}

fn taken(default: &DefaultValue, budget: &mut usize) -> Option<Value> {
    *budget = budget.checked_sub(default.size)?;
    Some(default.value.clone())
}

/// Nulls of fields that may not be null, and have no default, are as good as absent.
fn drop_nulls(value: &mut Value, props: Option<&Props>) {
    match value {
        Value::Object(map) => map.retain(|name, value| {
            let field = props.and_then(|props| props.field(name));
            if field.is_some_and(|field| field.refuses(value) && field.default.is_none()) {
                return false;
            }
            drop_nulls(value, field);
            true
        }),
        Value::Array(values) => {
            let items = props.and_then(|props| props.items.as_deref());
            values.iter_mut().for_each(|value| drop_nulls(value, items));
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn filled(schema: Value, mut value: Value) -> Value {
        let props = Props::read(&schema).expect("a schema");
        assert!(fill(&mut value, &props, &mut 1000));
        value
    }

    #[test]
    fn what_is_missing_or_null_is_filled_in() {
        let schema = json!({"type": "object", "properties": {
            "a": {"type": "string", "default": "x"},
            "b": {"type": "string", "default": "x", "nullable": true},
            "c": {"type": "string"},
            "d": {"type": "string", "nullable": true},
            "e": {"type": "object", "default": {}, "properties": {"f": {"type": "integer", "default": 7}}},
            "g": {"type": "object", "properties": {"f": {"type": "integer", "default": 7}}},
            "h": {"type": "array", "items": {"type": "integer", "default": 1}},
        }});
        assert_eq!(filled(schema.clone(), json!({})), json!({"a": "x", "b": "x", "e": {"f": 7}}));
        let given = json!({"a": null, "b": null, "c": null, "d": null, "e": null, "g": {}, "h": [null, 2]});
        let expected = json!({"a": "x", "b": null, "d": null, "e": {"f": 7}, "g": {"f": 7}, "h": [1, 2]});
        assert_eq!(filled(schema, given), expected);
    }

    #[test]
    fn defaults_do_not_grow_without_bound() {
        let text = "x".repeat(100);
        let items = json!({"type": "object", "properties": {"a": {"type": "string", "default": text}}});
        let props = Props::read(&json!({"type": "array", "items": items})).expect("a schema");
        let mut value = json!(vec![json!({}); 100]);
        assert!(!fill(&mut value, &props, &mut 1000));
    }
}
