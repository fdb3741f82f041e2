//! What a handler hears, checked event by event, and folded up.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use watchkeeper::{Cached, Event, Object};

use crate::digest::{Digest, Digests};

/// How many of the things that are wrong are told.
const TOLD: usize = 10;

/// One handler's memory. Clones are the same.
#[derive(Debug, Clone)]
pub(crate) struct Hearing(Arc<Mutex<Heard>>);

#[derive(Debug)]
struct Heard {
    name: String,
    /// States in between may be left out.
    coalesces: bool,
    told: Digests,
    /// The last version of each key, also of those that are gone.
    versions: BTreeMap<String, u64>,
    wrong: Vec<String>,
    events: u64,
}

impl Hearing {
    pub(crate) fn new(name: &str, coalesces: bool) -> Self {
        Self(Arc::new(Mutex::new(Heard {
            name: name.to_owned(),
            coalesces,
            told: Digests::new(),
            versions: BTreeMap::new(),
            wrong: Vec::new(),
            events: 0,
        })))
    }

    fn lock(&self) -> MutexGuard<'_, Heard> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn hear<K>(&self, event: &Event<K>) {
        self.lock().hear(event);
    }

    /// What did not decode into its type.
    pub(crate) fn cannot_decode(&self, key: &str, error: &str) {
        self.lock().is_wrong(format!("{key} does not decode: {error}"));
    }

    pub(crate) fn forget_one(&self) {
        self.lock().told.pop_first();
    }

    pub(crate) fn events(&self) -> u64 {
        self.lock().events
    }

    /// It has been told of all that is in the cache, and of nothing else.
    pub(crate) fn is_equal(&self, cache: &Digests) -> bool {
        self.lock().told == *cache
    }

    /// What is wrong, compared with what is in the cache.
    pub(crate) fn check(&self, cache: &Digests) -> Vec<String> {
        let heard = self.lock();
        let differences = heard.told.differences(cache, "told", "cached");
        let all = heard.wrong.iter().cloned().chain(differences);
        all.map(|text| format!("handler {}: {text}", heard.name)).collect()
    }
}

impl Heard {
    fn hear<K>(&mut self, event: &Event<K>) {
        self.events += 1;
        let key = event.key().to_string();
        let now = self.digest(event.object());
        let told = self.told.get(&key).cloned();
        match event {
            Event::Added { .. } => {
                if told.is_some() {
                    self.is_wrong(format!("{event:?}: it knew {told:?}"));
                }
                self.told.insert(key.clone(), now.clone());
            }
            Event::Updated { old, .. } => {
                let old = self.digest(old);
                if told.as_ref() != Some(&old) {
                    self.is_wrong(format!("{event:?}: it was told {told:?} last"));
                }
                if old.uid != now.uid {
                    self.is_wrong(format!("{event:?}: it is another object"));
                }
                self.told.insert(key.clone(), now.clone());
            }
            Event::Deleted { final_state_known, .. } => {
                match told {
                    None => self.is_wrong(format!("{event:?}: it did not know it")),
                    Some(told) if told.uid != now.uid => self.is_wrong(format!("{event:?}: it knew {told:?}")),
                    Some(told) if !final_state_known && !self.coalesces && told != now => {
                        self.is_wrong(format!("{event:?}: its last state was {told:?}"));
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
        let version = now.version.parse().unwrap_or(0);
        if let Some(before) = self.versions.insert(key, version)
            && before >= version
        {
            self.is_wrong(format!("{event:?}: version {before} came before"));
        }
    }

    fn digest<K>(&mut self, object: &Cached<K>) -> Digest {
        let object: &Object = object.object();
        Digest::of(object).unwrap_or_else(|error| {
            self.is_wrong(format!("{} cannot be read: {error}", object.key()));
            Digest::default()
        })
    }

    fn is_wrong(&mut self, text: String) {
        if self.wrong.len() < TOLD {
            self.wrong.push(text);
        }
    }
}
