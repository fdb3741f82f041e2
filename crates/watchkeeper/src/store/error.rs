//! Why an index could not be asked or added.

use std::sync::Arc;

use crate::{Error, ErrorKind};

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
