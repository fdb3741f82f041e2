//! Goes over JSON quickly.
//!
//! Of an object that comes in, a few short texts are wanted, and of all the rest only that it is JSON. serde_json's reader
//! finds that out byte by byte; here, what is skipped is looked at 64 bytes at a time. What makes that simple is that this
//! reader may give up. It takes JSON as API servers write it: no spaces between tokens, no escapes in the texts that are
//! wanted, nesting of at most 62 levels. Whatever else there is, it says [`Odd::Unusual`] and leaves it to the careful
//! reader. It must never take what that one would refuse; a test compares the two.

mod block;

use block::Checker;
use fearless_simd::prelude::*;
use fearless_simd::{Level, dispatch, u8x16};

/// Why the quick reader cannot say what there is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Odd {
    /// The text ends in the middle of a value, and is well up to there.
    CutOff,
    /// Something that the careful reader has to look at.
    Unusual,
}

/// A place in a text.
pub(crate) struct Skim<'a> {
    json: &'a [u8],
    at: usize,
    is_ascii: bool,
}

impl<'a> Skim<'a> {
    pub(crate) fn new(json: &'a [u8]) -> Self {
        Self { json, at: 0, is_ascii: true }
    }

    /// How far it has come.
    pub(crate) fn offset(&self) -> usize {
        self.at
    }

    /// All that it has passed is ASCII.
    pub(crate) fn is_ascii(&self) -> bool {
        self.is_ascii
    }

    /// Takes a `{`. Nothing at all is not the beginning of one.
    fn open_object(&mut self) -> Result<(), Odd> {
        if self.json.is_empty() { Err(Odd::Unusual) } else { self.expect(b'{') }
    }

