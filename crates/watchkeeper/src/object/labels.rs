//! The labels of an object, kept small.
//!
//! Of the labels of a pod, some are those of all pods of its template, and some its own: a hash, an index, its name. A
//! slice of strings costs 32 bytes a label and more allocations than all the rest of a header. So labels are kept as text,
//! each with its lengths in front, in two parts: those that other objects have too, in a text that they all share, and the
//! object's own, behind its name. Which are which is a guess: a label is shared from its second sighting on. Nothing
//! depends on the guess but memory.

use std::borrow::Cow;
use std::hash::BuildHasher as _;

use arcstr::ArcStr;
use foldhash::fast::RandomState;
use hashbrown::HashTable;

use super::text::{length_at, put_length};

/// The labels of an object.
#[derive(Debug, Clone, Copy)]
pub struct Labels<'a> {
    pub(super) shared: &'a str,
    pub(super) own: &'a str,
}

impl<'a> Labels<'a> {
    /// The value of a label.
    pub fn get(&self, key: &str) -> Option<&'a str> {
        find(self.shared, key).or_else(|| find(self.own, key))
    }

    /// All labels, in no particular order.
    pub fn iter(&self) -> impl Iterator<Item = (&'a str, &'a str)> + use<'a> {
        pairs(self.shared).chain(pairs(self.own))
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.iter().count()
    }

    /// There are none.
    pub fn is_empty(&self) -> bool {
        self.shared.is_empty() && self.own.is_empty()
    }
}

/// The value of a key in what [`put`] wrote. What is beside it is only looked at as bytes.
fn find<'a>(text: &'a str, key: &str) -> Option<&'a str> {
    let mut places = Places { text, at: 0 };
    let bytes = text.as_bytes();
    places
        .find(|[start, value, _]| bytes.get(*start..*value) == Some(key.as_bytes()))
        .and_then(|[_, value, end]| text.get(value..end))
}

fn pairs(text: &str) -> impl Iterator<Item = (&str, &str)> {
    Places { text, at: 0 }.map_while(|[start, value, end]| Some((text.get(start..value)?, text.get(value..end)?)))
}

/// Where in what [`put`] wrote keys begin, and their values, and where these end.
struct Places<'a> {
    text: &'a str,
    at: usize,
}

impl Iterator for Places<'_> {
    type Item = [usize; 3];

    fn next(&mut self) -> Option<[usize; 3]> {
        let (key, value) = (length_at(self.text, &mut self.at)?, length_at(self.text, &mut self.at)?);
        let start = self.at;
        self.at = start + key + value;
        Some([start, start + key, self.at])
    }
}

fn put(out: &mut String, key: &str, value: &str) {
    put_length(out, key.len());
    put_length(out, value.len());
    out.push_str(key);
    out.push_str(value);
}

/// A header's labels as text. None of them is shared.
pub(super) fn own(labels: &[(Cow<'_, str>, Cow<'_, str>)]) -> String {
    let mut out = String::new();
    for (key, value) in last_of_equal(labels) {
        put(&mut out, key, value);
    }
    out
}

/// Of equal keys the last. Few are compared with each other, which is what nearly every object needs; a map is for the
/// hundred thousand that one can have.
fn last_of_equal<'a>(labels: &'a [(Cow<'_, str>, Cow<'_, str>)]) -> Vec<(&'a str, &'a str)> {
    let pairs = labels.iter().map(|(key, value)| (&**key, &**value));
    if labels.len() > 16 {
        return pairs.collect::<indexmap::IndexMap<_, _>>().into_iter().collect();
    }
    let mut kept: Vec<(&str, &str)> = Vec::with_capacity(labels.len());
    for (key, value) in pairs {
        match kept.iter_mut().find(|(known, _)| *known == key) {
            Some(label) => label.1 = value,
            None => kept.push((key, value)),
        }
    }
    kept
}

/// The labels that objects of one kind share.
#[derive(Default)]
pub(crate) struct LabelSets {
    sets: HashTable<ArcStr>,
    /// Traces of the labels that were seen lately, each in the one place that its hash gives it.
    seen: Vec<u32>,
    /// Sets that nobody has any more are dropped when there are this many.
    sweep_at: usize,
    hasher: RandomState,
    shared: String,
    own: String,
}

/// How many labels are remembered as seen. More labels than that in turn, and all look new.
const SEEN: usize = 4096;
/// Below this many sets nothing is swept.
const FIRST_SWEEP: usize = 1024;
/// Longer ones are not shared, in bytes: until the next sweep, sets are kept that nobody has any more.
const LONGEST_SHARED: usize = 4096;

