//! How do two values of a filter compare?

use std::cmp::Ordering;

use serde_json::{Number, Value};

use super::tree::Operator;

impl Operator {
    /// Whether the comparison holds. Values of different types are not equal, and none is less than the other.
    pub(super) fn holds(self, left: &Value, right: &Value) -> bool {
        let order = order(left, right);
        match self {
            Self::Equal => order == Some(Ordering::Equal) || left == right,
            Self::NotEqual => order != Some(Ordering::Equal) && left != right,
            Self::Less => order == Some(Ordering::Less),
            Self::LessOrEqual => order.is_some_and(Ordering::is_le),
            Self::Greater => order == Some(Ordering::Greater),
            Self::GreaterOrEqual => order.is_some_and(Ordering::is_ge),
        }
    }
}

/// Orders two numbers, whatever they are made of. It is an order: an integer is not rounded to be compared, since `a = b`
/// and `b = c` would not give `a = c` otherwise.
pub(in crate::output) fn order_numbers(left: &Number, right: &Number) -> Ordering {
    match (left.as_i128(), right.as_i128()) {
        (Some(left), Some(right)) => left.cmp(&right),
        (Some(left), None) => order_integer(left, right.as_f64().unwrap_or_default()),
        (None, Some(right)) => order_integer(right, left.as_f64().unwrap_or_default()).reverse(),
        // JSON has no number that is none.
        (None, None) => left.as_f64().unwrap_or_default().total_cmp(&right.as_f64().unwrap_or_default()),
    }
}

/// Orders an integer and a fraction exactly: by the whole part, then by whether there is more.
fn order_integer(integer: i128, fraction: f64) -> Ordering {
    // The conversion saturates, far beyond every integer of JSON.
    let whole = fraction.trunc();
    integer.cmp(&(whole as i128)).then_with(|| 0.0_f64.partial_cmp(&(fraction - whole)).unwrap_or(Ordering::Equal))
}

fn order(left: &Value, right: &Value) -> Option<Ordering> {
    match (left, right) {
        (Value::String(left), Value::String(right)) => Some(left.cmp(right)),
        (Value::Number(left), Value::Number(right)) => Some(order_numbers(left, right)),
        _ => None,
    }
}
