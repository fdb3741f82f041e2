//! What is in a certificate?
//!
//! As much of DER as it takes to find who a certificate is for and how long it is good. What is not understood is left
//! out: it is only told, and nothing is decided by it.

use std::net::{Ipv4Addr, Ipv6Addr};

use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::tz::TimeZone;

const SEQUENCE: u8 = 0x30;
const OCTET_STRING: u8 = 0x04;
const UTC_TIME: u8 = 0x17;
const GENERALIZED_TIME: u8 = 0x18;
const VERSION: u8 = 0xa0;
const EXTENSIONS: u8 = 0xa3;
const DNS_NAME: u8 = 0x82;
const IP_ADDRESS: u8 = 0x87;
/// `subjectAltName`, with its tag and length.
const ALT_NAME: &[u8] = &[0x06, 0x03, 0x55, 0x1d, 0x11];

/// What a certificate says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Certificate {
    /// When it ends.
    pub(super) ends: Timestamp,
    /// The names and addresses that it is for.
    pub(super) names: Vec<String>,
}

impl Certificate {
    /// Reads DER.
    pub(super) fn parse(der: &[u8]) -> Option<Self> {
        let mut certificate = Reader(der).enter(SEQUENCE)?;
        let mut signed = certificate.enter(SEQUENCE)?;
        if signed.peek() == Some(VERSION) {
            signed.next()?;
        }
        // Serial number, algorithm, issuer.
        for _ in 0..3 {
            signed.next()?;
        }
        let mut validity = signed.enter(SEQUENCE)?;
        validity.next()?;
        let (tag, text) = validity.next()?;
        let ends = time(tag, text)?;
        let mut names = Vec::new();
        while let Some((tag, content)) = signed.next() {
            if tag == EXTENSIONS {
                names = alt_names(content).unwrap_or_default();
            }
        }
        Some(Self { ends, names })
    }
}

fn alt_names(extensions: &[u8]) -> Option<Vec<String>> {
    let mut all = Reader(extensions).enter(SEQUENCE)?;
    while let Some((SEQUENCE, extension)) = all.next() {
        let Some(value) = extension.strip_prefix(ALT_NAME) else { continue };
        let mut value = Reader(value);
        // Whether it is critical may stand in between.
        let mut names = loop {
            let (tag, content) = value.next()?;
            if tag == OCTET_STRING {
                break Reader(content).enter(SEQUENCE)?;
            }
        };
        let mut found = Vec::new();
        while let Some((tag, content)) = names.next() {
            match (tag, content.len()) {
                (DNS_NAME, _) => found.push(String::from_utf8_lossy(content).into_owned()),
                (IP_ADDRESS, 4) => found.extend(<[u8; 4]>::try_from(content).map(|ip| Ipv4Addr::from(ip).to_string())),
                (IP_ADDRESS, 16) => {
                    found.extend(<[u8; 16]>::try_from(content).map(|ip| Ipv6Addr::from(ip).to_string()))
                }
                _ => {}
            }
        }
        return Some(found);
    }
    None
}

fn time(tag: u8, text: &[u8]) -> Option<Timestamp> {
    let text = std::str::from_utf8(text).ok()?.strip_suffix('Z')?;
    if !text.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let (year, rest) = match tag {
        UTC_TIME => {
            let (year, rest) = text.split_at_checked(2)?;
            let year: i16 = year.parse().ok()?;
            (if year < 50 { 2000 + year } else { 1900 + year }, rest)
        }
        GENERALIZED_TIME => {
            let (year, rest) = text.split_at_checked(4)?;
            (year.parse().ok()?, rest)
        }
        _ => return None,
    };
    if rest.len() != 10 {
        return None;
    }
    let part = |at: usize| rest.get(at..at + 2).and_then(|digits| digits.parse::<i8>().ok());
    let time = DateTime::new(year, part(0)?, part(2)?, part(4)?, part(6)?, part(8)?, 0).ok()?;
    Some(time.to_zoned(TimeZone::UTC).ok()?.timestamp())
}

/// What is left to read.
struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn peek(&self) -> Option<u8> {
        self.0.first().copied()
    }

    /// The next value: its tag, and what is in it.
    fn next(&mut self) -> Option<(u8, &'a [u8])> {
        let (&[tag, short], rest) = self.0.split_first_chunk::<2>()?;
        let (length, rest) = match short {
            0..=0x7f => (usize::from(short), rest),
            // No certificate has a value of 16 MiB.
            0x81..=0x83 => {
                let (bytes, rest) = rest.split_at_checked(usize::from(short & 0x7f))?;
                (bytes.iter().fold(0, |length, byte| length << 8 | usize::from(*byte)), rest)
            }
            // Of no fixed length, or too long.
            0x80 | 0x84.. => return None,
        };
        let (content, rest) = rest.split_at_checked(length)?;
        self.0 = rest;
        Some((tag, content))
    }

    fn enter(&mut self, tag: u8) -> Option<Reader<'a>> {
        self.next().filter(|(found, _)| *found == tag).map(|(_, content)| Reader(content))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use rustls::pki_types::CertificateDer;
    use rustls::pki_types::pem::PemObject as _;
    use watchkeeper_apiserver::{ApiServer, ListenOptions};

    use super::*;

    async fn authority() -> Vec<u8> {
        let listening = ApiServer::new().listen(ListenOptions::with_tls()).await.expect("a port");
        let pem = listening.ca_pem().expect("an authority").to_owned();
        CertificateDer::from_pem_slice(pem.as_bytes()).expect("a certificate").to_vec()
    }

    #[tokio::test]
    async fn a_real_certificate_is_read_and_every_part_of_one_is_survived() {
        let der = authority().await;
        let read = Certificate::parse(&der).expect("it can be read");
        assert!(read.ends > Timestamp::now());
        for end in 0..der.len() {
            let _ = Certificate::parse(&der[..end]);
        }
    }

    #[test]
    fn times_are_read_in_both_forms() {
        let expected: Timestamp = "2036-11-16T07:08:09Z".parse().expect("a time");
        assert_eq!(time(UTC_TIME, b"361116070809Z"), Some(expected));
        assert_eq!(time(GENERALIZED_TIME, b"20361116070809Z"), Some(expected));
        for wrong in ["361316070809Z", "3611160708Z", "é61116070809Z", "361116070809", "", "+61116070809Z"] {
            assert_eq!(time(UTC_TIME, wrong.as_bytes()), None, "{wrong}");
        }
    }

    proptest! {
        #[test]
        fn nothing_is_too_odd(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
            let _ = Certificate::parse(&bytes);
        }
    }
}
