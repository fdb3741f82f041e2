//! Which object another is much like.
//!
//! Lists are sorted, and what comes by watch comes in waves: pods of one template come one after the other, and differ in names,
//! uids, hashes, addresses and times. So of the objects that were packed last, a few are kept at hand with their bodies, one for
//! each namespace and stem of a name: what is left of it without the generated parts. What comes next and is much like one of
//! them is spliced onto it, and packed only if it is not; then it takes that one's place.

use std::collections::VecDeque;
use std::sync::Arc;

use bytes::Bytes;
use hashbrown::HashMap;

use crate::Object;
use crate::defaults::{MODEL_BYTES, MODEL_SHARE};
use crate::object::packed::{Base, Dictionary, Packed, Spliced};

/// Objects that others may be much like.
#[derive(Default)]
pub(super) struct Models {
    by_likeness: HashMap<u64, Model>,
    /// In the order in which they came.
    order: VecDeque<u64>,
    /// What their bodies take, what has come in all, and what their bodies may take.
    bytes: usize,
    come: usize,
    room: usize,
}

struct Model {
    base: Base,
    body: Bytes,
}

impl Models {
    /// They are of no use any more.
    pub(super) fn clear(&mut self) {
        self.by_likeness.clear();
        self.order.clear();
        self.bytes = 0;
    }

    /// So many bytes have come.
    pub(super) fn make_room(&mut self, bytes: usize) {
        self.come = self.come.saturating_add(bytes);
        self.room = (self.come / MODEL_SHARE).min(MODEL_BYTES);
    }

    /// Keeps of an object what differs from its last state, `base`, or from one that it is much like, if that is little.
    pub(super) fn splice(&mut self, object: &Object, json: &[u8], base: Option<&Base>) -> bool {
        let likeness = object.likeness();
        let spliced = match base {
            // Its last state was like another object, whose body may be at hand; and will be, because it is probably not the only one
            // that changes. But what comes now may be like another one: of a new template, say.
            Some(base) if base.is_shared => match self.by_likeness.get(&likeness) {
                Some(model) if model.is(base) => None,
                Some(_) => Spliced::onto(base, json),
                None => {
                    if let Some(body) = base.packed.unpack() {
                        self.insert(likeness, Model { base: base.clone(), body });
                    }
                    None
                }
            },
            Some(base) => Spliced::onto(base, json),
            None => None,
        };
        let spliced = spliced.or_else(|| {
            let Model { base, body } = self.by_likeness.get(&likeness)?;
            Spliced::onto_unpacked(base, body, json)
        });
        spliced.map(|spliced| object.keep_spliced(spliced)).is_some()
    }

    /// Others may be much like this one, which has been packed.
    pub(super) fn put(&mut self, object: &Object, json: &[u8]) {
        if let Some(Base { packed, .. }) = object.base() {
            // In memory of its own: it may be a part of all that was read with it.
            let model = Model { base: Base { packed, is_shared: true }, body: Bytes::copy_from_slice(json) };
            self.insert(object.likeness(), model);
        }
    }

    fn insert(&mut self, likeness: u64, model: Model) {
        // One that would take the place of all others is left out, but not the first one, while there is room for few.
        if model.body.len() > if self.by_likeness.is_empty() { MODEL_BYTES } else { self.room / 4 } {
            return;
        }
        self.bytes += model.body.len();
        match self.by_likeness.insert(likeness, model) {
            Some(Model { body, .. }) => self.bytes -= body.len(),
            None => self.order.push_back(likeness),
        }
        while self.bytes > self.room
            && self.order.len() > 1
            && let Some(oldest) = self.order.pop_front()
        {
            let gone = self.by_likeness.remove(&oldest);
            self.bytes -= gone.map_or(0, |model| model.body.len());
        }
    }
}

impl Model {
    fn is(&self, base: &Base) -> bool {
        self.base.packed.address() == base.packed.address()
    }
}

/// What others are spliced onto, and what it is against another dictionary: by its address, which is its own while it is here.
#[derive(Default)]
pub(super) struct Repacked {
    by_address: HashMap<usize, (Packed, Packed)>,
    /// When it has so many, those are let go of that nobody else holds: nobody will ask for them again.
    limit: usize,
}

const LEAST_LIMIT: usize = 1024;

impl Repacked {
    /// Packs it anew, or gives what that came to before. `None` if it cannot be packed.
    pub(super) fn against(&mut self, dictionary: &Arc<Dictionary>, packed: &Packed) -> Option<Packed> {
        if let Some((_, repacked)) = self.by_address.get(&packed.address()) {
            return Some(repacked.clone());
        }
        let repacked = Packed::pack(&packed.unpack()?, Some(dictionary))?;
        if self.by_address.len() >= self.limit {
            self.by_address.retain(|_, (old, _)| old.is_held_besides(1));
            self.limit = LEAST_LIMIT.max(2 * self.by_address.len());
        }
        self.by_address.insert(packed.address(), (packed.clone(), repacked.clone()));
        Some(repacked)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bodies_at_hand_take_no_more_than_they_may() {
        let mut models = Models::default();
        models.make_room(usize::MAX);
        let dictionary = Arc::new(Dictionary::new(b"some bytes", 1).expect("a dictionary"));
        for number in 0..4 {
            let body = "x".repeat(15 << 20);
            let json = format!(r#"{{"metadata":{{"name":"n{number}z","resourceVersion":"1"}},"data":"{body}"}}"#);
            let object = Object::from_json(json.clone()).expect("an object");
            object.pack(Some(&dictionary));
            models.put(&object, json.as_bytes());
            assert!(models.bytes <= MODEL_BYTES, "{} bytes in {}", models.bytes, models.order.len());
        }
    }

    #[test]
    fn what_many_share_is_packed_once_however_many_there_are() {
        let dictionary = Arc::new(Dictionary::new(b"some bytes", 1).expect("a dictionary"));
        let packed = |number: usize| Packed::pack(format!("{number}").repeat(99).as_bytes(), None).expect("smaller");
        let all: Vec<Packed> = (0..5_000).map(packed).collect();
        let mut repacked = Repacked::default();
        let mut moved = || -> Vec<usize> {
            all.iter().map(|packed| repacked.against(&dictionary, packed).expect("smaller").address()).collect()
        };
        assert_eq!(moved(), moved());
    }
}
