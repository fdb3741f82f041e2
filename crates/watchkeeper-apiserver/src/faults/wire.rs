//! The bytes of an answer: held back, slowed down, cut off.

use std::time::Duration;

use bytes::Bytes;
use futures::stream::{self, StreamExt};
use http_body::Frame;
use http_body_util::{BodyExt, StreamBody};
use tokio::sync::watch;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;
use tower::BoxError;

use super::{Ending, Fault, StallAt};
use crate::http::Body;
use crate::server::Inner;

/// An extension of requests that came over a socket. For these a cut is always an error of the body, because a body that
/// merely ends would be ended properly on the connection; whoever listens closes or resets it then.
#[derive(Debug, Clone, Copy)]
pub struct OnSocket;

/// A connection was cut by a fault.
#[derive(Debug, thiserror::Error)]
#[error("the connection was cut by an injected fault")]
pub struct Cut {
    /// Whether it is to be closed or reset.
    pub ending: Ending,
}

/// What happens to the bytes of one answer.
#[derive(Default)]
pub(super) struct Wire {
    cut: Option<(usize, Ending)>,
    stall: Option<(usize, Option<Duration>)>,
    bytes_per_second: Option<u32>,
}

/// A body under way.
struct Sending {
    body: Body,
    wire: Wire,
    /// Taken from the body and not sent yet.
    pending: Bytes,
    sent: usize,
    on_socket: bool,
    ended: bool,
    interruption: Interruption,
}

/// What ends a wait early: a cut of everything, or the server's end.
pub(super) struct Interruption {
    cuts: watch::Receiver<u64>,
    stopping: CancellationToken,
}

impl Wire {
    pub(super) fn add(&mut self, fault: &Fault) {
        match fault {
            Fault::CutAfterBytes { bytes, ending } => self.cut_at(*bytes, *ending),
            Fault::Stall { at: StallAt::Bytes(bytes), time } => self.stall = Some((*bytes, *time)),
            Fault::Drip { bytes_per_second } => self.bytes_per_second = Some((*bytes_per_second).max(1)),
            _ => {}
        }
    }

    /// The earliest cut counts.
    pub(super) fn cut_at(&mut self, bytes: usize, ending: Ending) {
        if self.cut.is_none_or(|(known, _)| bytes < known) {
            self.cut = Some((bytes, ending));
        }
    }

    pub(super) fn wrap(self, body: Body, server: &Inner, on_socket: bool) -> Body {
        if self.cut.is_none() && self.stall.is_none() && self.bytes_per_second.is_none() {
            return body;
        }
        let interruption = Interruption::of(server);
        let pending = Bytes::new();
        let sending = Sending { body, wire: self, pending, sent: 0, on_socket, ended: false, interruption };
        let frames = stream::unfold(sending, |mut sending| async move {
            let frame = sending.next().await?;
            Some((frame, sending))
        });
        // Some clients ask once more behind the end.
        StreamBody::new(frames.fuse()).boxed_unsync()
    }

    /// How many bytes may follow until something happens.
    fn room(&self, sent: usize) -> usize {
        let marks = [self.cut.map(|(bytes, _)| bytes), self.stall.map(|(bytes, _)| bytes)];
        let until_mark = marks.into_iter().flatten().map(|mark| mark.saturating_sub(sent)).min();
        let dripping = self.bytes_per_second.map(|bytes| bytes as usize);
        until_mark.unwrap_or(usize::MAX).min(dripping.unwrap_or(usize::MAX))
    }
}

impl Sending {
    async fn next(&mut self) -> Option<Result<Frame<Bytes>, BoxError>> {
        if self.ended {
            return None;
        }
        if let Some((bytes, time)) = self.wire.stall
            && self.sent >= bytes
        {
            self.wire.stall = None;
            if self.interruption.wait(time).await.is_err() {
                return self.end(Ending::Fin);
            }
        }
        if let Some((bytes, ending)) = self.wire.cut
            && self.sent >= bytes
        {
            return self.end(ending);
        }
        while self.pending.is_empty() {
            let frame = tokio::select! {
                biased;
                () = self.interruption.happens() => return self.end(Ending::Fin),
                frame = self.body.frame() => frame?,
            };
            match frame.map(Frame::into_data) {
                Ok(Ok(data)) => self.pending = data,
                Ok(Err(trailers)) => return Some(Ok(trailers)),
                Err(error) => return Some(Err(error)),
            }
        }
        let piece = self.pending.split_to(self.pending.len().min(self.wire.room(self.sent)));
        if let Some(rate) = self.wire.bytes_per_second {
            let time = Duration::from_secs_f64(piece.len() as f64 / f64::from(rate));
            if self.interruption.wait(Some(time)).await.is_err() {
                return self.end(Ending::Fin);
            }
        }
        self.sent += piece.len();
        Some(Ok(Frame::data(piece)))
    }

    fn end(&mut self, ending: Ending) -> Option<Result<Frame<Bytes>, BoxError>> {
        self.ended = true;
        match ending {
            Ending::Fin if !self.on_socket => None,
            ending => Some(Err(Cut { ending }.into())),
        }
    }
}

impl Interruption {
    pub(super) fn of(server: &Inner) -> Self {
        Self { cuts: server.faults.cuts(), stopping: server.stopping.clone() }
    }

    /// Waits for a time, or for ever; an error if something comes in between.
    pub(super) async fn wait(&mut self, time: Option<Duration>) -> Result<(), Cut> {
        let waited = async {
            match time {
                Some(time) => sleep(time).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            biased;
            () = self.happens() => Err(Cut { ending: Ending::Fin }),
            () = waited => Ok(()),
        }
    }

    async fn happens(&mut self) {
        tokio::select! {
            () = self.stopping.cancelled() => {}
            // An error means that the server is gone, which is an interruption too.
            _ = self.cuts.changed() => {}
        }
    }
}
