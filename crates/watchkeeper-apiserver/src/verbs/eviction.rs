//! `POST` to a pod's `eviction`: deletes it, if its disruption budget allows that.
//!
//! Counterpart: `EvictionREST` in `k8s.io/kubernetes/pkg/registry/core/pod/storage`.

use std::sync::Arc;

use http::StatusCode;
use serde_json::{Value, json};

use super::Call;
use super::binding::set_condition;
use super::delete::{DeleteOptions, delete};
use crate::failure::{Failure, succeeded};
use crate::http::answer::Answer;
use crate::http::body;
use crate::kinds::Kind;
use crate::selectors::LabelSelector;
use crate::storage::{Document, Expect, Stored};
use crate::tables::label_selector;

/// More pods than this that were evicted and not yet counted out are too many.
const MOST_DISRUPTED: usize = 2000;

pub(crate) fn run(call: Call) -> Result<Answer, Failure> {
    let eviction =
        body::call(&call.server.registry, "Eviction", &["policy/v1", "policy/v1beta1"], &call.media_type, &call.body)?;
    let name = eviction.pointer("/metadata/name").and_then(Value::as_str).unwrap_or_default();
    if name != call.name() {
        return Err(Failure::bad_request("name in URL does not match name in Eviction object"));
    }
    call.options.is_dry_run("CreateOptions")?;
    let options = eviction.get("deleteOptions").cloned().unwrap_or(Value::Null);
    let options = DeleteOptions::of_value(options, &call.options.dry_run)?;
    evict(&call, &options)?;
    Ok(Answer::json(StatusCode::CREATED, succeeded(StatusCode::CREATED)))
}

fn evict(call: &Call, options: &DeleteOptions) -> Result<(), Failure> {
    let (server, kind, key) = (&call.server, &call.kind, call.key());
    let pod = server.storage.get(kind, &key).ok_or_else(|| Failure::not_found(kind, call.name()))?;
    options.check(kind, call.name(), &pod)?;
    let document = pod.document();
    let phase = document.as_value().pointer("/status/phase").and_then(Value::as_str).unwrap_or_default();
    // What does not run is not disrupted.
    if !matches!(phase, "Succeeded" | "Failed" | "Pending") && !pod.is_deleting() {
        spend(call, &pod, &document, options.is_dry_run())?;
    }
    let mut options = options.clone();
    if !options.is_dry_run()
        && let Some(revision) = say_why(call, &pod)
    {
        options.follow(revision);
    }
    delete(server, kind, &key, call.name(), &options).map(|_| ())
}

/// Takes one from the budget of a pod, if it has one.
fn spend(call: &Call, pod: &Stored, document: &Document, dry_run: bool) -> Result<(), Failure> {
    let server = &call.server;
    let Some(kind) = server.registry.find("policy", "poddisruptionbudgets") else { return Ok(()) };
    let prefix = call.prefix();
    loop {
        // The present is never too old.
        let budgets = server.storage.list(&kind, &prefix, "", None).map(|list| list.objects).unwrap_or_default();
        let mut budgets = budgets.into_iter().filter(|budget| is_for(budget, pod));
        let Some(budget) = budgets.next() else { return Ok(()) };
        if budgets.next().is_some() {
            return Err(Failure::internal(
                "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support.",
            ));
        }
        let mut next = budget.document();
        if !is_ready(document) && may_always_go(&next) {
            return Ok(());
        }
        decrement(&kind, &budget, &mut next, pod.name(), &server.clock.now())?;
        if dry_run || server.storage.put(&kind, budget.key(), &next, Expect::Revision(budget.revision())).is_ok() {
            return Ok(());
        }
    }
}

/// Whether a budget is about a pod. One that selects nothing in particular is about all, one without a selector about none.
fn is_for(budget: &Stored, pod: &Stored) -> bool {
    let document = budget.document();
    let selector = document.as_value().pointer("/spec/selector").filter(|selector| selector.is_object());
    let selector = selector.and_then(label_selector).and_then(|text| text.parse::<LabelSelector>().ok());
    selector.is_some_and(|selector| selector.matches(|key| pod.label(key)))
}

