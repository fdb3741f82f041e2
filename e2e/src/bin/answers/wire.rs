//! One server, as clients reach it: requests as they are, and what comes back as bytes.

use std::time::Duration;

use anyhow::{Context as _, bail};
use bytes::Bytes;
use futures::StreamExt as _;
use http_body_util::BodyExt as _;
use kube::client::Body;
use tokio::sync::oneshot;
use tokio::time::{Instant, sleep_until, timeout};
use watchkeeper_e2e::Failure;

/// A client's name, which becomes that of a manager of fields.
const USER_AGENT: &str = "answers/1.0";
/// How long one answer may take in all.
const PATIENCE: Duration = Duration::from_secs(20);
/// A watch that is ended has told everything when it said nothing for so long.
const QUIET: Duration = Duration::from_millis(500);

/// A request with nothing left to be filled in.
#[derive(Debug, Clone)]
pub(crate) struct Request {
    pub(crate) method: String,
    pub(crate) path: String,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: String,
}

/// What came back.
#[derive(Debug, Clone, Default)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Bytes,
    /// How it ended: a stream that nobody ended may be cut.
    pub(crate) end: &'static str,
}

/// One of both servers.
#[derive(Clone)]
pub(crate) struct Server {
    client: kube::Client,
    /// Who shows nothing by itself.
    stranger: kube::Client,
    /// `127.0.0.1:6443`, which some answers name.
    pub(crate) host: String,
}

impl Server {
    pub(crate) fn new(mut config: kube::Config) -> Result<Self, Failure> {
        // An answer that asks for another try is an answer.
        config.default_retry = false;
        let host = config.cluster_url.authority().map(ToString::to_string).unwrap_or_default();
        let mut stranger = config.clone();
        stranger.auth_info = kube::config::AuthInfo::default();
        Ok(Self { client: config.try_into()?, stranger: stranger.try_into()?, host })
    }

    /// Asks, and waits for the whole answer.
    pub(crate) async fn ask(&self, request: &Request) -> Result<Answer, Failure> {
        self.open(request).await?.whole().await
    }

    /// Asks, and waits until the answer begins.
    pub(crate) async fn open(&self, request: &Request) -> Result<Opened, Failure> {
        let mut built = http::Request::builder().method(request.method.as_str()).uri(escaped(&request.path));
        for (name, value) in &request.headers {
            built = built.header(name, value);
        }
        let has = |name: &str| request.headers.iter().any(|(header, _)| header.eq_ignore_ascii_case(name));
        if !has("User-Agent") {
            built = built.header("User-Agent", USER_AGENT);
        }
        if !has("Content-Type") && !request.body.is_empty() {
            built = built.header("Content-Type", "application/json");
        }
        let sent = built.body(Body::from(request.body.trim_end().as_bytes().to_vec())).context("no request")?;
        let client = if has("Authorization") { &self.stranger } else { &self.client };
        let response = match timeout(PATIENCE, client.send(sent)).await {
            Ok(response) => response.context("no answer")?,
            Err(_) => bail!("no answer for {} s", PATIENCE.as_secs()),
        };
        let (parts, body) = response.into_parts();
        let text = |value: &http::HeaderValue| String::from_utf8_lossy(value.as_bytes()).into_owned();
        let headers = parts.headers.iter().map(|(name, value)| (name.to_string(), text(value))).collect();
        let answer = Answer { status: parts.status.as_u16(), headers, body: Bytes::new(), end: "" };
        Ok(Opened { answer, body })
    }
}

/// An answer that has begun.
pub(crate) struct Opened {
    answer: Answer,
    body: Body,
}

impl Opened {
    /// All of it, up to its own end.
    async fn whole(self) -> Result<Answer, Failure> {
        self.read(Instant::now() + PATIENCE, None).await
    }

    /// What comes until it is told to end, and it is quiet.
    pub(crate) async fn until_told(self, ended: oneshot::Receiver<()>) -> Result<Answer, Failure> {
        self.read(Instant::now() + PATIENCE, Some(ended)).await
    }

    async fn read(mut self, deadline: Instant, mut ended: Option<oneshot::Receiver<()>>) -> Result<Answer, Failure> {
        let mut stream = self.body.into_data_stream();
        let mut whole = Vec::new();
        let mut by = deadline;
        self.answer.end = loop {
            let told = async {
                match &mut ended {
                    Some(ended) => drop(ended.await),
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                () = told => {
                    ended = None;
                    by = Instant::now() + QUIET;
                }
                next = stream.next() => match next {
                    Some(Ok(bytes)) => {
                        whole.extend_from_slice(&bytes);
                        by = if by == deadline { deadline } else { Instant::now() + QUIET };
                    }
                    Some(Err(error)) => return Err(error).context("the answer broke off"),
                    None => break "",
                },
                () = sleep_until(by) => break "and it goes on",
            }
        };
        self.answer.body = whole.into();
        Ok(self.answer)
    }
}

/// A path as it may stand in a request: what no address can have is escaped.
fn escaped(path: &str) -> String {
    let plain =
        |b: u8| b.is_ascii_graphic() && !matches!(b, b'"' | b'<' | b'>' | b'\\' | b'^' | b'`' | b'{' | b'|' | b'}');
    path.bytes().map(|b| if plain(b) { char::from(b).to_string() } else { format!("%{b:02X}") }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_no_address_can_have_is_escaped() {
        assert_eq!(escaped("/a?b=c in (d,e)&f=%20&g=ü"), "/a?b=c%20in%20(d,e)&f=%20&g=%C3%BC");
    }
}
