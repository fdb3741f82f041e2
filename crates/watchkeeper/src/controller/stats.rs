//! How is a controller doing?

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};

/// What a controller has done so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct ControllerStats {
    /// Workers that are at work.
    pub active: usize,
    /// Keys that were reconciled without an error.
    pub succeeded: u64,
    /// Errors, with those of the next three.
    pub failed: u64,
    /// Panics.
    pub panics: u64,
    /// Reconciliations that took too long.
    pub timeouts: u64,
    /// Errors after which a key was not tried again: terminal ones, and those after the last retry.
    pub given_up: u64,
}

/// Reads a controller's numbers while it runs. Cheap to clone.
#[derive(Debug, Clone, Default)]
pub struct StatsReader(Arc<Cell>);

#[derive(Debug, Default)]
struct Cell {
    active: AtomicUsize,
    succeeded: AtomicU64,
    failed: AtomicU64,
    panics: AtomicU64,
    timeouts: AtomicU64,
    given_up: AtomicU64,
}

impl StatsReader {
    /// The numbers at this moment.
    pub fn get(&self) -> ControllerStats {
        let cell = &*self.0;
        ControllerStats {
            active: cell.active.load(Relaxed),
            succeeded: cell.succeeded.load(Relaxed),
            failed: cell.failed.load(Relaxed),
            panics: cell.panics.load(Relaxed),
            timeouts: cell.timeouts.load(Relaxed),
            given_up: cell.given_up.load(Relaxed),
        }
    }

    /// Counts a worker as active until what is returned is dropped.
    pub(super) fn active(&self) -> Active {
        self.0.active.fetch_add(1, Relaxed);
        Active(self.clone())
    }

    pub(super) fn succeeded(&self) {
        self.0.succeeded.fetch_add(1, Relaxed);
    }

    pub(super) fn failed(&self) {
        self.0.failed.fetch_add(1, Relaxed);
    }

    pub(super) fn panicked(&self) {
        self.0.panics.fetch_add(1, Relaxed);
    }

    pub(super) fn timed_out(&self) {
        self.0.timeouts.fetch_add(1, Relaxed);
    }

    pub(super) fn gave_up(&self) {
        self.0.given_up.fetch_add(1, Relaxed);
    }
}

/// A worker that is at work.
pub(super) struct Active(StatsReader);

impl Drop for Active {
    fn drop(&mut self) {
        self.0.0.active.fetch_sub(1, Relaxed);
    }
}
