//! Reads the objects of a kind in one namespace.

use std::fmt;
use std::sync::Arc;

use super::{Lister, NotFound, Objects, Selector};
use crate::store::PartitionVersions;
use crate::{Cached, ObjectKey, ResourceVersion, WaitError};

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

    /// The version of the last change that can be read. Where an informer watches several namespaces, each on its own,
    /// that is this namespace's version, and of one that it does not watch there is none; elsewhere it is that of
    /// [the whole](Lister::last_version).
    pub fn last_version(&self) -> ResourceVersion {
        match self.partitions() {
            Some(partitions) => partitions.version(&self.namespace).unwrap_or_default(),
            None => self.lister.last_version(),
        }
    }

    /// Returns as soon as what was written to the namespace up to this version can be read: see [`Lister::wait_for`].
    /// Where an informer watches several namespaces, each on its own, this does not wait for the others, and to wait for
    /// one that it does not watch is an error.
    pub async fn wait_for(&self, version: &ResourceVersion) -> Result<(), WaitError> {
        match self.partitions() {
            Some(partitions) => {
                self.lister.unless_stopped(version, partitions.wait_for(&self.namespace, version)).await
            }
            None => self.lister.wait_for(version).await,
        }
    }

    /// The versions of the namespaces, if this one has a version of its own. The empty one stands for all.
    fn partitions(&self) -> Option<&PartitionVersions> {
        self.lister.partitions().filter(|_| !self.namespace.is_empty())
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

#[cfg(test)]
mod tests {
    use futures::FutureExt as _;
    use futures::future::BoxFuture;

    use super::*;
    use crate::lister::Keeper;
    use crate::{Error, ErrorKind, Indexer};

    fn partitioned() -> (Arc<PartitionVersions>, Lister<()>) {
        let partitions = Arc::new(PartitionVersions::new(["shop", "bank"].map(Arc::from)));
        let store = Arc::new(Indexer::objects_unversioned());
        (partitions.clone(), Lister::of_informer(store, None, Some(partitions), None))
    }

    /// As an informer does it.
    fn move_to(partitions: &PartitionVersions, lister: &Lister<()>, partition: usize, version: &str) {
        if let Some(lowest) = partitions.move_to(partition, version.into()) {
            lister.store().bookmark(&lowest);
        }
    }

    #[test]
    fn a_namespace_waits_for_its_own_partition_and_the_lister_for_all() {
        let (partitions, lister) = partitioned();
        let ten = ResourceVersion::from("10");
        let (shop, bank, all) = (lister.namespace("shop"), lister.namespace("bank"), lister.namespace(""));
        let mut of_shop = Box::pin(shop.wait_for(&ten));
        let mut of_all = Box::pin(all.wait_for(&ten));
        let mut of_lister = Box::pin(lister.wait_for(&ten));
        assert!((&mut of_shop).now_or_never().is_none());
        move_to(&partitions, &lister, 1, "12");
        assert_eq!(bank.wait_for(&ten).now_or_never(), Some(Ok(())));
        assert!((&mut of_shop).now_or_never().is_none());
        assert!((&mut of_all).now_or_never().is_none() && (&mut of_lister).now_or_never().is_none());
        assert_eq!([&shop, &bank, &all].map(NamespaceLister::last_version), ["", "12", ""].map(Into::into));
        move_to(&partitions, &lister, 0, "11");
        assert_eq!(of_shop.now_or_never(), Some(Ok(())));
        assert_eq!((of_all.now_or_never(), of_lister.now_or_never()), (Some(Ok(())), Some(Ok(()))));
        assert_eq!([&shop, &bank, &all].map(NamespaceLister::last_version), ["11", "12", "11"].map(Into::into));
    }

    #[test]
    fn a_namespace_that_the_informer_does_not_watch_has_no_version_and_cannot_be_waited_for() {
        let (partitions, lister) = partitioned();
        move_to(&partitions, &lister, 0, "5");
        move_to(&partitions, &lister, 1, "5");
        let mill = lister.namespace("mill");
        assert_eq!(mill.last_version(), ResourceVersion::unset());
        let unknown = WaitError::UnknownNamespace { namespace: "mill".into() };
        assert_eq!(mill.wait_for(&"5".into()).now_or_never(), Some(Err(unknown)));
    }

    #[test]
    fn a_partition_at_a_version_that_is_no_number_makes_waiting_for_all_an_error() {
        let (partitions, lister) = partitioned();
        move_to(&partitions, &lister, 0, "v5");
        move_to(&partitions, &lister, 1, "9");
        let incomparable = Err(WaitError::Incomparable { here: "v5".into() });
        assert_eq!(lister.wait_for(&"5".into()).now_or_never(), Some(incomparable));
        assert_eq!(lister.namespace("bank").wait_for(&"5".into()).now_or_never(), Some(Ok(())));
    }

    #[test]
    fn without_partitions_a_namespace_waits_for_the_store() {
        let store = Arc::new(Indexer::objects());
        let shop = Lister::<()>::new(store.clone()).namespace("shop");
        let seven = ResourceVersion::from("7");
        let mut wait = Box::pin(shop.wait_for(&seven));
        assert!((&mut wait).now_or_never().is_none());
        store.bookmark(&"8".into());
        assert_eq!((wait.now_or_never(), shop.last_version()), (Some(Ok(())), "8".into()));
    }

    #[test]
    fn what_keeps_an_informer_alive_lives_as_long_as_any_lister_of_it() {
        struct Informer;
        impl Keeper for Informer {
            fn has_synced(&self) -> bool {
                false
            }

            fn stopped(&self) -> BoxFuture<'_, ()> {
                Box::pin(std::future::ready(()))
            }
        }
        let informer: Arc<dyn Keeper> = Arc::new(Informer);
        let store = Arc::new(Indexer::objects());
        let lister: Lister<()> = Lister::of_informer(store, Some("Pod".into()), None, Some(informer.clone()));
        let seven = ResourceVersion::from("7");
        let stopped = WaitError::Stopped { version: seven.clone() };
        assert_eq!(lister.wait_for(&seven).now_or_never(), Some(Err(stopped)), "it will never come");
        let missing = lister.require(&ObjectKey::namespaced("shop", "web-0")).expect_err("nothing is there");
        assert!(missing.to_string().contains("not complete yet"), "{missing}");
        assert_eq!(Error::from(missing).kind(), ErrorKind::NotSynced, "it may be there all the same");
        let namespace = lister.clone().namespace("shop");
        assert_eq!(format!("{namespace:?}"), r#"NamespaceLister("shop" of Lister(0 of Pod))"#);
        let objects = lister.list();
        drop(lister);
        assert_eq!(Arc::strong_count(&informer), 2);
        drop(namespace);
        assert_eq!(Arc::strong_count(&informer), 1, "what was listed is held, and no more");
        assert!(objects.is_empty());
    }
}
