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
use crate::kinds::{Kind, Version};
use crate::selectors::{text_of, text_of_labels};
use crate::storage::{Document, Stored};
use crate::validation::quoted;

const API_VERSION: &str = "autoscaling/v1";

/// Where an object says how many of it there are.
#[derive(Debug, Clone)]
pub(crate) struct Places {
    /// How many there are to be; a JSON pointer, as the others: `/spec/replicas`.
    pub(crate) wanted: String,
    /// How many there are.
    pub(crate) observed: String,
    pub(crate) selector: Selector,
}

/// Where an object says which ones are its own.
#[derive(Debug, Clone)]
pub(crate) enum Selector {
    /// As `matchLabels` and `matchExpressions`.
    Object(String),
    /// As labels.
    Labels(String),
    /// As text.
    Text(String),
    Nowhere,
}

pub(crate) fn get(call: Call) -> Result<Answer, Failure> {
    let object = call.server.storage.get(&call.kind, &call.key());
    let object = object.ok_or_else(|| Failure::not_found(&call.kind, call.name()))?;
    shown(&call, &places(&call)?, &object)
}

pub(crate) fn put(call: Call) -> Result<Answer, Failure> {
    let dry_run = call.options.is_dry_run("UpdateOptions")?;
    let sent = body::call(&call.server.registry, "Scale", &[API_VERSION], &call.media_type, &call.body)?;
    let places = places(&call)?;
    let object = write::update(&call, dry_run, |current| scaled(&call, &places, current, sent.clone()))?;
    shown(&call, &places, &object)
}

pub(crate) fn patch(call: Call) -> Result<Answer, Failure> {
    let dry_run = call.options.is_dry_run("PatchOptions")?;
    let patch = Patch::of(&call)?;
    let places = places(&call)?;
    let object = write::update(&call, dry_run, |current| {
        let mut scale = scale_of(&places, current);
        patch.apply(&mut scale)?;
        scaled(&call, &places, current, scale)
    })?;
    shown(&call, &places, &object)
}

fn places(call: &Call) -> Result<Places, Failure> {
    places_of(&call.kind, call.version()).ok_or_else(|| Failure::not_implemented("the subresource scale of this kind"))
}

/// Where the objects of a kind say how many there are. A custom kind's are those of its definition.
fn places_of(kind: &Kind, _version: &Version) -> Option<Places> {
    if kind.custom {
        return None;
    }
    let selector = "/spec/selector".to_owned();
    Some(Places {
        wanted: "/spec/replicas".to_owned(),
        observed: "/status/replicas".to_owned(),
        selector: match kind.plural.as_str() {
            "replicationcontrollers" => Selector::Labels(selector),
            _ => Selector::Object(selector),
        },
    })
}

/// The `Scale` of an object.
fn scale_of(places: &Places, object: &Stored) -> Value {
    let document = object.document();
    let value = |pointer: &str| document.as_value().pointer(pointer);
    let number = |pointer: &str| value(pointer).and_then(Value::as_i64).unwrap_or_default();
    let mut metadata: Map<String, Value> = ["name", "namespace", "uid", "creationTimestamp"]
        .into_iter()
        .filter_map(|field| Some((field.to_owned(), document.metadata().get(field)?.clone())))
        .collect();
    metadata.insert("resourceVersion".to_owned(), object.revision().to_string().into());
    let selector = match &places.selector {
        Selector::Object(pointer) => value(pointer).and_then(text_of).unwrap_or_default(),
        Selector::Labels(pointer) => value(pointer).map(text_of_labels).unwrap_or_default(),
        Selector::Text(pointer) => value(pointer).and_then(Value::as_str).unwrap_or_default().to_owned(),
        Selector::Nowhere => String::new(),
    };
    let mut scale = json!({
        "kind": "Scale", "apiVersion": API_VERSION, "metadata": metadata, "spec": {},
        "status": {"replicas": number(&places.observed)},
    });
    // What is zero is not shown, but for what there is.
    if number(&places.wanted) != 0 {
        scale["spec"]["replicas"] = number(&places.wanted).into();
    }
    if !selector.is_empty() {
        scale["status"]["selector"] = selector.into();
    }
    scale
}

/// The object that a `Scale` makes of the current one: nothing changes but how many there are to be.
fn scaled(call: &Call, places: &Places, current: &Stored, scale: Value) -> Result<Sent, Failure> {
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
    if !set(&mut document, &places.wanted, replicas.into()) {
        let text = format!("{} has no place for replicas", quoted(call.name()));
        return Err(Failure::internal(text));
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

/// Sets what a pointer points to; makes the maps on the way.
fn set(document: &mut Document, pointer: &str, value: Value) -> bool {
    let mut map = document.map_mut();
    let mut keys = pointer.split('/').skip(1).peekable();
    while let Some(key) = keys.next() {
        if keys.peek().is_none() {
            map.insert(key.to_owned(), value);
            return true;
        }
        match map.entry(key.to_owned()).or_insert_with(|| json!({})) {
            Value::Object(inner) => map = inner,
            _ => return false,
        }
    }
    false
}

fn shown(call: &Call, places: &Places, object: &Stored) -> Result<Answer, Failure> {
    if call.representation != Representation::Whole {
        return Err(Failure::unknown_representation());
    }
    let scale = scale_of(places, object);
    // In the order of Go's struct.
    let text = format!(
        r#"{{"kind":"Scale","apiVersion":"{API_VERSION}","metadata":{},"spec":{},"status":{}}}"#,
        scale["metadata"], scale["spec"], scale["status"]
    );
    Ok(Answer::json(StatusCode::OK, text))
}
