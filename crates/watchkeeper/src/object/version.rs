//! How old an object, a list or a stream is.

use std::cmp::Ordering;
use std::fmt;

use compact_str::CompactString;

/// A Kubernetes resource version.
///
/// Versions are opaque: nothing in the path of a change compares them. Where both are decimal numbers without a leading
/// zero, as those of every Kubernetes since 1.35 are, [`compare`](Self::compare) orders them by length, then by text.
#[derive(Clone, PartialEq, Eq, Hash, Default)]
pub struct ResourceVersion(CompactString);

impl ResourceVersion {
    /// No version: in a request, the most recent state.
    pub const fn unset() -> Self {
        Self(CompactString::const_new(""))
    }

    /// The version `0`: in a request, any state that the server has at hand.
    pub const fn any() -> Self {
        Self(CompactString::const_new("0"))
    }

    /// The version as the server wrote it.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// There is no version.
    pub fn is_unset(&self) -> bool {
        self.0.is_empty()
    }

    /// Neither unset nor `0`: a version that some state of the server had.
    pub fn is_exact(&self) -> bool {
        !self.is_unset() && self.as_str() != "0"
    }

    /// Which of two versions is the older one, if that can be known.
    pub fn compare(&self, other: &Self) -> Option<Ordering> {
        if !self.is_decimal() || !other.is_decimal() {
            return None;
        }
        let (a, b) = (self.as_str(), other.as_str());
        Some(a.len().cmp(&b.len()).then_with(|| a.cmp(b)))
    }

    /// A decimal number above zero, which can be compared.
    pub(crate) fn is_decimal(&self) -> bool {
        let digits = self.0.as_bytes();
        digits.iter().all(u8::is_ascii_digit) && digits.first().is_some_and(|first| *first != b'0')
    }
}

impl From<&str> for ResourceVersion {
    fn from(text: &str) -> Self {
        Self(text.into())
    }
}

impl fmt::Display for ResourceVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for ResourceVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decimal_versions_compare_by_length_then_text() {
        let compare = |a: &str, b: &str| ResourceVersion::from(a).compare(&b.into());
        assert_eq!(compare("9", "10"), Some(Ordering::Less));
        assert_eq!(compare("123", "122"), Some(Ordering::Greater));
        assert_eq!(compare("99999999999999999999999", "100000000000000000000000"), Some(Ordering::Less));
        for strange in ["", "0", "007", "v7", "1e3", "-1"] {
            assert_eq!(compare(strange, "10"), None, "{strange:?}");
        }
    }
}
