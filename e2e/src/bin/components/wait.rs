//! Waiting for what must come.

use std::time::Duration;

use anyhow::bail;
use tokio::time::Instant;
use watchkeeper_e2e::Failure;

/// How long anything may take. On a busy machine, controllers that wait for each other need their time.
pub(super) const PATIENCE: Duration = Duration::from_secs(120);

/// Asks until the answer is `Ok(None)`; what was missing last is said when time is over. An error of the question itself
/// ends it at once.
pub(super) async fn until(
    what: &str,
    mut missing: impl AsyncFnMut() -> Result<Option<String>, Failure>,
) -> Result<(), Failure> {
    let end = Instant::now() + PATIENCE;
    loop {
        let Some(missing) = missing().await? else { return Ok(()) };
        if Instant::now() > end {
            bail!("{what}: not within {} s: {missing}", PATIENCE.as_secs());
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

/// `None` if both are the same.
pub(super) fn differs<T: PartialEq + std::fmt::Debug>(what: &str, is: T, should: T) -> Option<String> {
    (is != should).then(|| format!("{what}: {is:?} and not {should:?}"))
}
