//! One error for all that talks to a server.
//!
//! An [`Error`] is cheap to clone, says which request failed, what the server answered and what to do next, and decides
//! by its own methods how it is to be treated: nothing else in the crate looks at status codes. It holds text, not the
//! errors it was made of, because those may quote what must not be shown: serde_json quotes values, and a credential
//! plugin's error holds the plugin's output.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;

use crate::defaults::MAX_RETRY_AFTER;

/// What went wrong, broadly. [`Error`] has finer predicates.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The server answered, and the answer is a refusal: see [`Error::code`] and [`Error::reason`].
    Api,
    /// There is no connection: name resolution, TCP or TLS failed, or credentials could not be had.
    Connect,
    /// The connection was there and ended in the middle of an answer.
    Disconnected,
    /// The server was silent for too long.
    Timeout,
    /// The answer is not what a Kubernetes API server sends: HTML, a Table, broken JSON, an object out of all bounds.
    Malformed,
    /// A client or a source cannot be made from what was given.
    Config,
    /// What the changes are written into refused one.
    Store,
    /// A watch ended within a second and without an event.
    VeryShortWatch,
    /// What was waited for has not come in time: an informer that cannot get its first list, say. It goes on trying.
    NotSynced,
    /// What was asked is stopped, and stays so.
    Stopped,
}

/// An error of a request, a stream or a configuration.
#[derive(Clone)]
pub struct Error(Arc<Inner>);

#[derive(Clone)]
struct Inner {
    kind: ErrorKind,
    /// "list pods in namespace web", if known.
    request: Option<Box<str>>,
    /// What happened; for [`ErrorKind::Api`] the server's own message.
    text: Box<str>,
    status: Option<Status>,
    unreachable: bool,
    /// How long nothing came over the connection before it was given up.
    silence: Option<Duration>,
}

/// The parts of a Kubernetes `Status` that decide something.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Status {
    pub(crate) code: u16,
    pub(crate) reason: String,
    pub(crate) message: String,
    pub(crate) causes: Vec<Cause>,
    pub(crate) retry_after: Option<Duration>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Cause {
    reason: String,
    message: String,
}

const TOO_LARGE: &str = "Too large resource version";

/// The most that is looked at of a `Status`, and the most that is shown of its message: logs and the status keep it.
pub(crate) const MAX_STATUS: usize = 1 << 20;
const MAX_MESSAGE: usize = 4 << 10;

/// The reasons that say more than the code beside them. As in client-go, with any other reason the code decides.
const KNOWN_REASONS: [&str; 19] = [
    "Unauthorized",
    "Forbidden",
    "NotFound",
    "AlreadyExists",
    "Conflict",
    "Gone",
    "Invalid",
    "ServerTimeout",
    "StorageReadError",
    "Timeout",
    "TooManyRequests",
    "BadRequest",
    "MethodNotAllowed",
    "NotAcceptable",
    "RequestEntityTooLarge",
    "UnsupportedMediaType",
    "InternalError",
    "Expired",
    "ServiceUnavailable",
];

impl Error {
    /// What went wrong, broadly.
    pub fn kind(&self) -> ErrorKind {
        self.0.kind
    }

    /// The HTTP status code that the server answered with, if it answered.
    pub fn code(&self) -> Option<u16> {
        self.0.status.as_ref().map(|status| status.code).filter(|code| *code != 0)
    }

    /// The machine-readable reason in the server's `Status`, such as `Forbidden` or `Expired`.
    pub fn reason(&self) -> Option<&str> {
        self.0.status.as_ref().map(|status| status.reason.as_str()).filter(|reason| !reason.is_empty())
    }

    /// The version or the continue token that was asked for is no longer known to the server (410).
    pub fn is_expired(&self) -> bool {
        self.is_code_or_reason(410, &["Expired", "Gone"])
    }

