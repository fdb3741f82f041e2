//! What is done to an object between reading a request and storing it.
//!
//! First it is read against the types of its kind ([`decoded`], [`patched`]): fields that there are not are dropped,
//! and the client is told, or refused, as `fieldValidation` says. Then [`admit`] fills in what was left out, and refuses
//! what may not be.

use std::borrow::Cow;
use std::sync::LazyLock;

use serde::Deserializer;
use serde_json::Value;

use super::{Call, addresses, initial, specs};
use crate::crds::{self, objects};
use crate::defaulting;
use crate::defaults::DEPTH_LIMIT;
use crate::failure::{Cause, Failure};
use crate::http::body::{self, Sent};
use crate::http::options::FieldValidation;
use crate::schema::{self, Decoded, Field, ListKind, ListSchema, MapSchema, Scalar, Schema, SchemaRef, decode};
use crate::storage::Document;
use crate::validation::quoted;

/// Anything, and what comes twice in it is noticed.
static ANY: LazyLock<SchemaRef> = LazyLock::new(|| Schema::Any.into());

/// The operations of a JSON patch.
static OPERATIONS: LazyLock<SchemaRef> = LazyLock::new(|| {
    let field = |schema: SchemaRef| Field { schema, default: None, required: false, patch: None, wide: false };
    let text = || field(Schema::Scalar(Scalar::String).into());
    let fields = [("op", text()), ("path", text()), ("from", text()), ("value", field(Schema::Any.into()))];
    let fields = fields.into_iter().map(|(name, field)| (name.into(), field)).collect();
    let operation = Schema::Map(MapSchema { fields, ..MapSchema::default() });
    Schema::List(ListSchema { items: operation.into(), kind: ListKind::Atomic }).into()
});

/// Completes an object that [`fill`] has filled in, and says what may not be in its spec. `old` is what it was, if it was
/// there.
pub(crate) fn admit(call: &Call, old: Option<&Document>, next: &mut Document) -> Result<Vec<Cause>, Failure> {
    if call.kind.custom {
        return objects::complete(call.version(), next).map(|()| Vec::new());
    }
    if crds::is_definition(&call.kind) {
        crds::definition_warnings(old, next).into_iter().for_each(|warning| call.warnings.add(warning));
    }
    let Some(schema) = schema_for(call, next.as_value()) else { return Ok(Vec::new()) };
    // A status is put there by the server, or was there before.
    if let (Some(status), Some(types)) = (next.map_mut().get_mut("status"), schema.member("status")) {
        defaulting::apply(status, types);
    }
    if call.is_status() {
        return Ok(specs::status_faults(&call.kind, next));
    }
    if addresses::is_service(call) {
        addresses::assign(call, old, next)?;
    }
    // What was put there without a status gets an empty one.
    let lacks_status = schema.member("status").is_some() && !next.map().contains_key("status");
    if lacks_status || is_filled_again(call) {
        defaulting::apply_object(next.map_mut(), &schema);
    }
    initial::complete(call, old, next)?;
    // What does not change in an update is not looked at, and defaults are no change.
    let known = old.map(|old| match specs::is_same(old, next) {
        true => Cow::Borrowed(old),
        false => Cow::Owned(filled(call, old)),
    });
    Ok(specs::faults(&call.kind, known.as_deref(), next))
}

/// Whether what the server has put there since is a reason to fill in more: addresses, labels and a status.
fn is_filled_again(call: &Call) -> bool {
    matches!(
        (call.kind.group.as_str(), call.kind.plural.as_str()),
        ("", "services" | "persistentvolumeclaims" | "persistentvolumes") | ("batch", "jobs")
    )
}

/// Fills in what an object gets as Go reads it: what nobody sent, and belongs to whoever sent the rest.
pub(super) fn fill(call: &Call, next: &mut Document) {
    let Some(schema) = schema_for(call, next.as_value()) else { return };
    match (call.is_status(), schema.member("status")) {
        (true, Some(types)) => next.map_mut().get_mut("status").into_iter().for_each(|status| {
            defaulting::apply(status, types);
        }),
        _ => defaulting::apply_object(next.map_mut(), &schema),
    }
    let is_namespace = call.kind.group.is_empty() && call.kind.plural == "namespaces";
    if is_namespace && !next.meta("name").is_empty() {
        initial::apply_name(&call.kind, next);
    }
    if crds::is_definition(&call.kind) {
        crds::fill(next);
    }
}

/// An object as it would be had it come through here: one that was put into the storage has no defaults, and any fields.
pub(super) fn filled(call: &Call, document: &Document) -> Document {
    let Some(schema) = schema_for(call, document.as_value()) else { return document.clone() };
    let decoded = decode(document.as_value(), &schema);
    let mut filled = match decoded.error {
        None => Document::new(decoded.value).unwrap_or_else(|| document.clone()),
        Some(_) => document.clone(),
    };
    defaulting::apply_object(filled.map_mut(), &schema);
    filled
}

