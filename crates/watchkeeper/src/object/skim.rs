//! Goes over JSON quickly.
//!
//! Of an object that comes in, a few short texts are wanted, and of all the rest only that it is JSON. serde_json's reader
//! finds that out byte by byte, in twice the time that it takes here: strings are looked at eight bytes at a time. What
//! makes that simple is that this reader may give up. It takes JSON as API servers write it: no spaces between tokens, no
//! escapes in the texts that are wanted, nesting of at most 64 levels. Whatever else there is, it says [`Odd::Unusual`] and
//! leaves it to the careful reader. It must never take what that one would refuse; a test compares the two.

/// Why the quick reader cannot say what there is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Odd {
    /// The text ends in the middle of a value, and is well up to there.
    CutOff,
    /// Something that the careful reader has to look at.
    Unusual,
}

/// How deep a value may be: one bit each says what is open.
const LEVELS: u32 = u64::BITS;

/// A place in a text.
pub(crate) struct Skim<'a> {
    json: &'a [u8],
    at: usize,
    /// All bytes of strings, or'ed together.
    bytes: u64,
}

impl<'a> Skim<'a> {
    pub(crate) fn new(json: &'a [u8]) -> Self {
        Self { json, at: 0, bytes: 0 }
    }

    /// How far it has come.
    pub(crate) fn offset(&self) -> usize {
        self.at
    }

    /// All that it has passed is ASCII.
    pub(crate) fn is_ascii(&self) -> bool {
        self.bytes & HIGH == 0
    }

    /// Takes a `{`. Nothing at all is not the beginning of one.
    pub(crate) fn open_object(&mut self) -> Result<(), Odd> {
        if self.json.is_empty() { Err(Odd::Unusual) } else { self.expect(b'{') }
    }

    /// Takes the next key of an object and its colon, or the end of the object. `first` says whether it is the first one.
    pub(crate) fn next_key(&mut self, first: bool) -> Result<Option<&'a str>, Odd> {
        match self.next()? {
            b'}' => return Ok(None),
            b'"' if first => {}
            b',' if !first => self.expect(b'"')?,
            _ => return Err(Odd::Unusual),
        }
        let key = self.rest_of_text()?;
        self.expect(b':')?;
        Ok(Some(key))
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
        // The innermost level is the lowest bit, which is set if it is an object.
        let (mut open, mut depth) = (0_u64, 0);
        loop {
            match self.next()? {
                b'"' => self.rest_of_string()?,
                b'{' if self.skip_if(b'}')? => {}
                b'[' if self.skip_if(b']')? => {}
                bracket @ (b'{' | b'[') if depth < LEVELS => {
                    depth += 1;
                    open = open << 1 | u64::from(bracket == b'{');
                    if bracket == b'{' {
                        self.skip_key()?;
                    }
                    continue;
                }
                b'-' => self.negative()?,
                b'0' => self.rest_of_number()?,
                b'1'..=b'9' => {
                    self.digits();
                    self.rest_of_number()?;
                }
                b't' => self.rest_of_word(b"rue")?,
                b'f' => self.rest_of_word(b"alse")?,
                b'n' => self.rest_of_word(b"ull")?,
                _ => return Err(Odd::Unusual),
            }
            loop {
                if depth == 0 {
                    return Ok(());
                }
                match (self.next()?, open & 1) {
                    (b',', 1) => {
                        self.skip_key()?;
                        break;
                    }
                    (b',', _) => break,
                    (b'}', 1) | (b']', 0) => {
                        open >>= 1;
                        depth -= 1;
                    }
                    _ => return Err(Odd::Unusual),
                }
            }
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

    fn skip_key(&mut self) -> Result<(), Odd> {
        self.expect(b'"')?;
        self.rest_of_string()?;
        self.expect(b':')
    }

    /// A string without escapes, whose quote has been taken.
    fn rest_of_text(&mut self) -> Result<&'a str, Odd> {
        let start = self.at;
        if !self.skip_to_special()? {
            return Err(Odd::Unusual);
        }
        std::str::from_utf8(&self.json[start..self.at - 1]).map_err(|_| Odd::Unusual)
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
        while let Some(word) = self.json[self.at..].first_chunk() {
            let word = u64::from_le_bytes(*word);
            self.bytes |= word;
            let special = special(word);
            if special != 0 {
                self.at += (special.trailing_zeros() / 8) as usize;
                break;
            }
            self.at += 8;
        }
        loop {
            match self.next()? {
                b'"' => return Ok(true),
                b'\\' => return Ok(false),
                0..0x20 => return Err(Odd::Unusual),
                byte => self.bytes |= u64::from(byte),
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
            b'0' => {}
            b'1'..=b'9' => {
                self.digits();
            }
            _ => return Err(Odd::Unusual),
        }
        self.rest_of_number()
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

/// The highest bit of each byte.
const HIGH: u64 = 0x8080_8080_8080_8080;

/// The highest bit of every byte that ends a run of plain text: a quote, a backslash, a control character. Only the lowest
/// of them is sure: a borrow may make one of its neighbour above.
fn special(word: u64) -> u64 {
    const ONES: u64 = 0x0101_0101_0101_0101;
    let below = |word: u64, least: u8| word.wrapping_sub(ONES * u64::from(least)) & !word;
    let is = |byte: u8| below(word ^ (ONES * u64::from(byte)), 1);
    (is(b'"') | is(b'\\') | below(word, 0x20)) & HIGH
}
