//! What does `--sort-by` mean?
//!
//! The first value that a jsonpath finds is what an object is sorted by. As in kubectl, numbers sort as numbers,
//! quantities by how much they are, and objects without the value come first. Other texts sort naturally, `web-9` before
//! `web-10`; of kubectl's versions, some do so and some sort by bytes. Texts sort as quantities only if all of them are
//! some, where kubectl asks for each pair anew: an order that depends on the pair is none. Times sort as times on the
//! same condition.

use std::cmp::Ordering;
use std::fmt;

use jiff::Timestamp;
use serde_json::{Number, Value};

use super::jsonpath::{SyntaxError, Template, order_numbers};
use super::quantity;

/// What objects are sorted by.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct SortBy {
    path: String,
    template: Template,
}

/// No object has what they should be sorted by, which is most likely a typing error.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct NothingToSortBy(String);

impl fmt::Display for NothingToSortBy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "no object has a field {:?} to sort by", self.0)
    }
}

impl std::error::Error for NothingToSortBy {}

impl SortBy {
    /// By what a path finds; its braces and first dot may be missing.
    pub(crate) fn parse(path: &str) -> Result<Self, SyntaxError> {
        Template::path(path).map(|template| Self { path: path.to_owned(), template })
    }

    /// The items in their order. Those that are alike keep theirs.
    pub(super) fn sort<T>(
        &self,
        items: Vec<T>,
        object: impl Fn(&T) -> Option<&Value>,
    ) -> Result<Vec<T>, NothingToSortBy> {
        let found = |item: &T| {
            let groups = self.template.find(object(item)?).ok()?;
            groups.into_iter().flatten().next().cloned()
        };
        let values: Vec<Option<Value>> = items.iter().map(found).collect();
        if !items.is_empty() && values.iter().all(Option::is_none) {
            return Err(NothingToSortBy(self.path.clone()));
        }
        let texts = Texts::of(values.iter().flatten());
        let mut keyed: Vec<(Key, T)> = values.into_iter().map(|value| Key::of(value, texts)).zip(items).collect();
        keyed.sort_by(|(left, _), (right, _)| left.order(right));
        Ok(keyed.into_iter().map(|(_, item)| item).collect())
    }
}

/// What all the texts are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Texts {
    Quantities,
    Times,
    Names,
}

impl Texts {
    fn of<'a>(values: impl Iterator<Item = &'a Value> + Clone) -> Self {
        let mut texts = values.filter_map(Value::as_str);
        if texts.clone().all(|text| quantity::parse(text).is_some()) {
            Self::Quantities
        } else if texts.all(|text| text.parse::<Timestamp>().is_ok()) {
            Self::Times
        } else {
            Self::Names
        }
    }
}

/// A value that can be sorted. The order of the variants is the order of values of different types.
enum Key {
    Missing,
    Bool(bool),
    Number(Number),
    Quantity(i128),
    Time(Timestamp),
    Text(String),
    /// Lists and maps, which have no order.
    Other,
}

impl Key {
    fn of(value: Option<Value>, texts: Texts) -> Self {
        match value {
            None | Some(Value::Null) => Self::Missing,
            Some(Value::Bool(truth)) => Self::Bool(truth),
            Some(Value::Number(number)) => Self::Number(number),
            Some(Value::String(text)) => match texts {
                Texts::Quantities => quantity::parse(&text).map_or(Self::Other, Self::Quantity),
                Texts::Times => text.parse().map_or(Self::Other, Self::Time),
                Texts::Names => Self::Text(text),
            },
            Some(Value::Array(_) | Value::Object(_)) => Self::Other,
        }
    }

    fn order(&self, other: &Self) -> Ordering {
        match (self, other) {
            (Self::Bool(left), Self::Bool(right)) => left.cmp(right),
            // JSON has no number that is none, so that all of them have an order.
            (Self::Number(left), Self::Number(right)) => order_numbers(left, right),
            (Self::Quantity(left), Self::Quantity(right)) => left.cmp(right),
            (Self::Time(left), Self::Time(right)) => left.cmp(right),
            (Self::Text(left), Self::Text(right)) => natural(left, right),
            _ => self.rank().cmp(&other.rank()),
        }
    }

    fn rank(&self) -> u8 {
        match self {
            Self::Missing => 0,
            Self::Bool(_) => 1,
            Self::Number(_) => 2,
            Self::Quantity(_) | Self::Time(_) | Self::Text(_) => 3,
            Self::Other => 4,
        }
    }
}

