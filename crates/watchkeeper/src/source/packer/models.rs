//! Which object another is much like.
//!
//! Lists are sorted, and what comes by watch comes in waves: pods of one template come one after the other, and differ in names,
//! uids, hashes, addresses and times. So of the objects that were packed last, a few are kept at hand with their bodies, one for
//! each namespace and set of labels. What comes next and is much like one of them is spliced onto it, and packed only if it is not;
//! then it takes that one's place.

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
            // that changes.
            Some(base) if base.is_shared => {
                if !self.by_likeness.get(&likeness).is_some_and(|model| model.is(base))
                    && let Some(body) = base.packed.unpack()
                {
                    self.insert(likeness, Model { base: base.clone(), body });
                }
                None
            }
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
        // One that would take the place of all others is left out, but not the first one.
        if model.body.len() > self.room / 4 && !self.by_likeness.is_empty() {
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
pub(super) struct Repacked(HashMap<usize, (Packed, Packed)>);

/// As many are remembered. With more of them, some are packed more than once.
const REMEMBERED: usize = 4096;

impl Repacked {
    /// Packs it anew, or gives what that came to before. `None` if it cannot be packed.
    pub(super) fn against(&mut self, dictionary: &Arc<Dictionary>, packed: &Packed) -> Option<Packed> {
        if let Some((_, repacked)) = self.0.get(&packed.address()) {
            return Some(repacked.clone());
        }
        let repacked = Packed::pack(&packed.unpack()?, Some(dictionary))?;
        if self.0.len() >= REMEMBERED {
            self.0.clear();
        }
        self.0.insert(packed.address(), (packed.clone(), repacked.clone()));
        Some(repacked)
    }
}
