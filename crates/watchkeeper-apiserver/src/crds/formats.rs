//! Which texts have a format? Counterpart: `k8s.io/kube-openapi/pkg/validation/strfmt`.

use std::net::{Ipv4Addr, Ipv6Addr};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use crate::validation;

/// All formats that mean something. Others are accepted, and everything has them.
pub(crate) const KNOWN: [&str; 31] = [
    "bsonobjectid",
    "byte",
    "cidr",
    "creditcard",
    "date",
    "date-time",
    "datetime",
    "double",
    "duration",
    "email",
    "float",
    "hexcolor",
    "hostname",
    "int32",
    "int64",
    "ipv4",
    "ipv6",
    "isbn",
    "isbn10",
    "isbn13",
    "k8s-long-name",
    "k8s-short-name",
    "mac",
    "password",
    "rgbcolor",
    "ssn",
    "uri",
    "uuid",
    "uuid3",
    "uuid4",
    "uuid5",
];

/// Whether a text has a format.
pub(crate) fn has_format(format: &str, text: &str) -> bool {
    match format {
        "bsonobjectid" => text.len() == 24 && text.bytes().all(|b| b.is_ascii_hexdigit()),
        "byte" => STANDARD.decode(text).is_ok() && !text.is_empty(),
        "cidr" => is_cidr(text),
        "creditcard" => is_credit_card(text),
        "date" => text.len() == 10 && text.parse::<jiff::civil::Date>().is_ok(),
        "date-time" | "datetime" => is_date_time(text),
        "duration" => is_duration(text),
        "email" => is_email(text),
        "hexcolor" => is_hex_colour(text),
        "hostname" => is_host_name(text),
        "ipv4" => text.parse::<Ipv4Addr>().is_ok(),
        "ipv6" => text.parse::<Ipv6Addr>().is_ok(),
        "isbn" => is_isbn10(text) || is_isbn13(text),
        "isbn10" => is_isbn10(text),
        "isbn13" => is_isbn13(text),
        "k8s-long-name" => validation::subdomain(text).is_empty(),
        "k8s-short-name" => validation::dns_label(text).is_empty(),
        "mac" => is_mac(text),
        "rgbcolor" => is_rgb(text),
        "ssn" => is_ssn(text),
        "uri" => is_uri(text),
        "uuid" => is_uuid(text, None),
        "uuid3" => is_uuid(text, Some(b'3')),
        "uuid4" => is_uuid(text, Some(b'4')),
        "uuid5" => is_uuid(text, Some(b'5')),
        _ => true,
    }
}

fn is_cidr(text: &str) -> bool {
    let Some((address, length)) = text.split_once('/') else { return false };
    let is_number = !length.is_empty() && length.len() <= 3 && length.bytes().all(|b| b.is_ascii_digit());
    let Some(length) = length.parse::<u32>().ok().filter(|_| is_number) else { return false };
    (address.parse::<Ipv4Addr>().is_ok() && length <= 32) || (address.parse::<Ipv6Addr>().is_ok() && length <= 128)
}

/// RFC 3339, as Go's parser takes it: the offset may lack its colon, and the seconds their fraction.
fn is_date_time(text: &str) -> bool {
    let Some((date, time)) = text.split_once(['T', 't']) else { return false };
    let (clock, offset) = match time.find(['Z', 'z', '+', '-']) {
        Some(at) => time.split_at(at),
        None => return false,
    };
    let is_offset = match offset {
        "Z" | "z" => true,
        offset => offset.len() == 6 && offset.as_bytes()[3] == b':' && text.parse::<jiff::Timestamp>().is_ok(),
    };
    let whole_clock = clock.split('.').next().unwrap_or_default();
    date.len() == 10
        && date.parse::<jiff::civil::Date>().is_ok()
        && whole_clock.len() == 8
        && clock.parse::<jiff::civil::Time>().is_ok()
        && is_offset
}

/// `1h30m` as Go writes it, or something like `2 days`.
fn is_duration(text: &str) -> bool {
    const UNITS: [&str; 17] =
        ["ns", "nano", "us", "µs", "micro", "ms", "milli", "s", "sec", "m", "min", "h", "hr", "hour", "d", "day", "w"];
    if is_go_duration(text) {
        return true;
    }
    // Anywhere in the text: a number, and behind it the name of a unit.
    let mut rest = text;
    while let Some(digit) = rest.find(|c: char| c.is_ascii_digit()) {
        rest = rest[digit..].trim_start_matches(|c: char| c.is_ascii_digit()).trim_start();
        let end = rest.find(|c: char| !(c.is_ascii_alphabetic() || c == 'µ')).unwrap_or(rest.len());
        let unit = rest[..end].to_lowercase();
        let is_long = ["nano", "micro", "milli", "sec", "min", "hour", "day", "week"];
        if UNITS.contains(&unit.as_str()) || unit == "wk" || is_long.iter().any(|long| unit.starts_with(long)) {
            return true;
        }
        rest = &rest[end..];
    }
    false
}

