//! `metadata.managedFields`: who owns what. Counterpart: `managedfields.go` and `capmanagers.go` in
//! `k8s.io/apimachinery/pkg/util/managedfields`.

use std::collections::BTreeMap;

use bytes::Bytes;
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use super::element::json;
use super::json::Order;
use super::set::Set;
use crate::defaults::UPDATE_MANAGERS;
use crate::validation::quoted;

/// Who owns what the oldest of too many updates owned.
const ANCIENT: &str = "ancient-changes";

/// What one manager owns.
#[derive(Debug, Clone)]
pub(crate) struct Entry {
    pub(super) owner: Owner,
    pub(super) set: Set,
    /// When this was last so, in seconds and UTC; such texts sort as the times do.
    pub(super) time: Option<String>,
    /// As it was written, as long as nothing has changed.
    written: Option<Bytes>,
}

/// Who owns something, and by which kind of write.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Owner {
    pub(super) manager: String,
    /// By applying it, and not by an update.
    pub(super) applied: bool,
    pub(super) api_version: String,
    pub(super) subresource: String,
}

/// Managed fields that cannot be understood.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("managed fields cannot be read")]
pub(crate) struct BadEntries;

/// An entry as JSON.
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Encoded {
    manager: Option<String>,
    operation: Option<String>,
    api_version: Option<String>,
    time: Option<String>,
    fields_type: Option<String>,
    fields_v1: Option<Set>,
    subresource: Option<String>,
}

impl Owner {
    /// Whether both are one: those who apply stay who they are in another version.
    pub(super) fn is(&self, other: &Self) -> bool {
        self.manager == other.manager
            && self.applied == other.applied
            && self.subresource == other.subresource
            && (self.applied || self.api_version == other.api_version)
    }

    /// What Go sorts owners by.
    pub(super) fn sort_key(&self) -> String {
        let mut parts = Vec::new();
        let mut part = |name: &str, value: &str| {
            if !value.is_empty() {
                parts.push(format!("\"{name}\":{}", json(&value.into())));
            }
        };
        part("manager", &self.manager);
        part("operation", self.operation());
        part("apiVersion", if self.applied { "" } else { &self.api_version });
        part("subresource", &self.subresource);
        format!("{{{}}}", parts.join(","))
    }

    /// As a message about a conflict shows it.
    pub(super) fn shown(&self) -> String {
        let mut shown = quoted(&self.manager);
        if !self.subresource.is_empty() {
            shown.push_str(&format!(" with subresource {}", quoted(&self.subresource)));
        }
        if !self.applied {
            shown.push_str(&format!(" using {}", self.api_version));
        }
        shown
    }

    fn operation(&self) -> &'static str {
        if self.applied { "Apply" } else { "Update" }
    }
}

impl Entry {
    pub(super) fn new(owner: Owner, set: Set, time: Option<String>) -> Self {
        Self { owner, set, time, written: None }
    }

    /// Gives it another set of fields.
    pub(super) fn changed(&mut self, set: Set) {
        self.set = set;
        self.written = None;
    }

    /// Gives it another time.
    pub(super) fn touched(&mut self, time: Option<String>) {
        self.time = time;
        self.written = None;
    }

    /// How many steps its longest path has; nothing, if that was looked at before.
    pub(super) fn depth(&self) -> usize {
        if self.written.is_some() { 0 } else { self.set.depth() }
    }

    fn read(encoded: Encoded) -> Result<Self, BadEntries> {
        let applied = match encoded.operation.as_deref() {
            Some("Apply") => true,
            Some("Update") => false,
            _ => return Err(BadEntries),
        };
        let api_version = encoded.api_version.filter(|version| !version.is_empty()).ok_or(BadEntries)?;
        if encoded.fields_type.as_deref() != Some("FieldsV1") {
            return Err(BadEntries);
        }
        let owner = Owner {
            manager: encoded.manager.unwrap_or_default(),
            applied,
            api_version,
            subresource: encoded.subresource.unwrap_or_default(),
        };
        Ok(Self::new(owner, encoded.fields_v1.unwrap_or_default(), encoded.time))
    }

    fn write(&self, order: Order, out: &mut Vec<u8>) {
        if let Some(written) = &self.written {
            out.extend_from_slice(written);
            return;
        }
        let owner = &self.owner;
        let mut is_first = true;
        let mut text = |out: &mut Vec<u8>, name: &str, value: &str| {
            if value.is_empty() {
                return;
            }
            out.extend_from_slice(if is_first { b"\"" } else { b",\"" });
            is_first = false;
            out.extend_from_slice(name.as_bytes());
            out.extend_from_slice(b"\":");
            // Writing a text into memory cannot fail.
            let _ = serde_json::to_writer(&mut *out, value);
        };
        let time = self.time.as_deref().unwrap_or_default();
        out.push(b'{');
        match order {
            Order::Steps => {
                text(out, "manager", &owner.manager);
                text(out, "operation", owner.operation());
                text(out, "apiVersion", &owner.api_version);
                text(out, "time", time);
                text(out, "fieldsType", "FieldsV1");
                out.extend_from_slice(b",\"fieldsV1\":");
                self.set.write(order, out);
                text(out, "subresource", &owner.subresource);
            }
            Order::Texts => {
                text(out, "apiVersion", &owner.api_version);
                text(out, "fieldsType", "FieldsV1");
                out.extend_from_slice(b",\"fieldsV1\":");
                self.set.write(order, out);
                text(out, "manager", &owner.manager);
                text(out, "operation", owner.operation());
                text(out, "subresource", &owner.subresource);
                text(out, "time", time);
            }
        }
        out.push(b'}');
    }
}

