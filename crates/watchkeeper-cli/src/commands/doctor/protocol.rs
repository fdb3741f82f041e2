//! Does the server, and what stands before it, do what watching needs?

use std::io;
use std::time::Duration;

use http::header::{ACCEPT, ACCEPT_ENCODING, CONTENT_ENCODING};
use http::{Method, Request};
use http_body_util::BodyExt as _;
use kube_client::Config;
use kube_client::client::Body;
use serde_json::Value;
use tokio::time::{Instant, timeout};

use super::ask::{self, NOTHING, words};
use super::report::{Check, Report};
use crate::cluster::{Access, ScopeOptions, Target};
use crate::terminal::seconds;

const TABLE: &str = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json";
const METADATA: &str = "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io,application/json";
/// Longer than what load balancers usually allow: one, four, and almost six minutes.
const SILENCE: Duration = Duration::from_secs(370);
/// The most that is read of a stream that should hold one bookmark.
const MOST: usize = 1 << 20;

/// Checks it with a kind that may be listed and watched.
pub(super) async fn check(
    access: &Access,
    config: Option<Config>,
    scope: &ScopeOptions,
    target: &Target,
    slow: bool,
    report: &mut Report,
) -> io::Result<()> {
    let namespace =
        scope.names(access).filter(|_| target.resource.namespaced).and_then(|names| names.into_iter().next());
    let path = match ask::path(&target.resource.api, namespace.as_deref()) {
        Ok(path) => path,
        Err(why) => return report.add(Check::failed("watching", why)),
    };
    for check in streaming_list(access, &path).await {
        report.add(check)?;
    }
    report.add(compression(access, config, &path).await)?;
    report.add(tables(access, &path).await)?;
    report.add(match slow {
        true => idle(access, &path).await,
        false => Check::skipped("idle", "whether silent connections are cut: add --slow, it takes six minutes"),
    })
}

/// A streaming list of nothing is one bookmark, which proves both.
async fn streaming_list(access: &Access, path: &str) -> [Check; 2] {
    let uri = format!(
        "{path}?watch=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true\
         &timeoutSeconds=10&{NOTHING}"
    );
    let started = Instant::now();
    let remedy = "none is needed: lists are read page by page; a server from 1.34 on streams them";
    let no = |why: String| {
        [
            Check::warning("watching", format!("there are no streaming lists: {why}")).with_remedy(remedy),
            Check::skipped("bookmarks", "they are shown by a streaming list"),
        ]
    };
    let opening = ask::open(&access.client, Method::GET, &uri, METADATA, None);
    let answer = match timeout(access.request_timeout, opening).await {
        Ok(Ok(answer)) => answer,
        Ok(Err(why)) => return no(why),
        Err(_) => return no(format!("no answer came within {}", seconds(access.request_timeout))),
    };
    if !answer.status().is_success() {
        return no(format!("the server answers {}", answer.status().as_u16()));
    }
    match timeout(access.request_timeout, bookmark(answer.into_body())).await {
        Ok(Ok(())) => [
            Check::ok(
                "watching",
                format!("lists can be streamed: the end of one came in {}", seconds(started.elapsed())),
            ),
            Check::ok("bookmarks", "the server sends them"),
        ],
        Ok(Err(why)) => no(why),
        Err(_) => no(format!("its end did not come within {}", seconds(access.request_timeout))),
    }
}

/// Reads up to the bookmark that ends the initial events.
async fn bookmark(mut body: Body) -> Result<(), String> {
    let mut read = Vec::new();
    while read.len() < MOST {
        let frame = match body.frame().await {
            Some(frame) => frame.map_err(|error| words(&error))?,
            None => return Err("the stream ended without a bookmark".to_owned()),
        };
        if let Some(data) = frame.data_ref() {
            read.extend_from_slice(data);
        }
        let events = serde_json::Deserializer::from_slice(&read).into_iter::<Value>().map_while(Result::ok);
        for event in events {
            match event.get("type").and_then(Value::as_str) {
                Some("BOOKMARK") => {
                    let end = event.pointer("/object/metadata/annotations/k8s.io~1initial-events-end");
                    if end.is_some_and(|end| end == "true") {
                        return Ok(());
                    }
                }
                Some("ERROR") => {
                    let message = event.pointer("/object/message").and_then(Value::as_str).unwrap_or_default();
                    return Err(format!("the stream says: {message}"));
                }
                // As some servers do that do not know what was asked.
                _ => return Err("the server sends objects that were not asked for".to_owned()),
            }
        }
    }
    Err("the stream does not come to its end".to_owned())
}

