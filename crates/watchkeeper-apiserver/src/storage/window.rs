//! The latest changes of a kind.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use super::{Change, TooOld};
use crate::defaults::SHARED_LINES;

/// Changes in the order in which they happened. All that were forgotten are at or before `compacted`.
#[derive(Default)]
pub(super) struct Window {
    changes: VecDeque<Arc<Change>>,
    compacted: u64,
}

impl Window {
    pub(super) fn new(compacted: u64) -> Self {
        Self { changes: VecDeque::new(), compacted }
    }

    pub(super) fn push(&mut self, change: Arc<Change>, limit: usize) {
        self.changes.push_back(change);
        if let Some(old) = self.changes.len().checked_sub(SHARED_LINES).and_then(|i| self.changes.get(i)) {
            old.grow_old();
        }
        while self.changes.len() > limit {
            self.forget_oldest();
        }
    }

    /// Forgets what is older than `age`.
    pub(super) fn expire(&mut self, now: Instant, age: Duration) {
        while self.changes.front().is_some_and(|oldest| now.saturating_duration_since(oldest.at()) > age) {
            self.forget_oldest();
        }
    }

    /// Forgets everything up to a revision.
    pub(super) fn compact(&mut self, revision: u64) {
        while self.changes.front().is_some_and(|oldest| oldest.revision() <= revision) {
            self.changes.pop_front();
        }
        self.compacted = self.compacted.max(revision);
    }

    /// Whether all changes after a revision are here.
    pub(super) fn reaches_back_to(&self, revision: u64) -> Result<(), TooOld> {
        if revision >= self.compacted { Ok(()) } else { Err(TooOld { oldest: self.compacted }) }
    }

    /// The changes after a revision, oldest first.
    pub(super) fn since(&self, revision: u64) -> impl DoubleEndedIterator<Item = &Arc<Change>> {
        let start = self.changes.partition_point(|change| change.revision() <= revision);
        self.changes.range(start..)
    }

    fn forget_oldest(&mut self) {
        if let Some(oldest) = self.changes.pop_front() {
            self.compacted = self.compacted.max(oldest.revision());
        }
    }
}
