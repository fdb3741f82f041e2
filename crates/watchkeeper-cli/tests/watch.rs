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

/// Nobody reads, and the output is full: the program can still be ended.
#[cfg(unix)]
#[tokio::test(flavor = "multi_thread")]
async fn a_pipe_that_nobody_reads_does_not_hold_up_the_end() {
    let cluster = Cluster::start().await;
    cluster.config_map("large", &"x".repeat(512 << 10));
    for arguments in [&["watch", "cm", "-o", "json"][..], &["get", "cm", "-o", "json"], &["get", "cm", "-o", "yaml"]] {
        let mut child =
            cluster.program(arguments).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().expect("it starts");
        tokio::time::sleep(Duration::from_secs(3)).await;
        assert_eq!(child.try_wait().expect("it is our child"), None, "{arguments:?}: it waits for a reader");
        signal(&child, "INT");
        assert_eq!(code_within(&mut child, Duration::from_secs(5)).await, Some(130), "{arguments:?}");
    }
    let arguments = ["watch", "cm", "-o", "json", "--until", "delete", "--timeout", "2s"];
    let mut child =
        cluster.program(&arguments).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().expect("it starts");
    assert_eq!(code_within(&mut child, Duration::from_secs(10)).await, Some(5));
}

#[cfg(unix)]
fn signal(child: &std::process::Child, name: &str) {
    let kill = std::process::Command::new("kill").arg(format!("-{name}")).arg(child.id().to_string()).status();
    assert!(kill.expect("there is kill").success());
}

