//! Reads the objects of a kind in one namespace.

use std::fmt;
use std::sync::Arc;

use super::{Lister, NotFound, Objects, Selector};
use crate::{Cached, ObjectKey};

/// Reads the objects of one namespace: client-go's `PodNamespaceLister` and its likes. Cheap to clone.
///
/// Lists are answered through the index `namespace`, which [`Indexer::objects`](crate::Indexer::objects) has. Without one,
/// all objects are gone through, and a warning is logged, once.
pub struct NamespaceLister<K> {
    lister: Lister<K>,
    namespace: Arc<str>,
}

impl<K> NamespaceLister<K> {
    pub(super) fn new(lister: Lister<K>, namespace: Arc<str>) -> Self {
        Self { lister, namespace }
    }

    /// The object of this name. In the empty namespace that is one of a cluster-scoped kind.
    pub fn get(&self, name: &str) -> Option<Cached<K>> {
        self.lister.get(&self.key(name))
    }

    /// The object of this name, or an error that names it.
    pub fn require(&self, name: &str) -> Result<Cached<K>, NotFound> {
        self.lister.require(&self.key(name))
    }

    /// All objects of the namespace that there are now.
    pub fn list(&self) -> Objects<K> {
        if self.namespace.is_empty() {
            return self.lister.list();
        }
        self.lister.list_namespace(&self.namespace)
    }

    /// Those of the namespace's objects that there are now whose labels match: see [`Lister::matching`].
    pub fn matching(&self, selector: &Selector) -> Objects<K> {
        if selector.is_nothing() {
            return Objects::none();
        }
        self.list().matching(selector)
    }

    fn key(&self, name: &str) -> ObjectKey {
        ObjectKey::namespaced(&self.namespace, name)
    }
}

impl<K> Clone for NamespaceLister<K> {
    fn clone(&self) -> Self {
        Self { lister: self.lister.clone(), namespace: self.namespace.clone() }
    }
}

impl<K> fmt::Debug for NamespaceLister<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "NamespaceLister({:?} of {:?})", self.namespace, self.lister)
    }
}
