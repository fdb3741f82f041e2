//! `PATCH` of an object: JSON patches, merge patches and strategic merge patches.

use http::StatusCode;
use serde_json::{Map, Value};

use super::operations::{self, Operation};
use super::validate::immutable;
use super::{Call, admit, apply, strategic, update, write};
use crate::defaults::PATCH_OPERATIONS;
use crate::failure::Failure;
use crate::fields;
use crate::http::answer::Answer;
use crate::http::body::{self, Sent, json_error, json_type};
use crate::schema::{self, SchemaRef};
use crate::storage::Stored;

/// What is to be done to an object.
pub(super) enum Patch {
    Json(Vec<Operation>),
    Merge(Value),
    Strategic(Map<String, Value>, SchemaRef),
}

pub(crate) fn run(call: Call) -> Result<Answer, Failure> {
    if is_apply(&call)? {
        return apply::run(call);
    }
    let dry_run = call.options.is_dry_run("PatchOptions")?;
    let patch = Patch::of(&call)?;
    let notes = admit::notes_of_patch(&call);
    let object = write::update(&call, dry_run, |current| patched(&call, &patch, &notes, current))?;
    call.shown(StatusCode::OK, &object)
}

/// Whether it is a configuration to apply. Refuses what no patch may ask for.
pub(super) fn is_apply(call: &Call) -> Result<bool, Failure> {
    if !accepted(call).contains(&call.media_type.as_str()) {
        return Err(match call.kind.custom {
            true => Failure::unsupported_media_type(&accepted(call)),
            false => Failure::unknown_media_type(),
        });
    }
    let is_apply = call.media_type == apply::MEDIA_TYPE;
    apply::check_options(call, is_apply)?;
    fields::check_manager(&call.options.field_manager, "PatchOptions")?;
    Ok(is_apply)
}

impl Patch {
    pub(super) fn of(call: &Call) -> Result<Self, Failure> {
        let (media_type, body) = (call.media_type.as_str(), &call.body);
        if media_type == "application/strategic-merge-patch+json" {
            return Self::strategic(call);
        }
        let bad = |text: String| Failure::bad_request(format!("error decoding patch: {text}"));
        let tree: Value = serde_json::from_slice(body).map_err(|error| bad(json_error(body, &error)))?;
        let wrong = |tree: &Value, go_type: &str| {
            bad(format!("json: cannot unmarshal {} into Go value of type {go_type}", json_type(tree)))
        };
        if media_type == "application/merge-patch+json" {
            return match tree {
                Value::Object(_) => Ok(Self::Merge(tree)),
                Value::Null => Err(Failure::bad_request("Invalid JSON Patch")),
                tree => Err(wrong(&tree, "map[string]interface {}")),
            };
        }
        let operations = match tree {
            Value::Array(operations) => operations,
            Value::Null => Vec::new(),
            tree => return Err(wrong(&tree, "[]handlers.jsonPatchOp")),
        };
        if operations.len() > PATCH_OPERATIONS {
            return Err(Failure::too_many_operations(PATCH_OPERATIONS, operations.len()));
        }
        let operations = operations.into_iter().map(|operation| match operation {
            Value::Object(fields) => Operation::read(fields).map_err(bad),
            Value::Null => Ok(Operation::default()),
            other => Err(wrong(&other, "handlers.jsonPatchOp")),
        });
        operations.collect::<Result<_, _>>().map(Self::Json)
    }

    /// A strategic merge needs to know types, and those of custom kinds say nothing of merging.
    fn strategic(call: &Call) -> Result<Self, Failure> {
        let Some(schema) = schema::of(&call.kind, &call.version) else {
            return Err(Failure::unsupported_media_type(&accepted(call)));
        };
        let tree: Value =
            serde_json::from_slice(&call.body).map_err(|error| Failure::bad_request(json_error(&call.body, &error)))?;
        match tree {
            Value::Object(patch) => Ok(Self::Strategic(patch, schema)),
            Value::Null => Ok(Self::Strategic(Map::new(), schema)),
            other => Err(Failure::bad_request(format!(
                "json: cannot unmarshal {} into Go value of type map[string]interface {{}}",
                json_type(&other)
            ))),
        }
    }

