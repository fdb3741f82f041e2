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

use arcstr::ArcStr;

use super::text::{length_at, put_length};

/// Namespace and name; objects of cluster-scoped kinds have no namespace.
///
/// The text form is client-go's: `namespace/name`, or `name` alone. Cheap to clone.
///
/// (How long namespace and name are, both of them one behind the other, and the rest of the header. It is all text, so that
/// whoever reads a part of it waits for memory and not for a check that it is text.)
#[derive(Clone)]
pub struct ObjectKey(ArcStr);

/// What of a header is text, besides the key itself.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct HeaderTexts<'a> {
    pub(super) deleting: bool,
    pub(super) version: &'a str,
    pub(super) uid: &'a str,
    pub(super) labels: &'a str,
}

/// Of a header that says that the object is being deleted, and of any other.
const DELETING: &str = "d";
const LIVING: &str = "l";

thread_local! {
    /// The text of a key that is being made; else empty.
    static TEXT: RefCell<String> = const { RefCell::new(String::new()) };
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
        let HeaderTexts { deleting, version, uid, labels } = header;
        Self::with_text(namespace, name, |rest| {
            rest.push_str(if deleting { DELETING } else { LIVING });
            put_length(rest, version.len());
            put_length(rest, uid.len());
            // The version first: it is read most often, and near the name it is at hand with that.
            for text in [version, uid, labels] {
                rest.push_str(text);
            }
        })
    }

    fn with_text(namespace: &str, name: &str, put_rest: impl FnOnce(&mut String)) -> Self {
        TEXT.with_borrow_mut(|text| {
            text.clear();
            put_length(text, namespace.len());
            put_length(text, name.len());
            text.push_str(namespace);
            text.push_str(name);
            put_rest(text);
            let key = Self(ArcStr::from(text.as_str()));
            text.clear();
            text.shrink_to(LARGEST_TEXT);
            key
        })
    }

    /// The namespace, if the kind has them.
    pub fn namespace(&self) -> Option<&str> {
        let Places { namespace, name, .. } = self.places();
        self.0.get(namespace..name).filter(|namespace| !namespace.is_empty())
    }

    /// The name.
    pub fn name(&self) -> &str {
        let Places { name, end, .. } = self.places();
        self.0.get(name..end).unwrap_or_default()
    }

    /// The name without what was generated for it: of `web-7d4b9c6f5d-x7k2p`, `db-3` or `backup-28394012`, the first part.
    pub(super) fn stem(&self) -> &str {
        let mut stem = self.name();
        while let Some(at) = memchr::memrchr2(b'-', b'.', stem.as_bytes())
            && is_generated(&stem.as_bytes()[at + 1..])
        {
            stem = &stem[..at];
        }
        stem
    }

    /// What else of the header it carries: nothing, if it is not an object's own.
    pub(super) fn header(&self) -> HeaderTexts<'_> {
        read_header(&self.0, self.places().end).unwrap_or_default()
    }

    /// How many bytes it takes, with what stands before its text: a count of references, its length.
    pub(super) fn memory(&self) -> usize {
        2 * size_of::<usize>() + self.0.len()
    }

    /// Looks at it, so that it is at hand for who looks at it next.
    pub(crate) fn touch(&self) {
        std::hint::black_box(self.0.as_bytes().first().copied());
    }

    fn places(&self) -> Places {
        // There are some: all keys are made by `with_text`.
        Places::of(&self.0).unwrap_or_default()
    }

    /// What is the same in equal keys, and in no others: lengths, namespace and name.
    fn identity(&self) -> &[u8] {
        self.0.as_bytes().get(..self.places().end).unwrap_or_default()
    }

    /// By these, keys are in order.
    fn texts(&self) -> (&str, &str) {
        (self.namespace().unwrap_or_default(), self.name())
    }
}

