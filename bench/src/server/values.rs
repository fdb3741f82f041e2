//! What differs from pod to pod: the values for a pod's number and revision, each with the length of its placeholder.

use crate::templates::Format;

/// Letters and digits of generated names.
const ALPHABET: &[u8; 27] = b"bcdfghjklmnpqrstvwxz2456789";
/// How many suffixes of five letters there are, and so how many pods.
pub(crate) const SUFFIXES: u64 = 27_u64.pow(5);
/// The version of a server without events. Those of pods at first are below it.
pub(crate) const FRESH: u64 = 2_000_000_000;
/// 2026-01-01T00:00:00Z.
const NEW_YEAR: u64 = 1_767_225_600;
const DAY: u64 = 86_400;

/// A value that stands in one or many places of a pod.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Field {
    NameSuffix,
    TemplateHash,
    VolumeSuffix,
    Version,
    PodAddress,
    HostAddress,
    Uid(u8),
    Hash {
        length: usize,
        nth: u8,
    },
    /// RFC 3339. The creation is number 0, and stays.
    Time(u8),
    /// The same time in protobuf: the field `seconds` of a Timestamp.
    Seconds(u8),
}

impl Field {
    pub(crate) const LONGEST: usize = 64;

    /// All that may be in a pod, with their placeholders.
    pub(crate) fn all(format: Format) -> impl Iterator<Item = (Self, Vec<u8>)> {
        let single = [
            (Self::NameSuffix, "xxxxx"),
            (Self::TemplateHash, "zzzzzzzzzz"),
            (Self::VolumeSuffix, "vvvvv"),
            (Self::Version, "1111111111"),
            (Self::PodAddress, "10.211.211.211"),
            (Self::HostAddress, "10.122.122.122"),
        ];
        let numbered = (0..10).flat_map(move |nth| {
            let uid = (Self::Uid(nth), format!("00000000-0000-4000-8000-00000000000{nth}").into_bytes());
            let hashes = [32, 40, 64].map(|length| {
                (Self::Hash { length, nth }, format!("{length}{nth:0rest$}", rest = length - 2).into_bytes())
            });
            // 2026-01-01T00:00:00Z, or 2026-02-02T02:02:0nZ.
            let seconds = if nth == 0 { 0 } else { 32 * DAY + 2 * 3600 + 2 * 60 + u64::from(nth) };
            let time = match format {
                Format::Json => (Self::Time(nth), time_text(seconds).to_vec()),
                Format::Protobuf => (Self::Seconds(nth), seconds_field(seconds).to_vec()),
            };
            hashes.into_iter().chain([uid, time])
        });
        single.map(|(field, placeholder)| (field, placeholder.into())).into_iter().chain(numbered)
    }

    /// The value that pod `number` has at `revision`.
    pub(crate) fn value(self, number: u32, revision: u64, space: &mut [u8; Self::LONGEST]) -> &[u8] {
        let mut random = Random::of(self, number, revision);
        let length = match self {
            Self::NameSuffix => copy(&name_suffix(number), space),
            Self::TemplateHash => generated(10, &mut random, space),
            Self::VolumeSuffix => generated(5, &mut random, space),
            Self::Version => copy(&digits::<10>(version(number, revision)), space),
            Self::PodAddress | Self::HostAddress => address(&mut random, space),
            Self::Uid(_) => {
                hex(36, &mut random, space);
                (space[8], space[13], space[14]) = (b'-', b'-', b'4');
                (space[18], space[19], space[23]) = (b'-', b'8', b'-');
                36
            }
            Self::Hash { length, .. } => hex(length, &mut random, space),
            Self::Time(_) => copy(&time_text(random.next() % (300 * DAY)), space),
            Self::Seconds(_) => copy(&seconds_field(random.next() % (300 * DAY)), space),
        };
        &space[..length]
    }

    /// A time in JSON and the same in protobuf have one seed.
    fn seed(self) -> u64 {
        match self {
            Self::NameSuffix => 1,
            Self::TemplateHash => 2,
            Self::VolumeSuffix => 3,
            Self::Version => 4,
            Self::PodAddress => 5,
            Self::HostAddress => 6,
            Self::Time(nth) | Self::Seconds(nth) => 10 + u64::from(nth),
            Self::Uid(nth) => 20 + u64::from(nth),
            Self::Hash { length, nth } => 30 + length as u64 * 10 + u64::from(nth),
        }
    }

