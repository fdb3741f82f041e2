//! Answers that the server has compressed.
//!
//! Since 1.37 Kubernetes compresses watches too, and sends each event as a gzip member of its own, so that it can be
//! decoded without the next one. Decoders for whole files get this wrong in one of two ways: they stop after the first
//! member, or they wait for more before they hand out what they have. An event that is held back until the next one is
//! a stale cache. So this reads members one after the other and hands out whatever the bytes received so far determine.
//!
//! Nothing is decoded before it is asked for, and no more than one chunk at a time: a small answer that expands to
//! gigabytes costs time, but no memory. A body that ends inside a member was cut off ([`ErrorKind::Disconnected`], and
//! worth another attempt); bytes that are no gzip, or have the wrong checksum, are [`ErrorKind::Malformed`].

mod gunzip;

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use futures::TryFutureExt;
use futures::future::MapOk;
use http::header::{ACCEPT_ENCODING, CONTENT_ENCODING, CONTENT_LENGTH};
use http::{HeaderMap, HeaderValue, Request, Response};
use http_body::{Body, Frame, SizeHint};
use tower::{Layer, Service};

use self::gunzip::Gunzip;
use crate::error::{Error, ErrorKind};

/// Asks for gzip and decodes it.
#[derive(Debug, Clone, Copy)]
pub(super) struct GzipLayer {
    enabled: bool,
}

impl GzipLayer {
    /// A layer that does nothing unless `enabled`.
    pub(super) fn new(enabled: bool) -> Self {
        Self { enabled }
    }
}

impl<S> Layer<S> for GzipLayer {
    type Service = Gzip<S>;

    fn layer(&self, inner: S) -> Gzip<S> {
        Gzip { inner, enabled: self.enabled }
    }
}

#[derive(Debug, Clone)]
pub(super) struct Gzip<S> {
    inner: S,
    enabled: bool,
}

impl<S, A, B> Service<Request<A>> for Gzip<S>
where
    S: Service<Request<A>, Response = Response<B>>,
{
    type Response = Response<GzipBody<B>>;
    type Error = S::Error;
    type Future = MapOk<S::Future, fn(Response<B>) -> Response<GzipBody<B>>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, mut request: Request<A>) -> Self::Future {
        if self.enabled {
            accept(request.headers_mut());
            self.inner.call(request).map_ok(decoded)
        } else {
            self.inner.call(request).map_ok(|response| response.map(GzipBody::plain))
        }
    }
}

fn accept(headers: &mut HeaderMap) {
    // kube asks for `identity` in watches, because its own decoder reads one member only. Any other choice is left.
    let asked = headers.get(ACCEPT_ENCODING);
    if asked.is_none_or(|asked| asked.as_bytes().eq_ignore_ascii_case(b"identity")) {
        headers.insert(ACCEPT_ENCODING, HeaderValue::from_static("gzip"));
    }
}

fn decoded<B>(mut response: Response<B>) -> Response<GzipBody<B>> {
    let encoding = response.headers().get(CONTENT_ENCODING).map_or(&b""[..], HeaderValue::as_bytes).trim_ascii();
    if !encoding.eq_ignore_ascii_case(b"gzip") && !encoding.eq_ignore_ascii_case(b"x-gzip") {
        return response.map(GzipBody::plain);
    }
    response.headers_mut().remove(CONTENT_ENCODING);
    response.headers_mut().remove(CONTENT_LENGTH);
    response.map(|inner| GzipBody { inner, decoding: Some(Box::default()) })
}

/// A body that may be compressed underneath.
pub(super) struct GzipBody<B> {
    inner: B,
    decoding: Option<Box<Decoding>>,
}

#[derive(Default)]
struct Decoding {
    input: Bytes,
    gunzip: Gunzip,
    ended: bool,
}

impl<B> GzipBody<B> {
    fn plain(inner: B) -> Self {
        Self { inner, decoding: None }
    }
}

