//! The objects of one kind, their latest changes, and who watches them.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::Arc;

use tokio::sync::mpsc;

use super::watcher::{Delivery, Filter, Watcher};
use super::window::Window;
use super::{Change, Stored};

/// One kind's part of the storage. Keys are `namespace/name`, and sort as texts, as they do in etcd.
pub(super) struct Table {
    pub(super) objects: BTreeMap<Arc<str>, Arc<Stored>>,
    pub(super) window: Window,
    pub(super) watchers: Vec<Watcher>,
    /// The revision of the last change, or of whatever made this table.
    pub(super) changed: u64,
    /// Its kind is gone.
    pub(super) closed: bool,
}

impl Table {
    pub(super) fn new(compacted: u64) -> Self {
        let window = Window::new(compacted);
        Self { objects: BTreeMap::new(), window, watchers: Vec::new(), changed: compacted, closed: false }
    }

    /// Makes a change, and tells everybody.
    pub(super) fn apply(&mut self, key: Arc<str>, change: Arc<Change>, limit: usize) {
        match change.after() {
            Some(after) => self.objects.insert(key, after.clone()),
            None => self.objects.remove(&key),
        };
        self.changed = change.revision();
        self.watchers.retain(|watcher| watcher.tell(&change));
        self.window.push(change, limit);
    }

    /// A queue for the changes that pass the filter.
    pub(super) fn subscribe(&mut self, filter: Filter, buffer: usize) -> mpsc::Receiver<Delivery> {
        self.watchers.retain(Watcher::is_alive);
        let (watcher, live) = Watcher::new(filter, buffer);
        // Who comes when the kind is gone finds the end at once.
        if !self.closed {
            self.watchers.push(watcher);
        }
        live
    }

    /// What is there and passes the filter.
    pub(super) fn matching(&self, filter: &Filter) -> Vec<Arc<Stored>> {
        let mut objects = self.range(filter.prefix(), "");
        objects.retain(|object| filter.matches(object));
        objects
    }

    /// The objects whose keys begin with `prefix` and are not before `start`.
    pub(super) fn range(&self, prefix: &str, start: &str) -> Vec<Arc<Stored>> {
        let from = Bound::Included(if start > prefix { start } else { prefix });
        let range = self.objects.range::<str, _>((from, Bound::Unbounded));
        range.take_while(|(key, _)| key.starts_with(prefix)).map(|(_, object)| object.clone()).collect()
    }

    /// How many objects a namespace has, up to a limit.
    pub(super) fn count_in(&self, namespace: &str, limit: usize) -> usize {
        let prefix = format!("{namespace}/");
        let range = self.objects.range::<str, _>((Bound::Included(prefix.as_str()), Bound::Unbounded));
        range.take_while(|(key, _)| key.starts_with(&prefix)).take(limit).count()
    }

    /// The same at a revision that the window reaches back to: what is there, with all later changes undone.
    pub(super) fn range_at(&self, prefix: &str, start: &str, revision: u64) -> Vec<Arc<Stored>> {
        let mut undone: BTreeMap<&str, Option<&Arc<Stored>>> = BTreeMap::new();
        for change in self.window.since(revision).rev() {
            if let Some(object) = change.before().or(change.after()) {
                undone.insert(object.key(), change.before());
            }
        }
        let mut objects = self.range(prefix, start);
        objects.retain(|object| !undone.contains_key(object.key()));
        let restored = undone.into_iter().filter(|(key, _)| key.starts_with(prefix) && *key >= start);
        objects.extend(restored.filter_map(|(_, before)| before.cloned()));
        objects.sort_by(|a, b| a.key().cmp(b.key()));
        objects
    }
}
