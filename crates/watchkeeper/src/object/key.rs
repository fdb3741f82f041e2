//! What identifies an object within its kind.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

/// Namespace and name; objects of cluster-scoped kinds have no namespace.
///
/// The text form is client-go's: `namespace/name`, or `name` alone.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ObjectKey {
    namespace: Option<Arc<str>>,
    name: Arc<str>,
}

impl ObjectKey {
    /// The key of an object in a namespace. An empty namespace is none.
    pub fn namespaced(namespace: impl Into<Arc<str>>, name: impl Into<Arc<str>>) -> Self {
        let namespace = namespace.into();
        Self { namespace: (!namespace.is_empty()).then_some(namespace), name: name.into() }
    }

    /// The key of an object of a cluster-scoped kind.
    pub fn cluster(name: impl Into<Arc<str>>) -> Self {
        Self { namespace: None, name: name.into() }
    }

    /// The namespace, if the kind has them.
    pub fn namespace(&self) -> Option<&str> {
        self.namespace.as_deref()
    }

    /// The name.
    pub fn name(&self) -> &str {
        &self.name
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
}
