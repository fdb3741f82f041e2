//! What has a handler heard?
//!
//! A handler tells of each call, which takes a few nanoseconds, and whoever waits for something is woken when it has come:
//! nobody looks again and again while something is measured.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

use tokio::sync::Notify;
use tokio::time::timeout;

use super::{Outcome, usage};

/// When a handler has not been called for so long, and the process has not worked, nothing will come.
const SILENCE: Duration = Duration::from_secs(30);
/// A process that works uses more than this meanwhile.
const WORK: Duration = Duration::from_secs(1);

/// What one handler has heard. It is called by one thread at a time.
#[derive(Debug)]
pub(crate) struct Heard {
    calls: AtomicU64,
    newest: AtomicU64,
    /// Who waits is woken at so many calls, and at this version.
    goal_calls: AtomicU64,
    goal_version: AtomicU64,
    reached: Notify,
    recording: AtomicBool,
    arrivals: Mutex<Vec<Arrival>>,
    silence: Duration,
}

/// When a version was heard of.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Arrival {
    pub(crate) version: u64,
    /// Nanoseconds since 1970, as in the server.
    pub(crate) nanos: u64,
}

impl Heard {
    pub(crate) fn new() -> Self {
        Self::with_silence(SILENCE)
    }

    fn with_silence(silence: Duration) -> Self {
        Self {
            silence,
            calls: AtomicU64::new(0),
            newest: AtomicU64::new(0),
            goal_calls: AtomicU64::new(u64::MAX),
            goal_version: AtomicU64::new(u64::MAX),
            reached: Notify::new(),
            recording: AtomicBool::new(false),
            arrivals: Mutex::default(),
        }
    }

    /// The handler was called with an object of this version.
    pub(crate) fn tell(&self, version: &str) {
        let version = version.parse().unwrap_or(0);
        if self.recording.load(SeqCst) {
            self.arrivals().push(Arrival { version, nanos: now() });
        }
        let calls = self.calls.fetch_add(1, SeqCst) + 1;
        let newest = self.newest.fetch_max(version, SeqCst).max(version);
        if calls >= self.goal_calls.load(SeqCst) || newest >= self.goal_version.load(SeqCst) {
            self.reached.notify_one();
        }
    }

    /// Waits until it was called so often.
    pub(crate) async fn until_calls(&self, calls: u64) -> Outcome {
        self.until(&self.goal_calls, &self.calls, calls, "call").await
    }

    /// Waits until it has heard of this version, or a newer one.
    pub(crate) async fn until_version(&self, version: u64) -> Outcome {
        self.until(&self.goal_version, &self.newest, version, "version").await
    }

    async fn until(&self, goal: &AtomicU64, current: &AtomicU64, wanted: u64, what: &str) -> Outcome {
        goal.store(wanted, SeqCst);
        while current.load(SeqCst) < wanted {
            let before = (self.calls.load(SeqCst), usage::cpu());
            let silent = timeout(self.silence, self.reached.notified()).await.is_err();
            if silent && self.calls.load(SeqCst) == before.0 && usage::cpu() < before.1 + WORK {
                let current = current.load(SeqCst);
                return Err(
                    format!("a handler hears nothing any more: {what} {wanted} was to come after {current}").into()
                );
            }
        }
        goal.store(u64::MAX, SeqCst);
        Ok(())
    }

    /// Notes from now on when calls come, of which there will be about so many.
    pub(crate) fn record(&self, about: usize) {
        *self.arrivals() = Vec::with_capacity(about);
        self.recording.store(true, SeqCst);
    }

    /// What came since then. The end of the notes.
    pub(crate) fn recorded(&self) -> Vec<Arrival> {
        self.recording.store(false, SeqCst);
        std::mem::take(&mut self.arrivals())
    }

    fn arrivals(&self) -> MutexGuard<'_, Vec<Arrival>> {
        self.arrivals.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn now() -> u64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    #[tokio::test]
    async fn who_waits_is_woken_by_the_call_that_was_waited_for() {
        let heard = Arc::new(Heard::new());
        let handler = heard.clone();
        let telling = tokio::spawn(async move {
            for version in ["1", "2", "4", "3"] {
                tokio::task::yield_now().await;
                handler.tell(version);
            }
        });
        heard.until_calls(2).await.expect("two calls");
        heard.until_version(3).await.expect("the version, or a newer one");
        heard.until_calls(4).await.expect("four calls");
        telling.await.expect("it has told all");
        // What has come already is not waited for.
        heard.until_version(4).await.expect("the newest version");
    }

    #[tokio::test]
    async fn what_does_not_come_is_an_error() {
        let heard = Heard::with_silence(Duration::from_millis(1));
        heard.tell("7");
        let error = heard.until_version(8).await.expect_err("nothing comes");
        assert_eq!(error.to_string(), "a handler hears nothing any more: version 8 was to come after 7");
    }

    #[test]
    fn only_what_comes_meanwhile_is_recorded() {
        let heard = Heard::new();
        heard.tell("1");
        heard.record(1);
        heard.tell("2");
        let arrivals = heard.recorded();
        heard.tell("3");
        assert_eq!(arrivals.iter().map(|arrival| arrival.version).collect::<Vec<_>>(), [2]);
        assert!(arrivals[0].nanos > 1_700_000_000_000_000_000);
        assert!(heard.recorded().is_empty());
    }
}
