//! What was decoded of objects, and who shares it.
//!
//! Handlers read through changes each at its own pace, and mostly side by side. What one of them decodes is kept for the
//! others, but only a little of it: if one handler lags behind by ten thousand events, ten thousand decoded objects would wait
//! with it. So there are a few places, and an object's number says which is its; one that comes to a place throws out whatever
//! was there. Whoever finds a place taken decodes again.

use std::any::{Any, TypeId};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde::de::DeserializeOwned;

use super::{DecodeError, Object};

/// What was decoded of an object, whatever the type: handlers of one event share one, also if they see it as different types.
#[derive(Default)]
pub(super) struct Decodes(Mutex<Vec<(TypeId, Decoded)>>);

type Decoded = Result<Arc<dyn Any + Send + Sync>, DecodeError>;

impl Decodes {
    /// The object as a `K`. The lock is held while it is decoded, so that others who want it wait, and do not decode too.
    pub(super) fn decode<K>(&self, object: &Object) -> Result<Arc<K>, DecodeError>
    where
        K: DeserializeOwned + Send + Sync + 'static,
    {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let known = all.iter().find(|(of, _)| *of == TypeId::of::<K>());
        if let Some(known) = known.and_then(|(_, decoded)| match decoded {
            Ok(object) => object.clone().downcast().ok().map(Ok),
            Err(error) => Some(Err(error.clone())),
        }) {
            return known;
        }
        let decoded = object.decode().map(Arc::new);
        let erased = decoded.clone().map(|object: Arc<K>| object as Arc<dyn Any + Send + Sync>);
        all.push((TypeId::of::<K>(), erased));
        decoded
    }
}

/// Places for what was decoded of the last objects that several were told of.
pub(crate) struct Places {
    places: Arc<[Place]>,
    /// How many objects have had one.
    numbers: u64,
}

type Place = Mutex<Option<(u64, Arc<Decodes>)>>;

impl Places {
    pub(crate) fn new(count: usize) -> Self {
        Self { places: (0..count).map(|_| Mutex::new(None)).collect(), numbers: 0 }
    }

    /// For so many objects, which come next.
    pub(crate) fn take(&mut self, objects: usize) -> Arc<Shared> {
        let first = self.numbers;
        self.numbers += objects as u64;
        Arc::new(Shared { places: self.places.clone(), first, objects: objects as u64 })
    }
}

/// Where objects that are told at once have their places.
pub(crate) struct Shared {
    places: Arc<[Place]>,
    /// The number of the first of them.
    first: u64,
    objects: u64,
}

impl Shared {
    /// What is decoded of one of them, as long as it has its place: the same for all who ask.
    pub(super) fn decodes(&self, at: usize) -> Arc<Decodes> {
        let number = self.first + at as u64;
        let mut place = place(&self.places, number);
        if let Some((_, decodes)) = place.as_ref().filter(|(of, _)| *of == number) {
            return decodes.clone();
        }
        let decodes = Arc::<Decodes>::default();
        let gone = place.replace((number, decodes.clone()));
        // What is freed may be large.
        drop(place);
        drop(gone);
        decodes
    }
}

/// All have been told of these. Nothing of them is to wait for the next.
impl Drop for Shared {
    fn drop(&mut self) {
        let end = self.first + self.objects;
        // Of many, any may still have its place: whoever came later to it may not have been decoded.
        for number in self.first..end.min(self.first + self.places.len() as u64) {
            let gone = place(&self.places, number).take_if(|(of, _)| (self.first..end).contains(of));
            drop(gone);
        }
    }
}

fn place(places: &[Place], number: u64) -> MutexGuard<'_, Option<(u64, Arc<Decodes>)>> {
    // The remainder is smaller than the number of places.
    let at = (number % places.len() as u64) as usize;
    places[at].lock().unwrap_or_else(PoisonError::into_inner)
}
