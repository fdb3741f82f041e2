//! What do stores and queues have in common?
//!
//! All of them hold values of some type `T` under keys of some type `K`, which a function finds out from the value:
//! [`Object`]s under their [`ObjectKey`]s as a rule, but any `T` under any [`Key`] will do.
//! [`KnownObjects`] is what one can be asked by another, [`StoreOps`] what can be done with each, and [`Queue`] what
//! queues can do beyond that.

use std::fmt;
use std::hash::Hash;
use std::sync::Arc;

use crate::{Error, ErrorKind, Object, ObjectKey, ResourceVersion};

/// What values are kept under.
pub trait Key: Clone + Eq + Hash + Ord + fmt::Debug + Send + Sync + 'static {}

impl<K: Clone + Eq + Hash + Ord + fmt::Debug + Send + Sync + 'static> Key for K {}

/// Finds out a value's key: client-go's `KeyFunc`.
pub type KeyFunction<T, K = ObjectKey> = Arc<dyn Fn(&T) -> Result<K, KeyError> + Send + Sync>;

/// A value has no key.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("no key for a value: {0}")]
pub struct KeyError(Box<str>);

impl KeyError {
    /// Says why. The text ends up in logs: it must hold no part of the value that is nobody's business.
    pub fn new(why: impl fmt::Display) -> Self {
        Self(why.to_string().into())
    }
}

impl From<KeyError> for Error {
    fn from(error: KeyError) -> Self {
        Self::new(ErrorKind::Store, error)
    }
}

/// The key of an object: client-go's `MetaNamespaceKeyFunc`. Every object has one.
pub fn object_key(object: &Object) -> Result<ObjectKey, KeyError> {
    Ok(object.key().clone())
}

/// Something that can be asked what it holds: client-go's `KeyListerGetter`. A store is one.
pub trait KnownObjects<T, K = ObjectKey>: Send + Sync {
    /// All keys, in no particular order.
    fn list_keys(&self) -> Vec<K>;

    /// The value under a key.
    fn get_by_key(&self, key: &K) -> Option<T>;
}

impl<T, K, S: KnownObjects<T, K> + ?Sized> KnownObjects<T, K> for Arc<S> {
    fn list_keys(&self) -> Vec<K> {
        (**self).list_keys()
    }

    fn get_by_key(&self, key: &K) -> Option<T> {
        (**self).get_by_key(key)
    }
}

/// What can be done with every store and every queue: client-go's `Store` interface.
pub trait StoreOps<T, K = ObjectKey>: KnownObjects<T, K> {
    /// There is a new value.
    fn add(&self, value: T) -> Result<(), KeyError>;

    /// A value changed.
    fn update(&self, value: T) -> Result<(), KeyError>;

    /// A value is gone; this is its last state.
    fn delete(&self, value: T) -> Result<(), KeyError>;

    /// These are all the values that there are, at this version.
    fn replace(&self, values: Vec<T>, version: ResourceVersion) -> Result<(), KeyError>;

    /// All values, in no particular order.
    fn list(&self) -> Vec<T>;

    /// The value that is held under the key of `value`.
    fn get(&self, value: &T) -> Result<Option<T>, KeyError>;

    /// Says everything again, where somebody listens. Plain stores have nobody to tell.
    fn resync(&self) -> Result<(), KeyError> {
        Ok(())
    }
}

/// What can be done with a queue besides: client-go's `Queue` interface. Its `Pop` is the consumer's.
pub trait Queue<T, K = ObjectKey>: StoreOps<T, K> {
    /// Adds a value unless something of its key waits already.
    fn add_if_not_present(&self, value: T) -> Result<(), KeyError>;

    /// The first list, or what came in its place, has been taken out and processed.
    fn has_synced(&self) -> bool;

    /// Nothing more will be added: the consumer gets what waits, and then learns that this is the end.
    fn close(&self);
}
