//! For how long was nothing seen, and why?
//!
//! Between two watches a reflector is blind. Nothing is lost by that: the next watch begins where the last one ended, or a
//! list shows what has changed meanwhile. But people want to know, and an informer that says so can be believed when it is
//! silent.

use std::time::Duration;

use tokio::time::Instant;

use super::{Reason, Reflector};
use crate::Error;

/// A time in which there was no watch.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Gap {
    /// What ended the watch, and what then kept another from being opened, each once, in this order. None, if somebody
    /// cancelled [`list_and_watch`](Reflector::list_and_watch) and later called it again.
    pub reasons: Vec<Reason>,
    /// The last error of those, if there was one: a server that ends a watch in time makes none.
    pub error: Option<Error>,
    /// How long it was: from the end of the watch, or from the last that was heard of it if it fell silent, to the opening of
    /// the next.
    pub lasted: Duration,
    /// How many objects a list showed in between; none, if the next watch went on where the last one ended.
    pub listed: Option<u64>,
}

/// A gap that has not ended.
pub(super) struct Blind {
    since: Instant,
    reasons: Vec<Reason>,
    error: Option<Error>,
    listed: Option<u64>,
}

impl Reflector {
    /// There is no watch any more. Before the first one there is no gap.
    pub(super) fn goes_blind(&mut self, since: Instant) {
        if self.has_watched {
            self.blind.get_or_insert_with(|| Blind { since, reasons: Vec::new(), error: None, listed: None });
        }
    }

    /// That is why.
    pub(super) fn is_blind_because(&mut self, reason: Reason, error: Option<&Error>) {
        let Some(blind) = &mut self.blind else { return };
        if !blind.reasons.contains(&reason) {
            blind.reasons.push(reason);
        }
        blind.error = error.cloned().or_else(|| blind.error.take());
    }

    /// A list has shown everything.
    pub(super) fn has_listed(&mut self, objects: u64) {
        if let Some(blind) = &mut self.blind {
            blind.listed = Some(objects);
        }
    }

    /// There is a watch again.
    pub(super) fn sees_again(&mut self) {
        self.has_watched = true;
        let Some(Blind { since, reasons, error, listed }) = self.blind.take() else { return };
        let gap = Gap { reasons, error, lasted: since.elapsed(), listed };
        self.status.gap(&gap);
        if let Some(hook) = &self.settings.on_gap {
            hook(&gap);
        }
    }
}
