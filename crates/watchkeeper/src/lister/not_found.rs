//! An object that is not in the cache.

use crate::{Error, ObjectKey};

/// There is no such object in the cache. As an [`Error`] it is what a server says of an object that it does not have:
/// [`is_not_found`](Error::is_not_found).
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("there is no {kind} {key} in the cache")]
pub struct NotFound {
    kind: Box<str>,
    key: ObjectKey,
}

impl NotFound {
    pub(super) fn new(kind: Box<str>, key: ObjectKey) -> Self {
        Self { kind, key }
    }

    /// What the kind of the object is called.
    pub fn kind(&self) -> &str {
        &self.kind
    }

    /// The key that nothing is under.
    pub fn key(&self) -> &ObjectKey {
        &self.key
    }
}

impl From<NotFound> for Error {
    fn from(error: NotFound) -> Self {
        Self::api(404, "NotFound", &error.to_string())
    }
}
