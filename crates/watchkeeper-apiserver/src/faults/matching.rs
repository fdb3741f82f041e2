//! Which requests does a rule mean?

use super::serve::Asked;

/// Requests, by verb, kind and count.
///
/// ```
/// use watchkeeper_apiserver::Match;
///
/// let second_watch = Match::watch("pods").nth(2);
/// let all_later_lists = Match::list("deployments.apps").after(1);
/// let three_of_any_kind = Match::any().times(3);
/// # let _ = (second_watch, all_later_lists, three_of_any_kind);
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Match {
    /// `get`, `list`, `watch`, `create`, `update`, `patch`, `delete` or `deletecollection`; any, if there is none.
    pub verb: Option<String>,
    /// A plural, in whatever group (`deployments`), or with its group (`deployments.apps`); any, if there is none.
    pub kind: Option<String>,
    /// Only watches that send the state first; only those that do not.
    pub initial_events: Option<bool>,
    /// Only requests that came through a port; not those of this process.
    pub from_outside: bool,
    /// So many requests are let through first.
    pub after: u64,
    /// To so many requests it happens; to all, if there is none.
    pub times: Option<u64>,
}

impl Match {
    /// Every request for objects.
    pub fn any() -> Self {
        Self { verb: None, kind: None, initial_events: None, from_outside: false, after: 0, times: None }
    }

    /// Requests of a verb for a kind.
    pub fn verb(verb: &str, kind: &str) -> Self {
        Self { verb: Some(verb.to_owned()), kind: Some(kind.to_owned()), ..Self::any() }
    }

    /// Watches of a kind, streaming lists included.
    pub fn watch(kind: &str) -> Self {
        Self::verb("watch", kind)
    }

    /// Watches of a kind that send the whole state first.
    pub fn streaming_list(kind: &str) -> Self {
        Self { initial_events: Some(true), ..Self::watch(kind) }
    }

    /// Lists of a kind; not those that are watches.
    pub fn list(kind: &str) -> Self {
        Self::verb("list", kind)
    }

    /// Only the n-th of them, counted from 1.
    pub fn nth(self, n: u64) -> Self {
        self.after(n.saturating_sub(1)).times(1)
    }

    /// Only the next one.
    pub fn once(self) -> Self {
        self.times(1)
    }

    /// Not the first ones.
    pub fn after(mut self, requests: u64) -> Self {
        self.after = requests;
        self
    }

    /// No more than so many.
    pub fn times(mut self, requests: u64) -> Self {
        self.times = Some(requests);
        self
    }

    /// Only those that came through a port; not those of this process.
    pub fn from_outside(mut self) -> Self {
        self.from_outside = true;
        self
    }

    /// Whether a request is meant, whatever its number.
    pub(super) fn means(&self, asked: &Asked) -> bool {
        let Asked { verb, kind, initial_events, on_socket, .. } = asked;
        self.verb.as_ref().is_none_or(|wanted| wanted == verb)
            && (*on_socket || !self.from_outside)
            && self.kind.as_ref().is_none_or(|wanted| *wanted == kind.plural || *wanted == kind.resource())
            && self.initial_events.is_none_or(|wanted| *verb == "watch" && wanted == *initial_events)
    }
}