    /// Takes the next key of an object and its colon, or the end of the object. `first` says whether it is the first one.
    /// The key is text: as bytes, it need not be looked at once more where it is ASCII.
    fn next_key(&mut self, first: bool) -> Result<Option<&'a [u8]>, Odd> {
        match self.next()? {
            b'}' => return Ok(None),
            b'"' if first => {}
            b',' if !first => self.expect(b'"')?,
            _ => return Err(Odd::Unusual),
        }
        let key = self.rest_of_bytes()?;
        if !self.is_ascii && std::str::from_utf8(key).is_err() {
            return Err(Odd::Unusual);
        }
        self.expect(b':')?;
        Ok(Some(key))
    }

    /// Takes an object. `field` is called with each key, and takes the value.
    pub(crate) fn each_field(
        &mut self,
        mut field: impl FnMut(&mut Self, &'a [u8]) -> Result<(), Odd>,
    ) -> Result<(), Odd> {
        self.open_object()?;
        let mut first = true;
        while let Some(key) = self.next_key(std::mem::take(&mut first))? {
            field(self, key)?;
        }
        Ok(())
    }

    /// Takes an array. `element` is called with the number of each element, and takes it.
    pub(crate) fn each_element(
        &mut self,
        mut element: impl FnMut(&mut Self, usize) -> Result<(), Odd>,
    ) -> Result<(), Odd> {
        self.expect(b'[')?;
        if self.skip_if(b']')? {
            return Ok(());
        }
        for number in 0.. {
            element(self, number)?;
            match self.next()? {
                b',' => {}
                b']' => break,
                _ => return Err(Odd::Unusual),
            }
        }
        Ok(())
    }

    /// The byte that the next value begins with.
    pub(crate) fn first_byte(&self) -> Result<u8, Odd> {
        self.json.get(self.at).copied().ok_or(Odd::CutOff)
    }

    /// Takes any value, as it is written.
    pub(crate) fn value(&mut self) -> Result<&'a str, Odd> {
        let start = self.at;
        self.skip()?;
        std::str::from_utf8(&self.json[start..self.at]).map_err(|_| Odd::Unusual)
    }

    /// Takes a string without escapes.
    pub(crate) fn text(&mut self) -> Result<&'a str, Odd> {
        self.expect(b'"')?;
        self.rest_of_text()
    }

    /// Skips a string that must be text. One with an escaped code point is unusual: it may be half of a pair.
    pub(crate) fn skip_text(&mut self) -> Result<(), Odd> {
        self.expect(b'"')?;
        let start = self.at;
        while !self.skip_to_special()? {
            if self.rest_of_escape()? == b'u' {
                return Err(Odd::Unusual);
            }
        }
        let is_text = self.is_ascii() || std::str::from_utf8(&self.json[start..self.at]).is_ok();
        if is_text { Ok(()) } else { Err(Odd::Unusual) }
    }

    /// Skips a value, and checks it.
    pub(crate) fn skip(&mut self) -> Result<(), Odd> {
        match self.next()? {
            b'"' => self.rest_of_string(),
            b'{' if self.skip_if(b'}')? => Ok(()),
            b'[' if self.skip_if(b']')? => Ok(()),
            b'{' | b'[' => {
                self.at -= 1;
                self.skip_blocks()
            }
            first => self.rest_of_scalar(first),
        }
    }

    /// Skips an array or an object that is not empty. By itself, so that its loop has the registers.
    #[inline(never)]
    fn skip_blocks(&mut self) -> Result<(), Odd> {
        dispatch!(Level::new(), simd => self.skip_blocks_with(simd))
    }

    #[inline(always)]
    fn skip_blocks_with<S: Simd>(&mut self, simd: S) -> Result<(), Odd> {
        let mut checker = Checker::new();
        let mut start = self.at;
        loop {
            let rest = &self.json[start..];
            let mut last;
            let (block, within) = match rest.first_chunk() {
                Some(block) => (block, u64::MAX),
                None if rest.is_empty() => return Err(Odd::CutOff),
                None => {
                    last = [b' '; block::SIZE];
                    last[..rest.len()].copy_from_slice(rest);
                    (&last, !(u64::MAX << rest.len()))
                }
            };
            let checked = checker.check(simd, block, within).ok_or(Odd::Unusual)?;
            self.is_ascii &= checked.is_ascii;
            for at in bits(checked.escaped) {
                self.at = start + at;
                // One that is cut off is the last thing there is. Something before it may be wrong, and is yet to be found.
                if self.rest_of_escape() == Err(Odd::Unusual) {
                    return Err(Odd::Unusual);
                }
            }
            for at in bits(checked.scalars) {
                self.at = start + at;
                // What may follow is checked with the block, if that is where it ends.
                let length = (checked.scalar >> at).trailing_ones();
                if let Some(word) = self.json[self.at..].first_chunk()
                    && is_usual_scalar(u64::from_le_bytes(*word), length)
                    && at + (length as usize) < block::SIZE
                {
                    continue;
                }
                let first = self.next()?;
                self.rest_of_scalar(first)?;
                if !matches!(self.json.get(self.at), Some(b',' | b'}' | b']') | None) {
                    return Err(Odd::Unusual);
                }
            }
            if let Some(end) = checked.end {
                self.at = start + end;
                return Ok(());
            }
            start += rest.len().min(block::SIZE);
        }
    }

    /// A number or a word, whose first byte has been taken.
    fn rest_of_scalar(&mut self, first: u8) -> Result<(), Odd> {
        match first {
            b'-' => self.negative(),
            b'0' => self.rest_of_zero(),
            b'1'..=b'9' => {
                self.digits();
                self.rest_of_number()
            }
            b't' => self.rest_of_word(b"rue"),
            b'f' => self.rest_of_word(b"alse"),
            b'n' => self.rest_of_word(b"ull"),
            _ => Err(Odd::Unusual),
        }
    }

    fn next(&mut self) -> Result<u8, Odd> {
        let byte = *self.json.get(self.at).ok_or(Odd::CutOff)?;
        self.at += 1;
        Ok(byte)
    }

    fn expect(&mut self, wanted: u8) -> Result<(), Odd> {
        if self.next()? == wanted { Ok(()) } else { Err(Odd::Unusual) }
    }

    fn skip_if(&mut self, wanted: u8) -> Result<bool, Odd> {
        let is_there = *self.json.get(self.at).ok_or(Odd::CutOff)? == wanted;
        self.at += usize::from(is_there);
        Ok(is_there)
    }

    /// A string without escapes, whose quote has been taken.
    fn rest_of_text(&mut self) -> Result<&'a str, Odd> {
        std::str::from_utf8(self.rest_of_bytes()?).map_err(|_| Odd::Unusual)
    }

    /// The same, of which it is not known whether it is text.
    fn rest_of_bytes(&mut self) -> Result<&'a [u8], Odd> {
        let start = self.at;
        if !self.skip_to_special()? {
            return Err(Odd::Unusual);
        }
        Ok(&self.json[start..self.at - 1])
    }

    /// A string whose quote has been taken.
    fn rest_of_string(&mut self) -> Result<(), Odd> {
        while !self.skip_to_special()? {
            self.rest_of_escape()?;
        }
        Ok(())
    }

    /// Goes on within a string: behind its end (true), or behind a backslash (false).
    #[inline]
    fn skip_to_special(&mut self) -> Result<bool, Odd> {
        // Most are short: what every processor of this kind can do will do.
        dispatch!(Level::baseline(), simd => self.skip_to_special_with(simd))
    }

    #[inline(always)]
    fn skip_to_special_with<S: Simd>(&mut self, simd: S) -> Result<bool, Odd> {
        while let Some(bytes) = self.json[self.at..].first_chunk::<16>() {
            let bytes = u8x16::from_slice(simd, bytes);
            let special = (bytes.simd_eq(b'"') | bytes.simd_eq(b'\\') | bytes.simd_lt(0x20)).to_bitmask();
            let high = bytes.simd_ge(0x80).to_bitmask();
            self.is_ascii &= high & special.wrapping_sub(1) & !special == 0;
            if special != 0 {
                self.at += special.trailing_zeros() as usize;
                break;
            }
            self.at += 16;
        }
        loop {
            match self.next()? {
                b'"' => return Ok(true),
                b'\\' => return Ok(false),
                0..0x20 => return Err(Odd::Unusual),
                byte => self.is_ascii &= byte.is_ascii(),
            }
        }
    }

    /// What follows a backslash.
    fn rest_of_escape(&mut self) -> Result<u8, Odd> {
        let escaped = self.next()?;
        match escaped {
            b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't' => {}
            b'u' => {
                for _ in 0..4 {
                    if !self.next()?.is_ascii_hexdigit() {
                        return Err(Odd::Unusual);
                    }
                }
            }
            _ => return Err(Odd::Unusual),
        }
        Ok(escaped)
    }

    fn negative(&mut self) -> Result<(), Odd> {
        match self.next()? {
            b'0' => self.rest_of_zero(),
            b'1'..=b'9' => {
                self.digits();
                self.rest_of_number()
            }
            _ => Err(Odd::Unusual),
        }
    }

    /// What follows a zero in front, which is not another digit.
    fn rest_of_zero(&mut self) -> Result<(), Odd> {
        if self.json.get(self.at).is_some_and(u8::is_ascii_digit) { Err(Odd::Unusual) } else { self.rest_of_number() }
    }

    /// What follows the whole part. Where the text ends behind a number, the number may go on: it is cut off.
    fn rest_of_number(&mut self) -> Result<(), Odd> {
        if self.skip_if(b'.')? {
            self.some_digits()?;
        }
        if self.skip_if(b'e')? || self.skip_if(b'E')? {
            let _sign = self.skip_if(b'+')? || self.skip_if(b'-')?;
            self.some_digits()?;
        }
        Ok(())
    }

    fn some_digits(&mut self) -> Result<(), Odd> {
        if !self.next()?.is_ascii_digit() {
            return Err(Odd::Unusual);
        }
        self.digits();
        Ok(())
    }

    fn digits(&mut self) {
        while self.json.get(self.at).is_some_and(u8::is_ascii_digit) {
            self.at += 1;
        }
    }

    fn rest_of_word(&mut self, rest: &[u8]) -> Result<(), Odd> {
        for wanted in rest {
            self.expect(*wanted)?;
        }
        Ok(())
    }
}

