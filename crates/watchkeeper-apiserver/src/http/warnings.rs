//! What a client is told beside the answer: `Warning` headers.
//!
//! Counterparts: `k8s.io/apiserver/pkg/endpoints/filters/warning.go`, and `NewWarningHeader` in `k8s.io/apimachinery`.

use std::sync::{Arc, Mutex, PoisonError};

use http::HeaderValue;

/// All warnings of an answer together have no more bytes than these, or are cut.
const MOST_BYTES: usize = 4 << 10;
/// What is left of each, then.
const CUT: usize = 256;

/// Something that a client should know.
pub(crate) type Warning = String;

/// The warnings of one request. Clones are the same ones.
#[derive(Debug, Clone, Default)]
pub(crate) struct Warnings(Arc<Mutex<Vec<Warning>>>);

impl Warnings {
    /// Adds one, unless it has been said.
    pub(crate) fn add(&self, warning: impl Into<Warning>) {
        let warning = warning.into();
        let mut warnings = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if !warnings.contains(&warning) {
            warnings.push(warning);
        }
    }

    /// The values of the headers.
    pub(super) fn headers(&self) -> Vec<HeaderValue> {
        let warnings = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let is_long = warnings.iter().map(String::len).sum::<usize>() > MOST_BYTES;
        let mut room = MOST_BYTES;
        let mut headers = Vec::new();
        for warning in warnings.iter() {
            let text: String = match is_long {
                true => warning.chars().take(CUT).collect(),
                false => warning.clone(),
            };
            match room.checked_sub(text.len()) {
                Some(left) => room = left,
                None => break,
            }
            headers.extend(HeaderValue::from_bytes(header(&text).as_bytes()));
        }
        headers
    }
}

/// A warning as a header has it, without what no header may have.
fn header(text: &str) -> String {
    let mut quoted = String::from("299 - \"");
    for c in text.chars().filter(|c| !c.is_control()) {
        if matches!(c, '"' | '\\') {
            quoted.push('\\');
        }
        quoted.push(c);
    }
    quoted.push('"');
    quoted
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_warning_is_quoted_and_said_once() {
        let warnings = Warnings::default();
        warnings.add("unknown field \"a\\b\u{e9}\"\r\n");
        warnings.add("unknown field \"a\\b\u{e9}\"\r\n");
        let expected = r#"299 - "unknown field \"a\\bé\"""#.as_bytes();
        assert_eq!(warnings.headers(), [HeaderValue::from_bytes(expected).expect("a header")]);
    }

    #[test]
    fn many_warnings_are_cut() {
        let warnings = Warnings::default();
        (0..100).for_each(|i| warnings.add(format!("{i} {}", "x".repeat(1000))));
        let headers = warnings.headers();
        assert_eq!(headers.len(), MOST_BYTES / CUT);
        assert!(headers.iter().all(|header| header.len() == CUT + r#"299 - """#.len()));
    }
}
