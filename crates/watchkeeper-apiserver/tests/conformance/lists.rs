//! Lists: which state they show, and page by page.

use serde_json::{Value, json};
use tokio::time::Instant;
use watchkeeper_apiserver::ApiServer;

use crate::support::*;

/// `count` config maps, named so that their order is that of their numbers.
async fn fill(server: &ApiServer, count: usize) {
    for i in 0..count {
        server
            .create(json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": format!("m-{i:05}")}}))
            .expect("a map");
    }
}

fn continue_token(list: &Value) -> String {
    text(&list["metadata"]["continue"])
}

#[tokio::test(start_paused = true)]
async fn c01_list_version_is_that_of_the_snapshot() {
    let server = server();
    server.map("a").await;
    let last = server.map("b").await;
    assert_eq!(server.get(MAPS).await.revision(), revision(&last));
    // One counter for everything: a write of another kind counts.
    let node = server.post("/api/v1/nodes", json!({"metadata": {"name": "n1"}})).await.ok();
    assert_eq!(server.get(MAPS).await.revision(), revision(&node));
}

#[tokio::test(start_paused = true)]
async fn c02_items_are_sorted_by_namespace_and_name() {
    let server = builder().namespaces(watchkeeper_apiserver::Namespaces::OnDemand).build();
    for (namespace, name) in [("b", "a"), ("a", "c"), ("a", "b"), ("a-b", "x"), ("b", "B".to_lowercase().as_str())] {
        server.post(&format!("/api/v1/namespaces/{namespace}/configmaps"), config_map(name)).await.ok();
    }
    let list = server.get("/api/v1/configmaps").await.ok();
    let keys: Vec<String> = list["items"]
        .as_array()
        .expect("items")
        .iter()
        .map(|item| format!("{}/{}", text(&item["metadata"]["namespace"]), text(&item["metadata"]["name"])))
        .collect();
    // As texts, as in etcd: a dash sorts before the slash.
    assert_eq!(keys, ["a-b/x", "a/b", "a/c", "b/a", "b/b"]);
}

#[tokio::test(start_paused = true)]
async fn c03_an_empty_list_has_items_and_a_version() {
    let server = server();
    let reply = server.get(MAPS).await;
    assert_eq!(
        reply.text(),
        "{\"kind\":\"ConfigMapList\",\"apiVersion\":\"v1\",\"metadata\":{\"resourceVersion\":\"5\"},\"items\":[]}\n"
    );
}

#[tokio::test(start_paused = true)]
async fn c04_pages_cover_the_list_at_one_version() {
    let server = server();
    fill(&server, 1253).await;
    let mut path = format!("{MAPS}?limit=500");
    let mut pages = Vec::new();
    let mut names = Vec::new();
    loop {
        let reply = server.get(&path).await;
        let list = reply.ok();
        pages.push((reply.names().len(), revision(&list), list["metadata"]["remainingItemCount"].as_u64()));
        names.extend(reply.names());
        match continue_token(&list).as_str() {
            "" => break,
            token => path = format!("{MAPS}?limit=500&continue={token}"),
        }
    }
    let at = server.storage().revision();
    assert_eq!(pages, [(500, at, Some(753)), (500, at, Some(253)), (253, at, None)]);
    assert_eq!(names, (0..1253).map(|i| format!("m-{i:05}")).collect::<Vec<_>>());
}

#[tokio::test(start_paused = true)]
async fn c05_what_is_written_between_pages_is_not_shown() {
    let server = server();
    fill(&server, 4).await;
    let first = server.get(&format!("{MAPS}?limit=2")).await.ok();
    server.map("m-00002-new").await;
    server.delete(&format!("{MAPS}/m-00003")).await.ok();
    server.merge(&format!("{MAPS}/m-00002"), json!({"data": {"a": "b"}})).await.ok();
    let second = server.get(&format!("{MAPS}?limit=2&continue={}", continue_token(&first))).await;
    assert_eq!(second.names(), ["m-00002", "m-00003"]);
    assert_eq!(second.revision(), revision(&first));
    assert_eq!(second.ok()["items"][0]["data"], Value::Null);
    assert_eq!(server.get(MAPS).await.names(), ["m-00000", "m-00001", "m-00002", "m-00002-new"]);
}

#[tokio::test(start_paused = true)]
async fn c06_a_token_of_a_forgotten_list_expires_with_one_that_goes_on() {
    let server = server();
    fill(&server, 4).await;
    let first = server.get(&format!("{MAPS}?limit=2")).await.ok();
    server.map("z").await;
    server.compact(server.storage().revision());
    let reply = server.get(&format!("{MAPS}?limit=2&continue={}", continue_token(&first))).await;
    let (code, reason, message) = reply.failure();
    assert_eq!((code, reason.as_str()), (410, "Expired"));
    assert!(message.starts_with("The provided continue parameter is too old to display a consistent list result."));
    assert!(!continue_token(&reply.json()).is_empty());
}

#[tokio::test(start_paused = true)]
async fn c07_the_inconsistent_token_goes_on_at_the_same_key_with_the_present() {
    let server = server();
    fill(&server, 4).await;
    let first = server.get(&format!("{MAPS}?limit=2")).await.ok();
    let latest = server.map("m-00002-new").await;
    server.compact(revision(&latest));
    let expired = server.get(&format!("{MAPS}?limit=2&continue={}", continue_token(&first))).await;
    let token = continue_token(&expired.json());
    let rest = server.get(&format!("{MAPS}?limit=2&continue={token}")).await;
    assert_eq!(rest.names(), ["m-00002", "m-00002-new"]);
    assert_eq!(rest.revision(), revision(&latest));
    // From here on the list is consistent again.
    let last = server.get(&format!("{MAPS}?limit=2&continue={}", continue_token(&rest.ok()))).await;
    assert_eq!(last.names(), ["m-00003"]);
}

#[tokio::test(start_paused = true)]
async fn c08_tokens_that_were_tampered_with_are_refused() {
    let server = server();
    fill(&server, 4).await;
    let token = continue_token(&server.get(&format!("{MAPS}?limit=2")).await.ok());
    let mut tampered = token.clone();
    tampered.replace_range(4..8, "AAAA");
    for bad in ["@@@", "abc", &tampered] {
        let (code, reason, message) = server.get(&format!("{MAPS}?limit=2&continue={bad}")).await.failure();
        assert_eq!((code, reason.as_str()), (400, "BadRequest"));
        assert!(message.starts_with("invalid continue token: continue key is not valid"), "{message}");
    }
    let both = server.get(&format!("{MAPS}?continue={token}&resourceVersion=5")).await.failure();
    assert_eq!(both.2, "specifying resource version is not allowed when using continue");
}

#[tokio::test(start_paused = true)]
async fn c09_version_zero_ignores_the_limit() {
    let server = server();
    fill(&server, 4).await;
    let reply = server.get(&format!("{MAPS}?limit=2&resourceVersion=0")).await;
    assert_eq!(reply.names().len(), 4);
    assert_eq!(continue_token(&reply.ok()), "");
}

#[tokio::test(start_paused = true)]
async fn c10_a_limit_with_a_version_means_that_very_version() {
    let server = server();
    let first = server.map("a").await;
    server.map("b").await;
    let at = revision(&first);
    let legacy = server.get(&format!("{MAPS}?limit=10&resourceVersion={at}")).await;
    assert_eq!((legacy.names(), legacy.revision()), (vec!["a".to_owned()], at));
    let exact = server.get(&format!("{MAPS}?resourceVersion={at}&resourceVersionMatch=Exact")).await;
    assert_eq!((exact.names(), exact.revision()), (vec!["a".to_owned()], at));
    let not_older =
        server.get(&format!("{MAPS}?limit=10&resourceVersion={at}&resourceVersionMatch=NotOlderThan")).await;
    assert_eq!(not_older.names(), ["a", "b"]);
    assert_eq!(server.get(&format!("{MAPS}?resourceVersion={at}")).await.names(), ["a", "b"]);
}

#[tokio::test(start_paused = true)]
async fn c11_a_version_of_the_future_times_out_after_three_seconds() {
    let server = server();
    for path in [
        format!("{MAPS}?resourceVersion=1000"),
        format!("{MAPS}?resourceVersion=1000&resourceVersionMatch=Exact"),
        format!("{MAPS}/a?resourceVersion=1000"),
    ] {
        let start = Instant::now();
        let reply = server.get(&path).await;
        assert_eq!(start.elapsed().as_secs(), 3, "{path}");
        let message = "Timeout: Too large resource version: 1000, current: 5".to_owned();
        assert_eq!(reply.failure(), (504, "Timeout".to_owned(), message));
        assert_eq!(reply.headers["retry-after"], "1");
        let details = json!({
            "causes": [{"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}],
            "retryAfterSeconds": 1,
        });
        assert_eq!(reply.json()["details"], details);
    }
    // A version that is reached in time is waited for.
    let waiting = tokio::spawn({
        let server = server.clone();
        async move { server.get(&format!("{MAPS}?resourceVersion=6")).await.names() }
    });
    tokio::time::sleep(seconds(1)).await;
    server.map("a").await;
    assert_eq!(waiting.await.expect("a list"), ["a"]);
}

#[tokio::test(start_paused = true)]
async fn c12_an_exact_version_that_was_compacted_is_gone() {
    let server = server();
    let first = server.map("a").await;
    let second = server.map("b").await;
    server.compact(revision(&second));
    let path = |at: u64| format!("{MAPS}?resourceVersion={at}&resourceVersionMatch=Exact");
    let gone = server.get(&path(revision(&first))).await.failure();
    assert_eq!(gone, (410, "Expired".to_owned(), "The resourceVersion for the provided list is too old.".to_owned()));
    assert_eq!(server.get(&path(revision(&second))).await.names(), ["a", "b"]);
}

#[tokio::test(start_paused = true)]
async fn lists_refuse_what_does_not_go_together() {
    let server = server();
    let expected = [
        (
            "resourceVersionMatch=Exact",
            "resourceVersionMatch: Forbidden: resourceVersionMatch is forbidden unless resourceVersion is provided",
        ),
        (
            "resourceVersionMatch=NotOlderThan",
            "resourceVersionMatch: Forbidden: resourceVersionMatch is forbidden unless resourceVersion is provided",
        ),
        (
            "resourceVersionMatch=Exact&resourceVersion=0",
            r#"resourceVersionMatch: Forbidden: resourceVersionMatch "exact" is forbidden for resourceVersion "0""#,
        ),
        (
            "resourceVersionMatch=foo&resourceVersion=1",
            r#"resourceVersionMatch: Unsupported value: "foo": supported values: "Exact", "NotOlderThan", """#,
        ),
        (
            "continue=abc&resourceVersionMatch=NotOlderThan&resourceVersion=5",
            "resourceVersionMatch: Forbidden: resourceVersionMatch is forbidden when continue is provided",
        ),
        ("sendInitialEvents=true", "sendInitialEvents: Forbidden: sendInitialEvents is forbidden for list"),
    ];
    for (query, text) in expected {
        let reply = server.get(&format!("{MAPS}?{query}")).await;
        let message = format!("ListOptions.meta.k8s.io \"\" is invalid: {text}");
        assert_eq!(reply.failure(), (422, "Invalid".to_owned(), message), "{query}");
        assert_eq!(reply.json()["details"]["group"], "meta.k8s.io");
    }
    for (query, text) in [
        (
            "resourceVersion=abc",
            r#"invalid resource version: resourceVersion: Invalid value: "abc": strconv.ParseUint: parsing "abc": invalid syntax"#,
        ),
        ("limit=abc", r#"strconv.ParseInt: parsing "abc": invalid syntax"#),
    ] {
        let failure = server.get(&format!("{MAPS}?{query}")).await.failure();
        assert_eq!(failure, (400, "BadRequest".to_owned(), text.to_owned()));
    }
}
