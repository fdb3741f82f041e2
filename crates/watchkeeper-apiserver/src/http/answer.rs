//! What is sent back.

use std::collections::VecDeque;
use std::io::Write;

use bytes::{Bytes, BytesMut};
use flate2::Compression;
use flate2::write::GzEncoder;
use futures::stream::{self, BoxStream, StreamExt};
use http::header::{CACHE_CONTROL, CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE, RETRY_AFTER, VARY, WARNING};
use http::{HeaderName, HeaderValue, Response, StatusCode};
use http_body::Frame;
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full, StreamBody};
use tower::BoxError;

use crate::defaults::{CHUNK, GZIP_ABOVE};
use crate::failure::Failure;
use crate::http::warnings::Warnings;

/// The body of every answer.
pub type Body = UnsyncBoxBody<Bytes, BoxError>;

const JSON: &str = "application/json";
const TEXT: &str = "text/plain; charset=utf-8";

/// An answer that has not been written yet.
pub(crate) struct Answer {
    status: StatusCode,
    content_type: &'static str,
    content: Content,
    retry_after: Option<u32>,
    /// More headers, or others in the place of the usual ones.
    headers: Vec<(HeaderName, HeaderValue)>,
}

enum Content {
    /// The parts of a document, most of them shared with the storage.
    Parts(Vec<Bytes>),
    /// A watch.
    Stream(BoxStream<'static, Bytes>),
}

impl Answer {
    /// A JSON document; a newline is put behind it, as a kube-apiserver does.
    pub(crate) fn json(status: StatusCode, document: impl Into<Bytes>) -> Self {
        Self::parts(status, vec![document.into(), Bytes::from_static(b"\n")])
    }

    pub(crate) fn parts(status: StatusCode, parts: Vec<Bytes>) -> Self {
        Self { status, content_type: JSON, content: Content::Parts(parts), retry_after: None, headers: Vec::new() }
    }

    pub(crate) fn text(status: StatusCode, text: impl Into<Bytes>) -> Self {
        Self { content_type: TEXT, ..Self::parts(status, vec![text.into()]) }
    }

    pub(crate) fn stream(lines: BoxStream<'static, Bytes>) -> Self {
        Self { content: Content::Stream(lines), ..Self::parts(StatusCode::OK, Vec::new()) }
    }

    /// A status and nothing else.
    pub(crate) fn empty(status: StatusCode) -> Self {
        Self { content_type: "", ..Self::parts(status, Vec::new()) }
    }

    /// The same document as something else than JSON.
    pub(crate) fn of_type(mut self, content_type: &'static str) -> Self {
        self.content_type = content_type;
        self
    }

    /// With a header more. What may come once replaces what is there.
    pub(crate) fn with_header(mut self, name: HeaderName, value: HeaderValue) -> Self {
        self.headers.push((name, value));
        self
    }

    /// The same with warnings.
    pub(crate) fn with_warnings(mut self, warnings: &Warnings) -> Self {
        self.headers.extend(warnings.headers().into_iter().map(|warning| (WARNING, warning)));
        self
    }

    /// The path leads nowhere near an API.
    pub(crate) fn page_not_found() -> Self {
        Self::text(StatusCode::NOT_FOUND, "404 page not found\n")
    }

    pub(crate) fn into_response(self, gzip: bool) -> Response<Body> {
        let mut response = Response::new(Body::default());
        *response.status_mut() = self.status;
        let headers = response.headers_mut();
        if !self.content_type.is_empty() {
            headers.insert(CONTENT_TYPE, HeaderValue::from_static(self.content_type));
        }
        headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache, private"));
        for (name, value) in self.headers {
            match name {
                VARY | WARNING => drop(headers.append(name, value)),
                _ => drop(headers.insert(name, value)),
            }
        }
        if let Some(seconds) = self.retry_after {
            headers.insert(RETRY_AFTER, HeaderValue::from(seconds));
        }
        *response.body_mut() = match self.content {
            Content::Stream(lines) => streamed(lines),
            Content::Parts(parts) => {
                let length: usize = parts.iter().map(Bytes::len).sum();
                if gzip && length > GZIP_ABOVE {
                    headers.insert(CONTENT_ENCODING, HeaderValue::from_static("gzip"));
                    headers.append(VARY, HeaderValue::from_static("Accept-Encoding"));
                    streamed(compressed(parts))
                } else {
                    headers.insert(CONTENT_LENGTH, HeaderValue::from(length));
                    whole(parts, length)
                }
            }
        };
        response
    }
}

/// What faults change.
impl Answer {
    /// The lines of a watch through something; other answers stay as they are.
    pub(crate) fn map_stream(
        mut self,
        map: impl FnOnce(BoxStream<'static, Bytes>) -> BoxStream<'static, Bytes>,
    ) -> Self {
        if let Content::Stream(lines) = self.content {
            self.content = Content::Stream(map(lines));
        }
        self
    }

    /// The parts of a document through something; watches stay as they are.
    pub(crate) fn map_parts(mut self, map: impl FnOnce(Vec<Bytes>) -> Vec<Bytes>) -> Self {
        if let Content::Parts(parts) = self.content {
            self.content = Content::Parts(map(parts));
        }
        self
    }
}

impl From<Failure> for Answer {
    fn from(failure: Failure) -> Self {
        Self { retry_after: failure.retry_after(), ..Self::json(failure.status(), failure.json()) }
    }
}

fn whole(parts: Vec<Bytes>, length: usize) -> Body {
    if length > CHUNK {
        return streamed(chunked(parts));
    }
    Full::new(parts.concat().into()).map_err(|never| match never {}).boxed_unsync()
}

fn streamed(chunks: BoxStream<'static, Bytes>) -> Body {
    // Some clients ask once more behind the end.
    StreamBody::new(chunks.map(|chunk| Ok::<_, BoxError>(Frame::data(chunk))).fuse()).boxed_unsync()
}

/// The parts, put together as they are asked for.
fn chunked(parts: Vec<Bytes>) -> BoxStream<'static, Bytes> {
    let chunks = std::iter::from_fn({
        let mut parts = VecDeque::from(parts);
        move || {
            let mut chunk = BytesMut::new();
            while chunk.len() < CHUNK
                && let Some(part) = parts.pop_front()
            {
                chunk.extend_from_slice(&part);
            }
            (!chunk.is_empty()).then(|| chunk.freeze())
        }
    });
    stream::iter(chunks).boxed()
}

/// The same through gzip, at the level that a kube-apiserver uses.
fn compressed(parts: Vec<Bytes>) -> BoxStream<'static, Bytes> {
    let mut parts = VecDeque::from(parts);
    let mut encoder = Some(GzEncoder::new(Vec::with_capacity(CHUNK), Compression::new(1)));
    let chunks = std::iter::from_fn(move || {
        // Writing into memory cannot fail.
        while encoder.as_ref().is_some_and(|encoder| encoder.get_ref().len() < CHUNK)
            && let Some(part) = parts.pop_front()
        {
            let _ = encoder.as_mut()?.write_all(&part);
        }
        match parts.is_empty() {
            false => Some(std::mem::take(encoder.as_mut()?.get_mut()).into()),
            true => encoder.take().and_then(|encoder| encoder.finish().ok()).map(Bytes::from),
        }
    });
    stream::iter(chunks).boxed()
}
