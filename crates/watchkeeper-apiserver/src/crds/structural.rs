//! Whether a schema is structural: every field is named and typed outside of what combines schemas.
//!
//! Counterpart: `ValidateStructural` in `k8s.io/apiextensions-apiserver/pkg/apiserver/schema`. Its complaints come sorted.

use std::collections::HashSet;

use serde_json::{Map, Value};

use super::check::are_enough;
use super::path::Path;
use super::pattern::Pattern;
use super::schema_view::SchemaView;
use crate::defaults::PATTERNS;
use crate::failure::Cause;
use crate::validation::quoted;

/// Where a schema stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Level {
    Root,
    Item,
    Field,
}

/// What keeps a schema from being structural.
pub(super) fn faults(schema: &Value, path: &Path<'_>) -> Vec<Cause> {
    let mut faults = Faults { causes: Vec::new(), patterns: HashSet::new() };
    faults.schema(SchemaView(schema), Level::Root, path);
    faults.completeness(SchemaView(schema), SchemaView(schema), path, path);
    faults.causes.sort_by_cached_key(|cause| format!("{}: {}", cause.field, cause.message));
    faults.causes
}

struct Faults {
    causes: Vec<Cause>,
    /// The patterns that were read.
    patterns: HashSet<String>,
}

impl Faults {
    // Definitions have a bounded depth, and so has everything here.
    fn schema(&mut self, schema: SchemaView<'_>, level: Level, path: &Path<'_>) {
        if are_enough(&self.causes) {
            return;
        }
        if schema.kind() == "array" && schema.part("items").is_none() {
            self.required(&path.field("items"), "must be specified");
        }
        if let Some(items) = schema.part("items") {
            self.schema(items, Level::Item, &path.field("items"));
        }
        let properties = path.field("properties");
        for (name, property) in schema.properties() {
            self.schema(property, Level::Field, &properties.key(name));
        }
        if schema.has("additionalProperties") {
            let path = path.field("additionalProperties");
            if level == Level::Root {
                self.forbidden(&path, "must not be used at the root");
            }
            if let Some(values) = schema.part("additionalProperties") {
                self.schema(values, Level::Field, &path);
            }
        }
        self.extensions(schema, path);
        self.junctors(schema, schema.is_int_or_string_any_of(), schema.is_int_or_string_all_of(), path);
        self.kind(schema, level, path);
        self.object_fields(schema, level, path);
    }

    fn extensions(&mut self, schema: SchemaView<'_>, path: &Path<'_>) {
        for name in ["x-kubernetes-preserve-unknown-fields", "x-kubernetes-embedded-resource"] {
            if schema.is("x-kubernetes-int-or-string") && schema.is(name) {
                self.invalid(&path.field(name), "true", "must be false if x-kubernetes-int-or-string is true");
            }
        }
    }

    fn kind(&mut self, schema: SchemaView<'_>, level: Level, path: &Path<'_>) {
        let (kind, at) = (schema.kind(), path.field("type"));
        let embedded = schema.is("x-kubernetes-embedded-resource");
        let is_open = schema.is("x-kubernetes-int-or-string") || schema.is("x-kubernetes-preserve-unknown-fields");
        match kind {
            "object" => {}
            "" if embedded => self.required(&at, "must be object if x-kubernetes-embedded-resource is true"),
            kind if embedded => {
                self.invalid(&at, quoted(kind), "must be object if x-kubernetes-embedded-resource is true");
            }
            "" if !is_open => self.required(
                &at,
                match level {
                    Level::Root => "must not be empty at the root",
                    Level::Item => "must not be empty for specified array items",
                    Level::Field => "must not be empty for specified object fields",
                },
            ),
            _ => {}
        }
        if embedded && schema.has("additionalProperties") {
            let text = "must not be used if x-kubernetes-embedded-resource is set";
            self.forbidden(&path.field("additionalProperties"), text);
        }
        if level == Level::Root && !kind.is_empty() && kind != "object" {
            self.invalid(&at, quoted(kind), "must be object at the root");
        }
    }

    fn object_fields(&mut self, schema: SchemaView<'_>, level: Level, path: &Path<'_>) {
        let embedded = schema.is("x-kubernetes-embedded-resource");
        let is_object = level == Level::Root || embedded;
        let properties = path.field("properties");
        for name in ["kind", "apiVersion"] {
            if let Some(property) = schema.property(name).filter(|property| is_object && property.kind() != "string") {
                self.invalid(&properties.key(name).field("type"), quoted(property.kind()), "must be string");
            }
        }
        if let Some(metadata) = schema.property("metadata") {
            let path = properties.key("metadata");
            if is_object && metadata.kind() != "object" {
                self.invalid(&path.field("type"), quoted(metadata.kind()), "must be object");
            }
            if level == Level::Root && !metadata.is_plain_metadata() {
                let text =
                    "must not specify anything other than name and generateName, but metadata is implicitly specified";
                self.forbidden(&path, text);
            }
        }
        if embedded && !schema.is("x-kubernetes-preserve-unknown-fields") && schema.properties().next().is_none() {
            let text = "must not be empty if x-kubernetes-embedded-resource is true without \
                        x-kubernetes-preserve-unknown-fields";
            self.required(&properties, text);
        }
    }

