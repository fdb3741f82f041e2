//! The network of the tests: each connection is a pipe in memory, whose other end the test gets. Works on paused time.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use http::{Request, Uri};
use hyper_util::client::legacy::connect::{Connected, Connection};
use hyper_util::rt::TokioIo;
use kube_client::client::Body;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, DuplexStream, ReadBuf};
use tokio::sync::mpsc;
use tower::{Service, service_fn};

use crate::error::{Error, ErrorKind};

/// A connector, and the servers' ends of the connections that it makes. Nobody listens once the receiver is dropped.
pub(crate) fn network() -> (
    impl Service<Uri, Response = TokioIo<Pipe>, Error = io::Error, Future: Send + 'static> + Clone + Send + Sync + 'static,
    mpsc::UnboundedReceiver<DuplexStream>,
) {
    let (sender, receiver) = mpsc::unbounded_channel();
    let connector = service_fn(move |_: Uri| {
        let (ours, theirs) = tokio::io::duplex(64 << 10);
        let sent = sender.send(theirs).map_err(|_| io::Error::from(io::ErrorKind::ConnectionRefused));
        async move { sent.map(|()| TokioIo::new(Pipe(ours))) }
    });
    (connector, receiver)
}

/// The client's end of a connection.
pub(crate) struct Pipe(DuplexStream);

impl Connection for Pipe {
    fn connected(&self) -> Connected {
        Connected::new()
    }
}

impl AsyncRead for Pipe {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_read(cx, buf)
    }
}

impl AsyncWrite for Pipe {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write(cx, buf)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_shutdown(cx)
    }
}

/// What the client sends up to the empty line.
pub(crate) async fn read_head(stream: &mut (impl AsyncRead + Unpin)) -> String {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        match stream.read_u8().await {
            Ok(byte) => head.push(byte),
            Err(_) => break,
        }
    }
    String::from_utf8_lossy(&head).into_owned()
}

pub(crate) fn get(path: &str) -> Request<Body> {
    Request::get(path).body(Body::empty()).unwrap()
}

/// What our own code makes of an error that came through kube's client.
pub(crate) fn ours(error: kube_client::Error) -> Error {
    Error::transport(ErrorKind::Disconnected, &error)
}
