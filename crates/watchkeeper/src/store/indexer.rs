//! A store that finds out the keys.

use std::sync::Arc;

use hashbrown::HashSet;

use super::{Applied, Index, IndexError, Operation, Selection, Snapshot, ThreadSafeStore, WaitError};
use crate::{
    Error, Key, KeyError, KeyFunction, KnownObjects, Object, ObjectKey, ReflectorStore, Replacement, ResourceVersion,
    StoreOps, object_key,
};

/// A store of values under keys that a function finds out, with indexes: client-go's `Indexer`.
///
/// See [the module](crate::store) for an example.
pub struct Indexer<T, K = ObjectKey> {
    store: ThreadSafeStore<T, K>,
    key: KeyFunction<T, K>,
    transform: Option<Transform<T>>,
}

type Transform<T> = Box<dyn Fn(T) -> Result<T, KeyError> + Send + Sync>;

/// A store without indexes: client-go's `Store`. It is an [`Indexer`] that nobody has given one.
pub type Store<T, K = ObjectKey> = Indexer<T, K>;

impl Indexer<Object> {
    /// An empty store of objects under namespace and name, with the index `namespace`, which knows their versions.
    pub fn objects() -> Self {
        let versions = |object: &Object| Some(object.resource_version()).filter(|version| !version.is_unset());
        Self::objects_unversioned().version_of(versions)
    }

    /// The same for objects whose versions cannot be compared, since they come from several watches: changes leave the
    /// version as it is.
    pub(crate) fn objects_unversioned() -> Self {
        let mut objects = Self::new(object_key);
        objects.store.is_same = Some(Object::is_same_handle);
        // The first index has no other to be in conflict with.
        let _ok = objects.store.index_now("namespace".into(), Index::namespace());
        objects
    }
}

