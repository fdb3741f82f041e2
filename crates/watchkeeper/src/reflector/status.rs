//! How is the reflector doing?
//!
//! The reflector writes atomics, and swaps small shared values where an atomic will not do; whoever asks reads them.
//! Nobody waits for anybody.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use arc_swap::{ArcSwap, ArcSwapOption};
use tokio::time::Instant;

use super::Gap;
use crate::{Error, ObjectKey, ResourceVersion, defaults};

/// What the reflector is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Phase {
    /// It has not been started.
    New,
    /// It reads a list, page by page or as a stream.
    Listing,
    /// It waits for changes.
    Watching,
    /// It waits for changes, and none have come for so long that it has opened a second watch.
    Stale,
    /// Something failed; it will try again.
    BackingOff,
    /// It was stopped.
    Stopped,
}

const PHASES: [Phase; 6] =
    [Phase::New, Phase::Listing, Phase::Watching, Phase::Stale, Phase::BackingOff, Phase::Stopped];

/// Why a watch was opened again, or a list asked for again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
#[non_exhaustive]
pub enum Reason {
    /// The server ended the watch.
    Ended,
    /// The connection broke.
    Disconnected,
    /// The server neither sent nor ended anything within the time that was asked for.
    TimedOut,
    /// Nothing had come for so long that another watch was tried, and that one delivered.
    Stale,
    /// The server is overloaded (429).
    TooManyRequests,
    /// No connection to the server could be made.
    Unreachable,
    /// Something broke inside the server (500).
    InternalError,
    /// The server has forgotten the version to go on from (410).
    Expired,
    /// The watch ended within a second and without an event.
    VeryShortWatch,
    /// An object came whose key could not be read.
    UnreadableObject,
    /// The store refused the list or the resync.
    Store,
    /// Somebody [asked for it](crate::Relister::relist).
    Requested,
    /// Any other error.
    Other,
}

const REASONS: [Reason; 13] = [
    Reason::Ended,
    Reason::Disconnected,
    Reason::TimedOut,
    Reason::Stale,
    Reason::TooManyRequests,
    Reason::Unreachable,
    Reason::InternalError,
    Reason::Expired,
    Reason::VeryShortWatch,
    Reason::UnreadableObject,
    Reason::Store,
    Reason::Requested,
    Reason::Other,
];

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Ended => "ended",
            Self::Disconnected => "disconnected",
            Self::TimedOut => "timed-out",
            Self::Stale => "stale",
            Self::TooManyRequests => "too-many-requests",
            Self::Unreachable => "unreachable",
            Self::InternalError => "internal-error",
            Self::Expired => "expired",
            Self::VeryShortWatch => "very-short-watch",
            Self::UnreadableObject => "unreadable-object",
            Self::Store => "store",
            Self::Requested => "requested",
            Self::Other => "other",
        })
    }
}

/// The state of a reflector at one moment.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct ReflectorStatus {
    /// What it is doing.
    pub phase: Phase,
    /// One whole list has been written into the store.
    pub synced: bool,
    /// Objects received by the list that is being read, or was read last.
    pub listed_objects: u64,
    /// Events received by all watches.
    pub events: u64,
    /// When anything was last received from the server. An opened watch counts, and so does every byte.
    pub last_contact: Option<Instant>,
    /// When the last event of a watch came.
    pub last_event: Option<Instant>,
    /// What went wrong last, and when.
    pub last_error: Option<(Error, Instant)>,
    /// The version of the last change, list or bookmark.
    pub resource_version: ResourceVersion,
    /// Watches that were opened in place of another, with no list in between.
    pub watch_restarts: BTreeMap<Reason, u64>,
    /// Lists after the first one that was attempted.
    pub relists: BTreeMap<Reason, u64>,
    /// How many objects there are of which the newest state could not be used; what was known before still stands.
    pub stale_object_count: u64,
    /// The first hundred of them, and what is wrong with each.
    pub stale_objects: BTreeMap<ObjectKey, &'static str>,
    /// How often there was no watch for a while, after the first one.
    pub gaps: u64,
    /// The last of those times.
    pub last_gap: Option<Gap>,
    /// Objects that could not even be told apart, because their keys could not be read.
    pub unreadable_objects: u64,
    /// Events with objects of another kind, which were not looked at.
    pub wrong_kind: u64,
    /// Events of a type that is not known.
    pub unknown_events: u64,
    /// Versions below the one before: a server that went back in time, or another one behind the same address.
    pub versions_backwards: u64,
    /// Changes that the store refused.
    pub store_errors: u64,
}

