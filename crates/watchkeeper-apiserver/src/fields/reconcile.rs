//! Sets that were written under another schema. Counterpart: `typed/reconcile_schema.go` of structured-merge-diff.
//!
//! What was owned part by part and is atomic now is owned as a whole. The other way round nothing is done: it stays owned as
//! a whole until somebody writes it anew.

use super::set::{Node, Set};
use super::typed::{ANY, member};
use crate::schema::{ListKind, Scalar, Schema};

impl Set {
    /// Whether the set could have been written under a schema.
    pub(super) fn fits(&self, schema: &Schema) -> bool {
        self.nodes().iter().filter(|node| !node.children.is_empty()).all(|node| {
            let schema = part(schema, node);
            !is_whole(schema) && node.children.fits(schema)
        })
    }

    /// The set as it would be under a schema.
    pub(super) fn reconciled(self, schema: &Schema) -> Self {
        let nodes = self.into_nodes().into_iter().map(|node| {
            let schema = part(schema, &node);
            match node.children.is_empty() {
                false if is_whole(schema) => Node { member: true, children: Self::default(), ..node },
                _ => Node { children: node.children.reconciled(schema), ..node },
            }
        });
        Self::of(nodes.collect())
    }
}

/// The schema behind a step.
fn part<'a>(schema: &'a Schema, node: &Node) -> &'a Schema {
    match (schema, &node.element) {
        (Schema::Map(_), super::element::Element::Field(name)) => member(schema, name),
        (Schema::List(list), _) => &list.items,
        _ => &ANY,
    }
}

fn is_whole(schema: &Schema) -> bool {
    match schema {
        Schema::Map(map) => map.atomic,
        Schema::List(list) => list.kind == ListKind::Atomic,
        Schema::Scalar(scalar) => *scalar == Scalar::Untyped,
        Schema::Any => false,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::schema::from_openapi;

    #[test]
    fn what_has_become_atomic_is_owned_as_a_whole() {
        let set: Set = serde_json::from_value(json!({"f:spec": {".": {},
            "f:map": {"f:a": {}}, "f:list": {".": {}, "k:{\"n\":1}": {"f:n": {}}}, "f:open": {"f:x": {"f:y": {}}}, "f:n": {}}}))
        .expect("a set");
        let schema = |map: &str, list: &str| {
            from_openapi(&json!({"type": "object", "properties": {"spec": {"type": "object", "properties": {
                "map": {"type": "object", "x-kubernetes-map-type": map, "additionalProperties": {"type": "integer"}},
                "list": {"type": "array", "x-kubernetes-list-type": list, "x-kubernetes-list-map-keys": ["n"],
                    "items": {"type": "object", "properties": {"n": {"type": "integer"}}}},
                "open": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
                "n": {"type": "integer"},
            }}}}))
        };
        assert!(set.fits(&schema("granular", "map")));
        let atomic = schema("atomic", "atomic");
        assert!(!set.fits(&atomic));
        let expected: Set = serde_json::from_value(json!({"f:spec": {".": {}, "f:map": {}, "f:list": {},
            "f:open": {"f:x": {"f:y": {}}}, "f:n": {}}}))
        .expect("a set");
        assert_eq!(set.reconciled(&atomic), expected);
        assert!(expected.fits(&atomic));
    }
}
