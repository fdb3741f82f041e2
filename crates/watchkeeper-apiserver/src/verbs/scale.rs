//! `scale`: how many of something there are to be, in the same form for all kinds.
//!
//! Counterpart: `ScaleREST` of each kind in `k8s.io/kubernetes/pkg/registry/apps`.

use http::StatusCode;
use serde_json::{Map, Value, json};

use super::patch::Patch;
use super::{Call, update, write};
use crate::failure::{Cause, Failure};
use crate::http::accept::Representation;
use crate::http::answer::Answer;
use crate::http::body::{self, Sent};
use crate::kinds::Kind;
use crate::storage::Stored;
use crate::tables::label_selector;

const API_VERSION: &str = "autoscaling/v1";

pub(crate) fn get(call: Call) -> Result<Answer, Failure> {
    let object = call.server.storage.get(&call.kind, &call.key());
    let object = object.ok_or_else(|| Failure::not_found(&call.kind, call.name()))?;
    shown(&call, &object)
}

pub(crate) fn put(call: Call) -> Result<Answer, Failure> {
    let dry_run = call.options.is_dry_run("UpdateOptions")?;
    let sent = body::call(&call.server.registry, "Scale", &[API_VERSION], &call.media_type, &call.body)?;
    let object = write::update(&call, dry_run, |current| scaled(&call, current, sent.clone()))?;
    shown(&call, &object)
}

pub(crate) fn patch(call: Call) -> Result<Answer, Failure> {
    let dry_run = call.options.is_dry_run("PatchOptions")?;
    let patch = Patch::of(&call)?;
    let object = write::update(&call, dry_run, |current| {
        let mut scale = scale_of(&call.kind, current);
        patch.apply(&mut scale)?;
        scaled(&call, current, scale)
    })?;
    shown(&call, &object)
}

/// The `Scale` of an object.
fn scale_of(kind: &Kind, object: &Stored) -> Value {
    let document = object.document();
    let value = |pointer: &str| document.as_value().pointer(pointer);
    let number = |pointer: &str| value(pointer).and_then(Value::as_i64).unwrap_or_default();
    let mut metadata: Map<String, Value> = ["name", "namespace", "uid", "creationTimestamp"]
        .into_iter()
        .filter_map(|field| Some((field.to_owned(), document.metadata().get(field)?.clone())))
        .collect();
    metadata.insert("resourceVersion".to_owned(), object.revision().to_string().into());
    let selector = value("/spec/selector").cloned().unwrap_or_default();
    // That of a replication controller is a map of labels.
    let selector = if kind.group.is_empty() { json!({ "matchLabels": selector }) } else { selector };
    let selector = label_selector(&selector).unwrap_or_default();
    let mut scale = json!({
        "kind": "Scale", "apiVersion": API_VERSION, "metadata": metadata, "spec": {},
        "status": {"replicas": number("/status/replicas")},
    });
    // What is zero is not shown, but for what there is.
    if number("/spec/replicas") != 0 {
        scale["spec"]["replicas"] = number("/spec/replicas").into();
    }
    if !selector.is_empty() {
        scale["status"]["selector"] = selector.into();
    }
    scale
}

/// The object that a `Scale` makes of the current one: nothing changes but how many there are to be.
fn scaled(call: &Call, current: &Stored, scale: Value) -> Result<Sent, Failure> {
    let text = |pointer: &str| scale.pointer(pointer).and_then(Value::as_str).unwrap_or_default().to_owned();
    update::check_name(&text("/metadata/name"), call.name())?;
    let replicas = match scale.pointer("/spec/replicas") {
        None | Some(Value::Null) => 0,
        Some(value) => value.as_i64().filter(|replicas| i32::try_from(*replicas).is_ok()).ok_or_else(|| {
            Failure::bad_request("Scale in version \"v1\" cannot be handled as a Scale: the replicas are no number")
        })?,
    };
    if replicas < 0 {
        let cause = Cause::invalid("spec.replicas", replicas, "must be greater than or equal to 0");
        return Err(Failure::invalid("Scale", "autoscaling", call.name(), vec![cause]));
    }
    let mut document = current.document();
    if let Value::Object(spec) = document.map_mut().entry("spec").or_insert_with(|| json!({})) {
        spec.insert("replicas".to_owned(), replicas.into());
    }
    let uid = text("/metadata/uid");
    if !uid.is_empty() {
        document.set_meta("uid", uid);
    }
    // A scale without a version means whatever is there.
    let resource_version = match text("/metadata/resourceVersion").as_str() {
        "" | "0" => current.revision().to_string(),
        version => version.to_owned(),
    };
    Ok(Sent { document, resource_version })
}

fn shown(call: &Call, object: &Stored) -> Result<Answer, Failure> {
    if call.representation != Representation::Whole {
        return Err(Failure::unknown_representation());
    }
    let scale = scale_of(&call.kind, object);
    // In the order of Go's struct.
    let text = format!(
        r#"{{"kind":"Scale","apiVersion":"{API_VERSION}","metadata":{},"spec":{},"status":{}}}"#,
        scale["metadata"], scale["spec"], scale["status"]
    );
    Ok(Answer::json(StatusCode::OK, text))
}
