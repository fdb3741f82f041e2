//! Checks JSON 64 bytes at a time.
//!
//! Of each block there are bitmaps, a bit for each byte, as simdjson makes them: where the quotes are, the brackets, the
//! colons, the commas. Text without spaces between its tokens is JSON if each byte may stand behind the one before it, if
//! brackets match, and if keys are where keys belong. The first and the last are a few operations on the bitmaps for all
//! 64 bytes at once; it takes a loop for the brackets only, and for what is neither a string nor a bracket. So next to
//! nothing depends on what the text is like, and a processor seldom guesses wrong where it goes on.
//!
//! Whatever is said of a byte depends on that byte and those before it, never on those behind: what is wrong behind the end
//! of the value does not matter, and a text that is cut off can be told from a broken one.

use std::hint::select_unpredictable;
use std::mem::replace;

use fearless_simd::prelude::*;
use fearless_simd::{i8x64, u8x64};

/// How many bytes there are in a block.
pub(super) const SIZE: usize = u64::BITS as usize;

/// What a block says of its bytes.
pub(super) struct Checked {
    /// The first bytes of numbers and words, which are yet to be checked.
    pub(super) scalars: u64,
    /// All bytes of numbers and words.
    pub(super) scalar: u64,
    /// Bytes that are escaped, but for quotes and backslashes. They are yet to be checked.
    pub(super) escaped: u64,
    pub(super) is_ascii: bool,
    /// How many of the bytes belong to the value, if it ends here.
    pub(super) end: Option<usize>,
}

/// What the blocks so far mean for the next one. What is said of the byte before it is said in the highest bit.
pub(super) struct Checker {
    /// What is open, the innermost in the lowest bit, which is set if it is an object. The highest that is set is none.
    open: u64,
    /// Where the strings were, but for their last quotes.
    inside: u64,
    /// The string that goes on is a key.
    in_key: bool,
    /// In the lowest bit: the next byte is escaped.
    escaped: u64,
    opening: u64,
    scalar: u64,
    before_value: u64,
    before_key: u64,
    before_colon: u64,
}

impl Checker {
    /// Begins with an array or an object, which must not be empty.
    pub(super) fn new() -> Self {
        Self {
            open: 1,
            inside: 0,
            in_key: false,
            escaped: 0,
            opening: 0,
            scalar: 0,
            before_value: u64::MAX,
            before_key: 0,
            before_colon: 0,
        }
    }

    /// Checks the next block, of which those bytes are there. None is for what is not well.
    #[inline(always)]
    pub(super) fn check<S: Simd>(&mut self, simd: S, block: &[u8; SIZE], mut within: u64) -> Option<Checked> {
        let bytes = u8x64::from_slice(simd, block);
        let bits = Bitmaps::of(simd, bytes);
        let mut quotes = bits.quotes;
        let (mut escaped, mut controls, mut high) = (0, 0, 0);
        if bits.has_rare || self.escaped != 0 {
            let backslashes = bytes.simd_eq(b'\\').to_bitmask();
            high = high_bits(bytes);
            controls = bytes.simd_lt(0x20).to_bitmask();
            escaped = self.escaped(backslashes);
            (quotes, escaped) = (quotes & !escaped, escaped & !(quotes | backslashes));
        }

        // From its first quote on a string is inside, its last quote is outside.
        let inside = prefix_xor(quotes) ^ 0_u64.wrapping_sub(self.inside >> 63);
        self.inside = inside;
        let starts = quotes & inside;
        let outside = !(inside | quotes);
        let (opening, closing) = (bits.opening & outside, bits.closing & outside);
        let (colons, commas) = (bits.colons & outside, bits.commas & outside);
        let (brackets, separators) = (opening | closing, colons | commas);
        let scalar = outside & !(brackets | separators);

        // Brackets with nothing in between are many, and need not be opened.
        let empty = closing & (opening << 1);
        let mut wrong = empty & (bits.curly ^ (bits.curly << 1));
        let not_empty = brackets & !(empty | empty >> 1);
        let (mut rest, mut ever_open) = (not_empty, 0);
        let outer = 0_u64.wrapping_sub(self.open & 1);
        let mut in_object = outer;
        let mut end = None;
        while rest != 0 {
            let bracket = rest & rest.wrapping_neg();
            rest ^= bracket;
            let opened = self.open << 1 | u64::from(bits.curly & bracket != 0);
            let open = select_unpredictable(opening & bracket != 0, opened, self.open >> 1);
            in_object ^= bracket.wrapping_neg() & 0_u64.wrapping_sub((self.open ^ open) & 1);
            self.open = open;
            ever_open |= open;
            if open == 1 {
                end = Some(bracket.trailing_zeros() as usize + 1);
                within &= bracket | (bracket - 1);
                break;
            }
        }
        // What is closed is what was opened.
        wrong |= closing & not_empty & (behind(in_object, outer) ^ bits.curly);

        // Behind brackets that open, colons and commas there is a value (or a key), and nowhere else.
        let closes_empty = closing & behind(opening, replace(&mut self.opening, opening));
        let goes_on = scalar & behind(scalar, replace(&mut self.scalar, scalar));
        let before_value = opening | separators;
        let value_wanted = behind(before_value, replace(&mut self.before_value, before_value));
        wrong |= (starts | opening | scalar) ^ value_wanted ^ closes_empty ^ goes_on;
        // In an object there is a key behind its bracket and its commas, and a colon behind the key, and nowhere else.
        let before_key = (opening | commas) & in_object;
        let key_wanted = behind(before_key, replace(&mut self.before_key, before_key));
        wrong |= key_wanted & !(starts | closes_empty);
        // Added to the first bit of a string, a one is carried to its last quote.
        let (sum, is_carried) = inside.overflowing_add((starts & key_wanted) | u64::from(self.in_key));
        self.in_key = is_carried;
        let before_colon = sum & !inside;
        wrong |= colons ^ behind(before_colon, replace(&mut self.before_colon, before_colon));

        if (wrong | controls) & within | ever_open >> 63 != 0 {
            return None;
        }
        Some(Checked {
            scalars: scalar & value_wanted & within,
            scalar,
            escaped: escaped & within,
            is_ascii: high & within == 0,
            end,
        })
    }

