//! A schema as it was written down, ready to be used: `openAPIV3Schema` of one version.
//!
//! Counterpart: `Structural` in `k8s.io/apiextensions-apiserver/pkg/apiserver/schema`. It is read from a schema that was
//! found to be structural; what is of another type than it should be counts as not there.

use std::collections::{BTreeMap, HashMap};

use serde_json::Value;

use super::pattern::Pattern;
use crate::defaults::PATTERNS;

/// What a value may be, and what becomes of it.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Props {
    pub(crate) kind: Option<Type>,
    pub(crate) nullable: bool,
    pub(crate) format: Option<Box<str>>,
    pub(crate) properties: BTreeMap<Box<str>, Props>,
    pub(crate) additional: Additional,
    pub(crate) items: Option<Box<Props>>,
    pub(crate) default: Option<DefaultValue>,
    pub(crate) preserves_unknown: bool,
    pub(crate) embedded: bool,
    pub(crate) int_or_string: bool,
    pub(crate) list: ListType,
    pub(crate) limits: Limits,
    pub(crate) all_of: Vec<Props>,
    pub(crate) any_of: Vec<Props>,
    pub(crate) one_of: Vec<Props>,
    pub(crate) not: Option<Box<Props>>,
}

/// A type of JSON.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Type {
    Object,
    Array,
    String,
    Integer,
    Number,
    Boolean,
}

/// What keys may be there that are no property.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) enum Additional {
    /// Nothing is said: they are pruned.
    #[default]
    Unsaid,
    /// `true` or `false`.
    Allowed(bool),
    /// Any, with such values.
    Values(Box<Props>),
}

/// What tells the entries of a list apart.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) enum ListType {
    #[default]
    Atomic,
    Set,
    Map(Vec<Box<str>>),
}

/// A value that is filled in, and how many bytes that takes.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct DefaultValue {
    pub(crate) value: Value,
    pub(crate) size: usize,
}

/// What a value is checked for.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Limits {
    pub(crate) maximum: Option<f64>,
    pub(crate) exclusive_maximum: bool,
    pub(crate) minimum: Option<f64>,
    pub(crate) exclusive_minimum: bool,
    pub(crate) multiple_of: Option<f64>,
    pub(crate) max_length: Option<u64>,
    pub(crate) min_length: Option<u64>,
    pub(crate) pattern: Option<Pattern>,
    pub(crate) max_items: Option<u64>,
    pub(crate) min_items: Option<u64>,
    pub(crate) max_properties: Option<u64>,
    pub(crate) min_properties: Option<u64>,
    pub(crate) required: Vec<Box<str>>,
    pub(crate) allowed: Vec<Value>,
}

impl Type {
    pub(crate) fn of(name: &str) -> Option<Self> {
        Some(match name {
            "object" => Self::Object,
            "array" => Self::Array,
            "string" => Self::String,
            "integer" => Self::Integer,
            "number" => Self::Number,
            "boolean" => Self::Boolean,
            _ => return None,
        })
    }

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Object => "object",
            Self::Array => "array",
            Self::String => "string",
            Self::Integer => "integer",
            Self::Number => "number",
            Self::Boolean => "boolean",
        }
    }
}

impl Props {
    /// Reads a schema, or says why it cannot be used: what a pattern is wrong in, and what there is too much of.
    pub(crate) fn read(schema: &Value) -> Result<Self, String> {
        Reader { patterns: HashMap::new() }.props(schema)
    }

    /// The schema of a field, if there is one.
    pub(crate) fn field(&self, name: &str) -> Option<&Self> {
        match (self.properties.get(name), &self.additional) {
            (Some(property), _) => Some(property),
            (None, Additional::Values(values)) => Some(values),
            (None, _) => None,
        }
    }

    /// Whether a null stands here that the schema has no room for.
    pub(crate) fn refuses(&self, value: &Value) -> bool {
        value.is_null() && !self.nullable
    }
}

struct Reader {
    /// Schemas that are made by programs repeat their patterns.
    patterns: HashMap<String, Pattern>,
}

