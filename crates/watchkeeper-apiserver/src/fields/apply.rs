//! Server-side apply. Counterpart: `FieldManager.Apply` and the managers behind it in
//! `k8s.io/apimachinery/pkg/util/managedfields`.

use serde_json::Value;

use super::check::check;
use super::entry::{Entry, Owner};
use super::last_applied::{allowed_by_annotation, renew_annotation};
use super::owners::{self, Applied, Conflict, NotApplied, Writing};
use super::track::{owner, read};
use super::{Managed, new_object, schema_of, written};
use crate::defaults::{MANAGED_BYTES, YAML_ALIASED};
use crate::failure::{Cause, Failure};
use crate::http::body::{is_within_depth, json_type};
use crate::storage::Document;
use crate::verbs::Call;

/// Who owned what was there before anybody applied anything.
const BEFORE: &str = "before-first-apply";
/// How many bytes of paths a conflict tells: each is told from the top of the object, and there may be thousands.
const CONFLICT_BYTES: usize = 4 << 20;
/// The manager that knows the annotation of its own applying on the client's side.
const KUBECTL: &str = "kubectl";

/// Reads a configuration, YAML or JSON.
pub(crate) fn object_of(body: &[u8]) -> Result<Value, Failure> {
    match tree_of(body)? {
        tree @ Value::Object(_) => Ok(tree),
        Value::Null => Ok(Value::Object(Default::default())),
        other => Err(bad_yaml(&format!(
            "error unmarshaling JSON: while decoding JSON: json: cannot unmarshal {} into Go value of type \
             map[string]interface {{}}",
            json_type(&other)
        ))),
    }
}

/// Reads YAML or JSON.
pub(crate) fn tree_of(body: &[u8]) -> Result<Value, Failure> {
    let tree = match serde_json::from_slice(body) {
        Ok(tree) => tree,
        Err(_) => {
            let text = std::str::from_utf8(body).map_err(|_| bad_yaml("yaml: invalid leading UTF-8 octet"))?;
            yaml(text).map_err(|text| bad_yaml(&text))?
        }
    };
    match is_within_depth(&tree, crate::defaults::DEPTH_LIMIT, &mut { usize::MAX }) {
        true => Ok(tree),
        false => Err(bad_yaml("error unmarshaling JSON: while decoding JSON: json: exceeded max depth")),
    }
}

fn bad_yaml(text: &str) -> Failure {
    Failure::bad_request(format!("error decoding YAML: {text}"))
}

/// Applies a configuration to an object, or to none. Answers with the object as it is to be, with its managed fields.
pub(crate) fn apply(call: &Call, live: Option<&Document>, config: &Value) -> Result<Document, Failure> {
    let (kind, api_version) = (&call.kind, &call.version().api_version);
    check_type(call, config)?;
    let new = new_object(kind, api_version);
    let live_tree = live.map_or(new, Document::as_value);
    let now = call.server.clock.now();
    let mut entries = live.map_or_else(Vec::new, |live| read(live.managed()));
    if entries.is_empty() && live.is_some() {
        let writing = Writing { kind, owner: owner(call, BEFORE, false), now: &now };
        let before = owners::update(&writing, new, live_tree, entries);
        entries = before.map_err(|bad| {
            Failure::internal(format!(
                "failed to create manager for existing fields: failed to update ManagedFields: {bad}"
            ))
        })?;
    }
    if config.pointer("/metadata/managedFields").is_some_and(|fields| !fields.is_null()) {
        return Err(Failure::bad_request("metadata.managedFields must be nil"));
    }
    let bare = bare(config);
    if let Some(schema) = schema_of(kind, api_version) {
        check(&schema, &bare).map_err(|text| {
            Failure::internal(format!("failed to create typed patch object ({}): {text}", described(config)))
        })?;
    }
    let manager = call.options.field_manager.as_str();
    let writing = Writing { kind, owner: owner(call, manager, true), now: &now };
    // Without managed fields nobody is known to own anything.
    let force = call.options.force.unwrap_or_default() || !call.server.settings.managed_fields;
    let applied = apply_with(&writing, live_tree, &bare, entries, force)?;
    let Applied { object, mut entries } = applied;
    // What is not there yet is what the configuration says, without what Go's structs have of their own.
    let tree = match live {
        None => bare,
        Some(live) => object.unwrap_or_else(|| live.as_value().clone()),
    };
    let mut document = Document::new(tree).ok_or_else(|| Failure::bad_request("the object has no usable metadata"))?;
    if manager == KUBECTL {
        renew_annotation(config, &mut document);
    }
    let bytes = match call.server.settings.managed_fields {
        true => written(kind, &mut entries).map_err(|_| Failure::too_large(MANAGED_BYTES))?,
        false => live.and_then(|live| live.managed().bytes(kind)),
    };
    document.set_managed(Managed::Decided(bytes));
    Ok(document)
}

