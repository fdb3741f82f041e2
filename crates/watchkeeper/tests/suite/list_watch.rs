//! What is asked of the server, and what its refusals become.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};

use http::{Response, StatusCode};
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{Node, Pod};
use k8s_openapi::api::rbac::v1::ClusterRole;
use kube_client::Client;
use watchkeeper::{
    Error, ErrorKind, ListOptions, ListWatch, ListerWatcher as _, ResourceVersion, Scope, Scripted, Selector,
    StreamingLists, VersionMatch,
};

use crate::support::*;

/// The requests that were sent: path and query, and two headers.
type Sent = Arc<Mutex<Vec<[String; 3]>>>;

/// A client that notes what it is asked, and is answered with nothing of use.
fn noting() -> (Client, Sent) {
    let sent = Sent::default();
    let note = sent.clone();
    let client = client(move |request| {
        assert_eq!(request.method(), http::Method::GET);
        let header = |name: &str| request.headers()[name].to_str().expect("text").to_owned();
        note.lock().unwrap().push([request.uri().to_string(), header("accept"), header("accept-encoding")]);
        ok("{}")
    });
    (client, sent)
}

/// The address of a list and of a watch with these options.
async fn addresses(source: impl FnOnce(Client) -> ListWatch, options: ListOptions) -> [String; 2] {
    let (client, sent) = noting();
    let source = source(client);
    source.list(options.clone()).await.map(drop).unwrap();
    source.watch(options).await.map(drop).unwrap();
    let sent = sent.lock().unwrap();
    [sent[0][0].clone(), sent[1][0].clone()]
}

/// The error that an answer becomes, the same for lists and watches.
async fn refusal(answer: impl Fn() -> Response<TestBody> + Clone + Send + 'static) -> Error {
    let source = ListWatch::of::<Pod>(client(move |_| answer())).namespace("web");
    let list = source.list(ListOptions::default()).await.map(drop).unwrap_err();
    let watch = source.watch(ListOptions::default()).await.map(drop).unwrap_err();
    assert_eq!(list.to_string().strip_prefix("list "), watch.to_string().strip_prefix("watch "));
    list
}

/// A refusal with a Status as kube-apiserver writes it.
fn status(code: u16, reason: &str, message: &str, details: &str) -> Response<TestBody> {
    let mut answer = ok(format!(
        r#"{{"kind":"Status","apiVersion":"v1","metadata":{{}},"status":"Failure","message":"{message}","reason":"{reason}","details":{{{details}}},"code":{code}}}"#
    ));
    *answer.status_mut() = StatusCode::from_u16(code).expect("a code");
    answer
}

async fn refused_with(code: u16, reason: &'static str, message: &'static str, details: &'static str) -> Error {
    refusal(move || status(code, reason, message, details)).await
}

async fn retry_after(header: String) -> Option<Duration> {
    let error = refusal(move || {
        let mut answer = status(429, "TooManyRequests", "busy", "");
        answer.headers_mut().insert("retry-after", header.parse().expect("a header"));
        answer
    });
    error.await.retry_after()
}

#[tokio::test]
async fn the_address_follows_group_version_plural_and_scope() {
    let plain = ListOptions::default;
    let at = async |source: fn(Client) -> ListWatch| addresses(source, plain()).await[0].clone();
    assert_eq!(at(ListWatch::of::<Pod>).await, "/api/v1/pods");
    assert_eq!(at(ListWatch::of::<Deployment>).await, "/apis/apps/v1/deployments");
    assert_eq!(at(ListWatch::of::<ClusterRole>).await, "/apis/rbac.authorization.k8s.io/v1/clusterroles");
    assert_eq!(at(|client| ListWatch::of::<Pod>(client).namespace("web")).await, "/api/v1/namespaces/web/pods");
    assert_eq!(at(|client| ListWatch::by_name(client, "", "v1", "secrets")).await, "/api/v1/secrets");
    assert_eq!(
        at(|client| ListWatch::by_name(client, "cert-manager.io", "v1", "certificates").namespace("a.b-c")).await,
        "/apis/cert-manager.io/v1/namespaces/a.b-c/certificates"
    );
}

#[tokio::test]
async fn a_watch_is_the_same_address_with_watch_true() {
    let addresses = addresses(ListWatch::of::<Node>, ListOptions::default()).await;
    assert_eq!(addresses, ["/api/v1/nodes", "/api/v1/nodes?watch=true"]);
}

