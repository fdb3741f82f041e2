//! The queues as stores, as queues of any kind, and as what a reflector writes into.

use super::{AtomicFifo, DeltaFifo, ReplacedAll};
use crate::{Error, Key, KeyError, Object, ObjectKey, Queue, ReflectorStore, Replacement, ResourceVersion, StoreOps};

macro_rules! store_and_queue {
    ($queue:ident) => {
        impl<T: Clone + Send + Sync, K: Key> StoreOps<T, K> for $queue<T, K> {
            fn add(&self, value: T) -> Result<(), KeyError> {
                self.add(value)
            }

            fn update(&self, value: T) -> Result<(), KeyError> {
                self.update(value)
            }

            fn delete(&self, value: T) -> Result<(), KeyError> {
                self.delete(value)
            }

            fn replace(&self, values: Vec<T>, version: ResourceVersion) -> Result<(), KeyError> {
                self.replace(values, version)
            }

            fn list(&self) -> Vec<T> {
                self.list()
            }

            fn get(&self, value: &T) -> Result<Option<T>, KeyError> {
                self.get(value)
            }

            fn resync(&self) -> Result<(), KeyError> {
                self.resync();
                Ok(())
            }
        }

        impl<T: Clone + Send + Sync, K: Key> Queue<T, K> for $queue<T, K> {
            fn add_if_not_present(&self, value: T) -> Result<(), KeyError> {
                self.add_if_not_present(value)
            }

            fn has_synced(&self) -> bool {
                self.has_synced()
            }

            fn close(&self) {
                self.close();
            }
        }
    };
}

store_and_queue!(DeltaFifo);
store_and_queue!(AtomicFifo);

/// For queues that keep objects under their own keys: the key function of [`DeltaFifo::objects`], or an equal one.
impl ReflectorStore for DeltaFifo<Object> {
    fn add(&self, object: Object) -> Result<(), Error> {
        Ok(self.add(object)?)
    }

    fn update(&self, object: Object) -> Result<(), Error> {
        Ok(self.update(object)?)
    }

    fn delete(&self, key: &ObjectKey, last: Option<Object>) -> Result<(), Error> {
        match last {
            Some(last) => self.delete(last)?,
            None => self.delete_key(key.clone(), None),
        }
        Ok(())
    }

    /// Objects that could not be used count as present, and nothing is said of them. An incomplete list deletes
    /// nothing.
    fn replace(&self, list: Replacement) -> Result<(), Error> {
        Ok(self.replace_with(list.items, list.unusable, list.complete)?)
    }

    fn resync(&self) -> Result<(), Error> {
        self.resync();
        Ok(())
    }

    fn more_to_come(&self, more: bool) {
        self.hold(more);
    }
}

/// For queues that keep objects under their own keys: the key function of [`AtomicFifo::objects`], or an equal one.
impl ReflectorStore for AtomicFifo<Object> {
    fn add(&self, object: Object) -> Result<(), Error> {
        Ok(self.add(object)?)
    }

    fn update(&self, object: Object) -> Result<(), Error> {
        Ok(self.update(object)?)
    }

    fn delete(&self, key: &ObjectKey, last: Option<Object>) -> Result<(), Error> {
        match last {
            Some(last) => self.delete(last)?,
            None => self.delete_key(key.clone(), None),
        }
        Ok(())
    }

    fn replace(&self, list: Replacement) -> Result<(), Error> {
        let Replacement { items, resource_version, unusable, complete } = list;
        Ok(self.replace_with(ReplacedAll { items, resource_version, unusable, complete })?)
    }

    fn resync(&self) -> Result<(), Error> {
        self.resync();
        Ok(())
    }

    fn bookmark(&self, version: &ResourceVersion) -> Result<(), Error> {
        self.bookmark(version.clone());
        Ok(())
    }

    fn more_to_come(&self, more: bool) {
        self.hold(more);
    }
}