impl Reader {
    // Definitions have a bounded depth, and so has this.
    fn props(&mut self, schema: &Value) -> Result<Props, String> {
        let is = |field: &str| schema.get(field).and_then(Value::as_bool).unwrap_or_default();
        let text = |field: &str| schema.get(field).and_then(Value::as_str);
        let mut properties = BTreeMap::new();
        for (name, property) in schema.get("properties").and_then(Value::as_object).into_iter().flatten() {
            properties.insert(name.as_str().into(), self.props(property)?);
        }
        let additional = match schema.get("additionalProperties") {
            Some(Value::Bool(allowed)) => Additional::Allowed(*allowed),
            Some(values @ Value::Object(_)) => Additional::Values(Box::new(self.props(values)?)),
            _ => Additional::Unsaid,
        };
        let keys = || texts(schema.get("x-kubernetes-list-map-keys"));
        Ok(Props {
            kind: text("type").and_then(Type::of),
            nullable: is("nullable"),
            format: text("format").filter(|format| !format.is_empty()).map(Into::into),
            properties,
            additional,
            items: self.one(schema.get("items").filter(|items| items.is_object()))?,
            default: schema.get("default").filter(|value| !value.is_null()).map(DefaultValue::new),
            preserves_unknown: is("x-kubernetes-preserve-unknown-fields"),
            embedded: is("x-kubernetes-embedded-resource"),
            int_or_string: is("x-kubernetes-int-or-string"),
            list: match text("x-kubernetes-list-type") {
                Some("set") => ListType::Set,
                Some("map") => ListType::Map(keys()),
                _ => ListType::Atomic,
            },
            limits: self.limits(schema)?,
            all_of: self.several(schema.get("allOf"))?,
            any_of: self.several(schema.get("anyOf"))?,
            one_of: self.several(schema.get("oneOf"))?,
            not: self.one(schema.get("not"))?,
        })
    }

    fn one(&mut self, schema: Option<&Value>) -> Result<Option<Box<Props>>, String> {
        schema.filter(|schema| schema.is_object()).map(|schema| self.props(schema).map(Box::new)).transpose()
    }

    fn several(&mut self, schemas: Option<&Value>) -> Result<Vec<Props>, String> {
        schemas.and_then(Value::as_array).into_iter().flatten().map(|schema| self.props(schema)).collect()
    }

    fn limits(&mut self, schema: &Value) -> Result<Limits, String> {
        let is = |field: &str| schema.get(field).and_then(Value::as_bool).unwrap_or_default();
        let number = |field: &str| schema.get(field).and_then(Value::as_f64);
        // A negative limit is one that nothing, or everything, is within: as in Go, lengths are not negative.
        let count =
            |field: &str| schema.get(field).and_then(Value::as_i64).map(|count| u64::try_from(count).unwrap_or(0));
        let pattern = schema.get("pattern").and_then(Value::as_str).filter(|pattern| !pattern.is_empty());
        Ok(Limits {
            maximum: number("maximum"),
            exclusive_maximum: is("exclusiveMaximum"),
            minimum: number("minimum"),
            exclusive_minimum: is("exclusiveMinimum"),
            multiple_of: number("multipleOf"),
            max_length: count("maxLength"),
            min_length: count("minLength"),
            pattern: pattern.map(|pattern| self.pattern(pattern)).transpose()?,
            max_items: count("maxItems"),
            min_items: count("minItems"),
            max_properties: count("maxProperties"),
            min_properties: count("minProperties"),
            required: texts(schema.get("required")),
            allowed: schema.get("enum").and_then(Value::as_array).cloned().unwrap_or_default(),
        })
    }

    fn pattern(&mut self, text: &str) -> Result<Pattern, String> {
        if let Some(known) = self.patterns.get(text) {
            return Ok(known.clone());
        }
        if self.patterns.len() >= PATTERNS {
            return Err(format!("there are more than {PATTERNS} different patterns in it"));
        }
        let pattern = Pattern::new(text)?;
        self.patterns.insert(text.to_owned(), pattern.clone());
        Ok(pattern)
    }
}

impl DefaultValue {
    fn new(value: &Value) -> Self {
        Self { value: value.clone(), size: value.to_string().len() }
    }
}

fn texts(list: Option<&Value>) -> Vec<Box<str>> {
    list.and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str).map(Into::into).collect()
}
