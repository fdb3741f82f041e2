//! `watchkeeper doctor`, run as people run it.
#![cfg(unix)]

mod support;

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::thread;

use serde_json::{Value, json};
use support::{Cluster, Ended, Running, program, run};
use tempfile::tempdir;
use watchkeeper_apiserver::{Fault, Match, StallAt};

/// Runs a doctor beside the cluster: what it blocks on must not be the server.
async fn doctor(cluster: &Cluster, arguments: &[&str]) -> Ended {
    let mut command = cluster.program(&["doctor"]);
    command.args(arguments);
    tokio::task::spawn_blocking(move || run(command)).await.expect("it runs")
}

async fn doctor_with(kubeconfig: &Path, arguments: &[&str]) -> Ended {
    let mut command = program(&["doctor"]);
    command.args(arguments).env("KUBECONFIG", kubeconfig);
    tokio::task::spawn_blocking(move || run(command)).await.expect("it runs")
}

/// A cluster that has no reviews, or not for everybody: what is allowed is tried.
async fn cluster_without_reviews() -> Cluster {
    let cluster = Cluster::start().await;
    let reviews = cluster.server.faults().on(Match::verb("create", "selfsubjectaccessreviews.authorization.k8s.io"));
    reviews.then(Fault::status(403, "Forbidden"));
    cluster
}

fn assert_all(ended: &Ended, needles: &[&str]) {
    for needle in needles {
        assert!(ended.stdout.contains(needle), "no {needle:?} in\n{}\n{}", ended.stdout, ended.stderr);
    }
    assert!(!ended.stdout.contains('\x1b'));
}

