//! Objects as bytes, in the order in which a kube-apiserver writes them.
//!
//! Built-in objects begin with kind, apiVersion and metadata, and the metadata has the order of Go's struct; custom ones
//! have sorted keys throughout. Where version and metadata stand is remembered: a deletion is the last state with another
//! version, and `PartialObjectMetadata` is a slice.

use std::ops::Range;

use bytes::Bytes;
use serde_json::{Map, Value};

use super::Document;
use crate::fields::in_order;
use crate::kinds::Kind;

/// Room for an object without much in it.
const SMALL: usize = 1024;

/// The order of `ObjectMeta`.
const METADATA: [&str; 15] = [
    "name",
    "generateName",
    "namespace",
    "selfLink",
    "uid",
    "resourceVersion",
    "generation",
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "labels",
    "annotations",
    "ownerReferences",
    "finalizers",
    "managedFields",
];

/// An object's bytes.
#[derive(Debug, Clone)]
pub(super) struct Encoded {
    pub(super) body: Bytes,
    /// The digits of the version.
    pub(super) version: Range<usize>,
    /// The value of `metadata`.
    pub(super) metadata: Range<usize>,
    /// The managed fields, with their name and the comma before it.
    pub(super) managed: Range<usize>,
}

/// What stands before the managed fields.
pub(super) const MANAGED: &str = r#","managedFields":"#;

/// The bytes of an object in its kind's storage version. An object that nobody wrote has no version.
pub(super) fn encode(kind: &Kind, document: &Document, revision: Option<u64>) -> Encoded {
    let managed = document.managed().bytes(kind);
    let mut bytes = Vec::with_capacity(managed.as_ref().map_or(0, Bytes::len) + SMALL);
    bytes.extend_from_slice(kind.storage_version().prefix.as_bytes());
    let mut writer = Writer { bytes, version: 0..0, metadata: 0..0, managed: 0..0 };
    let rest = document.map().iter().filter(|(key, _)| *key != "metadata");
    match kind.custom {
        false => {
            writer.metadata(METADATA.iter().copied(), document.metadata(), revision, managed);
            for (key, value) in rest {
                writer.comma();
                writer.member(key, value);
            }
        }
        true => {
            let mut keys: Vec<&str> = rest.map(|(key, _)| key.as_str()).chain(["kind", "metadata"]).collect();
            keys.sort_unstable();
            for (i, key) in keys.into_iter().enumerate() {
                if i > 0 {
                    writer.comma();
                }
                match key {
                    "kind" => writer.member(key, &Value::String(kind.kind.clone())),
                    "metadata" => {
                        writer.metadata(sorted(METADATA).into_iter(), document.metadata(), revision, managed.clone());
                    }
                    _ => writer.member(key, &document.map()[key]),
                }
            }
        }
    }
    writer.bytes.push(b'}');
    Encoded { body: writer.bytes.into(), version: writer.version, metadata: writer.metadata, managed: writer.managed }
}

/// An object's metadata in the order of Go's struct, whatever order it had.
pub(super) fn metadata_in_order(metadata: &Map<String, Value>) -> Vec<u8> {
    let mut writer = Writer { bytes: b"{".to_vec(), version: 0..0, metadata: 0..0, managed: 0..0 };
    let keys = METADATA.iter().copied().chain(unknown(metadata));
    for (i, key) in keys.filter(|key| metadata.contains_key(*key)).enumerate() {
        if i > 0 {
            writer.comma();
        }
        match &metadata[key] {
            Value::Array(entries) if key == "managedFields" => {
                writer.bytes.extend_from_slice(&MANAGED.as_bytes()[1..]);
                writer.bytes.extend_from_slice(&in_order(entries));
            }
            value => writer.member(key, value),
        }
    }
    writer.bytes.push(b'}');
    writer.bytes
}

struct Writer {
    bytes: Vec<u8>,
    version: Range<usize>,
    metadata: Range<usize>,
    managed: Range<usize>,
}

impl Writer {
    fn metadata<'a>(
        &mut self,
        order: impl Iterator<Item = &'a str>,
        metadata: &'a Map<String, Value>,
        revision: Option<u64>,
        managed: Option<Bytes>,
    ) {
        self.bytes.extend_from_slice(b"\"metadata\":");
        let start = self.bytes.len();
        self.bytes.push(b'{');
        let keys = order.chain(unknown(metadata));
        let mut is_first = true;
        for key in keys {
            let before = self.bytes.len();
            if !is_first {
                self.comma();
            }
            match (key, revision, &managed) {
                ("resourceVersion", Some(revision), _) => self.version(revision),
                ("managedFields", _, Some(managed)) => {
                    let from = self.bytes.len();
                    self.bytes.extend_from_slice(&MANAGED.as_bytes()[1..]);
                    self.bytes.extend_from_slice(managed);
                    // Every object that is kept has something before it. Others are not taken apart again.
                    self.managed = if is_first { 0..0 } else { from - 1..self.bytes.len() };
                }
                _ => match metadata.get(key) {
                    Some(value) => self.member(key, value),
                    None => {
                        self.bytes.truncate(before);
                        continue;
                    }
                },
            }
            is_first = false;
        }
        self.bytes.push(b'}');
        self.metadata = start..self.bytes.len();
    }

    fn version(&mut self, revision: u64) {
        self.bytes.extend_from_slice(b"\"resourceVersion\":\"");
        let start = self.bytes.len();
        self.bytes.extend_from_slice(revision.to_string().as_bytes());
        self.version = start..self.bytes.len();
        self.bytes.push(b'"');
    }

    fn member(&mut self, key: &str, value: &Value) {
        // Writing a tree into memory cannot fail.
        let _ = serde_json::to_writer(&mut self.bytes, key);
        self.bytes.push(b':');
        let _ = serde_json::to_writer(&mut self.bytes, value);
    }

    fn comma(&mut self) {
        self.bytes.push(b',');
    }
}

fn unknown(metadata: &Map<String, Value>) -> impl Iterator<Item = &str> {
    metadata.keys().map(String::as_str).filter(|key| !METADATA.contains(key))
}

fn sorted(mut keys: [&'static str; 15]) -> [&'static str; 15] {
    keys.sort_unstable();
    keys
}
