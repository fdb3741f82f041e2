//! Reads the objects of a kind.

use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use futures::future::BoxFuture;

use super::{NamespaceLister, NotFound, Objects, Selector};
use crate::store::PartitionVersions;
use crate::{Cached, IndexError, Indexer, Object, ObjectKey, ResourceVersion, WaitError};

/// Reads a store of objects, as objects of type `K`: client-go's `PodLister` and its likes. Cheap to clone.
///
/// It needs no informer: any [`Indexer`] of objects will do. See [the module](crate::lister) for an example.
pub struct Lister<K> {
    shared: Arc<Shared>,
    of: PhantomData<fn() -> K>,
}

struct Shared {
    store: Arc<Indexer<Object>>,
    kind: Option<Box<str>>,
    /// The versions of the namespaces, where each is watched on its own.
    partitions: Option<Arc<PartitionVersions>>,
    /// The informer that keeps the store, which has to run for as long as somebody reads.
    keeper: Option<Arc<dyn Keeper>>,
    /// Somebody has been told that there is no index of namespaces.
    warned: AtomicBool,
}

/// Whoever keeps a store up to date, for as long as somebody holds this.
pub(crate) trait Keeper: Send + Sync {
    /// The store has had its first list.
    fn has_synced(&self) -> bool;

    /// Returns when nothing will be written into the store any more.
    fn stopped(&self) -> BoxFuture<'_, ()>;
}

impl<K> Lister<K> {
    /// A lister of what is in this store.
    pub fn new(store: Arc<Indexer<Object>>) -> Self {
        Self::of_informer(store, None, None, None)
    }

    /// The same, with a name for the kind, for where the name of `K` does not tell: if it is a `DynamicObject`, say.
    pub fn of_kind(store: Arc<Indexer<Object>>, kind: &str) -> Self {
        Self::of_informer(store, Some(kind.into()), None, None)
    }

    /// A lister of what an informer keeps in this store, which holds what keeps the informer running.
    pub(crate) fn of_informer(
        store: Arc<Indexer<Object>>,
        kind: Option<Box<str>>,
        partitions: Option<Arc<PartitionVersions>>,
        keeper: Option<Arc<dyn Keeper>>,
    ) -> Self {
        let shared = Shared { store, kind, partitions, keeper, warned: AtomicBool::new(false) };
        Self { shared: Arc::new(shared), of: PhantomData }
    }

    /// The object under a key.
    pub fn get(&self, key: &ObjectKey) -> Option<Cached<K>> {
        self.store().get_by_key(key).map(Object::typed)
    }

    /// The object under a key, or an error that names it.
    pub fn require(&self, key: &ObjectKey) -> Result<Cached<K>, NotFound> {
        if let Some(object) = self.get(key) {
            return Ok(object);
        }
        let is_final = self.shared.keeper.as_ref().is_none_or(|keeper| keeper.has_synced());
        // The first list may have come between the look and the question.
        self.get(key).ok_or_else(|| NotFound::new(self.kind(), key.clone(), is_final))
    }

    /// All objects that there are now.
    pub fn list(&self) -> Objects<K> {
        Objects::all(self.store().snapshot())
    }

    /// Those of the objects that there are now whose labels match. No body is looked at. A selector of everything does not
    /// even look at labels, one of nothing does not even look at the store.
    pub fn matching(&self, selector: &Selector) -> Objects<K> {
        if selector.is_nothing() {
            return Objects::none();
        }
        self.list().matching(selector)
    }

    /// The objects that have this value in an index.
    pub fn by_index(&self, name: &str, value: &str) -> Result<Objects<K>, IndexError> {
        Ok(Objects::selected(self.store().by_index(name, value)?))
    }

    /// Reads the objects of one namespace. The empty one stands for all, as in client-go.
    pub fn namespace(&self, namespace: impl Into<Arc<str>>) -> NamespaceLister<K> {
        NamespaceLister::new(self.clone(), namespace.into())
    }

    /// The version of the last change that can be read: see [`Indexer::last_version`].
    pub fn last_version(&self) -> ResourceVersion {
        self.store().last_version()
    }

