//! The body of an answer, piece by piece.

use std::time::{Duration, SystemTime};

use bytes::{Bytes, BytesMut};
use futures::FutureExt as _;
use http::header::{CONTENT_TYPE, RETRY_AFTER};
use http::{HeaderMap, Response};
use http_body_util::BodyExt as _;
use kube_client::client::Body;
use tokio::time::timeout;

use crate::error::Status;
use crate::{Error, ErrorKind};

/// The most that is read of an answer that is an error.
const MAX_ERROR_BODY: usize = 64 << 10;
/// How long the rest of such an answer may take.
const ERROR_BODY_TIMEOUT: Duration = Duration::from_secs(5);

/// As [`next_piece`]. If it has to be waited for, `wait` is called first.
pub(super) async fn next_piece_or(body: &mut Body, wait: impl FnOnce()) -> Result<Option<Bytes>, Error> {
    match next_piece(body).now_or_never() {
        Some(piece) => piece,
        None => {
            wait();
            next_piece(body).await
        }
    }
}

/// The next piece of data, or `None` at the end.
pub(super) async fn next_piece(body: &mut Body) -> Result<Option<Bytes>, Error> {
    loop {
        match body.frame().await {
            None => return Ok(None),
            Some(Err(error)) => return Err(Error::transport(ErrorKind::Disconnected, &error)),
            Some(Ok(frame)) => match frame.into_data() {
                Ok(data) if data.is_empty() => {}
                Ok(data) => return Ok(Some(data)),
                Err(_trailers) => {}
            },
        }
    }
}

/// The body of a good answer, or the error that a bad one tells.
pub(super) async fn accept(response: Response<Body>) -> Result<Body, Error> {
    let (head, mut body) = response.into_parts();
    if head.status.is_success() {
        let content_type = head.headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
        if content_type.starts_with("text/html") {
            return Err(super::decode::not_json());
        }
        return Ok(body);
    }
    let mut text = BytesMut::new();
    let read = async {
        while text.len() < MAX_ERROR_BODY
            && let Ok(Some(piece)) = next_piece(&mut body).await
        {
            text.extend_from_slice(&piece);
        }
    };
    // The code says enough: a watch that was refused must not wait for the reason as long as one that was not.
    let _ = timeout(ERROR_BODY_TIMEOUT, read).await;
    // What is no Status may be anything, and is not shown.
    let mut status = Status::parse(&text).unwrap_or_else(|| Status {
        message: head.status.canonical_reason().unwrap_or("the server gave no reason").into(),
        ..Status::default()
    });
    status.code = head.status.as_u16();
    status.retry_after = retry_after(&head.headers).or(status.retry_after);
    Err(Error::from_status(status))
}

/// `Retry-After`, in seconds or as a date.
fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let text = headers.get(RETRY_AFTER)?.to_str().ok()?.trim();
    if !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()) {
        return Some(Duration::from_secs(text.parse().unwrap_or(u64::MAX)));
    }
    let at = jiff::fmt::rfc2822::DateTimeParser::new().parse_timestamp(text).ok()?;
    SystemTime::from(at).duration_since(SystemTime::now()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn retry_after_is_read_in_both_forms() {
        let read = |text: &str| retry_after(&HeaderMap::from_iter([(RETRY_AFTER, text.parse().unwrap())]));
        assert_eq!(read("7"), Some(Duration::from_secs(7)));
        assert_eq!(read("99999999999999999999"), Some(Duration::from_secs(u64::MAX)));
        assert_eq!(read("Wed, 21 Oct 2015 07:28:00 GMT"), None, "a date that has passed");
        let wait = read("Fri, 31 Dec 2100 23:59:59 GMT").unwrap();
        assert!(wait > Duration::from_secs(60 * 60 * 24 * 365 * 50), "{wait:?}");
        assert_eq!(read("soon"), None);
    }
}
