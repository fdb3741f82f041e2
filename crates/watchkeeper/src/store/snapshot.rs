//! What a store held at one moment.
//!
//! Both views hold pointers to what the store is made of, and copy nothing. The store goes on and copies what it changes
//! while they are held, so one that is held for long costs memory: for each chunk that changes, another.

use std::fmt;

use super::chunks::{Spine, element};
use super::postings::Posting;
use super::slots::{SLOTS, Slot};
use crate::{ObjectKey, ResourceVersion};

/// All that a store held at one moment. Cheap to take and to clone.
#[derive(Clone)]
pub struct Snapshot<T, K = ObjectKey> {
    slots: Spine<Slot<T, K>>,
    len: usize,
    version: ResourceVersion,
}

impl<T, K> Snapshot<T, K> {
    pub(super) fn new(slots: Spine<Slot<T, K>>, len: usize, version: ResourceVersion) -> Self {
        Self { slots, len, version }
    }

    /// Keys and values, in no particular order.
    pub fn iter(&self) -> impl Iterator<Item = (&K, &T)> {
        self.slots.iter().flat_map(|chunk| chunk.iter().flatten()).map(|(key, value)| (key, value))
    }

    /// The value at a place, which may be empty. Behind the last place there is nothing.
    pub(crate) fn place(&self, place: usize) -> Option<Option<&T>> {
        let slot = element::<_, SLOTS>(&self.slots, u32::try_from(place).ok()?)?;
        Some(slot.as_ref().map(|(_, value)| value))
    }

    /// How many values there are.
    pub fn len(&self) -> usize {
        self.len
    }

    /// There is none.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The version of the last change before that moment: see `last_version` of the store.
    pub fn version(&self) -> &ResourceVersion {
        &self.version
    }
}

/// The values that an index found at one moment. Cheap to take and to clone.
#[derive(Clone)]
pub struct Selection<T, K = ObjectKey> {
    slots: Spine<Slot<T, K>>,
    found: Option<(Posting, usize)>,
}

impl<T, K> Selection<T, K> {
    pub(super) fn new(slots: Spine<Slot<T, K>>, found: Option<(Posting, usize)>) -> Self {
        Self { slots, found }
    }

    /// Keys and values, in no particular order.
    pub fn iter(&self) -> impl Iterator<Item = (&K, &T)> {
        let slots = self.found.iter().flat_map(|(posting, _)| posting.slots());
        slots.filter_map(|slot| element::<_, SLOTS>(&self.slots, slot)?.as_ref()).map(|(key, value)| (key, value))
    }

    /// The value at a place, which may be empty. Behind the last place there is nothing.
    pub(crate) fn place(&self, place: usize) -> Option<Option<&T>> {
        let slot = self.found.as_ref()?.0.slot(place)?;
        let value = slot.and_then(|slot| element::<_, SLOTS>(&self.slots, slot)?.as_ref());
        Some(value.map(|(_, value)| value))
    }

    /// The values: client-go's `ByIndex`.
    pub fn list(&self) -> Vec<T>
    where
        T: Clone,
    {
        self.iter().map(|(_, value)| value.clone()).collect()
    }

    /// How many values there are.
    pub fn len(&self) -> usize {
        self.found.as_ref().map_or(0, |(_, len)| *len)
    }

    /// There is none.
    pub fn is_empty(&self) -> bool {
        self.found.is_none()
    }
}

impl<T, K> fmt::Debug for Snapshot<T, K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Snapshot({} values at version {})", self.len, self.version)
    }
}

impl<T, K> fmt::Debug for Selection<T, K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Selection({} values)", self.len())
    }
}