/// The types of an object. There is no conversion, so one may have been written in another version than it is read in:
/// the version that knows most of its fields is the one.
fn schema_for(call: &Call, object: &Value) -> Option<SchemaRef> {
    let asked = schema::of(&call.kind, &call.version)?;
    if call.kind.versions.len() < 2 {
        return Some(asked);
    }
    let others = call.kind.versions.iter().filter_map(|version| schema::of(&call.kind, &version.name));
    std::iter::once(asked).chain(others).min_by_key(|schema| decode(object, schema).notes.len())
}

/// What was sent, with the fields that its kind has and no others.
pub(crate) fn decoded(call: &Call, sent: Sent) -> Result<Sent, Failure> {
    let schema = schema::of(&call.kind, &call.version);
    let types = schema.as_ref().unwrap_or(&ANY);
    // The text says more than the tree: the order of the fields, and which came twice.
    let decoded = match call.body.is_empty() {
        false => decode(&mut serde_json::Deserializer::from_slice(&call.body), types),
        true => decode(sent.document.as_value(), types),
    };
    let refused = |text: &str| {
        let (kind, version) = (&call.kind.kind, quoted(&call.version().name));
        Failure::bad_request(format!("{kind} in version {version} cannot be handled as a {kind}: {text}"))
    };
    if let Some(error) = &decoded.error {
        return Err(refused(error));
    }
    // What comes twice grows together, and the tree has the last of it only.
    if !decoded.notes.is_empty() && !body::is_within_depth(&decoded.value, DEPTH_LIMIT, &mut { usize::MAX }) {
        return Err(refused("json: exceeded max depth"));
    }
    let mut notes = decoded.notes;
    let mut sent = sent;
    if call.kind.custom {
        notes.extend(unknown(objects::decode(&call.kind, call.version(), sent.document.as_value_mut())?));
    }
    tell(call, &notes).map_err(|text| refused(&text))?;
    match (schema, decoded.value) {
        (None, _) => Ok(sent),
        (Some(_), Value::Null) => Ok(Sent { document: Document::default(), ..sent }),
        (Some(_), value) => match Document::new(value) {
            Some(document) => Ok(Sent { document, ..sent }),
            None => Err(refused("the object has no usable metadata")),
        },
    }
}

/// What a patch made of an object, with the fields that its kind has and no others. `notes` are those of the patch.
pub(super) fn patched(call: &Call, notes: &[String], object: Value) -> Result<Value, Failure> {
    let Some(schema) = schema_for(call, &object) else {
        let mut object = object;
        let dropped = objects::decode(&call.kind, call.version(), &mut object)?;
        let notes: Vec<String> = notes.iter().cloned().chain(unknown(dropped)).collect();
        return tell(call, &notes).map(|()| object).map_err(Failure::invalid_patch);
    };
    let decoded: Decoded = decode(&object, &schema);
    if let Some(error) = decoded.error {
        return Err(Failure::invalid_patch(error));
    }
    let notes: Vec<String> = notes.iter().chain(&decoded.notes).cloned().collect();
    tell(call, &notes).map_err(Failure::invalid_patch)?;
    Ok(decoded.value)
}

/// A `Scale` that was sent, with the fields that it has and no others.
pub(super) fn scale(call: &Call, tree: Value) -> Result<Value, Failure> {
    let Some(schema) = schema::of_type("autoscaling/v1", "Scale") else { return Ok(tree) };
    let decoded = decode(&mut serde_json::Deserializer::from_slice(&call.body), &schema);
    let refused =
        |text: &str| Failure::bad_request(format!("Scale in version \"v1\" cannot be handled as a Scale: {text}"));
    if let Some(error) = &decoded.error {
        return Err(refused(error));
    }
    tell(call, &decoded.notes).map_err(|text| refused(&text))?;
    Ok(decoded.value)
}

/// How paths that a schema does not have are told of.
fn unknown(paths: Vec<String>) -> impl Iterator<Item = String> {
    paths.into_iter().map(|path| format!("unknown field {}", quoted(&path)))
}

/// What is to be said of a patch itself.
pub(super) fn notes_of_patch(call: &Call) -> Vec<String> {
    let source = &mut serde_json::Deserializer::from_slice(&call.body);
    match call.media_type.as_str() {
        "application/json-patch+json" => {
            notes(source, &OPERATIONS).into_iter().map(|note| format!("json patch {note}")).collect()
        }
        _ => notes(source, &ANY),
    }
}

fn notes<'de>(source: impl Deserializer<'de>, schema: &SchemaRef) -> Vec<String> {
    decode(source, schema).notes
}

/// Tells the client, or says why it is refused.
fn tell(call: &Call, notes: &[String]) -> Result<(), String> {
    match call.options.field_validation {
        // What is none has been refused before.
        FieldValidation::Ignore | FieldValidation::Other(_) => {}
        FieldValidation::Warn => notes.iter().for_each(|note| call.warnings.add(note)),
        FieldValidation::Strict if notes.is_empty() => {}
        FieldValidation::Strict => return Err(format!("strict decoding error: {}", notes.join(", "))),
    }
    Ok(())
}
