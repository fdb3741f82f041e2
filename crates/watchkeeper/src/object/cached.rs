//! An object as a user's type sees it.

use std::fmt;
use std::marker::PhantomData;
use std::ops::Deref;
use std::sync::{Arc, OnceLock};

use serde::de::DeserializeOwned;

use super::decodes::{Decodes, Shared};
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
    decodes: Keeper,
    of: PhantomData<fn() -> K>,
}

/// Who keeps what was decoded.
enum Keeper {
    /// This handle: nothing, and no memory for it, until somebody decodes it or clones this.
    This(OnceLock<Arc<Decodes>>),
    /// This one and its clones.
    Clones(Arc<Decodes>),
    /// All who are told of it keep it together, for a while; it is one of those.
    Places(Arc<Shared>, usize),
}

impl<K> Cached<K> {
    pub(crate) fn new(object: Object) -> Self {
        Self::kept_by(Keeper::This(OnceLock::new()), object)
    }

    /// One of those that several are told of. It stays with who tells them: clones are what they keep.
    pub(crate) fn told(object: Object, shared: Arc<Shared>, at: usize) -> Self {
        Self::kept_by(Keeper::Places(shared, at), object)
    }

    /// One that can be kept for long, and keeps what is decoded of it.
    pub(crate) fn into_kept(self) -> Self {
        match self.decodes {
            Keeper::Places(shared, at) => Self::kept_by(Keeper::Clones(shared.decodes(at)), self.object),
            Keeper::This(_) | Keeper::Clones(_) => self,
        }
    }

    fn kept_by(decodes: Keeper, object: Object) -> Self {
        Self { object, decodes, of: PhantomData }
    }

    /// The object, without a type.
    pub fn object(&self) -> &Object {
        &self.object
    }

    /// The object, without a type. What was decoded is freed with the last clone of this handle.
    pub fn into_object(self) -> Object {
        self.object
    }

    fn decodes(&self) -> Arc<Decodes> {
        match &self.decodes {
            Keeper::This(decodes) => decodes.get_or_init(Arc::default).clone(),
            Keeper::Clones(decodes) => decodes.clone(),
            Keeper::Places(shared, at) => shared.decodes(*at),
        }
    }
}

impl<K: DeserializeOwned + Send + Sync + 'static> Cached<K> {
    /// The decoded object. It is decoded once, however many ask and through whichever clone.
    ///
    /// In a handler, the handle of an event shares what is decoded with other handlers, and only for some sixty events: one that
    /// lags behind the others, or holds on to the event while they go on, may decode again. A clone keeps what it has.
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
        Self::kept_by(Keeper::Clones(self.decodes()), self.object.clone())
    }
}

/// Key and version only: a body is never shown.
impl<K> fmt::Debug for Cached<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Cached({}@{})", self.key(), self.resource_version())
    }
}
