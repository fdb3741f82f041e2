//! What became of waiting for several informers.

use std::collections::BTreeMap;

use super::Subject;
use crate::{Error, ErrorKind};

/// For each informer that was started, whether its first list has come: client-go's `SyncResult`.
#[derive(Debug, Clone)]
#[must_use = "informers may not have synced"]
pub struct SyncResult {
    /// One for each informer.
    pub informers: BTreeMap<Subject, Result<(), Error>>,
}

impl SyncResult {
    /// All have synced.
    pub fn is_ok(&self) -> bool {
        self.informers.values().all(Result::is_ok)
    }

    /// An error that says which have not, and why. If it is just one, its own.
    pub fn into_result(self) -> Result<(), Error> {
        let count = self.informers.len();
        let mut failed: Vec<(Subject, Error)> =
            self.informers.into_iter().filter_map(|(subject, result)| Some((subject, result.err()?))).collect();
        match failed.len() {
            0 => Ok(()),
            1 => failed.pop().map_or(Ok(()), |(_, error)| Err(error)),
            number => {
                let each: Vec<String> = failed.iter().map(|(subject, error)| format!("{subject}: {error}")).collect();
                Err(Error::new(
                    ErrorKind::NotSynced,
                    format_args!("{number} of {count} informers have not synced: {}", each.join("; ")),
                ))
            }
        }
    }
}
