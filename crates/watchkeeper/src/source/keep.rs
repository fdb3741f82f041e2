//! How bodies are kept.

use std::any::{Any, TypeId};
use std::fmt;
use std::panic::catch_unwind;
use std::sync::Arc;

use kube_core::ApiResource;
use serde::de::DeserializeOwned;

/// How the bodies of a kind's objects are kept in memory.
///
/// | | in memory per object | for |
/// |---|---|---|
/// | `Packed`, the default | header, and the body compressed against a dictionary of the kind's own objects, or what differs from one that is much like it | caches that are large and read by key |
/// | `Raw`, the default for Secrets | header and body | exact bytes at no packing cost; a dictionary would keep bytes of deleted objects |
/// | [`Keep::decoded`] | as `Packed`, and the decoded object | scans over decoded objects all the time |
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Keep {
    /// Compressed.
    Packed,
    /// As the server sent them.
    Raw,
    /// Compressed, and decoded as well.
    Decoded(DecodeInto),
}

/// The type that objects are decoded into when they arrive.
#[derive(Clone, Copy)]
pub struct DecodeInto {
    id: TypeId,
    name: &'static str,
    decode: fn(&[u8]) -> Option<Arc<dyn Any + Send + Sync>>,
}

impl Keep {
    /// Each object is decoded when it arrives, and kept decoded: [`Cached::decode`](crate::Cached::decode) into this `K`
    /// costs nothing then. Other types are decoded on demand as always.
    pub fn decoded<K: DeserializeOwned + Send + Sync + 'static>() -> Self {
        Self::Decoded(DecodeInto {
            id: TypeId::of::<K>(),
            name: std::any::type_name::<K>(),
            // An object that does not fit is kept all the same; whoever decodes it gets the error.
            decode: |json| Some(Arc::new(catch_unwind(|| serde_json::from_slice::<K>(json).ok()).ok()??)),
        })
    }

    /// What is kept of a kind if nobody says.
    pub(crate) fn default_for(resource: &ApiResource) -> Self {
        let is_secret = resource.group.is_empty() && resource.plural == "secrets";
        if is_secret { Self::Raw } else { Self::Packed }
    }
}

impl DecodeInto {
    pub(super) fn decode(&self, json: &[u8]) -> Option<Arc<dyn Any + Send + Sync>> {
        (self.decode)(json)
    }
}

impl PartialEq for DecodeInto {
    fn eq(&self, other: &Self) -> bool {
        self.id == other.id
    }
}

impl Eq for DecodeInto {}

impl fmt::Debug for DecodeInto {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}
