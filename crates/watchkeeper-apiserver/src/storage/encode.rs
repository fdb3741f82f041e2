//! Objects as bytes, in the order in which a kube-apiserver writes them.
//!
//! Built-in objects begin with kind, apiVersion and metadata, and the metadata has the order of Go's struct; custom ones
//! have sorted keys throughout. Where version and metadata stand is remembered: a deletion is the last state with another
//! version, and `PartialObjectMetadata` is a slice.

use std::ops::Range;

use bytes::Bytes;
use serde_json::{Map, Value};

use super::Document;
use crate::kinds::Kind;

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
}

/// The bytes of an object in its kind's storage version. An object that nobody wrote has no version.
pub(super) fn encode(kind: &Kind, document: &Document, revision: Option<u64>) -> Encoded {
    let mut writer =
        Writer { bytes: kind.storage_version().prefix.clone().into_bytes(), version: 0..0, metadata: 0..0 };
    let rest = document.map().iter().filter(|(key, _)| *key != "metadata");
    match kind.custom {
        false => {
            writer.metadata(METADATA.iter().copied(), document.metadata(), revision);
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
                    "metadata" => writer.metadata(sorted(METADATA).into_iter(), document.metadata(), revision),
                    _ => writer.member(key, &document.map()[key]),
                }
            }
        }
    }
    writer.bytes.push(b'}');
    Encoded { body: writer.bytes.into(), version: writer.version, metadata: writer.metadata }
}

/// An object's metadata in the order of Go's struct, whatever order it had.
pub(super) fn metadata_in_order(metadata: &Map<String, Value>) -> Vec<u8> {
    let mut writer = Writer { bytes: b"{".to_vec(), version: 0..0, metadata: 0..0 };
    let keys = METADATA.iter().copied().chain(unknown(metadata));
    for (i, key) in keys.filter(|key| metadata.contains_key(*key)).enumerate() {
        if i > 0 {
            writer.comma();
        }
        writer.member(key, &metadata[key]);
    }
    writer.bytes.push(b'}');
    writer.bytes
}

struct Writer {
    bytes: Vec<u8>,
    version: Range<usize>,
    metadata: Range<usize>,
}

impl Writer {
    fn metadata<'a>(
        &mut self,
        order: impl Iterator<Item = &'a str>,
        metadata: &'a Map<String, Value>,
        revision: Option<u64>,
    ) {
        self.bytes.extend_from_slice(b"\"metadata\":");
        let start = self.bytes.len();
        self.bytes.push(b'{');
        let keys = order.chain(unknown(metadata));
        for (i, key) in keys
            .filter(|key| (*key == "resourceVersion" && revision.is_some()) || metadata.contains_key(*key))
            .enumerate()
        {
            if i > 0 {
                self.comma();
            }
            match revision {
                Some(revision) if key == "resourceVersion" => self.version(revision),
                _ => self.member(key, &metadata[key]),
            }
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
