//! The handle to one object.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use bytes::Bytes;
use compact_str::CompactString;
use indexmap::IndexMap;
use serde::Deserialize;
use serde::de::DeserializeOwned;

use super::header::{self, RawHeader};
use super::{DecodeError, ObjectKey, ResourceVersion};
use crate::{Error, ErrorKind};

/// One object of the cluster: its header is at hand, its body is decoded when asked for. Cheap to clone.
#[derive(Clone)]
pub struct Object(Arc<Inner>);

struct Inner {
    key: ObjectKey,
    uid: Option<CompactString>,
    version: ResourceVersion,
    labels: Box<[(Box<str>, Box<str>)]>,
    deleting: bool,
    body: Body,
}

/// How the body is kept.
enum Body {
    /// The JSON that the server sent.
    Raw(Bytes),
}

impl Object {
    /// Namespace and name.
    pub fn key(&self) -> &ObjectKey {
        &self.0.key
    }

    /// The uid, which every object of a real server has.
    pub fn uid(&self) -> Option<&str> {
        self.0.uid.as_deref()
    }

    /// The version of this state of the object.
    pub fn resource_version(&self) -> &ResourceVersion {
        &self.0.version
    }

    /// The labels.
    pub fn labels(&self) -> Labels<'_> {
        Labels(&self.0.labels)
    }

    /// Somebody has asked for the object's deletion, and something still holds it.
    pub fn is_deleting(&self) -> bool {
        self.0.deleting
    }

    /// The object as the server sent it. Items of lists, which built-in kinds send without `kind` and `apiVersion`, have
    /// both in front, as events of a watch do; nothing else is touched.
    pub fn json(&self) -> Bytes {
        match &self.0.body {
            Body::Raw(bytes) => bytes.clone(),
        }
    }

    /// How many bytes the body takes.
    pub(crate) fn size(&self) -> usize {
        match &self.0.body {
            Body::Raw(bytes) => bytes.len(),
        }
    }

    /// Decodes the body into `K`: the object's type, or any struct with those of its fields that matter.
    pub fn decode<K: DeserializeOwned>(&self) -> Result<K, DecodeError> {
        let json = self.json();
        // The path is looked for only when it is needed: following it costs as much as the decoding.
        serde_json::from_slice(&json).or_else(|_| {
            let mut deserializer = serde_json::Deserializer::from_slice(&json);
            serde_path_to_error::deserialize(&mut deserializer).map_err(|error| self.decode_error::<K>(&json, &error))
        })
    }

    /// An object from JSON, for tests and for sources of one's own. It must have a name and a version.
    pub fn from_json(json: impl Into<Bytes>) -> Result<Self, Error> {
        let json = json.into();
        let malformed = |why: &str| Error::new(ErrorKind::Malformed, format_args!("an object cannot be used: {why}"));
        header::check(&json).map_err(malformed)?;
        let header: RawHeader<'_> = serde_json::from_slice(&json).map_err(|_| malformed("it is not JSON"))?;
        match header.problem() {
            Some(problem) => Err(malformed(problem)),
            None => Ok(Self::from_parts(&header, json.clone())),
        }
    }

    /// Makes the handle. The header has no [problem](RawHeader::problem).
    pub(crate) fn from_parts(header: &RawHeader<'_>, json: Bytes) -> Self {
        Self(Arc::new(Inner {
            key: header.key().unwrap_or_else(|| ObjectKey::cluster("")),
            uid: header.uid.as_deref().map(CompactString::from),
            version: header.resource_version.as_deref().unwrap_or_default().into(),
            labels: own_labels(&header.labels),
            deleting: header.deleting,
            body: Body::Raw(json),
        }))
    }

    fn decode_error<K>(&self, json: &[u8], error: &serde_path_to_error::Error<serde_json::Error>) -> DecodeError {
        #[derive(Deserialize)]
        struct Kind {
            kind: Box<str>,
        }
        let inner = error.inner();
        let line_start = memchr::memchr_iter(b'\n', json).nth(inner.line().saturating_sub(2)).map_or(0, |at| at + 1);
        DecodeError {
            kind: serde_json::from_slice::<Kind>(json).ok().map(|object| object.kind),
            key: self.key().clone(),
            version: self.resource_version().clone(),
            path: error.path().to_string().into(),
            offset: if inner.line() > 1 { line_start + inner.column() } else { inner.column() },
            into: std::any::type_name::<K>(),
        }
    }
}

/// The labels, of equal keys the last. Few are compared with each other, which is what nearly every object needs; a map
/// is for the hundred thousand that one can have.
fn own_labels(labels: &[(Cow<'_, str>, Cow<'_, str>)]) -> Box<[(Box<str>, Box<str>)]> {
    let own = |(key, value): (&str, &str)| (key.into(), value.into());
    let pairs = labels.iter().map(|(key, value)| (&**key, &**value));
    if labels.len() > 16 {
        return pairs.collect::<IndexMap<_, _>>().into_iter().map(own).collect();
    }
    let mut kept: Vec<(&str, &str)> = Vec::with_capacity(labels.len());
    for (key, value) in pairs {
        match kept.iter_mut().find(|(known, _)| *known == key) {
            Some(label) => label.1 = value,
            None => kept.push((key, value)),
        }
    }
    kept.into_iter().map(own).collect()
}

/// Key and version only: a body is never shown.
impl fmt::Debug for Object {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Object({}@{})", self.key(), self.resource_version())
    }
}

/// The labels of an object.
#[derive(Debug, Clone, Copy)]
pub struct Labels<'a>(&'a [(Box<str>, Box<str>)]);

impl<'a> Labels<'a> {
    /// The value of a label.
    pub fn get(&self, key: &str) -> Option<&'a str> {
        self.0.iter().find(|(known, _)| **known == *key).map(|(_, value)| &**value)
    }

    /// All labels, in the order in which the object has them.
    pub fn iter(&self) -> impl Iterator<Item = (&'a str, &'a str)> + use<'a> {
        self.0.iter().map(|(key, value)| (&**key, &**value))
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// There are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}
