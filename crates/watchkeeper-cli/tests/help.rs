//! What `--help` teaches.

mod support;

use support::{program, run};

const COMMANDS: [&str; 8] = ["demo", "watch", "get", "top", "serve", "doctor", "bench", "completion"];

fn help(arguments: &[&str]) -> String {
    let ended = run(program(arguments));
    ended.assert_code(0);
    assert!(ended.stderr.is_empty(), "help goes to stdout: {}", ended.stderr);
    ended.stdout
}

#[test]
fn the_program_says_what_it_can_do() {
    insta::assert_snapshot!(help(&["--help"]));
}

#[test]
fn every_command_says_what_it_does_and_how() {
    for command in COMMANDS {
        let text = help(&[command, "--help"]);
        insta::assert_snapshot!(format!("help_{command}"), text);
        assert!(text.lines().all(|line| line.chars().count() <= 110), "{command} has lines too long for a terminal");
        assert!(command == "completion" || text.contains("Examples:"), "{command} shows no examples");
    }
}

/// Nobody reads further than that.
#[test]
fn help_fits_on_a_screen() {
    for command in COMMANDS {
        let lines = help(&[command, "--help"]).lines().count();
        assert!(lines <= 66, "{command} has {lines} lines");
    }
}

#[test]
fn as_a_plugin_it_is_called_as_kubectl_calls_it() {
    let folder = tempfile::tempdir().expect("a folder can be made");
    let plugin = folder.path().join("kubectl-watchkeeper");
    std::fs::copy(env!("CARGO_BIN_EXE_watchkeeper"), &plugin).expect("it can be copied");
    let output = std::process::Command::new(plugin).args(["watch", "--help"]).output().expect("it starts");
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(text.contains("Usage: kubectl watchkeeper watch"), "{text}");
}

#[test]
fn each_shell_has_its_completion() {
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let ended = run(program(&["completion", shell]));
        ended.assert_code(0);
        assert!(ended.stdout.contains("watchkeeper") && ended.stdout.contains("field-selector"), "{shell}");
    }
    let ended = run(program(&["completion", "tcsh"]));
    ended.assert_code(2);
    assert!(ended.stderr.contains("possible values"), "{}", ended.stderr);
}

#[test]
fn a_wrong_command_line_is_told_what_there_is() {
    for (arguments, words) in [
        (&["wacth", "pods"][..], &["wacth", "watch"][..]),
        (&["watch", "pods", "--namspace", "x"], &["--namspace", "--namespace"]),
        (&["watch", "pods", "-n", "a", "-A"], &["cannot be used with"]),
        (&["watch", "pods", "--timeout", "soon"], &["is no duration", "10s"]),
        (&["get", "pods", "--demo", "--context", "x"], &["cannot be used with"]),
    ] {
        let ended = run(program(arguments));
        ended.assert_code(2);
        for word in words {
            assert!(ended.stderr.contains(word), "{arguments:?}: no {word:?} in\n{}", ended.stderr);
        }
    }
}
