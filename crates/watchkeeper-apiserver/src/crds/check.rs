//! Whether a value is as its schema says, with the texts of a kube-apiserver.
//!
//! Counterpart: `k8s.io/kube-openapi/pkg/validation/validate`, whose parts run in the same order here: the type, what
//! combines schemas, then what texts, numbers, lists, enumerations and maps are checked for.

use serde_json::Value;

use super::numbers::is_json_integer;
use super::path::Path;
use super::props::{Additional, ListType, Props};
use super::{formats, numbers};
use crate::defaults::{BODY_LIMIT, CAUSES, SHOWN_VALUE, VALIDATION_STEPS};
use crate::failure::Cause;
use crate::validation::quoted;

/// Checks values, for as long as that takes no more than it may.
pub(crate) struct Checker {
    /// How many more values may be looked at: a schema that combines many others looks at each value many times.
    steps: usize,
}

/// What a schema says of a value, and how much of it fits: of several schemas, the best fitting one explains itself.
#[derive(Default)]
struct Outcome {
    causes: Vec<Cause>,
    fits: usize,
}

impl Outcome {
    fn is_valid(&self) -> bool {
        self.causes.is_empty()
    }

    /// Whether more would help nobody.
    fn is_enough(&self) -> bool {
        are_enough(&self.causes)
    }

    fn merge(&mut self, other: Self) {
        self.causes.extend(other.causes);
        self.fits += other.fits;
    }

    fn push(&mut self, cause: Cause) {
        self.causes.push(cause);
    }

    /// A sentence that belongs to no field.
    fn say(&mut self, text: String) {
        self.push(nowhere(text));
    }
}

impl Checker {
    pub(crate) fn new() -> Self {
        Self { steps: VALIDATION_STEPS }
    }

    /// What is wrong with a value; nothing, if the list is empty. What was wrong before, and has not changed, is let be.
    pub(crate) fn check(&mut self, value: &Value, old: Option<&Value>, props: &Props, path: &Path<'_>) -> Vec<Cause> {
        let causes = self.value(value, old, props, path).causes;
        if self.steps == 0 {
            let text = "checking the object against its schema takes too many steps";
            return vec![Cause::new("FieldValueInvalid", &path.to_string(), text.to_owned())];
        }
        causes
    }

    fn spend(&mut self, steps: usize) -> bool {
        self.steps = self.steps.saturating_sub(steps.max(1));
        self.steps > 0
    }

    // Values and schemas have a bounded depth, and so has this.
    fn value(&mut self, value: &Value, old: Option<&Value>, props: &Props, path: &Path<'_>) -> Outcome {
        let mut outcome = Outcome::default();
        // What has not changed is let be. To find that out may take as long as to look at all of it.
        let parts = match (old, value) {
            (None, _) => 1,
            (_, Value::Array(values)) => values.len(),
            (_, Value::Object(map)) => map.len(),
            _ => 1,
        };
        if !self.spend(parts) || old == Some(value) {
            return outcome;
        }
        if value.is_null() {
            outcome.merge(kind(value, props, path));
            outcome.merge(self.allowed(value, props, path));
            return outcome;
        }
        if props.kind.is_some() || props.int_or_string || props.format.is_some() {
            outcome.merge(kind(value, props, path));
            outcome.fits += 1;
        }
        outcome.merge(self.combined(value, old, props, path));
        outcome.fits += 1;
        match value {
            Value::String(text) => {
                outcome.merge(self.text(text, props, path));
                outcome.merge(format(text, props, path));
                outcome.fits += 1;
            }
            Value::Number(number) => {
                outcome.causes.extend(numbers::check(number, props, path));
                outcome.fits += 2;
            }
            Value::Array(values) => {
                outcome.merge(self.list(values, old, props, path));
                outcome.fits += 2;
            }
            _ => {}
        }
        outcome.merge(self.allowed(value, props, path));
        outcome.fits += 1;
        if let Value::Object(_) = value {
            outcome.merge(self.map(value, old, props, path));
            outcome.fits += 1;
        }
        outcome.fits += 1;
        outcome
    }