/// Applies a configuration; kubectl may change what it has applied on its own side before.
fn apply_with(
    writing: &Writing<'_>,
    live: &Value,
    config: &Value,
    entries: Vec<Entry>,
    force: bool,
) -> Result<Applied, Failure> {
    let failed = |bad| Failure::internal(format!("failed to merge config: {bad}"));
    let retry = (writing.owner.manager == KUBECTL && !force).then(|| entries.clone());
    let conflicts = match owners::apply(writing, live, config, entries, force) {
        Ok(applied) => return Ok(applied),
        Err(NotApplied::BadItem(bad)) => return Err(failed(bad)),
        Err(NotApplied::Conflicts(conflicts)) => conflicts,
    };
    let Some((entries, allowed)) = retry.and_then(|entries| {
        let schema = schema_of(writing.kind, &writing.owner.api_version)?;
        Some((entries, allowed_by_annotation(&schema, &writing.owner.api_version, live)?))
    }) else {
        return Err(conflict(writing, &conflicts));
    };
    let forbidden =
        conflicts.into_iter().map(|Conflict { owner, fields }| Conflict { owner, fields: fields.difference(&allowed) });
    let forbidden: Vec<Conflict> = forbidden.filter(|conflict| !conflict.fields.is_empty()).collect();
    if !forbidden.is_empty() {
        return Err(conflict(writing, &forbidden));
    }
    owners::apply(writing, live, config, entries, true).map_err(|error| match error {
        NotApplied::BadItem(bad) => failed(bad),
        NotApplied::Conflicts(conflicts) => conflict(writing, &conflicts),
    })
}

/// A configuration must be of the kind and version that its path says.
fn check_type(call: &Call, config: &Value) -> Result<(), Failure> {
    let text = |field: &str| config.get(field).and_then(Value::as_str).unwrap_or_default();
    let (api_version, kind) = (text("apiVersion"), text("kind"));
    if api_version == call.version().api_version && kind == call.kind.kind {
        return Ok(());
    }
    Err(Failure::bad_request(format!("invalid object type: {}", shown_type(api_version, kind))))
}

/// Go's text of a group, a version and a kind.
pub(crate) fn shown_type(api_version: &str, kind: &str) -> String {
    let slash = if api_version.contains('/') { "" } else { "/" };
    format!("{slash}{api_version}, Kind={kind}")
}

/// Go's text of the place and the type of a configuration.
pub(crate) fn described(config: &Value) -> String {
    let text = |pointer: &str| config.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
    let shown_type = shown_type(text("/apiVersion"), text("/kind"));
    format!("{}/{}; {}", text("/metadata/namespace"), text("/metadata/name"), shown_type)
}

/// A configuration without what a document has not.
fn bare(config: &Value) -> Value {
    let mut config = config.clone();
    if let Value::Object(map) = &mut config {
        map.remove("apiVersion");
        map.remove("kind");
        if let Some(Value::Object(metadata)) = map.get_mut("metadata") {
            metadata.remove("managedFields");
            metadata.remove("resourceVersion");
        }
    }
    config
}

fn conflict(writing: &Writing<'_>, conflicts: &[Conflict]) -> Failure {
    // Who applies a `Scale` is told of others as if they had written one too.
    let of_scale = writing.owner.subresource == "scale";
    let mut room = CONFLICT_BYTES;
    let told: Vec<(String, Vec<String>)> = conflicts
        .iter()
        .map(|conflict| match of_scale {
            true => {
                let owner = Owner { api_version: "autoscaling/v1".to_owned(), ..conflict.owner.clone() };
                (owner.shown(), vec![".spec.replicas".to_owned()])
            }
            false => (conflict.owner.shown(), conflict.fields.shown_paths(&mut room)),
        })
        .collect();
    let causes = told.iter().flat_map(|(owner, paths)| {
        paths.iter().map(move |path| Cause {
            reason: "FieldManagerConflict",
            message: format!("conflict with {owner}"),
            field: path.clone(),
        })
    });
    let count: usize = conflicts.iter().map(|conflict| conflict.fields.len()).sum();
    let text = match told.as_slice() {
        [(owner, paths)] if count == 1 => {
            format!("Apply failed with 1 conflict: conflict with {owner}: {}", paths.join(""))
        }
        many => {
            let mut lines = Vec::new();
            for (owner, paths) in many {
                lines.push(format!("conflicts with {owner}:"));
                lines.extend(paths.iter().map(|path| format!("- {path}")));
            }
            format!("Apply failed with {count} conflicts: {}", lines.join("\n"))
        }
    };
    Failure::apply_conflict(text, causes.collect())
}

fn yaml(text: &str) -> Result<Value, String> {
    let options = serde_saphyr::options! {
        budget: serde_saphyr::budget! {
            max_events: usize::MAX,
            max_nodes: usize::MAX,
            // What is written once may be said again and again by aliases.
            max_total_scalar_bytes: text.len().saturating_mul(2).saturating_add(YAML_ALIASED),
            max_total_comment_bytes: usize::MAX,
            max_depth: crate::defaults::DEPTH_LIMIT,
        },
        // As kubectl reads them: `defaultMode: 0644`.
        legacy_octal_numbers: true,
        // As Go does, if nobody asks for strictness.
        duplicate_keys: serde_saphyr::options::DuplicateKeyPolicy::LastWins,
        with_snippet: false,
    };
    // Its own text may quote a value.
    serde_saphyr::from_str_with_options(text, options).map_err(|error| match error.location() {
        Some(location) => format!("error converting YAML to JSON: yaml: line {}: it cannot be read", location.line()),
        None => "error converting YAML to JSON: yaml: it cannot be read".to_owned(),
    })
}
