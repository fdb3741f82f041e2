//! When is a watch over?
//!
//! `--until` takes what `kubectl wait --for` takes. It is met when every object that is watched meets it, and there is at
//! least one; by name, when each named one does. Only `delete` is met when there is none left.

use std::collections::HashMap;
use std::str::FromStr;

use serde_json::Value;
use watchkeeper::ObjectKey;

use crate::output::jsonpath::{Template, value_text};

/// What is waited for.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Until {
    /// There is no object left.
    Deleted,
    /// There is an object.
    Exists,
    /// A condition of the status has this state.
    Condition {
        /// Its type, in any case.
        kind: String,
        /// Its status, in any case.
        status: String,
    },
    /// A path leads to this value; without one, to any.
    Path(Template, Option<String>),
}

impl FromStr for Until {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (word, rest) = text.split_once('=').map_or((text, None), |(word, rest)| (word, Some(rest)));
        match (word.to_ascii_lowercase().as_str(), rest) {
            ("delete" | "deleted", None) => Ok(Self::Deleted),
            ("create" | "created" | "exists", None) => Ok(Self::Exists),
            ("condition", Some(rest)) if !rest.is_empty() => {
                let (kind, status) = rest.split_once('=').unwrap_or((rest, "True"));
                Ok(Self::Condition { kind: kind.to_owned(), status: status.to_owned() })
            }
            ("jsonpath", Some(rest)) if !rest.is_empty() => {
                let (path, value) = split_path(rest);
                let template =
                    Template::parse(path).map_err(|error| format!("the jsonpath cannot be read: {error}"))?;
                Ok(Self::Path(template, value.map(str::to_owned)))
            }
            _ => Err(format!(
                "{text:?} is nothing to wait for; there are delete, create, condition=Ready, condition=Ready=False, \
                 jsonpath='{{.status.phase}}'=Running"
            )),
        }
    }
}

/// `{.a}=b`: the equals sign behind the last brace, since filters have some within.
fn split_path(text: &str) -> (&str, Option<&str>) {
    let end = text.rfind('}').map_or(0, |brace| brace + 1);
    match text[end..].find('=') {
        Some(sign) => (&text[..end + sign], Some(&text[end + sign + 1..])),
        None => (text, None),
    }
}

impl Until {
    /// Whether an object meets it.
    pub(super) fn is_met_by(&self, object: &Value) -> bool {
        match self {
            Self::Deleted => false,
            Self::Exists => true,
            Self::Condition { kind, status } => {
                let conditions = object.pointer("/status/conditions").and_then(Value::as_array);
                conditions.into_iter().flatten().any(|condition| {
                    let is = |name: &str, wanted: &str| {
                        condition
                            .get(name)
                            .and_then(Value::as_str)
                            .is_some_and(|text| text.eq_ignore_ascii_case(wanted))
                    };
                    is("type", kind) && is("status", status) && is_up_to_date(object, condition)
                })
            }
            Self::Path(template, wanted) => {
                let found = template.find(object).unwrap_or_default();
                let mut values = found.iter().flatten();
                match wanted {
                    Some(wanted) => values.any(|value| value_text(value) == *wanted),
                    None => values.next().is_some(),
                }
            }
        }
    }
}

/// As in kubectl, a condition that was found before the object was changed says nothing about what it is now.
fn is_up_to_date(object: &Value, condition: &Value) -> bool {
    let observed = condition.get("observedGeneration").or_else(|| object.pointer("/status/observedGeneration"));
    match (observed.and_then(Value::as_i64), object.pointer("/metadata/generation").and_then(Value::as_i64)) {
        (Some(observed), Some(generation)) => observed >= generation,
        _ => true,
    }
}

/// What is known of all that is watched.
pub(super) struct Waiting {
    until: Until,
    /// Which targets have shown what there is.
    synced: Vec<bool>,
    /// Which of them are one object each.
    named: Vec<bool>,
    objects: HashMap<(usize, ObjectKey), bool>,
}

impl Waiting {
    /// Of so many targets nothing is known yet; `named` are those that are one object.
    pub(super) fn new(until: Until, named: Vec<bool>) -> Self {
        Self { until, synced: vec![false; named.len()], named, objects: HashMap::new() }
    }

    /// A target has shown what there is.
    pub(super) fn synced(&mut self, target: usize) {
        self.synced[target] = true;
    }

    /// An object is this now.
    pub(super) fn put(&mut self, target: usize, key: &ObjectKey, object: &Value) {
        let met = self.until.is_met_by(object);
        self.objects.insert((target, key.clone()), met);
    }