/// How a program ended; none, if it had to be killed after so long.
#[cfg(unix)]
async fn code_within(child: &mut std::process::Child, time: Duration) -> Option<i32> {
    let deadline = tokio::time::Instant::now() + time;
    loop {
        if let Some(status) = child.try_wait().expect("it is our child") {
            return status.code();
        }
        if tokio::time::Instant::now() > deadline {
            let _ = child.kill();
            let _ = child.wait();
            return None;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

#[cfg(target_os = "linux")]
#[tokio::test(flavor = "multi_thread")]
async fn a_stderr_that_is_full_is_no_reason_to_end() {
    let cluster = Cluster::start().await;
    cluster.config_map("c", "1");
    let full = || std::fs::File::options().write(true).open("/dev/full").expect("Linux has it");
    for (arguments, code) in
        [(&["watch", "cm", "--timeout", "1s"][..], 0), (&["watch", "cm,podz"], 3), (&["get", "pods"], 0)]
    {
        let mut command = cluster.program(arguments);
        let output = command.stdout(Stdio::piped()).stderr(full()).output().expect("it runs");
        assert_eq!(output.status.code(), Some(code), "{arguments:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_kubeconfig_that_cannot_be_read_is_not_quoted() {
    let folder = tempfile::tempdir().expect("a folder can be made");
    let file = folder.path().join("config");
    for broken in [
        "users:\n- name: a\n  user:\n    token: hunter2\n    client-key-data: [x]\n",
        "users: hunter2\n",
        "users:\n- name: a\n  user:\n    token: hunter2\n   bad: : x\n",
    ] {
        std::fs::write(&file, broken).expect("it can be written");
        let mut by_flag = support::program(&["get", "pods"]);
        by_flag.arg("--kubeconfig").arg(&file);
        let mut by_variable = support::program(&["get", "pods"]);
        by_variable.env("KUBECONFIG", &file);
        for command in [by_flag, by_variable] {
            let ended = run(command);
            ended.assert_code(1);
            assert!(!ended.stderr.contains("hunter2"), "{}", ended.stderr);
            assert!(ended.stderr.contains("cannot be used") && ended.stderr.contains("line "), "{}", ended.stderr);
        }
    }
}

fn forbid(cluster: &Cluster, kind: &str) {
    cluster.server.faults().on(Match::verb("list", kind)).then(Fault::status(403, "Forbidden"));
    cluster.server.faults().on(Match::watch(kind)).then(Fault::status(403, "Forbidden"));
}

#[tokio::test(flavor = "multi_thread")]
async fn it_ends_when_nothing_can_be_seen_or_what_is_waited_for_cannot() {
    let cluster = Cluster::start().await;
    forbid(&cluster, "secrets");
    forbid(&cluster, "services");
    let ended = run(cluster.program(&["watch", "secrets,services"]));
    ended.assert_code(4);
    assert!(ended.stderr.contains("secrets") && ended.stderr.contains("services"), "{}", ended.stderr);
    run(cluster.program(&["watch", "cm,secrets", "--until", "delete"])).assert_code(4);
    run(cluster.program(&["watch", "cm,secrets", "--exit-after-sync"])).assert_code(4);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_first_list_that_fails_is_told_and_does_not_count_as_done() {
    let cluster = Cluster::start().await;
    cluster.server.faults().on(Match::verb("list", "configmaps")).then(Fault::status(500, "InternalError"));
    cluster.server.faults().on(Match::watch("configmaps")).then(Fault::status(500, "InternalError"));
    let watch = Running::start(cluster.program(&["watch", "cm", "--exit-after-sync", "--timeout", "7s"]));
    watch.stderr.wait_for(&["configmaps: not connected, and trying again", "500"]);
    let ended = watch.end();
    ended.assert_code(5);
    assert_eq!(ended.stderr.matches("not connected").count(), 1, "{}", ended.stderr);
}

#[tokio::test(flavor = "multi_thread")]
async fn names_tell_of_changes_that_are_not_in_the_metadata() {
    let cluster = Cluster::start().await;
    cluster.config_map("c", "1");
    let watch = Running::start(cluster.program(&["watch", "cm", "-o", "name"]));
    watch.stdout.wait_for(&["configmap/c"]);
    cluster.config_map("c", "2");
    watch.stdout.wait_for_nth(2, &["configmap/c"]);
    watch.interrupt();
    watch.end().assert_code(130);
    cluster.config_map("b", "3");
    let ended = run(cluster.program(&["get", "cm", "-o", "name", "--sort-by", ".data.value"]));
    assert_eq!(ended.assert_code(0).stdout, "configmap/c\nconfigmap/b\n");
}

#[tokio::test(flavor = "multi_thread")]
async fn get_shows_what_may_be_seen_and_says_what_may_not() {
    let cluster = Cluster::start().await;
    cluster.config_map("c", "1");
    forbid(&cluster, "secrets");
    let ended = run(cluster.program(&["get", "secrets,cm"]));
    ended.assert_code(4);
    assert!(ended.stdout.contains("configmap/c"), "{}", ended.stdout);
    assert!(ended.stderr.contains("secrets"), "{}", ended.stderr);
}

#[tokio::test(flavor = "multi_thread")]
async fn listings_have_the_objects_that_were_asked_for_once_and_only_them() {
    let cluster = Cluster::start().await;
    cluster.config_map("a", "1");
    cluster.config_map("b", "1");
    cluster.pod("shop", "web-0", "Running");
    let rows = |arguments: &[&str]| -> Vec<String> {
        let ended = run(cluster.program(arguments));
        let first = |line: &str| line.split_whitespace().next().unwrap_or_default().to_owned();
        ended.assert_code(0).stdout.lines().map(first).collect()
    };
    assert_eq!(rows(&["get", "cm", "b", "a", "a"]), ["NAME", "a", "b"], "one table, and no object twice");
    assert_eq!(rows(&["get", "cm/a", "configmap/a", "-o", "name"]), ["configmap/a"]);
    assert_eq!(rows(&["get", "pods", "-n", "default,"]), [""; 0], "a comma is no namespace");
    cluster.put(json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "node-1"}}));
    assert_eq!(rows(&["get", "nodes", "-A"]), ["NAME", "node-1"], "it is in no namespace");
}
