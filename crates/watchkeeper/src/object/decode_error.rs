//! Why an object's body did not become the type that was asked for.

use std::fmt;

use super::{ObjectKey, ResourceVersion};

/// An object that is JSON but not the type that was asked for.
///
/// It tells where the two part (path and offset), and nothing of what stands there: serde_json's own texts quote values.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DecodeError {
    pub(super) kind: Option<Box<str>>,
    pub(super) key: ObjectKey,
    pub(super) version: ResourceVersion,
    pub(super) path: Box<str>,
    pub(super) offset: usize,
    pub(super) into: &'static str,
}

impl DecodeError {
    /// The object that could not be decoded.
    pub fn key(&self) -> &ObjectKey {
        &self.key
    }

    /// The version that it has.
    pub fn resource_version(&self) -> &ResourceVersion {
        &self.version
    }

    /// The field that does not fit, as `spec.containers[0].image`.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// The byte of the body at which decoding stopped.
    pub fn offset(&self) -> usize {
        self.offset
    }
}

impl fmt::Display for DecodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = self.kind.as_deref().unwrap_or("object");
        let Self { key, version, path, offset, into, .. } = self;
        write!(f, "{kind} {key} at version {version} does not decode into {into}: see {path} at byte {offset}")
    }
}

impl std::error::Error for DecodeError {}