/// A sign, and numbers with units.
fn is_go_duration(text: &str) -> bool {
    let text = text.strip_prefix(['-', '+']).unwrap_or(text);
    if text == "0" {
        return true;
    }
    let mut rest = text;
    while !rest.is_empty() {
        let end = rest.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(rest.len());
        let number = &rest[..end];
        let digits = number.bytes().filter(u8::is_ascii_digit).count();
        if digits == 0 || number.len() - digits > 1 {
            return false;
        }
        rest = &rest[end..];
        let end = rest.find(|c: char| c.is_ascii_digit() || c == '.').unwrap_or(rest.len());
        if !["ns", "us", "µs", "μs", "ms", "s", "m", "h"].contains(&&rest[..end]) {
            return false;
        }
        rest = &rest[end..];
    }
    !text.is_empty()
}

/// A plain address, without a name: something, one sign, something.
fn is_email(text: &str) -> bool {
    let Some((local, domain)) = text.rsplit_once('@') else { return false };
    let is_atom = |c: char| c.is_alphanumeric() || "!#$%&'*+-/=?^_`{|}~.".contains(c);
    let is_dotted = |part: &str| !part.is_empty() && part.split('.').all(|atom| !atom.is_empty());
    is_dotted(local) && is_dotted(domain) && local.chars().all(is_atom) && domain.chars().all(is_atom)
}

fn is_hex_colour(text: &str) -> bool {
    let digits = text.strip_prefix('#').unwrap_or(text);
    matches!(digits.len(), 3 | 6) && digits.bytes().all(|b| b.is_ascii_hexdigit())
}

/// One label, or several with a last one of two letters or more.
fn is_host_name(text: &str) -> bool {
    let is_label = |label: &str| {
        let bytes = label.as_bytes();
        let edge = |b: Option<&u8>| b.is_some_and(u8::is_ascii_alphanumeric);
        edge(bytes.first())
            && edge(bytes.last())
            && bytes.len() <= 63
            && bytes.iter().all(|b| b.is_ascii_alphanumeric() || *b == b'-')
    };
    let labels: Vec<&str> = text.split('.').collect();
    let last = labels.last().copied().unwrap_or_default();
    let is_top = labels.len() == 1 || (last.len() >= 2 && last.bytes().all(|b| b.is_ascii_alphabetic()));
    text.len() <= 255 && is_top && labels.iter().all(|label| is_label(label))
}

fn is_mac(text: &str) -> bool {
    let is_hex = |part: &str, length: usize| part.len() == length && part.bytes().all(|b| b.is_ascii_hexdigit());
    for (separator, length) in [(':', 2), ('-', 2), ('.', 4)] {
        let parts: Vec<&str> = text.split(separator).collect();
        let bytes = parts.len() * length / 2;
        if parts.len() > 1 && matches!(bytes, 6 | 8 | 20) && parts.iter().all(|part| is_hex(part, length)) {
            return true;
        }
    }
    false
}

fn is_rgb(text: &str) -> bool {
    let inner = text.strip_prefix("rgb(").and_then(|rest| rest.strip_suffix(')'));
    let Some(inner) = inner else { return false };
    let parts: Vec<&str> = inner.split(',').map(str::trim).collect();
    let is_byte = |part: &&str| part.parse::<u8>().is_ok() && (*part == "0" || !part.starts_with(['0', '+']));
    parts.len() == 3 && parts.iter().all(is_byte)
}

fn is_ssn(text: &str) -> bool {
    let parts: Vec<&str> = text.split(['-', ' ']).collect();
    let lengths: Vec<usize> = parts.iter().map(|part| part.len()).collect();
    lengths == [3, 2, 4] && parts.iter().all(|part| part.bytes().all(|b| b.is_ascii_digit()))
}

/// What a request to a server could ask for: a path, or a scheme and something behind it.
fn is_uri(text: &str) -> bool {
    if text.is_empty() || text.chars().any(|c| c.is_ascii_control() || c == ' ') {
        return false;
    }
    if text.starts_with('/') {
        return true;
    }
    let Some((scheme, rest)) = text.split_once(':') else { return false };
    let is_scheme = scheme.starts_with(|c: char| c.is_ascii_alphabetic())
        && scheme.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'+' | b'-' | b'.'));
    is_scheme && !rest.is_empty()
}

