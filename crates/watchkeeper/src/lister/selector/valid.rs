//! What keys and values labels can have. Counterpart: `k8s.io/apimachinery/pkg/util/validation`.

/// The longest name, and the longest value.
const MAX_NAME: usize = 63;
/// The longest prefix of a key.
const MAX_PREFIX: usize = 253;
/// The most that an error quotes.
const MAX_QUOTED: usize = 80;

/// Says what is wrong with a label's key: a name, or a DNS name, a slash and a name.
pub(super) fn key(key: &str) -> Result<(), Box<str>> {
    let fault = match key.split_once('/') {
        None => name_fault(key),
        Some((prefix, name)) => prefix_fault(prefix).or_else(|| name_fault(name)),
    };
    fault.map_or(Ok(()), |fault| Err(format!("{} is not a label's key: {fault}", quoted(key)).into()))
}

/// Says what is wrong with a label's value: a name, or nothing.
pub(super) fn value(value: &str) -> Result<(), Box<str>> {
    let fault = if value.is_empty() { None } else { name_fault(value) };
    fault.map_or(Ok(()), |fault| Err(format!("{} is not a label's value: {fault}", quoted(value)).into()))
}

/// The text as an error shows it: not all of it, if it is long.
pub(super) fn quoted(text: &str) -> String {
    match text.char_indices().nth(MAX_QUOTED) {
        Some((end, _)) => format!("{:?}..", &text[..end]),
        None => format!("{text:?}"),
    }
}

fn name_fault(name: &str) -> Option<&'static str> {
    let inner = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
    let bytes = name.as_bytes();
    if bytes.is_empty() {
        return Some("its name is empty");
    }
    if bytes.len() > MAX_NAME {
        return Some("it has more than 63 bytes");
    }
    if !bytes.iter().all(inner) {
        return Some("it may have letters, digits, '-', '_' and '.' only");
    }
    edges_fault(bytes, u8::is_ascii_alphanumeric).then_some("it must begin and end with a letter or a digit")
}

fn prefix_fault(prefix: &str) -> Option<&'static str> {
    let plain = |byte: &u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let is_label = |label: &str| {
        let bytes = label.as_bytes();
        bytes.iter().all(|byte| plain(byte) || *byte == b'-') && !edges_fault(bytes, plain)
    };
    if prefix.len() > MAX_PREFIX {
        return Some("its prefix has more than 253 bytes");
    }
    (!prefix.split('.').all(is_label)).then_some("its prefix must be a DNS name in lower case")
}

fn edges_fault(bytes: &[u8], allowed: impl Fn(&u8) -> bool) -> bool {
    ![bytes.first(), bytes.last()].into_iter().all(|edge| edge.is_some_and(&allowed))
}
