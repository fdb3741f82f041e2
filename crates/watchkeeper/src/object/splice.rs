//! What differs between two bodies that are much alike.
//!
//! When an object changes, little of it does: a version, a few times, a condition. And the objects of one template differ in
//! names, uids, hashes, addresses and times, and in little else. Next to the other one, such a body is some ten or hundred
//! bytes, and finding them takes a fraction of what compressing it would take.
//!
//! A splice is a row of cuts: keep so many bytes of the base, leave out so many, put in these. What follows the last cut is
//! the rest of the base. What is put in is mostly as long as what is left out, and of the same form: other digits in the
//! same places. Then only the digits are kept, two in a byte. And what was put in before, such as a uid that stands in
//! several places, is not kept again.

use fearless_simd::prelude::*;
use fearless_simd::{Level, dispatch, u8x64};

/// Runs of equal bytes that are shorter are not worth a cut.
const RUN: usize = 8;
/// As far as a value of the same length is looked for: longer than any hash.
const SAME_LENGTH: usize = 192;
/// A value that is longer or shorter by no more than this is looked for next, this far.
const SHIFT: usize = 8;
const SHIFTED: usize = 64;
/// Where in the one text to take a few bytes that are looked for in the other.
const PROBES: [usize; 10] = [0, 8, 16, 24, 40, 64, 96, 144, 208, 288];
/// How many bytes those are, and how far they are looked for.
const PROBE: usize = 16;
const REACH: usize = 768;
/// Of as many texts that were put in it is known where they are.
const REMEMBERED: usize = u32::BITS as usize;

/// What is put in stands there as it is. How many bytes are left out for it stands before it.
const TEXT: usize = 0;
/// It stands there as it is, and as many bytes are left out.
const SAME: usize = 1;
/// It has digits where what is left out has some, and is the same elsewhere. Its digits stand there, two in a byte.
const DIGITS: usize = 2;
/// It was put in before, so many cuts ago, and as many bytes are left out.
const AGAIN: usize = 3;
/// How many bits those take.
const FORM_BITS: u32 = 2;

/// Appends a length: seven bits a byte, the lowest first.
fn put_length(out: &mut Vec<u8>, mut length: usize) {
    while length > 0x7f {
        out.push(length as u8 | 0x80);
        length >>= 7;
    }
    out.push(length as u8);
}

/// Takes a length off the front.
fn take_length(from: &mut &[u8]) -> Option<usize> {
    let mut length = 0;
    for shift in (0..usize::BITS).step_by(7) {
        let (byte, rest) = from.split_first()?;
        *from = rest;
        length |= usize::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Some(length);
        }
    }
    None
}

/// Takes so many bytes off the front.
fn take<'a>(from: &mut &'a [u8], length: usize) -> Option<&'a [u8]> {
    let (taken, rest) = from.split_at_checked(length)?;
    *from = rest;
    Some(taken)
}

/// Appends to `out` what makes `new` of `base`. Gives up, and says false, when that takes more than `room` bytes.
pub(super) fn cut(base: &[u8], new: &[u8], room: usize, out: &mut Vec<u8>) -> bool {
    dispatch!(Level::new(), simd => cut_with(simd, base, new, room, out))
}

#[inline(always)]
fn cut_with<S: Simd>(simd: S, base: &[u8], new: &[u8], room: usize, out: &mut Vec<u8>) -> bool {
    let room = out.len().saturating_add(room);
    put_length(out, new.len());
    let mut texts = Texts::default();
    let (mut left, mut at) = (base, 0);
    loop {
        let kept = common(simd, left, &new[at..]);
        (left, at) = (&left[kept..], at + kept);
        if left.is_empty() && at == new.len() {
            return true;
        }
        let Some((left_out, put_in)) = until_common(simd, left, &new[at..]) else { return false };
        put_length(out, kept);
        put(out, &left[..left_out], new, at..at + put_in, &mut texts);
        if out.len() > room {
            return false;
        }
        (left, at) = (&left[left_out..], at + put_in);
    }
}

