//! Texts one behind the other, each with its length in front: what headers are kept as.

/// Appends a length: seven bits a byte, the lowest first.
pub(super) fn put_length(out: &mut Vec<u8>, mut length: usize) {
    while length > 0x7f {
        out.push(length as u8 | 0x80);
        length >>= 7;
    }
    out.push(length as u8);
}

/// Takes a length off the front.
pub(super) fn take_length(from: &mut &[u8]) -> Option<usize> {
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
pub(super) fn take<'a>(from: &mut &'a [u8], length: usize) -> Option<&'a [u8]> {
    let (taken, rest) = from.split_at_checked(length)?;
    *from = rest;
    Some(taken)
}

/// What was put in as text comes out as text.
pub(super) fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_survive() {
        for length in [0, 1, 127, 128, 300, 70_000, 1 << 31, usize::MAX] {
            let mut out = Vec::new();
            put_length(&mut out, length);
            let mut rest = out.as_slice();
            assert_eq!((take_length(&mut rest), rest), (Some(length), &[][..]));
        }
        assert_eq!(take_length(&mut [0x80].as_slice()), None);
        assert_eq!(take_length(&mut [0xff; 20].as_slice()), None);
    }
}
