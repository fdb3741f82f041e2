//! A rain of faults: all that a correct client survives on its own.

use std::time::Duration;

use fastrand::Rng;

use super::{Ending, Fault, StallAt};

/// What happens to one request: most often nothing.
pub(super) fn draw(rng: &mut Rng) -> Option<Fault> {
    let fault = match rng.u32(..32) {
        0 => Fault::status(429, "TooManyRequests").retry_after(rng.u32(1..5)),
        1 => Fault::status(500, "InternalError"),
        2 => Fault::status(503, "ServiceUnavailable"),
        3 => Fault::expired(),
        4 => Fault::Refuse,
        5 | 6 => Fault::cut_after_bytes(rng.usize(..3000), Ending::Fin),
        7 | 8 => Fault::cut_after_bytes(rng.usize(..3000), Ending::Reset),
        9 => Fault::stall(Duration::from_secs(rng.u64(1..90))),
        10 => Fault::Stall { at: StallAt::Bytes(rng.usize(..2000)), time: Some(Duration::from_secs(rng.u64(1..90))) },
        11 => Fault::stall_for_ever(StallAt::Bytes(rng.usize(..2000))),
        12 => Fault::Drip { bytes_per_second: rng.u32(50..5000) },
        13 => Fault::DuplicateEvent { nth: rng.usize(1..8) },
        14 => Fault::Compact { revision: None },
        15 => Fault::Truncate,
        16 => Fault::Garbage { nth: rng.usize(1..5), bytes: b"\x00\xff no JSON at all".as_slice().into() },
        17 => Fault::bad_gateway(),
        18 => Fault::Oversize { nth: rng.usize(1..5), bytes: rng.usize(10_000..300_000) },
        19 => Fault::BookmarksLate { by: Duration::from_secs(rng.u64(1..90)) },
        20 => Fault::BookmarksMissing,
        21 => Fault::Restart { keep_data: true },
        22 => Fault::ErrorEvent { nth: rng.usize(..4), code: 410, reason: "Expired".to_owned() },
        23 => Fault::ErrorEvent { nth: rng.usize(..4), code: 500, reason: "InternalError".to_owned() },
        _ => return None,
    };
    Some(fault)
}
