//! The socket below a connection, which can be told how to end.
//!
//! hyper owns the socket, and says nothing of an answer that breaks off before it has sent all of it. So a cut does not
//! reach hyper: the answer stands still, the bytes before the cut are sent, and the socket is dropped with everything
//! above it.

use std::future::poll_fn;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::sync::watch;
use tokio::task::yield_now;
use tokio_util::sync::CancellationToken;
use tower::BoxError;

use crate::faults::{Cut, Ending};

/// What a socket and the answers on it know of each other.
pub(super) struct Line {
    /// Changes when all connections are cut.
    cuts: watch::Receiver<u64>,
    /// This one is cut.
    cut: CancellationToken,
    /// Its end is a reset.
    reset: AtomicBool,
    /// The client has to read before more can be sent.
    blocked: AtomicBool,
}

/// A TCP connection that ends as its line says.
pub(super) struct Socket {
    stream: TcpStream,
    line: Arc<Line>,
}

impl Line {
    pub(super) fn new(cuts: watch::Receiver<u64>) -> Self {
        Self { cuts, cut: CancellationToken::new(), reset: AtomicBool::new(false), blocked: AtomicBool::new(false) }
    }

    /// Whether an error stands for the end of the connection, which comes soon then.
    pub(super) fn ends_by(&self, error: &BoxError) -> bool {
        let refused =
            || error.downcast_ref::<io::Error>().map(io::Error::kind) == Some(io::ErrorKind::ConnectionRefused);
        let ending = match error.downcast_ref::<Cut>() {
            Some(cut) => cut.ending,
            // It was accepted long ago: a reset is as near to a refusal as one can still get.
            None if refused() => Ending::Reset,
            None => return false,
        };
        // Fin takes nothing back: another request of the connection may have been reset.
        self.reset.fetch_or(ending == Ending::Reset, Relaxed);
        self.cut.cancel();
        true
    }

    /// Whether the connection is about to end.
    pub(super) fn is_cut(&self) -> bool {
        self.cut.is_cancelled()
    }

    /// Whether all connections were cut. An answer that ends because of that must not end properly.
    pub(super) fn is_down(&self) -> bool {
        self.cuts.has_changed().unwrap_or(true)
    }

    /// Waits until all connections are cut.
    pub(super) async fn down(&self) {
        // An error means that the server is gone, and its connections with it.
        let _ = self.cuts.clone().changed().await;
    }

    /// Waits until this connection is cut, and all before that is sent. To be polled behind the connection, in its task.
    pub(super) async fn ended(&self) {
        self.cut.cancelled().await;
        // A request of HTTP/2 has its own task, and may have given its last bytes when the connection had had its turn.
        yield_now().await;
        // What unblocks the socket wakes the task.
        poll_fn(|_| if self.blocked.load(Relaxed) { Poll::Pending } else { Poll::Ready(()) }).await;
    }
}

impl Socket {
    pub(super) fn new(stream: TcpStream, line: Arc<Line>) -> Self {
        Self { stream, line }
    }

    fn wrote(&self, result: Poll<io::Result<usize>>) -> Poll<io::Result<usize>> {
        self.line.blocked.store(result.is_pending(), Relaxed);
        result
    }
}

impl Drop for Socket {
    fn drop(&mut self) {
        if self.line.reset.load(Relaxed)
            && let Err(error) = self.stream.set_zero_linger()
        {
            tracing::debug!(%error, "a connection is closed that was to be reset");
        }
    }
}

impl AsyncRead for Socket {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(cx, buf)
    }
}

impl AsyncWrite for Socket {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        let result = Pin::new(&mut self.stream).poll_write(cx, buf);
        self.wrote(result)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let result = Pin::new(&mut self.stream).poll_write_vectored(cx, bufs);
        self.wrote(result)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}
