//! Whether a schema says only what schemas of custom kinds may say.
//!
//! Counterpart: `ValidateCustomResourceDefinitionOpenAPISchema` in
//! `k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/validation`.

use std::collections::{BTreeSet, HashSet};

use serde_json::Value;

use super::check::{Checker, are_enough, clipped};
use super::formats;
use super::path::Path;
use super::props::Props;
use super::prune::{OBJECT_FIELDS, is_pruned};
use super::schema_view::SchemaView;
use super::structural;
use crate::defaults::PATTERNS;
use crate::failure::Cause;
use crate::validation::quoted;

const TYPES: [&str; 6] = ["array", "boolean", "integer", "number", "object", "string"];
/// What may stand at the root of a schema whose status is written apart.
const ROOT: &str = "[Description Type Format Title Maximum ExclusiveMaximum Minimum ExclusiveMinimum MaxLength \
                    MinLength Pattern MaxItems MinItems UniqueItems MultipleOf Required Items Properties ExternalDocs \
                    Example XPreserveUnknownFields XValidations]";

/// What is wrong with the schema of a version.
pub(super) fn faults(schema: &Value, has_status: bool, path: &Path<'_>, checker: &mut Checker) -> Vec<Cause> {
    let view = SchemaView(schema);
    let mut causes = Vec::new();
    if has_status {
        root_faults(view, path, &mut causes);
    }
    if view.is("nullable") {
        causes.push(Cause::forbidden(&path.field("nullable").to_string(), "nullable cannot be true at the root"));
    }
    let mut own = OpenApi { causes: Vec::new(), is_foreign: false };
    own.schema(view, Place { is_root: true, ..Place::default() }, path);
    // What custom kinds have not at all makes a schema of another sort: it is not asked for its structure.
    let structure = if own.is_foreign { Vec::new() } else { structural::faults(schema, path) };
    // A schema that is not structural is not read any further.
    let props = if structure.is_empty() { Some(Props::read(schema)) } else { None };
    causes.extend(structure);
    if let Some(Ok(props)) = &props {
        let properties = path.field("properties");
        // What every object has may have no defaults, which is told elsewhere.
        let own = props.properties.iter().filter(|(name, _)| !OBJECT_FIELDS.contains(&&***name));
        own.for_each(|(name, property)| defaults(property, &properties.key(name), checker, &mut causes));
    }
    causes.extend(own.causes);
    // Whatever else a schema may say that it cannot be checked with.
    if causes.is_empty()
        && let Some(Err(error)) = props
    {
        causes.push(Cause::invalid(&path.to_string(), "\"\"", format!("error building validator: {error}")));
    }
    causes
}

/// Whether schemas have more different patterns together than anybody could want: each takes time to be read.
pub(super) fn have_too_many_patterns<'a>(schemas: impl Iterator<Item = &'a Value>) -> bool {
    let mut patterns = HashSet::new();
    schemas.for_each(|schema| find_patterns(SchemaView(schema), &mut patterns));
    patterns.len() > PATTERNS
}

fn find_patterns<'a>(schema: SchemaView<'a>, patterns: &mut HashSet<&'a str>) {
    let pattern = schema.text("pattern");
    if !pattern.is_empty() {
        patterns.insert(pattern);
    }
    beneath(schema, &mut |part| find_patterns(part, patterns));
}

/// Every schema that a schema is made of. Definitions have a bounded depth.
fn beneath<'a>(schema: SchemaView<'a>, visit: &mut dyn FnMut(SchemaView<'a>)) {
    schema.properties().for_each(|(_, property)| visit(property));
    for name in ["items", "additionalProperties", "not"] {
        schema.part(name).into_iter().for_each(&mut *visit);
    }
    for name in ["allOf", "anyOf", "oneOf"] {
        schema.parts(name).for_each(&mut *visit);
    }
}