impl<T: Clone + Send + Sync + 'static, K: Key> Indexer<T, K> {
    /// An empty store.
    pub fn new(key: impl Fn(&T) -> Result<K, KeyError> + Send + Sync + 'static) -> Self {
        Self { store: ThreadSafeStore::new(), key: Arc::new(key), transform: None }
    }

    /// How the versions are found that [`last_version`](Self::last_version) tells. Without it, it knows those of lists
    /// and bookmarks.
    pub fn version_of(mut self, version: impl Fn(&T) -> Option<ResourceVersion> + Send + Sync + 'static) -> Self {
        self.store = self.store.version_of(version);
        self
    }

    /// What is done to every value on its way into the store: client-go's `WithTransformer`. It must not change the key.
    /// An error means that the value is refused.
    pub fn transform(mut self, transform: impl Fn(T) -> Result<T, KeyError> + Send + Sync + 'static) -> Self {
        self.transform = Some(Box::new(transform));
        self
    }

    /// Adds an index to a store that is being made: see [`add_index`](Self::add_index).
    pub fn with_index(mut self, name: impl Into<Arc<str>>, index: Index<T>) -> Result<Self, IndexError> {
        self.store = self.store.with_index(name, index)?;
        Ok(self)
    }

    /// Adds an index. To add the same one again is fine; another one under a name that is taken is an error.
    ///
    /// What the store holds already is indexed before this returns, and nobody has to wait meanwhile: writers go on, and
    /// look-ups in the index say that it is being built. If this is dropped before it returns, there is no such index.
    pub async fn add_index(&self, name: impl Into<Arc<str>>, index: Index<T>) -> Result<(), IndexError> {
        self.store.add_index(name, index).await
    }

    /// There is a new value.
    pub fn add(&self, value: T) -> Result<(), KeyError> {
        let (key, value) = self.admit(value)?;
        self.store.add(key, value);
        Ok(())
    }

    /// A value changed. The same as [`add`](Self::add).
    pub fn update(&self, value: T) -> Result<(), KeyError> {
        self.add(value)
    }

    /// A value is gone; this is its last state.
    pub fn delete(&self, value: &T) -> Result<(), KeyError> {
        self.store.delete_with(&(self.key)(value)?, value);
        Ok(())
    }

    /// What is under this key is gone, and nothing else is known of it.
    pub fn delete_by_key(&self, key: &K) {
        self.store.delete(key);
    }

    /// These are all the values that there are, at this version. Of equal keys the last counts. If one of them has no
    /// key, nothing changes.
    pub fn replace(&self, values: impl IntoIterator<Item = T>, version: ResourceVersion) -> Result<(), KeyError> {
        self.replace_some(values.into_iter().collect(), Some(version), &|_| false)
    }

    /// Applies many changes at once: a reader sees none of them or all. Those that fail are reported, and the others are
    /// applied: client-go's `Transaction`.
    pub fn apply(&self, batch: impl IntoIterator<Item = Operation<T, K>>) -> Applied<T> {
        let (mut writes, mut places, mut failed, mut count) = (Vec::new(), Vec::new(), Vec::new(), 0);
        for (place, operation) in batch.into_iter().enumerate() {
            let write = match operation {
                Operation::Add(value) | Operation::Update(value) => {
                    self.admit(value).map(|(key, value)| self.store.put_of(key, value))
                }
                Operation::Delete(last) => (self.key)(&last).map(|key| self.store.delete_of(key, Some(&last))),
                Operation::DeleteKey(key) => Ok(self.store.delete_of(key, None)),
            };
            match write {
                Ok(write) => {
                    writes.push(write);
                    places.push(place);
                }
                Err(error) => failed.push((place, error)),
            }
            count = place + 1;
        }
        self.store.write(&mut writes);
        let mut previous: Vec<Option<T>> = std::iter::repeat_with(|| None).take(count).collect();
        for (place, write) in places.into_iter().zip(writes) {
            previous[place] = write.previous.map(|(_, value)| value);
        }
        Applied { previous, failed }
    }

    /// All changes up to this version have been written.
    pub fn bookmark(&self, version: &ResourceVersion) {
        self.store.bookmark(version);
    }

    /// The value that is held under the key of `value`.
    pub fn get(&self, value: &T) -> Result<Option<T>, KeyError> {
        Ok(self.store.get(&(self.key)(value)?))
    }

    /// The value under a key.
    pub fn get_by_key(&self, key: &K) -> Option<T> {
        self.store.get(key)
    }

    /// All values, in no particular order.
    pub fn list(&self) -> Vec<T> {
        self.store.list()
    }

    /// All keys, in no particular order.
    pub fn list_keys(&self) -> Vec<K> {
        self.store.list_keys()
    }

    /// How many values there are.
    pub fn len(&self) -> usize {
        self.store.len()
    }

    /// There is none.
    pub fn is_empty(&self) -> bool {
        self.store.is_empty()
    }

    /// All that there is now.
    pub fn snapshot(&self) -> Snapshot<T, K> {
        self.store.snapshot()
    }

    /// The version of the last change that was applied: see [`ThreadSafeStore::last_version`].
    pub fn last_version(&self) -> ResourceVersion {
        self.store.last_version()
    }

    /// Returns as soon as the store has come to this version or a later one: see [`ThreadSafeStore::wait_for`].
    pub async fn wait_for(&self, version: &ResourceVersion) -> Result<(), WaitError> {
        self.store.wait_for(version).await
    }

    /// The values that share a value of an index with `value`, which need not be in the store itself.
    pub fn index(&self, name: &str, value: &T) -> Result<Vec<T>, IndexError> {
        self.store.index(name, value)
    }

    /// The values that have this value in an index.
    pub fn by_index(&self, name: &str, value: &str) -> Result<Selection<T, K>, IndexError> {
        self.store.by_index(name, value)
    }

    /// The keys of the values that have this value in an index, in order.
    pub fn index_keys(&self, name: &str, value: &str) -> Result<Vec<K>, IndexError> {
        self.store.index_keys(name, value)
    }

    /// All values that an index has, in order: client-go's `ListIndexFuncValues`.
    pub fn index_values(&self, name: &str) -> Result<Vec<String>, IndexError> {
        self.store.index_values(name)
    }

    /// The names of the indexes, also of those that are being built.
    pub fn indexers(&self) -> Vec<Arc<str>> {
        self.store.indexers()
    }

    /// How many chunks of slots and of postings were copied because a view held them, since the last replacement.
    #[doc(hidden)]
    pub fn copies(&self) -> (u64, u64) {
        self.store.copies()
    }

    /// Replaces everything, except that what is under a key for which `keep` is true, and that none of the values has,
    /// stays. Without a version, that stays too. As with [`replace`](Self::replace), a reader sees none of it or all.
    pub(crate) fn replace_some(
        &self,
        values: Vec<T>,
        version: Option<ResourceVersion>,
        keep: &dyn Fn(&K) -> bool,
    ) -> Result<(), KeyError> {
        let values = values.into_iter().map(|value| self.admit(value)).collect::<Result<_, _>>()?;
        self.store.replace_some(values, version, keep);
        Ok(())
    }

    /// What is to be stored, under which key. The key is that of what is stored: it may share its memory.
    fn admit(&self, value: T) -> Result<(K, T), KeyError> {
        let value = match &self.transform {
            Some(transform) => transform(value)?,
            None => value,
        };
        Ok(((self.key)(&value)?, value))
    }
}

