//! How a list came to its end.

use std::fmt;

use crate::{Error, ErrorKind};

/// How a list came to its end. Its text is the label of a metric.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum ListOutcome {
    /// All of it is where the reflector writes to.
    Success,
    /// The server does not know who asks (401).
    Unauthorized,
    /// The server knows who asks, and says no (403).
    Forbidden,
    /// The server has no such resource (404).
    NotFound,
    /// The server has no such version: forgotten (410), or not yet reached.
    Expired,
    /// The server is overloaded (429).
    TooManyRequests,
    /// No connection to the server could be made.
    Unreachable,
    /// The connection broke, or was silent for too long.
    Disconnected,
    /// Something broke inside the server (500).
    InternalError,
    /// It came with an object whose key could not be read, so that it deleted nothing.
    UnreadableObject,
    /// What it is written into refused it.
    Store,
    /// Any other error.
    Other,
}

impl ListOutcome {
    /// All of them, in their order: a variant's place here is its number.
    pub const ALL: &[Self] = &[
        Self::Success,
        Self::Unauthorized,
        Self::Forbidden,
        Self::NotFound,
        Self::Expired,
        Self::TooManyRequests,
        Self::Unreachable,
        Self::Disconnected,
        Self::InternalError,
        Self::UnreadableObject,
        Self::Store,
        Self::Other,
    ];

    /// What the label of a metric says.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Success => "success",
            Self::Unauthorized => "unauthorized",
            Self::Forbidden => "forbidden",
            Self::NotFound => "not-found",
            Self::Expired => "expired",
            Self::TooManyRequests => "too-many-requests",
            Self::Unreachable => "unreachable",
            Self::Disconnected => "disconnected",
            Self::InternalError => "internal-error",
            Self::UnreadableObject => "unreadable-object",
            Self::Store => "store",
            Self::Other => "other",
        }
    }
}

impl From<&Error> for ListOutcome {
    fn from(error: &Error) -> Self {
        match error.kind() {
            _ if error.is_expired() || error.is_too_large_version() => Self::Expired,
            _ if error.is_unauthorized() => Self::Unauthorized,
            _ if error.is_forbidden() => Self::Forbidden,
            _ if error.is_not_found() => Self::NotFound,
            _ if error.is_too_many_requests() => Self::TooManyRequests,
            _ if error.is_unreachable() => Self::Unreachable,
            _ if error.is_internal() => Self::InternalError,
            _ if error.is_disconnect() => Self::Disconnected,
            ErrorKind::Store => Self::Store,
            _ => Self::Other,
        }
    }
}

impl fmt::Display for ListOutcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_place_of_each_is_its_number() {
        for (place, outcome) in ListOutcome::ALL.iter().enumerate() {
            assert_eq!(*outcome as usize, place);
        }
    }
}
