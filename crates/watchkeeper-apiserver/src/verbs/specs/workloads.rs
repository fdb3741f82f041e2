//! The specs of kinds that make pods.

use serde_json::Value;

use super::{Causes, is_empty, pods, text};

/// What is wrong with a kind that keeps a number of pods.
pub(super) fn controller(kind: &str, spec: &Value, causes: &mut Causes) {
    if let Some(replicas) = spec.get("replicas").and_then(Value::as_i64).filter(|replicas| *replicas < 0) {
        causes.invalid("spec.replicas", replicas, "must be greater than or equal to 0");
    }
    let selector = spec.get("selector").unwrap_or(&Value::Null);
    match selector {
        // A daemon set without one is told by its labels alone.
        Value::Null if kind == "daemonset" => {}
        Value::Null => causes.required("spec.selector", ""),
        selector if is_empty(selector, "matchLabels") && is_empty(selector, "matchExpressions") => {
            causes.invalid("spec.selector", selector, format!("empty selector is invalid for {kind}"));
        }
        _ => {}
    }
    let labels = spec.pointer("/template/metadata/labels").unwrap_or(&Value::Null);
    let is_empty_selector = !selector.is_null() && selector.as_object().is_some_and(serde_json::Map::is_empty);
    if !is_empty_selector && !selects(selector, labels) {
        let text = "`selector` does not match template `labels`";
        causes.invalid("spec.template.metadata.labels", labels, text);
    }
    let pod = spec.pointer("/template/spec").unwrap_or(&Value::Null);
    pods::check(pod, "spec.template.spec", causes);
    if let policy @ ("OnFailure" | "Never") = text(pod, "restartPolicy") {
        let cause = crate::failure::Cause::unsupported(
            "spec.template.spec.restartPolicy",
            crate::validation::quoted(policy),
            &["Always"],
        );
        causes.push(cause);
    }
}

/// What is wrong with a schedule of jobs.
pub(super) fn cron_job(spec: &Value, causes: &mut Causes) {
    if text(spec, "schedule").is_empty() {
        causes.required("spec.schedule", "");
    }
    let template = spec.pointer("/jobTemplate/spec").unwrap_or(&Value::Null);
    job(template, "spec.jobTemplate.spec", causes);
}

/// What is wrong with pods that end.
pub(super) fn job(spec: &Value, path: &str, causes: &mut Causes) {
    let pod = spec.pointer("/template/spec").unwrap_or(&Value::Null);
    pods::check(pod, &format!("{path}.template.spec"), causes);
    if matches!(text(pod, "restartPolicy"), "" | "Always") {
        causes.required(format!("{path}.template.spec.restartPolicy"), r#"valid values: "OnFailure", "Never""#);
    }
}

/// Whether a selector means labels. One that is not there means none.
fn selects(selector: &Value, labels: &Value) -> bool {
    let label = |key: &str| labels.get(key).and_then(Value::as_str);
    let mut pairs = selector.get("matchLabels").and_then(Value::as_object).into_iter().flatten();
    let expressions = selector.get("matchExpressions").and_then(Value::as_array);
    !selector.is_null()
        && pairs.all(|(key, value)| label(key) == value.as_str())
        && expressions.into_iter().flatten().all(|expression| {
            let value = label(text(expression, "key"));
            let listed = || {
                let values = expression.get("values").and_then(Value::as_array);
                values.into_iter().flatten().any(|listed| listed.as_str() == value)
            };
            match text(expression, "operator") {
                "In" => value.is_some() && listed(),
                "NotIn" => value.is_none() || !listed(),
                "Exists" => value.is_some(),
                "DoesNotExist" => value.is_none(),
                _ => true,
            }
        })
}
