//! A store for the tests that let a reflector run on the server.

use std::collections::BTreeMap;
use std::sync::Mutex;

use watchkeeper::{Error, Object, ObjectKey, ReflectorStore, Replacement};

/// What the changes add up to.
#[derive(Default)]
pub(crate) struct Folded(pub(crate) Mutex<BTreeMap<ObjectKey, Object>>);

impl ReflectorStore for Folded {
    fn add(&self, object: Object) -> Result<(), Error> {
        self.0.lock().unwrap().insert(object.key().clone(), object);
        Ok(())
    }

    fn update(&self, object: Object) -> Result<(), Error> {
        self.add(object)
    }

    fn delete(&self, key: &ObjectKey, _: Option<Object>) -> Result<(), Error> {
        self.0.lock().unwrap().remove(key);
        Ok(())
    }

    fn replace(&self, list: Replacement) -> Result<(), Error> {
        let mut objects = self.0.lock().unwrap();
        let listed: BTreeMap<_, _> = list.items.into_iter().map(|object| (object.key().clone(), object)).collect();
        objects.retain(|key, _| !list.complete || list.unusable.contains(key));
        objects.extend(listed);
        Ok(())
    }
}
