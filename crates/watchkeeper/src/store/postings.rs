//! One index: which slots have which value.
//!
//! Each value has a number and a posting, the list of its slots. Postings are made to be looked at while they change,
//! like the slots themselves: chunks behind `Arc`, copied when somebody holds them. A posting has holes where slots were
//! taken out, and the holes are a list, each with the position of the next. So taking out writes one entry, putting in
//! writes one entry (a hole, or the first of a new chunk), and neither moves another: the position of a slot within its
//! posting never changes, and can be kept beside the slot (`backs.rs`). A value of one slot, as in indexes by uid, needs
//! no chunk. A value of none is forgotten.

use std::hash::BuildHasher as _;
use std::sync::Arc;

use compact_str::CompactString;
use hashbrown::{DefaultHashBuilder, HashTable};

use super::chunks::{Chunks, Spine};
use super::slots::larger;

/// How many positions are a chunk.
const POSITIONS: usize = 256;
/// How many values are a chunk.
pub(super) const VALUES: usize = 32;

/// Marks a hole. The other bits are the position of the next one.
const HOLE: u32 = 1 << 31;
/// There is no further hole.
const END: u32 = HOLE - 1;

pub(super) struct Postings {
    table: HashTable<u32>,
    values: Chunks<Entry, VALUES>,
    unused: Vec<u32>,
    /// How many slots the postings have, and how many positions.
    live: usize,
    positions: usize,
    copied: u64,
}

/// A value and its slots. One without slots is not in the table.
#[derive(Clone)]
pub(super) struct Entry {
    pub(super) value: CompactString,
    pub(super) posting: Posting,
    pub(super) len: u32,
    first_hole: u32,
}

/// The slots of a value.
#[derive(Clone)]
pub(super) enum Posting {
    One(u32),
    Many(Spine<u32>),
}

impl Posting {
    /// The slots, in no order.
    pub(super) fn slots(&self) -> impl Iterator<Item = u32> + '_ {
        let (one, many) = match self {
            Self::One(slot) => (Some(*slot), &[][..]),
            Self::Many(spine) => (None, &spine[..]),
        };
        one.into_iter().chain(many.iter().flat_map(|chunk| chunk.iter().copied()).filter(|slot| slot & HOLE == 0))
    }

    /// The slot at a position, which may be a hole. Behind the last position there is nothing.
    pub(super) fn slot(&self, position: usize) -> Option<Option<u32>> {
        let slot = match self {
            Self::One(slot) => [*slot].get(position).copied(),
            // All chunks but the last are whole.
            Self::Many(spine) => spine.get(position / POSITIONS)?.get(position % POSITIONS).copied(),
        }?;
        Some(Some(slot).filter(|slot| slot & HOLE == 0))
    }
}

impl Postings {
    pub(super) fn new() -> Self {
        let (table, values) = (HashTable::new(), Chunks::new());
        Self { table, values, unused: Vec::new(), live: 0, positions: 0, copied: 0 }
    }

    /// All values and their postings, as they are now. Those without slots are not in use.
    pub(super) fn view(&self) -> Spine<Entry> {
        self.values.view()
    }

    /// The value with this number.
    pub(super) fn value(&self, number: u32) -> &str {
        self.values.get(number).map_or("", |entry| &entry.value)
    }

    pub(super) fn find(&self, value: &str, hasher: &DefaultHashBuilder) -> Option<&Entry> {
        self.values.get(self.number(hasher.hash_one(value), value)?)
    }

    fn number(&self, hash: u64, value: &str) -> Option<u32> {
        self.table.find(hash, |number| self.value(*number) == value).copied()
    }

    /// The number of a value. A new one gets a number, and must be given a slot at once.
    pub(super) fn number_of(&mut self, hash: u64, value: &CompactString, hasher: &DefaultHashBuilder) -> u32 {
        if let Some(number) = self.number(hash, value) {
            return number;
        }
        if self.unused.is_empty() {
            let fresh = self.values.grow(|| Entry {
                value: CompactString::const_new(""),
                posting: Posting::One(0),
                len: 0,
                first_hole: END,
            });
            self.unused.extend(fresh.rev());
        }
        let number = self.unused.pop().unwrap_or_default();
        self.values.get_mut(number).value = value.clone();
        let values = &self.values;
        self.table.insert_unique(hash, number, |number| hash_in(values, *number, hasher));
        number
    }

    /// Puts a slot into the posting of a value, and returns its position there.
    pub(super) fn add(&mut self, number: u32, slot: u32) -> u32 {
        self.live += 1;
        let entry = self.values.get_mut(number);
        entry.len += 1;
        if entry.len == 1 && matches!(entry.posting, Posting::One(_)) {
            entry.posting = Posting::One(slot);
            self.positions += 1;
            return 0;
        }
        if entry.first_hole == END {
            self.positions += grow(entry);
        }
        let position = entry.first_hole;
        let place = place(&mut entry.posting, position, &mut self.copied);
        entry.first_hole = *place & !HOLE;
        *place = slot;
        position
    }

