//! A document's mark: clients that know it need not be sent the document again.

use std::hash::{DefaultHasher, Hasher};

use http::header::{ETAG, IF_NONE_MATCH};
use http::{HeaderMap, HeaderValue};

use super::answer::Answer;

/// Digits that stand for the content of a document.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ETag(Box<str>);

impl ETag {
    /// The mark of these bytes. A kube-apiserver takes a SHA-512, but to clients every mark is only a text.
    pub(crate) fn of(document: &[u8]) -> Self {
        let half = |seed: u8| {
            let mut hasher = DefaultHasher::new();
            hasher.write_u8(seed);
            hasher.write(document);
            hasher.finish()
        };
        Self(format!("{:016X}{:016X}", half(0), half(1)).into())
    }

    /// A mark that was made elsewhere.
    pub(crate) fn known(mark: &str) -> Self {
        Self(mark.into())
    }

    /// Without quotation marks, as it stands in a URL.
    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }

    /// An answer that shows it.
    pub(crate) fn on(&self, answer: Answer) -> Answer {
        match HeaderValue::try_from(self.quoted()) {
            Ok(value) => answer.with_header(ETAG, value),
            Err(_) => answer,
        }
    }

    /// Whether a client says that it has this document, and nothing else.
    pub(crate) fn is_exactly(&self, headers: &HeaderMap) -> bool {
        headers.get(IF_NONE_MATCH).is_some_and(|value| value.as_bytes() == self.quoted().as_bytes())
    }

    /// Whether a client says that it has this document among others.
    pub(crate) fn is_among(&self, headers: &HeaderMap) -> bool {
        let quoted = self.quoted();
        let known = headers.get_all(IF_NONE_MATCH).iter().filter_map(|value| value.to_str().ok());
        known
            .flat_map(|value| value.split(','))
            .map(str::trim)
            .any(|mark| mark == "*" || mark.strip_prefix("W/").unwrap_or(mark) == quoted)
    }

    fn quoted(&self) -> String {
        format!("\"{}\"", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mark_stands_for_its_document_alone() {
        let etag = ETag::of(b"a");
        assert_eq!(etag, ETag::of(b"a"));
        assert_ne!(etag, ETag::of(b"b"));
        assert_eq!(etag.as_str().len(), 32);
        let sent = |value: String| HeaderMap::from_iter([(IF_NONE_MATCH, HeaderValue::try_from(value).unwrap())]);
        let quoted = etag.quoted();
        assert!(etag.is_exactly(&sent(quoted.clone())));
        assert!(!etag.is_exactly(&sent(format!("W/{quoted}"))));
        assert!(etag.is_among(&sent(format!("\"x\", W/{quoted}"))));
        assert!(etag.is_among(&sent("*".to_owned())));
        assert!(!etag.is_among(&sent(etag.as_str().to_owned())));
        assert!(!etag.is_among(&HeaderMap::new()));
    }
}
