//! The last changes.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use jiff::Timestamp;
use serde_json::Value;
use watchkeeper::{Event, Object, ObjectKey};

use super::detail;

/// How many are remembered: no screen shows more.
const REMEMBERED: usize = 128;

/// What happened to an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum What {
    /// It is new.
    Added,
    /// It changed.
    Modified,
    /// It is gone.
    Deleted,
}

/// A change. What is worth telling of it is found out when somebody looks.
#[derive(Debug)]
pub(crate) struct Change {
    /// When it was heard of.
    pub(crate) at: Timestamp,
    /// What happened.
    pub(crate) what: What,
    /// The kind's name.
    pub(crate) kind: Arc<str>,
    /// Which object.
    pub(crate) key: ObjectKey,
    states: Option<(Option<Object>, Object)>,
    detail: OnceLock<String>,
}

/// The last changes of all kinds.
#[derive(Debug, Default)]
pub(crate) struct Changes {
    last: Mutex<VecDeque<Arc<Change>>>,
}

impl What {
    /// As `kubectl get -w --output-watch-events` has it.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Added => "ADDED",
            Self::Modified => "MODIFIED",
            Self::Deleted => "DELETED",
        }
    }
}

impl Change {
    /// A change that an informer told of.
    pub(crate) fn of(kind: &Arc<str>, event: &Event<()>) -> Self {
        let (what, old) = match event {
            Event::Added { .. } => (What::Added, None),
            Event::Updated { old, .. } => (What::Modified, Some(old.object().clone())),
            Event::Deleted { .. } => (What::Deleted, None),
        };
        Self {
            at: Timestamp::now(),
            what,
            kind: kind.clone(),
            key: event.key().clone(),
            states: Some((old, event.object().object().clone())),
            detail: OnceLock::new(),
        }
    }

    /// A change of which the detail is known.
    #[cfg(test)]
    pub(crate) fn known(at: Timestamp, what: What, kind: &str, key: ObjectKey, detail: &str) -> Self {
        Self { at, what, kind: kind.into(), key, states: None, detail: detail.to_owned().into() }
    }

    /// One telling thing about it; often empty. Not escaped.
    pub(crate) fn detail(&self) -> &str {
        self.detail.get_or_init(|| {
            let Some((old, new)) = &self.states else { return String::new() };
            let Ok(new) = new.decode::<Value>() else { return String::new() };
            let old = old.as_ref().and_then(|old| old.decode::<Value>().ok());
            detail::detail(&self.kind, old.as_ref(), &new)
        })
    }
}

impl Changes {
    /// Adds one, and forgets the oldest when there are too many.
    pub(crate) fn push(&self, change: Change) {
        let mut last = self.lock();
        if last.len() >= REMEMBERED {
            last.pop_front();
        }
        last.push_back(Arc::new(change));
    }

    /// The last few, the newest first; of one kind, or of all.
    pub(crate) fn last(&self, most: usize, kind: Option<&str>) -> Vec<Arc<Change>> {
        let last = self.lock();
        last.iter().rev().filter(|change| kind.is_none_or(|kind| kind == &*change.kind)).take(most).cloned().collect()
    }

    fn lock(&self) -> MutexGuard<'_, VecDeque<Arc<Change>>> {
        self.last.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
