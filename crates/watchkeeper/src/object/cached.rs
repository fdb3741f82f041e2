//! An object as a user's type sees it.

use std::any::{Any, TypeId};
use std::fmt;
use std::marker::PhantomData;
use std::ops::Deref;
use std::sync::{Arc, Mutex, PoisonError};

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
    memo: Arc<Memo>,
    of: PhantomData<fn() -> K>,
}

/// An object and what was decoded of it, whatever the type: handlers of one event share one, also if they see it as
/// different types.
pub(crate) struct Memo {
    object: Object,
    decoded: Mutex<Vec<(TypeId, Decoded)>>,
}

type Decoded = Result<Arc<dyn Any + Send + Sync>, DecodeError>;

impl Memo {
    pub(crate) fn new(object: Object) -> Arc<Self> {
        Arc::new(Self { object, decoded: Mutex::default() })
    }

    /// The object as a `K`. The lock is held while it is decoded, so that others who want it wait, and do not decode too.
    fn decode<K: DeserializeOwned + Send + Sync + 'static>(&self) -> Result<Arc<K>, DecodeError> {
        if let Some(kept) = self.object.kept_decoded() {
            return Ok(kept);
        }
        let mut all = self.decoded.lock().unwrap_or_else(PoisonError::into_inner);
        let known = all.iter().find(|(of, _)| *of == TypeId::of::<K>());
        if let Some(known) = known.and_then(|(_, decoded)| match decoded {
            Ok(object) => object.clone().downcast().ok().map(Ok),
            Err(error) => Some(Err(error.clone())),
        }) {
            return known;
        }
        let decoded = self.object.decode().map(Arc::new);
        let erased = decoded.clone().map(|object: Arc<K>| object as Arc<dyn Any + Send + Sync>);
        all.push((TypeId::of::<K>(), erased));
        decoded
    }
}

impl<K> Cached<K> {
    pub(super) fn new(object: Object) -> Self {
        Self::of_memo(Memo::new(object))
    }

    pub(crate) fn of_memo(memo: Arc<Memo>) -> Self {
        Self { memo, of: PhantomData }
    }

    /// The object, without a type.
    pub fn object(&self) -> &Object {
        &self.memo.object
    }

    /// The object, without a type. What was decoded is freed with the last clone of this handle.
    pub fn into_object(self) -> Object {
        self.memo.object.clone()
    }
}

impl<K: DeserializeOwned + Send + Sync + 'static> Cached<K> {
    /// The decoded object. It is decoded once, however many ask and through whichever clone.
    pub fn decode(&self) -> Result<Arc<K>, DecodeError> {
        self.memo.decode()
    }
}

impl<K> Cached<K> {
    /// Decodes the body into any other type: a struct with the few fields that matter, say. Nothing of it is kept.
    pub fn view<V: DeserializeOwned>(&self) -> Result<V, DecodeError> {
        self.memo.object.decode()
    }
}

impl<K> Deref for Cached<K> {
    type Target = Object;

    fn deref(&self) -> &Object {
        &self.memo.object
    }
}

impl<K> Clone for Cached<K> {
    fn clone(&self) -> Self {
        Self { memo: self.memo.clone(), of: PhantomData }
    }
}

/// Key and version only: a body is never shown.
impl<K> fmt::Debug for Cached<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Cached({}@{})", self.key(), self.resource_version())
    }
}