#[tokio::test]
async fn every_option_is_sent_and_version_zero_together_with_a_limit() {
    let first = ListOptions { resource_version: ResourceVersion::any(), limit: Some(500), ..ListOptions::default() };
    let [list, _] = addresses(ListWatch::of::<Pod>, first).await;
    assert_eq!(list, "/api/v1/pods?resourceVersion=0&limit=500");
    let all = ListOptions {
        label_selector: Some("app in (a,b),tier!=cache".into()),
        field_selector: Some("spec.nodeName=n/1".into()),
        resource_version: "7".into(),
        resource_version_match: Some(VersionMatch::NotOlderThan),
        limit: None,
        continue_token: Some("eyJ2Ijo+/w==".into()),
        timeout: Some(Duration::from_millis(299_900)),
        allow_watch_bookmarks: true,
        send_initial_events: Some(true),
        extra: vec![("shardSelector".into(), "a&b=c d".into())],
    };
    let [_, watch] = addresses(ListWatch::of::<Pod>, all).await;
    assert_eq!(
        watch,
        "/api/v1/pods?watch=true&labelSelector=app+in+%28a%2Cb%29%2Ctier%21%3Dcache&fieldSelector=spec.nodeName%3Dn%2F1\
         &resourceVersion=7&resourceVersionMatch=NotOlderThan&continue=eyJ2Ijo%2B%2Fw%3D%3D&timeoutSeconds=299\
         &allowWatchBookmarks=true&sendInitialEvents=true&shardSelector=a%26b%3Dc+d"
    );
}

#[tokio::test]
async fn selectors_of_the_source_go_with_every_request() {
    let source = |client| ListWatch::of::<Pod>(client).labels("app=web").fields("status.phase=Running");
    let [list, watch] = addresses(source, ListOptions::default()).await;
    assert_eq!(list, "/api/v1/pods?labelSelector=app%3Dweb&fieldSelector=status.phase%3DRunning");
    assert_eq!(watch, "/api/v1/pods?watch=true&labelSelector=app%3Dweb&fieldSelector=status.phase%3DRunning");
}

#[tokio::test]
async fn a_selector_goes_into_requests_as_its_text() {
    let selector = Selector::parse("app == web, !canary").expect("a selector");
    let [list, _] = addresses(|client| ListWatch::of::<Pod>(client).labels(&selector), ListOptions::default()).await;
    assert_eq!(list, "/api/v1/pods?labelSelector=app%3Dweb%2C%21canary");
}

#[tokio::test]
async fn a_tweak_has_the_last_word() {
    let source = |client| {
        ListWatch::of::<Pod>(client).labels("app=web").tweak(|options| {
            options.label_selector.as_mut().expect("the source's selector").push_str(",tier=front");
            options.resource_version = ResourceVersion::unset();
            options.extra.push(("pretty".into(), "false".into()));
        })
    };
    let [list, _] = addresses(source, ListOptions { resource_version: "7".into(), ..ListOptions::default() }).await;
    assert_eq!(list, "/api/v1/pods?labelSelector=app%3Dweb%2Ctier%3Dfront&pretty=false");
}

#[tokio::test]
async fn objects_are_asked_for_as_json_and_uncompressed() {
    let (client, sent) = noting();
    let source = ListWatch::of::<Pod>(client);
    source.list(ListOptions::default()).await.map(drop).unwrap();
    source.watch(ListOptions::default()).await.map(drop).unwrap();
    for [_, accept, encoding] in &*sent.lock().unwrap() {
        assert_eq!((accept.as_str(), encoding.as_str()), ("application/json", "identity"));
    }
}

#[tokio::test]
async fn metadata_alone_is_asked_for_by_its_media_type() {
    let (client, sent) = noting();
    let source = ListWatch::of::<Pod>(client).metadata_only();
    source.list(ListOptions::default()).await.map(drop).unwrap();
    source.watch(ListOptions::default()).await.map(drop).unwrap();
    let sent = sent.lock().unwrap();
    assert_eq!(sent[0][..2], ["/api/v1/pods", "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"]);
    assert_eq!(
        sent[1][..2],
        ["/api/v1/pods?watch=true", "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"]
    );
}

#[tokio::test]
async fn several_namespaces_are_a_source_each() {
    let (client, sent) = noting();
    let namespaces = Scope::Namespaces(BTreeSet::from(["b".to_owned(), "a".to_owned()]));
    let source = ListWatch::of::<Pod>(client.clone()).labels("app=web").scope(namespaces);
    let error = source.list(ListOptions::default()).await.map(drop).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Config);
    assert!(error.to_string().starts_with("list pods in 2 namespaces: ") && error.to_string().contains("partitions"));
    for partition in source.partitions() {
        partition.list(ListOptions::default()).await.map(drop).unwrap();
    }
    let sent: Vec<String> = sent.lock().unwrap().iter().map(|[address, ..]| address.clone()).collect();
    let of = |namespace: &str| format!("/api/v1/namespaces/{namespace}/pods?labelSelector=app%3Dweb");
    assert_eq!(sent, [of("a"), of("b")]);
    assert_eq!(ListWatch::of::<Pod>(client).namespace("a").partitions().len(), 1);
}