impl<B> Body for GzipBody<B>
where
    B: Body<Data = Bytes, Error = Error> + Unpin,
{
    type Data = Bytes;
    type Error = Error;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Error>>> {
        let Self { inner, decoding } = &mut *self;
        let Some(decoding) = decoding else { return Pin::new(inner).poll_frame(cx) };
        let Decoding { input, gunzip, ended } = &mut **decoding;
        while !*ended {
            let chunk = match gunzip.decode(input) {
                Ok(chunk) => chunk,
                Err(error) => {
                    *ended = true;
                    return Poll::Ready(Some(Err(error)));
                }
            };
            if !chunk.is_empty() {
                return Poll::Ready(Some(Ok(Frame::data(chunk.into()))));
            }
            match ready!(Pin::new(&mut *inner).poll_frame(cx)) {
                Some(Ok(frame)) => match frame.into_data() {
                    Ok(data) => *input = data,
                    // Trailers say nothing about an object, and there are none in Kubernetes.
                    Err(_trailers) => {}
                },
                Some(Err(error)) => {
                    *ended = true;
                    return Poll::Ready(Some(Err(error)));
                }
                None => {
                    *ended = true;
                    if !gunzip.is_between_members() {
                        let error = Error::new(ErrorKind::Disconnected, "the compressed answer ends in the middle");
                        return Poll::Ready(Some(Err(error)));
                    }
                }
            }
        }
        Poll::Ready(None)
    }

    fn is_end_stream(&self) -> bool {
        match &self.decoding {
            Some(decoding) => decoding.ended,
            None => self.inner.is_end_stream(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.decoding {
            Some(_) => SizeHint::default(),
            None => self.inner.size_hint(),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use flate2::Compression;
    use flate2::write::GzEncoder;
    use futures::FutureExt;
    use futures::channel::mpsc::{UnboundedSender, unbounded};
    use http_body_util::{BodyExt, StreamBody};

    use super::gunzip::{MAX_CHUNK, MAX_HEADER};
    use super::*;

    const EVENTS: [&str; 3] = ["{\"type\":\"ADDED\"}\n", "{\"type\":\"MODIFIED\"}\n", "{\"type\":\"DELETED\"}\n"];

    fn member(text: &[u8]) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
        encoder.write_all(text).unwrap();
        encoder.finish().unwrap()
    }

    /// Three members, and where each of them ends.
    fn watch() -> (Vec<u8>, [usize; 3]) {
        let mut bytes = Vec::new();
        let ends = EVENTS.map(|event| {
            bytes.extend(member(event.as_bytes()));
            bytes.len()
        });
        (bytes, ends)
    }

    type Source = UnboundedSender<Result<Frame<Bytes>, Error>>;

    fn body(encoding: &'static str) -> (Source, GzipBody<impl Body<Data = Bytes, Error = Error> + Unpin>) {
        let (sender, receiver) = unbounded();
        let response = Response::builder().header(CONTENT_ENCODING, encoding).header(CONTENT_LENGTH, 9);
        let response = decoded(response.body(StreamBody::new(receiver)).unwrap());
        assert_eq!(response.headers().contains_key(CONTENT_LENGTH), encoding == "br");
        (sender, response.into_body())
    }

    fn send(source: &Source, bytes: &[u8]) {
        source.unbounded_send(Ok(Frame::data(Bytes::copy_from_slice(bytes)))).unwrap();
    }

    /// All that can be had without more input, and how it ended if it did.
    fn available(body: &mut (impl Body<Data = Bytes, Error = Error> + Unpin)) -> (Vec<u8>, Option<Option<Error>>) {
        let mut bytes = Vec::new();
        loop {
            match body.frame().now_or_never() {
                None => return (bytes, None),
                Some(None) => return (bytes, Some(None)),
                Some(Some(Err(error))) => return (bytes, Some(Some(error))),
                Some(Some(Ok(frame))) => bytes.extend(frame.into_data().unwrap()),
            }
        }
    }

    fn whole(bytes: &[u8]) -> (Vec<u8>, Option<ErrorKind>) {
        let (source, mut body) = body("gzip");
        send(&source, bytes);
        drop(source);
        let (bytes, end) = available(&mut body);
        let end = end.expect("the body ends");
        assert!(matches!(available(&mut body), (rest, Some(None)) if rest.is_empty()), "nothing comes after the end");
        (bytes, end.map(|error| error.kind()))
    }

    #[test]
    fn one_member_and_three_are_read_to_the_end() {
        assert_eq!(whole(&member(b"hello")), (b"hello".to_vec(), None));
        assert_eq!(whole(&watch().0), (EVENTS.concat().into_bytes(), None));
    }

    #[test]
    fn an_event_is_out_as_soon_as_its_member_is_in_wherever_the_bytes_are_cut() {
        let (bytes, ends) = watch();
        for cut in 0..=bytes.len() {
            let (source, mut body) = body("x-GZIP");
            send(&source, &bytes[..cut]);
            let (mut text, end) = available(&mut body);
            assert!(end.is_none());
            let complete = ends.iter().filter(|end| **end <= cut).count();
            assert!(text.starts_with(EVENTS[..complete].concat().as_bytes()), "cut at {cut}");
            send(&source, &bytes[cut..]);
            drop(source);
            let (rest, end) = available(&mut body);
            text.extend(rest);
            assert_eq!(text, EVENTS.concat().as_bytes(), "cut at {cut}");
            assert!(matches!(end, Some(None)), "cut at {cut}");
        }
    }

    #[test]
    fn bytes_may_come_one_by_one() {
        let (bytes, ends) = watch();
        let (source, mut body) = body("gzip");
        let mut text = Vec::new();
        for (at, byte) in bytes.iter().enumerate() {
            send(&source, &[*byte]);
            text.extend(available(&mut body).0);
            let complete = ends.iter().filter(|end| **end <= at + 1).count();
            assert!(text.starts_with(EVENTS[..complete].concat().as_bytes()), "byte {at}");
        }
    }

    #[test]
    fn a_truncated_stream_is_a_disconnect_unless_it_ends_between_members() {
        let (bytes, ends) = watch();
        for cut in 0..bytes.len() {
            let (text, end) = whole(&bytes[..cut]);
            let complete = ends.iter().filter(|end| **end <= cut).count();
            assert!(text.starts_with(EVENTS[..complete].concat().as_bytes()), "cut at {cut}");
            let between = cut == 0 || ends.contains(&cut);
            assert_eq!(end, (!between).then_some(ErrorKind::Disconnected), "cut at {cut}");
        }
    }

    #[test]
    fn damage_is_found_in_header_data_and_checksum() {
        let (bytes, ends) = watch();
        for at in [ends[0], ends[0] + 1, ends[0] + 3, ends[1] - 8, ends[1] - 1] {
            let mut damaged = bytes.clone();
            damaged[at] ^= 0xff;
            let (text, end) = whole(&damaged);
            assert!(text.starts_with(EVENTS[0].as_bytes()), "byte {at}");
            assert_eq!(end, Some(ErrorKind::Malformed), "byte {at}");
        }
        assert_eq!(whole(b"plain text").1, Some(ErrorKind::Malformed));
    }

    #[test]
    fn optional_header_fields_are_skipped() {
        let builder = flate2::GzBuilder::new().filename("a").comment("b").extra([1, 2, 3]);
        let mut encoder = builder.write(Vec::new(), Compression::fast());
        encoder.write_all(b"hello").unwrap();
        let bytes = encoder.finish().unwrap();
        for cut in 0..bytes.len() {
            let (source, mut body) = body("gzip");
            send(&source, &bytes[..cut]);
            assert!(available(&mut body).1.is_none());
            send(&source, &bytes[cut..]);
        }
        assert_eq!(whole(&bytes), (b"hello".to_vec(), None));
        let endless = [&[0x1f, 0x8b, 8, 8, 0, 0, 0, 0, 0, 0][..], &[b'x'; 2 * MAX_HEADER]].concat();
        assert_eq!(whole(&endless).1, Some(ErrorKind::Malformed));
    }

    #[test]
    fn flushed_data_is_out_before_its_member_ends() {
        let (source, mut body) = body("gzip");
        let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
        for event in EVENTS {
            encoder.write_all(event.as_bytes()).unwrap();
            encoder.flush().unwrap();
            send(&source, encoder.get_ref());
            encoder.get_mut().clear();
            assert_eq!(available(&mut body).0, event.as_bytes());
        }
        send(&source, &encoder.finish().unwrap());
        drop(source);
        assert!(matches!(available(&mut body), (rest, Some(None)) if rest.is_empty()));
    }

    #[test]
    fn a_bomb_comes_out_in_small_chunks_and_whole() {
        let size = 64 << 20;
        let bomb = member(&vec![0; size]);
        assert!(bomb.len() < 128 << 10);
        let (source, mut body) = body("gzip");
        send(&source, &bomb);
        drop(source);
        let mut seen = 0;
        while let Some(frame) = body.frame().now_or_never().unwrap() {
            let chunk = frame.unwrap().into_data().unwrap();
            assert!(chunk.len() <= MAX_CHUNK);
            seen += chunk.len();
        }
        assert_eq!(seen, size);
    }

    #[test]
    fn what_is_not_compressed_passes_untouched() {
        let (source, mut body) = body("br");
        send(&source, &watch().0);
        drop(source);
        let (bytes, end) = available(&mut body);
        assert_eq!(bytes, watch().0);
        assert!(matches!(end, Some(None)));
    }
}
