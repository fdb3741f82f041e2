//! What a restart leaves of the storage.

use super::Storage;
use super::owners::Owners;

impl Storage {
    /// Ends all watches, behind what is queued for them. Nothing else is lost.
    pub(crate) fn disconnect(&self) {
        for table in &mut self.lock().tables {
            table.watchers.clear();
        }
    }

    /// Loses everything: objects, history, journal and revision, and with them all watches.
    pub(crate) fn wipe(&self) {
        let mut state = self.lock();
        state.tables.clear();
        state.journal.clear();
        if let Some(owners) = &mut state.owners {
            *owners = Owners::default();
        }
        state.compacted = 0;
        state.revision = 1;
        self.revision.send_replace(1);
    }
}