    /// Returns as soon as what was written up to this version can be read: see [`Indexer::wait_for`]. With the version that
    /// an API server answered a change with, one reads one's own writes:
    ///
    /// ```
    /// # use std::{sync::Arc, time::Duration};
    /// # use watchkeeper::{Indexer, Lister, Object, WaitError};
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let store = Arc::new(Indexer::objects());
    /// # store.bookmark(&"12".into());
    /// # let pods: Lister<()> = Lister::new(store);
    /// let written = "12"; // resourceVersion of what `kube::Api::patch` returned
    /// tokio::time::timeout(Duration::from_secs(10), pods.wait_for(&written.into())).await??;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// If the lister is an informer's, it is an error if that stops before.
    pub async fn wait_for(&self, version: &ResourceVersion) -> Result<(), WaitError> {
        self.unless_stopped(version, self.store().wait_for(version)).await
    }

    /// Waits, but not for what an informer that has stopped will never bring.
    pub(super) async fn unless_stopped(
        &self,
        version: &ResourceVersion,
        wait: impl Future<Output = Result<(), WaitError>>,
    ) -> Result<(), WaitError> {
        let Some(keeper) = &self.shared.keeper else { return wait.await };
        tokio::select! {
            biased;
            reached = wait => reached,
            () = keeper.stopped() => Err(WaitError::Stopped { version: version.clone() }),
        }
    }

    pub(super) fn partitions(&self) -> Option<&PartitionVersions> {
        self.shared.partitions.as_deref()
    }

    /// The store that this reads.
    pub fn store(&self) -> &Arc<Indexer<Object>> {
        &self.shared.store
    }

    /// The objects of a namespace, through the index of namespaces. Without one, or while it is being built, all objects
    /// are gone through.
    pub(super) fn list_namespace(&self, namespace: &Arc<str>) -> Objects<K> {
        match self.store().by_index("namespace", namespace) {
            Ok(selection) => Objects::selected(selection),
            Err(error) => {
                let is_missing = matches!(error, IndexError::Unknown { .. });
                if is_missing && !self.shared.warned.swap(true, Ordering::Relaxed) {
                    tracing::warn!(kind = %self.kind(), %error, "each list of a namespace goes through all objects");
                }
                self.list().of_namespace(namespace.clone())
            }
        }
    }

    /// What the kind is called: as it was said, or by the name of `K` without the paths.
    fn kind(&self) -> Box<str> {
        self.shared.kind.clone().unwrap_or_else(|| without_paths(std::any::type_name::<K>()))
    }
}

/// `Meta<Pod>` of `a::Meta<b::c::Pod>`.
pub(crate) fn without_paths(name: &str) -> Box<str> {
    let (mut short, mut word) = (String::new(), 0);
    for c in name.chars() {
        match c {
            ':' => short.truncate(word),
            c => {
                short.push(c);
                if !c.is_alphanumeric() && c != '_' {
                    word = short.len();
                }
            }
        }
    }
    short.into()
}

impl<K> Clone for Lister<K> {
    fn clone(&self) -> Self {
        Self { shared: self.shared.clone(), of: PhantomData }
    }
}

impl<K> fmt::Debug for Lister<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Lister({} of {})", self.store().len(), self.kind())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Has its first list at the very moment at which it is asked.
    struct Arriving(Arc<Indexer<Object>>);

    impl Keeper for Arriving {
        fn stopped(&self) -> BoxFuture<'_, ()> {
            Box::pin(std::future::pending())
        }

        fn has_synced(&self) -> bool {
            let pod = r#"{"metadata": {"name": "web-0", "namespace": "shop", "resourceVersion": "7"}}"#;
            self.0.add(Object::from_json(pod).expect("an object")).expect("a key");
            true
        }
    }

    #[test]
    fn what_comes_with_the_first_list_while_it_is_looked_for_is_not_said_to_be_gone() {
        let store = Arc::new(Indexer::objects());
        let keeper: Arc<dyn Keeper> = Arc::new(Arriving(store.clone()));
        let pods: Lister<()> = Lister::of_informer(store, None, None, Some(keeper));
        let found = pods.require(&ObjectKey::namespaced("shop", "web-0"));
        assert!(found.is_ok(), "{found:?}");
        let missing = pods.require(&ObjectKey::namespaced("shop", "web-1")).expect_err("nobody has it");
        assert!(missing.is_final());
    }
}