    fn combined(&mut self, value: &Value, old: Option<&Value>, props: &Props, path: &Path<'_>) -> Outcome {
        let mut outcome = Outcome::default();
        if !props.any_of.is_empty() {
            let mut best: Option<Outcome> = None;
            let mut found = false;
            for props in &props.any_of {
                let tried = self.value(value, old, props, path);
                if tried.is_valid() {
                    (found, best) = (true, None);
                    break;
                }
                best = better(best, tried);
            }
            if !found {
                outcome.say(format!("\"{path}\" must validate at least one schema (anyOf)"));
            }
            best.into_iter().for_each(|best| outcome.merge(best));
        }
        if !props.one_of.is_empty() {
            let mut best: Option<Outcome> = None;
            let mut valid = 0;
            for props in &props.one_of {
                let tried = self.value(value, old, props, path);
                match tried.is_valid() {
                    true => (valid, best) = (valid + 1, None),
                    false if valid == 0 => best = better(best, tried),
                    false => {}
                }
            }
            if valid != 1 {
                let found = match valid {
                    0 => "Found none valid".to_owned(),
                    valid => format!("Found {valid} valid alternatives"),
                };
                outcome.say(format!("\"{path}\" must validate one and only one schema (oneOf). {found}"));
                best.into_iter().for_each(|best| outcome.merge(best));
            }
        }
        if !props.all_of.is_empty() {
            let mut valid = 0;
            for props in &props.all_of {
                let tried = self.value(value, old, props, path);
                valid += usize::from(tried.is_valid());
                outcome.merge(tried);
                if outcome.is_enough() {
                    break;
                }
            }
            if valid != props.all_of.len() {
                let none = if valid == 0 { ". None validated" } else { "" };
                outcome.say(format!("\"{path}\" must validate all the schemas (allOf){none}"));
            }
        }
        if let Some(props) = &props.not
            && self.value(value, None, props, path).is_valid()
        {
            outcome.say(format!("\"{path}\" must not validate the schema (not)"));
        }
        outcome.fits += 1;
        outcome
    }

    fn text(&mut self, text: &str, props: &Props, path: &Path<'_>) -> Outcome {
        let mut outcome = Outcome::default();
        let limits = &props.limits;
        let length = text.chars().count() as u64;
        self.spend(text.len() / 16);
        if let Some(most) = limits.max_length.filter(|most| length > *most) {
            let message = format!("Too long: may not be more than {most} bytes");
            outcome.push(Cause::new("FieldValueTooLong", &path.to_string(), message));
        } else if let Some(least) = limits.min_length.filter(|least| length < *least) {
            outcome.push(invalid(
                path,
                shown_text(text),
                format!("{path} in body should be at least {least} chars long"),
            ));
        } else if let Some(pattern) = &limits.pattern
            && self.spend(pattern.cost(text))
            && !pattern.matches(text)
        {
            outcome.push(invalid(path, shown_text(text), format!("{path} in body should match '{}'", pattern.text())));
        }
        outcome
    }

    fn list(&mut self, values: &[Value], old: Option<&Value>, props: &Props, path: &Path<'_>) -> Outcome {
        let mut outcome = Outcome::default();
        let (limits, count) = (&props.limits, values.len() as u64);
        if let Some(items) = &props.items {
            let old_values = old.and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
            let known = Known::new(old_values, &props.list);
            for (i, value) in values.iter().enumerate() {
                outcome.merge(self.value(value, known.find(value), items, &path.index(i)));
                if outcome.is_enough() {
                    break;
                }
            }
        }
        if let Some(least) = limits.min_items.filter(|least| count < *least) {
            outcome.push(invalid(path, count, format!("{path} in body should have at least {least} items")));
        }
        if let Some(most) = limits.max_items.filter(|most| count > *most) {
            outcome.push(too_many(path, count, most));
        }
        outcome
    }