/// Reads a reflector's status while it runs. Cheap to clone.
#[derive(Clone)]
pub struct StatusReader(Arc<Cell>);

impl StatusReader {
    /// The state at this moment.
    pub fn get(&self) -> ReflectorStatus {
        let cell = &*self.0;
        let count = |counters: &[AtomicU64; REASONS.len()]| {
            let counts = REASONS.iter().zip(counters).map(|(reason, count)| (*reason, count.load(Relaxed)));
            counts.filter(|(_, count)| *count > 0).collect()
        };
        ReflectorStatus {
            phase: PHASES[usize::from(cell.phase.load(Relaxed)) % PHASES.len()],
            synced: cell.synced.load(Relaxed),
            listed_objects: cell.listed_objects.load(Relaxed),
            events: cell.events.load(Relaxed),
            last_contact: cell.instant(&cell.last_contact),
            last_event: cell.instant(&cell.last_event),
            last_error: cell.last_error.load_full().map(|error| (*error).clone()),
            resource_version: cell.version.get(),
            watch_restarts: count(&cell.watch_restarts),
            relists: count(&cell.relists),
            stale_object_count: cell.stale_object_count.load(Relaxed),
            stale_objects: (**cell.stale_objects.load()).clone(),
            gaps: cell.gaps.load(Relaxed),
            last_gap: cell.last_gap.load_full().map(|gap| (*gap).clone()),
            unreadable_objects: cell.unreadable_objects.load(Relaxed),
            wrong_kind: cell.wrong_kind.load(Relaxed),
            unknown_events: cell.unknown_events.load(Relaxed),
            versions_backwards: cell.versions_backwards.load(Relaxed),
            store_errors: cell.store_errors.load(Relaxed),
        }
    }

    /// When the version was last told by a list, a change or a bookmark, be it the same again.
    pub(crate) fn version_told(&self) -> Option<Instant> {
        self.0.instant(&self.0.version_told)
    }
}

impl fmt::Debug for StatusReader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.get().fmt(f)
    }
}

struct Cell {
    origin: Instant,
    phase: AtomicU8,
    synced: AtomicBool,
    listed_objects: AtomicU64,
    events: AtomicU64,
    /// Milliseconds since `origin`, plus one; zero is never.
    last_contact: AtomicU64,
    /// Likewise.
    last_event: AtomicU64,
    /// Likewise.
    version_told: AtomicU64,
    last_error: ArcSwapOption<(Error, Instant)>,
    version: VersionCell,
    watch_restarts: [AtomicU64; REASONS.len()],
    relists: [AtomicU64; REASONS.len()],
    stale_object_count: AtomicU64,
    stale_objects: ArcSwap<BTreeMap<ObjectKey, &'static str>>,
    gaps: AtomicU64,
    last_gap: ArcSwapOption<Gap>,
    unreadable_objects: AtomicU64,
    wrong_kind: AtomicU64,
    unknown_events: AtomicU64,
    versions_backwards: AtomicU64,
    store_errors: AtomicU64,
}

impl Cell {
    fn instant(&self, millis: &AtomicU64) -> Option<Instant> {
        let millis = millis.load(Relaxed).checked_sub(1)?;
        Some(self.origin + Duration::from_millis(millis))
    }
}

/// The writing side, of which there is one.
pub(super) struct StatusWriter(Arc<Cell>);

impl StatusWriter {
    pub(super) fn new() -> Self {
        Self(Arc::new(Cell {
            origin: Instant::now(),
            phase: AtomicU8::new(Phase::New as u8),
            synced: AtomicBool::default(),
            listed_objects: AtomicU64::default(),
            events: AtomicU64::default(),
            last_contact: AtomicU64::default(),
            last_event: AtomicU64::default(),
            version_told: AtomicU64::default(),
            last_error: ArcSwapOption::default(),
            version: VersionCell::default(),
            watch_restarts: Default::default(),
            relists: Default::default(),
            stale_object_count: AtomicU64::default(),
            stale_objects: ArcSwap::default(),
            gaps: AtomicU64::default(),
            last_gap: ArcSwapOption::default(),
            unreadable_objects: AtomicU64::default(),
            wrong_kind: AtomicU64::default(),
            unknown_events: AtomicU64::default(),
            versions_backwards: AtomicU64::default(),
            store_errors: AtomicU64::default(),
        }))
    }

    pub(super) fn reader(&self) -> StatusReader {
        StatusReader(self.0.clone())
    }

    pub(super) fn phase(&self, phase: Phase) {
        self.0.phase.store(phase as u8, Relaxed);
    }

