//! A controller that reads from a cache must not act again on what it has changed already.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::time::{Instant, timeout};
use watchkeeper::{Lister, ObjectKey, ResourceVersion};

/// How long work waits for the cache, before it is put off.
const PATIENCE: Duration = Duration::from_secs(2);
/// After so long the write is taken for lost: the server may have begun anew.
const FORGET: Duration = Duration::from_secs(60);

/// The newest write on behalf of each key, until the cache has it.
pub(super) struct OwnWrites<K> {
    lister: Lister<K>,
    newest: Mutex<HashMap<ObjectKey, (ResourceVersion, Instant)>>,
}

/// The cache has not seen our own write yet.
#[derive(Debug)]
pub(super) struct Behind;

impl fmt::Display for Behind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the cache has not seen the last write yet")
    }
}

impl std::error::Error for Behind {}

impl<K> OwnWrites<K> {
    pub(super) fn new(lister: Lister<K>) -> Self {
        Self { lister, newest: Mutex::default() }
    }

    /// On behalf of `key`, something was written that got this version.
    pub(super) fn note(&self, key: &ObjectKey, version: &str) {
        if !version.is_empty() {
            self.lock().insert(key.clone(), (version.into(), Instant::now()));
        }
    }

    /// Waits until the cache has what was written on behalf of `key`.
    pub(super) async fn seen(&self, key: &ObjectKey) -> Result<(), Behind> {
        let Some((version, since)) = self.lock().get(key).cloned() else { return Ok(()) };
        let is_seen = matches!(timeout(PATIENCE, self.lister.wait_for(&version)).await, Ok(Ok(())));
        if !is_seen && since.elapsed() < FORGET {
            return Err(Behind);
        }
        self.lock().remove(key);
        Ok(())
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<ObjectKey, (ResourceVersion, Instant)>> {
        self.newest.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
