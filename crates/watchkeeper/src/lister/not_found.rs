//! An object that is not in the cache.

use std::fmt;

use crate::{Error, ErrorKind, ObjectKey};

/// There is no such object in the cache. As an [`Error`] it is what a server says of an object that it does not have:
/// [`is_not_found`](Error::is_not_found). But if the cache is not [complete](Self::is_final) yet, it is
/// [`ErrorKind::NotSynced`]: nobody shall take an object for gone that has only not arrived.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NotFound {
    kind: Box<str>,
    key: ObjectKey,
    is_final: bool,
}

impl NotFound {
    pub(super) fn new(kind: Box<str>, key: ObjectKey, is_final: bool) -> Self {
        Self { kind, key, is_final }
    }

    /// What the kind of the object is called.
    pub fn kind(&self) -> &str {
        &self.kind
    }

    /// The key that nothing is under.
    pub fn key(&self) -> &ObjectKey {
        &self.key
    }

    /// The cache has had its first list, so there is no such object, or was none a moment ago. False while an informer has
    /// not synced: then it may be there all the same.
    pub fn is_final(&self) -> bool {
        self.is_final
    }
}

impl fmt::Display for NotFound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { kind, key, is_final } = self;
        write!(f, "there is no {kind} {key} in the cache")?;
        if *is_final { Ok(()) } else { f.write_str(", which is not complete yet: wait for synced() of its informer") }
    }
}

impl std::error::Error for NotFound {}

impl From<NotFound> for Error {
    fn from(error: NotFound) -> Self {
        match error.is_final {
            true => Self::api(404, "NotFound", &error.to_string()),
            false => Self::new(ErrorKind::NotSynced, error),
        }
    }
}