    pub(super) fn synced(&self) {
        self.0.synced.store(true, Relaxed);
    }

    pub(super) fn contact(&self) {
        let millis = u64::try_from(self.0.origin.elapsed().as_millis()).unwrap_or(u64::MAX);
        self.0.last_contact.store(millis.saturating_add(1), Relaxed);
    }

    pub(super) fn error(&self, error: &Error) {
        self.0.last_error.store(Some(Arc::new((error.clone(), Instant::now()))));
    }

    pub(super) fn list_begins(&self) {
        self.0.listed_objects.store(0, Relaxed);
    }

    pub(super) fn listed_object(&self) {
        self.0.listed_objects.fetch_add(1, Relaxed);
    }

    pub(super) fn listed_objects(&self) -> u64 {
        self.0.listed_objects.load(Relaxed)
    }

    /// An event came, with the contact that was noted just before: the clock is not asked again.
    pub(super) fn event(&self) {
        self.0.events.fetch_add(1, Relaxed);
        self.0.last_event.store(self.0.last_contact.load(Relaxed), Relaxed);
    }

    /// The server has told a version, with the contact that was noted just before.
    pub(super) fn version(&self, version: &ResourceVersion) {
        self.0.version.set(version);
        self.0.version_told.store(self.0.last_contact.load(Relaxed), Relaxed);
    }

    pub(super) fn watch_restarted(&self, reason: Reason) {
        self.0.watch_restarts[reason as usize].fetch_add(1, Relaxed);
    }

    pub(super) fn relisted(&self, reason: Reason) {
        self.0.relists[reason as usize].fetch_add(1, Relaxed);
    }

    /// Only so many are named: a server that sends thousands of bad objects shall not have them copied for each.
    pub(super) fn stale_objects(&self, objects: &BTreeMap<ObjectKey, &'static str>) {
        self.0.stale_object_count.store(objects.len() as u64, Relaxed);
        let named = objects.iter().take(defaults::NAMED_STALE_OBJECTS);
        self.0.stale_objects.store(Arc::new(named.map(|(key, problem)| (key.clone(), *problem)).collect()));
    }

    pub(super) fn gap(&self, gap: &Gap) {
        self.0.gaps.fetch_add(1, Relaxed);
        self.0.last_gap.store(Some(Arc::new(gap.clone())));
    }

    pub(super) fn unreadable_object(&self) {
        self.0.unreadable_objects.fetch_add(1, Relaxed);
    }

    pub(super) fn wrong_kind(&self) -> u64 {
        self.0.wrong_kind.fetch_add(1, Relaxed)
    }

    pub(super) fn unknown_event(&self) -> u64 {
        self.0.unknown_events.fetch_add(1, Relaxed)
    }

    pub(super) fn version_backwards(&self) {
        self.0.versions_backwards.fetch_add(1, Relaxed);
    }

    pub(super) fn store_error(&self) {
        self.0.store_errors.fetch_add(1, Relaxed);
    }
}

/// However the reflector ends, nobody shall think that it still watches.
impl Drop for StatusWriter {
    fn drop(&mut self) {
        self.phase(Phase::Stopped);
    }
}

/// A version that is written with every event, without an allocation where it is a number that fits.
#[derive(Default)]
struct VersionCell {
    /// The version, or one of the two marks below.
    number: AtomicU64,
    text: ArcSwap<ResourceVersion>,
}

const UNSET: u64 = 0;
const IN_TEXT: u64 = u64::MAX;

impl VersionCell {
    fn set(&self, version: &ResourceVersion) {
        let number = match version.as_str() {
            "" => Some(UNSET),
            text if text.starts_with(['0', '+']) => None,
            text => text.parse().ok().filter(|number| *number != IN_TEXT),
        };
        if number.is_none() {
            self.text.store(Arc::new(version.clone()));
        }
        // Released, so that whoever sees the mark sees the text.
        self.number.store(number.unwrap_or(IN_TEXT), std::sync::atomic::Ordering::Release);
    }

    fn get(&self) -> ResourceVersion {
        match self.number.load(std::sync::atomic::Ordering::Acquire) {
            UNSET => ResourceVersion::unset(),
            IN_TEXT => (**self.text.load()).clone(),
            number => ResourceVersion::from(number.to_string().as_str()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_version_is_read_back_as_it_was_written() {
        let cell = VersionCell::default();
        let max = u64::MAX.to_string();
        for text in ["", "7", "0", "007", "+7", "v7", &max, "18446744073709551614", "99999999999999999999999", "7"] {
            cell.set(&text.into());
            assert_eq!(cell.get().as_str(), text);
        }
    }
}
