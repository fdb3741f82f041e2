//! Fields that a schema does not name are dropped. Counterpart: `k8s.io/apiextensions-apiserver/pkg/apiserver/schema/pruning`.

use serde_json::Value;

use super::path::Path;
use super::props::{Additional, Props};
use crate::defaults::BODY_LIMIT;

/// What every object has, whatever its schema says.
pub(super) const OBJECT_FIELDS: [&str; 3] = ["apiVersion", "kind", "metadata"];

/// The paths of what was dropped, as far as anybody is told of them: many fields below one long name have many long paths.
pub(super) struct Dropped {
    paths: Vec<String>,
    /// How many more bytes they may have.
    room: usize,
}

impl Dropped {
    pub(super) fn new() -> Self {
        Self { paths: Vec::new(), room: BODY_LIMIT }
    }

    pub(super) fn add(&mut self, path: &Path<'_>) {
        if self.room > 0 {
            let path = path.to_string();
            self.room = self.room.saturating_sub(path.len());
            self.paths.push(path);
        }
    }

    pub(super) fn into_paths(self) -> Vec<String> {
        self.paths
    }
}

/// Drops what a whole object may not have; the paths of what went, sorted.
pub(crate) fn prune(object: &mut Value, props: &Props) -> Vec<String> {
    let mut pruner = Pruner { dropped: Dropped::new() };
    pruner.fields(object, Some(props), true, &Path::root(""));
    let mut paths = pruner.dropped.into_paths();
    paths.sort_unstable();
    paths
}

/// Whether a value has nothing that would be dropped.
pub(super) fn is_pruned(value: &Value, props: &Props) -> bool {
    let mut pruner = Pruner { dropped: Dropped::new() };
    pruner.value(&mut value.clone(), Some(props), &Path::root(""));
    pruner.dropped.paths.is_empty()
}

struct Pruner {
    dropped: Dropped,
}

impl Pruner {
    // Values have a bounded depth, and so has this.
    fn value(&mut self, value: &mut Value, props: Option<&Props>, path: &Path<'_>) {
        self.fields(value, props, props.is_some_and(|props| props.embedded), path);
    }

    fn fields(&mut self, value: &mut Value, props: Option<&Props>, is_object: bool, path: &Path<'_>) {
        let keeps = props.is_some_and(|props| props.preserves_unknown);
        match value {
            Value::Object(map) => map.retain(|name, value| {
                let path = path.field(name);
                if is_object && OBJECT_FIELDS.contains(&name.as_str()) {
                    return true;
                }
                match props.map(|props| (props.properties.get(name.as_str()), &props.additional)) {
                    Some((Some(property), _)) => self.value(value, Some(property), &path),
                    Some((None, Additional::Values(values))) => self.value(value, Some(values), &path),
                    Some((None, Additional::Allowed(_))) => self.value(value, None, &path),
                    _ if keeps => {}
                    _ => {
                        self.dropped.add(&path);
                        return false;
                    }
                }
                true
            }),
            Value::Array(values) => {
                let items = props.and_then(|props| props.items.as_deref());
                for (i, value) in values.iter_mut().enumerate() {
                    // Below what keeps everything, a list without a schema keeps everything too.
                    if !(keeps && items.is_none()) {
                        self.value(value, items, &path.index(i));
                    }
                }
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_what_a_schema_names_stays() {
        let schema = json!({"type": "object", "properties": {
            "spec": {"type": "object", "properties": {
                "a": {"type": "string"},
                "keep": {"type": "object", "x-kubernetes-preserve-unknown-fields": true, "properties": {
                    "in": {"type": "object", "properties": {"a": {"type": "string"}}}}},
                "map": {"type": "object", "additionalProperties": {"type": "object"}},
                "list": {"type": "array", "items": {"type": "object", "properties": {"a": {"type": "string"}}}},
                "emb": {"type": "object", "x-kubernetes-embedded-resource": true, "properties": {"x": {"type": "string"}}},
            }},
        }});
        let props = Props::read(&schema).expect("a schema");
        let mut object = json!({
            "apiVersion": "v1", "kind": "K", "metadata": {"name": "n"}, "top": 1,
            "spec": {"a": "x", "b": 1, "keep": {"z": {"y": 1}, "in": {"a": "x", "b": 1}}, "map": {"k": {"gone": 1}},
                     "list": [{"a": "x"}, {"b": 1}], "emb": {"apiVersion": "v1", "metadata": {}, "x": "y", "z": 1}},
        });
        let dropped = prune(&mut object, &props);
        assert_eq!(dropped, ["spec.b", "spec.emb.z", "spec.keep.in.b", "spec.list[1].b", "spec.map.k.gone", "top"]);
        let expected = json!({
            "apiVersion": "v1", "kind": "K", "metadata": {"name": "n"},
            "spec": {"a": "x", "keep": {"z": {"y": 1}, "in": {"a": "x"}}, "map": {"k": {}}, "list": [{"a": "x"}, {}],
                     "emb": {"apiVersion": "v1", "metadata": {}, "x": "y"}},
        });
        assert_eq!(object, expected);
    }
}
