//! What runs pods: jobs, deployments, autoscalers and their like.

use serde_json::{Value, json};

use super::subject::Subject;
use super::{NONE, UNSET, age, labels, quantity};

/// `1/3` of the replicas are ready.
pub(super) fn ready_replicas(set: Subject<'_>) -> Value {
    format!("{}/{}", set.integer("/status/readyReplicas"), set.integer("/spec/replicas")).into()
}

/// A deployment's selector; nothing, if it has none.
pub(super) fn deployment_selector(deployment: Subject<'_>) -> Value {
    labels::requirements(deployment, "/spec/selector").unwrap_or_else(|| "<invalid>".to_owned()).into()
}

pub(super) fn job_status(job: Subject<'_>) -> Value {
    let is_true = |kind: &str| {
        job.condition("/status/conditions", kind).is_some_and(|condition| condition.text("/status") == "True")
    };
    if is_true("Complete") {
        return "Complete".into();
    }
    if is_true("Failed") {
        return "Failed".into();
    }
    if job.is_deleting() {
        return "Terminating".into();
    }
    let others = ["Suspended", "FailureTarget", "SuccessCriteriaMet"];
    others.into_iter().find(|kind| is_true(kind)).unwrap_or("Running").into()
}

/// `1/3`, or `1/1 of 3` where any success is enough.
pub(super) fn job_completions(job: Subject<'_>) -> Value {
    let succeeded = job.integer("/status/succeeded");
    match (job.given_integer("/spec/completions"), job.integer("/spec/parallelism")) {
        (Some(completions), _) => format!("{succeeded}/{completions}"),
        (None, parallelism) if parallelism > 1 => format!("{succeeded}/1 of {parallelism}"),
        _ => format!("{succeeded}/1"),
    }
    .into()
}

pub(super) fn job_duration(job: Subject<'_>) -> Value {
    // A time that is there and is none is Go's zero time, as far back as a duration can be.
    let moment = |pointer| job.at(pointer).map(|time| time.as_str().and_then(|time| time.parse().ok()));
    let end = moment("/status/completionTime").unwrap_or(Some(job.now()));
    match (moment("/status/startTime"), end) {
        (None, _) => "".into(),
        (Some(Some(start)), Some(end)) => age::human(end.duration_since(start)).into(),
        _ => age::UNKNOWN.into(),
    }
}

/// `True`, `False` or `<unset>`.
pub(super) fn suspended(job: Subject<'_>) -> Value {
    match job.given_boolean("/spec/suspend") {
        Some(true) => "True",
        Some(false) => "False",
        None => UNSET,
    }
    .into()
}

/// `statefulset.apps/web`: whose revision it is.
pub(super) fn controller(revision: Subject<'_>) -> Value {
    let mut owners = revision.list("/metadata/ownerReferences");
    let Some(owner) = owners.find(|owner| owner.is_true("/controller")) else { return NONE.into() };
    let (kind, name) = (owner.text("/kind"), owner.text("/name"));
    let group = owner.text("/apiVersion").split_once('/').map_or("", |(group, _)| group);
    match (kind, group) {
        ("", "") => name.into(),
        (_, "") => format!("{}/{name}", kind.to_lowercase()).into(),
        _ => format!("{}.{}/{name}", kind.to_lowercase(), group.to_lowercase()).into(),
    }
}

/// A number of pods or a share of them.
pub(super) fn min_available(budget: Subject<'_>) -> Value {
    number_or_share(budget, "/spec/minAvailable")
}

pub(super) fn max_unavailable(budget: Subject<'_>) -> Value {
    number_or_share(budget, "/spec/maxUnavailable")
}

/// `Deployment/web`: what an autoscaler scales.
pub(super) fn scale_target(autoscaler: Subject<'_>) -> Value {
    let target = "/spec/scaleTargetRef";
    let field = |name: &str| autoscaler.text(&format!("{target}/{name}"));
    format!("{}/{}", field("kind"), field("name")).into()
}