    /// What combines schemas, and the pattern.
    fn junctors(&mut self, schema: SchemaView<'_>, skip_any_of: bool, skip_first: bool, path: &Path<'_>) {
        for name in ["anyOf", "allOf", "oneOf"] {
            if name == "anyOf" && skip_any_of {
                continue;
            }
            let path = path.field(name);
            for (i, part) in schema.parts(name).enumerate() {
                self.nested(part, name == "allOf" && i == 0 && skip_first, &path.index(i));
            }
        }
        if let Some(part) = schema.part("not") {
            self.nested(part, false, &path.field("not"));
        }
        let pattern = schema.text("pattern");
        // That there are too many of them is told elsewhere.
        if pattern.is_empty() || self.patterns.len() >= PATTERNS || !self.patterns.insert(pattern.to_owned()) {
            return;
        }
        if let Err(error) = Pattern::new(pattern) {
            let text = format!("must be a valid regular expression, but isn't: {error}");
            self.invalid(&path.field("pattern"), quoted(pattern), &text);
        }
    }

    /// What combines schemas may check values, and may not say what they are.
    fn nested(&mut self, schema: SchemaView<'_>, skip_any_of: bool, path: &Path<'_>) {
        if are_enough(&self.causes) {
            return;
        }
        self.junctors(schema, skip_any_of, false, path);
        if let Some(items) = schema.part("items") {
            self.nested(items, false, &path.field("items"));
        }
        let properties = path.field("properties");
        for (name, property) in schema.properties() {
            self.nested(property, false, &properties.key(name));
        }
        const EMPTY: &str = "must be empty to be structural";
        const FALSE: &str = "must be false to be structural";
        const UNDEFINED: &str = "must be undefined to be structural";
        for (name, text) in [
            ("type", EMPTY),
            ("additionalProperties", UNDEFINED),
            ("default", UNDEFINED),
            ("title", EMPTY),
            ("description", EMPTY),
            ("nullable", FALSE),
            ("externalDocs", UNDEFINED),
            ("x-kubernetes-preserve-unknown-fields", FALSE),
            ("x-kubernetes-embedded-resource", FALSE),
            ("x-kubernetes-int-or-string", FALSE),
            ("x-kubernetes-list-map-keys", EMPTY),
            ("x-kubernetes-list-type", UNDEFINED),
            ("x-kubernetes-map-type", UNDEFINED),
            ("x-kubernetes-validations", EMPTY),
        ] {
            if schema.is_set(name) {
                self.forbidden(&path.field(name), text);
            }
        }
        if schema.property("metadata").is_some() {
            self.forbidden(&properties.key("metadata"), "must not be specified in a nested context");
        }
    }

    /// Whatever is checked must also be named outside. As in Kubernetes, only what the root combines is looked at.
    fn completeness(&mut self, checks: SchemaView<'_>, names: SchemaView<'_>, at: &Path<'_>, from: &Path<'_>) {
        for junctor in ["not", "allOf", "anyOf", "oneOf"] {
            let path = from.field(junctor);
            for (i, part) in schemas(checks, junctor).into_iter().enumerate() {
                match junctor {
                    "not" => self.nested_completeness(part, names, at, &path),
                    _ => self.nested_completeness(part, names, at, &path.index(i)),
                }
            }
        }
    }

    fn nested_completeness(&mut self, checks: SchemaView<'_>, names: SchemaView<'_>, at: &Path<'_>, from: &Path<'_>) {
        if are_enough(&self.causes) {
            return;
        }
        self.completeness(checks, names, at, from);
        if let Some(items) = checks.part("items") {
            let (at, from) = (at.field("items"), from.field("items"));
            match names.part("items") {
                Some(named) => self.nested_completeness(items, named, &at, &from),
                None => self.required(&at, &format!("because it is defined in {from}")),
            }
        }
        let (at, from) = (at.field("properties"), from.field("properties"));
        for (name, property) in checks.properties() {
            let (at, from) = (at.key(name), from.key(name));
            match names.property(name) {
                Some(named) => self.nested_completeness(property, named, &at, &from),
                None => self.required(&at, &format!("because it is defined in {from}")),
            }
        }
    }

    fn required(&mut self, path: &Path<'_>, text: &str) {
        self.causes.push(Cause::required(&path.to_string(), text));
    }

    fn forbidden(&mut self, path: &Path<'_>, text: &str) {
        self.causes.push(Cause::forbidden(&path.to_string(), text));
    }

    fn invalid(&mut self, path: &Path<'_>, value: impl std::fmt::Display, text: &str) {
        self.causes.push(Cause::invalid(&path.to_string(), value, text));
    }
}

/// One schema, or a list of them.
fn schemas<'a>(schema: SchemaView<'a>, name: &str) -> Vec<SchemaView<'a>> {
    match name {
        "not" => schema.part(name).into_iter().collect(),
        name => schema.parts(name).collect(),
    }
}

impl SchemaView<'_> {
    /// `anyOf: [{type: integer}, {type: string}]`, and nothing else in them.
    fn is_int_or_string_any_of(self) -> bool {
        let only = |value: &Value, kind: &str| {
            value.as_object().is_some_and(|map| map.len() == 1 && map.get("type") == Some(&kind.into()))
        };
        match self.0.get("anyOf").and_then(Value::as_array).map(Vec::as_slice) {
            Some([first, second]) => only(first, "integer") && only(second, "string"),
            _ => false,
        }
    }

    /// The same as the first of what must hold.
    fn is_int_or_string_all_of(self) -> bool {
        self.parts("allOf").next().is_some_and(Self::is_int_or_string_any_of)
    }

    /// Metadata may only be said to be an object, with rules for its name.
    fn is_plain_metadata(self) -> bool {
        let Some(map) = self.0.as_object() else { return true };
        let names =
            |properties: &Map<String, Value>| properties.keys().all(|name| name == "name" || name == "generateName");
        map.iter().all(|(field, value)| match field.as_str() {
            "type" | "default" => true,
            "properties" => value.as_object().is_none_or(names),
            field => !self.is_set(field),
        })
    }
}
