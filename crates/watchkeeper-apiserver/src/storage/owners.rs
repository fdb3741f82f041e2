//! Who belongs to whom, and what follows from a write: the work of the built-in controllers.
//!
//! Kept up with every write, under the storage's lock, so that nobody has to search for the dependents of what is gone.
//! Work that follows from a write is put into a queue, and done by whoever caused it, after the write and without the
//! lock; see `life`.

use std::collections::{BTreeSet, HashMap, HashSet, VecDeque};
use std::sync::Arc;

use serde_json::Value;

use super::Stored;
use super::document::Document;
use crate::kinds::Kind;

/// So few objects left in a namespace that goes are counted after each removal.
const COUNTED: usize = 100;

/// Where an object is.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Place {
    /// The kind's id.
    pub(crate) kind: usize,
    /// `namespace/name`, or `name`.
    pub(crate) key: Arc<str>,
}

/// What an object says of one of its owners.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Owner {
    uid: Box<str>,
    /// `blockOwnerDeletion`
    blocks: bool,
}

/// How an object that is being deleted treats its dependents.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Marks {
    /// It goes when they are gone: `foregroundDeletion`.
    pub(super) foreground: bool,
    /// It lets them go first: `orphan`.
    pub(super) orphan: bool,
}

/// Something that follows from a write.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Work {
    /// Something whose owners may be gone, or go.
    Dependent(Place),
    /// Something that is being deleted, and waits for its dependents or lets them go.
    Owner(Place),
    /// Something that is to forget an owner.
    Forget(Place, Box<str>),
    /// Something in a namespace that goes.
    Expel(Place),
    /// A namespace that goes.
    Namespace(String),
}

/// The index, and the queue.
#[derive(Default)]
pub(super) struct Owners {
    /// By the owner's uid.
    dependents: HashMap<Box<str>, Dependents>,
    /// Objects that go when nothing blocks it any more, by uid.
    waiting: HashMap<Box<str>, Place>,
    /// Namespaces that are being deleted.
    terminating: HashSet<Box<str>>,
    work: VecDeque<Work>,
    /// Looked at when nothing else is to be done.
    namespaces: BTreeSet<String>,
    /// How many pieces of work were taken, and are not done yet.
    taken: usize,
}

#[derive(Default)]
struct Dependents {
    all: BTreeSet<Place>,
    blocking: BTreeSet<Place>,
}

/// What an object says of its owners.
pub(super) fn owners(document: &Document) -> Box<[Owner]> {
    let references = document.metadata().get("ownerReferences").and_then(Value::as_array);
    let owners = references.into_iter().flatten().filter_map(|reference| {
        let blocks = reference.get("blockOwnerDeletion").and_then(Value::as_bool) == Some(true);
        Some(Owner { uid: reference.get("uid")?.as_str()?.into(), blocks })
    });
    owners.collect()
}

impl Marks {
    pub(super) fn of(document: &Document) -> Self {
        if !document.is_deleting() {
            return Self::default();
        }
        let finalizers = document.finalizers();
        Self { foreground: finalizers.contains(&"foregroundDeletion"), orphan: finalizers.contains(&"orphan") }
    }

    fn any(self) -> bool {
        self.foreground || self.orphan
    }
}

impl Owners {
    /// Keeps up with a write, and notes what follows from it. `left` counts, up to a limit, what the kind still has in the
    /// namespace of what was removed.
    pub(super) fn follow(
        &mut self,
        kind: &Kind,
        before: Option<&Stored>,
        after: Option<&Stored>,
        left: impl FnOnce(&str, usize) -> usize,
    ) {
        let Some(object) = after.or(before) else { return };
        let place = Place { kind: kind.id, key: object.shared_key() };
        let was =
            before.filter(|before| after.is_none_or(|after| before.uid() != after.uid() || before.differs(after)));
        let is = after.filter(|after| before.is_none_or(|before| before.uid() != after.uid() || before.differs(after)));
        if let Some(was) = was {
            self.leave(&place, was, is);
        }
        if let Some(is) = is {
            self.enter(&place, is);
        }
        let is_gone = before.filter(|before| after.is_none_or(|after| after.uid() != before.uid()));
        if let Some(gone) = is_gone {
            let dependents = self.dependents.get(gone.uid()).into_iter().flat_map(|dependents| &dependents.all);
            self.work.extend(dependents.cloned().map(Work::Dependent));
        }
        self.follow_namespaces(kind, before, after, left);
    }

    /// Keeps up with something that was put there as it is, in the place of something or of nothing.
    pub(super) fn refill(&mut self, kind: &Kind, before: Option<&Stored>, after: &Stored) {
        let place = Place { kind: kind.id, key: after.shared_key() };
        if let Some(before) = before {
            self.leave(&place, before, Some(after));
        }
        self.fill(kind, after);
    }