/// What a client is told of a schema that is accepted: rules that nobody checks, and formats that nobody knows.
pub(super) fn warnings(schema: &Value) -> Vec<String> {
    let mut found = Found::default();
    found.schema(SchemaView(schema));
    let mut warnings: Vec<String> =
        found.formats.into_iter().map(|format| format!("unrecognized format {}", quoted(&format))).collect();
    if found.rules {
        warnings.push("x-kubernetes-validations: this in-memory API server does not evaluate the rules".to_owned());
    }
    warnings
}

fn root_faults(schema: SchemaView<'_>, path: &Path<'_>, causes: &mut Vec<Cause>) {
    let kind = schema.kind();
    if !kind.is_empty() && kind != "object" {
        let text =
            "only \"object\" is allowed as the type at the root of the schema if the status subresource is enabled";
        causes.push(Cause::invalid(&path.field("type").to_string(), quoted(kind), text));
    }
    let stray = ["allOf", "anyOf", "oneOf", "not", "additionalProperties", "default", "nullable"];
    if stray.iter().any(|name| schema.is_set(name)) {
        let text =
            format!("only {ROOT} fields are allowed at the root of the schema if the status subresource is enabled");
        causes.push(Cause::invalid(&path.to_string(), clipped(&schema.0.to_string()), text));
    }
}

/// Defaults must be what they are the default of. Definitions have a bounded depth, and so has this.
fn defaults(props: &Props, path: &Path<'_>, checker: &mut Checker, causes: &mut Vec<Cause>) {
    if are_enough(causes) {
        return;
    }
    let at = path.field("default");
    if let Some(default) = &props.default {
        let field = at.to_string();
        if !is_pruned(&default.value, props) {
            causes.push(Cause::invalid(&field, clipped(&default.value.to_string()), "must not have unknown fields"));
        } else {
            // The path of a default is where it stands in the definition, and its texts begin with nothing.
            let found = checker.check(&default.value, None, props, &Path::root(""));
            causes.extend(found.into_iter().map(|cause| {
                let field = if cause.field.is_empty() { field.clone() } else { format!("{field}.{}", cause.field) };
                Cause { field, ..cause }
            }));
        }
    }
    if let Some(items) = &props.items {
        defaults(items, &path.field("items"), checker, causes);
    }
    let properties = path.field("properties");
    for (name, property) in &props.properties {
        defaults(property, &properties.key(name), checker, causes);
    }
    if let super::props::Additional::Values(values) = &props.additional {
        defaults(values, &path.field("additionalProperties"), checker, causes);
    }
}

/// Where a schema stands.
#[derive(Debug, Clone, Copy, Default)]
struct Place<'a> {
    is_root: bool,
    /// Defaults are forbidden here, because of this.
    no_defaults: Option<&'a str>,
}

struct OpenApi {
    causes: Vec<Cause>,
    /// It has something that no schema of a custom kind has.
    is_foreign: bool,
}

impl OpenApi {
    // Definitions have a bounded depth, and so has this.
    fn schema(&mut self, schema: SchemaView<'_>, place: Place<'_>, path: &Path<'_>) {
        if are_enough(&self.causes) {
            return;
        }
        self.standard(schema, place, path);
        if schema.is("uniqueItems") {
            let text = "uniqueItems cannot be set to true since the runtime complexity becomes quadratic";
            self.forbidden(path, "uniqueItems", text);
        }
        let inner = Place { is_root: false, ..place };
        if schema.has("additionalProperties") {
            let excludes = schema.0.get("additionalProperties") != Some(&Value::Bool(true));
            if excludes && schema.properties().next().is_some() {
                let text = "additionalProperties and properties are mutual exclusive";
                self.forbidden(path, "additionalProperties", text);
            }
            if let Some(values) = schema.part("additionalProperties") {
                self.schema(values, inner, &path.field("additionalProperties"));
            }
        }
        let properties = path.field("properties");
        for (name, property) in schema.properties() {
            let no_defaults = match name {
                "metadata" => Some("in top-level metadata"),
                "kind" => Some("in top-level kind"),
                "apiVersion" => Some("in top-level apiVersion"),
                _ => None,
            };
            let no_defaults = place.no_defaults.or(no_defaults.filter(|_| place.is_root));
            self.schema(property, Place { is_root: false, no_defaults }, &properties.key(name));
        }
        if let Some(not) = schema.part("not") {
            self.schema(not, inner, &path.field("not"));
        }
        for name in ["allOf", "oneOf", "anyOf"] {
            let path = path.field(name);
            for (i, part) in schema.parts(name).enumerate() {
                self.schema(part, inner, &path.index(i));
            }
        }
        if let Some(items) = schema.part("items") {
            self.schema(items, inner, &path.field("items"));
        }
        self.extensions(schema, path);
        self.list_map(schema, path);
    }