    fn changes(self) -> bool {
        matches!(self, Self::PodAddress | Self::Time(1..) | Self::Seconds(1..))
    }
}

/// The version of a pod: that of its last event, or else its own.
pub(crate) fn version(number: u32, revision: u64) -> u64 {
    // The modulus is prime, so no two numbers have the same.
    if revision == 0 { 1_000_000_000 + (u64::from(number) * 611_953_411 + 7) % 999_999_937 } else { revision }
}

/// The hash in the name of a pod.
pub(crate) fn template_hash(number: u32) -> [u8; 10] {
    let mut space = [0; Field::LONGEST];
    let mut hash = [0; 10];
    hash.copy_from_slice(Field::TemplateHash.value(number, 0, &mut space));
    hash
}

/// No two numbers below [`SUFFIXES`] have the same.
pub(crate) fn name_suffix(number: u32) -> [u8; 5] {
    // The factor has no divisor in common with 27.
    let mut rest = (u64::from(number) * 8_867_587 + 1_234_567) % SUFFIXES;
    [(); 5].map(|()| {
        let letter = ALPHABET[(rest % 27) as usize];
        rest /= 27;
        letter
    })
}

/// SplitMix64.
struct Random(u64);

impl Random {
    fn of(field: Field, number: u32, revision: u64) -> Self {
        let revision = if field.changes() { revision } else { 0 };
        let mut random = Self(u64::from(number) << 32 ^ revision << 10 ^ field.seed());
        Self(random.next())
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ mixed >> 31
    }
}

fn copy(from: &[u8], to: &mut [u8]) -> usize {
    to[..from.len()].copy_from_slice(from);
    from.len()
}

fn hex(length: usize, random: &mut Random, to: &mut [u8]) -> usize {
    for part in to[..length].chunks_mut(16) {
        let mut bits = random.next();
        for digit in part {
            *digit = b"0123456789abcdef"[(bits & 15) as usize];
            bits >>= 4;
        }
    }
    length
}

fn generated(length: usize, random: &mut Random, to: &mut [u8]) -> usize {
    let mut rest = random.next();
    for letter in &mut to[..length] {
        *letter = ALPHABET[(rest % 27) as usize];
        rest /= 27;
    }
    length
}

/// Each part has three digits.
fn address(random: &mut Random, to: &mut [u8]) -> usize {
    let bits = random.next();
    to[..3].copy_from_slice(b"10.");
    for (nth, start) in [3, 7, 11].into_iter().enumerate() {
        to[start..start + 3].copy_from_slice(&digits::<3>(100 + (bits >> (nth * 16) & 0xffff) % 156));
    }
    (to[6], to[10]) = (b'.', b'.');
    14
}

fn digits<const LENGTH: usize>(mut number: u64) -> [u8; LENGTH] {
    let mut text = [b'0'; LENGTH];
    for digit in text.iter_mut().rev() {
        *digit += (number % 10) as u8;
        number /= 10;
    }
    text
}

/// A time of 2026, from the seconds since its beginning.
fn time_text(seconds: u64) -> [u8; 20] {
    let (mut month, mut day) = (0, seconds / DAY);
    for length in [31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30] {
        if day < length {
            break;
        }
        (month, day) = (month + 1, day - length);
    }
    let mut text = *b"2026-00-00T00:00:00Z";
    let parts = [(5, month + 1), (8, day + 1), (11, seconds / 3600 % 24), (14, seconds / 60 % 60), (17, seconds % 60)];
    for (at, part) in parts {
        text[at..at + 2].copy_from_slice(&digits::<2>(part));
    }
    text
}

/// Field 1 of a Timestamp. Its number takes five bytes from 1978 on, and for a thousand years.
fn seconds_field(seconds: u64) -> [u8; 6] {
    let seconds = NEW_YEAR + seconds;
    let part = |nth: u32| (seconds >> (7 * nth) & 0x7f) as u8;
    [1 << 3, part(0) | 0x80, part(1) | 0x80, part(2) | 0x80, part(3) | 0x80, part(4)]
}
