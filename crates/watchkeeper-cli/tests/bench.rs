//! `watchkeeper bench`, run as people run it.
#![cfg(unix)]

mod support;

use serde_json::Value;
use support::{Cluster, Running, program, run};
use watchkeeper_apiserver::{Fault, Match};

#[test]
fn a_server_in_memory_is_measured_with_changes_that_are_made() {
    let few =
        ["bench", "--demo", "--objects", "200", "--events", "50", "--repeat", "2", "--handlers", "3", "-o", "json"];
    let ended = run(program(&few));
    let document: Value = serde_json::from_str(&ended.assert_code(0).stdout).expect("JSON");
    let runs = document["runs"].as_array().expect("runs");
    assert_eq!((runs.len(), &document["eventsMade"]), (2, &Value::from(50)));
    for run in runs {
        assert_eq!((&run["objects"], &run["eventsHeard"]), (&Value::from(200), &Value::from(50)), "{run}");
        let number = |name: &str| run[name].as_f64().unwrap_or_default();
        assert!(number("syncSeconds") > 0.0 && number("jsonBytes") > 200.0 * 4000.0, "{run}");
        assert!(
            number("latencyP99Seconds") >= number("latencyP50Seconds") && number("latencyP50Seconds") > 0.0,
            "{run}"
        );
        assert!(number("residentBytes") > number("residentBytesBefore"), "{run}");
    }
    // Progress is for terminals.
    assert_eq!(ended.stderr, "");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cluster_is_observed_and_not_changed() {
    let cluster = Cluster::start().await;
    for number in 0..20 {
        cluster.config_map(&format!("map-{number}"), "x");
    }
    let revision = cluster.server.storage().revision();
    let command = cluster.program(&["bench", "configmaps", "-A", "--for", "100ms", "--repeat", "1", "--keep", "raw"]);
    let ended = tokio::task::spawn_blocking(move || run(command)).await.expect("it runs");
    let text = &ended.assert_code(0).stdout;
    for needle in [
        "configmaps of watchkeeper, kept raw, with 1 handler; measured once",
        "objects          20,",
        "0 heard in 100 ms",
    ] {
        assert!(text.contains(needle), "no {needle:?} in\n{text}");
    }
    assert!(!text.contains("latency"), "nothing was changed, so that there is none: {text}");
    assert_eq!(cluster.server.storage().revision(), revision);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_measured_is_told() {
    let cluster = Cluster::start().await;
    for verb in ["list", "watch"] {
        cluster.server.faults().on(Match::verb(verb, "pods")).then(Fault::status(403, "Forbidden"));
    }
    let command = cluster.program(&["bench", "pods", "--repeat", "1"]);
    let ended = tokio::task::spawn_blocking(move || run(command)).await.expect("it runs");
    ended.assert_code(4);
    assert!(ended.stderr.contains("403") && ended.stdout.is_empty(), "{}", ended.stderr);

    let ended = run(program(&["bench"]));
    ended.assert_code(1);
    assert!(ended.stderr.contains("--demo"), "{}", ended.stderr);
    run(program(&["bench", "nodes", "--demo"])).assert_code(2);
    let command = cluster.program(&["bench", "podz"]);
    let ended = tokio::task::spawn_blocking(move || run(command)).await.expect("it runs");
    ended.assert_code(3);
}

#[tokio::test(flavor = "multi_thread")]
async fn ctrl_c_ends_it_and_the_process_that_it_measures() {
    let cluster = Cluster::start().await;
    let running = Running::start(cluster.program(&["bench", "pods", "--for", "10m", "--repeat", "1"]));
    let started = std::time::Instant::now();
    while cluster.server.storage().watches() == 0 {
        assert!(started.elapsed() < support::DEADLINE, "it does not begin");
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
    running.interrupt();
    running.end().assert_code(130);
    while cluster.server.storage().watches() > 0 {
        assert!(started.elapsed() < support::DEADLINE, "the measured process is still there");
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_measured_process_ends_when_the_one_that_started_it_is_killed() {
    let cluster = Cluster::start().await;
    let running = Running::start(cluster.program(&["bench", "pods", "--for", "10m", "--repeat", "1"]));
    let started = std::time::Instant::now();
    while cluster.server.storage().watches() == 0 {
        assert!(started.elapsed() < support::DEADLINE, "it does not begin");
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
    running.signal("KILL");
    while cluster.server.storage().watches() > 0 {
        assert!(started.elapsed() < support::DEADLINE, "the measured process is still there");
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn events_that_may_not_be_seen_are_not_no_events() {
    let cluster = Cluster::start().await;
    cluster.server.faults().on(Match::watch("pods")).then(Fault::status(403, "Forbidden"));
    let command = cluster.program(&["bench", "pods", "--for", "1s", "--repeat", "1"]);
    let ended = tokio::task::spawn_blocking(move || run(command)).await.expect("it runs");
    ended.assert_code(4);
    assert!(ended.stderr.contains("watch") && ended.stdout.is_empty(), "{}", ended.stderr);
}
