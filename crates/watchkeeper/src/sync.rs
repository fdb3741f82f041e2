//! Which locks? Those of std; with the feature `model-check` those of the model checker, which tries out in which
//! order threads can get them.

use std::sync::PoisonError;

#[cfg(feature = "model-check")]
pub(crate) use shuttle::sync::{Condvar, Mutex, MutexGuard, atomic};
#[cfg(not(feature = "model-check"))]
pub(crate) use std::sync::{Condvar, Mutex, MutexGuard, atomic};

/// Takes a lock. One that somebody panicked under is taken all the same: what it guards is changed in steps that
/// cannot panic half way.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Another thread may run here, for the model checker; the lock must be free. Written where something goes between threads
/// that it does not see: a bell of tokio's. (Its `yield_now` would also wake the task that calls it, and hide what is lost.)
#[inline]
pub(crate) fn step<T>(mutex: &Mutex<T>) {
    if cfg!(feature = "model-check") {
        drop(lock(mutex));
    }
}
