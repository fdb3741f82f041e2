//! Every write, in order: the truth that a test compares a cache with.

use std::collections::VecDeque;
use std::sync::Arc;

use super::Stored;
use crate::kinds::Kind;

/// One write.
#[derive(Debug, Clone)]
pub struct JournalEntry {
    /// Its revision.
    pub revision: u64,
    /// The kind of what was written.
    pub kind: Arc<Kind>,
    /// `namespace/name`, or `name`.
    pub key: Arc<str>,
    /// What is there since; nothing after a deletion.
    pub state: Option<Arc<Stored>>,
}

/// The latest writes, as many as it may hold.
pub(super) struct Journal {
    entries: VecDeque<JournalEntry>,
    limit: usize,
}

impl Journal {
    pub(super) fn new(limit: usize) -> Self {
        Self { entries: VecDeque::new(), limit }
    }

    pub(super) fn record(&mut self, kind: &Arc<Kind>, key: &Arc<str>, revision: u64, state: Option<Arc<Stored>>) {
        self.entries.push_back(JournalEntry { revision, kind: kind.clone(), key: key.clone(), state });
        while self.entries.len() > self.limit {
            self.entries.pop_front();
        }
    }

    pub(super) fn clear(&mut self) {
        self.entries.clear();
    }

    pub(super) fn since(&self, revision: u64) -> Vec<JournalEntry> {
        let start = self.entries.partition_point(|entry| entry.revision <= revision);
        self.entries.range(start..).cloned().collect()
    }
}
