//! The live screens, in a terminal: they come, hear keys, fit into any size, and leave the terminal as it was.
#![cfg(unix)]

#[allow(unreachable_pub, reason = "what the tests share")]
mod terminal;

use std::process::Command;
use std::time::{Duration, Instant};

use terminal::{Session, svg};

const DEMO: [&str; 3] = ["demo", "--objects", "300"];
const ARROW_DOWN: &str = "\x1b[B";

#[test]
fn the_demo_shows_all_kinds_and_that_they_are_equal_and_quits_with_q() {
    let mut session = Session::start(&DEMO, 120, 36);
    session.wait_for_texts(&["nodes", "deployments", "pods", "events", "total"]);
    session.wait_for_texts(&["the cache is equal to the server", "watching", "export KUBECONFIG="]);
    assert!(session.screen().alternate_screen() && session.screen().hide_cursor());
    session.press("p");
    session.wait_for_texts(&["paused"]);
    session.press("p");
    session.wait_for("end of the pause", |screen| !screen.contents().contains("paused"));
    session.press("5");
    session.wait_for_texts(&["last changes of pods"]);
    session.press(ARROW_DOWN);
    session.wait_for_texts(&["last changes of services"]);
    session.press("f");
    session.wait_for("rain", |screen| screen.contents().lines().next().is_some_and(|line| line.contains("faults")));
    session.press("q");
    let ended = session.end();
    assert_eq!(ended.code, 0, "{}", ended.screen.contents());
    ended.assert_restored();
    assert!(ended.screen.contents().contains("comparisons, no difference"), "{}", ended.screen.contents());
}

#[test]
fn a_tiny_terminal_shows_what_fits_and_ctrl_c_ends_it() {
    let mut session = Session::start(&DEMO, 20, 5);
    session.wait_for_texts(&["watchkeeper demo"]);
    session.wait_for_texts(&["KIND", "total"]);
    for (columns, lines) in [(1, 1), (200, 3), (3, 60), (90, 24)] {
        session.resize(columns, lines);
    }
    session.wait_for_texts(&["the cache is equal to the server", "last changes", "q quit"]);
    session.press("\x03");
    let ended = session.end();
    assert_eq!(ended.code, 0, "{}", ended.screen.contents());
    ended.assert_restored();
}

#[test]
fn a_signal_ends_it_in_order_too() {
    let session = Session::start(&DEMO, 100, 30);
    session.wait_for_texts(&["watchkeeper demo"]);
    let sent = Command::new("kill").args(["-TERM", &session.process().to_string()]).status().expect("kill");
    assert!(sent.success());
    session.end().assert_restored();
}

#[test]
fn ctrl_z_lends_the_terminal_to_others() {
    let mut session = Session::start(&DEMO, 100, 30);
    session.wait_for_texts(&["the cache is equal to the server"]);
    session.press("\x1a");
    session.wait_for("first screen", |screen| !screen.alternate_screen() && !screen.hide_cursor());
    let process = session.process().to_string();
    // It does not stand still at once.
    std::thread::sleep(Duration::from_millis(200));
    let sent = Command::new("kill").args(["-CONT", &process]).status().expect("kill");
    assert!(sent.success());
    session.wait_for("second screen", |screen| screen.alternate_screen() && screen.hide_cursor());
    session.wait_for_texts(&["the cache is equal to the server", "total", "q quit"]);
    session.press("q");
    let ended = session.end();
    assert_eq!(ended.code, 0, "{}", ended.screen.contents());
    ended.assert_restored();
}

/// The second signal does not wait for the end that the first one asked for.
#[test]
fn whoever_does_not_wait_gets_the_terminal_back_too() {
    let session = Session::start(&["demo", "--objects", "20000"], 100, 30);
    session.wait_for("second screen", |screen| screen.alternate_screen());
    let process = session.process().to_string();
    for _ in 0..2 {
        // The program may have ended already.
        let _ = Command::new("kill").args(["-TERM", &process]).status();
        std::thread::sleep(Duration::from_millis(30));
    }
    session.end().assert_restored();
}

#[test]
fn top_shows_the_kinds_of_a_cluster_and_the_busiest_objects() {
    let mut session = Session::start(&["top", "--demo"], 120, 40);
    session.wait_for_texts(&["watchkeeper top", "the demo", "pods", "secrets (metadata)", "total"]);
    session.wait_for_texts(&["busiest objects", "last changes"]);
    session.wait_for("change", |screen| screen.contents().contains("MODIFIED") || screen.contents().contains("ADDED"));
    session.press(ARROW_DOWN);
    session.wait_for_texts(&["last changes of "]);
    session.resize(20, 5);
    session.wait_for("a small screen", |screen| {
        screen.contents().contains("watchkeeper top") && screen.contents().contains("KIND")
    });
    session.press("\x1b");
    let ended = session.end();
    assert_eq!(ended.code, 0, "{}", ended.screen.contents());
    ended.assert_restored();
}

/// Draws the picture of the documentation, when somebody says where to: `cargo xtask picture`.
#[test]
fn the_screen_can_be_drawn_as_a_picture() {
    let target = std::env::var_os("WATCHKEEPER_PICTURE");
    let (arguments, time): (&[&str], u64) = match target {
        Some(_) => (&["demo", "--faults", "--rate", "40"], 25),
        None => (&DEMO, 0),
    };
    let mut session = Session::start(arguments, 122, 36);
    session.wait_for_texts(&["the cache is equal to the server", "total"]);
    let begun = Instant::now();
    // Something shall have happened, and all be well at the moment.
    while begun.elapsed() < Duration::from_secs(time) {
        std::thread::sleep(Duration::from_millis(100));
    }
    if target.is_some() {
        session.wait_for("calm", |screen| screen.contents().matches("watching").count() >= 9);
    }
    let picture = svg::of(&session.screen(), "watchkeeper demo");
    session.press("q");
    session.end().assert_restored();
    assert!(picture.starts_with("<svg") && picture.contains("the cache is equal to the server"));
    if let Some(target) = target {
        std::fs::write(target, picture).expect("the picture can be written");
    }
}