    /// Takes a slot out of the posting of a value.
    pub(super) fn remove(&mut self, number: u32, position: u32, hasher: &DefaultHashBuilder) {
        self.live -= 1;
        let entry = self.values.get_mut(number);
        entry.len -= 1;
        if entry.len > 0 {
            let place = place(&mut entry.posting, position, &mut self.copied);
            *place = HOLE | entry.first_hole;
            entry.first_hole = position;
            return;
        }
        let hash = hasher.hash_one(&*entry.value);
        self.positions -= match &entry.posting {
            Posting::One(_) => 1,
            Posting::Many(spine) => spine.iter().map(|chunk| chunk.len()).sum(),
        };
        (entry.value, entry.posting, entry.first_hole) = (CompactString::const_new(""), Posting::One(0), END);
        if let Ok(entry) = self.table.find_entry(hash, |known| *known == number) {
            entry.remove();
        }
        self.unused.push(number);
    }

    /// Most of it is holes: it is worth being made anew.
    pub(super) fn is_sparse(&self) -> bool {
        super::is_sparse(self.live, self.positions) || super::is_sparse(self.table.len(), self.values.capacity())
    }

    /// How many chunks of postings were copied because somebody held them.
    pub(super) fn copied(&self) -> u64 {
        self.copied
    }

    /// A larger table, if this one has no room for `more` values. It is made aside, while this one is being read.
    pub(super) fn larger_table(&self, more: usize, hasher: &DefaultHashBuilder) -> Option<HashTable<u32>> {
        larger(&self.table, more, |number| hash_in(&self.values, number, hasher))
    }

    /// Puts a table of [`larger_table`](Self::larger_table) in the place of this one, and returns this one.
    pub(super) fn install(&mut self, table: HashTable<u32>) -> HashTable<u32> {
        std::mem::replace(&mut self.table, table)
    }
}

fn hash_in(values: &Chunks<Entry, VALUES>, number: u32, hasher: &DefaultHashBuilder) -> u64 {
    values.get(number).map_or(0, |entry| hasher.hash_one(&*entry.value))
}

/// Adds holes to a posting that has none, and returns how many positions it has gained. Its last chunk doubles until it
/// is a whole one; then there is another.
fn grow(entry: &mut Entry) -> usize {
    let spine = match &mut entry.posting {
        Posting::One(slot) => {
            let slot = *slot;
            entry.posting = Posting::Many(Arc::new(vec![[slot, HOLE | 2, HOLE | 3, HOLE | END].into()]));
            entry.first_hole = 1;
            return 3;
        }
        Posting::Many(spine) => Arc::make_mut(spine),
    };
    let last = match spine.last() {
        Some(last) if last.len() < POSITIONS => spine.pop().unwrap_or_default(),
        _ => Arc::default(),
    };
    let from = spine.len() * POSITIONS + last.len();
    let more = last.len().max(if spine.is_empty() { 4 } else { POSITIONS / 8 });
    let holes = (1..more).map(|at| HOLE | (from + at) as u32).chain([HOLE | END]);
    spine.push(last.iter().copied().chain(holes).collect());
    entry.first_hole = from as u32;
    more
}

/// One position of a posting, to be written.
fn place<'a>(posting: &'a mut Posting, position: u32, copied: &mut u64) -> &'a mut u32 {
    match posting {
        Posting::One(slot) => slot,
        Posting::Many(spine) => {
            let chunk = &mut Arc::make_mut(spine)[position as usize / POSITIONS];
            if Arc::get_mut(chunk).is_none() {
                *copied += 1;
            }
            &mut Arc::make_mut(chunk)[position as usize % POSITIONS]
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn holes_are_filled_before_a_posting_grows_and_positions_stay() {
        let hasher = DefaultHashBuilder::default();
        let mut postings = Postings::new();
        let number = postings.number_of(hasher.hash_one("x"), &"x".into(), &hasher);
        let mut positions: Vec<u32> = (0..1000).map(|slot| postings.add(number, slot)).collect();
        let room = postings.positions;
        for round in 0..5 {
            for slot in (round..1000).step_by(3) {
                postings.remove(number, positions[slot], &hasher);
            }
            for slot in (round..1000).step_by(3) {
                positions[slot] = postings.add(number, slot as u32);
            }
        }
        assert_eq!((postings.positions, postings.live), (room, 1000));
        let entry = postings.find("x", &hasher).expect("a value");
        let mut slots: Vec<u32> = entry.posting.slots().collect();
        slots.sort_unstable();
        assert!(slots.into_iter().eq(0..1000));
    }

    #[test]
    fn what_is_forgotten_leaves_its_room_to_others() {
        let hasher = DefaultHashBuilder::default();
        let mut postings = Postings::new();
        for round in 0..100 {
            let value = CompactString::from(format!("value-{round}"));
            let number = postings.number_of(hasher.hash_one(&*value), &value, &hasher);
            let positions: Vec<u32> = (0..=round).map(|slot| postings.add(number, slot)).collect();
            positions.iter().for_each(|position| postings.remove(number, *position, &hasher));
        }
        assert_eq!((postings.live, postings.positions, postings.table.len()), (0, 0, 0));
        assert_eq!(postings.values.capacity(), VALUES);
    }
}
