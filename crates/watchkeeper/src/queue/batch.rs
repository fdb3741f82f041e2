//! What comes out of an [`AtomicFifo`](super::AtomicFifo)?

use std::fmt;
use std::ops::Deref;

use smallvec::SmallVec;

use super::delta::{Delta, DeltaType};
use crate::{ObjectKey, ResourceVersion};

/// One thing that happened.
#[derive(Clone, PartialEq, Eq)]
pub enum Entry<T, K = ObjectKey> {
    /// To one object: it was added, updated or deleted.
    Object {
        /// Its key, which a deletion has even without its object.
        key: K,
        /// What happened to it.
        delta: Delta<T>,
    },
    /// There was a list.
    ReplacedAll(ReplacedAll<T, K>),
    /// It is time to say everything again that is known when this is applied.
    SyncAll,
    /// Everything up to this version is in front of this.
    Bookmark(ResourceVersion),
}

/// What a list found. What was known before and is in neither `items` nor `unusable` is gone, if the list is
/// complete.
#[derive(Clone, PartialEq, Eq)]
pub struct ReplacedAll<T, K = ObjectKey> {
    /// The objects, in the server's order.
    pub items: Vec<T>,
    /// The version of the state that they show.
    pub resource_version: ResourceVersion,
    /// Objects that are there, and came in a form that cannot be used. What is known of them stays.
    pub unusable: Vec<K>,
    /// False if an object came without a readable key: then nothing is gone for certain.
    pub complete: bool,
}

impl<T, K> Entry<T, K> {
    /// What happened.
    pub fn delta_type(&self) -> DeltaType {
        match self {
            Self::Object { delta, .. } => delta.delta_type(),
            Self::ReplacedAll(_) => DeltaType::ReplacedAll,
            Self::SyncAll => DeltaType::SyncAll,
            Self::Bookmark(_) => DeltaType::Bookmark,
        }
    }

    /// The key of the one object that this is about.
    pub fn key(&self) -> Option<&K> {
        match self {
            Self::Object { key, .. } => Some(key),
            _ => None,
        }
    }
}

/// Type, key and numbers only: the objects are nobody's business.
impl<T, K: fmt::Debug> fmt::Debug for Entry<T, K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Object { key, delta } => write!(f, "{} {key:?}", delta.delta_type()),
            Self::ReplacedAll(all) => all.fmt(f),
            Self::SyncAll => f.write_str("SyncAll"),
            Self::Bookmark(version) => write!(f, "Bookmark at {:?}", version.as_str()),
        }
    }
}

impl<T, K: fmt::Debug> fmt::Debug for ReplacedAll<T, K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { items, resource_version, unusable, complete } = self;
        write!(f, "ReplacedAll at {:?} with {} items", resource_version.as_str(), items.len())?;
        if !unusable.is_empty() {
            write!(f, ", {} more unusable", unusable.len())?;
        }
        if *complete { Ok(()) } else { f.write_str(", incomplete") }
    }
}

/// Entries that are processed together, in their order: changes of different objects, or one entry of another type.
/// There is always one at least, unless it was [taken](super::BatchGuard::take).
#[derive(Clone, PartialEq, Eq)]
pub struct Batch<T, K = ObjectKey> {
    pub(super) entries: SmallVec<[Entry<T, K>; 1]>,
}

impl<T, K> Deref for Batch<T, K> {
    type Target = [Entry<T, K>];

    fn deref(&self) -> &[Entry<T, K>] {
        &self.entries
    }
}

impl<'a, T, K> IntoIterator for &'a Batch<T, K> {
    type Item = &'a Entry<T, K>;
    type IntoIter = std::slice::Iter<'a, Entry<T, K>>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

impl<T, K> IntoIterator for Batch<T, K> {
    type Item = Entry<T, K>;
    type IntoIter = BatchIntoIter<T, K>;

    fn into_iter(self) -> BatchIntoIter<T, K> {
        BatchIntoIter(self.entries.into_iter())
    }
}

/// The entries of a [`Batch`], one by one.
pub struct BatchIntoIter<T, K>(smallvec::IntoIter<[Entry<T, K>; 1]>);

impl<T, K> Iterator for BatchIntoIter<T, K> {
    type Item = Entry<T, K>;

    fn next(&mut self) -> Option<Entry<T, K>> {
        self.0.next()
    }
}

impl<T, K: fmt::Debug> fmt::Debug for Batch<T, K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(&self.entries).finish()
    }
}