    /// Of a `Scale`. It has no lists: a strategic merge of it is a merge.
    pub(super) fn of_scale(call: &Call) -> Result<Self, Failure> {
        if call.media_type != "application/strategic-merge-patch+json" || call.kind.custom {
            return Self::of(call);
        }
        match serde_json::from_slice(&call.body) {
            Ok(patch @ Value::Object(_)) => Ok(Self::Merge(patch)),
            Ok(_) => Err(Failure::bad_request("Invalid JSON Patch")),
            Err(error) => Err(Failure::bad_request(json_error(&call.body, &error))),
        }
    }

    /// Whether it looks at managed fields, or at something that they are in.
    fn names_managed_fields(&self) -> bool {
        let names = |path: &str| matches!(path, "" | "/metadata") || path.starts_with("/metadata/managedFields");
        let merges =
            |metadata: Option<&Value>| metadata.is_some_and(|metadata| metadata.get("managedFields").is_some());
        match self {
            Self::Merge(patch) => merges(patch.get("metadata")),
            Self::Strategic(patch, _) => merges(patch.get("metadata")),
            Self::Json(operations) => operations.iter().flat_map(Operation::places).any(names),
        }
    }

    pub(super) fn apply(&self, object: &mut Value) -> Result<(), Failure> {
        let operations = match self {
            Self::Strategic(patch, schema) => {
                let Value::Object(object) = object else { return Err(Failure::rejected()) };
                let known = (object.get("kind").cloned(), object.get("apiVersion").cloned());
                strategic::merge(object, patch.clone(), schema, schema.go_type().unwrap_or_default())?;
                // What the patch says of these counts for nothing.
                for (field, value) in [("kind", known.0), ("apiVersion", known.1)] {
                    object.insert(field.to_owned(), value.unwrap_or_default());
                }
                return Ok(());
            }
            Self::Merge(patch) => {
                json_patch::merge(object, patch);
                return Ok(());
            }
            Self::Json(operations) => operations,
        };
        operations::apply(object, operations)
    }
}

/// The kinds of patches that a kind takes.
fn accepted(call: &Call) -> Vec<&'static str> {
    let mut accepted = vec!["application/json-patch+json", "application/merge-patch+json"];
    if !call.kind.custom {
        accepted.push("application/strategic-merge-patch+json");
    }
    accepted.push(apply::MEDIA_TYPE);
    accepted
}

/// The object that a patch makes of the current one, in the version that was asked for.
fn patched(call: &Call, patch: &Patch, notes: &[String], current: &Stored) -> Result<Sent, Failure> {
    let version = call.version();
    // Few patches look at managed fields, and they are half of an object.
    let bytes = match patch.names_managed_fields() {
        true => current.in_version(&call.kind, version),
        false => current.bare_in_version(&call.kind, version),
    };
    let mut object: Value = serde_json::from_slice(&bytes).map_err(|_| Failure::internal("a stored object is bad"))?;
    patch.apply(&mut object)?;
    let Value::Object(map) = &object else { return Err(Failure::rejected()) };
    // Built-in kinds may leave out what they are.
    let is_same = |field: &str, expected: &str| match map.get(field) {
        None | Some(Value::Null) => !call.kind.custom,
        Some(found) => found == expected,
    };
    if !is_same("kind", &call.kind.kind) || !is_same("apiVersion", &version.api_version) {
        return Err(Failure::invalid_patch("kind and apiVersion are those of another object"));
    }
    let object = admit::patched(call, notes, object)?;
    let sent = body::from_tree(&call.kind, version, object).map_err(Failure::invalid_patch)?;
    update::check_name(sent.document.meta("name"), call.name())?;
    let uid = sent.document.meta("uid");
    if !uid.is_empty() && uid != current.uid() {
        return Err(immutable(&call.kind, call.name(), "uid", &uid.into()));
    }
    Ok(sent)
}
