//! What was injected, beside what was written.

use std::fmt;

use jiff::Timestamp;

use super::Fault;
use crate::storage::JournalEntry;

/// One fault that was injected.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct FaultRecord {
    /// When, by the server's clock.
    pub time: Timestamp,
    /// The revision of the latest write before it.
    pub revision: u64,
    /// How often the server had lost its data before.
    pub life: u64,
    /// `watch pods`
    pub request: String,
    /// Path and query of the request.
    pub path: String,
    /// What happened to it.
    pub fault: Fault,
}

/// An entry of the journal: a write or a fault.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum Record {
    /// Something was written.
    Write(JournalEntry),
    /// Something went wrong, on purpose.
    Fault(FaultRecord),
}

impl fmt::Display for FaultRecord {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} at revision {}: {:?} for {} ({})", self.time, self.revision, self.fault, self.request, self.path)
    }
}

/// Never a part of an object.
impl fmt::Display for Record {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Fault(record) => record.fmt(f),
            Self::Write(entry) => {
                let what = if entry.state.is_some() { "written" } else { "deleted" };
                write!(f, "revision {}: {} {} {what}", entry.revision, entry.kind.resource(), entry.key)
            }
        }
    }
}

/// Writes and faults in the order in which they happened. Writes of former lives are gone, their faults are not.
pub(crate) fn merged(writes: Vec<JournalEntry>, faults: Vec<FaultRecord>, life: u64) -> Vec<Record> {
    let mut records = Vec::with_capacity(writes.len() + faults.len());
    let mut faults = faults.into_iter().peekable();
    for write in writes {
        while let Some(fault) = faults.next_if(|fault| fault.life < life || fault.revision < write.revision) {
            records.push(Record::Fault(fault));
        }
        records.push(Record::Write(write));
    }
    records.extend(faults.map(Record::Fault));
    records
}
