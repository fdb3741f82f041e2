//! A stream that is cut at any byte loses nothing.

use std::io::Write as _;
use std::time::Duration;

use flate2::Compression;
use flate2::write::GzEncoder;

use super::*;

/// A watch of three events whose body is cut after `cut` bytes; the second watch sends what the first did not bring.
///
/// The server goes on from the version that it is asked for, as a real one does: what was read twice or left out would
/// show in the store.
async fn cut_at(body: &[u8], gzipped: bool, cut: usize) {
    let encoding = if gzipped { "Content-Encoding: gzip\r\n" } else { "" };
    let head = format!("HTTP/1.1 200 OK\r\n{encoding}Transfer-Encoding: chunked\r\n\r\n");
    let mut piece = format!("{:x}\r\n", cut).into_bytes();
    piece.extend_from_slice(&body[..cut]);
    piece.extend_from_slice(b"\r\n");
    // A chunk of no bytes would be the end of the body, and not a cut.
    let pieces: Answer = match cut {
        0 => vec![(SECOND, head.into()), (SECOND, Bytes::new())],
        _ => vec![(SECOND, head.into()), (SECOND, piece.into()), (Duration::ZERO, Bytes::new())],
    };
    let server =
        Server::answering([list(5, &[]), pieces]).resuming(EVENTS.map(|(name, version)| (version, name.into())));
    let informer = start(&server, false);
    informer.sees(&["a", "b", "c"], Duration::from_secs(20)).await;
    let asked = server.asked();
    assert_eq!(asked.len(), 3, "cut at {cut}: {asked:?}");
    assert!(asked[2].starts_with("watch "), "cut at {cut}, a list is not needed: {asked:?}");
    informer.stop().await;
}

const EVENTS: [(&str, u64); 3] = [("a", 6), ("b", 7), ("c", 8)];

fn lines() -> [String; 3] {
    EVENTS.map(|(name, version)| format!("{{\"type\":\"ADDED\",\"object\":{}}}\n", pod(name, version)))
}

#[tokio::test(start_paused = true)]
async fn a_stream_of_three_events_may_be_cut_at_every_byte() {
    let body = lines().concat().into_bytes();
    for cut in 0..body.len() {
        cut_at(&body, false, cut).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_gzipped_stream_of_three_events_may_be_cut_at_every_byte() {
    let mut body = Vec::new();
    for line in lines() {
        let mut member = GzEncoder::new(Vec::new(), Compression::fast());
        member.write_all(line.as_bytes()).unwrap();
        body.extend(member.finish().unwrap());
    }
    for cut in 0..body.len() {
        cut_at(&body, true, cut).await;
    }
}
