//! Which locks? Those of std; with the feature `model-check` those of the model checker, which tries out in which
//! order threads can get them.

use std::sync::PoisonError;

#[cfg(feature = "model-check")]
pub(crate) use shuttle::sync::{Condvar, Mutex, MutexGuard};
#[cfg(not(feature = "model-check"))]
pub(crate) use std::sync::{Condvar, Mutex, MutexGuard};

/// Takes a lock. One that somebody panicked under is taken all the same: what it guards is changed in steps that
/// cannot panic half way.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