    /// An object is gone.
    pub(super) fn remove(&mut self, target: usize, key: &ObjectKey) {
        self.objects.remove(&(target, key.clone()));
    }

    /// It has happened.
    pub(super) fn is_over(&self) -> bool {
        if self.synced.contains(&false) {
            return false;
        }
        if self.until == Until::Deleted {
            return self.objects.is_empty();
        }
        let is_there = |target: usize| self.objects.keys().any(|(of, _)| *of == target);
        let all_named_are_there = (0..self.named.len()).filter(|target| self.named[*target]).all(is_there);
        !self.objects.is_empty() && all_named_are_there && self.objects.values().all(|met| *met)
    }

    /// How many objects meet it, and how many there are.
    pub(super) fn progress(&self) -> (usize, usize) {
        (self.objects.values().filter(|met| **met).count(), self.objects.len())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn until(text: &str) -> Until {
        text.parse().unwrap_or_else(|error| panic!("{text}: {error}"))
    }

    fn key(name: &str) -> ObjectKey {
        ObjectKey::namespaced("shop", name)
    }

    #[test]
    fn what_kubectl_waits_for_can_be_said() {
        let pod = json!({"status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}], "n": 3}});
        for (text, met) in [
            ("create", true),
            ("delete", false),
            ("condition=Ready", true),
            ("condition=ready=true", true),
            ("condition=Ready=False", false),
            ("condition=Missing", false),
            ("jsonpath={.status.phase}=Running", true),
            ("jsonpath={.status.phase}=Pending", false),
            ("jsonpath={.status.n}=3", true),
            ("jsonpath={.status.conditions[?(@.type==\"Ready\")].status}=True", true),
            ("jsonpath={.status.phase}", true),
            ("jsonpath={.status.missing}", false),
        ] {
            assert_eq!(until(text).is_met_by(&pod), met, "{text}");
        }
        for text in ["", "ready", "condition", "condition=", "jsonpath=", "jsonpath={.a", "delete=x"] {
            assert!(text.parse::<Until>().is_err(), "{text}");
        }
    }

    #[test]
    fn a_condition_of_an_older_generation_is_not_met_yet() {
        let object = |in_status: u64, in_condition: Option<u64>| {
            json!({"metadata": {"generation": 2}, "status": {"observedGeneration": in_status, "conditions": [
                {"type": "Available", "status": "True", "observedGeneration": in_condition},
            ]}})
        };
        let is_met = |object: Value| until("condition=Available").is_met_by(&object);
        assert!(is_met(object(2, Some(2))));
        assert!(!is_met(object(2, Some(1))));
        let mut without = object(1, None);
        without["status"]["conditions"][0].as_object_mut().expect("a map").remove("observedGeneration");
        assert!(!is_met(without));
    }

    #[test]
    fn hostile_objects_meet_nothing() {
        for object in
            [json!(null), json!([]), json!({"status": {"conditions": 7}}), json!({"status": {"conditions": [1]}})]
        {
            assert!(!until("condition=Ready").is_met_by(&object));
            assert!(!until("jsonpath={.status.phase}=Running").is_met_by(&object));
        }
    }

    #[test]
    fn it_is_over_when_all_meet_it_and_all_are_known() {
        let ready = json!({"status": {"conditions": [{"type": "Ready", "status": "True"}]}});
        let mut waiting = Waiting::new(until("condition=Ready"), vec![false, false]);
        waiting.put(0, &key("a"), &ready);
        waiting.synced(0);
        assert!(!waiting.is_over(), "of the second target nothing is known");
        waiting.synced(1);
        assert!(waiting.is_over());
        waiting.put(1, &key("b"), &json!({}));
        assert!(!waiting.is_over());
        waiting.remove(1, &key("b"));
        assert!(waiting.is_over());
    }

    #[test]
    fn without_any_object_only_deletion_is_over() {
        for (text, over) in [("delete", true), ("create", false), ("condition=Ready", false)] {
            let mut waiting = Waiting::new(until(text), vec![false]);
            waiting.synced(0);
            assert_eq!(waiting.is_over(), over, "{text}");
        }
    }

    #[test]
    fn each_named_object_has_to_be_there() {
        let mut waiting = Waiting::new(until("create"), vec![true, true]);
        waiting.synced(0);
        waiting.synced(1);
        waiting.put(0, &key("a"), &json!({}));
        assert!(!waiting.is_over());
        waiting.put(1, &key("b"), &json!({}));
        assert!(waiting.is_over());
    }
}