    /// What the standard has, and custom kinds have not.
    fn standard(&mut self, schema: SchemaView<'_>, place: Place<'_>, path: &Path<'_>) {
        if let Some(reason) = place.no_defaults.filter(|_| schema.has("default")) {
            self.forbidden(path, "default", &format!("must not be set {reason}"));
        }
        let kind = schema.kind();
        if !kind.is_empty() && !TYPES.contains(&kind) {
            let at = path.field("type").to_string();
            self.causes.push(Cause::unsupported(&at, quoted(kind), &TYPES));
        }
        if kind == "null" {
            self.forbidden(path, "type", "type cannot be set to null, use nullable as an alternative");
        }
        if schema.0.get("items").is_some_and(Value::is_array) {
            self.is_foreign = true;
            self.forbidden(path, "items", "items must be a schema object and not an array");
        }
        for name in ["id", "patternProperties", "definitions", "$ref", "dependencies", "additionalItems"] {
            if schema.has(name) && (schema.is_set(name) || name == "additionalItems") {
                self.is_foreign = true;
                self.forbidden(path, name, &format!("{name} is not supported"));
            }
        }
    }

    fn extensions(&mut self, schema: SchemaView<'_>, path: &Path<'_>) {
        const PRESERVE: &str = "x-kubernetes-preserve-unknown-fields";
        const MAP: &str = "x-kubernetes-map-type";
        const LIST: &str = "x-kubernetes-list-type";
        if schema.0.get(PRESERVE) == Some(&Value::Bool(false)) {
            self.causes.push(Cause::invalid(&path.field(PRESERVE).to_string(), false, "must be true or undefined"));
        }
        for (name, kind, supported) in
            [(MAP, "object", ["atomic", "granular"].as_slice()), (LIST, "array", &["atomic", "set", "map"])]
        {
            if !schema.has(name) {
                continue;
            }
            let (given, at) = (schema.kind(), path.field("type").to_string());
            let text = format!("must be {kind} if {name} is specified");
            match given {
                "" => self.causes.push(Cause::required(&at, &text)),
                given if given != kind => self.causes.push(Cause::invalid(&at, quoted(given), text)),
                _ if name == LIST && schema.text(LIST) == "set" => self.set_items(schema, path),
                _ => {}
            }
            let value = schema.text(name);
            if !supported.contains(&value) {
                self.causes.push(Cause::unsupported(&path.field(name).to_string(), quoted(value), supported));
            }
        }
    }

    /// The entries of a set are told apart as a whole.
    fn set_items(&mut self, schema: SchemaView<'_>, path: &Path<'_>) {
        let Some(items) = schema.part("items") else { return };
        let text = "must be atomic as item of a list with x-kubernetes-list-type=set";
        let (name, fits) = match items.kind() {
            "array" => ("x-kubernetes-list-type", matches!(items.text("x-kubernetes-list-type"), "" | "atomic")),
            "object" => ("x-kubernetes-map-type", items.text("x-kubernetes-map-type") == "atomic"),
            _ => return,
        };
        if !fits {
            let list_type = items.0.get("x-kubernetes-list-type").unwrap_or(&Value::Null);
            self.causes.push(Cause::invalid(&path.field("items").field(name).to_string(), list_type, text));
        }
    }

