//! What identifies an object within its kind.
//!
//! There is a key for each object of a cluster in every cache of it, and another wherever somebody remembers an object:
//! so a key is one pointer. What it points to is one allocation with the namespace and the name, and, if the key is that
//! of an object that was read, the other short texts of its header: they are needed as often, and apart each of them
//! would cost an allocation.

use std::cell::RefCell;
use std::cmp::Ordering;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::str::FromStr;

use triomphe::ThinArc;

use super::text::{put_length, take, take_length, text};

/// Namespace and name; objects of cluster-scoped kinds have no namespace.
///
/// The text form is client-go's: `namespace/name`, or `name` alone. Cheap to clone.
#[derive(Clone)]
pub struct ObjectKey(ThinArc<Lengths, u8>);

/// How long namespace and name are, which stand one behind the other, before the rest of the header.
#[derive(Debug, Clone, Copy)]
struct Lengths {
    namespace: u32,
    name: u32,
}

/// What of a header is text, besides the key itself.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct HeaderTexts<'a> {
    pub(super) deleting: bool,
    pub(super) uid: &'a [u8],
    pub(super) version: &'a [u8],
    pub(super) labels: &'a [u8],
}

thread_local! {
    /// The text of a key that is being made.
    static TEXT: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

/// One huge header shall not cost its size for ever.
const LARGEST_TEXT: usize = 16 << 10;

impl ObjectKey {
    /// The key of an object in a namespace. An empty namespace is none.
    pub fn namespaced(namespace: impl AsRef<str>, name: impl AsRef<str>) -> Self {
        Self::with_text(namespace.as_ref(), name.as_ref(), |_| {})
    }

    /// The key of an object of a cluster-scoped kind.
    pub fn cluster(name: impl AsRef<str>) -> Self {
        Self::namespaced("", name)
    }

    /// A key that carries the rest of a header's texts.
    pub(super) fn with_header(namespace: &str, name: &str, header: HeaderTexts<'_>) -> Self {
        let HeaderTexts { deleting, uid, version, labels } = header;
        Self::with_text(namespace, name, |rest| {
            rest.push(u8::from(deleting));
            put_length(rest, uid.len());
            put_length(rest, version.len());
            for text in [uid, version, labels] {
                rest.extend_from_slice(text);
            }
        })
    }

    fn with_text(namespace: &str, name: &str, put_rest: impl FnOnce(&mut Vec<u8>)) -> Self {
        let length = |text: &str| u32::try_from(text.len()).unwrap_or(u32::MAX);
        let lengths = Lengths { namespace: length(namespace), name: length(name) };
        TEXT.with_borrow_mut(|text| {
            text.clear();
            text.extend_from_slice(namespace.as_bytes());
            text.extend_from_slice(name.as_bytes());
            put_rest(text);
            let key = Self(ThinArc::from_header_and_slice(lengths, text));
            text.shrink_to(LARGEST_TEXT);
            key
        })
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

    /// The name without what was generated for it: of `web-7d4b9c6f5d-x7k2p`, `db-3` or `backup-28394012`, the first part.
    pub(super) fn stem(&self) -> &[u8] {
        let mut stem = self.name_bytes();
        while let Some(at) = memchr::memrchr2(b'-', b'.', stem)
            && is_generated(&stem[at + 1..])
        {
            stem = &stem[..at];
        }
        stem
    }

    /// What else of the header it carries: nothing, if it is not an object's own.
    pub(super) fn header(&self) -> HeaderTexts<'_> {
        self.read_header().unwrap_or_default()
    }

    /// How many bytes it takes, with what stands before its text: a count of references, lengths.
    pub(super) fn memory(&self) -> usize {
        2 * size_of::<usize>() + size_of::<Lengths>() + self.0.slice.len()
    }

    fn read_header(&self) -> Option<HeaderTexts<'_>> {
        let Lengths { namespace, name } = *self.lengths();
        let mut rest = self.0.slice.get(namespace as usize + name as usize..)?;
        let deleting = take(&mut rest, 1)? == [1];
        let (uid, version) = (take_length(&mut rest)?, take_length(&mut rest)?);
        Some(HeaderTexts { deleting, uid: take(&mut rest, uid)?, version: take(&mut rest, version)?, labels: rest })
    }

    fn lengths(&self) -> &Lengths {
        &self.0.header.header
    }

    pub(super) fn namespace_bytes(&self) -> &[u8] {
        self.0.slice.get(..self.lengths().namespace as usize).unwrap_or_default()
    }

    fn name_bytes(&self) -> &[u8] {
        let Lengths { namespace, name } = *self.lengths();
        self.0.slice.get(namespace as usize..namespace as usize + name as usize).unwrap_or_default()
    }
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

/// Whether a part of a name looks as if a controller had made it: a number, or what Kubernetes makes of random bits and hashes.
fn is_generated(part: &[u8]) -> bool {
    let is_random = |byte: &u8| matches!(byte, b'2' | b'4'..=b'9' | b'b'..=b'z') && !b"eiouy".contains(byte);
    let is_hex = |byte: &u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
    match part.len() {
        0 => false,
        5 | 8..=10 if part.iter().all(is_random) => true,
        16.. if part.iter().all(is_hex) => true,
        _ => part.iter().all(u8::is_ascii_digit),
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
        let header = HeaderTexts { deleting: true, uid: b"uid", version: b"7", labels: b"labels" };
        let loaded = ObjectKey::with_header("shop", "web", header);
        assert_eq!(plain, loaded);
        assert_eq!(plain.cmp(&loaded), Ordering::Equal);
        let hash = |key: &ObjectKey| std::hash::BuildHasher::hash_one(&foldhash::fast::FixedState::default(), key);
        assert_eq!(hash(&plain), hash(&loaded));
        assert_eq!((loaded.header(), plain.header()), (header, HeaderTexts::default()));
        assert_ne!(ObjectKey::cluster("a/b"), ObjectKey::namespaced("a", "b"));
        assert_eq!(size_of::<ObjectKey>(), 8);
    }

    #[test]
    fn what_was_generated_is_no_part_of_a_names_stem() {
        for (name, stem) in [
            ("web-7d4b9c6f5d-x7k2p", "web"),
            ("fluentd-x7k2p", "fluentd"),
            ("db-3", "db"),
            ("backup-28394012-x7k2p", "backup"),
            ("web-x7k2p.17a3b4c5d6e7f801", "web"),
            ("kube-proxy", "kube-proxy"),
            ("web-prod", "web-prod"),
            ("x7k2p", "x7k2p"),
            ("web-", "web-"),
            ("-1", ""),
            ("", ""),
        ] {
            assert_eq!(ObjectKey::cluster(name).stem(), stem.as_bytes(), "{name}");
        }
    }
}
