//! How is the load server told what to do?

use std::time::Duration;

use http::{Method, Request, Uri};
use http_body_util::{BodyExt as _, Empty};
use hyper::body::Bytes;
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer};

use super::digest::Digest;
use super::{Failure, Outcome};

/// The server answers all of these at once.
const TIMEOUT: Duration = Duration::from_secs(60);

/// The control requests of the load server.
pub(crate) struct Control {
    base: String,
    client: Client<HttpConnector, Empty<Bytes>>,
}

/// The versions of events that were ordered.
#[derive(Debug, Clone, Copy, Deserialize)]
pub(crate) struct Versions {
    #[serde(deserialize_with = "number")]
    pub(crate) first: u64,
    #[serde(deserialize_with = "number")]
    pub(crate) last: u64,
}

/// A pod to be read, and by what it can be found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) namespace: String,
    pub(crate) name: String,
    pub(crate) node: String,
    pub(crate) app: String,
}

impl Control {
    pub(crate) fn new(server: &Uri) -> Self {
        let client = Client::builder(TokioExecutor::new()).build_http();
        Self { base: server.to_string().trim_end_matches('/').to_owned(), client }
    }

    /// What the server has.
    pub(crate) async fn digest(&self) -> Outcome<Digest> {
        self.json(Method::GET, "/control/digest").await
    }

    /// Orders events: so many a second, or as fast as they are taken (0).
    pub(crate) async fn events(&self, count: u64, over: u64, rate: u64) -> Outcome<Versions> {
        self.json(Method::POST, &format!("/control/events?count={count}&over={over}&rate={rate}")).await
    }

    /// When each of these events was written, in nanoseconds since 1970.
    pub(crate) async fn sent(&self, Versions { first, last }: Versions) -> Outcome<Vec<u64>> {
        let answer = self.ask(Method::GET, &format!("/control/sent?first={first}&last={last}")).await?;
        let (times, rest) = answer.as_chunks();
        if !rest.is_empty() || times.len() as u64 != last - first + 1 {
            return Err(format!("the server told {} bytes of times for {first} to {last}", answer.len()).into());
        }
        Ok(times.iter().map(|time| u64::from_le_bytes(*time)).collect())
    }

    /// Makes every watch fail with a 410. The version of the event that ends the list that follows.
    pub(crate) async fn expire(&self) -> Outcome<u64> {
        #[derive(Deserialize)]
        struct Expired {
            #[serde(deserialize_with = "number")]
            marker: u64,
        }
        Ok(self.json::<Expired>(Method::POST, "/control/expire").await?.marker)
    }

    /// Pods that can be read, spread over the list.
    pub(crate) async fn places(&self, count: u64) -> Outcome<Vec<Place>> {
        let answer = self.ask(Method::GET, &format!("/control/keys?count={count}")).await?;
        let places: Option<Vec<Place>> = std::str::from_utf8(&answer)?.lines().map(place).collect();
        places.filter(|places| !places.is_empty()).ok_or_else(|| "the server told keys that are none".into())
    }

    async fn json<T: DeserializeOwned>(&self, method: Method, path: &str) -> Outcome<T> {
        let answer = self.ask(method, path).await?;
        serde_json::from_slice(&answer).map_err(|error| format!("the server's answer to {path} is odd: {error}").into())
    }

    async fn ask(&self, method: Method, path: &str) -> Outcome<Bytes> {
        let failed = |why: String| Failure::from(format!("the load server did not answer {path}: {why}"));
        let request = Request::builder().method(method).uri(format!("{}{path}", self.base)).body(Empty::new())?;
        let answer = async {
            let answer = self.client.request(request).await.map_err(|error| failed(format!("{error:?}")))?;
            let status = answer.status();
            let body = answer.into_body().collect().await?.to_bytes();
            if !status.is_success() {
                return Err(failed(format!("{status} {}", String::from_utf8_lossy(&body))));
            }
            Ok(body)
        };
        tokio::time::timeout(TIMEOUT, answer)
            .await
            .map_err(|_| failed(format!("not within {} s", TIMEOUT.as_secs())))?
    }
}

/// `namespace/name node app`
fn place(line: &str) -> Option<Place> {
    let mut words = line.split(' ');
    let (namespace, name) = words.next()?.split_once('/')?;
    let (node, app) = (words.next()?, words.next()?);
    let [namespace, name, node, app] = [namespace, name, node, app].map(str::to_owned);
    Some(Place { namespace, name, node, app })
}

fn number<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u64, D::Error> {
    String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_read_as_the_contract_has_them() {
        let [namespace, name, node, app] = ["shop", "web-0", "node-1", "web"].map(str::to_owned);
        assert_eq!(place("shop/web-0 node-1 web"), Some(Place { namespace, name, node, app }));
        assert_eq!(place("shop web"), None);
        let versions: Versions =
            serde_json::from_str(r#"{"first":"1000000001","last":"1000000100"}"#).expect("versions");
        assert_eq!((versions.first, versions.last), (1_000_000_001, 1_000_000_100));
    }
}
