//! The handle to one object.

use std::any::Any;
use std::fmt;
use std::hash::{BuildHasher as _, Hash};
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError, Weak};

use arcstr::ArcStr;
use bytes::Bytes;
use compact_str::CompactString;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use smallvec::SmallVec;

use super::header::{self, RawHeader};
use super::key::HeaderTexts;
use super::labels::{self, LabelSets, Labels};
use super::packed::{Base, Dictionary, Packed, Spliced};
use super::{Cached, DecodeError, ObjectKey, ResourceVersion};
use crate::{Error, ErrorKind};

/// One object of the cluster: its header is at hand, its body is decoded when asked for. Cheap to clone.
///
/// Where it came from a [`ListWatch`](crate::ListWatch), its body is [packed](crate::Keep) behind its back; what comes out
/// is the same at any time.
#[derive(Clone)]
pub struct Object(Arc<Inner>);

struct Inner {
    /// Namespace, name, uid, version, the object's own labels, and whether it is being deleted.
    key: ObjectKey,
    shared_labels: Option<ArcStr>,
    /// Of the body; of a row, of what does not change with the time of day.
    hash: u64,
    state: Mutex<State>,
}

/// What changes while the object does not.
struct State {
    body: Body,
    extra: Option<Box<Extra>>,
}

/// How the body is kept.
#[derive(Clone)]
enum Body {
    /// The JSON that the server sent. (In a box, because nearly all objects of a cache are packed.)
    Raw(Box<Bytes>),
    /// The same, until it is packed.
    Lent(Box<Lent>),
    Packed(Packed),
    /// What differs from an earlier state, or from an object that is much like it.
    Spliced(Spliced),
}

/// A raw body that waits to be packed.
#[derive(Clone)]
struct Lent {
    /// It may be in the buffer that it was read into: who keeps it keeps all that was read with it.
    json: Bytes,
    /// What it is probably much like: its last state.
    base: Option<Base>,
}

impl Body {
    /// A raw body in memory of its own.
    fn own(json: &[u8]) -> Self {
        Self::Raw(Box::new(Bytes::copy_from_slice(json)))
    }

    fn size(&self) -> usize {
        match self {
            Self::Raw(json) => json.len(),
            Self::Lent(lent) => lent.json.len(),
            Self::Packed(packed) => packed.size(),
            Self::Spliced(spliced) => spliced.size(),
        }
    }

    /// Its size, and what is needed to know where it is.
    fn memory(&self) -> usize {
        match self {
            Self::Raw(json) => size_of::<Bytes>() + json.len(),
            Self::Lent(lent) => size_of::<Lent>() + lent.json.len(),
            Self::Packed(packed) => packed.memory(),
            Self::Spliced(spliced) => spliced.memory(),
        }
    }
}

/// The values of an object in one index.
pub(crate) type IndexValues = SmallVec<[CompactString; 1]>;

/// What most objects do not have.
#[derive(Default)]
struct Extra {
    /// The values of indexes that look into the body, by the index's number, until the store takes them. While a list comes, all of
    /// its objects have some: so those of one index, which is mostly one, need no memory of their own, which would be as many
    /// holes afterwards.
    index_values: SmallVec<[(u64, IndexValues); 1]>,
    /// The decoded object, if it is to be kept.
    decoded: Option<Arc<dyn Any + Send + Sync>>,
}

impl Object {
    /// Namespace and name.
    pub fn key(&self) -> &ObjectKey {
        &self.0.key
    }

    /// The uid, which every object of a real server has.
    pub fn uid(&self) -> Option<&str> {
        Some(self.0.key.header().uid).filter(|uid| !uid.is_empty())
    }

    /// The version of this state of the object.
    pub fn resource_version(&self) -> ResourceVersion {
        self.0.key.header().version.into()
    }

