//! What dictionaries are made of.
//!
//! The raw bytes of a few objects make a good dictionary, at once: trained ones are better where there are many samples to
//! learn from, and poor where there are few. So the first one is raw objects, and later ones are chosen: both are made of
//! one half of a sample, tried on the other, and the better one replaces what there is if it is worth it. The trainer takes
//! ten megabytes for a moment, whatever it is given, which a small kind's objects do not take in all: those do without.

use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;

use crate::Object;
use crate::defaults::{
    DICTIONARY_GAIN, DICTIONARY_MAX, DICTIONARY_OBJECTS, DICTIONARY_SHARE, RAW_DICTIONARY_LEVEL,
    TRAINED_DICTIONARY_LEVEL, TRAINED_DICTIONARY_MAX, TRAINING_MIN_BODIES,
};
use crate::object::packed::{Dictionary, Packed};

/// What a try looks at, at least and at most.
const TRY_BYTES: (usize, usize) = (1 << 20, 4 << 20);
/// As many objects are needed to say anything.
const TRY_OBJECTS: usize = 16;

/// How large a dictionary may be for this many bytes of bodies.
pub(super) fn largest(bodies: usize) -> usize {
    (bodies / DICTIONARY_SHARE).min(DICTIONARY_MAX)
}

/// How many bytes of them a try looks at, if they are so large on average.
pub(super) fn trial_size(bodies: usize, mean: usize) -> usize {
    // Half of it makes the dictionary.
    (bodies / (DICTIONARY_SHARE / 2)).max(TRY_OBJECTS.saturating_mul(mean)).clamp(TRY_BYTES.0, TRY_BYTES.1)
}

/// Bodies to try dictionaries with. One half makes them, on the other they are tried.
pub(super) struct Trial {
    /// All bodies, in one piece: many small ones that come and go leave holes in the heap.
    text: Bytes,
    /// Where in it those of either half are.
    seen: Vec<Range<usize>>,
    unseen: Vec<Range<usize>>,
}

impl Trial {
    /// The bodies of these objects, by turns for either half, as many as it has room for: what is left out does not fit.
    pub(super) fn of(objects: &[Object], room: usize) -> Self {
        let mut text = Vec::with_capacity(room);
        let mut half = |first: usize| {
            let end = text.len() + room / 2;
            let fitting = objects.iter().skip(first).step_by(2).filter_map(|object| {
                let json = object.json().ok()?;
                let start = text.len();
                (start + json.len() <= end).then(|| text.extend_from_slice(&json))?;
                Some(start..text.len())
            });
            fitting.collect()
        };
        let (seen, unseen) = (half(0), half(1));
        Self { text: text.into(), seen, unseen }
    }

    fn bodies(&self, half: &[Range<usize>]) -> Vec<Bytes> {
        half.iter().map(|place| self.text.slice(place.clone())).collect()
    }
}

/// A dictionary of whole objects, spread over `bodies`, at most `size` bytes.
pub(in crate::source) fn of_objects(bodies: &[Bytes], size: usize) -> Option<Dictionary> {
    let total: usize = bodies.iter().map(Bytes::len).sum();
    let mean = (total / bodies.len().max(1)).max(1);
    let count = (size / mean).clamp(1, DICTIONARY_OBJECTS).min(bodies.len());
    let mut content = Vec::with_capacity(size);
    for number in 0..count {
        let body = &bodies[number * bodies.len() / count];
        let room = size - content.len();
        // Of one that is too large for all the room, its beginning will do.
        if body.len() <= room || content.is_empty() {
            content.extend_from_slice(&body[..body.len().min(room)]);
        }
    }
    if content.is_empty() { None } else { Dictionary::new(&content, RAW_DICTIONARY_LEVEL) }
}