    fn map(&mut self, value: &Value, old: Option<&Value>, props: &Props, path: &Path<'_>) -> Outcome {
        let mut outcome = Outcome::default();
        let Value::Object(map) = value else { return outcome };
        let (limits, count) = (&props.limits, map.len() as u64);
        if let Some(least) = limits.min_properties.filter(|least| count < *least) {
            outcome.push(invalid(path, count, format!("{path} in body should have at least {least} properties")));
            return outcome;
        }
        if let Some(most) = limits.max_properties.filter(|most| count > *most) {
            outcome.push(too_many(path, count, most));
            return outcome;
        }
        for (name, value) in map.iter().filter(|(name, _)| !props.properties.contains_key(name.as_str())) {
            let field = path.field(name);
            match &props.additional {
                Additional::Allowed(false) => {
                    let text = format!("{field} in body is a forbidden property");
                    outcome.push(invalid(path, quoted(name), text));
                }
                Additional::Values(values) => {
                    let old = old.and_then(|old| old.get(name));
                    outcome.merge(self.value(value, old, values, &field));
                }
                Additional::Allowed(true) | Additional::Unsaid => {}
            }
            if outcome.is_enough() {
                return outcome;
            }
        }
        // Names are sorted, and are looked for where there are more of them.
        for (name, property) in &props.properties {
            if let Some(value) = map.get(&**name) {
                let old = old.and_then(|old| old.get(&**name));
                outcome.merge(self.value(value, old, property, &path.field(name)));
            }
            if outcome.is_enough() {
                return outcome;
            }
        }
        self.spend(props.properties.len() / 16);
        for name in limits.required.iter().filter(|name| !map.contains_key(&***name)).take(CAUSES) {
            let field = path.field(name).to_string();
            outcome.push(Cause::required(&field, ""));
        }
        outcome
    }

    fn allowed(&mut self, value: &Value, props: &Props, path: &Path<'_>) -> Outcome {
        let mut outcome = Outcome::default();
        let allowed = &props.limits.allowed;
        self.spend(allowed.len() / 4);
        if allowed.is_empty() || allowed.iter().any(|allowed| is_equal(allowed, value)) {
            return outcome;
        }
        let message = format!("Unsupported value: {}: supported values: {}", shown_value(value), shown_all(allowed));
        outcome.push(Cause::new("FieldValueNotSupported", &path.to_string(), message));
        outcome
    }
}

/// The entries that a list had before, as far as they can be told apart.
struct Known<'a> {
    keys: &'a [Box<str>],
    entries: std::collections::HashMap<String, &'a Value>,
}

impl<'a> Known<'a> {
    fn new(values: &'a [Value], list: &'a ListType) -> Self {
        let ListType::Map(keys) = list else { return Self { keys: &[], entries: Default::default() } };
        let entries = values.iter().map(|value| (identity(value, keys), value)).collect();
        Self { keys, entries }
    }

    fn find(&self, value: &Value) -> Option<&'a Value> {
        if self.entries.is_empty() { None } else { self.entries.get(&identity(value, self.keys)).copied() }
    }
}

fn identity(value: &Value, keys: &[Box<str>]) -> String {
    keys.iter().map(|key| value.get(&**key).map(Value::to_string).unwrap_or_default() + "\0").collect()
}

/// The better of two failures; of equals the first.
fn better(best: Option<Outcome>, tried: Outcome) -> Option<Outcome> {
    match best {
        Some(best) if tried.fits <= best.fits => Some(best),
        _ => Some(tried),
    }
}