#[tokio::test]
async fn names_that_would_change_the_path_are_refused() {
    for name in ["", ".", "..", "a/b", "../../secrets", "a?watch=true", "a#b", "a%2fb", "a b", "ä", "a\r\nX: y", "a\0"]
    {
        let (client, sent) = noting();
        let source =
            |group: &str, version: &str, plural: &str| ListWatch::by_name(client.clone(), group, version, plural);
        let mut sources =
            vec![source("apps", name, "pods"), source("apps", "v1", name), source("", "v1", "pods").namespace(name)];
        if !name.is_empty() {
            sources.push(source(name, "v1", "pods"));
        }
        for source in sources {
            let error = source.list(ListOptions::default()).await.map(drop).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Config, "{name:?}: {error}");
            assert_eq!(source.watch(ListOptions::default()).await.map(drop).unwrap_err().kind(), ErrorKind::Config);
        }
        assert!(sent.lock().unwrap().is_empty(), "nothing was sent");
    }
}

#[tokio::test]
async fn every_refusal_has_its_predicate_and_names_request_and_remedy() {
    let predicates = |error: &Error| {
        [
            (error.is_invalid_request(), "invalid request"),
            (error.is_unauthorized(), "unauthorized"),
            (error.is_forbidden(), "forbidden"),
            (error.is_not_found(), "not found"),
            (error.is_expired(), "expired"),
            (error.is_too_many_requests(), "too many requests"),
            (error.is_internal(), "internal"),
            (error.is_too_large_version(), "too large version"),
            (error.is_unreachable() || error.is_disconnect(), "no answer"),
        ]
    };
    for (code, reason, predicate, retryable, remedy) in [
        (400, "BadRequest", "invalid request", false, ""),
        (401, "Unauthorized", "unauthorized", false, "credentials"),
        (403, "Forbidden", "forbidden", false, "kubectl auth can-i"),
        (404, "NotFound", "not found", false, "kubectl api-resources"),
        (410, "Expired", "expired", true, ""),
        (410, "Gone", "expired", true, ""),
        (422, "Invalid", "invalid request", false, ""),
        (429, "TooManyRequests", "too many requests", true, ""),
        (500, "InternalError", "internal", true, ""),
    ] {
        let with_status = refused_with(code, reason, "so it is", "").await;
        let bare = refusal(move || {
            let mut answer = ok("<html>no</html>");
            *answer.status_mut() = StatusCode::from_u16(code).expect("a code");
            answer
        });
        for error in [&with_status, &bare.await] {
            let text = error.to_string();
            assert_eq!((error.kind(), error.code()), (ErrorKind::Api, Some(code)));
            assert!(text.starts_with(&format!("list pods in namespace web: {code} ")), "{text}");
            assert!(text.contains(remedy), "{text}");
            assert_eq!(error.is_retryable(), retryable, "{text}");
            let holds = predicates(error).into_iter().filter_map(|(holds, name)| holds.then_some(name));
            assert_eq!(holds.collect::<Vec<_>>(), [predicate], "{text}");
        }
        assert_eq!(with_status.reason(), Some(reason));
        assert!(with_status.to_string().contains(&format!("{reason}: so it is")));
    }
}

#[tokio::test]
async fn a_server_that_is_not_ready_is_worth_another_try() {
    let error = refused_with(503, "ServiceUnavailable", "starting", "").await;
    assert!(error.is_retryable() && !error.is_internal());
    assert!(refused_with(504, "Timeout", "slow", "").await.is_retryable());
}

#[tokio::test]
async fn with_a_reason_that_nobody_knows_the_code_decides() {
    assert!(refused_with(429, "Throttled", "busy", "").await.is_too_many_requests());
    assert!(refused_with(410, "Compacted", "gone", "").await.is_expired());
    let error = refused_with(500, "Timeout", "slow", "").await;
    assert!(!error.is_internal(), "a reason that is known says more than the code");
}

