//! The decoder behind [`super`]: a loop over the parts of a member.
//!
//! flate2 has decoders of many members, but they take a whole reader or hold back output until the next write, and they
//! do not tell a stream that ends between two members from one that was cut. Its inflate and its checksum do the work
//! here; the header and the trailer of RFC 1952 are read by hand.
//!
//! The tests are in [`super`], where the decoder is used.

use bytes::{Buf, Bytes};
use flate2::{Crc, Decompress, FlushDecompress, Status};

use crate::error::{Error, ErrorKind};

/// The bounds of a decoded chunk. Within them it is as large as four times what came in, which suits JSON: events get
/// small chunks, and lists get large ones.
const MIN_CHUNK: usize = 4 << 10;
pub(super) const MAX_CHUNK: usize = 256 << 10;

/// A member's header is ten bytes; optional fields may make it longer, but nobody sends novels there.
pub(super) const MAX_HEADER: usize = 4 << 10;

/// A decoder of any number of gzip members (RFC 1952), which may be fed in pieces of any size.
pub(super) struct Gunzip {
    part: Part,
    /// The bytes of a header or a trailer that is not complete yet.
    held: Vec<u8>,
    inflate: Decompress,
    crc: Crc,
    /// The last chunk was full: there may be more without further input.
    more: bool,
    /// Found behind data that is good and goes first.
    failed: Option<Error>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Part {
    Header,
    Deflate,
    Trailer,
}

impl Default for Gunzip {
    fn default() -> Self {
        Self {
            part: Part::Header,
            held: Vec::new(),
            inflate: Decompress::new(false),
            crc: Crc::new(),
            more: false,
            failed: None,
        }
    }
}

impl Gunzip {
    /// Takes from the input until it is used up or a chunk is full. An empty chunk means that more input is needed.
    pub(super) fn decode(&mut self, input: &mut Bytes) -> Result<Vec<u8>, Error> {
        if let Some(error) = self.failed.take() {
            return Err(error);
        }
        let mut chunk = Vec::new();
        if input.is_empty() && !self.more {
            return Ok(chunk);
        }
        self.more = false;
        chunk.reserve_exact(input.len().saturating_mul(4).clamp(MIN_CHUNK, MAX_CHUNK));
        let mut checked = 0;
        loop {
            let step = match self.part {
                Part::Header => self.header(input),
                Part::Deflate => self.deflate(input, &mut chunk),
                Part::Trailer => self.trailer(input),
            };
            if self.part == Part::Header {
                checked = chunk.len();
            }
            match step {
                Ok(false) => {}
                Ok(true) => return Ok(chunk),
                Err(error) if checked == 0 => return Err(error),
                Err(error) => {
                    chunk.truncate(checked);
                    self.failed = Some(error);
                    return Ok(chunk);
                }
            }
        }
    }

    /// The input so far ends where a body may end.
    pub(super) fn is_between_members(&self) -> bool {
        self.part == Part::Header && self.held.is_empty()
    }

    fn header(&mut self, input: &mut Bytes) -> Result<bool, Error> {
        let before = self.held.len();
        let taken = input.len().min(MAX_HEADER - before);
        self.held.extend_from_slice(&input[..taken]);
        let Some(length) = header_length(&self.held)? else {
            if self.held.len() == MAX_HEADER {
                return Err(malformed());
            }
            input.advance(taken);
            return Ok(true);
        };
        // The header was not complete before, so it ends in what was just taken.
        input.advance(length.saturating_sub(before));
        self.held.clear();
        self.inflate.reset(false);
        self.crc.reset();
        self.part = Part::Deflate;
        Ok(false)
    }

    fn deflate(&mut self, input: &mut Bytes, chunk: &mut Vec<u8>) -> Result<bool, Error> {
        let (used, start) = (self.inflate.total_in(), chunk.len());
        let status = self.inflate.decompress_vec(input, chunk, FlushDecompress::None).map_err(|_| malformed())?;
        let used = usize::try_from(self.inflate.total_in() - used).unwrap_or(usize::MAX).min(input.len());
        input.advance(used);
        self.crc.update(&chunk[start..]);
        if status == Status::StreamEnd {
            self.part = Part::Trailer;
            return Ok(false);
        }
        self.more = chunk.len() == chunk.capacity();
        if self.more || input.is_empty() {
            return Ok(true);
        }
        // Room and input are left. Without any progress there never will be one.
        if used == 0 && chunk.len() == start { Err(malformed()) } else { Ok(false) }
    }

    fn trailer(&mut self, input: &mut Bytes) -> Result<bool, Error> {
        let taken = input.len().min(8 - self.held.len());
        self.held.extend_from_slice(&input.split_to(taken));
        let &[a, b, c, d, e, f, g, h] = &self.held[..] else { return Ok(true) };
        if u32::from_le_bytes([a, b, c, d]) != self.crc.sum() || u32::from_le_bytes([e, f, g, h]) != self.crc.amount() {
            return Err(malformed());
        }
        self.held.clear();
        self.part = Part::Header;
        Ok(input.is_empty())
    }
}

/// How long the header of a member is, if all of it is here.
fn header_length(bytes: &[u8]) -> Result<Option<usize>, Error> {
    const FIXED: usize = 10;
    const MAGIC: [u8; 3] = [0x1f, 0x8b, 8];
    const CHECKSUM: u8 = 1 << 1;
    const EXTRA: u8 = 1 << 2;
    const NAME: u8 = 1 << 3;
    const COMMENT: u8 = 1 << 4;
    const RESERVED: u8 = 0b1110_0000;

    let seen = bytes.len().min(MAGIC.len());
    let flags = bytes.get(3).copied().unwrap_or_default();
    if bytes[..seen] != MAGIC[..seen] || flags & RESERVED != 0 {
        return Err(malformed());
    }
    let mut length = FIXED;
    if flags & EXTRA != 0 {
        let Some(&[low, high]) = bytes.get(length..length + 2) else { return Ok(None) };
        length += 2 + usize::from(u16::from_le_bytes([low, high]));
    }
    for text in [NAME, COMMENT] {
        if flags & text != 0 {
            let end = bytes.get(length..).and_then(|rest| memchr::memchr(0, rest));
            let Some(end) = end else { return Ok(None) };
            length += end + 1;
        }
    }
    if flags & CHECKSUM != 0 {
        length += 2;
    }
    Ok((length <= bytes.len()).then_some(length))
}

fn malformed() -> Error {
    Error::new(ErrorKind::Malformed, "the compressed answer is damaged")
}