/// Where in the text of a key the namespace begins, and the name, and where that ends.
#[derive(Default)]
struct Places {
    namespace: usize,
    name: usize,
    end: usize,
}

impl Places {
    fn of(text: &str) -> Option<Self> {
        let mut at = 0;
        let (namespace, name) = (length_at(text, &mut at)?, length_at(text, &mut at)?);
        Some(Self { namespace: at, name: at + namespace, end: at + namespace + name })
    }
}

fn read_header(text: &str, end_of_key: usize) -> Option<HeaderTexts<'_>> {
    let mut at = end_of_key + DELETING.len();
    let deleting = text.get(end_of_key..at)? == DELETING;
    let (version, uid) = (length_at(text, &mut at)?, length_at(text, &mut at)?);
    let (of_uid, of_labels) = (at + version, at + version + uid);
    let (version, uid) = (text.get(at..of_uid)?, text.get(of_uid..of_labels)?);
    Some(HeaderTexts { deleting, version, uid, labels: text.get(of_labels..)? })
}

impl PartialEq for ObjectKey {
    fn eq(&self, other: &Self) -> bool {
        // No identity is the beginning of another one, since they begin with their lengths. (Of the two, it is mostly the other that
        // is at hand: tables compare what they have with what is looked for.)
        self.0.as_bytes().starts_with(other.identity())
    }
}

impl Eq for ObjectKey {}

impl Hash for ObjectKey {
    fn hash<H: Hasher>(&self, state: &mut H) {
        // It begins with its lengths: those of two keys that follow each other are not taken for one another.
        state.write(self.identity());
    }
}

impl Ord for ObjectKey {
    fn cmp(&self, other: &Self) -> Ordering {
        self.texts().cmp(&other.texts())
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
        let header = HeaderTexts { deleting: true, uid: "uid", version: "7", labels: "labels" };
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
    fn texts_of_any_length_and_script_come_out_as_they_were() {
        let texts = [0, 1, 63, 64, 65, 4095, 4096, 70_000]
            .map(|length| "é1".repeat(length).chars().take(length).collect::<String>());
        for (number, name) in texts.iter().enumerate() {
            for namespace in &texts {
                let plain = ObjectKey::namespaced(namespace, name);
                let [version, uid, labels] = [1, 2, 3].map(|step| texts[(number + step) % texts.len()].as_str());
                let header = HeaderTexts { deleting: number % 2 == 0, version, uid, labels };
                let loaded = ObjectKey::with_header(namespace, name, header);
                for key in [&plain, &loaded] {
                    assert_eq!((key.namespace().unwrap_or_default(), key.name()), (namespace.as_str(), name.as_str()));
                }
                assert_eq!((&plain, &loaded), (&loaded, &plain), "whichever is asked");
                assert_eq!(loaded.header(), header);
            }
        }
    }

    #[test]
    fn a_huge_key_leaves_no_room_behind() {
        ObjectKey::cluster("x".repeat(1 << 20));
        assert!(TEXT.with_borrow(String::capacity) <= LARGEST_TEXT);
    }

    #[test]
    fn keys_are_equal_only_where_both_texts_are() {
        let texts = ["", "a", "b", "ab", "aa", "aab", "\u{1}a", "é"];
        let keys: Vec<(&str, &str)> = texts.iter().flat_map(|one| texts.map(|two| (*one, two))).collect();
        for one in &keys {
            for two in &keys {
                let [plain, loaded] = [
                    ObjectKey::namespaced(one.0, one.1),
                    ObjectKey::with_header(two.0, two.1, HeaderTexts { labels: "a", ..HeaderTexts::default() }),
                ];
                assert_eq!((plain == loaded, loaded == plain), (one == two, one == two), "{one:?} {two:?}");
                assert_eq!(plain.cmp(&loaded), one.cmp(two));
            }
        }
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
            assert_eq!(ObjectKey::cluster(name).stem(), stem, "{name}");
        }
    }
}
