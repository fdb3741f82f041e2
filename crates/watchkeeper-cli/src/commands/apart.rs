//! Work that something outside may hold up: a pipe that nobody reads, or a plugin that asks for a password.

use std::panic::resume_unwind;

use tokio::runtime::Handle;
use tokio::task::spawn_blocking;

use crate::failure::{Exit, Failure, Outcome};

/// Works on a thread of its own, so that Ctrl-C and deadlines are heard also while the work is held up. Work that nobody
/// waits for any more is left alone: it ends with the program.
pub(super) async fn apart<T, F>(work: impl FnOnce() -> F + Send + 'static) -> Outcome<T>
where
    T: Send + 'static,
    F: Future<Output = Outcome<T>>,
{
    let runtime = Handle::current();
    match spawn_blocking(move || runtime.block_on(work())).await {
        Ok(outcome) => outcome,
        Err(error) => match error.try_into_panic() {
            Ok(panic) => resume_unwind(panic),
            Err(error) => Err(Failure::new(Exit::Error, "the work was stopped").because(error)),
        },
    }
}
