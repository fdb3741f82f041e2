//! An object as a user's type sees it.

use std::any::{Any, TypeId};
use std::fmt;
use std::marker::PhantomData;
use std::ops::Deref;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

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
    /// What was decoded of it: nothing, and no memory for it, until somebody decodes it or clones this.
    decodes: OnceLock<Arc<Decodes>>,
    of: PhantomData<fn() -> K>,
}

/// What was decoded of an object, whatever the type: handlers of one event share one, also if they see it as different types.
#[derive(Default)]
pub(crate) struct Decodes(Mutex<Vec<(TypeId, Decoded)>>);

type Decoded = Result<Arc<dyn Any + Send + Sync>, DecodeError>;

impl Decodes {
    /// The object as a `K`. The lock is held while it is decoded, so that others who want it wait, and do not decode too.
    fn decode<K: DeserializeOwned + Send + Sync + 'static>(&self, object: &Object) -> Result<Arc<K>, DecodeError> {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let known = all.iter().find(|(of, _)| *of == TypeId::of::<K>());
        if let Some(known) = known.and_then(|(_, decoded)| match decoded {
            Ok(object) => object.clone().downcast().ok().map(Ok),
            Err(error) => Some(Err(error.clone())),
        }) {
            return known;
        }
        let decoded = object.decode().map(Arc::new);
        let erased = decoded.clone().map(|object: Arc<K>| object as Arc<dyn Any + Send + Sync>);
        all.push((TypeId::of::<K>(), erased));
        decoded
    }
}

impl<K> Cached<K> {
    pub(crate) fn new(object: Object) -> Self {
        Self { object, decodes: OnceLock::new(), of: PhantomData }
    }

    /// One that shares what is decoded with others of the same object.
    pub(crate) fn sharing(object: Object, decodes: Arc<Decodes>) -> Self {
        Self { object, decodes: decodes.into(), of: PhantomData }
    }

    /// The object, without a type.
    pub fn object(&self) -> &Object {
        &self.object
    }

    /// The object, without a type. What was decoded is freed with the last clone of this handle.
    pub fn into_object(self) -> Object {
        self.object
    }

    fn decodes(&self) -> &Arc<Decodes> {
        self.decodes.get_or_init(Arc::default)
    }
}

impl<K: DeserializeOwned + Send + Sync + 'static> Cached<K> {
    /// The decoded object. It is decoded once, however many ask and through whichever clone.
    pub fn decode(&self) -> Result<Arc<K>, DecodeError> {
        match self.object.kept_decoded() {
            Some(kept) => Ok(kept),
            None => self.decodes().decode(&self.object),
        }
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
        Self::sharing(self.object.clone(), self.decodes().clone())
    }
}

/// Key and version only: a body is never shown.
impl<K> fmt::Debug for Cached<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Cached({}@{})", self.key(), self.resource_version())
    }
}
