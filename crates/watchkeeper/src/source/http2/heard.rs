//! When was the peer last heard of?
//!
//! A connection whose ping is not answered is closed by hyper, on our side, and its streams are told no more than that it is
//! gone. Whether the server hung up or fell silent makes a difference: in the second case nobody has seen anything since.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::task::{Context, Poll};
use std::time::Duration;

use hyper::rt::{Read, ReadBufCursor, Write};
use tokio::time::Instant;

use crate::source::connect::Io;

/// A connection that notes when something came over it.
pub(super) struct Listening {
    io: Io,
    heard: Heard,
}

/// When that was. Clones are the same.
#[derive(Clone)]
pub(super) struct Heard(Arc<Noted>);

struct Noted {
    origin: Instant,
    /// Milliseconds since then.
    last: AtomicU64,
}

impl Listening {
    pub(super) fn new(io: Io) -> (Self, Heard) {
        let heard = Heard(Arc::new(Noted { origin: Instant::now(), last: AtomicU64::new(0) }));
        (Self { io, heard: heard.clone() }, heard)
    }
}

impl Heard {
    fn now(&self) {
        let millis = u64::try_from(self.0.origin.elapsed().as_millis()).unwrap_or(u64::MAX);
        self.0.last.store(millis, Relaxed);
    }

    /// How long the peer has been silent.
    pub(super) fn silence(&self) -> Duration {
        self.0.origin.elapsed().saturating_sub(Duration::from_millis(self.0.last.load(Relaxed)))
    }
}

impl Read for Listening {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: ReadBufCursor<'_>) -> Poll<io::Result<()>> {
        let polled = Pin::new(&mut self.io).poll_read(cx, buffer);
        match &polled {
            Poll::Pending => {}
            // The kernel has given up, because nothing came.
            Poll::Ready(Err(error)) if error.kind() == io::ErrorKind::TimedOut => {}
            // That it hangs up, in good order or not, is something that it says.
            Poll::Ready(_) => self.heard.now(),
        }
        polled
    }
}

impl Write for Listening {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.io).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_shutdown(cx)
    }

    fn is_write_vectored(&self) -> bool {
        self.io.is_write_vectored()
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.io).poll_write_vectored(cx, bytes)
    }
}