fn kind(value: &Value, props: &Props, path: &Path<'_>) -> Outcome {
    let mut outcome = Outcome::default();
    let expected = match (props.kind, props.int_or_string) {
        (None, true) => "integer,string",
        (Some(kind), _) => kind.name(),
        (None, false) => "",
    };
    let wrong = |expected: &str, given: &str| {
        let text = format!("{path} in body must be of type {expected}: {}", quoted(given));
        Cause::new("FieldValueTypeInvalid", &path.to_string(), format!("Invalid value: {}: {text}", quoted(given)))
    };
    let (given, given_format) = match value {
        Value::Null => {
            if !expected.is_empty() && !props.nullable {
                outcome.push(wrong(expected, "null"));
            }
            return outcome;
        }
        Value::Bool(_) => ("boolean", ""),
        Value::String(_) => ("string", ""),
        Value::Array(_) => ("array", ""),
        Value::Object(_) => ("object", ""),
        Value::Number(number) if number.is_i64() => ("integer", "int64"),
        Value::Number(_) => ("number", "float64"),
    };
    let expects = |name: &str| expected.split(',').any(|expected| expected == name);
    let is_float_integer = given == "number" && expects("integer") && value.as_f64().is_some_and(is_json_integer);
    let fits = expects(given) || is_float_integer || (given == "integer" && expects("number"));
    let is_plain = !matches!(value, Value::String(_) | Value::Array(_));
    let is_numeric = expects("number") || expects("integer");
    match &props.format {
        Some(format) if is_plain && !fits && **format != *given_format => outcome.push(wrong(format, given_format)),
        // A text or a list has whatever format there is.
        Some(_) if !is_plain && !is_numeric => outcome.fits += 1,
        _ if !fits => outcome.push(wrong(expected, given)),
        _ => outcome.fits += 1,
    }
    outcome
}

fn format(text: &str, props: &Props, path: &Path<'_>) -> Outcome {
    let mut outcome = Outcome::default();
    if let Some(format) = &props.format
        && !formats::has_format(format, text)
    {
        let shown = shown_text(text);
        let message = format!("Invalid value: {shown}: {path} in body must be of type {format}: {shown}");
        outcome.push(Cause::new("FieldValueTypeInvalid", &path.to_string(), message));
    }
    outcome
}

fn is_equal(one: &Value, other: &Value) -> bool {
    match (one, other) {
        (Value::Number(one), Value::Number(other)) => one == other || one.as_f64() == other.as_f64(),
        _ => one == other,
    }
}

/// A text as it is, and any other value as JSON.
fn plain(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

fn shown_value(value: &Value) -> String {
    value.as_str().map_or_else(|| clipped(&value.to_string()), shown_text)
}

/// Values of an enumeration, as far as anybody would read them.
fn shown_all(values: &[Value]) -> String {
    let mut shown = String::new();
    for value in values {
        if !shown.is_empty() {
            shown.push_str(", ");
        }
        if shown.len() > SHOWN_VALUE {
            shown.push_str("...");
            break;
        }
        shown.push_str(&shown_text(&plain(value)));
    }
    shown
}

fn shown_text(text: &str) -> String {
    quoted(&clipped(text))
}

/// A text that is not longer than anybody would read: many complaints may show the same long value.
pub(super) fn clipped(text: &str) -> String {
    match text.char_indices().nth(SHOWN_VALUE) {
        Some((end, _)) => format!("{}...", &text[..end]),
        None => text.to_owned(),
    }
}

/// Whether there are so many complaints, or such long ones, that more would help nobody. Their fields may have long names.
pub(super) fn are_enough(causes: &[Cause]) -> bool {
    let bytes = || causes.iter().map(|cause| cause.field.len() + cause.message.len()).sum::<usize>();
    causes.len() >= CAUSES || bytes() > BODY_LIMIT
}

/// A complaint that belongs to no field.
pub(super) fn nowhere(text: String) -> Cause {
    Cause::invalid("<nil>", "\"\"", text)
}

pub(super) fn invalid(path: &Path<'_>, value: impl std::fmt::Display, text: String) -> Cause {
    Cause::invalid(&path.to_string(), value, text)
}

fn too_many(path: &Path<'_>, count: u64, most: u64) -> Cause {
    let message = format!("Too many: {count}: must have at most {most} items");
    Cause::new("FieldValueTooMany", &path.to_string(), message)
}
