//! Why an index could not be asked or added, and why a version cannot be waited for.

use std::sync::Arc;

use crate::{Error, ErrorKind, ResourceVersion};

/// An index cannot be asked, or not be added.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum IndexError {
    /// The store has no index of this name.
    #[error("there is no index {name:?}: add it with `add_index` before asking it")]
    Unknown {
        /// The name that was asked for.
        name: Arc<str>,
    },
    /// The index is being built from what the store holds already.
    #[error("index {name:?} is still being built: ask again when its `add_index` has returned")]
    Building {
        /// The name of the index.
        name: Arc<str>,
    },
    /// There is an index of this name already, and it is another one.
    #[error("there is an index {name:?} already, with another function: add this one under another name")]
    Conflict {
        /// The name that is taken.
        name: Arc<str>,
    },
}

impl From<IndexError> for Error {
    fn from(error: IndexError) -> Self {
        Self::new(ErrorKind::Store, error)
    }
}

/// A version cannot be waited for.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum WaitError {
    /// What was to be waited for is not a decimal number above zero: nobody can tell whether a store has come to it.
    #[error("version {version:?} cannot be waited for: it is not a decimal number above zero")]
    NoNumber {
        /// What was to be waited for.
        version: ResourceVersion,
    },
    /// The store is at a version that is not a decimal number: nobody can tell what it has come to.
    #[error("versions cannot be waited for here: the store is at {here:?}, which is not a decimal number")]
    Incomparable {
        /// The version that the store is at.
        here: ResourceVersion,
    },
    /// The informer does not watch this namespace: no version of it will ever come.
    #[error(
        "versions of namespace {namespace:?} cannot be waited for: it is not among those that the informer watches"
    )]
    UnknownNamespace {
        /// The namespace that was asked for.
        namespace: Arc<str>,
    },
    /// The informer has stopped: no version will ever come.
    #[error("version {version} cannot be waited for any more: the informer has stopped")]
    Stopped {
        /// What was waited for.
        version: ResourceVersion,
    },
}

impl From<WaitError> for Error {
    fn from(error: WaitError) -> Self {
        Self::new(ErrorKind::Store, error)
    }
}
