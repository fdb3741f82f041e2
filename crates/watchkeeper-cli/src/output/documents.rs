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

/// Pretty JSON, with the four spaces of kubectl.
pub(super) fn write_json(out: &mut impl Write, value: &impl Serialize) -> io::Result<()> {
    let mut json = Vec::new();
    value.serialize(&mut Serializer::with_formatter(&mut json, PrettyFormatter::with_indent(b"    ")))?;
    json.push(b'\n');
    write_escaped(out, json)
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
