//! What a reflector writes into.

use std::sync::Arc;

use crate::{Error, Object, ObjectKey, ResourceVersion};

/// A queue or a store that changes are written into: client-go's `ReflectorStore`.
///
/// The calls come one after the other, in the order of the changes. They must not block: the watch waits for them. An
/// error of [`replace`](Self::replace) or [`resync`](Self::resync) ends the cycle, and the reflector lists again after its
/// backoff; one of the others is logged and the change is lost, as in client-go.
pub trait ReflectorStore: Send + Sync {
    /// The server has a new object.
    fn add(&self, object: Object) -> Result<(), Error>;

    /// An object changed.
    fn update(&self, object: Object) -> Result<(), Error>;

    /// An object is gone. `last` is its last state, with the version of the deletion; there is none if the server sent
    /// one that cannot be used.
    fn delete(&self, key: &ObjectKey, last: Option<Object>) -> Result<(), Error>;

    /// The whole state.
    fn replace(&self, list: Replacement) -> Result<(), Error>;

    /// It is time to tell everybody everything again.
    fn resync(&self) -> Result<(), Error> {
        Ok(())
    }

    /// All changes up to this version have been written.
    fn bookmark(&self, _version: &ResourceVersion) -> Result<(), Error> {
        Ok(())
    }

    /// The reflector will go on from this version: client-go's `ResourceVersionUpdater`. Called for each event of a
    /// watch, not after a list.
    fn version_moved(&self, _version: &ResourceVersion) {}

    /// More changes are at hand, and follow at once (`true`); or there are none for now (`false`). Between the two, who waits
    /// for changes need not be woken for each. Every `true` is followed by a `false`, after some hundred changes at most, and
    /// before a list, whatever becomes of the watch.
    fn more_to_come(&self, _more: bool) {}
}

impl<S: ReflectorStore + ?Sized> ReflectorStore for Arc<S> {
    fn add(&self, object: Object) -> Result<(), Error> {
        (**self).add(object)
    }

    fn update(&self, object: Object) -> Result<(), Error> {
        (**self).update(object)
    }

    fn delete(&self, key: &ObjectKey, last: Option<Object>) -> Result<(), Error> {
        (**self).delete(key, last)
    }

    fn replace(&self, list: Replacement) -> Result<(), Error> {
        (**self).replace(list)
    }

    fn resync(&self) -> Result<(), Error> {
        (**self).resync()
    }

    fn bookmark(&self, version: &ResourceVersion) -> Result<(), Error> {
        (**self).bookmark(version)
    }

    fn version_moved(&self, version: &ResourceVersion) {
        (**self).version_moved(version);
    }

    fn more_to_come(&self, more: bool) {
        (**self).more_to_come(more);
    }
}

/// What a list found.
#[derive(Debug, Clone, Default)]
pub struct Replacement {
    /// The objects, in the server's order.
    pub items: Vec<Object>,
    /// The version of the state that they show.
    pub resource_version: ResourceVersion,
    /// Objects that are there, and came in a form that cannot be used. What is known of them stays.
    pub unusable: Vec<ObjectKey>,
    /// What is in neither of the two is gone. False if an object came without a readable key: then nothing is gone for
    /// certain, and the reflector will list again.
    pub complete: bool,
}
