//! What happened to an object?

use std::fmt;
use std::ops::Deref;

use smallvec::{SmallVec, smallvec};

use crate::ObjectKey;

/// What happened: client-go's `DeltaType`. The last three concern no single object and exist in an
/// [`AtomicFifo`](super::AtomicFifo) only.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum DeltaType {
    /// There is a new object.
    Added,
    /// An object changed.
    Updated,
    /// An object is gone.
    Deleted,
    /// A list had the object; it may have changed or not.
    Replaced,
    /// The object is said again as it is known.
    Sync,
    /// A list: all objects that there are.
    ReplacedAll,
    /// All objects are to be said again.
    SyncAll,
    /// Everything up to a version has been queued.
    Bookmark,
}

impl fmt::Display for DeltaType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self, f)
    }
}

/// One change of one object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Delta<T> {
    /// There is a new object.
    Added(T),
    /// The object changed.
    Updated(T),
    /// A list had the object.
    Replaced(T),
    /// The object as it is known, said again.
    Sync(T),
    /// The object is gone.
    Deleted {
        /// Its last state that somebody saw. None if nobody saw one that could be used.
        object: Option<T>,
        /// Whether `object` is what was deleted. False for a tombstone, client-go's `DeletedFinalStateUnknown`: the
        /// deletion itself was missed, and `object` is what was known before.
        final_state_known: bool,
    },
}

impl<T> Delta<T> {
    /// A deletion that was seen.
    pub(super) fn deleted(object: T) -> Self {
        Self::Deleted { object: Some(object), final_state_known: true }
    }

    /// A deletion that was not seen.
    pub(super) fn tombstone(last_known: Option<T>) -> Self {
        Self::Deleted { object: last_known, final_state_known: false }
    }

    /// What happened.
    pub fn delta_type(&self) -> DeltaType {
        match self {
            Self::Added(_) => DeltaType::Added,
            Self::Updated(_) => DeltaType::Updated,
            Self::Replaced(_) => DeltaType::Replaced,
            Self::Sync(_) => DeltaType::Sync,
            Self::Deleted { .. } => DeltaType::Deleted,
        }
    }

    /// The object: its state after the change, or its last one.
    pub fn object(&self) -> Option<&T> {
        match self {
            Self::Added(object) | Self::Updated(object) | Self::Replaced(object) | Self::Sync(object) => Some(object),
            Self::Deleted { object, .. } => object.as_ref(),
        }
    }

    /// The object, taken out.
    pub fn into_object(self) -> Option<T> {
        match self {
            Self::Added(object) | Self::Updated(object) | Self::Replaced(object) | Self::Sync(object) => Some(object),
            Self::Deleted { object, .. } => object,
        }
    }

    /// The object is gone.
    pub fn is_deletion(&self) -> bool {
        matches!(self, Self::Deleted { .. })
    }

    /// This is a deletion that was not seen, only noticed.
    pub fn is_tombstone(&self) -> bool {
        matches!(self, Self::Deleted { final_state_known: false, .. })
    }

    /// Of two deletions in a row, the one that says more: with an object before without, seen before noticed; if both
    /// are seen the later one, if both are noticed the earlier one. None if these are not two deletions.
    fn takes_the_place_of(&self, earlier: &Self) -> Option<bool> {
        let (Self::Deleted { object, final_state_known }, Self::Deleted { object: before, final_state_known: known }) =
            (self, earlier)
        else {
            return None;
        };
        let (new, old) = ((object.is_some(), *final_state_known), (before.is_some(), *known));
        Some(new > old || (new == old && *final_state_known))
    }
}

/// All changes of one object that wait, the oldest first: client-go's `Deltas`. There is always one at least.
#[derive(Clone, PartialEq, Eq)]
pub struct Deltas<T, K = ObjectKey> {
    key: K,
    changes: SmallVec<[Delta<T>; 1]>,
}

impl<T, K> Deltas<T, K> {
    pub(super) fn new(key: K, delta: Delta<T>) -> Self {
        Self { key, changes: smallvec![delta] }
    }

    /// Appends a change. Two deletions in a row become one, and the other is given back.
    pub(super) fn push(&mut self, delta: Delta<T>) -> Option<Delta<T>> {
        match self.changes.last_mut().and_then(|last| Some((delta.takes_the_place_of(last)?, last))) {
            Some((true, last)) => Some(std::mem::replace(last, delta)),
            Some((false, _)) => Some(delta),
            None => {
                self.changes.push(delta);
                None
            }
        }
    }

    /// The key, which a deletion has even without its object.
    pub fn key(&self) -> &K {
        &self.key
    }

    /// The first change.
    pub fn oldest(&self) -> &Delta<T> {
        &self.changes[0]
    }

    /// The last change.
    pub fn newest(&self) -> &Delta<T> {
        &self.changes[self.changes.len() - 1]
    }
}

impl<T, K> Deref for Deltas<T, K> {
    type Target = [Delta<T>];

    fn deref(&self) -> &[Delta<T>] {
        &self.changes
    }
}

impl<'a, T, K> IntoIterator for &'a Deltas<T, K> {
    type Item = &'a Delta<T>;
    type IntoIter = std::slice::Iter<'a, Delta<T>>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

impl<T, K> IntoIterator for Deltas<T, K> {
    type Item = Delta<T>;
    type IntoIter = DeltasIntoIter<T>;

    fn into_iter(self) -> DeltasIntoIter<T> {
        DeltasIntoIter(self.changes.into_iter())
    }
}

/// The changes of a [`Deltas`], one by one.
pub struct DeltasIntoIter<T>(smallvec::IntoIter<[Delta<T>; 1]>);

impl<T> Iterator for DeltasIntoIter<T> {
    type Item = Delta<T>;

    fn next(&mut self) -> Option<Delta<T>> {
        self.0.next()
    }
}

/// Key and types only: the objects are nobody's business.
impl<T, K: fmt::Debug> fmt::Debug for Deltas<T, K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} ", self.key)?;
        f.debug_list().entries(self.iter().map(Delta::delta_type)).finish()
    }
}
