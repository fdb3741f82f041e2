//! What came of a piece of work.

use std::error::Error as StdError;
use std::fmt;
use std::time::Duration;

/// What is to become of a key that was reconciled without an error.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Outcome {
    /// All is well until something changes.
    #[default]
    Done,
    /// It is to be tried again soon, with the backoff of the queue's limiter: something is not ready yet.
    Requeue,
    /// It is to be looked at again when so long has passed.
    RequeueAfter(Duration),
}

/// Why a key could not be reconciled. Any error becomes one with `?`, and is tried again; one that trying again cannot help is
/// made with [`terminal`](Self::terminal).
///
/// ```
/// use watchkeeper::{Outcome, ReconcileError};
///
/// fn replicas(text: &str) -> Result<Outcome, ReconcileError> {
///     let number: i32 = text.parse()?; // tried again
///     if number < 0 {
///         return Err(ReconcileError::terminal("there cannot be fewer than none")); // not tried again until something changes
///     }
///     Ok(Outcome::Done)
/// }
/// # assert!(replicas("-1").unwrap_err().is_terminal());
/// ```
pub struct ReconcileError {
    error: Box<dyn StdError + Send + Sync>,
    terminal: bool,
}

impl ReconcileError {
    /// An error that trying again does not help: the key is left alone until something changes.
    pub fn terminal(error: impl Into<Box<dyn StdError + Send + Sync>>) -> Self {
        Self { error: error.into(), terminal: true }
    }

    /// Trying again does not help.
    pub fn is_terminal(&self) -> bool {
        self.terminal
    }

    /// The error, which can be one of a type of yours: `error.inner().downcast_ref::<MyError>()`.
    pub fn inner(&self) -> &(dyn StdError + Send + Sync + 'static) {
        &*self.error
    }

    /// The error itself.
    pub fn into_inner(self) -> Box<dyn StdError + Send + Sync> {
        self.error
    }
}

impl<E: Into<Box<dyn StdError + Send + Sync>>> From<E> for ReconcileError {
    fn from(error: E) -> Self {
        Self { error: error.into(), terminal: false }
    }
}

/// The error, and what caused it.
impl fmt::Display for ReconcileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.error)?;
        let mut cause = self.error.source();
        while let Some(error) = cause {
            write!(f, ": {error}")?;
            cause = error.source();
        }
        Ok(())
    }
}

impl fmt::Debug for ReconcileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")?;
        if self.terminal { f.write_str(" (terminal)") } else { Ok(()) }
    }
}
