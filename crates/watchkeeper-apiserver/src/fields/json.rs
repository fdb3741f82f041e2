//! Sets as FieldsV1. Counterpart: `fieldpath/serialize.go` of structured-merge-diff.
//!
//! A step is a key, and what is beneath it a map. A member that has others beneath it has the key `.`, too; one that has
//! none is an empty map.

use serde::de::{Deserialize, Deserializer, Error, IgnoredAny, MapAccess, Visitor};

use super::element::Element;
use super::set::{Node, Set};

/// In which order the keys are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Order {
    /// That of the steps: what Go's own types are written in.
    Steps,
    /// That of their texts: what custom objects are written in, which are maps to Go.
    Texts,
}

impl Set {
    /// Writes the set.
    pub(super) fn write(&self, order: Order, out: &mut Vec<u8>) {
        self.write_with(false, order, out);
    }

    fn write_with(&self, member: bool, order: Order, out: &mut Vec<u8>) {
        out.push(b'{');
        if member && !self.is_empty() {
            out.extend_from_slice(br#"".":{}"#);
        }
        let mut is_first = !member;
        let mut entry = |text: &str, node: &Node| {
            if !is_first {
                out.push(b',');
            }
            is_first = false;
            // Writing a text into memory cannot fail.
            let _ = serde_json::to_writer(&mut *out, text);
            out.push(b':');
            node.children.write_with(node.member, order, out);
        };
        let mut texts = self.nodes().iter().map(|node| (node.element.text(), node));
        match order {
            Order::Steps => texts.for_each(|(text, node)| entry(&text, node)),
            Order::Texts => {
                let mut texts: Vec<_> = texts.by_ref().collect();
                texts.sort_by(|one, other| one.0.cmp(&other.0));
                texts.into_iter().for_each(|(text, node)| entry(&text, node));
            }
        }
        out.push(b'}');
    }
}

impl<'de> Deserialize<'de> for Set {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Tree::deserialize(deserializer).map(|tree| tree.children)
    }
}

/// A set, and whether what it stands under is a member.
struct Tree {
    member: bool,
    children: Set,
}

impl<'de> Deserialize<'de> for Tree {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(TreeVisitor)
    }
}

struct TreeVisitor;

impl<'de> Visitor<'de> for TreeVisitor {
    type Value = Tree;

    fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("a map of fields")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Tree, A::Error> {
        let mut member = false;
        let mut nodes = Vec::new();
        while let Some(Key(key)) = map.next_key()? {
            match key {
                Parsed::Dot => {
                    member = true;
                    map.next_value::<IgnoredAny>()?;
                }
                Parsed::Unknown => drop(map.next_value::<IgnoredAny>()?),
                Parsed::Bad => return Err(A::Error::custom("a key is no path element")),
                Parsed::Element(element) => {
                    let Tree { member, children } = map.next_value()?;
                    nodes.push(Node { element, member, children });
                }
            }
        }
        let children = Set::of(nodes);
        Ok(Tree { member: member || children.is_empty(), children })
    }
}

struct Key(Parsed);

enum Parsed {
    Dot,
    Unknown,
    Bad,
    Element(Element),
}

impl<'de> Deserialize<'de> for Key {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct KeyVisitor;
        impl Visitor<'_> for KeyVisitor {
            type Value = Key;

            fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.write_str("a path element")
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<Key, E> {
                Ok(Key(match (text, Element::parse(text)) {
                    (".", _) => Parsed::Dot,
                    (_, Ok(Some(element))) => Parsed::Element(element),
                    (_, Ok(None)) => Parsed::Unknown,
                    (_, Err(_)) => Parsed::Bad,
                }))
            }
        }
        deserializer.deserialize_str(KeyVisitor)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(set: &Set, order: Order) -> String {
        let mut bytes = Vec::new();
        set.write(order, &mut bytes);
        String::from_utf8(bytes).expect("text")
    }

    #[test]
    fn fields_are_read_and_written_as_go_does() {
        for text in [
            "{}",
            r#"{"f:data":{".":{},"f:a":{},"f:b":{}}}"#,
            r#"{"f:spec":{"f:containers":{"k:{\"name\":\"web\"}":{".":{},"f:image":{},"f:ports":{".":{},"k:{\"containerPort\":80,\"protocol\":\"TCP\"}":{".":{},"f:containerPort":{}},"k:{\"containerPort\":443,\"protocol\":\"TCP\"}":{}}}}}}"#,
            r#"{"f:metadata":{"f:finalizers":{".":{},"v:\"a\"":{}}}}"#,
        ] {
            let set: Set = serde_json::from_str(text).expect(text);
            assert_eq!(written(&set, Order::Steps), text);
            let value: serde_json::Value = serde_json::from_str(text).expect(text);
            assert_eq!(serde_json::from_value::<Set>(value).expect(text), set);
        }
    }

    #[test]
    fn custom_objects_have_the_keys_sorted_by_their_texts() {
        let text = r#"{"f:a":{"k:{\"n\":80}":{},"k:{\"n\":443}":{},"v:1":{},"i:1":{}}}"#;
        let set: Set = serde_json::from_str(text).expect(text);
        let sorted = r#"{"f:a":{"i:1":{},"k:{\"n\":443}":{},"k:{\"n\":80}":{},"v:1":{}}}"#;
        assert_eq!(written(&set, Order::Texts), sorted);
    }

    #[test]
    fn fields_are_read_in_any_order_and_unknown_steps_left_out() {
        let set: Set =
            serde_json::from_str(r#"{"f:b":{"x:1":{}},"f:a":{"f:c":{},".":{}},"z:":{"f:d":{}}}"#).expect("a set");
        assert_eq!(written(&set, Order::Steps), r#"{"f:a":{".":{},"f:c":{}},"f:b":{}}"#);
    }

    #[test]
    fn what_is_no_set_is_refused() {
        for bad in [r#"{"name":{}}"#, "[]", "1", r#"{"f:a":1}"#, r#"{"f:a":[]}"#] {
            assert!(serde_json::from_str::<Set>(bad).is_err(), "{bad}");
        }
        let deep = format!("{}{}", r#"{"f:a":"#.repeat(200), "}".repeat(200));
        assert!(serde_json::from_str::<Set>(&deep).is_err());
    }
}
