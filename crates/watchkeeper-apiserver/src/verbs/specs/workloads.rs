//! The specs of kinds that make pods.

use serde_json::Value;

use super::{Causes, is_empty, list, pods, text};
use crate::failure::Cause;
use crate::validation::quoted;

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
        selector if !is_selector(selector, causes) => {
            causes.invalid("spec.selector", selector, "invalid label selector");
        }
        selector if is_empty(selector, "matchLabels") && is_empty(selector, "matchExpressions") => {
            causes.invalid("spec.selector", selector, format!("empty selector is invalid for {kind}"));
        }
        _ => {}
    }
    let labels = spec.pointer("/template/metadata/labels").unwrap_or(&Value::Null);
    let is_empty_selector = !selector.is_null() && selector.as_object().is_some_and(serde_json::Map::is_empty);
    let is_understood = causes.0.iter().all(|cause| !cause.message.ends_with("invalid label selector"));
    if is_understood && !is_empty_selector && !selects(selector, labels) {
        let text = "`selector` does not match template `labels`";
        causes.invalid("spec.template.metadata.labels", labels, text);
    }
    if kind == "deployment" {
        strategy(spec.get("strategy").unwrap_or(&Value::Null), causes);
    }
    let pod = spec.pointer("/template/spec").unwrap_or(&Value::Null);
    pods::check(pod, "spec.template.spec", causes);
    if let policy @ ("OnFailure" | "Never") = text(pod, "restartPolicy") {
        causes.push(Cause::unsupported("spec.template.spec.restartPolicy", quoted(policy), &["Always"]));
    }
}

/// Whether the expressions of a selector can be understood.
fn is_selector(selector: &Value, causes: &mut Causes) -> bool {
    let mut is_good = true;
    for (i, expression) in list(selector, "matchExpressions").iter().enumerate() {
        let path = format!("spec.selector.matchExpressions[{i}]");
        let has_values = !is_empty(expression, "values");
        match text(expression, "operator") {
            "In" | "NotIn" if has_values => continue,
            "In" | "NotIn" => {
                causes.required(format!("{path}.values"), "must be specified when `operator` is 'In' or 'NotIn'");
            }
            "Exists" | "DoesNotExist" if !has_values => continue,
            "Exists" | "DoesNotExist" => {
                let text = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'";
                causes.forbidden(format!("{path}.values"), text);
            }
            other => causes.invalid(format!("{path}.operator"), quoted(other), "not a valid selector operator"),
        }
        is_good = false;
    }
    is_good
}

/// How a deployment replaces its pods.
fn strategy(strategy: &Value, causes: &mut Causes) {
    let rolling = strategy.get("rollingUpdate").unwrap_or(&Value::Null);
    match text(strategy, "type") {
        "" => {}
        "Recreate" if !rolling.is_null() => {
            let text = "may not be specified when strategy `type` is 'Recreate'";
            causes.forbidden("spec.strategy.rollingUpdate", text);
        }
        "Recreate" => {}
        "RollingUpdate" => {
            let is_none = |field: &str| matches!(rolling.get(field), Some(value) if *value == 0 || *value == "0%");
            if is_none("maxUnavailable") && is_none("maxSurge") {
                let value = rolling.get("maxUnavailable").unwrap_or(&Value::Null);
                let text = "may not be 0 when `maxSurge` is 0";
                causes.invalid("spec.strategy.rollingUpdate.maxUnavailable", value, text);
            }
        }
        other => {
            // What Go shows of a strategy that says nothing else.
            let shown = format!(r#"{{"Type":{},"RollingUpdate":null}}"#, quoted(other));
            causes.push(Cause::unsupported("spec.strategy", shown, &["Recreate", "RollingUpdate"]));
        }
    }
}

/// What is wrong with the status of a deployment.
pub(super) fn deployment_status(status: &Value, causes: &mut Causes) {
    let number = |field: &str| status.get(field).and_then(Value::as_i64).unwrap_or_default();
    let counts = ["observedGeneration", "replicas", "updatedReplicas", "readyReplicas", "availableReplicas"];
    for field in counts.into_iter().chain(["unavailableReplicas"]).filter(|field| number(field) < 0) {
        causes.invalid(format!("status.{field}"), number(field), "must be greater than or equal to 0");
    }
    for field in ["updatedReplicas", "readyReplicas", "availableReplicas"] {
        if number(field) > number("replicas") {
            causes.invalid(format!("status.{field}"), number(field), "cannot be greater than status.replicas");
        }
    }
    if number("availableReplicas") > number("readyReplicas") {
        let text = "cannot be greater than readyReplicas";
        causes.invalid("status.availableReplicas", number("availableReplicas"), text);
    }
}

/// What is wrong with a schedule of jobs.
pub(super) fn cron_job(spec: &Value, causes: &mut Causes) {
    match text(spec, "schedule") {
        "" => causes.required("spec.schedule", ""),
        schedule if schedule.starts_with('@') => {}
        schedule => {
            let fields: Vec<&str> = schedule.split_whitespace().filter(|field| !is_time_zone(field)).collect();
            if fields.len() != 5 {
                let text = format!("expected exactly 5 fields, found {}: [{}]", fields.len(), fields.join(" "));
                causes.invalid("spec.schedule", quoted(schedule), text);
            }
        }
    }
    let template = spec.pointer("/jobTemplate/spec").unwrap_or(&Value::Null);
    job(template, "spec.jobTemplate.spec", causes);
}

fn is_time_zone(field: &str) -> bool {
    field.starts_with("TZ=") || field.starts_with("CRON_TZ=")
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
