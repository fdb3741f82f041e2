//! What is a change, and what is known of it?

use std::cell::OnceCell;
use std::sync::Arc;

use jiff::Timestamp;
use serde::Deserialize;
use serde_json::Value;
use watchkeeper::{DecodeError, Object, ObjectKey, TableRow};

/// What happened to an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum ChangeType {
    /// It is new, or was there at the beginning.
    Added,
    /// It is another than before.
    Modified,
    /// It is gone.
    Deleted,
}

impl ChangeType {
    /// The word that Kubernetes has for it.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Added => "ADDED",
            Self::Modified => "MODIFIED",
            Self::Deleted => "DELETED",
        }
    }
}

/// A kind of objects, as the server names it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Resource {
    /// The name in paths: `deployments`.
    pub(crate) plural: String,
    /// The group; empty for the core group.
    pub(crate) group: String,
    /// The version within the group: `v1`.
    pub(crate) version: String,
    /// The kind: `Deployment`.
    pub(crate) kind: String,
    /// Its objects are in namespaces.
    pub(crate) namespaced: bool,
}

impl Resource {
    /// Group and version, as objects have them in `apiVersion`.
    pub(crate) fn api_version(&self) -> String {
        match self.group.as_str() {
            "" => self.version.clone(),
            group => format!("{group}/{}", self.version),
        }
    }

    /// The name of an object with its kind, as `-o name` has it: `pod/web-1`, `deployment.apps/web`. Not escaped.
    pub(crate) fn name_of(&self, name: &str) -> String {
        let kind = self.kind.to_lowercase();
        match self.group.as_str() {
            "" => format!("{kind}/{name}"),
            group => format!("{kind}.{group}/{name}"),
        }
    }
}

/// A column of a table, as the server defines it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub(crate) struct Column {
    /// The header, before it is put into capitals.
    pub(crate) name: String,
    /// The OpenAPI type of its cells.
    #[serde(rename = "type")]
    pub(crate) kind: String,
    /// The OpenAPI format of its cells. `name` marks the column that has the object's name.
    pub(crate) format: String,
    /// What it means.
    pub(crate) description: String,
    /// Columns other than those of priority 0 are for `-o wide`.
    pub(crate) priority: i32,
}

impl Column {
    /// Its cells are the names of the objects.
    pub(super) fn is_name(&self) -> bool {
        self.format == "name" && self.kind == "string"
    }
}

/// One change, ready to be shown.
#[derive(Debug)]
pub(crate) struct Change {
    /// What happened.
    pub(crate) change: ChangeType,
    /// When it came to be known.
    pub(crate) time: Timestamp,
    /// The kind of the object.
    pub(crate) resource: Arc<Resource>,
    /// Which object.
    pub(crate) key: ObjectKey,
    /// The version that it has now.
    pub(crate) version: String,
    /// What it is now, or was last.
    pub(crate) object: Body,
    /// What it was before, where that is known.
    pub(crate) old: Option<Body>,
    /// A cell for each column; too many and too few of them are no harm.
    pub(crate) cells: Vec<Value>,
}

impl Change {
    /// The object as JSON; its kind and version are added if they are missing, as they are in items of lists.
    pub(super) fn object(&self) -> Result<&Value, &DecodeError> {
        self.object.value(&self.resource)
    }

    /// The labels of the object, which need no decoding where the cache has them apart.
    pub(super) fn labels(&self) -> Vec<(&str, &str)> {
        if let Some(object) = &self.object.packed {
            return object.labels().iter().collect();
        }
        let labels = self.object().ok().and_then(|object| object["metadata"]["labels"].as_object());
        labels.into_iter().flatten().filter_map(|(name, value)| Some((name.as_str(), value.as_str()?))).collect()
    }

    /// What the object was before.
    pub(super) fn old(&self) -> Option<Result<&Value, &DecodeError>> {
        self.old.as_ref().map(|old| old.value(&self.resource))
    }
}

/// The body of an object, which is decoded when it is first looked into. A row of a table needs none.
#[derive(Debug)]
pub(crate) struct Body {
    packed: Option<Object>,
    /// It is a row of the server's table, and the object stands in it.
    in_row: bool,
    decoded: OnceCell<Result<Value, DecodeError>>,
}

impl Body {
    /// The body of an object that is kept as a row of the server's table.
    pub(crate) fn of_row(row: Object) -> Self {
        Self { packed: Some(row), in_row: true, decoded: OnceCell::new() }
    }

    /// The object as JSON, with its kind and version.
    pub(crate) fn value(&self, resource: &Resource) -> Result<&Value, &DecodeError> {
        let decode = || {
            let mut value = match &self.packed {
                Some(row) if self.in_row => row.decode::<TableRow<Value>>()?.object,
                Some(object) => object.decode()?,
                None => Value::Null,
            };
            complete(&mut value, resource);
            Ok(value)
        };
        self.decoded.get_or_init(decode).as_ref()
    }
}

impl From<Object> for Body {
    fn from(object: Object) -> Self {
        Self { packed: Some(object), in_row: false, decoded: OnceCell::new() }
    }
}

impl From<Value> for Body {
    /// A body that is decoded already, and complete.
    fn from(value: Value) -> Self {
        Self { packed: None, in_row: false, decoded: OnceCell::from(Ok(value)) }
    }
}

fn complete(value: &mut Value, resource: &Resource) {
    let Value::Object(fields) = value else { return };
    let mut add = |name: &str, text: String| {
        if !fields.get(name).is_some_and(Value::is_string) {
            fields.insert(name.to_owned(), Value::String(text));
        }
    };
    add("apiVersion", resource.api_version());
    add("kind", resource.kind.clone());
}
