//! Where a list goes on. Counterpart: `k8s.io/apiserver/pkg/storage/continue.go`.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::{Deserialize, Serialize};

const VERSION: &str = "meta.k8s.io/v1";

/// What a token says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ContinueToken {
    /// The revision of the list; none for one that goes on with what is there now.
    pub(super) revision: Option<u64>,
    /// The first key that has not been shown, without what all keys of the list begin with.
    pub(super) start: String,
}

#[derive(Serialize, Deserialize)]
struct Encoded {
    #[serde(default)]
    v: String,
    #[serde(default)]
    rv: i64,
    #[serde(default)]
    start: String,
}

impl ContinueToken {
    /// A token behind the last key that was shown.
    pub(super) fn after(key: &str, revision: u64) -> Self {
        Self { revision: Some(revision), start: format!("{key}\0") }
    }

    /// The token that goes on at the same place, with what is there now.
    pub(super) fn inconsistent(&self) -> Self {
        Self { revision: None, start: self.start.clone() }
    }

    pub(super) fn encode(&self) -> String {
        let rv = self.revision.map_or(-1, |revision| i64::try_from(revision).unwrap_or(i64::MAX));
        let encoded = Encoded { v: VERSION.to_owned(), rv, start: format!("/{}", self.start) };
        URL_SAFE_NO_PAD.encode(serde_json::to_vec(&encoded).unwrap_or_default())
    }

    /// Reads a token, or says what is wrong with it.
    pub(super) fn decode(token: &str) -> Result<Self, String> {
        let bytes = URL_SAFE_NO_PAD
            .decode(token)
            .map_err(|error| format!("continue key is not valid: {}", base64_error(token, error)))?;
        let encoded: Encoded = serde_json::from_slice(&bytes)
            .map_err(|error| format!("continue key is not valid: {}", crate::http::body::json_error(&bytes, &error)))?;
        if encoded.v != VERSION {
            return Err(format!(
                "continue key is not valid: server does not recognize this encoded version {}",
                encoded.v
            ));
        }
        if encoded.rv == 0 {
            return Err(format!(
                "continue key is not valid: incorrect encoded start resourceVersion (version {VERSION})"
            ));
        }
        if encoded.start.is_empty() {
            return Err(format!("continue key is not valid: encoded start key empty (version {VERSION})"));
        }
        // A key may not lead out of what is being listed.
        let start = encoded.start.strip_prefix('/').unwrap_or(&encoded.start);
        let is_clean = start.is_empty() || start.split('/').all(|part| !matches!(part, "" | "." | ".."));
        if !is_clean {
            return Err(format!("continue key is not valid: {}", encoded.start));
        }
        Ok(Self { revision: u64::try_from(encoded.rv).ok(), start: start.to_owned() })
    }
}

fn base64_error(token: &str, error: base64::DecodeError) -> String {
    let position = match error {
        base64::DecodeError::InvalidByte(position, _) | base64::DecodeError::InvalidLastSymbol(position, _) => position,
        _ => token.len(),
    };
    format!("illegal base64 data at input byte {position}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_are_those_of_a_kube_apiserver() {
        let token = ContinueToken::after("a", 437);
        assert_eq!(token.encode(), "eyJ2IjoibWV0YS5rOHMuaW8vdjEiLCJydiI6NDM3LCJzdGFydCI6Ii9hXHUwMDAwIn0");
        assert_eq!(ContinueToken::decode(&token.encode()), Ok(token.clone()));
        let on = token.inconsistent();
        assert_eq!(ContinueToken::decode(&on.encode()), Ok(on));
    }

    #[test]
    fn tokens_that_were_tampered_with_are_refused() {
        let refused = |json: &str| ContinueToken::decode(&URL_SAFE_NO_PAD.encode(json)).expect_err(json);
        let wrong = |text: &str| format!("continue key is not valid: {text}");
        assert_eq!(
            refused(r#"{"v":"meta.k8s.io/v1","rv":0,"start":"a"}"#),
            wrong("incorrect encoded start resourceVersion (version meta.k8s.io/v1)")
        );
        assert_eq!(
            refused(r#"{"v":"meta.k8s.io/v1","rv":5,"start":""}"#),
            wrong("encoded start key empty (version meta.k8s.io/v1)")
        );
        assert_eq!(refused(r#"{"v":"meta.k8s.io/v1","rv":5,"start":"../a"}"#), wrong("../a"));
        assert_eq!(
            refused(r#"{"v":"v9","rv":5,"start":"a"}"#),
            wrong("server does not recognize this encoded version v9")
        );
        assert_eq!(ContinueToken::decode("@@@"), Err(wrong("illegal base64 data at input byte 0")));
        assert_eq!(ContinueToken::decode("abc"), Err(wrong("invalid character 'i' looking for beginning of value")));
    }
}
