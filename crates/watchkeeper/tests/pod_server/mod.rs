//! A server that lists ten thousand pods, for tests that measure memory: it makes each when it is asked for, and keeps none.

#![allow(dead_code, unreachable_pub, reason = "each of the binaries that share this uses some of it")]

use std::convert::Infallible;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;
use futures::stream::{self, BoxStream, StreamExt as _};
use http::{Request, Response};
use http_body_util::StreamBody;
use hyper::body::Frame;
use kube_client::Client;
use kube_client::client::Body;

use crate::corpus::Pods;

pub const PODS: usize = 10_000;

/// Lists pods, sorted as a server does, and answers every watch with the same.
pub struct PodServer {
    pods: Pods,
    order: Vec<usize>,
    after_rollout: Pods,
    /// Every how many-th pod has been rolled out with another template; zero is none.
    rolled_out: AtomicUsize,
    watch: Watch,
}

/// What a watch is answered with.
pub enum Watch {
    /// Its version is too old.
    Expired,
    /// Nothing, for ever.
    Silence,
}

impl PodServer {
    pub fn new(watch: Watch) -> Arc<Self> {
        let pods = Pods::new(1);
        let order = pods.sorted(PODS);
        let after_rollout = Pods::new(1).with_another_template();
        Arc::new(Self { pods, order, after_rollout, rolled_out: AtomicUsize::new(0), watch })
    }

    /// Every so many-th pod is another one from now on.
    pub fn roll_out(&self, every: usize) {
        self.rolled_out.store(every, Ordering::Relaxed);
    }

    fn list(self: Arc<Self>) -> impl Iterator<Item = Bytes> {
        (0..PODS).map(move |at| {
            let start = match at {
                0 => r#"{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"9"},"items":["#,
                _ => ",",
            };
            let end = if at == PODS - 1 { "]}" } else { "" };
            let every = self.rolled_out.load(Ordering::Relaxed);
            let pods = if every > 0 && at.is_multiple_of(every) { &self.after_rollout } else { &self.pods };
            Bytes::from(format!("{start}{}{end}", pods.item(self.order[at])))
        })
    }

    fn watch(&self) -> BoxStream<'static, Bytes> {
        let expired = r#"{"type":"ERROR","object":{"kind":"Status","status":"Failure","reason":"Expired","code":410}}"#;
        match self.watch {
            Watch::Expired => stream::iter([Bytes::from(expired)]).boxed(),
            Watch::Silence => stream::pending().boxed(),
        }
    }

    pub fn client(self: &Arc<Self>) -> Client {
        let server = self.clone();
        let service = tower::service_fn(move |request: Request<Body>| {
            let is_watch = request.uri().query().unwrap_or_default().contains("watch=true");
            let pieces = if is_watch { server.watch() } else { stream::iter(server.clone().list()).boxed() };
            let body = StreamBody::new(pieces.map(|piece| Ok::<_, io::Error>(Frame::data(piece))));
            async move { Ok::<_, Infallible>(Response::new(body)) }
        });
        Client::new(service, "default")
    }
}
