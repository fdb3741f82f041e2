//! Texts one behind the other in one `str`, each with its length in front: what headers are kept as.
//!
//! Lengths are ASCII, so that all of it is text and no part of it has to be checked again when it is read.

/// Six bits of a length are one character; all but the last have this bit too.
const MORE: u8 = 0x40;

/// Appends a length, the lowest bits first.
pub(super) fn put_length(out: &mut String, mut length: usize) {
    while length >= usize::from(MORE) {
        out.push(char::from(length as u8 & (MORE - 1) | MORE));
        length >>= 6;
    }
    out.push(char::from(length as u8));
}

/// The length that stands at a place of a text, which moves behind it.
#[inline]
pub(super) fn length_at(text: &str, at: &mut usize) -> Option<usize> {
    let byte = *text.as_bytes().get(*at)?;
    *at += 1;
    if byte < MORE { Some(byte.into()) } else { long_length_at(text, at, byte) }
}

#[cold]
fn long_length_at(text: &str, at: &mut usize, first: u8) -> Option<usize> {
    let (mut length, mut byte, mut shift) = (usize::from(first & (MORE - 1)), first, 0);
    while byte & MORE != 0 {
        byte = *text.as_bytes().get(*at)?;
        *at += 1;
        shift += 6;
        length |= usize::from(byte & (MORE - 1)).checked_shl(shift)?;
    }
    Some(length)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_survive() {
        for length in [0, 1, 63, 64, 127, 128, 300, 4095, 4096, 70_000, 1 << 31, usize::MAX] {
            let mut out = String::new();
            put_length(&mut out, length);
            assert!(out.is_ascii());
            out.push('x');
            let mut at = 0;
            assert_eq!((length_at(&out, &mut at), out.get(at..)), (Some(length), Some("x")));
        }
        for cut in ["", "@", &"@".repeat(20)] {
            assert_eq!(length_at(cut, &mut 0), None);
        }
        assert_eq!(length_at("x", &mut 2), None);
    }
}
