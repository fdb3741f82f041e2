//! A cluster by kind, printed once.

use std::process::{Command, Output};

fn top(arguments: &[&str]) -> (Output, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_watchkeeper"))
        .arg("top")
        .args(arguments)
        .env_remove("RUST_LOG")
        .env_remove("KUBECONFIG")
        .output()
        .expect("the program runs");
    let text = String::from_utf8(output.stdout.clone()).expect("text");
    (output, text)
}

fn line<'a>(text: &'a str, kind: &str) -> Vec<&'a str> {
    let found = text.lines().find(|line| line.split_whitespace().next() == Some(kind));
    found.unwrap_or_else(|| panic!("no {kind} in:\n{text}")).split_whitespace().collect()
}

#[test]
fn every_kind_that_is_there_has_a_line() {
    let (output, text) = top(&["--demo"]);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    assert!(!text.contains('\x1b'), "{text:?}");
    assert!(text.starts_with("KIND "), "{text}");
    let pods = line(&text, "pods");
    assert!(pods[1].replace(',', "").parse::<u64>().is_ok_and(|pods| pods > 500), "{pods:?}");
    assert!(pods.ends_with(&["watching"]), "{pods:?}");
    assert_eq!(line(&text, "secrets")[1], "(metadata)");
    assert!(!text.contains("events.events.k8s.io"), "the same events twice:\n{text}");
    assert!(text.lines().last().is_some_and(|line| line.starts_with("total ")), "{text}");
}

#[test]
fn only_what_is_asked_for_is_there() {
    let (output, text) = top(&["po,deploy", "--demo", "-n", "kube-system", "--metadata", "--for", "1s"]);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    assert_eq!(text.lines().count(), 4, "{text}");
    assert_eq!([line(&text, "pods")[1], line(&text, "deployments.apps")[1]], ["(metadata)", "(metadata)"]);
    let count: u64 = line(&text, "pods")[2].parse().expect("a number");
    assert!((1..100).contains(&count), "{text}");
}

#[test]
fn what_makes_no_sense_is_refused() {
    for (wrong, code) in [
        (["po", "--selector=a in web"], 2),
        (["pod/web", "--once"], 2),
        (["unicorns", "--once"], 3),
        (["po", "--for=soon"], 2),
    ] {
        let (output, _) = top(&[wrong[0], wrong[1], "--demo"]);
        assert_eq!(output.status.code(), Some(code), "{wrong:?} {output:?}");
    }
}