    /// The labels.
    pub fn labels(&self) -> Labels<'_> {
        let shared = self.0.shared_labels.as_deref().unwrap_or_default();
        Labels { shared, own: self.0.key.header().labels }
    }

    /// Somebody has asked for the object's deletion, and something still holds it.
    pub fn is_deleting(&self) -> bool {
        self.0.key.header().deleting
    }

    /// The object as the server sent it. Items of lists, which built-in kinds send without `kind` and `apiVersion`, have
    /// both in front, as events of a watch do; nothing else is touched. Of a [table](crate::ListWatch::table), the object's
    /// row: `{"cells":[..],"object":{..}}`.
    pub fn json(&self) -> Result<Bytes, DecodeError> {
        match self.body() {
            Body::Lent(lent) => Ok(Bytes::copy_from_slice(&lent.json)),
            body => self.unpacked(body),
        }
    }

    /// The same, for those who do not keep it.
    fn json_for_now(&self) -> Result<Bytes, DecodeError> {
        self.unpacked(self.body())
    }

    /// Not under the lock.
    fn unpacked(&self, body: Body) -> Result<Bytes, DecodeError> {
        let unpacked = match body {
            Body::Raw(json) => return Ok(*json),
            Body::Lent(lent) => return Ok(lent.json),
            Body::Packed(packed) => packed.unpack(),
            Body::Spliced(spliced) => spliced.unpack(),
        };
        unpacked.ok_or_else(|| self.cannot_unpack())
    }

    /// Decodes the body into `K`: the object's type, or any struct with those of its fields that matter. Decodes anew
    /// each time; [`typed`](Self::typed) makes a handle that remembers.
    pub fn decode<K: DeserializeOwned>(&self) -> Result<K, DecodeError> {
        let json = self.json_for_now()?;
        // The path is looked for only when it is needed: following it costs as much as the decoding.
        // All of it is looked at for UTF-8 at once, which is faster than string by string.
        let text = std::str::from_utf8(&json).ok();
        text.map_or_else(|| serde_json::from_slice(&json), serde_json::from_str).or_else(|_| {
            let mut deserializer = serde_json::Deserializer::from_slice(&json);
            serde_path_to_error::deserialize(&mut deserializer).map_err(|error| self.decode_error::<K>(&json, &error))
        })
    }

    /// How many bytes this object takes in memory now: its header, and its body as it is kept, packed or not.
    ///
    /// An estimate, which leaves out what is shared with other objects (the dictionary, which [`Packing`](crate::Packing)
    /// tells, labels, and the body that it is kept as a difference from), the place in the store, and what was decoded.
    pub fn memory(&self) -> usize {
        // Two counts of references stand before what an `Arc` points to.
        2 * size_of::<usize>() + size_of::<Inner>() + self.0.key.memory() + self.state().body.memory()
    }

    /// The same object, as a `K`. Nothing is decoded yet.
    pub fn typed<K>(self) -> Cached<K> {
        Cached::new(self)
    }

    /// An object from JSON, for tests and for sources of one's own. It must have a name and a version.
    pub fn from_json(json: impl Into<Bytes>) -> Result<Self, Error> {
        let json = json.into();
        let malformed = |why: &str| Error::new(ErrorKind::Malformed, format_args!("an object cannot be used: {why}"));
        header::check(&json).map_err(malformed)?;
        let header: RawHeader<'_> = serde_json::from_slice(&json).map_err(|_| malformed("it is not JSON"))?;
        match header.problem() {
            Some(problem) => Err(malformed(problem)),
            None => Ok(Self::from_parts(&header, Body::Raw(Box::new(json.clone())), body_hash(&*json), None)),
        }
    }

    /// Makes the handle of an object that was read. If it is `lent`, the body may be a part of all that was read with it, and
    /// is packed or [owned](Self::own_body) soon. The header has no [problem](RawHeader::problem).
    pub(crate) fn read(header: &RawHeader<'_>, json: Bytes, lent: bool, hash: u64, sets: &mut LabelSets) -> Self {
        let body = if lent { Body::Lent(Box::new(Lent { json, base: None })) } else { Body::Raw(Box::new(json)) };
        Self::from_parts(header, body, hash, Some(sets))
    }

    fn from_parts(header: &RawHeader<'_>, body: Body, hash: u64, sets: Option<&mut LabelSets>) -> Self {
        let [namespace, name, uid, version] = [&header.namespace, &header.name, &header.uid, &header.resource_version]
            .map(|field| field.as_deref().unwrap_or_default());
        let deleting = header.deleting;
        let key =
            |labels: &str| ObjectKey::with_header(namespace, name, HeaderTexts { deleting, version, uid, labels });
        let (shared_labels, key) = match sets {
            Some(sets) => {
                let (shared, own) = sets.split(&header.labels);
                (shared, key(own))
            }
            None => (None, key(&labels::own(&header.labels))),
        };
        Self(Arc::new(Inner { key, shared_labels, hash, state: Mutex::new(State { body, extra: None }) }))
    }

    /// Looks at the header, so that it is at hand for who looks at it next.
    pub(crate) fn touch(&self) {
        self.0.key.touch();
    }

    /// The two are the same state of the same object: uid, version and body are equal. (A transform, say, can make two
    /// bodies of one version.)
    pub(crate) fn is_same_state(&self, other: &Self) -> bool {
        let same = |one: &Inner, two: &Inner| {
            let (header, other) = (one.key.header(), two.key.header());
            one.hash == two.hash && one.key == two.key && (header.uid, header.version) == (other.uid, other.version)
        };
        self.is_same_handle(other) || same(&self.0, &other.0)
    }

    /// A hash of the body (of a row, of its object and the columns), which is another one in each process.
    pub(crate) fn body_hash(&self) -> u64 {
        self.0.hash
    }

    /// The two are clones of one handle.
    pub(crate) fn is_same_handle(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    /// How many bytes the body takes as it is kept now.
    pub(crate) fn size(&self) -> usize {
        self.state().body.size()
    }

    /// The body, if it is not packed.
    pub(crate) fn raw(&self) -> Option<Bytes> {
        match &self.state().body {
            Body::Raw(json) => Some(Bytes::clone(json)),
            Body::Lent(lent) => Some(lent.json.clone()),
            Body::Packed(_) | Body::Spliced(_) => None,
        }
    }

    /// While the body waits to be packed, it remembers what it may be spliced onto. So does the next state of the object, if this
    /// one is gone before its turn.
    pub(crate) fn wait_with(&self, base: Base) {
        let mut state = self.state();
        match &mut state.body {
            Body::Lent(lent) => lent.base = Some(base),
            Body::Raw(json) => state.body = Body::Lent(Box::new(Lent { json: Bytes::clone(json), base: Some(base) })),
            Body::Packed(_) | Body::Spliced(_) => {}
        }
    }

    /// What another state of this object may be spliced onto: this one, or, while it waits to be packed, what it may be spliced onto
    /// itself.
    pub(crate) fn base_of_next(&self) -> Option<Base> {
        if let Body::Lent(lent) = &self.state().body {
            return lent.base.clone();
        }
        self.base()
    }

    /// The body, if it is packed; if it is spliced, what onto. A later state may be spliced onto it.
    pub(crate) fn base(&self) -> Option<Base> {
        match &self.state().body {
            Body::Raw(_) | Body::Lent(_) => None,
            Body::Packed(packed) => Some(Base { packed: packed.clone(), is_shared: false }),
            Body::Spliced(spliced) => Some(spliced.base()),
        }
    }

    /// Objects with the same likeness are probably much alike: their names are made of one, in one namespace.
    pub(crate) fn likeness(&self) -> u64 {
        body_hash(&(self.0.key.namespace(), self.0.key.stem()))
    }

    fn body(&self) -> Body {
        self.state().body.clone()
    }

    /// Packs the body, or packs it anew, and gives the size that it has then. It stays as it is if that saves nothing.
    pub(crate) fn pack(&self, dictionary: Option<&Arc<Dictionary>>) -> usize {
        let Ok(json) = self.json_for_now() else { return self.size() };
        let body = match Packed::pack(&json, dictionary) {
            Some(packed) => Body::Packed(packed),
            // Kept with an old dictionary it would keep that alive.
            None => Body::own(&json),
        };
        let size = body.size();
        self.replace_body(body);
        size
    }

    /// Keeps the body as what differs from another.
    pub(crate) fn keep_spliced(&self, spliced: Spliced) {
        self.replace_body(Body::Spliced(spliced));
    }

    /// Packs a body anew that needs another dictionary, if it does. What other objects are spliced onto is packed once for all of
    /// them, by `repack`.
    pub(crate) fn move_to(&self, dictionary: &Arc<Dictionary>, repack: impl FnOnce(&Packed) -> Option<Packed>) -> bool {
        let body = self.body();
        let packed = match &body {
            Body::Raw(_) | Body::Lent(_) => return false,
            Body::Packed(packed) => packed,
            Body::Spliced(spliced) => spliced.packed(),
        };
        if packed.dictionary().is_none() || packed.is_against(dictionary) {
            return false;
        }
        let moved = match &body {
            Body::Spliced(spliced) if spliced.is_shared() => {
                repack(packed).map(|packed| Body::Spliced(spliced.on_repacked(packed)))
            }
            // One clone is the object's, one is here.
            Body::Packed(packed) if packed.is_held_besides(2) => repack(packed).map(Body::Packed),
            _ => None,
        };
        match moved {
            Some(body) => self.replace_body(body),
            None => drop(self.pack(Some(dictionary))),
        }
        true
    }

    /// Gives a raw body memory of its own: it may be a part of all that was read with it.
    pub(crate) fn own_body(&self) {
        if let Some(json) = self.raw() {
            self.replace_body(Body::own(&json));
        }
    }

    fn replace_body(&self, body: Body) {
        let old = std::mem::replace(&mut self.state().body, body);
        // Not under the lock.
        drop(old);
    }

    /// Keeps the decoded object for as long as the handle lives.
    pub(crate) fn keep_decoded(&self, decoded: Arc<dyn Any + Send + Sync>) {
        self.state().extra.get_or_insert_default().decoded = Some(decoded);
    }

    /// The decoded object, if one of this type is kept.
    pub(crate) fn kept_decoded<K: Send + Sync + 'static>(&self) -> Option<Arc<K>> {
        let decoded = self.state().extra.as_ref()?.decoded.clone()?;
        decoded.downcast().ok()
    }

    /// Hangs on the handle what an index finds in the body, while that is at hand.
    pub(crate) fn put_index_values(&self, index: u64, values: IndexValues) {
        self.state().extra.get_or_insert_default().index_values.push((index, values));
    }

    /// Takes what was hung on it for an index, which needs it once.
    pub(crate) fn take_index_values(&self, index: u64) -> Option<IndexValues> {
        let mut state = self.state();
        let extra = state.extra.as_mut()?;
        let at = extra.index_values.iter().position(|(known, _)| *known == index)?;
        let (_, values) = extra.index_values.swap_remove(at);
        if extra.index_values.is_empty() && extra.decoded.is_none() {
            state.extra = None;
        }
        Some(values)
    }

    /// A reference that does not keep the object.
    pub(crate) fn downgrade(&self) -> WeakObject {
        WeakObject(Arc::downgrade(&self.0))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn cannot_unpack(&self) -> DecodeError {
        DecodeError {
            kind: None,
            key: self.key().clone(),
            version: self.resource_version(),
            path: ".".into(),
            offset: 0,
            into: "JSON, because it cannot be unpacked",
        }
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
            version: self.resource_version(),
            path: error.path().to_string().into(),
            offset: if inner.line() > 1 { line_start + inner.column() } else { inner.column() },
            into: std::any::type_name::<K>(),
        }
    }
}

