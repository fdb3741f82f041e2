//! From definitions to kinds, and back: what the controllers of a kube-apiserver do in the background, done at once.
//!
//! Whoever has written something calls [`settle`]. If definitions have changed since the last time, their names are
//! accepted or refused, their kinds are served, and what is left of deleted ones is removed, before anybody is answered.
//! A kube-apiserver takes a second or two for that, and clients wait for `Established` in both.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use super::definition::{Condition, Definition, Names};
use super::names::{self, Deletion, ESTABLISHED, Taken, set_status, terminating};
use super::{CLEANUP, approval, prepare};
use crate::fields;
use crate::kinds::Kind;
use crate::server::Inner;
use crate::storage::{Document, Expect, FileError, Saved, Stored};
use crate::verbs::delete::remove_object;

const GROUP: &str = "apiextensions.k8s.io";

/// What the server knows of its definitions.
#[derive(Default)]
pub(crate) struct Definitions {
    /// Their own kind.
    kind: OnceLock<Option<Arc<Kind>>>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// The last change of definitions that was looked at.
    seen: Option<u64>,
    /// By name.
    known: BTreeMap<String, Known>,
    /// Those that wait for their objects to go, by name.
    waiting: BTreeSet<String>,
    /// Names were given back: who was refused some may get them now.
    given_back: bool,
}

struct Known {
    uid: String,
    revision: u64,
    group: String,
    accepted: Names,
    /// Its names were not all accepted: others may have given them back since.
    conflicting: bool,
    /// It goes when its objects are gone.
    deleting: bool,
    /// The kind that it made.
    kind: Option<Arc<Kind>>,
    /// The last change of its objects after which it still had to wait for them.
    waited: Option<u64>,
}

/// Makes the kinds what the definitions say.
pub(crate) fn settle(server: &Arc<Inner>) {
    let kind = server.definitions.kind.get_or_init(|| server.registry.find(GROUP, "customresourcedefinitions"));
    let Some(kind) = kind else { return };
    let mut state = server.definitions.state.lock().unwrap_or_else(PoisonError::into_inner);
    state.clean_up(server, kind);
    // What is written here changes definitions again. It comes to an end: each round writes less.
    loop {
        let changed = server.storage.changed(kind);
        if state.seen == Some(changed) {
            return;
        }
        state.seen = Some(changed);
        state.round(server, kind);
    }
}

impl State {
    fn round(&mut self, server: &Arc<Inner>, kind: &Arc<Kind>) {
        let stored = server.storage.objects(kind);
        let present: BTreeMap<&str, &str> = stored.iter().map(|object| (object.name(), object.uid())).collect();
        let is_there = |name: &str, known: &Known| present.get(name).is_some_and(|uid| *uid == known.uid);
        let gone: Vec<String> =
            self.known.iter().filter(|(name, known)| !is_there(name, known)).map(|(name, _)| name.clone()).collect();
        for name in gone {
            self.forget(server, &name);
        }
        for object in &stored {
            let known = self.known.get(object.name());
            if known.is_none_or(|known| known.revision != object.revision()) {
                self.look_at(server, kind, object);
            }
        }
        if std::mem::take(&mut self.given_back) {
            for object in &stored {
                match self.known.get(object.name()).filter(|known| known.conflicting) {
                    Some(known) if known.revision == object.revision() => self.look_at(server, kind, object),
                    // It was written just now: in the next round.
                    Some(_) => self.given_back = true,
                    None => {}
                }
            }
        }
    }

    /// Brings those further whose objects have changed since they had to wait for them.
    fn clean_up(&mut self, server: &Arc<Inner>, kind: &Arc<Kind>) {
        for name in &self.waiting {
            if let Some(known) = self.known.get_mut(name)
                && known.kind.as_ref().is_some_and(|own| known.waited != Some(server.storage.changed(own)))
            {
                known.clean_up(server, kind, name);
            }
        }
    }

    /// A definition is gone: so are its kind, all its objects, and the watches on them.
    fn forget(&mut self, server: &Inner, name: &str) {
        let Some(known) = self.known.remove(name) else { return };
        self.waiting.remove(name);
        self.given_back = true;
        if let Some(kind) = known.kind {
            server.registry.undefine(&kind);
            server.storage.close(&kind);
        }
    }

    fn look_at(&mut self, server: &Arc<Inner>, kind: &Arc<Kind>, object: &Arc<Stored>) {
        let mut document = object.document();
        prepare::adopt(&mut document);
        let before = self.known.remove(object.name());
        let accepted = before.as_ref().map(|before| before.accepted.clone()).unwrap_or_default();
        let mut known = Known::new(object, before);
        let waits = document.is_deleting() && has_cleanup(&document);
        match waits {
            true => drop(self.waiting.insert(object.name().to_owned())),
            false => drop(self.waiting.remove(object.name())),
        }
        // A definition that came from a file may be anything.
        let usable = Definition::usable(document.as_value()).and_then(|_| Definition::of(document.as_value()));
        let Some(definition) = usable else {
            known.revision = object.revision();
            known.deleting = document.is_deleting();
            if waits {
                known.clean_up(server, kind, object.key());
            }
            self.known.insert(object.name().to_owned(), known);
            return;
        };
        let (names, conditions) = names::accept(&definition, &self.taken(&definition.spec.group));
        let now = server.clock.now();
        known.conflicting = conditions.iter().any(|condition| condition.status == "False");
        let conditions: Vec<Condition> = approval::condition(&document).into_iter().chain(conditions).collect();
        set_status(&mut document, Some(&names), &conditions, &now);
        if waits {
            set_status(&mut document, None, &[terminating(Deletion::InProgress)], &now);
        }
        known.revision = written(server, kind, object, &mut document).unwrap_or_default();
        known.group = definition.spec.group.clone();
        self.given_back |= names != accepted && accepted != Names::default();
        known.accepted = names;
        known.deleting = document.is_deleting();
        if let Some(definition) = Definition::of(document.as_value()).filter(|known| known.is_true(ESTABLISHED)) {
            known.serve(server, &definition);
        }
        if waits {
            known.clean_up(server, kind, object.key());
        }
        self.known.insert(object.name().to_owned(), known);
    }

