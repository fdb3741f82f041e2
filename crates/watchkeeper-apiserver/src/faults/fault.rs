//! The catalogue: everything that can be done to a request or its answer.

use std::time::Duration;

use bytes::Bytes;

/// How a connection ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    /// It is closed: the body ends early.
    Fin,
    /// It is reset: the body ends with an error.
    Reset,
}

/// Where an answer stands still.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StallAt {
    /// Before its headers.
    Headers,
    /// Behind its headers and so many bytes of its body.
    Bytes(usize),
}

/// Something that happens to a request or its answer.
///
/// Objects of an answer are counted from 1: the events of a watch that bring an object, the initial ones included, or
/// the items of a list.
///
/// ```
/// use std::time::Duration;
/// use watchkeeper_apiserver::{Ending, Fault};
///
/// let faults = [
///     Fault::status(429, "TooManyRequests").retry_after(3),
///     Fault::cut_after_bytes(1000, Ending::Reset),
///     Fault::stall(Duration::from_secs(40)),
///     Fault::bad_gateway(),
///     Fault::random(7),
/// ];
/// assert!(matches!(faults[1], Fault::CutAfterBytes { bytes: 1000, .. }));
/// ```
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Fault {
    /// The answer is a `Status`.
    Status {
        /// Its HTTP status code.
        code: u16,
        /// Its reason; may be empty.
        reason: String,
        /// Its `Retry-After`, in seconds.
        retry_after: Option<u32>,
    },
    /// The connection is refused: the request fails, and does not reach the server.
    Refuse,
    /// The connection ends behind so many bytes of the body.
    CutAfterBytes {
        /// How many bytes come through.
        bytes: usize,
        /// What the client sees of the end.
        ending: Ending,
    },
    /// The answer stands still.
    Stall {
        /// Where.
        at: StallAt,
        /// For how long; for ever, if there is none.
        time: Option<Duration>,
    },
    /// The body comes slowly.
    Drip {
        /// How slowly.
        bytes_per_second: u32,
    },
    /// An object comes twice.
    DuplicateEvent {
        /// Which one.
        nth: usize,
    },
    /// An object does not come. Breaks the protocol, unseen.
    DropEvent {
        /// Which one.
        nth: usize,
    },
    /// Behind an event the state of its object *before* it comes again. Breaks the protocol, unseen. If there was none,
    /// the next event takes its place.
    OldState {
        /// Behind which event.
        nth: usize,
    },
    /// Behind an event the watch goes back in time: every object that changed since is shown as it was. Breaks the
    /// protocol, unseen.
    Rewind {
        /// Behind which event.
        nth: usize,
        /// To which revision.
        to: u64,
    },
    /// Behind an event the watch says that something is wrong, and ends.
    ErrorEvent {
        /// Behind which event; 0 is before the first.
        nth: usize,
        /// The code of its `Status`.
        code: u16,
        /// The reason of its `Status`.
        reason: String,
    },
    /// A watch ends after this time, between two events and without an error, as one does whose time is over.
    EndAfter {
        /// How long it lasts.
        time: Duration,
    },
    /// The server forgets its history up to a revision, before it answers.
    Compact {
        /// Up to where; up to now, if there is none.
        revision: Option<u64>,
    },
    /// The body ends in the middle: of a list, or of the first event of a watch.
    Truncate,
    /// Bytes come in the place of an object's event, or of the whole body of anything but a watch.
    Garbage {
        /// In whose place, in a watch.
        nth: usize,
        /// What comes.
        bytes: Bytes,
    },
    /// The answer is a proxy's page: HTML, with this status.
    HtmlPage {
        /// 502, or 200 from a proxy that asks for a password.
        code: u16,
    },
    /// A Lease comes in the place of an object, with the object's metadata. Breaks the protocol, unseen, in a watch.
    WrongKind {
        /// In whose place.
        nth: usize,
    },
    /// An object is padded to this many bytes.
    Oversize {
        /// Which one.
        nth: usize,
        /// How many bytes it has then.
        bytes: usize,
    },
    /// Bookmarks come late, behind events that are newer than they say.
    BookmarksLate {
        /// By how much.
        by: Duration,
    },
    /// No bookmark comes, not even the one that ends the initial events.
    BookmarksMissing,
    /// Bookmarks promise changes that were not sent. Breaks the protocol, unseen.
    BookmarksLie {
        /// How many revisions too many.
        ahead: u64,
    },
    /// The server restarts, and the request is lost. Without its data it is a new cluster, whose revisions begin anew.
    Restart {
        /// Whether objects, history and revision stay.
        keep_data: bool,
    },
    /// For each request something else, or nothing: any of the others that a correct client survives on its own.
    Random {
        /// The same seed does the same to the same requests.
        seed: u64,
    },
}

impl Fault {
    /// The answer is a `Status` of this code and reason.
    pub fn status(code: u16, reason: &str) -> Self {
        Self::Status { code, reason: reason.to_owned(), retry_after: None }
    }

    /// A [`status`](Self::status) that says when to come back; no other fault is changed.
    pub fn retry_after(mut self, seconds: u32) -> Self {
        if let Self::Status { retry_after, .. } = &mut self {
            *retry_after = Some(seconds);
        }
        self
    }

    /// The version that was asked for is forgotten: status 410.
    pub fn expired() -> Self {
        Self::status(410, "Expired")
    }

    /// The connection ends behind so many bytes of the body.
    pub fn cut_after_bytes(bytes: usize, ending: Ending) -> Self {
        Self::CutAfterBytes { bytes, ending }
    }

    /// The answer comes late.
    pub fn stall(time: Duration) -> Self {
        Self::Stall { at: StallAt::Headers, time: Some(time) }
    }

    /// The answer stands still for ever.
    pub fn stall_for_ever(at: StallAt) -> Self {
        Self::Stall { at, time: None }
    }

    /// Bytes in the place of the first event, or of the body.
    pub fn garbage(bytes: impl Into<Bytes>) -> Self {
        Self::Garbage { nth: 1, bytes: bytes.into() }
    }

    /// The page of a proxy that does not reach its server.
    pub fn bad_gateway() -> Self {
        Self::HtmlPage { code: 502 }
    }

    /// A mix of all that a correct client survives on its own.
    pub fn random(seed: u64) -> Self {
        Self::Random { seed }
    }
}
