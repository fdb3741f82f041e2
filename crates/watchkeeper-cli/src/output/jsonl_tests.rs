//! `docs/jsonl.md` says what lines of JSON are: its schema, its examples and what is printed must agree.

use serde_json::{Value, json};

use super::samples::{change, pods};
use super::{ChangeType, PrintOptions, Printer};

const DOCUMENT: &str = include_str!("../../../../docs/jsonl.md");

fn block(language: &str) -> &'static str {
    let after = DOCUMENT.split(&format!("```{language}\n")).nth(1).unwrap_or_default();
    after.split("```").next().unwrap_or_default()
}

/// What the schema holds against a value: as much of JSON Schema as the document uses.
fn faults(schema: &Value, value: &Value, at: &str) -> Vec<String> {
    let mut faults = Vec::new();
    let fits = match schema["type"].as_str() {
        Some("object") => value.is_object(),
        Some("string") => value.is_string(),
        other => return vec![format!("{at}: the schema has a type {other:?} that this test does not know")],
    };
    if !fits {
        faults.push(format!("{at} is no {}", schema["type"]));
    }
    if schema["enum"].as_array().is_some_and(|known| !known.contains(value)) {
        faults.push(format!("{at} is none of {}", schema["enum"]));
    }
    let short = value.as_str().map(str::len) < schema["minLength"].as_u64().map(|length| length as usize);
    if short {
        faults.push(format!("{at} is too short"));
    }
    if schema["format"] == "date-time" && value.as_str().is_none_or(|text| text.parse::<jiff::Timestamp>().is_err()) {
        faults.push(format!("{at} is no time"));
    }
    for name in schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str) {
        if value.get(name).is_none() {
            faults.push(format!("{at}.{name} is missing"));
        }
    }
    for (name, schema) in schema["properties"].as_object().into_iter().flatten() {
        if let Some(value) = value.get(name) {
            faults.extend(self::faults(schema, value, &format!("{at}.{name}")));
        }
    }
    faults
}

fn schema() -> Value {
    serde_json::from_str(block("json")).unwrap_or_default()
}

fn printed(what: ChangeType) -> String {
    let object = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "web-1", "namespace": "shop", "resourceVersion": "7"}});
    let options = PrintOptions { format: "jsonl".parse().unwrap_or_default(), ..PrintOptions::default() };
    let mut out = Vec::new();
    let _ = Printer::new(options).change(&mut out, &[], &change(what, pods(), object));
    String::from_utf8_lossy(&out).into_owned()
}

#[test]
fn what_is_printed_fits_the_schema() {
    for what in [ChangeType::Added, ChangeType::Modified, ChangeType::Deleted] {
        let line = serde_json::from_str::<Value>(&printed(what));
        assert_eq!(line.ok().map(|line| faults(&schema(), &line, "line")), Some(Vec::new()));
    }
}

#[test]
fn the_first_example_is_what_is_printed() {
    assert_eq!(block("json lines").lines().next(), printed(ChangeType::Added).lines().next());
}

#[test]
fn the_examples_fit_the_schema_and_their_faults_would_be_found() {
    let examples: Vec<Value> = block("json lines").lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
    assert_eq!(examples.len(), 2);
    for example in examples {
        assert_eq!(faults(&schema(), &example, "line"), Vec::<String>::new());
    }
    let wrong = json!({"type": "BOOKMARK", "time": "noon", "key": "", "object": {"kind": 7}});
    assert_eq!(faults(&schema(), &wrong, "line").len(), 7);
}

#[test]
fn fields_are_in_the_order_of_the_schema() {
    let line = printed(ChangeType::Added);
    let places = schema()["required"].as_array().cloned().unwrap_or_default();
    let places: Vec<_> = places.iter().map(|name| line.find(&format!("{name}:"))).collect();
    assert!(places.len() == 5 && places.iter().all(Option::is_some) && places.is_sorted(), "{places:?}");
}
