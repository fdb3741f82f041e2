//! How are whole objects written?
//!
//! JSON and YAML for people and programs, and a line of JSON per change for programs only. Their own rules leave some
//! characters alone that control terminals; these are escaped in addition, which changes nothing for a reader.

use std::io::{self, Write};

use jiff::Timestamp;
use serde::Serialize;
use serde_json::Value;
use serde_json::ser::{PrettyFormatter, Serializer};

use super::yaml;
use crate::terminal::escape_json;

/// A change as `--output-watch-events` writes it. The order of the fields is kubectl's.
#[derive(Serialize)]
pub(super) struct WatchEvent<'a> {
    /// The word for what happened.
    #[serde(rename = "type")]
    pub(super) change: &'static str,
    /// The object.
    pub(super) object: &'a Value,
}

/// A line of JSON. The order of the fields is a promise.
#[derive(Serialize)]
struct Line<'a> {
    #[serde(rename = "type")]
    change: &'static str,
    time: String,
    key: &'a str,
    #[serde(rename = "resourceVersion")]
    version: &'a str,
    object: &'a Value,
}

/// Several objects, as kubectl puts them together.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct List<'a> {
    api_version: &'static str,
    items: &'a [Value],
    kind: &'static str,
    metadata: ListMetadata,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ListMetadata {
    resource_version: &'static str,
}

impl<'a> List<'a> {
    /// A list of objects of any kinds.
    pub(super) fn of(items: &'a [Value]) -> Self {
        Self { api_version: "v1", items, kind: "List", metadata: ListMetadata { resource_version: "" } }
    }
}

/// A [`List`] that is written item by item, in the same form.
pub(super) struct ListWriter {
    yaml: bool,
    is_empty: bool,
}

impl ListWriter {
    /// Writes what stands before the items.
    pub(super) fn begin(out: &mut impl Write, yaml: bool) -> io::Result<Self> {
        out.write_all(if yaml {
            &b"apiVersion: v1\nitems:"[..]
        } else {
            b"{\n    \"apiVersion\": \"v1\",\n    \"items\": ["
        })?;
        Ok(Self { yaml, is_empty: true })
    }

    /// Writes an item.
    pub(super) fn item(&mut self, out: &mut impl Write, item: Value) -> io::Result<()> {
        let is_first = std::mem::take(&mut self.is_empty);
        if self.yaml {
            out.write_all(if is_first { b"\n" } else { &b""[..] })?;
            return write_yaml(out, &Value::Array(vec![item]));
        }
        out.write_all(if is_first { &b"\n"[..] } else { b",\n" })?;
        let json = String::from_utf8(pretty(&item)?).map_err(io::Error::other)?;
        // A line feed is layout: in a text it is escaped.
        let indented = format!("        {}", json.replace('\n', "\n        "));
        out.write_all(escape_json(&indented).as_bytes())
    }

    /// Writes what stands behind the items.
    pub(super) fn end(self, out: &mut impl Write) -> io::Result<()> {
        out.write_all(match (self.yaml, self.is_empty) {
            (true, true) => &b" []\n"[..],
            (true, false) => b"",
            (false, true) => b"],\n",
            (false, false) => b"\n    ],\n",
        })?;
        out.write_all(match self.yaml {
            true => &b"kind: List\nmetadata:\n  resourceVersion: \"\"\n"[..],
            false => b"    \"kind\": \"List\",\n    \"metadata\": {\n        \"resourceVersion\": \"\"\n    }\n}\n",
        })
    }
}

/// Pretty JSON, with the four spaces of kubectl.
pub(super) fn write_json(out: &mut impl Write, value: &impl Serialize) -> io::Result<()> {
    let mut json = pretty(value)?;
    json.push(b'\n');
    write_escaped(out, json)
}

fn pretty(value: &impl Serialize) -> io::Result<Vec<u8>> {
    let mut json = Vec::new();
    value.serialize(&mut Serializer::with_formatter(&mut json, PrettyFormatter::with_indent(b"    ")))?;
    Ok(json)
}

/// A YAML document.
pub(super) fn write_yaml(out: &mut impl Write, value: &Value) -> io::Result<()> {
    out.write_all(yaml::document(value).as_bytes())
}

/// A change on one line.
pub(super) fn write_line(
    out: &mut impl Write,
    change: &'static str,
    time: Timestamp,
    key: &str,
    version: &str,
    object: &Value,
) -> io::Result<()> {
    let line = Line { change, time: format!("{time:.3}"), key, version, object };
    let mut json = serde_json::to_vec(&line)?;
    json.push(b'\n');
    write_escaped(out, json)
}

/// Any value as JSON that is safe to show.
pub(super) fn compact(value: &Value) -> String {
    escape_json(&value.to_string()).into_owned()
}

fn write_escaped(out: &mut impl Write, json: Vec<u8>) -> io::Result<()> {
    let json = String::from_utf8(json).map_err(io::Error::other)?;
    out.write_all(escape_json(&json).as_bytes())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_list_that_is_written_item_by_item_is_the_same_list() {
        let item = json!({"a": "x\ny", "b": [{"c": [], "d": {}}, [1]], "e": "\u{202e}"});
        for items in [vec![], vec![item.clone()], vec![item.clone(), json!({}), item]] {
            for yaml in [false, true] {
                let (mut whole, mut streamed) = (Vec::new(), Vec::new());
                let list = List::of(&items);
                let written = match yaml {
                    true => serde_json::to_value(&list)
                        .map_err(io::Error::from)
                        .and_then(|list| write_yaml(&mut whole, &list)),
                    false => write_json(&mut whole, &list),
                };
                assert!(written.is_ok());
                let mut writer = ListWriter::begin(&mut streamed, yaml).expect("memory takes all");
                items.iter().for_each(|item| writer.item(&mut streamed, item.clone()).expect("memory takes all"));
                writer.end(&mut streamed).expect("memory takes all");
                assert_eq!(String::from_utf8_lossy(&streamed), String::from_utf8_lossy(&whole));
            }
        }
    }
}
