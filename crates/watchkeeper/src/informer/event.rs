//! What a handler is told.

use std::fmt;

use crate::{Cached, ObjectKey};

/// A change of the cache. It has happened there already: whoever hears of it can read it, or something newer.
///
/// There is always an object, also in a deletion: nobody is told of the end of something that nobody was told of.
pub enum Event<K> {
    /// There is a new object.
    Added {
        /// The object.
        object: Cached<K>,
        /// How this came to be known.
        cause: Cause,
    },
    /// An object changed; or it did not, and is said again: [`Cause::Resync`], or a list that has it unchanged.
    Updated {
        /// What this handler was told last. Not the state before `new` in the cluster: states in between may be missing.
        old: Cached<K>,
        /// What it is now.
        new: Cached<K>,
        /// How this came to be known.
        cause: Cause,
    },
    /// An object is gone; or another one has taken its name, which follows as an addition.
    Deleted {
        /// Its last state: with the version of the deletion, if that is known, else as it was in the cache.
        last: Cached<K>,
        /// Whether `last` is what was deleted. False if the deletion itself was missed, and noticed by a list or by a new
        /// object of that name: client-go's `DeletedFinalStateUnknown`.
        final_state_known: bool,
        /// How this came to be known.
        cause: Cause,
    },
}

/// How a change came to be known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Cause {
    /// It was there when the handler came: it is of the first list, or was in the cache. client-go's `isInInitialList`.
    Initial,
    /// A watch said so.
    Watch,
    /// A later list said so: a watch had been broken for too long.
    Relist,
    /// It is time to say everything again, as the handler asked.
    Resync,
}

impl<K> Event<K> {
    /// The key of the object.
    pub fn key(&self) -> &ObjectKey {
        self.object().key()
    }

    /// The object as it is now, or was last.
    pub fn object(&self) -> &Cached<K> {
        match self {
            Self::Added { object, .. } => object,
            Self::Updated { new, .. } => new,
            Self::Deleted { last, .. } => last,
        }
    }

    /// How this came to be known.
    pub fn cause(&self) -> Cause {
        match self {
            Self::Added { cause, .. } | Self::Updated { cause, .. } | Self::Deleted { cause, .. } => *cause,
        }
    }

    /// One that can be kept for long.
    pub(super) fn into_kept(self) -> Self {
        match self {
            Self::Added { object, cause } => Self::Added { object: object.into_kept(), cause },
            Self::Updated { old, new, cause } => Self::Updated { old: old.into_kept(), new: new.into_kept(), cause },
            Self::Deleted { last, final_state_known, cause } => {
                Self::Deleted { last: last.into_kept(), final_state_known, cause }
            }
        }
    }

    /// The object is gone.
    pub fn is_deletion(&self) -> bool {
        matches!(self, Self::Deleted { .. })
    }
}

impl<K> Clone for Event<K> {
    fn clone(&self) -> Self {
        match self {
            Self::Added { object, cause } => Self::Added { object: object.clone(), cause: *cause },
            Self::Updated { old, new, cause } => Self::Updated { old: old.clone(), new: new.clone(), cause: *cause },
            Self::Deleted { last, final_state_known, cause } => {
                Self::Deleted { last: last.clone(), final_state_known: *final_state_known, cause: *cause }
            }
        }
    }
}

/// Keys and versions only: a body is never shown.
impl<K> fmt::Debug for Event<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (key, version, cause) = (self.key(), self.object().resource_version(), self.cause());
        match self {
            Self::Added { .. } => write!(f, "Added({key}@{version}, {cause:?})"),
            Self::Updated { old, .. } => {
                write!(f, "Updated({key}@{} -> {version}, {cause:?})", old.resource_version())
            }
            Self::Deleted { final_state_known: true, .. } => write!(f, "Deleted({key}@{version}, {cause:?})"),
            Self::Deleted { .. } => write!(f, "Deleted({key}, last seen @{version}, {cause:?})"),
        }
    }
}
