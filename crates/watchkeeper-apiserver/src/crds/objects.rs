//! What becomes of a custom object between its arrival and the storage, and on the way back.
//!
//! Counterparts: the decoders of `customresource_handler.go` and the strategy of custom resources in
//! `k8s.io/apiextensions-apiserver`.

use serde_json::{Number, Value};

use super::check::Checker;
use super::definition::Served;
use super::path::Path;
use super::prune::Dropped;
use super::{embedded, fill, lists, prune};
use crate::defaults::BODY_LIMIT;
use crate::failure::{Cause, Failure};
use crate::http::body::ObjectMeta;
use crate::kinds::{Kind, Version};
use crate::storage::Document;
use crate::validation::quoted;

/// Makes a sent object what its version's schema wants: unknown fields go, defaults come. The paths of what went.
pub(crate) fn decode(kind: &Kind, version: &Version, value: &mut Value) -> Result<Vec<String>, Failure> {
    let Some(served) = &version.served else { return Ok(Vec::new()) };
    let mut dropped = Vec::new();
    if let Some(Value::Object(metadata)) = value.get_mut("metadata") {
        metadata.retain(|field, _| {
            let is_known = ObjectMeta::FIELDS.contains(&field.as_str());
            if !is_known {
                dropped.push(format!("metadata.{field}"));
            }
            is_known
        });
    }
    normalize(value);
    dropped.extend(prune::prune(value, &served.props));
    let mut within = Dropped::new();
    embedded::coerce(value, &served.props, &Path::root(""), &mut within).map_err(|text| {
        let (kind, version) = (&kind.kind, quoted(&version.name));
        Failure::bad_request(format!("{kind} in version {version} cannot be handled as a {kind}: {text}"))
    })?;
    dropped.extend(within.into_paths());
    filled(value, served).map(|()| dropped)
}

/// Makes an object what its version's schema wants, however it came about.
pub(crate) fn complete(version: &Version, document: &mut Document) -> Result<(), Failure> {
    let Some(served) = &version.served else { return Ok(()) };
    let value = document.as_value_mut();
    normalize(value);
    prune::prune(value, &served.props);
    filled(value, served)
}

/// What is wrong with an object in a version, given what it was in the same version.
pub(crate) fn faults(kind: &Kind, version: &Version, document: &Document, old: Option<&Document>) -> Vec<Cause> {
    let Some(served) = &version.served else { return Vec::new() };
    let object = whole(kind, version, document);
    let old = old.map(|old| whole(kind, version, old));
    let root = Path::root("");
    let mut causes = Checker::new().check(&object, old.as_ref(), &served.props, &root);
    causes.extend(scale_faults(served, &object));
    embedded::check(&object, &served.props, &root, &mut causes);
    lists::duplicates(&object, old.as_ref(), &served.props, &root, &mut causes);
    causes
}

/// An object of a version as it is stored: what the storage version does not have is lost, as in a kube-apiserver.
pub(crate) fn to_storage(kind: &Kind, version: &Version, document: &mut Document) {
    if let Some(storage) = &kind.storage_version().served {
        if version.name != kind.storage_version().name {
            prune::prune(document.as_value_mut(), &storage.props);
        }
        // What cannot be filled in stays away: the object was small enough without.
        fill::fill(document.as_value_mut(), &storage.props, &mut { BODY_LIMIT });
    }
}

/// An object that was stored under another definition as if it had been stored under this one.
pub(crate) fn from_storage(kind: &Kind, document: &mut Document) {
    if let Some(storage) = &kind.storage_version().served {
        prune::prune(document.as_value_mut(), &storage.props);
        fill::fill(document.as_value_mut(), &storage.props, &mut { BODY_LIMIT });
    }
}

/// Whether a version shows an object differently than the storage version: in more than its `apiVersion`.
pub(crate) fn shows_less(kind: &Kind, version: &Version) -> bool {
    match (&version.served, &kind.storage_version().served) {
        (Some(served), Some(storage)) => !served.shows_the_same(storage),
        _ => false,
    }
}

/// A stored object without what a version does not have.
pub(crate) fn to_version(version: &Version, document: &mut Document) {
    if let Some(served) = &version.served {
        prune::prune(document.as_value_mut(), &served.props);
    }
}

fn filled(value: &mut Value, served: &Served) -> Result<(), Failure> {
    match fill::fill(value, &served.props, &mut { BODY_LIMIT }) {
        true => Ok(()),
        false => Err(Failure::too_large(BODY_LIMIT)),
    }
}

/// The object with what documents leave out.
fn whole(kind: &Kind, version: &Version, document: &Document) -> Value {
    let mut object = document.as_value().clone();
    if let Value::Object(map) = &mut object {
        map.insert("apiVersion".to_owned(), version.api_version.clone().into());
        map.insert("kind".to_owned(), kind.kind.clone().into());
    }
    object
}

/// How many there are to be, and how many there are, must be numbers that a `Scale` has.
fn scale_faults(served: &Served, object: &Value) -> Vec<Cause> {
    let Some(scale) = &served.scale else { return Vec::new() };
    let mut causes = Vec::new();
    for path in [&scale.spec_replicas_path, &scale.status_replicas_path] {
        let Some(replicas) = super::simple_path(path).and_then(|pointer| object.pointer(&pointer)) else { continue };
        match replicas.as_i64() {
            Some(count) if count < 0 => causes.push(Cause::invalid(path, count, "should be a non-negative integer")),
            Some(count) if i32::try_from(count).is_err() => {
                let text = format!("should be less than or equal to {}", i32::MAX);
                causes.push(Cause::invalid(path, count, text));
            }
            _ => {}
        }
    }
    causes
}

/// Numbers as Go keeps them: whole ones are whole, however they were written.
fn normalize(value: &mut Value) {
    match value {
        Value::Number(number) => {
            if let Some(float) = number.as_f64().filter(|_| !number.is_i64() && !number.is_u64())
                && float.fract() == 0.0
                && float.abs() < 9.0e15
            {
                *number = Number::from(float as i64);
            }
        }
        Value::Array(values) => values.iter_mut().for_each(normalize),
        Value::Object(map) => map.values_mut().for_each(normalize),
        _ => {}
    }
}
