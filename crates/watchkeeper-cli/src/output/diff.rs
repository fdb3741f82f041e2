//! Which fields changed?
//!
//! Maps are compared field by field. Lists of maps are matched by what names their items (`name`, `type`, ports), so
//! that one changed container is one line and not the whole list; other lists item by item, between the beginning and
//! the end that they share.

use std::collections::HashMap;

use serde_json::Value;

use super::documents::compact;

/// Fields that name an item among its siblings. The first ones that all items of both lists have, and no two items of a
/// list share, are used.
const NAMING: [&[&str]; 12] = [
    &["name"],
    &["type"],
    &["uid"],
    &["mountPath"],
    &["devicePath"],
    &["containerPort", "protocol"],
    &["port", "protocol"],
    &["key"],
    &["ip"],
    &["id"],
    &["topologyKey", "whenUnsatisfiable"],
    &["path"],
];

/// A field that is not as it was: what it was, and what it is.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Difference<'a> {
    /// Where.
    pub(super) path: Vec<Segment>,
    /// What was there.
    pub(super) old: Option<&'a Value>,
    /// What is there.
    pub(super) new: Option<&'a Value>,
}

/// A step of a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Segment {
    /// A field of a map.
    Field(String),
    /// An item of a list, by its place.
    Index(usize),
    /// An item of a list, by what names it: field and value.
    Named(Vec<(&'static str, String)>),
}

/// All that differs, in the order of the fields.
pub(super) fn differences<'a>(old: &'a Value, new: &'a Value) -> Vec<Difference<'a>> {
    let mut walk = Walk { path: Vec::new(), found: Vec::new() };
    walk.values(Some(old), Some(new));
    walk.found
}

struct Walk<'a> {
    path: Vec<Segment>,
    found: Vec<Difference<'a>>,
}

impl<'a> Walk<'a> {
    fn values(&mut self, old: Option<&'a Value>, new: Option<&'a Value>) {
        if old == new {
            return;
        }
        match (old, new) {
            (Some(Value::Object(old)), Some(Value::Object(new))) => {
                let mut names: Vec<&String> = old.keys().chain(new.keys()).collect();
                names.sort_unstable();
                names.dedup();
                for name in names {
                    self.at(Segment::Field(name.clone()), old.get(name), new.get(name));
                }
            }
            (Some(Value::Array(old)), Some(Value::Array(new))) => match naming(old, new) {
                Some(fields) => self.named(fields, old, new),
                None => self.placed(old, new),
            },
            // It came, went, or became something of another type.
            _ => self.found.push(Difference { path: self.path.clone(), old, new }),
        }
    }

    fn at(&mut self, segment: Segment, old: Option<&'a Value>, new: Option<&'a Value>) {
        self.path.push(segment);
        self.values(old, new);
        self.path.pop();
    }

    /// Items by their names: those that were there in their old order, then the new ones.
    fn named(&mut self, fields: &'static [&'static str], old: &'a [Value], new: &'a [Value]) {
        let names = |items: &'a [Value]| items.iter().filter_map(|item| Some((name(fields, item)?, item)));
        let mut now: HashMap<Name, &'a Value> = names(new).collect();
        for (name, item) in names(old) {
            let new = now.remove(&name);
            self.at(Segment::Named(name), Some(item), new);
        }
        for (name, item) in names(new) {
            if now.contains_key(&name) {
                self.at(Segment::Named(name), None, Some(item));
            }
        }
    }

    /// Items by their places, between the beginning and the end that both share.
    fn placed(&mut self, old: &'a [Value], new: &'a [Value]) {
        let same = |(old, new): &(&Value, &Value)| old == new;
        let start = old.iter().zip(new).take_while(same).count();
        let shorter = old.len().min(new.len()) - start;
        let end = old.iter().rev().zip(new.iter().rev()).take(shorter).take_while(same).count();
        for at in start..old.len().max(new.len()) - end {
            let within = |items: &'a [Value]| items.get(at).filter(|_| at < items.len() - end);
            self.at(Segment::Index(at), within(old), within(new));
        }
    }
}

type Name = Vec<(&'static str, String)>;

/// The fields that name the items of both lists, if there are such.
fn naming(old: &[Value], new: &[Value]) -> Option<&'static [&'static str]> {
    if old.is_empty() && new.is_empty() {
        return None;
    }
    NAMING.into_iter().find(|fields| unique(fields, old) && unique(fields, new))
}

fn unique(fields: &'static [&'static str], items: &[Value]) -> bool {
    let mut seen = std::collections::HashSet::new();
    items.iter().all(|item| name(fields, item).is_some_and(|name| seen.insert(name)))
}

