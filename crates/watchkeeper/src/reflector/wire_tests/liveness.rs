//! A server that stops talking is noticed within the stated bounds.

use std::convert::Infallible;
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::StreamBody;
use hyper::body::{Frame, Incoming};
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::io::DuplexStream;
use tokio::sync::mpsc::UnboundedReceiver;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use super::*;
use crate::defaults;
use crate::reflector::{Phase, Reason};

/// The longest first wait of the backoff.
const FIRST_BACKOFF: Duration = Duration::from_millis(1600);

async fn list_goes_on_after(silent: Answer) {
    let server = Server::answering([silent, list(5, &[pod("a", 1)]), alive(&[])]);
    let informer = start(&server, false);
    let took = informer.sees(&["a"], Duration::from_secs(120)).await;
    assert!(took >= defaults::LIST_IDLE_TIMEOUT, "{took:?}");
    assert!(took <= defaults::LIST_IDLE_TIMEOUT + FIRST_BACKOFF + SECOND, "{took:?}");
    assert_eq!(informer.status.get().relists, [(Reason::TimedOut, 1)].into());
    informer.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_list_that_is_silent_before_its_headers_is_given_up_after_30_seconds() {
    list_goes_on_after(vec![]).await;
}

#[tokio::test(start_paused = true)]
async fn a_list_that_is_silent_after_its_headers_is_given_up_after_30_seconds() {
    list_goes_on_after(at_once(&[HEAD])).await;
}

#[tokio::test(start_paused = true)]
async fn a_list_that_is_silent_after_two_objects_is_given_up_after_30_seconds() {
    let start = format!(r#"{{"kind":"PodList","items":[{},{},"#, pod("x", 1), pod("y", 2));
    list_goes_on_after(at_once(&[HEAD, &chunk(&start)])).await;
}

#[tokio::test(start_paused = true)]
async fn a_list_that_drips_is_never_given_up() {
    let items: Answer = (0..20)
        .flat_map(|at| {
            let item = format!("{}{}", if at == 0 { "" } else { "," }, pod(&format!("pod-{at:02}"), 1));
            let (first, second) = item.split_at(20);
            [(20 * SECOND, chunk(first).into()), (20 * SECOND, chunk(second).into())]
        })
        .collect();
    let mut answer = at_once(&[HEAD, &chunk(r#"{"kind":"PodList","metadata":{"resourceVersion":"9"},"items":["#)]);
    answer.extend(items);
    answer.push((SECOND, (chunk("]}") + "0\r\n\r\n").into()));
    let server = Server::answering([answer, alive(&[])]);
    let informer = start(&server, false);
    sleep(820 * SECOND).await;
    assert_eq!(informer.names.get().len(), 20);
    assert_eq!(server.asked(), ["list 0", "watch 9"]);
    informer.stop().await;
}

async fn watch_goes_on_after(silent: Answer, from: u64, before: &[&str], after: &[&str]) {
    let server = Server::answering([list(5, &[pod("a", 1)]), silent, alive(&[event("ADDED", &pod("new", 50))])]);
    let informer = start(&server, false);
    informer.sees(before, 2 * SECOND).await;
    let took = informer.sees(after, Duration::from_secs(700)).await;
    let least = defaults::MIN_WATCH_TIMEOUT + defaults::WATCH_TIMEOUT_GRACE;
    assert!(took >= least - 2 * SECOND && took <= defaults::MIN_WATCH_TIMEOUT + least, "{took:?}");
    assert_eq!(server.asked(), ["list 0".to_owned(), "watch 5".to_owned(), format!("watch {from}")], "no list");
    assert_eq!(informer.status.get().watch_restarts, [(Reason::TimedOut, 1)].into());
    informer.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_watch_that_is_silent_before_its_headers_is_opened_again_5_seconds_after_its_timeout() {
    watch_goes_on_after(vec![], 5, &["a"], &["a", "new"]).await;
}

#[tokio::test(start_paused = true)]
async fn a_watch_that_is_silent_after_its_headers_is_opened_again_5_seconds_after_its_timeout() {
    watch_goes_on_after(at_once(&[HEAD]), 5, &["a"], &["a", "new"]).await;
}

#[tokio::test(start_paused = true)]
async fn a_watch_that_is_silent_after_two_events_is_opened_again_5_seconds_after_its_timeout() {
    let events = [event("ADDED", &pod("b", 6)), event("ADDED", &pod("c", 7))].concat();
    watch_goes_on_after(at_once(&[HEAD, &events]), 7, &["a", "b", "c"], &["a", "b", "c", "new"]).await;
}

#[tokio::test(start_paused = true)]
async fn a_watch_that_is_silent_within_an_event_is_opened_again_before_that_event() {
    let event = event("ADDED", &pod("b", 6));
    watch_goes_on_after(at_once(&[HEAD, &event[..40]]), 5, &["a"], &["a", "new"]).await;
}

#[tokio::test(start_paused = true)]
async fn a_watch_whose_bookmarks_stop_gets_a_second_one_beside_it() {
    let bookmarks: Answer = [
        vec![(Duration::ZERO, HEAD.into())],
        vec![(45 * SECOND, bookmark(6).into()), (55 * SECOND, bookmark(7).into())],
    ]
    .concat();
    let server = Server::answering([list(5, &[]), bookmarks, alive(&[event("ADDED", &pod("new", 50))])]);
    let informer = start(&server, false);
    let took = informer.sees(&["new"], Duration::from_secs(400)).await;
    // The longest gap between two bookmarks was 55 s. The watch's own time, 305 s at least, is not over then.
    assert!(took >= 265 * SECOND && took <= 267 * SECOND, "{took:?}");
    assert_eq!(server.asked(), ["list 0", "watch 5", "watch 7"]);
    let status = informer.status.get();
    assert_eq!((status.phase, status.watch_restarts), (Phase::Watching, [(Reason::Stale, 1)].into()));
    informer.stop().await;
}

async fn streaming_list_goes_on_after(silent: Answer) {
    let end = event(
        "BOOKMARK",
        r#"{"kind":"Pod","apiVersion":"v1","metadata":{"resourceVersion":"9","annotations":{"k8s.io/initial-events-end":"true"}}}"#,
    );
    let server = Server::answering([silent, alive(&[event("ADDED", &pod("a", 1)), end])]);
    let informer = start(&server, true);
    let took = informer.sees(&["a"], Duration::from_secs(120)).await;
    assert!(took >= defaults::LIST_IDLE_TIMEOUT, "{took:?}");
    assert!(took <= defaults::LIST_IDLE_TIMEOUT + FIRST_BACKOFF + SECOND, "{took:?}");
    assert_eq!(server.asked(), ["stream ", "stream "]);
    informer.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_streaming_list_that_is_silent_before_its_headers_starts_over_after_30_seconds() {
    streaming_list_goes_on_after(vec![]).await;
}

#[tokio::test(start_paused = true)]
async fn a_streaming_list_that_is_silent_after_its_headers_starts_over_after_30_seconds() {
    streaming_list_goes_on_after(at_once(&[HEAD])).await;
}

#[tokio::test(start_paused = true)]
async fn a_streaming_list_that_is_silent_after_two_events_starts_over_with_nothing() {
    let events = [event("ADDED", &pod("x", 1)), event("ADDED", &pod("y", 2))].concat();
    streaming_list_goes_on_after(at_once(&[HEAD, &events])).await;
}

/// Serves HTTP/2, and freezes (answers no ping, reads and writes nothing) at the given moment of the `n`th connection.
async fn freezing_http2(
    mut connections: UnboundedReceiver<DuplexStream>,
    server: Server,
    freeze: [CancellationToken; 2],
) {
    let mut freeze = freeze.into_iter();
    while let Some(stream) = connections.recv().await {
        let (server, freeze) = (server.clone(), freeze.next().unwrap_or_default());
        tokio::spawn(async move {
            let service = hyper::service::service_fn(move |request: Request<Incoming>| {
                let answer = server.next(&request.uri().to_string());
                async move {
                    let Some(answer) = answer else { return std::future::pending().await };
                    let frames = futures::stream::unfold(answer.into_iter(), |mut pieces| async move {
                        let Some((wait, piece)) = pieces.next() else { return std::future::pending().await };
                        sleep(wait).await;
                        match piece.is_empty() {
                            true => None,
                            false => Some((Ok::<_, Infallible>(Frame::data(piece)), pieces)),
                        }
                    });
                    Ok::<_, Infallible>(Response::new(StreamBody::new(frames)))
                }
            });
            let connection = hyper::server::conn::http2::Builder::new(TokioExecutor::new())
                .serve_connection(TokioIo::new(stream), service);
            let mut connection = std::pin::pin!(connection);
            tokio::select! {
                _ = &mut connection => {}
                // The connection stays, and is not looked after any more.
                () = freeze.cancelled() => std::future::pending().await,
            }
        });
    }
}

#[tokio::test(start_paused = true)]
async fn a_frozen_http2_server_is_noticed_by_ping_within_45_seconds() {
    let line = |name: &str, version| format!("{{\"type\":\"ADDED\",\"object\":{}}}\n", pod(name, version));
    let list = r#"{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"5"},"items":[]}"#;
    let server = Server::answering([
        vec![(Duration::ZERO, list.into()), (Duration::ZERO, Bytes::new())],
        vec![(Duration::ZERO, line("a", 6).into()), (Duration::ZERO, line("b", 7).into())],
        vec![(Duration::ZERO, line("new", 50).into())],
    ]);
    let (connector, connections) = network();
    let freeze = [CancellationToken::new(), CancellationToken::new()];
    tokio::spawn(freezing_http2(connections, server.clone(), freeze.clone()));
    let informer = start_over(connector, ClientOptions { http2: true, ..ClientOptions::default() }, false);
    informer.sees(&["a", "b"], 2 * SECOND).await;
    freeze[0].cancel();
    let took = informer.sees(&["a", "b", "new"], 120 * SECOND).await;
    assert!(took <= defaults::HTTP2_PING_INTERVAL + defaults::HTTP2_PING_TIMEOUT + SECOND, "{took:?}");
    assert_eq!(server.asked(), ["list 0", "watch 5", "watch 7"], "no list");
    assert_eq!(informer.status.get().watch_restarts, [(Reason::Disconnected, 1)].into());
    let gap = informer.status.get().last_gap.expect("nobody saw anything").lasted;
    assert!(gap >= defaults::HTTP2_PING_INTERVAL + defaults::HTTP2_PING_TIMEOUT - SECOND, "{gap:?}");
    informer.stop().await;
}

/// A connection whose peer is gone: the kernel asks for it, and after 45 seconds without an answer gives up.
struct KeptAlive {
    pipe: DuplexStream,
    gives_up: std::pin::Pin<Box<tokio::time::Sleep>>,
}

impl hyper_util::client::legacy::connect::Connection for KeptAlive {
    fn connected(&self) -> hyper_util::client::legacy::connect::Connected {
        hyper_util::client::legacy::connect::Connected::new()
    }
}

impl tokio::io::AsyncRead for KeptAlive {
    fn poll_read(
        mut self: std::pin::Pin<&mut Self>,
        cx: &mut std::task::Context<'_>,
        buf: &mut tokio::io::ReadBuf<'_>,
    ) -> std::task::Poll<std::io::Result<()>> {
        let read = std::pin::Pin::new(&mut self.pipe).poll_read(cx, buf);
        if read.is_ready() {
            self.gives_up.as_mut().reset(tokio::time::Instant::now() + 45 * SECOND);
            return read;
        }
        std::task::ready!(self.gives_up.as_mut().poll(cx));
        std::task::Poll::Ready(Err(std::io::ErrorKind::TimedOut.into()))
    }
}

impl tokio::io::AsyncWrite for KeptAlive {
    fn poll_write(
        mut self: std::pin::Pin<&mut Self>,
        cx: &mut std::task::Context<'_>,
        buf: &[u8],
    ) -> std::task::Poll<std::io::Result<usize>> {
        std::pin::Pin::new(&mut self.pipe).poll_write(cx, buf)
    }

    fn poll_flush(
        mut self: std::pin::Pin<&mut Self>,
        cx: &mut std::task::Context<'_>,
    ) -> std::task::Poll<std::io::Result<()>> {
        std::pin::Pin::new(&mut self.pipe).poll_flush(cx)
    }

    fn poll_shutdown(
        mut self: std::pin::Pin<&mut Self>,
        cx: &mut std::task::Context<'_>,
    ) -> std::task::Poll<std::io::Result<()>> {
        std::pin::Pin::new(&mut self.pipe).poll_shutdown(cx)
    }
}

#[tokio::test(start_paused = true)]
async fn a_gap_that_the_kernel_ends_is_told_as_long_as_it_was() {
    let server = Server::answering([
        list(5, &[]),
        alive(&[event("ADDED", &pod("a", 6))]),
        alive(&[event("ADDED", &pod("b", 7))]),
    ]);
    let (sender, connections) = tokio::sync::mpsc::unbounded_channel();
    tokio::spawn(server.clone().serve_all(connections));
    let connector = tower::service_fn(move |_: http::Uri| {
        let (pipe, theirs) = tokio::io::duplex(64 << 10);
        let sent = sender.send(theirs).map_err(|_| std::io::Error::from(std::io::ErrorKind::ConnectionRefused));
        let gives_up = Box::pin(sleep(45 * SECOND));
        async move { sent.map(|()| TokioIo::new(KeptAlive { pipe, gives_up })) }
    });
    let informer = start_over(connector, ClientOptions::default(), false);
    informer.sees(&["a", "b"], 60 * SECOND).await;
    assert_eq!(server.asked(), ["list 0", "watch 5", "watch 6"], "no list");
    let gap = informer.status.get().last_gap.expect("nobody saw anything");
    assert!(gap.lasted >= 44 * SECOND, "{gap:?}");
    informer.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_quiet_watch_of_a_server_that_answers_pings_is_not_blind() {
    let line = |name: &str, version| format!("{{\"type\":\"ADDED\",\"object\":{}}}\n", pod(name, version));
    let list = r#"{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"5"},"items":[]}"#;
    let server = Server::answering([
        vec![(Duration::ZERO, list.into()), (Duration::ZERO, Bytes::new())],
        vec![(Duration::ZERO, line("a", 6).into())],
        vec![(Duration::ZERO, line("new", 50).into())],
    ]);
    let (connector, connections) = network();
    let freeze = [CancellationToken::new(), CancellationToken::new()];
    tokio::spawn(freezing_http2(connections, server.clone(), freeze.clone()));
    let informer = start_over(connector, ClientOptions { http2: true, ..ClientOptions::default() }, false);
    informer.sees(&["a"], 2 * SECOND).await;
    sleep(200 * SECOND).await;
    freeze[0].cancel();
    informer.sees(&["a", "new"], 120 * SECOND).await;
    let gap = informer.status.get().last_gap.expect("nobody saw anything").lasted;
    let most = 2 * defaults::HTTP2_PING_INTERVAL + defaults::HTTP2_PING_TIMEOUT + SECOND;
    assert!(gap <= most, "{gap:?}");
    informer.stop().await;
}
