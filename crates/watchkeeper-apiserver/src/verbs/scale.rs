//! `GET`, `PUT` and `PATCH` of an object's `scale`: how many there are to be, how many there are, and which.
//!
//! A `Scale` is another view of an object: writing it writes the object. Counterparts: `ScaleREST` of each kind in
//! `k8s.io/kubernetes/pkg/registry`, and that of custom kinds in `k8s.io/apiextensions-apiserver`.

use http::StatusCode;
use serde::Serialize;
use serde_json::{Map, Value, json};

use super::{Call, admit, apply, patch, update, write};
use crate::crds::{self, ScalePaths};
use crate::failure::{Cause, Failure};
use crate::fields;
use crate::http::accept::Representation;
use crate::http::answer::Answer;
use crate::http::body::{self, Sent, json_type};
use crate::storage::{Document, Stored};
use crate::tables::label_selector;
use crate::validation::quoted;

const API_VERSION: &str = "autoscaling/v1";

/// A `Scale`, in the order of Go's struct.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
struct Scale {
    kind: &'static str,
    api_version: &'static str,
    metadata: Metadata,
    spec: Spec,
    status: Status,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
struct Metadata {
    name: String,
    #[serde(skip_serializing_if = "str::is_empty")]
    namespace: String,
    uid: String,
    resource_version: String,
    creation_timestamp: String,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Partial<'a> {
    kind: &'static str,
    api_version: &'static str,
    metadata: &'a Metadata,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
struct Spec {
    #[serde(skip_serializing_if = "is_zero")]
    replicas: i32,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
struct Status {
    replicas: i32,
    #[serde(skip_serializing_if = "str::is_empty")]
    selector: String,
}

/// What it means that an object of a custom kind does not say how many there are to be.
#[derive(Debug, Clone, Copy)]
enum Missing {
    IsNone,
    IsAnError,
}

/// What a client wants.
struct Wanted {
    replicas: i32,
    uid: String,
    resource_version: String,
}

pub(crate) fn get(call: Call) -> Result<Answer, Failure> {
    let object = call.server.storage.get(&call.kind, &call.key());
    let object = object.ok_or_else(|| Failure::not_found(&call.kind, call.name()))?;
    shown(&call, &object)
}

pub(crate) fn put(call: Call) -> Result<Answer, Failure> {
    let dry_run = call.options.is_dry_run("UpdateOptions")?;
    if !matches!(call.media_type.as_str(), "" | "application/json") {
        return Err(Failure::unsupported_media_type(&body::MEDIA_TYPES));
    }
    let tree = body::map(&call.body).map_err(|error| {
        Failure::bad_request(format!("the object provided is unrecognized (must be of type Scale): {error}"))
    })?;
    check_kind(&call, &tree)?;
    let tree = admit::scale(&call, tree)?;
    let wanted = Wanted::of(&tree).map_err(|text| {
        Failure::bad_request(format!("Scale in version \"v1\" cannot be handled as a Scale: {text}"))
    })?;
    check_place(&call, &tree)?;
    let object = write::update(&call, dry_run, |current| scaled(&call, current, &wanted))?;
    shown(&call, &object)
}

pub(crate) fn patch(call: Call) -> Result<Answer, Failure> {
    let is_apply = patch::is_apply(&call)?;
    let dry_run = call.options.is_dry_run("PatchOptions")?;
    if is_apply {
        let scale = fields::object_of(&call.body)?;
        let config = config(&call, &scale)?;
        let object = write::update(&call, dry_run, |current| applied(&call, &scale, &config, current))?;
        return shown(&call, &object);
    }
    let patch = patch::Patch::of_scale(&call)?;
    let object = write::update(&call, dry_run, |current| {
        // Who says how many there are to be need not have said so before.
        let scale = Scale::of(&call, current, Missing::IsNone)?;
        let mut tree = serde_json::to_value(&scale).unwrap_or_default();
        patch.apply(&mut tree)?;
        if tree.get("kind") != Some(&json!("Scale")) || tree.get("apiVersion") != Some(&json!(API_VERSION)) {
            return Err(Failure::invalid_patch("kind and apiVersion are those of another object"));
        }
        let wanted = Wanted::of(&tree).map_err(Failure::invalid_patch)?;
        check_place(&call, &tree)?;
        // A patch that names no version is for whatever is there.
        scaled(&call, current, &wanted)
    })?;
    shown(&call, &object)
}

/// The object that a configuration of its `Scale` makes of the current one.
fn applied(call: &Call, scale: &Value, config: &Value, current: &Stored) -> Result<Sent, Failure> {
    let mut sent = apply::applied(call, config, current)?;
    let pointer = crds::simple_path(place(call)).unwrap_or_default();
    let replicas = |document: &Document| document.as_value().pointer(&pointer).and_then(Value::as_i64);
    let (before, after) = (replicas(&current.document_as(&call.kind)), replicas(&sent.document));
    if call.kind.custom && before != after {
        // A kube-apiserver does not get it written either.
        return Err(Failure::internal(format!(
            "failed to convert new object ({}) to proper version: request to convert CR to an invalid group/version: \
             {API_VERSION}",
            fields::described(scale)
        )));
    }
    // What nobody applies any more is nothing, and not what an object gets by default.
    if before.is_some() && after.is_none() {
        set(sent.document.map_mut(), place(call), 0);
    }
    Ok(sent)
}

/// The configuration of the object for which a configuration of its `Scale` stands.
fn config(call: &Call, scale: &Value) -> Result<Value, Failure> {
    let text = |pointer: &str| scale.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
    let (api_version, kind) = (text("/apiVersion"), text("/kind"));
    if (api_version, kind) != (API_VERSION, "Scale") {
        return Err(Failure::bad_request(format!("invalid object type: {}", fields::shown_type(api_version, kind))));
    }
    let wanted = Wanted::of(scale).map_err(Failure::bad_request)?;
    let mut metadata = json!({"name": call.name()});
    if let Some(namespace) = &call.namespace {
        metadata["namespace"] = namespace.as_str().into();
    }
    if !wanted.resource_version.is_empty() {
        metadata["resourceVersion"] = wanted.resource_version.as_str().into();
    }
    // It may leave its own place out.
    if scale.pointer("/metadata/name").is_some() {
        check_place(call, scale)?;
    }
    let mut config = Map::new();
    config.insert("apiVersion".to_owned(), call.version().api_version.as_str().into());
    config.insert("kind".to_owned(), call.kind.kind.as_str().into());
    config.insert("metadata".to_owned(), metadata);
    if scale.pointer("/spec/replicas").is_some_and(|replicas| !replicas.is_null()) {
        check_replicas(call, &wanted)?;
        set(&mut config, place(call), wanted.replicas);
    }
    Ok(Value::Object(config))
}

fn check_replicas(call: &Call, wanted: &Wanted) -> Result<(), Failure> {
    if call.kind.custom || wanted.replicas >= 0 {
        return Ok(());
    }
    let cause = Cause::invalid("spec.replicas", wanted.replicas, "must be greater than or equal to 0");
    Err(Failure::invalid("Scale", "autoscaling", call.name(), vec![cause]))
}

/// Where an object says how many there are to be.
pub(crate) fn place(call: &Call) -> &str {
    paths(call).map_or(".spec.replicas", |paths| paths.spec_replicas_path.as_str())
}

impl Scale {
    fn of(call: &Call, object: &Stored, missing: Missing) -> Result<Self, Failure> {
        let tree: Value = serde_json::from_slice(&object.in_version(&call.kind, call.version())).unwrap_or_default();
        let number = |value: Option<&Value>| value.and_then(Value::as_i64).and_then(|n| i32::try_from(n).ok());
        let (wanted, there, selector) = match paths(call) {
            Some(paths) => custom(paths, &tree, missing, number)?,
            None => {
                let wanted = number(tree.pointer("/spec/replicas")).unwrap_or(1);
                let there = number(tree.pointer("/status/replicas")).unwrap_or_default();
                // The selector of a replication controller is a map of labels.
                let selector = match call.kind.group.as_str() {
                    "" => json!({"matchLabels": tree.pointer("/spec/selector").cloned().unwrap_or_default()}),
                    _ => tree.pointer("/spec/selector").cloned().unwrap_or_default(),
                };
                (wanted, there, label_selector(&selector).unwrap_or_default())
            }
        };
        let text = |pointer: &str| tree.pointer(pointer).and_then(Value::as_str).unwrap_or_default().to_owned();
        Ok(Self {
            kind: "Scale",
            api_version: API_VERSION,
            metadata: Metadata {
                name: object.name().to_owned(),
                namespace: object.namespace().unwrap_or_default().to_owned(),
                uid: object.uid().to_owned(),
                resource_version: object.revision().to_string(),
                creation_timestamp: text("/metadata/creationTimestamp"),
            },
            spec: Spec { replicas: wanted },
            status: Status { replicas: there, selector },
        })
    }
}

/// What an object of a custom kind says at its paths.
fn custom(
    paths: &ScalePaths,
    tree: &Value,
    missing: Missing,
    number: impl Fn(Option<&Value>) -> Option<i32>,
) -> Result<(i32, i32, String), Failure> {
    let at = |path: &str| crds::simple_path(path).and_then(|pointer| tree.pointer(&pointer));
    let wanted = match (number(at(&paths.spec_replicas_path)), missing) {
        (Some(wanted), _) => wanted,
        (None, Missing::IsNone) => 0,
        (None, Missing::IsAnError) => {
            let path = quoted(&paths.spec_replicas_path);
            return Err(Failure::internal_error(format!("the spec replicas field {path} does not exist")));
        }
    };
    let there = number(at(&paths.status_replicas_path)).unwrap_or_default();
    let selector = paths.label_selector_path.as_deref().and_then(at).and_then(Value::as_str).unwrap_or_default();
    Ok((wanted, there, selector.to_owned()))
}

impl Wanted {
    /// What a `Scale` says; an error has Go's words for what has a wrong type.
    fn of(tree: &Value) -> Result<Self, String> {
        let mismatch = |value: &Value, field: &str, go_type: &str| {
            format!("json: cannot unmarshal {} into Go struct field {field} of type {go_type}", json_type(value))
        };
        for (field, go_type) in [("metadata", "v1.ObjectMeta"), ("spec", "v1.ScaleSpec"), ("status", "v1.ScaleStatus")]
        {
            if let Some(value) = tree.get(field).filter(|value| !value.is_object() && !value.is_null()) {
                return Err(mismatch(value, &format!("Scale.{field}"), go_type));
            }
        }
        let text = |field: &str| match tree.pointer(&format!("/metadata/{field}")) {
            None | Some(Value::Null) => Ok(String::new()),
            Some(Value::String(text)) => Ok(text.clone()),
            Some(other) => Err(mismatch(other, &format!("ObjectMeta.metadata.{field}"), "string")),
        };
        let replicas = match tree.pointer("/spec/replicas") {
            None | Some(Value::Null) => 0,
            Some(value) => match value.as_i64().and_then(|replicas| i32::try_from(replicas).ok()) {
                Some(replicas) => replicas,
                None => {
                    let shown = if value.is_number() { format!("number {value}") } else { json_type(value).to_owned() };
                    return Err(format!(
                        "json: cannot unmarshal {shown} into Go struct field ScaleSpec.spec.replicas of type int32"
                    ));
                }
            },
        };
        Ok(Self { replicas, uid: text("uid")?, resource_version: text("resourceVersion")? })
    }
}

/// The object with another number of replicas.
fn scaled(call: &Call, current: &Stored, wanted: &Wanted) -> Result<Sent, Failure> {
    check_replicas(call, wanted)?;
    let bytes = current.in_version(&call.kind, call.version());
    let tree: Value = serde_json::from_slice(&bytes).map_err(|_| Failure::internal("a stored object is bad"))?;
    let mut document = Document::new(tree).unwrap_or_default();
    set(document.map_mut(), place(call), wanted.replicas);
    if !wanted.uid.is_empty() {
        document.set_meta("uid", wanted.uid.clone());
    }
    let resource_version = match wanted.resource_version.as_str() {
        "" => current.revision().to_string(),
        version => version.to_owned(),
    };
    Ok(Sent { document, resource_version })
}

/// Sets a number at a simple path. What is in the way and is no map stays, and nothing is set.
fn set(map: &mut Map<String, Value>, path: &str, number: i32) {
    let names: Vec<&str> = path.trim_start_matches('.').split('.').collect();
    let Some((last, parents)) = names.split_last() else { return };
    let mut place = map;
    for name in parents {
        let part = place.entry(*name).or_insert_with(|| json!({}));
        let Value::Object(part) = part else { return };
        place = part;
    }
    place.insert((*last).to_owned(), number.into());
}

/// Where a custom kind says it.
fn paths(call: &Call) -> Option<&ScalePaths> {
    call.version().served.as_ref()?.scale.as_ref()
}

fn check_kind(call: &Call, tree: &Value) -> Result<(), Failure> {
    let text = |field: &str| tree.get(field).and_then(Value::as_str).unwrap_or_default();
    let (api_version, kind) = (text("apiVersion"), text("kind"));
    let fits = matches!(kind, "" | "Scale") && matches!(api_version, "" | API_VERSION);
    if fits {
        return Ok(());
    }
    if call.kind.custom {
        let text = "no kind is registered for the type v1.Scale in scheme \"pkg/runtime/scheme.go:111\"";
        return Err(Failure::bad_request(text));
    }
    let version = api_version.rsplit('/').next().unwrap_or_default();
    let why = match call.server.registry.of_object(api_version, kind) {
        Some(_) => format!("converting ({version}.{kind}) to (autoscaling.Scale): unknown conversion"),
        None => format!(
            "no kind {} is registered for version {} in scheme \"pkg/runtime/scheme.go:111\"",
            quoted(kind),
            quoted(api_version)
        ),
    };
    let text = format!("{kind} in version {} cannot be handled as a Scale: {why}", quoted(version));
    Err(Failure::bad_request(text))
}

/// A `Scale` must be that of the object that its path names.
fn check_place(call: &Call, tree: &Value) -> Result<(), Failure> {
    let text = |pointer: &str| tree.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
    update::check_name(text("/metadata/name"), call.name())?;
    match text("/metadata/namespace") {
        "" => Ok(()),
        namespace if call.namespace.as_deref() == Some(namespace) => Ok(()),
        _ => Err(Failure::bad_request(
            "the namespace of the provided object does not match the namespace sent on the request",
        )),
    }
}

fn shown(call: &Call, object: &Stored) -> Result<Answer, Failure> {
    if call.representation == (Representation::Metadata { list: true }) {
        let text = "you requested PartialObjectMetadataList, but the requested object is not a list (*v1.Scale)";
        return Err(Failure::wrong_representation(text.to_owned()));
    }
    let scale = Scale::of(call, object, Missing::IsAnError)?;
    // Texts and numbers always encode.
    let encoded = match call.representation {
        Representation::Metadata { .. } => serde_json::to_vec(&Partial {
            kind: "PartialObjectMetadata",
            api_version: "meta.k8s.io/v1",
            metadata: &scale.metadata,
        }),
        _ => serde_json::to_vec(&scale),
    };
    Ok(Answer::json(StatusCode::OK, encoded.unwrap_or_default()))
}

fn is_zero(number: &i32) -> bool {
    *number == 0
}