    /// Keeps up with something that was put there as it is: nothing follows but what had begun before.
    pub(super) fn fill(&mut self, kind: &Kind, object: &Stored) {
        let place = Place { kind: kind.id, key: object.shared_key() };
        self.note(&place, object);
        if is_namespace(kind) && object.is_deleting() {
            self.terminating.insert(object.name().into());
            self.namespaces.insert(object.name().to_owned());
        }
        if object.marks().any() {
            self.work.push_back(Work::Owner(place));
        }
    }

    pub(super) fn next(&mut self) -> Option<Work> {
        let next = self.work.pop_front().or_else(|| self.namespaces.pop_first().map(Work::Namespace));
        self.taken += usize::from(next.is_some());
        next
    }

    /// A piece of work is done.
    pub(super) fn done(&mut self) {
        self.taken = self.taken.saturating_sub(1);
    }

    /// Whether anything is to be done, or is being done by somebody.
    pub(super) fn has_work(&self) -> bool {
        !self.work.is_empty() || !self.namespaces.is_empty() || self.taken > 0
    }

    pub(super) fn add(&mut self, work: impl IntoIterator<Item = Work>) {
        for work in work {
            match work {
                Work::Namespace(name) => drop(self.namespaces.insert(name)),
                work => self.work.push_back(work),
            }
        }
    }

    /// What belongs to an owner; only what blocks its deletion, or all.
    pub(super) fn dependents(&self, uid: &str, blocking: bool) -> Vec<Place> {
        let Some(dependents) = self.dependents.get(uid) else { return Vec::new() };
        let places = if blocking { &dependents.blocking } else { &dependents.all };
        places.iter().cloned().collect()
    }

    pub(super) fn has_dependents(&self, uid: &str, blocking: bool) -> bool {
        self.dependents
            .get(uid)
            .is_some_and(|dependents| !blocking && !dependents.all.is_empty() || !dependents.blocking.is_empty())
    }

    fn enter(&mut self, place: &Place, object: &Stored) {
        self.note(place, object);
        if object.marks().any() {
            self.work.push_back(Work::Owner(place.clone()));
        } else if !object.owners().is_empty() {
            self.work.push_back(Work::Dependent(place.clone()));
        }
    }

    fn note(&mut self, place: &Place, object: &Stored) {
        // What belongs to itself is held by nothing else, and holds up nobody.
        for owner in object.owners().iter().filter(|owner| *owner.uid != *object.uid()) {
            let dependents = self.dependents.entry(owner.uid.clone()).or_default();
            dependents.all.insert(place.clone());
            if owner.blocks {
                dependents.blocking.insert(place.clone());
            }
        }
        if object.marks().foreground {
            self.waiting.insert(object.uid().into(), place.clone());
        }
    }

    /// Forgets what an object said of its owners, and tells those that waited for nothing but it.
    fn leave(&mut self, place: &Place, was: &Stored, is: Option<&Stored>) {
        if was.marks().foreground {
            self.waiting.remove(was.uid());
        }
        let blocked: HashSet<&str> =
            is.into_iter().flat_map(Stored::owners).filter(|owner| owner.blocks).map(|owner| &*owner.uid).collect();
        for owner in was.owners() {
            let Some(dependents) = self.dependents.get_mut(&owner.uid) else { continue };
            dependents.all.remove(place);
            let was_last = dependents.blocking.remove(place) && dependents.blocking.is_empty();
            if dependents.all.is_empty() {
                self.dependents.remove(&owner.uid);
            }
            if was_last
                && !blocked.contains(&*owner.uid)
                && let Some(waiting) = self.waiting.get(&owner.uid)
            {
                self.work.push_back(Work::Owner(waiting.clone()));
            }
        }
    }

    fn follow_namespaces(
        &mut self,
        kind: &Kind,
        before: Option<&Stored>,
        after: Option<&Stored>,
        left: impl FnOnce(&str, usize) -> usize,
    ) {
        if is_namespace(kind) {
            match (before, after) {
                (Some(before), None) => drop(self.terminating.remove(before.name())),
                (before, Some(after)) if after.is_deleting() && !before.is_some_and(Stored::is_deleting) => {
                    self.terminating.insert(after.name().into());
                    self.namespaces.insert(after.name().to_owned());
                }
                _ => {}
            }
        } else if let (Some(gone), None) = (before, after)
            && let Some(namespace) = gone.namespace()
            && self.terminating.contains(namespace)
            && left(namespace, COUNTED) < COUNTED
        {
            self.namespaces.insert(namespace.to_owned());
        }
    }
}

fn is_namespace(kind: &Kind) -> bool {
    kind.group.is_empty() && kind.plural == "namespaces"
}