    /// What is escaped: what follows an odd number of backslashes.
    fn escaped(&mut self, backslashes: u64) -> u64 {
        const ODD: u64 = 0xaaaa_aaaa_aaaa_aaaa;
        // As simdjson does it: the subtraction borrows through each run of backslashes, which leaves a pattern that
        // alternates and begins with the run, wherever that is.
        let first = backslashes & !self.escaped;
        let alternating = (first << 1 | ODD).wrapping_sub(first) ^ ODD;
        let escaped = alternating ^ (backslashes | self.escaped);
        self.escaped = (alternating & backslashes) >> 63;
        escaped
    }
}

/// The bits behind those; the first one comes from the block before.
#[inline(always)]
fn behind(bits: u64, before: u64) -> u64 {
    bits << 1 | before >> 63
}

/// Each bit says whether the number of bits up to it is odd.
#[inline(always)]
fn prefix_xor(mut bits: u64) -> u64 {
    for shift in [1, 2, 4, 8, 16, 32] {
        bits ^= bits << shift;
    }
    bits
}

/// Where in a block what is.
struct Bitmaps {
    quotes: u64,
    opening: u64,
    closing: u64,
    colons: u64,
    commas: u64,
    /// Of a bracket: that it is a curly one.
    curly: u64,
    /// There is a backslash, a control character or something that is not ASCII.
    has_rare: bool,
}

impl Bitmaps {
    #[inline(always)]
    fn of<S: Simd>(simd: S, bytes: u8x64<S>) -> Self {
        // The two kinds of brackets differ in one bit.
        let either = bytes & u8x64::splat(simd, !0x20);
        // That bit is moved to the top of its byte, where it is taken from.
        let twice = bytes + bytes;
        // As a number with a sign, what is not ASCII is below zero.
        let rare = bytes.simd_eq(b'\\') | bytes.bitcast::<i8x64<S>>().simd_lt(0x20);
        Self {
            quotes: bytes.simd_eq(b'"').to_bitmask(),
            opening: either.simd_eq(b'[').to_bitmask(),
            closing: either.simd_eq(b']').to_bitmask(),
            colons: bytes.simd_eq(b':').to_bitmask(),
            commas: bytes.simd_eq(b',').to_bitmask(),
            curly: high_bits(twice + twice),
            has_rare: rare.any_true(),
        }
    }
}

/// The highest bit of each byte.
#[inline(always)]
fn high_bits<S: Simd>(bytes: u8x64<S>) -> u64 {
    bytes.bitcast::<i8x64<S>>().simd_lt(0).to_bitmask()
}
