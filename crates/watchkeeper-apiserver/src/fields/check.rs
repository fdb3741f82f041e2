//! Whether a configuration is of its type. Counterpart: `typed/validate.go` of structured-merge-diff.

use std::collections::BTreeSet;

use serde_json::Value;

use super::element::Element;
use super::typed::{Shape, allows, is_untyped, item_element, member, shape};
use crate::schema::{ListKind, Scalar, Schema};

/// How many faults are told, and about how many bytes of them: each has its whole path.
const FAULTS: usize = 100;
const FAULT_BYTES: usize = 4 << 20;

/// Checks a configuration; says what Go says of one that is not of its type.
pub(super) fn check(schema: &Schema, config: &Value) -> Result<(), String> {
    let mut faults = Vec::new();
    walk(schema, config, &mut Vec::new(), &mut faults);
    match faults.as_slice() {
        [] => Ok(()),
        [one] => Err(one.clone()),
        many => Err(format!("errors:\n  {}", many.join("\n  "))),
    }
}

fn walk(schema: &Schema, value: &Value, path: &mut Vec<Element>, faults: &mut Vec<String>) {
    if value.is_null() || is_untyped(schema) && !value.is_object() {
        return;
    }
    match (schema, value) {
        (Schema::Any | Schema::Map(_), Value::Object(map)) => {
            for (name, value) in map {
                if are_enough(faults) {
                    return;
                }
                path.push(Element::field(name));
                match allows(schema, name) {
                    true => walk(member(schema, name), value, path, faults),
                    false => faults.push(fault(path, "field not declared in schema")),
                }
                path.pop();
            }
        }
        (Schema::List(list), Value::Array(items)) => {
            let mut seen = BTreeSet::new();
            for (i, item) in items.iter().enumerate() {
                if are_enough(faults) {
                    return;
                }
                let element = match shape(schema, value) {
                    Shape::List(list) => match item_element(list, item) {
                        Ok(element) => element,
                        Err(bad) => {
                            faults.push(fault(path, &format!("element {i}: {bad}")));
                            return;
                        }
                    },
                    _ => Element::Index(i64::try_from(i).unwrap_or(i64::MAX)),
                };
                if list.kind != ListKind::Atomic && !seen.insert(element.clone()) {
                    faults.push(fault(path, &format!("duplicate entries for key {element}")));
                }
                path.push(element);
                walk(&list.items, item, path, faults);
                path.pop();
            }
        }
        (Schema::Scalar(scalar), value) => {
            if let Some(text) = scalar_fault(*scalar, value) {
                faults.push(fault(path, &text));
            }
        }
        (Schema::Map(_), value) => faults.push(fault(path, &format!("expected map, got &{{{}}}", plain(value)))),
        (Schema::List(_), value) => faults.push(fault(path, &format!("expected list, got &{{{}}}", plain(value)))),
        (Schema::Any, _) => {}
    }
}

fn are_enough(faults: &[String]) -> bool {
    faults.len() >= FAULTS || faults.iter().map(String::len).sum::<usize>() > FAULT_BYTES
}

fn fault(path: &[Element], text: &str) -> String {
    if path.is_empty() {
        return text.to_owned();
    }
    let path: String = path.iter().map(ToString::to_string).collect();
    format!("{path}: {text}")
}

fn scalar_fault(scalar: Scalar, value: &Value) -> Option<String> {
    let ok = match scalar {
        Scalar::Integer | Scalar::Number => value.is_number(),
        Scalar::String | Scalar::Bytes => value.is_string(),
        Scalar::Boolean => value.is_boolean(),
        Scalar::Untyped => true,
        Scalar::IntOrString | Scalar::Quantity | Scalar::Time | Scalar::MicroTime => {
            !value.is_object() && !value.is_array()
        }
    };
    (!ok).then(|| match scalar {
        Scalar::Integer | Scalar::Number => format!("expected numeric (int or float), got {}", go_type(value)),
        Scalar::String | Scalar::Bytes => {
            format!("expected string, got &value.valueUnstructured{{Value:{}}}", go_syntax(value))
        }
        Scalar::Boolean => format!("expected boolean, got &{{{}}}", plain(value)),
        _ => format!("expected any scalar, got &{{{}}}", plain(value)),
    })
}

/// Go's `%T`.
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

/// Go's `%#v`.
fn go_syntax(value: &Value) -> String {
    match value {
        Value::Null => "interface {}(nil)".to_owned(),
        Value::Array(values) => {
            format!("[]interface {{}}{{{}}}", values.iter().map(go_syntax).collect::<Vec<_>>().join(", "))
        }
        Value::Object(map) => {
            let entry =
                |(key, value): (&String, &Value)| format!("{}:{}", crate::validation::quoted(key), go_syntax(value));
            format!("map[string]interface {{}}{{{}}}", map.iter().map(entry).collect::<Vec<_>>().join(", "))
        }
        Value::String(text) => crate::validation::quoted(text),
        scalar => scalar.to_string(),
    }
}

/// Go's `%v`.
fn plain(value: &Value) -> String {
    match value {
        Value::Null => "<nil>".to_owned(),
        Value::String(text) => text.clone(),
        Value::Array(values) => format!("[{}]", values.iter().map(plain).collect::<Vec<_>>().join(" ")),
        Value::Object(map) => {
            let entry = |(key, value): (&String, &Value)| format!("{key}:{}", plain(value));
            format!("map[{}]", map.iter().map(entry).collect::<Vec<_>>().join(" "))
        }
        scalar => scalar.to_string(),
    }
}