/// Whether the first bytes of a word, as many as `length`, are true, false, null or a number of nothing but digits. That is
/// found out without a branch, and so with none that is guessed wrong.
fn is_usual_scalar(word: u64, length: u32) -> bool {
    const TRUE: u64 = u64::from_le_bytes(*b"true\0\0\0\0");
    const FALSE: u64 = u64::from_le_bytes(*b"false\0\0\0");
    const NULL: u64 = u64::from_le_bytes(*b"null\0\0\0\0");
    const ONES: u64 = 0x0101_0101_0101_0101;
    let Some(mask) = u64::MAX.checked_shr(u64::BITS.wrapping_sub(8 * length)) else { return false };
    let word = word & mask;
    let digits = word ^ ((ONES * u64::from(b'0')) & mask);
    // What is more than nine gets its highest bit set, if it has not.
    let are_digits = (digits | digits.wrapping_add(ONES * (0x80 - 10))) & (ONES * 0x80) == 0;
    let has_zero_in_front = (digits & 0xff == 0) & (length > 1);
    (word == TRUE) | (word == FALSE) | (word == NULL) | (are_digits & !has_zero_in_front)
}

/// The places of the bits that are set.
fn bits(mut bits: u64) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        let at = (bits != 0).then(|| bits.trailing_zeros() as usize)?;
        bits &= bits - 1;
        Some(at)
    })
}
