//! An object as a user's type sees it.

use std::fmt;
use std::ops::Deref;
use std::sync::{Arc, OnceLock};

use serde::de::DeserializeOwned;

use super::{DecodeError, Object};

/// One object in the cache, as a `K`: its header is always at hand, its body is decoded when asked for.
///
/// What was decoded is kept in this handle and its clones, and freed with the last of them. The cache itself keeps nothing
/// decoded, unless it was told to ([`Keep::decoded`](crate::Keep::decoded)). All that an [`Object`] can do, this can too.
///
/// ```
/// use serde::Deserialize;
/// use watchkeeper::{Cached, Object};
///
/// #[derive(Deserialize)]
/// struct Pod {
///     spec: Spec,
/// }
///
/// #[derive(Deserialize)]
/// #[serde(rename_all = "camelCase")]
/// struct Spec {
///     node_name: String,
/// }
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let pod = r#"{"metadata": {"name": "web-0", "resourceVersion": "7"}, "spec": {"nodeName": "node-1"}}"#;
/// let pod: Cached<Pod> = Object::from_json(pod)?.typed();
/// assert_eq!(pod.key().name(), "web-0");
/// assert_eq!(pod.decode()?.spec.node_name, "node-1");
/// # Ok(()) }
/// ```
pub struct Cached<K> {
    object: Object,
    decoded: Arc<OnceLock<Result<Arc<K>, DecodeError>>>,
}

impl<K> Cached<K> {
    pub(super) fn new(object: Object) -> Self {
        Self { object, decoded: Arc::default() }
    }

    /// The object, without a type.
    pub fn object(&self) -> &Object {
        &self.object
    }

    /// The object, without a type. What was decoded is freed with the last clone of this handle.
    pub fn into_object(self) -> Object {
        self.object
    }
}

impl<K: DeserializeOwned + Send + Sync + 'static> Cached<K> {
    /// The decoded object. It is decoded once, however many ask and through whichever clone.
    pub fn decode(&self) -> Result<Arc<K>, DecodeError> {
        let decode = || match self.object.kept_decoded() {
            Some(kept) => Ok(kept),
            None => self.object.decode().map(Arc::new),
        };
        self.decoded.get_or_init(decode).clone()
    }
}

impl<K> Cached<K> {
    /// Decodes the body into any other type: a struct with the few fields that matter, say. Nothing of it is kept.
    pub fn view<V: DeserializeOwned>(&self) -> Result<V, DecodeError> {
        self.object.decode()
    }
}

impl<K> Deref for Cached<K> {
    type Target = Object;

    fn deref(&self) -> &Object {
        &self.object
    }
}

impl<K> Clone for Cached<K> {
    fn clone(&self) -> Self {
        Self { object: self.object.clone(), decoded: self.decoded.clone() }
    }
}

/// Key and version only: a body is never shown.
impl<K> fmt::Debug for Cached<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Cached({}@{})", self.key(), self.resource_version())
    }
}
