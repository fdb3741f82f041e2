//! What a newcomer does in the first five minutes, with no cluster: each step shows something at once, and ends well.

mod support;

use std::time::{Duration, Instant};

use support::{Running, program, run};

/// On a quiet machine it is a small part of a second; a debug build on a busy one takes longer.
const SOON: Duration = Duration::from_secs(20);

#[test]
fn the_demo_lives_and_tells_how_to_point_kubectl_at_it() {
    let began = Instant::now();
    let demo = Running::start(program(&["demo", "--for", "3s", "--seed", "7"]));
    let line = demo.stdout.wait_for(&["synced"]);
    assert!(began.elapsed() < SOON, "{line} came after {:?}", began.elapsed());
    let ended = demo.end();
    ended.assert_code(0);
    let all = ended.stdout + &ended.stderr;
    assert!(all.contains("KUBECONFIG=") && all.contains("kubectl get pods"), "{all}");
    assert!(!all.contains('\x1b'), "no colours into a pipe");
}

#[test]
fn a_watch_shows_typed_rows_and_ends_with_a_summary() {
    let watch = Running::start(program(&["get", "pods", "-A", "-w", "--demo"]));
    watch.stdout.wait_for(&["TIME", "EVENT", "NAMESPACE", "NAME", "READY", "STATUS"]);
    watch.stdout.wait_for(&["ADDED", "Running"]);
    watch.stdout.wait_for(&["MODIFIED"]);
    watch.interrupt();
    let ended = watch.end();
    ended.assert_code(130);
    assert!(ended.stderr.contains("changes in") && ended.stderr.contains("last version"), "{}", ended.stderr);
    assert_eq!(ended.stdout.matches("NAMESPACE").count(), 1, "one header");
}

#[test]
fn faults_rain_and_the_copy_stays_equal() {
    let ended = run(program(&["demo", "--faults", "--seed", "42", "--for", "5s", "--objects", "500"]));
    ended.assert_code(0);
    assert!(ended.stdout.contains("equal"), "{}", ended.stdout);
}

#[test]
fn the_doctor_finds_a_server_in_memory_well() {
    let folder = tempfile::tempdir().expect("a folder can be made");
    let kubeconfig = folder.path().join("kubeconfig");
    let path = kubeconfig.to_str().expect("it is text");
    let server = Running::start(program(&["serve", "--demo", "--objects", "300", "--kubeconfig", path]));
    server.stdout.wait_for(&["kubeconfig"]);
    let ended = run(program(&["doctor", "pods", "-A", "--kubeconfig", path]));
    ended.assert_code(0);
    assert!(ended.stdout.contains("pods"), "{}", ended.stdout);

    let ended = run(program(&["get", "pods", "-A", "-o", "name", "--kubeconfig", path]));
    assert!(ended.assert_code(0).stdout.lines().all(|line| line.starts_with("pod/")), "{}", ended.stdout);
    server.interrupt();
    server.end().assert_code(0);
    assert!(!kubeconfig.exists(), "it leaves nothing behind");
}

#[test]
fn every_step_works_without_a_home() {
    let ended = run(program(&["get", "nodes", "--demo", "-o", "jsonl"]));
    ended.assert_code(0);
    assert!(ended.stdout.lines().all(|line| line.starts_with(r#"{"type":"ADDED","time":""#)), "{}", ended.stdout);
}