/// Reads managed fields that this server has written.
pub(super) fn read_written(bytes: &Bytes) -> Result<Vec<Entry>, BadEntries> {
    let raw: Vec<&RawValue> = serde_json::from_slice(bytes).map_err(|_| BadEntries)?;
    let entry = |raw: &RawValue| {
        let mut entry = Entry::read(serde_json::from_str(raw.get()).map_err(|_| BadEntries)?)?;
        entry.written = Some(bytes.slice_ref(raw.get().as_bytes()));
        Ok(entry)
    };
    raw.into_iter().map(entry).collect()
}

/// Reads managed fields that somebody has sent. Of two entries of one owner the later counts.
pub(super) fn read_sent(entries: &[Value]) -> Result<Vec<Entry>, BadEntries> {
    let mut read: BTreeMap<String, Entry> = BTreeMap::new();
    for value in entries {
        let mut entry = Entry::read(Encoded::deserialize(value).map_err(|_| BadEntries)?)?;
        if let Some(time) = &mut entry.time {
            let parsed: jiff::Timestamp = time.parse().map_err(|_| BadEntries)?;
            *time = crate::clock::text(parsed);
        }
        read.insert(entry.owner.sort_key(), entry);
    }
    Ok(read.into_values().collect())
}

/// Writes managed fields, sorted as Go sorts them. Nothing is written of nobody.
pub(super) fn write(entries: &mut [Entry], order: Order) -> Option<Bytes> {
    if entries.is_empty() {
        return None;
    }
    entries.sort_by(|one, other| {
        let (a, b) = (&one.owner, &other.owner);
        b.applied
            .cmp(&a.applied)
            .then_with(|| one.time.cmp(&other.time))
            .then_with(|| a.manager.cmp(&b.manager))
            .then_with(|| a.api_version.cmp(&b.api_version))
            .then_with(|| a.subresource.cmp(&b.subresource))
    });
    let mut out = vec![b'['];
    for (i, entry) in entries.iter().enumerate() {
        if i > 0 {
            out.push(b',');
        }
        entry.write(order, &mut out);
    }
    out.push(b']');
    Some(out.into())
}

/// Whether nothing differs but times.
pub(super) fn same_but_for_times(one: &[Entry], other: &[Entry]) -> bool {
    one.len() == other.len()
        && one.iter().zip(other).all(|(one, other)| one.owner == other.owner && one.set == other.set)
}

/// Folds the oldest updates into one entry of each version, so that there are not too many.
pub(super) fn cap(entries: &mut Vec<Entry>) {
    let mut count = entries.iter().filter(|entry| !entry.owner.applied).count();
    if count <= UPDATE_MANAGERS {
        return;
    }
    entries.sort_by_cached_key(|entry| (entry.owner.applied, entry.time.clone(), entry.owner.sort_key()));
    let mut folded: BTreeMap<String, Vec<Entry>> = BTreeMap::new();
    let mut kept = Vec::new();
    for entry in entries.drain(..) {
        if entry.owner.applied || count <= UPDATE_MANAGERS {
            kept.push(entry);
            continue;
        }
        let bucket = folded.entry(entry.owner.api_version.clone()).or_default();
        count -= usize::from(!bucket.is_empty());
        bucket.push(entry);
    }
    kept.extend(folded.into_values().filter_map(fold));
    *entries = kept;
}

/// Many entries of one version as one, with the time of the last.
fn fold(mut entries: Vec<Entry>) -> Option<Entry> {
    let last = entries.pop()?;
    if entries.is_empty() {
        return Some(last);
    }
    let mut sets: Vec<Set> = entries.into_iter().map(|entry| entry.set).chain([last.set]).collect();
    // Two and two, so that no set is copied again and again.
    while sets.len() > 1 {
        let mut pairs = sets.into_iter();
        sets = Vec::new();
        while let Some(one) = pairs.next() {
            sets.push(one.union(pairs.next().unwrap_or_default()));
        }
    }
    let owner = Owner { manager: ANCIENT.to_owned(), subresource: String::new(), ..last.owner };
    Some(Entry::new(owner, sets.pop().unwrap_or_default(), last.time))
}