/// A dictionary that zstd's trainer makes of what there is for that.
fn trained(trial: &Trial, size: usize) -> Option<Dictionary> {
    let lengths: Vec<usize> = trial.seen.iter().map(Range::len).collect();
    let text = &trial.text[..lengths.iter().sum()];
    let content = zstd::dict::from_continuous(text, &lengths, size.min(TRAINED_DICTIONARY_MAX)).ok()?;
    Dictionary::new(&content, TRAINED_DICTIONARY_LEVEL)
}

/// The mean size of these bodies when they are packed, but for the largest: one that is like nothing else would count for many.
pub(super) fn mean_packed(bodies: &[Bytes], dictionary: &Arc<Dictionary>) -> usize {
    let size = |body: &Bytes| Packed::pack(body, Some(dictionary)).map_or(body.len(), |packed| packed.size());
    let mut sizes: Vec<usize> = bodies.iter().map(size).collect();
    sizes.sort_unstable();
    sizes.truncate(sizes.len() - sizes.len() / 16);
    sizes.iter().sum::<usize>() / sizes.len().max(1)
}

/// What came of a try.
pub(super) struct Tried {
    /// The mean packed size of objects with the dictionary in use.
    pub(super) mean: usize,
    pub(super) better: Option<Better>,
}

/// What was found better than the dictionary in use.
pub(super) struct Better {
    pub(super) dictionary: Arc<Dictionary>,
    /// The mean packed size of objects that it has not seen.
    pub(super) mean: usize,
}

/// Looks for a dictionary that is a tenth better than `current` on objects that it has not seen, or faster and hardly
/// worse, for a kind with `total` bytes of bodies. Takes tenths of a second.
pub(super) fn find_better(trial: &Trial, total: usize, current: &Arc<Dictionary>) -> Tried {
    let size = largest(total);
    let unseen = trial.bodies(&trial.unseen);
    let mean = mean_packed(&unseen, current);
    let trained = if total >= TRAINING_MIN_BODIES { trained(trial, size) } else { None };
    let made = [of_objects(&trial.bodies(&trial.seen), size), trained].into_iter().flatten().map(Arc::new);
    let rated = made.map(|dictionary| Better { mean: mean_packed(&unseen, &dictionary), dictionary });
    let best = rated.min_by_key(|rated| worth(&rated.dictionary, rated.mean));
    let better = best.filter(|best| {
        let is_faster = best.dictionary.is_trained() && !current.is_trained();
        let gain = if is_faster { 0.0 } else { DICTIONARY_GAIN };
        let is_better = worth(&best.dictionary, best.mean) as f64 <= worth(current, mean) as f64 * (1.0 - gain);
        is_better && !unseen.is_empty()
    });
    Tried { mean, better }
}

/// What to compare dictionaries by. A trained one may be a little worse: with it zstd needs half the time, since it knows how
/// often each character occurs.
fn worth(dictionary: &Dictionary, mean: usize) -> usize {
    if dictionary.is_trained() { mean - mean / 20 } else { mean }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// However skewed the sizes are: the mean of a few says little then.
    #[test]
    fn a_try_looks_at_no_more_bytes_than_it_may() {
        let object = |number: usize, size: usize| {
            let payload = "x".repeat(size);
            let json = format!(r#"{{"metadata":{{"name":"o-{number}","resourceVersion":"1"}},"data":"{payload}"}}"#);
            Object::from_json(json).expect("an object")
        };
        let objects: Vec<Object> = (0..64).map(|n| object(n, if n % 4 == 3 { 500_000 } else { 500 })).collect();
        let trial = Trial::of(&objects, 1 << 20);
        assert!(trial.text.len() <= 1 << 20);
        assert_eq!((trial.seen.len(), trial.unseen.len()), (32, 16 + 1));
        let body = |half: &[Range<usize>], at: usize| trial.bodies(half)[at].clone();
        assert_eq!(body(&trial.seen, 1), objects[2].json().expect("whole"));
        assert_eq!(body(&trial.unseen, 0), objects[1].json().expect("whole"));
    }
}
