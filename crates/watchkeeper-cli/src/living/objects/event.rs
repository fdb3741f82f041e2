//! Events: what is told of an object.

use jiff::Timestamp;
use serde_json::{Value, json};

/// What an event is about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::living) struct About {
    pub(in crate::living) api_version: &'static str,
    pub(in crate::living) kind: &'static str,
    pub(in crate::living) namespace: String,
    pub(in crate::living) name: String,
    pub(in crate::living) uid: String,
}

/// Something to be told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::living) struct Note {
    pub(in crate::living) about: About,
    pub(in crate::living) from: &'static str,
    pub(in crate::living) warning: bool,
    pub(in crate::living) reason: &'static str,
    pub(in crate::living) message: String,
}

impl Note {
    /// Where the event is kept: what is in no namespace has its events in `default`.
    pub(in crate::living) fn namespace(&self) -> &str {
        if self.about.namespace.is_empty() { "default" } else { &self.about.namespace }
    }

    /// The event, under a name that the number makes one of its own.
    pub(in crate::living) fn event(&self, number: u64, now: Timestamp) -> Value {
        let About { api_version, kind, namespace, name, uid } = &self.about;
        json!({
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {"name": format!("{name}.{number:016x}"), "namespace": self.namespace()},
            "involvedObject": {
                "apiVersion": api_version, "kind": kind, "namespace": namespace, "name": name, "uid": uid,
            },
            "type": if self.warning { "Warning" } else { "Normal" },
            "reason": self.reason,
            "message": self.message,
            "source": {"component": self.from},
            "reportingComponent": self.from,
            "reportingInstance": "",
            "firstTimestamp": now,
            "lastTimestamp": now,
            "count": 1,
        })
    }
}
