//! One write, as watchers see it.

use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use tokio::time::Instant;

use super::Stored;
use crate::kinds::{Kind, Version};

/// What a watcher is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum EventType {
    Added,
    Modified,
    Deleted,
}

/// How a watcher wants objects: in which version, whole or only their metadata.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Shape {
    pub(crate) version: String,
    pub(crate) partial: bool,
}

/// An object's states before and after a write.
pub(crate) struct Change {
    revision: u64,
    at: Instant,
    before: Option<Arc<Stored>>,
    after: Option<Arc<Stored>>,
    /// The lines that watchers have asked for so far, mostly one: there are as many as there are shapes. None are kept
    /// once the change has grown old.
    lines: Mutex<Option<Vec<(EventType, Shape, Bytes)>>>,
}

impl EventType {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Added => "ADDED",
            Self::Modified => "MODIFIED",
            Self::Deleted => "DELETED",
        }
    }
}

impl Change {
    pub(super) fn new(revision: u64, at: Instant, before: Option<Arc<Stored>>, after: Option<Arc<Stored>>) -> Self {
        Self { revision, at, before, after, lines: Mutex::new(Some(Vec::new())) }
    }

    pub(crate) fn revision(&self) -> u64 {
        self.revision
    }

    pub(super) fn at(&self) -> Instant {
        self.at
    }

    pub(super) fn before(&self) -> Option<&Arc<Stored>> {
        self.before.as_ref()
    }

    pub(super) fn after(&self) -> Option<&Arc<Stored>> {
        self.after.as_ref()
    }

    /// The line of a watch: encoded for the first watcher, shared with all others.
    pub(crate) fn line(&self, event: EventType, kind: &Arc<Kind>, shape: &Shape) -> Bytes {
        // Only the form that it was written in is shared.
        let is_own = self.after.as_ref().or(self.before.as_ref()).is_some_and(|object| object.is_of(kind));
        let mut lines = self.lines.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, _, line)) = lines.iter().flatten().find(|(e, s, _)| is_own && *e == event && s == shape) {
            return line.clone();
        }
        let line = self.state(event).map(|state| line(event, kind, &state, shape)).unwrap_or_default();
        if let Some(lines) = lines.as_mut().filter(|_| is_own) {
            lines.push((event, shape.clone(), line.clone()));
        }
        line
    }

    /// The state that an event shows. Who no longer matches is told the last one that did, with this write's version.
    pub(crate) fn state(&self, event: EventType) -> Option<Arc<Stored>> {
        match (event, &self.before, &self.after) {
            (EventType::Deleted, Some(before), _) => Some(Arc::new(before.stamped(self.revision))),
            (_, _, after) => after.clone(),
        }
    }

    /// Keeps no more lines: who still needs one is late, and probably alone.
    pub(super) fn grow_old(&self) {
        *self.lines.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }
}

/// The line of a watch that shows an object.
pub(crate) fn line(event: EventType, kind: &Arc<Kind>, object: &Stored, shape: &Shape) -> Bytes {
    let mut line = Vec::with_capacity(object.json().len() + 64);
    line.extend_from_slice(b"{\"type\":\"");
    line.extend_from_slice(event.name().as_bytes());
    line.extend_from_slice(b"\",\"object\":");
    line.extend_from_slice(&shape.apply(kind, object));
    line.extend_from_slice(b"}\n");
    line.into()
}

impl Shape {
    /// The object in this shape.
    pub(crate) fn apply(&self, kind: &Arc<Kind>, object: &Stored) -> Bytes {
        if self.partial {
            let metadata = object.metadata(kind);
            let head: &[u8] = br#"{"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/v1","metadata":"#;
            return [head, &metadata, b"}"].concat().into();
        }
        object.in_version(kind, self.version_of(kind))
    }

    pub(crate) fn version_of<'a>(&self, kind: &'a Kind) -> &'a Version {
        // The router found the version; a kind that was registered anew without it is shown as it is stored.
        kind.version(&self.version).unwrap_or_else(|| kind.storage_version())
    }
}