fn is_ready(pod: &Document) -> bool {
    let conditions = pod.as_value().pointer("/status/conditions").and_then(Value::as_array);
    let mut conditions = conditions.into_iter().flatten();
    conditions.any(|condition| {
        condition.get("type").is_some_and(|name| name == "Ready")
            && condition.get("status").is_some_and(|status| status == "True")
    })
}

/// Whether a budget lets pods go that are not ready.
fn may_always_go(budget: &Document) -> bool {
    let policy = budget.as_value().pointer("/spec/unhealthyPodEvictionPolicy").and_then(Value::as_str);
    let healthy = (number(budget, "currentHealthy"), number(budget, "desiredHealthy"));
    policy == Some("AlwaysAllow") || healthy.0 >= healthy.1 && healthy.1 > 0
}

fn number(budget: &Document, field: &str) -> i64 {
    budget.as_value().pointer(&format!("/status/{field}")).and_then(Value::as_i64).unwrap_or_default()
}

fn decrement(kind: &Arc<Kind>, budget: &Stored, next: &mut Document, pod: &str, now: &str) -> Result<(), Failure> {
    let name = budget.name();
    let allowed = number(next, "disruptionsAllowed");
    if number(next, "observedGeneration") < next.generation() {
        let text = format!("The disruption budget {name} is still being processed by the server.");
        return Err(Failure::disruption(text, Some(10)));
    }
    if allowed < 0 {
        return Err(Failure::forbidden(kind, name, "pdb disruptions allowed is negative"));
    }
    let disrupted =
        next.as_value().pointer("/status/disruptedPods").and_then(Value::as_object).map_or(0, |map| map.len());
    if disrupted > MOST_DISRUPTED {
        let text = "DisruptedPods map too big - too many evictions not confirmed by PDB controller";
        return Err(Failure::forbidden(kind, name, text));
    }
    if allowed == 0 {
        let (desired, current) = (number(next, "desiredHealthy"), number(next, "currentHealthy"));
        let text = format!("The disruption budget {name} needs {desired} healthy pods and has {current} currently");
        return Err(Failure::disruption(text, None));
    }
    let generation = next.generation();
    if let Value::Object(status) = next.map_mut().entry("status").or_insert_with(|| json!({})) {
        status.insert("disruptionsAllowed".to_owned(), (allowed - 1).into());
        if let Value::Object(pods) = status.entry("disruptedPods").or_insert_with(|| json!({})) {
            pods.insert(pod.to_owned(), now.into());
        }
    }
    if allowed == 1 {
        let fields = [
            ("type", json!("DisruptionAllowed")),
            ("status", json!("False")),
            ("observedGeneration", json!(generation)),
            ("reason", json!("InsufficientPods")),
            ("message", json!("")),
        ];
        set_condition(next, &fields, now);
    }
    Ok(())
}

/// Writes into a pod's status why it goes. Its version after that.
fn say_why(call: &Call, pod: &Stored) -> Option<u64> {
    let (server, kind) = (&call.server, &call.kind);
    let fields = [
        ("type", json!("DisruptionTarget")),
        ("status", json!("True")),
        ("lastProbeTime", Value::Null),
        ("reason", json!("EvictionByEvictionAPI")),
        ("message", json!("Eviction API: evicting")),
    ];
    loop {
        let current = server.storage.get(kind, pod.key()).filter(|current| current.uid() == pod.uid())?;
        let old = current.document();
        let mut next = old.clone();
        set_condition(&mut next, &fields, &server.clock.now());
        if next == old {
            return Some(current.revision());
        }
        if let Ok(written) = server.storage.put(kind, pod.key(), &next, Expect::Revision(current.revision())) {
            return Some(written.revision());
        }
    }
}
