//! `watchkeeper watch`, as people run it: a process, a kubeconfig, a server on a port.

mod support;

use std::process::Stdio;
use std::time::Duration;

use serde_json::{Value, json};
use support::{Cluster, Running, run};
use watchkeeper_apiserver::{Fault, Match};

/// The point of it all: kubectl ends here silently, five times over.
#[tokio::test(flavor = "multi_thread")]
async fn it_lives_through_five_timeouts_a_restart_and_a_410_and_says_each_once() {
    let cluster = Cluster::start().await;
    cluster.config_map("c", "0");
    let time = Duration::from_millis(1100);
    cluster.server.faults().on(Match::watch("configmaps").times(5)).then(Fault::EndAfter { time });
    let watch = Running::start(cluster.program(&["watch", "configmaps", "-o", "jsonl"]));
    watch.stdout.wait_for(&["ADDED", "default/c"]);

    for round in 1..=5 {
        cluster.config_map("c", &round.to_string());
        watch.stdout.wait_for(&["MODIFIED", &format!(r#""value":"{round}""#)]);
        watch.stderr.wait_for_nth(round, &["configmaps: reconnected after", "the server ended the watch"]);
    }

    // A watch that is cut within its first second, with no event, would be listed again.
    cluster.config_map("c", "5+");
    watch.stdout.wait_for(&["MODIFIED", r#""value":"5+""#]);
    cluster.server.faults().restart(true);
    watch.stderr.wait_for(&["configmaps: reconnected after", "the connection broke"]);
    cluster.config_map("c", "6");
    watch.stdout.wait_for(&["MODIFIED", r#""value":"6""#]);

    // The next watch waits a second after the last was opened: what is written now is seen by the list alone.
    cluster.server.faults().on(Match::watch("configmaps").once()).then(Fault::expired());
    cluster.server.faults().cut();
    cluster.config_map("c", "7");
    watch.stderr.wait_for(&["reconnected after", "410", "listed", "objects again"]);
    watch.stdout.wait_for(&["MODIFIED", r#""value":"7""#]);
    cluster.config_map("c", "8");
    watch.stdout.wait_for(&["MODIFIED", r#""value":"8""#]);

    watch.interrupt();
    let ended = watch.end();
    ended.assert_code(130);
    let changes: Vec<Value> =
        ended.stdout.lines().map(|line| serde_json::from_str(line).expect("it is JSON")).collect();
    let values: Vec<&str> = changes.iter().filter_map(|change| change["object"]["data"]["value"].as_str()).collect();
    assert_eq!(
        values,
        ["0", "1", "2", "3", "4", "5", "5+", "6", "7", "8"],
        "each change once, in order, and none lost"
    );
    assert_eq!(ended.stderr.matches("reconnected").count(), 7, "{}", ended.stderr);
    assert!(ended.stderr.contains("10 changes in") && ended.stderr.contains("7 reconnects"), "{}", ended.stderr);
}

#[tokio::test(flavor = "multi_thread")]
async fn rows_have_the_time_the_kind_of_change_and_the_servers_columns() {
    let cluster = Cluster::start().await;
    cluster.pod("shop", "web-0", "Running");
    let watch = Running::start(cluster.program(&["watch", "po", "-A"]));
    watch.stdout.wait_for(&["ADDED", "shop", "web-0", "Running"]);
    cluster.pod("bank", "ledger-0", "Pending");
    watch.stdout.wait_for(&["ADDED", "bank", "ledger-0", "Pending"]);
    cluster.pod("bank", "ledger-0", "Running");
    watch.stdout.wait_for(&["MODIFIED", "ledger-0", "Running"]);
    cluster.remove("", "pods", "bank/ledger-0");
    watch.stdout.wait_for(&["DELETED", "ledger-0"]);
    watch.interrupt();
    let ended = watch.end();
    ended.assert_code(130);
    let header: Vec<&str> = ended.stdout.lines().next().unwrap_or_default().split_whitespace().collect();
    assert_eq!(header, ["TIME", "EVENT", "NAMESPACE", "NAME", "READY", "STATUS", "RESTARTS", "AGE"]);
    assert_eq!(ended.stdout.matches("NAMESPACE").count(), 1, "one header");
    assert!(!ended.stdout.contains('\x1b') && !ended.stderr.contains('\x1b'), "no colours into a pipe");
    let first = ended.stdout.lines().nth(1).unwrap_or_default();
    assert!(first.split(':').count() >= 3 && first.as_bytes()[2] == b':', "it begins with a time: {first}");
}

#[tokio::test(flavor = "multi_thread")]
async fn several_kinds_come_together_and_one_that_is_forbidden_does_not_hide_the_others() {
    let cluster = Cluster::start().await;
    cluster.config_map("c", "1");
    cluster.server.faults().on(Match::verb("list", "secrets")).then(Fault::status(403, "Forbidden"));
    cluster.server.faults().on(Match::watch("secrets")).then(Fault::status(403, "Forbidden"));
    let watch = Running::start(cluster.program(&["watch", "cm,secrets,deploy"]));
    watch.stdout.wait_for(&["ADDED", "configmap/c"]);
    watch.stderr.wait_for(&["error", "secrets"]);
    cluster.put(json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web", "namespace": "default"},
        "spec": {"replicas": 2},
    }));
    watch.stdout.wait_for(&["ADDED", "deployment.apps/web"]);
    watch.interrupt();
    watch.end().assert_code(130);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_waited_for_ends_it() {
    let cluster = Cluster::start().await;
    cluster.pod("default", "web-0", "Pending");
    let watch = Running::start(cluster.program(&["watch", "pod/web-0", "--until", "condition=Ready"]));
    watch.stdout.wait_for(&["ADDED", "web-0", "Pending"]);
    cluster.pod("default", "web-0", "Running");
    watch.end().assert_code(0);

    let watch = Running::start(cluster.program(&["watch", "pod", "web-0", "--until", "delete"]));
    watch.stdout.wait_for(&["ADDED", "web-0"]);
    cluster.remove("", "pods", "default/web-0");
    watch.end().assert_code(0);

    let ended = run(cluster.program(&["watch", "pods", "--until", "create", "--timeout", "500ms"]));
    ended.assert_code(5);
    assert!(ended.stderr.contains("did not happen within 500ms"), "{}", ended.stderr);
    run(cluster.program(&["watch", "pods", "--timeout", "300ms"])).assert_code(0);
    run(cluster.program(&["watch", "pods", "--exit-after-sync"])).assert_code(0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reader_that_leaves_ends_it_quietly() {
    let cluster = Cluster::start().await;
    cluster.config_map("c", "1");
    let mut command = cluster.program(&["watch", "cm"]);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it starts");
    drop(child.stdout.take());
    for round in 0..200 {
        cluster.config_map("c", &round.to_string());
        if child.try_wait().expect("it is our child").is_some() {
            break;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    let output = child.wait_with_output().expect("it ended");
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{stderr}");
    assert!(!stderr.contains("error") && !stderr.contains("panic"), "{stderr}");
}

#[tokio::test(flavor = "multi_thread")]
async fn errors_say_what_why_and_what_to_try() {
    let cluster = Cluster::start().await;
    for (arguments, code, words) in [
        (&["watch", "podz"][..], 3, &["has no kind \"podz\"", "did you mean pods?"][..]),
        (&["watch", "pods", "-l", "a in b"], 2, &["is no label selector", "try:"]),
        (&["watch", "pods", "-o", "xml"], 2, &["no output format", "jsonl"]),
        (&["watch", "pods", "--until", "soon"], 2, &["is nothing to wait for", "condition=Ready"]),
        (&["watch", "pods", "--context", "nope"], 1, &["has no context \"nope\"", "try:"]),
        (&["watch"], 2, &["KIND"]),
        (&["get", "pod", "nope"], 3, &["there is no pods \"nope\" in namespace default", "-A"]),
        (&["get", "pods", "-o", "diff"], 2, &["watchkeeper watch"]),
        (&["get", "pods", "--index", "spec"], 2, &["is no FIELD=VALUE"]),
        (&["get", "pods", "--field-selector", "a.b=c"], 1, &["field label not supported: a.b"]),
    ] {
        let ended = run(cluster.program(arguments));
        ended.assert_code(code);
        assert!(ended.stdout.is_empty(), "{arguments:?} wrote to stdout: {}", ended.stdout);
        for word in words {
            assert!(ended.stderr.contains(word), "{arguments:?}: no {word:?} in\n{}", ended.stderr);
        }
    }
    let ended = run(support::program(&["watch", "pods"]));
    ended.assert_code(1);
    assert!(ended.stderr.contains("there is no cluster") && ended.stderr.contains("--demo"), "{}", ended.stderr);
}

#[tokio::test(flavor = "multi_thread")]
async fn who_is_not_allowed_is_told_so_with_a_code_of_its_own() {
    let cluster = Cluster::start().await;
    cluster.server.faults().on(Match::verb("list", "pods")).then(Fault::status(403, "Forbidden"));
    cluster.server.faults().on(Match::watch("pods")).then(Fault::status(403, "Forbidden"));
    let ended = run(cluster.program(&["watch", "pods"]));
    ended.assert_code(4);
    assert!(ended.stderr.contains("watchkeeper doctor"), "{}", ended.stderr);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_diff_shows_the_fields_and_nothing_else() {
    let cluster = Cluster::start().await;
    cluster.config_map("c", "old");
    let watch = Running::start(cluster.program(&["watch", "cm/c", "-o", "diff"]));
    watch.stdout.wait_for(&["ADDED", "c"]);
    cluster.config_map("c", "new");
    watch.stdout.wait_for(&["data.value", "old", "new"]);
    watch.interrupt();
    let ended = watch.end();
    assert!(!ended.stdout.contains("resourceVersion"), "{}", ended.stdout);
}

#[tokio::test(flavor = "multi_thread")]
async fn secrets_are_masked_and_hostile_names_are_harmless() {
    let cluster = Cluster::start().await;
    cluster.put(json!({
        "apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s", "namespace": "default",
            "annotations": {"note": "\u{1b}[31mred\u{1b}[0m"}},
        "data": {"password": "aHVudGVyMg=="},
    }));
    for format in ["json", "yaml", "jsonpath={.data.password}", "custom-columns=P:.data.password"] {
        let ended = run(cluster.program(&["get", "secret", "s", "-o", format]));
        ended.assert_code(0);
        assert!(!ended.stdout.contains("aHVudGVyMg"), "{format}: {}", ended.stdout);
        let ended = run(cluster.program(&["get", "secret", "s", "-o", format, "--show-secrets"]));
        assert!(ended.stdout.contains("aHVudGVyMg"), "{format}: {}", ended.stdout);
    }
    let ended = run(cluster.program(&["get", "secrets", "-o", "custom-columns=N:.metadata.annotations.note"]));
    assert!(!ended.stdout.contains('\x1b') && ended.stdout.contains("^[[31mred"), "{}", ended.stdout);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_index_finds_what_a_field_says() {
    let cluster = Cluster::start().await;
    cluster.pod("shop", "web-0", "Running");
    cluster.pod("bank", "ledger-0", "Running");
    let ended = run(cluster.program(&["get", "pods", "-A", "-o", "name", "--index", ".metadata.namespace=shop"]));
    assert_eq!(ended.assert_code(0).stdout.trim(), "pod/web-0");
    let ended = run(cluster.program(&["get", "pods", "-A", "--index", ".spec.nodeName=node-1"]));
    assert_eq!(ended.stdout.lines().count(), 3, "{}", ended.stdout);
    let ended = run(cluster.program(&["get", "pods", "-A", "--index", ".spec.nodeName=node-2", "--exit-empty"]));
    ended.assert_code(3);
}
