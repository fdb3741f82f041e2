//! One object as it is kept.

use std::sync::Arc;

use bytes::Bytes;
use serde_json::Value;

use super::encode::{self, Encoded, MANAGED};
use super::owners::{Marks, Owner, owners};
use super::{Change, Document};
use crate::crds::objects;
use crate::fields::Managed;
use crate::kinds::{Kind, Version, events};

/// An object: its bytes, and what lists and watches ask of it.
pub struct Stored {
    /// The registration of its kind that it was written under: it decided the bytes and the fields.
    kind: Arc<Kind>,
    key: Arc<str>,
    uid: Box<str>,
    revision: u64,
    deleting: bool,
    labels: Box<[(Box<str>, Box<str>)]>,
    /// The values of the kind's selectable fields, in their order.
    fields: Box<[Box<str>]>,
    owners: Box<[Owner]>,
    marks: Marks,
    encoded: Encoded,
}

impl Stored {
    pub(super) fn new(
        kind: &Arc<Kind>,
        key: &str,
        document: &Document,
        labels: Box<[(Box<str>, Box<str>)]>,
        fields: Box<[Box<str>]>,
        revision: u64,
    ) -> Self {
        let encoded = encode::encode(kind, document, Some(revision));
        Self {
            kind: kind.clone(),
            key: key.into(),
            uid: document.meta("uid").into(),
            revision,
            deleting: document.is_deleting(),
            labels,
            fields,
            owners: owners(document),
            marks: Marks::of(document),
            encoded,
        }
    }

    /// An object that is shown and not kept: what a dry run, or an update that deleted it, answers with.
    pub(crate) fn preview(kind: &Arc<Kind>, key: &str, document: &Document, revision: Option<u64>) -> Self {
        let encoded = encode::encode(kind, document, revision);
        let fields = kind.fields.values(document.as_value());
        Self {
            kind: kind.clone(),
            key: key.into(),
            uid: document.meta("uid").into(),
            revision: revision.unwrap_or_default(),
            deleting: document.is_deleting(),
            labels: document.labels(),
            fields,
            owners: owners(document),
            marks: Marks::of(document),
            encoded,
        }
    }

    /// Whether it was written under this registration of its kind.
    pub(crate) fn is_of(&self, kind: &Arc<Kind>) -> bool {
        Arc::ptr_eq(&self.kind, kind)
    }

    /// The same object as if it had been written under another registration.
    pub(crate) fn anew(&self, kind: &Arc<Kind>) -> Self {
        Self::preview(kind, &self.key, &self.document_as(kind), Some(self.revision))
    }

    /// Whether writing it under this registration would change nothing.
    pub(crate) fn is_up_to_date(&self, kind: &Arc<Kind>) -> bool {
        self.is_of(kind) || self.anew(kind).json() == self.json()
    }

    /// `namespace/name`, or `name`.
    pub fn key(&self) -> &str {
        &self.key
    }

    /// The namespace; none, if the kind has none.
    pub fn namespace(&self) -> Option<&str> {
        self.key.split_once('/').map(|(namespace, _)| namespace)
    }

    /// The name.
    pub fn name(&self) -> &str {
        self.key.split_once('/').map_or(&self.key, |(_, name)| name)
    }

    /// The identity that tells an object from another one of the same name.
    pub fn uid(&self) -> &str {
        &self.uid
    }

    /// The revision of the write that made it.
    pub fn revision(&self) -> u64 {
        self.revision
    }

    /// Whether it is being deleted, and something holds it.
    pub fn is_deleting(&self) -> bool {
        self.deleting
    }

    /// The object as JSON, in the version that it is stored in.
    pub fn json(&self) -> &Bytes {
        &self.encoded.body
    }

    /// Whether it is being deleted, and goes when its dependents are gone.
    pub(crate) fn waits_for_dependents(&self) -> bool {
        self.marks.foreground
    }

    /// Whether it is being deleted, and lets its dependents go first.
    pub(crate) fn orphans_dependents(&self) -> bool {
        self.marks.orphan
    }

    pub(super) fn owners(&self) -> &[Owner] {
        &self.owners
    }

    pub(super) fn marks(&self) -> Marks {
        self.marks
    }

    /// Whether another state of it has other owners, or treats its dependents in another way.
    pub(super) fn differs(&self, other: &Self) -> bool {
        self.owners != other.owners || self.marks != other.marks
    }

    pub(super) fn shared_key(&self) -> Arc<str> {
        self.key.clone()
    }

    pub(crate) fn label(&self, key: &str) -> Option<&str> {
        let found = self.labels.binary_search_by(|(label, _)| (**label).cmp(key)).ok()?;
        Some(&self.labels[found].1)
    }

    /// The value of a selectable field.
    pub(crate) fn field(&self, kind: &Kind, name: &str) -> &str {
        match name {
            "metadata.name" => self.name(),
            "metadata.namespace" => self.namespace().unwrap_or_default(),
            _ => kind.fields.position(name).and_then(|i| self.fields.get(i)).map_or("", |value| value),
        }
    }

