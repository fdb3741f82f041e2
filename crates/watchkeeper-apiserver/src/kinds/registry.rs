//! All kinds that there are, found by their path.

use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard};

use super::{CustomResource, InvalidResource, Kind, built_in, events};

/// The kinds of one server.
pub(crate) struct Registry {
    kinds: RwLock<Kinds>,
}

#[derive(Default)]
struct Kinds {
    /// By id; none of a kind that is gone. No id is used twice.
    all: Vec<Option<Arc<Kind>>>,
    /// By group and plural.
    ids: BTreeMap<(String, String), usize>,
}

impl Registry {
    pub(crate) fn new() -> Self {
        let mut kinds = Kinds::default();
        for kind in built_in::kinds() {
            kinds.put(kind);
        }
        Self { kinds: RwLock::new(kinds) }
    }

    /// Adds a kind, or replaces the one of the same group and plural, whose objects stay.
    pub(crate) fn register(&self, resource: CustomResource) -> Result<Arc<Kind>, InvalidResource> {
        let kind = resource.into_kind()?;
        Ok(self.kinds.write().unwrap_or_else(PoisonError::into_inner).put(kind))
    }

    /// Puts a kind in the place of the one of the same group and plural, whose objects stay. One that is the same stays too:
    /// objects remember under which kind they were written. None, if the place is that of a built-in kind, which nothing takes.
    pub(crate) fn define(&self, kind: Kind) -> Option<Arc<Kind>> {
        let mut kinds = self.kinds.write().unwrap_or_else(PoisonError::into_inner);
        match kinds.of_path(&kind.group, &kind.plural) {
            Some(known) if !known.custom => None,
            Some(known) if **known == (Kind { id: known.id, ..kind.clone() }) => Some(known.clone()),
            _ => Some(kinds.put(kind)),
        }
    }

    /// Removes a kind, if it is still the one of its path.
    pub(crate) fn undefine(&self, kind: &Kind) {
        let mut kinds = self.kinds.write().unwrap_or_else(PoisonError::into_inner);
        let path = (kind.group.clone(), kind.plural.clone());
        if kinds.ids.get(&path) == Some(&kind.id) {
            kinds.ids.remove(&path);
            kinds.all[kind.id] = None;
        }
    }

    /// The kind of this group and plural.
    pub(crate) fn find(&self, group: &str, plural: &str) -> Option<Arc<Kind>> {
        self.read().of_path(group, plural).cloned()
    }

    /// The kind whose objects are at this place of the storage.
    pub(crate) fn by_id(&self, id: usize) -> Option<Arc<Kind>> {
        self.read().all.get(id).cloned().flatten()
    }

    /// The kind of an object that says `apiVersion` and `kind`.
    pub(crate) fn of_object(&self, api_version: &str, kind: &str) -> Option<Arc<Kind>> {
        let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
        let kinds = self.read();
        kinds.all.iter().flatten().find(|k| k.group == group && k.kind == kind && k.version(version).is_some()).cloned()
    }

    /// All kinds, in the order in which they came.
    pub(crate) fn all(&self) -> Vec<Arc<Kind>> {
        self.read().all.iter().flatten().cloned().collect()
    }

    fn read(&self) -> RwLockReadGuard<'_, Kinds> {
        self.kinds.read().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Kinds {
    fn of_path(&self, group: &str, plural: &str) -> Option<&Arc<Kind>> {
        let id = self.ids.get(&(group.to_owned(), plural.to_owned()))?;
        self.all.get(*id)?.as_ref()
    }

    fn put(&mut self, mut kind: Kind) -> Arc<Kind> {
        let path = (kind.group.clone(), kind.plural.clone());
        let id = *self.ids.entry(path).or_insert(self.all.len());
        // Events are the same objects in both groups.
        let shared = self.ids.get(&(String::new(), "events".to_owned()));
        kind.id = match events::is_other_form(&kind.group, &kind.plural) {
            true => shared.copied().unwrap_or(id),
            false => id,
        };
        let kind = Arc::new(kind);
        match self.all.get_mut(id) {
            Some(known) => *known = Some(kind.clone()),
            None => self.all.push(Some(kind.clone())),
        }
        kind
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_registered_kind_is_found_and_replaced_by_its_path() {
        let registry = Registry::new();
        let order = CustomResource::namespaced("shop.example.com", "v1", "Order", "orders");
        let first = registry.register(order.clone()).expect("a kind");
        let second = registry.register(order.version("v2")).expect("a kind");
        assert_eq!(first.id, second.id);
        assert_eq!(registry.find("shop.example.com", "orders").expect("a kind").versions.len(), 2);
        assert!(registry.of_object("shop.example.com/v2", "Order").is_some());
        assert!(registry.of_object("shop.example.com/v3", "Order").is_none());
        assert!(registry.of_object("v1", "Pod").is_some());
    }

    #[test]
    fn a_kind_that_no_path_can_name_is_refused() {
        let registry = Registry::new();
        for (group, version, kind, plural) in [
            ("nodot", "v1", "Order", "orders"),
            ("shop.example.com", "V1", "Order", "orders"),
            ("shop.example.com", "v1", "Or\"der", "orders"),
            ("shop.example.com", "v1", "Order", "or/ders"),
        ] {
            assert!(registry.register(CustomResource::namespaced(group, version, kind, plural)).is_err());
        }
    }
}