/// A large answer has to come compressed. Our own client hides that, so a plain one asks.
async fn compression(access: &Access, config: Option<Config>, path: &str) -> Check {
    if config.as_ref().is_some_and(|config| config.disable_compression) {
        return Check::warning("compression", "the kubeconfig says disable-compression")
            .with_remedy("remove it, unless the server is next to you");
    }
    let client = match config {
        None => access.client.clone(),
        // A credential plugin may be run for it, which blocks.
        Some(config) => {
            let making = tokio::task::spawn_blocking(move || kube_client::Client::try_from(config));
            match timeout(access.request_timeout, making).await {
                Ok(Ok(Ok(client))) => client,
                _ => return Check::skipped("compression", "no plain client can be made, which would see it"),
            }
        }
    };
    let request = Request::get(format!("{path}?limit=500"))
        .header(ACCEPT, "application/json")
        .header(ACCEPT_ENCODING, "gzip")
        .body(Body::empty());
    let asking = async {
        let answer = client.send(request.map_err(|error| error.to_string())?).await.map_err(|error| words(&error))?;
        let is_compressed = answer.headers().get(CONTENT_ENCODING).is_some_and(|encoding| encoding == "gzip");
        let status = answer.status().as_u16();
        let mut body = answer.into_body();
        let mut size = 0;
        // What is small is sent as it is: 128 KiB is the server's limit.
        while !is_compressed && size < 256 << 10 {
            match body.frame().await {
                Some(Ok(frame)) => size += frame.data_ref().map_or(0, |data| data.len()),
                _ => break,
            }
        }
        Ok::<_, String>((status, is_compressed, size))
    };
    match timeout(access.request_timeout, asking).await {
        Ok(Ok((200, true, _))) => Check::ok("compression", "large answers come compressed"),
        Ok(Ok((200, false, size))) if size >= 192 << 10 => {
            Check::warning("compression", "a large answer came uncompressed")
                .with_remedy("see whether a proxy on the way removes Accept-Encoding")
        }
        Ok(Ok((200, false, _))) => Check::skipped("compression", "there are too few objects for a large answer"),
        Ok(Ok((status, ..))) => Check::skipped("compression", format!("a list is answered with {status}")),
        Ok(Err(why)) => Check::skipped("compression", why),
        Err(_) => Check::skipped("compression", "a page did not come in time"),
    }
}

async fn tables(access: &Access, path: &str) -> Check {
    let answer = ask::get_as(access, &format!("{path}?limit=1"), TABLE).await;
    match answer.and_then(|answer| answer.json()) {
        Ok(document) if document.get("kind").is_some_and(|kind| kind == "Table") => {
            Check::ok("tables", "the server says which columns people see")
        }
        Ok(_) => Check::warning("tables", "the server has none: names and ages are shown")
            .with_remedy("none is needed; other columns: -o custom-columns=..."),
        Err(why) => Check::warning("tables", why).with_remedy("look at the server's health"),
    }
}

/// A watch in which nothing happens: is it still there when its time is over?
async fn idle(access: &Access, path: &str) -> Check {
    let uri = format!("{path}?watch=true&timeoutSeconds={}&{NOTHING}", SILENCE.as_secs());
    let started = Instant::now();
    let opening = ask::open(&access.client, Method::GET, &uri, METADATA, None);
    let mut body = match timeout(access.request_timeout, opening).await {
        Ok(Ok(answer)) if answer.status().is_success() => answer.into_body(),
        Ok(Ok(answer)) => return Check::failed("idle", format!("the watch is answered with {}", answer.status())),
        Ok(Err(why)) => return Check::failed("idle", why),
        Err(_) => return Check::failed("idle", "the watch is not answered in time"),
    };
    let waiting = async {
        while let Some(frame) = body.frame().await {
            frame.map_err(|error| words(&error))?;
        }
        Ok::<_, String>(())
    };
    let ended = timeout(SILENCE + Duration::from_secs(30), waiting).await;
    let lasted = started.elapsed();
    let cut = format!("a silent connection was cut after {}", seconds(lasted));
    let remedy =
        "raise the idle timeout of the load balancer or proxy before the server; watches are resumed meanwhile";
    match ended {
        Ok(Ok(())) if lasted + Duration::from_secs(5) < SILENCE => Check::warning("idle", cut).with_remedy(remedy),
        Ok(Ok(())) => Check::ok("idle", format!("a connection may be silent for {}", seconds(lasted))),
        Ok(Err(why)) => Check::warning("idle", format!("{cut}: {why}")).with_remedy(remedy),
        Err(_) => Check::warning("idle", "the end of a silent watch never came: something drops connections unseen")
            .with_remedy(remedy),
    }
}