fn is_uuid(text: &str, version: Option<u8>) -> bool {
    let digits: Vec<u8> = text.bytes().filter(|b| *b != b'-').collect();
    let dashes = text.bytes().enumerate().filter(|(_, b)| *b == b'-').map(|(i, _)| i);
    let is_variant = |b: u8| matches!(b.to_ascii_lowercase(), b'8' | b'9' | b'a' | b'b');
    digits.len() == 32
        && digits.iter().all(u8::is_ascii_hexdigit)
        && dashes.into_iter().all(|i| matches!(i, 8 | 13 | 18 | 23))
        && version.is_none_or(|version| digits[12] == version && (version == b'3' || is_variant(digits[16])))
}

fn is_isbn10(text: &str) -> bool {
    let digits: Vec<u8> = text.bytes().filter(|b| !matches!(b, b'-' | b' ')).collect();
    let value = |(i, b): (usize, &u8)| match b {
        b'0'..=b'9' => Some(u32::from(b - b'0')),
        b'X' if i == 9 => Some(10),
        _ => None,
    };
    let values: Option<Vec<u32>> = digits.iter().enumerate().map(value).collect();
    let sum = |values: Vec<u32>| values.iter().zip(1u32..).map(|(value, place)| value * place).sum::<u32>();
    digits.len() == 10 && values.is_some_and(|values| sum(values) % 11 == 0)
}

fn is_isbn13(text: &str) -> bool {
    let digits: Vec<u8> = text.bytes().filter(|b| !matches!(b, b'-' | b' ')).collect();
    let sum = digits.iter().enumerate().map(|(i, b)| u32::from(b.wrapping_sub(b'0')) * if i % 2 == 0 { 1 } else { 3 });
    digits.len() == 13 && digits.iter().all(u8::is_ascii_digit) && sum.sum::<u32>() % 10 == 0
}

fn is_credit_card(text: &str) -> bool {
    let digits: Vec<u32> = text.bytes().filter(u8::is_ascii_digit).map(|b| u32::from(b - b'0')).collect();
    let doubled = |digit: u32| if digit > 4 { 2 * digit - 9 } else { 2 * digit };
    let sum: u32 =
        digits.iter().rev().enumerate().map(|(i, digit)| if i % 2 == 1 { doubled(*digit) } else { *digit }).sum();
    (13..=19).contains(&digits.len())
        && text.bytes().all(|b| b.is_ascii_digit() || matches!(b, b'-' | b' '))
        && sum.is_multiple_of(10)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As a kube-apiserver v1.36.4 decided.
    #[test]
    fn texts_have_the_formats_that_kubernetes_says_they_have() {
        for (format, text, expected) in [
            ("date-time", "2020-01-01T00:00:00Z", true),
            ("date-time", "2020-01-01T00:00:00.5+01:00", true),
            ("date-time", "2020-01-01", false),
            ("date", "2020-01-01", true),
            ("date", "x", false),
            ("duration", "1h", true),
            ("duration", "1 day", true),
            ("duration", "x", false),
            ("email", "a@b", true),
            ("email", "x", false),
            ("ipv4", "1.2.3.4", true),
            ("ipv4", "::1", false),
            ("ipv6", "::1", true),
            ("ipv6", "1.2.3.4", false),
            ("uri", "http://a", true),
            ("uri", "x", false),
            ("uri", "a b", false),
            ("hostname", "x", true),
            ("hostname", "a_b", false),
            ("hostname", "-a", false),
            ("hostname", "a.b.c", false),
            ("hostname", "www.example.com", true),
            ("uuid", "7ca7a761-085a-457f-abc4-2a38ca2817de", true),
            ("uuid4", "7ca7a761-085a-457f-abc4-2a38ca2817de", true),
            ("uuid3", "7ca7a761-085a-457f-abc4-2a38ca2817de", false),
            ("byte", "eA==", true),
            ("byte", "x", false),
            ("mac", "01:23:45:67:89:ab", true),
            ("mac", "x", false),
            ("cidr", "10.0.0.0/8", true),
            ("cidr", "10.0.0.0/33", false),
            ("hexcolor", "#fff", true),
            ("rgbcolor", "rgb(1,2,3)", true),
            ("rgbcolor", "x", false),
            ("isbn", "978-0-306-40615-7", true),
            ("isbn", "x", false),
            ("creditcard", "4111 1111 1111 1111", true),
            ("creditcard", "x", false),
            ("ssn", "123-45-6789", true),
            ("ssn", "x", false),
            ("bsonobjectid", "507f1f77bcf86cd799439011", true),
            ("k8s-short-name", "X_", false),
            ("k8s-long-name", "a.b", true),
            ("quantity", "x", true),
            ("nonsense", "x", true),
        ] {
            assert_eq!(has_format(format, text), expected, "{format} {text}");
        }
    }
}
