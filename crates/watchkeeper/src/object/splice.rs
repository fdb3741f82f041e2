//! What differs between two states of an object.
//!
//! When an object changes, little of it does: a version, a few times, a condition. Next to its last state, the new one is
//! some ten or hundred bytes, and finding them takes a fraction of what compressing it anew would take.
//!
//! A splice is a row of cuts: keep so many bytes of the base, leave out so many, put in these. What follows the last cut is
//! the rest of the base.

use super::text::{put_length, take, take_length};

/// Runs of equal bytes that are shorter are not worth a cut.
const RUN: usize = 8;
/// As far as a value of the same length is looked for: longer than any time, address or uid.
const SAME_LENGTH: usize = 48;
/// Where in the one text to take a few bytes that are looked for in the other.
const PROBES: [usize; 10] = [0, 8, 16, 24, 40, 64, 96, 144, 208, 288];
/// How many bytes those are, and how far they are looked for.
const PROBE: usize = 16;
const REACH: usize = 768;

/// Writes to `out` what makes `new` of `base`. Gives up, and says false, when that takes more than `room` bytes.
pub(super) fn cut(base: &[u8], new: &[u8], room: usize, out: &mut Vec<u8>) -> bool {
    out.clear();
    put_length(out, new.len());
    let (mut base, mut new) = (base, new);
    loop {
        let kept = common(base, new);
        (base, new) = (&base[kept..], &new[kept..]);
        if base.is_empty() && new.is_empty() {
            return true;
        }
        let Some((left_out, put_in)) = until_common(base, new) else { return false };
        put_length(out, kept);
        put_length(out, left_out);
        put_length(out, put_in);
        out.extend_from_slice(&new[..put_in]);
        if out.len() > room {
            return false;
        }
        (base, new) = (&base[left_out..], &new[put_in..]);
    }
}

/// Makes the new state. `None` if the two do not belong together, or memory is short.
pub(super) fn join(mut base: &[u8], mut splice: &[u8]) -> Option<Vec<u8>> {
    let length = take_length(&mut splice)?;
    let mut new = Vec::new();
    new.try_reserve_exact(length).ok()?;
    while !splice.is_empty() {
        let (kept, left_out) = (take_length(&mut splice)?, take_length(&mut splice)?);
        let put_in = take_length(&mut splice)?;
        new.extend_from_slice(take(&mut base, kept)?);
        take(&mut base, left_out)?;
        new.extend_from_slice(take(&mut splice, put_in)?);
    }
    new.extend_from_slice(base);
    (new.len() == length).then_some(new)
}

/// How many bytes the two have in common at the beginning.
fn common(one: &[u8], other: &[u8]) -> usize {
    const BLOCK: usize = 32;
    let blocks = one.chunks_exact(BLOCK).zip(other.chunks_exact(BLOCK));
    let start = blocks.take_while(|(one, other)| one == other).count() * BLOCK;
    let rest = one[start..].iter().zip(&other[start..]);
    start + rest.take_while(|(one, other)| one == other).count()
}

/// How many bytes of each stand before the place where they have something in common again.
fn until_common(base: &[u8], new: &[u8]) -> Option<(usize, usize)> {
    // Mostly a value has changed to another of the same length.
    for length in 1..=SAME_LENGTH.min(base.len()).min(new.len()) {
        let run = |text: &[u8]| text[length..].first_chunk::<RUN>().copied();
        match (run(base), run(new)) {
            (Some(one), Some(other)) if one == other => return Some((length, length)),
            (Some(_), Some(_)) => {}
            _ => break,
        }
    }
    for probe in PROBES {
        if let Some(found) = find(base, new, probe) {
            return Some((found, probe));
        }
        if let Some(found) = find(new, base, probe) {
            return Some((probe, found));
        }
    }
    // The ends differ, or too much does.
    let ends = base.len() <= RUN + SAME_LENGTH && new.len() <= RUN + SAME_LENGTH;
    ends.then_some((base.len(), new.len()))
}

