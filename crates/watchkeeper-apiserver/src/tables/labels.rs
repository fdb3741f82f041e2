//! Labels and label selectors as texts.
//!
//! Counterparts: `FormatLabels` in `k8s.io/apimachinery/pkg/labels`, `FormatLabelSelector` and the generated `String` of
//! `LabelSelector` in `k8s.io/apimachinery/pkg/apis/meta/v1`.

use serde_json::{Map, Value};

use super::NONE;
use super::subject::Subject;
use crate::validation;

/// `a=b,c=d`, or `<none>`.
pub(super) fn shown(labels: Option<&Map<String, Value>>) -> String {
    let mut pairs: Vec<String> = pairs(labels).map(|(key, value)| format!("{key}={value}")).collect();
    pairs.sort_unstable();
    if pairs.is_empty() { NONE.to_owned() } else { pairs.join(",") }
}

/// A label selector, or `<none>` if it says nothing, and `<error>` if it is none.
pub(super) fn selector(subject: Subject<'_>, pointer: &str) -> String {
    match requirements(subject, pointer) {
        None => "<error>".to_owned(),
        Some(text) if text.is_empty() => NONE.to_owned(),
        Some(text) => text,
    }
}

/// A label selector in one line; none, if it is not valid.
pub(super) fn requirements(subject: Subject<'_>, pointer: &str) -> Option<String> {
    let Some(selector) = subject.part(pointer) else { return Some(String::new()) };
    let mut requirements: Vec<(&str, String)> = Vec::new();
    for (key, value) in pairs(selector.map("/matchLabels")) {
        if !is_valid(key, [value]) {
            return None;
        }
        requirements.push((key, format!("{key}={value}")));
    }
    for expression in selector.list("/matchExpressions") {
        let (key, mut values) = (expression.text("/key"), expression.texts("/values"));
        values.sort_unstable();
        if !is_valid(key, values.iter().copied()) {
            return None;
        }
        let joined = values.join(",");
        let text = match (expression.text("/operator"), values.is_empty()) {
            ("In", false) => format!("{key} in ({joined})"),
            ("NotIn", false) => format!("{key} notin ({joined})"),
            ("Exists", true) => key.to_owned(),
            ("DoesNotExist", true) => format!("!{key}"),
            _ => return None,
        };
        requirements.push((key, text));
    }
    requirements.sort_by_key(|(key, _)| *key);
    Some(requirements.into_iter().map(|(_, text)| text).collect::<Vec<_>>().join(","))
}

/// A label selector as Go prints the struct.
pub(super) fn debugged(selector: Subject<'_>) -> String {
    let labels: String = pairs(selector.map("/matchLabels")).map(|(key, value)| format!("{key}: {value},")).collect();
    let expressions: String = selector
        .list("/matchExpressions")
        .map(|expression| {
            let (key, operator) = (expression.text("/key"), expression.text("/operator"));
            let values = expression.texts("/values").join(" ");
            format!("LabelSelectorRequirement{{Key:{key},Operator:{operator},Values:[{values}],}},")
        })
        .collect();
    format!(
        "&LabelSelector{{MatchLabels:map[string]string{{{labels}}},\
         MatchExpressions:[]LabelSelectorRequirement{{{expressions}}},}}"
    )
}

/// The pairs of a map of texts, by key.
fn pairs(labels: Option<&Map<String, Value>>) -> impl Iterator<Item = (&str, &str)> {
    let mut pairs: Vec<(&str, &str)> =
        labels.into_iter().flatten().map(|(key, value)| (key.as_str(), value.as_str().unwrap_or_default())).collect();
    pairs.sort_unstable();
    pairs.into_iter()
}

fn is_valid<'a>(key: &str, values: impl IntoIterator<Item = &'a str>) -> bool {
    validation::label_key(key).is_empty() && values.into_iter().all(|value| validation::label_value(value).is_empty())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn selectors_are_sorted_and_checked() {
        let object = json!({"a": {
            "matchLabels": {"z": "1", "a": "2"},
            "matchExpressions": [
                {"key": "m", "operator": "In", "values": ["y", "x"]},
                {"key": "b", "operator": "DoesNotExist"},
                {"key": "c", "operator": "Exists"},
            ],
        }, "b": {"matchExpressions": [{"key": "m", "operator": "In"}]}, "c": {"matchLabels": {"a b": "c"}}, "d": {}});
        let subject = Subject::new(&object, jiff::Timestamp::UNIX_EPOCH);
        assert_eq!(selector(subject, "/a"), "a=2,!b,c,m in (x,y),z=1");
        assert_eq!(selector(subject, "/b"), "<error>");
        assert_eq!(selector(subject, "/c"), "<error>");
        assert_eq!(selector(subject, "/d"), "<none>");
        assert_eq!(selector(subject, "/e"), "<none>");
        assert_eq!(
            debugged(subject.part("/a").expect("a selector")),
            "&LabelSelector{MatchLabels:map[string]string{a: 2,z: 1,},MatchExpressions:[]LabelSelectorRequirement{\
             LabelSelectorRequirement{Key:m,Operator:In,Values:[y x],},\
             LabelSelectorRequirement{Key:b,Operator:DoesNotExist,Values:[],},\
             LabelSelectorRequirement{Key:c,Operator:Exists,Values:[],},},}"
        );
    }

    #[test]
    fn labels_are_sorted_as_texts() {
        assert_eq!(shown(json!({"a": "x", "a-b": "y", "n": 1}).as_object()), "a-b=y,a=x,n=");
        assert_eq!(shown(None), "<none>");
    }
}