/// What names an item: the first field, and the others where it has them.
fn name(fields: &'static [&'static str], item: &Value) -> Option<Name> {
    let text = |field: &'static str| match item.get(field)? {
        Value::String(text) => Some((field, text.clone())),
        number @ Value::Number(_) => Some((field, compact(number))),
        _ => None,
    };
    let (first, others) = fields.split_first()?;
    let first = text(first)?;
    Some(std::iter::once(first).chain(others.iter().filter_map(|field| text(field))).collect())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::super::diff_text::path_text;
    use super::*;

    fn lines(old: Value, new: Value) -> Vec<String> {
        let line = |difference: &Difference<'_>| {
            let text = |value: Option<&Value>| value.map_or("nothing".to_owned(), Value::to_string);
            format!("{}: {} -> {}", path_text(&difference.path), text(difference.old), text(difference.new))
        };
        differences(&old, &new).iter().map(line).collect()
    }

    #[test]
    fn fields_are_found_where_they_are() {
        let old = json!({"spec": {"replicas": 3, "paused": true}, "metadata": {"labels": {"app": "web"}}});
        let new = json!({"spec": {"replicas": 5}, "metadata": {"labels": {"app": "web", "a.b/c": "d"}}});
        let expected =
            ["metadata.labels['a.b/c']: nothing -> \"d\"", "spec.paused: true -> nothing", "spec.replicas: 3 -> 5"];
        assert_eq!(lines(old, new), expected);
    }

    #[test]
    fn one_container_of_many_is_one_line() {
        let old = json!({"c": [{"name": "a", "image": "x:1"}, {"name": "b", "image": "y"}]});
        let new = json!({"c": [{"name": "b", "image": "y"}, {"name": "a", "image": "x:2"}, {"name": "n"}]});
        let expected = ["c[name=a].image: \"x:1\" -> \"x:2\"", "c[name=n]: nothing -> {\"name\":\"n\"}"];
        assert_eq!(lines(old, new), expected);
    }

    #[test]
    fn what_names_items_depends_on_the_items() {
        let ports = |two: &str| json!([{"containerPort": 53, "protocol": "UDP"}, {"containerPort": 53, "protocol": two, "hostPort": 1}]);
        let gone = r#"[containerPort=53,protocol=TCP]: {"containerPort":53,"hostPort":1,"protocol":"TCP"} -> nothing"#;
        assert_eq!(lines(ports("TCP"), ports("SCTP")).first().map(String::as_str), Some(gone));
        let mounts =
            |path: &str| json!([{"name": "v", "mountPath": "/a"}, {"name": "v", "mountPath": "/b", "subPath": path}]);
        assert_eq!(lines(mounts("x"), mounts("y")), ["[mountPath=/b].subPath: \"x\" -> \"y\""]);
        let nameless = |first: u8| json!([{"x": first}, {"x": 2}]);
        assert_eq!(lines(nameless(1), nameless(3)), ["[0].x: 1 -> 3"]);
    }

    #[test]
    fn plain_lists_differ_between_their_shared_ends() {
        assert_eq!(lines(json!(["a", "b", "c"]), json!(["b", "c"])), ["[0]: \"a\" -> nothing"]);
        assert_eq!(lines(json!(["a", "c"]), json!(["a", "b", "c"])), ["[1]: nothing -> \"b\""]);
        assert_eq!(lines(json!(["a", "a"]), json!(["a"])), ["[1]: \"a\" -> nothing"]);
        assert_eq!(lines(json!([]), json!([1])), ["[0]: nothing -> 1"]);
    }

    #[test]
    fn another_type_is_another_value() {
        assert_eq!(lines(json!({"a": [1]}), json!({"a": {"b": 1}})), ["a: [1] -> {\"b\":1}"]);
        assert_eq!(lines(json!({"a": null}), json!({})), ["a: null -> nothing"]);
        assert_eq!(lines(json!([]), json!({})), [": [] -> {}"]);
    }

    fn value() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![Just(Value::Null), (0..3_i64).prop_map(Value::from), "[ab]".prop_map(Value::from)];
        leaf.prop_recursive(4, 20, 4, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
                prop::collection::btree_map("(name|type|port|x)", inner, 0..3)
                    .prop_map(|map| Value::Object(map.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn differences_are_differences(old in value(), new in value()) {
            let found = differences(&old, &new);
            prop_assert!(found.iter().all(|difference| difference.old != difference.new));
            prop_assert!(differences(&old, &old).is_empty());
        }
    }
}
