//! When are two values the same, and which is before the other? Counterpart: `value.Equals` and `value.Compare` of
//! structured-merge-diff. Unlike `Value`'s own equality, 1 and 1.0 are the same number here.

use std::cmp::Ordering;

use serde_json::{Number, Value};

/// Whether two values are the same.
pub(super) fn same(one: &Value, other: &Value) -> bool {
    match (one, other) {
        (Value::Number(one), Value::Number(other)) => compare_numbers(one, other).is_eq(),
        (Value::Array(one), Value::Array(other)) => {
            one.len() == other.len() && one.iter().zip(other).all(|(one, other)| same(one, other))
        }
        (Value::Object(one), Value::Object(other)) => {
            one.len() == other.len()
                && one.iter().all(|(key, one)| other.get(key).is_some_and(|other| same(one, other)))
        }
        (one, other) => one == other,
    }
}

/// An order of all values: numbers, texts, booleans, lists, maps, nothing.
pub(super) fn compare(one: &Value, other: &Value) -> Ordering {
    match (one, other) {
        (Value::Number(one), Value::Number(other)) => compare_numbers(one, other),
        (Value::String(one), Value::String(other)) => one.cmp(other),
        (Value::Bool(one), Value::Bool(other)) => one.cmp(other),
        (Value::Array(one), Value::Array(other)) => {
            let different = one.iter().zip(other).map(|(one, other)| compare(one, other)).find(|order| order.is_ne());
            different.unwrap_or_else(|| one.len().cmp(&other.len()))
        }
        (Value::Object(one), Value::Object(other)) => {
            let (mut ones, mut others): (Vec<_>, Vec<_>) = (one.iter().collect(), other.iter().collect());
            // They are sorted, unless another crate of the program has turned on `serde_json/preserve_order`.
            ones.sort_by_key(|(key, _)| *key);
            others.sort_by_key(|(key, _)| *key);
            let pairs = ones.iter().zip(&others);
            let different = pairs.map(|(one, other)| one.0.cmp(other.0).then_with(|| compare(one.1, other.1)));
            different.into_iter().find(|order| order.is_ne()).unwrap_or_else(|| one.len().cmp(&other.len()))
        }
        (one, other) => rank(one).cmp(&rank(other)),
    }
}

fn rank(value: &Value) -> u8 {
    match value {
        Value::Number(_) => 0,
        Value::String(_) => 1,
        Value::Bool(_) => 2,
        Value::Array(_) => 3,
        Value::Object(_) => 4,
        Value::Null => 5,
    }
}

fn compare_numbers(one: &Number, other: &Number) -> Ordering {
    match (one.as_i64(), other.as_i64()) {
        (Some(one), Some(other)) => one.cmp(&other),
        _ => {
            let float = |number: &Number| number.as_f64().unwrap_or_default();
            float(one).partial_cmp(&float(other)).unwrap_or(Ordering::Equal)
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn numbers_are_compared_by_what_they_count() {
        assert!(same(&json!({"a": [1]}), &json!({"a": [1.0]})));
        assert!(!same(&json!(1), &json!("1")));
        assert!(!same(&json!({"a": 1}), &json!({"b": 1})));
    }

    #[test]
    fn values_of_all_types_have_one_order() {
        let ordered = [
            json!(-1.5),
            json!(2),
            json!(10),
            json!(""),
            json!("10"),
            json!("9"),
            json!(false),
            json!(true),
            json!([]),
            json!([1]),
            json!([1, 2]),
            json!([2]),
            json!({}),
            json!({"a": 1}),
            json!({"a": 2}),
            json!({"b": 0}),
            json!(null),
        ];
        for (i, one) in ordered.iter().enumerate() {
            for (j, other) in ordered.iter().enumerate() {
                assert_eq!(compare(one, other), i.cmp(&j), "{one} and {other}");
            }
        }
    }
}
