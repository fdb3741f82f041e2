//! What dictionaries are made of.
//!
//! The raw bytes of a few objects make a good dictionary, at once: trained ones are better where there are many samples to
//! learn from, and poor where there are few. So the first one is raw objects, and later ones are chosen: both are made of
//! one half of a sample, tried on the other, and the better one replaces what there is if it is worth it.

use std::sync::Arc;

use bytes::Bytes;

use crate::Object;
use crate::defaults::{
    DICTIONARY_GAIN, DICTIONARY_MAX, DICTIONARY_OBJECTS, DICTIONARY_SHARE, RAW_DICTIONARY_LEVEL,
    TRAINED_DICTIONARY_LEVEL, TRAINED_DICTIONARY_MAX,
};
use crate::object::packed::{Dictionary, Packed};

/// How large a dictionary may be for this many bytes of bodies.
pub(super) fn largest(bodies: usize) -> usize {
    (bodies / DICTIONARY_SHARE).min(DICTIONARY_MAX)
}

/// The bodies of these objects, as many as `room` has room for: what is left out does not fit.
pub(super) fn bodies(objects: &[Object], mut room: usize) -> Vec<Bytes> {
    let fitting = objects.iter().filter_map(|object| {
        let json = object.json().ok()?;
        room = room.checked_sub(json.len())?;
        Some(json)
    });
    fitting.collect()
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

/// A dictionary that zstd's trainer makes of `bodies`.
fn trained(bodies: &[Bytes], size: usize) -> Option<Dictionary> {
    let lengths: Vec<usize> = bodies.iter().map(Bytes::len).collect();
    let content = zstd::dict::from_continuous(&bodies.concat(), &lengths, size.min(TRAINED_DICTIONARY_MAX)).ok()?;
    Dictionary::new(&content, TRAINED_DICTIONARY_LEVEL)
}

/// The mean size of these bodies when they are packed.
pub(super) fn mean_packed(bodies: &[Bytes], dictionary: &Arc<Dictionary>) -> usize {
    let size = |body: &Bytes| Packed::pack(body, Some(dictionary)).map_or(body.len(), |packed| packed.size());
    bodies.iter().map(size).sum::<usize>() / bodies.len().max(1)
}

/// What was found better than the dictionary in use.
pub(super) struct Better {
    pub(super) dictionary: Arc<Dictionary>,
    /// The mean packed size of objects that it has not seen.
    pub(super) mean: usize,
}

/// Looks for a dictionary that is a tenth better than `current` on objects that it has not seen, or faster and hardly
/// worse. Takes tenths of a second.
pub(super) fn find_better(sample: &[Bytes], size: usize, current: &Arc<Dictionary>) -> Option<Better> {
    let half = |odd| -> Vec<Bytes> { sample.iter().skip(odd).step_by(2).cloned().collect() };
    let (seen, unseen) = (half(0), half(1));
    if unseen.is_empty() {
        return None;
    }
    let made = [of_objects(&seen, size), trained(&seen, size)].into_iter().flatten().map(Arc::new);
    let rated = made.map(|dictionary| Better { mean: mean_packed(&unseen, &dictionary), dictionary });
    let best = rated.min_by_key(|rated| worth(&rated.dictionary, rated.mean))?;
    let mean = mean_packed(&unseen, current);
    let is_faster = best.dictionary.is_trained() && !current.is_trained();
    let gain = if is_faster { 0.0 } else { DICTIONARY_GAIN };
    (worth(&best.dictionary, best.mean) as f64 <= worth(current, mean) as f64 * (1.0 - gain)).then_some(best)
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
        let bodies = bodies(&objects, 1 << 20);
        assert!(bodies.iter().map(Bytes::len).sum::<usize>() <= 1 << 20);
        assert_eq!(bodies.len(), 48 + 2);
    }
}