    /// The tree that it was made from.
    pub(crate) fn document(&self) -> Document {
        let (body, managed) = (&self.encoded.body, self.encoded.managed.clone());
        let tree = match managed.is_empty() {
            true => serde_json::from_slice(body),
            false => serde_json::from_slice(&[&body[..managed.start], &body[managed.end..]].concat()),
        };
        // The bytes were written from a document: they are one.
        let mut document = Document::new(tree.unwrap_or(Value::Null)).unwrap_or_default();
        if !managed.is_empty() {
            document.set_managed(Managed::Written(body.slice(managed.start + MANAGED.len()..managed.end)));
        }
        document
    }

    /// The tree as if it had been written under a registration: an event may have been written in the form of another group,
    /// a custom object under another definition.
    pub(crate) fn document_as(&self, kind: &Arc<Kind>) -> Document {
        let mut document = self.document();
        if self.kind.group != kind.group {
            events::convert(document.map_mut(), &kind.group);
        }
        if !self.is_of(kind) {
            objects::from_storage(kind, &mut document);
        }
        document
    }

    /// The object as JSON in the form of a kind, in the version that it is stored in.
    pub(crate) fn json_as(&self, kind: &Arc<Kind>) -> Bytes {
        match self.kind.group == kind.group {
            true => self.encoded.body.clone(),
            false => self.anew(kind).encoded.body,
        }
    }

    /// Its bytes in a version of its kind, after `{"kind":...,"apiVersion":...,` or what the version begins with.
    pub(crate) fn rest(&self, kind: &Kind) -> &[u8] {
        &self.encoded.body[kind.storage_version().prefix.len()..]
    }

    /// The whole object in a version of its kind.
    pub(crate) fn in_version(&self, kind: &Arc<Kind>, version: &Version) -> Bytes {
        if !self.is_of(kind) {
            return self.anew(kind).in_version(kind, version);
        }
        if version.name == kind.storage_version().name {
            return self.encoded.body.clone();
        }
        if objects::shows_less(kind, version) {
            let mut document = self.document();
            objects::to_version(version, &mut document);
            let shown = Self::preview(kind, &self.key, &document, Some(self.revision));
            return [version.prefix.as_bytes(), shown.rest(kind)].concat().into();
        }
        [version.prefix.as_bytes(), self.rest(kind)].concat().into()
    }

    /// The same without managed fields.
    pub(crate) fn bare_in_version(&self, kind: &Arc<Kind>, version: &Version) -> Bytes {
        let managed = self.encoded.managed.clone();
        if managed.is_empty() || !self.is_of(kind) || objects::shows_less(kind, version) {
            return self.in_version(kind, version);
        }
        let (body, begin) = (&self.encoded.body, kind.storage_version().prefix.len());
        [version.prefix.as_bytes(), &body[begin..managed.start], &body[managed.end..]].concat().into()
    }

    /// Its metadata, as `PartialObjectMetadata` shows it.
    pub(crate) fn metadata(&self, kind: &Arc<Kind>) -> Bytes {
        if !self.is_of(kind) {
            return self.anew(kind).metadata(kind);
        }
        let slice = self.encoded.body.slice(self.encoded.metadata.clone());
        match kind.custom {
            false => slice,
            true => match serde_json::from_slice(&slice) {
                Ok(Value::Object(metadata)) => encode::metadata_in_order(&metadata).into(),
                _ => slice,
            },
        }
    }

    /// The same object with another version: what a deletion shows.
    pub(crate) fn stamped(&self, revision: u64) -> Self {
        let version = self.encoded.version.clone();
        let digits = revision.to_string();
        let body = &self.encoded.body;
        let stamped = [&body[..version.start], digits.as_bytes(), &body[version.end..]].concat();
        let longer = digits.len().wrapping_sub(version.len());
        let metadata = self.encoded.metadata.start..self.encoded.metadata.end.wrapping_add(longer);
        let managed = match self.encoded.managed.clone() {
            managed if managed.start > version.start => {
                managed.start.wrapping_add(longer)..managed.end.wrapping_add(longer)
            }
            managed => managed,
        };
        let version = version.start..version.start + digits.len();
        Self {
            kind: self.kind.clone(),
            key: self.key.clone(),
            uid: self.uid.clone(),
            revision,
            deleting: self.deleting,
            labels: self.labels.clone(),
            fields: self.fields.clone(),
            owners: self.owners.clone(),
            marks: self.marks,
            encoded: Encoded { body: stamped.into(), version, metadata, managed },
        }
    }
}

/// No part of the object: only what identifies it.
impl std::fmt::Debug for Stored {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}@{}", self.key, self.revision)
    }
}

impl std::fmt::Debug for Change {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:?} -> {:?} at {}", self.before(), self.after(), self.revision())
    }
}
