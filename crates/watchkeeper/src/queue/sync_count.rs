//! Has everything of the first list been processed?

/// What is left of the first list.
///
/// A queue is synced once its first list has been processed: each entry that the list made, deletions included. If a
/// single change came before any list, there is nothing to wait for. Once synced is synced for ever.
#[derive(Debug, Default)]
pub(super) struct SyncCount {
    populated: bool,
    left: usize,
}

impl SyncCount {
    /// There was a list or a change.
    pub(super) fn is_populated(&self) -> bool {
        self.populated
    }

    /// There was one now.
    pub(super) fn populate(&mut self) {
        self.populated = true;
    }

    /// These entries are of the first list.
    pub(super) fn expect(&mut self, entries: usize) {
        self.left += entries;
    }

    /// These entries of the first list have been processed.
    pub(super) fn processed(&mut self, entries: usize) {
        self.left = self.left.saturating_sub(entries);
    }

    pub(super) fn is_synced(&self) -> bool {
        self.populated && self.left == 0
    }
}