    fn list_map(&mut self, schema: SchemaView<'_>, path: &Path<'_>) {
        const KEYS: &str = "x-kubernetes-list-map-keys";
        const LIST: &str = "x-kubernetes-list-type";
        let (keys, list) = (schema.texts(KEYS), schema.text(LIST));
        let (keys_at, list_at) = (path.field(KEYS).to_string(), path.field(LIST).to_string());
        if !keys.is_empty() && list != "map" {
            let text = "must be map if x-kubernetes-list-map-keys is non-empty";
            self.causes.push(match schema.has(LIST) {
                true => Cause::invalid(&list_at, quoted(list), text),
                false => Cause::required(&list_at, text),
            });
        }
        if list != "map" {
            return;
        }
        if keys.is_empty() {
            self.causes.push(Cause::required(&keys_at, "must not be empty if x-kubernetes-list-type is map"));
        }
        let items_at = path.field("items");
        let Some(items) = schema.part("items") else {
            let text = "must have a schema if x-kubernetes-list-type is map";
            self.causes.push(Cause::required(&items_at.to_string(), text));
            return;
        };
        if items.kind() != "object" {
            let text = "must be object if parent array's x-kubernetes-list-type is map";
            self.causes.push(Cause::invalid(&items_at.field("type").to_string(), quoted(items.kind()), text));
            return;
        }
        self.list_keys(items, &keys, &items_at, &keys_at);
    }

    fn list_keys(&mut self, items: SchemaView<'_>, keys: &[&str], items_at: &Path<'_>, keys_at: &str) {
        let (properties, shown) = (items_at.field("properties"), clipped(&Value::from(keys.to_vec()).to_string()));
        let mut seen: BTreeSet<&str> = BTreeSet::new();
        for key in keys {
            if are_enough(&self.causes) {
                return;
            }
            match items.property(key) {
                Some(property) if matches!(property.kind(), "array" | "object") => {
                    let text = "must be a scalar type if parent array's x-kubernetes-list-type is map";
                    let at = properties.key(key).field("type").to_string();
                    self.causes.push(Cause::invalid(&at, quoted(items.kind()), text));
                }
                Some(_) => {}
                None => {
                    self.causes.push(Cause::invalid(keys_at, &shown, "entries must all be names of item properties"));
                }
            }
            if !seen.insert(key) {
                self.causes.push(Cause::invalid(keys_at, &shown, "must not contain duplicate entries"));
            }
        }
        let required: BTreeSet<&str> = items.texts("required").into_iter().collect();
        for key in seen {
            if let Some(property) = items.property(key)
                && !property.has("default")
                && !required.contains(key)
            {
                let text = "this property is in x-kubernetes-list-map-keys, so it must have a default or be a required \
                            property";
                self.causes.push(Cause::required(&properties.key(key).field("default").to_string(), text));
            }
        }
    }

    fn forbidden(&mut self, path: &Path<'_>, name: &str, text: &str) {
        self.causes.push(Cause::forbidden(&path.field(name).to_string(), text));
    }
}

#[derive(Default)]
struct Found {
    /// In the order in which they come, each once.
    formats: Vec<String>,
    seen: BTreeSet<String>,
    rules: bool,
}

impl Found {
    fn schema(&mut self, schema: SchemaView<'_>) {
        let format = schema.text("format");
        if !format.is_empty() && !formats::KNOWN.contains(&format) && self.seen.insert(format.to_owned()) {
            self.formats.push(format.to_owned());
        }
        self.rules |= schema.is_set("x-kubernetes-validations");
        beneath(schema, &mut |part| self.schema(part));
    }
}