/// Makes the new body. `None` if the two do not belong together, or memory is short.
pub(super) fn join(mut base: &[u8], mut splice: &[u8]) -> Option<Vec<u8>> {
    let length = take_length(&mut splice)?;
    let mut new = Vec::new();
    new.try_reserve_exact(length).ok()?;
    let mut places = Places::default();
    while !splice.is_empty() {
        let kept = take_length(&mut splice)?;
        // What is longer than it should be must not ask for more memory.
        new.extend_from_slice(take(&mut base, kept).filter(|kept| kept.len() <= length - new.len())?);
        let start = new.len();
        let number = take_length(&mut splice)?;
        let size = number >> FORM_BITS;
        match number & ((1 << FORM_BITS) - 1) {
            TEXT => {
                let left_out = take_length(&mut splice)?;
                take(&mut base, left_out)?;
                new.extend_from_slice(take(&mut splice, size)?);
            }
            SAME => {
                take(&mut base, size)?;
                new.extend_from_slice(take(&mut splice, size)?);
            }
            DIGITS => put_digits(&mut new, take(&mut base, size)?, &mut splice)?,
            _ => {
                let (start, end) = places.ago(size)?;
                take(&mut base, end - start)?;
                new.extend_from_within(start..end);
            }
        }
        places.note(start, new.len());
        if new.len() > length {
            return None;
        }
    }
    new.extend_from_slice(base);
    (new.len() == length).then_some(new)
}

/// Writes what is put in for what is left out, in the shortest form.
fn put(out: &mut Vec<u8>, left_out: &[u8], new: &[u8], place: std::ops::Range<usize>, texts: &mut Texts) {
    let put_in = &new[place.clone()];
    let is_same_length = left_out.len() == put_in.len();
    let again = if is_same_length { texts.find(new, put_in) } else { None };
    texts.note(place.start, put_in);
    if let Some(ago) = again {
        put_length(out, ago << FORM_BITS | AGAIN);
    } else if is_same_length && cut_digits(left_out, put_in, out) {
    } else if is_same_length {
        put_length(out, put_in.len() << FORM_BITS | SAME);
        out.extend_from_slice(put_in);
    } else {
        put_length(out, put_in.len() << FORM_BITS | TEXT);
        put_length(out, left_out.len());
        out.extend_from_slice(put_in);
    }
}

/// Puts in what has digits where `left_out` has some.
fn put_digits(new: &mut Vec<u8>, left_out: &[u8], splice: &mut &[u8]) -> Option<()> {
    let count = left_out.iter().filter(|byte| is_digit(**byte)).count();
    let pairs = take(splice, count.div_ceil(2))?;
    let mut digits = pairs.iter().flat_map(|pair| [pair >> 4, pair & 0xf]);
    for byte in left_out {
        new.push(if is_digit(*byte) { b"0123456789abcdef"[usize::from(digits.next()?)] } else { *byte });
    }
    Some(())
}

/// Writes the digits of what is put in, if it has some where what is left out has some, and is the same elsewhere.
fn cut_digits(left_out: &[u8], put_in: &[u8], out: &mut Vec<u8>) -> bool {
    let start = out.len();
    put_length(out, put_in.len() << FORM_BITS | DIGITS);
    let mut half = None;
    let (mut old, mut new) = (left_out, put_in);
    while !old.is_empty() {
        // Eight at once, where all are digits and none waits for another.
        if half.is_none()
            && let (Some(old_eight), Some(new_eight)) = (old.first_chunk(), new.first_chunk())
            && are_digits(u64::from_le_bytes(*old_eight))
            && are_digits(u64::from_le_bytes(*new_eight))
        {
            out.extend_from_slice(&pairs(u64::from_le_bytes(*new_eight)));
            (old, new) = (&old[8..], &new[8..]);
            continue;
        }
        let (Some((old_byte, old_rest)), Some((new_byte, new_rest))) = (old.split_first(), new.split_first()) else {
            break;
        };
        (old, new) = (old_rest, new_rest);
        match (is_digit(*old_byte), is_digit(*new_byte)) {
            (true, true) => match half.take() {
                None => half = Some(value(*new_byte)),
                Some(first) => out.push(first << 4 | value(*new_byte)),
            },
            (false, false) if old_byte == new_byte => {}
            _ => {
                out.truncate(start);
                return false;
            }
        }
    }
    out.extend(half.map(|last| last << 4));
    true
}

/// A one in each byte.
const ONES: u64 = u64::MAX / 0xff;

