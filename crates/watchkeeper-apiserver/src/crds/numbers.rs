//! Whether a number is as its schema says.
//!
//! Counterpart: `numberValidator` in `k8s.io/kube-openapi/pkg/validation/validate`, whose oddities clients see: what is compared
//! with a whole number is made one first.

use std::cmp::Ordering;

use serde_json::Number;

use super::check::{invalid, nowhere};
use super::path::Path;
use super::props::{Props, Type};
use crate::failure::Cause;

/// What is wrong with a number.
pub(super) fn check(number: &Number, props: &Props, path: &Path<'_>) -> Vec<Cause> {
    let mut causes = Vec::new();
    let limits = &props.limits;
    let kind = props.kind;
    let format = props.format.as_deref().unwrap_or_default();
    let mut in_range = |number: f64, integer: Option<i64>, what: &str| {
        let fits = match (kind, format) {
            (Some(Type::Integer), "int32") => integer.is_some_and(|number| i32::try_from(number).is_ok()),
            (Some(Type::Integer), _) => integer.is_some(),
            (_, "float" | "float32") => number.abs() <= f64::from(f32::MAX),
            _ => true,
        };
        if !fits {
            let kind = kind.map_or("", Type::name);
            let form =
                if format.is_empty() { " (default format)".to_owned() } else { format!(" with format {format}") };
            causes.push(nowhere(format!("{what} value must be of type {kind}{form} in {path}")));
        }
        fits
    };
    let value = number.as_f64().unwrap_or_default();
    // In Go, what is compared with a whole number is made one first.
    let whole = number.as_i64();
    let as_integer = |number: f64| is_whole(number).then_some(number as i64);
    in_range(value, whole.or_else(|| as_integer(value).filter(|_| value.abs() < 9.0e18)), "Checked");
    let mut wrong = Vec::new();
    if let Some(factor) = limits.multiple_of {
        let fits = in_range(factor, as_integer(factor), "MultipleOf");
        let is_multiple = match whole.filter(|_| fits && factor.abs() >= 1.0) {
            Some(whole) => whole.checked_rem(factor as i64) == Some(0),
            None => is_json_integer(if factor < 1.0 { 1.0 / factor * value } else { value / factor }),
        };
        if factor < 0.0 {
            let text = format!("factor MultipleOf declared for {path} must be positive: {}", shown(factor));
            wrong.push(invalid(path, shown(factor), text));
        } else if !is_multiple {
            let factor = shown(factor);
            wrong.push(invalid(path, number, format!("{path} in body should be a multiple of {factor}")));
        }
    }
    let bounds = [
        (limits.minimum, limits.exclusive_minimum, "Minimum boundary", "greater", Ordering::Greater),
        (limits.maximum, limits.exclusive_maximum, "Maximum boundary", "less", Ordering::Less),
    ];
    for (bound, exclusive, what, word, right) in bounds {
        let Some(bound) = bound else { continue };
        let fits = in_range(bound, as_integer(bound), what);
        let (order, bound) = match whole.filter(|_| fits) {
            Some(whole) => (Some(whole.cmp(&(bound as i64))), (bound as i64).to_string()),
            None => (value.partial_cmp(&bound), shown(bound)),
        };
        let holds = order == Some(right) || (order == Some(Ordering::Equal) && !exclusive);
        if !holds {
            let or_equal = if exclusive { "" } else { " or equal to" };
            wrong.push(invalid(path, number, format!("{path} in body should be {word} than{or_equal} {bound}")));
        }
    }
    causes.extend(wrong);
    causes
}

/// A number as Go shows it.
fn shown(number: f64) -> String {
    if is_whole(number) && number.abs() < 1e21 { format!("{number:.0}") } else { number.to_string() }
}

fn is_whole(number: f64) -> bool {
    number.is_finite() && number.fract() == 0.0
}

/// Whether a number is whole, and so small that all whole numbers around it can be told apart.
pub(super) fn is_json_integer(number: f64) -> bool {
    is_whole(number) && number.abs() < 9_007_199_254_740_992.0
}