impl<T: Clone + Send + Sync + 'static, K: Key> KnownObjects<T, K> for Indexer<T, K> {
    fn list_keys(&self) -> Vec<K> {
        self.list_keys()
    }

    fn get_by_key(&self, key: &K) -> Option<T> {
        self.get_by_key(key)
    }
}

impl<T: Clone + Send + Sync + 'static, K: Key> StoreOps<T, K> for Indexer<T, K> {
    fn add(&self, value: T) -> Result<(), KeyError> {
        self.add(value)
    }

    fn update(&self, value: T) -> Result<(), KeyError> {
        self.update(value)
    }

    fn delete(&self, value: T) -> Result<(), KeyError> {
        self.delete(&value)
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
}

impl Indexer<Object> {
    /// Finds out what the indexes need to know of an object's body, while that is at hand, and hangs it on the handle:
    /// so nobody has to unpack the body later.
    pub(crate) fn look_into_body(&self, object: &Object, json: &[u8]) {
        let mut values = Vec::new();
        for definition in self.store.definitions().iter().filter(|definition| definition.index.needs_body()) {
            definition.caught(Some(object.key()), &mut values, |values| {
                if !definition.index.compute_from_json(json, values) {
                    tracing::debug!(object = %object.key(), index = %definition.name, "does not decode");
                }
            });
            object.put_index_values(definition.index.id(), values.drain(..).collect());
        }
    }
}

/// A reflector can write straight into an indexer of objects.
impl ReflectorStore for Indexer<Object> {
    fn add(&self, object: Object) -> Result<(), Error> {
        Ok(self.add(object)?)
    }

    fn update(&self, object: Object) -> Result<(), Error> {
        Ok(self.update(object)?)
    }

    fn delete(&self, key: &ObjectKey, last: Option<Object>) -> Result<(), Error> {
        match last {
            Some(last) => self.store.delete_with(key, &last),
            None => self.store.delete(key),
        }
        Ok(())
    }

    fn replace(&self, list: Replacement) -> Result<(), Error> {
        let Replacement { items, resource_version, unusable, complete } = list;
        let unusable: HashSet<ObjectKey> = unusable.into_iter().collect();
        let keep = |key: &ObjectKey| !complete || unusable.contains(key);
        Ok(self.replace_some(items, Some(resource_version), &keep)?)
    }

    fn bookmark(&self, version: &ResourceVersion) -> Result<(), Error> {
        self.bookmark(version);
        Ok(())
    }
}

