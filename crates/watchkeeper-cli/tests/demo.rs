//! The demo without a terminal: lines, and an exit code that says whether the copies stayed equal.

use std::process::{Command, Output};

fn demo(arguments: &[&str]) -> (Output, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_watchkeeper"))
        .args(["demo", "--objects", "300"])
        .args(arguments)
        .env_remove("RUST_LOG")
        .output()
        .expect("the program runs");
    let text = String::from_utf8(output.stdout.clone()).expect("text");
    (output, text)
}

/// The number before a word.
fn number(text: &str, word: &str) -> u64 {
    let before = text.split(word).next().unwrap_or_default();
    let number = before.trim_end().rsplit(' ').next().unwrap_or_default();
    number.replace([',', '('], "").parse().unwrap_or_else(|_| panic!("no number before {word} in: {text}"))
}

#[test]
fn lines_say_what_is_there_and_that_it_is_equal() {
    let (output, text) = demo(&["--for", "3s", "--plain"]);
    assert_eq!(output.status.code(), Some(0), "{text}{output:?}");
    assert!(!text.contains('\x1b'), "{text:?}");
    let lines: Vec<&str> = text.lines().collect();
    assert!(lines[0].starts_with("making a cluster of 300 objects"), "{text}");
    for part in ["  export KUBECONFIG=", "  kubectl get pods -A -w", "  watchkeeper watch pods -A"] {
        assert!(lines.iter().any(|line| line.starts_with(part)), "{part}: {text}");
    }
    let synced = lines.iter().find(|line| line.starts_with("synced ")).expect("a line on the sync");
    assert!(synced.contains(" objects of 11 kinds in "), "{synced}");
    assert!(number(synced, "objects") >= 250, "{synced}");
    assert!(lines.iter().any(|line| line.contains("equal at version ")), "{text}");
    let last = lines.last().expect("a last line");
    assert!(last.starts_with("equal: ") && last.contains(" comparisons, no difference"), "{text}");
    assert!(number(last.trim_start_matches("equal: "), "comparisons") >= 11, "{last}");
    // The kubeconfig has gone with it.
    let path = lines.iter().find_map(|line| line.trim().strip_prefix("export KUBECONFIG=")).expect("a path");
    assert!(!std::path::Path::new(path).exists(), "{path}");
}

#[test]
fn through_all_faults_the_copies_stay_equal() {
    let (output, text) = demo(&["--for", "6s", "--faults"]);
    assert_eq!(output.status.code(), Some(0), "{text}{output:?}");
    let ended = text.lines().find(|line| line.starts_with("ended after")).expect("a last line");
    assert!(number(ended, "faults") > 0, "{text}");
    assert!(number(ended, "gaps") > 0, "{text}");
    assert!(text.lines().last().is_some_and(|line| line.starts_with("equal: ")), "{text}");
}

#[test]
fn a_copy_that_is_wrong_is_found_out() {
    let (output, text) = demo(&["--for", "2s", "--sabotage"]);
    assert_eq!(output.status.code(), Some(1), "{text}{output:?}");
    assert!(text.contains("DIFFERED: the copies differed: pods at revision "), "{text}");
    assert!(text.contains(": missing "), "{text}");
}

#[test]
fn what_makes_no_sense_is_refused() {
    for wrong in [["--rate", "-1"], ["--rate", "inf"], ["--for", "soon"], ["--port", "70000"]] {
        let (output, text) = demo(&wrong);
        assert_eq!(output.status.code(), Some(2), "{wrong:?} {text}");
    }
}