/// Digits as numbers, all else by its bytes. Where only leading zeros differ, fewer of them come first.
fn natural(left: &str, right: &str) -> Ordering {
    let (mut a, mut b) = (left.as_bytes(), right.as_bytes());
    loop {
        let (Some(&x), Some(&y)) = (a.first(), b.first()) else {
            return a.len().cmp(&b.len()).then_with(|| left.len().cmp(&right.len())).then_with(|| left.cmp(right));
        };
        if x.is_ascii_digit() && y.is_ascii_digit() {
            let (number_a, rest_a) = digits(a);
            let (number_b, rest_b) = digits(b);
            let order = number_a.len().cmp(&number_b.len()).then_with(|| number_a.cmp(number_b));
            if order.is_ne() {
                return order;
            }
            (a, b) = (rest_a, rest_b);
        } else if x == y {
            (a, b) = (&a[1..], &b[1..]);
        } else {
            // A number comes before everything else: `ab1` before `ab-1`.
            return y.is_ascii_digit().cmp(&x.is_ascii_digit()).then(x.cmp(&y));
        }
    }
}

/// The number at the beginning, without leading zeros, and what follows it.
fn digits(text: &[u8]) -> (&[u8], &[u8]) {
    let end = text.iter().position(|byte| !byte.is_ascii_digit()).unwrap_or(text.len());
    let (number, rest) = text.split_at(end);
    let start = number.iter().position(|digit| *digit != b'0').unwrap_or(number.len());
    (number.get(start..).unwrap_or_default(), rest)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn sorted(values: &[Value]) -> Vec<Value> {
        let objects = values.iter().map(|value| json!({"v": value})).collect();
        let sorted = SortBy::parse("v").ok().and_then(|by| by.sort(objects, |object| Some(object)).ok());
        sorted.unwrap_or_default().into_iter().map(|mut object: Value| object["v"].take()).collect()
    }

    #[test]
    fn numbers_quantities_times_and_names_sort_as_what_they_are() {
        let cases = [
            json!([2, 10, 10.5, 9_007_199_254_740_993_i64, 9_007_199_254_740_994_i64]),
            json!(["100m", "1", "1500m", "1Ki", "1Mi", "1G", "1Gi"]),
            json!(["2026-11-16T06:50:12+02:00", "2026-11-16T05:50:12Z", "2026-11-16T05:50:12.5Z"]),
            json!(["web1", "web-1", "web-02", "web-2a", "web-10", "zoo"]),
            json!([null, false, true, 3, "a"]),
        ];
        for case in cases {
            let expected = case.as_array().cloned().unwrap_or_default();
            let reversed: Vec<Value> = expected.iter().rev().cloned().collect();
            assert_eq!(sorted(&reversed), expected);
        }
    }

    #[test]
    fn objects_without_the_field_come_first_and_keep_their_order() {
        let objects = vec![json!({"v": 1, "n": 1}), json!({"n": 2}), json!({"v": 0, "n": 3}), json!({"n": 4})];
        let sorted = SortBy::parse("{.v}").map(|by| by.sort(objects, |object| Some(object)));
        let order = |objects: Vec<Value>| objects.iter().map(|object| object["n"].clone()).collect::<Vec<_>>();
        assert_eq!(sorted.map(|sorted| sorted.map(order)), Ok(Ok(vec![json!(2), json!(4), json!(3), json!(1)])));
    }

    #[test]
    fn a_field_that_no_object_has_is_an_error() {
        let by = SortBy::parse(".metadata.nmae");
        let result = by.map(|by| by.sort(vec![json!({})], |object| Some(object)).map_err(|error| error.to_string()));
        assert_eq!(result, Ok(Err("no object has a field \".metadata.nmae\" to sort by".to_owned())));
    }

    proptest! {
        #[test]
        fn natural_order_is_an_order(a in "[a0-2-]{0,5}", b in "[a0-2-]{0,5}", c in "[a0-2-]{0,5}") {
            prop_assert_eq!(natural(&a, &b), natural(&b, &a).reverse());
            prop_assert_eq!(natural(&a, &b) == Ordering::Equal, a == b);
            if natural(&a, &b).is_le() && natural(&b, &c).is_le() {
                prop_assert!(natural(&a, &c).is_le());
            }
        }
    }
}
