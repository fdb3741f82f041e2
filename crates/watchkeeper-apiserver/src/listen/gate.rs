//! What a request from outside has to pass before the service sees it.

use std::future::pending;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use futures::stream::{self, StreamExt};
use http::header::AUTHORIZATION;
use http::{Method, Request, Response, StatusCode, Uri};
use http_body::{Frame, SizeHint};
use http_body_util::{BodyExt, BodyStream, StreamBody};
use tokio::time::{Instant, timeout_at};
use tokio_util::sync::CancellationToken;
use tower::{BoxError, Service};

use super::connection::Busy;
use super::host::Hosts;
use super::options::Limits;
use super::socket::Line;
use super::token::Token;
use crate::access::{User, bearer};
use crate::failure::Failure;
use crate::faults::OnSocket;
use crate::http::answer::Answer;
use crate::http::options::Options;
use crate::http::route::Route;
use crate::http::{ApiService, Body};

/// The same for all connections of a port.
pub(super) struct Gate {
    pub(super) service: ApiService,
    pub(super) token: Token,
    pub(super) hosts: Hosts,
    pub(super) limits: Limits,
    /// The port is being closed: watches end.
    pub(super) closing: CancellationToken,
}

/// An answer, as it goes to hyper.
pub(super) type Sent = Response<Held>;

/// The body of an answer, which keeps its connection busy for as long as it is there.
pub(super) struct Held {
    body: Body,
    line: Arc<Line>,
    _busy: Busy,
}

/// Why an answer broke off. A type with a name, because hyper's bounds on errors cannot be shown for a boxed one inside of
/// a task.
#[derive(Debug, thiserror::Error)]
#[error(transparent)]
pub(super) struct Broken(BoxError);

#[derive(Debug, thiserror::Error)]
#[error("the body took too long to arrive")]
struct Late;

impl Gate {
    /// The service's answer, or why it was not asked. The connection counts as busy until the answer has been sent.
    pub(super) async fn answer<B>(&self, mut request: Request<B>, line: Arc<Line>, busy: Busy) -> Result<Sent, Broken>
    where
        B: http_body::Body<Data = Bytes> + Send + Unpin + 'static,
        B::Error: Into<BoxError>,
    {
        let user = match self.check(&request) {
            Ok(user) => user,
            Err(failure) => {
                let response = Answer::from(failure).into_response(false);
                return Ok(response.map(|body| Held { body, line, _busy: busy }));
            }
        };
        request.extensions_mut().insert(user);
        // Nothing behind the gate needs it, and what has no token can show none.
        request.headers_mut().remove(AUTHORIZATION);
        // So that a fault can break the connection, and does not end the answer properly.
        request.extensions_mut().insert(OnSocket);
        let is_watch = is_watch(request.uri());
        let request = request.map(|body| self.in_time(body));
        let response = match self.service.clone().call(request).await {
            // There is no answer, not even on the other requests of the connection.
            Err(error) if line.ends_by(&error) => pending().await,
            Err(error) => return Err(Broken(error)),
            Ok(response) => response,
        };
        Ok(response.map(|mut body| {
            // Lists are sent to their end, for which a port that closes waits. A watch has none.
            if is_watch {
                let until = self.closing.clone().cancelled_owned();
                body = StreamBody::new(BodyStream::new(body).take_until(until)).boxed_unsync();
            }
            Held { body, line, _busy: busy }
        }))
    }

    /// Who asks, if the request may pass.
    fn check<B>(&self, request: &Request<B>) -> Result<Arc<User>, Failure> {
        self.hosts.check(request)?;
        // HTTP/1.1 is stopped before this; HTTP/2 only counts bytes.
        if request.headers().len() > self.limits.headers {
            let text = format!("the request has more than {} headers", self.limits.headers);
            return Err(Failure::new(StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE, "", text));
        }
        // As in a kube-apiserver: a wrong token is wrong everywhere, none is enough where all may look.
        if !request.headers().contains_key(AUTHORIZATION) && is_open(request.method(), request.uri()) {
            return Ok(User::anonymous().into());
        }
        if self.token.is_shown(request.headers()) {
            return Ok(User::admin());
        }
        let rules = self.service.server.settings.access.as_deref();
        let holder = rules.zip(bearer(request.headers())).and_then(|(rules, token)| rules.holder(token));
        holder.map(Arc::new).ok_or_else(Failure::unauthorized)
    }

    /// The body, and an error in its place once its time is over.
    fn in_time<B>(&self, body: B) -> Body
    where
        B: http_body::Body<Data = Bytes> + Send + Unpin + 'static,
        B::Error: Into<BoxError>,
    {
        if body.is_end_stream() {
            return Body::default();
        }
        // A time so long that it has no end is none.
        let deadline = Instant::now().checked_add(self.limits.body_timeout);
        let frames = stream::unfold(Some(body), move |body| async move {
            let mut body = body?;
            let frame = match deadline {
                Some(deadline) => timeout_at(deadline, body.frame()).await,
                None => Ok(body.frame().await),
            };
            match frame {
                Ok(frame) => frame.map(|frame| (frame.map_err(Into::into), Some(body))),
                Err(_) => Some((Err(BoxError::from(Late)), None)),
            }
        });
        StreamBody::new(frames).boxed_unsync()
    }
}

/// What everybody may see: whether the server is well, and which version it is.
fn is_open(method: &Method, uri: &Uri) -> bool {
    let route = Route::of(uri.path());
    method == Method::GET && matches!(route, Route::Version | Route::Health { check: None, .. })
}

fn is_watch(uri: &Uri) -> bool {
    let asked = || Options::of(uri.query().unwrap_or_default()).is_ok_and(|options| options.watch);
    matches!(Route::of(uri.path()), Route::Resource(path) if path.watch || asked())
}

impl http_body::Body for Held {
    type Data = Bytes;
    type Error = Broken;

    /// Nothing comes behind a cut, neither an error nor an end: both would reach the client as HTTP.
    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Broken>>> {
        if self.line.is_cut() {
            return Poll::Pending;
        }
        match ready!(Pin::new(&mut self.body).poll_frame(cx)) {
            Some(Err(error)) if self.line.ends_by(&error) => Poll::Pending,
            None if self.line.is_down() => Poll::Pending,
            frame => Poll::Ready(frame.map(|frame| frame.map_err(Broken))),
        }
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn health_and_version_are_open_to_all_and_nothing_else_is() {
        let open = |path: &'static str| is_open(&Method::GET, &Uri::from_static(path));
        for path in ["/healthz", "/livez", "/readyz?verbose", "/version"] {
            assert!(open(path), "{path}");
        }
        for path in ["/", "/api", "/api/v1/pods", "/livez/ping", "/apis", "/versions"] {
            assert!(!open(path), "{path}");
        }
        assert!(!is_open(&Method::POST, &Uri::from_static("/version")));
    }

    #[test]
    fn watches_are_told_from_lists() {
        let watch = |uri: &'static str| is_watch(&Uri::from_static(uri));
        assert!(watch("/api/v1/pods?limit=1&watch=1") && watch("/api/v1/watch/pods"));
        assert!(!watch("/api/v1/pods") && !watch("/api/v1/pods?watch=false") && !watch("/version?watch=1"));
    }
}
