//! Who waits for a version.
//!
//! Whoever waits has a place, by the version that is waited for; whoever moves the version lets go all places up to it.
//! So a write wakes those whose version it brings, and nobody else. When nobody waits, it looks at one number.
//!
//! No wake-up is lost. Who waits (1) takes a place, which raises the number, and then (2) looks at the store's version
//! under its lock, for reading at least. Who writes (3) sets the version and looks at the number under the same lock, for writing,
//! and then (4) lets go. If (2) comes after (3), the version is seen. If it comes before, so does (1), and the lock makes
//! the number that (1) raised visible at (3): the place is found at (4). The number itself orders nothing, and is relaxed.
//!
//! Nobody is let go by what is over. Between (3) and (4) the store may go back, and somebody come who waits for just that
//! version. Places are numbered: (3) notes the next number, by the same rule, and (4) passes over places from that on.

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

/// A version that the store has come to, for those who have waited since before.
pub(super) struct News {
    version: ResourceVersion,
    /// The number of the first place that it does not mean.
    before: u64,
}

#[derive(Default)]
pub(super) struct Waiting {
    /// How many places there are.
    count: AtomicUsize,
    places: Mutex<Places>,
    next: AtomicU64,
}

impl Waiting {
    /// What is to be told of this version, if somebody waits. To be asked under the lock of the version.
    pub(super) fn news(&self, version: &ResourceVersion) -> Option<News> {
        let before = self.next.load(Relaxed);
        self.is_anybody().then(|| News { version: version.clone(), before })
    }

    /// Returns when what `here` reads, under the lock of the version, has come to this version or a later one.
    pub(super) async fn wait_for(
        &self,
        wanted: &ResourceVersion,
        here: impl Fn() -> ResourceVersion,
    ) -> Result<(), WaitError> {
        if !wanted.is_decimal() {
            return Err(WaitError::NoNumber { version: wanted.clone() });
        }
        if reaches(&here(), wanted)? {
            return Ok(());
        }
        let place = self.place(wanted);
        // It may have come to it before there was a place.
        if reaches(&here(), wanted)? {
            return Ok(());
        }
        place.told().await
    }

    fn is_anybody(&self) -> bool {
        self.count.load(Relaxed) > 0
    }

    /// Takes a place. The version must be a decimal number.
    fn place(&self, version: &ResourceVersion) -> Place<'_> {
        let (sender, told) = oneshot::channel();
        let position = position(version, self.next.fetch_add(1, Relaxed));
        let mut places = self.places();
        places.insert(position.clone(), sender);
        self.count.store(places.len(), Relaxed);
        drop(places);
        Place { waiting: self, position, told }
    }

    /// The store has come to a version. Called with no lock held, because this wakes.
    pub(super) fn let_go(&self, News { version, before }: &News) {
        let mut places = self.places();
        let outcome = comparable(version);
        let behind = match outcome {
            Ok(()) => places.split_off(&position(version, u64::MAX)),
            Err(_) => Places::new(),
        };
        let up_to_it = std::mem::replace(&mut *places, behind);
        let (reached, later): (Places, Places) = up_to_it.into_iter().partition(|((_, _, number), _)| number < before);
        places.extend(later);
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
struct Place<'a> {
    waiting: &'a Waiting,
    position: Position,
    told: oneshot::Receiver<Result<(), WaitError>>,
}

impl Place<'_> {
    /// Returns when the version has been reached, or cannot be.
    async fn told(mut self) -> Result<(), WaitError> {
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
fn reaches(here: &ResourceVersion, wanted: &ResourceVersion) -> Result<bool, WaitError> {
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
    use super::*;
    use crate::ThreadSafeStore;
    use futures::FutureExt as _;

    #[test]
    fn one_who_comes_after_a_version_is_not_let_go_by_it() {
        let waiting = Waiting::default();
        let ten = ResourceVersion::from("10");
        for (version, outcome) in [("12", true), ("v12", false)] {
            let early = waiting.place(&ten);
            let news = waiting.news(&version.into()).expect("somebody waits");
            // The store goes back to 5, and this one finds it there, before the others are told of 12.
            let late = waiting.place(&ten);
            waiting.let_go(&news);
            assert_eq!(early.told().now_or_never().map(|told| told.is_ok()), Some(outcome));
            assert_eq!(late.told().now_or_never(), None, "{version}");
        }
        assert!(!waiting.is_anybody());
    }

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
