//! As much of protobuf as envelopes need.

/// The tag and the length of a field of bytes.
pub(crate) fn message(number: u8, length: usize) -> Vec<u8> {
    let mut head = vec![number << 3 | 2];
    let mut rest = length;
    while rest >= 0x80 {
        head.push(rest as u8 | 0x80);
        rest >>= 7;
    }
    head.push(rest as u8);
    head
}

/// A field of bytes, of text, or of a message.
pub(crate) fn field(number: u8, bytes: &[u8]) -> Vec<u8> {
    let mut field = message(number, bytes.len());
    field.extend_from_slice(bytes);
    field
}

/// What stands behind the object in a runtime.Unknown: no content encoding, no content type.
pub(crate) const UNKNOWN_TAIL: &[u8] = b"\x1a\0\"\0";

/// What stands before an object of `length` bytes: the magic bytes, and the head of its runtime.Unknown.
pub(crate) fn unknown_head(kind: &str, length: usize) -> Vec<u8> {
    let kind = [field(1, b"v1"), field(2, kind.as_bytes())].concat();
    [b"k8s\0", &field(1, &kind)[..], &message(2, length)].concat()
}

/// An object as a body.
pub(crate) fn unknown(kind: &str, object: &[u8]) -> Vec<u8> {
    [&unknown_head(kind, object.len())[..], object, UNKNOWN_TAIL].concat()
}
