//! What handlers decode, for the others that are told of the same.
//!
//! Handlers read through the changes each at its own pace, and mostly side by side. What one of them decodes is kept for the
//! others, but only a little of it: if one handler lags behind by ten thousand events, ten thousand decoded objects would wait
//! with it. So there are a few places, and a change's number says which is its; one that comes to a place throws out whatever
//! was there. Whoever finds a place taken decodes again.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::defaults::SHARED_DECODES;
use crate::object::Decodes;

/// What was decoded of both ends of a change, the old one first.
pub(super) type Both = (Arc<Decodes>, Arc<Decodes>);

/// The places of an informer.
pub(super) struct Places {
    places: Arc<[Place]>,
    /// How many changes there have been.
    numbers: u64,
}

type Place = Mutex<Option<(u64, Both)>>;

impl Places {
    /// For so many changes, which come next. A single handler has nobody to share with.
    pub(super) fn take(&mut self, changes: usize, handlers: usize) -> Shared {
        let first = self.numbers;
        self.numbers += changes as u64;
        let places = (handlers > 1).then(|| self.places.clone());
        Shared { places, first, changes: changes as u64 }
    }
}

impl Default for Places {
    fn default() -> Self {
        Self { places: (0..SHARED_DECODES).map(|_| Mutex::new(None)).collect(), numbers: 0 }
    }
}

/// Where changes that were applied at once have their places.
pub(super) struct Shared {
    places: Option<Arc<[Place]>>,
    /// The number of the first of them.
    first: u64,
    changes: u64,
}

impl Shared {
    /// Where what is decoded of a change is shared with others who are told of it; none if there are no others.
    pub(super) fn decodes(&self, at: usize) -> Option<Both> {
        let places = self.places.as_ref()?;
        let number = self.first + at as u64;
        let mut place = place(places, number);
        if let Some((_, both)) = place.as_ref().filter(|(of, _)| *of == number) {
            return Some(both.clone());
        }
        let both = Both::default();
        let gone = place.replace((number, both.clone()));
        // What is freed may be large.
        drop(place);
        drop(gone);
        Some(both)
    }
}

/// All handlers have been told of these. Nothing of them is to wait for the next.
impl Drop for Shared {
    fn drop(&mut self) {
        let Some(places) = &self.places else { return };
        let end = self.first + self.changes;
        for number in self.first.max(end.saturating_sub(places.len() as u64))..end {
            let gone = place(places, number).take_if(|(of, _)| *of == number);
            drop(gone);
        }
    }
}

fn place(places: &[Place], number: u64) -> MutexGuard<'_, Option<(u64, Both)>> {
    // The remainder is smaller than the number of places.
    let at = (number % places.len() as u64) as usize;
    places[at].lock().unwrap_or_else(PoisonError::into_inner)
}
