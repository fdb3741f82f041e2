//! One step of a path into an object. Counterparts: `fieldpath.PathElement` and its texts in structured-merge-diff.
//!
//! | step | in FieldsV1 | in messages |
//! |---|---|---|
//! | a field of a map | `f:replicas` | `.replicas` |
//! | an entry of a list, by its keys | `k:{"name":"web"}` | `[name="web"]` |
//! | an entry of a set | `v:"a"` | `[="a"]` |
//! | an entry of a list, by its place | `i:3` | `[3]` |

use std::cmp::Ordering;
use std::fmt::{self, Display, Write};

use serde_json::Value;

use super::value;
use crate::validation::quoted;

/// One step of a path.
#[derive(Debug, Clone)]
pub(crate) enum Element {
    Field(Box<str>),
    /// Sorted by name.
    Key(Box<[(Box<str>, Value)]>),
    Value(Value),
    Index(i64),
}

/// A key of FieldsV1 that is none.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct BadElement;

impl Element {
    pub(super) fn field(name: &str) -> Self {
        Self::Field(name.into())
    }

    /// Reads a key of FieldsV1. None is one of a type that nobody knows yet: it is left out.
    pub(super) fn parse(text: &str) -> Result<Option<Self>, BadElement> {
        let (kind, rest) = text.split_at_checked(2).ok_or(BadElement)?;
        Ok(Some(match kind {
            "f:" => Self::field(rest),
            "v:" => Self::Value(serde_json::from_str(rest).map_err(|_| BadElement)?),
            "i:" => Self::Index(rest.parse().map_err(|_| BadElement)?),
            "k:" => {
                let Ok(Value::Object(map)) = serde_json::from_str(rest) else { return Err(BadElement) };
                Self::key(map.into_iter().map(|(name, value)| (name.into_boxed_str(), value)).collect())
            }
            kind if kind.ends_with(':') => return Ok(None),
            _ => return Err(BadElement),
        }))
    }

    pub(super) fn key(mut keys: Vec<(Box<str>, Value)>) -> Self {
        keys.sort_by(|one, other| one.0.cmp(&other.0));
        Self::Key(keys.into())
    }

    /// As a key of FieldsV1.
    pub(super) fn text(&self) -> String {
        match self {
            Self::Field(name) => format!("f:{name}"),
            Self::Value(value) => format!("v:{}", json(value)),
            Self::Index(index) => format!("i:{index}"),
            Self::Key(keys) => {
                let mut text = String::from("k:{");
                for (i, (name, value)) in keys.iter().enumerate() {
                    let comma = if i > 0 { "," } else { "" };
                    // Writing into memory cannot fail.
                    let _ = write!(text, "{comma}{}:{}", json(&Value::from(&**name)), json(value));
                }
                text.push('}');
                text
            }
        }
    }
}

impl Ord for Element {
    fn cmp(&self, other: &Self) -> Ordering {
        match (self, other) {
            (Self::Field(one), Self::Field(other)) => one.cmp(other),
            (Self::Key(one), Self::Key(other)) => {
                let pairs = one.iter().zip(other);
                let different =
                    pairs.map(|(one, other)| one.0.cmp(&other.0).then_with(|| value::compare(&one.1, &other.1)));
                different.into_iter().find(|order| order.is_ne()).unwrap_or_else(|| one.len().cmp(&other.len()))
            }
            (Self::Value(one), Self::Value(other)) => value::compare(one, other),
            (Self::Index(one), Self::Index(other)) => one.cmp(other),
            (one, other) => one.rank().cmp(&other.rank()),
        }
    }
}

impl Element {
    fn rank(&self) -> u8 {
        match self {
            Self::Field(_) => 0,
            Self::Key(_) => 1,
            Self::Value(_) => 2,
            Self::Index(_) => 3,
        }
    }
}

impl PartialOrd for Element {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Element {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Element {}

/// As a message shows it.
impl Display for Element {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Field(name) => write!(f, ".{name}"),
            Self::Value(value) => write!(f, "[={}]", shown(value)),
            Self::Index(index) => write!(f, "[{index}]"),
            Self::Key(keys) => {
                let keys: Vec<String> = keys.iter().map(|(name, value)| format!("{name}={}", shown(value))).collect();
                write!(f, "[{}]", keys.join(","))
            }
        }
    }
}

/// A value in a message.
pub(super) fn shown(value: &Value) -> String {
    match value {
        Value::String(text) => quoted(text),
        Value::Array(values) => format!("[{}]", values.iter().map(shown).collect::<Vec<_>>().join(",")),
        Value::Object(map) => map.iter().map(|(key, value)| format!("{key}={}", shown(value))).collect(),
        value => value.to_string(),
    }
}

/// JSON as Go writes it: safe within a page of HTML.
pub(super) fn json(value: &Value) -> String {
    let text = value.to_string();
    if !text.contains(['<', '>', '&', '\u{2028}', '\u{2029}']) {
        return text;
    }
    // These stand in texts only, so that their escapes are understood.
    let mut escaped = String::with_capacity(text.len() + 10);
    for c in text.chars() {
        match c {
            '<' | '>' | '&' | '\u{2028}' | '\u{2029}' => {
                let _ = write!(escaped, "\\u{:04x}", u32::from(c));
            }
            c => escaped.push(c),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    fn element(text: &str) -> Element {
        Element::parse(text).expect(text).expect(text)
    }

    #[test]
    fn elements_are_read_and_written_as_go_does() {
        for text in [
            "f:replicas",
            "f:kubernetes.io/metadata.name",
            "f:",
            r#"k:{"name":"web"}"#,
            r#"k:{"containerPort":80,"protocol":"TCP"}"#,
            r#"v:"a \u003c b""#,
            "v:1.5",
            "i:-3",
        ] {
            assert_eq!(element(text).text(), text);
        }
        assert_eq!(element(r#"k:{"b":1,"a":2}"#).text(), r#"k:{"a":2,"b":1}"#);
    }

    #[test]
    fn keys_that_are_no_elements_are_refused_and_unknown_ones_left_out() {
        assert_eq!(Element::parse("x:future"), Ok(None));
        for bad in ["", "f", "name", "v:", "v:{", "k:", "k:[]", "k:{", "i:x", "i:", "ä:"] {
            assert_eq!(Element::parse(bad), Err(BadElement), "{bad}");
        }
    }

    #[test]
    fn fields_come_before_keys_before_values_before_places() {
        let texts = [
            "f:a",
            "f:b",
            r#"k:{"a":1}"#,
            r#"k:{"a":1,"b":1}"#,
            r#"k:{"a":80}"#,
            r#"k:{"a":443}"#,
            r#"k:{"b":1}"#,
            "v:9",
            "v:10",
            r#"v:"a""#,
            "i:9",
            "i:10",
        ];
        let elements: Vec<Element> = texts.iter().map(|text| element(text)).collect();
        assert!(elements.is_sorted(), "{elements:?}");
    }

    #[test]
    fn messages_show_elements_as_go_does() {
        let shown: String = ["f:spec", r#"k:{"name":"a\"b","port":80}"#, r#"v:"x""#, "v:true", "i:2"]
            .iter()
            .map(|text| element(text).to_string())
            .collect();
        assert_eq!(shown, r#".spec[name="a\"b",port=80][="x"][=true][2]"#);
    }
}