/// All eight bytes are digits.
fn are_digits(bytes: u64) -> bool {
    const HIGH: u64 = ONES << 7;
    if bytes & HIGH != 0 {
        return false;
    }
    // A byte that is at least `least` gets its highest bit when so much is added.
    let at_least = |least: u8| bytes + ONES * u64::from(0x80 - least);
    let decimal = at_least(b'0') & !at_least(b'9' + 1);
    let letter = at_least(b'a') & !at_least(b'f' + 1);
    (decimal | letter) & HIGH == HIGH
}

/// The values of eight digits, two in a byte.
fn pairs(digits: u64) -> [u8; 4] {
    // Letters have this bit, and are nine more than their last four bits say.
    let letters = digits >> 6 & ONES;
    let values = (digits & (ONES * 0xf)) + letters * 9;
    let pairs = (values << 4 | values >> 8) & 0x00ff_00ff_00ff_00ff;
    let pairs = (pairs | pairs >> 8) & 0x0000_ffff_0000_ffff;
    ((pairs | pairs >> 16) as u32).to_le_bytes()
}

fn is_digit(byte: u8) -> bool {
    matches!(byte, b'0'..=b'9' | b'a'..=b'f')
}

/// The value of what is a digit.
fn value(digit: u8) -> u8 {
    if digit <= b'9' { digit & 0xf } else { digit - b'a' + 10 }
}

/// Where in the new body the last texts are that were put in.
struct Places {
    all: [(usize, usize); REMEMBERED],
    count: usize,
}

impl Default for Places {
    fn default() -> Self {
        Self { all: [(0, 0); REMEMBERED], count: 0 }
    }
}

impl Places {
    fn note(&mut self, start: usize, end: usize) {
        self.all[self.count % REMEMBERED] = (start, end);
        self.count += 1;
    }

    fn ago(&self, ago: usize) -> Option<(usize, usize)> {
        (ago < self.count.min(REMEMBERED)).then(|| self.all[(self.count - 1 - ago) % REMEMBERED])
    }
}

/// The last texts that were put in, and a mark of each, so that the same one is found without a look at all of them.
#[derive(Default)]
struct Texts {
    places: Places,
    marks: [u32; REMEMBERED],
}

impl Texts {
    fn note(&mut self, start: usize, text: &[u8]) {
        self.marks[self.places.count % REMEMBERED] = mark(text);
        self.places.note(start, start + text.len());
    }

    /// How many cuts ago this text was put in, if it was.
    fn find(&self, new: &[u8], text: &[u8]) -> Option<usize> {
        let wanted = mark(text);
        let marked = self.marks.iter().enumerate();
        let equal = marked.fold(0, |equal, (at, mark)| equal | u32::from(*mark == wanted) << at);
        // The last one first.
        let mut equal = equal.rotate_right((self.places.count % REMEMBERED) as u32);
        while equal != 0 {
            let ago = equal.leading_zeros();
            if self.places.ago(ago as usize).is_some_and(|(start, end)| &new[start..end] == text) {
                return Some(ago as usize);
            }
            equal &= !(0x8000_0000 >> ago);
        }
        None
    }
}

/// Differs between most texts.
fn mark(text: &[u8]) -> u32 {
    let first = text
        .first_chunk()
        .map_or_else(|| u32::from(text.first().copied().unwrap_or_default()), |four| u32::from_le_bytes(*four));
    first ^ (text.len() as u32).wrapping_mul(0x9e37_79b1)
}

/// How many bytes the two have in common at the beginning.
#[inline(always)]
fn common<S: Simd>(simd: S, one: &[u8], other: &[u8]) -> usize {
    const BLOCK: usize = 64;
    let mut at = 0;
    while let (Some(ours), Some(theirs)) = (one[at..].first_chunk::<BLOCK>(), other[at..].first_chunk::<BLOCK>()) {
        let equal = equal(simd, ours, theirs);
        if equal != u64::MAX {
            return at + equal.trailing_ones() as usize;
        }
        at += BLOCK;
    }
    let rest = one[at..].iter().zip(&other[at..]);
    at + rest.take_while(|(one, other)| one == other).count()
}

/// A bit for each byte that is the same in both.
#[inline(always)]
fn equal<S: Simd>(simd: S, one: &[u8; 64], other: &[u8; 64]) -> u64 {
    u8x64::from_slice(simd, one).simd_eq(u8x64::from_slice(simd, other)).to_bitmask()
}