    /// The names that the definitions of a group have.
    fn taken(&self, group: &str) -> Taken {
        let mut taken = Taken::default();
        self.known.values().filter(|known| known.group == group).for_each(|known| taken.add(&known.accepted));
        taken
    }
}

impl Known {
    fn new(object: &Stored, before: Option<Self>) -> Self {
        Self {
            uid: object.uid().to_owned(),
            revision: 0,
            group: String::new(),
            accepted: Names::default(),
            conflicting: false,
            deleting: false,
            kind: before.and_then(|before| before.kind),
            waited: None,
        }
    }

    /// Puts the kind in its place, unless it is there already: objects remember under which they were written.
    fn serve(&mut self, server: &Inner, definition: &Definition) {
        let Some(kind) = definition.kind(self.deleting).and_then(|kind| server.registry.define(kind)) else { return };
        match self.kind.replace(kind.clone()) {
            Some(before) if Arc::ptr_eq(&before, &kind) => {}
            // Those who watch a kind that is going are to hear of its end.
            Some(_) if self.deleting => {}
            Some(_) => server.storage.redefined(&kind),
            None => server.storage.open(&kind),
        }
    }

    /// Deletes all objects, and then lets the definition go. Those that something holds are waited for.
    fn clean_up(&mut self, server: &Arc<Inner>, kind: &Arc<Kind>, key: &str) {
        if let Some(own) = &self.kind {
            let changed = server.storage.changed(own);
            for object in server.storage.objects(own).iter().filter(|object| !object.is_deleting()) {
                remove_object(server, own, object);
            }
            // What belongs to them goes while it can still be told what they were.
            let has_work = server.storage.has_work();
            if server.storage.count(own) > 0 || has_work {
                self.waited = (!has_work).then_some(changed);
                return;
            }
        }
        let Some(current) = server.storage.get(kind, key) else { return };
        let mut document = current.document();
        let rest: Vec<String> =
            document.finalizers().into_iter().filter(|name| *name != CLEANUP).map(str::to_owned).collect();
        // Somebody else may be faster: then there will be another round.
        if rest.is_empty() {
            let _ = server.storage.delete(kind, key, Expect::Revision(current.revision()));
            return;
        }
        document.set_meta("finalizers", rest);
        set_status(&mut document, None, &[terminating(Deletion::Completed)], &server.clock.now());
        let _ = written(server, kind, &current, &mut document);
    }
}

fn has_cleanup(document: &Document) -> bool {
    document.finalizers().contains(&CLEANUP)
}

/// Writes a definition, if anything has changed; its revision, unless somebody else was faster. The server owns what it
/// writes.
fn written(server: &Arc<Inner>, kind: &Arc<Kind>, object: &Stored, document: &mut Document) -> Option<u64> {
    let old = object.document();
    if *document == old {
        return Some(object.revision());
    }
    fields::updated(&server.status_call(kind), &old, document);
    let expect = Expect::Revision(object.revision());
    server.storage.put(kind, object.key(), document, expect).ok().map(|written| written.revision())
}

/// Puts a file in the place of everything, with the kinds that its definitions make.
pub(crate) fn load(server: &Arc<Inner>, saved: Saved) -> Result<(), FileError> {
    let kinds: BTreeMap<(String, String), Kind> = saved
        .objects(GROUP, "customresourcedefinitions")
        .filter_map(Definition::usable)
        .filter_map(|definition| definition.kind(false))
        .map(|kind| ((kind.group.clone(), kind.plural.clone()), kind))
        .collect();
    let mut state = server.definitions.state.lock().unwrap_or_else(PoisonError::into_inner);
    let defined: BTreeSet<(String, String)> = state
        .known
        .values()
        .filter_map(|known| known.kind.as_ref())
        .map(|kind| (kind.group.clone(), kind.plural.clone()))
        .collect();
    saved.check(|group, plural| {
        let path = (group.to_owned(), plural.to_owned());
        kinds.contains_key(&path) || (!defined.contains(&path) && server.registry.find(group, plural).is_some())
    })?;
    // Nothing can go wrong any more. What was defined before is gone with everything else.
    for kind in std::mem::take(&mut *state).known.into_values().filter_map(|known| known.kind) {
        server.registry.undefine(&kind);
        server.storage.close(&kind);
    }
    drop(state);
    for kind in kinds.into_values() {
        // What is built in stays.
        let _ = server.registry.define(kind);
    }
    server.storage.load(&server.registry, saved);
    settle(server);
    Ok(())
}

/// The names of definitions whose kinds are not served: there is something wrong with them, or their names are taken.
pub(crate) fn unserved(server: &Inner) -> Vec<String> {
    let state = server.definitions.state.lock().unwrap_or_else(PoisonError::into_inner);
    state.known.iter().filter(|(_, known)| known.kind.is_none()).map(|(name, _)| name.clone()).collect()
}
