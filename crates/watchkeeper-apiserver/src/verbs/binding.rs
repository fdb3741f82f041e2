//! `POST` to a pod's `binding`, or to `bindings`: puts a pod onto a node.
//!
//! Counterpart: `BindingREST` in `k8s.io/kubernetes/pkg/registry/core/pod/storage`.

use http::StatusCode;
use serde_json::{Map, Value, json};

use super::Call;
use super::write::place;
use crate::failure::{Failure, succeeded};
use crate::http::answer::Answer;
use crate::http::body::{self, Sent};
use crate::storage::{Document, Expect, Stored};
use crate::validation::quoted;

pub(crate) fn run(call: Call) -> Result<Answer, Failure> {
    let dry_run = call.options.is_dry_run("CreateOptions")?;
    let registry = &call.server.registry;
    let kind = registry.find("", "bindings").ok_or_else(Failure::no_such_resource)?;
    let mut binding = body::object(registry, &kind, kind.storage_version(), &call.media_type, &call.body)?;
    if call.subresource.is_some() && binding.document.meta("name") != call.name() {
        return Err(Failure::bad_request("name in URL does not match name in Binding object"));
    }
    place(&call, &mut binding.document)?;
    let node = target(&binding.document)?;
    bind(&call, &binding, &node, dry_run)?;
    Ok(Answer::json(StatusCode::CREATED, succeeded(StatusCode::CREATED)))
}

/// The node that is meant.
fn target(binding: &Document) -> Result<String, Failure> {
    let text = |field: &str| {
        let value = binding.as_value().pointer(&format!("/target/{field}"));
        value.and_then(Value::as_str).unwrap_or_default().to_owned()
    };
    let (kind, name) = (text("kind"), text("name"));
    let mut faults = Vec::new();
    if !matches!(kind.as_str(), "" | "Node") {
        let kind = quoted(&kind);
        faults.push(format!("target.kind: Unsupported value: {kind}: supported values: \"Node\", \"<empty>\""));
    }
    if name.is_empty() {
        faults.push("target.name: Required value".to_owned());
    }
    match faults.as_slice() {
        [] => Ok(name),
        // A kube-apiserver has no reason and no better code for these.
        [one] => Err(Failure::internal(one)),
        many => Err(Failure::internal(format!("[{}]", many.join(", ")))),
    }
}

fn bind(call: &Call, binding: &Sent, node: &str, dry_run: bool) -> Result<(), Failure> {
    let server = &call.server;
    let pods = server.registry.find("", "pods").ok_or_else(Failure::no_such_resource)?;
    let name = binding.document.meta("name");
    let key = call.key_of(name);
    loop {
        let pod = server.storage.get(&pods, &key).ok_or_else(|| Failure::not_found(&pods, name))?;
        check(call, &pod, name, binding)?;
        let mut next = pod.document();
        if let Value::Object(spec) = next.map_mut().entry("spec").or_insert_with(|| json!({})) {
            spec.insert("nodeName".to_owned(), node.into());
        }
        for field in ["annotations", "labels"] {
            if let Some(Value::Object(more)) = binding.document.metadata().get(field) {
                let known = next.metadata_mut().entry(field).or_insert_with(|| json!({}));
                if let Value::Object(known) = known {
                    known.extend(more.clone());
                }
            }
        }
        let scheduled = [("type", json!("PodScheduled")), ("status", json!("True")), ("lastProbeTime", Value::Null)];
        set_condition(&mut next, &scheduled, &server.clock.now());
        if dry_run || server.storage.put(&pods, &key, &next, Expect::Revision(pod.revision())).is_ok() {
            return Ok(());
        }
    }
}

/// A pod goes to one node, once, and not when it is leaving.
fn check(call: &Call, pod: &Stored, name: &str, binding: &Sent) -> Result<(), Failure> {
    if let Some(revision) = binding.revision()?.filter(|revision| *revision != pod.revision()) {
        let text = format!(
            "StorageError: invalid object, Code: 4, Key: /registry/pods/{}, ResourceVersion: 0, AdditionalErrorMsg: \
             Precondition failed: ResourceVersion in precondition: {revision}, ResourceVersion in object meta: {}",
            pod.key(),
            pod.revision()
        );
        return Err(Failure::conflict("pods", "", name, text));
    }
    // Of what comes to the old path nobody asks for a uid.
    let uid = if call.subresource.is_some() { binding.document.meta("uid") } else { "" };
    if !uid.is_empty() && uid != pod.uid() {
        let text = format!(
            "StorageError: invalid object, Code: 4, Key: /registry/pods/{}, ResourceVersion: 0, AdditionalErrorMsg: \
             Precondition failed: UID in precondition: {uid}, UID in object meta: {}",
            pod.key(),
            pod.uid()
        );
        return Err(Failure::conflict("pods", "", name, text));
    }
    let conflict = |text: String| Err(Failure::conflict("pods/binding", "", name, text));
    if pod.is_deleting() {
        return conflict(format!("pod {name} is being deleted, cannot be assigned to a host"));
    }
    let document = pod.document();
    let spec = |field: &str| document.as_value().pointer(&format!("/spec/{field}"));
    let node = spec("nodeName").and_then(Value::as_str).unwrap_or_default();
    if !node.is_empty() {
        return conflict(format!("pod {name} is already assigned to node {}", quoted(node)));
    }
    if spec("schedulingGates").and_then(Value::as_array).is_some_and(|gates| !gates.is_empty()) {
        return conflict(format!("pod {name} has non-empty .spec.schedulingGates"));
    }
    Ok(())
}

/// Sets a condition of a pod. Its time changes with its status only.
pub(super) fn set_condition(pod: &mut Document, fields: &[(&str, Value)], now: &str) {
    let condition: Map<String, Value> = fields.iter().map(|(key, value)| ((*key).to_owned(), value.clone())).collect();
    let status = pod.map_mut().entry("status").or_insert_with(|| json!({}));
    let Value::Object(status) = status else { return };
    let conditions = status.entry("conditions").or_insert_with(|| json!([]));
    let Value::Array(conditions) = conditions else { return };
    let known = conditions.iter_mut().find(|known| known.get("type") == condition.get("type"));
    match known {
        Some(Value::Object(known)) => {
            if known.get("status") != condition.get("status") {
                known.insert("lastTransitionTime".to_owned(), now.into());
            }
            known.extend(condition);
        }
        _ => {
            let mut condition = condition;
            condition.insert("lastTransitionTime".to_owned(), now.into());
            conditions.push(Value::Object(condition));
        }
    }
}