    /// The version that was asked for is newer than what the server knows, in any of the three forms in which servers
    /// have said so over the years.
    pub fn is_too_large_version(&self) -> bool {
        let Some(status) = &self.0.status else { return false };
        if status.causes.iter().any(|cause| cause.reason == "ResourceVersionTooLarge") {
            return true;
        }
        let said = status.message.contains(TOO_LARGE) || status.causes.iter().any(|cause| cause.message == TOO_LARGE);
        said && self.is_code_or_reason(504, &["Timeout"])
    }

    /// The server is overloaded and asks to come back later (429).
    pub fn is_too_many_requests(&self) -> bool {
        self.is_code_or_reason(429, &["TooManyRequests"])
    }

    /// The server knows who asks, and says no (403).
    pub fn is_forbidden(&self) -> bool {
        self.is_code_or_reason(403, &["Forbidden"])
    }

    /// The server does not know who asks (401).
    pub fn is_unauthorized(&self) -> bool {
        self.is_code_or_reason(401, &["Unauthorized"])
    }

    /// The resource is not served, or the object is not there (404).
    pub fn is_not_found(&self) -> bool {
        self.is_code_or_reason(404, &["NotFound"])
    }

    /// The server could not make sense of the request (400, 422): to an older server a streaming list is such a one.
    pub fn is_invalid_request(&self) -> bool {
        self.is_code_or_reason(400, &["BadRequest"]) || self.is_code_or_reason(422, &["Invalid"])
    }

    /// Something broke inside the server (500).
    pub fn is_internal(&self) -> bool {
        self.is_code_or_reason(500, &["InternalError"])
    }

    /// No connection could be made: nobody listens at the server's address, it cannot be reached, or the connection broke
    /// while it was being made. That is what a server that restarts looks like.
    pub fn is_unreachable(&self) -> bool {
        self.0.unreachable
    }

    /// The stream ended before its time: cut, reset, truncated or silent.
    pub fn is_disconnect(&self) -> bool {
        matches!(self.kind(), ErrorKind::Disconnected | ErrorKind::Timeout)
    }

    /// Trying again later, with nothing else changed, can help.
    pub fn is_retryable(&self) -> bool {
        match self.kind() {
            ErrorKind::Api => self.code().is_none_or(|code| code >= 500 || matches!(code, 408 | 410 | 429)),
            ErrorKind::Connect | ErrorKind::Disconnected | ErrorKind::Timeout => true,
            ErrorKind::VeryShortWatch | ErrorKind::NotSynced => true,
            ErrorKind::Malformed | ErrorKind::Config | ErrorKind::Store | ErrorKind::Stopped => false,
        }
    }

    /// How long the server asks to wait, at most a minute.
    pub fn retry_after(&self) -> Option<Duration> {
        self.0.status.as_ref().and_then(|status| status.retry_after).map(|wait| wait.min(MAX_RETRY_AFTER))
    }

    /// A store's refusal, for those who implement [`ReflectorStore`](crate::ReflectorStore).
    pub fn store(text: impl fmt::Display) -> Self {
        Self::new(ErrorKind::Store, text)
    }

    /// An error of the given kind, for those who implement [`ListerWatcher`](crate::ListerWatcher). The text must not
    /// hold any part of an object or a credential.
    pub fn new(kind: ErrorKind, text: impl fmt::Display) -> Self {
        Self(Arc::new(Inner {
            kind,
            request: None,
            text: text.to_string().into(),
            status: None,
            unreachable: false,
            silence: None,
        }))
    }

    /// What a server answers with `code`, `reason` and `message`, for those who implement
    /// [`ListerWatcher`](crate::ListerWatcher).
    pub fn api(code: u16, reason: &str, message: &str) -> Self {
        Self::from_status(Status { code, reason: reason.into(), message: message.into(), ..Status::default() })
    }

    /// No connection could be made, for those who implement [`ListerWatcher`](crate::ListerWatcher).
    pub fn unreachable() -> Self {
        let mut inner = Self::new(ErrorKind::Connect, "connection refused").into_inner();
        inner.unreachable = true;
        Self(Arc::new(inner))
    }

    pub(crate) fn timed_out_connecting(limit: Duration) -> Self {
        let mut inner = Self::new(ErrorKind::Connect, format_args!("no connection within {limit:?}")).into_inner();
        inner.unreachable = true;
        Self(Arc::new(inner))
    }

