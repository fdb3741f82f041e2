//! What must nobody see?
//!
//! The values in `data` and `stringData` of a Secret, and the copy of them that `kubectl apply` leaves in an annotation.
//! They become `*** (12 bytes)`, before any format sees the object: what a format never had, it cannot print.

use std::borrow::Cow;

use serde_json::{Map, Value};

use super::Resource;

/// Where `kubectl apply` keeps the whole object.
const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// The object without its secrets, if it has any. Values that differ from `old` are marked, so that a change of a value
/// stays a change.
pub(super) fn mask<'a>(resource: &Resource, object: &'a Value, old: Option<&Value>) -> Cow<'a, Value> {
    if !is_secret(resource, object) {
        return Cow::Borrowed(object);
    }
    let mut masked = object.clone();
    let Value::Object(fields) = &mut masked else { return Cow::Owned(text(&masked, None, string_length)) };
    for (name, length) in [("data", base64_length as fn(&str) -> usize), ("stringData", string_length)] {
        if let Some(values) = fields.get_mut(name) {
            mask_values(values, old.map(|old| &old[name]), length);
        }
    }
    if let Some(annotation) = fields.get_mut("metadata").and_then(|metadata| metadata.get_mut("annotations")) {
        let old = old.map(|old| &old["metadata"]["annotations"]);
        match annotation {
            Value::Object(annotations) => mask_field(annotations, LAST_APPLIED, old, string_length),
            Value::Null => {}
            other => *other = text(other, old, string_length),
        }
    }
    Cow::Owned(masked)
}

/// Either the kind that was asked for, or what the object says itself: neither is trusted alone.
fn is_secret(resource: &Resource, object: &Value) -> bool {
    let asked = resource.group.is_empty() && resource.kind == "Secret";
    asked || object["kind"] == "Secret" && object["apiVersion"] == "v1"
}

fn mask_values(values: &mut Value, old: Option<&Value>, length: fn(&str) -> usize) {
    match values {
        Value::Object(fields) => {
            let names: Vec<String> = fields.keys().cloned().collect();
            names.iter().for_each(|name| mask_field(fields, name, old, length));
        }
        Value::Null => {}
        other => *other = text(other, old, length),
    }
}

fn mask_field(fields: &mut Map<String, Value>, name: &str, old: Option<&Value>, length: fn(&str) -> usize) {
    if let Some(value) = fields.get_mut(name) {
        // What was not there before is seen to be new without a mark.
        let old = old.and_then(|old| old.get(name));
        *value = text(value, old, length);
    }
}

fn text(value: &Value, old: Option<&Value>, length: fn(&str) -> usize) -> Value {
    let changed = old.is_some_and(|old| old != value);
    Value::String(match (value.as_str().map(length), changed) {
        (None, false) => "***".to_owned(),
        (None, true) => "*** (changed)".to_owned(),
        (Some(1), false) => "*** (1 byte)".to_owned(),
        (Some(1), true) => "*** (1 byte, changed)".to_owned(),
        (Some(length), false) => format!("*** ({length} bytes)"),
        (Some(length), true) => format!("*** ({length} bytes, changed)"),
    })
}

fn string_length(text: &str) -> usize {
    text.len()
}

/// How many bytes the base64 text stands for.
fn base64_length(text: &str) -> usize {
    let digits = text.bytes().filter(|byte| !matches!(byte, b'=' | b'\n' | b'\r')).count();
    digits / 4 * 3 + (digits % 4 * 6) / 8
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::samples;
    use super::*;

    fn masked(object: Value) -> Value {
        mask(&samples::secrets(), &object, None).into_owned()
    }

    #[test]
    fn values_become_their_lengths() {
        let secret = json!({"data": {"password": "aHVudGVyMg==", "empty": "", "one": "YQ=="}, "stringData": {"token": "größe"}, "type": "Opaque"});
        let expected = json!({
            "data": {"password": "*** (7 bytes)", "empty": "*** (0 bytes)", "one": "*** (1 byte)"},
            "stringData": {"token": "*** (7 bytes)"},
            "type": "Opaque",
        });
        assert_eq!(masked(secret), expected);
    }

    #[test]
    fn the_copy_in_the_annotation_is_masked_too() {
        let secret = json!({"metadata": {"annotations": {LAST_APPLIED: "{\"data\":{}}", "team": "shop"}}});
        let expected = json!({"metadata": {"annotations": {LAST_APPLIED: "*** (11 bytes)", "team": "shop"}}});
        assert_eq!(masked(secret), expected);
    }

    #[test]
    fn secrets_of_a_wrong_shape_are_masked_whole() {
        assert_eq!(masked(json!({"data": "c2VjcmV0"})), json!({"data": "*** (6 bytes)"}));
        assert_eq!(masked(json!({"data": ["a", {"b": "c"}]})), json!({"data": "***"}));
        assert_eq!(masked(json!({"data": {"a": {"b": "c"}, "d": 7}})), json!({"data": {"a": "***", "d": "***"}}));
        assert_eq!(masked(json!({"metadata": {"annotations": ["x"]}})), json!({"metadata": {"annotations": "***"}}));
        assert_eq!(masked(json!(["hunter2"])), json!("***"));
        assert_eq!(masked(json!({"data": null, "metadata": 7})), json!({"data": null, "metadata": 7}));
    }

    #[test]
    fn an_object_that_says_it_is_a_secret_is_one() {
        let object = json!({"kind": "Secret", "apiVersion": "v1", "data": {"a": "YQ=="}});
        assert_eq!(mask(&samples::pods(), &object, None)["data"]["a"], "*** (1 byte)");
        let other = json!({"kind": "Secret", "apiVersion": "example.com/v1", "data": {"a": "YQ=="}});
        assert!(matches!(mask(&samples::pods(), &other, None), Cow::Borrowed(_)));
    }

    #[test]
    fn a_changed_value_is_marked_and_nothing_more() {
        let (old, new) =
            (json!({"data": {"a": "YQ==", "b": "YQ=="}}), json!({"data": {"a": "Yg==", "b": "YQ==", "c": "Yw=="}}));
        let shown = mask(&samples::secrets(), &new, Some(&old));
        assert_eq!(shown["data"], json!({"a": "*** (1 byte, changed)", "b": "*** (1 byte)", "c": "*** (1 byte)"}));
    }
}
