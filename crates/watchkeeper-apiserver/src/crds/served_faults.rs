//! What is wrong with what a version of a CustomResourceDefinition has beside its schema: its scale, its columns, and the fields
//! that its objects can be selected by.

use std::collections::BTreeSet;

use super::check::clipped;
use super::definition::{ColumnSpec, ScalePaths, SelectableField, Subresources, VersionSpec};
use super::faults::schema_of;
use super::schema_view::SchemaView;
use crate::defaults::DEPTH_LIMIT;
use crate::failure::Cause;
use crate::validation::quoted;

const COLUMN_TYPES: &str = "boolean,date,integer,number,string";
const COLUMN_FORMATS: &str = "byte,date,date-time,double,float,int32,int64,password";
/// How many fields objects may be selected by.
const SELECTABLE_FIELDS: usize = 8;
/// The most steps of a path to a number: an object must have room for them.
const MOST_STEPS: usize = DEPTH_LIMIT - 10;
const SIMPLE: &str = "must be a simple json path starting with .";

/// What is wrong with where a version says how many there are.
pub(super) fn subresources(subresources: Option<&Subresources>, at: &str) -> Vec<Cause> {
    let mut causes = Vec::new();
    let Some(scale) = subresources.and_then(|subresources| subresources.scale.as_ref()) else { return causes };
    let ScalePaths { spec_replicas_path, status_replicas_path, label_selector_path } = scale;
    let at = |field: &str| format!("{at}.scale.{field}");
    for (field, path, under) in
        [("specReplicasPath", spec_replicas_path, ".spec"), ("statusReplicasPath", status_replicas_path, ".status")]
    {
        match path.as_str() {
            "" => causes.push(Cause::required(&at(field), "")),
            path if !is_simple(path) => causes.push(Cause::invalid(&at(field), quoted(path), SIMPLE)),
            // Whoever scales an object makes what is missing on the way.
            path if path.split('.').count() > MOST_STEPS => {
                causes.push(Cause::invalid(&at(field), quoted(&clipped(path)), "is too deep for any object"));
            }
            path if !path.starts_with(&format!("{under}.")) => {
                causes.push(Cause::invalid(&at(field), quoted(path), format!("should be a json path under {under}")));
            }
            _ => {}
        }
    }
    if let Some(path) = label_selector_path.as_deref().filter(|path| !path.is_empty()) {
        let field = at("labelSelectorPath");
        if !is_simple(path) {
            causes.push(Cause::invalid(&field, quoted(path), SIMPLE));
        } else if !path.starts_with(".spec.") && !path.starts_with(".status.") {
            causes.push(Cause::invalid(&field, quoted(path), "should be a json path under either .spec or .status"));
        }
    }
    causes
}

/// What is wrong with the columns of a version.
pub(super) fn columns(columns: &[ColumnSpec], at: &str) -> Vec<Cause> {
    let mut causes = Vec::new();
    for (i, column) in columns.iter().enumerate() {
        let at = |field: &str| format!("{at}[{i}].{field}");
        if column.name.is_empty() {
            causes.push(Cause::required(&at("name"), ""));
        }
        let types = format!("must be one of {COLUMN_TYPES}");
        match column.kind.as_str() {
            "" => causes.push(Cause::required(&at("type"), &types)),
            kind if !COLUMN_TYPES.split(',').any(|known| known == kind) => {
                causes.push(Cause::invalid(&at("type"), quoted(kind), types));
            }
            _ => {}
        }
        if !column.format.is_empty() && !COLUMN_FORMATS.split(',').any(|known| known == column.format) {
            let text = format!("must be one of {COLUMN_FORMATS}");
            causes.push(Cause::invalid(&at("format"), quoted(&column.format), text));
        }
        match column.json_path.as_str() {
            "" => causes.push(Cause::required(&at("JSONPath"), "")),
            path if !is_simple(path) => causes.push(Cause::invalid(&at("JSONPath"), quoted(path), SIMPLE)),
            _ => {}
        }
    }
    causes
}

/// What is wrong with the fields that the objects of a version can be selected by.
pub(super) fn selectable(version: &VersionSpec, at: &str) -> Vec<Cause> {
    let mut causes = Vec::new();
    let fields: &[SelectableField] = &version.selectable_fields;
    let Some(schema) = schema_of(version) else { return causes };
    let mut seen = BTreeSet::new();
    for (i, SelectableField { json_path: path }) in fields.iter().enumerate() {
        let at = format!("{at}[{i}].jsonPath");
        if path.is_empty() {
            causes.push(Cause::required(&at, ""));
            continue;
        }
        let found = match field_schema(path, SchemaView(schema)) {
            Ok(found) => found,
            Err(text) => {
                causes.push(Cause::invalid(&at, quoted(path), format!("is an invalid path: {text}")));
                continue;
            }
        };
        if path.starts_with(".metadata") {
            causes.push(Cause::invalid(&at, quoted(path), "must not point to fields in metadata"));
        }
        if !matches!(found.kind(), "string" | "boolean" | "integer") {
            let text = "must point to a field of type string, boolean or integer. Enum string fields and strings with \
                        formats are allowed.";
            causes.push(Cause::invalid(&at, quoted(path), text));
        }
        if !seen.insert(path.as_str()) {
            causes.push(Cause::duplicate(&at, quoted(path)));
        }
    }
    if seen.len() > SELECTABLE_FIELDS {
        let message = format!("Too many: {}: must have at most {SELECTABLE_FIELDS} items", seen.len());
        causes.push(Cause::new("FieldValueTooMany", at, message));
    }
    causes
}

fn is_simple(path: &str) -> bool {
    path.starts_with('.')
}

/// The schema of the field at a path: `.spec.colour`.
fn field_schema<'a>(path: &str, schema: SchemaView<'a>) -> Result<SchemaView<'a>, String> {
    let Some(names) = path.strip_prefix('.') else { return Err(format!("expected [ or . but got: {path}")) };
    let mut found = schema;
    for name in names.split('.') {
        found = found.property(name).ok_or("does not refer to a valid field")?;
    }
    Ok(found)
}
