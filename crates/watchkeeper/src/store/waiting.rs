//! Who waits for a version.
//!
//! Whoever waits has a place, by the version that is waited for; whoever moves the version lets go all places up to it.
//! So a write wakes those whose version it brings, and nobody else. When nobody waits, it looks at one number.
//!
//! No wake-up is lost. Who waits (1) takes a place, which raises the number, and then (2) looks at the store's version
//! under its lock, for reading. Who writes (3) sets the version and looks at the number under the same lock, for writing,
//! and then (4) lets go. If (2) comes after (3), the version is seen. If it comes before, so does (1), and the lock makes
//! the number that (1) raised visible at (3): the place is found at (4). The number itself orders nothing, and is relaxed.

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicU64, AtomicUsize};
use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::sync::oneshot;

use super::WaitError;
use crate::ResourceVersion;

/// A version as its length and its digits, which is the order of decimal numbers, and a number of the place's own.
type Position = (usize, Box<str>, u64);

type Places = BTreeMap<Position, oneshot::Sender<Result<(), WaitError>>>;

#[derive(Default)]
pub(super) struct Waiting {
    /// How many places there are.
    count: AtomicUsize,
    places: Mutex<Places>,
    next: AtomicU64,
}

impl Waiting {
    /// Somebody waits. To be asked under the lock of the version.
    pub(super) fn is_anybody(&self) -> bool {
        self.count.load(Relaxed) > 0
    }

    /// Takes a place. The version must be a decimal number.
    pub(super) fn place(&self, version: &ResourceVersion) -> Place<'_> {
        let (sender, told) = oneshot::channel();
        let position = position(version, self.next.fetch_add(1, Relaxed));
        let mut places = self.places();
        places.insert(position.clone(), sender);
        self.count.store(places.len(), Relaxed);
        drop(places);
        Place { waiting: self, position, told }
    }

    /// The store has come to this version. Called with no lock held, because this wakes.
    pub(super) fn let_go(&self, version: &ResourceVersion) {
        let mut places = self.places();
        let outcome = comparable(version);
        let behind = match outcome {
            Ok(()) => places.split_off(&position(version, u64::MAX)),
            Err(_) => Places::new(),
        };
        let reached = std::mem::replace(&mut *places, behind);
        self.count.store(places.len(), Relaxed);
        drop(places);
        for told in reached.into_values() {
            // Who has been dropped meanwhile need not be told.
            let _gone = told.send(outcome.clone());
        }
    }

    fn places(&self) -> MutexGuard<'_, Places> {
        self.places.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The place of one who waits. Dropping it leaves nothing behind.
pub(super) struct Place<'a> {
    waiting: &'a Waiting,
    position: Position,
    told: oneshot::Receiver<Result<(), WaitError>>,
}

impl Place<'_> {
    /// Returns when the version has been reached, or cannot be.
    pub(super) async fn told(mut self) -> Result<(), WaitError> {
        // Nobody drops the other end without a word: the place holds it, and this holds the place.
        (&mut self.told).await.unwrap_or(Ok(()))
    }
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        let mut places = self.waiting.places();
        let mine = places.remove(&self.position);
        self.waiting.count.store(places.len(), Relaxed);
        drop(places);
        drop(mine);
    }
}

/// Whether a store at version `here` has all that came up to `wanted`.
pub(super) fn reaches(here: &ResourceVersion, wanted: &ResourceVersion) -> Result<bool, WaitError> {
    comparable(here)?;
    Ok(here.compare(wanted).is_some_and(Ordering::is_ge))
}

/// A store that has no version yet, or any, is behind all others.
fn comparable(here: &ResourceVersion) -> Result<(), WaitError> {
    if here.is_exact() && !here.is_decimal() {
        return Err(WaitError::Incomparable { here: here.clone() });
    }
    Ok(())
}

fn position(version: &ResourceVersion, number: u64) -> Position {
    (version.as_str().len(), version.as_str().into(), number)
}

#[cfg(test)]
mod tests {
    use crate::{ResourceVersion, ThreadSafeStore};
    use futures::FutureExt as _;

    #[test]
    fn one_who_stops_waiting_leaves_no_place_behind() {
        let store: ThreadSafeStore<u8, u8> = ThreadSafeStore::new();
        let (seven, nine) = (ResourceVersion::from("7"), ResourceVersion::from("9"));
        let mut waits: Vec<_> = [&seven, &seven, &nine].map(|version| Box::pin(store.wait_for(version))).into();
        assert!(!store.waiting.is_anybody(), "nothing happens before it is polled");
        for wait in &mut waits {
            assert!(wait.now_or_never().is_none());
        }
        let places = || (store.waiting.places().len(), store.waiting.is_anybody());
        assert_eq!(places(), (3, true));
        drop(waits.remove(0));
        assert_eq!(places(), (2, true));
        store.bookmark(&seven);
        assert_eq!(places(), (1, true), "who is let go has no place any more, polled or not");
        drop(waits);
        assert_eq!(places(), (0, false));
    }
}