/// Where, before `reach`, the two have a run of bytes in common.
#[inline(always)]
fn run<S: Simd>(simd: S, one: &[u8], other: &[u8], reach: usize) -> Option<usize> {
    let mut at = 0;
    while at < reach {
        let (ours, theirs) = (one.get(at..)?, other.get(at..)?);
        let (Some(block), Some(other_block)) = (ours.first_chunk(), theirs.first_chunk()) else {
            // Near the end they are compared one by one.
            let mut runs = ours.windows(RUN).zip(theirs.windows(RUN));
            return runs.position(|(ours, theirs)| ours == theirs).map(|found| at + found);
        };
        let equal = equal(simd, block, other_block);
        let twos = equal & equal >> 1;
        let fours = twos & twos >> 2;
        let runs = fours & fours >> 4;
        if runs != 0 {
            return Some(at + runs.trailing_zeros() as usize);
        }
        // A run may begin at the last bytes.
        at += 64 - RUN + 1;
    }
    None
}

/// How many bytes of each stand before the place where they have something in common again.
#[inline(always)]
fn until_common<S: Simd>(simd: S, base: &[u8], new: &[u8]) -> Option<(usize, usize)> {
    // Mostly a value has changed to another of the same length, or nearly.
    if let Some(length) = run(simd, base, new, SHIFTED) {
        return Some((length, length));
    }
    for shift in 1..=SHIFT {
        if let Some(found) = new.get(shift..).and_then(|new| run(simd, base, new, SHIFTED)) {
            return Some((found, found + shift));
        }
        if let Some(found) = base.get(shift..).and_then(|base| run(simd, base, new, SHIFTED)) {
            return Some((found + shift, found));
        }
    }
    if let Some(length) = run(simd, base, new, SAME_LENGTH) {
        return Some((length, length));
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
    let ends = base.len() <= SHIFTED && new.len() <= SHIFTED;
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
            assert_eq!(join(base, &out[1..]).as_deref(), Some(new));
            out.len() - 1
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
    fn of_a_value_of_the_same_form_two_digits_take_a_byte_and_what_comes_again_next_to_nothing() {
        let pod =
            |uid: &str| format!(r#"{{"metadata":{{"uid":"{uid}","name":"web"}},"spec":{{"owner":"{uid}","x":1}}}}"#);
        let (one, other) = ("0d1b2c3a-4e5f-6071-8293-a4b5c6d7e8f9", "f9e8d7c6-b5a4-9382-7160-5f4e3a2c1b0d");
        let size = spliced(pod(one).as_bytes(), pod(other).as_bytes()).expect("a splice");
        assert!(size <= 24, "{size}");
        // A letter that is no digit, and one that is large.
        for odd in ["f9e8d7c6-b5a4-9382-7160-5f4e3a2c1b0g", "F9E8D7C6-B5A4-9382-7160-5F4E3A2C1B0D"] {
            let size = spliced(pod(one).as_bytes(), pod(odd).as_bytes()).expect("a splice");
            assert!((36..50).contains(&size), "{size}");
        }
    }

    /// However many there are: only the last ones are known.
    #[test]
    fn what_comes_again_is_found_among_many() {
        let text = |value: &dyn Fn(usize) -> String| -> String {
            (0..200).map(|number| format!(r#"{{"field-{number}":"{}"}},"#, value(number))).collect()
        };
        let base = text(&|number| format!("old-{number:012}-text"));
        for different in [1, 7, 31, 32, 33, 64, 200] {
            let new = text(&|number| format!("new-{:012}-word", number % different * 7919));
            let size = spliced(base.as_bytes(), new.as_bytes()).expect("a splice");
            assert!(different > 7 || size < 200 * 5 + different * 24, "{different}: {size}");
        }
    }

    #[test]
    fn digits_are_told_from_what_is_beside_them() {
        for byte in 0..=u8::MAX {
            let bytes = [b'0', b'9', byte, b'a', b'f', b'5', b'e', byte];
            assert_eq!(are_digits(u64::from_le_bytes(bytes)), is_digit(byte), "{byte}");
            if is_digit(byte) {
                let expected: Vec<u8> = bytes.chunks(2).map(|two| value(two[0]) << 4 | value(two[1])).collect();
                assert_eq!(pairs(u64::from_le_bytes(bytes)).as_slice(), expected);
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
        assert!(!cut(BASE.as_bytes(), changed.as_bytes(), 5, &mut out), "there is no room");
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