    /// The same error, with the time that the server asks to wait.
    pub fn with_retry_after(self, wait: Duration) -> Self {
        let mut inner = self.into_inner();
        inner.status.get_or_insert_default().retry_after = Some(wait);
        Self(Arc::new(inner))
    }

    pub(crate) fn from_status(mut status: Status) -> Self {
        let text = if status.message.is_empty() {
            "the server gave no reason".into()
        } else {
            std::mem::take(&mut status.message).into_boxed_str()
        };
        // The message is needed again where it is the only sign of a version that is too large.
        status.message = text.to_string();
        Self(Arc::new(Inner {
            kind: ErrorKind::Api,
            request: None,
            text,
            status: Some(status),
            unreachable: false,
            silence: None,
        }))
    }

    /// An error of the HTTP stack. Its kind and text come from the chain of causes.
    pub(crate) fn transport(kind: ErrorKind, error: &(dyn std::error::Error + 'static)) -> Self {
        let mut unreachable = false;
        let mut kind = kind;
        let mut texts: Vec<String> = Vec::new();
        let mut cause = Some(error);
        while let Some(error) = cause {
            if let Some(known) = error.downcast_ref::<Error>() {
                return known.clone();
            }
            if let Some(auth) = error.downcast_ref::<kube_client::client::AuthError>() {
                // The wrappers above have printed all of it.
                texts = vec![auth_text(auth)];
                kind = ErrorKind::Connect;
                break;
            }
            let io = error.downcast_ref::<std::io::Error>();
            unreachable |= kind == ErrorKind::Connect && io.is_some_and(|io| is_unreachable(io.kind()));
            let text = error.to_string();
            // Wrappers often repeat what they wrap.
            if !texts.iter().any(|known| known.contains(&text)) {
                texts.push(text);
            }
            // An io::Error that wraps another error is not its source: it passes it over.
            cause = io.and_then(|io| io.get_ref()).map(|inner| inner as _).or_else(|| error.source());
        }
        Self(Arc::new(Inner {
            kind,
            request: None,
            text: texts.join(": ").into(),
            status: None,
            unreachable,
            silence: None,
        }))
    }

    /// A connection over which nothing came for so long, not even the answer to a ping.
    pub(crate) fn silent(silence: Duration) -> Self {
        let text = format_args!("the server answered no ping, and was silent for {silence:.1?}");
        let mut inner = Self::new(ErrorKind::Timeout, text).into_inner();
        inner.silence = Some(silence);
        Self(Arc::new(inner))
    }

    /// How long nothing came over the connection before it was given up, if that is known.
    pub(crate) fn silence(&self) -> Option<Duration> {
        self.0.silence
    }

    /// The same error, with the request that it belongs to ("list pods in namespace web").
    pub(crate) fn during(self, request: impl Into<Box<str>>) -> Self {
        let mut inner = self.into_inner();
        inner.request.get_or_insert(request.into());
        Self(Arc::new(inner))
    }

    fn into_inner(self) -> Inner {
        Arc::try_unwrap(self.0).unwrap_or_else(|shared| (*shared).clone())
    }

    fn is_code_or_reason(&self, code: u16, reasons: &[&str]) -> bool {
        self.0.status.as_ref().is_some_and(|status| {
            let reason = status.reason.as_str();
            reasons.contains(&reason) || (status.code == code && !KNOWN_REASONS.contains(&reason))
        })
    }

    fn remedy(&self) -> Option<&'static str> {
        if self.is_unauthorized() {
            Some("check the credentials in the kubeconfig or the service account's token")
        } else if self.is_forbidden() {
            Some("grant this user the verbs list and watch on this resource (`kubectl auth can-i list ...` tells)")
        } else if self.is_not_found() {
            Some("check group, version and plural (`kubectl api-resources`), and whether the CRD is installed")
        } else if self.is_unreachable() {
            Some("check the server's address and that it is running")
        } else {
            None
        }
    }
}