impl LabelSets {
    /// The shared part of these labels, if there is one, and their own.
    pub(super) fn split(&mut self, labels: &[(Cow<'_, str>, Cow<'_, str>)]) -> (Option<ArcStr>, &str) {
        for part in [&mut self.shared, &mut self.own] {
            part.clear();
            part.shrink_to(LONGEST_SHARED);
        }
        if !labels.is_empty() {
            self.seen.resize(SEEN, 0);
        }
        for (key, value) in last_of_equal(labels) {
            let hash = self.hasher.hash_one((key, value));
            let trace = (hash >> 32) as u32 | 1;
            let seen = &mut self.seen[hash as usize % SEEN];
            let is_known = std::mem::replace(seen, trace) == trace;
            put(if is_known { &mut self.shared } else { &mut self.own }, key, value);
        }
        if self.shared.len() > LONGEST_SHARED {
            self.own.push_str(&self.shared);
            self.shared.clear();
        }
        let shared = (!self.shared.is_empty()).then(|| self.intern());
        (shared, &self.own)
    }

    fn intern(&mut self) -> ArcStr {
        if self.sets.len() >= self.sweep_at.max(FIRST_SWEEP) {
            self.sets.retain(|set| ArcStr::strong_count(set).is_some_and(|count| count > 1));
            self.sweep_at = 2 * self.sets.len();
            self.sets.shrink_to(self.sweep_at, |set| self.hasher.hash_one(set.as_str()));
        }
        let hash = self.hasher.hash_one(self.shared.as_str());
        if let Some(set) = self.sets.find(hash, |set| *set == self.shared) {
            return set.clone();
        }
        let set = ArcStr::from(self.shared.as_str());
        let hasher = &self.hasher;
        self.sets.insert_unique(hash, set.clone(), |set| hasher.hash_one(set.as_str()));
        set
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(pairs: &[(&'static str, &str)]) -> Vec<(Cow<'static, str>, Cow<'static, str>)> {
        pairs.iter().map(|(key, value)| (Cow::Borrowed(*key), Cow::Owned((*value).to_owned()))).collect()
    }

    fn all(shared: Option<&ArcStr>, own: &str) -> Vec<(String, String)> {
        let labels = Labels { shared: shared.map(ArcStr::as_str).unwrap_or_default(), own };
        let mut pairs: Vec<_> = labels.iter().map(|(key, value)| (key.to_owned(), value.to_owned())).collect();
        pairs.sort();
        pairs
    }

    #[test]
    fn what_others_have_too_is_shared_and_the_rest_is_ones_own() {
        let mut sets = LabelSets::default();
        let mut kept = Vec::new();
        for number in 0..10 {
            let pairs = [("app", "web".to_owned()), ("hash", format!("h{number}")), ("team", "a".to_owned())];
            let pairs: Vec<_> = pairs.iter().map(|(key, value)| (*key, value.as_str())).collect();
            let (shared, own) = sets.split(&labels(&pairs));
            let own = own.to_owned();
            let mut expected: Vec<_> = pairs.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect();
            expected.sort();
            assert_eq!(all(shared.as_ref(), &own), expected);
            kept.push((shared, own));
        }
        let first = kept[1].0.as_ref().expect("shared labels");
        for (shared, own) in &kept[1..] {
            assert!(ArcStr::ptr_eq(first, shared.as_ref().expect("shared labels")));
            assert_eq!(pairs(own).count(), 1);
        }
    }

    #[test]
    fn of_equal_keys_the_last_counts_and_long_ones_survive() {
        let long = "x".repeat(70_000);
        let (key, value) = ("", long.as_str());
        let text = own(&labels(&[("a", "1"), (key, "gone"), ("a", "2"), (key, value)]));
        assert_eq!(all(None, &text), [(String::new(), long.clone()), ("a".into(), "2".into())]);
        let many: Vec<_> = (0..100).map(|n| (Cow::Owned(format!("k{}", n % 50)), Cow::Owned(n.to_string()))).collect();
        let many = own(&many);
        let labels = Labels { shared: "", own: &many };
        assert_eq!((labels.len(), labels.get("k7"), labels.get("k50")), (50, Some("57"), None));
    }

    #[test]
    fn sets_that_nobody_has_any_more_are_forgotten() {
        let mut sets = LabelSets::default();
        for number in 0..50_000 {
            let value = format!("v{number}");
            let pairs = labels(&[("only", &value)]);
            drop(sets.split(&pairs));
            drop(sets.split(&pairs));
        }
        assert!(sets.sets.len() <= FIRST_SWEEP, "{}", sets.sets.len());
    }

    #[test]
    fn long_sets_are_nobodys_but_their_objects() {
        let mut sets = LabelSets::default();
        let long = "x".repeat(60);
        let names: Vec<String> = (0..2000).map(|number| format!("label-{number}")).collect();
        for version in 0..100 {
            let pairs = names.iter().enumerate().filter(|(number, _)| *number != version);
            let pairs: Vec<_> = pairs.map(|(_, name)| (Cow::from(name.as_str()), Cow::from(long.as_str()))).collect();
            let (shared, own) = sets.split(&pairs);
            let own = own.to_owned();
            assert_eq!(all(shared.as_ref(), &own).len(), 1999);
        }
        let kept: usize = sets.sets.iter().map(|set| set.len()).sum();
        assert!(kept <= 100 * LONGEST_SHARED, "{kept} bytes");
        sets.split(&[]);
        assert!(sets.own.capacity() + sets.shared.capacity() <= 2 * LONGEST_SHARED);
    }
}
