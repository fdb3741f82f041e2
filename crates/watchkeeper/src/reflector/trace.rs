//! Says where the time went when something took long.

use std::fmt::Write as _;
use std::time::Duration;

use tokio::time::Instant;

/// The steps of something that should be quick.
pub(super) struct Trace {
    what: &'static str,
    start: Instant,
    steps: Vec<(Instant, &'static str)>,
}

impl Trace {
    pub(super) fn start(what: &'static str) -> Self {
        Self { what, start: Instant::now(), steps: Vec::with_capacity(4) }
    }

    /// A step is done.
    pub(super) fn step(&mut self, done: &'static str) {
        self.steps.push((Instant::now(), done));
    }

    /// Logs the steps if all together took longer than `limit`.
    pub(super) fn log_if_longer_than(self, limit: Duration) {
        let total = self.start.elapsed();
        if total <= limit {
            return;
        }
        let mut steps = String::new();
        let mut last = self.start;
        for (at, done) in &self.steps {
            let _ = write!(steps, "{done} after {:?}; ", at.duration_since(last));
            last = *at;
        }
        tracing::warn!(?total, steps = steps.trim_end_matches("; "), "{} was slow", self.what);
    }
}