#[tokio::test]
async fn a_version_that_is_too_large_is_recognised_in_all_three_forms() {
    const TEXT: &str = "Too large resource version";
    let cause = r#""causes":[{"reason":"ResourceVersionTooLarge","message":"Too large resource version"}]"#;
    assert!(refused_with(504, "Timeout", "x", cause).await.is_too_large_version());
    let message = r#""causes":[{"message":"Too large resource version"}],"retryAfterSeconds":1"#;
    let error = refused_with(504, "Timeout", "x", message).await;
    assert!(error.is_too_large_version());
    assert_eq!(error.retry_after(), Some(seconds(1)));
    assert!(refused_with(504, "Timeout", "Too large resource version: 9, current: 1", "").await.is_too_large_version());
    assert!(!refused_with(504, "Timeout", "x", r#""causes":[{"message":"other"}]"#).await.is_too_large_version());
    assert!(!refused_with(500, "InternalError", TEXT, "").await.is_too_large_version());
}

#[tokio::test]
async fn retry_after_is_read_in_seconds_and_as_a_date_and_is_at_most_a_minute() {
    assert_eq!(retry_after("7".into()).await, Some(seconds(7)));
    assert_eq!(retry_after("86400".into()).await, Some(seconds(60)));
    assert_eq!(retry_after("9".repeat(40)).await, Some(seconds(60)));
    assert_eq!(retry_after("0".into()).await, Some(seconds(0)));
    assert_eq!(retry_after("soon".into()).await, None);
    assert_eq!(retry_after("-1".into()).await, None);
    let date = |at: SystemTime| {
        let at = jiff::Timestamp::try_from(at).expect("a time");
        jiff::fmt::rfc2822::DateTimePrinter::new().timestamp_to_rfc9110_string(&at).expect("a date")
    };
    let now = SystemTime::now();
    let wait = retry_after(date(now + seconds(30))).await.expect("a wait");
    assert!(wait > seconds(20) && wait <= seconds(30), "{wait:?}");
    assert_eq!(retry_after(date(now + seconds(100_000))).await, Some(seconds(60)));
    assert_eq!(retry_after(date(now - seconds(10))).await, None);
}

#[tokio::test]
async fn the_wait_in_a_status_counts_where_there_is_no_header() {
    let error = refused_with(429, "TooManyRequests", "busy", r#""retryAfterSeconds":5"#).await;
    assert_eq!(error.retry_after(), Some(seconds(5)));
}

#[tokio::test]
async fn an_answer_that_is_no_status_is_not_quoted() {
    for body in ["<html>secret</html>", r#"{"message":"secret"}"#, r#"{"kind":"Secret","message":"secret"}"#, ""] {
        let error = refusal(move || {
            let mut answer = ok(body);
            *answer.status_mut() = StatusCode::BAD_GATEWAY;
            answer
        });
        let error = error.await;
        assert_eq!(error.to_string(), "list pods in namespace web: 502 Bad Gateway");
        assert!(error.is_retryable() && error.reason().is_none());
    }
}

#[tokio::test]
async fn a_refusal_is_read_up_to_its_end_or_to_a_bound() {
    let (body, taken) = endless_body("{\"kind\":\"Status\"".into(), " ".repeat(1_000).into());
    let body = Mutex::new(Some(body));
    let body = Arc::new(body);
    let source = ListWatch::of::<Pod>(client(move |_| {
        let mut answer = Response::new(body.lock().unwrap().take().expect("one request"));
        *answer.status_mut() = StatusCode::FORBIDDEN;
        answer
    }));
    assert!(source.list(ListOptions::default()).await.map(drop).unwrap_err().is_forbidden());
    assert!(taken.load(std::sync::atomic::Ordering::Relaxed) < 100_000);
}

#[tokio::test]
async fn a_server_that_is_not_there_is_told_from_one_that_refuses() {
    let service = tower::service_fn(|_: http::Request<kube_client::client::Body>| async {
        Err::<Response<TestBody>, _>(std::io::Error::from(std::io::ErrorKind::ConnectionRefused))
    });
    let source = ListWatch::of::<Pod>(Client::new(service, "default"));
    let error = source.list(ListOptions::default()).await.map(drop).unwrap_err();
    assert!(error.is_unreachable() && error.is_retryable());
    assert_eq!((error.kind(), error.code()), (ErrorKind::Connect, None));
    let text = error.to_string();
    assert!(text.starts_with("list pods: ") && text.ends_with("check the server's address and that it is running"));
}

#[tokio::test]
async fn every_source_over_http_may_be_asked_for_streaming_lists() {
    let (client, _) = noting();
    let source = ListWatch::of::<Pod>(client);
    assert!(source.streaming_lists().is_some_and(StreamingLists::are_allowed));
}

#[tokio::test]
async fn a_source_that_knows_no_streaming_lists_says_so() {
    assert!(Scripted::new().streaming_lists().is_none());
    assert!(Arc::new(Scripted::new()).streaming_lists().is_none(), "behind a pointer too");
}

#[tokio::test(start_paused = true)]
async fn what_one_source_learns_of_streaming_lists_its_clones_and_partners_know() {
    let (client, _) = noting();
    let source = ListWatch::of::<Pod>(client.clone());
    let known = source.streaming_lists().expect("it has them").clone();
    let partner = ListWatch::of::<Pod>(client).namespace("a").share_streaming_lists(&known);
    known.pause_for(seconds(3600));
    for source in [&source, &source.clone(), &partner] {
        assert!(source.streaming_lists().is_some_and(|lists| !lists.are_allowed()));
    }
    pass(seconds(3600)).await;
    assert!(partner.streaming_lists().is_some_and(StreamingLists::are_allowed), "the pause has an end");
}