pub(super) fn min_replicas(autoscaler: Subject<'_>) -> Value {
    autoscaler.given_integer("/spec/minReplicas").map_or_else(|| UNSET.to_owned(), |count| count.to_string()).into()
}

/// `cpu: 20%/80%, ...`: what an autoscaler measures, and what it aims at.
pub(super) fn metrics(autoscaler: Subject<'_>) -> Value {
    // Version 1 knows nothing but the CPU.
    let old_target = autoscaler.at("/spec/targetCPUUtilizationPercentage");
    let spec: Value = match old_target {
        Some(target) if autoscaler.count("/spec/metrics") == 0 => cpu(target, "target"),
        _ => autoscaler.at("/spec/metrics").cloned().unwrap_or_default(),
    };
    let old_current = autoscaler.at("/status/currentCPUUtilizationPercentage");
    let status: Value = match old_current {
        Some(current) if autoscaler.count("/status/currentMetrics") == 0 => cpu(current, "current"),
        _ => autoscaler.at("/status/currentMetrics").cloned().unwrap_or_default(),
    };
    let (spec, status) = (Subject::new(&spec, autoscaler.now()), Subject::new(&status, autoscaler.now()));
    let shown: Vec<String> =
        spec.list("").enumerate().map(|(i, metric)| one_metric(metric, status.list("").nth(i))).collect();
    const MOST: usize = 2;
    match shown.len() {
        0 => NONE.to_owned(),
        count if count > MOST => format!("{} + {} more...", shown[..MOST].join(", "), count - MOST),
        _ => shown.join(", "),
    }
    .into()
}

fn cpu(utilization: &Value, part: &str) -> Value {
    json!([{"type": "Resource", "resource": {"name": "cpu", part: {"averageUtilization": utilization}}}])
}

fn one_metric(metric: Subject<'_>, status: Option<Subject<'_>>) -> String {
    let source = match metric.text("/type") {
        "External" => "external",
        "Pods" => "pods",
        "Object" => "object",
        "Resource" => "resource",
        "ContainerResource" => "containerResource",
        _ => return "<unknown type>".to_owned(),
    };
    let target = |field: &str| metric.at(&format!("/{source}/target/{field}"));
    // Some fields are a value even where nobody has set them; others are not there then.
    let measured = status.filter(|status| status.at(&format!("/{source}")).is_some());
    let current = |field: &str| measured.and_then(|status| status.at(&format!("/{source}/current/{field}")));
    let amount = |value: Option<&Value>| value.map_or_else(|| "<nil>".to_owned(), |value| quantity::shown(Some(value)));
    let known =
        |value: Option<&Value>| value.map_or_else(|| "<unknown>".to_owned(), |value| quantity::shown(Some(value)));
    let measured_amount = |field| measured.map_or_else(|| "<unknown>".to_owned(), |_| amount(current(field)));
    match source {
        "pods" => format!("{}/{}", measured_amount("averageValue"), amount(target("averageValue"))),
        "external" | "object" => match target("averageValue") {
            Some(average) => format!("{}/{} (avg)", known(current("averageValue")), quantity::shown(Some(average))),
            None => format!("{}/{}", measured_amount("value"), amount(target("value"))),
        },
        _ => {
            let name = metric.text(&format!("/{source}/name"));
            if let Some(average) = target("averageValue") {
                return format!("{name}: {}/{}", measured_amount("averageValue"), quantity::shown(Some(average)));
            }
            let share = |value: Option<&Value>, other: &str| {
                value.and_then(Value::as_i64).map_or_else(|| other.to_owned(), |share| format!("{share}%"))
            };
            let current = share(current("averageUtilization"), "<unknown>");
            format!("{name}: {current}/{}", share(target("averageUtilization"), "<auto>"))
        }
    }
}

fn number_or_share(budget: Subject<'_>, pointer: &str) -> Value {
    match (budget.given(pointer), budget.given_integer(pointer)) {
        (Some(share), _) => share.to_owned(),
        (_, Some(number)) => number.to_string(),
        _ => "N/A".to_owned(),
    }
    .into()
}