/// Where in `within` the bytes are that `of` has at `probe`.
fn find(within: &[u8], of: &[u8], probe: usize) -> Option<usize> {
    let wanted = of.get(probe..probe + PROBE)?;
    memchr::memmem::find(&within[..within.len().min(REACH)], wanted)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn spliced(base: &[u8], new: &[u8]) -> Option<usize> {
        let mut out = vec![7];
        cut(base, new, usize::MAX, &mut out).then(|| {
            assert_eq!(join(base, &out).as_deref(), Some(new));
            out.len()
        })
    }

    const BASE: &str = concat!(
        r#"{"metadata":{"name":"web-0","resourceVersion":"1000000001","managedFields":[{"manager":"kubelet","time":"2026-01-02T03:04:05Z"}]},"#,
        r#""status":{"phase":"Running","podIP":"10.1.2.3","podIPs":[{"ip":"10.1.2.3"}],"conditions":[{"type":"Initialized","status":"True"},"#,
        r#"{"type":"Ready","status":"False","lastTransitionTime":"2026-01-02T03:04:05Z","reason":"ContainersNotReady"}],"qosClass":"Burstable"}}"#,
    );

    #[test]
    fn little_is_kept_of_a_state_that_is_much_like_the_last() {
        assert_eq!(spliced(BASE.as_bytes(), BASE.as_bytes()), Some(2), "nothing but its length");
        let version = BASE.replace("1000000001", "1000000777");
        assert!(spliced(BASE.as_bytes(), version.as_bytes()).is_some_and(|size| size < 12));
        let times = version.replace("2026-01-02T03:04:05Z", "2026-02-03T14:15:16Z");
        assert!(spliced(BASE.as_bytes(), times.as_bytes()).is_some_and(|size| size < 60));
    }

    #[test]
    fn what_grows_and_shrinks_is_found_again() {
        let longer = BASE.replace("10.1.2.3", "10.111.222.133");
        let condition = r#"{"type":"Initialized","status":"True"},"#;
        let without = BASE.replace(condition, "");
        let other = BASE.replace(
            r#"{"type":"Ready","status":"False","#,
            r#"{"type":"PodReadyToStartContainers","status":"True"},{"type":"Ready","status":"True","#,
        );
        for (one, another) in [(BASE, &*longer), (BASE, &without), (BASE, &other), (&*without, &*longer)] {
            for (base, new) in [(one, another), (another, one)] {
                let size = spliced(base.as_bytes(), new.as_bytes()).expect("a splice");
                assert!(size < 120, "{size}");
            }
        }
    }

    #[test]
    fn what_has_nothing_in_common_is_given_up() {
        let (mut one, mut two) = (fastrand::Rng::with_seed(1), fastrand::Rng::with_seed(2));
        let noise =
            |random: &mut fastrand::Rng| std::iter::repeat_with(|| random.u8(..)).take(2_000).collect::<Vec<u8>>();
        assert_eq!(spliced(&noise(&mut one), &noise(&mut two)), None);
        let mut out = Vec::new();
        let changed = BASE.replace("1000000001", "2222222222");
        assert!(!cut(BASE.as_bytes(), changed.as_bytes(), 10, &mut out), "there is no room");
    }

    #[test]
    fn a_splice_of_something_else_is_refused() {
        let mut out = Vec::new();
        assert!(cut(BASE.as_bytes(), BASE.replace("Running", "Pending").as_bytes(), 100, &mut out));
        assert!(join(&BASE.as_bytes()[1..], &out).is_none());
        assert!(join(b"", &out).is_none());
        assert!(join(BASE.as_bytes(), &out[..out.len() - 3]).is_none());
        assert!(join(BASE.as_bytes(), b"").is_none());
        assert!(join(BASE.as_bytes(), &[0xff; 12]).is_none());
    }

    proptest! {
        #[test]
        fn whatever_changes_comes_out_as_it_was(
            edits in proptest::collection::vec((0..BASE.len(), 0_usize..40, "[a-z0-9\":{}]{0,40}"), 0..12),
        ) {
            let mut new = BASE.to_owned();
            for (at, length, text) in edits {
                let at = at.min(new.len());
                new.replace_range(at..(at + length).min(new.len()), &text);
            }
            spliced(BASE.as_bytes(), new.as_bytes());
            spliced(new.as_bytes(), BASE.as_bytes());
        }

        #[test]
        fn no_bytes_make_a_splice_that_panics(bytes in proptest::collection::vec(any::<u8>(), 0..64)) {
            join(BASE.as_bytes(), &bytes);
        }
    }
}
