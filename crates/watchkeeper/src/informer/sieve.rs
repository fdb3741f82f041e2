//! Lets through what a filter lets through.
//!
//! Whether a handler has to be told that an object is gone does not depend on whether its last state passes, but on whether
//! the handler knows it. So it is remembered which objects it knows: eight bytes for each, a hash of the key, seeded anew in
//! each process. The filter is asked once for an event, and may even change its mind.

use std::borrow::Cow;
use std::hash::BuildHasher as _;

use hashbrown::{DefaultHashBuilder, HashSet};

use super::handler::Filter;
use crate::{Event, ObjectKey};

pub(super) struct Sieve<K> {
    filter: Option<Filter<K>>,
    known: HashSet<u64>,
    hasher: DefaultHashBuilder,
}

impl<K> Sieve<K> {
    pub(super) fn new(filter: Option<Filter<K>>) -> Self {
        Self { filter, known: HashSet::new(), hasher: DefaultHashBuilder::default() }
    }

    /// The event as the handler hears it, if it does.
    pub(super) fn pass<'a>(&mut self, event: Cow<'a, Event<K>>) -> Option<Cow<'a, Event<K>>> {
        let Some(filter) = &self.filter else { return Some(event) };
        let hash = self.hash(event.key());
        match &*event {
            Event::Deleted { .. } => self.known.remove(&hash).then_some(event),
            Event::Added { object, .. } => {
                let passes = filter(object);
                passes.then(|| {
                    self.known.insert(hash);
                    event
                })
            }
            Event::Updated { old, new, cause } => match (self.known.contains(&hash), filter(new)) {
                (true, true) => Some(event),
                (false, true) => {
                    self.known.insert(hash);
                    Some(Cow::Owned(Event::Added { object: new.clone(), cause: *cause }))
                }
                (true, false) => {
                    self.known.remove(&hash);
                    let last = old.clone();
                    Some(Cow::Owned(Event::Deleted { last, final_state_known: true, cause: *cause }))
                }
                (false, false) => None,
            },
        }
    }

    fn hash(&self, key: &ObjectKey) -> u64 {
        self.hasher.hash_one(key)
    }
}
