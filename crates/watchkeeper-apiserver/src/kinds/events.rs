//! Events, which two groups serve: `v1` and `events.k8s.io/v1` show the same objects in two forms.
//!
//! Counterpart: `k8s.io/kubernetes/pkg/apis/events/v1/conversion.go`.

use serde_json::{Map, Value};

/// The names of a field in the core group, and in `events.k8s.io`.
const FIELDS: [(&str, &str); 7] = [
    ("involvedObject", "regarding"),
    ("message", "note"),
    ("source", "deprecatedSource"),
    ("firstTimestamp", "deprecatedFirstTimestamp"),
    ("lastTimestamp", "deprecatedLastTimestamp"),
    ("count", "deprecatedCount"),
    ("reportingComponent", "reportingController"),
];

/// Whether the objects of a kind are those of the core group's events, in another form.
pub(crate) fn is_other_form(group: &str, plural: &str) -> bool {
    group == "events.k8s.io" && plural == "events"
}

/// Brings an event into the form of a group.
pub(crate) fn convert(event: &mut Map<String, Value>, group: &str) {
    for (core, other) in FIELDS {
        let (from, to) = if group.is_empty() { (other, core) } else { (core, other) };
        if let Some(value) = event.remove(from) {
            event.insert(to.to_owned(), value);
        }
    }
    // The core group shows who reports even if nobody does, the other one does not.
    for field in ["reportingController", "reportingInstance"] {
        if !group.is_empty() && event.get(field).is_some_and(|value| value == "") {
            event.remove(field);
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn there_and_back_it_is_the_same() {
        let mut event = json!({
            "involvedObject": {"name": "p"}, "message": "m", "count": 3, "reason": "r", "series": {"count": 2},
            "reportingComponent": "c", "source": {"component": "c"},
        });
        let core = event.clone();
        let Value::Object(map) = &mut event else { panic!("a map") };
        convert(map, "events.k8s.io");
        let expected = json!({
            "regarding": {"name": "p"}, "note": "m", "deprecatedCount": 3, "reason": "r", "series": {"count": 2},
            "reportingController": "c", "deprecatedSource": {"component": "c"},
        });
        assert_eq!(Value::Object(map.clone()), expected);
        convert(map, "");
        assert_eq!(event, core);
    }
}
