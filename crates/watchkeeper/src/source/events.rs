//! What comes out of lists and watches.

use std::fmt;

use crate::{Error, Object, ObjectKey, ResourceVersion};

/// A part of a [`Listing`](super::Listing).
#[derive(Debug, Clone)]
pub enum ListPart {
    /// Version and continue token. Built-in kinds send it before the items, custom resources after them.
    Metadata(ListMetadata),
    /// An object.
    Item(Object),
    /// An object that cannot be used. It is there all the same: it must not be taken for deleted.
    Bad(BadObject),
    /// Bytes came, and made no whole object yet.
    Progress,
}

/// What a list says of itself.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ListMetadata {
    /// The version of the state that the list shows.
    pub resource_version: ResourceVersion,
    /// There are more pages: ask for the next with this.
    pub continue_token: Option<String>,
    /// How many objects follow on later pages, if the server knows.
    pub remaining_item_count: Option<u64>,
}

/// An event of a watch.
#[derive(Debug, Clone)]
pub enum WatchEvent {
    /// There is a new object.
    Added(Object),
    /// An object changed.
    Modified(Object),
    /// An object is gone; this is its last state, with the version of the deletion.
    Deleted(Object),
    /// An object that cannot be used is gone.
    DeletedBad(BadObject),
    /// All changes up to this version have been sent.
    Bookmark(Bookmark),
    /// The server ends the watch, and says why.
    Error(Error),
    /// An object that cannot be used was added or changed.
    Bad(BadObject),
    /// Something of another kind, which is not looked at.
    WrongKind(BadObject),
    /// An event of a type that is not known.
    Unknown(ResourceVersion),
    /// Bytes came, and made no whole event yet.
    Progress,
}

/// The server's word that it has sent all changes up to a version.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Bookmark {
    /// The version.
    pub resource_version: ResourceVersion,
    /// This one ends the initial events of a streaming list.
    pub initial_events_end: bool,
}

/// An object that cannot be used: what is known of it, and what is wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BadObject {
    /// Its key, if that could be read.
    pub key: Option<ObjectKey>,
    /// Its version, if that could be read.
    pub resource_version: ResourceVersion,
    /// What is wrong with it: never any part of it.
    pub problem: &'static str,
}

impl fmt::Display for BadObject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.key {
            Some(key) => write!(f, "object {key}")?,
            None => f.write_str("an object without a readable key")?,
        }
        if !self.resource_version.is_unset() {
            write!(f, " at version {}", self.resource_version)?;
        }
        write!(f, " cannot be used: {}", self.problem)
    }
}
