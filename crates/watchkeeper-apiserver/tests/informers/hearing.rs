//! What a handler hears, checked event by event, and folded up.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard};

use watchkeeper::{Cached, Cause, Event, HandlerHandle};

/// The states of each key that the server had, and its deletions.
pub(crate) type Journal = BTreeMap<String, BTreeSet<u64>>;

/// One handler's memory. Clones are the same.
#[derive(Clone)]
pub(crate) struct Hearing(Arc<Mutex<Heard>>);

pub(crate) struct Heard {
    name: String,
    how: How,
    /// Uid and version of what it was told last, by key.
    told: BTreeMap<String, State>,
    /// All versions of each key, in the order in which they came.
    versions: BTreeMap<String, Vec<u64>>,
    handle: Option<HandlerHandle>,
    /// What should not have been.
    wrong: Vec<String>,
    pub(crate) calls: u64,
}

/// How a handler asked to be told.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct How {
    pub(crate) coalesces: bool,
    /// It wants to hear of what has not changed, too.
    pub(crate) with_unchanged: bool,
    /// Some namespaces can be complete, and change, while others are not.
    pub(crate) partitioned: bool,
}

/// The order of the versions of one object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Order {
    /// As it should be.
    Rising,
    /// One state came in two forms.
    NotFalling,
    /// The server went back, and the status says so.
    Any,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct State {
    pub(crate) uid: String,
    pub(crate) version: u64,
}

impl State {
    pub(crate) fn of<K>(object: &Cached<K>) -> Self {
        let version = object.resource_version().as_str().parse().expect("a number");
        Self { uid: object.uid().unwrap_or_default().to_owned(), version }
    }
}

impl Hearing {
    pub(crate) fn new(name: &str, how: How) -> Self {
        Self(Arc::new(Mutex::new(Heard {
            name: name.to_owned(),
            how,
            told: BTreeMap::new(),
            versions: BTreeMap::new(),
            handle: None,
            wrong: Vec::new(),
            calls: 0,
        })))
    }

    pub(crate) fn is(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    pub(crate) fn get(&self) -> MutexGuard<'_, Heard> {
        self.0.lock().unwrap()
    }

    pub(crate) fn set_handle(&self, handle: &HandlerHandle) {
        self.get().handle = Some(handle.clone());
    }

    pub(crate) fn hear<K>(&self, event: &Event<K>) {
        self.get().hear(event);
    }
}

impl Heard {
    fn hear<K>(&mut self, event: &Event<K>) {
        self.calls += 1;
        let key = event.key().to_string();
        let now = State::of(event.object());
        let told = self.told.get(&key).cloned();
        let synced = self.handle.as_ref().is_some_and(HandlerHandle::has_synced);
        if event.cause() == Cause::Initial && synced {
            self.is_wrong(event, "it was synced before");
        }
        let is_first_state = !synced && !self.how.coalesces && !self.how.partitioned;
        if matches!(event, Event::Added { .. }) && event.cause() != Cause::Initial && is_first_state {
            self.is_wrong(event, "it was not synced, so this is part of the first state");
        }
        match event {
            Event::Added { cause, .. } => {
                if let Some(told) = told {
                    self.is_wrong(event, &format!("it knew {told:?}"));
                }
                if *cause == Cause::Resync {
                    self.is_wrong(event, "a resync adds nothing");
                }
                self.told.insert(key.clone(), now.clone());
            }
            Event::Updated { old, cause, .. } => {
                let old = State::of(old);
                if told.as_ref() != Some(&old) {
                    self.is_wrong(event, &format!("it was told {told:?} last"));
                }
                if old.uid != now.uid {
                    self.is_wrong(event, "it is another object");
                }
                if *cause == Cause::Initial {
                    self.is_wrong(event, "what there was at first was added");
                }
                self.told.insert(key.clone(), now.clone());
            }
            Event::Deleted { final_state_known, .. } => {
                match told {
                    None => self.is_wrong(event, "it did not know it"),
                    Some(told) if told.uid != now.uid => self.is_wrong(event, &format!("it knew {told:?}")),
                    Some(told) if !final_state_known && !self.how.coalesces && told != now => {
                        self.is_wrong(event, &format!("its last state was {told:?}"));
                    }
                    Some(_) => {}
                }
                self.told.remove(&key);
                // A deletion that was missed has no version of its own.
                if !final_state_known {
                    return;
                }
            }
        }
        if event.cause() != Cause::Resync {
            self.versions.entry(key).or_default().push(now.version);
        }
    }

    fn is_wrong<K>(&mut self, event: &Event<K>, why: &str) {
        self.wrong.push(format!("{}: {event:?}: {why}", self.name));
    }

    /// What is wrong, compared with what there is, and with what there ever was if that is known. No version comes behind a
    /// later one if they are in order.
    pub(crate) fn check(
        &self,
        store: &BTreeMap<String, State>,
        journal: Option<&Journal>,
        order: Order,
    ) -> Vec<String> {
        let mut wrong = self.wrong.clone();
        if self.told != *store {
            let differs = |key: &&String| self.told.get(*key) != store.get(*key);
            let keys: BTreeSet<&String> = self.told.keys().chain(store.keys()).filter(differs).collect();
            for key in keys {
                let (told, there) = (self.told.get(key), store.get(key));
                wrong.push(format!("{}: {key}: told {told:?}, there is {there:?}", self.name));
            }
        }
        let Some(journal) = journal else { return wrong };
        for (key, versions) in &self.versions {
            let known = journal.get(key);
            for version in versions.iter().filter(|version| !known.is_some_and(|known| known.contains(version))) {
                wrong.push(format!("{}: {key}@{version} never was", self.name));
            }
            let is_in_order = match order {
                Order::Rising if !self.how.with_unchanged => versions.is_sorted_by(|one, next| one < next),
                Order::Rising | Order::NotFalling => versions.is_sorted(),
                Order::Any => true,
            };
            if !is_in_order {
                wrong.push(format!("{}: {key} went through {versions:?}", self.name));
            }
        }
        wrong
    }
}
