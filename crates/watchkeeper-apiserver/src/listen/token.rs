//! What a client has to show.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use http::HeaderMap;
use http::header::AUTHORIZATION;
use subtle::ConstantTimeEq;
use tokio_rustls::rustls::crypto::ring::default_provider;

use super::error::ListenError;

/// 256 bits: nobody guesses that.
const RANDOM_BYTES: usize = 32;

/// A bearer token. It has no `Debug`, so that nothing shows it.
#[derive(Clone)]
pub(super) struct Token(String);

impl Token {
    /// A new one from the system's random numbers.
    pub(super) fn random() -> Result<Self, ListenError> {
        let mut bytes = [0; RANDOM_BYTES];
        default_provider().secure_random.fill(&mut bytes).map_err(|_| ListenError::Random)?;
        Ok(Self(URL_SAFE_NO_PAD.encode(bytes)))
    }

    /// One that somebody chose.
    pub(super) fn chosen(text: &str) -> Result<Self, ListenError> {
        match !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_graphic()) {
            true => Ok(Self(text.to_owned())),
            false => Err(ListenError::Token),
        }
    }

    pub(super) fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether a request shows this token. How long that takes does not tell how much of a wrong one was right.
    pub(super) fn is_shown(&self, headers: &HeaderMap) -> bool {
        let Some(value) = headers.get(AUTHORIZATION).and_then(|value| value.to_str().ok()) else {
            return false;
        };
        let Some((scheme, shown)) = value.trim().split_once(' ') else {
            return false;
        };
        let equal: bool = shown.trim_start().as_bytes().ct_eq(self.0.as_bytes()).into();
        scheme.eq_ignore_ascii_case("bearer") && equal
    }
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    fn shown(token: &Token, value: &'static str) -> bool {
        token.is_shown(&HeaderMap::from_iter([(AUTHORIZATION, HeaderValue::from_static(value))]))
    }

    #[test]
    fn only_the_whole_token_is_the_token() {
        let token = Token::chosen("abc.DEF-123").unwrap();
        assert!(shown(&token, "Bearer abc.DEF-123"));
        assert!(shown(&token, "bearer   abc.DEF-123 "));
        for wrong in
            ["Bearer abc.DEF-124", "Bearer abc", "Bearer abc.DEF-123x", "Bearer ", "abc.DEF-123", "Basic abc.DEF-123"]
        {
            assert!(!shown(&token, wrong), "{wrong}");
        }
        assert!(!token.is_shown(&HeaderMap::new()));
    }

    #[test]
    fn random_tokens_are_long_and_differ() {
        let (one, other) = (Token::random().unwrap(), Token::random().unwrap());
        assert!(one.as_str() != other.as_str() && one.as_str().len() == 43);
        assert!(Token::chosen(one.as_str()).is_ok());
    }

    #[test]
    fn a_token_that_no_header_can_have_is_refused() {
        for bad in ["", "a b", "a\n", "käse"] {
            assert!(Token::chosen(bad).is_err(), "{bad:?}");
        }
    }
}
