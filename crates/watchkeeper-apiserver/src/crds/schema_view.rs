//! A schema as somebody wrote it, whatever it is. What is of another type than it should be counts as not there.

use serde_json::Value;

/// A schema, or a part of one.
#[derive(Debug, Clone, Copy)]
pub(super) struct SchemaView<'a>(pub(super) &'a Value);

impl<'a> SchemaView<'a> {
    /// `object`, `string`, ...; empty, if it does not say.
    pub(super) fn kind(self) -> &'a str {
        self.text("type")
    }

    pub(super) fn text(self, name: &str) -> &'a str {
        self.0.get(name).and_then(Value::as_str).unwrap_or_default()
    }

    /// Whether something is there and true.
    pub(super) fn is(self, name: &str) -> bool {
        self.0.get(name).and_then(Value::as_bool).unwrap_or_default()
    }

    /// Whether something is there, even if it says no.
    pub(super) fn has(self, name: &str) -> bool {
        self.0.get(name).is_some_and(|value| !value.is_null())
    }

    /// Whether something is there that is not as good as nothing in Go.
    pub(super) fn is_set(self, name: &str) -> bool {
        match self.0.get(name) {
            None | Some(Value::Null | Value::Bool(false)) => name == "additionalProperties" && self.has(name),
            Some(Value::String(text)) => !text.is_empty() || name == "default",
            Some(Value::Array(values)) => !values.is_empty() || name == "default",
            Some(_) => true,
        }
    }

    /// A schema within this one.
    pub(super) fn part(self, name: &str) -> Option<Self> {
        self.0.get(name).filter(|part| part.is_object()).map(SchemaView)
    }

    /// The schemas of a list of them.
    pub(super) fn parts(self, name: &str) -> impl Iterator<Item = Self> + use<'a> {
        self.0.get(name).and_then(Value::as_array).into_iter().flatten().map(SchemaView)
    }

    pub(super) fn properties(self) -> impl Iterator<Item = (&'a str, Self)> + use<'a> {
        let properties = self.0.get("properties").and_then(Value::as_object);
        properties.into_iter().flatten().map(|(name, property)| (name.as_str(), SchemaView(property)))
    }

    pub(super) fn property(self, name: &str) -> Option<Self> {
        self.0.get("properties").and_then(|properties| properties.get(name)).map(SchemaView)
    }

    pub(super) fn texts(self, name: &str) -> Vec<&'a str> {
        self.0.get(name).and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str).collect()
    }
}