/// A reference to an object that may be gone.
#[derive(Clone)]
pub(crate) struct WeakObject(Weak<Inner>);

impl WeakObject {
    pub(crate) fn upgrade(&self) -> Option<Object> {
        self.0.upgrade().map(Object)
    }

    pub(crate) fn is_gone(&self) -> bool {
        self.0.strong_count() == 0
    }
}

/// Seeded anew in each process: nobody outside can make two bodies with one hash.
pub(crate) fn body_hash(body: &(impl Hash + ?Sized)) -> u64 {
    static HASHER: LazyLock<foldhash::quality::RandomState> = LazyLock::new(Default::default);
    HASHER.hash_one(body)
}

/// Key and version only: a body is never shown.
impl fmt::Debug for Object {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Object({}@{})", self.key(), self.resource_version())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_takes_little_more_than_its_texts() {
        assert_eq!(size_of::<Inner>(), 56);
        assert_eq!(size_of::<Object>(), 8);
    }

    #[test]
    fn the_memory_of_an_object_is_that_of_its_header_and_its_body_as_it_is_kept() {
        let json = |data: &str| format!(r#"{{"metadata":{{"name":"a","resourceVersion":"1"}},"data":"{data}"}}"#);
        let of = |data: &str| Object::from_json(json(data)).expect("an object");
        let small = of("");
        let header = small.memory() - json("").len();
        assert!((80..250).contains(&header), "{header}");
        let large = of(&"x".repeat(10_000));
        assert_eq!(large.memory(), small.memory() + 10_000);
        let packed_size = large.pack(None);
        assert!(large.memory() > packed_size && large.memory() < packed_size + 250, "{packed_size}");
        assert_eq!(large.clone().typed::<()>().memory(), large.memory());
    }
}
