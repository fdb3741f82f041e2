//! Which values the slots have in one index: the way back from a slot to its postings.
//!
//! Only writers need it. Thanks to it, the old values of an object are never computed again, and an object whose values
//! stay costs the index nothing. A slot takes eight bytes: the number of its value, and its position in that value's
//! posting. Slots of several values have these in a box aside, ordered by the numbers.

use compact_str::CompactString;
use hashbrown::{DefaultHashBuilder, HashMap};

use super::postings::Postings;
use super::slots::SLOTS;

/// The place of a slot in the posting of a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Back {
    value: u32,
    position: u32,
}

/// Numbers of values that are none.
const NONE: Back = Back { value: u32::MAX, position: 0 };
const SEVERAL: Back = Back { value: u32::MAX - 1, position: 0 };
/// The index is being built, and the slot's values are not known yet.
const UNKNOWN: Back = Back { value: u32::MAX - 2, position: 0 };

pub(super) struct Backs {
    column: Vec<Box<[Back]>>,
    several: HashMap<u32, Box<[Back]>>,
}

impl Backs {
    pub(super) fn new() -> Self {
        Self { column: Vec::new(), several: HashMap::new() }
    }

    /// For an index that is to be built: the values of all these slots are unknown.
    pub(super) fn unknown(slots: usize) -> Self {
        let column = (0..slots.div_ceil(SLOTS)).map(|_| vec![UNKNOWN; SLOTS].into()).collect();
        Self { column, several: HashMap::new() }
    }

    /// The slot has not been written since the building of the index began.
    pub(super) fn is_unknown(&self, slot: u32) -> bool {
        self.get(slot) == UNKNOWN
    }

    /// Brings the index up to date for a slot which has these values from now on.
    pub(super) fn update(
        &mut self,
        postings: &mut Postings,
        slot: u32,
        (values, hashes): (&[CompactString], &[u64]),
        hasher: &DefaultHashBuilder,
    ) {
        let old = self.get(slot);
        let old = if old == UNKNOWN { NONE } else { old };
        match values {
            [value] if old.value == NONE.value => {
                let number = postings.number_of(hashes[0], value, hasher);
                self.set(slot, Back { value: number, position: postings.add(number, slot) });
            }
            [value] if old != SEVERAL => {
                if postings.value(old.value) != value {
                    let number = postings.number_of(hashes[0], value, hasher);
                    self.set(slot, Back { value: number, position: postings.add(number, slot) });
                    postings.remove(old.value, old.position, hasher);
                }
            }
            [] if old == NONE => self.set(slot, NONE),
            [] if old != SEVERAL => {
                self.set(slot, NONE);
                postings.remove(old.value, old.position, hasher);
            }
            _ => self.update_several(postings, slot, old, (values, hashes), hasher),
        }
    }

    /// As [`update`](Self::update), for a slot that has or gets several values.
    fn update_several(
        &mut self,
        postings: &mut Postings,
        slot: u32,
        old: Back,
        (values, hashes): (&[CompactString], &[u64]),
        hasher: &DefaultHashBuilder,
    ) {
        let boxed = self.several.remove(&slot).unwrap_or_default();
        let old = match old {
            NONE => &[],
            SEVERAL => &boxed[..],
            ref one => std::slice::from_ref(one),
        };
        // A value that comes twice gets one number, and becomes one entry when the doubles are dropped below.
        let mut new: Vec<Back> = Vec::with_capacity(values.len());
        for (value, hash) in values.iter().zip(hashes) {
            let number = postings.number_of(*hash, value, hasher);
            let position = match old.binary_search_by_key(&number, |back| back.value) {
                Ok(at) => old[at].position,
                Err(_) => UNPLACED,
            };
            new.push(Back { value: number, position });
        }
        new.sort_unstable_by_key(|back| back.value);
        new.dedup();
        for back in new.iter_mut().filter(|back| back.position == UNPLACED) {
            back.position = postings.add(back.value, slot);
        }
        for back in old {
            if new.binary_search_by_key(&back.value, |back| back.value).is_err() {
                postings.remove(back.value, back.position, hasher);
            }
        }
        match new[..] {
            [] => self.set(slot, NONE),
            [one] => self.set(slot, one),
            _ => {
                self.set(slot, SEVERAL);
                self.several.insert(slot, new.into());
            }
        }
    }

    /// Adds the values of a slot, as the index has them.
    pub(super) fn values(&self, postings: &Postings, slot: u32, out: &mut Vec<CompactString>) {
        let back = self.get(slot);
        let backs = match back {
            NONE | UNKNOWN => &[],
            SEVERAL => self.several.get(&slot).map_or(&[][..], |backs| backs),
            ref one => std::slice::from_ref(one),
        };
        out.extend(backs.iter().map(|back| CompactString::from(postings.value(back.value))));
    }

    fn get(&self, slot: u32) -> Back {
        self.column.get(slot as usize / SLOTS).map_or(NONE, |chunk| chunk[slot as usize % SLOTS])
    }

    fn set(&mut self, slot: u32, back: Back) {
        let (chunk, at) = (slot as usize / SLOTS, slot as usize % SLOTS);
        while self.column.len() <= chunk {
            self.column.push(vec![NONE; SLOTS].into());
        }
        self.column[chunk][at] = back;
    }
}

/// A position that no posting reaches.
const UNPLACED: u32 = u32::MAX;