impl<T, K> std::fmt::Debug for Indexer<T, K> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Indexer").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    fn object(namespace: &str, name: &str, version: &str) -> Object {
        let metadata = format!(r#"{{"namespace":"{namespace}","name":"{name}","resourceVersion":"{version}"}}"#);
        Object::from_json(format!(r#"{{"metadata":{metadata}}}"#)).expect("an object")
    }

    /// Three in one namespace, two in another.
    fn shop_and_bank() -> Vec<Object> {
        [("shop", "a"), ("shop", "b"), ("shop", "c"), ("bank", "a"), ("bank", "b")]
            .map(|(namespace, name)| object(namespace, name, "1"))
            .into()
    }

    fn all_but_shop(key: &ObjectKey) -> bool {
        key.namespace() != Some("shop")
    }

    fn contents(store: &Indexer<Object>) -> Vec<String> {
        let mut contents: Vec<_> =
            store.list().iter().map(|object| format!("{}@{}", object.key(), object.resource_version())).collect();
        contents.sort_unstable();
        let of = |namespace: &str| store.by_index("namespace", namespace).expect("an index").len();
        assert_eq!(of("shop") + of("bank"), contents.len(), "{contents:?}");
        contents
    }

    #[test]
    fn replacing_some_leaves_the_others_as_they_are() {
        let store = Indexer::objects_unversioned();
        store.replace(shop_and_bank(), "1".into()).expect("keys");
        let kept = store.get_by_key(&ObjectKey::namespaced("bank", "b")).expect("it is there");
        let shop = vec![object("shop", "b", "7"), object("shop", "d", "5")];
        store.replace_some(shop, Some("9".into()), &all_but_shop).expect("keys");
        assert_eq!(contents(&store), ["bank/a@1", "bank/b@1", "shop/b@7", "shop/d@5"]);
        assert!(store.get(&kept).expect("a key").is_some_and(|here| here.is_same_handle(&kept)));
        assert_eq!(store.last_version(), "9".into());
    }

    #[test]
    fn a_value_takes_the_place_of_one_that_was_to_be_kept() {
        let store = Indexer::objects_unversioned();
        store.replace(shop_and_bank(), "1".into()).expect("keys");
        store.replace_some(vec![object("bank", "a", "8")], None, &|_| true).expect("keys");
        assert_eq!(contents(&store), ["bank/a@8", "bank/b@1", "shop/a@1", "shop/b@1", "shop/c@1"]);
        store.replace_some(Vec::new(), None, &|_| false).expect("no key is needed");
        assert!(store.is_empty());
    }

    #[test]
    fn without_a_version_the_version_stays() {
        let store = Indexer::objects_unversioned();
        store.bookmark(&"4".into());
        store.replace_some(shop_and_bank(), None, &|_| true).expect("keys");
        assert_eq!((store.len(), store.last_version()), (5, "4".into()));
    }

    #[test]
    fn changes_do_not_move_the_version_of_an_unversioned_store() {
        let store = Indexer::objects_unversioned();
        store.add(object("shop", "a", "5")).expect("a key");
        store.delete(&object("shop", "a", "6")).expect("a key");
        let _applied = store.apply([Operation::Add(object("shop", "b", "7"))]);
        assert_eq!(store.last_version(), ResourceVersion::unset());
        store.bookmark(&"3".into());
        assert_eq!(store.last_version(), "3".into());
    }

    #[test]
    fn no_index_is_asked_for_what_stays_or_comes_again() {
        let looks = Arc::new(AtomicUsize::new(0));
        let counted = looks.clone();
        let index = Index::of(move |object: &Object| {
            counted.fetch_add(1, Ordering::Relaxed);
            [object.key().name().to_owned()]
        });
        let store = Indexer::objects_unversioned().with_index("name", index).expect("a name");
        store.replace(shop_and_bank(), "1".into()).expect("keys");
        let mut shop: Vec<_> = shop_and_bank().into_iter().take(2).collect();
        shop[0] = store.get(&shop[0]).expect("a key").expect("it is there");
        looks.store(0, Ordering::Relaxed);
        store.replace_some(shop, None, &all_but_shop).expect("keys");
        assert_eq!(looks.load(Ordering::Relaxed), 1, "for the one that came as another handle");
        assert_eq!(store.index_keys("name", "a").expect("an index").len(), 2);
        assert_eq!(store.index_keys("name", "c").expect("an index").len(), 0);
    }

    #[test]
    fn a_value_without_a_key_replaces_nothing() {
        let key = |number: &u32| (*number != 13).then_some(*number).ok_or_else(|| KeyError::new("bad luck"));
        let store = Indexer::new(key);
        store.replace([1, 2], "1".into()).expect("keys");
        store.replace_some(vec![3, 13], Some("2".into()), &|_| false).expect_err("a value without a key");
        assert_eq!((store.len(), store.last_version()), (2, "1".into()));
    }

    /// What is kept may be decided by what the store shows: nobody who reads has to wait for that.
    #[test]
    fn what_is_to_be_kept_is_asked_while_readers_go_on() {
        let store = Indexer::objects_unversioned();
        store.replace(shop_and_bank(), "1".into()).expect("keys");
        let keep = |key: &ObjectKey| {
            std::thread::scope(|scope| {
                scope.spawn(|| store.get_by_key(key).is_some() && store.len() == 5).join().expect("no panic")
            })
        };
        store.replace_some(vec![object("shop", "d", "2")], None, &keep).expect("keys");
        assert_eq!(store.len(), 6);
    }
}
