//! The selectors that objects have in their specs: `matchLabels` and `matchExpressions`.

use serde_json::Value;

/// A selector as text, in the form of a query: `app=web,tier in (a,b)`. None, if it makes no sense.
///
/// Counterpart: `metav1.LabelSelectorAsSelector`, and its `String`.
pub(crate) fn text_of(selector: &Value) -> Option<String> {
    let mut requirements: Vec<(&str, String)> = Vec::new();
    for (key, value) in selector.get("matchLabels").and_then(Value::as_object).into_iter().flatten() {
        requirements.push((key, format!("{key}={}", value.as_str()?)));
    }
    for expression in selector.get("matchExpressions").and_then(Value::as_array).into_iter().flatten() {
        let key = expression.get("key").and_then(Value::as_str)?;
        let values = expression.get("values").and_then(Value::as_array);
        let mut values: Vec<&str> = values.into_iter().flatten().filter_map(Value::as_str).collect();
        values.sort_unstable();
        let values = values.join(",");
        requirements.push((
            key,
            match expression.get("operator").and_then(Value::as_str)? {
                "In" => format!("{key} in ({values})"),
                "NotIn" => format!("{key} notin ({values})"),
                "Exists" => key.to_owned(),
                "DoesNotExist" => format!("!{key}"),
                _ => return None,
            },
        ));
    }
    requirements.sort_by(|a, b| a.0.cmp(b.0));
    let texts: Vec<String> = requirements.into_iter().map(|(_, text)| text).collect();
    Some(texts.join(","))
}

/// The older selectors, which are plain labels: `app=web`.
pub(crate) fn text_of_labels(labels: &Value) -> String {
    let labels = labels.as_object().into_iter().flatten();
    let mut texts: Vec<String> =
        labels.map(|(key, value)| format!("{key}={}", value.as_str().unwrap_or_default())).collect();
    texts.sort_unstable();
    texts.join(",")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::selectors::LabelSelector;

    #[test]
    fn a_selector_of_an_object_is_one_of_a_query() {
        let selector = json!({
            "matchLabels": {"b": "c"},
            "matchExpressions": [
                {"key": "a", "operator": "In", "values": ["y", "x"]},
                {"key": "d", "operator": "NotIn", "values": ["z"]},
                {"key": "e", "operator": "Exists"},
                {"key": "f", "operator": "DoesNotExist"},
            ],
        });
        let text = text_of(&selector).expect("a selector");
        assert_eq!(text, "a in (x,y),b=c,d notin (z),e,!f");
        let parsed: LabelSelector = text.parse().expect("a selector");
        let labels = [("a", "x"), ("b", "c"), ("e", "")];
        assert!(parsed.matches(|key| labels.iter().find(|(known, _)| *known == key).map(|(_, value)| *value)));
        assert_eq!(text_of(&json!({"matchExpressions": [{"key": "a", "operator": "Near"}]})), None);
        assert_eq!(text_of(&json!({})).as_deref(), Some(""));
        assert_eq!(text_of_labels(&json!({"b": "c", "a": "d"})), "a=d,b=c");
    }
}