#[tokio::test(flavor = "multi_thread")]
async fn all_is_well_on_a_server_that_is() {
    let cluster = Cluster::start().await;
    let note = "x".repeat(3000);
    for number in 0..600 {
        cluster.put(json!({
            "apiVersion": "v1", "kind": "ConfigMap",
            "metadata": {"name": format!("map-{number}"), "namespace": "default"},
            "data": {"number": number.to_string(), "note": note},
        }));
    }
    let ended = doctor(&cluster, &["configmaps,nodes"]).await;
    ended.assert_code(0);
    assert_all(
        &ended,
        &[
            "ok       kubeconfig",
            "context watchkeeper",
            "ok       connection",
            "TLS 1.3",
            "a certificate for localhost, 127.0.0.1",
            "Kubernetes v1.36",
            "you may list and watch configmaps in namespace default",
            "lists can be streamed",
            "ok       compression",
            "configmaps: 600 objects of 3.",
            "measured on all of them",
            "there are no nodes",
            "0 failed",
        ],
    );
    assert!(!ended.stdout.contains(cluster.listening.token()));

    let ended = doctor(&cluster, &["configmaps", "-o", "json"]).await;
    let document: Value = serde_json::from_str(&ended.assert_code(0).stdout).expect("JSON");
    assert_eq!((&document["summary"]["failed"], &document["manifest"]), (&json!(0), &Value::Null));
    let checks = document["checks"].as_array().expect("checks");
    assert!(checks.iter().any(|check| check["name"] == "tls" && check["state"] == "ok"), "{checks:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_not_allowed_comes_with_the_role_that_would() {
    let cluster = cluster_without_reviews().await;
    for verb in ["list", "watch"] {
        cluster.server.faults().on(Match::verb(verb, "pods")).then(Fault::status(403, "Forbidden"));
    }
    let ended = doctor(&cluster, &["pods,nodes", "-n", "shop"]).await;
    ended.assert_code(4);
    assert_all(
        &ended,
        &[
            "FAILED   rights          you may not list and watch pods in namespace shop",
            "you may list and watch nodes",
            "kubectl apply -f - <<'EOF'",
            "kind: RoleBinding",
            "namespace: \"shop\"",
            "resources: [\"pods\"]",
        ],
    );
    let (_, manifest) = ended.stdout.split_once("<<'EOF'\n").expect("a manifest");
    let documents: Vec<Value> = serde_saphyr::from_multiple(manifest.trim_end_matches("EOF\n")).expect("YAML");
    assert_eq!(documents.len(), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_fails_or_hangs_is_told_from_one_that_refuses() {
    let cluster = cluster_without_reviews().await;
    cluster.server.faults().on(Match::list("pods")).then(Fault::status(500, "InternalError"));
    cluster.server.faults().on(Match::watch("nodes")).then(Fault::stall_for_ever(StallAt::Headers));
    let ended = doctor(&cluster, &["pods,nodes", "--request-timeout", "1s"]).await;
    ended.assert_code(1);
    assert_all(&ended, &["a list is answered with 500", "a watch is not answered in time", "skipped  memory"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_without_streaming_lists_is_a_warning() {
    let cluster = cluster_without_reviews().await;
    // The first watch that sends the state is the one that tries whether watching is allowed.
    let streams = cluster.server.faults().on(Match::streaming_list("pods").after(1));
    streams.then(Fault::status(422, "Invalid"));
    let ended = doctor(&cluster, &["pods"]).await;
    ended.assert_code(0);
    assert_all(&ended, &["warning  watching        there are no streaming lists: the server answers 422"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_fails_half_way_is_not_well() {
    let cluster = cluster_without_reviews().await;
    // Three are answered: for the rights, for compression and for a table.
    cluster.server.faults().on(Match::list("pods").after(3)).then(Fault::bad_gateway());
    let ended = doctor(&cluster, &["pods"]).await;
    ended.assert_code(1);
    assert_all(&ended, &["FAILED   memory          a page of pods cannot be read"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wrong_token_is_told_as_such() {
    let cluster = Cluster::start().await;
    let folder = tempdir().expect("a folder");
    let path = folder.path().join("config");
    let text = cluster.listening.kubeconfig().replace(cluster.listening.token(), "wrong-s3cret");
    fs::write(&path, text).expect("a file");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).expect("a mode");
    let ended = doctor_with(&path, &[]).await;
    ended.assert_code(4);
    assert_all(
        &ended,
        &[
            "can be read by other users of this machine (mode 644)",
            "chmod 600",
            "FAILED   credentials     the server does not know who asks (401",
            "skipped  rights",
        ],
    );
    assert!(!ended.stdout.contains("s3cret"));
}

#[tokio::test(flavor = "multi_thread")]
async fn another_authority_is_not_trusted_and_none_at_all_is_warned_of() {
    let (cluster, other) = (Cluster::start().await, Cluster::start().await);
    let folder = tempdir().expect("a folder");
    let path = folder.path().join("config");
    let line = |text: &str| {
        let line = text.lines().find(|line| line.contains("certificate-authority-data")).expect("an authority");
        line.to_owned()
    };
    let (ours, theirs) = (cluster.listening.kubeconfig(), other.listening.kubeconfig());
    fs::write(&path, ours.replace(&line(&ours), &line(&theirs))).expect("a file");
    let ended = doctor_with(&path, &[]).await;
    ended.assert_code(1);
    assert_all(
        &ended,
        &[
            "FAILED   tls             the server's certificate is signed by none whom the kubeconfig trusts",
            "a certificate for localhost",
            "skipped  credentials",
        ],
    );

    fs::write(&path, ours.replace(&line(&ours), "    insecure-skip-tls-verify: true")).expect("a file");
    let ended = doctor_with(&path, &["pods"]).await;
    ended.assert_code(0);
    assert_all(&ended, &["warning  kubeconfig", "ANYBODY on the way"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn nobody_at_home_no_such_name_and_no_tls_are_three_things() {
    let folder = tempdir().expect("a folder");
    let path = folder.path().join("config");
    let config = |server: &str| {
        format!(
            "clusters: [{{name: a, cluster: {{server: \"{server}\"}}}}]\nusers: [{{name: a, user: {{token: t}}}}]\n\
             contexts: [{{name: a, context: {{cluster: a, user: a}}}}]\ncurrent-context: a\n"
        )
    };
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address");
    drop(listener);
    fs::write(&path, config(&format!("https://{address}"))).expect("a file");
    let ended = doctor_with(&path, &[]).await;
    ended.assert_code(1);
    assert_all(&ended, &["FAILED   connection      nobody answers at 127.0.0.1:", "skipped  memory"]);

    fs::write(&path, config("https://no-such-host.invalid:6443")).expect("a file");
    let ended = doctor_with(&path, &["--request-timeout", "10s"]).await;
    ended.assert_code(1);
    assert_all(&ended, &["FAILED   connection      the name no-such-host.invalid means nothing"]);

    let page = web_page();
    fs::write(&path, config(&format!("https://{page}"))).expect("a file");
    let ended = doctor_with(&path, &["--request-timeout", "10s"]).await;
    ended.assert_code(1);
    assert_all(&ended, &["FAILED   tls"]);

    fs::write(&path, config(&format!("http://{page}"))).expect("a file");
    let ended = doctor_with(&path, &["--request-timeout", "10s"]).await;
    ended.assert_code(1);
    assert_all(&ended, &["FAILED   server          /version: the answer is a web page", "it is no Kubernetes API"]);
}

/// Something that answers every request with a page.
fn web_page() -> std::net::SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address");
    thread::spawn(move || {
        for stream in listener.incoming() {
            let Ok(mut stream) = stream else { return };
            thread::spawn(move || {
                let mut head = [0; 4096];
                let _ = stream.read(&mut head);
                let page = "<html>\x1b[2JPlease log in</html>";
                let _ = write!(
                    stream,
                    "HTTP/1.1 200 OK\r\ncontent-type: text/html\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{page}",
                    page.len()
                );
            });
        }
    });
    address
}

#[test]
fn a_kubeconfig_that_cannot_be_used_is_explained() {
    let folder = tempdir().expect("a folder");
    let path = folder.path().join("config");
    let path_text = path.display().to_string();
    let user = "users: [{name: a, user: {exec: {command: no-such-plugin, apiVersion: client.authentication.k8s.io/v1, \
                installHint: \"brew install it\"}}}]\n";
    let base = "clusters: [{name: a, cluster: {server: \"http://127.0.0.1:1\"}}]\n\
                contexts: [{name: a, context: {cluster: a, user: a}}]\n";
    for (text, needles) in [
        ("just some text", ["FAILED   kubeconfig", "cannot be used"]),
        (base, ["FAILED   kubeconfig", "current context"]),
        (&format!("{base}{user}current-context: a\n"), ["\"no-such-plugin\" is not there", "brew install it"]),
    ] {
        fs::write(&path, text).expect("a file");
        let ended = run(program(&["doctor", "--kubeconfig", &path_text]));
        ended.assert_code(1);
        assert_all(&ended, &needles);
    }
    let ended = run(program(&["doctor"]));
    ended.assert_code(1);
    assert_all(&ended, &["there is no cluster to talk to", "--demo"]);
}

#[test]
fn kinds_that_are_not_there_do_not_hide_others() {
    let ended = run(program(&["doctor", "podz,nodes", "--demo"]));
    ended.assert_code(1);
    assert_all(&ended, &["FAILED   kinds", "did you mean pod", "you may list and watch nodes"]);
    let ended = run(program(&["doctor", "--demo", "-A"]));
    ended.assert_code(0);
    assert_all(&ended, &["none is needed: a cluster in memory", "0 failed"]);
}

#[test]
fn ctrl_c_tells_what_was_found_by_then_and_no_password_of_a_url() {
    let folder = tempdir().expect("a folder");
    let path = folder.path().join("config");
    let silent = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = silent.local_addr().expect("an address");
    let config = format!(
        "clusters: [{{name: a, cluster: {{server: \"http://jane:s3cret@{address}/prefix\"}}}}]\n\
         contexts: [{{name: a, context: {{cluster: a, user: a}}}}]\nusers: [{{name: a}}]\ncurrent-context: a\n"
    );
    fs::write(&path, config).expect("a file");
    let path = path.display().to_string();
    let running = Running::start(program(&["doctor", "-o", "json", "--kubeconfig", &path]));
    // The first connection is the one that finds out whether somebody answers.
    let _connections = [silent.accept().expect("a connection"), silent.accept().expect("a request")];
    running.interrupt();
    let ended = running.end();
    let document: Value = serde_json::from_str(&ended.assert_code(130).stdout).expect("JSON");
    let checks = document["checks"].as_array().expect("checks");
    assert!(checks.iter().any(|check| check["found"] == "interrupted"), "{checks:?}");
    assert!(ended.stdout.contains(&format!("http://{address}/prefix")), "{}", ended.stdout);
    assert!(!ended.stdout.contains("s3cret"), "{}", ended.stdout);
}