fn is_unreachable(kind: std::io::ErrorKind) -> bool {
    use std::io::ErrorKind::*;
    matches!(
        kind,
        ConnectionRefused
            | ConnectionReset
            | ConnectionAborted
            | HostUnreachable
            | NetworkUnreachable
            | NetworkDown
            | TimedOut
            | BrokenPipe
            | UnexpectedEof
            | NotConnected
    )
}

/// A text without the plugin's output, which may hold a token, and without its command line, which kube prints with
/// the environment that the kubeconfig gives it.
fn auth_text(error: &kube_client::client::AuthError) -> String {
    use kube_client::client::AuthError;
    match error {
        AuthError::AuthExecRun { out, .. } => format!("the credential plugin failed with {}", out.status),
        AuthError::AuthExecParse(_) => "the output of the credential plugin is no ExecCredential".into(),
        AuthError::ParseTokenKey(_) => "the output of the credential plugin is no JSON".into(),
        AuthError::MalformedTokenExpirationDate(_) => "the token's date of expiry cannot be read".into(),
        other => other.to_string(),
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let inner = &*self.0;
        if let Some(request) = &inner.request {
            write!(f, "{request}: ")?;
        }
        if let Some(status) = inner.status.as_ref().filter(|status| status.code != 0) {
            write!(f, "{} ", status.code)?;
            if !status.reason.is_empty() {
                write!(f, "{}: ", status.reason)?;
            }
        }
        f.write_str(&inner.text)?;
        if let Some(remedy) = self.remedy() {
            write!(f, "; {remedy}")?;
        }
        Ok(())
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Error({:?}, {:?})", self.kind(), self.to_string())
    }
}

impl std::error::Error for Error {}

impl Status {
    /// Reads a `Status` out of JSON, taking what is there. What does not call itself one is none.
    pub(crate) fn parse(json: &[u8]) -> Option<Self> {
        if json.len() > MAX_STATUS {
            return None;
        }
        let status: Value = serde_json::from_slice(json).ok()?;
        if status["kind"] != "Status" {
            return None;
        }
        let text = |value: &Value| value.as_str().unwrap_or_default().chars().take(MAX_MESSAGE).collect::<String>();
        let cause = |cause: &Value| Cause { reason: text(&cause["reason"]), message: text(&cause["message"]) };
        let details = &status["details"];
        Some(Self {
            code: status["code"].as_u64().and_then(|code| code.try_into().ok()).unwrap_or_default(),
            reason: text(&status["reason"]),
            message: text(&status["message"]),
            causes: details["causes"].as_array().into_iter().flatten().map(cause).collect(),
            retry_after: details["retryAfterSeconds"].as_u64().filter(|wait| *wait > 0).map(Duration::from_secs),
        })
    }
}

#[cfg(test)]
mod tests {
    use std::io;

    use super::*;

    #[test]
    fn a_server_is_unreachable_when_no_connection_could_be_made() {
        let unreachable = |kind, io| Error::transport(kind, &io::Error::from(io)).is_unreachable();
        assert!(unreachable(ErrorKind::Connect, io::ErrorKind::ConnectionRefused));
        assert!(unreachable(ErrorKind::Connect, io::ErrorKind::ConnectionReset), "during the handshake");
        assert!(!unreachable(ErrorKind::Connect, io::ErrorKind::InvalidData), "a certificate that is not trusted");
        let wrapped = io::Error::other(io::Error::from(io::ErrorKind::ConnectionReset));
        assert!(Error::transport(ErrorKind::Connect, &wrapped).is_unreachable(), "as TLS wraps it");
        assert!(!unreachable(ErrorKind::Disconnected, io::ErrorKind::ConnectionReset), "in the middle of an answer");
    }

    #[test]
    fn a_status_without_a_code_is_judged_by_its_reason() {
        let error = Error::from_status(Status::parse(br#"{"kind":"Status","reason":"InternalError"}"#).unwrap());
        assert!(error.is_internal() && error.is_retryable());
        assert_eq!(error.code(), None);
        assert_eq!(Error::unreachable().with_retry_after(Duration::from_secs(1)).code(), None);
    }
}
