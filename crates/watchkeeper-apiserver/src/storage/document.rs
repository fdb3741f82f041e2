//! An object while it is being worked on: a tree, without what the storage adds.

use serde_json::{Map, Value};

use crate::fields::Managed;

/// The parts of an object, without kind, apiVersion and resourceVersion: the version that it is served in and the write
/// decide those. Its metadata is always a map. Managed fields stand apart: they are half of an object, and few look at them.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Document {
    tree: Value,
    managed: Managed,
}

impl Default for Document {
    /// An object without anything.
    fn default() -> Self {
        Self { tree: Value::Object(Map::new()), managed: Managed::Nothing }
    }
}

impl Document {
    /// Of an object as it was sent. What is no map, or has metadata that is none, is no document.
    pub(crate) fn new(object: Value) -> Option<Self> {
        let Value::Object(mut map) = object else { return None };
        map.remove("kind");
        map.remove("apiVersion");
        let metadata = map.entry("metadata").or_insert(Value::Null);
        let mut managed = Managed::Nothing;
        match metadata {
            Value::Null => *metadata = Value::Object(Map::new()),
            Value::Object(metadata) => {
                metadata.remove("resourceVersion");
                managed = Managed::sent(metadata.remove("managedFields"));
            }
            _ => return None,
        }
        Some(Self { tree: Value::Object(map), managed })
    }

    pub(crate) fn managed(&self) -> &Managed {
        &self.managed
    }

    pub(crate) fn set_managed(&mut self, managed: Managed) {
        self.managed = managed;
    }

    /// The managed fields; the document has none any longer.
    pub(crate) fn take_managed(&mut self) -> Managed {
        std::mem::take(&mut self.managed)
    }

    /// All but the managed fields.
    pub(crate) fn as_value(&self) -> &Value {
        &self.tree
    }

    pub(crate) fn as_value_mut(&mut self) -> &mut Value {
        &mut self.tree
    }

    pub(crate) fn into_value(self) -> Value {
        self.tree
    }

    pub(crate) fn map(&self) -> &Map<String, Value> {
        // `new` makes nothing else.
        static EMPTY: std::sync::LazyLock<Map<String, Value>> = std::sync::LazyLock::new(Map::new);
        self.tree.as_object().unwrap_or(&EMPTY)
    }

    pub(crate) fn map_mut(&mut self) -> &mut Map<String, Value> {
        as_map(&mut self.tree)
    }

    pub(crate) fn metadata(&self) -> &Map<String, Value> {
        static EMPTY: std::sync::LazyLock<Map<String, Value>> = std::sync::LazyLock::new(Map::new);
        self.tree.get("metadata").and_then(Value::as_object).unwrap_or(&EMPTY)
    }

    pub(crate) fn metadata_mut(&mut self) -> &mut Map<String, Value> {
        as_map(self.map_mut().entry("metadata").or_insert(Value::Null))
    }

    /// A text of the metadata; empty, if it is not there.
    pub(crate) fn meta(&self, field: &str) -> &str {
        self.metadata().get(field).and_then(Value::as_str).unwrap_or_default()
    }

    /// Sets a text of the metadata, or removes it.
    pub(crate) fn set_meta(&mut self, field: &str, value: impl Into<Value>) {
        self.metadata_mut().insert(field.to_owned(), value.into());
    }

    pub(crate) fn generation(&self) -> i64 {
        self.metadata().get("generation").and_then(Value::as_i64).unwrap_or_default()
    }

    pub(crate) fn is_deleting(&self) -> bool {
        self.metadata().get("deletionTimestamp").is_some_and(|time| !time.is_null())
    }

    pub(crate) fn grace_period(&self) -> Option<i64> {
        self.metadata().get("deletionGracePeriodSeconds").and_then(Value::as_i64)
    }

    pub(crate) fn finalizers(&self) -> Vec<&str> {
        let finalizers = self.metadata().get("finalizers").and_then(Value::as_array);
        finalizers.into_iter().flatten().filter_map(Value::as_str).collect()
    }

    pub(crate) fn labels(&self) -> Box<[(Box<str>, Box<str>)]> {
        let labels = self.metadata().get("labels").and_then(Value::as_object);
        let mut labels: Box<[(Box<str>, Box<str>)]> = labels
            .into_iter()
            .flatten()
            .map(|(key, value)| (key.as_str().into(), value.as_str().unwrap_or_default().into()))
            .collect();
        // The map is sorted, unless another crate of the program has turned on `serde_json/preserve_order`.
        labels.sort_unstable();
        labels
    }
}

/// A value as a map; whatever else it was is gone.
fn as_map(value: &mut Value) -> &mut Map<String, Value> {
    if !value.is_object() {
        *value = Value::Object(Map::new());
    }
    match value {
        Value::Object(map) => map,
        _ => unreachable!("made a map above"),
    }
}
