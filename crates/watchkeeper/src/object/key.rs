//! What identifies an object within its kind.
//!
//! There is a key for each object of a cluster in every cache of it, and another wherever somebody remembers an object:
//! so a key is one pointer. What it points to is one allocation with the namespace and the name, and, if the key is that
//! of an object that was read, the other short texts of its header: they are needed as often, and apart each of them
//! would cost an allocation.

use std::cmp::Ordering;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::str::FromStr;

use triomphe::ThinArc;

/// Namespace and name; objects of cluster-scoped kinds have no namespace.
///
/// The text form is client-go's: `namespace/name`, or `name` alone. Cheap to clone.
#[derive(Clone)]
pub struct ObjectKey(ThinArc<Lengths, u8>);

/// Where the texts end: namespace, name, uid and labels stand one behind the other.
#[derive(Debug, Clone, Copy)]
struct Lengths {
    namespace: u32,
    name: u32,
    uid: u32,
    /// Not a length: a flag of the header that has room here.
    deleting: bool,
}

impl ObjectKey {
    /// The key of an object in a namespace. An empty namespace is none.
    pub fn namespaced(namespace: impl AsRef<str>, name: impl AsRef<str>) -> Self {
        Self::with_header(namespace.as_ref(), name.as_ref(), "", &[], false)
    }

    /// The key of an object of a cluster-scoped kind.
    pub fn cluster(name: impl AsRef<str>) -> Self {
        Self::namespaced("", name)
    }

    /// A key that carries the rest of a header's texts.
    pub(super) fn with_header(namespace: &str, name: &str, uid: &str, labels: &[u8], deleting: bool) -> Self {
        let length = |text: &str| u32::try_from(text.len()).unwrap_or(u32::MAX);
        let lengths = Lengths { namespace: length(namespace), name: length(name), uid: length(uid), deleting };
        let text = [namespace.as_bytes(), name.as_bytes(), uid.as_bytes(), labels].concat();
        Self(ThinArc::from_header_and_slice(lengths, &text))
    }

    /// The namespace, if the kind has them.
    pub fn namespace(&self) -> Option<&str> {
        let namespace = self.namespace_bytes();
        (!namespace.is_empty()).then(|| text(namespace))
    }

    /// The name.
    pub fn name(&self) -> &str {
        text(self.name_bytes())
    }

    pub(super) fn uid(&self) -> &str {
        let Lengths { namespace, name, uid, .. } = *self.lengths();
        text(self.part(namespace as usize + name as usize, uid))
    }

    pub(super) fn labels(&self) -> &[u8] {
        let Lengths { namespace, name, uid, .. } = *self.lengths();
        self.0.slice.get(namespace as usize + name as usize + uid as usize..).unwrap_or_default()
    }

    pub(super) fn deleting(&self) -> bool {
        self.lengths().deleting
    }

    fn lengths(&self) -> &Lengths {
        &self.0.header.header
    }

    fn namespace_bytes(&self) -> &[u8] {
        self.part(0, self.lengths().namespace)
    }

    fn name_bytes(&self) -> &[u8] {
        self.part(self.lengths().namespace as usize, self.lengths().name)
    }

    fn part(&self, start: usize, length: u32) -> &[u8] {
        self.0.slice.get(start..start + length as usize).unwrap_or_default()
    }
}

/// What was put in as text comes out as text.
pub(super) fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).unwrap_or_default()
}

impl PartialEq for ObjectKey {
    fn eq(&self, other: &Self) -> bool {
        self.name_bytes() == other.name_bytes() && self.namespace_bytes() == other.namespace_bytes()
    }
}

impl Eq for ObjectKey {}

impl Hash for ObjectKey {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.namespace_bytes().hash(state);
        self.name_bytes().hash(state);
    }
}

impl Ord for ObjectKey {
    fn cmp(&self, other: &Self) -> Ordering {
        (self.namespace_bytes(), self.name_bytes()).cmp(&(other.namespace_bytes(), other.name_bytes()))
    }
}

impl PartialOrd for ObjectKey {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl fmt::Display for ObjectKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(namespace) = self.namespace() {
            write!(f, "{namespace}/")?;
        }
        f.write_str(self.name())
    }
}

impl fmt::Debug for ObjectKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.to_string())
    }
}

/// A text with more than one slash is no key.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is no object key: expected `namespace/name` or `name`")]
pub struct InvalidKey(String);

impl FromStr for ObjectKey {
    type Err = InvalidKey;

    fn from_str(text: &str) -> Result<Self, InvalidKey> {
        match text.split_once('/') {
            None => Ok(Self::cluster(text)),
            Some((_, name)) if name.contains('/') => Err(InvalidKey(text.to_owned())),
            Some((namespace, name)) => Ok(Self::namespaced(namespace, name)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_survive_the_way_through_text() {
        for text in ["shop/web-0", "node-1"] {
            assert_eq!(text.parse::<ObjectKey>().map(|key| key.to_string()), Ok(text.to_owned()));
        }
        assert_eq!(ObjectKey::namespaced("", "node-1"), ObjectKey::cluster("node-1"));
        assert!("a/b/c".parse::<ObjectKey>().is_err());
    }

    #[test]
    fn a_key_is_namespace_and_name_whatever_else_it_carries() {
        let plain = ObjectKey::namespaced("shop", "web");
        let loaded = ObjectKey::with_header("shop", "web", "uid", b"labels", true);
        assert_eq!(plain, loaded);
        assert_eq!(plain.cmp(&loaded), Ordering::Equal);
        let hash = |key: &ObjectKey| std::hash::BuildHasher::hash_one(&foldhash::fast::FixedState::default(), key);
        assert_eq!(hash(&plain), hash(&loaded));
        assert_eq!((loaded.uid(), loaded.labels(), loaded.deleting()), ("uid", b"labels".as_slice(), true));
        assert_ne!(ObjectKey::cluster("a/b"), ObjectKey::namespaced("a", "b"));
        assert_eq!(size_of::<ObjectKey>(), 8);
    }
}
